"""KenLM binaries: they are read as the models that they were made from, and errors are one line."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hiero.core.arrays import offsets_of, read_only
from hiero.core.errors import FormatError
from hiero.lm.arpa import read_arpa
from hiero.lm.kenlm import CHECK, FIXED, read_kenlm
from hiero.lm.load import load_language_models
from hiero.lm.model import score_text
from hiero.lm.table_kernels import insert_kernel, insert_level_kernel, open_table, unpack_level_kernel
from tests.lm.test_arpa import assert_says, contents
from tests.naive import lm as naive
from tests.worlds.lm import arpa_texts, kenlm_model

DATA = Path(__file__).parents[1] / "data"
GOOD = (DATA / "tiny.probing").read_bytes()  # build_binary probing tiny.arpa tiny.probing
REBUILD = "(rebuild it with: build_binary probing ARPA OUT, or give the ARPA file itself)"


def test_a_binary_is_the_arpa_it_was_made_from() -> None:
    (binary, words), (arpa, same_words) = (
        read(DATA / f"tiny.{kind}").ngrams() for read, kind in ((read_kenlm, "probing"), (read_arpa, "arpa"))
    )
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
    assert insert_kernel(bucket, bucket.view(np.float32), 2, table)
    found = {
        int(table.key[2 * slot]): tuple(table.value[4 * slot + 2 : 4 * slot + 4].tolist())
        for slot in np.flatnonzero(table.key[::2])
    }
    assert found == naive.read_kenlm(raw, size)


# ---- tries

TRIES = {  # build_binary OPTIONS tiny.arpa tiny.NAME
    "trie": "trie",
    "atrie": "-a 22 trie",
    "qtrie": "-q 4 -b 3 trie",
    "qatrie": "-q 5 -b 4 -a 22 trie",
}


@pytest.mark.parametrize("kind", TRIES)
def test_a_trie_is_the_arpa_it_was_made_from(kind: str) -> None:
    said = naive.read_arpa((DATA / "tiny.arpa").read_text("utf-8"))
    assert_says(*read_kenlm(DATA / f"tiny.{kind}").ngrams(), said)


@settings(max_examples=30)
@given(
    arpa_texts(min_order=2),
    st.sampled_from([None, (7, 6), (9, 10)]),
    st.sampled_from([None, 0, 3, 22]),
)
def test_tries_hold_the_content_of_the_model(
    text: str, code_bits: tuple[int, int] | None, pointer_bits: int | None
) -> None:
    said = naive.read_arpa(text)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lm.binary"
        path.write_bytes(naive.write_trie(said, code_bits, pointer_bits))
        assert_says(*read_kenlm(path).ngrams(), said)


@given(st.data())
def test_packed_entries(data: st.DataObject) -> None:
    widths = data.draw(st.tuples(*[st.integers(0, 32)] * 3, st.integers(0, 56)).map(list))
    rows = [[data.draw(st.integers(0, (1 << width) - 1)) for width in widths] for _ in range(5)]
    packed, at = 0, 0
    for row in rows:
        for value, width in zip(row, widths, strict=True):
            packed |= value << at
            at += width
    raw = packed.to_bytes((at + 7) // 8 + 8, "little")
    first = data.draw(st.integers(0, 4))
    word, value, pointer = (
        np.empty(5 - first, np.int64),
        np.empty((5 - first, 2), np.uint32),
        np.empty(5 - first, np.int64),
    )
    source = read_only(np.frombuffer(raw, np.uint8))
    unpack_level_kernel(source, first, np.array(widths), word, value, pointer)
    found = [[int(w), *map(int, v), int(p)] for w, v, p in zip(word, value, pointer, strict=True)]
    assert found == naive.unpack_level(raw, first, widths, 5 - first) == rows[first:]


@given(st.lists(st.lists(st.integers(0, 9), max_size=3), min_size=1, max_size=4))
def test_keys_of_children(children: list[list[int]]) -> None:
    """Bigrams, by their last words."""
    paths = [[last, word] for last, row in enumerate(children) for word in row]
    first_child = offsets_of(map(len, children))
    value, out = np.zeros((len(paths), 2), np.float32), np.empty(len(paths), np.uint64)
    word, parents = np.array([path[1] for path in paths], np.int64), np.arange(len(children), dtype=np.uint64)
    insert_level_kernel(word, value, 0, 0, first_child, parents, 2, out, open_table(len(paths)))
    assert out.tolist() == naive.trie_keys(paths)


@pytest.mark.parametrize(("kind", "length"), [("trie", 140), ("qtrie", 240), ("trie", 400), ("atrie", 350)])
def test_a_truncated_trie(kind: str, length: int, tmp_path: Path) -> None:
    path = tmp_path / "lm.binary"
    path.write_bytes((DATA / f"tiny.{kind}").read_bytes()[:length])
    with pytest.raises(FormatError, match=r"expected more, as its header says \(the file is truncated\)$"):
        read_kenlm(path)


def test_a_damaged_trie(tmp_path: Path) -> None:
    good = (DATA / "tiny.trie").read_bytes()
    path = tmp_path / "lm.binary"
    at = 0xD8 + 16 + 8  # the pointer of the second word
    for offset, value, message in (
        (at, b"\xff", "found a trie whose parts do not fit together, expected n-grams below their endings"),
        (at - 8, b"\0\0\xc0\x7f", "found a probability that is not finite, expected a KenLM binary"),
    ):
        path.write_bytes(good[:offset] + value + good[offset + len(value) :])
        with pytest.raises(FormatError, match=message):
            read_kenlm(path)


def test_versions_of_codes_and_pointers(tmp_path: Path) -> None:
    path = tmp_path / "lm.binary"
    good = (DATA / "tiny.qatrie").read_bytes()
    codes = good.index(bytes([2, 5, 4, 0, 0, 0, 0, 0]))
    for offset, value, message in (
        (codes, 3, "found quantised numbers of version 3, expected version 2"),
        (codes + 1, 26, "found codes of 26 and 4 bits, expected 1 to 25"),
        (codes + 8 + 4 * (32 + 16 + 32) + 16 * 11, 1, "found compressed pointers of version 1, expected ver"),
    ):
        path.write_bytes(good[:offset] + bytes([value]) + good[offset + 1 :])
        with pytest.raises(FormatError, match=message):
            read_kenlm(path)


@pytest.mark.parametrize("kind", TRIES)
def test_tries_have_the_scores_of_kenlm(kind: str) -> None:
    theirs = kenlm_model(DATA / f"tiny.{kind}")
    ours = load_language_models([("LM", DATA / f"tiny.{kind}")])
    for line in (DATA / "tiny.txt").read_text("utf-8").splitlines():
        scored = score_text(ours, 0, f"{line}\n".encode())
        expected = list(theirs.full_scores(line))
        assert scored.prob.tolist() == [np.float32(prob) for prob, _, _ in expected]
        assert scored.length.tolist() == [length for _, length, _ in expected]


def changed(offset: int, form: str, value: float) -> bytes:
    data = bytearray(GOOD)
    struct.pack_into(form, data, offset, value)
    return bytes(data)


KIND, WORDS, VERSION = CHECK.size + 8, CHECK.size + 12, CHECK.size + 16


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            changed(KIND, "<I", 1),
            "found a KenLM binary of type probing with rest costs, expected type probing, trie, or a variant "
            f"of trie {REBUILD}",
        ),
        (changed(KIND, "<I", 5), "found a KenLM binary of type quantised trie with compressed pointers, ver"),
        (changed(KIND, "<I", 77), "found a KenLM binary of type unknown (77), expected type probing, "),
        (changed(VERSION, "<I", 3), "found a KenLM binary of type probing, version 3, "),
        (
            changed(WORDS, "<B", 0),
            "found a KenLM binary without its words, expected a KenLM binary",
        ),
        (
            GOOD.replace(b"version 5", b"version 4"),
            "found 'mmap lm http://kheafield.com/code format version 4', expected a KenLM binary, version 5, "
            f"64 bit {REBUILD}",
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
