# mypy: allow-untyped-defs, allow-untyped-calls
"""Write language models as ARPA files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from hiero.core.jit import kernel
from hiero.core.symbols import WordTable
from hiero.core.text import open_output
from hiero.lm.table_kernels import NgramBlock

NEWLINE, TAB, SPACE, MINUS, POINT, ZERO = 10, 9, 32, 45, 46, 48
MAX_DIGITS = 22  # after the point; that many powers of ten are exact
MAX_NUMBER = 48  # bytes


@kernel
def put_float32(value, powers, out, at):
    """Write the fewest digits that read back as the float32 ``value``; returns where they end.

    For finite numbers below 10 ** 9. At most 22 digits after the point are written.
    """
    if value < 0.0:
        out[at] = MINUS
        at += 1
    size = np.float64(abs(value))
    digits = 0
    scaled = np.rint(size)
    while np.float32(scaled / powers[digits]) != np.float32(size) and digits < MAX_DIGITS:
        digits += 1
        scaled = np.rint(size * powers[digits])
    number = np.int64(scaled)
    length = 1
    while length <= digits or (length < 19 and number >= np.int64(powers[length])):
        length += 1
    end = at + length + (1 if digits > 0 else 0)
    for place in range(length):
        if place == digits and digits > 0:
            out[end - 1 - place] = POINT
        out[end - 1 - place - (1 if place >= digits and digits > 0 else 0)] = ZERO + number % 10
        number //= 10
    return end


@kernel
def write_entries_kernel(table, words, prob, backoff, has_backoff, powers, out):
    """Write lines of n-grams; returns how many bytes they have.

    table        WordTable
    words        int32 [R, n]   ids in the table
    prob         float32 [R]
    backoff      float32 [R]
    has_backoff  whether to write the back-offs
    powers       float64 [23]   of ten
    out          uint8 [.]      written; the bytes of all words, two numbers and n + 2 bytes a line are enough

    O(bytes).  Twin: tests/naive/estimate.py::entries.
    """
    at = 0
    length = words.shape[1]
    for r in range(words.shape[0]):
        at = put_float32(prob[r], powers, out, at)
        for w in range(length):
            out[at] = TAB if w == 0 else SPACE
            at += 1
            word = words[r, w]
            for b in range(table.first[word], table.first[word + 1]):
                out[at] = table.pool[b]
                at += 1
        if has_backoff:
            out[at] = TAB
            at = put_float32(backoff[r], powers, out, at + 1)
        out[at] = NEWLINE
        at += 1
    return at


def write_arpa(
    path: str | Path, table: WordTable, counts: Sequence[int], blocks: Iterable[NgramBlock]
) -> None:
    """Write a model, compressed if the name ends in ``.gz``. Blocks come in the order of their length."""
    powers = np.array([float(f"1e{k}") for k in range(MAX_DIGITS + 1)])
    size = np.diff(table.first)
    with open_output(path) as out:
        header = "".join(f"ngram {n}={count}\n" for n, count in enumerate(counts, 1))
        out.write(f"\\data\\\n{header}".encode())
        written = 0
        for block in blocks:
            length = block.words.shape[1]
            while written < length:
                written += 1
                out.write(f"\n\\{written}-grams:\n".encode())
            num_bytes = int(size[block.words].sum()) + len(block.words) * (2 * MAX_NUMBER + length + 2)
            text = np.empty(num_bytes, np.uint8)
            end = write_entries_kernel(table, *block, length < len(counts), powers, text)
            out.write(text[:end].data)
        while written < len(counts):
            written += 1
            out.write(f"\n\\{written}-grams:\n".encode())
        out.write(b"\n\\end\\\n")
