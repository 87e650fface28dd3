"""Where tasks run: threads, processes, or a Dask cluster. All of them are ``concurrent.futures.Executor``."""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures import ProcessPoolExecutor as Processes
from concurrent.futures import ThreadPoolExecutor as Threads
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from hiero.errors import ConfigError, HieroError

Task = TypeVar("Task")

DASK = "dask://"
ATTEMPTS = 3  # at a task whose process died
PATIENCE = 0.3  # seconds between looks at the progress


def check_executor(name: str) -> None:
    if name not in ("threads", "processes") and not name.startswith(DASK):
        raise ConfigError(f"executor: found {name!r}, expected threads, processes or {DASK}HOST:PORT")


@contextlib.contextmanager
def open_executor(name: str, workers: int) -> Iterator[Callable[[], Executor]]:
    """A function that gives an executor: the one there is, or a new one where the last one broke."""
    check_executor(name)
    with contextlib.ExitStack() as stack:
        if name.startswith(DASK):
            executor = _dask(name.removeprefix(DASK), stack)
            yield lambda: executor
            return
        made: list[Executor] = []

        def current() -> Executor:
            if not made or getattr(made[-1], "_broken", False):
                made.append(_local(name, workers))
            return made[-1]

        try:
            yield current
        finally:
            for executor in made:
                executor.shutdown(wait=False, cancel_futures=True)


def _local(name: str, workers: int) -> Executor:
    if name == "threads":
        return Threads(workers, thread_name_prefix="hiero-tune")
    # Not by fork: the parent has threads.
    return Processes(workers, mp_context=multiprocessing.get_context("spawn"))


def _dask(address: str, stack: contextlib.ExitStack) -> Executor:
    try:
        from distributed import Client  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise ConfigError("executor: dask is not installed (pip install 'hiero-mt[dask]')") from None
    try:
        client = stack.enter_context(Client(address, timeout=30, set_as_default=False))
    except (OSError, ValueError) as error:
        raise HieroError(f"executor: found no Dask scheduler at {address} ({error})") from None
    executor: Executor = client.get_executor(pure=False)
    return executor


def run_all(
    current: Callable[[], Executor],
    function: Callable[[Task], Any],
    tasks: Sequence[Task],
    look: Callable[[], None],
) -> None:
    """Run all tasks; the first error ends it. ``look`` is called all the time, to show progress.

    A task whose process died is tried again; what it had finished, it finds on disk.
    """
    todo = list(tasks)
    for _ in range(ATTEMPTS):
        executor = current()
        waiting: dict[Future[Any], Task] = {executor.submit(function, task): task for task in todo}
        todo = []
        try:
            while waiting:
                done, _ = wait(waiting, timeout=PATIENCE, return_when=FIRST_COMPLETED)
                look()
                for future in done:
                    task = waiting.pop(future)
                    try:
                        future.result()
                    except BrokenProcessPool:
                        todo.append(task)
        finally:
            for future in waiting:
                future.cancel()
        if not todo:
            return
    raise HieroError(f"{len(todo)} tasks: their processes died {ATTEMPTS} times (out of memory?)")
