"""Tables, linked lists and orders, by dictionaries and sorting."""

from collections.abc import Hashable, Sequence


def numbered(items: Sequence[Hashable]) -> list[int]:
    """Numbers from 0 in the order of first appearance; equal items have equal numbers."""
    number: dict[Hashable, int] = {}
    return [number.setdefault(item, len(number)) for item in items]


def places(entries: Sequence[Hashable], items: Sequence[Hashable]) -> list[int]:
    """The place of each item among distinct entries, or -1."""
    return [list(entries).index(item) if item in entries else -1 for item in items]


def chained(next_of: Sequence[int], first: int, k: int) -> list[int]:
    """The first k entries, at most, of a linked list that ends at -1."""
    if first < 0 or k == 0:
        return []
    return [first, *chained(next_of, next_of[first], k - 1)]


def by_estimate(runs: Sequence[tuple[int, int]], estimate: Sequence[float]) -> dict[int, int]:
    """Place -> pair, each run (first, size) in descending order of estimate, equal ones by number."""
    order = {}
    for first, size in runs:
        ranked = sorted(range(first, first + size), key=lambda pair: (-estimate[pair], pair))
        order.update(enumerate(ranked, first))
    return order


def special(entry: bytes) -> bool:
    """Whether an entry has a byte that names escape."""
    return any(byte in b"_:=;%|\x7f" or byte <= ord(" ") for byte in entry)
