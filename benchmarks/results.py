"""Measurements of code in this process, and results as lines of ``results.jsonl``."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path

RESULTS = Path(__file__).parent / "results.jsonl"
PACKAGES = ("numpy", "numba", "scipy")


def append_result(benchmark: str, figures: Mapping[str, object]) -> None:
    """Append a line: benchmark, date, commit, processor, versions and figures."""
    versions = {"python": platform.python_version()} | {name: metadata.version(name) for name in PACKAGES}
    line = {
        "benchmark": benchmark,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": commit(),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "versions": versions,
        "figures": {name: rounded(figure) for name, figure in figures.items()},
    }
    with RESULTS.open("a", encoding="utf-8") as out:
        out.write(json.dumps(line, ensure_ascii=False) + "\n")


def commit() -> str:
    """The commit of the sources, with ``-dirty`` if they differ; "unknown" outside of a repository."""
    command = [
        "git",
        "-C",
        str(RESULTS.parent),
        "describe",
        "--always",
        "--abbrev=12",
        "--dirty",
        "--exclude=*",
    ]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    return next(
        (line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine()
    )


def rounded(figure: object) -> object:
    return float(f"{figure:.6g}") if isinstance(figure, float) else figure


def best(run: Callable[[], object], times: int) -> float:
    """The least CPU seconds of several runs after the first, which compiles."""
    run()
    seconds = []
    for _ in range(times):
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    return min(seconds)


class Rows:
    """Rows of times, printed as they are added; ``figures`` has them in milliseconds."""

    def __init__(self, width: int) -> None:
        self.width, self.figures = width, dict[str, object]()

    def __call__(self, name: str, seconds: float, per: int = 0, unit: str = "") -> None:
        """Add a row; ``per``: the number of units in it, whose mean time is printed, too."""
        share = f"{seconds / per * 1e9:12.1f} ns a {unit}" if per else ""
        print(f"{name:{self.width}}{seconds * 1e3:10.2f} ms{share}")
        self.figures[f"{name}, ms"] = seconds * 1e3


def peak_mb() -> float:
    """The peak of the resident memory of this process, including mapped files."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1 << 20 if sys.platform == "darwin" else 1 << 10
    )
