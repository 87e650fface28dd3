"""Dictionaries as further sentence pairs, from which models of alignment learn as from the bitext."""

from __future__ import annotations

from pathlib import Path

from hiero.alignment.config import AlignConfig
from hiero.bitext.alignments import Alignment
from hiero.bitext.corpus import Bitext, appended, text_of
from hiero.core.arrays import read_only
from hiero.core.errors import FormatError, show
from hiero.core.text import read_utf8_chunks

EXPECTED = "a source phrase, a tab, and its translation"


def with_dictionary(bitext: Bitext, config: AlignConfig) -> Bitext:
    """A bitext, followed by the entries of the dictionary of a configuration, as often as they count."""
    if config.dictionary is None:
        return bitext
    sides = read_dictionary(config.dictionary)
    src, tgt = (text_of([b"".join(side * config.dictionary_weight)] if side else []) for side in sides)
    return Bitext(appended(bitext.src, src), appended(bitext.tgt, tgt))


def read_dictionary(path: str | Path) -> tuple[list[bytes], list[bytes]]:
    """The source phrases and the translations of a dictionary, as lines. Empty lines are no entries."""
    src, tgt = [], []
    number = 0
    for chunk in read_utf8_chunks(path, what="a dictionary"):
        for number, line in enumerate(chunk.data[:-1].split(b"\n"), chunk.first_line):
            if not line.strip():
                continue
            sides = [side.strip() for side in line.split(b"\t")]
            if len(sides) != 2 or not all(sides):
                raise FormatError(path, number, found=show(line), expected=EXPECTED)
            src.append(sides[0] + b"\n")
            tgt.append(sides[1] + b"\n")
    if not src:
        raise FormatError(path, number, found="no entry", expected=EXPECTED)
    return src, tgt


def first_pairs(links: Alignment, num_pairs: int) -> Alignment:
    """The links of the first sentence pairs, which are those of the bitext without its dictionary."""
    if links.num_pairs == num_pairs:
        return links
    end = links.first[num_pairs]
    first, link, possible = links.first[: num_pairs + 1], links.link[:end], links.possible[:end]
    return Alignment(read_only(first), read_only(link), read_only(possible))
