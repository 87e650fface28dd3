"""Orientation learning: the table and the figure of Alrajeh and Niranjan (2014), and scaling.

    python -m benchmarks.reorder [table] [--pairs N] [--passes 100] [--orientation phrase|word] ...
    python -m benchmarks.reorder gaps [--set NAME] [--alignment FILE] [--pairs N] [--learner dual]
    python -m benchmarks.reorder scale [--examples 1,2,5,10,20]

``table`` makes examples of the first N pairs of a bitext (default: all of europarl-de-en), holds out one pair
in twenty, and trains the primal model and dual ones at three levels of shrinking. Their Table 2: CPU seconds
for all passes and the error on held-out examples; also the passes and CPU seconds after which the error stays
within 0.2 points of the best error of all models; P, and a bound on its distance from the minimum. Their
Figure 1: percentage of active examples at the beginning of each pass.

``gaps`` prints bits of held-out examples by kind of block: with known words, and as gaps, whose words are not
known; of the latter by the weights that were learnt with word pairs, too. As learnt, and calibrated, each
half of the examples by the other one. The exit code is 1, after a line that begins with ``NOT MET``, if a
calibrated model is worse than the frequencies of the classes.

``scale`` trains on millions of examples (a smaller bitext is repeated), each time in a separate process: CPU
seconds of a pass of either learner, examples per second, the memory of the process without mapped files
(Linux), and the size of the mapped examples. Times of learning are CPU time with compiled kernels, without
classification of the held-out examples. The bitext is in a folder ``shared/data`` next to the project, or in
--data.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import math
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.results import append_result, peak_mb
from hiero.core.arrays import Floats
from hiero.core.text import read_lines
from hiero.reordering.config import ExampleConfig, LearnConfig
from hiero.reordering.evaluate import evaluate_majority
from hiero.reordering.examples import Examples, Rows, extract_examples, open_examples
from hiero.reordering.learn import (
    Learned,
    calibrated,
    learn_dual,
    learn_primal,
    log_probs,
    train_model,
    without_pairs,
)
from hiero.reordering.model import Classifier, open_model

PROJECT = Path(__file__).resolve().parents[1]
DATA = PROJECT.parent / "shared" / "data"
SIDES = ("src", "trg", "align")
SYSTEMS = (("primal", 0.1), ("dual", 1.0), ("dual", 0.1), ("dual", 0.01))
NEAR = 0.002  # of the best error
PAPER = {
    "primal": (69 * 60, 17.81),
    "dual 1": (13 * 60, 21.13),
    "dual 0.1": (18 * 60, 17.95),
    "dual 0.01": (22 * 60, 17.89),
}


def main(arguments: Sequence[str] | None = None) -> int:
    args = _arguments(arguments)
    if args.what == "one":
        return _one(args)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(args.folder or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        return {"table": _table, "gaps": _gaps, "scale": _scale}[args.what](args, folder)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("what", nargs="?", choices=["table", "gaps", "scale", "one"], default="table")
    add("--data", type=Path, default=DATA)
    add("--set", default="europarl-de-en", help="folder with train.src.gz, train.trg.gz, train.align.gz")
    add("--pairs", type=int, default=0, help="0: all")
    add("--alignment", type=Path, help="default: train.align.gz of the set")
    add("--learner", choices=["dual", "primal"], default="dual", help="gaps: default dual")
    add("--passes", type=int, default=100)
    add("--variance", type=float, default=LearnConfig().variance)
    add("--orientation", choices=["phrase", "word"], default="phrase")
    add("--window", type=int, default=1)
    add("--edges", action="store_true")
    add("--seed", type=int, default=1)
    add("--examples", default="1,2,5,10,20", help="scale: millions")
    add("--folder", help="keep examples and results here")
    add("--rest", nargs=4, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _config(args: argparse.Namespace) -> ExampleConfig:
    return ExampleConfig(orientation=args.orientation, window=args.window, edges=args.edges)


def _bitext(args: argparse.Namespace, folder: Path, pairs: int, times: int = 1) -> list[Path]:
    """The first pairs of the bitext as plain text, repeated if necessary."""
    paths = []
    for side in SIDES:
        path, found = folder / f"train.{side}", args.data / args.set / f"train.{side}.gz"
        if side == "align" and args.alignment is not None:
            found = args.alignment
        lines = itertools.islice(read_lines(found), pairs or None)
        text = b"".join(line + b"\n" for line in lines)
        path.write_bytes(text * times)
        paths.append(path)
    return paths


# ---- Table 2 and Figure 1


def _table(args: argparse.Namespace, folder: Path) -> int:
    src, tgt, align = _bitext(args, folder, args.pairs)
    summary = extract_examples(
        src, tgt, align, folder / "examples", _config(args), held_out=folder / "held", every=20
    )
    print(summary)
    train, held = open_examples(folder / "examples"), open_examples(folder / "held")
    base = LearnConfig(passes=args.passes, variance=args.variance)
    _warm_up(train)
    learned = {}
    for learner, shrink in SYSTEMS:
        name = "primal" if learner == "primal" else f"dual {shrink:g}"
        learn = learn_primal if learner == "primal" else learn_dual
        learned[name] = learn(train, dataclasses.replace(base, shrink=shrink), args.seed, held_out=held)
        print(f"{name} done", file=sys.stderr)
    majority = 1 - held.classes[int(train.classes.argmax())] / held.classes.sum()
    lexicalised = _lexicalised_error(folder, held)
    print(f"\nmajority class {100 * majority:.2f} % wrong, lexicalised {100 * lexicalised:.2f} %\n")
    print(_table_2(learned))
    print(_figure_1(learned))
    for name, found in learned.items():
        last = found.history[-1]
        figures = {"passes": last.number, "cpu_s": last.cpu, "error": last.error, "primal": found.primal}
        append_result("reorder", {"system": name, "examples": summary.num_examples} | figures)
    if args.folder:
        content = {name: [one.as_dict() for one in found.history] for name, found in learned.items()}
        (folder / "history.json").write_text(json.dumps(content, indent=1) + "\n")
    return 0


def _warm_up(train: Examples) -> None:
    """Compile the measured kernels on a few examples."""
    rows = train.rows._replace(first=train.rows.first[:101], label=train.rows.label[:100])
    few = dataclasses.replace(train, rows=rows)
    for learn in (learn_primal, learn_dual):
        learn(few, LearnConfig(passes=2), held_out=few)


def _lexicalised_error(folder: Path, held: Examples) -> float:
    train_model(folder / "examples", folder / "lexicalised", LearnConfig(learner="lexicalised"))
    model = open_model(folder / "lexicalised")
    said = model.log_probs(held, 0, held.rows.size).argmax(axis=1)
    return float((said != held.rows.label).mean())


def _table_2(learned: dict[str, Learned]) -> str:
    best = min(one.error or 0.0 for found in learned.values() for one in found.history)
    lines = [
        f"best error on held-out examples: {100 * best:.2f} %",
        f"{'':10}{'passes':>8}{'CPU s':>9}{'error %':>9}{'of primal':>11}{'(paper)':>9}"
        f"{'passes to':>11}{'CPU s to':>10}{'P / 1e3':>11}{'above %':>9}",
    ]
    total, of_paper = learned["primal"].history[-1].cpu, PAPER["primal"][0]
    for name, found in learned.items():
        last = found.history[-1]
        near = [one for one in found.history if (one.error or 0.0) > best + NEAR]
        after = near[-1].number + 1 if near else 0
        there = [one for one in found.history if one.number == after]
        reached = f"{after:11}{there[0].cpu:10.2f}" if there else f"{'-':>11}{'-':>10}"
        above = "-" if found.gap is None else f"{100 * found.gap / found.primal:.3f}"
        lines.append(
            f"{name:10}{last.number:8}{last.cpu:9.2f}{100 * (last.error or 0):9.2f}"
            f"{last.cpu / total:11.2f}{PAPER[name][0] / of_paper:9.2f}"
            f"{reached}{found.primal / 1e3:11.1f}{above:>9}"
        )
    return "\n".join(lines) + "\n"


def _figure_1(learned: dict[str, Learned]) -> str:
    lines = ["per cent of examples left at the beginning of each pass", f"{'pass':>6}"]
    shown = {name: found for name, found in learned.items() if name != "primal"}
    lines[1] += "".join(f"{name:>11}" for name in shown) + f"{'errors %':>20}"
    longest = max(found.history[-1].number for found in shown.values())
    wanted = [*range(1, min(longest, 20) + 1), *range(25, longest + 1, 25)]
    for number in wanted:
        row, errors = f"{number:6}", ""
        for found in shown.values():
            here = [one for one in found.history if one.number == number]
            everything = found.history[0].active
            row += f"{100 * here[0].active / everything:11.3f}" if here else f"{'-':>11}"
            errors += f"{100 * (here[0].error or 0):9.2f}" if here else f"{'-':>9}"
        primal = [one for one in learned["primal"].history if one.number == number]
        lines.append(row + errors + (f"{100 * (primal[0].error or 0):9.2f} (primal)" if primal else ""))
    return "\n".join(lines) + "\n"


# ---- blocks of known and of unknown words


def _gaps(args: argparse.Namespace, folder: Path) -> int:
    src, tgt, align = _bitext(args, folder, args.pairs)
    examples, place = folder / "examples", folder / "held"
    print(extract_examples(src, tgt, align, examples, _config(args), held_out=place, every=20))
    config = LearnConfig(learner=args.learner, passes=args.passes, variance=args.variance, calibrate=False)
    train_model(examples, folder / "model", config, seed=args.seed)
    held, model = open_examples(place), open_model(folder / "model")
    assert isinstance(model, Classifier)
    known, own = model.weights_for(held), model.weights_for(held, as_gaps=True)
    plain = without_pairs(held)
    # Blocks, weights, and what the weights are calibrated on: those that were learnt with pairs with pairs.
    kinds = {
        "words known": (held, known, held),
        "gap, by weights with pairs": (plain, known, held),
        "gap, by its own": (plain, own, plain),
    }
    bits: dict[str, list[float]] = {"as learnt": [], "calibrated": []}
    for blocks, weight, like in kinds.values():
        bits["as learnt"].append(_bits(blocks, weight))
        one, other = (calibrated(weight, held, model.prior, half)[0] for half in _halves(like))
        pairs = zip(_halves(blocks), (other, one), strict=True)
        total = sum(_bits(half, fitted) * half.rows.size for half, fitted in pairs)
        bits["calibrated"].append(total / held.rows.size)
    prior = evaluate_majority(model, held).loss
    print(f"| bits | {' | '.join(kinds)} |\n|---|---:|---:|---:|")
    for title, row in (bits | {"frequencies of classes": [prior] * 3}).items():
        print(f"| {title} | {' | '.join(f'{x:.4f}' for x in row)} |")
    better = max(bits["calibrated"][0], bits["calibrated"][2]) <= prior
    if not better:
        print("NOT MET: a calibrated model is worse than the frequencies of the classes")
    return 0 if better else 1


def _halves(examples: Examples) -> list[Examples]:
    """The first and the second half; a sentence pair at most is in both."""
    rows, middle = examples.rows, examples.rows.size // 2
    halves = []
    for begin, end in ((0, middle), (middle, rows.size)):
        first = rows.first[begin : end + 1]
        half = Rows(first - first[0], rows.feature[first[0] : first[-1]], rows.label[begin:end])
        halves.append(dataclasses.replace(examples, rows=half))
    return halves


def _bits(examples: Examples, weight: Floats) -> float:
    """Mean of -log2 of the probability of the true class."""
    label, total = examples.rows.label.astype(np.int64), 0.0
    for begin, logs in log_probs(examples.rows, weight):
        total -= float(logs[np.arange(len(logs)), label[begin : begin + len(logs)]].sum())
    return total / math.log(2) / len(label)


# ---- size


def _scale(args: argparse.Namespace, folder: Path) -> int:
    print(
        f"{'millions':>9}{'learner':>10}{'CPU s a pass':>14}{'examples/s':>12}{'own MB':>9}{'mapped MB':>11}"
    )
    pairs, times = _pairs_for(args, folder)
    for millions in map(float, args.examples.split(",")):
        for learner in ("primal", "dual"):
            rest = [str(folder / "examples"), str(int(millions * 1e6)), learner, str(args.variance)]
            command = [sys.executable, "-m", "benchmarks.reorder", "one", "--rest", *rest]
            done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
            print(done.stdout, end="", flush=True)
    print(f"examples of {pairs:,} sentence pairs, {times} times over")
    return 0


def _pairs_for(args: argparse.Namespace, folder: Path) -> tuple[int, int]:
    """Make the largest number of examples needed."""
    wanted = max(map(float, args.examples.split(","))) * 1e6
    src, tgt, align = _bitext(args, folder, args.pairs)
    summary = extract_examples(src, tgt, align, folder / "examples", _config(args))
    times = math.ceil(wanted / summary.num_examples)
    if times > 1:
        src, tgt, align = _bitext(args, folder, args.pairs, times)
        extract_examples(src, tgt, align, folder / "examples", _config(args))
    return summary.num_pairs, times


def _one(args: argparse.Namespace) -> int:
    """Time and memory of three passes over a number of examples."""
    path, size, learner, variance = Path(args.rest[0]), int(args.rest[1]), args.rest[2], float(args.rest[3])
    train = open_examples(path)
    rows = train.rows._replace(first=train.rows.first[: size + 1], label=train.rows.label[:size])
    train = dataclasses.replace(train, rows=rows)
    _warm_up(train)
    learn = learn_primal if learner == "primal" else learn_dual
    with _memory() as peak:
        history = learn(train, LearnConfig(passes=3, variance=variance)).history
    seconds = (history[3].cpu - history[1].cpu) / 2
    mapped = sum(array.nbytes for array in rows[:1]) + int(rows.first[-1]) * 4 + size
    print(
        f"{rows.size / 1e6:9.1f}{learner:>10}{seconds:14.2f}{rows.size / seconds:12,.0f}"
        f"{max(peak):9.0f}{mapped / 1e6:11.0f}"
    )
    figures = {"pass_cpu_s": seconds, "own_mb": max(peak), "mapped_mb": mapped / 1e6}
    append_result("reorder", {"examples": rows.size, "learner": learner} | figures)
    return 0


@contextmanager
def _memory() -> Iterator[list[float]]:
    """Sample ``_own_megabytes`` in a thread while kernels run, which release the GIL."""
    seen, done = [_own_megabytes()], threading.Event()

    def look() -> None:
        while not done.wait(0.02):
            seen.append(_own_megabytes())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


def _own_megabytes() -> float:
    """Resident memory without mapped files on Linux; elsewhere the peak of the process."""
    status = Path("/proc/self/status")
    if status.exists():
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        if "RssAnon" in fields:
            return float(fields["RssAnon"].split()[0]) / 1024
    return peak_mb()


if __name__ == "__main__":
    sys.exit(main())
