"""Arrays written to disk piece by piece."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

MAGIC = b"\x93NUMPY\x01\x00"
HEADER_BYTES = 128  # enough for one dimension of any length, and a multiple of 64, as numpy requires


class GrowingArray:
    """A one-dimensional ``.npy`` file whose length is known when it is closed; a context manager."""

    def __init__(self, path: Path, scalar: type[np.generic]) -> None:
        self.length = 0
        self._scalar = np.dtype(scalar)
        self._stream = open(path, "wb")  # noqa: SIM115
        self._stream.write(self._header())

    def _header(self) -> bytes:
        kind = {"descr": self._scalar.str, "fortran_order": False, "shape": (self.length,)}
        room = HEADER_BYTES - len(MAGIC) - 2
        return MAGIC + room.to_bytes(2, "little") + repr(kind).encode().ljust(room - 1) + b"\n"

    def append(self, values: npt.NDArray[Any]) -> None:
        """Write more values, which must be of the type of the array."""
        assert values.dtype == self._scalar
        self._stream.write(np.ascontiguousarray(values).data)
        self.length += len(values)

    def __enter__(self) -> GrowingArray:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stream:
            if error is None:
                self._stream.seek(0)
                self._stream.write(self._header())
