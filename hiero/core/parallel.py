"""An ordered map over threads, and the end of worker processes.

Imports nothing of other packages: worker processes begin here, and load the rest with their first task.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from queue import SimpleQueue
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 8  # items that a thread may be ahead of the consumer
NAME = "hiero-in-order"
JOIN_SECONDS = 0.3  # that threads get to finish their items when the iteration ends early


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Generator[Result, None, None]:
    """``map(function, items)`` over several threads; a result is yielded as soon as all before it are.

    The threads draw the items, so a slow source, such as a terminal, delays no result. An exception of the
    source or of the function is raised at its place in the order. All threads are daemons: leaving early,
    as with Ctrl-C, does not wait for them (``still_busy``).
    """
    source = iter(items)
    drawing = threading.Lock()
    # A slot for each item drawn: whether it succeeded, and its result or exception. None: no more items.
    order: SimpleQueue[SimpleQueue[tuple[bool, Any]] | None] = SimpleQueue()
    free = threading.Semaphore(AHEAD * threads)
    stop = threading.Event()

    def work() -> None:
        while True:
            free.acquire()
            slot: SimpleQueue[tuple[bool, Any]] = SimpleQueue()
            try:
                with drawing:
                    if stop.is_set():
                        return
                    try:
                        item = next(source)
                    except StopIteration:
                        stop.set()
                        order.put(None)
                        return
                    except BaseException:
                        stop.set()
                        order.put(slot)
                        raise
                    order.put(slot)
                result = function(item)
            except BaseException as error:  # raised by the consumer
                slot.put((False, error))
            else:
                slot.put((True, result))
                del item, result  # release them while waiting

    workers = [threading.Thread(target=work, name=NAME, daemon=True) for _ in range(threads)]
    for thread in workers:
        thread.start()
    try:
        while (slot := order.get()) is not None:
            succeeded, result = slot.get()
            if not succeeded:
                raise result
            yield result
            del result
            free.release()
    finally:
        stop.set()
        free.release(threads)
        until = time.monotonic() + JOIN_SECONDS
        for thread in workers:
            thread.join(max(0.0, until - time.monotonic()))


def still_busy() -> bool:
    """Whether a thread is still running. The process must then end by ``os._exit``: at a normal exit, Python
    would destroy objects that the thread still uses."""
    return any(thread.name == NAME for thread in threading.enumerate())


stop = threading.Event()  # set: tasks in threads of this process end at their next sentence


@contextlib.contextmanager
def process_pools(workers: int) -> Iterator[Callable[[], Executor]]:
    """Yield a function that returns a pool of processes, or a new one if one of its processes died.

    The processes end when this one ends, for whatever reason.
    """
    spawning = multiprocessing.get_context("spawn")  # not fork: the parent has threads
    child_end, parent_end = spawning.Pipe(duplex=False)
    pools: list[ProcessPoolExecutor] = []

    def current() -> Executor:
        if not pools or getattr(pools[-1], "_broken", False):
            how: dict[str, Any] = {"initializer": end_with_parent, "initargs": (child_end,)}
            pools.append(ProcessPoolExecutor(workers, spawning, **how))
        return pools[-1]

    with child_end, parent_end:
        try:
            yield current
        finally:
            parent_end.close()
            for pool in pools:
                pool.shutdown(wait=True, cancel_futures=True)


def end_with_parent(pipe: multiprocessing.connection.Connection) -> None:
    """Initialize a worker process, which stops when its parent closes its end of the pipe, or dies."""
    # Ctrl-C interrupts all processes of a terminal; only the parent handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_wait_for_end, args=(pipe,), daemon=True).start()


def _wait_for_end(pipe: multiprocessing.connection.Connection) -> None:
    multiprocessing.connection.wait([pipe])
    stop.set()
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
    os._exit(1)  # otherwise this process would wait for tasks forever
