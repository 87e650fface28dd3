"""Word alignment from file to file: of the bitext that a model is trained on, and of others by that model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from hiero.alignment.align import Iteration, trained
from hiero.alignment.config import AlignConfig
from hiero.alignment.dictionary import first_pairs, with_dictionary
from hiero.alignment.links import LinkScores, combine, decoded, links_above, score_links
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
        perplexity, tension, changed = self.last.perplexity, self.last.tension, self.last.changed
        sampling = "" if changed is None else f"; the last samples changed {changed:.1%} of the links"
        return (
            f"{_counted(self.num_pairs, self.num_empty, self.num_links)}; "
            f"perplexity {perplexity[0]:.1f} of target words, {perplexity[1]:.1f} of source words; "
            f"tension {tension[0]:.2f}, {tension[1]:.2f}{sampling}"
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
    scores: str | Path | None = None,
    model: str | Path | None = None,
    memory: int = 0,
    folder: Path | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> AlignSummary:
    """Align a bitext and write its links.

    directions  files for ``forward`` and ``reverse`` links
    scores      file for scores: see ``write_scores``
    model       directory for the trained model
    memory      bytes for word pairs, and folder for temporary files: see ``Trainer``
    """
    if model is not None:
        MODEL.check_place(Path(model))
    # Opened first, so that a path that cannot be written is an error before the work.
    with _outputs(output, directions, scores) as streams:
        own = read_bitext(source, target)
        bitext = with_dictionary(own, config)
        trainer = trained(bitext, config, threads, progress, memory=memory, folder=folder)
        found = trainer.links_above(config.threshold) if config.threshold else None
        if directions or found is None:
            links = trainer.decode("" if found is not None else "decoding")
            found = combine(bitext, links, config.symmetrize) if found is None else found
            for method in directions or ():
                one = first_pairs(combine(bitext, links, method), own.num_pairs)
                write_alignment(streams[method], one.first, one.link)
        scored = trainer.score_links(found) if scores is not None else None
        found = first_pairs(found, own.num_pairs)
        write_alignment(streams[LINKS], found.first, found.link)
        if scored is not None:
            log_prob = scored.log_prob[: own.num_pairs]
            write_scores(streams[SCORES], found, LinkScores(scored.link[: len(found.link)], log_prob))
        if model is not None:
            write_model(Path(model), model_of(trainer, bitext))
    return AlignSummary(own.num_pairs, _num_empty(own), len(found.link), trainer.history[-1])


def apply_files(
    model: AlignmentModel,
    source: str | Path,
    target: str | Path,
    output: str | Path,
    *,
    method: str | None = None,
    threshold: float | None = None,
    directions: Mapping[str, str | Path] | None = None,
    scores: str | Path | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> ApplySummary:
    """Align a bitext by a trained model, piece by piece, and write its links; see ``align_files``.

    method, threshold  in place of those of the model; with ``method``, there is no threshold
    """
    if threshold is None:
        threshold = model.threshold if method is None else 0.0
    progress = progress or SilentProgress()
    progress.begin(None, "align")
    num_pairs, num_empty, num_links = 0, 0, 0
    with _outputs(output, directions, scores) as streams:

        def work(part: Bitext) -> _Applied:
            fitted, num = model.fitted(part), part.num_pairs
            found = links_above(fitted, 0, num, threshold) if threshold else None
            directed = {}
            if directions or found is None:
                links = decoded(fitted)
                found = combine(part, links, method or model.symmetrize) if found is None else found
                directed = {name: combine(part, links, name) for name in directions or ()}
            scored = None if scores is None else score_links(fitted, 0, num, found.first, found.link)
            return _Applied(part, found, directed, scored)

        for one in in_order(work, bitext_parts(source, target, APPLIED_PAIRS), threads):
            write_alignment(streams[LINKS], one.links.first, one.links.link)
            for name, links in one.directed.items():
                write_alignment(streams[name], links.first, links.link)
            if one.scores is not None:
                write_scores(streams[SCORES], one.links, one.scores)
            num_pairs += one.part.num_pairs
            num_empty += _num_empty(one.part)
            num_links += len(one.links.link)
            progress.advance(one.part.num_pairs)
    return ApplySummary(num_pairs, num_empty, num_links)


class _Applied(NamedTuple):
    """A part of a bitext that a trained model has aligned."""

    part: Bitext
    links: Alignment
    directed: dict[str, Alignment]
    scores: LinkScores | None


LINKS, SCORES = "links", "scores"


@contextmanager
def _outputs(
    output: str | Path, directions: Mapping[str, str | Path] | None, scores: str | Path | None
) -> Iterator[dict[str, IO[bytes]]]:
    """Streams of all output files, by LINKS, the name of a direction, or SCORES."""
    files = {LINKS: output, **(directions or {})} | ({} if scores is None else {SCORES: scores})
    with ExitStack() as stack:
        yield {name: stack.enter_context(open_output(path)) for name, path in files.items()}


def write_scores(stream: IO[bytes], links: Alignment, scores: LinkScores) -> None:
    """Write a line for each sentence pair: its mean log-probability of a word, a tab, posteriors of links."""
    posterior = [f"{value:.4f}" for value in scores.link.tolist()]
    first = links.first.tolist()
    rows = zip(scores.log_prob.tolist(), itertools.pairwise(first), strict=True)
    lines = [f"{score:.4f}\t{' '.join(posterior[begin:end])}\n" for score, (begin, end) in rows]
    stream.write("".join(lines).encode())


def _num_empty(bitext: Bitext) -> int:
    return int(((bitext.src.length == 0) | (bitext.tgt.length == 0)).sum())
