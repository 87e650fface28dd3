"""Arrays: element types, read-only views, growth, and offsets of CSR form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Scalar = TypeVar("Scalar", bound=np.generic)

Floats = npt.NDArray[np.float64]
Floats32 = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]  # counts, offsets, places
Ids = npt.NDArray[np.int32]  # words, rules, features, nodes
Hashes = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
BLOCK = 1 << 16


def read_only(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """A read-only, contiguous, plain view.

    Kernels compile once per array type, and a mapped file is read-only, so all arrays of models are.
    """
    if type(array) is np.ndarray and array.flags.c_contiguous and not array.flags.writeable:
        return array
    view = np.ascontiguousarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view


def grown(array: npt.NDArray[Scalar], size: int) -> npt.NDArray[Scalar]:
    """The array, or a larger copy if it has fewer than ``size`` rows or is read-only; new rows are 0.

    Unused room takes no memory, because zeros are not written.
    """
    if size <= len(array) and array.flags.writeable:
        return array
    length = max(size, len(array) + len(array) // 2) if size > len(array) else len(array)
    larger = np.zeros((length, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def offsets_of(lengths: Iterable[int] | npt.NDArray[Any]) -> Ints:
    """CSR offsets of rows of these lengths."""
    if not isinstance(lengths, np.ndarray):
        lengths = np.fromiter(lengths, np.int64)
    first = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=first[1:])
    return first


def offsets_by_row(row: npt.NDArray[Any], num_rows: int) -> Ints:
    """CSR offsets of entries whose rows are given; the inverse of ``row_of_entry``."""
    return offsets_of(np.bincount(row, minlength=num_rows))


def count_per_row(flags: Flags, first: Ints) -> Ints:
    """The number of entries in each row of a CSR array that are true."""
    return np.diff(offsets_of(flags)[first])


def are_offsets(first: npt.NDArray[Any], num_entries: int) -> bool:
    """Whether an array has the CSR offsets of so many entries. Kernels do not check."""
    if not (len(first) and first[0] == 0 and first[-1] == num_entries):
        return False
    for start in range(0, len(first) - 1, BLOCK):  # a block fits into the processor's cache
        after = first[start + 1 : start + 1 + BLOCK]
        if not (first[start : start + len(after)] <= after).all():
            return False
    return True


def is_within(array: npt.NDArray[Any], low: int, high: int) -> bool:
    """Whether low <= x < high for all entries."""
    return not array.size or bool(low <= array.min() and array.max() < high)


def is_finite(array: npt.NDArray[Any]) -> bool:
    """Whether there is neither an infinite entry nor one that is not a number, without a temporary array."""
    return not array.size or bool(np.isfinite(array.min()) and np.isfinite(array.max()))


def take_rows(first: Ints, order: Ints) -> tuple[Ints, Ints]:
    """CSR rows in another order: their new offsets, and the old place of every item."""
    # Not np.diff: the offsets may be mapped, and long.
    length = first[order + 1] - first[order]
    new_first = offsets_of(length)
    place = np.arange(new_first[-1]) + np.repeat(first[order] - new_first[:-1], length)
    return new_first, place


def row_of_entry(first: Ints) -> Ints:
    """The row of each entry of a CSR array."""
    return np.repeat(np.arange(len(first) - 1), np.diff(first))


def joined_offsets(parts: Sequence[Ints]) -> Ints:
    """CSR offsets of tables put end to end."""
    pieces, base = [np.zeros(1, np.int64)], 0
    for part in parts:
        pieces.append(part[1:] + base)
        base += int(part[-1])
    return np.concatenate(pieces)


def joined_columns(fields: Sequence[str], parts: Sequence[Any]) -> list[Any]:
    """The fields of structures of arrays put end to end; those called first_... are CSR offsets."""
    return [
        (joined_offsets if field.startswith("first_") else np.concatenate)(
            [getattr(part, field) for part in parts]
        )
        for field in fields
    ]
