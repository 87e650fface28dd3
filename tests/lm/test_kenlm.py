"""KenLM binaries: type probing is read, errors name other types."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.core.errors import FormatError
from hiero.lm.arpa import read_arpa
from hiero.lm.kenlm import CHECK, FIXED, read_kenlm
from hiero.lm.table_kernels import insert_kernel, open_table
from tests.lm.test_arpa import contents
from tests.naive import lm as naive

DATA = Path(__file__).parents[1] / "data"
GOOD = (DATA / "tiny.probing").read_bytes()  # build_binary probing tiny.arpa tiny.probing
REBUILD = "(rebuild it with: build_binary probing ARPA OUT, or give the ARPA file itself)"


def test_a_binary_is_the_arpa_it_was_made_from() -> None:
    (binary, words), (arpa, same_words) = read_kenlm(DATA / "tiny.probing"), read_arpa(DATA / "tiny.arpa")
    assert contents(binary, words) == contents(arpa, same_words)
    assert bytes(words.pool) == bytes(same_words.pool)
    assert words.first.tolist() == same_words.first.tolist()
    for field in ("order", "bos", "eos"):
        assert getattr(binary, field).tolist() == getattr(arpa, field).tolist()


@given(st.data(), st.sampled_from([16, 12]))
def test_empty_buckets_are_skipped(data: st.DataObject, size: int) -> None:
    keys = data.draw(st.lists(st.integers(0, 2**64 - 1), max_size=20))
    form = "<Qff" if size == 16 else "<Qf"
    raw = b"".join(struct.pack(form, key, *[-0.5, -0.25][: size // 4 - 2]) for key in dict.fromkeys(keys))
    bucket, table = np.frombuffer(raw, np.uint32).reshape(-1, size // 4), open_table(len(keys))
    assert insert_kernel(bucket, bucket.view(np.float32), table)
    found = {
        int(table.key[2 * slot]): tuple(table.value[4 * slot + 2 : 4 * slot + 4].tolist())
        for slot in np.flatnonzero(table.key[::2])
    }
    assert found == naive.read_kenlm(raw, size)


def changed(offset: int, form: str, value: float) -> bytes:
    data = bytearray(GOOD)
    struct.pack_into(form, data, offset, value)
    return bytes(data)


KIND, WORDS, VERSION = CHECK.size + 8, CHECK.size + 12, CHECK.size + 16


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            changed(KIND, "<I", 2),
            f"found a KenLM binary of type trie, expected a KenLM binary of type probing {REBUILD}",
        ),
        (changed(KIND, "<I", 1), "found a KenLM binary of type probing with rest costs, "),
        (changed(KIND, "<I", 5), "found a KenLM binary of type quantised trie with compressed pointers, "),
        (changed(KIND, "<I", 77), "found a KenLM binary of type unknown (77), "),
        (changed(VERSION, "<I", 3), "found a KenLM binary of type probing, version 3, "),
        (
            changed(WORDS, "<B", 0),
            "found a KenLM binary without its words, expected a KenLM binary of type probing",
        ),
        (
            GOOD.replace(b"version 5", b"version 4"),
            "found 'mmap lm http://kheafield.com/code format version 4', expected a KenLM binary of type "
            f"probing, version 5, 64 bit {REBUILD}",
        ),
        (GOOD[:50], "found 50 bytes, expected more, as its header says (the file is truncated)"),
        (GOOD[: CHECK.size + FIXED.size + 3], "expected more, as its header says (the file is truncated)"),
        (GOOD[:400], "found 400 bytes, expected more, as its header says (the file is truncated)"),
        (
            GOOD[:-3],
            "found 8 words after the tables, expected 9, <unk> first (the file is truncated or damaged)",
        ),
        (changed(CHECK.size, "<B", 9), "found order 9, expected 2 to 6"),
        (changed(CHECK.size + FIXED.size, "<Q", 2**60), "expected more, as its header says"),
        (GOOD.replace(b"</s>\0", b"<xs>\0"), "found a vocabulary without <s> or </s>, expected both"),
    ],
)
def test_errors_are_one_line(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "lm.binary"
    path.write_bytes(data)
    with pytest.raises(FormatError) as caught:
        read_kenlm(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
