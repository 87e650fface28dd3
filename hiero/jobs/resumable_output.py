"""Output that can be resumed after a kill: complete blocks in ``OUT.part``, and their state beside it.

``OUT.part`` holds the blocks in plain text, ``OUT.part.state`` a line of JSON: their number, their length
in bytes, a digest of the settings, and one of the input of the blocks. Anything beyond that length is
unfinished and is cut off on resuming. At the end the file gets its name, compressed if that ends in ``.gz``.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NoReturn

from hiero.core.errors import FormatError, HieroError, os_message
from hiero.core.renaming import rename_over
from hiero.core.text import Claim, create_anew, open_own, packing, parse_json

STATE_SECONDS = 1.0


def is_begun(path: str | Path, settings: str) -> bool:
    """Whether there is an output made with these settings that can be resumed."""
    part = Path(f"{path}.part")
    try:
        state = parse_json(Path(f"{part}.state").read_bytes())
        return bool(
            state["settings"] == hashlib.sha256(settings.encode()).hexdigest()
            and state["blocks"] > 0
            and state["bytes"] <= part.stat().st_size
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def is_complete(path: str | Path) -> bool:
    """Whether there is an output, and no unfinished one."""
    return Path(path).is_file() and not Path(f"{path}.part").exists()


class ResumableOutput:
    """Writes blocks one after the other; ``done`` is the number of blocks so far."""

    def __init__(self, path: str | Path, settings: str, *, resume: bool = False) -> None:
        """``settings`` is any string; a resumed output must have been made with the same."""
        self.path, self.settings = Path(path), hashlib.sha256(settings.encode()).hexdigest()
        self.part = self.path.with_name(self.path.name + ".part")
        self.state = self.path.with_name(self.path.name + ".part.state")
        self._origin = hashlib.sha256()
        self.done, self._length, self._expected = 0, 0, ""
        with self._errors():
            # The state proves that the unfinished output is one.
            self._claim = Claim(self.path, owned=self.state.is_file())
        try:
            self._open(resume)
        except BaseException:
            self._claim.release()
            raise

    def _open(self, resume: bool) -> None:
        if resume:
            self.done, self._length, self._expected = self._resumed()
        with self._errors():
            self._file = open_own(self.part) if self.done else self._claim.create()
            self._file.seek(self._length)
            self._file.truncate()
        self._saved = time.monotonic()
        self.kept = self.done  # blocks that could be resumed
        if not self.done:
            try:
                self._write_state()
            except HieroError:
                self._file.close()
                self._remove()
                raise

    def _resumed(self) -> tuple[int, int, str]:
        if not self.part.exists():
            if is_complete(self.path):
                self.state.unlink(missing_ok=True)  # killed between the last two steps of ``finish``
                raise HieroError(
                    f"{self.path}: the output is complete, nothing to resume (remove it to start again)"
                )
            return 0, 0, ""
        if not self.state.exists():
            return 0, 0, ""
        try:
            state = parse_json(self.state.read_bytes())
            done, length = int(state["blocks"]), int(state["bytes"])
            settings, origin = str(state["settings"]), str(state["origin"])
        except (ValueError, KeyError, TypeError):
            expected, hint = "blocks, bytes, settings and origin", f"remove {self.part} to start again"
            raise FormatError(self.state, 1, found="an invalid state", expected=expected, hint=hint) from None
        if settings != self.settings:
            self._refuse("other settings or another model")
        if self.part.stat().st_size < length:
            found, hint = f"{self.part.stat().st_size} bytes", "leave --resume out to start again"
            expected = f"at least {length}, as in {self.state.name}"
            raise FormatError(self.part, 0, found=found, expected=expected, hint=hint)
        return done, length, origin

    def _refuse(self, what: str) -> NoReturn:
        raise HieroError(
            f"{self.part}: the unfinished output was made with {what}"
            " (give the same command as before, or leave --resume out to start again)"
        )

    def skip(self, origins: Iterator[bytes]) -> None:
        """Check that the existing blocks were made of the first ``origins``."""
        for _ in range(self.done):
            origin = next(origins, None)
            if origin is None:
                self._refuse("a longer input")
            self._origin.update(origin)
        if self.done and self._origin.hexdigest() != self._expected:
            self._refuse("another input")

    def write(self, block: bytes, origin: bytes) -> None:
        """Append a block, and add its origin to the digest."""
        with self._errors():
            self._file.write(block)
            self._length += len(block)
            self.done += 1
            self._origin.update(origin)
            if time.monotonic() - self._saved > STATE_SECONDS:
                self.save()

    def save(self) -> None:
        """Record the complete blocks in the state."""
        with self._errors():
            self._file.flush()
            os.fsync(self._file.fileno())  # the blocks must be on disk before the state
        self._write_state()
        self._saved = time.monotonic()

    def _write_state(self) -> None:
        numbers = {"blocks": self.done, "bytes": self._length}
        digests = {"settings": self.settings, "origin": self._origin.hexdigest()}
        fresh = self.state.with_name(self.state.name + ".new")
        with self._errors():
            try:
                with create_anew(fresh) as stream:
                    stream.write((json.dumps(numbers | digests) + "\n").encode())
                rename_over(fresh, self.state)
            except OSError:
                fresh.unlink(missing_ok=True)
                raise
        self.kept = self.done

    def close(self) -> None:
        """Keep ``kept`` blocks for resuming; if there are none, remove the files."""
        with contextlib.suppress(HieroError):
            # Without room on disk the previous state stays valid.
            if self.done > self.kept:
                self.save()
        with contextlib.suppress(OSError):
            self._file.close()
        if not self.kept:
            self._remove()
        self._claim.release()

    def discard(self) -> None:
        """Remove the output: it must not be continued."""
        with contextlib.suppress(OSError):
            self._file.close()
        self._remove()
        self._claim.release()

    def _remove(self) -> None:
        self.part.unlink(missing_ok=True)
        self.state.unlink(missing_ok=True)

    def finish(self) -> None:
        """Give the complete output its name."""
        try:
            self.save()
            self._file.close()
            with self._errors():
                if self.path.suffix == ".gz":
                    self._pack()
                    self.part.unlink()
                else:
                    rename_over(self.part, self.path)
            self.state.unlink(missing_ok=True)
        finally:
            self._claim.release()

    def _pack(self) -> None:
        packed = self.part.with_name(self.part.name + ".packed")
        try:
            with open_own(self.part) as plain, create_anew(packed) as raw, packing(raw) as stream:
                shutil.copyfileobj(plain, stream)
            rename_over(packed, self.path)
        except OSError:
            packed.unlink(missing_ok=True)
            raise

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise _no_room(self.path, error) from None


class StandardOutput:
    """Writes blocks immediately to a stream, which cannot be resumed."""

    def __init__(self, stream: IO[bytes], name: str = "<stdout>") -> None:
        self._stream, self._name = stream, name
        self.done = self.kept = 0

    def skip(self, origins: Iterator[bytes]) -> None:
        """Do nothing: there are no existing blocks."""

    def write(self, block: bytes, origin: bytes) -> None:
        try:
            self._stream.write(block)
            self._stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _no_room(self._name, error) from None
        self.done += 1

    def close(self) -> None:
        """Do nothing: no blocks are kept."""

    def discard(self) -> None:
        """Do nothing: what is written cannot be taken back."""

    def finish(self) -> None:
        """Do nothing: all blocks are written."""


def _no_room(path: str | Path, error: OSError) -> FormatError:
    return FormatError(path, 0, found=os_message(error), expected="room to write")
