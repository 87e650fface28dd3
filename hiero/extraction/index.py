"""Make and open an index of a bitext: a directory of memory-mapped arrays for rule extraction.

::

    INDEX/meta.json        format, version, limits, source files, digests
    INDEX/src.npy ...      the arrays of IndexedText, IndexedLinks, LexicalLosses and Collocations
    INDEX/src_words_pool   and so on: two ``WordTable``; entry w is word w + 1

An index does not need its source files. But source files that still exist must be unchanged: rules of an
outdated bitext would otherwise go unnoticed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hiero.bitext.alignments import check_alignment, read_alignment
from hiero.bitext.corpus import Text, read_bitext
from hiero.core.arrays import (
    Ids,
    Ints,
    are_offsets,
    is_finite,
    is_within,
    offsets_by_row,
    offsets_of,
    read_only,
    row_of_entry,
)
from hiero.core.directories import META, Kind, digest_of
from hiero.core.errors import ConfigError, FormatError
from hiero.core.progress import Progress, SilentProgress
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import is_sound, word_table_arrays, word_table_files, word_table_from
from hiero.extraction.config import MAX_SPAN, FrequentSettings, RuleLimits
from hiero.extraction.lexicon import Side, make_lexicon
from hiero.extraction.phrase_kernels import link_spans_kernel
from hiero.extraction.suffix_kernels import (
    MAX_LENGTH,
    are_links_kernel,
    are_matches_kernel,
    are_suffixes_kernel,
    collocations_kernel,
    frequent_kernel,
    is_text_kernel,
    suffix_array_kernel,
)
from hiero.extraction.table_kernels import Collocations, IndexedLinks, IndexedText, LexicalLosses

_TABLES: dict[str, tuple[type[np.generic], int]] = {
    "src": (np.int32, 1),
    "sentence": (np.int32, 1),
    "first_src": (np.int64, 1),
    "tgt": (np.int32, 1),
    "first_tgt": (np.int64, 1),
    "suffix": (np.int32, 1),
    "first_suffix": (np.int64, 1),
    "src_span": (np.int16, 3),
    "tgt_span": (np.int16, 3),
    "first_link": (np.int64, 2),
    "link": (np.int16, 1),
    "pair_key": (np.int64, 1),
    "pair_loss": (np.float32, 2),
    "frequent": (np.int64, 2),
    "first_pair": (np.int64, 1),
    "first_triple": (np.int64, 1),
    "match": (np.int64, 1),
}
SIDES = ("src_words", "tgt_words")
Arrays = dict[str, npt.NDArray[Any]]


def _is_sound(meta: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bool:
    text, links, lexicon, listed = _parts(arrays)
    words = [word_table_from(arrays, side) for side in SIDES]
    num_src, num_tgt = (len(table.first) - 1 for table in words)
    none, num_sentences = np.zeros(0, np.int32), len(text.first_src) - 1
    return (
        all(map(is_sound, words))
        and num_sentences > 0
        and len(text.first_tgt) == num_sentences + 1
        and meta.get("sentences") == num_sentences
        and are_offsets(text.first_src, len(text.src))
        and are_offsets(text.first_tgt, len(text.tgt))
        and len(text.sentence) == len(text.suffix) == len(text.src)
        and len(text.first_suffix) == num_src + 2
        and are_offsets(text.first_suffix, len(text.src))
        and bool(is_text_kernel(text.src, text.first_src, num_src, text.sentence))
        and bool(is_text_kernel(text.tgt, text.first_tgt, num_tgt, none))
        and bool(are_suffixes_kernel(text.src, text.suffix, text.first_suffix))
        and _are_links(text, links)
        and _is_lexicon(lexicon)
        and _are_collocations(text, listed)
    )


def _are_links(text: IndexedText, links: IndexedLinks) -> bool:
    num_alignments, num_src, num_tgt = len(links.first_link), len(text.src), len(text.tgt)
    if not (
        num_alignments > 0
        and links.first_link.shape == (num_alignments, num_src + 1)
        and links.src_span.shape == (num_alignments, num_src, 2)
        and links.tgt_span.shape == (num_alignments, num_tgt, 2)
        and links.first_link[-1, -1] == len(links.link)
    ):
        return False
    for a in range(num_alignments):
        if not are_links_kernel(text.first_src, text.first_tgt, links.first_link[a], links.link):
            return False
        src_span, tgt_span = np.empty((num_src, 2), np.int16), np.full((num_tgt, 2), -1, np.int16)
        link_spans_kernel(text.first_src, text.first_tgt, links.first_link[a], links.link, src_span, tgt_span)
        if not (np.array_equal(src_span, links.src_span[a]) and np.array_equal(tgt_span, links.tgt_span[a])):
            return False
    return True


def _is_lexicon(lexicon: LexicalLosses) -> bool:
    key, loss = lexicon
    # As ``are_slots``; a key is no number of an entry.
    size = len(key)
    return (
        size > 0
        and size & (size - 1) == 0
        and int(key.min()) == -1
        and loss.shape == (size, 2)
        and is_finite(loss)
    )


def _are_collocations(text: IndexedText, listed: Collocations) -> bool:
    num_frequent = len(listed.frequent)
    return (
        listed.frequent.shape == (num_frequent, 3)
        and len(listed.first_pair) == num_frequent**2 + 1
        and len(listed.first_triple) == num_frequent**3 + 1
        and is_within(listed.frequent[:, 0], 1, len(text.suffix) + 1)
        and is_within(listed.frequent[:, 1], 0, len(text.suffix))
        # Triples follow the pairs.
        and are_offsets(np.concatenate([listed.first_pair, listed.first_triple]), len(listed.match))
        and bool(are_matches_kernel(text, listed))
    )


def _parts(
    arrays: Mapping[str, npt.NDArray[Any]],
) -> tuple[IndexedText, IndexedLinks, LexicalLosses, Collocations]:
    def part(kind: Any) -> Any:
        return kind(**{name: arrays[name] for name in kind._fields})

    return part(IndexedText), part(IndexedLinks), part(LexicalLosses), part(Collocations)


INDEX = Kind(
    "hiero index", 2, "make it again with hiero index", _TABLES | word_table_files(*SIDES), _is_sound
)


# ---- files


def write_index(
    path: Path,
    tables: Mapping[str, npt.NDArray[Any]],
    words: Mapping[str, WordTable],
    settings: Mapping[str, int],
    sources: Sequence[Path],
) -> None:
    """Write a directory under a temporary name, then rename it; ``words`` by the names in SIDES."""
    arrays = dict(tables) | word_table_arrays(words)
    meta = {
        "sentences": len(tables["first_src"]) - 1,
        "settings": dict(settings),
        "sources": [
            {
                "path": os.path.relpath(source, path.parent),
                "bytes": source.stat().st_size,
                "sha256": digest_of(source),
            }
            for source in sources
        ],
    }
    INDEX.write(path, meta, arrays)


def read_index(path: Path, *, thorough: bool = False) -> tuple[dict[str, Any], Arrays, dict[str, WordTable]]:
    """Map and check an index: the content of ``meta.json``, the arrays, the words of both sides."""
    meta, arrays = INDEX.read(path, thorough=thorough)
    if not isinstance(meta.get("sources"), list) or not isinstance(meta.get("settings"), dict):
        raise INDEX.broken(path / META, "no sources or settings", f"a {INDEX.name}")
    for source in meta["sources"]:
        _check_source(path, source)
    words = {side: word_table_from(arrays, side) for side in SIDES}
    return meta, {name: arrays[name] for name in _TABLES}, words


def _check_source(path: Path, source: Any) -> None:
    try:
        place, num_bytes, digest = path.parent / source["path"], source["bytes"], source["sha256"]
        is_there = place.is_file()
    except (TypeError, KeyError, ValueError, OSError):  # of a name that no file can have, too
        raise INDEX.broken(path / META, "damage", f"a {INDEX.name}") from None
    if is_there and (place.stat().st_size != num_bytes or digest_of(place) != digest):
        raise FormatError(
            place,
            0,
            found="other content than when the index was made",
            expected=f"the file that {path} is made from",
            hint=INDEX.hint,
        )


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


# ---- from a bitext


def make_index(
    src: str | Path,
    tgt: str | Path,
    alignments: Sequence[str | Path],
    out: str | Path,
    *,
    limits: RuleLimits | None = None,
    frequent: FrequentSettings | None = None,
    progress: Progress | None = None,
) -> None:
    """Index a bitext with one or several alignments, each of which counts like a further bitext."""
    limits, frequent = limits or RuleLimits(), frequent or FrequentSettings()
    progress = progress or SilentProgress()
    progress.begin(None, "reading text")
    bitext = read_bitext(src, tgt)
    check_lengths(src, bitext.src)
    check_lengths(tgt, bitext.tgt)
    sides = {"src": side_of(bitext.src), "tgt": side_of(bitext.tgt)}
    words = {"src_words": bitext.src.words, "tgt_words": bitext.tgt.words}
    lengths = bitext.src.length, bitext.tgt.length
    del bitext
    arrays: Arrays = {
        "src": sides["src"].text,
        "first_src": sides["src"].first,
        "tgt": sides["tgt"].text,
        "first_tgt": sides["tgt"].first,
    }
    progress.begin(None, "reading alignments")
    links = []
    for path in alignments:
        alignment = read_alignment(path)
        check_alignment(alignment, *lengths, path)
        pair = row_of_entry(alignment.first)
        links.append(_links(sides["src"], pair, alignment.link))
        del alignment, pair
    progress.begin(None, "counting links")
    lexicon = make_lexicon(sides["src"], sides["tgt"], links)
    arrays |= lexicon._asdict()
    arrays |= _spans(sides["src"], sides["tgt"], links)
    arrays |= _all_links(links)
    del links, lexicon
    progress.begin(None, "sorting suffixes")
    arrays |= _suffixes(sides["src"])
    progress.begin(None, "listing collocations")
    most_frequent = _frequent(arrays["src"], arrays["suffix"], frequent)
    arrays |= _collocations(arrays["src"], arrays["suffix"], most_frequent, limits, frequent)._asdict()
    progress.begin(None, "writing")
    sources = [Path(path) for path in (src, tgt, *alignments)]
    write_index(Path(out), arrays, words, asdict(limits) | asdict(frequent), sources)


def check_lengths(path: str | Path, text: Text) -> None:
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


def side_of(text: Text) -> Side:
    """Convert a text to words from 1, so that 0 can end sentences."""
    numbers = np.zeros(len(text.word) + text.num_lines, np.int32)
    line = row_of_entry(text.first)
    numbers[np.arange(len(text.word)) + line] = text.word + 1
    return Side(read_only(numbers), read_only(text.first + np.arange(text.num_lines + 1)), text.num_words)


Link = tuple[Ints, npt.NDArray[np.int16]]


def _links(src: Side, pair: Ints, link: Ids) -> Link:
    """Distinct links by source position: (offsets of the links of each position, target positions)."""
    key = (src.first[pair] + link[:, 0]) << 16 | link[:, 1]
    if not (np.diff(key) > 0).all():
        key = np.unique(key)
    return read_only(offsets_by_row(key >> 16, len(src.text))), read_only((key & 0xFFFF).astype(np.int16))


def _all_links(links: Sequence[Link]) -> Arrays:
    before = offsets_of(len(link) for _, link in links)
    first = np.stack([first + before[k] for k, (first, _) in enumerate(links)])
    return {"first_link": read_only(first), "link": read_only(np.concatenate([link for _, link in links]))}


def _spans(src: Side, tgt: Side, links: Sequence[Link]) -> Arrays:
    src_span = np.empty((len(links), len(src.text), 2), np.int16)
    tgt_span = np.full((len(links), len(tgt.text), 2), -1, np.int16)
    for k, (first, link) in enumerate(links):
        link_spans_kernel(src.first, tgt.first, first, link, src_span[k], tgt_span[k])
    return {"src_span": read_only(src_span), "tgt_span": read_only(tgt_span)}


def _suffixes(src: Side) -> Arrays:
    first = offsets_by_row(src.text, src.num_words + 1)
    suffix = np.empty(len(src.text), np.int32)
    suffix_array_kernel(src.text, read_only(first), np.empty(len(src.text) + 1, np.int32), suffix)
    sentence = row_of_entry(src.first).astype(np.int32)
    return {"suffix": read_only(suffix), "first_suffix": read_only(first), "sentence": read_only(sentence)}


def _frequent(text: Ids, suffix: Ids, settings: FrequentSettings) -> Ints:
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
    text: Ids, suffix: Ids, frequent: Ints, limits: RuleLimits, settings: FrequentSettings
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


# ---- from disk


def is_index(path: str | Path | None) -> bool:
    return path is not None and INDEX.recognises(Path(path))


def open_index(path: str | Path, *, thorough: bool = False) -> BitextIndex:
    """Map an index. ``thorough`` checks all of it, even if it passed before."""
    path = Path(path)
    meta, arrays, words = read_index(path, thorough=thorough)
    try:
        settings: Mapping[str, int] = meta["settings"]
        limits = RuleLimits(**{name: settings[name] for name in RuleLimits.__dataclass_fields__})
        frequent = FrequentSettings(
            **{name: settings[name] for name in FrequentSettings.__dataclass_fields__}
        )
        numbers = (*astuple(limits), *astuple(frequent))
        is_valid = all(type(number) is int and number >= 0 for number in numbers)
        is_valid = is_valid and is_within(arrays["frequent"][:, 2], 1, frequent.max_length + 1)
        is_valid = is_valid and frequent.max_length <= MAX_SPAN
    except (KeyError, TypeError, ConfigError):
        is_valid = False
    if not is_valid:
        raise INDEX.broken(path / META, "invalid settings", f"a {INDEX.name}")
    digest = " ".join(f"{name} {meta['arrays'][name]}" for name in sorted(INDEX.arrays))
    return BitextIndex(
        path, *_parts(arrays), words["src_words"], words["tgt_words"], limits, frequent, digest
    )
