# mypy: ignore-errors
"""Hash tables with open addressing and linear probing, and the functions that scatter keys over them.

A table is an array of 2 ** k slots, at most half full. A slot holds a number >= 0, which is an entry of other
arrays or the key itself, and -1 while it is empty. Nothing is ever removed.
"""

import numpy as np

from hiero.core.jit import leaf

MIN_SLOTS = 16
ONE = np.uint64(1)

FNV_START, FNV_PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2 ** 64 divided by the golden ratio
STEP = np.uint64(0xD6E8FEB86659FD93)
HALF = np.uint64(32)
MIX_1, MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@leaf
def table_size(entries):
    """The number of slots of a table with room for so many entries; Python code calls it as well."""
    size = MIN_SLOTS
    while size < 2 * entries:
        size *= 2
    return size


@leaf
def probe_within(slot, mask, code, equal, table, key):
    """As ``probe``, in the first mask + 1 slots."""
    # Unsigned, because numba tests a signed index for being negative in every iteration.
    at = code & np.uint64(mask)
    while slot[at] >= 0 and not equal(table, slot[at], key):
        at = (at + ONE) & np.uint64(mask)
    return np.int64(at)


@leaf
def probe(slot, code, equal, table, key):
    """The slot of the entry that equals a key, or the empty one where it belongs.

    slot   integers [2 ** k]
    code   uint64             hash of the key
    equal  a leaf             ``equal(table, entry, key)``: whether the number in a slot stands for the key
    table                     the arrays that entries refer to
    key                       a number, or a tuple
    """
    return probe_within(slot, slot.shape[0] - 1, code, equal, table, key)


@leaf
def is_same(_table, entry, key):
    """``equal`` of tables whose slots hold the keys themselves."""
    return entry == key


@leaf
def is_key_of(keys, entry, key):
    """``equal`` of tables whose slots hold places in an array of keys."""
    return keys[entry] == key


@leaf
def is_other(_table, _entry, _key):
    """``equal`` of keys that are not in the table yet."""
    return False


@leaf
def probe_number(slot, code, number):
    """``probe`` in a table whose slots hold the keys themselves."""
    return probe(slot, code, is_same, slot, number)


@leaf
def probe_new(slot, code):
    """``probe`` of a key that is not in the table yet."""
    return probe(slot, code, is_other, slot, 0)


@leaf
def fnv_step(code, value):
    """One step of FNV-1a, over numbers."""
    return (code ^ np.uint64(value)) * FNV_PRIME


@leaf
def hash_bytes(pool, start, end):
    """FNV-1a over a run of bytes, with a final mix because tables use the low bits."""
    code = FNV_START
    for i in range(start, end):
        code = fnv_step(code, pool[i])
    return code ^ (code >> np.uint64(29))


@leaf
def hash_number(number):
    """Fibonacci hashing: multiplication by the golden ratio, of which tables use the upper half."""
    return (np.uint64(number) * GOLDEN) >> HALF


@leaf
def mix(code, number):
    """A hash with one more number in it."""
    code = (code ^ np.uint64(number)) * STEP
    return code ^ (code >> HALF)


@leaf
def splitmix(state):
    """The output of SplitMix64 (Steele, Lea and Flood 2014); the next state is ``state + GOLDEN``."""
    code = (state ^ (state >> np.uint64(30))) * MIX_1
    code = (code ^ (code >> np.uint64(27))) * MIX_2
    return code ^ (code >> np.uint64(31))


@leaf
def fraction(code):
    """A number in [0, 1) from the upper bits of a hash or random number."""
    return np.float64(code >> np.uint64(11)) * 2.0**-53
