"""Phrase tables: against their definition, and decoded against enumeration."""

from __future__ import annotations

import gzip
import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hiero
from hiero.cli.main import main
from hiero.core.arrays import read_only
from hiero.extraction.config import PhraseConfig
from hiero.extraction.index import make_index, open_index
from hiero.extraction.write import (
    AlignedBitext,
    _Numbering,
    aligned_bitext_of,
    find_phrase_pairs,
    read_aligned_bitext,
    write_phrase_table,
)
from tests.conftest import INTERPRETED
from tests.naive import phrases as naive
from tests.naive import tables
from tests.naive.phrases import Sentence, Words

SOURCE, TARGET = ["a", "b", "c", "[X,1]"], ["u", "v", "w", "|||"]
SPELT = {"[X,1]": "&#91;X,1&#93;", "|||": "&#124;&#124;&#124;"}


@st.composite
def sentence_pairs(draw: st.DrawFn) -> Sentence:
    src = tuple(draw(st.lists(st.sampled_from(SOURCE), min_size=1, max_size=5)))
    tgt = tuple(draw(st.lists(st.sampled_from(TARGET), min_size=1, max_size=5)))
    link = st.tuples(st.integers(0, len(src) - 1), st.integers(0, len(tgt) - 1))
    return src, tgt, frozenset(draw(st.lists(link, max_size=6)))


corpora = st.lists(sentence_pairs(), min_size=1, max_size=4)


def write_corpus(folder: Path, corpus: list[Sentence]) -> list[Path]:
    paths = [folder / name for name in ("src", "tgt", "links")]
    paths[0].write_text("".join(f"{' '.join(src)}\n" for src, _, _ in corpus))
    paths[1].write_text("".join(f"{' '.join(tgt)}\n" for _, tgt, _ in corpus))
    links = [" ".join(f"{i}-{j}" for i, j in sorted(links, reverse=True)) for _, _, links in corpus]
    paths[2].write_text("".join(f"{line}\n" for line in links))
    return paths


def table_in(text: str) -> dict[tuple[Words, Words], naive.Row]:
    table = {}
    for line in text.splitlines():
        src, tgt, scores, links, counts = line.split(" ||| ")
        pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
        row = tuple(map(float, scores.split())), tuple(pairs), tuple(map(int, counts.split()))
        table[tuple(src.split()), tuple(tgt.split())] = row
    return table  # type: ignore[return-value]


def spelt(words: Words) -> Words:
    return tuple(SPELT.get(word, word) for word in words)


def written(folder: Path, bitext: AlignedBitext, config: PhraseConfig) -> str:
    write_phrase_table(folder / "table.gz", bitext, find_phrase_pairs(bitext, config))
    return gzip.decompress((folder / "table.gz").read_bytes()).decode()


@settings(max_examples=40)
@given(corpora, st.integers(1, 5))
def test_tables_equal_their_definition(corpus: list[Sentence], max_length: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        src, tgt, links = write_corpus(folder, corpus)
        config = PhraseConfig(max_length=max_length)
        text = written(folder, read_aligned_bitext(src, tgt, [links]), config)
        make_index(src, tgt, [links], folder / "index")
        assert written(folder, aligned_bitext_of(open_index(folder / "index")), config) == text
        twice = table_in(written(folder, read_aligned_bitext(src, tgt, [links, links]), config))
    found, expected = table_in(text), naive.phrase_table(corpus, max_length)
    assert set(found) == {(spelt(s), spelt(t)) for s, t in expected}
    for key, (scores, _, counts) in expected.items():
        got = found[spelt(key[0]), spelt(key[1])]
        assert got[2] == counts
        assert (got[0][0], got[0][2]) == pytest.approx((scores[0], scores[2]), rel=1e-5)
        # The definition may choose others of equally frequent links.
        own = [
            pair
            for sentence in corpus
            for pair in naive.phrase_pairs(sentence, max_length)
            if pair[:2] == key
        ]
        times = {links: sum(pair[2] == links for pair in own) for _, _, links in own}
        assert times[got[1]] == max(times.values())
        backward, forward = naive.word_probs(corpus)
        swapped = {(e, f): p for (f, e), p in forward.items()}
        assert got[0][1] == pytest.approx(naive.lexical_weight(*key, got[1], backward), rel=1e-5)
        reverse = [(j, i) for i, j in got[1]]
        assert got[0][3] == pytest.approx(naive.lexical_weight(*key[::-1], reverse, swapped), rel=1e-5)
        assert twice[spelt(key[0]), spelt(key[1])][0] == pytest.approx(got[0], rel=1e-5)
        assert twice[spelt(key[0]), spelt(key[1])][2] == tuple(2 * times for times in counts)


@given(st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=9))
def test_sequences_are_numbered(sequences: list[list[int]]) -> None:
    flat = [number for sequence in sequences for number in sequence]
    end = np.cumsum([len(sequence) for sequence in sequences], dtype=np.int64)
    start = end - np.array([len(sequence) for sequence in sequences], np.int64)
    ids = _Numbering().number(read_only(np.array(flat, np.int32)), start, end)
    assert ids.tolist() == tables.numbered([tuple(sequence) for sequence in sequences])


def test_many_sequences() -> None:
    """The table grows."""
    text = np.arange(20_000 if not INTERPRETED else 9_000, dtype=np.int32)
    start = np.arange(len(text), dtype=np.int64)
    numbering = _Numbering()
    for _ in range(2):
        ids = numbering.number(read_only(text), start, np.minimum(start + 3, len(text)))
        assert (ids == start).all()


def test_fewer_translations(tmp_path: Path) -> None:
    corpus: list[Sentence] = [(("a",), (tgt,), frozenset([(0, 0)])) for tgt in "uvuvuw"]
    corpus += [(("a", "b"), ("u", "u"), frozenset([(0, 0), (1, 1)]))] * 2
    corpus += [(("b", "a"), ("v", "u"), frozenset([(0, 0), (1, 1)]))]
    bitext = read_aligned_bitext(*write_corpus(tmp_path, corpus)[:2], [tmp_path / "links"])
    everything = table_in(written(tmp_path, bitext, PhraseConfig()))
    few = table_in(written(tmp_path, bitext, PhraseConfig(translations=2)))
    assert [tgt for src, tgt in few if src == ("a",)] == [("u",), ("v",)]
    assert few.items() <= everything.items()
    often = table_in(written(tmp_path, bitext, PhraseConfig(min_count=2)))
    assert set(everything) - set(often) == {(("b", "a"), ("v", "u"))}


@settings(max_examples=25 if not INTERPRETED else 5)
@given(
    corpora,
    st.lists(st.sampled_from([*SOURCE[:3], "unseen"]), min_size=1, max_size=4),
    st.sampled_from([2, 10]),
    st.sampled_from(["cdec", "keep"]),
)
def test_decoding_equals_enumeration(
    corpus: list[Sentence], words: list[str], limit: int, scale: str
) -> None:
    weights = {"PhraseModel_0": -0.5, "PhraseModel_1": -0.25, "PhraseModel_2": -1.0, "PhraseModel_3": -0.375}
    weights |= {
        "WordPenalty": -0.5,
        "Bracket": -0.125,
        "Distortion": -0.0625,
        "Glue": -0.75,
        "PassThrough": -2.0,
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        src, tgt, links = write_corpus(folder, corpus)
        assert (
            main(
                [
                    "extract",
                    "-q",
                    "--phrases",
                    "-s",
                    str(src),
                    "-t",
                    str(tgt),
                    "-a",
                    str(links),
                    "-o",
                    str(folder / "table.gz"),
                    "--max-length",
                    "3",
                ]
            )
            == 0
        )
        table = table_in(gzip.decompress((folder / "table.gz").read_bytes()).decode())
        config = {
            "grammar": [{"path": str(folder / "table.gz"), "scale": scale}],
            "search": {"brackets": True, "pop_limit": 0, "span_limit": limit},
        }
        model = hiero.load(config, weights=weights, features=["distortion"]) if table else None
    if model is None:
        return
    values = {
        pair: [-math.log10(p) if scale == "cdec" else p for p in scores]
        for pair, (scores, _, _) in table.items()
    }
    expected = naive.translations(values, tuple(words), weights, limit)
    kbest = model.parse(" ".join(words)).kbest(100_000)
    assert {tuple(one.text.split()): one.score for one in kbest} == {
        words: pytest.approx(score, abs=1e-4) for words, score in expected.items()
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("-x INDEX --phrases --all", "requires either -i IN, --all or --phrases"),
        ("--phrases", "--phrases requires either -x INDEX or -s FILE -t FILE -a FILE"),
        ("--phrases -s A -t B", "--phrases requires either -x INDEX or -s FILE -t FILE -a FILE"),
        ("--phrases -x INDEX -s A", "--phrases requires either -x INDEX or -s FILE -t FILE -a FILE"),
        ("--phrases -x INDEX --max-gaps 0", "argument --max-gaps: not allowed with --phrases"),
        ("--phrases -x INDEX --leave-one-out", "argument --leave-one-out: not allowed with --phrases"),
        ("--all -x INDEX --max-length 3", "argument --max-length: requires --phrases"),
        ("--all -x INDEX -s A", "argument --source: requires --phrases"),
        ("--all", "the following arguments are required: -x/--index"),
        ("--phrases -x INDEX --max-length 101", "argument --max-length: found 101, expected 1 to 100"),
    ],
)
def test_errors_of_arguments(
    arguments: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["extract", *arguments.split(), "-o", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
