"""Resource usage: wall, CPU and compile time, and peak memory."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path

from hiero.core.jit import compile_timer

try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]

_RESET, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


class Usage:
    """Measures from its creation on."""

    def __init__(self) -> None:
        # Linux can reset the peak; elsewhere it is that of the whole process.
        with contextlib.suppress(OSError):
            _RESET.write_text("5")
        self._wall, self._cpu = time.perf_counter(), _cpu_seconds()
        self._compiling = compile_timer.cpu_seconds

    def as_dict(self) -> dict[str, float]:
        """Seconds and megabytes so far.

        CPU time is that of all threads and of processes that have ended; compiling is part of it.
        """
        return {
            "wall_seconds": round(time.perf_counter() - self._wall, 3),
            "cpu_seconds": round(_cpu_seconds() - self._cpu, 3),
            "compile_seconds": round(compile_timer.cpu_seconds - self._compiling, 3),
            "peak_mb": round(peak_mb(), 1),
        }


def _cpu_seconds() -> float:
    if not resource:
        return time.process_time()
    used = [resource.getrusage(scope) for scope in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def peak_mb() -> float:
    """The most memory of this process since its start, or since the last ``Usage``."""
    try:
        lines = _STATUS.read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if resource else 0
        return peak / (2**20 if sys.platform == "darwin" else 2**10)
