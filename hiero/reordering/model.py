"""Orientation models: classifiers, and lexicalised models of relative frequencies.

A model is a directory of memory-mapped arrays. A classifier has ``key``, a hash table ``slot`` of the keys,
float32 ``weight`` [F, 3], float32 ``gap_weight`` [F, 3], learnt without word pairs, and the words. Weights of
a bidirectional one have three more columns, for the class of the next phrase. A lexicalised model has two
``table_kernels.OrientationCounts``, of phrase pairs and of source phrases.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import (
    Floats,
    Floats32,
    Hashes,
    Ids,
    Ints,
    are_offsets,
    is_finite,
    is_within,
    read_only,
)
from hiero.core.directories import META, Kind
from hiero.core.errors import ConfigError, FormatError
from hiero.core.records import record
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import are_slots, is_sound, table_entry, word_table_arrays
from hiero.reordering.config import CLASSES, ExampleConfig, LearnConfig
from hiero.reordering.examples import (
    NUM_CLASSES,
    WORD_FILES,
    Arrays,
    Examples,
    Shape,
    are_keys,
    check_examples_meta,
    check_features,
    example_feature_slots,
    example_words,
)
from hiero.reordering.learn_kernels import log_probs_kernel
from hiero.reordering.table_kernels import (
    LexicalArrays,
    OrientationCounts,
    gather_orientations_kernel,
    lexical_log_probs_kernel,
)

if TYPE_CHECKING:
    from hiero.reordering.learn import Learned

_WEIGHTS: dict[str, Shape] = {
    "key": (np.int64, 1),
    "slot": (np.int32, 1),
    "weight": (np.float32, 2),
    "gap_weight": (np.float32, 2),
}
_OF_COUNTS: dict[str, Shape] = {
    "key": (np.uint64, 1),
    "first": (np.int64, 1),
    "count": (np.int32, 2),
    "next": (np.int32, 2),
}
_COUNTS: dict[str, Shape] = {
    f"{what}_{name}": kind for what in ("pair", "source") for name, kind in _OF_COUNTS.items()
}


def _is_classifier(_meta: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bool:
    key, slot, weight, gap_weight = (arrays[name] for name in _WEIGHTS)
    words = example_words(arrays)
    return (
        weight.shape == gap_weight.shape == (len(key), weight.shape[1])
        and weight.shape[1] in (NUM_CLASSES, 2 * NUM_CLASSES)
        and are_slots(slot, len(key))
        and all(map(is_sound, words))
        and are_keys(key, *words)
        and is_finite(weight)
        and is_finite(gap_weight)
    )


def _is_lexicalised(_meta: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bool:
    return all(map(_is_sound, _counts_in(arrays)))


def _is_sound(counts: OrientationCounts) -> bool:
    buckets = len(counts.first) - 1
    return (
        buckets >= 2
        and buckets & (buckets - 1) == 0
        and are_offsets(counts.first, len(counts.key))
        and counts.count.shape == counts.next.shape == (len(counts.key), 3)
        and is_within(counts.count, 0, 1 << 31)
        and is_within(counts.next, 0, 1 << 31)
    )


def _counts_in(arrays: Mapping[str, npt.NDArray[Any]]) -> list[OrientationCounts]:
    """The counts of phrase pairs, and of source phrases."""
    names = OrientationCounts._fields
    return [OrientationCounts(*(arrays[f"{what}_{name}"] for name in names)) for what in ("pair", "source")]


AGAIN = "train it again with hiero reorder train"
CLASSIFIER = Kind("hiero orientation classifier", 3, AGAIN, _WEIGHTS | WORD_FILES, _is_classifier)
LEXICALISED = Kind("hiero lexicalised orientation model", 3, AGAIN, _COUNTS, _is_lexicalised)


WHAT = "an orientation model of hiero reorder train"


FEATURE_KINDS = ("bias", "words", "first", "last")


def smoothed_prior(classes: Ints) -> Floats:
    """The shares of the classes, of which each counts once more."""
    return read_only((classes + 1.0) / (classes.sum() + 3.0))


@dataclass(frozen=True, slots=True)
class OrientationModel:
    """Common parts of all orientation models.

    classes   training examples of each class
    digest    of the features of these examples
    frequent  words of either side to recognise its language
    learning  settings and results of learning
    """

    path: Path
    settings: ExampleConfig
    classes: Ints
    digest: str
    frequent: Mapping[str, list[str]]
    learning: Mapping[str, Any]

    @property
    def prior(self) -> Floats:
        """The smoothed shares of the classes."""
        return smoothed_prior(self.classes)

    @property
    def majority(self) -> int:
        return int(self.classes.argmax())

    def check(self, examples: Examples) -> None:
        """Refuse examples with other features than the training examples."""
        check_features(
            examples.digest, self.digest, examples.path, self.path, examples.settings, self.settings
        )


@dataclass(frozen=True, slots=True)
class Classifier(OrientationModel):
    """Weights of features; those of features that are not listed are 0.

    key         int64 [F]       in the order of the examples' features
    slot        int32 [2 ** k]  hash table of the keys
    weight      float32 [F, 3]  and three more columns, for the class of the next phrase, if bidirectional
    gap_weight  float32         likewise, for blocks whose words are not known, learnt without word pairs
    """

    key: Ints
    slot: Ids
    weight: Floats32
    gap_weight: Floats32
    src: WordTable
    tgt: WordTable

    @property
    def bidirectional(self) -> bool:
        return bool(self.weight.shape[1] > NUM_CLASSES)

    def log_probs(
        self, examples: Examples, begin: int, end: int, as_gaps: bool = False, ahead: bool = False
    ) -> Floats:
        """Natural logarithms of the class probabilities of examples ``begin`` ... ``end`` - 1.

        as_gaps  as if their words were not known, only their place in the sentence
        ahead    of the classes of next phrases, if bidirectional
        """
        out = np.empty((end - begin, 3))
        rows = examples.rows
        log_probs_kernel(
            rows.first, rows.feature, self.weights_for(examples, as_gaps, ahead), begin, end, out
        )
        return out

    def weights_for(self, examples: Examples, as_gaps: bool = False, ahead: bool = False) -> Floats:
        """The weights by the ids of features in examples."""
        key = examples.features.key
        order = np.argsort(key)
        weight, mine = np.zeros((len(key), NUM_CLASSES)), self.gap_weight if as_gaps else self.weight
        columns = slice(NUM_CLASSES, None) if ahead else slice(NUM_CLASSES)
        weight[order[np.searchsorted(key[order], self.key)]] = mine[:, columns]
        return weight


@dataclass(frozen=True, slots=True)
class Lexicalised(OrientationModel):
    """Counts of phrase pairs and of source phrases in each class.

    next_classes   training examples by the class of the next phrase
    bidirectional  whether this class is scored, too
    """

    pair: OrientationCounts
    source: OrientationCounts
    smoothing: float
    next_classes: Ints
    bidirectional: bool

    def arrays(self, code: Hashes) -> LexicalArrays:
        """The arrays for kernels; ``code`` has the hashes of words."""
        return LexicalArrays(
            *self.pair,
            *self.source,
            code,
            self.prior,
            smoothed_prior(self.next_classes),
            self.smoothing,
            self.settings.max_length,
        )

    def log_probs(
        self, examples: Examples, begin: int, end: int, as_gaps: bool = False, ahead: bool = False
    ) -> Floats:
        """As in ``Classifier``; of a gap the source words are known."""
        out = np.empty((end - begin, 3))
        arrays = self.arrays(read_only(np.zeros(0, np.uint64)))
        if as_gaps:
            arrays = arrays._replace(pair_count=read_only(np.zeros_like(arrays.pair_count)))
        lexical_log_probs_kernel(arrays, examples.pair, examples.source, ahead, begin, end, out)
        return out


# ---- from examples


def orientation_counts(
    code: Hashes, label: npt.NDArray[np.int8], next_label: npt.NDArray[np.int8]
) -> OrientationCounts:
    """The table of a lexicalised model: counts in each class of phrases given by their hashes."""
    order = np.argsort(code, kind="stable")
    key, counts = np.empty(len(code), np.uint64), []
    for labels in (label, next_label):
        count = np.zeros((len(code), 3), np.int32)
        used = int(gather_orientations_kernel(code, labels, order, key, count))
        counts.append(read_only(count[:used].copy()))
    key = key[:used].copy()
    bits = max(1, used.bit_length() - 1)
    bucket = (key >> np.uint64(64 - bits)).astype(np.int64)
    first = np.searchsorted(bucket, np.arange((1 << bits) + 1)).astype(np.int64)
    return OrientationCounts(read_only(key), read_only(first), *counts)


def _head(examples: Examples, config: LearnConfig, seed: int, found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "settings": asdict(examples.settings),
        "features": examples.digest,
        "classes": examples.classes.tolist(),
        "frequent": examples.frequent,
        "learning": asdict(config) | {"seed": seed} | dict(found),
    }


def write_lexicalised(path: Path, examples: Examples, config: LearnConfig, seed: int) -> None:
    """Write a lexicalised model: the counts of phrase pairs and of source phrases by class."""
    arrays: Arrays = {}
    for what, code in (("pair", examples.pair), ("source", examples.source)):
        counts = orientation_counts(code, examples.rows.label, examples.next_label)
        arrays |= {f"{what}_{name}": array for name, array in counts._asdict().items()}
    classes = np.bincount(examples.next_label, minlength=len(CLASSES)).tolist()
    LEXICALISED.write(path, _head(examples, config, seed, {}) | {"next_classes": classes}, arrays)


def write_classifier(
    path: Path, examples: Examples, config: LearnConfig, seed: int, learned: Sequence[tuple[Learned, Learned]]
) -> None:
    """Write a classifier with the features that have a weight that is not 0.

    learned  of the class of a phrase, and if bidirectional of the next one: with word pairs, and without
    """
    weight, gap_weight = (
        np.hstack([one.weight for one in side]).astype(np.float32) for side in zip(*learned, strict=True)
    )
    chosen = np.flatnonzero(weight.any(axis=1) | gap_weight.any(axis=1))
    key = read_only(examples.features.key[chosen])
    arrays: Arrays = {"key": key, "slot": example_feature_slots(key)}
    arrays |= {"weight": weight[chosen], "gap_weight": gap_weight[chosen]}
    found, *of_next = (_findings(*both) for both in learned)
    if of_next:
        found["of_next"] = of_next[0]
    words = word_table_arrays({"src": examples.features.src, "tgt": examples.features.tgt})
    CLASSIFIER.write(path, _head(examples, config, seed, found), arrays | words)


def _findings(learned: Learned, of_gaps: Learned) -> dict[str, Any]:
    return {
        "primal": learned.primal,
        "dual": learned.dual,
        "primal_of_gaps": of_gaps.primal,
        "facts_of_gaps": dict(of_gaps.facts or {}),
        **dict(learned.facts or {}),
        # Without the time, so that learning again gives the same bytes.
        "passes_made": [{k: v for k, v in one.as_dict().items() if k != "cpu"} for one in learned.history],
    }


# ---- from disk


def open_model(path: str | Path) -> Classifier | Lexicalised:
    """Map a model of ``hiero reorder train``."""
    path = Path(path)
    if not path.is_dir():
        found = "a file" if path.exists() else "no such directory"
        raise FormatError(path, 0, found=found, expected=WHAT)
    for kind in (CLASSIFIER, LEXICALISED):
        if kind.recognises(path):
            return _opened(kind, path)
    raise FormatError(path, 0, found="something else", expected=WHAT)


def _opened(kind: Kind, path: Path) -> Classifier | Lexicalised:
    meta, arrays = kind.read(path)
    check_examples_meta(kind, path, meta)
    try:
        settings = record(ExampleConfig, meta["settings"], "settings")
        learning = dict(meta["learning"])
        smoothing, bidirectional = float(learning["smoothing"]), bool(learning.get("bidirectional"))
        is_valid = 0 < smoothing < math.inf
        if kind is LEXICALISED:
            next_classes = np.array(meta["next_classes"], np.int64)
            is_valid = is_valid and next_classes.shape == (3,) and is_within(next_classes, 0, 1 << 62)
    except (TypeError, KeyError, ValueError, OverflowError, ConfigError):
        is_valid = False
    if not is_valid:
        raise kind.broken(path / META, "invalid settings", f"a {kind.name}")
    classes = np.array(meta["classes"], np.int64)
    head = (path, settings, classes, meta["features"], meta["frequent"], learning)
    if kind is LEXICALISED:
        pair, source = _counts_in(arrays)
        return Lexicalised(*head, pair, source, smoothing, next_classes, bidirectional)
    weights = arrays["weight"], arrays["gap_weight"]
    return Classifier(*head, arrays["key"], arrays["slot"], *weights, *example_words(arrays))


# ---- names of features


def orientation_feature_name(key: int, src: WordTable, tgt: WordTable, bag: bool = False) -> str:
    """A readable name of a classifier's feature: ``words haus & house``, ``before das``, ``after-2 </s>``.

    With ``bag``, the words around are called ``near das``.
    """
    kind, first, second = key >> 56, key >> 28 & 0xFFFFFFF, key & 0xFFFFFFF

    def word(table: WordTable, number: int, edge: str) -> str:
        return table_entry(table, number - 1).decode(errors="replace") if number else edge

    if kind == 0:
        return FEATURE_KINDS[0]
    if kind == 1:
        return f"{FEATURE_KINDS[1]} {word(src, first, '')} & {word(tgt, second, '')}"
    if kind < len(FEATURE_KINDS):
        return f"{FEATURE_KINDS[kind]} {word(src, first, '')}"
    if bag:
        return f"near {word(src, first, '')}"
    distance, is_after = divmod(kind - len(FEATURE_KINDS), 2)
    far = f"-{distance + 1}" if distance else ""
    return f"{'after' if is_after else 'before'}{far} {word(src, first, '</s>' if is_after else '<s>')}"


def top_features(model: Classifier, count: int) -> dict[str, list[tuple[str, float]]]:
    """The features of a classifier that have the highest weights for each class."""
    found, bag = {}, model.settings.context == "bag"
    for k, name in enumerate(CLASSES):
        order = np.argsort(-model.weight[:, k], kind="stable")[:count]
        names = [orientation_feature_name(int(model.key[f]), model.src, model.tgt, bag) for f in order]
        found[name] = list(zip(names, model.weight[order, k].astype(float).tolist(), strict=True))
    return found
