"""Memory of tuning with millions of features: ``python -m benchmarks.tune_memory [--features 5000000]``.

Two shards are learnt, each in a separate process like a worker, from synthetic translations: every sentence
has new rule ids, until each shard has the given number of features. A third process reads the weights of one
shard, as the next epoch does; a fourth mixes both and selects 100,000. Each prints its peak resident memory,
without language model and grammar, which are mapped and shared by the workers of a machine. The exit code is
1, after a line that begins with ``NOT MET``, if one uses more than ``--most`` MB.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.results import append_result, peak_mb
from hiero.core.arrays import read_only
from hiero.core.symbols import Symbols
from hiero.features.index import FeatureIndex
from hiero.features.index_kernels import RULE_ID, SEPARATOR, intern_keys_kernel
from hiero.learning.candidates import Candidates
from hiero.learning.config import TuneConfig
from hiero.learning.learner import Example, LearnerContext, make_learner
from hiero.tuning.vectors import Mixture, WeightVector, read_vectors, write_vectors

KBEST, PER_CANDIDATE = 100, 30
WORDS = 20_000  # of the vocabulary
SHARED = 2_000  # features that sentences have in common


def example(number: int, own: np.ndarray, draw: np.random.Generator) -> Example:
    """A k-best list: half of each translation's features are common, half are new in this sentence."""
    common = draw.integers(0, SHARED, (KBEST, PER_CANDIDATE))
    mine = own[draw.integers(0, len(own), (KBEST, PER_CANDIDATE))]
    rows = [np.unique(row) for row in np.concatenate([common, mine], axis=1)]
    first = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    ids = np.concatenate(rows).astype(np.int32)
    match = np.sort(draw.integers(1, 11, (KBEST, 4)), axis=1)[:, ::-1]
    lengths = np.tile([12, 12], (KBEST, 1))
    totals = np.tile([12, 11, 10, 9], (KBEST, 1))
    statistics = np.concatenate([lengths, np.minimum(match, totals), totals], axis=1).astype(np.int64)
    words = np.arange(KBEST + 1, dtype=np.int64) * 12
    values, scores, word = draw.random(len(ids)) + 0.5, np.zeros(KBEST), np.zeros(KBEST * 12, np.int32)
    for array in (first, ids, values, scores, words, word):
        array.flags.writeable = False
    return Example(number, 12, Candidates(first, ids, values, scores, words, word), statistics, 12)


def rule_ids(index: FeatureIndex, count: int, draw: np.random.Generator) -> np.ndarray:
    """New rule ids: a label, five words, the separator, and five words."""
    sequence = draw.integers(0, WORDS, (count, 12)).astype(np.int32)
    sequence[:, 0], sequence[:, 6] = 0, SEPARATOR
    rows = np.zeros((count, 3), np.int32)
    rows[:, 0], rows[:, 1], rows[:, 2] = RULE_ID, 12 * np.arange(count), 12
    ids = np.empty(count, np.int32)
    with index.locked():
        flat = read_only(sequence.reshape(-1))
        intern_keys_kernel(index.reserve(count, 12 * count), read_only(rows), flat, ids)
    return ids


def learn(algorithm: str, shard: int, features: int, sentences: int, out: str) -> None:
    """Learn one epoch of one shard from zero and write a file; then once more, from the file."""
    draw = np.random.default_rng(shard)
    symbols = Symbols()
    symbols.labels.intern(b"X")
    symbols.words.intern_all(b"word%d" % i for i in range(WORDS))
    vector = WeightVector(symbols)
    learner = make_learner(
        TuneConfig(algorithm=algorithm, update="sentence").resolved(), LearnerContext(seed=1)
    )
    rule_ids(vector.index, SHARED, np.random.default_rng(99))
    each = max(1, (features - SHARED) // sentences)
    for number in range(sentences):
        own = rule_ids(vector.index, each, draw)
        vector.grow()
        learner.learn([example(number, own, draw)], vector.value)
        # All features of a sentence get a weight, which is more than any learner does.
        vector.value[own] += 1e-4
    learner.end_epoch(vector.value)
    chosen = np.flatnonzero(vector.value)
    write_vectors(out, symbols, vector.index, chosen, weight=vector.value[chosen])
    say(f"{algorithm}, shard {shard + 1}: {len(vector.index):,} features, {len(chosen):,} weights")


def again(shard: str) -> None:
    """Read weights as a worker does at the beginning of an epoch."""
    symbols, vector = Symbols(), WeightVector(Symbols())
    ids, values = read_vectors(shard, symbols, vector.index)
    vector.grow()
    vector.value[ids] = values["weight"]
    say(f"reading {len(ids):,} weights")


def mixing(shards: list[str], out: str) -> None:
    mixture = Mixture()
    for shard in shards:
        mixture.add(shard, 1.0)
    seen, kept = mixture.write(out, select=100_000)
    say(f"mixing {len(shards)} shards: {seen:,} features, {kept:,} kept")


def say(what: str) -> None:
    peak, seconds = peak_mb(), time.process_time()
    print(f"{what}: {peak:.0f} MB at most, {seconds:.0f} s of CPU", flush=True)
    append_result("tune_memory", {"what": what, "peak_mb": peak, "cpu_s": seconds})
    if most and peak > most:
        print(f"NOT MET: {peak:.0f} MB, expected at most {most:.0f}", flush=True)
        sys.exit(1)


most = 0.0  # MB


def _begin(limit: float) -> None:
    global most
    most = limit


def _run(limit: float, function: str, arguments: tuple[object, ...]) -> None:
    _begin(limit)
    globals()[function](*arguments)


def main() -> int:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--features", type=int, default=5_000_000, help="of each shard (default: 5000000)")
    parser.add_argument("--sentences", type=int, default=1000, help="of each shard (default: 1000)")
    parser.add_argument("--algorithm", default="iterselsgd", choices=["iterselsgd", "mira", "adagrad"])
    parser.add_argument("--most", type=float, default=2048, help="MB of a process (default: 2048)")
    args = parser.parse_args()
    spawning, failed = multiprocessing.get_context("spawn"), 0
    with tempfile.TemporaryDirectory() as folder:
        shards = [str(Path(folder) / f"shard.{number}.npz") for number in range(2)]
        given = (args.features, args.sentences)
        tasks: list[tuple[str, tuple[object, ...]]] = [
            ("learn", (args.algorithm, number, *given, path)) for number, path in enumerate(shards)
        ]
        tasks += [("again", (shards[0],)), ("mixing", (shards, str(Path(folder) / "mixed.npz")))]
        for function, arguments in tasks:
            process = spawning.Process(target=_run, args=(args.most, function, arguments))
            process.start()
            process.join()
            failed += process.exitcode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
