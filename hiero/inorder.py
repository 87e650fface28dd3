"""Work shared out to threads, its results in the order in which it came."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 8  # items a thread may be ahead of the results that were taken
NAME = "hiero-in-order"
PATIENCE = 0.3  # seconds that threads get to finish what they are at when nobody wants it any more


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Generator[Result, None, None]:
    """``map(function, items)`` by that many threads; each result is there as soon as those before it are.

    Items are drawn by one more thread, so a slow source, such as a person who types, holds up no result.
    An exception, whether of the source or of the function, comes in its place in the order. All threads are
    daemons: who leaves before the end, as Ctrl-C does, does not wait for them (``still_busy``).
    """
    work: SimpleQueue[tuple[Item, Future[Result]] | None] = SimpleQueue()
    order: SimpleQueue[Future[Result] | None] = SimpleQueue()
    room = threading.Semaphore(AHEAD * threads)
    stop = threading.Event()

    def draw() -> None:
        try:
            for item in items:
                room.acquire()
                if stop.is_set():
                    return
                future: Future[Result] = Future()
                order.put(future)
                work.put((item, future))
            order.put(None)
        except BaseException as error:  # for whoever takes the results
            broken: Future[Result] = Future()
            broken.set_exception(error)
            order.put(broken)
        finally:
            for _ in range(threads):
                work.put(None)

    def do() -> None:
        while (task := work.get()) is not None and not stop.is_set():
            item, future = task
            try:
                future.set_result(function(item))
            except BaseException as error:  # for whoever takes the results
                future.set_exception(error)
            del item, future, task  # not to be kept while waiting for more

    team = [threading.Thread(target=target, name=NAME, daemon=True) for target in [draw] + [do] * threads]
    for thread in team:
        thread.start()
    try:
        while (future := order.get()) is not None:
            result = future.result()
            del future
            yield result
            room.release()
    finally:
        stop.set()
        room.release()
        for _ in range(threads):
            work.put(None)
        until = time.monotonic() + PATIENCE
        for thread in team:
            thread.join(max(0.0, until - time.monotonic()))


def still_busy() -> bool:
    """Whether some thread was left behind. The process must then end by ``os._exit``: Python would take
    from under it what it works with."""
    return any(thread.name == NAME for thread in threading.enumerate())
