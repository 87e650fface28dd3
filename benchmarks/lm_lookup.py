"""CPU time of scoring text: hiero's kernels and ``kenlm.Model.score``, in one run over the same long lines.

    python benchmarks/lm_lookup.py LM.arpa[.gz] TEXT[.gz] [--lines 60000]

KenLM's time includes splitting a line into words and hashing them. hiero's time is given twice: from word
ids, as in the search, and from bytes, with splitting and look-up. The run fails unless scores are equal.
Times are minima over rounds in which the two alternate.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import kenlm
import numpy as np

from benchmarks.results import append_result
from hiero.core.jit import compile_timer
from hiero.core.text import read_chunks, read_lines
from hiero.lm.load import compile_language_model, load_language_models
from hiero.lm.table_kernels import look_up_words_kernel, score_sentences_kernel

LINE = 500  # lines of text in one line to score, so that the cost of a call does not count
MAX_RATIO = 1.3


def cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def long_lines(path: Path, lines: int) -> list[bytes]:
    text = [b" ".join(line.split()) for line, _ in zip(read_lines(path), range(lines), strict=False)]
    return [b" ".join(text[at : at + LINE]) for at in range(0, len(text), LINE)]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lm", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--lines", type=int, default=60000)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    lines = long_lines(args.text, args.lines)
    with tempfile.TemporaryDirectory() as folder:
        return compare(args.lm, lines, args.rounds, Path(folder))


def compare(source: Path, lines: list[bytes], rounds: int, folder: Path) -> int:
    arpa = folder / "lm.arpa"  # KenLM's module may be built without gz
    with arpa.open("wb") as out:
        out.writelines(chunk.data for chunk in read_chunks(source))
    config = kenlm.Config()
    config.show_progress, config.arpa_complain = False, kenlm.ARPALoadComplain.NONE
    rival = kenlm.Model(str(arpa), config)
    load_language_models([("LM", arpa)])  # compiles
    reading = cpu(lambda: load_language_models([("LM", arpa)]))
    compile_language_model(arpa, folder / "lm")
    opening = cpu(lambda: load_language_models([("LM", folder / "lm")]))

    text = np.frombuffer(b"".join(line + b"\n" for line in lines), np.uint8)
    first = np.zeros(len(lines) + 1, np.int64)
    word, span = np.empty(len(text) // 2, np.int32), np.empty((len(text) // 2, 2), np.int64)
    worst, figures = 0.0, dict[str, object](lm=source.name)
    for form, path in (("in memory", arpa), ("mapped", folder / "lm")):
        models = load_language_models([("LM", path)])
        _, words = look_up_words_kernel(models.tables[0], text, first, word, span)
        total = words + len(lines)
        prob, length = np.empty(total, np.float32), np.empty(total, np.int32)

        def from_ids(arrays=models.arrays, words=words, prob=prob, length=length) -> None:  # type: ignore[no-untyped-def]
            score_sentences_kernel(arrays, 0, first, word[:words], True, prob, length)

        def from_bytes(table=models.tables[0], from_ids=from_ids) -> None:  # type: ignore[no-untyped-def]
            look_up_words_kernel(table, text, first, word, span)
            from_ids()

        ways: dict[str, Callable[[], object]] = {
            "kenlm.Model.score": lambda: [rival.score(line) for line in lines],
            "ours from ids": from_ids,
            "ours from bytes": from_bytes,
        }
        for work in ways.values():
            work()
        check(rival, lines, prob, first)
        times = {way: [0.0] * rounds for way in ways}
        for r in range(rounds):
            for way, work in ways.items():
                times[way][r] = cpu(work)
        least = {way: min(spent) for way, spent in times.items()}
        print(f"{form}: {total} words, n-grams found of {length.mean():.2f} words on average")
        for way, spent in least.items():
            ratio = spent / least["kenlm.Model.score"]
            print(f"  {way:<18}{spent / total * 1e9:7.1f} ns a word, ratio {ratio:.2f}")
            worst = max(worst, ratio)
            figures[f"{form}, {way}, ns a word"] = spent / total * 1e9
    print(f"reading ARPA {reading:.2f} s, opening the mapped form {opening * 1e3:.1f} ms of CPU")
    print(f"compiling kernels {compile_timer.seconds:.1f} s")
    append_result("lm_lookup", figures | {"read_s": reading, "open_s": opening})
    return 0 if worst <= MAX_RATIO else 1


def check(rival: kenlm.Model, lines: list[bytes], prob: np.ndarray, first: np.ndarray) -> None:
    """Compare totals, summed word by word in single precision as in KenLM."""
    ends = first + np.arange(len(first))
    for line, begin, end in zip(lines, ends[:-1], ends[1:], strict=True):
        assert np.add.accumulate(prob[begin:end])[-1] == np.float32(rival.score(line))


if __name__ == "__main__":
    sys.exit(main())
