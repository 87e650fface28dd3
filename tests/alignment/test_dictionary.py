"""Dictionaries in training: the same as further sentence pairs, whose links are not written."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hiero
from hiero.alignment.config import AlignConfig
from hiero.alignment.dictionary import read_dictionary
from hiero.alignment.files import align_files
from hiero.bitext.corpus import appended, text_of
from hiero.cli.main import main
from hiero.core.errors import FormatError

SRC = ["a b", "b a", "a b"]
TGT = ["x y", "y x", "x y"]
texts = st.lists(st.lists(st.sampled_from(["a", "b", "ä", "cc"]), max_size=4), max_size=5)


def encoded(lines: list[list[str]]) -> bytes:
    return "".join(" ".join(line) + "\n" for line in lines).encode()


def words_of(text: Any) -> list[list[bytes]]:
    words, first = text.words, text.words.first
    known = [words.pool[a:b].tobytes() for a, b in itertools.pairwise(first)]
    return [[known[w] for w in text.word[a:b]] for a, b in itertools.pairwise(text.first)]


@given(texts, texts)
def test_appended_texts_are_one_text(one: list[list[str]], other: list[list[str]]) -> None:
    first, second = (text_of([encoded(lines)] if lines else []) for lines in (one, other))
    found, expected = appended(first, second), text_of([encoded(one + other)] if one + other else [])
    assert words_of(found) == words_of(expected)
    for array, wanted in zip(found[:2], expected[:2], strict=True):
        assert array.tolist() == wanted.tolist()
    assert found.words.pool.tobytes() == expected.words.pool.tobytes()


@pytest.mark.parametrize("model", ["ibm2", "hmm"])
@pytest.mark.parametrize("threshold", [0.0, 0.4])
def test_entries_count_as_sentence_pairs(model: str, threshold: float, tmp_path: Path) -> None:
    dictionary = tmp_path / "words.tsv"
    dictionary.write_text("a\ty\n\nc d\tz\nb\tx\n")
    settings: dict[str, Any] = {"model": model, "threshold": threshold}
    found = hiero.align(SRC, TGT, dictionary=str(dictionary), dictionary_weight=20, **settings)
    further = (["a", "c d", "b"] * 20, ["y", "z", "x"] * 20)
    expected = hiero.align(SRC + further[0], TGT + further[1], **settings)
    assert found.links == expected.links[: len(SRC)]
    assert found.apply(["c d"], ["z"]) == expected.apply(["c d"], ["z"])
    assert found.links == [[(0, 1), (1, 0)]] * 3  # without the dictionary they are diagonal
    assert hiero.align(SRC, TGT, **settings).links == [[(0, 0), (1, 1)]] * 3


def test_files_have_the_lines_of_the_bitext(tmp_path: Path) -> None:
    dictionary = tmp_path / "words.tsv"
    dictionary.write_text("a\ty\n")
    found = []
    for name, more in (("own", []), ("whole", [("a", "y")] * 3)):
        folder = tmp_path / name
        folder.mkdir()
        for side in range(2):
            lines = [*(SRC, TGT)[side], *(pair[side] for pair in more)]
            (folder / f"{side}").write_text("\n".join(lines) + "\n")
        config = AlignConfig() if more else AlignConfig(dictionary=str(dictionary), dictionary_weight=3)
        outputs = folder / "links", folder / "scores", folder / "fwd"
        summary = align_files(
            folder / "0",
            folder / "1",
            outputs[0],
            config,
            scores=outputs[1],
            directions={"forward": outputs[2]},
        )
        assert summary.num_pairs == len(SRC) + len(more)
        found.append([path.read_text().splitlines()[: len(SRC)] for path in outputs])
        assert [len(path.read_text().splitlines()) for path in outputs] == [summary.num_pairs] * 3
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a\tx\nb x\n", ":2: found 'b x', expected a source phrase, a tab, and its translation"),
        (b"a\t\n", ":1: found 'a.t', expected"),
        (b"a\tb\tc\n", ":1: found 'a.tb.tc', expected"),
        (b"\n \n", ":2: found no entry, expected"),
        (b"", "found no entry, expected"),
        (b"a\t\xff\n", ":1: "),
    ],
)
def test_dictionaries_with_errors(text: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"
    path.write_bytes(text)
    with pytest.raises(FormatError, match=message):
        read_dictionary(path)


def test_a_weight_without_a_dictionary(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["align", "-s", "a", "-t", "b", "--dictionary-weight", "2"]) == 2
    assert "argument --dictionary-weight: requires --dictionary" in capfd.readouterr().err
