"""Extraction against cdec on real text: the same rules, features and alignments, also with sampling."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hiero.core.symbols import Symbols
from hiero.core.text import parse_segment
from hiero.extraction.config import ExtractConfig
from hiero.extraction.extractor import FEATURES, Extractor, IndexSource
from hiero.extraction.index import BitextIndex, make_index, open_index
from hiero.grammar.reader import RuleReader
from hiero.grammar.rules import RuleTable
from tests.worlds.extract import ids

pytestmark = [pytest.mark.reference, pytest.mark.heavy]
SENTENCES = 25


@pytest.fixture(scope="module")
def index(reference: Path, tmp_path_factory: pytest.TempPathFactory) -> BitextIndex:
    data = reference.parent / "data" / "multi30k-de-en"
    if not data.is_dir():
        pytest.skip(f"no bitext in {data}")
    path = tmp_path_factory.mktemp("index") / "m30k"
    make_index(data / "train.src.gz", data / "train.trg.gz", [data / "train.align.gz"], path)
    return open_index(path)


def content(table: RuleTable) -> dict[Any, tuple[Any, Any]]:
    """Features and links by source and target side."""
    rules = table.rules

    def rows(first: Any, flat: Any) -> Iterator[bytes]:
        return (flat[a:b].tobytes() for a, b in itertools.pairwise(first.tolist()))

    keys = zip(rows(rules.first_src, rules.src), rows(rules.first_tgt, rules.tgt), strict=True)
    values = zip(rules.dense, rows(rules.first_link, rules.link), strict=True)
    return dict(zip(keys, values, strict=True))


def assert_cdecs(source: IndexSource, words: list[str], grammar: Path, left_out: int = -1) -> None:
    theirs_table = RuleReader(grammar, source.symbols).read()
    names = [source.symbols.names.text(column) for column in theirs_table.columns]
    order = [names.index(name) for name in FEATURES]
    ours, theirs = content(source.extract(ids(source.symbols, words), left_out)), content(theirs_table)
    assert ours.keys() == theirs.keys()
    for key, (values, links) in theirs.items():
        assert np.abs(ours[key][0] - values[order]).max() < 1e-4
        assert ours[key][1] == links


def test_sentences(reference: Path, index: BitextIndex) -> None:
    source = IndexSource(Extractor(index), Symbols())
    lines = (reference / "m30k" / "input.sgm").read_text(encoding="utf-8").split("\n")
    for line in lines[:SENTENCES]:
        segment = parse_segment(line)
        assert_cdecs(source, list(segment.words), reference / "m30k" / segment.attributes["grammar"])


def test_leaving_one_out(reference: Path, index: BitextIndex) -> None:
    source = IndexSource(Extractor(index, ExtractConfig(leave_out="pair")), Symbols())
    text = reference.parent / "data" / "multi30k-de-en" / "train.src.gz"
    with gzip.open(text, "rt", encoding="utf-8", newline="\n") as lines:
        for number, line in enumerate(itertools.islice(lines, SENTENCES)):
            grammar = reference / "m30k" / "loo" / f"grammar.{number}.gz"
            assert_cdecs(source, line.split(), grammar, number)
