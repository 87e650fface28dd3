"""Parallel text, whole and in parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.bitext.corpus import Bitext, Text, bitext_parts, read_bitext
from hiero.core.errors import FormatError
from hiero.core.symbols import table_entry

LINES = st.lists(st.tuples(*[st.sampled_from(["", "a", "a b", " b  c a", "ü\r", "x\ty"])] * 2), min_size=1)


def words_of(text: Text) -> list[list[bytes]]:
    ids = [text.word[begin:end].tolist() for begin, end in zip(text.first, text.first[1:], strict=False)]
    return [[table_entry(text.words, word) for word in line] for line in ids]


def written(folder: Path, pairs: list[tuple[str, str]]) -> list[Path]:
    paths = [folder / "src", folder / "tgt"]
    for path, lines in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return paths


@given(LINES, st.integers(1, 5))
def test_parts_together_are_the_whole(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]], number: int
) -> None:
    paths = written(tmp_path_factory.mktemp("text"), pairs)
    whole, parts = read_bitext(*paths), list(bitext_parts(*paths, number))
    assert [part.num_pairs for part in parts[:-1]] == [number] * (len(parts) - 1)

    def sides(bitext: Bitext) -> list[tuple[list[bytes], list[bytes]]]:
        return list(zip(words_of(bitext.src), words_of(bitext.tgt), strict=True))

    assert [pair for part in parts for pair in sides(part)] == sides(whole)


def test_parts_of_texts_that_do_not_match(tmp_path: Path) -> None:
    src, tgt = written(tmp_path, [("a", "b"), ("c", "d"), ("e", "f")])
    tgt.write_text("b\nd\n")
    found = bitext_parts(src, tgt, 2)
    assert next(found).num_pairs == 2
    with pytest.raises(FormatError, match=r"tgt:3: found the end of the file, expected a line"):
        next(found)
    with pytest.raises(FormatError, match=r"tgt:3: found the end of the file"):
        list(bitext_parts(tgt, src, 5))
    (tmp_path / "none").write_bytes(b"")
    assert list(bitext_parts(tmp_path / "none", tmp_path / "none", 5)) == []
