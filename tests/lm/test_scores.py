"""Language model scores: by the definition, and against KenLM."""

from __future__ import annotations

import gzip
import itertools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hiero.core.symbols import find_all, word_table
from hiero.lm.load import load_language_models
from hiero.lm.model import LanguageModels, ScoredText, score_text
from hiero.lm.table_kernels import find_slot, look_up_words_kernel, score_sentences_kernel, score_word
from tests.naive import lm as naive
from tests.worlds.lm import WORDS, arpa_texts, kenlm_model, load_text, sentences

DATA = Path(__file__).parents[1] / "data"


def score(models: LanguageModels, lines: list[list[str]], markers: bool) -> list[list[tuple[float, int]]]:
    text = "".join(" ".join(line) + "\n" for line in lines).encode()
    return by_line(score_text(models, 0, text, markers))


def by_line(scored: ScoredText) -> list[list[tuple[float, int]]]:
    pairs = list(zip(scored.prob.tolist(), scored.length.tolist(), strict=True))
    return [pairs[begin:end] for begin, end in itertools.pairwise(scored.first)]


def assert_same(found: list[list[tuple[float, int]]], expected: list[list[tuple[float, int]]]) -> None:
    assert [[length for _, length in line] for line in found] == [[n for _, n in line] for line in expected]
    for line, wanted in zip(found, expected, strict=True):
        assert [prob for prob, _ in line] == pytest.approx([prob for prob, _ in wanted], abs=1e-5)


@given(arpa_texts(), sentences(), st.booleans())
def test_score_equals_the_definition(text: str, lines: list[list[str]], markers: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = score(load_text(Path(folder), text), lines, markers)
    assert_same(found, naive.score_sentences(naive.read_arpa(text), lines, markers))


@given(arpa_texts(min_order=2, closed=True), sentences(), st.booleans())
def test_score_is_kenlms(text: str, lines: list[list[str]], markers: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        models = load_text(Path(folder), text)
        model = kenlm_model(Path(folder) / "model.arpa")
        assume(model is not None)
        found = score(models, lines, markers)
        expected = [
            [(prob, n) for prob, n, _ in model.full_scores(" ".join(line), bos=markers, eos=markers)]
            for line in lines
        ]
    assert_same(found, expected)


@given(arpa_texts(), st.lists(st.sampled_from(WORDS[:5]), min_size=1, max_size=8))
def test_the_context_returned_is_enough_and_no_longer(text: str, sentence: list[str]) -> None:
    """Scoring with the minimal context equals scoring with all of it, and no context is too long."""
    with tempfile.TemporaryDirectory() as folder:
        models = load_text(Path(folder), text)
    lm = models.arrays
    line = np.maximum(find_all(models.tables[0], [word.encode() for word in sentence]), 0).astype(np.int64)
    closed = naive.signed_ngrams(naive.read_arpa(text))
    names = [word if (word,) in closed else "<unk>" for word in sentence]
    backoff, context, old = np.zeros(12, np.float32), 0, 0
    for at in range(len(line)):
        _, length, context = score_word(lm, 0, line, at, context, backoff, old, 6 - old)
        old = 6 - old
        assert context <= min(length, int(lm.order[0]) - 1)
        seen = tuple(names[at - length + 1 : at + 1])
        extending = [n for n in range(1, length + 1) if closed[seen[-n:]].extends_right]
        assert context == max(extending, default=0)


@given(arpa_texts(), st.lists(st.sampled_from(WORDS), min_size=2, max_size=6))
def test_slots_are_found_by_the_key_of_the_words(text: str, words: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        models = load_text(Path(folder), text)
    ids = find_all(models.tables[0], [word.encode() for word in words]).tolist()
    if min(ids) >= 0:
        key = naive.key(ids)
        slot = find_slot(models.arrays, 0, np.uint64(key))
        assert (slot >= 0) == (tuple(words) in naive.signed_ngrams(naive.read_arpa(text)))
        assert slot < 0 or int(models.arrays.key[2 * slot]) == key


@given(
    st.lists(st.sampled_from([b"a", b"b", b"\r", b" ", b"\t", b"\n", b"\r\n", b"\xff", b"\0"]), max_size=30),
    st.lists(st.sampled_from([b"a", b"ab", b"\xff", b"b\0"]), unique=True),
)
def test_lines_and_words_are_split_and_looked_up(pieces: list[bytes], known: list[bytes]) -> None:
    text, words = b"".join(pieces) + b"\n", [b"<unk>", *known]
    first = np.zeros(text.count(b"\n") + 1, np.int64)
    word, span = np.zeros(len(text), np.int32), np.zeros((len(text), 2), np.int64)
    lines, total = look_up_words_kernel(word_table(words), np.frombuffer(text, np.uint8), first, word, span)
    tokens = [
        (text[start:end], int(w)) for (start, end), w in zip(span[:total].tolist(), word[:total], strict=True)
    ]
    assert [tokens[first[s] : first[s + 1]] for s in range(lines)] == naive.look_up(words, text)


def test_no_sentences_and_empty_ones() -> None:
    models = load_language_models([("LM", DATA / "tiny.arpa")])
    assert score(models, [], True) == []
    assert score(models, [[], []], False) == [[], []]
    assert score(models, [[], []], True) == [[(-1.375, 1)], [(-1.375, 1)]]


def test_the_second_of_two_models_scores_alone() -> None:
    both = load_language_models([("A", DATA / "tiny.arpa"), ("B", DATA / "tiny.probing")])
    text = (DATA / "tiny.txt").read_bytes()
    scored = [score_text(both, m, text) for m in (0, 1)]
    alone = score_text(load_language_models([("A", DATA / "tiny.arpa")]), 0, text)
    for other in scored:
        assert other.prob.tolist() == alone.prob.tolist()
        assert other.word.tolist() == alone.word.tolist()


@pytest.mark.reference
@pytest.mark.heavy
@pytest.mark.parametrize("name", ["m30k", "ep"])
def test_real_models_score_as_kenlm_does(reference: Path, tmp_path: Path, name: str) -> None:
    arpa = tmp_path / "lm.arpa"
    arpa.write_bytes(gzip.decompress((reference / name / "lm.arpa.gz").read_bytes()))
    models, model = load_language_models([("LM", arpa)]), kenlm_model(arpa)
    lines = (reference / name / "ref.en").read_bytes().split(b"\n")[:-1]
    lines += [b" ".join(reversed(line.split())) + b" unseenword" for line in lines]
    found = by_line(score_text(models, 0, b"".join(line + b"\n" for line in lines)))
    expected = [[(prob, n) for prob, n, _ in model.full_scores(line)] for line in lines]
    assert found == expected


def test_kernel_writes_every_score_of_a_batch() -> None:
    lm = load_language_models([("LM", DATA / "tiny.arpa")]).arrays
    first, word = np.array([0, 2, 2, 5], np.int64), np.array([3, 4, 0, 8, 8], np.int32)
    prob, length = np.full(8, np.nan, np.float32), np.zeros(8, np.int32)
    score_sentences_kernel(lm, 0, first, word, True, prob, length)
    assert np.isfinite(prob).all()
    assert (length > 0).all()
