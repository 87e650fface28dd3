"""Damaged files of every kind: results, or an error of one line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.fuzz import KINDS
from benchmarks.mutants import BAD, FileKind, run_mutants
from hiero.core.errors import HieroError
from tests.conftest import INTERPRETED, PROJECT

CASES = 3 if INTERPRETED else 200
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs child processes that are forked")


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """The outcomes of all mutants, by kind; in a process without threads, which are not forked."""
    command = [sys.executable, "-m", "benchmarks.fuzz", "--cases", str(CASES), "--seed", "1", "--json"]
    process = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    outcomes: dict[str, Any] = json.loads(process.stdout)
    return outcomes


@pytest.mark.parametrize("kind", KINDS)
def test_mutants_give_results_or_one_line(found: dict[str, Any], kind: str) -> None:
    counts = found[kind]
    assert counts.pop("errors") == []
    counts.pop("seconds")
    assert sum(counts.values()) == CASES
    assert not set(counts) & set(BAD)
    assert INTERPRETED or counts["refused"] > CASES / 10


# ---- the harness itself


def crash(path: Path) -> object:
    """A use that goes wrong in the way that the file says."""
    how = path.read_bytes()[:1]
    if how == b"k":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == b"t":
        raise KeyError("unexpected")
    elif how == b"m":
        return len(bytes(3 << 30))
    elif how == b"h":
        while True:
            pass
    elif how == b"2":
        raise HieroError("one\ntwo")
    elif how == b"1":
        raise HieroError("one")
    return how


@pytest.mark.skipif(sys.platform != "linux", reason="needs limits of memory")
def test_every_way_to_go_wrong_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.txt").write_bytes(b"fine")
    ways = iter(b"ktmh21ef")

    def mutant(_kind: object, specimen: Path, to: Path, rng: Any) -> bool:
        number = int(rng.integers(1 << 62))
        to.write_bytes(specimen.read_bytes() if ways_of[number] == b"e" else ways_of[number] + b"ine")
        return False

    ways_of = {
        int(np.random.default_rng([7, number]).integers(1 << 62)): bytes([way])
        for number, way in enumerate(ways)
    }
    monkeypatch.setattr("benchmarks.mutants.make_mutant", mutant)
    kind = FileKind("x.txt", crash)
    counts = run_mutants(kind, tmp_path / "x.txt", tmp_path / "mutants", (7,), range(8), seconds=1.0)
    expected = ["signal", "traceback", "memory", "hang", "lines", "refused", "equal", "equal"]
    assert counts.outcomes == Counter(expected)
    assert [number for number, _, _ in counts.bad] == [0, 1, 2, 3, 4]
