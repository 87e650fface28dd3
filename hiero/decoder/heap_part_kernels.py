"""A binary heap of (priority, id), highest priority first and, among equals, smallest id first."""

from hiero.core.jit import leaf


@leaf
def _before(priority, entry, i, j):
    return priority[i] > priority[j] or (priority[i] == priority[j] and entry[i] < entry[j])


@leaf
def heap_push(priority, entry, size, new_priority, new_entry):
    """Add an entry to the heap in ``priority[:size]``, ``entry[:size]``; there must be room for one more."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if priority[parent] > new_priority or (
            priority[parent] == new_priority and entry[parent] < new_entry
        ):
            break
        priority[at] = priority[parent]
        entry[at] = entry[parent]
        at = parent
    priority[at] = new_priority
    entry[at] = new_entry


@leaf
def heap_pop(priority, entry, size):
    """Remove the top of a heap of ``size`` entries; ``size - 1`` remain. The caller reads the top before."""
    last = size - 1
    moved_priority = priority[last]
    moved_entry = entry[last]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= last:
            break
        if child + 1 < last and _before(priority, entry, child + 1, child):
            child += 1
        if priority[child] > moved_priority or (
            priority[child] == moved_priority and entry[child] < moved_entry
        ):
            priority[at] = priority[child]
            entry[at] = entry[child]
            at = child
        else:
            break
    priority[at] = moved_priority
    entry[at] = moved_entry
