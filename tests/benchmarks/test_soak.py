"""benchmarks/soak.py, with fewer lines: memory while text is piped, and threads that share a model."""

from __future__ import annotations

from pathlib import Path

import pytest

import hiero
from benchmarks.soak import compare_threads, growth, pipe_lines, short_lines
from tests.conftest import INTERPRETED

WORDS = [f"w{number}" for number in range(40)]
SENTENCES = [" ".join(WORDS[(7 * at + 3 * i) % 40] for i in range(at % 14)) for at in range(60)]
RULES = [f"[X] ||| {word} ||| {word.upper()} {at % 3} ||| p={at % 5}" for at, word in enumerate(WORDS)]
RULES += [f"[X] ||| {word} [X,1] ||| [1] {word} ||| p={at % 7}" for at, word in enumerate(WORDS)]


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_memory_is_constant(tmp_path: Path) -> None:
    (tmp_path / "grammar").write_text("".join(f"{rule}\n" for rule in RULES))
    (tmp_path / "weights").write_text("p -1\nGlue -1\n")
    options = ["-g", str(tmp_path / "grammar"), "-w", str(tmp_path / "weights")]
    samples = pipe_lines(short_lines(SENTENCES, 4000), 4000, options)
    assert len(samples) == 99
    assert growth(samples) < 5  # MB; 4000 forests are 40


def test_threads_find_what_one_thread_does() -> None:
    model = hiero.load(rules=RULES, weights={"p": -1.0, "Glue": -1.0})
    compare_threads(model, SENTENCES[: 8 if INTERPRETED else 60], 4)


def test_lines() -> None:
    lines = list(short_lines(SENTENCES, 1000))
    assert len(lines) == 1000
    assert {len(line.split()) for line in lines} <= set(range(1, 7))
    assert len(set(lines)) > 200
