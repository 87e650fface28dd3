"""Run hiero commands in separate processes, and measure time and memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).resolve().parents[1]
LOOK = 0.05  # seconds between samples


class Usage(NamedTuple):
    """Time and memory of a process."""

    cpu: float  # seconds, of user and system, all threads
    wall: float  # seconds
    peak_mb: float  # resident memory, including mapped files
    own_mb: float  # without mapped files; 0 without Linux's /proc


def hiero(*arguments: str | Path, out: Path | None = None) -> Usage:
    """Run a command, its standard output to a file or discarded; exit with its code if it fails."""
    command = [sys.executable, "-m", "hiero.cli.main", *map(str, arguments)]
    start, own = time.perf_counter(), 0.0
    with open(out or os.devnull, "wb") as stream:
        child = subprocess.Popen(command, cwd=PROJECT, stdout=stream)
        while True:
            ended, status, usage = os.wait4(child.pid, os.WNOHANG)
            if ended:
                break
            own = max(own, _own_mb(child.pid))
            time.sleep(LOOK)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)}: exit code {child.returncode}")
    kilobytes = usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return Usage(usage.ru_utime + usage.ru_stime, time.perf_counter() - start, kilobytes / 1024, own)


def _own_mb(process: int) -> float:
    try:
        lines = Path(f"/proc/{process}/status").read_text().split("\n")
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon:"))


def least(runs: list[Usage]) -> Usage:
    """The run with the least CPU time."""
    return min(runs, key=lambda usage: usage.cpu)


def bytes_in(path: Path) -> int:
    """The size of a file, or of all files in a directory."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
