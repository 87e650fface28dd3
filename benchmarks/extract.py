"""Rules and CPU time of ``hiero extract``, compared with cdec's extractor sentence by sentence.

    python -m benchmarks.extract [--reference DIR] [--data DIR] [--sets m30k,ep,loo] [--rounds 3]

Bitext, alignment, limits and samples are the same. An index is made of the training set, and the rules of
every sentence with a reference grammar are compared with that grammar: source sides, rules, values of the
seven features to 1e-4, and word links, separately for source sides with fewer than 300 occurrences and those
that cdec sampled. ``loo`` are the first training sentences, extracted with leave-one-out.

cdec ran once; its times are those of the reference's README, in loops of the reference's ``calibrate.py``,
which runs here before and after. hiero's times are CPU seconds of whole processes, user and system, with
compiled kernels, in the same loops, the minimum of several rounds:

    cold  a new process opens the index and extracts all sentences, as ``hiero decode -g INDEX`` does
    text  ``hiero extract``: the same, and grammars as compressed text
    warm  the same sentences once more in the same process, with cached phrases
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.commands import PROJECT, bytes_in, hiero, least
from benchmarks.reference import Bench
from benchmarks.results import append_result

if TYPE_CHECKING:
    import numpy.typing as npt

    from hiero.extraction.extractor import Extractor
    from hiero.grammar.rules import Rules

BITEXTS = {"m30k": "multi30k-de-en", "ep": "europarl-de-en", "loo": "multi30k-de-en"}
# From the reference's README, in calibration loops.
CDEC_LOOPS = {"m30k": 6.5, "ep": 20.1}
CDEC_INDEX_LOOPS = {"europarl-de-en": 6.2}
SAMPLES = 300
TOLERANCE = 1e-4
SHOWN = 5  # differences

MIN_AGREEMENT = 0.99  # of rules and feature values below SAMPLES occurrences
MAX_COLD, MAX_WARM = 1 / 2, 1 / 5  # of cdec's time


class Job(NamedTuple):
    """A sentence, cdec's grammar of it, and the pair to leave out, or -1."""

    words: list[bytes]
    grammar: Path
    left_out: int


def jobs_of(name: str, reference: Path, data: Path) -> list[Job]:
    from hiero.core.text import decode_line, parse_segment, read_lines

    if name == "loo":
        folder = reference / "m30k" / "loo"
        count = len(list(folder.glob("grammar.*.gz")))
        lines = itertools.islice(read_lines(data / BITEXTS[name] / "train.src.gz"), count)
        return [Job(line.split(), folder / f"grammar.{n}.gz", n) for n, line in enumerate(lines)]
    jobs = []
    for number, line in enumerate(read_lines(reference / name / "input.sgm"), 1):
        segment = parse_segment(decode_line(line, number)[0])
        words = [word.encode() for word in segment.words]
        jobs.append(Job(words, reference / name / segment.attributes["grammar"], -1))
    return jobs


# Agreement.


class Share:
    """Numbers of items that cdec has, that both systems have, and that only hiero has."""

    def __init__(self) -> None:
        self.theirs = self.both = self.ours_only = 0

    def add(self, theirs: int, both: int, ours_only: int = 0) -> None:
        self.theirs += theirs
        self.both += both
        self.ours_only += ours_only

    @property
    def value(self) -> float:
        """Items of both systems divided by those of either."""
        every = self.theirs + self.ours_only
        return self.both / every if every else 1.0

    def __str__(self) -> str:
        return f"{self.both:9} of {self.theirs:9} +{self.ours_only:<6} {100 * self.value:9.4f} %"


Rule = tuple[Any, bytes]  # features and links
Side = dict[bytes, dict[bytes, Rule]]  # source side -> target side -> rule
WHATS = ("source sides", "rules", "feature values", "links")


class Comparison:
    """Counts of both groups of source sides, and the first differences."""

    def __init__(self) -> None:
        self.shares = {
            sampled: defaultdict[str, Share](Share, {what: Share() for what in WHATS})
            for sampled in (False, True)
        }
        self.differences: list[str] = []

    def add(self, where: str, ours: Side, theirs: Side, spell: Any) -> None:
        from hiero.extraction.extractor import FEATURES

        count = FEATURES.index("SampleCountF")
        for src in ours.keys() | theirs.keys():
            mine, gold = ours.get(src, {}), theirs.get(src, {})
            occurrences = round(10 ** float(next(iter((gold or mine).values()))[0][count])) - 1
            share = self.shares[occurrences >= SAMPLES]
            share["source sides"].add(bool(gold), bool(gold and mine), not gold)
            both = mine.keys() & gold.keys()
            share["rules"].add(len(gold), len(both), len(mine) - len(both))
            for tgt in both:
                near = abs(mine[tgt][0] - gold[tgt][0]) < TOLERANCE
                share["feature values"].add(len(near), int(near.sum()))
                share["links"].add(1, mine[tgt][1] == gold[tgt][1])
                if not near.all():
                    off = [
                        f"{FEATURES[k]} {mine[tgt][0][k]:.5g}, not {gold[tgt][0][k]:.5g}"
                        for k in range(len(near))
                        if not near[k]
                    ]
                    reason = "other samples" if not near[count] else "same samples"
                    self.differences.append(f"{where}: {spell(src, tgt)}: {'; '.join(off)} ({reason})")
                elif mine[tgt][1] != gold[tgt][1]:
                    self.differences.append(f"{where}: {spell(src, tgt)}: other links, same features")
            for tgt in mine.keys() ^ gold.keys():
                whose = "ours" if tgt in mine else "cdec's"
                seen = f"source side seen {occurrences} times"
                reason = seen if mine and gold else f"{seen}, and in no other rule of the other side"
                self.differences.append(f"{where}: {spell(src, tgt)}: only {whose} ({reason})")

    def report(self, name: str) -> Iterator[str]:
        for sampled, shares in self.shares.items():
            yield f"{name}, source sides seen {'at least' if sampled else 'less than'} {SAMPLES} times"
            yield f"  {'':16}{'both':>9}    {'cdec':>9}  ours only     alike"
            for what, share in shares.items():
                yield f"  {what:16}{share}"
        yield f"  differences: {len(self.differences) or 'none'}"
        for line in self.differences[:SHOWN]:
            yield f"    {line}"


def sides_of(rules: Rules) -> Side:
    """A grammar by source and target side."""
    sides = defaultdict[bytes, dict[bytes, Rule]](dict)
    arrays: list[npt.NDArray[Any]] = [rules.src, rules.tgt, rules.link]
    offsets = rules.first_src.tolist(), rules.first_tgt.tolist(), rules.first_link.tolist()
    for r, row in enumerate(rules.dense):
        src, tgt, link = (
            array[first[r] : first[r + 1]].tobytes() for array, first in zip(arrays, offsets, strict=True)
        )
        sides[src][tgt] = row, link
    return sides


def compare(name: str, index: Path, reference: Path, data: Path) -> tuple[list[str], list[float]]:
    """Lines to print; fractions of equal rules and feature values where nothing is sampled."""
    import numpy as np

    from hiero.core.symbol_kernels import gap_index
    from hiero.core.symbols import Symbols
    from hiero.extraction.config import ExtractConfig
    from hiero.extraction.extractor import FEATURES, Extractor, IndexSource
    from hiero.extraction.index import open_index
    from hiero.grammar.reader import RuleReader

    symbols, comparison = Symbols(), Comparison()
    source = IndexSource(Extractor(open_index(index), ExtractConfig(leave_out="pair")), symbols)  # as cdec

    def spell(*sides: bytes) -> str:
        codes = (np.frombuffer(side, np.int32).tolist() for side in sides)
        words = (
            (symbols.words.text(code) if code >= 0 else f"[{gap_index(code)}]" for code in side)
            for side in codes
        )
        return " -> ".join(map(" ".join, words))

    for number, job in enumerate(jobs_of(name, reference, data)):
        table = RuleReader(job.grammar, symbols).read()
        names = [symbols.names.text(column) for column in table.columns]
        order = [names.index(feature) for feature in FEATURES]
        theirs = table.rules._replace(dense=table.rules.dense[:, order])
        ours = source.extract(symbols.words.intern_all(job.words), job.left_out).rules
        comparison.add(f"sentence {number}", sides_of(ours), sides_of(theirs), spell)
    below = comparison.shares[False]
    return list(comparison.report(name)), [below[what].value for what in ("rules", "feature values")]


# Time and memory.


class Timing(NamedTuple):
    """CPU seconds of extraction: start of the process, start with first pass, later pass; and rules."""

    start: float
    cold: float
    warm: float
    num_rules: int


def time_extraction(name: str, index: Path, reference: Path, data: Path) -> Timing:
    """Measure extraction; must be the first call in a new process."""
    from hiero.extraction.config import ExtractConfig
    from hiero.extraction.extractor import Extractor
    from hiero.extraction.index import open_index

    jobs = jobs_of(name, reference, data)
    start = time.process_time()
    extractor = Extractor(open_index(index), ExtractConfig(leave_out="pair"))
    num_rules = one_pass(extractor, jobs)
    cold = time.process_time()
    assert one_pass(extractor, jobs) == num_rules
    return Timing(start, cold, time.process_time() - cold, num_rules)


def one_pass(extractor: Extractor, jobs: Sequence[Job]) -> int:
    return sum(len(extractor.rules(extractor.word_ids(job.words), job.left_out).lhs) for job in jobs)


def in_new_process(function: Any, *arguments: Any) -> Any:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


class Run:
    """The indexes and the results."""

    def __init__(self, bench: Bench, data: Path) -> None:
        self.bench, self.data = bench, data

    def measure_index(self, bitext: str) -> None:
        """Make an index, and print time and memory."""
        folder, out = self.data / bitext, self.bench.folder / f"{bitext}.idx"
        command: list[str | Path] = [
            "index",
            "-q",
            "-s",
            folder / "train.src.gz",
            "-t",
            folder / "train.trg.gz",
        ]
        command += ["-a", folder / "train.align.gz", "-o", out]
        before = self.bench.calibrate()
        hiero(*command)  # to compile
        taken = least([hiero(*command) for _ in range(self.bench.rounds)])
        loop = min(before, self.bench.calibrate())
        loops, cdec = taken.cpu / loop, CDEC_INDEX_LOOPS.get(bitext)
        beside = f" (cdec {cdec}, ratio {loops / cdec:.2f})" if cdec else ""
        print(
            f"\n{bitext}: index in {loops:.2f} loops of {loop:.3f} s{beside}, wall {taken.wall:.1f} s, "
            f"peak {taken.peak_mb:.0f} MB; {bytes_in(out) / 1e6:.0f} MB on disk"
        )
        figures = {"loops": loops, "cdec_loops": cdec, "peak_mb": taken.peak_mb, "mb": bytes_in(out) / 1e6}
        append_result("extract", {"index": bitext, **figures})
        if cdec:
            self.bench.expect(loops <= cdec, f"{bitext}: index takes {loops / cdec:.2f} of cdec's time")

    def measure(self, name: str) -> None:
        """The cost of extraction of one set."""
        bench, index = self.bench, self.bench.folder / f"{BITEXTS[name]}.idx"
        source, out = bench.reference / name / "input.sgm", bench.folder / "grammars"
        before = bench.calibrate()
        in_new_process(time_extraction, name, index, bench.reference, self.data)  # to compile
        timings = [
            in_new_process(time_extraction, name, index, bench.reference, self.data)
            for _ in range(bench.rounds)
        ]
        command: list[str | Path] = ["extract", "-q", "-x", index, "-i", source, "-o", out]
        hiero(*command)
        text = least([hiero(*command) for _ in range(bench.rounds)])
        loop = min(before, bench.calibrate())
        first, cdec = min(timings, key=lambda timing: timing.cold), CDEC_LOOPS[name]
        warm = min(timing.warm for timing in timings)
        print(f"\n{name}: {first.num_rules} rules; CPU in loops of {loop:.3f} s, cdec {cdec}")
        start = f"starting takes {first.start / loop:.2f} of it"
        for what, seconds, note in (
            ("cold", first.cold, start),
            ("text", text.cpu, f"peak {text.peak_mb:.0f} MB, {bytes_in(out) / 1e6:.1f} MB written"),
            ("warm", warm, ""),
        ):
            print(f"  {what} {seconds / loop:7.3f}, ratio {seconds / loop / cdec:6.4f}  {note}".rstrip())
        cold_ratio, warm_ratio = first.cold / loop / cdec, warm / loop / cdec
        figures = {"cold_loops": first.cold / loop, "text_loops": text.cpu / loop, "warm_loops": warm / loop}
        append_result("extract", {"set": name, "cdec_loops": cdec, "peak_mb": text.peak_mb} | figures)
        bench.expect(cold_ratio <= MAX_COLD, f"{name}: cold {cold_ratio:.2f} of cdec's time")
        bench.expect(warm_ratio <= MAX_WARM, f"{name}: warm {warm_ratio:.2f} of cdec's time")

    def compare(self, name: str) -> None:
        index = self.bench.folder / f"{BITEXTS[name]}.idx"
        lines, alike = in_new_process(compare, name, index, self.bench.reference, self.data)
        print("", *lines, sep="\n")
        append_result("extract", {"set": name, "rules": alike[0], "feature values": alike[1]})
        for what, value in zip(("rules", "feature values"), alike, strict=True):
            self.bench.expect(value >= MIN_AGREEMENT, f"{name}: only {100 * value:.2f} % of {what} agree")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--reference", type=Path, default=PROJECT.parent / "shared" / "reference", metavar="DIR")
    add("--data", type=Path, default=PROJECT.parent / "shared" / "data", metavar="DIR")
    add("--sets", default=",".join(BITEXTS), help=f"of {', '.join(BITEXTS)}")
    add("--rounds", type=int, default=3, help="measurements, of which the minimum is used (default 3)")
    args = parser.parse_args()
    names = re.split(r",\s*", args.sets)
    if not set(names) <= BITEXTS.keys() or args.rounds < 1:
        parser.error(f"expected --sets of {', '.join(BITEXTS)} and at least one round")
    for folder in (args.reference, args.data):
        if not folder.is_dir():
            parser.error(f"no reference data in {folder}")
    with tempfile.TemporaryDirectory() as temporary:
        bench = Bench(args.reference.resolve(), Path(temporary), args.rounds)
        run = Run(bench, args.data.resolve())
        for bitext in dict.fromkeys(BITEXTS[name] for name in names):
            run.measure_index(bitext)
        for name in names:
            if name in CDEC_LOOPS:
                run.measure(name)
            run.compare(name)
    for failure in bench.failures:
        print(f"NOT MET: {failure}")
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
