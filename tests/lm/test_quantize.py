"""Quantised models against KenLM's, and the table of codes against its definition."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.mutants import reseal
from hiero.core.errors import FormatError, HieroError
from hiero.core.symbols import table_entry
from hiero.lm.arpa import read_arpa
from hiero.lm.kenlm import read_kenlm
from hiero.lm.load import compile_language_model, load_language_model, load_language_models
from hiero.lm.model import score_text
from hiero.lm.quantize import make_codebook, nearest_codes, quantise
from hiero.lm.table_kernels import Ngrams, enter_codes_kernel, find_slot, stored
from tests.lm.test_scores import by_line
from tests.naive import lm as naive
from tests.worlds.lm import arpa_texts

DATA = Path(__file__).parents[1] / "data"
ARPA = DATA / "tiny.arpa"
BITS = st.integers(2, 8)
KENLM = {"qtrie": (4, 3), "qatrie": (5, 4)}  # see ``TRIES`` of test_kenlm


Values = list[tuple[float, float]]


def values_of(lm: Ngrams, m: int, ids: dict[str, int], ngrams: list[naive.Ngram]) -> Values:
    """What the table of model m has for n-grams of two or more words, each of which must be there."""
    found = []
    for words in ngrams:
        slot = find_slot(lm, m, np.uint64(naive.key([ids[word] for word in words])))
        assert slot >= 0
        prob, backoff = stored(lm, m, slot, len(words))
        found.append((float(prob), float(backoff)))
    return found


def signs(pairs: Values) -> list[tuple[bool, bool]]:
    return [(bool(np.signbit(prob)), bool(np.signbit(backoff))) for prob, backoff in pairs]


def longer_ngrams(model: naive.Model) -> list[naive.Ngram]:
    return [words for words in naive.signed_ngrams(model) if len(words) > 1]


# ---- steps


@given(
    st.lists(st.integers(-40, 0).map(lambda number: np.float32(number) / 8), max_size=60),
    st.integers(2, 9),
    st.lists(st.integers(-41, 1).map(lambda number: np.float32(number) / 8), max_size=9),
)
def test_codebooks(values: list[Any], size: int, others: list[Any]) -> None:
    book = make_codebook(np.array(values, np.float32), size)
    expected = [float(np.float32(value)) for value in naive.codebook([*map(float, values)], size)]
    assert len(book) == size
    assert (np.diff(book) >= 0).all()
    if values:
        assert [*dict.fromkeys(book.tolist())] == [*dict.fromkeys(expected)]
        found = book[nearest_codes(np.array(others, np.float32), book)].tolist()
        assert found == [naive.nearest(book.tolist(), float(value)) for value in others]


KEYS = st.lists(
    st.one_of(st.integers(0, 2**64 - 1), st.integers(2**63, 2**63 + 40), st.integers(2**64 - 9, 2**64 - 1)),
    max_size=40,
    unique=True,
)


@given(KEYS, st.integers(1, 3), st.integers(64, 700), KEYS)
@example([2**64 - 1 - n for n in range(7)], 3, 64, [])
def test_entries_and_look_ups(keys: list[int], displacement_bits: int, slots: int, others: list[int]) -> None:
    code_bits = slots.bit_length() - 1 - displacement_bits
    prob_bits = code_bits // 2
    layout = np.array(
        [[slots, slots.bit_length() - 1, displacement_bits, prob_bits, code_bits - prob_bits]], np.uint64
    )
    keys.sort()
    codes = [key % 2**code_bits for key in keys]
    entry = np.zeros(slots + (1 << displacement_bits), np.uint64)
    fits = enter_codes_kernel(np.array(keys, np.uint64), np.array(codes, np.uint64), layout, entry)
    expected = naive.enter_codes(keys, codes, slots, displacement_bits, code_bits)
    assert fits == (expected is not None)
    if expected is None:
        return
    assert entry.tolist() == expected
    empty = read_arpa(ARPA).ngrams()[0]
    given_codes = quantise(read_arpa(ARPA), 2, 2).codes
    assert given_codes is not None
    lm = empty._replace(
        codes=given_codes._replace(entry=entry, first_entry=np.array([0, len(entry)]), layout=layout)
    )
    for key in [*keys, *others]:
        at = int(find_slot(lm, 0, np.uint64(key)))
        assert (at >= 0) == (key in keys)
        if at >= 0:
            assert int(entry[at]) % 2**code_bits == codes[keys.index(key)]


# ---- models


@pytest.mark.parametrize("kind", KENLM)
def test_values_are_those_of_kenlm(kind: str) -> None:
    own = quantise(read_arpa(ARPA), *KENLM[kind])
    arpa, theirs = read_arpa(ARPA), read_kenlm(DATA / f"tiny.{kind}")
    ids = [
        {table_entry(model.words, n).decode(): n for n in range(len(model.words.first) - 1)}
        for model in (arpa, theirs)
    ]
    ngrams = longer_ngrams(naive.read_arpa(ARPA.read_text(encoding="utf-8")))
    expected = values_of(theirs.ngrams()[0], 0, ids[1], ngrams)
    found = values_of(own, 0, ids[0], ngrams)
    assert found == expected
    assert signs(found) == signs(expected)


@given(arpa_texts(min_order=2), BITS, BITS)
def test_values_are_those_of_the_definition(text: str, prob_bits: int, backoff_bits: int) -> None:
    said = naive.read_arpa(text)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lm.arpa")
        path.write_bytes(text.encode())
        model = read_arpa(path)
    lm = quantise(model, prob_bits, backoff_bits)
    ids = {table_entry(model.words, n).decode(): n for n in range(len(model.words.first) - 1)}
    expected = naive.quantised(said, prob_bits, backoff_bits)
    found = values_of(lm, 0, ids, [*expected])
    assert np.array(found, np.float32).tolist() == np.array([*expected.values()], np.float32).tolist()
    assert signs(found) == signs([*expected.values()])
    assert lm.codes is not None
    assert np.count_nonzero(lm.codes.entry) == len(expected)


def test_quantising_a_quantised_model_of_kenlm_changes_nothing(tmp_path: Path) -> None:
    for kind, bits in KENLM.items():
        compile_language_model(DATA / f"tiny.{kind}", tmp_path / kind, bits)
        text = (DATA / "tiny.txt").read_bytes()
        own, theirs = (
            load_language_models([("LM", path)]) for path in (tmp_path / kind, DATA / f"tiny.{kind}")
        )
        assert score_text(own, 0, text).prob.tolist() == score_text(theirs, 0, text).prob.tolist()


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    compile_language_model(ARPA, tmp_path / "tiny.lm", (3, 2))
    return tmp_path / "tiny.lm"


def test_beside_other_models(compiled: Path, tmp_path: Path) -> None:
    compile_language_model(ARPA, tmp_path / "finer.lm", (8, 7))
    paths = [ARPA, compiled, tmp_path / "finer.lm", DATA / "tiny.probing"]
    together = load_language_models([(f"LM{m}", path) for m, path in enumerate(paths)])
    text = (DATA / "tiny.txt").read_bytes()
    for m, path in enumerate(paths):
        alone = score_text(load_language_models([("LM", path)]), 0, text)
        assert by_line(score_text(together, m, text)) == by_line(alone)
    scores = [score_text(together, m, text).prob.tolist() for m in range(4)]
    assert scores[0] == scores[3]
    assert scores[0] == scores[2]  # as many codes as values
    assert scores[0] != scores[1]


def test_what_is_written(compiled: Path) -> None:
    meta = json.loads((compiled / "meta.json").read_text())
    assert (meta["format"], meta["prob_bits"], meta["backoff_bits"]) == (
        "hiero quantised language model",
        4,
        2,
    )
    assert meta["source"]["name"] == "tiny.arpa"
    with pytest.raises(HieroError, match="already exists and contains no hiero language model"):
        compile_language_model(ARPA, compiled)
    (compiled.parent / "one.arpa").write_text(
        "\\data\\\nngram 1=2\n\n\\1-grams:\n-1 <s>\n-1 </s>\n\n\\end\\\n"
    )
    with pytest.raises(FormatError, match="found a model of order 1, expected n-grams to quantise"):
        compile_language_model(compiled.parent / "one.arpa", compiled.parent / "one", (8, 8))
    assert not (compiled.parent / "one").exists()


def test_damaged_directories(compiled: Path) -> None:
    def error_of() -> str:
        with pytest.raises(FormatError) as caught:
            load_language_model(compiled)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    meta = (compiled / "meta.json").read_bytes()
    for name, change in [
        ("version", 0),
        ("order", 7),
        ("order", 1),
        ("ngrams", 1),
        ("slots", 0),
        ("slots", 10**12),
        ("slots", "many"),
        ("prob_bits", 3),
        ("prob_bits", 60),
        ("backoff_bits", -1),
    ]:
        reseal(compiled, **{name: change})
        error_of()
        (compiled / "meta.json").write_bytes(meta)
    for name in ("entry", "value", "unigram", "word_pool", "word_first", "word_slot"):
        path, kept = compiled / f"{name}.npy", compiled.parent / "kept.npy"
        shutil.copy(path, kept)
        path.write_bytes(kept.read_bytes()[:-1])
        assert f"{name}.npy: found damage" in error_of()
        np.save(path, np.load(kept)[:-1])
        assert "other content" in error_of()
        reseal(compiled)
        assert "do not fit together" in error_of()
        (compiled / "meta.json").write_bytes(meta)
        shutil.copy(kept, path)
    load_language_model(compiled)
