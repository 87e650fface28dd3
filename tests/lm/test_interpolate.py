"""Mixtures of models: probabilities add up to one and are those of the definition; EM never loses."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hiero.cli.main import main
from hiero.core.arrays import read_only
from hiero.core.errors import ConfigError, FormatError
from hiero.core.symbols import word_table
from hiero.lm.config import EstimateConfig, InterpolateConfig
from hiero.lm.estimate import estimate_language_model
from hiero.lm.estimate_kernels import backoffs_kernel, list_ngrams_kernel
from hiero.lm.interpolate import fit_weights, interpolate
from hiero.lm.load import load_language_models
from hiero.lm.model import score_text
from tests.naive import lm as naive
from tests.worlds.lm import arpa_texts

WORDS = ["a", "b", "c", "d", "ä"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=6), min_size=2, max_size=8)


def estimated(folder: Path, name: str, lines: list[list[str]], order: int, prune: tuple[int, ...]) -> Path:
    text, path = folder / f"{name}.txt", folder / f"{name}.arpa"
    text.write_text("".join(" ".join(line) + "\n" for line in lines), encoding="utf-8")
    config = EstimateConfig(order=order, prune=prune, discount_fallback=(0.5, 1.0, 1.5))
    estimate_language_model(text, path, config, compiled=False)
    return path


def read(path: Path) -> naive.Model:
    return naive.read_arpa(path.read_text(encoding="utf-8"))


@settings(max_examples=25)
@given(TEXTS, TEXTS, st.integers(1, 3), st.integers(1, 4), st.floats(0, 1), st.booleans())
def test_a_mixture_by_definition(
    one: list[list[str]], two: list[list[str]], order: int, other: int, weight: float, pruned: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [
            estimated(folder, "one", [*one, ["a", "b"]], order, (0, 1) if pruned and order > 1 else ()),
            estimated(folder, "two", [*two, ["c", "ä"]], other, ()),
        ]
        out = folder / "mixed.arpa"
        config = InterpolateConfig(weights=(weight, 1 - weight))
        mixed = interpolate(paths, out, config, compiled=False)
        models, result = [read(path) for path in paths], read(out)
    assert mixed.fit.weights == pytest.approx((weight, 1 - weight))
    assert mixed.counts == tuple(
        sum(len(ngram) == n for ngram in result.listed) for n in range(1, result.order + 1)
    )
    assert {ngram for model in models for ngram in model.listed} <= set(result.listed)
    for ngram, (prob, _) in result.listed.items():
        expected = naive.mixed_prob(models, [weight, 1 - weight], ngram)
        assert 10**prob == pytest.approx(max(expected, 1e-99), rel=1e-5, abs=1e-12)
        assert ngram[1:] in result.listed or len(ngram) == 1
        assert ngram[:-1] in result.listed or len(ngram) == 1
    vocabulary = [ngram[0] for ngram in result.listed if len(ngram) == 1 and ngram != ("<s>",)]
    contexts = itertools.product(["<s>", *vocabulary], repeat=2)
    for context in [(), *((word,) for word in vocabulary), *list(contexts)[:40]]:
        total = sum(10 ** naive.prob(result, (*context, word)[-result.order :]) for word in vocabulary)
        assert total == pytest.approx(1, abs=1e-4)


@given(arpa_texts())
def test_the_ngrams_of_a_file(text: str) -> None:
    said = naive.read_arpa(text)
    entries = ["<unk>", *(words[0] for words in said.listed if len(words) == 1 and words[0] != "<unk>")]
    raw = text.encode() + b"\n" * (not text.endswith("\n"))
    most = raw.count(b"\n")
    length, word = np.empty(most, np.int32), np.empty((most, 6), np.int32)
    table = word_table([entry.encode() for entry in entries])
    used, section = list_ngrams_kernel(read_only(np.frombuffer(raw, np.uint8)), table, 0, length, word)
    found = [tuple(entries[w] for w in word[k, : length[k]]) for k in range(used)]
    assert sorted(found) == sorted(words for words in said.listed if len(words) > 1)
    assert section == 0


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 2), min_size=2, max_size=2),
            st.integers(0, 4).map(lambda k: k / 8),
            st.integers(0, 4).map(lambda k: k / 8),
        ),
        min_size=1,
        unique_by=lambda row: tuple(row[0]),
    )
)
def test_backoffs(rows: list[tuple[list[int], float, float]]) -> None:
    rows = sorted(rows)
    words = np.array([row[0] for row in rows], np.int32)
    prob, lower = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    context, backoff = np.empty(len(rows), np.int64), np.empty(len(rows))
    num = backoffs_kernel(words, prob, lower, 1, context, backoff)
    found = {tuple(words[context[k], :-1].tolist()): backoff[k] for k in range(num)}
    assert found == pytest.approx(naive.backoffs(rows, 1))


@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 0.01, 0.25, 0.5, 1.0]), min_size=3, max_size=3).filter(any),
        min_size=1,
        max_size=12,
    )
)
def test_em_never_loses(prob: list[list[float]]) -> None:
    fit = fit_weights((np.array(prob), 2), InterpolateConfig(iterations=20, precision=1e-12))
    assert (fit.num_words, fit.num_unknown) == (len(prob), 2)
    assert sum(fit.weights) == pytest.approx(1)
    for before, after in itertools.pairwise(fit.perplexities):
        assert after <= before * (1 + 1e-12)
    steps = len(fit.perplexities) - 1
    assert fit.weights == pytest.approx(naive.mixture_weights(prob, steps), abs=1e-9)


def test_weights_for_a_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The mixture is nearer to the text than either model, and the file says the same as the mixture."""
    one = estimated(tmp_path, "one", [["a", "b", "c"], ["a", "b"]] * 4, 3, ())
    two = estimated(tmp_path, "two", [["c", "d", "a"], ["d", "ä"]] * 4, 2, ())
    tune = tmp_path / "tune.txt"
    tune.write_text("a b c\na b\na b\nc d a unseen\n", encoding="utf-8")
    for out in (tmp_path / "mixed.arpa", tmp_path / "mixed"):
        assert main(["lm", "interpolate", str(one), str(two), str(out), "--tune", str(tune)]) == 0
    *_, weight, _, summary, counts = capsys.readouterr().err.splitlines()
    assert weight.startswith("hiero: weight 0.")
    assert counts.startswith("hiero: 8 1-grams, ")
    perplexity = float(summary.split()[2].strip(","))
    for out in (tmp_path / "mixed.arpa", tmp_path / "mixed"):
        scored = score_text(load_language_models([("LM", out)]), 0, tune.read_bytes())
        known = scored.prob[scored.word != 0]
        assert 10 ** -known.mean() == pytest.approx(perplexity, rel=0.05)
    for path in (one, two):
        scored = score_text(load_language_models([("LM", path)]), 0, tune.read_bytes())
        assert 10 ** -scored.prob[scored.prob > -50].mean() > perplexity


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--weights", "1", "2", "3"], "weights: found 3, expected 2, one for each model"),
        (["--weights", "0", "0"], "weights: found 0.0 0.0, expected numbers from 0 on, one of them above 0"),
        (["--weights", "1", "1", "--tune", "TEXT"], "either given or learnt from a text (tune), not both"),
        (["--tune", "TEXT"], "found no word of the models, expected text to learn the weights from"),
    ],
)
def test_errors(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = estimated(tmp_path, "one", [["a", "b"]], 2, ())
    text = tmp_path / "TEXT"
    text.write_text("")
    given_arguments = [str(text) if argument == "TEXT" else argument for argument in arguments]
    assert main(["lm", "interpolate", str(one), str(one), str(tmp_path / "out.arpa"), "-q", *given_arguments])
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_only_arpa_files_list_their_ngrams(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="found a directory, expected an ARPA language model"):
        interpolate([tmp_path], tmp_path / "out.arpa", InterpolateConfig(), compiled=False)
    with pytest.raises(ConfigError):
        interpolate([tmp_path], tmp_path / "out.arpa", InterpolateConfig(weights=(1, 1)), compiled=False)
