"""Data, objective or neither: why sparse features gain little, on fixed k-best lists.

``python -m benchmarks.papers.objective OUT --data DIR``. Sentences of the bitext are translated once, as for
``learners`` (without rules of their own or of equal pairs, with jackknifed language models), and so are
devtest and test, which were drawn from the bitext before. From the lists of 500 to 5,000 sentences, each
objective of ``list_losses.py`` learns weights of dense features, and of these and sparse ones together. On
the lists of test, do sparse features rank unseen translations better, does BLEU follow, and do both grow?

    OUT/base.run     sets, language model and index, as for ``learners``, which can share them
    OUT/lists        lists of all sets, as ``hiero tune`` writes them for batch learners
    OUT/fits         a file for each fit
    OUT/objective.md the tables; --table only makes them

It can be killed and restarted at any time. Strength of regularisation and number of features are chosen by
BLEU on devtest, with the first seed. A seed draws the sentences to learn from (fewer than all), pairs of
``pro``, and the order of ``hope_fear``. Intervals hold 95 % of samples of seeds and sentences (bootstrap).

    python -m benchmarks.papers.objective runs --data ../shared/data/europarl-de-en --prune 0,0,1
    python -m benchmarks.papers.objective runs --data grammars/demo --drawn 20 --sizes 20,40 --seeds 2 \
        --keep 50 --trials 50
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.papers.experiment import CONFIGS, Experiment, Settings, add_arguments, numbers, some_of
from benchmarks.papers.learners import FEATURES, add_base_arguments, make_base, settings_of
from benchmarks.papers.list_losses import (
    OBJECTIVES,
    STRENGTHS,
    Lists,
    learn,
    pairs_of,
    selected,
    softmax,
)
from benchmarks.papers.tables import table
from hiero.core.arrays import Flags, Floats, Ints, joined_offsets
from hiero.core.directories import read_npz
from hiero.core.symbols import Symbols
from hiero.core.text import open_output, write_output
from hiero.evaluation.bleu import corpus_bleu, sentence_bleu
from hiero.evaluation.significance import interval
from hiero.features.index import FeatureIndex
from hiero.features.index_kernels import NAME
from hiero.features.weights import read_weights
from hiero.jobs.tune import ANSWER, tune
from hiero.learning.learner import Example
from hiero.learning.pairs import Multipartite
from hiero.tuning.batch import read_batch_examples

CHOOSE, REPORT = "devtest", "test"
SETS = ("train", CHOOSE, REPORT)
FIRST = "multipartite"  # the objective of the paper, with which others are compared
TOLD = ("BLEU", "BLEU, length tuned")  # the measures of which objectives are compared
LABELS = {"dense": "dense", "sparse": "all"}
PARTS = 5  # of the sentences, over which features are selected
FLATNESS = 10.0  # translations: the mean perplexity of the softmax of "expected"
# Of each sentence: BLEU statistics and sentence BLEU of the best translation, pairs ranked as by BLEU, all
# pairs, expected sentence BLEU, and 1; BLEU statistics of the best translation with a bonus for each word.
GOLD, RIGHT, PAIRS, EXPECTED, ONE = range(10, 15)
TUNED = slice(15, 25)
BONUSES = np.linspace(-2.0, 2.0, 81)  # to try, in deviations of the scores in a list


def bleu_of(sums: Floats) -> Floats:
    return np.asarray(100 * corpus_bleu(sums.reshape(-1, 10)).reshape(sums.shape[:-1]))


MEASURES: dict[str, Callable[[Floats], Floats]] = {
    "pair accuracy": lambda sums: 100 * sums[..., RIGHT] / np.maximum(sums[..., PAIRS], 1),
    "BLEU": lambda sums: bleu_of(sums[..., :10]),
    "BLEU, length tuned": lambda sums: bleu_of(sums[..., TUNED]),
    "sentence BLEU": lambda sums: 100 * sums[..., GOLD] / sums[..., ONE],
    "expected BLEU": lambda sums: 100 * sums[..., EXPECTED] / sums[..., ONE],
}
Rows = Floats  # [sentences, 25]


# ---- lists


def lists_folder(experiment: Experiment, args: argparse.Namespace, name: str) -> Path:
    size = f".{max(args.sizes)}" if name == "train" else ""
    return experiment.out / "lists" / f"{name}.{args.features}.{args.kbest}{size}"


def make_lists(experiment: Experiment, args: argparse.Namespace, name: str) -> None:
    """Translate a set, unless that was done."""
    folder = lists_folder(experiment, args, name)
    if (folder / ANSWER).exists():
        return
    print(f"== lists of {name}", file=sys.stderr)
    on = str(max(args.sizes)) if name == "train" else "dev"
    settings = settings_of(experiment, args, f"kbmira.{on}.{args.features}", seed=1)
    del settings["eval"]
    section: Settings = {"epochs": 1, "passes": 1, "kbest": args.kbest, "order": "file", "held_out": None}
    settings["tune"] |= section | {"on": name, "start": str(args.weights.resolve())}
    tune(settings, folder, workers=args.threads, resume=folder.exists())


@dataclass(frozen=True)
class World:
    """The lists of all sets, with features numbered alike; which are dense; and the first weights."""

    sets: Mapping[str, Lists]
    dense: Flags
    start: Floats


def read_world(folders: Mapping[str, Path], metric: str, weights: Path) -> World:
    symbols, index = Symbols(), FeatureIndex()
    examples: dict[str, list[Example]] = {}
    for name, folder in folders.items():
        paths = sorted((folder / "epochs" / "01").glob("shard.*.npz"))
        examples[name] = [one for path in paths for one in read_batch_examples(str(path), symbols, index)]
    given = read_weights(weights, symbols)
    size = len(index)
    sets = {name: lists_of(found, size, metric) for name, found in examples.items()}
    keys = index.all_keys()
    dense = np.array([key[0] == NAME for key in keys], np.bool_)
    start = np.array([given.of(key) if key[0] == NAME else 0.0 for key in keys])
    return World(sets, dense, start)


def lists_of(examples: Sequence[Example], num_features: int, metric: str) -> Lists:
    parts = [example.candidates for example in examples]
    entries = joined_offsets([part.first for part in parts])
    values = np.concatenate([part.value for part in parts]), np.concatenate([part.id for part in parts])
    statistics = np.concatenate([example.statistics for example in examples]).astype(np.float64)
    size = np.array([part.size for part in parts])
    shortest = np.repeat([example.shortest for example in examples], size)
    return Lists(
        np.array([example.number for example in examples]),
        np.concatenate([[0], np.cumsum(size)]),
        csr_matrix((*values, entries), shape=(len(entries) - 1, num_features)),
        sentence_bleu(metric)(statistics, shortest),
        statistics,
    )


# ---- reports on unseen lists


class Unseen:
    """Lists to report on, and their pairs between the best tenth, the middle and the last tenth."""

    def __init__(self, lists: Lists) -> None:
        self.lists = lists
        self.pair, self.sentence = pairs_of(lists, Multipartite())

    def bonus(self, weight: Floats) -> float:
        """The bonus for each word that gives the best BLEU, as if the weight of the length were tuned."""
        score, first = np.asarray(self.lists.features @ weight), self.lists.first
        row = np.repeat(np.arange(self.lists.size), np.diff(first))
        mean = np.add.reduceat(score, first[:-1]) / np.diff(first)
        bonuses = BONUSES * float(np.std(score - mean[row]))
        sums = [
            self.lists.statistics[best_of(score + bonus * self.lists.statistics[:, 0], first)].sum(axis=0)
            for bonus in bonuses.tolist()
        ]
        return float(bonuses[np.argmax(bleu_of(np.array(sums)))])

    def rows(self, weight: Floats, bonus: float = 0.0) -> Rows:
        lists, size = self.lists, self.lists.size
        score = np.asarray(lists.features @ weight)
        best = best_of(score, lists.first)
        found = np.empty((size, 25))
        found[:, TUNED] = lists.statistics[best_of(score + bonus * lists.statistics[:, 0], lists.first)]
        found[:, :10], found[:, GOLD], found[:, ONE] = lists.statistics[best], lists.gold[best], 1
        ahead = score[self.pair[:, 0]] - score[self.pair[:, 1]]
        right = np.where(ahead > 0, 1.0, np.where(ahead == 0, 0.5, 0.0))
        found[:, RIGHT] = np.bincount(self.sentence, right, size)
        found[:, PAIRS] = np.bincount(self.sentence, minlength=size)
        share = softmax(score * self._temperature(score), lists.first)
        found[:, EXPECTED] = np.add.reduceat(share * lists.gold, lists.first[:-1])
        return found

    def _temperature(self, score: Floats) -> float:
        """The factor of scores with which a softmax has a mean perplexity of ``FLATNESS``, by bisection."""
        first = self.lists.first[:-1]
        target = min(FLATNESS, float(np.diff(self.lists.first).mean()) / 2)
        low, high = -10.0, 10.0  # logarithms
        for _ in range(24):
            middle = (low + high) / 2
            share = softmax(score * np.exp(middle), self.lists.first)
            entropy = -np.add.reduceat(share * np.log(np.maximum(share, 1e-300)), first)
            low, high = (middle, high) if np.exp(entropy).mean() > target else (low, middle)
        return float(np.exp(low))

    def oracle(self) -> float:
        """BLEU of the translations that are best by themselves."""
        best = best_of(self.lists.gold, self.lists.first)
        return 100 * float(corpus_bleu(self.lists.statistics[best].sum(axis=0))[0])


def best_of(score: Floats, first: Ints) -> Ints:
    """The translation of each sentence with the highest score; of equal ones, the first."""
    row = np.repeat(np.arange(len(first) - 1), np.diff(first))
    is_best = np.flatnonzero(score == np.maximum.reduceat(score, first[:-1])[row])
    _, place = np.unique(row[is_best], return_index=True)
    return is_best[place]


def measure(name: str, runs: Sequence[Rows]) -> float:
    """A measure of all runs as one."""
    return float(MEASURES[name](np.sum(runs, axis=(0, 1))))


@cache
def drawn(size: int, trials: int, seed: int) -> Floats:
    """How often each of some sentences, or runs, is drawn in each trial, [trials, size]."""
    draw = np.random.default_rng(seed)
    return draw.multinomial(size, np.full(size, 1 / size), trials).astype(np.float64)


def samples(name: str, systems: Sequence[Sequence[Rows]], trials: int, seed: int = 1) -> Floats:
    """A measure of systems on the same samples of sentences and of runs, [systems, trials]."""
    stacked = np.array(systems)  # [systems, runs, sentences, 25]
    num_systems, num_runs, size, width = stacked.shape
    times, shares = drawn(size, trials, seed), drawn(num_runs, trials, seed + 1)
    sums = times @ stacked.transpose(2, 0, 1, 3).reshape(size, -1)
    sums = sums.reshape(trials, num_systems, num_runs, width)
    return MEASURES[name](np.einsum("tr,tsrw->stw", shares / num_runs, sums))


# ---- fits


@dataclass(frozen=True, order=True)
class Fit:
    """What is learnt: ``keep`` sparse features (0: all), from ``size`` sentences that ``seed`` draws."""

    objective: str
    size: int
    seed: int
    features: str  # dense, or all
    strength: float
    keep: int = 0

    @property
    def name(self) -> str:
        return f"{self.objective}.{self.size}.{self.seed}.{self.features}.{self.strength:g}.{self.keep}"


@dataclass(frozen=True)
class Fitted:
    """A result.

    dense    weights of dense features
    rows     of the unseen sets
    count    features with a weight
    learnt   BLEU on the lists learnt from
    steps    of the learner
    seconds  CPU
    """

    dense: Floats
    rows: Mapping[str, Rows]
    count: int
    learnt: float
    steps: int
    seconds: float


class Fits:
    """All fits, learnt when they are asked for, and kept in files."""

    def __init__(self, folder: Path, world: World) -> None:
        self.folder, self.world = folder, world
        self.unseen = {name: Unseen(world.sets[name]) for name in SETS[1:]}
        folder.mkdir(parents=True, exist_ok=True)

    def of(self, fit: Fit) -> Fitted:
        path = self.folder / f"{fit.name}.npz"
        if not path.exists():
            self._learn(fit, path)
        content = read_npz(path, "a fit", {})
        rows = {name: content[name] for name in SETS[1:]}
        count, learnt, steps, seconds = content["figures"].tolist()
        return Fitted(content["dense"], rows, int(count), learnt, int(steps), seconds)

    def _learn(self, fit: Fit, path: Path) -> None:
        started, train, is_dense = time.process_time(), self.world.sets["train"], self.world.dense
        drawn = np.random.default_rng(fit.seed).permutation(train.size)[: fit.size]
        lists, start = train.of(np.sort(drawn)), np.where(is_dense, self.world.start, 0.0)
        if fit.features == "dense":
            kept = np.flatnonzero(is_dense)
        else:
            strength = fit.strength if fit.objective == "hope_fear" else min(STRENGTHS[fit.objective])
            before = dataclasses.replace(fit, features="dense", strength=strength, keep=0)
            start[is_dense] = self.of(before).dense
            kept = self._selected(fit, lists, start) if fit.keep else lists.used()
        weight = np.zeros(len(start))
        some = lists.with_features(kept)
        weight[kept], steps = learn(fit.objective, some, is_dense[kept], fit.strength, start[kept], fit.seed)
        bonus = self.unseen[CHOOSE].bonus(weight)
        rows = {name: unseen.rows(weight, bonus) for name, unseen in self.unseen.items()}
        best = best_of(np.asarray(lists.features @ weight), lists.first)
        learnt = 100 * float(corpus_bleu(lists.statistics[best].sum(axis=0))[0])
        seconds = time.process_time() - started
        figures = np.array([np.count_nonzero(weight), learnt, steps, seconds])
        with open_output(path) as stream:
            arrays: dict[str, Any] = {"dense": weight[is_dense], "figures": figures} | rows
            np.savez(stream, **arrays)
        shown = f"{fit.name}: BLEU {measure('BLEU', [rows[CHOOSE]]):.2f} on devtest, {steps} steps"
        print(f"{shown}, {seconds:.1f} s", file=sys.stderr)

    def _selected(self, fit: Fit, lists: Lists, start: Floats) -> Ints:
        """The features with the largest norms of weights learnt from parts of the sentences."""
        found = []
        for part in np.array_split(np.arange(lists.size), PARTS):
            mine = lists.of(part)
            used = mine.used()
            some, weight = mine.with_features(used), np.zeros(len(start))
            dense = self.world.dense[used]
            weight[used], _ = learn(fit.objective, some, dense, fit.strength, start[used], fit.seed)
            found.append(weight)
        return selected(found, self.world.dense, fit.keep)


@dataclass(frozen=True)
class Chosen:
    """The fits of an objective from a number of sentences, one for each seed."""

    dense: list[Fitted]
    sparse: list[Fitted]
    strength: float
    keep: int


def choose(fits: Fits, args: argparse.Namespace, objective: str, size: int) -> Chosen:
    """Choose strength, then the number of features, by BLEU on devtest with the first seed."""

    def best(candidates: Sequence[Fit]) -> Fit:
        return max(candidates, key=lambda fit: measure("BLEU", [fits.of(fit).rows[CHOOSE]]))

    strengths = STRENGTHS[objective]
    # Dense features have a regularisation of their own.
    for_dense = strengths if objective == "hope_fear" else strengths[:1]
    dense = best([Fit(objective, size, 1, "dense", strength) for strength in for_dense])
    sparse = best([Fit(objective, size, 1, "all", strength) for strength in strengths])
    sparse = best([sparse, *(dataclasses.replace(sparse, keep=keep) for keep in args.keep)])

    def of_seeds(one: Fit) -> list[Fitted]:
        return [fits.of(dataclasses.replace(one, seed=seed)) for seed in range(1, args.seeds + 1)]

    return Chosen(of_seeds(dense), of_seeds(sparse), sparse.strength, sparse.keep)


# ---- tables


def report(fits: Fits, args: argparse.Namespace) -> str:
    found = {(o, n): choose(fits, args, o, n) for o in args.objectives for n in args.sizes}
    parts = [
        f"On the lists of test ({fits.unseen['test'].lists.size:,} sentences). {first_line(fits)}",
        dense_measures(found),
        gains(found, args),
        against(found, args) if FIRST in args.objectives else "",
        growth(found, args),
        sweep(fits, args),
        verdict(found, args),
    ]
    return "\n".join(parts)


def first_line(fits: Fits) -> str:
    unseen = fits.unseen[REPORT]
    rows = unseen.rows(fits.world.start, fits.unseen[CHOOSE].bonus(fits.world.start))
    given = ", ".join(f"{name} {measure(name, [rows]):.2f}" for name in MEASURES)
    return (
        f"With the weights they were made with: {given}; best by sentence BLEU: BLEU {unseen.oracle():.2f}.\n"
    )


def rows_of(fitted: Sequence[Fitted]) -> list[Rows]:
    return [one.rows[REPORT] for one in fitted]


def difference(name: str, of: Chosen, trials: int) -> tuple[float, Floats]:
    """A measure with all features less that with dense ones: on all sentences, and on samples."""
    systems = rows_of(of.dense), rows_of(of.sparse)
    sampled = samples(name, systems, trials)
    return measure(name, systems[1]) - measure(name, systems[0]), sampled[1] - sampled[0]


def dense_measures(found: Mapping[tuple[str, int], Chosen]) -> str:
    """What each objective reaches with dense features."""
    head = ["dense features", "sentences", *MEASURES, "length"]
    rows = []
    for (objective, size), one in found.items():
        runs = rows_of(one.dense)
        total = np.sum(runs, axis=(0, 1))
        cells = [f"{measure(name, runs):.2f}" for name in MEASURES]
        rows.append([objective, f"{size:,}", *cells, f"{total[0] / total[1]:.3f}"])
    return table(head, rows)


def gains(found: Mapping[tuple[str, int], Chosen], args: argparse.Namespace) -> str:
    """All features less dense ones, for each objective and number of sentences."""
    head = ["all − dense", "sentences", "strength", "weights", *MEASURES, "BLEU of the lists learnt from"]
    rows = []
    for (objective, size), one in found.items():
        kept = f", {one.keep:,} kept" if one.keep else ""
        count = f"{np.mean([fitted.count for fitted in one.sparse]):,.0f}"
        row = [objective, f"{size:,}", f"{one.strength:g}{kept}", count]
        row += [shown(*difference(name, one, args.trials)) for name in MEASURES]
        learnt = [np.mean([fitted.learnt for fitted in several]) for several in (one.dense, one.sparse)]
        rows.append([*row, f"{learnt[1] - learnt[0]:+.2f}"])
    return table(head, rows)


def shown(gain: float, sampled: Floats) -> str:
    found = interval(sampled)
    return f"{gain:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"


def against(found: Mapping[tuple[str, int], Chosen], args: argparse.Namespace) -> str:
    """Objectives less that of the paper, with the same features."""
    kinds = [(features, name) for features in ("dense", "sparse") for name in TOLD]
    head = [f"less {FIRST}", "sentences", *(f"{LABELS[features]}: {name}" for features, name in kinds)]
    rows = []
    for objective, size in found:
        if objective != FIRST:
            cells = [shown(*of_objectives(found, objective, size, *kind, args.trials)) for kind in kinds]
            rows.append([objective, f"{size:,}", *cells])
    return table(head, rows)


def of_objectives(
    found: Mapping[tuple[str, int], Chosen], objective: str, size: int, features: str, name: str, trials: int
) -> tuple[float, Floats]:
    systems = [rows_of(getattr(found[one, size], features)) for one in (FIRST, objective)]
    sampled = samples(name, systems, trials)
    return measure(name, systems[1]) - measure(name, systems[0]), sampled[1] - sampled[0]


def grown(
    found: Mapping[tuple[str, int], Chosen], objective: str, name: str, args: argparse.Namespace
) -> tuple[float, Floats]:
    """How much more all features gain from the most sentences than from the fewest."""
    (few, of_few), (many, of_many) = (
        difference(name, found[objective, size], args.trials) for size in (min(args.sizes), max(args.sizes))
    )
    return many - few, of_many - of_few


def growth(found: Mapping[tuple[str, int], Chosen], args: argparse.Namespace) -> str:
    few, many = min(args.sizes), max(args.sizes)
    names = ("pair accuracy", *TOLD)
    head = [f"gain (all − dense) from {many:,} less that from {few:,}", *names]
    rows = [[one, *(shown(*grown(found, one, name, args)) for name in names)] for one in args.objectives]
    return table(head, rows)


def sweep(fits: Fits, args: argparse.Namespace) -> str:
    """BLEU on devtest from the most sentences, for all strengths and numbers of features."""
    size = max(args.sizes)
    most = max(len(STRENGTHS[objective]) for objective in args.objectives)
    head = ["BLEU of devtest", "strengths", *[""] * most, *(f"{keep:,} kept" for keep in args.keep)]
    rows = []
    for objective in args.objectives:
        strengths = STRENGTHS[objective]
        chosen = choose(fits, args, objective, size).strength
        wanted = [Fit(objective, size, 1, "all", strength) for strength in strengths]
        kept = [Fit(objective, size, 1, "all", chosen, keep) for keep in args.keep]
        bleu = [
            [f"{measure('BLEU', [fits.of(fit).rows[CHOOSE]]):.2f}" for fit in some] for some in (wanted, kept)
        ]
        shown = ", ".join(f"{strength:g}" for strength in strengths)
        rows.append([objective, shown, *bleu[0], *[""] * (most - len(strengths)), *bleu[1]])
    return table(head, rows)


def verdict(found: Mapping[tuple[str, int], Chosen], args: argparse.Namespace) -> str:
    """What the tables say, of the most sentences: intervals that are above 0."""
    most, lines = max(args.sizes), []

    def those(values_of: Callable[[str], Floats]) -> list[str]:
        return [one for one in args.objectives if interval(values_of(one)).low > 0]

    def named(some: Sequence[str]) -> str:
        return ", ".join(some) or "no objective"

    ranks = those(lambda one: difference("pair accuracy", found[one, most], args.trials)[1])
    lines.append(f"Sparse features rank unseen translations better with {named(ranks)}.")
    for name in TOLD:
        gain = those(lambda one: difference(name, found[one, most], args.trials)[1])  # noqa: B023
        more = those(lambda one: grown(found, one, name, args)[1])  # noqa: B023
        words = ["data"] if more else []
        if gain and FIRST in ranks and FIRST not in gain:
            words.append("objective")
        said = " and ".join(words) or ("nothing: they gain" if gain else "neither data nor objective")
        lines.append(
            f"{name} is better with sparse features by {named(gain)}; this gain has grown with the sentences "
            f"by {named(more)}. What limits them: **{said}** "
            f"(data: a gain that grows; objective: {FIRST} ranks better without a gain, and another gains)."
        )
        if FIRST in args.objectives:
            for features, label in LABELS.items():
                better = those(lambda one: of_objectives(found, one, most, features, name, args.trials)[1])  # noqa: B023
                lines.append(f"{name}, {label}: better than {FIRST} by {named(better)}.")
    return "\n".join(f"* {line}" for line in lines) + "\n"


# ---- the command


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.objective", description=(__doc__ or "").split("\n\n")[0]
    )
    add_arguments(parser)
    add_base_arguments(parser)
    add = parser.add_argument
    add("--sizes", type=numbers(int), default=[500, 1000, 2000, 5000], metavar="N,...", help="sentences")
    add("--seeds", type=int, default=3, metavar="N")
    add("--objectives", type=some_of(OBJECTIVES), default=list(OBJECTIVES), metavar="A,B,...")
    add(
        "--features",
        choices=[name for name in FEATURES if name != "dense"],
        default="all",
        help="sparse ones",
    )
    add("--keep", type=numbers(int), default=[1000, 10000], metavar="K,...", help="sparse features selected")
    add("--kbest", type=int, default=100)
    add("--metric", default="nakov", help="BLEU of sentences (default nakov)")
    add("--weights", type=Path, default=CONFIGS / "weights.dense", help="to make the lists with")
    args = parser.parse_args(arguments)
    args.epochs = None
    return args


def main(arguments: Sequence[str] | None = None) -> int:
    args = parsed(arguments)
    experiment = Experiment.of(args)
    folders = {name: lists_folder(experiment, args, name) for name in SETS}
    if not args.table:
        make_base(experiment, args)
        for name in SETS:
            make_lists(experiment, args, name)
    world = read_world(folders, args.metric, args.weights)
    fits = Fits(
        experiment.out / "fits" / f"{args.features}.{args.kbest}.{max(args.sizes)}.{args.metric}", world
    )
    text = report(fits, args)
    write_output(experiment.out / "objective.md", text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
