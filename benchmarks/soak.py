"""Long use: ``python -m benchmarks.soak [--lines 100000] [--each 1000]``.

Pipes short lines through ``hiero decode -j 2``, a few hundred ahead of the translations, and measures its
memory while it runs: after the first tenth of the lines it must not grow by more than --growth MB, within
which the heap settles (a leak of a hundred bytes of each line would pass, one of 200 would not). Then
translates sentences in several threads of one process, which share a model; the translations, scores and
features of each must be those of a single thread.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hiero
from benchmarks.results import append_result
from hiero.config.model import bundled_path
from hiero.core.text import read_text
from hiero.decoder.model import Model

MAX_WORDS = 6
SAMPLES = 100


def short_lines(sentences: Sequence[str], number: int) -> Iterator[str]:
    """Pieces of at most six words of the sentences, over and over, with another cut each time."""
    made = 0
    for shift in itertools.count():
        for sentence in sentences:
            words = sentence.split()
            begin = shift % MAX_WORDS
            for place in range(begin, len(words), MAX_WORDS):
                if made == number:
                    return
                made += 1
                yield " ".join(words[place : place + 1 + (made + shift) % MAX_WORDS])


def resident_mb(process: int) -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError(process)


def pipe_lines(lines: Iterator[str], number: int, options: Sequence[str] = ()) -> list[float]:
    """The memory of ``hiero decode`` in MB, at times when equal numbers of lines were translated."""
    command = [sys.executable, "-m", "hiero", "decode", "-q", "-j", "2", *options]
    environment = os.environ | {"PYTHONPATH": str(Path(hiero.__file__).parents[1])}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stream = process.stdin

        def write() -> None:
            with stream:
                for line in lines:
                    stream.write(f"{line}\n".encode())

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        samples = []
        every = max(1, number // SAMPLES)
        for done in range(1, number + 1):
            assert process.stdout.readline().endswith(b"\n"), f"no translation of line {done}"
            if done % every == 0 and done < number:
                samples.append(resident_mb(process.pid))
        assert process.stdout.read() == b"", "more translations than lines"
        writer.join()
    assert process.returncode == 0
    return samples


def growth(samples: Sequence[float]) -> float:
    """By how many MB the memory has grown at most since a tenth of the lines was translated."""
    begun = len(samples) // 10
    return max(samples[begun:]) - samples[begun]


def translations(model: Model, sentences: Sequence[str]) -> list[tuple[str, float, dict[str, float]]]:
    found = map(model.translate, sentences)
    return [(best.text, best.score, dict(best.features)) for best in found]


def compare_threads(model: Model, sentences: Sequence[str], threads: int) -> None:
    """Check that all threads, which begin at different sentences, find what one thread alone does."""
    starts = [len(sentences) * number // threads for number in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        turned = [[*sentences[start:], *sentences[:start]] for start in starts]
        found = list(pool.map(lambda part: translations(model, part), turned))
    expected = translations(model, sentences)
    for start, each in zip(starts, found, strict=True):
        assert each == [*expected[start:], *expected[:start]], f"the thread from sentence {start} differs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--growth", type=float, default=16.0, metavar="MB")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--each", type=int, default=1000, help="translations of each thread")
    args = parser.parse_args()
    sentences = [
        line for name in ("demo.dev.de", "demo.devtest.de") for line in read_text(bundled_path(name))
    ]

    started = time.perf_counter()
    samples = pipe_lines(short_lines(sentences, args.lines), args.lines)
    grown = growth(samples)
    figures = {"lines": args.lines, "begin_mb": samples[len(samples) // 10], "end_mb": samples[-1]}
    figures |= {"growth_mb": grown, "seconds": time.perf_counter() - started}
    print(", ".join(f"{name} {value:.1f}" for name, value in figures.items()))
    assert grown <= args.growth, f"memory has grown by {grown:.1f} MB"

    several = list(itertools.islice(itertools.cycle(sentences), args.each))
    compare_threads(hiero.load(), several, args.threads)
    print(f"{args.threads} threads of {args.each} translations: equal to those of one thread")
    append_result("soak", {**figures, "threads": args.threads, "each": args.each})


if __name__ == "__main__":
    main()
