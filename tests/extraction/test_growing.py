"""A growing index is that of all pairs together."""

from __future__ import annotations

import dataclasses
import itertools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.core.arrays import offsets_by_row, read_only
from hiero.core.errors import HieroError
from hiero.core.symbols import Symbols
from hiero.extraction.config import FrequentSettings
from hiero.extraction.extractor import Extractor, IndexSource
from hiero.extraction.growing import GrowingIndex, GrowingSource, LinkedPair
from hiero.extraction.index import BitextIndex, make_index, open_index
from hiero.extraction.suffix_kernels import locate_frequent_kernel, merge_suffixes_kernel
from tests.naive import extract as naive
from tests.worlds.extract import World, config_of, ids, indexed, rules_of, worlds, write_files

sentences = st.lists(st.lists(st.integers(1, 3), max_size=4).map(lambda words: [*words, 0]), min_size=1)


@given(sentences, st.data())
def test_merged_suffixes(lines: list[list[int]], data: Any) -> None:
    num_old = data.draw(st.integers(0, len(lines)))
    old, text = (list(itertools.chain(*part)) for part in (lines[:num_old], lines))
    suffix = naive.merged_suffixes(old, [])
    first = read_only(offsets_by_row(np.array(old, np.int64), 4))
    out = np.empty(len(text), np.int32)
    arrays = read_only(np.array(text, np.int32)), read_only(np.array(suffix, np.int32))
    merge_suffixes_kernel(*arrays, first, out)
    assert out.tolist() == naive.merged_suffixes(text, suffix)
    words = data.draw(
        st.sampled_from([tuple(line[k : k + 2]) for line in lines for k in range(len(line) - 1)] or [(1,)])
    )
    words = [word for word in words if word]
    located = np.array([[-1, -1, len(words)]])
    first = read_only(offsets_by_row(np.array(text, np.int64), 4))
    given_words = read_only(np.array([words], np.int32))
    locate_frequent_kernel(arrays[0], read_only(out), first, given_words, located)
    count, place = naive.located(text, out.tolist(), words)
    assert located[0, 0] == count
    assert count == 0 or located[0, 1] == place


def pairs_of(bitext: naive.Bitext) -> list[LinkedPair]:
    return [
        LinkedPair([w.encode() for w in src], [w.encode() for w in tgt], links)
        for src, tgt, links in zip(bitext.src, bitext.tgt, bitext.alignments[0], strict=True)
    ]


def first_pairs(world: World, number: int) -> World:
    bitext = world.bitext
    alignments = [links[:number] for links in bitext.alignments]
    return dataclasses.replace(
        world, bitext=naive.Bitext(bitext.src[:number], bitext.tgt[:number], alignments)
    )


def lexicon_of(index: BitextIndex) -> dict[int, tuple[float, ...]]:
    slots = np.flatnonzero(index.lexicon.pair_key >= 0).tolist()
    return {int(index.lexicon.pair_key[k]): tuple(index.lexicon.pair_loss[k].tolist()) for k in slots}


def contents(index: BitextIndex) -> dict[str, Any]:
    """All of an index but its suffixes, collocations and name."""
    text = index.text._replace(suffix=np.zeros(0))
    found = {
        f"{k}.{n}": array.tolist()
        for k, part in (("text", text), ("links", index.links))
        for n, array in part._asdict().items()
    }
    for side in ("src_words", "tgt_words"):
        table = getattr(index, side)
        found[side] = (table.pool.tolist(), table.first.tolist(), table.slot.tolist())
    return found | {"lexicon": lexicon_of(index)}


@given(worlds(), st.data())
def test_a_grown_index_is_that_of_all_pairs(world: World, data: Any) -> None:
    """Arrays are equal, and so are all rules, with their features and links, that are not sampled."""
    bitext = world.bitext
    world = dataclasses.replace(
        world, bitext=naive.Bitext(bitext.src, bitext.tgt, [bitext.alignments[0]] * len(bitext.alignments))
    )
    number = data.draw(st.integers(1, len(bitext.src)))
    config = config_of(world.limits)
    new = pairs_of(world.bitext)[number:]
    with indexed(world) as whole, indexed(first_pairs(world, number)) as base:
        growing = GrowingIndex(base, config)
        middle = data.draw(st.integers(0, len(new)))
        growing.add(new[:middle])
        halfway = growing.index
        seen = contents(halfway)
        growing.add(new[middle:])
        assert contents(halfway) == seen, "an index does not change when more pairs are added"
        grown = growing.index
        assert contents(grown) == contents(whole)
        src = grown.text.src.tolist()
        key = [src[at : src.index(0, at) + 1] for at in grown.text.suffix.tolist()]
        assert key == sorted(key)
        assert sorted(grown.text.suffix.tolist()) == list(range(len(src)))
        unsampled = dataclasses.replace(config, samples=300)
        for sentence in world.sentences:
            found = []
            for index in (grown, whole):
                symbols = Symbols()
                source = IndexSource(Extractor(index, unsampled), symbols)
                found.append(rules_of(source.extract(ids(symbols, sentence)), symbols))
            assert found[0] == found[1]


def test_listed_collocations_grow() -> None:
    """Matches listed for frequent sequences are those of the whole text."""
    pairs = [("a b c a b", "x y"), ("b a c", "x"), ("a c b a", "y x")]
    with tempfile.TemporaryDirectory() as name:
        indexes = []
        for number in (2, 3):
            folder = Path(name) / str(number)
            folder.mkdir()
            bitext = naive.Bitext(
                [src.split() for src, _ in pairs[:number]],
                [tgt.split() for _, tgt in pairs[:number]],
                [[[(0, 0)]] * number],
            )
            src, tgt, aligned = write_files(bitext, folder)
            frequent = FrequentSettings(min_frequency=1, max_length=2, num_frequent=50, num_super_frequent=50)
            make_index(src, tgt, aligned, folder / "index", frequent=frequent)
            indexes.append(open_index(folder / "index"))
        base, whole = indexes
        growing = GrowingIndex(base)
        src, tgt = pairs[2]
        growing.add([LinkedPair(src.encode().split(), tgt.encode().split(), [(0, 0)])])
        grown = growing.index

        def lists(index: BitextIndex) -> dict[Any, list[int]]:
            listed, text = index.collocations, index.text
            words = [
                tuple(text.src[text.suffix[low] : text.suffix[low] + n].tolist())
                for _, low, n in listed.frequent.tolist()
            ]
            num = len(words)
            found = {}
            for k in range(num**2):
                found[words[k // num], words[k % num]] = listed.match[
                    listed.first_pair[k] : listed.first_pair[k + 1]
                ].tolist()
            for k in range(num**3):
                key = words[k // num**2], words[k // num % num], words[k % num]
                found[key] = listed.match[listed.first_triple[k] : listed.first_triple[k + 1]].tolist()
            return found

        mine, theirs = lists(grown), lists(whole)
        assert sum(map(len, mine.values())) > sum(map(len, lists(base).values())) > 0
        assert mine == {key: theirs[key] for key in mine}
        count = {
            tuple(words): n
            for words, n in zip(growing._frequent, grown.collocations.frequent[:, 0].tolist(), strict=True)
        }
        assert count[(1,)] == 5


def test_pairs_that_cannot_be_added() -> None:
    with indexed_pair() as base:
        growing = GrowingIndex(base)
        growing.add([])
        assert growing.index.text is base.text
        with pytest.raises(HieroError, match=r"pair: found 0 and 1 words, expected 1 to"):
            growing.add([LinkedPair([], [b"x"], [])])
        with pytest.raises(HieroError, match=r"pair 0: found the link 0-1 outside of its sentences"):
            growing.add([LinkedPair([b"a"], [b"x"], [(0, 1)])])


def indexed_pair() -> Any:
    limits = naive.Limits(15, 5, 2, 300, 100, 1, 1000, 4)
    return indexed(World(naive.Bitext([["a", "b"]], [["x", "y"]], [[[(0, 0)]]]), limits, []))


def test_a_growing_source() -> None:
    """Its rules are those of all pairs so far; what its store or its count of target sides says is not."""
    with indexed_pair() as base:
        symbols = Symbols()
        source = GrowingSource(IndexSource(Extractor(base), symbols))
        before = rules_of(source.rules_for(ids(symbols, ["c"]), {}), symbols)
        source.add([LinkedPair([b"c"], [b"new"], [(0, 0)])])
        after = rules_of(source.rules_for(ids(symbols, ["c"]), {}), symbols)
        assert before == {}
        assert set(after) == {(("c",), ("new",))}
        assert "2 sentence pairs" in repr(source)
        assert source.feature_names() == frozenset(source.dense_names())
