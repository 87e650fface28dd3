"""Examples of orientations, against naive twins and on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.bitext.alignments_kernels import phrases_kernel
from hiero.core.arrays import read_only
from hiero.core.directories import GrowingArray
from hiero.core.errors import ConfigError, FormatError, HieroError
from hiero.core.symbols import word_table
from hiero.reordering.config import ExampleConfig
from hiero.reordering.examples import check_features, example_feature_slots, extract_examples, open_examples
from hiero.reordering.phrase_kernels import (
    orientations_kernel,
    phrase_codes_kernel,
    phrase_features_kernel,
    phrase_word_codes_kernel,
)
from hiero.reordering.table_kernels import (
    count_orientation_keys_kernel,
    find_key,
    number_orientation_keys_kernel,
    orientation_key_slots_kernel,
)
from tests.naive import reorder as naive
from tests.worlds.reorder import Pair, bitext_of, pairs, write_bitext


def found_in(found: list[Pair], max_length: int) -> tuple[np.ndarray, np.ndarray]:
    bitext = bitext_of(found)
    args = bitext.src_first, bitext.tgt_first, bitext.link_first, bitext.link
    first, phrase = phrases_kernel(*args, 0, len(found), max_length)
    return read_only(first), read_only(phrase)


@given(st.lists(pairs(), min_size=1, max_size=3), st.integers(1, 5))
def test_phrases_equal_their_twin(found: list[Pair], max_length: int) -> None:
    first, phrase = found_in(found, max_length)
    for s, pair in enumerate(found):
        expected = naive.phrases(len(pair.src), len(pair.tgt), pair.links, max_length)
        got = [tuple(row) for row in phrase[first[s] : first[s + 1]].tolist()]
        assert len(got) == len(set(got))
        by_target = sorted(expected, key=lambda row: (row[2], row[3], row[0], row[1]))
        assert got == by_target


@given(st.lists(pairs(), min_size=1, max_size=3), st.booleans())
def test_orientations_equal_their_twin(found: list[Pair], by_word: bool) -> None:
    first, phrase = found_in(found, 4)
    bitext = bitext_of(found)
    label = np.empty(len(phrase), np.int8)
    orientations_kernel(first, phrase, bitext.link_first, bitext.link, 0, by_word, label)
    for s, pair in enumerate(found):
        here = [tuple(row) for row in phrase[first[s] : first[s + 1]].tolist()]
        assert label[first[s] : first[s + 1]].tolist() == naive.orientations(here, pair.links, by_word)


def test_orientations_of_next_phrases_equal_their_twin(tmp_path: Path) -> None:
    paths = write_bitext(tmp_path, 20)
    for orientation in ("phrase", "word"):
        config = ExampleConfig(min_count=1, max_length=3, orientation=orientation)  # type: ignore[arg-type]
        extract_examples(*paths, tmp_path / orientation, config)
        examples, expected = open_examples(tmp_path / orientation), []
        for src, tgt, align in zip(*(path.read_text().splitlines() for path in paths), strict=True):
            size = len(src.split()), len(tgt.split())
            links = [tuple(map(int, link.split("-"))) for link in align.split()]
            found = sorted(naive.phrases(*size, links, 3), key=lambda row: (row[2], row[3], row[0], row[1]))
            expected += naive.next_orientations(found, size, links, orientation == "word")
        assert examples.next_label.tolist() == expected
        assert len(set(expected)) == 3


@given(st.lists(pairs(), min_size=1, max_size=3), st.integers(0, 3), st.booleans(), st.booleans())
def test_features_equal_their_twin(found: list[Pair], window: int, edges: bool, bag: bool) -> None:
    first, phrase = found_in(found, 4)
    feature_first, key = phrase_features_kernel(*bitext_of(found), 0, first, phrase, window, edges, bag)
    for s, pair in enumerate(found):
        for p in range(first[s], first[s + 1]):
            got = key[feature_first[p] : feature_first[p + 1]].tolist()
            assert len(got) == len(set(got))
            expected = naive.features(pair.src, pair.tgt, pair.links, tuple(phrase[p]), window, edges, bag)
            assert set(got) == set(map(int, expected))


@given(st.lists(st.integers(0, 30), max_size=60))
def test_counts_and_numbers_of_features_equal_their_twins(keys: list[int]) -> None:
    key = read_only(np.array(keys, np.int64))
    table, count, used = np.full(4, -1, np.int64), np.zeros(4, np.int64), np.zeros(1, np.int64)
    done = count_orientation_keys_kernel(key, 0, table, count, used)
    if done < len(keys):
        assert used[0] == 2  # half full
    assert dict(naive.count_keys(keys[:done])) == {
        int(k): int(c) for k, c in zip(table, count, strict=True) if k >= 0
    }
    known = sorted(set(keys))[::2]
    of = read_only(np.array(known, np.int64))
    slot = example_feature_slots(of)
    assert [find_key(of, slot, k) for k in range(32)] == [
        known.index(k) if k in known else -1 for k in range(32)
    ]
    rows = [keys[:7], keys[7:]]
    first = read_only(np.array([0, len(rows[0]), len(keys)], np.int64))
    length, feature = np.empty(2, np.int64), np.empty(len(keys), np.int32)
    size = number_orientation_keys_kernel(first, key, of, slot, length, feature)
    expected = naive.number_keys(rows, {one: n for n, one in enumerate(known)})
    assert length.tolist() == [len(row) for row in expected]
    assert feature[:size].tolist() == [one for row in expected for one in row]


@given(st.lists(pairs(), min_size=1, max_size=2))
def test_hashes_of_phrases_equal_their_twin(found: list[Pair]) -> None:
    first, phrase = found_in(found, 3)
    names = [[b"der", b"die", "über".encode(), b".", b"x"], [b"the", b"a", b"over", b".", b"y"]]
    codes = []
    for words in names:
        table = word_table(words)
        code = np.empty(len(words), np.uint64)
        phrase_word_codes_kernel(table.pool, table.first, code)
        codes.append(read_only(code))
    bitext = bitext_of(found)
    pair_code, source = np.empty(len(phrase), np.uint64), np.empty(len(phrase), np.uint64)
    phrase_codes_kernel(*bitext[:4], *codes, 0, first, phrase, pair_code, source)
    for s, pair in enumerate(found):
        for p in range(first[s], first[s + 1]):
            a, b, c, d = phrase[p].tolist()
            src = [names[0][word] for word in pair.src[a:b]]
            tgt = [names[1][word] for word in pair.tgt[c:d]]
            assert (int(pair_code[p]), int(source[p])) == naive.phrase_codes(src, tgt)


def test_the_example_of_the_paper() -> None:
    """Its Table 1: of three phrase pairs one is monotone, one swapped, one neither."""
    links = [(0, 0), (1, 0), (2, 4), (4, 3), (5, 1), (5, 2)]
    pair = Pair([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4], links)
    first, phrase = found_in([pair], 7)
    bitext = bitext_of([pair])
    label = np.empty(len(phrase), np.int8)
    orientations_kernel(first, phrase, bitext.link_first, bitext.link, 0, False, label)
    of = {tuple(row): orientation for row, orientation in zip(phrase.tolist(), label.tolist(), strict=True)}
    assert of[0, 2, 0, 1] == naive.MONOTONE
    assert of[2, 5, 3, 5] == naive.SWAP
    assert of[5, 6, 1, 3] == naive.OTHER
    row, word = phrase.tolist().index([2, 5, 3, 5]), naive.key
    feature_first, key = phrase_features_kernel(*bitext, 0, first, phrase, 1, False, True)
    around = {word(naive.AROUND, 2), word(naive.AROUND, 6)}  # f2, f6, as unmarked as in the table
    assert around <= set(key[feature_first[row] : feature_first[row + 1]].tolist())
    feature_first, key = phrase_features_kernel(*bitext, 0, first, phrase, 1, False, False)
    assert set(key[feature_first[row] : feature_first[row + 1]].tolist()) == {
        word(naive.BIAS),
        word(naive.PAIR, 3, 5),  # f3 & e5
        word(naive.PAIR, 5, 4),  # f5 & e4
        word(naive.AROUND, 2),  # f2
        word(naive.AROUND + 1, 6),  # f6
    }


def test_examples_on_disk_equal_those_of_the_bitext(tmp_path: Path) -> None:
    paths = write_bitext(tmp_path)
    config = ExampleConfig(min_count=3, window=2, edges=True)
    summary = extract_examples(*paths, tmp_path / "train", config, held_out=tmp_path / "held", every=4)
    train, held = open_examples(tmp_path / "train"), open_examples(tmp_path / "held")
    assert train.digest == held.digest
    assert train.settings == config
    assert summary.num_examples == train.rows.size == train.classes.sum()
    assert summary.num_held_out == held.rows.size == held.classes.sum()
    assert train.classes.tolist() == list(summary.classes)
    # Numbered by falling count, and the counts are those of the examples to train on.
    count = np.bincount(train.rows.feature, minlength=train.num_features)
    assert count.tolist() == train.features.times.tolist()
    assert (np.diff(count) <= 0).all()
    assert count.min() >= 3
    whole = extract_examples(*paths, tmp_path / "all", config)
    assert whole.num_examples == summary.num_examples + summary.num_held_out
    lines = [path.read_text().splitlines() for path in paths]
    expected = 0
    for src, tgt, links in zip(*lines, strict=True):
        pairs_of = [tuple(map(int, link.split("-"))) for link in links.split()]
        expected += len(naive.phrases(len(src.split()), len(tgt.split()), pairs_of, 7))
    assert whole.num_examples == expected
    assert "sieht" in train.frequent["source"]
    assert "." not in train.frequent["source"]


def test_results_do_not_depend_on_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = write_bitext(tmp_path)
    extract_examples(*paths, tmp_path / "one")
    monkeypatch.setattr("hiero.reordering.examples.PAIRS_AT_ONCE", 7)
    extract_examples(*paths, tmp_path / "other")
    for file in sorted((tmp_path / "one").iterdir()):
        assert file.read_bytes() == (tmp_path / "other" / file.name).read_bytes()


def test_errors_are_one_line(tmp_path: Path) -> None:
    src, tgt, align = write_bitext(tmp_path, 5)
    out = tmp_path / "out"
    lines = align.read_text().splitlines()
    align.write_text("\n".join([lines[0], "0-99", *lines[2:]]) + "\n")
    with pytest.raises(FormatError, match=r"align:2: found link 0-99, expected positions in . source words"):
        extract_examples(src, tgt, align, out)
    align.write_text("\n".join(lines[:4]) + "\n")
    with pytest.raises(FormatError, match="align:5: found the end of the file, expected 5 lines"):
        extract_examples(src, tgt, align, out)
    align.write_text("\n" * 5)
    with pytest.raises(HieroError, match=r"align: the links give no phrase pair$"):
        extract_examples(src, tgt, align, out)
    assert not out.exists()
    align.write_text("\n".join([*lines[:4], ""]) + "\n")
    with pytest.raises(HieroError, match="align: the links give no phrase pair to hold out"):
        extract_examples(src, tgt, align, out, ExampleConfig(min_count=1), held_out=tmp_path / "h", every=5)
    with pytest.raises(FormatError, match=r"src: found 5 lines, expected 6 or more \(one in 6 is to be held"):
        extract_examples(src, tgt, align, out, held_out=tmp_path / "h", every=6)
    with pytest.raises(HieroError, match=r"src: no feature has 999 examples .* frequent one has [1-9]"):
        extract_examples(src, tgt, align, out, ExampleConfig(min_count=999))
    for held in (out, out / "held", tmp_path / "x" / ".." / "out", tmp_path):
        with pytest.raises(ConfigError, match=r"held_out: found .*, expected a path outside .*out"):
            extract_examples(src, tgt, align, out, held_out=held, every=2)
    assert not out.exists()
    assert not (tmp_path / "h").exists()
    with pytest.raises(ConfigError, match="held_out_every: found 1, expected 2 or more"):
        extract_examples(src, tgt, align, out, held_out=tmp_path / "held", every=1)
    with pytest.raises(ConfigError, match="window: found 9, expected 0 to 8"):
        ExampleConfig(window=9)
    with pytest.raises(ConfigError, match="orientation: found 'words', expected one of phrase, word"):
        ExampleConfig(orientation="words")  # type: ignore[arg-type]


def test_examples_of_other_features_are_refused(tmp_path: Path) -> None:
    paths = write_bitext(tmp_path)
    extract_examples(*paths, tmp_path / "one")
    extract_examples(*paths, tmp_path / "two", ExampleConfig(window=2))
    one, two = open_examples(tmp_path / "one"), open_examples(tmp_path / "two")
    check_features(one.digest, one.digest, one.path, one.path, one.settings, one.settings)
    with pytest.raises(HieroError, match=r"two: found examples with window 2, expected the same as in .*one"):
        check_features(two.digest, one.digest, two.path, one.path, two.settings, one.settings)


def test_a_growing_array_is_a_numpy_file(tmp_path: Path) -> None:
    with GrowingArray(tmp_path / "a.npy", np.int32) as array:
        for size in (0, 3, 5):
            array.append(np.arange(size, dtype=np.int32))
    found = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert found.dtype == np.int32
    assert found.tolist() == [0, 1, 2, 0, 1, 2, 3, 4]


def test_slots_hold_every_feature() -> None:
    key = read_only(np.arange(0, 3000, 3, dtype=np.int64))
    slot = np.full(2048, -1, np.int32)
    orientation_key_slots_kernel(key, slot)
    assert sorted(slot[slot >= 0].tolist()) == list(range(1000))
