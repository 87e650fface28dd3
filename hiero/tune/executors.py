"""Where tasks run: threads, processes, or a Dask cluster. All of them are ``concurrent.futures.Executor``."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from concurrent.futures import ProcessPoolExecutor as Processes
from concurrent.futures import ThreadPoolExecutor as Threads
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from hiero.errors import ConfigError, HieroError
from hiero.tune.decoding import is_done, stop

Task = TypeVar("Task")

DASK = "dask://"
ATTEMPTS = 3  # at a task whose process died
PATIENCE = 0.3  # seconds between looks at the progress
SLOW_FILES = 60.0  # seconds that a shared file system may take to show here what was written elsewhere


def check_executor(name: str) -> None:
    if name not in ("threads", "processes") and not (name.startswith(DASK) and name != DASK):
        raise ConfigError(f"executor: found {name!r}, expected threads, processes or {DASK}HOST:PORT")


@contextlib.contextmanager
def open_executor(
    name: str, workers: int, say: Callable[[str], None] = lambda note: None
) -> Iterator[Callable[[], Executor]]:
    """A function that gives an executor: the one there is, or a new one where the last one broke.

    Who leaves the block before all tasks are done waits for no more than a sentence of each.
    """
    check_executor(name)
    if name == "threads":
        context = _threads(workers)
    elif name == "processes":
        context = _processes(workers)
    else:
        from hiero.tune.dask import dask_executor

        context = dask_executor(name.removeprefix(DASK), say)
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


@contextlib.contextmanager
def _processes(workers: int) -> Iterator[Callable[[], Executor]]:
    """Processes that end with this one, however it ends."""
    spawning = multiprocessing.get_context("spawn")  # not fork: the parent has threads
    there, here = spawning.Pipe(duplex=False)
    made: list[Processes] = []

    def current() -> Executor:
        if not made or getattr(made[-1], "_broken", False):
            made.append(Processes(workers, spawning, initializer=_begin, initargs=(there,)))
        return made[-1]

    with there, here:
        try:
            yield current
        finally:
            here.close()
            for executor in made:
                executor.shutdown(wait=True, cancel_futures=True)


def _begin(parent: multiprocessing.connection.Connection) -> None:
    """The first thing that a process does."""
    # Ctrl-C goes to all processes of a terminal; the parent is the one who decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: multiprocessing.connection.Connection) -> None:
    """The other end of the pipe is the parent's: when it closes, nobody wants our work any more."""
    multiprocessing.connection.wait([parent])
    stop.set()
    process = multiprocessing.parent_process()
    if process is None or not process.is_alive():
        os._exit(1)  # else we would wait for tasks for ever


def run_all(
    current: Callable[[], Executor],
    function: Callable[[Task], Any],
    tasks: Sequence[Task],
    look: Callable[[], None],
) -> None:
    """Run all tasks; the first error ends it. ``look`` is called all the time, to show progress.

    A task whose process died is tried again; what it had finished, it finds on disk. A function that returns
    where it has put its result must have put it there, for us to see.
    """
    todo = list(tasks)
    for _ in range(ATTEMPTS):
        todo = _attempt(current(), function, todo, look)
        if not todo:
            return
    what = "task" if len(todo) == 1 else "tasks"
    raise HieroError(f"{len(todo)} {what}: found a process that died {ATTEMPTS} times, expected more memory")


def _attempt(
    executor: Executor, function: Callable[[Task], Any], tasks: Sequence[Task], look: Callable[[], None]
) -> list[Task]:
    """Run all tasks; those whose process died."""
    waiting: dict[Future[Any], Task] = {}
    died: list[Task] = []
    try:
        for task in tasks:
            try:
                waiting[executor.submit(function, task)] = task
            except BrokenProcessPool:
                died.append(task)
        while waiting:
            done, _ = wait(waiting, timeout=PATIENCE, return_when=FIRST_COMPLETED)
            look()
            for future in done:
                task = waiting.pop(future)
                try:
                    _see(future.result(), look)
                except BrokenProcessPool:
                    died.append(task)
                except CancelledError:
                    raise HieroError(
                        "executor: found a task that was cancelled, expected its result"
                    ) from None
    finally:
        for future in waiting:
            future.cancel()
    return died


def _see(out: Any, look: Callable[[], None]) -> None:
    """Wait until the result of a task is where it says."""
    until = time.monotonic() + SLOW_FILES
    while isinstance(out, str) and not is_done(out):
        if time.monotonic() > until:
            hint = "do all see the same file system?"
            raise HieroError(f"{out}.npz: found no such file, expected what a worker has written ({hint})")
        time.sleep(PATIENCE)
        look()
