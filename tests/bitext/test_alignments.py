"""Reading bitexts; reading, writing and comparing alignments."""

from __future__ import annotations

import gzip
import io
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.bitext import alignments as pharaoh
from hiero.bitext.alignments import check_alignment, read_alignment, score_alignment, write_alignment
from hiero.bitext.corpus import Text, read_bitext, read_text
from hiero.core.errors import FormatError
from hiero.core.scan_kernels import split_lines_kernel
from hiero.core.symbols import table_entry
from tests.alignment.test_symmetrize import alignment, lines_of
from tests.naive import align as naive

# Tokens, separators, and characters that some programs take for separators or line ends.
ALPHABET = ["a", "b", " ", "\t", "\n", "\r", "\r\n", "\u2028", "\u00a0", "\u0085", "\f", "\v", "|||", "[X,1]"]
TEXTS = st.lists(st.sampled_from(ALPHABET), max_size=30).map(lambda parts: "".join(parts))


def words_of(text: Text) -> list[list[bytes]]:
    words = [table_entry(text.words, w) for w in text.word.tolist()]
    return [words[begin:end] for begin, end in zip(text.first[:-1], text.first[1:], strict=True)]


@given(TEXTS)
def test_splitting_lines(text: str) -> None:
    data = text.encode() + b"\n"
    token = np.empty((len(data) // 2 + 1, 2), np.int32)
    last = np.empty(data.count(b"\n"), np.int64)
    num_tokens = split_lines_kernel(np.frombuffer(data, np.uint8), token, last)
    words = [data[start:end] for start, end in token[:num_tokens].tolist()]
    ends = [0, *last.tolist()]
    assert [words[a:b] for a, b in itertools.pairwise(ends)] == naive.split_lines(data)


def test_words_are_numbered_by_first_occurrence(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes("\ufeffder hund\u2028 der\n\n \t\n[X,1] |||\thund\r\nschluß".encode())
    text = read_text(tmp_path / "text")
    assert words_of(text) == [
        [b"der", "hund\u2028".encode(), b"der"],
        [],
        [],
        [b"[X,1]", b"|||", b"hund"],
        ["schluß".encode()],
    ]
    assert text.word.tolist() == [0, 1, 0, 2, 3, 4, 5]
    assert (text.num_lines, text.num_words) == (5, 6)


def test_results_do_not_depend_on_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"".join(b"w%d w%d x\n" % (n % 7, n % 11) for n in range(2000))
    (tmp_path / "text.gz").write_bytes(gzip.compress(content))
    whole = read_text(tmp_path / "text.gz")
    monkeypatch.setattr("hiero.core.text.READ_BYTES", 100)
    monkeypatch.setattr("hiero.core.text.CHUNK_BYTES", 500)
    pieces = read_text(tmp_path / "text.gz")
    assert words_of(pieces) == words_of(whole) == naive.split_lines(content)
    assert np.array_equal(pieces.word, whole.word)


def test_empty_files(tmp_path: Path) -> None:
    for side in ("src", "tgt"):
        (tmp_path / side).write_bytes(b"")
    assert (read_text(tmp_path / "src").num_lines, read_text(tmp_path / "src").num_words) == (0, 0)
    with pytest.raises(FormatError, match="src: found no line, expected sentences, one a line"):
        read_bitext(tmp_path / "src", tmp_path / "tgt")


@pytest.mark.parametrize(
    ("src", "tgt", "message"),
    [
        (
            b"a\nb\nc\n",
            b"x\ny\n",
            "tgt:3: found the end of the file, expected a line, as there are 3 in {}/src "
            "(line n of one file must be the translation of line n of the other)",
        ),
        (
            b"a",
            b"x\n\n",
            "src:2: found the end of the file, expected a line, as there are 2 in {}/tgt "
            "(line n of one file must be the translation of line n of the other)",
        ),
        (
            "gut\nschön\nweiß".encode("latin-1"),
            b"x\ny\nz\n",
            "src:2: found byte 0xf6 at position 4 of the line, expected UTF-8 "
            "(convert the file first, for instance with iconv)",
        ),
        (None, b"x\n", "src: found no such file, expected source text"),
    ],
)
def test_invalid_bitexts(tmp_path: Path, src: bytes | None, tgt: bytes, message: str) -> None:
    if src is not None:
        (tmp_path / "src").write_bytes(src)
    (tmp_path / "tgt").write_bytes(tgt)
    with pytest.raises(FormatError) as caught:
        read_bitext(tmp_path / "src", tmp_path / "tgt")
    assert str(caught.value) == f"{tmp_path}/" + message.format(tmp_path)


LINES = st.lists(
    st.lists(st.tuples(st.integers(0, 120), st.sampled_from([0, 9, 10, 2147483647])), max_size=5), max_size=8
)


@given(LINES, st.integers(1, 6))
def test_links_are_written_and_read(
    tmp_path_factory: pytest.TempPathFactory, lines: object, some: int
) -> None:
    made = alignment(lines)  # type: ignore[arg-type]
    stream = io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pharaoh, "LINKS_AT_ONCE", some)
        write_alignment(stream, made.first, made.link)
    assert stream.getvalue().decode() == naive.format_links(lines)  # type: ignore[arg-type]
    path = tmp_path_factory.mktemp("links") / "align"
    path.write_bytes(stream.getvalue())
    assert lines_of(read_alignment(path)) == lines


LINK = st.tuples(
    st.integers(0, 2147483647),
    st.sampled_from(["-", "?"]),
    st.integers(0, 99),
    st.sampled_from(["", ":s", ":p", ":S", ":P"]),
).map(lambda parts: f"{parts[0]}{parts[1]}{parts[2]}{parts[3] if parts[1] == '-' else ''}")


@given(st.lists(st.lists(st.one_of(LINK, st.sampled_from([" ", "\t", "\r\n", ""])), max_size=6), max_size=5))
def test_sure_and_possible_links(tmp_path_factory: pytest.TempPathFactory, lines: list[list[str]]) -> None:
    text = "".join(" ".join(words) + "\n" for words in lines)
    path = tmp_path_factory.mktemp("links") / "gold"
    path.write_bytes(text.encode())
    found = read_alignment(path, possible=True)
    expected = naive.scan_links(text)
    assert lines_of(found) == [[(i, j) for i, j, _ in line] for line in expected]
    assert found.possible.tolist() == [possible for line in expected for _, _, possible in line]


@pytest.mark.parametrize(
    ("word", "possible"),
    [
        ("1", False),
        ("1-", False),
        ("-1", False),
        ("1--1", False),
        ("a-1", False),
        ("1-1-1", False),
        ("1?1", False),
        ("1-1:p", False),
        ("1-2147483648", False),
        ("1-99999999999999999999", False),
        ("1-1:x", True),
        ("1-1:", True),
        ("1-1:ps", True),
        ("1?1:p", True),
        ("1-1\r", False),
        ("\v", False),
    ],
)
def test_invalid_links(tmp_path: Path, word: str, possible: bool) -> None:
    (tmp_path / "align").write_bytes(f"0-0\n\n1-1 {word} 2-2\n".encode())
    with pytest.raises(FormatError) as caught:
        read_alignment(tmp_path / "align", possible=possible)
    expected = "i-j, i-j:s, i-j:p or i?j" if possible else "i-j"
    assert str(caught.value) == (
        f"{tmp_path}/align:3: found {word!r}, expected {expected} "
        "(positions of a source and a target word, from 0)"
    )


def test_links_must_be_inside_the_sentences() -> None:
    made = alignment([[(0, 0)], [], [(1, 2), (2, 2)]])
    length = np.array([1, 0, 3])
    check_alignment(made, length, length, "align")
    with pytest.raises(FormatError) as caught:
        check_alignment(made, np.array([1, 0, 2]), length, "align")
    assert str(caught.value) == (
        "align:3: found link 2-2, expected positions in 2 source words and 3 target words "
        "(positions count from 0, source before target; does the alignment belong to this bitext?)"
    )
    with pytest.raises(FormatError, match="align:3: found another line, expected 2 lines, one for each"):
        check_alignment(made, length[:2], length[:2], "align")
    with pytest.raises(FormatError, match="align:4: found the end of the file, expected 4 lines"):
        check_alignment(made, np.ones(4, np.int64), np.ones(4, np.int64), "align")


def test_error_rate() -> None:
    gold = alignment([[(0, 0), (1, 1), (2, 1)], [(0, 0)]], [False, False, True, False])
    score = score_alignment(alignment([[(0, 0), (2, 1), (2, 2), (0, 0)], []]), gold)
    assert score.num_links == 3
    assert score.precision == pytest.approx(2 / 3)
    assert score.recall == pytest.approx(1 / 3)
    assert score.error_rate == pytest.approx(1 - (1 + 2) / (3 + 3))
    assert score_alignment(gold, gold).recall == 1
    nothing = alignment([[], []])
    assert score_alignment(nothing, nothing).error_rate == 0
    assert score_alignment(nothing, gold).error_rate == 1
    assert score_alignment(nothing, gold).precision == 1


def test_a_link_given_as_sure_and_possible_is_sure() -> None:
    gold = alignment([[(0, 0), (0, 0), (1, 1)]], [True, False, True])
    score = score_alignment(alignment([[(0, 0)]]), gold)
    assert (score.num_gold, score.num_sure, score.recall) == (2, 1, 1.0)
