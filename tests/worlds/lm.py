"""Random language models as text: small, but with all the odd cases of real ones."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from hiero.lm.load import load_language_models
from hiero.lm.model import LanguageModels
from tests.conftest import import_kenlm

WORDS = ["a", "b", "c", "straße", "|||", "[X,1]", "-0.5", "x\u2028y", "\u00a0", "ngram"]
EIGHTHS = st.integers(-64, 0).map(lambda number: number / 8)


@st.composite
def arpa_texts(draw: st.DrawFn, min_order: int = 1, closed: bool = False) -> str:
    """An ARPA file of order 1 to 6. If ``closed``, every context is listed, as KenLM requires."""
    order = draw(st.integers(min_order, 6))
    words = ["<s>", "</s>", *draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True))]
    words += draw(st.sampled_from([[], ["<unk>"], ["<UNK>"]]))
    sections: list[list[tuple[str, ...]]] = [[(word,) for word in draw(st.permutations(words))]]
    for length in range(2, order + 1):
        context = st.sampled_from(sections[-1]) if closed and sections[-1] else None
        if context is None:
            context = st.tuples(*[st.sampled_from(words)] * (length - 1))
        ngram = st.tuples(context, st.sampled_from(words)).map(lambda pair: (*pair[0], pair[1]))
        sections.append(draw(st.lists(ngram, max_size=0 if closed and not sections[-1] else 8, unique=True)))
    return "".join(_lines(draw, sections))


def _lines(draw: st.DrawFn, sections: list[list[tuple[str, ...]]]) -> Iterator[str]:
    end = draw(st.sampled_from(["\n", "\r\n"]))
    gap = draw(st.sampled_from(["", end, end + end]))
    # Back-offs may be above one; a probability above one, after backing off, cannot be stored.
    highest, backoffs = draw(st.sampled_from([(0.0, ["\t-0.5"]), (-1.0, ["\t0.125"])]))
    backoffs = ["", "\t0", "\t-0", "\t-0.25", *backoffs]
    yield gap + draw(st.sampled_from(["", "# a comment" + end])) + "\\data\\" + end
    for length, ngrams in enumerate(sections, 1):
        yield f"ngram {length}={len(ngrams)}{end}"
    for length, ngrams in enumerate(sections, 1):
        yield f"{end}\\{length}-grams:{end}{gap}"
        for ngram in ngrams:
            backoff = ""
            if length < len(sections):
                backoff = draw(st.sampled_from(backoffs))
            yield f"{draw(EIGHTHS) + highest}\t{' '.join(ngram)}{backoff}{end}"
    yield f"{gap}\\end\\{draw(st.sampled_from(['', end]))}"


@st.composite
def sentences(draw: st.DrawFn) -> list[list[str]]:
    return draw(st.lists(st.lists(st.sampled_from([*WORDS[:5], "<unk>", "unseen"]), max_size=9), max_size=4))


def load_text(folder: Path, text: str) -> LanguageModels:
    path = folder / "model.arpa"
    path.write_bytes(text.encode())
    return load_language_models([("LM", path)])


def kenlm_model(path: Path) -> Any:
    """The model in KenLM, or None if more n-grams are missing than KenLM has room for."""
    kenlm = import_kenlm()
    config = kenlm.Config()
    config.show_progress = False
    config.arpa_complain = kenlm.ARPALoadComplain.NONE
    with _silence_stderr():
        try:
            return kenlm.Model(str(path), config)
        except OSError as error:
            if "pruning" in str(error):
                return None
            raise


@contextlib.contextmanager
def _silence_stderr() -> Iterator[None]:
    """Suppress KenLM's message about a missing <unk> on file descriptor 2."""
    saved, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)
