"""Random small bitexts, their files and their rules."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis.strategies as st

from hiero.core.symbol_kernels import gap_index
from hiero.core.symbols import Symbols
from hiero.extraction.config import ExtractConfig, FrequentSettings
from hiero.extraction.extractor import IndexSource
from hiero.extraction.index import BitextIndex, make_index, open_index
from hiero.grammar.rules import RuleTable
from tests.naive import extract as naive

WORDS, FOREIGN = "abcd", "wxyz"


@dataclass
class World:
    bitext: naive.Bitext
    limits: naive.Limits
    sentences: list[list[str]]


@st.composite
def worlds(draw: Any, max_pairs: int = 5, max_words: int = 7) -> World:
    """A bitext with one or two alignments, limits of every kind, and sentences to extract rules for."""

    def words(alphabet: str) -> Any:
        # Few words, so that phrases repeat.
        return st.lists(st.sampled_from(alphabet), min_size=1, max_size=max_words)

    pairs = draw(st.lists(st.tuples(words(WORDS[:3]), words(FOREIGN)), min_size=1, max_size=max_pairs))
    alignments = []
    for _ in range(draw(st.integers(1, 2))):
        alignment = []
        for src, tgt in pairs:
            link = st.tuples(st.integers(0, len(src) - 1), st.integers(0, len(tgt) - 1))
            most = draw(st.sampled_from([2, len(src), 2 * len(src)]))
            alignment.append(draw(st.lists(link, max_size=most)))
        alignments.append(alignment)
    limits = naive.Limits(
        span=draw(st.sampled_from([15, 2, 3, 5])),
        symbols=draw(st.sampled_from([5, 1, 2, 3, 4])),
        gaps=draw(st.sampled_from([2, 0, 1])),
        samples=draw(st.sampled_from([300, 1, 2, 3])),
        num_frequent=draw(st.sampled_from([100, 2, 4])),
        num_super=draw(st.sampled_from([1, 0, 3])),
        min_frequency=draw(st.sampled_from([1000, 2, 3])),
        frequent_length=draw(st.sampled_from([4, 1, 2])),
    )
    bitext = naive.Bitext([src for src, _ in pairs], [tgt for _, tgt in pairs], alignments)
    return World(bitext, limits, draw(st.lists(words(WORDS), min_size=1, max_size=3)) + bitext.src)


def write_files(bitext: naive.Bitext, folder: Path) -> tuple[Path, Path, list[Path]]:
    """A bitext as files: source, target, alignments."""
    paths = [folder / "src", folder / "tgt"]
    for path, side in zip(paths, (bitext.src, bitext.tgt), strict=True):
        path.write_text("".join(" ".join(words) + "\n" for words in side), encoding="utf-8")
    aligned = []
    for number, alignment in enumerate(bitext.alignments):
        aligned.append(folder / f"align{number}")
        lines = (" ".join(f"{s}-{t}" for s, t in links) + "\n" for links in alignment)
        aligned[-1].write_text("".join(lines), encoding="utf-8")
    return paths[0], paths[1], aligned


@contextmanager
def indexed(world: World) -> Iterator[BitextIndex]:
    """The index of a bitext; its collocations are those of the world's limits."""
    limits = world.limits
    with tempfile.TemporaryDirectory() as name:
        frequent = FrequentSettings(
            num_frequent=limits.num_frequent,
            num_super_frequent=limits.num_super,
            min_frequency=limits.min_frequency,
            max_length=limits.frequent_length,
        )
        src, tgt, aligned = write_files(world.bitext, Path(name))
        make_index(src, tgt, aligned, Path(name) / "index", frequent=frequent)
        yield open_index(Path(name) / "index")


def config_of(limits: naive.Limits, **more: Any) -> ExtractConfig:
    return ExtractConfig(
        max_span=limits.span,
        max_symbols=limits.symbols,
        max_gaps=limits.gaps,
        samples=limits.samples,
        **more,
    )


def ids(symbols: Symbols, sentence: list[str]) -> Any:
    return symbols.words.intern_all(word.encode() for word in sentence)


Side = tuple[Any, ...]


def rules_of(table: RuleTable, symbols: Symbols) -> dict[tuple[Side, Side], naive.Rule]:
    """A table in the format of the twin."""
    rules, found = table.rules, {}

    def side(first: Any, flat: Any, r: int) -> Side:
        codes = flat[first[r] : first[r + 1]].tolist()
        return tuple(symbols.words.text(code) if code >= 0 else int(gap_index(code)) for code in codes)

    for r in range(table.num_rules):
        values = rules.dense[r].tolist()
        links = [tuple(link) for link in rules.link[rules.first_link[r] : rules.first_link[r + 1]].tolist()]
        seen, count = (round(10 ** values[k]) - 1 for k in (1, 2))
        key = side(rules.first_src, rules.src, r), side(rules.first_tgt, rules.tgt, r)
        assert key not in found
        found[key] = naive.Rule(seen, count, values[5] == 1, links, values)
    return found


def extracted(source: IndexSource, sentence: list[str], left_out: int = -1) -> Any:
    return rules_of(source.extract(ids(source.symbols, sentence), left_out), source.symbols)
