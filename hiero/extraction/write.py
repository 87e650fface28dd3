"""Write extracted grammars as text: one for each sentence, or one for a whole bitext; phrase tables.

A kernel writes the same text as ``grammar.cdec.write_cdec``, much faster, for rules of one label, without
named features, whose words are numbered by one table for each side.
"""

from __future__ import annotations

import gzip
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hiero.bitext.alignments import check_alignment, read_alignment
from hiero.bitext.alignments_kernels import SRC_END, SRC_START, TGT_END, TGT_START, phrases_kernel
from hiero.bitext.corpus import read_bitext
from hiero.core.arrays import Bytes, Flags, Floats, Ids, Ints, grown, offsets_of, read_only, row_of_entry
from hiero.core.errors import FormatError
from hiero.core.hash_kernels import table_size
from hiero.core.input import parse_input, terms_attributes
from hiero.core.parallel import in_order
from hiero.core.progress import Progress, SilentProgress
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import pack, table_entry
from hiero.core.text import AUTO, InputForm, Segment, decode_line, open_output, read_lines, write_output
from hiero.extraction.config import PhraseConfig
from hiero.extraction.extractor import Extractor, counted_rules
from hiero.extraction.growth import BitextRules
from hiero.extraction.index import BitextIndex, check_lengths, side_of
from hiero.extraction.lexicon import Side, make_lexicon
from hiero.extraction.lexicon_kernels import (
    LINK_SHIFT,
    SequenceTable,
    fill_sequence_slots_kernel,
    lexical_weights_kernel,
    number_sequences_kernel,
    phrase_links_kernel,
)
from hiero.extraction.table_kernels import LexicalLosses
from hiero.extraction.write_kernels import format_rules_kernel, text_room_kernel
from hiero.grammar.cdec import spell_cdec_word
from hiero.grammar.rules import Rules

OPEN_BRACKET, BAR = 91, 124


class Pieces(NamedTuple):
    """Byte strings end to end: piece p is pool[first[p]:first[p + 1]]."""

    pool: Bytes
    first: Ints


def spellings(table: WordTable) -> tuple[Pieces, int]:
    """Words as a written grammar has them: word w is piece w (there is no word 0); and the number escaped."""
    lead = table.pool[np.minimum(table.first[:-1], max(len(table.pool) - 1, 0))]
    odd = np.flatnonzero((lead == OPEN_BRACKET) | (lead == BAR)).tolist()
    pool, first = table.pool, table.first
    changed = 0
    entries = []
    for word in odd:
        entry = pool[first[word] : first[word + 1]].tobytes()
        spelt = spell_cdec_word(entry)
        changed += spelt != entry
        entries.append(spelt)
    if changed:
        words = [pool[a:b].tobytes() for a, b in zip(first[:-1].tolist(), first[1:].tolist(), strict=True)]
        for word, spelt in zip(odd, entries, strict=True):
            words[word] = spelt
        pool, first = pack(words)
    return Pieces(read_only(pool), read_only(np.concatenate([first[:1], first]))), changed


class RuleText:
    """Writes rules of one index as text."""

    def __init__(self, src: WordTable, tgt: WordTable, label: bytes, names: Sequence[bytes]) -> None:
        self.src, escaped_src = spellings(src)
        self.tgt, escaped_tgt = spellings(tgt)
        self.num_escaped = escaped_src + escaped_tgt
        fixed = [b"[%s] ||| " % label, b" ||| ", b" ||| ", b" ||| "]
        gaps = [b"[%s,1]" % label, b"[%s,2]" % label]
        # A blank and the name before each feature; no blank before the first, which follows the bars.
        features = [(b" " if k else b"") + name + b"=" for k, name in enumerate(names)]
        self.fixed = Pieces(*pack([*fixed, *gaps, *features]))
        self.powers = read_only(np.array([float(f"1e{k}") for k in range(-30, 31)]))

    def lines(self, rules: Rules) -> bytes:
        """A line per rule."""
        room = np.zeros(1, np.int64)
        rules = Rules(**{name: read_only(array) for name, array in rules._asdict().items()})
        sides = rules.first_src, rules.src, rules.first_tgt, rules.tgt
        text_room_kernel(self.src, self.tgt, self.fixed, *sides, rules.dense, rules.first_link, room)
        out = np.empty(int(room[0]), np.uint8)
        used = format_rules_kernel(
            self.src,
            self.tgt,
            self.fixed,
            self.powers,
            *sides,
            rules.dense,
            rules.first_link,
            rules.link,
            out,
        )
        return out[:used].tobytes()


BLOCK = 512  # sentences whose rules are compressed together, for any number of threads
LEVEL = 6  # of compression


class GrammarWriter:
    """Writes extracted rules in cdec's format; the bytes do not depend on the number of threads."""

    def __init__(self, extractor: Extractor, threads: int = 1) -> None:
        self.extractor, self.threads = extractor, threads
        index = extractor.index
        self.text = RuleText(
            index.src_words,
            index.tgt_words,
            extractor.config.category.encode(),
            [name.encode() for name in extractor.features],
        )

    @property
    def num_escaped(self) -> int:
        """Words of the bitext that are escaped in grammars."""
        return self.text.num_escaped

    def sentences(
        self, segments: Iterable[tuple[Path, Segment]], leave_one_out: bool = False
    ) -> Generator[int, None, None]:
        """Write the grammar of each sentence to its path; yields the number of rules of each, in order.

        With ``leave_one_out`` the sentences are those of the bitext from the first on, and each is ignored
        in the extraction of its own rules.
        """

        def write(numbered: tuple[int, tuple[Path, Segment]]) -> int:
            number, (path, segment) = numbered
            lattice = segment.lattice
            words = segment.words if lattice is None else lattice.word_arcs.words
            src = self.extractor.word_ids([word.encode() for word in words])
            arcs = None if lattice is None else lattice.word_arcs.arcs
            rules = self.extractor.rules(src, number if leave_one_out else -1, arcs)
            write_output(path, self.text.lines(rules))
            return len(rules.lhs)

        with closing(in_order(write, enumerate(segments), self.threads)) as results:
            yield from results

    def whole(self, path: str | Path, progress: Progress | None = None) -> int:
        """Write one grammar of the bitext; returns the number of rules.

        It has every rule of any sentence once, where its source side occurs first. The rules are found by
        source side, and sorted by way of temporary files beside the grammar.
        """
        progress = progress or SilentProgress()
        index, min_count = self.extractor.index, self.extractor.config.min_count
        packed = str(path).endswith(".gz")

        def block(start: int) -> tuple[int, bytes]:
            end = min(start + BLOCK, index.num_sentences)
            rules = counted_rules(self.extractor.extended(*found.rules(start, end)), min_count)
            data = self.text.lines(rules)
            return len(rules.lhs), gzip.compress(data, LEVEL, mtime=0) if packed else data

        starts = range(0, index.num_sentences, BLOCK)
        num_rules = 0
        with open_output(path, packed=packed) as stream:
            found = BitextRules(self.extractor, _folder_of(path))
            found.find(self.threads, progress)
            progress.begin(index.num_sentences, "writing")
            with closing(in_order(block, starts, self.threads)) as results:
                for start, (written, data) in zip(starts, results, strict=True):
                    stream.write(data)
                    num_rules += written
                    progress.advance(min(BLOCK, index.num_sentences - start), f"{num_rules} rules")
        return num_rules


def _folder_of(path: str | Path) -> Path | None:
    """The directory of a file; None of a device."""
    path = Path(path)
    is_device = str(path) == "-" or (path.exists() and not path.is_file())
    return None if is_device else path.parent


def read_sentences(
    path: str | Path, leave_out_of: Extractor | None = None, form: InputForm = AUTO
) -> Iterator[Segment]:
    """The sentences of a file in any form of input.

    With ``leave_out_of``, they must be the first ones of its bitext.
    """
    name = "<stdin>" if str(path) == "-" else str(path)
    for number, line in enumerate(read_lines(path, "sentences, a line each"), 1):
        segment = parse_input(decode_line(line, number)[0], name, number, form)
        if leave_out_of is not None and not leave_out_of.is_sentence(number - 1, segment.words):
            further = number > leave_out_of.index.num_sentences
            raise FormatError(
                name,
                number,
                found="a further sentence" if further else "another sentence",
                expected=f"that of the bitext of {leave_out_of.index.path}",
                hint="--leave-one-out is for the source side of the bitext itself, from its first line",
            )
        yield segment


def grammar_name(number: int) -> str:
    """The file name of a sentence's grammar; sentences count from 0."""
    return f"grammar.{number}.gz"


def line_with_grammar(number: int, path: str | Path, segment: Segment) -> str:
    """The sentence as input of hiero decode and cdec, with this grammar in place of any other."""
    attributes = {"grammar": str(path), "id": str(number)}
    attributes |= {key: value for key, value in segment.attributes.items() if not key.startswith("grammar")}
    attributes |= terms_attributes(segment.given)
    quoted = (f"{key}='{value}'" if '"' in value else f'{key}="{value}"' for key, value in attributes.items())
    tag = " ".join(quoted)
    reference = "" if segment.reference is None else f" ||| {' '.join(segment.reference)}"
    text = " ".join(segment.words) if segment.lattice is None else segment.lattice.to_plf()
    return f"<seg {tag}> {text} </seg>{reference}\n"


# ---- phrase tables
#
# A line is ``f ||| e ||| p(f|e) lex(f|e) p(e|f) lex(e|f) ||| links ||| count(e) count(f) count(f, e)``. Pairs
# are those of Koehn, Och and Marcu (2003): words in sequence, at least one link, none that leaves the pair;
# words without links may stand at the edges. The links of a pair are the most frequent ones, or of these the
# first. All pairs are held in memory.

PAIRS_AT_ONCE = 4096  # sentence pairs at a time
LINES = 1 << 14  # written at a time
FIRST_ENTRIES = 1 << 12


class AlignedBitext(NamedTuple):
    """A bitext with one alignment or several, each of which counts like a further bitext.

    links  (int64 [S + 1], int32 [L, 2])  for each alignment; source and target positions, in this order, each
           link once
    """

    src: Side
    tgt: Side
    links: Sequence[tuple[Ints, Ids]]
    lexicon: LexicalLosses
    src_words: WordTable
    tgt_words: WordTable


def aligned_bitext_of(index: BitextIndex) -> AlignedBitext:
    """The bitext in an index."""
    text = index.text
    src = Side(text.src, text.first_src, len(index.src_words.first) - 1)
    tgt = Side(text.tgt, text.first_tgt, len(index.tgt_words.first) - 1)
    links = []
    for first_link in index.links.first_link:
        place = row_of_entry(first_link)
        sentence = np.searchsorted(text.first_src, place, side="right") - 1
        target = index.links.link[first_link[0] : first_link[-1]]
        pairs = np.stack([place - text.first_src[sentence], target], axis=1)
        first = offsets_of(np.bincount(sentence, minlength=len(text.first_src) - 1))
        links.append((read_only(first), read_only(pairs.astype(np.int32))))
    return AlignedBitext(src, tgt, links, index.lexicon, index.src_words, index.tgt_words)


def read_aligned_bitext(src: str | Path, tgt: str | Path, alignments: Sequence[str | Path]) -> AlignedBitext:
    """Read a bitext and its alignments from text files."""
    bitext = read_bitext(src, tgt)
    check_lengths(src, bitext.src)
    check_lengths(tgt, bitext.tgt)
    sides = side_of(bitext.src), side_of(bitext.tgt)
    links, for_lexicon = [], []
    for path in alignments:
        alignment = read_alignment(path)
        check_alignment(alignment, bitext.src.length, bitext.tgt.length, path)
        pair = row_of_entry(alignment.first)
        rows = np.unique(np.column_stack([pair, alignment.link]), axis=0)
        first = offsets_of(np.bincount(rows[:, 0], minlength=bitext.num_pairs))
        link = read_only(rows[:, 1:].astype(np.int32))
        links.append((read_only(first), link))
        place = sides[0].first[rows[:, 0]] + rows[:, 1]
        first_link = offsets_of(np.bincount(place, minlength=len(sides[0].text)))
        for_lexicon.append((read_only(first_link), read_only(link[:, 1].astype(np.int16))))
    lexicon = make_lexicon(*sides, for_lexicon)
    return AlignedBitext(*sides, links, lexicon, bitext.src.words, bitext.tgt.words)


class PhrasePairs(NamedTuple):
    """R phrase pairs with scores, in the order of the first occurrence of their source sides.

    pair    int32 [R, 3]    source phrase, target phrase, links
    times   int64 [R, 3]    of the target phrase, the source phrase, the pair
    score   float64 [R, 4]  p(f|e), lex(f|e), p(e|f), lex(e|f)
    """

    pair: Ids
    times: Ints
    score: Floats
    src: SequenceTable
    tgt: SequenceTable
    links: SequenceTable


class _Numbering:
    """A growing table of sequences."""

    def __init__(self) -> None:
        slot = np.full(table_size(FIRST_ENTRIES), -1, np.int32)
        first, code = np.zeros(FIRST_ENTRIES + 1, np.int64), np.zeros(FIRST_ENTRIES, np.uint64)
        self.table = SequenceTable(
            np.zeros(8 * FIRST_ENTRIES, np.int32), first, code, slot, np.zeros(1, np.int64)
        )

    def number(self, text: Ids, start: Ints, end: Ints) -> Ids:
        ids, done = np.empty(len(start), np.int32), 0
        while (done := number_sequences_kernel(text, start, end, done, self.table, ids)) < len(start):
            self._grow(int(end[done] - start[done]))
        return ids

    def _grow(self, length: int) -> None:
        old = self.table
        entries = 2 * len(old.code)
        slot = np.full(table_size(entries), -1, np.int32)
        fill_sequence_slots_kernel(old.code, int(old.used[0]), slot)
        pool = grown(old.pool, 2 * len(old.pool) + length)
        self.table = SequenceTable(
            pool, grown(old.first, entries + 1), grown(old.code, entries), slot, old.used
        )


def find_phrase_pairs(
    bitext: AlignedBitext, config: PhraseConfig, progress: Progress | None = None
) -> PhrasePairs:
    """All phrase pairs of a bitext with their scores."""
    progress = progress or SilentProgress()
    src, tgt, links = _Numbering(), _Numbering(), _Numbering()
    num_pairs = len(bitext.src.first) - 1
    found, counts = [np.zeros((0, 3), np.int32)], [np.zeros(0, np.int64)]
    progress.begin(num_pairs * len(bitext.links), "phrases")
    for first_link, link in bitext.links:
        for begin in range(0, num_pairs, PAIRS_AT_ONCE):
            end = min(begin + PAIRS_AT_ONCE, num_pairs)
            rows = _occurrences(bitext, first_link, link, begin, end, config.max_length, (src, tgt, links))
            distinct, count = _counted(rows, np.ones(len(rows), np.int64))
            found.append(distinct)
            counts.append(count)
            progress.advance(end - begin)
    rows, count = _counted(np.concatenate(found), np.concatenate(counts))
    pair, pair_count = _with_best_links(rows, count)
    src_count = np.bincount(pair[:, 0], pair_count).astype(np.int64)
    tgt_count = np.bincount(pair[:, 1], pair_count).astype(np.int64)
    each = np.stack([tgt_count[pair[:, 1]], src_count[pair[:, 0]], pair_count], axis=1)
    kept = _kept(pair, each, config, (src.table, tgt.table))
    pair, each = np.ascontiguousarray(pair[kept]), each[kept]
    weight = np.empty((len(pair), 2))
    lexical_weights_kernel(*bitext.lexicon, pair, src.table, tgt.table, links.table, weight)
    score = np.stack([each[:, 2] / each[:, 0], weight[:, 0], each[:, 2] / each[:, 1], weight[:, 1]], axis=1)
    return PhrasePairs(pair, each, score, src.table, tgt.table, links.table)


def _occurrences(
    bitext: AlignedBitext,
    first_link: Ints,
    link: Ids,
    begin: int,
    end: int,
    max_length: int,
    numberings: tuple[_Numbering, _Numbering, _Numbering],
) -> Ids:
    """Source phrase, target phrase and links of each phrase pair in some sentence pairs."""
    src, tgt = bitext.src, bitext.tgt
    without_ends = np.arange(len(src.first))
    sides = read_only(src.first - without_ends), read_only(tgt.first - without_ends)
    first, phrase = phrases_kernel(*sides, first_link, link, begin, end, max_length)
    sentence = begin + row_of_entry(first)
    columns = (src.first[sentence], SRC_START, SRC_END), (tgt.first[sentence], TGT_START, TGT_END)
    rows = np.empty((len(phrase), 3), np.int32)
    for k, (side, (base, start, stop)) in enumerate(zip((src, tgt), columns, strict=True)):
        rows[:, k] = numberings[k].number(side.text, base + phrase[:, start], base + phrase[:, stop])
    offset, code = np.zeros(len(phrase) + 1, np.int64), np.empty(4 * len(phrase), np.int32)
    needed = phrase_links_kernel(first, phrase, begin, first_link, link, offset, code)
    if needed > len(code):
        code = np.empty(needed, np.int32)
        phrase_links_kernel(first, phrase, begin, first_link, link, offset, code)
    rows[:, 2] = numberings[2].number(read_only(code), offset[:-1].copy(), offset[1:].copy())
    return rows


def _counted(rows: Ids, count: Ints) -> tuple[Ids, Ints]:
    """Distinct rows in their order, and the sums of their counts."""
    order = np.lexsort(rows.T[::-1])
    rows, count = rows[order], count[order]
    fresh = np.ones(len(rows), np.bool_)
    fresh[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    first = np.flatnonzero(fresh)
    return rows[first], np.add.reduceat(count, first) if len(first) else count[:0]


def _with_best_links(rows: Ids, count: Ints) -> tuple[Ids, Ints]:
    """Each pair once, with its most frequent links (of these the first), and how often it occurs."""
    order = np.lexsort((rows[:, 2], -count, rows[:, 1], rows[:, 0]))
    rows, count = rows[order], count[order]
    fresh = np.ones(len(rows), np.bool_)
    fresh[1:] = (rows[1:, :2] != rows[:-1, :2]).any(axis=1)
    first = np.flatnonzero(fresh)
    return rows[first], np.add.reduceat(count, first) if len(first) else count[:0]


def _kept(pair: Ids, count: Ints, config: PhraseConfig, sides: tuple[SequenceTable, SequenceTable]) -> Flags:
    """Which pairs are written: frequent ones, those of single words; the most probable of a source phrase."""
    src, tgt = (np.diff(side.first)[pair[:, k]] for k, side in enumerate(sides))
    kept: Flags = (count[:, 2] >= config.min_count) | ((src == 1) & (tgt == 1))
    if config.translations:
        order = np.lexsort((pair[:, 1], -count[:, 2], ~kept, pair[:, 0]))
        ordered = pair[order, 0]
        rank = np.arange(len(pair)) - np.searchsorted(ordered, ordered)
        kept[order[rank >= config.translations]] = False
    return kept


# ---- text


def write_phrase_table(
    path: str | Path, bitext: AlignedBitext, pairs: PhrasePairs, progress: Progress | None = None
) -> int:
    """Write a phrase table, compressed if the name ends in ``.gz``; returns the number of words escaped."""
    progress = progress or SilentProgress()
    src, escaped_src = _spelt(bitext.src_words)
    tgt, escaped_tgt = _spelt(bitext.tgt_words)
    progress.begin(len(pairs.pair), "writing phrases")
    with open_output(path) as stream:
        for begin in range(0, len(pairs.pair), LINES):
            lines = list(_lines(pairs, src, tgt, slice(begin, begin + LINES)))
            stream.write(b"".join(lines))
            progress.advance(len(lines))
    return escaped_src + escaped_tgt


def _spelt(words: WordTable) -> tuple[list[bytes], int]:
    """Words as written, from number 1 on, and how many are escaped."""
    entries = [table_entry(words, word) for word in range(len(words.first) - 1)]
    spelt = [spell_cdec_word(entry) for entry in entries]
    return [b"", *spelt], sum(a != b for a, b in zip(entries, spelt, strict=True))


def _sequence(table: SequenceTable, entry: int) -> list[int]:
    sequence: list[int] = table.pool[table.first[entry] : table.first[entry + 1]].tolist()
    return sequence


def _lines(pairs: PhrasePairs, src: list[bytes], tgt: list[bytes], part: slice) -> Iterator[bytes]:
    rows = zip(pairs.pair[part].tolist(), pairs.score[part].tolist(), pairs.times[part].tolist(), strict=True)
    mask = (1 << LINK_SHIFT) - 1
    for (f, e, a), score, count in rows:
        source = b" ".join(src[word] for word in _sequence(pairs.src, f))
        target = b" ".join(tgt[word] for word in _sequence(pairs.tgt, e))
        links = b" ".join(b"%d-%d" % (k >> LINK_SHIFT, k & mask) for k in _sequence(pairs.links, a))
        yield b"%b ||| %b ||| %.6g %.6g %.6g %.6g ||| %b ||| %d %d %d\n" % (
            source,
            target,
            *score,
            links,
            *count,
        )
