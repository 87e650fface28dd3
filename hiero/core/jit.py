"""Decorators that compile kernels, and the time spent compiling.

Kernels are plain functions over numbers and arrays. ``@kernel`` compiles them once per machine and keeps
the machine code in a cache directory named after a digest of every source that has a kernel: numba's own
cache checks one file at a time and would keep a kernel whose callee in another file has changed.

With ``NUMBA_DISABLE_JIT=1`` the same functions run as ordinary Python, for coverage and for debugging.
"""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numba import config, njit
from numba.core import event
from numba.core.options import DefaultOptions

F = TypeVar("F", bound=Callable[..., Any])


def _cache_directory() -> str:
    if os.environ.get("NUMBA_CACHE_DIR"):
        return os.environ["NUMBA_CACHE_DIR"]
    digest = hashlib.sha256(f"{config.BOUNDSCHECK}".encode())
    package = Path(__file__).parents[1]
    for source in sorted(package.rglob("*.py")):
        code = source.read_bytes()
        if b"@kernel" in code or b"@leaf" in code or b"NamedTuple" in code:
            digest.update(source.relative_to(package).as_posix().encode() + code)
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    for root in (base, Path(tempfile.gettempdir())):
        directory = root / "hiero" / f"kernels-{digest.hexdigest()[:16]}"
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(directory, os.W_OK):
            return str(directory)
    return ""


CACHE_DIRECTORY = _cache_directory()


def kernel(function: F) -> F:
    """Compile a function over arrays: no GIL, cached on disk, IEEE arithmetic (never fastmath)."""
    return _compiled(function)


def leaf(function: F) -> F:
    """Compile a kernel for inner loops: inlined into its callers, without reference counts.

    An ordinary kernel that is called with a NamedTuple increments and decrements a reference count for every
    array in it, one locked instruction each: an n-gram look-up took twice as long. A leaf takes arrays and
    returns numbers; it must not make, slice or return an array, nor pass arrays to a function that is not a
    leaf.
    """
    return _compiled(function, **LEAF_OPTIONS)


# numba does not document the second option, but all supported versions have it.
LEAF_OPTIONS = {"forceinline": True} | ({"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {})


def _compiled(function: F, **options: bool) -> F:
    if config.DISABLE_JIT:
        # Hashes wrap around; numpy scalars, unlike machine code, warn when they do.
        @functools.wraps(function)
        def interpreted(*arguments: Any) -> Any:
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                return function(*arguments)

        return interpreted  # type: ignore[return-value]
    # numba reads the directory when the function is decorated: set it for this package only.
    theirs, config.CACHE_DIR = config.CACHE_DIR, CACHE_DIRECTORY
    try:
        settings = {
            "cache": bool(CACHE_DIRECTORY),
            "nogil": True,
            "error_model": "numpy",
            # Kernels are not called from C: skip compiling that wrapper.
            "no_cfunc_wrapper": True,
        }
        settings |= options
        compiled: F = njit(**settings)(function)
    finally:
        config.CACHE_DIR = theirs
    return compiled


class CompileTimer(event.Listener):  # type: ignore[misc]
    """Total seconds spent compiling (not loading from the cache); calls ``on_first`` once, if given.

    Only the outermost compilation counts: a kernel's callees are compiled inside its own time.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.cpu_seconds = 0.0
        self.on_first: Callable[[], None] | None = None
        self._local = threading.local()

    def here(self) -> float:
        """CPU seconds that this thread has spent compiling."""
        return getattr(self._local, "cpu", 0.0)

    def on_start(self, _event: object) -> None:
        depth = getattr(self._local, "depth", 0)
        if depth == 0:
            self._local.started = time.perf_counter()
            self._local.cpu_started = time.thread_time()
        self._local.depth = depth + 1
        if self.on_first is not None:
            callback, self.on_first = self.on_first, None
            callback()

    def on_end(self, _event: object) -> None:
        self._local.depth -= 1
        if self._local.depth == 0:
            self.seconds += time.perf_counter() - self._local.started
            spent = time.thread_time() - self._local.cpu_started
            self._local.cpu = self.here() + spent
            self.cpu_seconds += spent


compile_timer = CompileTimer()
event.register("numba:compile", compile_timer)
