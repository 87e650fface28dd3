"""Executors of tasks: threads, processes, or a Dask cluster, each a ``concurrent.futures.Executor``."""

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

from hiero.core.errors import ConfigError, HieroError
from hiero.tuning.shard import is_done, stop

Task = TypeVar("Task")

DASK = "dask://"
ATTEMPTS = 3  # to run a task whose process died
POLL_INTERVAL = 0.3  # seconds between updates of the progress
SLOW_FILES = 60.0  # seconds until a file written on another machine is visible here, at most


def check_executor(name: str) -> None:
    if name not in ("threads", "processes") and not (name.startswith(DASK) and name != DASK):
        raise ConfigError(f"executor: found {name!r}, expected threads, processes or {DASK}HOST:PORT")


@contextlib.contextmanager
def open_executor(
    name: str, workers: int, say: Callable[[str], None] = lambda note: None
) -> Iterator[Callable[[], Executor]]:
    """Yield a function that returns the executor, or a new one if the last one broke.

    Leaving the block before all tasks are done interrupts each after its current sentence.
    """
    check_executor(name)
    if name == "threads":
        context = _threads(workers)
    elif name == "processes":
        context = _processes(workers)
    else:
        from hiero.tuning.dask import dask_executor

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
    """Processes that end when this one ends, for whatever reason."""
    spawning = multiprocessing.get_context("spawn")  # not fork: the parent has threads
    child_end, parent_end = spawning.Pipe(duplex=False)
    created: list[Processes] = []

    def current() -> Executor:
        if not created or getattr(created[-1], "_broken", False):
            created.append(Processes(workers, spawning, initializer=_initialize, initargs=(child_end,)))
        return created[-1]

    with child_end, parent_end:
        try:
            yield current
        finally:
            parent_end.close()
            for executor in created:
                executor.shutdown(wait=True, cancel_futures=True)


def _initialize(pipe: multiprocessing.connection.Connection) -> None:
    """Initialize a process."""
    # Ctrl-C interrupts all processes of a terminal; only the parent handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(pipe,), daemon=True).start()


def _end_with_parent(pipe: multiprocessing.connection.Connection) -> None:
    """Stop when the parent closes its end of the pipe, or dies."""
    multiprocessing.connection.wait([pipe])
    stop.set()
    process = multiprocessing.parent_process()
    if process is None or not process.is_alive():
        os._exit(1)  # otherwise this process waits for tasks forever


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
            for future in done:
                task = waiting.pop(future)
                try:
                    _wait_for_output(future.result(), show_progress)
                except BrokenProcessPool:
                    died.append(task)
                except CancelledError:
                    raise HieroError("executor: a task was cancelled") from None
    finally:
        for future in waiting:
            future.cancel()
    return died


def _wait_for_output(out: Any, show_progress: Callable[[], None]) -> None:
    """Wait until the output of a task is visible on this machine."""
    until = time.monotonic() + SLOW_FILES
    while isinstance(out, str) and not is_done(out):
        if time.monotonic() > until:
            hint = "do all workers share a file system?"
            raise HieroError(f"{out}.npz: found no such file, expected the output of a worker ({hint})")
        time.sleep(POLL_INTERVAL)
        show_progress()
