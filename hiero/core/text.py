"""Text files: plain or gz, read in pieces that end at a line end; output that is complete or absent.

Lines end at ``\\n`` only. A compressed file is recognised by its first bytes, not by its name. An output file
is compressed if its name ends in ``.gz``, without a time stamp, so equal content gives equal files. ``-`` is
standard input or output. Input lines are plain sentences, or
``<seg id="7" grammar="g.7.gz">a b c</seg> ||| reference``.
"""

from __future__ import annotations

import contextlib
import difflib
import gzip
import os
import re
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, NamedTuple

from hiero.core.errors import FormatError, os_message, show

CHUNK_BYTES = 4 << 20
READ_BYTES = 1 << 20
GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Chunk(NamedTuple):
    """Whole lines of a file, each ended by ``\\n`` (added to the last line of the file if it lacks one)."""

    data: bytes
    first_line: int  # number of its first line, counted from 1
    offset: int  # of its first byte in the uncompressed file


@contextlib.contextmanager
def open_bytes(path: str | Path, what: str = "a readable file") -> Iterator[IO[bytes]]:
    """The raw bytes of a file, or a FormatError with the reason; ``what`` describes the file expected."""
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    try:
        # Reading in large pieces: a buffer would only add a copy.
        stream = open(path, "rb", buffering=0)  # noqa: SIM115
    except OSError as error:
        raise FormatError(path, 0, found=_reason(error), expected=what) from None
    with stream:
        yield stream


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, IsADirectoryError):
        return "a directory"
    return os_message(error)


def _read(stream: IO[bytes], path: str | Path, what: str) -> bytes:
    try:
        return stream.read(READ_BYTES)
    except OSError as error:
        raise FormatError(path, 0, found=_reason(error), expected=what) from None


class _Compressed(Exception):
    """Damaged compressed data; the caller adds the line."""


def _inflate(raw: Iterator[bytes], piece_bytes: int) -> Iterator[bytes]:
    """Decompress the members of a gz file one after the other, in pieces of at most ``piece_bytes``."""
    member = zlib.decompressobj(31)
    fresh = False  # no data of a later member so far, so the file may end here
    for data in raw:
        while data:
            if fresh and not data.strip(b"\0"):
                break  # zero bytes may pad the end of a gz file
            fresh = False
            try:
                piece = member.decompress(data, piece_bytes)
            except zlib.error as error:
                raise _Compressed(f"damaged compressed data ({error})") from None
            if piece:
                yield piece
            data = member.unconsumed_tail
            if member.eof:
                data = member.unused_data
                member, fresh = zlib.decompressobj(31), True
    if not fresh:
        raise _Compressed("the end of the file in the middle of compressed data")


def _pieces(path: str | Path, piece_bytes: int, what: str) -> Iterator[bytes]:
    with open_bytes(path, what) as stream:
        first = _read(stream, path, what)

        def raw() -> Iterator[bytes]:
            data = first
            while data:
                yield data
                data = _read(stream, path, what)

        yield from _inflate(raw(), piece_bytes) if first.startswith(GZIP_MAGIC) else raw()


def read_chunks(
    path: str | Path, chunk_bytes: int = CHUNK_BYTES, what: str = "a readable file"
) -> Iterator[Chunk]:
    """The lines of a file, many at a time; a chunk is longer than ``chunk_bytes`` only if one line is."""
    held: list[bytes] = []
    held_bytes, line, offset = 0, 1, 0
    try:
        for piece in _pieces(path, chunk_bytes, what):
            held.append(piece)
            held_bytes += len(piece)
            if held_bytes < chunk_bytes or b"\n" not in piece:
                continue
            data = b"".join(held)
            cut = data.rfind(b"\n") + 1
            yield Chunk(data[:cut], line, offset)
            line += data.count(b"\n")
            offset += cut
            held, held_bytes = [data[cut:]], len(data) - cut
    except _Compressed as error:
        line += b"".join(held).count(b"\n")
        hint = "the file is truncated or damaged; make or fetch it again"
        raise FormatError(path, line, found=str(error), expected="a whole gz file", hint=hint) from None
    rest = b"".join(held)
    if rest:
        yield Chunk(rest if rest.endswith(b"\n") else rest + b"\n", line, offset)


def read_lines(path: str | Path, what: str = "a readable file") -> Iterator[bytes]:
    """The lines of a file without their ends. A last line without ``\\n`` counts."""
    for chunk in read_chunks(path, what=what):
        yield from chunk.data[:-1].split(b"\n")


def decode_utf8(path: str | Path, data: bytes, first_line: int = 1) -> str:
    """Decode whole lines of a file, or raise a FormatError for the first byte that is not UTF-8.

    A byte order mark at the start of line 1 is removed.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        start = data.rfind(b"\n", 0, error.start) + 1
        raise FormatError(
            path,
            first_line + data.count(b"\n", 0, error.start),
            found=f"byte 0x{data[error.start]:02x} at position {error.start - start + 1} of the line",
            expected="UTF-8",
            hint="convert the file first, for instance with iconv",
        ) from None
    return text.removeprefix("\ufeff") if first_line == 1 else text


def is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def without_mark(chunk: Chunk) -> Chunk:
    """The chunk without the byte order mark that a file may begin with."""
    if chunk.first_line == 1:
        return chunk._replace(data=chunk.data.removeprefix(BYTE_ORDER_MARK))
    return chunk


def read_utf8_chunks(
    path: str | Path, chunk_bytes: int = CHUNK_BYTES, what: str = "a readable file"
) -> Iterator[Chunk]:
    """``read_chunks`` of a file that must be UTF-8, without its byte order mark.

    Invalid bytes are refused because other programs would count lines or words of them differently.
    """
    for chunk in read_chunks(path, chunk_bytes, what):
        decode_utf8(path, chunk.data, chunk.first_line)
        yield without_mark(chunk)


@contextlib.contextmanager
def open_output(path: str | Path, *, packed: bool = False) -> Iterator[IO[bytes]]:
    """A file that appears, complete, when the block ends without an exception, and not otherwise.

    It is written as ``PATH.part`` and renamed. Devices and pipes are written directly. ``packed`` means that
    the data written to a ``.gz`` are compressed already.
    """
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(path)
    special = path.exists() and not path.is_file()
    target = path if special else path.with_name(path.name + ".part")
    try:
        raw = open(target, "wb")  # noqa: SIM115
    except OSError as error:
        raise FormatError(path, 0, found=_reason(error), expected="a writable path") from None
    try:
        with raw:
            if path.suffix == ".gz" and not packed:
                with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0) as stream:
                    yield stream  # type: ignore[misc]
            else:
                yield raw
        if not special:
            os.replace(target, path)
    except BaseException as error:
        if not special:
            target.unlink(missing_ok=True)
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            raise FormatError(path, 0, found=_reason(error), expected="room to write") from None
        raise


def write_output(path: str | Path, content: str | bytes, *, packed: bool = False) -> None:
    """Write a whole file; see ``open_output``."""
    with open_output(path, packed=packed) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)


# As liberal as cdec: quotes and spaces around "=" are optional.
_ATTRIBUTE = r"""\s+([A-Za-z_][\w.-]*)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))"""
_SEGMENT = re.compile(
    rf"[ \t]*<seg((?:{_ATTRIBUTE})*)[ \t]*>(.*)</seg>[ \t]*(?:\|\|\|(.*))?", re.ASCII | re.DOTALL
)
_ATTRIBUTES = re.compile(_ATTRIBUTE, re.ASCII)
_SPACES = re.compile("[ \t]+")
# Attributes that name grammars. Others are ignored, unless they look like one of these misspelt, an error.
GRAMMAR = re.compile("grammar([1-9][0-9]*)?")


@dataclass(frozen=True, slots=True)
class Segment:
    """One input line. Words are separated by ASCII spaces and tabs."""

    words: tuple[str, ...]
    attributes: Mapping[str, str] = field(default_factory=dict)
    reference: tuple[str, ...] | None = None

    @property
    def name(self) -> str | None:
        """The ``id`` attribute of the line."""
        return self.attributes.get("id")

    def with_base(self, base: str) -> Segment:
        """The same line, with the paths of its grammars relative to ``base``."""
        attributes = {
            key: os.path.join(base, value) if GRAMMAR.fullmatch(key) else value
            for key, value in self.attributes.items()
        }
        return replace(self, attributes=attributes) if attributes else self


def aligned(rows: Sequence[Sequence[str]], left: Sequence[int] = ()) -> list[str]:
    """The lines of a table: columns in ``left`` are aligned to the left, others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    forms = [f"{'<' if at in left else '>'}{width}" for at, width in enumerate(widths)]
    return ["  ".join(map(format, row, forms)).rstrip() for row in rows]


def split_words(text: str) -> tuple[str, ...]:
    return tuple(word for word in _SPACES.split(text) if word)


def parse_segment(line: str, path: str = "<line>", number: int = 1) -> Segment:
    """Split a line of text, plain or in ``<seg>``, into words and attributes; it has no line end."""
    if not line.lstrip(" \t").startswith(("<seg ", "<seg>", "<seg\t")):
        return Segment(split_words(line))
    found = _SEGMENT.fullmatch(line)
    if found is None:
        raise FormatError(
            path,
            number,
            found=show(line.strip()),
            expected='<seg id="…" grammar="…"> words </seg>',
            hint='optionally followed by ||| and a reference; every attribute is name="value"',
        )
    attributes: dict[str, str] = {}
    for name, *values in _ATTRIBUTES.findall(found.group(1)):
        if name in attributes:
            raise FormatError(path, number, found=f"{name} twice", expected="each attribute once")
        if name not in ("id", "grammar") and difflib.get_close_matches(name, ["grammar"], cutoff=0.8):
            if not GRAMMAR.fullmatch(name):
                expected = "grammar, grammar1, grammar2, …"
                raise FormatError(path, number, found=f"the attribute {name}", expected=expected)
        attributes[name] = next((value for value in values if value), "")
    text, reference = found.group(found.re.groups - 1), found.group(found.re.groups)
    return Segment(split_words(text), attributes, None if reference is None else split_words(reference))


def decode_line(line: bytes, number: int) -> tuple[str, bool]:
    """The text of a line without its end, and whether it is UTF-8; invalid bytes become U+FFFD."""
    if number == 1:
        line = line.removeprefix(BYTE_ORDER_MARK)
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    try:
        return line.decode(), True
    except UnicodeDecodeError:
        return line.decode(errors="replace"), False


def read_text(path: str | Path, what: str = "text") -> list[str]:
    """The lines of a UTF-8 file without their ends."""
    return [utf8_line(path, number, line) for number, line in enumerate(read_lines(path, what), 1)]


def utf8_line(path: str | Path, number: int, line: bytes) -> str:
    """The text of line ``number`` of a file, which must be UTF-8, without a byte order mark."""
    return decode_utf8(path, line.removesuffix(b"\r"), number)


LEAVE_OUT = "leave_out"  # attribute of a <seg> tag
