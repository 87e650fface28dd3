"""Write extracted grammars as text: one for each sentence, or one for a whole bitext.

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

from hiero.core.arrays import Bytes, Ints, read_only
from hiero.core.errors import FormatError
from hiero.core.lattice import parse_input
from hiero.core.parallel import in_order
from hiero.core.progress import Progress, SilentProgress
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import pack
from hiero.core.text import Segment, decode_line, open_output, read_lines, write_output
from hiero.extraction.extractor import Extractor, counted_rules
from hiero.extraction.growth import BitextRules
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
    path: str | Path, leave_out_of: Extractor | None = None, form: str = "auto"
) -> Iterator[Segment]:
    """The sentences of a file in one of ``INPUT_FORMATS``.

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
    tag = " ".join(f'{key}="{value}"' for key, value in attributes.items())
    reference = "" if segment.reference is None else f" ||| {' '.join(segment.reference)}"
    text = " ".join(segment.words) if segment.lattice is None else segment.lattice.to_plf()
    return f"<seg {tag}> {text} </seg>{reference}\n"
