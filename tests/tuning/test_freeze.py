"""Frozen weights do not change while others are learnt."""

from __future__ import annotations

from pathlib import Path

import pytest

import hiero
from hiero import rule_feature
from hiero.core.symbols import Symbols
from hiero.core.text import Segment
from hiero.features.index import FeatureIndex
from hiero.features.names import Names
from hiero.features.weights import read_weights
from hiero.tuning.vectors import DenseFeatures
from tests.worlds.tune import Tuning

START = {"Right": 0.25, "Length": 0.5, "R:X:a:A": 0.125, "SpanSize_X_1": 0.25, "First_B": -0.5}
DENSE = {"Length", "Glue", "WordPenalty", "PassThrough"}


@rule_feature(per_rule=True)
def first_word(rule):  # type: ignore[no-untyped-def]
    yield f"First_{rule.tgt[0]}", 1.0


def weights(path: Path) -> dict[str, float]:
    return dict(read_weights(path, Symbols()).items())


@pytest.mark.parametrize("frozen", ["dense", pytest.param("sparse", marks=pytest.mark.heavy)])
def test_frozen_weights_stay_and_others_are_learnt(tmp_path: Path, frozen: str) -> None:
    tuning = Tuning(tmp_path)
    start = tuning.file("start", [f"{name} {value}" for name, value in START.items()])
    two = " ".join(tuning.lines("dev.src")[0].split()[:2])
    tuning.file("grammar", [*tuning.lines("grammar"), f"[X] ||| {two} ||| wrong words ||| Length=2"])
    tuning.set(
        features={
            "templates": ["rule_id", "span_size", f"{__name__}:first_word"],
            "bins": str(
                tuning.file("bins", ["feature Wrong of=given overlap=0 keep=no", "bin -inf", "bin 1"])
            ),
        },
        tune={
            "start": str(start),
            "freeze": frozen,
            "update": "sentence",
            "average": "sentences",
            "kbest": 100,
        },
    )
    assert tuning.run("-q", "-j", "2") == 0
    found = weights(tuning.out / "weights.gz")
    changed = {name for name in found.keys() | START.keys() if found.get(name, 0) != START.get(name, 0)}
    assert changed
    assert changed <= DENSE if frozen == "sparse" else not changed & DENSE
    if frozen == "dense":
        starts = ("Right", "R:X:", "SpanSize_", "First_", "Wrong_bin")
        assert all(any(name.startswith(start) for name in changed) for start in starts)


def test_dense_features(tmp_path: Path) -> None:
    """The same whatever was read before: of grammars that sentences name, those of the first."""
    (tmp_path / "one").write_text(
        "[X] ||| a ||| A ||| p=1 Rare=1\n[X] ||| b ||| B ||| p=1\n[X] ||| c ||| C ||| p=1\n"
    )
    (tmp_path / "two").write_text("[X] ||| a ||| A ||| q=1\n")
    model = hiero.load(
        rules=["[X] ||| a ||| b ||| Own=1"],
        weights={"Own": 1.0},
        features=["arity", "span_size", first_word],
        base=str(tmp_path),
    )
    segments = [Segment(("a",)), *(Segment(("a",), {"grammar": name}) for name in ("one", "two"))]
    found = model.dense_features(segments)
    assert {"Own", "p", "Glue", "WordPenalty", "PassThrough", "Arity_0"} <= found
    assert not {"q", "Rare", "SpanSize_X_1", "First_A"} & found
    model.parse(segments[2])
    assert model.dense_features(segments) == found
    assert "q" in model.dense_features(segments[2:])

    index = FeatureIndex()
    is_dense = DenseFeatures(found, model.symbols, index)
    assert is_dense(3).tolist() == [False] * 3
    names = Names(model.symbols)
    index.intern_all([names.parse(name) for name in ("p", "Shape_S0_T0", "Rare", "Glue")])
    assert is_dense(6).tolist() == [True, False, False, True, False, False]
    index.intern(names.parse("Own"))
    assert is_dense(5).tolist() == [True, False, False, True, True]
    assert is_dense(2).tolist() == [True, False]


@pytest.mark.parametrize(("key", "value"), [("algorithm", "kbmira"), ("update", "pair")])
def test_weights_that_cannot_be_frozen(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], key: str, value: str
) -> None:
    tuning = Tuning(tmp_path)
    tuning.set(tune={"freeze": "dense", key: value})
    assert "freeze works with " in tuning.error(capfd)
