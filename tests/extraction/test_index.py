"""Indexes: kernels against naive twins, and error messages for broken input."""

from __future__ import annotations

import gzip
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from benchmarks.mutants import reseal
from hiero.cli.main import main
from hiero.core.arrays import read_only
from hiero.core.errors import FormatError, HieroError
from hiero.core.symbols import Symbols, table_entry
from hiero.extraction.config import RuleLimits
from hiero.extraction.extractor import Extractor, IndexSource
from hiero.extraction.index import BitextIndex, open_index
from hiero.extraction.suffix_kernels import (
    are_links_kernel,
    are_matches_kernel,
    are_suffixes_kernel,
    frequent_kernel,
    is_text_kernel,
    suffix_array_kernel,
)
from tests.naive import extract as naive
from tests.worlds.extract import World, extracted, indexed, worlds, write_files

texts = st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=9), min_size=1, max_size=8).map(
    lambda sentences: [word for words in sentences for word in [*words, 0]]
)
# Long repeats, which need several rounds of sorting, and groups too large for insertion sort.
repetitive = st.tuples(texts, st.integers(1, 25)).map(lambda pair: pair[0] * pair[1])


def suffixes_of(text: list[int]) -> np.ndarray:
    array = read_only(np.array(text, np.int32))
    first = np.zeros(max(text) + 2, np.int64)
    np.cumsum(np.bincount(array), out=first[1:])
    suffix, rank = np.empty(len(text), np.int32), np.empty(len(text) + 1, np.int32)
    suffix_array_kernel(array, read_only(first), rank, suffix)
    assert rank[suffix].tolist() == list(range(len(text)))
    return suffix


@given(texts | repetitive)
@settings(max_examples=100)
def test_suffixes_are_sorted(text: list[int]) -> None:
    assert suffixes_of(text).tolist() == naive.suffix_array(text)


def test_a_text_of_one_word_over_and_over() -> None:
    text = [1] * 500 + [0]
    assert suffixes_of(text).tolist() == [500, *range(499, -1, -1)]


@given(texts, st.integers(1, 4), st.integers(1, 4))
def test_frequent_sequences(text: list[int], longest: int, least: int) -> None:
    suffix = read_only(suffixes_of(text))
    array = read_only(np.array(text, np.int32))
    few, many = np.zeros((1, 3), np.int64), np.zeros((200, 3), np.int64)
    found = frequent_kernel(array, suffix, longest, least, many)
    assert frequent_kernel(array, suffix, longest, least, few) == found
    pieces = [
        (tuple(text[suffix[low] : suffix[low] + length]), count)
        for count, low, length in many[:found].tolist()
    ]
    expected = naive.frequent(text, longest, least)
    assert sorted(piece for piece, _ in pieces) == sorted(expected)
    for piece, count in pieces:
        starts = range(len(text))
        assert count == sum(tuple(text[start : start + len(piece)]) == piece for start in starts)


def word_of(index: BitextIndex, side: str, word: int) -> str | None:
    table = index.src_words if side == "src" else index.tgt_words
    return table_entry(table, word - 1).decode() if word else None


@given(worlds())
@settings(max_examples=40)
def test_lexical_tables(world: World) -> None:
    expected = naive.lexicon(world.bitext)
    with indexed(world) as index:
        found = {}
        for key, loss in zip(index.lexicon.pair_key.tolist(), index.lexicon.pair_loss.tolist(), strict=True):
            if key >= 0:
                pair = word_of(index, "src", key >> 32), word_of(index, "tgt", key & 0xFFFFFFFF)
                found[pair] = tuple(10**-value for value in loss)
    assert found.keys() == expected.keys()
    for pair, probabilities in expected.items():
        assert found[pair] == pytest.approx(probabilities, rel=1e-5)


@given(worlds())
@settings(max_examples=40)
def test_spans_and_links(world: World) -> None:
    bitext = world.bitext
    with indexed(world) as index:
        for a, alignment in enumerate(bitext.alignments):
            for s, links in enumerate(alignment):
                src = slice(index.text.first_src[s], index.text.first_src[s + 1] - 1)
                tgt = slice(index.text.first_tgt[s], index.text.first_tgt[s + 1] - 1)
                back = [(t, s) for s, t in links]
                assert list(map(tuple, index.links.src_span[a, src].tolist())) == naive.spans(
                    len(bitext.src[s]), links
                )
                assert list(map(tuple, index.links.tgt_span[a, tgt].tolist())) == naive.spans(
                    len(bitext.tgt[s]), back
                )
                first = index.links.first_link[a].tolist()
                for word, place in enumerate(range(src.start, src.stop)):
                    linked = index.links.link[first[place] : first[place + 1]].tolist()
                    assert linked == sorted(naive.targets(links, word, word + 1))


@given(worlds())
@settings(max_examples=40)
def test_collocations(world: World) -> None:
    limits = world.limits
    finder = naive.Finder(world.bitext, limits)
    with indexed(world) as index:
        wanted = RuleLimits(max_span=limits.span, max_symbols=limits.symbols, max_gaps=limits.gaps)
        listed = index.collocations_for(wanted)
        text = index.text
        assert len(listed.match) == sum(map(len, finder.listed.values()))
        runs = [
            tuple(
                word_of(index, "src", word)
                for word in text.src[text.suffix[low] : text.suffix[low] + length].tolist()
            )
            for _, low, length in listed.frequent.tolist()
        ]
        num = len(runs)
        found: dict[Any, Any] = {}
        for code in range(num**2 + num**3):
            triple = code >= num**2
            number = code - num**2 if triple else code
            first = listed.first_triple if triple else listed.first_pair
            matches = listed.match[first[number] : first[number + 1]].tolist()
            parts = [number // num % num, number % num]
            if triple:
                parts.insert(0, number // num**2)
            pattern = tuple(symbol for part in parts for symbol in (*runs[part], None))[:-1]
            for match in matches:
                place = match >> 16
                s = int(text.sentence[place])
                start = place - int(text.first_src[s])
                starts = (start, start + (match >> 8 & 255), *([start + (match & 255)] if triple else []))
                found.setdefault(pattern, []).append((s, starts))
        assert found == {pattern: matches for pattern, matches in finder.listed.items() if matches}


# ---- errors


BITEXT = naive.Bitext(
    [["das", "haus"], ["das", "buch", "hier"]],
    [["the", "house"], ["the", "book"]],
    [[[(0, 0), (1, 1)], [(0, 0), (1, 1)]]],
)


def make(folder: Path) -> list[str]:
    """The command line that indexes a small bitext."""
    src, tgt, aligned = write_files(BITEXT, folder)
    return ["index", "-q", "-s", str(src), "-t", str(tgt), "-a", str(aligned[0]), "-o", str(folder / "index")]


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err.rstrip("\n")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("tgt", "the house\n", r"tgt:2: found the end of the file, expected a line, as there are 2 in .*src"),
        ("tgt", "the house\nthe book\nthe\n", r"src:3: found the end of the file, expected a line"),
        ("src", "das haus\n\n", r"src:2: found an empty line, expected 1 to 32000 words"),
        ("tgt", " \nthe book\n", r"tgt:1: found an empty line"),
        ("src", "a " * 33000 + "\nb\n", r"src:1: found a line of 33000 words"),
        ("align0", "0-0\n", r"align0:2: found the end of the file, expected 2 lines"),
        ("align0", "0-0\n0-0\n0-0\n", r"align0:3: found another line, expected 2 lines"),
        ("align0", "0-0 2-1\n0-0\n", r"align0:1: found link 2-1, expected positions in 2 source words and 2"),
        ("align0", "0-0\n0-2\n", r"align0:2: found link 0-2, expected positions in 3 source words and 2"),
        ("align0", "0-0\n0-x\n", r"align0:2: found '0-x', expected i-j"),
        ("src", "", r"src:1: found the end of the file"),
    ],
)
def test_broken_bitexts(
    file: str, content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = make(tmp_path)
    (tmp_path / file).write_text(content, encoding="utf-8")
    assert main(command) == 1
    line = last_line(capsys)
    assert re.search(message, line), line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["align0", "src", "tgt"]


def test_an_index_and_its_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([part for part in make(tmp_path) if part != "-q"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "index is complete" in captured.err
    assert main(["index", "--check", str(tmp_path / "index")]) == 0
    assert "2 sentence pairs, 5 and 4 words, alignments: 1; unchanged" in capsys.readouterr().err
    # A second run gives the same bytes.
    shutil.copytree(tmp_path / "index", tmp_path / "copy")
    assert main(make(tmp_path)) == 0
    for path in (tmp_path / "copy").iterdir():
        assert path.read_bytes() == (tmp_path / "index" / path.name).read_bytes()


def test_two_alignments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each counts as another bitext: das is linked to "the" in one and to "house" or "book" in the other."""
    command = make(tmp_path)
    (tmp_path / "crossed").write_text("0-1 1-0\n0-1 1-0\n", encoding="utf-8")
    assert main([*command, "-a", str(tmp_path / "crossed")]) == 0
    assert main(["index", "--check", str(tmp_path / "index")]) == 0
    assert "alignments: 2; unchanged" in capsys.readouterr().err
    (tmp_path / "in").write_text("das\n", encoding="utf-8")
    extract = ["extract", "-q", "-x", str(tmp_path / "index"), "-i", str(tmp_path / "in")]
    assert main([*extract, "-o", str(tmp_path / "grammars")]) == 0
    lines = gzip.decompress((tmp_path / "grammars" / "grammar.0.gz").read_bytes()).decode().splitlines()
    counts = {}
    for line in lines:
        _, src, tgt, features, _ = line.split(" ||| ")
        values = dict(pair.split("=") for pair in features.split())
        if src == "das":
            counts[tgt] = tuple(round(10 ** float(values[name]) - 1) for name in ("SampleCountF", "CountEF"))
    # Four occurrences: two in each of two alignments.
    assert counts == {"the": (4, 2), "house": (4, 1), "book": (4, 1)}
    # A second alignment of another bitext is an error, too.
    (tmp_path / "crossed").write_text("0-1 1-0\n", encoding="utf-8")
    capsys.readouterr()
    assert main([*command, "-a", str(tmp_path / "crossed")]) == 1
    assert re.search(r"crossed:2: found the end of the file, expected 2 lines", last_line(capsys))


def test_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "-s", "x"]) == 2
    assert "argument -t is missing" in last_line(capsys)
    assert main(["index", "--check", "x", "-o", "y"]) == 2
    assert "not allowed with -o" in last_line(capsys)


def test_a_changed_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(make(tmp_path)) == 0
    path = tmp_path / "src"
    path.write_text(path.read_text().replace("hier", "dort"))
    with pytest.raises(FormatError, match="src: found other content than when the index was made"):
        open_index(tmp_path / "index")
    path.unlink()
    assert open_index(tmp_path / "index").num_sentences == 2


def test_damaged_indexes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(make(tmp_path)) == 0
    index = tmp_path / "index"
    whole = {path.name: path.read_bytes() for path in index.iterdir()}

    def damage(name: str, data: bytes | None, message: str, thorough: bool = False) -> None:
        if data is None:
            (index / name).unlink()
        else:
            (index / name).write_bytes(data)
        with pytest.raises(HieroError, match=message) as caught:
            open_index(index, thorough=thorough)
        assert "\n" not in str(caught.value)
        (index / name).write_bytes(whole[name])
        open_index(index)

    for name, data in whole.items():
        if name != "meta.json":
            damage(name, data[:-1] if len(data) > 200 else data[:40], f"{name}: found")
            damage(name, None, f"{name}: found no such file")
    damage("tgt.npy", whole["tgt.npy"][:-4] + b"\1\0\0\0", "tgt.npy: found other content")
    damage("meta.json", b"{}", "meta.json: found something else")
    damage("meta.json", whole["meta.json"].replace(b'"max_span": 15', b'"max_span": 16'), "other content")
    for change, message in (
        ({"version": 0}, "found version 0, expected version 2"),
        ({"settings": 1}, "no sources or settings"),
        ({"settings": {"max_span": 15}}, "invalid settings"),
        ({"sources": [1]}, "found damage"),
    ):
        reseal(index, **change)
        damage("meta.json", (index / "meta.json").read_bytes(), message)


changes = st.lists(st.tuples(st.integers(0, 999), st.integers(-3, 3) | st.integers(0, 99)), max_size=1)


def changed(array: Any, where: list[tuple[int, int]]) -> Any:
    """A copy with some entries a little different."""
    array = np.array(array)
    for place, difference in where if array.size else ():
        array.flat[place % array.size] += difference
    return read_only(array)


@given(worlds(), st.data())
def test_unsound_arrays_of_an_index_are_found(world: World, data: Any) -> None:
    with indexed(world) as index:
        text, links, listed = index.text, index.links, index.collocations
        num_src, num_tgt = (len(table.first) - 1 for table in (index.src_words, index.tgt_words))
    for where in ([], data.draw(changes)):
        src, sentence = changed(text.src, where), changed(text.sentence, where)
        for tokens, first, size, number in (
            (src, text.first_src, num_src, text.sentence),
            (text.src, text.first_src, num_src, sentence),
            (changed(text.tgt, where), text.first_tgt, num_tgt, text.sentence[:0]),
        ):
            expected = naive.is_text(tokens.tolist(), first.tolist(), size, number.tolist())
            assert is_text_kernel(tokens, first, size, number) == expected
        for suffix, first in (
            (changed(text.suffix, where), text.first_suffix),
            (text.suffix, changed(text.first_suffix, where)),
        ):
            if first[0] == 0 and first[-1] == len(suffix) and (np.diff(first) >= 0).all():
                expected = naive.are_suffixes(text.src.tolist(), suffix.tolist(), first.tolist())
                assert are_suffixes_kernel(text.src, suffix, first) == expected
        for first, link in (
            (links.first_link[0], changed(links.link, where)),
            (changed(links.first_link[0], where), links.link),
        ):
            arrays = text.first_src, text.first_tgt, first, link
            assert are_links_kernel(*arrays) == naive.are_links(*(array.tolist() for array in arrays))
        moved = data.draw(st.sampled_from([0, 1, 1 << 8, 1 << 16, -(1 << 16), 99 << 16])) if where else 0
        other = listed._replace(match=changed(listed.match, [(place, moved) for place, _ in where]))
        rows = [
            [other.match[a:b].tolist() for a, b in itertools.pairwise(first.tolist())]
            for first in (other.first_pair, other.first_triple)
        ]
        expected = naive.are_matches(text.src.tolist(), other.frequent[:, 2].tolist(), *rows)
        assert are_matches_kernel(text, other) == expected


def test_not_an_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = make(tmp_path)
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "precious").write_text("x")
    assert main(command) == 1
    assert "already exists and contains no hiero index" in last_line(capsys)
    with pytest.raises(FormatError, match=r"meta.json: found no such file"):
        open_index(tmp_path / "index")


LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
from hiero.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="no limit on the size of files here")
def test_full_disk(tmp_path: Path) -> None:
    command = make(tmp_path)
    process = subprocess.run(
        [sys.executable, "-c", LIMITED, "150", *command],
        capture_output=True,
        text=True,
        # Without compilation, whose cache would be subject to the limit as well.
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "NUMBA_DISABLE_JIT": "1"},
        check=False,
    )
    assert process.returncode == 1
    assert process.stderr.endswith("cannot be written: file too large\n")
    assert process.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["align0", "src", "tgt"]


def test_other_limits_than_the_index_was_made_for(tmp_path: Path) -> None:
    from hiero.extraction.config import ExtractConfig

    assert main(make(tmp_path)) == 0
    index = open_index(tmp_path / "index")
    wide = extracted(IndexSource(Extractor(index), Symbols()), ["das", "buch", "hier"])
    narrow = extracted(IndexSource(Extractor(index, ExtractConfig(max_gaps=0)), Symbols()), ["das", "buch"])
    assert {key for key in wide if all(isinstance(symbol, str) for symbol in key[0])} == narrow.keys()
