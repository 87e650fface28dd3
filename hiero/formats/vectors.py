# mypy: allow-untyped-calls
"""Weights and other numbers of features in a file that means the same in every process.

Ids of words and labels are a process's own, so the file brings its words with it: feature keys are numbered
by the file's own vocabularies. It is an uncompressed .npz, written whole and renamed; the same content gives
the same bytes.
"""

from __future__ import annotations

import itertools
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hiero.errors import FormatError
from hiero.features import NAME, RULE_ID, SHAPE, FeatureIndex, FeatureTable, intern_keys_kernel
from hiero.formats.text import open_output
from hiero.symbols import Symbols, Vocabulary, pack, read_only

RESERVED = 3  # the gap index of codes that no gap has, which carry no label
Ints = npt.NDArray[np.int32]


def write_vectors(
    path: str | Path,
    symbols: Symbols,
    index: FeatureIndex,
    chosen: npt.NDArray[np.int64],
    *,
    text: Ints | None = None,
    **values: Any,
) -> None:
    """Write the chosen features and, for each, a number of every array in ``values``, in their order.

    Arrays of other lengths may be among them, and are kept as they are. ``text`` holds ids of words.
    """
    key, pool = _chosen_keys(index.table, chosen)
    text = np.zeros(0, np.int32) if text is None else text
    local = _Local(key, pool, text)
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
        np.savez(stream, **content)


def read_vectors(
    path: str | Path, symbols: Symbols, index: FeatureIndex
) -> tuple[Ints, Mapping[str, npt.NDArray[Any]]]:
    """Read a file into an index: the number of each feature in it, and the arrays by name, ``text`` too."""
    try:
        # Opened here: np.load leaves a broken file open.
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            content = {name: file[name] for name in file.files}
        key, pool, text = content["key"], content["pool"], content["text"]
        to = [
            _interned(vocabulary, content[f"{name}_bytes"], content[f"{name}_first"])
            for name, vocabulary in (
                ("word", symbols.words),
                ("label", symbols.labels),
                ("name", symbols.names),
            )
        ]
    except OSError as error:
        found = (error.strerror or str(error)).lower()
        raise FormatError(str(path), 0, found=found, expected="numbers of features") from None
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile):
        raise FormatError(
            str(path), 0, found="a broken file", expected="numbers of features", hint="delete it"
        ) from None
    key, pool = _Local(key, pool, text).renumbered(*(read_only(array) for array in to))
    ids = np.empty(len(key), np.int32)
    with index.locked():
        intern_keys_kernel(index.reserve(len(key), len(pool)), read_only(key), read_only(pool), ids)
    values = {name.removeprefix("value_"): content[name] for name in content if name.startswith("value_")}
    values["text"] = to[0][text]
    return ids, values


def _interned(vocabulary: Vocabulary, data: npt.NDArray[np.uint8], first: npt.NDArray[np.int64]) -> Ints:
    whole, ends = data.tobytes(), first.tolist()
    return vocabulary.intern_all(whole[a:b] for a, b in itertools.pairwise(ends))


def _places(used: Ints) -> Ints:
    """From the id of an entry to its place in a file's list."""
    to = np.zeros(int(used[-1]) + 1 if len(used) else 0, np.int32)
    to[used] = np.arange(len(used))
    return to


def _chosen_keys(table: FeatureTable, chosen: npt.NDArray[np.int64]) -> tuple[Ints, Ints]:
    """The keys of some features, and the sequences of the rule ids among them without those of others."""
    key = np.array(table.key[chosen])
    ids = np.flatnonzero(key[:, 0] == RULE_ID)
    length = key[ids, 2].astype(np.int64)
    first = np.concatenate([[0], np.cumsum(length)])
    place = np.arange(first[-1]) + np.repeat(key[ids, 1] - first[:-1], length)
    pool = table.pool[place]
    key[ids, 1] = first[:-1]
    return key, pool


class _Local:
    """Feature keys, taken apart into what is a word, a label, a name."""

    def __init__(self, key: Ints, pool: Ints, text: Ints) -> None:
        self.key, self.pool, self.text = key, pool, text
        kind = key[:, 0]
        self._named = kind == NAME
        ids = kind == RULE_ID
        self._lhs = key[ids, 1]  # the first of a sequence is a label
        # Of shapes, which are bits; what is 0 where there is no second word is a word, and does no harm.
        self._symbols = ~(self._named | ids | (kind == SHAPE))

    def _all_symbols(self) -> Ints:
        rest = np.delete(self.pool, self._lhs)
        return np.concatenate([rest, self.key[self._symbols, 1], self.key[self._symbols, 2], self.text])

    @property
    def words(self) -> Ints:
        symbols = self._all_symbols()
        return np.unique(symbols[symbols >= 0])

    @property
    def labels(self) -> Ints:
        symbols = self._all_symbols()
        code = -symbols[symbols < 0] - 1
        return np.unique(np.concatenate([self.pool[self._lhs], code[code & 3 != RESERVED] >> 2]))

    @property
    def names(self) -> Ints:
        return np.unique(self.key[self._named, 1])

    def renumbered(self, word: Ints, label: Ints, name: Ints) -> tuple[Ints, Ints]:
        """The same keys with other ids: word i becomes ``word[i]``, and so on."""
        key, pool = self.key.copy(), _symbols(self.pool, word, label)
        pool[self._lhs] = label[self.pool[self._lhs]]
        for column in (1, 2):
            key[self._symbols, column] = _symbols(key[self._symbols, column], word, label)
        key[self._named, 1] = name[key[self._named, 1]]
        return key, pool


def _symbols(symbols: Ints, word: Ints, label: Ints) -> Ints:
    out = symbols.copy()
    words = symbols >= 0
    # A label that stands where a word could (of a rule id, replaced by the caller) may be beyond the words.
    out[words] = word[np.minimum(symbols[words], len(word) - 1)] if len(word) else 0
    code = -symbols[~words] - 1
    plain = code & 3 != RESERVED
    code[plain] = (label[code[plain] >> 2] << 2) | (code[plain] & 3)
    out[~words] = -code - 1
    return out
