"""Random bins."""

from __future__ import annotations

import math

from hypothesis import strategies as st


def begins(most: int = 6) -> st.SearchStrategy[list[float]]:
    """Lower bounds of the bins of a feature."""
    finite = st.lists(st.floats(-8, 8, width=32), max_size=most, unique=True)
    return finite.map(lambda rest: [-math.inf, *sorted(x + 0.0 for x in rest)])  # no -0
