"""Settings of tuning."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any, get_args, get_type_hints

import pytest

from hiero.core.errors import ConfigError
from hiero.learning.config import ALGORITHMS, TuneConfig, TuneSettings, check_used
from hiero.learning.learner import LearnerContext, make_learner
from hiero.learning.regularize import Ridge


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_resolved_settings_are_complete(algorithm: str) -> None:
    hints = get_type_hints(TuneSettings)
    found = dataclasses.asdict(TuneConfig(algorithm=algorithm).resolved())
    missing = {key for key, value in found.items() if value is None}
    assert missing <= {key for key, hint in hints.items() if type(None) in get_args(hint)}
    make_learner(TuneConfig(algorithm=algorithm).resolved(), LearnerContext(named=[0]))


def test_settings_of_files_lack_those_that_are_not_used() -> None:
    assert TuneConfig(algorithm="mira").with_presets().rate is None
    assert TuneConfig(algorithm="mert", forest=True).with_presets().restarts is None
    assert TuneConfig(algorithm="mert", forest=True).resolved().restarts == 0


def test_only_algorithms_of_paper_000_start_from_zero() -> None:
    starts = {name: TuneConfig(algorithm=name).resolved().start for name in ALGORITHMS}
    of_the_paper = {"sgd", "mixsgd", "itermixsgd", "iterselsgd"}
    assert {name for name, start in starts.items() if start == "zero"} == of_the_paper
    assert {start for name, start in starts.items() if name not in of_the_paper} == {"uniform"}
    assert TuneConfig(algorithm="mira", start="zero").resolved().start == "zero"


def test_unknown_algorithms() -> None:
    with pytest.raises(ConfigError, match="algorithm: found 'sdg'"):
        TuneConfig(algorithm="sdg")


class Recorded:
    """Settings that note the keys that are read."""

    def __init__(self, settings: TuneSettings) -> None:
        self.settings, self.read = settings, set[str]()

    def __getattr__(self, key: str) -> Any:
        self.read.add(key)
        return getattr(self.settings, key)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_settings_in_use_are_those_that_learners_read(algorithm: str) -> None:
    row, read = ALGORITHMS[algorithm], set[str]()
    context = LearnerContext(named=[0])
    for keys in ({}, {"pairs": "pro"}, {"pairs": "multipartite"}):
        recorded = Recorded(TuneConfig(algorithm=algorithm, **keys).resolved())  # type: ignore[arg-type]
        with contextlib.suppress(ConfigError):  # pro works with its own pairs only
            row.learner_class().make(recorded, context)
        read |= recorded.read
    assert row.uses is not None
    keys_of_learners = {key for one in ALGORITHMS.values() for key in one.uses or ()}
    others = {"beam"}  # read by the course, which prunes forests
    unread = {"share"} if algorithm == "pro" else set()
    assert set(row.uses) - others == (read & keys_of_learners) - unread


def test_settings_that_are_not_used_are_refused_one_by_one() -> None:
    check_used("sgd", ["rate", "epochs", "mix", "kbest", "seed"])
    check_used("mert", ["restarts", "epochs", "shards"])
    with pytest.raises(ConfigError, match=r"^rate: kbmira does not use it \(sgd, .*, adagrad do\)$"):
        check_used("kbmira", ["c", "rate"])
    with pytest.raises(ConfigError, match=r"^batch: pro does not use it"):
        check_used("pro", ["batch"])
    with pytest.raises(ConfigError, match=r"^beta: mira does not use it"):
        check_used("mira", ["beta"])
    # A file may have the settings of several algorithms.
    assert TuneConfig(algorithm="kbmira", rate=0.1).rate == 0.1


def test_variants_of_the_presets() -> None:
    """The text of a paper, and the program of its authors, which is the default."""
    for algorithm, key, printed, released in (
        ("sgd", "update", "pair", "sentence"),
        ("iterselsgd", "update", "pair", "sentence"),
        ("adagrad", "l1", 0.1, 0.05),
    ):
        for variant, value in (("printed", printed), ("released", released), (None, released)):
            assert getattr(TuneConfig(algorithm=algorithm, variant=variant).resolved(), key) == value  # type: ignore[arg-type]
    assert TuneConfig(variant="printed", update="sentence").resolved().update == "sentence"
    with pytest.raises(ConfigError, match=r"^freeze works with update: sentence"):
        TuneConfig(variant="printed", freeze="dense")
    check_used("pro", ["variant"])  # of neighbours
    with pytest.raises(ConfigError, match=r"^variant: mira does not use it"):
        check_used("mira", ["variant"])


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"algorithm": "sgd"}, "neighbours: isotonic works with pro, not with sgd"),
        ({"l1": 0.1}, "neighbours: isotonic cannot be combined with l1"),
        ({"peer": "hopkins-may"}, "neighbours: isotonic cannot be combined with interpolation"),
        ({"variant": "released"}, "neighbours: isotonic cannot be combined with variant: released"),
        ({"l2": 0.0}, "neighbours: isotonic needs l2 or l2_previous above 0"),
        ({"l2_sparse": 0.0}, "neighbours: isotonic needs l2 or l2_previous above 0"),
        (
            {"neighbours": "linear", "beta_per": "curve", "variant": "released"},
            "beta_per: curve cannot be combined with variant: released",
        ),
    ],
)
def test_settings_without_a_monotone_minimum(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}$"):
        TuneConfig(**{"algorithm": "pro", "neighbours": "isotonic"} | keys)
    for fine in ({}, {"l2": 0.0, "l2_previous": 1.0}, {"peer": "cdec"}, {"l1": 0.0}):
        TuneConfig(algorithm="pro", neighbours="isotonic", **fine).resolved()  # type: ignore[arg-type]


@pytest.mark.parametrize("algorithm", ["sgd", "mixsgd", "itermixsgd", "iterselsgd", "adagrad"])
def test_l2_is_a_term_of_online_learners(algorithm: str) -> None:
    def made(**keys: Any) -> Any:
        return make_learner(TuneConfig(algorithm=algorithm, **keys).resolved(), LearnerContext()).terms

    assert made() == made(l2=0.0, l2_sparse=0.0) == []
    assert made(l2=0.5) == [Ridge(0.5)]
    assert made(l2_sparse=0.5) == [Ridge(0.0, sparse=0.5)]


def test_l2_moves_all_weights() -> None:
    with pytest.raises(ConfigError, match=r"^l2 cannot be combined with stale: true$"):
        TuneConfig(algorithm="adagrad", stale=True, l2_sparse=0.1)
