"""Output that survives being killed: complete blocks in ``OUT.part``, and beside it how far they are good.

``OUT.part`` holds the blocks in plain text, ``OUT.part.state`` a line of JSON: their number, their length
in bytes and a digest of what they were made with. Whatever follows that length was not finished and is cut
off when work resumes. At the end the file gets its name, compressed if that ends in ``.gz``.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import IO

from hiero.errors import FormatError, HieroError
from hiero.formats.text import open_output

STATE_SECONDS = 1.0


class ResumableOutput:
    """Write blocks one after the other; ``done`` says how many there are already."""

    def __init__(self, path: str, digest: str, *, resume: bool = False) -> None:
        self.path, self.digest = Path(path), digest
        self.part = self.path.with_name(self.path.name + ".part")
        self.state = self.path.with_name(self.path.name + ".part.state")
        self.done, self._length = self._resumed() if resume else (0, 0)
        try:
            self._file: IO[bytes] = open(self.part, "r+b" if self.done else "wb")  # noqa: SIM115
        except OSError as error:
            reason = error.strerror or str(error)
            raise FormatError(path, 0, found=reason.lower(), expected="a place to write to") from None
        self._file.seek(self._length)
        self._file.truncate()
        self._saved = time.monotonic()
        self.save()

    def _resumed(self) -> tuple[int, int]:
        if not self.part.exists() or not self.state.exists():
            if self.path.exists():
                raise HieroError(f"{self.path}: found complete, nothing to resume (remove it to start again)")
            return 0, 0
        try:
            state = json.loads(self.state.read_text())
            done, length, digest = int(state["blocks"]), int(state["bytes"]), str(state["digest"])
        except (ValueError, KeyError, TypeError):
            raise FormatError(
                self.state, 1, found="no state of ours", expected="blocks, bytes and digest", hint="remove it"
            ) from None
        if digest != self.digest:
            raise HieroError(
                f"{self.part}: found the beginning of an output made with other settings or input, expected"
                " the same (give the same command as before, or leave --resume out to start again)"
            )
        if self.part.stat().st_size < length:
            raise HieroError(
                f"{self.part}: found fewer bytes than {self.state} counts ({length}); start again"
            )
        return done, length

    def write(self, block: bytes) -> None:
        """Append one block."""
        self._file.write(block)
        self._length += len(block)
        self.done += 1
        if time.monotonic() - self._saved > STATE_SECONDS:
            self.save()

    def save(self) -> None:
        """Note how far the output is good."""
        self._file.flush()
        fresh = self.state.with_name(self.state.name + ".new")
        fresh.write_text(
            json.dumps({"blocks": self.done, "bytes": self._length, "digest": self.digest}) + "\n"
        )
        os.replace(fresh, self.state)
        self._saved = time.monotonic()

    def close(self) -> None:
        """Keep what there is, to be resumed."""
        self.save()
        self._file.close()

    def finish(self) -> None:
        """Give the complete output its name."""
        self._file.close()
        if self.path.suffix == ".gz":
            packed = self.path.with_name(self.path.name + ".packing.gz")
            with open(self.part, "rb") as plain, open_output(packed) as stream:
                shutil.copyfileobj(plain, stream)
            os.replace(packed, self.path)
            self.part.unlink()
        else:
            os.replace(self.part, self.path)
        self.state.unlink(missing_ok=True)


class StandardOutput:
    """Blocks to a stream that cannot be continued, each at once."""

    done = 0

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, block: bytes) -> None:
        self._stream.write(block)
        self._stream.flush()
        self.done += 1

    def close(self) -> None:
        """Nothing to keep."""

    def finish(self) -> None:
        self._stream.flush()
