"""Orientation models, and their training: classifiers, and lexicalised models of relative frequencies.

A model is a directory of memory-mapped arrays. A classifier has ``key``, a hash table ``slot`` of the keys,
float32 ``weight`` [F, 3], and the words. A lexicalised model has two ``table_kernels.OrientationCounts``, of
phrase pairs and of source phrases.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import Floats, Floats32, Hashes, Ids, Ints, read_only
from hiero.core.directories import META, Kind
from hiero.core.errors import ConfigError, FormatError, HieroError
from hiero.core.progress import Progress, SilentProgress
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import word_table_arrays
from hiero.reordering.config import ExampleConfig, LearnConfig
from hiero.reordering.examples import (
    WORD_FILES,
    Arrays,
    Examples,
    Shape,
    check_features,
    check_meta,
    open_examples,
    slots_of,
    words_of,
)
from hiero.reordering.feature_kernels import LexicalArrays, lexical_log_probs_kernel
from hiero.reordering.learn import Learned, learn_dual, learn_primal
from hiero.reordering.learn_kernels import gather_counts_kernel, log_probs_kernel
from hiero.reordering.table_kernels import OrientationCounts

_WEIGHTS: dict[str, Shape] = {"key": (np.int64, 1), "slot": (np.int32, 1), "weight": (np.float32, 2)}
_OF_COUNTS: dict[str, Shape] = {"key": (np.uint64, 1), "first": (np.int64, 1), "count": (np.int32, 2)}
_COUNTS: dict[str, Shape] = {
    f"{what}_{name}": kind for what in ("pair", "source") for name, kind in _OF_COUNTS.items()
}


CLASSIFIER = Kind(
    "hiero orientation classifier", 1, "train it again with hiero reorder train", _WEIGHTS | WORD_FILES
)
LEXICALISED = Kind(
    "hiero lexicalised orientation model", 1, "train it again with hiero reorder train", _COUNTS
)


WHAT = "an orientation model of hiero reorder train"


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
        shares = (self.classes + 1.0) / (self.classes.sum() + 3.0)
        return read_only(shares)

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

    key     int64 [F]       in the order of the examples' features
    slot    int32 [2 ** k]  hash table of the keys
    weight  float32 [F, 3]
    """

    key: Ints
    slot: Ids
    weight: Floats32
    src: WordTable
    tgt: WordTable

    def log_probs(self, examples: Examples, begin: int, end: int) -> Floats:
        """Natural logarithms of the class probabilities of examples ``begin`` ... ``end`` - 1."""
        out = np.empty((end - begin, 3))
        rows = examples.rows
        log_probs_kernel(rows.first, rows.feature, self.weights_for(examples), begin, end, out)
        return out

    def weights_for(self, examples: Examples) -> Floats:
        """The weights by the ids of features in examples."""
        key = examples.features.key
        order = np.argsort(key)
        weight = np.zeros((len(key), 3))
        weight[order[np.searchsorted(key[order], self.key)]] = self.weight
        return weight


@dataclass(frozen=True, slots=True)
class Lexicalised(OrientationModel):
    """Counts of phrase pairs and of source phrases in each class."""

    pair: OrientationCounts
    source: OrientationCounts
    smoothing: float

    def arrays(self, code: Hashes) -> LexicalArrays:
        """The arrays for kernels; ``code`` has the hashes of words."""
        return LexicalArrays(
            *self.pair, *self.source, code, self.prior, self.smoothing, self.settings.max_length
        )

    def log_probs(self, examples: Examples, begin: int, end: int) -> Floats:
        """As in ``Classifier``."""
        out = np.empty((end - begin, 3))
        arrays = self.arrays(read_only(np.zeros(0, np.uint64)))
        lexical_log_probs_kernel(arrays, examples.pair, examples.source, begin, end, out)
        return out


# ---- from examples


def counts_of(code: Hashes, label: npt.NDArray[np.int8]) -> OrientationCounts:
    """The counts in each class of phrases given by their hashes."""
    order = np.argsort(code, kind="stable")
    key, count = np.empty(len(code), np.uint64), np.zeros((len(code), 3), np.int32)
    used = int(gather_counts_kernel(code, label, order, key, count))
    key, count = key[:used].copy(), count[:used].copy()
    bits = max(1, used.bit_length() - 1)
    bucket = (key >> np.uint64(64 - bits)).astype(np.int64)
    first = np.searchsorted(bucket, np.arange((1 << bits) + 1)).astype(np.int64)
    return OrientationCounts(read_only(key), read_only(first), read_only(count))


def _head(examples: Examples, config: LearnConfig, seed: int, found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "settings": asdict(examples.settings),
        "features": examples.digest,
        "classes": examples.classes.tolist(),
        "frequent": examples.frequent,
        "learning": asdict(config) | {"seed": seed} | dict(found),
    }


def write_lexicalised(path: Path, examples: Examples, config: LearnConfig, seed: int) -> None:
    """Count phrase pairs and source phrases by class, and write the counts."""
    arrays: Arrays = {}
    for what, code in (("pair", examples.pair), ("source", examples.source)):
        counts = counts_of(code, examples.rows.label)
        arrays |= {f"{what}_{name}": array for name, array in counts._asdict().items()}
    LEXICALISED.write(path, _head(examples, config, seed, {}), arrays)


def write_classifier(
    path: Path, examples: Examples, config: LearnConfig, seed: int, learned: Learned
) -> None:
    """Write a classifier with the weights that are not 0."""
    weight = learned.weight.astype(np.float32)
    chosen = np.flatnonzero(weight.any(axis=1))
    key = read_only(examples.features.key[chosen])
    arrays: Arrays = {"key": key, "slot": slots_of(key), "weight": weight[chosen]}
    found = {
        "primal": learned.primal,
        "dual": learned.dual,
        **dict(learned.facts or {}),
        # Without the time, so that learning again gives the same bytes.
        "passes_made": [{k: v for k, v in one.as_dict().items() if k != "cpu"} for one in learned.history],
    }
    words = word_table_arrays({"src": examples.features.src, "tgt": examples.features.tgt})
    CLASSIFIER.write(path, _head(examples, config, seed, found), arrays | words)


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
    check_meta(kind, path, meta)
    try:
        settings = ExampleConfig(**meta["settings"])
        classes = np.array(meta["classes"], np.int64)
        learning = dict(meta["learning"])
        smoothing = float(learning["smoothing"])
    except (TypeError, KeyError, ValueError, ConfigError):
        raise kind.broken(path / META, "invalid settings", f"a {kind.name}") from None
    head = (path, settings, classes, meta["features"], meta["frequent"], learning)
    if kind is LEXICALISED:
        pair, source = (
            OrientationCounts(*(arrays[f"{what}_{name}"] for name in OrientationCounts._fields))
            for what in ("pair", "source")
        )
        if not all(_fits(counts) for counts in (pair, source)):
            raise kind.broken(path, "arrays that do not fit together", f"a {kind.name}")
        return Lexicalised(*head, pair, source, smoothing)
    key, slot, weight = arrays["key"], arrays["slot"], arrays["weight"]
    size = len(slot)
    if len(weight) != len(key) or weight.shape[1:] != (3,) or size < 2 * len(key) or size & (size - 1):
        raise kind.broken(path, "arrays that do not fit together", f"a {kind.name}")
    return Classifier(*head, key, slot, weight, *words_of(arrays))


def _fits(counts: OrientationCounts) -> bool:
    buckets = len(counts.first) - 1
    return bool(
        buckets >= 2
        and buckets & (buckets - 1) == 0
        and counts.first[-1] == len(counts.key) == len(counts.count)
        and counts.count.shape[1:] == (3,)
    )


# ---- language check

LEAST_SHARE = 0.2  # of frequent words in any grammar of the same language
MANY_WORDS = 200  # in fewer words, frequent ones may be missing
MANY_FREQUENT = 20


def check_language(model: OrientationModel, side: str, known: set[bytes]) -> None:
    """Refuse a model whose frequent words are not in the grammars on the same side."""
    frequent = [word.encode() for word in model.frequent[side]]
    if len(frequent) < MANY_FREQUENT or len(known) < MANY_WORDS:
        return
    if sum(word in known for word in frequent) < LEAST_SHARE * len(frequent):
        words = ", ".join(model.frequent[side][:3])
        raise HieroError(
            f"{model.path}: found an orientation model of another {side} language ({words}, …), "
            f"expected one of the language of the grammar"
        )


@dataclass(frozen=True)
class Trained:
    """Statistics of training; ``learned`` is None for a lexicalised model, which only counts."""

    num_examples: int
    cpu: float
    learned: Learned | None

    def __str__(self) -> str:
        text = f"{self.num_examples:,} examples, {self.cpu:.1f} s of CPU"
        if self.learned is None:
            return text
        last = self.learned.history[-1]
        text += f", {last.number} passes; P {self.learned.primal:.6g}"
        if self.learned.gap is not None:
            text += f", at most {self.learned.gap:.3g} above the least"
        if last.error is not None:
            text += f"; {100 * last.error:.2f} % of the held-out examples wrong"
        return text


def train_model(
    examples: str | Path,
    output: str | Path,
    config: LearnConfig | None = None,
    *,
    seed: int = 1,
    held_out: str | Path | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Train a model on examples and write it; held-out examples are classified after each pass."""
    config, progress = config or LearnConfig(), progress or SilentProgress()
    (LEXICALISED if config.learner == "lexicalised" else CLASSIFIER).check_place(Path(output))
    train = open_examples(examples)
    held = _held_out(held_out, train)
    if config.learner == "lexicalised":
        started = time.process_time()
        write_lexicalised(Path(output), train, config, seed)
        return Trained(train.rows.size, time.process_time() - started, None)
    learn = learn_dual if config.learner == "dual" else learn_primal
    learned = learn(train, config, seed, held_out=held, progress=progress)
    write_classifier(Path(output), train, config, seed, learned)
    return Trained(train.rows.size, learned.history[-1].cpu, learned)


def _held_out(path: str | Path | None, train: Examples) -> Examples | None:
    if path is None:
        return None
    held = open_examples(path)
    check_features(held.digest, train.digest, held.path, train.path, held.settings, train.settings)
    return held
