"""Warnings during training, and the table of epochs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hiero.core.errors import HieroError
from hiero.core.progress import progress_lines
from hiero.learning.config import TuneConfig
from hiero.tuning.report import Health, Table


def record(epoch: int, bleu: float = 30.0, brevity: float = 1.0, **more: Any) -> dict[str, Any]:
    found = {"epoch": epoch, "sentences": 10, "failed": 0, "equal": 0, "fired": None}
    return found | {"choose_bleu": bleu, "held_out_brevity": brevity} | more


def seen(*records: dict[str, Any], norms: Any = None, **config: Any) -> list[list[str]]:
    """The warnings after each epoch."""
    health = Health(TuneConfig(**config).resolved())
    norms = norms or [1.0] * len(records)
    return [health.look(one, np.array([norm]), "Big") for one, norm in zip(records, norms, strict=True)]


def test_no_warnings() -> None:
    good = [record(1, 20), record(2, 25, 0.9), record(3, 24.5, 1.1), record(4, 25)]
    assert seen(*good, norms=[0.1, 1, 5, 12]) == [[], [], [], []]


def test_bleu_falls() -> None:
    notes = seen(*(record(i + 1, bleu) for i, bleu in enumerate([30, 29.9, 29.8, 29.7, 29.6, 30.2, 20, 20])))
    fell = "held-out BLEU fell from {} to {}: try a lower rate, or fewer epochs"
    assert notes[3] == [fell.format("30.00 (epoch 1)", "29.70")]
    assert notes[:3] == [[], [], []]
    assert notes[4:7] == [[], [], []]  # said once; and one bad epoch is no trend
    assert notes[7] == [fell.format("30.20 (epoch 6)", "20.00")]
    (_, _, _, mira), (_, _, _, pro) = (
        seen(*(record(i + 1, 9.0 - i / 10) for i in range(4)), algorithm=algorithm)
        for algorithm in ("mira", "pro")
    )
    assert "try a smaller c," in mira[0]
    assert "try a larger l2," in pro[0]


@pytest.mark.parametrize(("ratio", "said"), [(0.84, True), (0.86, False), (1.14, False), (1.16, True)])
def test_lengths_collapse(ratio: float, said: bool) -> None:
    notes = seen(record(1, brevity=0.1), record(2, brevity=ratio), record(3, brevity=ratio))
    assert [bool(note) for note in notes] == [False, said, False]
    if said:
        start = f"translations of the held-out set have {ratio:.2f} times the length of the references: try "
        cure = "metric: previous (BLEU with the other sentences) or a lower rate or start: uniform"
        assert notes[1] == [start + cure]
        (_, once) = seen(record(1), record(2, brevity=ratio), algorithm="mira", start="uniform")
        assert once == [start + "a smaller c"]
        (_, pro) = seen(record(1), record(2, brevity=ratio), algorithm="pro", start="uniform")
        cure = "metric: liang or largest: false" if ratio < 1 else "metric: lin"
        assert pro == [start + cure]


def test_lengths_of_the_tuning_set_where_nothing_is_held_out() -> None:
    short = {"epoch": 2, "sentences": 10, "failed": 0, "model_brevity": 0.5}
    assert "translations of the tuning set have 0.50 times" in seen(short | {"epoch": 1}, short)[1][0]


def test_weights_explode() -> None:
    notes = seen(record(1), record(2), record(3), norms=[1.0, 29.0, 1000.0])
    assert notes[1] == []
    assert notes[2] == [
        "the weights diverge: their norm grew from 29 to 1e+03 in an epoch, most of it Big; try a lower rate"
    ]


def test_nothing_is_learnt() -> None:
    assert "all weights are 0: no two translations" in seen(record(1), norms=[0.0])[0][0]
    assert "try a smaller l1 than 0.05" in seen(record(1), norms=[0.0], algorithm="adagrad")[0][0]


def test_a_minimum_is_not_reached() -> None:
    early = {"fit_converged": 0.0, "fit_iterations": 200.0}
    notes = seen(record(1, fit_converged=1.0), record(2, **early), record(3, **early), algorithm="pro")
    said = "the weights had not converged after 200 steps within the epoch: try more iterations"
    assert notes == [[], [said], []]
    one = {"fit_converged": 0.0, "fit_iterations": 1.0}
    assert seen(record(1, **one), algorithm="pro", iterations=1) == [[said.replace("200 steps", "1 step")]]
    # It gave up, and more steps would not help.
    assert seen(record(1, **one), algorithm="pro") == [[]]
    assert seen(record(1, **early), algorithm="kbmira") == [[]]


def test_features_that_never_fire() -> None:
    health = Health(TuneConfig().resolved())
    health.expect(["Right", "Never", "LanguageModel_OOV", "PassThrough", "Glue"])
    notes = health.look(record(1, fired=["Right"]), np.ones(1), "Right")
    assert len(notes) == 1
    assert notes[0].startswith("no translation has the feature Never; no weight is learnt (is a")
    assert health.look(record(2, fired=["Right"]), np.ones(1), "Right") == []


def test_long_lists_of_names_are_shortened() -> None:
    health = Health(TuneConfig().resolved())
    health.expect(f"Sparse{i}" for i in range(1000))
    assert health.look(record(1, fired=[]), np.ones(1), "Right") == []


def test_no_derivations() -> None:
    with pytest.raises(HieroError, match=r"^found no derivation of any of 10 sentences"):
        seen(record(1, sentences=0, failed=10))


def test_the_table() -> None:
    done = record(3, 34.125, 0.9876) | {
        "choose_brevity": 0.9876,
        "features": 12,
        "pairs": 200,
        "errors": 50,
        "decode_s": 1.0,
        "learn_s": 0.5,
        "model_bleu": 40.0,
        "model_brevity": 1.0,
    }
    table = Table(TuneConfig().resolved(), held_out=True)
    assert list(table.row(done)) == [
        "epoch", "held out, odd lines", "weights", "pairs", "errors", "s/sentence", "dev",
    ]  # fmt: skip
    heading, row = progress_lines(table.row(done), heading=True)
    assert " ".join(row.split()) == "3 34.12 (0.988) 12 200 50 (25.0%) 0.150 40.00 (1.000)"
    assert len(row) == len(heading)
    mira = Table(TuneConfig(algorithm="mira").resolved(), held_out=False)
    cells = mira.row(done)
    assert not any("held out" in name for name in cells)
    assert (cells["oracle"].strip(), cells["prediction"].strip()) == ("-", "-")
    batch = Table(TuneConfig(algorithm="pro").resolved(), held_out=True)
    lists = done | {"candidates": 900, "new_candidates": 12}
    heading, row = progress_lines(batch.row(lists), heading=True)
    assert " 900 " in row
    assert len(row) == len(heading)
