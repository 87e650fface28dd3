"""Random small lattices."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from hiero.core.lattice import COST, EPSILON, Lattice

quarters = st.integers(-4, 4).map(lambda number: number / 4)


@st.composite
def lattices(
    draw: st.DrawFn, words: Sequence[str], *, max_nodes: int = 5, empty: bool = True, costs: bool = True
) -> Lattice:
    """Every node has an arc to the next; further arcs go anywhere, also twice with one word."""
    last = draw(st.integers(1, max_nodes - 1))
    word = st.sampled_from([*words, *words, EPSILON] if empty else list(words))
    cost = quarters if costs else st.just(0.0)
    more = st.tuples(st.integers(0, last), st.integers(0, last)).filter(lambda pair: pair[0] < pair[1])
    pairs = [(at, at + 1) for at in range(last)] + draw(st.lists(more, max_size=4))
    names = draw(st.sampled_from([[COST], [COST, f"{COST}_more"]]))
    return Lattice.make((*pair, draw(word), {name: draw(cost) for name in names}) for pair in pairs)


def naive_arcs(lattice: Lattice) -> tuple[tuple[int, int, str, float], ...]:
    """The arcs in the format of the twins, with the sum of their features."""
    return tuple((*arc, float(row.sum())) for arc, row in zip(lattice.arcs, lattice.values, strict=True))
