"""Trained models: the links of training again, unknown words, files that are damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hiero.alignment.align import trained
from hiero.alignment.config import MODELS, AlignConfig
from hiero.alignment.model import MODEL, AlignmentModel, model_of, read_model, write_model
from hiero.alignment.pair_kernels import (
    UNIT,
    StoredProbs,
    look_up_pairs_kernel,
    normalize_pairs_kernel,
    pair_totals_kernel,
    unaligned_probs_kernel,
)
from hiero.bitext.corpus import Bitext, text_of
from hiero.core.arrays import offsets_of, read_only
from hiero.core.errors import FormatError
from tests.naive import align as naive
from tests.worlds.align import NUM_WORDS, World, bitext_of, pairs, worlds


def small(model: str) -> AlignConfig:
    return AlignConfig(model=model, iterations=4, hmm_iterations=2)  # type: ignore[arg-type]


@given(worlds(), st.sampled_from([0.0, 0.01, 1.0]))
def test_probabilities_of_pairs_that_are_never_aligned(world: World, smoothing: float) -> None:
    keys, index = naive.number_pairs(world.pairs), world.index
    drawn = np.random.default_rng(len(keys)).exponential(2.0, (len(keys), 2)) * (world.lexicon.prob > 0.05)
    count = (drawn * UNIT).astype(np.int64)
    by_src, by_tgt = np.zeros(NUM_WORDS, np.float32), np.zeros(NUM_WORDS, np.float32)
    unaligned_probs_kernel(index.first_pair, index.pair_tgt, index.num_tgt, count, smoothing, by_src, by_tgt)
    counts = dict(zip(keys, map(tuple, count / UNIT), strict=True))
    src, tgt = naive.unaligned(counts, NUM_WORDS, NUM_WORDS, smoothing)
    assert by_src == pytest.approx(np.array(src), rel=1e-6)
    assert by_tgt == pytest.approx(np.array(tgt), rel=1e-6)
    # To the bit those of the M-step, by which pairs are left out.
    prob, total = np.zeros((len(keys), 2), np.float32), np.zeros(NUM_WORDS, np.int64)
    pair_totals_kernel(index.pair_tgt, count, total)
    normalize_pairs_kernel(
        index.first_pair, index.pair_tgt, index.num_tgt, count, total, smoothing, 0, NUM_WORDS, prob
    )
    for (v, w), row, number in zip(keys, prob, count, strict=True):
        assert number[0] or row[0] == by_src[v]
        assert number[1] or row[1] == by_tgt[w]


@given(
    st.dictionaries(st.tuples(st.integers(0, 3), st.integers(0, 4)), st.integers(1, 9)),
    st.lists(st.integers(-1, 3), min_size=1, max_size=6),
    st.lists(st.integers(-1, 4), min_size=1, max_size=6),
)
def test_pairs_are_looked_up(known: dict[tuple[int, int], int], src: list[int], tgt: list[int]) -> None:
    keys = sorted(known)
    table = {key: (known[key] / 16, known[key] / 32) for key in keys}
    rest = {v: (v + 1) / 64 for v in range(4)}, {w: (w + 1) / 128 for w in range(5)}

    def floats(values: object) -> np.ndarray:
        return read_only(np.array(values, np.float32))

    stored = StoredProbs(
        read_only(offsets_of(np.bincount([v for v, _ in keys], minlength=4) if keys else np.zeros(4, int))),
        read_only(np.array([w for _, w in keys], np.int32)),
        floats([table[key] for key in keys]).reshape(-1, 2),
        floats(np.ones(5)),
        floats(np.ones(4)),
        *(floats(list(one.values())) for one in rest),
    )
    # Each source word of the text with each of its target words.
    first = read_only(np.arange(len(src) + 1) * len(tgt))
    places = read_only(np.tile(np.arange(len(tgt), dtype=np.int32), len(src)))
    out = np.empty((len(places), 2), np.float32)
    look_up_pairs_kernel(stored, np.array(src, np.int32), np.array(tgt, np.int32), first, places, out)
    expected = naive.look_up_pairs([(v, w) for v in src for w in tgt], table, rest)
    assert out == pytest.approx(np.array(expected), rel=1e-6)


@settings(max_examples=20)
@given(pairs(longest=5), st.sampled_from(["ibm2", "hmm"]), st.sampled_from([0.0, 0.01]))
def test_the_training_text_gets_its_links_again(
    drawn: list[naive.Pair], model: str, smoothing: float
) -> None:
    bitext = bitext_of(drawn)
    trainer = trained(bitext, AlignConfig(model=model, iterations=2, hmm_iterations=1, smoothing=smoothing))  # type: ignore[arg-type]
    links = trainer.decode()
    again = model_of(trainer, bitext).links(bitext)
    assert again.fwd.tolist() == links.fwd.tolist()
    assert again.rev.tolist() == links.rev.tolist()


def text(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def bitext(src: bytes, tgt: bytes) -> Bitext:
    return Bitext(text_of([src]), text_of([tgt]))


def made(model: str = "ibm2") -> AlignmentModel:
    random = np.random.default_rng(1)
    words = np.array(list("abcdefghijkl"))
    lines = [words[random.permutation(len(words))[:4]] for _ in range(40)]
    others = [random.permutation(line) for line in lines]
    training = bitext(text(*map(" ".join, lines)), text(*(" ".join(line).upper() for line in others)))
    return model_of(trained(training, small(model)), training)


@pytest.mark.parametrize("model", MODELS)
def test_unknown_words_are_linked_to_each_other(model: str) -> None:
    links = made(model).links(bitext(text("b x a", "a", ""), text("y B A", "", "A")))
    assert links.fwd.tolist() == [1, 0, 2, -1]
    assert links.rev.tolist() == [1, 0, 2, -1]


@pytest.mark.parametrize("model", MODELS)
def test_files(tmp_path: Path, model: str) -> None:
    one = made(model)
    write_model(tmp_path / "model", one)
    other = read_model(tmp_path / "model")
    for name, array in one.parameters.arrays().items():
        assert np.array_equal(other.parameters.arrays()[name], array), name
    for name in ("model", "null", "symmetrize", "threshold"):
        assert getattr(other, name) == getattr(one, name)
    for name, mine in one.lexicon._asdict().items():
        assert np.array_equal(mine, getattr(other.lexicon, name)), name
    words = bitext(text("c b a"), text("B A C"))
    assert one.links(words).fwd.tolist() == other.links(words).fwd.tolist() == [1, 2, 0]


@pytest.mark.heavy
@settings(max_examples=10)
@given(pairs(longest=4), st.sampled_from(MODELS))
def test_models_of_any_text_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[naive.Pair], model: str
) -> None:
    """Also of words that occur only opposite an empty side, or not at all. Only pairs that count are kept."""
    training = bitext_of([*drawn, ([1], []), ([], [2])])
    trainer = trained(training, small(model))
    folder = tmp_path_factory.mktemp("models") / "model"
    write_model(folder, model_of(trainer, training))
    kept = read_model(folder)
    lexicon = kept.fitted(training).lexicon
    assert np.array_equal(lexicon.prob, trainer.lexicon.prob[: len(lexicon.prob)])
    if model == "fertility":
        assert trainer.sampled is not None
        links = trainer.sampled.links
        assert len(kept.lexicon.pair_tgt) <= np.sum(links.fwd >= 0) + np.sum(links.rev >= 0)


def test_models_without_words(tmp_path: Path) -> None:
    empty = bitext_of([], 0)
    write_model(tmp_path / "model", model_of(trained(empty, small("hmm")), empty))
    assert read_model(tmp_path / "model").links(bitext(text("a"), text("b"))).fwd.tolist() == [0]


def settings_in(meta: dict[str, Any]) -> dict[str, Any]:
    return {key: meta[key] for key in ("model", "null", "symmetrize", "threshold")}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("pair_tgt", lambda array: array + 1),
        ("pair_tgt", lambda array: array - 1),
        ("first_pair", lambda array: array * 2),
        ("prob", lambda array: array - 1),
        ("prob", lambda array: array[1:]),
        ("null_src", lambda array: array * np.float32("nan")),
        ("rest_tgt", lambda array: array[1:]),
        ("positions", lambda array: array[1:]),
        ("positions", lambda array: array * 0),
        ("positions", lambda array: array * 1e-9),
        ("src_first", lambda array: array + 1),
    ],
)
def test_arrays_that_do_not_fit_together(tmp_path: Path, name: str, change: object) -> None:
    """Also if their sums are right."""
    write_model(tmp_path / "model", made())
    meta, arrays = MODEL.read(tmp_path / "model")
    altered = {**arrays, name: change(arrays[name])}  # type: ignore[operator]
    MODEL.write(tmp_path / "model", settings_in(meta), altered)
    with pytest.raises(
        FormatError, match="found arrays that do not fit together, expected a hiero alignment model"
    ):
        read_model(tmp_path / "model")


@pytest.mark.parametrize(
    "setting",
    [
        *({"null": 2.0}, {"null": "a"}, {"threshold": 1.5}, {"threshold": None}),
        *({"symmetrize": "never"}, {"symmetrize": []}, {"model": "hmm"}, {"model": "ibm4"}, {"model": []}),
    ],
)
def test_settings_that_are_wrong(tmp_path: Path, setting: dict[str, object]) -> None:
    write_model(tmp_path / "model", made())
    meta, arrays = MODEL.read(tmp_path / "model")
    MODEL.write(
        tmp_path / "model",
        {"model": meta["model"], "null": meta["null"], "symmetrize": meta["symmetrize"]} | setting,
        arrays,
    )
    with pytest.raises(FormatError, match="hiero align --save-model"):
        read_model(tmp_path / "model")
