"""Word alignment from file to file: of the bitext that a model is trained on, and of others by that model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from hiero.alignment.align import Iteration, combine, trained
from hiero.alignment.config import AlignConfig
from hiero.alignment.model import MODEL, AlignmentModel, model_of, write_model
from hiero.bitext.alignments import Alignment, write_alignment
from hiero.bitext.corpus import Bitext, bitext_parts, read_bitext
from hiero.core.parallel import in_order
from hiero.core.progress import Progress, SilentProgress
from hiero.core.text import open_output

APPLIED_PAIRS = 1024  # sentence pairs that a trained model links at a time


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
        perplexity, tension = self.last.perplexity, self.last.tension
        return (
            f"{_counted(self.num_pairs, self.num_empty, self.num_links)}; "
            f"perplexity {perplexity[0]:.1f} of target words, {perplexity[1]:.1f} of source words; "
            f"tension {tension[0]:.2f}, {tension[1]:.2f}"
        )


class ApplySummary(NamedTuple):
    """Statistics of a bitext that a trained model has aligned."""

    num_pairs: int
    num_empty: int
    num_links: int

    def __str__(self) -> str:
        return _counted(*self)


def _counted(num_pairs: int, num_empty: int, num_links: int) -> str:
    empty = f", {num_empty:,} of them with an empty side" if num_empty else ""
    return f"{num_pairs:,} sentence pairs{empty}; {num_links:,} links"


def align_files(
    source: str | Path,
    target: str | Path,
    output: str | Path,
    config: AlignConfig,
    *,
    directions: Mapping[str, str | Path] | None = None,
    model: str | Path | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> AlignSummary:
    """Align a bitext and write its links.

    directions  files for ``forward`` and ``reverse`` links
    model       directory for the trained model
    """
    if model is not None:
        MODEL.check_place(Path(model))
    # Opened first, so that a path that cannot be written is an error before the work.
    with _outputs({config.symmetrize: output}, directions) as streams:
        bitext = read_bitext(source, target)
        trainer = trained(bitext, config, threads, progress)
        links = trainer.decode()
        found = [combine(bitext, links, method) for _, method in streams]
        for (stream, _), one in zip(streams, found, strict=True):
            write_alignment(stream, one.first, one.link)
        if model is not None:
            write_model(Path(model), model_of(trainer, bitext))
    return AlignSummary(bitext.num_pairs, _num_empty(bitext), len(found[0].link), trainer.history[-1])


def apply_files(
    model: AlignmentModel,
    source: str | Path,
    target: str | Path,
    output: str | Path,
    *,
    method: str | None = None,
    directions: Mapping[str, str | Path] | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> ApplySummary:
    """Align a bitext by a trained model, piece by piece, and write its links; see ``align_files``."""
    progress = progress or SilentProgress()
    progress.begin(None, "align")
    num_pairs, num_empty, num_links = 0, 0, 0
    with _outputs({method or model.symmetrize: output}, directions) as streams:
        methods = [one for _, one in streams]

        def work(part: Bitext) -> tuple[Bitext, list[Alignment]]:
            links = model.links(part)
            return part, [combine(part, links, one) for one in methods]

        parts = bitext_parts(source, target, APPLIED_PAIRS)
        for part, found in in_order(work, parts, threads):
            for (stream, _), one in zip(streams, found, strict=True):
                write_alignment(stream, one.first, one.link)
            num_pairs += part.num_pairs
            num_empty += _num_empty(part)
            num_links += len(found[0].link)
            progress.advance(part.num_pairs)
    return ApplySummary(num_pairs, num_empty, num_links)


@contextmanager
def _outputs(
    output: Mapping[str, str | Path], directions: Mapping[str, str | Path] | None
) -> Iterator[list[tuple[IO[bytes], str]]]:
    """Streams and their methods; that of the symmetrised links is the first."""
    with ExitStack() as stack:
        files = [*output.items(), *(directions or {}).items()]
        yield [(stack.enter_context(open_output(path)), method) for method, path in files]


def _num_empty(bitext: Bitext) -> int:
    return int(((bitext.src.length == 0) | (bitext.tgt.length == 0)).sum())
