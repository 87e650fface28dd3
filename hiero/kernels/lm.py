"""Look n-grams up and score words in context; layout and signs are described in ``hiero.lm.Ngrams``."""

import numpy as np

from hiero._jit import kernel

CHAIN = np.uint64(8978948897894561157)
WORD = np.uint64(17894857484156487943)


@kernel
def chain(key, word):
    """The key of an n-gram with one more word on its left."""
    return (key * CHAIN) ^ (np.uint64(1 + word) * WORD)


@kernel
def find_slot(lm, m, key):
    """The slot of an n-gram of two or more words in model m, or -1."""
    first = lm.first_slot[m]
    mask = np.uint64(lm.first_slot[m + 1] - first - 1)
    at = key & mask
    while True:
        slot = first + np.int64(at)
        found = lm.key[2 * slot]
        if found == key:
            return slot
        if found == np.uint64(0):
            return np.int64(-1)
        at = (at + np.uint64(1)) & mask


@kernel
def extends_right(backoff):
    """Whether some longer n-gram begins with the one that has this back-off."""
    return backoff != 0.0 or np.copysign(np.float32(1.0), backoff) > 0.0
