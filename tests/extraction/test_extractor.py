"""Rule extraction against brute force on small bitexts."""

from __future__ import annotations

import dataclasses
import math
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given, settings

from hiero.core.errors import ConfigError, HieroError
from hiero.core.lattice import Lattice
from hiero.core.symbols import Symbols, word_table
from hiero.core.text import Segment
from hiero.extraction.config import ExtractConfig
from hiero.extraction.extractor import FEATURES, Extractor, IndexSource
from hiero.extraction.growth import BitextRules
from hiero.extraction.growth_kernels import NUM_BITS
from hiero.extraction.index import make_index, open_index
from hiero.extraction.target_counts import open_extractor, target_keys
from hiero.extraction.write import GrammarWriter, RuleText
from hiero.grammar.reader import RuleReader
from hiero.grammar.rules import Rules
from tests.conftest import INTERPRETED
from tests.naive import extract as naive
from tests.worlds.extract import (
    World,
    config_of,
    extracted,
    ids,
    indexed,
    rules_of,
    worlds,
    write_files,
)
from tests.worlds.lattice import lattices


def assert_same(found: dict[Any, naive.Rule], expected: dict[Any, naive.Rule]) -> None:
    assert found.keys() == expected.keys()
    for key, rule in expected.items():
        assert (found[key].seen, found[key].count) == (rule.seen, rule.count), key
        assert found[key].links == rule.links, key
        assert found[key].features == pytest.approx(rule.features, rel=1e-6, abs=1e-6), key


# Phrases whose alignments are equally frequent: that of another sentence, or the beginning of it.
TIES = World(
    naive.Bitext(
        [["a", "b"], ["a", "b"], ["a", "b", "c"], ["a", "b", "c"]],
        [["w", "x"], ["w", "x"], ["w", "x", "y"], ["w", "x", "y"]],
        [[[(0, 1), (1, 0)], [(0, 0), (1, 1)], [(0, 0), (1, 2), (2, 0), (2, 1)], [(0, 0), (1, 2), (2, 0)]]],
    ),
    naive.Limits(),
    [["a", "b"], ["a", "b", "c"]],
)


@given(worlds())
@example(TIES)
@settings(max_examples=100)
def test_rules_equal_brute_force(world: World) -> None:
    with indexed(world) as index:
        source = IndexSource(Extractor(index, config_of(world.limits)), Symbols())
        for sentence in world.sentences:
            assert_same(extracted(source, sentence), naive.extract(world.bitext, sentence, world.limits))


@given(worlds(max_pairs=4, max_words=6), lattices("abcd", empty=False))
@settings(max_examples=40)
def test_rules_of_a_lattice_are_those_of_its_paths(world: World, lattice: Lattice) -> None:
    with indexed(world) as index:
        source = IndexSource(Extractor(index, config_of(world.limits)), Symbols())
        expected: dict[Any, naive.Rule] = {}
        for path in lattice.paths():
            words = [lattice.words[arc] for arc in path]
            expected |= naive.extract(world.bitext, words, world.limits)
        arcs = lattice.word_arcs
        table = source.extract(ids(source.symbols, list(arcs.words)), lattice=arcs.arcs)
        assert_same(rules_of(table, source.symbols), expected)


@given(worlds(), st.booleans())
@settings(max_examples=60)
def test_leaving_a_sentence_out(world: World, links_too: bool) -> None:
    with indexed(world) as index:
        config = config_of(world.limits, leave_out_links=links_too, leave_out="pair")
        source = IndexSource(Extractor(index, config), Symbols())
        for number, sentence in enumerate(world.bitext.src):
            expected = naive.extract(world.bitext, sentence, world.limits, [number], links_too)
            assert_same(extracted(source, sentence, number), expected)
        # A rule left out for one sentence is there for others.
        last = world.sentences[-1]
        assert_same(extracted(source, last), naive.extract(world.bitext, last, world.limits))


def assert_target_features(found: dict[Any, naive.Rule], expected: dict[Any, tuple[float, float]]) -> None:
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        assert found[key].features[7:] == pytest.approx(values, rel=1e-5, abs=1e-6), key


@given(worlds(max_pairs=4, max_words=5), st.data())
@settings(max_examples=30)
def test_features_of_target_sides(world: World, data: Any) -> None:
    """From all rules of the bitext, also without some sentences, and where samples stand for more."""
    world = repeated(world, data)
    bitext, limits = world.bitext, world.limits
    with indexed(world) as index:
        config = config_of(limits, target_counts=str(index.path.parent / "targets"))
        source = IndexSource(open_extractor(index, config), Symbols())
        names = [source.symbols.names.text(name) for name in source.dense_names()]
        assert names == [*FEATURES, "FgivenE", "IsSingletonE"]
        for sentence in world.sentences:
            found = extracted(source, sentence)
            usual = {key: cut(rule) for key, rule in found.items()}
            assert_same(usual, naive.extract(bitext, sentence, limits))
            assert_target_features(found, naive.target_features(bitext, sentence, limits))
        for number, sentence in enumerate(bitext.src):
            group = naive.group(bitext, number)
            expected = naive.target_features(bitext, sentence, limits, group)
            assert_target_features(extracted(source, sentence, number), expected)


def cut(rule: naive.Rule) -> naive.Rule:
    return dataclasses.replace(rule, features=rule.features[:7])


def test_target_keys() -> None:
    sides = [["a", 1, 2], ["a", 2, 1], ["a"], ["a", 1], [1, "a"], ["b"], [], ["a", 2]]
    flat = np.array([-s if isinstance(s, int) else ord(s) for side in sides for s in side], np.int32)
    keys = target_keys(np.cumsum([0, *map(len, sides)]), flat).tolist()
    numbers = dict(zip(keys, naive.target_numbers(sides), strict=True))
    assert [numbers[key] for key in keys] == naive.target_numbers(sides)
    assert len(numbers) == len(set(naive.target_numbers(sides)))


def test_counts_of_target_sides_are_kept(tmp_path: Path) -> None:
    """In a directory that is made once, for one index and its limits; grammars have their features, too."""
    words = [["a"], ["b"], ["a", "b"]]
    bitext = naive.Bitext(words, [["x"], ["x"], ["x", "y"]], [[[(0, 0)], [(0, 0)], [(0, 0), (1, 1)]]])
    world = World(bitext, naive.Limits(), [])
    with indexed(world) as index:
        config = ExtractConfig(target_counts=str(tmp_path / "targets"))
        extractor = open_extractor(index, config, spare_store=tmp_path / "rules")
        for number, write in enumerate(("whole", "sentences")):
            writer, path = GrammarWriter(extractor), tmp_path / f"{number}.gz"
            if write == "whole":
                writer.whole(path)
            else:
                list(writer.sentences([(path, Segment(("a", "b")))]))
            rules = RuleReader(path, (symbols := Symbols())).read()
            assert [symbols.names.text(name) for name in rules.columns] == list(extractor.features)
            found = {key: rule.features[7:] for key, rule in rules_of(rules, symbols).items()}
            # x is a translation of a twice, and of b once.
            assert found[("a",), ("x",)] == pytest.approx([math.log10(1.5), 0])
            assert found[("b",), ("y",)] == [0, 1]
        assert not (tmp_path / "rules").exists()
        again = open_extractor(index, config)
        assert again.features == extractor.features
        with pytest.raises(HieroError, match="counts of another index or other limits, expected those of"):
            open_extractor(index, dataclasses.replace(config, samples=7))
    with pytest.raises(ConfigError, match="store works without target_counts"):
        ExtractConfig(target_counts="a", store="b")


def repeated(world: World, data: Any) -> World:
    """A world some pairs of which have the source or the target of others."""
    bitext = world.bitext
    for number in range(1, len(bitext.src)):
        other = data.draw(st.integers(0, number - 1))
        for side in data.draw(st.sampled_from(["", "s", "t", "st"])):
            sides = bitext.src if side == "s" else bitext.tgt
            sides[number] = sides[other]
        for alignment in bitext.alignments:
            size = len(bitext.src[number]), len(bitext.tgt[number])
            alignment[number] = [
                link for link in alignment[number] if link[0] < size[0] and link[1] < size[1]
            ]
    return world


@given(worlds(max_pairs=8, max_words=5), st.data())
@settings(max_examples=60)
def test_rules_without_a_group_are_those_of_a_bitext_without_it(world: World, data: Any) -> None:
    """With their lexical probabilities; to the last digit, where no matches are sampled."""
    world = repeated(world, data)
    bitext, limits = world.bitext, world.limits
    labels = data.draw(st.none() | st.lists(st.sampled_from(["", "x", " x y"]), min_size=8, max_size=8))
    with indexed(world) as index:
        config = config_of(limits, leave_out_links=True)
        if labels is not None:
            path = index.path.parent / "labels"
            path.write_text("".join(f"{label}\n" for label in labels[: len(bitext.src)]))
            config = dataclasses.replace(config, leave_out=str(path))
        extractor = Extractor(index, config)
        source = IndexSource(extractor, Symbols())
        all_matches = naive.Limits(**{**vars(limits), "samples": 300})
        exact = IndexSource(Extractor(index, dataclasses.replace(config, samples=300)), Symbols())
        for number, sentence in enumerate(bitext.src):
            group = naive.group(bitext, number)
            if labels is not None:
                mine = labels[number]
                group = [k for k in range(len(bitext.src)) if k == number or (mine and labels[k] == mine)]
            assert extractor.left_out_with(number).tolist() == group
            expected = naive.extract(bitext, sentence, limits, group, True)
            assert_same(extracted(source, sentence, number), expected)
            rest = naive.without(bitext, group)
            assert_same(extracted(exact, sentence, number), naive.extract(rest, sentence, all_matches))
        pair = data.draw(st.integers(0, len(bitext.src) - 1))
        rest = naive.without(bitext, extractor.left_out_with(pair).tolist())
        if rest.src:
            with indexed(World(rest, all_matches, [])) as smaller:
                again = IndexSource(Extractor(smaller, config_of(all_matches)), Symbols())
                assert extracted(exact, bitext.src[pair], pair) == extracted(again, bitext.src[pair])
        # What is left out for one sentence is there for others.
        assert_same(extracted(source, world.sentences[0]), naive.extract(bitext, world.sentences[0], limits))


def test_several_sentences_left_out_cost_no_samples(tmp_path: Path) -> None:
    """If the rest is more than the samples, these are evenly spaced in the rest."""
    words = [["a"], ["a"], *([["a", f"w{k}"] for k in range(20)])]
    src = [sentence for sentence in words for _ in range(2 if len(sentence) == 1 else 1)]
    index = small_index(
        tmp_path, src=src, tgt=src, alignments=[[[(k, k) for k in range(len(s))] for s in src]]
    )
    for samples, expected in ((30, 20), (20, 20), (7, 7)):
        source = IndexSource(Extractor(index, ExtractConfig(samples=samples)), Symbols())
        rule = extracted(source, ["a"], 0)[("a",), ("a",)]
        assert (rule.seen, rule.count) == (expected, expected)


def test_groups_of_a_file(tmp_path: Path) -> None:
    index = small_index(tmp_path)
    path = tmp_path / "labels"
    for content, found in (("x\ny\n", 2), ("", 0), ("x\n" * 4, 4)):
        path.write_text(content)
        with pytest.raises(
            HieroError, match=f"labels: found {found} lines, expected 3, one for each pair of"
        ):
            Extractor(index, ExtractConfig(leave_out=str(path)))
    with pytest.raises(HieroError, match=r"labels\.gz: found no such file, expected labels of groups"):
        Extractor(index, ExtractConfig(leave_out=f"{path}.gz"))
    path.write_bytes(b" 1\n\n1  \r\n")
    extractor = Extractor(index, ExtractConfig(leave_out=str(path)))
    assert [extractor.left_out_with(pair).tolist() for pair in range(3)] == [[0, 2], [1], [0, 2]]


@given(worlds(max_pairs=3, max_words=5))
@settings(max_examples=25)
def test_caches_do_not_change_rules(world: World) -> None:
    with indexed(world) as index:
        symbols = Symbols()
        warm = IndexSource(Extractor(index, config_of(world.limits)), symbols)
        forgetful = IndexSource(Extractor(index, config_of(world.limits, cache_mb=0)), symbols)
        growing = IndexSource(Extractor(index, config_of(world.limits)), symbols)
        with growing.extractor.workspace() as workspace:
            few = {"match": np.empty(1, np.int64), "candidate": np.empty((1, 3), np.int32)}
            workspace.sentence_scratch = workspace.sentence_scratch._replace(
                state=np.empty((1, 3), np.int32), **few
            )
        for sentence in [*world.sentences, *world.sentences]:
            one, *others = (source.extract(ids(symbols, sentence)) for source in (warm, forgetful, growing))
            for two in others:
                for a, b in zip(one.rules, two.rules, strict=True):
                    assert np.array_equal(a, b)


@given(worlds())
@settings(max_examples=30)
def test_one_grammar_has_the_rules_of_all_sentences_once(world: World) -> None:
    with indexed(world) as index, tempfile.TemporaryDirectory() as folder:
        extractor, symbols = Extractor(index, config_of(world.limits)), Symbols()
        writer = GrammarWriter(extractor)
        num_rules = writer.whole(Path(folder) / "all.gz")
        expected: dict[Any, naive.Rule] = {}
        for sentence in world.bitext.src:
            expected |= naive.extract(world.bitext, sentence, world.limits)
        found = rules_of(RuleReader(Path(folder) / "all.gz", symbols).read(), symbols)
        assert_same(found, expected)
        assert num_rules == len(expected)
        assert [path.name for path in Path(folder).iterdir()] == ["all.gz"]


@given(worlds())
@settings(max_examples=30)
def test_places_of_words_suffixes_and_gaps(world: World) -> None:
    with indexed(world) as index:
        text, places = index.text, BitextRules(Extractor(index, config_of(world.limits)), None).places
    assert places.place.tolist() == np.argsort(text.src, kind="stable").tolist()
    assert places.rank[text.suffix].tolist() == list(range(len(text.suffix)))
    for s, first in enumerate(text.first_src[:-1].tolist()):
        size = len(world.bitext.src[s])
        for low in range(size):
            expected = set()
            for alignment in world.bitext.alignments:
                expected |= naive.gap_lengths(alignment[s], low, size, world.limits.span)
            bits = int(places.closed[first + low])
            assert {k + 1 for k in range(NUM_BITS) if bits >> k & 1} == expected


@given(worlds())
@settings(max_examples=10)
def test_one_grammar_from_arrays_that_grow(world: World) -> None:
    with (
        indexed(world) as index,
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        writer = GrammarWriter(Extractor(index, config_of(world.limits)))
        one, two = Path(folder) / "one", Path(folder) / "two"
        writer.whole(one)
        patch.setattr("hiero.extraction.write.BLOCK", 1)
        for name in ("FIRST_MATCHES", "FIRST_GROUPS", "FIRST_COUNTS", "PIECE"):
            patch.setattr(f"hiero.extraction.growth.{name}", 1)
        writer.whole(two)
        assert one.read_bytes() == two.read_bytes()


def split_line(line: str) -> tuple[list[str], list[str], list[float]]:
    """A rule as text: everything but the features; names of features; their values."""
    fields = line.split(" ||| ")
    pairs = [pair.split("=") for pair in fields.pop(3).split(" ")]
    return fields, [name for name, _ in pairs], [float(value) for _, value in pairs]


@given(worlds(max_pairs=3))
@settings(max_examples=25)
def test_text_equals_that_of_the_twin(world: World) -> None:
    with indexed(world) as index, tempfile.TemporaryDirectory() as folder:
        extractor = Extractor(index, config_of(world.limits))
        segments = [Segment(tuple(sentence)) for sentence in world.sentences]
        paths = [Path(folder) / f"{number}" for number in range(len(segments))]
        counts = list(GrammarWriter(extractor).sentences(zip(paths, segments, strict=True)))
        for sentence, path, num_rules in zip(world.sentences, paths, counts, strict=True):
            rules = naive.extract(world.bitext, sentence, world.limits)
            written = sorted(map(split_line, path.read_text(encoding="utf-8").splitlines()))
            expected = sorted(map(split_line, naive.rule_lines(rules, list(FEATURES))))
            assert len(written) == num_rules
            for one, two in zip(written, expected, strict=True):
                assert one[:2] == two[:2]
                assert one[2] == pytest.approx(two[2], rel=1e-6, abs=1e-6)


@given(st.lists(st.floats(0, 1485, width=32), min_size=7, max_size=7))
def test_numbers_round_trip(values: list[float]) -> None:
    words = word_table([b"a"])
    text = RuleText(words, words, b"X", [name.encode() for name in FEATURES])
    rules = Rules(
        lhs=np.zeros(1, np.int32),
        first_src=np.array([0, 1]),
        src=np.array([1], np.int32),
        first_tgt=np.array([0, 1]),
        tgt=np.array([1], np.int32),
        dense=np.array([values], np.float32),
        first_sparse=np.zeros(2, np.int64),
        sparse_name=np.zeros(0, np.int32),
        sparse_value=np.zeros(0, np.float32),
        first_link=np.array([0, 0]),
        link=np.zeros((0, 2), np.int16),
    )
    line = text.lines(rules).decode()
    assert line.startswith("[X] ||| a ||| a ||| EgivenFCoherent=")
    found = split_line(line)[2]
    # Numbers smaller than any sum of logarithms of counts may be written as 0.
    assert [np.float32(value) for value in found] == [value if value >= 1e-20 else 0 for value in values]
    spelt = [pair.split("=")[1] for pair in line.split(" ||| ")[3].split()]
    assert all(len(number) <= len(f"{value:.9g}") + 1 for number, value in zip(spelt, values, strict=True))


def small_index(folder: Path, **bitext: Any) -> Any:
    src = bitext.get("src", [["das", "haus"], ["das", "buch"], ["ein", "haus"]])
    tgt = bitext.get("tgt", [["the", "house"], ["the", "book"], ["a", "house"]])
    aligned = bitext.get("alignments", [[[(0, 0), (1, 1)]] * len(src)])
    files = write_files(naive.Bitext(src, tgt, aligned), folder)
    make_index(*files, folder / "index")
    return open_index(folder / "index")


def test_features_of_a_small_bitext(tmp_path: Path) -> None:
    source = IndexSource(Extractor(small_index(tmp_path)), Symbols())
    rules = extracted(source, ["das", "haus"])
    assert rules[("haus",), ("house",)].features == pytest.approx(
        [0, math.log10(3), math.log10(3), 0, 0, 0, 0], abs=1e-6
    )
    assert rules[("das", "haus"), ("the", "house")].features[5:] == [1, 1]
    assert set(rules) == {
        (("das",), ("the",)),
        (("das", 1), ("the", 1)),
        (("haus",), ("house",)),
        ((1, "haus"), (1, "house")),
        (("das", "haus"), ("the", "house")),
    }


def test_two_alignments_count_as_two_bitexts(tmp_path: Path) -> None:
    one = [[(0, 0), (1, 1)]] * 3
    two = [[(0, 1), (1, 0)]] * 3
    source = IndexSource(Extractor(small_index(tmp_path, alignments=[one, two])), Symbols())
    rules = extracted(source, ["das"])
    assert (rules[("das",), ("the",)].seen, rules[("das",), ("the",)].count) == (4, 2)
    assert rules[("das",), ("house",)].count == 1


@pytest.mark.skipif(INTERPRETED, reason="a hundred thousand patterns")
def test_more_words_behind_a_gap_than_have_marks(tmp_path: Path) -> None:
    one, two = ([f"{letter}{k}" for k in range(200)] for letter in "wv")
    src = [["a", *one, "a", *two], one + two]  # no word is rarer than a
    aligned = [[[(k, k) for k in range(len(words))] for words in src]]
    index = small_index(tmp_path, src=src, tgt=src, alignments=aligned)
    config = ExtractConfig(max_span=255, max_symbols=3, max_gaps=1)
    rules = extracted(IndexSource(Extractor(index, config), Symbols()), src[0])
    for word in [*one[1:], *two[1:]]:
        # w1 ... w199 are behind the first a only, v1 ... v52 behind both.
        both = word[0] == "v" and int(word[1:]) <= 52
        assert rules[("a", 1, word), ("a", 1, word)].count == 1 + both, word


def test_sentences_without_matches(tmp_path: Path) -> None:
    source = IndexSource(Extractor(small_index(tmp_path)), Symbols())
    for sentence in (["auto"], [], ["<s>", "</s>"]):
        assert extracted(source, sentence) == {}


def test_leave_out_by_the_tag_of_a_sentence(tmp_path: Path) -> None:
    symbols = Symbols()
    source = IndexSource(Extractor(small_index(tmp_path)), symbols)
    src = ids(symbols, ["ein", "haus"])
    left = rules_of(source.rules_for(src, {"leave_out": "2"}), symbols)
    assert (("ein",), ("a",)) not in left
    assert left[("haus",), ("house",)].count == 1
    for value in ("3", "-1", "x"):
        with pytest.raises(HieroError, match="expected"):
            source.rules_for(src, {"leave_out": value})


def test_words_like_grammar_syntax_are_escaped(tmp_path: Path) -> None:
    src = [["|||", "[X,1]"], ["[", "|"]]
    index = small_index(tmp_path, src=src, tgt=src, alignments=[[[(0, 0), (1, 1)]] * 2])
    writer = GrammarWriter(Extractor(index))
    path = tmp_path / "grammar"
    assert list(writer.sentences([(path, Segment(("|||", "[X,1]", "[", "|")))])) == [10]
    assert writer.num_escaped == 4
    text = path.read_text(encoding="utf-8")
    assert "[X] ||| &#124;&#124;&#124; &#91;X,1&#93; ||| &#124;&#124;&#124; &#91;X,1&#93; ||| " in text
    assert "[X] ||| [ | ||| [ | ||| " in text


def test_output_does_not_depend_on_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hiero.extraction.write.BLOCK", 16)
    rng = np.random.default_rng(1)
    src = [[f"w{k}" for k in rng.integers(0, 9, 4)] for _ in range(70)]
    index = small_index(tmp_path, src=src, tgt=src, alignments=[[[(k, k) for k in range(4)]] * 70])
    files = []
    for threads in (1, 3):
        out = tmp_path / f"all{threads}.gz"
        assert GrammarWriter(Extractor(index), threads).whole(out)
        files.append(out.read_bytes())
    assert files[0] == files[1]


def test_rules_cached_by_an_earlier_run(tmp_path: Path) -> None:
    index = small_index(tmp_path)
    config = ExtractConfig(store=str(tmp_path / "store"))
    symbols = Symbols()
    first = extracted(IndexSource(Extractor(index, config), symbols), ["das", "haus"])
    file = tmp_path / "store" / "000.rules"
    written = file.read_bytes()

    def again() -> Any:
        return extracted(IndexSource(Extractor(index, config), Symbols()), ["das", "haus"])

    assert again() == first
    assert file.read_bytes() == written
    file.write_bytes(written[:-1])  # truncated
    assert again() == first
    assert file.read_bytes() == written[:-1] + written
    other = ExtractConfig(store=str(tmp_path / "store"), max_gaps=0)
    assert len(extracted(IndexSource(Extractor(index, other), Symbols()), ["das", "haus"])) == 3
    assert len(file.read_bytes()) > len(written[:-1] + written)


BAD_SETTINGS = {
    "max_span": (0, 256),
    "max_symbols": (0, 21),
    "max_gaps": (-1, 3),
    "samples": (0,),
    "cache_mb": (-1,),
}


@pytest.mark.parametrize("setting", BAD_SETTINGS)
def test_settings_out_of_range(setting: str) -> None:
    for value in BAD_SETTINGS[setting]:
        with pytest.raises(ConfigError, match=f"{setting}: found {value}, expected"):
            ExtractConfig(**{setting: value})
