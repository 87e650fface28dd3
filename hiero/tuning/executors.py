"""Executors of tasks: threads, processes, or a Dask cluster, each a ``concurrent.futures.Executor``.

Dask's scheduler distributes tasks, and reassigns those of a dead worker.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from concurrent.futures import ThreadPoolExecutor as Threads
from concurrent.futures.process import BrokenProcessPool
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import hiero
from hiero.core.errors import ConfigError, FormatError, HieroError
from hiero.core.parallel import process_pools, stop
from hiero.core.progress import Progress, SilentProgress
from hiero.tuning.shard import is_task_done

Task = TypeVar("Task")

DASK = "dask://"
ATTEMPTS = 3  # to run a task whose process died
POLL_INTERVAL = 0.3  # seconds between updates of the progress
SLOW_FILES = 60.0  # seconds until a file written on another machine is visible here, at most


class TaskCancelled(HieroError):
    """A task was cancelled, but not by this process."""


def check_executor(name: str) -> None:
    if name not in ("threads", "processes") and not (name.startswith(DASK) and name != DASK):
        raise ConfigError(f"executor: found {name!r}, expected threads, processes or {DASK}HOST:PORT")


@contextlib.contextmanager
def open_executor(
    name: str, workers: int, progress: Progress | None = None
) -> Iterator[Callable[[], Executor]]:
    """Yield a function that returns the executor, or a new one if the last one broke.

    Leaving the block before all tasks are done interrupts each after its current sentence.
    """
    check_executor(name)
    if name == "threads":
        context = _threads(workers)
    elif name == "processes":
        context = process_pools(workers)
    else:
        context = dask_executor(name.removeprefix(DASK), progress or SilentProgress())
    with context as current:
        yield current


@contextlib.contextmanager
def _threads(workers: int) -> Iterator[Callable[[], Executor]]:
    executor = Threads(workers, thread_name_prefix="hiero-tune")
    try:
        yield lambda: executor
    finally:
        stop.set()
        executor.shutdown(wait=True, cancel_futures=True)
        stop.clear()


def run_all(
    current: Callable[[], Executor],
    function: Callable[[Task], Any],
    tasks: Sequence[Task],
    show_progress: Callable[[], None],
) -> None:
    """Run all tasks, until the first error. ``show_progress`` is called at short intervals.

    A task whose process died is tried again; results it had finished are on disk. If ``function`` returns
    the name of its output, the output must become visible on this machine.
    """
    todo = list(tasks)
    for _ in range(ATTEMPTS):
        todo = _attempt(current(), function, todo, show_progress)
        if not todo:
            return
    failed = "1 task" if len(todo) == 1 else f"{len(todo)} tasks"
    raise HieroError(f"{failed} failed: the process died {ATTEMPTS} times (out of memory?)")


def _attempt(
    executor: Executor,
    function: Callable[[Task], Any],
    tasks: Sequence[Task],
    show_progress: Callable[[], None],
) -> list[Task]:
    """Run all tasks; return those whose process died."""
    waiting: dict[Future[Any], Task] = {}
    died: list[Task] = []
    try:
        for task in tasks:
            try:
                waiting[executor.submit(function, task)] = task
            except BrokenProcessPool:
                died.append(task)
        while waiting:
            done, _ = wait(waiting, timeout=POLL_INTERVAL, return_when=FIRST_COMPLETED)
            show_progress()
            if isinstance(executor, DaskExecutor) and not done:
                executor.check_workers()
            for future in done:
                task = waiting.pop(future)
                try:
                    _wait_for_output(future.result(), show_progress)
                except BrokenProcessPool:
                    died.append(task)
                except CancelledError:
                    raise TaskCancelled("executor: a task was cancelled") from None
    finally:
        for future in waiting:
            future.cancel()
    return died


def _wait_for_output(out: Any, show_progress: Callable[[], None]) -> None:
    """Wait until the output of a task is visible on this machine."""
    until = time.monotonic() + SLOW_FILES
    while isinstance(out, str) and not is_task_done(out):
        if time.monotonic() > until:
            hint = "do all workers share a file system?"
            raise HieroError(f"{out}.npz: found no such file, expected the output of a worker ({hint})")
        time.sleep(POLL_INTERVAL)
        show_progress()


SECONDS = 30  # to reach the scheduler
CHECK_SECONDS = 5.0  # between two counts of the workers
PATIENCE = 600.0  # seconds without any worker, before the run ends
LOGGERS = ("distributed", "tornado", "asyncio")


@contextlib.contextmanager
def dask_executor(address: str, progress: Progress) -> Iterator[Callable[[], Executor]]:
    """Yield a function that returns the executor of the cluster with its scheduler at HOST:PORT."""
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise ConfigError("executor: dask is not installed (pip install 'hiero-mt[dask]')") from None
    with contextlib.ExitStack() as stack:
        stack.enter_context(_without_logs())
        try:
            client = distributed.Client(address, timeout=SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise HieroError(f"executor: no Dask scheduler answers at {address} ({reason})") from None
        stack.callback(client.close, SECONDS)
        _check_cluster(client, address, progress)
        executor = DaskExecutor(client, address, progress)
        stack.callback(executor.shutdown, wait=False)
        try:
            yield lambda: executor
        except TaskCancelled:
            if client.status == "running":
                raise
            problem = f"executor: the connection to the Dask scheduler at {address} is lost"
            raise HieroError(f"{problem} (--resume continues the run)") from None
        except distributed.KilledWorker as error:
            hint = "out of memory? see the logs of the workers"
            raise HieroError(f"executor: one worker after another died ({hint})") from error
        except FormatError as error:
            raise _explained(error) from None


class DaskExecutor(Executor):
    """The workers of a cluster. Without any, Dask's own executor would wait for ever."""

    def __init__(self, client: Any, address: str, progress: Progress) -> None:
        self._client, self._address, self._progress = client, address, progress
        self._executor: Executor = client.get_executor(pure=False)
        self._next_check = 0.0
        self._alone_since: float | None = None  # when it was first seen that there are no workers

    def submit(self, function: Callable[..., Any], /, *args: Any, **keys: Any) -> Future[Any]:
        return self._executor.submit(function, *args, **keys)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._executor.shutdown(wait=wait)

    def check_workers(self) -> None:
        """Report that there are no workers, or raise an error if there have been none for long."""
        now = time.monotonic()
        if now < self._next_check:
            return
        self._next_check = now + CHECK_SECONDS
        try:
            has_workers = bool(self._client.nthreads())
        except (OSError, RuntimeError, CancelledError, TimeoutError):
            return  # the scheduler does not answer, and the tasks will be cancelled
        cluster = f"the Dask cluster at {self._address}"
        if has_workers:
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = now
            self._progress.say(f"{cluster} has no workers left; waiting up to {PATIENCE:.0f} s for another")
        elif now - self._alone_since > PATIENCE:
            problem = f"executor: {cluster} has had no workers for {PATIENCE:.0f} s"
            raise HieroError(f"{problem} (--resume continues the run)")


@contextlib.contextmanager
def _without_logs() -> Iterator[None]:
    """Log nothing of Dask, whose errors are reported once: each of its modules has a logger with a level."""
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] in LOGGERS]
    levels = {name: logging.getLogger(name).level for name in {*names, *LOGGERS}}
    for name in levels:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def _check_cluster(client: Any, address: str, progress: Progress) -> None:
    """Check that all machines run the same versions: else results differ, or tasks cannot be unpickled."""
    _check_versions(f"the scheduler {address}", lambda: client.run_on_scheduler(executor_versions))
    if not client.nthreads():
        progress.say(f"the Dask cluster at {address} has no workers yet; waiting for the first")
        client.wait_for_workers(1)
    for worker in client.nthreads():
        _check_versions(f"worker {worker}", functools.partial(_of_worker, client, worker))


def _of_worker(client: Any, worker: str) -> dict[str, str]:
    found: dict[str, str] = client.run(executor_versions, workers=[worker])[worker]
    return found


def _check_versions(machine: str, fetch: Callable[[], dict[str, str]]) -> None:
    try:
        theirs = fetch()
    except ImportError as error:
        raise HieroError(f"executor: {machine}: hiero is not installed ({error})") from None
    for name, version in executor_versions().items():
        if theirs.get(name) != version:
            expected = f"expected {version}, as on this machine"
            raise HieroError(f"executor: {machine}: found {name} {theirs.get(name)}, {expected}")


def executor_versions() -> dict[str, str]:
    """Versions of the packages that can change a result, to be the same on all machines of an executor."""
    return {"hiero": hiero.__version__} | {name: metadata.version(name) for name in ("numpy", "numba")}


def _explained(error: FormatError) -> FormatError:
    """Explain the error of a worker that lacks a file which exists on this machine."""
    if error.found != "no such file" or not Path(error.path).exists():
        return error
    hint = "it exists on this machine: workers need the same files under the same paths"
    return FormatError(
        error.path, error.line, found="no such file on a worker", expected=error.expected, hint=hint
    )
