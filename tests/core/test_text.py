"""Reading text in chunks, plain and gz, and writing output that is complete or absent."""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from hiero.core.errors import FormatError, HieroError
from hiero.core.text import (
    MARK,
    aligned,
    open_output,
    parse_json,
    read_chunks,
    read_lines,
    write_output,
)

texts = st.lists(
    st.sampled_from([b"a", b"\n", b"\r", b"\x0b", b"\x1c", "\u2028".encode(), b"\0", b"word"])
).map(b"".join)


@given(texts, st.integers(1, 20), st.sampled_from(["plain", "gz", "two members", "padded"]))
def test_chunks_hold_whole_lines_and_their_positions(tmp_path_factory, text, chunk_bytes, how):
    path = tmp_path_factory.mktemp("t") / "text"
    half = len(text) // 2
    packed = {
        "plain": text,
        "gz": gzip.compress(text),
        "two members": gzip.compress(text[:half]) + gzip.compress(text[half:]),
        "padded": gzip.compress(text) + b"\0" * 9,
    }
    path.write_bytes(packed[how])
    whole = text if text.endswith(b"\n") or not text else text + b"\n"
    offset, line = 0, 1
    for chunk in read_chunks(path, chunk_bytes):
        assert (chunk.offset, chunk.first_line) == (offset, line)
        assert chunk.data.endswith(b"\n")
        assert chunk.data == whole[offset : offset + len(chunk.data)]
        offset += len(chunk.data)
        line += chunk.data.count(b"\n")
    assert offset == len(whole)
    assert list(read_lines(path)) == (whole[:-1].split(b"\n") if whole else [])


def test_large_files_come_in_many_chunks(tmp_path):
    path = tmp_path / "large.gz"
    path.write_bytes(gzip.compress(b"0123456789\n" * 500_000))
    chunks = list(read_chunks(path))
    assert len(chunks) > 1
    assert b"".join(chunk.data for chunk in chunks) == b"0123456789\n" * 500_000
    assert max(len(chunk.data) for chunk in chunks) < 9 << 20


@pytest.mark.parametrize("cut", [3, 12, 20, -9, -8, -1])
def test_a_truncated_file_is_an_error(tmp_path, cut):
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(os.urandom(100) + b"a\n" * 50)[:cut])
    with pytest.raises(FormatError, match="expected a whole gz file"):
        list(read_chunks(path))


def test_damaged_gz_and_trailing_garbage(tmp_path):
    path = tmp_path / "bad.gz"
    packed = gzip.compress(bytes(range(200)) * 50)
    for data in (packed[:60] + b"????" + packed[64:], packed + b"rubbish"):
        path.write_bytes(data)
        with pytest.raises(FormatError, match="found damaged compressed data"):
            list(read_chunks(path))


def test_standard_input(monkeypatch, tmp_path):
    path = tmp_path / "in.gz"
    path.write_bytes(gzip.compress(b"a\nb"))
    with path.open("rb") as stream:
        monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": stream}))
        assert list(read_lines("-")) == [b"a", b"b"]


def test_output_appears_only_when_it_is_complete(tmp_path):
    path = tmp_path / "out.txt"
    path.write_bytes(b"old")
    with open_output(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
        assert (tmp_path / "out.txt.part").exists()
    assert path.read_bytes() == b"new"
    with contextlib.suppress(KeyError), open_output(path) as file:
        file.write(b"half")
        raise KeyError
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_equal_content_is_an_equal_gz_file(tmp_path):
    for name in ("a.gz", "b.gz"):
        with open_output(tmp_path / name) as file:
            file.write(b"text\n")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"text\n"


def test_a_full_disk(tmp_path):
    with pytest.raises(FormatError, match="found no space left on device, expected room to write"):
        write_on_a_full_disk(tmp_path / "out")
    assert os.listdir(tmp_path) == []


def write_on_a_full_disk(path):
    with open_output(path) as file:
        file.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_unwritable_output(tmp_path):
    with (
        pytest.raises(FormatError, match="expected a writable path"),
        open_output(tmp_path / "no" / "out"),
    ):
        pass


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="needs a device to write to")
def test_devices_are_written_directly():
    with open_output("/dev/null") as file:
        file.write(b"gone")
    assert not Path("/dev/null").is_file()


def test_a_second_writer_is_refused(tmp_path):
    path = tmp_path / "out"
    with open_output(path) as file:
        file.write(b"first")
        with pytest.raises(HieroError, match=r"out: another process is writing this output$"):
            write_output(path, "second")
    assert path.read_bytes() == b"first"
    write_output(path, "second")
    assert path.read_bytes() == b"second"
    assert os.listdir(tmp_path) == ["out"]


def test_what_a_killed_writer_left_is_replaced(tmp_path):
    (tmp_path / "out.part").write_text("half")
    (tmp_path / "out.part.lock").write_bytes(MARK)
    write_output(tmp_path / "out", "whole")
    assert (tmp_path / "out").read_text() == "whole"
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("name", ["out.part", "out.part.old", "out.part.lock"])
@pytest.mark.parametrize("kind", ["file", "directory", "link", "hard link", "dangling link"])
def test_files_of_others_are_neither_removed_nor_written(tmp_path, name, kind):
    place, other = tmp_path / name, tmp_path / "precious"
    other.write_text("precious")
    if kind == "directory":
        place.mkdir()
        place = place / "file"
    if kind in ("file", "directory"):
        place.write_text("precious")
    elif kind == "hard link":
        place.hardlink_to(other)
    else:
        place.symlink_to(other if kind == "link" else tmp_path / "none")
    before = sorted(os.listdir(tmp_path))
    message = "found a directory, expected a writable path|is not from hiero \\(rename or remove it\\)"
    with pytest.raises(HieroError, match=message):
        write_output(tmp_path / "out", "new")
    assert sorted(os.listdir(tmp_path)) == before
    assert other.read_text() == "precious"
    assert kind == "dangling link" or place.read_text() == "precious"


def test_a_link_is_not_followed_even_after_a_kill(tmp_path):
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "out.part").symlink_to("precious")
    (tmp_path / "out.part.lock").write_bytes(MARK)
    with pytest.raises(HieroError, match=r"out\.part: already exists and is not from hiero"):
        write_output(tmp_path / "out", "new")
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_line_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr("hiero.core.text.LONGEST_LINE", 1 << 20)
    path = tmp_path / "one.gz"
    path.write_bytes(gzip.compress(b"first\n" + os.urandom(1 << 20).hex().encode()))
    with pytest.raises(FormatError, match=r"one\.gz:2: found a line of more than 1 MB, expected text"):
        list(read_chunks(path, 1 << 16, "text"))
    path.write_bytes(b"first\n" + b"a" * (1 << 20) + b"\n")
    assert len(list(read_lines(path))) == 2


@pytest.mark.parametrize("text", [b"a", b"\n", b"a b\n"])
def test_a_gz_bomb(tmp_path, monkeypatch, text):
    monkeypatch.setattr("hiero.core.text.FREE_GROWTH", 1 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(text * (10 << 20)))
    with pytest.raises(
        FormatError, match="found data that grow more than 100-fold, expected compressed text"
    ):
        for _ in read_chunks(path):
            pass


def test_nested_json():
    assert parse_json("[1]") == [1]
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json("[" * 100_000)


def cells_of(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me") else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


TEXTS = st.lists(st.text(st.sampled_from("aé日本かｱＡ‘e\u0301"), max_size=6), min_size=2, max_size=2)


@given(rows=st.lists(TEXTS, min_size=1, max_size=4))
def test_columns_of_wide_characters(rows):
    for line, (first, second) in zip(aligned(rows, left=[0]), rows, strict=True):
        before = line.removesuffix(second) if second else line
        widest = max(cells_of(row[0]) for row in rows), max(cells_of(row[1]) for row in rows)
        if second:
            assert cells_of(before) == widest[0] + 2 + widest[1] - cells_of(second)
        assert line.startswith(first)
        assert cells_of(first) == cell_len(first)
