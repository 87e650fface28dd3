# mypy: allow-untyped-calls
"""Word alignment from file to file."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from hiero.alignment.align import Iteration, align, num_rounds
from hiero.alignment.config import AlignConfig
from hiero.alignment.symmetrize import combine
from hiero.bitext.alignments import write_alignment
from hiero.bitext.corpus import read_bitext
from hiero.core.progress import Progress, SilentProgress
from hiero.core.text import open_output


class AlignSummary(NamedTuple):
    """Statistics of an aligned bitext.

    num_empty  pairs with an empty side
    num_links  after symmetrisation
    last       the last round of training
    """

    num_pairs: int
    num_empty: int
    num_links: int
    last: Iteration

    def __str__(self) -> str:
        empty = f", {self.num_empty:,} of them with an empty side" if self.num_empty else ""
        perplexity, tension = self.last.perplexity, self.last.tension
        return (
            f"{self.num_pairs:,} sentence pairs{empty}; {self.num_links:,} links; "
            f"perplexity {perplexity[0]:.1f} of target words, {perplexity[1]:.1f} of source words; "
            f"tension {tension[0]:.2f}, {tension[1]:.2f}"
        )


def align_files(
    source: str | Path,
    target: str | Path,
    output: str | Path,
    config: AlignConfig,
    *,
    directions: Mapping[str, str | Path] | None = None,
    threads: int = 1,
    watch: Progress | None = None,
) -> AlignSummary:
    """Align a bitext and write its links; ``directions`` names files for ``forward`` and ``reverse`` ones."""
    watch = watch or SilentProgress()
    with ExitStack() as stack:
        # Opened first, so that a path that cannot be written is an error before the work.
        stream = stack.enter_context(open_output(output))
        others = {name: stack.enter_context(open_output(path)) for name, path in (directions or {}).items()}
        bitext = read_bitext(source, target)
        watch.begin(bitext.num_pairs * num_rounds(config))
        aligned = align(bitext, config, threads, watch.advance)
        links = combine(bitext, aligned.links, config.symmetrize)
        write_alignment(stream, links.first, links.link)
        for method, other in others.items():
            directed = combine(bitext, aligned.links, method)
            write_alignment(other, directed.first, directed.link)
    num_empty = int(((bitext.src.length == 0) | (bitext.tgt.length == 0)).sum())
    return AlignSummary(bitext.num_pairs, num_empty, len(links.link), aligned.history[-1])
