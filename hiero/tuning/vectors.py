"""Files that carry weights and other numbers of features between processes.

Ids of words and labels differ between processes, so a file contains vocabularies, by which its feature keys
are numbered. It is an uncompressed .npz, written completely and renamed; equal content gives equal bytes.

The weights of a learner are a vector that grows with the features and is shared with the decoder.

Mixing of the shards' weights: the mean, and the ℓ1/ℓ2 selection of Simianer, Riezler and Dyer (2012). The
weights are the rows of a matrix of which only running sums over each column are kept, so that memory does not
grow with the number of shards. Shards are added in a fixed order, so that the result does not depend on the
order in which they finish.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import (
    Bytes,
    Flags,
    Floats,
    Ids,
    Ints,
    are_offsets,
    grown,
    is_finite,
    is_within,
    offsets_of,
    read_only,
)
from hiero.core.directories import ArrayKind, check_kinds, read_npz
from hiero.core.errors import FormatError
from hiero.core.symbol_kernels import LOW_CODE, WordTable
from hiero.core.symbols import Symbols, Vocabulary, pack, word_table
from hiero.core.text import open_output
from hiero.decoder.model import Model
from hiero.features.index import KINDS, FeatureIndex
from hiero.features.index_kernels import NAME, RULE_ID, SEPARATOR, FeatureTable, intern_keys_kernel
from hiero.features.weights import Weights, read_weights

RESERVED = 3  # a gap index that no gap has, of codes without a label
NO_SYMBOL = -1 - RESERVED  # neither a word nor a gap with a label
NO_LABEL = np.int32(-(2**31))
BLOCK = 1 << 20


def write_vectors(
    path: str | Path,
    symbols: Symbols,
    index: FeatureIndex,
    chosen: Ints,
    *,
    text: Ids | None = None,
    **values: Any,
) -> None:
    """Write the chosen features and arrays of ``values``, with a number for each feature, in their order.

    Arrays of other lengths are allowed and written unchanged. ``text`` holds ids of words.
    """
    key, pool = _chosen_keys(index.table, chosen)
    text = np.zeros(0, np.int32) if text is None else text
    local = _VectorKeys(key, pool, text)
    content: dict[str, Any] = {}
    for name, vocabulary, used in (
        ("word", symbols.words, local.words),
        ("label", symbols.labels, local.labels),
        ("name", symbols.names, local.names),
    ):
        content[f"{name}_bytes"], content[f"{name}_first"] = pack(
            [vocabulary.entry(i) for i in used.tolist()]
        )
    content["key"], content["pool"] = local.renumbered(
        _places(local.words), _places(local.labels), _places(local.names)
    )
    content["text"] = _places(local.words)[text]
    content |= {f"value_{name}": array for name, array in values.items()}
    with open_output(path) as stream:
        # In C order, which is the only one that is read.
        ordered: dict[str, Any] = {name: np.asarray(array, order="C") for name, array in content.items()}
        np.savez(stream, **ordered)


WHAT = "numbers of features"
ARRAYS: dict[str, ArrayKind] = {
    **dict.fromkeys(("pool", "text"), (np.int32, 1)),
    **{f"{name}_bytes": (np.uint8, 1) for name in ("word", "label", "name")},
    **{f"{name}_first": (np.int64, 1) for name in ("word", "label", "name")},
    "key": (np.int32, 2),
}


def read_vectors(
    path: str | Path, symbols: Symbols, index: FeatureIndex
) -> tuple[Ids, Mapping[str, npt.NDArray[Any]]]:
    """Read a file into an index: the id of each feature in it, and the arrays by name, with ``text``."""
    content = read_npz(path, WHAT, ARRAYS)
    key, pool, text = content["key"], content["pool"], content["text"]
    values = {name.removeprefix("value_"): content[name] for name in content if name.startswith("value_")}
    try:
        _check_keys(key, pool)
        to = [
            _interned(vocabulary, content[f"{name}_bytes"], content[f"{name}_first"])
            for name, vocabulary in (
                ("word", symbols.words),
                ("label", symbols.labels),
                ("name", symbols.names),
            )
        ]
        key, pool = _VectorKeys(key, pool, text).renumbered(*(read_only(array) for array in to))
        values["text"] = to[0][text]
    except (ValueError, IndexError):
        raise FormatError(str(path), 0, found="a broken file", expected=WHAT, hint="delete it") from None
    ids = np.empty(len(key), np.int32)
    with index.locked():
        intern_keys_kernel(index.reserve(len(key), len(pool)), read_only(key), read_only(pool), ids)
    return ids, values


def _check_keys(key: Ids, pool: Ids) -> None:
    """Raise ValueError unless kernels can read the keys."""
    if key.shape[1] != 3 or not is_within(key[:, 0], 0, max(KINDS) + 1):
        raise ValueError("keys of no kind")
    rules = key[key[:, 0] == RULE_ID].astype(np.int64)
    begin, end = rules[:, 1], rules[:, 1] + rules[:, 2]
    # Names are spelled from the two sides of a rule.
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(pool == SEPARATOR)])
    if (begin < 0).any() or (end <= begin).any() or not is_within(end, 0, len(pool) + 1):
        raise ValueError("rule ids outside of their symbols")
    if (before[begin] == before[end]).any():
        raise ValueError("rule ids with one side")


def _interned(vocabulary: Vocabulary, data: Bytes, first: Ints) -> Ids:
    if not are_offsets(first, len(data)):
        raise ValueError("offsets that do not ascend")
    whole, ends = data.tobytes(), first.tolist()
    return vocabulary.intern_all(whole[a:b] for a, b in itertools.pairwise(ends))


def _places(used: Ids) -> Ids:
    """A map from ids of entries to their positions in the file's list."""
    to = np.zeros(int(used[-1]) + 1 if len(used) else 0, np.int32)
    to[used] = np.arange(len(used))
    return to


def _blocks(size: int) -> Iterator[slice]:
    """Pieces to copy one by one: all symbols of rule ids at once would take most of a worker's memory."""
    return (slice(at, min(at + BLOCK, size)) for at in range(0, size, BLOCK))


def _chosen_keys(table: FeatureTable, chosen: Ints) -> tuple[Ids, Ids]:
    """The keys of some features, and the symbol sequences of the rule ids among them."""
    key = np.array(table.key[chosen])
    ids = np.flatnonzero(key[:, 0] == RULE_ID)
    length = key[ids, 2].astype(np.int64)
    first = offsets_of(length)
    pool = np.empty(first[-1], table.pool.dtype)
    for block in _blocks(len(ids)):
        begin, end = first[block.start], first[block.stop]
        shift = key[ids[block], 1] - first[block]
        pool[begin:end] = table.pool[np.arange(begin, end) + np.repeat(shift, length[block])]
    key[ids, 1] = first[:-1]
    return key, pool


class _VectorKeys:
    """Feature keys, with the words, labels and names in them."""

    def __init__(self, key: Ids, pool: Ids, text: Ids) -> None:
        self.key, self.pool, self.text = key, pool, text
        kind = key[:, 0]
        self._named = kind == NAME
        ids = kind == RULE_ID
        self._lhs = np.sort(key[ids, 1])  # the first of a sequence is a label
        # The 0 of a missing second word counts as a word, which is harmless.
        self._symbols = np.isin(kind, [number for number, row in KINDS.items() if row.has_symbols])

    def _parts(self) -> Iterator[Ids]:
        """All symbols except the labels that sequences begin with."""
        for block in _blocks(len(self.pool)):
            part = self.pool[block].copy()
            low, high = np.searchsorted(self._lhs, [block.start, block.stop])
            part[self._lhs[low:high] - block.start] = NO_SYMBOL
            yield part
        yield from (self.key[self._symbols, 1], self.key[self._symbols, 2], self.text)

    @cached_property
    def words(self) -> Ids:
        return _distinct(part[part >= 0] for part in self._parts())

    @cached_property
    def labels(self) -> Ids:
        codes = (-part[part < 0] - 1 for part in self._parts())
        inside = ((code[code & 3 != RESERVED] & LOW_CODE) >> 2 for code in codes)
        return _distinct(itertools.chain(inside, [self.pool[self._lhs]]))

    @cached_property
    def names(self) -> Ids:
        return np.unique(self.key[self._named, 1])

    def renumbered(self, word: Ids, label: Ids, name: Ids) -> tuple[Ids, Ids]:
        """The same keys with other ids: word i becomes ``word[i]``, and so on."""
        key, pool = self.key.copy(), np.empty(len(self.pool), self.pool.dtype)
        for block in _blocks(len(pool)):
            pool[block] = _symbols(self.pool[block], word, label)
        pool[self._lhs] = label[self.pool[self._lhs]]
        for column in (1, 2):
            key[self._symbols, column] = _symbols(key[self._symbols, column], word, label)
        key[self._named, 1] = name[key[self._named, 1]]
        return key, pool


def _distinct(parts: Iterable[Ids]) -> Ids:
    """The distinct ids, ascending, which are small enough for a table."""
    there = np.zeros(0, np.bool_)
    for part in parts:
        missing = int(part.max(initial=-1)) + 1 - len(there)
        if missing > 0:
            there = np.concatenate([there, np.zeros(missing, np.bool_)])
        there[part] = True
    return np.flatnonzero(there).astype(np.int32)


def _symbols(symbols: Ids, word: Ids, label: Ids) -> Ids:
    """Symbols with other ids: word i becomes ``word[i]``, and label i becomes ``label[i]``."""
    num_codes = max(-SEPARATOR, 4 * len(label))
    # Gaps with higher indices, in which the lowest bits have all but the highest.
    high = np.where(symbols < 0, (-symbols - 1) & ~LOW_CODE, 0).astype(np.int32)
    symbols = symbols + high
    if int(symbols.min(initial=0)) < -num_codes:
        raise IndexError("a symbol with another label")
    code = np.arange(num_codes, dtype=np.int32)
    is_gap = (code & 3 != RESERVED) & (code >> 2 < len(label))
    to = np.where(code & 3 != RESERVED, NO_LABEL, -1 - code)
    to[is_gap] = -1 - ((label[code[is_gap] >> 2] << 2) | (code[is_gap] & 3))
    words = word if len(word) else np.zeros(1, np.int32)
    # The label of a rule id, which the caller replaces, may be beyond the words.
    out = np.take(np.concatenate([to[::-1], words]), symbols.astype(np.int64) + num_codes, mode="clip")
    if (out == NO_LABEL).any():
        raise IndexError("a symbol with another label")
    return np.asarray(out - high, np.int32)


class WeightVector:
    """Weights by the numbers of a ``FeatureIndex``, which may change between sentences.

    A ``RuleScorer`` reads them without a copy; make a new one after each change, and after ``grow``.
    ``value`` may be longer than the number of features, with 0 in unused entries.
    """

    def __init__(self, symbols: Symbols, index: FeatureIndex | None = None) -> None:
        self.symbols = symbols
        self.index = FeatureIndex() if index is None else index
        self.value: Floats = np.zeros(1024)
        self.grow()

    def grow(self) -> None:
        """Make room for all features of the index."""
        self.value = grown(self.value, len(self.index))

    def __len__(self) -> int:
        return len(self.index)

    # ---- interface for scoring

    version = 0
    has_shared_names = False

    def template_weights(self) -> tuple[FeatureTable, Floats]:
        return self.index.table, read_only(self.value)

    def name_weights(self, start: int = 0) -> Floats:
        feature = self.index.find_names(np.arange(start, len(self.symbols.names), dtype=np.int32))
        value = self.value[np.minimum(feature, len(self.value) - 1)]
        return np.where((feature >= 0) & (feature < len(self.value)), value, 0.0)

    def shared_weights(self) -> tuple[WordTable, Floats]:
        return word_table([]), read_only(np.empty(0))

    # ---- conversion

    def as_weights(self) -> Weights:
        """Return a copy without zeros."""
        weights = Weights(self.symbols, index=self.index)
        weights.assign(self.value[: len(self.index)])
        return weights


class DenseFeatures:
    """Which features of an index are dense, given the names of those that are."""

    def __init__(self, names: Collection[str], symbols: Symbols, index: FeatureIndex) -> None:
        self.names, self.symbols, self.index = names, symbols, index
        self._flags = np.zeros(0, np.bool_)

    def __call__(self, size: int) -> Flags:
        """Whether each of the first ``size`` features is dense; those without a key yet are not."""
        known, count = len(self._flags), len(self.index)
        if known < count:
            rows = self.index.table.key[known:count]
            flags = rows[:, 0] == NAME
            text = self.symbols.names.text
            flags[flags] = [text(name) in self.names for name in rows[flags, 1].tolist()]
            self._flags = np.concatenate([self._flags, flags])
        missing = np.zeros(max(0, size - len(self._flags)), np.bool_)
        return np.concatenate([self._flags[:size], missing])


def read_vector(path: str, symbols: Symbols) -> WeightVector:
    """Read a vector of weights from a file, for decoding."""
    vector = WeightVector(symbols)
    ids, values = read_vectors(path, symbols, vector.index)
    vector.grow()
    check_kinds(path, WHAT, values, {"weight": (np.float64, 1)})
    if len(values["weight"]) != len(ids) or not is_finite(values["weight"]):
        raise FormatError(path, 0, found="other weights", expected="a finite number for each feature")
    vector.value[ids] = values["weight"]
    return vector


# ---- the memory of a learner

# Prefixes of the arrays of a learner's state in files: those with one value per feature, and others.
PER_FEATURE, OTHER = "feature.", "state."


def nested_state(ids: Ids, values: Mapping[str, Any], size: int) -> dict[str, Any]:
    """Restore the nested state of a learner from the arrays of a file."""
    state: dict[str, Any] = {}
    for name, array in values.items():
        if name.startswith(PER_FEATURE):
            whole = np.zeros(size, array.dtype)
            whole[ids] = array
            _put_in(state, name.removeprefix(PER_FEATURE), whole)
        elif name.startswith(OTHER):
            _put_in(state, name.removeprefix(OTHER), array if array.ndim else array.item())
    return state


def flat_state(state: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Flatten nested mappings into pairs of dotted names and values."""
    pairs: list[tuple[str, Any]] = []
    for name, value in state.items():
        if isinstance(value, Mapping):
            pairs.append((f"{prefix}{name}.", 0))  # a marker, so that empty mappings are kept
            pairs += flat_state(value, f"{prefix}{name}.")
        else:
            pairs.append((prefix + name, value))
    return pairs


def _put_in(state: dict[str, Any], name: str, value: Any) -> None:
    *path, last = name.split(".")
    for part in path:
        state = state.setdefault(part, {})
    if last:
        state[last] = value


# ---- initial weights

# As in the program of Green et al. 2013: 0.2 for every dense feature, 0.5 for the language model. There all
# features are log-probabilities; here some are negated, and a word is -1/ln 10, so that signs differ.
UNIFORM = {
    "EgivenFCoherent": -0.2,
    "SampleCountF": -0.2,
    "CountEF": 0.2,
    "MaxLexFgivenE": -0.2,
    "MaxLexEgivenF": -0.2,
    "IsSingletonF": -0.2,
    "IsSingletonFE": -0.2,
    "WordPenalty": -1.0,
    "PassThrough": -0.2,
    "Glue": -0.2,
}
LANGUAGE_MODEL = 0.5


def write_start(path: str, start: str, model: Model) -> None:
    """Write the vector of initial weights: ``zero``, ``uniform``, or those of a file."""
    if start == "zero":
        weights = Weights(Symbols())
    elif start == "uniform":
        # Without features that are replaced by bins, or by transformed values.
        replaced = {one.feature for one in model.bins if one.replaces}
        dense = {name: weight for name, weight in UNIFORM.items() if name not in replaced}
        weights = Weights(Symbols(), dense | dict.fromkeys(model.language_models.names, LANGUAGE_MODEL))
    else:
        weights = read_weights(start, Symbols())
    value, index = weights.vector(), weights.index
    if weights.has_shared_names:
        value, index = spelled_vector(weights)
    chosen = np.flatnonzero(value)
    write_vectors(path, weights.symbols, index, chosen, weight=value[chosen])


def spelled_vector(weights: Weights) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], FeatureIndex]:
    """Weights under names that may match several features, each assigned to the feature of that name."""
    index = FeatureIndex()
    keys, values = [], []
    for name, value in weights.items():
        key = weights.names.parse(name.removeprefix("%~"))
        if key is not None:
            keys.append(key)
            values.append(value)
    ids = index.intern_all(keys)
    vector = np.zeros(len(index))
    vector[ids] = values
    return vector, index


# ---- mixing


class ColumnSums:
    """Sums over the columns of a matrix that is added row by row; features missing in a row are 0."""

    def __init__(self) -> None:
        self.rows = 0
        self.share = 0.0  # sum of the shares of the rows
        self.weighted, self.plain, self.size, self.square, self.largest, self.number = np.zeros((6, 0))

    def add(self, feature: Ints, weight: Floats, share: float = 1.0) -> None:
        """Add a row: distinct features and their weights. ``share`` is the weight of the row in the mean."""
        self._grow(int(feature.max(initial=-1)) + 1)
        self.rows += 1
        self.share += share
        self.weighted[feature] += share * weight
        self.plain[feature] += weight
        self.size[feature] += np.abs(weight)
        self.square[feature] += weight * weight
        self.largest[feature] = np.maximum(self.largest[feature], np.abs(weight))
        self.number[feature] += weight != 0

    def _grow(self, size: int) -> None:
        for name in ("weighted", "plain", "size", "square", "largest", "number"):
            setattr(self, name, grown(getattr(self, name), size))

    def mean(self) -> Floats:
        return self.weighted / self.share if self.share else self.weighted

    def norm(self, name: str) -> Floats:
        if name == "mean":
            return np.abs(self.mean())
        norms = {"l2": np.sqrt(self.square), "l1": self.size, "linf": self.largest, "l0": self.number}
        return norms[name]


def select_features(norm: Floats, count: int) -> Ints:
    """The ``count`` features of mixed vectors with the largest norms (0: all), in the order of their numbers.

    Features of norm 0 are left out; of equal norms, the first feature is selected.
    """
    present = np.flatnonzero(norm > 0)
    if count and count < len(present):
        order = np.argsort(-norm[present], kind="stable")[:count]
        present = np.sort(present[order])
    return present


class Mixture:
    """The weights in some files, as they are added; their mean, for the selected features."""

    def __init__(self, values_of: str = "weight") -> None:
        self.symbols, self.index, self.columns = Symbols(), FeatureIndex(), ColumnSums()
        self.values_of = values_of

    def add(self, path: str, share: float) -> None:
        ids, values = read_vectors(path, self.symbols, self.index)
        self.columns.add(ids.astype(np.int64), values[self.values_of], share)

    def write(
        self, out: str, *, select: int = 0, norm: str = "l2", within: str | None = None
    ) -> tuple[int, int]:
        """Write the mean; with ``within``, of the features in that file.

        Return the number of features with a weight in any of the files, and the number selected.
        """
        size = self.columns.norm(norm)
        if within is not None:
            ids, _ = read_vectors(within, self.symbols, self.index)
            inside = np.zeros(max(len(size), len(self.index)), np.bool_)
            inside[ids] = True
            size = np.where(inside[: len(size)], size, 0.0)
        chosen = select_features(size, select)
        write_vectors(out, self.symbols, self.index, chosen, weight=self.columns.mean()[chosen])
        return int(np.count_nonzero(self.columns.number)), len(chosen)


def sum_weights(paths: Sequence[str], factors: Sequence[float], out: str) -> int:
    """Write the sum of the weights in some files, each times a factor; return the number of features."""
    symbols, index, total = Symbols(), FeatureIndex(), np.zeros(0)
    for path, factor in zip(paths, factors, strict=True):
        ids, values = read_vectors(path, symbols, index)
        total = np.concatenate([total, np.zeros(len(index) - len(total))])
        total[ids] += factor * values["weight"]
    chosen = np.flatnonzero(total)
    write_vectors(out, symbols, index, chosen, weight=total[chosen])
    return len(chosen)
