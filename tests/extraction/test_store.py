"""Stores of rules: packing, damage, several writers, and full disks."""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from hiero.core.arrays import read_only
from hiero.core.errors import FormatError, HieroWarning
from hiero.core.symbols import Symbols
from hiero.core.text import lock_file, unlock_file
from hiero.extraction.extractor import Extractor, IndexSource
from hiero.extraction.store import MAGIC, SEALED, PackedRules, PackedTable, RuleStore, own_ids
from hiero.extraction.store_kernels import open_packed_kernel, pack_rules_kernel
from hiero.grammar.assemble import build_grammar, label_ranks, merge_tables
from hiero.grammar.cdec import parse_cdec
from hiero.grammar.rules import Grammar, Rules, rules_from_lists, source_words
from tests.naive import extract as naive
from tests.worlds.extract import World, config_of, indexed, worlds

NUM_WORDS = (70, 80)
KEYS = [bytes([number]) * 32 for number in range(5)]


@st.composite
def some_rules(draw: Any) -> Rules:
    """Rules as they are extracted, in any order, with features and links that recur."""
    src, tgt, links = [], [], []
    for _ in range(draw(st.integers(0, 12))):
        num_gaps = draw(st.integers(0, 2))
        sides = []
        for most in (3, 69):
            words = draw(st.lists(st.integers(0, most), min_size=0 if num_gaps else 1, max_size=4))
            places = [draw(st.integers(0, len(words))) for _ in range(num_gaps)]
            for gap, place in enumerate(sorted(places) if most == 3 else places, 1):
                words.insert(place, -gap)
            sides.append(words)
        gaps = [symbol for symbol in sides[0] if symbol < 0]
        src.append([gaps.index(symbol) * -1 - 1 if symbol < 0 else symbol for symbol in sides[0]])
        tgt.append(sides[1])
        link = st.tuples(st.integers(0, 254), st.integers(0, 2))
        links.append([list(pair) for pair in draw(st.lists(link, max_size=3))])
    rules = rules_from_lists([0] * len(src), src, tgt, links)
    dense = draw(st.lists(st.floats(width=32), min_size=7 * len(src), max_size=7 * len(src)))
    values = [dense[:7] if draw(st.booleans()) else dense[7 * r : 7 * r + 7] for r in range(len(src))]
    return rules._replace(dense=np.array(values, np.float32).reshape(-1, 7))


def packed(rules: Rules) -> Any:
    plain = Rules._make(read_only(array) for array in rules)
    return read_only(pack_rules_kernel(plain, plain.dense.view(np.int32)))


def unpacked(words: Any) -> Rules | None:
    is_sound, found = open_packed_kernel(read_only(words), read_only(np.array(NUM_WORDS)))
    return PackedRules(found, own_ids(*NUM_WORDS)).unpacked() if is_sound else None


def as_lists(rules: Any) -> Any:
    """In the format of the twin."""
    bits = rules.dense.view(np.uint32).tolist()
    return [
        (
            rules.src[rules.first_src[r] : rules.first_src[r + 1]].tolist(),
            rules.tgt[rules.first_tgt[r] : rules.first_tgt[r + 1]].tolist(),
            bits[r],
            [tuple(pair) for pair in rules.link[rules.first_link[r] : rules.first_link[r + 1]].tolist()],
        )
        for r in range(len(bits))
    ]


def assert_equal(found: Rules | None, expected: Rules) -> None:
    assert found is not None
    for name, one, other in zip(Rules._fields, found, expected, strict=True):
        assert one.dtype == other.dtype, name
        assert one.shape == other.shape, name
        assert one.tobytes() == other.tobytes(), name


@given(some_rules())
def test_packed_rules_are_the_same(rules: Rules) -> None:
    words = packed(rules)
    assert naive.unpacked(words.tolist()) == as_lists(rules)
    found = unpacked(words)
    assert found is not None
    assert as_lists(found) == as_lists(rules)
    assert_equal(found, rules)


@given(worlds(), st.booleans())
@settings(max_examples=20)
def test_stored_rules_are_those_extracted(world: World, left_out: bool) -> None:
    with indexed(world) as index:
        plain = Extractor(index, config_of(world.limits))
        folder = index.path.parent / "kept"
        for _ in range(2):
            stored = Extractor(index, config_of(world.limits, store=str(folder)))
            for number, sentence in enumerate(world.bitext.src):
                src = plain.word_ids([word.encode() for word in sentence])
                left = number if left_out else -1
                assert_equal(stored.rules(src, left), plain.rules(src, left))
        assert sorted(path.name for path in folder.iterdir()) == ["000.index", "000.rules"]


@given(worlds(max_pairs=4))
@settings(max_examples=20)
def test_a_store_tells_groups_left_out_apart(world: World) -> None:
    """And rules of a pair that is left out alone are found whatever the setting, as by earlier versions."""
    with indexed(world) as index:
        folder, labels = index.path.parent / "kept", index.path.parent / "labels"
        labels.write_text("".join(f"{pair // 2}\n" for pair in range(len(world.bitext.src))))
        for leave_out in ("pair", "equal", str(labels)):
            plain = Extractor(index, config_of(world.limits, leave_out=leave_out))
            stored = Extractor(index, config_of(world.limits, leave_out=leave_out, store=str(folder)))
            for number, sentence in enumerate(world.bitext.src):
                src = plain.word_ids([word.encode() for word in sentence])
                found = stored.find(src, number)
                was_known = isinstance(found, PackedRules)
                assert was_known or leave_out == "pair" or len(stored.left_out_with(number)) > 1
                assert_equal(stored.rules(src, number), plain.rules(src, number))


def flat(grammar: Grammar) -> list[Any]:
    return [array.tolist() for array in (*grammar.rules, *grammar.trie)]


@given(worlds(), st.booleans(), st.data())
@settings(max_examples=20)
def test_grammars_of_stored_rules_are_the_same(world: World, as_ids: bool, data: Any) -> None:
    with indexed(world) as index:
        symbols = Symbols()
        if not as_ids:
            symbols.labels.intern_all([b"Z", b"Y"])
        config = config_of(world.limits, leave_out="pair")  # equal sentences may share stored rules elsewhere
        source = IndexSource(Extractor(index, config, index.path.parent / "kept"), symbols)
        ranks = label_ranks(symbols.labels)
        assert ranks.as_ids == as_ids
        others = [parse_cdec(["[X] ||| [X,1] a ||| v [1] ||| New=2 CountEF=1"], symbols)]
        for number, sentence in enumerate(world.bitext.src):
            src = symbols.words.intern_all(word.encode() for word in sentence)
            plain, stored = source.extract(src, number), source.extract(src, number)
            assert not isinstance(plain, PackedTable)
            assert isinstance(stored, PackedTable)
            tables = data.draw(st.permutations([stored, *others]))
            expected = [plain if table is stored else table for table in tables]
            unindexed = data.draw(st.integers(0, min(1, tables[-1].num_rules)))
            assert flat(build_grammar(tables, unindexed, ranks)) == flat(
                build_grammar(expected, unindexed, ranks)
            )
            assert source_words([stored]).tolist() == source_words([plain]).tolist()
            assert_equal(merge_tables([stored, *others]).rules, merge_tables([plain, *others]).rules)
            assert_equal(stored.rules, plain.rules)


@given(some_rules(), st.data())
@settings(max_examples=200)
def test_changed_words_are_refused_or_within_limits(rules: Rules, data: Any) -> None:
    words = packed(rules).copy()
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(words) - 1))
        words[place] ^= np.uint64(1) << np.uint64(data.draw(st.integers(0, 63)))
    words = words[: data.draw(st.sampled_from([len(words), len(words) - 1, 23]))]
    found = unpacked(words)
    if found is not None:
        assert len(found.first_src) == len(found.first_tgt) == len(found.first_link) == len(found.dense) + 1
        for first, side, limit in zip(
            (found.first_src, found.first_tgt), (found.src, found.tgt), NUM_WORDS, strict=True
        ):
            assert (np.diff(first) >= 0).all()
            assert first[-1] == len(side)
            assert ((side >= -2) & (side < limit)).all()
        assert found.first_link[-1] == len(found.link)


# ---- files


def rules_of(number: int) -> Rules:
    made = rules_from_lists([0], [[number, -1]], [[-1, number + 1]], [[[0, 1]]])
    return made._replace(dense=np.full((1, 7), number, np.float32))


def stored_in(store: RuleStore, number: int) -> Rules | None:
    found = store.get(KEYS[number])
    return None if found is None else found.unpacked()


def found_in(folder: Path) -> list[bool]:
    """Which keys have rules; they must be the right ones."""
    store = RuleStore(folder, NUM_WORDS)
    found = [stored_in(store, number) for number in range(5)]
    for number, rules in enumerate(found):
        if rules is not None:
            assert_equal(rules, rules_of(number))
    return [rules is not None for rules in found]


def fill(folder: Path, *numbers: int) -> None:
    store = RuleStore(folder, NUM_WORDS)
    for number in numbers:
        store.put(KEYS[number], rules_of(number))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_two_writers_append_to_different_files(tmp_path: Path) -> None:
    one, other = RuleStore(tmp_path, NUM_WORDS), RuleStore(tmp_path, NUM_WORDS)
    one.put(KEYS[0], rules_of(0))
    lock = lock_file(tmp_path / "000.lock")
    other.put(KEYS[1], rules_of(1))
    assert names(tmp_path) == ["000.index", "000.lock", "000.rules", "001.index", "001.rules"]
    unlock_file(tmp_path / "000.lock", lock)
    for store in (one, other):
        for number in (0, 1):
            assert_equal(stored_in(store, number), rules_of(number))
        assert store.get(KEYS[2]) is None
    one.put(KEYS[2], rules_of(2))
    assert_equal(stored_in(other, 2), rules_of(2))
    fill(tmp_path, 3)
    assert names(tmp_path) == ["000.index", "000.rules", "001.index", "001.rules"]
    assert found_in(tmp_path) == [True, True, True, True, False]


def test_many_writers(tmp_path: Path) -> None:
    def write(store: RuleStore) -> None:
        for number in range(5):
            store.put(KEYS[number], rules_of(number))

    stores = [RuleStore(tmp_path, NUM_WORDS) for _ in range(4)]
    threads = [threading.Thread(target=write, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found_in(tmp_path) == [True] * 5
    sizes = [(path.stat().st_size, path.suffix) for path in tmp_path.iterdir()]
    num_files = len(sizes) // 2
    assert sum(size for size, suffix in sizes if suffix == ".index") == (20 + num_files) * SEALED
    assert all(suffix != ".lock" for _, suffix in sizes)


def test_what_a_killed_process_left_is_made_again(tmp_path: Path) -> None:
    fill(tmp_path, 0, 1)
    (tmp_path / "000.lock").touch()
    index, rules = tmp_path / "000.index", tmp_path / "000.rules"
    whole = index.read_bytes()
    assert len(whole) == 3 * SEALED
    for cut in (1, SEALED - 1, SEALED):  # of the last entry, whose rules are in the other file
        index.write_bytes(whole[:-cut])
        assert found_in(tmp_path) == [True, False, False, False, False]
    with rules.open("ab") as stream:
        stream.write(b"part")
    index.write_bytes(whole[:-1])
    fill(tmp_path, 2)
    assert found_in(tmp_path) == [True, False, True, False, False]
    index.write_bytes(MAGIC[:9])
    fill(tmp_path, 3)
    assert found_in(tmp_path) == [False, False, False, True, False]


def test_damaged_rules_are_missing_until_they_are_stored_again(tmp_path: Path) -> None:
    fill(tmp_path, 0, 1, 2)
    path = tmp_path / "000.rules"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content[:-1])
    assert found_in(tmp_path) == [True, False, False, False, False]
    fill(tmp_path, 1)
    assert found_in(tmp_path) == [True, True, False, False, False]
    content = bytearray((tmp_path / "000.index").read_bytes())
    content[SEALED + 3] ^= 1
    (tmp_path / "000.index").write_bytes(content)
    assert found_in(tmp_path) == [False, True, False, False, False]


def test_files_of_another_version_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "000.index").write_bytes(b"another version".ljust(2 * SEALED))
    (tmp_path / "000.rules").write_bytes(b"rules")
    fill(tmp_path, 0)
    assert found_in(tmp_path) == [True, False, False, False, False]
    assert (tmp_path / "000.index").read_bytes() == b"another version".ljust(2 * SEALED)
    assert names(tmp_path) == ["000.index", "000.rules", "001.index", "001.rules"]


def test_words_beyond_those_of_the_index_are_refused(tmp_path: Path) -> None:
    fill(tmp_path, 4)
    assert RuleStore(tmp_path, (5, 6)).get(KEYS[4]) is not None
    assert RuleStore(tmp_path, (4, 6)).get(KEYS[4]) is None
    assert RuleStore(tmp_path, (5, 5)).get(KEYS[4]) is None


def test_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FormatError, match="found file exists, expected a directory for rules"):
        RuleStore(tmp_path / "file", NUM_WORDS)
    with pytest.warns(HieroWarning, match="file exists: not all rules of sentences are kept"):
        store = RuleStore(tmp_path / "file", NUM_WORDS, optional=True)
    store.put(KEYS[0], rules_of(0))
    assert store.get(KEYS[0]) is None


def test_an_optional_store_ends_with_the_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, 0)
    store = RuleStore(tmp_path, NUM_WORDS, optional=True)

    def full(stream: Any, data: bytes) -> None:
        stream.write(data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr("hiero.extraction.store._write", full)
        with pytest.warns(HieroWarning, match="no space left on device: not all rules"):
            store.put(KEYS[1], rules_of(1))
        with pytest.raises(FormatError, match="found no space left on device, expected room to write"):
            fill(tmp_path, 2)
        with pytest.raises(FormatError, match="no space left"):
            fill(tmp_path / "new", 2)
    assert names(tmp_path / "new") == []
    (tmp_path / "new").rmdir()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    store.put(KEYS[3], rules_of(3))
    assert found_in(tmp_path) == [True, False, False, False, False]
    fill(tmp_path, 4)
    assert found_in(tmp_path) == [True, False, False, False, True]
