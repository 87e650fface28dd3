# mypy: allow-untyped-calls
"""Make and open an index of a bitext, which holds the tables for rule extraction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hiero.bitext.alignments import check_alignment, read_alignment
from hiero.bitext.corpus import Text, read_bitext
from hiero.core.directories import META
from hiero.core.errors import ConfigError, FormatError
from hiero.core.symbols import WordTable, read_only
from hiero.extraction.config import FrequentSettings, RuleLimits
from hiero.extraction.index_part import INDEX, read_index, write_index
from hiero.extraction.lexicon import Side, make_lexicon
from hiero.extraction.lexicon_kernels import spans_kernel
from hiero.extraction.suffix_kernels import collocations_kernel, frequent_kernel, suffix_array_kernel
from hiero.extraction.table_kernels import Collocations, IndexedLinks, IndexedText, LexicalLosses

MAX_LENGTH = 32_000  # words of a sentence: positions in it are int16
Log = Callable[[str], None]
Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class BitextIndex:
    """An indexed bitext. Words count from 1: entry w of a vocabulary is word w + 1."""

    path: Path
    text: IndexedText
    links: IndexedLinks
    lexicon: LexicalLosses
    collocations: Collocations
    src_words: WordTable
    tgt_words: WordTable
    limits: RuleLimits
    frequent: FrequentSettings
    digest: str  # of all arrays

    @property
    def num_sentences(self) -> int:
        return len(self.text.first_src) - 1

    def collocations_for(self, limits: RuleLimits) -> Collocations:
        """Collocations within some limits; computed if they differ from those of the index."""
        if limits == self.limits:
            return self.collocations
        frequent = self.collocations.frequent
        return _collocations(self.text.src, self.text.suffix, frequent, limits, self.frequent)


def make_index(
    src: str | Path,
    tgt: str | Path,
    alignments: Sequence[str | Path],
    out: str | Path,
    *,
    limits: RuleLimits | None = None,
    frequent: FrequentSettings | None = None,
    log: Log = lambda message: None,
) -> None:
    """Index a bitext with one or several alignments, each of which counts like a further bitext."""
    limits, frequent = limits or RuleLimits(), frequent or FrequentSettings()
    log("reading text")
    bitext = read_bitext(src, tgt)
    _check_lengths(src, bitext.src)
    _check_lengths(tgt, bitext.tgt)
    sides = {"src": _side(bitext.src), "tgt": _side(bitext.tgt)}
    words = {"src_words": bitext.src.words, "tgt_words": bitext.tgt.words}
    lengths = bitext.src.length, bitext.tgt.length
    del bitext
    arrays: Arrays = {
        "src": sides["src"].text,
        "first_src": sides["src"].first,
        "tgt": sides["tgt"].text,
        "first_tgt": sides["tgt"].first,
    }
    log("reading alignments")
    links = []
    for path in alignments:
        alignment = read_alignment(path)
        check_alignment(alignment, *lengths, path)
        pair = np.repeat(np.arange(alignment.num_pairs), np.diff(alignment.first))
        links.append(_links(sides["src"], pair, alignment.link))
        del alignment, pair
    log("counting links")
    lexicon = make_lexicon(sides["src"], sides["tgt"], links)
    arrays |= lexicon._asdict()
    arrays |= _spans(sides["src"], sides["tgt"], links)
    arrays |= _all_links(links)
    del links, lexicon
    log("sorting suffixes")
    arrays |= _suffixes(sides["src"])
    log("listing collocations")
    most_frequent = _frequent(arrays["src"], arrays["suffix"], frequent)
    arrays |= _collocations(arrays["src"], arrays["suffix"], most_frequent, limits, frequent)._asdict()
    log("writing")
    sources = [Path(path) for path in (src, tgt, *alignments)]
    write_index(Path(out), arrays, words, asdict(limits) | asdict(frequent), sources)


def _check_lengths(path: str | Path, text: Text) -> None:
    length = text.length
    wrong = np.flatnonzero((length == 0) | (length > MAX_LENGTH))
    if len(wrong):
        line = int(wrong[0])
        found = f"a line of {length[line]} words" if length[line] else "an empty line"
        raise FormatError(
            path,
            line + 1,
            found=found,
            expected=f"1 to {MAX_LENGTH} words",
            hint="leave this pair out of both sides and of the alignment",
        )


def _side(text: Text) -> Side:
    """Convert a text to words from 1, so that 0 can end sentences."""
    numbers = np.zeros(len(text.word) + text.num_lines, np.int32)
    line = np.repeat(np.arange(text.num_lines), text.length)
    numbers[np.arange(len(text.word)) + line] = text.word + 1
    return Side(read_only(numbers), read_only(text.first + np.arange(text.num_lines + 1)), text.num_words)


Link = tuple[npt.NDArray[np.int64], npt.NDArray[np.int16]]


def _links(src: Side, pair: npt.NDArray[np.int64], link: npt.NDArray[np.int32]) -> Link:
    """Distinct links by source position: (offsets of the links of each position, target positions)."""
    key = (src.first[pair] + link[:, 0]) << 16 | link[:, 1]
    if not (np.diff(key) > 0).all():
        key = np.unique(key)
    first = np.zeros(len(src.text) + 1, np.int64)
    np.cumsum(np.bincount(key >> 16, minlength=len(src.text)), out=first[1:])
    return read_only(first), read_only((key & 0xFFFF).astype(np.int16))


def _all_links(links: Sequence[Link]) -> Arrays:
    before = np.cumsum([0, *(len(link) for _, link in links)])
    first = np.stack([first + before[k] for k, (first, _) in enumerate(links)])
    return {"first_link": read_only(first), "link": read_only(np.concatenate([link for _, link in links]))}


def _spans(src: Side, tgt: Side, links: Sequence[Link]) -> Arrays:
    src_span = np.empty((len(links), len(src.text), 2), np.int16)
    tgt_span = np.full((len(links), len(tgt.text), 2), -1, np.int16)
    for k, (first, link) in enumerate(links):
        spans_kernel(src.first, tgt.first, first, link, src_span[k], tgt_span[k])
    return {"src_span": read_only(src_span), "tgt_span": read_only(tgt_span)}


def _suffixes(src: Side) -> Arrays:
    first = np.zeros(src.num_words + 2, np.int64)
    np.cumsum(np.bincount(src.text, minlength=src.num_words + 1), out=first[1:])
    suffix = np.empty(len(src.text), np.int32)
    suffix_array_kernel(src.text, read_only(first), np.empty(len(src.text) + 1, np.int32), suffix)
    sentence = np.repeat(np.arange(len(src.first) - 1, dtype=np.int32), np.diff(src.first))
    return {
        "suffix": read_only(suffix),
        "first_suffix": read_only(first),
        "sentence": read_only(sentence),
    }


def _frequent(
    text: npt.NDArray[np.int32], suffix: npt.NDArray[np.int32], settings: FrequentSettings
) -> npt.NDArray[np.int64]:
    """The most frequent sequences of words, most frequent first; see ``Collocations.frequent``."""
    found = np.zeros((1 << 12, 3), np.int64)
    while True:
        num = frequent_kernel(text, suffix, settings.max_length, settings.min_frequency, found)
        if num <= len(found):
            break
        found = np.zeros((num, 3), np.int64)
    found = found[:num]
    # Among equally frequent ones cdec prefers those that begin later in the text, and longer ones.
    order = np.lexsort((found[:, 2], suffix[found[:, 1]], found[:, 0]))[::-1]
    chosen = found[order[: settings.num_frequent]]
    return read_only(chosen)


def _collocations(
    text: npt.NDArray[np.int32],
    suffix: npt.NDArray[np.int32],
    frequent: npt.NDArray[np.int64],
    limits: RuleLimits,
    settings: FrequentSettings,
) -> Collocations:
    num = len(frequent)
    first_pair, first_triple = np.zeros(num**2 + 1, np.int64), np.zeros(num**3 + 1, np.int64)
    numbers = np.full((len(text), settings.max_length), -1, np.int16)
    for k, (count, low, length) in enumerate(frequent.tolist()):
        numbers[suffix[low : low + count], length - 1] = k
    bounds = np.array(
        [limits.max_span, limits.max_symbols, limits.max_gaps, settings.num_super_frequent], np.int64
    )
    none = np.empty(0, np.int64)
    total = collocations_kernel(text, numbers, bounds, first_pair, first_triple, none) if num else 0
    match = np.empty(total, np.int64)
    if total:
        collocations_kernel(text, numbers, bounds, first_pair, first_triple, match)
    return Collocations(frequent, *map(read_only, (first_pair, first_triple, match)))


def is_index(path: str | Path | None) -> bool:
    return path is not None and INDEX.recognises(Path(path))


def open_index(path: str | Path, *, thorough: bool = False) -> BitextIndex:
    """Map an index; its arrays are read as they are used. ``thorough`` checks all of their content first."""
    path = Path(path)
    meta, arrays, words = read_index(path, thorough=thorough)
    try:
        settings: Mapping[str, int] = meta["settings"]
        limits = RuleLimits(**{name: settings[name] for name in RuleLimits.__dataclass_fields__})
        frequent = FrequentSettings(
            **{name: settings[name] for name in FrequentSettings.__dataclass_fields__}
        )
        digest = "".join(meta["arrays"][name]["sha256"] for name in sorted(meta["arrays"]))
    except (KeyError, TypeError, ConfigError):
        raise INDEX.broken(path / META, "invalid settings", f"a {INDEX.name}") from None
    index = BitextIndex(
        path,
        IndexedText(**_fields(IndexedText, arrays)),
        IndexedLinks(**_fields(IndexedLinks, arrays)),
        LexicalLosses(**_fields(LexicalLosses, arrays)),
        Collocations(**_fields(Collocations, arrays)),
        words["src_words"],
        words["tgt_words"],
        limits,
        frequent,
        digest,
    )
    if not _fits_together(index):
        raise INDEX.broken(path, "arrays that do not fit together", f"a {INDEX.name}")
    return index


def _fields(kind: Any, arrays: Arrays) -> Arrays:
    return {name: arrays[name] for name in kind._fields}


def _fits_together(index: BitextIndex) -> bool:
    text, links, lexicon, listed = index.text, index.links, index.lexicon, index.collocations
    num_places, num_targets = len(text.src), len(text.tgt)
    num_alignments, num_frequent, num_slots = len(links.src_span), len(listed.frequent), len(lexicon.pair_key)
    return bool(
        len(text.sentence) == len(text.suffix) == num_places
        and len(text.first_src) == len(text.first_tgt) > 1
        and text.first_src[-1] == num_places
        and text.first_tgt[-1] == num_targets
        and len(text.first_suffix) == len(index.src_words.first) + 1
        and text.first_suffix[-1] == num_places
        and num_alignments > 0
        and links.src_span.shape == (num_alignments, num_places, 2)
        and links.tgt_span.shape == (num_alignments, num_targets, 2)
        and links.first_link.shape == (num_alignments, num_places + 1)
        and links.first_link[-1, -1] == len(links.link)
        and num_slots & (num_slots - 1) == 0
        and lexicon.pair_loss.shape == (num_slots, 2)
        and listed.frequent.shape == (num_frequent, 3)
        and len(listed.first_pair) == num_frequent**2 + 1
        and len(listed.first_triple) == num_frequent**3 + 1
        and listed.first_triple[-1] == len(listed.match)
    )
