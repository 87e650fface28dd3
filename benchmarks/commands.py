"""Commands of hiero in processes of their own: what they cost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).resolve().parents[1]


class Usage(NamedTuple):
    """What a process took."""

    cpu: float  # seconds, of user and system, all threads
    wall: float  # seconds
    peak_mb: float  # of resident memory; pages of mapped files count while they are mapped


def hiero(*arguments: str | Path, out: Path | None = None) -> Usage:
    """Run a command, its standard output to a file, or nowhere; leave with its exit code if it fails."""
    command = [sys.executable, "-m", "hiero.cli.main", *map(str, arguments)]
    start = time.perf_counter()
    with open(out or os.devnull, "wb") as stream:
        child = subprocess.Popen(command, cwd=PROJECT, stdout=stream)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)}: exit code {child.returncode}")
    kilobytes = usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return Usage(usage.ru_utime + usage.ru_stime, time.perf_counter() - start, kilobytes / 1024)


def least(runs: list[Usage]) -> Usage:
    """The run with the least CPU time."""
    return min(runs, key=lambda usage: usage.cpu)


def bytes_in(path: Path) -> int:
    """Of a file, or of all files in a directory."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
