"""Tasks on a Dask cluster: its scheduler distributes them, and reassigns those of a dead worker."""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from importlib import metadata
from pathlib import Path
from typing import Any

import hiero
from hiero.core.errors import ConfigError, FormatError, HieroError

SECONDS = 30  # to reach the scheduler


@contextlib.contextmanager
def dask_executor(address: str, say: Callable[[str], None]) -> Iterator[Callable[[], Executor]]:
    """Yield a function that returns the executor of the cluster with its scheduler at HOST:PORT."""
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise ConfigError("executor: dask is not installed (pip install 'hiero-mt[dask]')") from None
    # Errors are reported once, below.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with contextlib.ExitStack() as stack:
        try:
            client = distributed.Client(address, timeout=SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise HieroError(f"executor: no Dask scheduler answers at {address} ({reason})") from None
        stack.callback(client.close, SECONDS)
        _check_cluster(client, address, say)
        executor: Executor = client.get_executor(pure=False)
        stack.callback(executor.shutdown, wait=False)
        try:
            yield lambda: executor
        except distributed.KilledWorker as error:
            hint = "out of memory? see the logs of the workers"
            raise HieroError(f"executor: one worker after another died ({hint})") from error
        except FormatError as error:
            raise _explained(error) from None


def _check_cluster(client: Any, address: str, say: Callable[[str], None]) -> None:
    """Check that all machines run the same versions: else results differ, or tasks cannot be unpickled."""
    _check_versions(f"the scheduler {address}", lambda: client.run_on_scheduler(program))
    if not client.nthreads():
        say(f"the Dask cluster at {address} has no workers yet; waiting for the first")
        client.wait_for_workers(1)
    for worker in client.nthreads():
        _check_versions(f"worker {worker}", functools.partial(_of_worker, client, worker))


def _of_worker(client: Any, worker: str) -> dict[str, str]:
    found: dict[str, str] = client.run(program, workers=[worker])[worker]
    return found


def _check_versions(machine: str, fetch: Callable[[], dict[str, str]]) -> None:
    try:
        theirs = fetch()
    except ImportError as error:
        raise HieroError(f"executor: {machine}: hiero is not installed ({error})") from None
    for name, version in program().items():
        if theirs.get(name) != version:
            expected = f"expected {version}, as on this machine"
            raise HieroError(f"executor: {machine}: found {name} {theirs.get(name)}, {expected}")


def program() -> dict[str, str]:
    """Versions of the packages that can change a result."""
    return {"hiero": hiero.__version__} | {name: metadata.version(name) for name in ("numpy", "numba")}


def _explained(error: FormatError) -> FormatError:
    """Explain the error of a worker that lacks a file which exists on this machine."""
    if error.found != "no such file" or not Path(error.path).exists():
        return error
    hint = "it exists on this machine: workers need the same files under the same paths"
    return FormatError(
        error.path, error.line, found="no such file on a worker", expected=error.expected, hint=hint
    )
