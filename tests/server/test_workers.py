"""Threads for many requests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from hiero.server.workers import QueueFull, Turns, Workers


def noting(order: list[str], name: str) -> Callable[[], str]:
    def call() -> str:
        order.append(name)
        return name

    return call


def test_requests_take_turns_and_keep_their_order() -> None:
    async def run() -> list[str]:
        workers, order, gate = Workers(1, 100), list[str](), threading.Event()
        holding = Turns(workers).submit([gate.wait])
        long, short = Turns(workers), Turns(workers)
        futures = long.submit([noting(order, f"a{n}") for n in range(4)])
        futures += short.submit([noting(order, f"b{n}") for n in range(2)])
        gate.set()
        assert await asyncio.gather(*futures) == ["a0", "a1", "a2", "a3", "b0", "b1"]
        await asyncio.gather(*holding)
        assert workers.num_waiting == 0
        workers.end(10)
        assert workers.num_busy == 0
        return order

    assert asyncio.run(run()) == ["a0", "b0", "a1", "b1", "a2", "a3"]


def test_the_queue_is_bounded_and_what_waits_can_be_dropped() -> None:
    async def run() -> None:
        workers, order, gate = Workers(1, 3), list[str](), threading.Event()
        turns = Turns(workers)
        (busy,) = turns.submit([gate.wait])
        while workers.num_busy == 0:
            await asyncio.sleep(0.001)
        waiting = turns.submit([noting(order, "a"), noting(order, "b")])
        with pytest.raises(QueueFull):
            Turns(workers).submit([noting(order, "c"), noting(order, "d")])
        (last,) = Turns(workers).submit([noting(order, "e")])
        assert workers.num_waiting == 3
        turns.cancel()
        assert workers.num_waiting == 1
        gate.set()
        assert await busy
        assert await last == "e"
        assert all(one.cancelled() for one in waiting)
        assert order == ["e"]
        workers.end(10)
        with pytest.raises(QueueFull):
            turns.submit([gate.wait])

    asyncio.run(run())


def test_exceptions_are_raised_where_results_are_awaited() -> None:
    def fail() -> None:
        raise ValueError("no")

    async def run() -> None:
        workers = Workers(2, 10)
        futures = Turns(workers).submit([fail, lambda: 3])
        with pytest.raises(ValueError, match="no"):
            await futures[0]
        assert await futures[1] == 3
        workers.end(10)

    asyncio.run(run())
