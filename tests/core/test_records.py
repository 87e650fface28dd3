"""Declared settings: limits, choices, paths."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from hiero.core.errors import ConfigError
from hiero.core.records import Checked, PathKey, map_paths, record, record_paths, setting

TABLE = {"x": 1, "y": 2}


@dataclass(frozen=True, kw_only=True)
class Inner(Checked):
    files: PathKey | list[PathKey] | None = None
    start: Literal["zero", "one"] | PathKey = "zero"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer(Checked):
    rounds: int = setting(5, "rounds of training", least=1, most=20)
    share: float = setting(0.5, "of the list", above=0, most=1)
    rate: float | None = setting(None, "of learning", above=0)
    size: int | None = setting(None, least=0)
    kind: Literal["a", "b"] | None = "a"
    sign: Literal[-1, 1] = 1
    row: str = setting("x", choices=lambda: TABLE)
    name: str = "/no/path"
    inner: Inner = field(default_factory=Inner)
    entries: list[Inner] = field(default_factory=list)
    sets: dict[str, Inner] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rounds": 0}, "rounds: found 0, expected 1 to 20"),
        ({"rounds": 21}, "rounds: found 21, expected 1 to 20"),
        ({"share": 0.0}, "share: found 0.0, expected more than 0 and at most 1"),
        ({"share": math.nan}, "share: found nan, expected more than 0 and at most 1"),
        ({"rate": 0}, "rate: found 0, expected more than 0"),
        ({"rate": math.inf}, "rate: found inf, expected a finite number"),
        ({"size": -1}, "size: found -1, expected at least 0"),
        ({"kind": "c"}, "kind: found 'c', expected one of a, b"),
        ({"row": "z"}, "row: found 'z', expected one of x, y"),
        ({"sign": 0}, "sign: found 0, expected one of -1, 1"),
    ],
)
def test_limits_and_choices_are_checked_on_construction(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        Outer(**values)
    assert str(error.value) == message
    with pytest.raises(ConfigError) as error:
        record(Outer, values, "file")
    assert str(error.value) in (f"file: {message}", message)


def test_limits_belong_to_what_is_allowed() -> None:
    Outer(rounds=1, share=1.0, rate=1e-300, size=0, sign=-1)
    Outer(rounds=20, share=1e-9, rate=None, size=None, kind=None)


def test_paths_are_found_by_their_type() -> None:
    settings = record(
        Outer,
        {
            "inner": {"files": "a"},
            "entries": [{"files": ["b", "c"]}, {"start": "d"}, {"files": ["e"], "start": "one"}],
            "sets": {"dev": {"files": "f"}},
        },
        "file",
    )
    assert record_paths(settings) == {
        "inner: files": "a",
        "entries: entry 1: files: entry 1": "b",
        "entries: entry 1: files: entry 2": "c",
        "entries: entry 2: start": "d",
        "entries: entry 3: files": "e",
        "sets: dev: files": "f",
    }
    moved = map_paths(settings, lambda key, path: f"/base/{path}")
    assert list(record_paths(moved).values()) == [f"/base/{path}" for path in "abcdef"]
    assert (moved.entries[0].start, moved.entries[2].start, moved.name) == ("zero", "one", "/no/path")
    assert map_paths(moved, lambda key, path: path.removeprefix("/base/")) == settings
