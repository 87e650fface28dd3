"""Phrases of an index and the lexicon, against brute force on small bitexts."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings

from hiero.extraction.config import LexiconSettings, LookupConfig
from hiero.extraction.extractor import Extractor
from hiero.extraction.lexicon import lexicon_lines
from hiero.extraction.lookup import Phrase, find_phrases
from tests.naive import extract as naive
from tests.worlds.extract import World, indexed, worlds


def written(side: tuple[Any, ...]) -> str:
    return " ".join(symbol if isinstance(symbol, str) else f"[{symbol}]" for symbol in side)


def limits_of(config: LookupConfig) -> naive.Limits:
    made = config.extract
    return naive.Limits(made.max_span, made.max_symbols, made.max_gaps, made.samples)


def words_at(sentence: list[str], runs: Any) -> list[str]:
    return [" ".join(sentence[first:last]) for first, last in runs]


def runs_in(phrase: str) -> list[str]:
    """The runs of words of a phrase, which are not empty."""
    words: list[list[str]] = [[]]
    for word in phrase.split():
        if word in ("[1]", "[2]"):
            words.append([])
        else:
            words[-1].append(word)
    return [" ".join(run) for run in words if run]


def check_places(phrase: Phrase, sentence: list[str]) -> None:
    assert phrase.places
    assert len(set(map(str, phrase.places))) == len(phrase.places)
    for place in phrase.places:
        assert words_at(sentence, place) == runs_in(phrase.source)
        assert all(a[1] < b[0] for a, b in itertools.pairwise(place))
    if "[" not in phrase.source:
        length = len(phrase.source.split())
        starts = [s for s in range(len(sentence)) if sentence[s : s + length] == phrase.source.split()]
        assert phrase.places == [[(start, start + length)] for start in starts]


@given(worlds())
@settings(max_examples=60)
def test_phrases_equal_brute_force(world: World) -> None:
    config = LookupConfig(gaps=True, translations=0, examples=1000)
    bitext = world.bitext
    with indexed(world) as index:
        extractor = Extractor(index, config.extract)
        for sentence in world.sentences:
            rules = naive.extract(bitext, sentence, limits_of(config))
            found = find_phrases(extractor, sentence, config)
            expected = {
                (written(src), written(tgt)): (rule.count, rule.seen)
                for (src, tgt), rule in rules.items()
                if isinstance(src[0], str) and isinstance(src[-1], str)
            }
            counts = {(p.source, t.target): (t.count, p.sampled) for p in found for t in p.translations}
            assert counts == expected
            for phrase in found:
                check_places(phrase, sentence)
                if phrase.occurrences is not None:
                    words = phrase.source.split()
                    starts = [(src, s) for src in bitext.src for s in range(len(src))]
                    assert phrase.occurrences == sum(src[s : s + len(words)] == words for src, s in starts)
                order = [one.count for one in phrase.translations]
                assert order == sorted(order, reverse=True)
                for one in phrase.translations:
                    assert one.probability == pytest.approx(one.count / phrase.sampled, abs=1e-6)
                    check_examples(bitext, phrase.source, one)
            starts = [phrase.places[0][0][0] for phrase in found]
            assert starts == sorted(starts)


def check_examples(bitext: naive.Bitext, source: str, translation: Any) -> None:
    """Examples are phrase pairs of some alignment, one from a pair, shorter ones first."""
    lines = [example.line for example in translation.examples]
    assert 1 <= len(lines) <= translation.count
    assert len(set(lines)) == len(lines)
    lengths = [len(bitext.src[line - 1]) for line in lines]
    assert lengths == sorted(lengths)
    for example in translation.examples:
        src, tgt = bitext.src[example.line - 1], bitext.tgt[example.line - 1]
        assert (example.source, example.target) == (" ".join(src), " ".join(tgt))
        assert words_at(src, example.source_runs) == runs_in(source)
        assert words_at(tgt, example.target_runs) == runs_in(translation.target)
        low, high = example.source_runs[0][0], example.source_runs[-1][1]
        spans = [naive.closure(one[example.line - 1], low, high) for one in bitext.alignments]
        assert any(span is not None and span[0] == (low, high) for span in spans)


@given(worlds())
@settings(max_examples=30)
def test_choosing_phrases(world: World) -> None:
    with indexed(world) as index:
        for sentence in world.sentences:
            every = find_phrases(
                Extractor(index, LookupConfig().extract), sentence, LookupConfig(translations=0)
            )
            config = LookupConfig(translations=1, min_count=2, longest=True)
            found = find_phrases(Extractor(index, config.extract), sentence, config)
            frequent = [p for p in every if p.translations[0].count >= 2]
            spans = {place[0] for phrase in frequent for place in phrase.places}
            longest = {a for a in spans if not any(a != b and b[0] <= a[0] and a[1] <= b[1] for b in spans)}
            assert [p.source for p in found] == [
                p.source for p in frequent if {place[0] for place in p.places} & longest
            ]
            assert all(len(phrase.translations) == 1 for phrase in found)
            whole = LookupConfig(whole=True)
            entire = find_phrases(Extractor(index, whole.extract), sentence, whole)
            assert [p.source for p in entire] in ([], [" ".join(sentence)])
            if len(sentence) <= 5:
                assert len(entire) == sum(p.source == " ".join(sentence) for p in every)


def test_a_line_that_is_too_long_is_no_phrase() -> None:
    world = World(
        naive.Bitext([["a"] * 30], [["w"] * 30], [[[(k, k) for k in range(30)]]]), naive.Limits(), []
    )
    config = LookupConfig(whole=True)
    with indexed(world) as index:
        assert find_phrases(Extractor(index, config.extract), ["a"] * 21, config) == []
        assert len(find_phrases(Extractor(index, config.extract), ["a"] * 20, config)) == 1


@given(worlds())
@settings(max_examples=30)
def test_lexicon_equals_counting(world: World) -> None:
    bitext = world.bitext
    count: Counter[tuple[str, str]] = Counter()
    for alignment in bitext.alignments:
        for src, tgt, links in zip(bitext.src, bitext.tgt, alignment, strict=True):
            pairs = set(links)
            count.update((src[s], tgt[t]) for s, t in pairs)
            count.update((word, "NULL") for s, word in enumerate(src) if s not in {a for a, _ in pairs})
            count.update(("NULL", word) for t, word in enumerate(tgt) if t not in {b for _, b in pairs})
    by_src: Counter[str] = Counter()
    by_tgt: Counter[str] = Counter()
    for (src_word, tgt_word), number in count.items():
        by_src[src_word] += number
        by_tgt[tgt_word] += number
    with indexed(world) as index:
        rows = [line.split("\t") for line in lexicon_lines(index, LexiconSettings())]
        assert {(a, b): (float(p), float(q)) for a, b, p, q in rows} == {
            (a, b): (pytest.approx(n / by_src[a], rel=1e-4), pytest.approx(n / by_tgt[b], rel=1e-4))
            for (a, b), n in count.items()
        }
        linked = {(a, b): n / by_src[a] for (a, b), n in count.items() if "NULL" not in (a, b)}
        lines = [line.split() for line in lexicon_lines(index, LexiconSettings(format="marian"))]
        assert {(a, b): float(p) for b, a, p in lines} == pytest.approx(linked, abs=1e-6)
        chosen = [line.split() for line in lexicon_lines(index, LexiconSettings(format="marian", top=1))]
        best = {a: max(p for (b, _), p in linked.items() if b == a) for a, _ in linked}
        assert {a: float(p) for _, a, p in chosen} == pytest.approx(best, abs=1e-6)
        reverse = LexiconSettings(format="marian", reverse=True, min_prob=0.5)
        found = {(a, b): float(p) for a, b, p in (line.split() for line in lexicon_lines(index, reverse))}
        expected = {(a, b): n / by_tgt[b] for (a, b), n in count.items() if "NULL" not in (a, b)}
        assert found == pytest.approx({k: p for k, p in expected.items() if p >= 0.5 - 1e-6}, abs=1e-6)
