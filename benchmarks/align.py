"""CPU time, memory and error rate of word alignment, by the size of the bitext.

    python -m benchmarks.align SRC TGT [--gold SRC TGT ALIGN] [--pairs 25000 200000] [--loop SECONDS]
    python -m benchmarks.align SRC TGT --apply 1000000 [--models hmm] [--pairs 25000]

Each model is trained on the first N pairs (default: all), with the hand-aligned ones of --gold added, which
are also linked by thresholds of posteriors. First, the alignments with one thread and with three are
compared. --loop is the time of the calibration loop of the reference data, measured at the same time; times
are then also given in loops. Memory is the peak of the process, so sizes should be in ascending order.

--apply N links N lines, the bitext again and again, with each trained model, as ``hiero align apply`` does,
with one thread and with two: lines a second, and peaks of memory after a tenth of the lines and at the end,
each in a process of its own.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks.results import append_result, peak_mb
from hiero.alignment.align import align, trained
from hiero.alignment.config import MODELS, AlignConfig
from hiero.alignment.files import align_files, apply_files
from hiero.alignment.links import combine
from hiero.alignment.model import read_model
from hiero.bitext.alignments import Alignment, read_alignment, score_alignment
from hiero.bitext.corpus import Bitext, read_bitext
from hiero.core.jit import compile_timer
from hiero.core.progress import SilentProgress
from hiero.core.text import read_lines

CHECKED_PAIRS = 10000
THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--gold", type=Path, nargs=3, metavar=("SRC", "TGT", "ALIGN"))
    parser.add_argument("--pairs", type=int, nargs="+", default=[0], metavar="N")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--apply", type=int, metavar="N")
    parser.add_argument("--loop", type=float, metavar="SECONDS")
    parser.add_argument("-j", "--threads", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.apply:
            for pairs, model in itertools.product(args.pairs, args.models):
                measure_apply(args, pairs, AlignConfig(model=model), Path(folder))
            return 0
        for model in args.models:
            config = AlignConfig(model=model)
            small = part(args, CHECKED_PAIRS, Path(folder))
            one, three = (align(small, config, threads).links for threads in (1, 3))
            assert np.array_equal(one.fwd, three.fwd)
            assert np.array_equal(one.rev, three.rev)
        compiling = compile_timer.seconds
        for pairs, model in itertools.product(args.pairs, args.models):
            measure(args, pairs, AlignConfig(model=model), Path(folder))
    print(f"compiling kernels {compiling:.1f} s")
    return 0


def part(args: argparse.Namespace, pairs: int, folder: Path) -> Bitext:
    """The first pairs of the bitext (0: all), and the hand-aligned ones."""
    for side in range(2):
        with (folder / f"{side}").open("wb") as out:
            limit = pairs or None
            for line in itertools.islice(read_lines((args.source, args.target)[side]), limit):
                out.write(line + b"\n")
            if args.gold:
                out.writelines(line + b"\n" for line in read_lines(args.gold[side]))
    return read_bitext(folder / "0", folder / "1")


def measure(args: argparse.Namespace, pairs: int, config: AlignConfig, folder: Path) -> None:
    part(args, pairs, folder)
    start, wall = time.process_time(), time.perf_counter()
    bitext = read_bitext(folder / "0", folder / "1")
    trainer = trained(bitext, config, args.threads)
    links = trainer.decode()
    found = combine(bitext, links, config.symmetrize)
    seconds, wall = time.process_time() - start, time.perf_counter() - wall
    cells = int((bitext.src.length * bitext.tgt.length).sum())
    peak = peak_mb()
    figures: dict[str, object] = {
        "model": config.model, "pairs": bitext.num_pairs, "threads": args.threads, "cpu_s": seconds,
        "wall_s": wall, "peak_mb": peak, "loop_s": args.loop,
    }  # fmt: skip
    text = f"{config.model} {bitext.num_pairs} pairs: CPU {seconds:.1f} s"
    if args.loop:
        text += f" = {seconds / args.loop:.1f} loops"
    print(
        f"{text}, wall {wall:.1f} s, {seconds / cells * 1e9:.0f} ns a cell, memory {peak / 1024:.2f} GB",
        flush=True,
    )
    if args.gold:
        gold = read_alignment(args.gold[2], possible=True)
        for method in ("intersection", config.symmetrize, "union", *THRESHOLDS):
            if isinstance(method, float):
                found = trainer.links_above(method)
            else:
                found = combine(bitext, links, method)
            first = found.first[-gold.num_pairs - 1 :]
            last = Alignment(first - first[0], found.link[first[0] :], found.possible[first[0] :])
            score = score_alignment(last, gold)
            rates = f"AER {score.error_rate:.4f}, precision {score.precision:.3f}, recall {score.recall:.3f}"
            print(f"  {method}: {rates}", flush=True)
            figures[f"aer_{method}"] = score.error_rate
    append_result("align", figures)


def measure_apply(args: argparse.Namespace, pairs: int, config: AlignConfig, folder: Path) -> None:
    part(args, pairs, folder)
    align_files(
        folder / "0", folder / "1", folder / "links", config, model=folder / "model", threads=args.threads
    )
    for side in range(2):
        lines = itertools.cycle(read_lines((args.source, args.target)[side]))
        with (folder / f"long.{side}").open("wb") as out:
            out.writelines(line + b"\n" for line in itertools.islice(lines, args.apply))
    outputs = []
    for threads in (1, 2):
        # A fresh process: its peak is not that of training, and its kernels are compiled before.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            pool.submit(apply_model, folder, "0", "1", 1, 1).result()
            found = pool.submit(apply_model, folder, "long.0", "long.1", threads, args.apply // 10).result()
        outputs.append((folder / "applied").read_bytes())
        speed = f"{args.apply / found['wall_s']:.0f} a second, CPU {found['cpu_s']:.0f} s"
        peaks = f"memory {found['tenth_mb']:.0f} MB after a tenth, {found['peak_mb']:.0f} MB at the end"
        print(f"{config.model} -j {threads}: {args.apply:,} lines, {speed}, {peaks}", flush=True)
        common = {"model": config.model, "lines": args.apply, "threads": threads, "loop_s": args.loop}
        append_result("align apply", common | found)
    assert outputs[0] == outputs[1]


class Peak(SilentProgress):
    """The peak of memory when so many lines are done."""

    def __init__(self, lines: int) -> None:
        self.lines, self.done, self.peak = lines, 0, 0.0

    def advance(self, steps: int, note: str = "") -> None:
        self.done += steps
        if not self.peak and self.done >= self.lines:
            self.peak = peak_mb()


def apply_model(folder: Path, source: str, target: str, threads: int, tenth: int) -> dict[str, float]:
    """Link a bitext in the folder by the model there; seconds and peaks of memory."""
    model, progress = read_model(folder / "model"), Peak(tenth)
    start, wall = time.process_time(), time.perf_counter()
    files = folder / source, folder / target, folder / "applied"
    apply_files(model, *files, threads=threads, progress=progress)
    return {
        "cpu_s": time.process_time() - start,
        "wall_s": time.perf_counter() - wall,
        "tenth_mb": progress.peak,
        "peak_mb": peak_mb(),
    }


if __name__ == "__main__":
    sys.exit(main())
