"""Scaling of time, memory and output of every stage with the size of the bitext.

    python -m benchmarks.scale SRC TGT SENTENCES [--pairs 25000,50000,100000,200000] [--max-span 10] [-j N]
                               [--stages align,lm,index,extract,decode,all] [--folder DIR] [--target 2000000]

From the first N pairs of a bitext:

    align    both directions of the default model, symmetrized
    lm       order 5 from the target side, --prune 0 0 1, compiled
    index    of these pairs with this alignment
    extract  the grammars of SENTENCES, as compressed text
    decode   SENTENCES, with this index and language model
    all      one grammar of the whole bitext, compressed, of phrases up to --max-span

Every run is a separate process with compiled kernels: CPU seconds of user and system, wall-clock seconds,
peak resident memory, the same without mapped files (Linux), bytes written. The exponent of growth is the
slope of a line through the logarithms; "last" is that between the two largest sizes, where fixed costs matter
least. Values for a bitext of --target pairs are extrapolated from these two sizes, by a power law and
linearly, whichever is more.

With --folder, files and measurements are kept there, and an interrupted run is resumed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.commands import Usage, bytes_in, hiero
from benchmarks.results import append_result
from hiero.core.text import read_lines

STAGES = ("align", "lm", "index", "extract", "decode", "all")
WEIGHTS = Path(__file__).parents[1] / "configs" / "weights.dense"
SMALL = 200  # pairs of the run that compiles
MEASURES = ("CPU s", "wall s", "peak MB", "own MB", "MB out")


class Measured(NamedTuple):
    """One stage at one size."""

    usage: Usage
    num_bytes: int  # written

    @property
    def columns(self) -> tuple[float, ...]:
        return *self.usage, self.num_bytes / 1e6


class Series:
    """The stages over one bitext, at any size."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self.args, self.folder = args, folder
        self.log = folder / "measured.json"
        self.known: dict[str, list[float]] = json.loads(self.log.read_text()) if self.log.exists() else {}

    def measure(self, stage: str, pairs: int) -> Measured:
        """Run a stage, unless its measurements exist."""
        key = f"{stage} {pairs}"
        if key not in self.known:
            self._run(stage, SMALL)  # to compile
            self.known[key] = self._run(stage, pairs)
            part = self.log.with_suffix(".part")
            part.write_text(json.dumps(self.known, indent=1))
            os.replace(part, self.log)
        *usage, num_bytes = self.known[key]
        return Measured(Usage(*usage), int(num_bytes))

    def _run(self, stage: str, pairs: int) -> list[float]:
        place = self.folder / str(pairs)
        self._make_texts(place, pairs)
        out = place / {"all": "all.gz"}.get(stage, stage)
        usage = hiero(*self._command(stage, place, out))
        num_bytes = bytes_in(out)
        if stage == "all":
            out.unlink()  # large, and not needed
        return [*usage, num_bytes]

    def _make_texts(self, place: Path, pairs: int) -> None:
        place.mkdir(parents=True, exist_ok=True)
        for name, path in (("src", self.args.source), ("tgt", self.args.target_text)):
            if not (place / name).exists():
                part = place / f"{name}.part"
                with part.open("wb") as out:
                    out.writelines(line + b"\n" for line in itertools.islice(read_lines(path), pairs))
                os.replace(part, place / name)

    def _command(self, stage: str, place: Path, out: Path) -> list[str | Path]:
        texts = ["-s", place / "src", "-t", place / "tgt"]
        threads = ["-j", str(self.args.threads)]
        index = ["extract", "-q", "-x", place / "index", *threads, "-o", out]
        commands = {
            "align": ["align", "-q", *texts, *threads, "-o", out],
            "lm": ["lm", "estimate", "-q", "--prune", "0", "0", "1", *threads, place / "tgt", out],
            "index": ["index", "-q", *texts, "-a", place / "align", "-o", out],
            "extract": [*index, "-i", self.args.sentences],
            "decode": [
                *("decode", "-q", "-g", place / "index", "-l", place / "lm", "-w", WEIGHTS),
                *(*threads, "-i", self.args.sentences, "-o", out),
            ],
            "all": [*index, "--all", "--max-span", str(self.args.max_span)],
        }
        command = commands[stage]
        if stage == "lm" and place.name == str(SMALL):
            command.append("--discount-fallback")
        return command


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The slope of the least-squares line through the logarithms."""
    logs = [(math.log(x), math.log(max(y, 1e-9))) for x, y in points]
    x_mean, y_mean = (math.fsum(column) / len(logs) for column in zip(*logs, strict=True))
    return sum((x - x_mean) * (y - y_mean) for x, y in logs) / sum((x - x_mean) ** 2 for x, _ in logs)


def expected(curve: Sequence[tuple[float, float]], target: int) -> float:
    """Extrapolate the last two points, by a power law or linearly, whichever is more."""
    (x1, y1), (x2, y2) = curve[-2:]
    line = y2 + (y2 - y1) / (x2 - x1) * (target - x2)
    return max(line, y2 * math.pow(target / x2, slope([(x1, y1), (x2, y2)])))


def report(stage: str, rows: Mapping[int, Measured], target: int) -> None:
    """A table in Markdown."""
    print(f"\n{stage}\n\n| pairs | {' | '.join(MEASURES)} |\n|{'---|' * (len(MEASURES) + 1)}")
    for pairs, row in rows.items():
        print(f"| {pairs:,} | {' | '.join(f'{value:.1f}' for value in row.columns)} |")
    if len(rows) > 1:
        columns = zip(*(row.columns for row in rows.values()), strict=True)
        curves = [list(zip(rows, column, strict=True)) for column in columns]
        numbers: list[tuple[str, Callable[[list[tuple[int, float]]], str]]] = [
            ("exponent", lambda curve: f"{slope(curve):.2f}"),
            ("last", lambda curve: f"{slope(curve[-2:]):.2f}"),
            (f"*{target:,}*", lambda curve: f"{expected(curve, target):.0f}"),
        ]
        for title, number in numbers:
            # Wall-clock time depends on other load.
            cells = ("" if name == "wall s" else number(c) for name, c in zip(MEASURES, curves, strict=True))
            print(f"| {title} | {' | '.join(cells)} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("source", type=Path, metavar="SRC")
    add("target_text", type=Path, metavar="TGT")
    add("sentences", type=Path, metavar="SENTENCES", help="of the source language, to extract grammars for")
    add("--pairs", default="25000,50000,100000,200000", help="sizes, ascending")
    add(
        "--stages",
        default=",".join(STAGES),
        help="each needs those before it, but lm and extract, and all needs neither lm nor decode",
    )
    add("--max-span", type=int, default=10, help="words of a rule in the grammar of the whole bitext")
    add("--target", type=int, default=2_000_000, help="size to extrapolate to (default 2000000)")
    add("--folder", type=Path, help="keep everything here")
    add("-j", "--threads", type=int, default=1)
    args = parser.parse_args()
    stages, sizes = args.stages.split(","), [int(size) for size in args.pairs.split(",")]
    if not set(stages) <= set(STAGES) or sizes != sorted(set(sizes)) or sizes[0] <= SMALL:
        parser.error(f"expected --stages of {', '.join(STAGES)} and --pairs above {SMALL}, ascending")
    for path in ("source", "target_text", "sentences"):
        setattr(args, path, getattr(args, path).resolve())
    with tempfile.TemporaryDirectory() as temporary:
        folder = (args.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        series = Series(args, folder)
        for stage in stages:
            rows = {}
            for pairs in sizes:
                rows[pairs] = series.measure(stage, pairs)
                print(f"{stage} {pairs}: {rows[pairs].usage.cpu:.1f} s", file=sys.stderr, flush=True)
            report(stage, rows, args.target)
            for pairs, row in rows.items():
                columns = dict(zip(MEASURES, row.columns, strict=True))
                append_result("scale", {"stage": stage, "pairs": pairs, "threads": args.threads} | columns)
    return 0


if __name__ == "__main__":
    sys.exit(main())
