"""Reading requests: bodies within limits, JSON and forms, and fields with their types."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request

from hiero.core.errors import did_you_mean, show
from hiero.core.given import GivenTerm, terms_of_pairs
from hiero.core.text import parse_json

MOST_FIELDS = 10_000  # of a form
DRAINED = 4  # times the largest body: read and dropped, so that clients that send first see the answer
DRAIN_SECONDS = 1.0


class Refused(Exception):
    """A request that is not answered as asked: the status, a message, and the reason as in metrics."""

    def __init__(self, status: int, message: str, reason: str) -> None:
        super().__init__(message)
        self.status, self.message, self.reason = status, message, reason


class ClientGone(Exception):
    """The client has closed the connection."""


def invalid(message: str) -> Refused:
    return Refused(400, message, "invalid")


# ---- bodies


async def read_body(request: Request, limit: int, seconds: float) -> bytes:
    """The body of a request, of at most ``limit`` bytes within some seconds."""
    given = request.headers.get("content-length", "")
    if given.isascii() and given.isdigit() and int(given) > limit:
        await _drain(request, DRAINED * limit)
        raise too_large(limit)
    parts: list[bytes] = []

    async def read() -> None:
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > limit:
                raise too_large(limit)
            parts.append(part)

    try:
        await asyncio.wait_for(read(), seconds)
    except asyncio.TimeoutError:
        raise too_slow(seconds) from None
    except ClientDisconnect:
        raise ClientGone from None
    return b"".join(parts)


def too_large(limit: int) -> Refused:
    return Refused(413, f"the content has more than {limit:,} bytes", "too_large")


def too_slow(seconds: float) -> Refused:
    return Refused(408, f"the content did not arrive within {seconds:g} seconds", "slow")


async def _drain(request: Request, limit: int) -> None:
    """Read and drop the rest of a body, for a short time."""

    async def drop() -> None:
        left = limit
        async for part in request.stream():
            left -= len(part)
            if left < 0:
                return

    with contextlib.suppress(asyncio.TimeoutError, ClientDisconnect):
        await asyncio.wait_for(drop(), DRAIN_SECONDS)


def content_type(request: Request) -> str:
    """The type of the content without parameters, in lower case."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def json_object(data: bytes) -> dict[str, Any]:
    """The JSON object in a body."""
    try:
        found = parse_json(data)
    except ValueError as error:  # also of bytes that are not UTF-8
        raise invalid(f"found {show(data)}, expected JSON ({error})") from None
    if not isinstance(found, dict):
        raise invalid(f"found {_kind(found)}, expected a JSON object")
    return found


def form_fields(data: bytes) -> dict[str, Any]:
    """The fields of a form (application/x-www-form-urlencoded); repeated ones are lists."""
    fields: dict[str, Any] = {}
    try:
        pairs = parse_qsl(data.decode(), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError as error:
        raise invalid(f"found {show(data)}, expected a form ({error})") from None
    for name, value in pairs:
        known = fields.get(name)
        if known is None:
            fields[name] = value
        else:
            fields[name] = [*known, value] if isinstance(known, list) else [known, value]
    return fields


# ---- fields

_KINDS = {bool: "true or false", int: "a whole number", str: "text", dict: "an object", list: "a list"}


def _kind(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return _KINDS[type(value)]
    if value is None:
        return "nothing"
    return show(str(value).lower() if isinstance(value, bool) else str(value))


class Fields:
    """The fields of a request, each read once with its type.

    from_text  numbers and flags are text, as in forms and addresses
    """

    def __init__(self, fields: Mapping[str, Any], *, from_text: bool = False) -> None:
        self._fields, self._from_text = dict(fields), from_text
        self._read: set[str] = set()

    def _get(self, name: str) -> Any:
        self._read.add(name)
        return self._fields.get(name)

    def text(self, name: str, default: str | None = None) -> str | None:
        """A text; ``default`` if it is missing."""
        value = self._get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise invalid(f"{name}: found {_kind(value)}, expected text")
        return clean(value)

    def flag(self, name: str) -> bool:
        """True or false; false if it is missing."""
        value = self._get(name)
        if self._from_text and isinstance(value, str):
            value = {"1": True, "true": True, "0": False, "false": False, "": False}.get(value.lower(), value)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise invalid(f"{name}: found {_kind(value)}, expected true or false")
        return value

    def choice(self, name: str) -> bool | None:
        """True or false; None if it is missing."""
        return None if self._get(name) is None else self.flag(name)

    def terms(self, name: str, most: int) -> tuple[GivenTerm, ...]:
        """Terms: lists of source words, translation, and perhaps a weight; none if it is missing."""
        value = self._get(name)
        if self._from_text and isinstance(value, str):
            try:
                value = parse_json(value)
            except ValueError as error:
                raise invalid(f"{name}: found {show(value)}, expected JSON ({error})") from None
        if value is None:
            return ()
        if not isinstance(value, list):
            raise invalid(f"{name}: found {_kind(value)}, expected a list of pairs")
        if len(value) > most:
            raise Refused(413, f"found {len(value):,} terms, expected at most {most:,}", "too_large")
        found = terms_of_pairs(value)
        return tuple((clean(" ".join(one.source)), clean(" ".join(one.target)), one.weight) for one in found)

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number within limits."""
        value = self._get(name)
        if value is None:
            return default
        if (
            self._from_text
            and isinstance(value, str)
            and value.isascii()
            and value.isdigit()
            and len(value) < 10
        ):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise invalid(f"{name}: found {_kind(value)}, expected a whole number")
        if not least <= value <= most:
            shown = show(str(value)) if abs(value) > 10**9 else str(value)
            raise invalid(f"{name}: found {shown}, expected {least} to {most}")
        return value

    def texts(self, name: str) -> tuple[list[str], bool]:
        """One text, or a list of them, and whether it is a list."""
        value = self._get(name)
        if value is None:
            raise invalid(f"{name} is missing")
        if isinstance(value, str):
            return [clean(value)], False
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise invalid(f"{name}: found {_kind(value)}, expected text, or a list of texts")
        return [clean(one) for one in value], True

    def check(self) -> None:
        """Refuse fields that were not read."""
        for name in self._fields.keys() - self._read:
            raise invalid(f"unknown field {show(name)}; {did_you_mean(name, self._read)}")


def clean(text: str) -> str:
    """Text that can be written as UTF-8: halves of pairs of UTF-16, which JSON can name, become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def lines_of(text: str) -> list[str]:
    """The lines of a text, without their ends."""
    return [line.removesuffix("\r") for line in text.split("\n")]
