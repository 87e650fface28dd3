"""CPU time of operations on forests.

    python benchmarks/kbest.py [--words 25] [--pops 200] [--repeat 20]

The forest is synthetic: every span of up to fifteen words has ``--pops`` edges that share a third as many
nodes, as after cube pruning, and glue over all prefixes. Each source word has five translations, and rules
are lexical, or have one or two gaps in either order, so that strings have many derivations, as in real
forests. Times are process CPU time, the median of the repetitions. Scores and counts are printed and must
not change.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from benchmarks.results import append_result
from hiero.core.jit import compile_timer
from hiero.core.symbol_kernels import gap
from hiero.decoder.forest import Forest, TextMap
from hiero.decoder.hypergraph import Hypergraph
from hiero.grammar.rules import Rules

OPTIONS = 5
SPAN_LIMIT = 15


class Builder:
    """Builds nodes and edges span by span."""

    def __init__(self, words: int, pops: int, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.words, self.pops = words, pops
        self.first_edge, self.span = [0], list[tuple[int, int]]()
        self.tail, self.score, self.rule = list[tuple[int, int]](), list[float](), list[int]()
        self.sides, self.rule_ids = list[tuple[int, ...]](), dict[tuple[int, ...], int]()
        self.option = -self.random.exponential(1.0, (words, OPTIONS)).cumsum(axis=1)
        self.cells: dict[tuple[int, int], list[int]] = {}

    def edge(self, side: tuple[int, ...], tail: tuple[int, int], score: float) -> None:
        self.rule.append(self.rule_ids.setdefault(side, len(self.sides)))
        if len(self.rule_ids) > len(self.sides):
            self.sides.append(side)
        self.tail.append(tail)
        self.score.append(score)

    def lexical(self, start: int, end: int) -> None:
        choice = self.random.geometric(0.5, end - start) % OPTIONS
        side = tuple(int(i * OPTIONS + c) for i, c in zip(range(start, end), choice, strict=True))
        self.edge(side, (-1, -1), float(self.option[range(start, end), choice].sum()))

    def node_of(self, start: int, end: int) -> int:
        cell = self.cells[start, end]
        return cell[min(int(self.random.geometric(0.2)) - 1, len(cell) - 1)]

    def composed(self, start: int, end: int) -> None:
        one, two = gap(0, 1), gap(0, 2)
        noise = float(self.random.normal(0, 0.3))
        if end - start > 2 and self.random.random() < 0.3:
            choice = int(self.random.integers(OPTIONS))
            side = (start * OPTIONS + choice, one)
            self.edge(side, (self.node_of(start + 1, end), -1), float(self.option[start, choice]) + noise)
            return
        middle = int(self.random.integers(start + 1, end))
        left, right = self.node_of(start, middle), self.node_of(middle, end)
        self.edge((two, one) if self.random.random() < 0.2 else (one, two), (left, right), noise)

    def close(self, start: int, end: int) -> int:
        self.first_edge.append(len(self.score))
        self.span.append((start, end))
        return len(self.span) - 1

    def cell(self, start: int, end: int) -> None:
        nodes = []
        pops = self.pops if end - start > 1 else OPTIONS
        while pops > 0:
            for _ in range(min(pops, int(self.random.geometric(1 / 3)))):
                if end - start == 1 or (end - start <= 5 and self.random.random() < 0.3):
                    self.lexical(start, end)
                else:
                    self.composed(start, end)
                pops -= 1
            nodes.append(self.close(start, end))
        self.cells[start, end] = nodes

    def forest(self) -> Forest:
        for length in range(1, min(self.words, SPAN_LIMIT) + 1):
            for start in range(self.words - length + 1):
                self.cell(start, start + length)
        glue: list[int] = []
        for end in range(1, self.words + 1):
            for _ in range(self.pops):
                middle = int(self.random.integers(max(0, end - SPAN_LIMIT), end))
                x = self.node_of(middle, end)
                if middle:
                    self.edge((gap(0, 1), gap(0, 2)), (glue[middle - 1], x), -0.1)
                else:
                    self.edge((gap(0, 1),), (x, -1), 0.0)
            glue.append(self.close(0, end))
        first_tgt = np.cumsum([0, *map(len, self.sides)]).astype(np.int64)
        num_rules = len(self.sides)
        none = np.zeros(num_rules + 1, np.int64)
        tgt = np.array([symbol for side in self.sides for symbol in side], np.int32)
        # Words, then gaps by ascending index, independently of the target order.
        src = np.array([symbol for side in self.sides for symbol in sorted(side, reverse=True)], np.int32)
        rules = Rules(
            np.zeros(num_rules, np.int32), first_tgt, src, first_tgt, tgt,
            np.zeros((num_rules, 0), np.float32), none, np.zeros(0, np.int32), np.zeros(0, np.float32),
            none, np.zeros((0, 2), np.int16),
        )  # fmt: skip
        spans = np.array(self.span, np.int32)
        return Forest(
            Hypergraph(np.array(self.first_edge, np.int64), np.array(self.tail, np.int32)),
            np.array(self.score),
            np.array(self.rule, np.int32),
            np.zeros(len(spans), np.int32),
            spans[:, 0],
            spans[:, 1],
            rules,
            words=TextMap(enumerate(f"w{i}" for i in range(self.words * OPTIONS))),
            labels=TextMap({0: "X"}),
            source=[f"s{i}" for i in range(self.words)],
        )


def measure(forest: Forest, task: Callable[[Forest], object], repeat: int) -> float:
    """Median CPU milliseconds, on forests that have cached only the best derivations."""
    times = []
    for _ in range(repeat):
        fresh_best(forest)
        start = time.process_time()
        task(forest)
        times.append(time.process_time() - start)
    return 1000 * statistics.median(times)


def fresh_best(forest: Forest) -> None:
    forest.__dict__.update(forest.__getstate__())
    forest.best()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--words", type=int, default=25)
    parser.add_argument("--pops", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=20)
    options = parser.parse_args()
    forest = Builder(options.words, options.pops, seed=1).forest()
    print(forest)
    tasks: list[tuple[str, Callable[[Forest], object]]] = [
        ("best scores", fresh_best),
        ("1-best derivation, words", lambda f: f.viterbi().words),
    ]
    for unique in (True, False):
        for k in (1, 10, 100, 1000, 10000):
            tasks.append((f"{k}-best{', unique' if unique else ''}", lambda f, k=k, u=unique: f.kbest(k, u)))  # type: ignore[misc]
    tasks += [
        ("words of a 100-best list (with finding it)", lambda f: [d.words for d in f.kbest(100)]),
        ("alignments likewise", lambda f: [d.alignment for d in f.kbest(100)]),
        ("inside", Forest.inside),
        ("edge posteriors", Forest.posteriors),
        ("max-marginals", Forest.max_marginals),
        ("prune to beam 5", lambda f: f.prune(5.0)),
        ("100 samples", lambda f: f.sample(100, 1)),
        ("number of derivations", lambda f: f.num_derivations),
    ]
    before = compile_timer.seconds
    for _, task in tasks:
        task(forest)
    figures: dict[str, object] = {"words": options.words, "pops": options.pops}
    figures["compile_s"] = compile_timer.seconds - before
    print(f"{figures['compile_s']:9.2f} s     compiling")
    for name, task in tasks:
        figures[f"{name}, ms"] = took = measure(forest, task, options.repeat)
        print(f"{took:9.3f} ms    {name}")
    append_result("kbest", figures)
    found = forest.kbest(1000)
    search = forest._search[True]
    print(f"best {found[0].score:.9g}, 100th {found[99].score:.9g}, 1000th {found[-1].score:.9g}; for these,")
    print(f"{search.fill[0]:,} derivations and {search.fill[1]:,} candidates")


if __name__ == "__main__":
    main()
