"""Streams: a body of lines, each answered as soon as it and all before it are translated."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from hiero.core.errors import HieroError
from hiero.core.text import decode_line, parse_json
from hiero.server.answers import Translator, Wanted
from hiero.server.api import wanted_of
from hiero.server.requests import ClientGone, Fields, Refused, content_type, invalid, too_large, too_slow
from hiero.server.service import FORM, Service, forget, json_bytes
from hiero.server.workers import Turns

AHEAD = 8  # lines of a stream that a thread may be ahead of its reader
NDJSON = "application/x-ndjson"
TYPES = ("", "text/plain", NDJSON, "application/octet-stream", FORM)  # the last by curl --data-binary
RETRY = 0.05  # seconds until a line is tried again where too many wait


async def stream(service: Service, request: Request) -> Response:
    """POST /api/stream."""
    fields = Fields(dict(request.query_params), from_text=True)
    translator, wanted = service.translator(fields.text("model")), wanted_of(fields, service)
    form = fields.text("format", "json")
    fields.check()
    if form not in ("json", "text"):
        raise invalid(f"format: found {form!r}, expected json or text")
    if form == "text" and wanted != Wanted(form=wanted.form):
        raise invalid("format: text has no room for more than one translation without details (json has)")
    kind = content_type(request)
    if kind not in TYPES:
        raise Refused(415, f"found content of type {kind}, expected text/plain or {NDJSON}", "invalid")
    lines = StreamLines(service, request)
    answer = partial(_answer, service, translator, wanted, is_json=kind == NDJSON, is_text=form == "text")
    answers = _answers(service, lines, answer)
    try:
        # The first answer decides on the status.
        first = await anext(answers, b"")
    except BaseException:
        lines.close()
        raise
    return StreamedAnswer(service, lines, first, answers, is_text=form == "text")


class StreamLines:
    """The lines of a body, read in a task of its own: a client may send all before it reads answers."""

    def __init__(self, service: Service, request: Request) -> None:
        self._config, self._request = service.config, request
        self._ready: asyncio.Queue[bytes | Exception] = asyncio.Queue()
        self._task = asyncio.ensure_future(self._read())
        self.gone = asyncio.get_running_loop().create_future()

    async def _read(self) -> None:
        held, size, parts = b"", 0, self._request.stream()
        try:
            while True:
                part = await asyncio.wait_for(anext(parts, None), self._config.read_timeout)
                if part is None:
                    break
                size += len(part)
                if size > self._config.max_body:
                    raise too_large(self._config.max_body)
                *whole, held = (held + part).split(b"\n")
                for line in whole:
                    self._ready.put_nowait(line + b"\n")
            if held:
                self._ready.put_nowait(held)
            self._ready.put_nowait(EOFError())
            while (await self._request.receive())["type"] != "http.disconnect":
                pass
            raise ClientDisconnect
        except asyncio.TimeoutError:
            self._ready.put_nowait(too_slow(self._config.read_timeout))
        except Refused as error:
            self._ready.put_nowait(error)
        except ClientDisconnect:
            self._ready.put_nowait(ClientGone())
            if not self.gone.done():
                self.gone.set_result(None)

    async def next(self) -> bytes:
        """The next line, or EOFError."""
        found = await self._ready.get()
        if isinstance(found, Exception):
            raise found
        return found

    def close(self) -> None:
        self._task.cancel()


def _answer(
    service: Service,
    translator: Translator,
    wanted: Wanted,
    number: int,
    line: bytes,
    *,
    is_json: bool,
    is_text: bool,
) -> bytes:
    """The answer to one line; where answers are JSON, errors are, too."""
    try:
        if is_json:
            text, wanted = _text(service, wanted, line)
        else:
            text = decode_line(line, number)[0]
        if len(text) > service.config.max_chars:
            most = service.config.max_chars
            raise Refused(413, f"found {len(text):,} characters, expected at most {most:,}", "too_large")
        found = translator.line(text, wanted)
    except (HieroError, Refused) as error:
        if is_text:
            raise Refused(400, f"line {number}: {error}", "invalid") from None
        service.metrics.add("hiero_rejected_total", reason="invalid")
        return json_bytes({"line": number, "error": str(error)}) + b"\n"
    if is_text:
        texts = [one["text"] for one in found["translations"]] or [""]
        return f"{texts[0]}\n".encode()
    return json_bytes({"line": number, **found}) + b"\n"


def _text(service: Service, wanted: Wanted, line: bytes) -> tuple[str, Wanted]:
    """The text of a line of NDJSON: a string, or an object with the field ``text``, and perhaps terms."""
    try:
        found: Any = parse_json(line)
    except ValueError as error:
        raise invalid(f"expected JSON ({error})") from None
    fields = Fields(found if isinstance(found, dict) else {"text": found})
    text, form = fields.text("text"), wanted.form
    terms, hard = fields.terms("terms", service.config.max_terms), fields.choice("hard_terms")
    fields.check()
    if text is None or "\n" in text:
        raise invalid("expected one line of text")
    hard = form.hard_terms if hard is None else hard
    return text, replace(wanted, form=replace(form, terms=terms or form.terms, hard_terms=hard))


async def _answers(
    service: Service, lines: StreamLines, answer: partial[bytes]
) -> AsyncGenerator[bytes, None]:
    """The answers to lines in their order; a few are translated ahead of the reader."""
    turns = Turns(service.workers)
    room = asyncio.Semaphore(AHEAD * service.workers.num_threads)
    order: asyncio.Queue[asyncio.Future[bytes] | Exception] = asyncio.Queue()

    async def feed() -> None:
        number = 0
        try:
            while True:
                await room.acquire()
                line = await lines.next()
                number += 1
                call = partial(answer, number, line)
                while True:
                    try:
                        order.put_nowait(service.submit(turns, [call])[0])
                        break
                    except Refused:
                        if number == 1:
                            raise
                        await asyncio.sleep(RETRY)
        except Exception as error:
            order.put_nowait(error)

    feeder = asyncio.ensure_future(feed())
    try:
        while True:
            found = await order.get()
            if isinstance(found, EOFError):
                return
            if isinstance(found, Exception):
                raise found
            both = {found, lines.gone}
            await asyncio.wait(both, timeout=service.config.timeout, return_when=asyncio.FIRST_COMPLETED)
            if not found.done():
                if lines.gone.done():
                    raise ClientGone
                raise Refused(504, f"no translation within {service.config.timeout:g} seconds", "timeout")
            room.release()
            yield await found
    finally:
        feeder.cancel()
        turns.cancel()
        while not order.empty():
            left = order.get_nowait()
            if isinstance(left, asyncio.Future):
                forget(left)


class StreamedAnswer(Response):
    """Sends answers as they come.

    Not Starlette's streaming response, which takes messages from the connection to find out whether the
    client is still there: parts of the body may be among them.
    """

    def __init__(
        self,
        service: Service,
        lines: StreamLines,
        first: bytes,
        answers: AsyncGenerator[bytes, None],
        *,
        is_text: bool,
    ) -> None:
        super().__init__(media_type="text/plain; charset=utf-8" if is_text else NDJSON)
        del self.headers["content-length"]
        self._service, self._lines, self._first, self._answers = service, lines, first, answers
        self._is_text = is_text

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            with contextlib.suppress(ClientGone):
                await self._send_all(send)
        finally:
            self._lines.close()
            await self._answers.aclose()

    async def _send_all(self, send: Send) -> None:
        async def part(content: bytes, *, more: bool = True) -> None:
            await send({"type": "http.response.body", "body": content, "more_body": more})

        try:
            if self._first:
                await part(self._first)
            async for answer in self._answers:
                await part(answer)
        except Refused as error:
            self._service.metrics.add("hiero_rejected_total", reason=error.reason)
            if self._is_text:
                # Without the end that the protocol marks, so that the client notices.
                raise StreamBroken(error.message) from None
            await part(json_bytes({"error": error.message}) + b"\n")
        await part(b"", more=False)


class StreamBroken(Exception):
    """A stream of plain text that cannot go on; the connection is closed."""
