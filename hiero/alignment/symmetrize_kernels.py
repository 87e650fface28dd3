# mypy: ignore-errors
"""Combine two directional alignments into one (Och and Ney 2003; Koehn, Och and Marcu 2003)."""

import numpy as np

from hiero.core.jit import kernel, leaf

INTERSECTION, UNION, GROW_DIAG, GROW_DIAG_FINAL, GROW_DIAG_FINAL_AND, FORWARD = range(6)

IN_FWD, IN_REV, CHOSEN = 1, 2, 4


@leaf
def add_link(grid, cell, i, j, src_linked, tgt_linked):
    grid[cell] |= CHOSEN
    src_linked[i] = 1
    tgt_linked[j] = 1


@leaf
def grow_diagonally(grid, n, m, src_linked, tgt_linked):
    """Add links of the union that touch a chosen one and link a word that has no link, until there are none.

    Chosen links, including those added meanwhile, are visited by source, then by target position;
    horizontal and vertical neighbours come before diagonal ones.
    """
    grown = True
    while grown:
        grown = False
        for i in range(n):
            for j in range(m):
                if not grid[i * m + j] & CHOSEN:
                    continue
                for k in range(8):
                    # (-1,0) (0,-1) (1,0) (0,1) (-1,-1) (-1,1) (1,-1) (1,1)
                    if k < 4:
                        a, b = i + (k - 1) * (1 - k % 2), j + (k - 2) * (k % 2)
                    else:
                        a, b = i + (-1 if k < 6 else 1), j + (-1 if k % 2 == 0 else 1)
                    if a < 0 or b < 0 or a >= n or b >= m:
                        continue
                    cell = a * m + b
                    if grid[cell] == 0 or grid[cell] & CHOSEN or (src_linked[a] and tgt_linked[b]):
                        continue
                    add_link(grid, cell, a, b, src_linked, tgt_linked)
                    grown = True


@leaf
def add_final_links(grid, n, m, direction, both, src_linked, tgt_linked):
    """Add links of one direction that link a word without any link; with ``both``, two such words."""
    for i in range(n):
        for j in range(m):
            if not grid[i * m + j] & direction or grid[i * m + j] & CHOSEN:
                continue
            free = 2 - src_linked[i] - tgt_linked[j]
            if free == 2 or (free == 1 and not both):
                add_link(grid, i * m + j, i, j, src_linked, tgt_linked)


@kernel
def symmetrize_kernel(src_first, tgt_first, fwd, rev, method, out_first, out_link):
    """Combine the links of both directions.

    src_first  int64 [S + 1]     words of the source sentences, as in ``bitext.corpus.Text``
    tgt_first  int64 [S + 1]
    fwd        int32 [M]         source position a target word is linked to, or -1
    rev        int32 [N]         target position a source word is linked to, or -1
    method     INTERSECTION ... FORWARD
    out_first  int64 [S + 1]     written; links of sentence pair s: out_first[s] ... out_first[s + 1] - 1
    out_link   int32 [L, 2]      written; source and target position, sorted; L = M + N is always enough

    GROW_DIAG starts from the intersection; FINAL adds the remaining links of FWD, then of REV. Returns the
    number of links. O(cells), times the rounds of growing.  Twin: tests/naive/align.py::symmetrize.
    """
    most_cells, most_src, most_tgt = np.int64(0), np.int64(0), np.int64(0)
    for s in range(src_first.shape[0] - 1):
        n, m = src_first[s + 1] - src_first[s], tgt_first[s + 1] - tgt_first[s]
        most_cells, most_src, most_tgt = max(most_cells, n * m), max(most_src, n), max(most_tgt, m)
    grid = np.empty(most_cells, np.uint8)
    src_linked, tgt_linked = np.empty(most_src, np.int64), np.empty(most_tgt, np.int64)
    links = 0
    out_first[0] = 0
    for s in range(src_first.shape[0] - 1):
        src, tgt = src_first[s], tgt_first[s]
        n, m = src_first[s + 1] - src, tgt_first[s + 1] - tgt
        for cell in range(n * m):
            grid[cell] = 0
        for i in range(n):
            src_linked[i] = 0
            if rev[src + i] >= 0:
                grid[i * m + rev[src + i]] |= IN_REV
        for j in range(m):
            tgt_linked[j] = 0
            if fwd[tgt + j] >= 0:
                grid[fwd[tgt + j] * m + j] |= IN_FWD
        for i in range(n):
            for j in range(m):
                found = grid[i * m + j]
                if (
                    found == IN_FWD + IN_REV
                    or (method == UNION and found)
                    or (method == FORWARD and found & IN_FWD)
                ):
                    add_link(grid, i * m + j, i, j, src_linked, tgt_linked)
        if method in (GROW_DIAG, GROW_DIAG_FINAL, GROW_DIAG_FINAL_AND):
            grow_diagonally(grid, n, m, src_linked, tgt_linked)
        if method in (GROW_DIAG_FINAL, GROW_DIAG_FINAL_AND):
            add_final_links(grid, n, m, IN_FWD, method == GROW_DIAG_FINAL_AND, src_linked, tgt_linked)
            add_final_links(grid, n, m, IN_REV, method == GROW_DIAG_FINAL_AND, src_linked, tgt_linked)
        for i in range(n):
            for j in range(m):
                if grid[i * m + j] & CHOSEN:
                    out_link[links, 0] = i
                    out_link[links, 1] = j
                    links += 1
        out_first[s + 1] = links
    return links
