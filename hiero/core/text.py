"""Text files: plain or gz, read in pieces that end at a line end; output that is complete or absent.

Lines end at ``\\n`` only. A compressed file is recognised by its first bytes, not by its name. An output file
is compressed if its name ends in ``.gz``, without a time stamp, so equal content gives equal files. ``-`` is
standard input or output. Input lines are plain sentences, or
``<seg id="7" grammar="g.7.gz">a b c</seg> ||| reference``.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import gzip
import json
import os
import re
import shutil
import stat
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from hiero.core.errors import FormatError, HieroError, os_message, show
from hiero.core.renaming import rename_over

if TYPE_CHECKING:
    from hiero.core.given import Given
    from hiero.core.lattice import Lattice

CHUNK_BYTES = 4 << 20
READ_BYTES = 1 << 20
LONGEST_LINE = 64 << 20  # bytes, to hold no file without line ends as a whole
# Text is compressed to a tenth, and what gz can expand a thousandfold fills any memory.
MOST_GROWTH, FREE_GROWTH = 100, 64 << 20  # bytes from each byte of a gz file, beyond the first so many
GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def shipped_folder(name: str) -> Path:
    """A folder of files that come with the package: in it when installed, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / name
    return installed if installed.is_dir() else package.parent / name


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


WHOLE = "a whole gz file", "the file is truncated or damaged; make or fetch it again"


class _Compressed(Exception):
    """Damaged compressed data; the caller adds the line."""

    def __init__(self, found: str, expected: tuple[str, str] = WHOLE) -> None:
        super().__init__(found)
        self.expected = expected


def _inflate(raw: Iterator[bytes], piece_bytes: int) -> Iterator[bytes]:
    """Decompress the members of a gz file one after the other, in pieces of at most ``piece_bytes``."""
    member = zlib.decompressobj(31)
    fresh = False  # no data of a later member so far, so the file may end here
    room = FREE_GROWTH
    for data in raw:
        while data:
            if fresh and not data.strip(b"\0"):
                break  # zero bytes may pad the end of a gz file
            fresh = False
            try:
                piece = member.decompress(data, piece_bytes)
            except zlib.error as error:
                raise _Compressed(f"damaged compressed data ({error})") from None
            taken = len(data) - len(member.unconsumed_tail) - len(member.unused_data)
            room += MOST_GROWTH * taken - len(piece)
            if room < 0:
                raise _Compressed(f"data that grow more than {MOST_GROWTH}-fold", ("compressed text", ""))
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
            if held_bytes > LONGEST_LINE and b"\n" not in piece:
                line += sum(part.count(b"\n") for part in held)
                found = f"a line of more than {LONGEST_LINE >> 20} MB"
                raise FormatError(path, line, found=found, expected=what, hint="is it text?")
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
        expected, hint = error.expected
        raise FormatError(path, line, found=str(error), expected=expected, hint=hint) from None
    rest = b"".join(held)
    if rest:
        yield Chunk(rest if rest.endswith(b"\n") else rest + b"\n", line, offset)


def parse_json(data: str | bytes) -> Any:
    """``json.loads``, with a ValueError also for lists that are nested too deeply."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("lists nested too deeply") from None


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


# ---- output that is complete or absent


MARK = b"hiero: unfinished output\n"
NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
LOCK_ATTEMPTS = 1000


def lock_file(path: Path) -> int:
    """Open a file, which is made if it is missing, and lock it until it is closed or the process ends.

    Raises BlockingIOError if it is locked already. Links are not followed.
    """
    for _ in range(LOCK_ATTEMPTS):
        try:
            file = _create_file(path)
        except FileExistsError:
            try:
                file = os.open(path, os.O_RDWR | NO_LINKS)
            except FileNotFoundError:
                continue  # removed in between
            except OSError as error:
                raise (_foreign(path) if error.errno == errno.ELOOP else error) from None
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
                raise _foreign(path)
            _lock(file)
            # The process that held the lock may have removed the file.
            if os.path.lexists(path) and os.path.samestat(status, os.lstat(path)):
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)
    raise BlockingIOError(errno.EAGAIN, "locked and removed again and again", str(path))


def _create_file(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_LINKS, 0o666)


def unlock_file(path: Path, file: int) -> None:
    """Remove a file made by ``lock_file``, and close it."""
    if sys.platform == "win32":  # open files cannot be removed
        os.close(file)
    with contextlib.suppress(OSError):
        path.unlink()
    if sys.platform != "win32":
        os.close(file)


def _lock(file: int) -> None:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # Some network file systems have no locks.
        if error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            raise BlockingIOError(error.errno, "locked") from None


class Claim:
    """The right to write a path, which one process and thread has at a time.

    The unfinished output is ``PATH.part``. The lock is ``PATH.part.lock``, which exists while there may be an
    unfinished output: a killed process leaves both, and the next one removes what is left. Without the lock,
    files of these names belong to others and are not touched.

    owned  whether ``PATH.part`` is known to be an unfinished output, without the lock
    """

    def __init__(self, path: Path, *, owned: bool = False) -> None:
        self.path = path
        self.part, self._old = path.with_name(f"{path.name}.part"), path.with_name(f"{path.name}.part.old")
        self._name = path.with_name(f"{path.name}.part.lock")
        try:
            self._file = lock_file(self._name)
        except BlockingIOError:
            raise HieroError(f"{path}: another process is writing this output") from None
        content = MARK
        try:
            content = os.read(self._file, len(MARK) + 1)
            if content not in (b"", MARK):
                raise _foreign(self._name)
            existing = [leftover for leftover in (self.part, self._old) if os.path.lexists(leftover)]
            for leftover in existing:
                if leftover.is_symlink() or not (owned or content):
                    raise _foreign(leftover)
            if not content:
                os.write(self._file, MARK)
        except BaseException:
            if content:  # the lock of others, or of a killed process whose output stays
                os.close(self._file)
            else:
                self.release()
            raise
        self.is_new = not existing

    def create(self) -> IO[bytes]:
        """Open a new, empty ``PATH.part``."""
        self.clear()
        return create_anew(self.part)

    def clear(self) -> None:
        """Remove what a killed process left."""
        if self.is_new:
            return
        if self._old.is_dir() and not self.path.exists():
            rename_over(self._old, self.path)  # killed while it replaced a directory
        if self.part.is_dir():
            shutil.rmtree(self.part)
        else:
            self.part.unlink(missing_ok=True)
        shutil.rmtree(self._old, ignore_errors=True)

    def replace_directory(self) -> None:
        """Give the directory ``PATH.part`` its name."""
        if self.path.exists():
            rename_over(self.path, self._old)
        rename_over(self.part, self.path)

    def release(self) -> None:
        """Remove the lock."""
        unlock_file(self._name, self._file)

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()


def _foreign(path: Path) -> HieroError:
    return HieroError(f"{path}: already exists and is not from hiero (rename or remove it)")


def create_anew(path: Path) -> IO[bytes]:
    """Open a new, empty file beside an output that is claimed."""
    path.unlink(missing_ok=True)
    return os.fdopen(_create_file(path), "w+b")


def open_own(path: Path) -> IO[bytes]:
    """Open an existing file for reading and writing; a link is not followed."""
    return os.fdopen(os.open(path, os.O_RDWR | NO_LINKS), "r+b")


def packing(stream: IO[bytes]) -> gzip.GzipFile:
    """A stream that compresses into another: equal content gives equal files."""
    return gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=stream, mtime=0)


@contextlib.contextmanager
def open_output(path: str | Path, *, packed: bool = False) -> Iterator[IO[bytes]]:
    """A file that appears, complete, when the block ends without an exception, and not otherwise.

    It is written as ``PATH.part`` and renamed (see ``Claim``). Devices and pipes are written directly.
    ``packed`` means that the data written to a ``.gz`` are compressed already.
    """
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(path)
    with contextlib.ExitStack() as stack:
        claim = None
        try:
            if path.exists() and not path.is_file():
                raw: IO[bytes] = open(path, "wb")  # noqa: SIM115
            else:
                claim = stack.enter_context(Claim(path))
                raw = claim.create()
        except OSError as error:
            raise FormatError(path, 0, found=_reason(error), expected="a writable path") from None
        try:
            with raw:
                if path.suffix == ".gz" and not packed:
                    with packing(raw) as packed_stream:
                        yield packed_stream  # type: ignore[misc]
                else:
                    yield raw
            if claim is not None:
                rename_over(claim.part, path)
        except BaseException as error:
            if claim is not None:
                claim.part.unlink(missing_ok=True)
            if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
                raise FormatError(path, 0, found=_reason(error), expected="room to write") from None
            raise


def write_output(path: str | Path, content: str | bytes, *, packed: bool = False) -> None:
    """Write a whole file; see ``open_output``."""
    with open_output(path, packed=packed) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)


# ---- lines with markup


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
    lattice: Lattice | None = None  # whose arcs have the words, if the line is not one sentence
    given: Given | None = None  # terms and the like, which the translation follows

    @property
    def name(self) -> str | None:
        """The ``id`` attribute of the line."""
        return self.attributes.get("id")

    def with_base(self, base: str, *, anywhere: bool = False) -> Segment:
        """The same line, with the paths of its grammars checked, and relative to ``base``.

        Without ``base``, paths are relative to the directory of a model, which checks them, or to several.
        """
        if not base and not anywhere:
            return self
        attributes = {
            key: checked_path(value, base, anywhere=anywhere) if GRAMMAR.fullmatch(key) else value
            for key, value in self.attributes.items()
        }
        return replace(self, attributes=attributes) if attributes else self


class InputForm(NamedTuple):
    """How lines of input are read.

    format   auto, text, plf or json
    markup   of Moses: exclusive, inclusive, constraint, ignore or off
    longest  most words of a term
    """

    format: str = "auto"
    markup: str = "off"
    longest: int = 2**31 - 1


AUTO = InputForm()


class CheckedPath(str):
    """The path of a sentence's grammar, which may be read."""

    __slots__ = ()


def checked_path(name: str, folder: str | Path, *, anywhere: bool = False) -> CheckedPath:
    """The path of the grammar that a sentence names, which must be inside a folder.

    anywhere  permit other paths, and ``-``, which is standard input
    """
    path = os.path.join(folder, name)
    if anywhere:
        return CheckedPath(name if name == "-" else path)
    base = os.path.join(os.path.abspath(folder), "")
    if os.path.normpath(path) == "-" or not os.path.abspath(path).startswith(base):
        found, expected = f"the grammar {show(name)}", f"a path inside {os.path.normpath(folder or '.')}"
        raise HieroError(f"found {found}, expected {expected} (--allow-grammar-paths permits others)")
    return CheckedPath(path)


def aligned(rows: Sequence[Sequence[str]], left: Sequence[int] = ()) -> list[str]:
    """The lines of a table: columns in ``left`` are aligned to the left, others to the right.

    Wide characters take two columns of a terminal, those that combine none.
    """
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]

    def padded(text: str, at: int) -> str:
        space = " " * (widths[at] - cell_len(text))
        return text + space if at in left else space + text

    return ["  ".join(padded(text, at) for at, text in enumerate(row)).rstrip() for row in rows]


def split_words(text: str) -> tuple[str, ...]:
    return tuple(word for word in _SPACES.split(text) if word)


# Said of a line ``source ||| reference`` without <seg>, whose words are all source words.
TRANSLATED_BARS = (
    "the words from ||| on are translated as well"
    " (a reference is only set apart in <seg>words</seg> ||| reference)"
)


def parse_segment(line: str, path: str = "<line>", number: int = 1) -> Segment:
    """Split a line of text, plain or in ``<seg>``, into words and attributes; it has no line end."""
    text, attributes, reference = split_markup(line, path, number)
    return Segment(split_words(text), attributes, reference)


def split_markup(
    line: str, path: str = "<line>", number: int = 1
) -> tuple[str, dict[str, str], tuple[str, ...] | None]:
    """The text of a line, plain or in ``<seg>``, the attributes of the tag, and the reference."""
    if not line.lstrip(" \t").startswith(("<seg ", "<seg>", "<seg\t")):
        return line, {}, None
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
    return text, attributes, None if reference is None else split_words(reference)


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
