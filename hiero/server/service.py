"""The service behind all addresses: its models, threads and limits, and how an answer is waited for."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Message, Receive, Scope, Send

from hiero.core.errors import HieroError
from hiero.server.answers import Translator
from hiero.server.config import ServerConfig
from hiero.server.metrics import Metrics
from hiero.server.models import ServedModel, chosen
from hiero.server.requests import (
    ClientGone,
    Fields,
    Refused,
    content_type,
    form_fields,
    invalid,
    json_object,
    read_body,
)
from hiero.server.workers import QueueFull, Turns, Workers

log = logging.getLogger("hiero.server")
access = logging.getLogger("hiero.server.access")

Result = TypeVar("Result")
Handler = Callable[[Request], Awaitable[Response]]
CLIENT_GONE = 499  # as nginx has it
JSON_TYPES = ("application/json", "")
FORM = "application/x-www-form-urlencoded"
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


class Json(JSONResponse):
    """JSON as ``hiero decode`` writes it: UTF-8 without escapes."""

    def render(self, content: Any) -> bytes:
        return json_bytes(content)


def json_bytes(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def error_response(status: int, message: str) -> Response:
    """A message of one line as JSON."""
    headers = {}
    if status == 503:
        headers["retry-after"] = "1"
    if status in (408, 413):
        headers["connection"] = "close"  # the rest of the content is not read
    return Json({"error": message}, status, headers)


class Service:
    """Models, threads and metrics of a running server."""

    def __init__(self, models: Sequence[ServedModel], config: ServerConfig, threads: int) -> None:
        self.config = config
        self.models: Mapping[str, ServedModel] = {served.name: served for served in models}
        self.metrics = Metrics()
        self.workers = Workers(threads, config.queue)
        self.is_ending = False
        self.started = time.time()
        self._translators = {one.name: Translator(one, config, self.metrics) for one in models}
        for translator in self._translators.values():
            translator.warm_up()
        self.metrics = Metrics()  # without these lines
        for translator in self._translators.values():
            translator.metrics = self.metrics

    # ---- requests

    def translator(self, name: str | None) -> Translator:
        """The translator of a model, or of the first one."""
        try:
            return self._translators[chosen(self.models, name).name]
        except HieroError as error:
            raise invalid(str(error)) from None

    async def fields(self, request: Request, *, forms: bool = False) -> Fields:
        """The fields of the body of a request."""
        data = await read_body(request, self.config.max_body, self.config.read_timeout)
        kind = content_type(request)
        if forms and kind == FORM:
            return Fields(form_fields(data), from_text=True)
        # Clients such as curl -d send JSON as a form.
        if kind in JSON_TYPES or (kind == FORM and data.lstrip()[:1] == b"{"):
            return Fields(json_object(data))
        expected = f"application/json{f' or {FORM}' if forms else ''}"
        raise Refused(415, f"found content of type {kind}, expected {expected}", "invalid")

    def check_size(self, lines: Sequence[str]) -> None:
        """Refuse too many lines or characters."""
        if len(lines) > self.config.max_lines:
            raise Refused(
                413, f"found {len(lines):,} lines, expected at most {self.config.max_lines:,}", "too_large"
            )
        size = sum(map(len, lines))
        if size > self.config.max_chars:
            message = f"found {size:,} characters, expected at most {self.config.max_chars:,}"
            raise Refused(413, message, "too_large")

    async def results(self, request: Request, calls: Sequence[Callable[[], Result]]) -> list[Result]:
        """The results of calls in the threads, in order.

        If they are not there in time, or if the client has gone, those that wait are dropped. A search that
        has begun is not interrupted: the wait is bounded, and the search by the limits of a line.
        """
        turns = Turns(self.workers)
        futures = self.submit(turns, list(calls))
        work = asyncio.gather(*futures)
        gone = asyncio.ensure_future(until_gone(request))
        both: set[asyncio.Future[Any]] = {work, gone}
        try:
            await asyncio.wait(both, timeout=self.config.timeout, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return await work
            if gone.done():
                raise ClientGone
            raise Refused(504, f"no translation within {self.config.timeout:g} seconds", "timeout")
        finally:
            gone.cancel()
            turns.cancel()
            forget(work)

    def submit(self, turns: Turns, calls: list[Callable[[], Any]]) -> list[asyncio.Future[Any]]:
        """Give calls to the threads."""
        try:
            return turns.submit(calls)
        except QueueFull:
            raise Refused(503, "too many lines wait to be translated; try again later", "busy") from None

    # ---- figures

    def gauges(self) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        """Present values for metrics."""
        return {
            ("hiero_queue_lines", ()): self.workers.num_waiting,
            ("hiero_busy_threads", ()): self.workers.num_busy,
            ("hiero_threads", ()): self.workers.num_threads,
            ("process_resident_memory_bytes", ()): resident_bytes(),
            ("process_start_time_seconds", ()): self.started,
            **{
                ("hiero_vocabulary_words", (("model", one.name),)): one.num_words
                for one in self.models.values()
            },
        }

    def metrics_text(self) -> str:
        """All metrics in the text format of Prometheus."""
        return self.metrics.text(self.gauges())

    def end(self, seconds: float) -> None:
        """Stop the threads."""
        self.workers.end(seconds)


def forget(future: asyncio.Future[Any]) -> None:
    """Cancel a future that nobody awaits any more; its exception, if it has one, is not reported."""
    future.cancel()
    future.add_done_callback(lambda done: done.cancelled() or done.exception())


async def until_gone(request: Request) -> None:
    """Wait until the client of a request, which has been read, closes the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def resident_bytes() -> float:
    """The resident memory of this process; nan where the system does not tell."""
    try:
        return float(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError):
        return float("nan")


# ---- around all answers


def answered(service: Service, handler: Callable[[Service, Request], Awaitable[Response]]) -> Handler:
    """A handler whose errors are answers: a JSON object with a message of one line."""

    @functools.wraps(handler)
    async def answer(request: Request) -> Response:
        try:
            return await handler(service, request)
        except Refused as error:
            service.metrics.add("hiero_rejected_total", reason=error.reason)
            return error_response(error.status, error.message)
        except ClientGone:
            service.metrics.add("hiero_rejected_total", reason="abandoned")
            return PlainTextResponse("", CLIENT_GONE)
        except asyncio.CancelledError:
            if not service.is_ending:
                raise
            service.metrics.add("hiero_rejected_total", reason="ending")
            return error_response(503, "the server ends")
        except HieroError as error:
            service.metrics.add("hiero_rejected_total", reason="invalid")
            return error_response(400, str(error))
        except Exception:
            service.metrics.add("hiero_rejected_total", reason="failed")
            log.exception("%s %s failed", request.method, request.url.path)
            return error_response(500, "the server failed; its log says why")

    return answer


class Watched:
    """An application with a log of requests, metrics, and a limit of the time in which a client reads."""

    def __init__(
        self, app: Callable[[Scope, Receive, Send], Awaitable[None]], service: Service, paths: set[str]
    ) -> None:
        self.app, self.service, self.paths = app, service, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        status, size = 500, 0

        async def sent(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            size += len(message.get("body", b""))
            # A client that does not read holds no more than this connection, and not for long.
            await asyncio.wait_for(send(message), self.service.config.timeout)

        try:
            await self.app(scope, receive, sent)
        finally:
            seconds = time.perf_counter() - began
            # Only known paths: others would make any number of series.
            path = scope["path"] if scope["path"] in self.paths else "other"
            metrics = self.service.metrics
            metrics.add("hiero_requests_total", path=path, status=str(status))
            metrics.observe("hiero_request_seconds", seconds, path=path)
            client = scope.get("client")
            place = f"{client[0]}:{client[1]}" if client else "-"
            shown = "".join(_shown(scope["path"]))
            access.info(
                '%s "%s %s" %d %d %.1f ms', place, scope["method"], shown, status, size, 1000 * seconds
            )


def _shown(path: str) -> Iterator[str]:
    """A path as one line, of limited length."""
    for character in path[:200]:
        yield character if character.isprintable() and character not in '"\\' else "?"
