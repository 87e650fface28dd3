"""Work shared out to threads, its results in the order in which it came."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable
from queue import SimpleQueue
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 8  # items a thread may be ahead of the results that were taken
NAME = "hiero-in-order"
PATIENCE = 0.3  # seconds that threads get to finish what they are at when nobody wants it any more


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Generator[Result, None, None]:
    """``map(function, items)`` by that many threads; each result is there as soon as those before it are.

    The threads draw the items, so a slow source, such as a person who types, holds up no result. An
    exception, whether of the source or of the function, comes in its place in the order. All threads are
    daemons: who leaves before the end, as Ctrl-C does, does not wait for them (``still_busy``).
    """
    source = iter(items)
    drawing = threading.Lock()
    # For each item that was drawn a slot: whether it went well, and what came of it. None: no more items.
    order: SimpleQueue[SimpleQueue[tuple[bool, Any]] | None] = SimpleQueue()
    room = threading.Semaphore(AHEAD * threads)
    stop = threading.Event()

    def work() -> None:
        while True:
            room.acquire()
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
            except BaseException as error:  # for whoever takes the results
                slot.put((False, error))
            else:
                slot.put((True, result))
                del item, result  # not to be kept while waiting for more

    team = [threading.Thread(target=work, name=NAME, daemon=True) for _ in range(threads)]
    for thread in team:
        thread.start()
    try:
        while (slot := order.get()) is not None:
            well, result = slot.get()
            if not well:
                raise result
            yield result
            del result
            room.release()
    finally:
        stop.set()
        room.release(threads)
        until = time.monotonic() + PATIENCE
        for thread in team:
            thread.join(max(0.0, until - time.monotonic()))


def still_busy() -> bool:
    """Whether some thread was left behind. The process must then end by ``os._exit``: Python would take
    from under it what it works with."""
    return any(thread.name == NAME for thread in threading.enumerate())
