"""Tables of word pairs that need not fit into memory: sorted on disk, and in mapped temporary files."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from hiero.alignment.pair_kernels import PairIndex
from hiero.core.arrays import Ids, Ints, offsets_of, read_only
from hiero.core.errors import HieroError, os_message
from hiero.lm.external_sort import Sorter

ZEROS = bytes(1 << 20)


def sorted_pairs(
    parts: Iterable[PairIndex], num_src: int, num_tgt: int, memory: int, folder: Path | None
) -> tuple[Ints, Ids, Ints]:
    """The different word pairs of the parts of a bitext: ``first_pair``, ``pair_tgt`` and ``num_tgt``.

    The pairs of a source word are in the order of their target words.
    """
    temporary = Path(folder or tempfile.gettempdir())
    by_src, by_tgt = np.zeros(num_src, np.int64), np.zeros(num_tgt, np.int64)
    num_pairs = 0
    try:
        sorter = Sorter(2, 1, memory, temporary, combine=True)
        for part in parts:
            row = np.repeat(np.arange(num_src), np.diff(part.first_pair))
            key = row * max(num_tgt, 1) + part.pair_tgt
            sorter.add(np.stack([key, np.ones_like(key)], axis=1).astype(np.uint64))
        with tempfile.TemporaryFile(dir=temporary) as stream:
            for rows in sorter.blocks():
                src, tgt = np.divmod(rows[:, 0].astype(np.int64), max(num_tgt, 1))
                by_src += np.bincount(src, minlength=num_src)
                by_tgt += np.bincount(tgt, minlength=num_tgt)
                stream.write(tgt.astype(np.int32).tobytes())
                num_pairs += len(rows)
            pair_tgt = _mapped(stream, (num_pairs,), np.int32)
    except OSError as error:
        raise _failed(temporary, error) from None
    return read_only(offsets_of(by_src)), read_only(pair_tgt), read_only(by_tgt)


def mapped_zeros(shape: tuple[int, ...], scalar: type[np.generic], folder: Path | None) -> npt.NDArray[Any]:
    """An array of zeros in a temporary file, which goes away with the array."""
    temporary = Path(folder or tempfile.gettempdir())
    num_bytes = int(np.prod(shape)) * np.dtype(scalar).itemsize
    try:
        with tempfile.TemporaryFile(dir=temporary) as stream:
            # Written, not only reserved: a full disk is found out here, and not when the array is used.
            for begin in range(0, num_bytes, len(ZEROS)):
                stream.write(ZEROS[: num_bytes - begin])
            return _mapped(stream, shape, scalar)
    except OSError as error:
        raise _failed(temporary, error) from None


def _mapped(stream: IO[bytes], shape: tuple[int, ...], scalar: type[np.generic]) -> npt.NDArray[Any]:
    if not np.prod(shape):
        return np.zeros(shape, scalar)
    stream.flush()
    return np.frombuffer(mmap.mmap(stream.fileno(), 0), scalar).reshape(shape)


def _failed(folder: Path, error: OSError) -> HieroError:
    return HieroError(
        f"{folder}: temporary files cannot be written: {os_message(error)} (--temp names another)"
    )
