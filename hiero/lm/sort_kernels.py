# mypy: ignore-errors
"""Sort rows of numbers by their first columns, and merge sorted rows.

A row is uint64 [C]; its first columns are its key, the first of them the most significant.
"""

import numpy as np

from hiero.core.jit import kernel, leaf


@leaf
def compare(a, i, b, j, num_keys):
    """-1, 0 or 1: the key of row i of ``a`` is less than, equal to or more than that of row j of ``b``."""
    for c in range(num_keys):
        if a[i, c] != b[j, c]:
            return -1 if a[i, c] < b[j, c] else 1
    return 0


@kernel
def sort_kernel(rows, spare, num_keys):
    """Sort rows by radix 256, least digit first; returns whether the result is in ``spare``.

    rows      uint64 [R, C]   written
    spare     uint64 [R, C]   written
    num_keys  columns to compare

    Stable. O(R) for each digit in which rows differ.  Twin: tests/naive/estimate.py::sort.
    """
    num_rows, columns = rows.shape
    count = np.zeros((num_keys * 8, 256), np.int64)
    low = np.uint64(255)
    for r in range(num_rows):
        for c in range(num_keys):
            key = rows[r, c]
            for d in range(8):
                count[8 * c + d, np.int64(key & low)] += 1
                key >>= np.uint64(8)
    source, target = rows, spare
    swapped = False
    for c in range(num_keys - 1, -1, -1):
        for d in range(8):
            digit = 8 * c + d
            shift = np.uint64(8 * d)
            if num_rows == 0 or count[digit, np.int64((rows[0, c] >> shift) & low)] == num_rows:
                continue  # all rows have the same digit
            place = 0
            for b in range(256):
                here = count[digit, b]
                count[digit, b] = place
                place += here
            for r in range(num_rows):
                b = np.int64((source[r, c] >> shift) & low)
                to = count[digit, b]
                count[digit, b] = to + 1
                for k in range(columns):
                    target[to, k] = source[r, k]
            source, target = target, source
            swapped = not swapped
    return swapped


@kernel
def combine_kernel(rows, num_keys):
    """Add up the last column of equal rows, which are adjacent; returns the number of rows left, in front.

    rows      uint64 [R, C]   written
    num_keys  columns to compare

    O(R).  Twin: tests/naive/estimate.py::combine.
    """
    num_rows, columns = rows.shape
    if num_rows == 0:
        return 0
    last = 0
    for r in range(1, num_rows):
        if compare(rows, r, rows, last, num_keys) == 0:
            rows[last, columns - 1] += rows[r, columns - 1]
            continue
        last += 1
        for c in range(columns):
            rows[last, c] = rows[r, c]
    return last + 1


@kernel
def end_kernel(rows, cut, num_keys):
    """The number of sorted rows that are not beyond ``cut`` (uint64 [1, .]), by bisection.

    O(log R).  Twin: tests/naive/estimate.py::end.
    """
    low, high = 0, rows.shape[0]
    while low < high:
        middle = (low + high) // 2
        if compare(rows, middle, cut, 0, num_keys) <= 0:
            low = middle + 1
        else:
            high = middle
    return low
