"""Arrays: element types, read-only views, growth, and offsets of CSR form."""

from __future__ import annotations

from collections.abc import Sequence
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


def read_only(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """A read-only, contiguous, plain view.

    Kernels compile once per array type, and a mapped file is read-only, so all arrays of models are.
    """
    if type(array) is np.ndarray and array.flags.c_contiguous and not array.flags.writeable:
        return array
    view = np.ascontiguousarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view


def take_rows(first: Ints, order: Ints) -> tuple[Ints, Ints]:
    """CSR rows in another order: their new offsets, and the old place of every item."""
    # Not np.diff: the offsets may be mapped, and long.
    length = first[order + 1] - first[order]
    new_first = np.zeros(len(order) + 1, np.int64)
    np.cumsum(length, out=new_first[1:])
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
