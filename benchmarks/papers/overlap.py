"""Overlap of the features of tuning and test sets: ``python -m benchmarks.papers.overlap NAME=DIR ...``.

After Table 6 of Green, Wang, Cer and Manning (2013). DIR is the directory of a run of ``hiero tune``. The
tuning set and a test set are translated with the weights of the chosen epoch, and the features of the k best
translations are compared, template by template:

    test    features of the test set's translations; their firings: sentences in which they occur, summed
    seen    those that also occur in the tuning set's translations
    weight  those that have a weight, and their share of the firings

Then, for every two runs: the sparse features with a weight in the first, in the second, and in both. If one
was tuned on the test set itself, this is the table of the paper.

    python -m benchmarks.papers.overlap dev=runs/ada_all train=runs/ada_train --config all.yaml --on dev train

``--on`` names the tuning set of each run if it is not that of its configuration. With ``--leave-one-out``,
sentences of the bitext of the index are decoded without rules extracted only from themselves.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.papers.tables import table
from benchmarks.papers.tune_runs import Run, config_for, read_run
from hiero.config.config import Config
from hiero.config.model import make_model, model_config
from hiero.core.errors import ConfigError, HieroError
from hiero.decoder.model import Model
from hiero.features.index import FeatureIndex
from hiero.features.index_kernels import NAME, RULE_ID
from hiero.features.template_kernels import (
    DELETION,
    INSERTION,
    INSERTION_PAIR,
    SHAPE,
    SOURCE_BIGRAM,
    TARGET_BIGRAM,
    WORD_PAIR,
)
from hiero.features.weights import read_weights
from hiero.learning.candidates import candidates
from hiero.learning.config import TuneConfig
from hiero.tuning.shard import SetFiles, TuningSet, shuffled
from hiero.tuning.vectors import WeightVector

CLASSES = {
    NAME: "dense",
    RULE_ID: "rule_id",
    SOURCE_BIGRAM: "source_bigram",
    TARGET_BIGRAM: "target_bigram",
    SHAPE: "shape",
    WORD_PAIR: "word pair",
    DELETION: "deletion",
    INSERTION: "insertion",
    INSERTION_PAIR: "insertion pair",
}
Counts = npt.NDArray[np.int64]  # of sentences, by the number of a feature


@dataclass(frozen=True)
class Overlap:
    """Counts for one class of features.

    test                       features of the test set ...
    seen, weighted             ... those of them that the tuning set has, and that have a weight
    tuned                      features of the tuning set
    firings, weighted_firings  sentences of the test set in which they fire, summed over features
    """

    test: int
    seen: int
    weighted: int
    tuned: int
    firings: int
    weighted_firings: int


class Features:
    """One model, whose weights are replaced, and one numbering of the features of all runs."""

    def __init__(self, config: Config, kbest: int) -> None:
        self.config, self.kbest = config, kbest
        self.model = make_model(model_config(config))
        self.index = FeatureIndex()

    def weights(self, run: Run) -> tuple[Model, Counts]:
        """The model with the weights of a run, and the features that have one."""
        weights = read_weights(run.weights, self.model.symbols)
        keys, value = weights.index.all_keys(), weights.vector()
        vector = WeightVector(self.model.symbols, self.index)
        ids = self.index.intern_all(keys)
        vector.grow()
        vector.value[ids] = value
        return self.model.with_weights(vector), ids[value != 0].astype(np.int64)

    def fire(self, model: Model, texts: TuningSet, numbers: Iterable[int]) -> Counts:
        """The number of sentences with each feature in some translation."""
        count = np.zeros(0, np.int64)
        vector = model.scorer.weights
        assert isinstance(vector, WeightVector)
        for number in numbers:
            forest = model.parse(texts.segments[number])
            if not forest:
                continue
            found = np.unique(candidates(forest, self.kbest, self.index).id)
            vector.grow()
            model.weights_changed()
            count = with_room(count, len(self.index))
            count[found] += 1
        return count

    def texts(self, name: str, leave_one_out: bool) -> TuningSet:
        if name not in self.config.data or not self.config.data[name].translations:
            raise ConfigError(f"data: found no set {name} with references, expected it")
        section = self.config.data[name]
        own = any(entry.per_sentence is not None for entry in self.config.grammar)
        base = "" if own else str(Path(section.source).resolve().parent)
        files = SetFiles(section.source, tuple(section.translations), leave_one_out, base)
        return TuningSet(files, self.model.symbols)

    def overlaps(self, test: Counts, tuned: Counts, weighted: Counts) -> dict[str, Overlap]:
        """The overlap for each class that has features."""
        size = len(self.index)
        kind = self.index.table.key[:size, 0]
        test, tuned = with_room(test, size), with_room(tuned, size)
        has_weight = np.zeros(size, np.bool_)
        has_weight[weighted] = True
        found = {}
        for number, name in CLASSES.items():
            here = kind == number
            fires, known = here & (test > 0), here & (tuned > 0)
            if fires.any() or known.any():
                found[name] = Overlap(
                    test=int(np.count_nonzero(fires)),
                    seen=int(np.count_nonzero(fires & known)),
                    weighted=int(np.count_nonzero(fires & has_weight)),
                    tuned=int(np.count_nonzero(known)),
                    firings=int(test[fires].sum()),
                    weighted_firings=int(test[fires & has_weight].sum()),
                )
        return found


def with_room(count: Counts, size: int) -> Counts:
    return np.concatenate([count, np.zeros(max(0, size - len(count)), np.int64)])


def chosen_sentences(settings: TuneConfig, seed: int, size: int, most: int) -> list[int]:
    """A random sample of the sentences of the tuning set that were learnt from."""
    everyone = list(range(size))
    for count in (settings.sentences, most):
        if 0 < count < len(everyone):
            everyone = sorted(shuffled(everyone, seed, 0)[:count])
    return everyone


def by_class(rows: Sequence[tuple[str, str, dict[str, Overlap]]]) -> str:
    lines = []
    for name, on, classes in rows:
        for kind, found in classes.items():
            lines.append([
                name, on, kind, f"{found.tuned:,}", f"{found.test:,}",
                _share(found.seen, found.test), _share(found.weighted, found.test),
                _share(found.weighted_firings, found.firings),
            ])  # fmt: skip
    head = ["weights of", "tuned on", "features", "tuning", "test", "test: seen", "test: weight"]
    return table([*head, "firings with weight"], lines)


def _share(part: int, whole: int) -> str:
    return f"{part:,} ({part / whole:.1%})" if whole else "-"


def pairwise(weighted: dict[str, Counts], index: FeatureIndex) -> str:
    """Sparse features with weights, for every two runs."""
    kind = index.table.key[: len(index), 0]
    sparse = {name: ids[kind[ids] != NAME] for name, ids in weighted.items()}
    rows = []
    for one, other in itertools.combinations(sparse, 2):
        both = len(np.intersect1d(sparse[one], sparse[other]))
        rows.append([one, other, f"{len(sparse[one]):,}", f"{len(sparse[other]):,}", f"{both:,}"])
    return table(["A", "B", "weights of A", "weights of B", "of both"], rows)


def main(arguments: Sequence[str] | None = None) -> int:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.overlap", description=__doc__, formatter_class=form
    )
    parser.add_argument("runs", nargs="+", metavar="NAME=DIR")
    parser.add_argument(
        "--config", type=Path, help="with data, grammar, lm, features (default: DIR/config.yaml)"
    )
    parser.add_argument("--test", default="devtest", help="the test set (default: devtest)")
    parser.add_argument(
        "--on", nargs="+", default=[], metavar="SET", help="one for all runs, or one for each"
    )
    parser.add_argument(
        "--leave-one-out", nargs="+", default=[], metavar="SET", help="sets the index is made of"
    )
    parser.add_argument("--kbest", type=int, default=100, help="translations of a sentence (default: 100)")
    parser.add_argument("--sentences", type=int, default=0, help="limit for each set (default: all)")
    args = parser.parse_args(arguments)
    try:
        report(args)
    except HieroError as error:
        print(f"overlap: {error}", file=sys.stderr)
        return 1
    return 0


def report(args: argparse.Namespace) -> None:
    runs = [read_run(spec) for spec in args.runs]
    if len(args.on) not in (0, 1, len(runs)):
        raise ConfigError(f"on: found {len(args.on)} sets, expected one, or one for each of {len(runs)} runs")
    config = config_for(runs[0], args.config)
    features = Features(config, args.kbest)
    test = features.texts(args.test, args.test in args.leave_one_out)
    on = args.on * len(runs) if len(args.on) == 1 else args.on or [None] * len(runs)
    rows, weighted = [], {}
    for run, given in zip(runs, on, strict=True):
        own = config_for(run, args.config)
        settings = (own.tune or TuneConfig()).resolved()
        seed = own.seed if settings.seed is None else settings.seed
        name = given or settings.on
        model, weighted[run.name] = features.weights(run)
        left_out = name in args.leave_one_out or (name == settings.on and settings.leave_one_out)
        texts = features.texts(name, left_out)
        print(f"{run.name}: translating {name} and {args.test}", file=sys.stderr)
        tuned = features.fire(model, texts, chosen_sentences(settings, seed, len(texts), args.sentences))
        some = chosen_sentences(TuneConfig(), seed, len(test), args.sentences)
        found = features.overlaps(features.fire(model, test, some), tuned, weighted[run.name])
        rows.append((run.name, name, found))
    print(by_class(rows))
    print(f"Features of the {args.kbest} best translations with the weights of the chosen epoch.")
    if len(runs) > 1:
        print("\n" + pairwise(weighted, features.index))


if __name__ == "__main__":
    sys.exit(main())
