"""Parts of a parse: the bundles and cells that a search needs."""

from __future__ import annotations

import numpy as np

from hiero.core.arrays import Flags, Ints, offsets_of
from hiero.decoder.parse_kernels import Parse, used_cells_kernel


def bundle_heads(parse: Parse) -> Ints:
    """The cell of each bundle."""
    return np.repeat(np.arange(len(parse.cell)), np.diff(parse.first_bundle))


def some_bundles(parse: Parse, kept: Flags) -> Parse:
    """A parse with some of the bundles, and without the cells that have none, which no bundle uses."""
    size = np.bincount(bundle_heads(parse)[kept], minlength=len(parse.cell))
    place = np.cumsum(size > 0) - 1
    return Parse(
        parse.cell[size > 0],
        offsets_of(size[size > 0]),
        parse.rules[kept],
        np.where(parse.tail < 0, -1, place[parse.tail]).astype(np.int32)[kept],
    )


def used_cells(parse: Parse, first_label: int) -> Parse:
    """A parse without cells of parts, the categories from ``first_label`` on, that no other cell uses."""
    used = np.empty(len(parse.cell), np.bool_)
    used_cells_kernel(parse, first_label, used)
    return parse if used.all() else some_bundles(parse, used[bundle_heads(parse)])
