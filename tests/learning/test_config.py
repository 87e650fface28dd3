"""Settings of tuning."""

from __future__ import annotations

import dataclasses
from typing import get_args, get_type_hints

import pytest

from hiero.core.errors import ConfigError
from hiero.learning.config import ALGORITHMS, TuneConfig, TuneSettings
from hiero.learning.learner import LearnerContext, make_learner


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_resolved_settings_are_complete(algorithm: str) -> None:
    hints = get_type_hints(TuneSettings)
    found = dataclasses.asdict(TuneConfig(algorithm=algorithm).resolved())
    missing = {key for key, value in found.items() if value is None}
    assert missing <= {key for key, hint in hints.items() if type(None) in get_args(hint)}
    make_learner(TuneConfig(algorithm=algorithm).resolved(), LearnerContext(dense=[0]))


def test_settings_of_files_lack_those_that_are_not_used() -> None:
    assert TuneConfig(algorithm="mira").with_presets().rate is None
    assert TuneConfig(algorithm="mert", forest=True).with_presets().restarts is None
    assert TuneConfig(algorithm="mert", forest=True).resolved().restarts == 0


def test_unknown_algorithms() -> None:
    with pytest.raises(ConfigError, match="algorithm: found 'sdg'"):
        TuneConfig(algorithm="sdg")
