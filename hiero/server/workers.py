"""Threads that work for many requests in turn, with a bounded number of calls that wait."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from hiero.core.parallel import NAME


class QueueFull(Exception):
    """As many calls wait as may."""


class Turns:
    """The calls of one request. Requests take turns, so that long ones do not hold up short ones."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self.waiting: deque[tuple[Callable[[], Any], Future[Any]]] = deque()

    def submit(self, calls: list[Callable[[], Any]]) -> list[asyncio.Future[Any]]:
        """Add calls; raises ``QueueFull``, and adds none, if not all of them may wait."""
        futures = self._workers.add(self, calls)
        return [asyncio.wrap_future(future) for future in futures]

    def cancel(self) -> None:
        """Drop the calls that wait. Those that have begun run to their end."""
        self._workers.drop(self)


class Workers:
    """Threads that make the calls of requests, each request in its turn.

    room  number of calls that may wait
    """

    def __init__(self, threads: int, room: int) -> None:
        self.num_threads, self.room = threads, room
        self.num_waiting = 0
        self.num_busy = 0
        self._turns: deque[Turns] = deque()
        self._change = threading.Condition()
        self._ended = False
        self._threads = [threading.Thread(target=self._work, name=NAME, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def add(self, turns: Turns, calls: list[Callable[[], Any]]) -> list[Future[Any]]:
        """Add calls of a request."""
        with self._change:
            if self._ended or self.num_waiting + len(calls) > self.room:
                raise QueueFull
            futures: list[Future[Any]] = [Future() for _ in calls]
            if calls and not turns.waiting:
                self._turns.append(turns)
            turns.waiting.extend(zip(calls, futures, strict=True))
            self.num_waiting += len(calls)
            self._change.notify(len(calls))
        return futures

    def drop(self, turns: Turns) -> None:
        """Forget the calls of a request that wait."""
        with self._change:
            dropped = list(turns.waiting)
            turns.waiting.clear()
            self.num_waiting -= len(dropped)
            with contextlib.suppress(ValueError):
                self._turns.remove(turns)
        for _, future in dropped:
            future.cancel()

    def end(self, seconds: float) -> None:
        """Take no more calls, and wait for the threads, but not longer than so many seconds."""
        with self._change:
            self._ended = True
            self._change.notify_all()
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _work(self) -> None:
        while True:
            with self._change:
                while not self._turns:
                    if self._ended:
                        return
                    self._change.wait()
                turns = self._turns.popleft()
                call, future = turns.waiting.popleft()
                if turns.waiting:
                    self._turns.append(turns)
                self.num_waiting -= 1
                self.num_busy += 1
            try:
                if future.set_running_or_notify_cancel():
                    self._make(call, future)
            finally:
                del call, future, turns  # not held while this thread waits
                with self._change:
                    self.num_busy -= 1

    @staticmethod
    def _make(call: Callable[[], Any], future: Future[Any]) -> None:
        try:
            result = call()
        except BaseException as error:  # raised where the result is awaited
            future.set_exception(error)
        else:
            future.set_result(result)
