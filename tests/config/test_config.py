"""Configurations: valid settings, their meaning, and error messages."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from hiero.alignment.config import AlignConfig
from hiero.config.config import config_of, read_config, read_settings, resolved
from hiero.config.model import load
from hiero.config.sections import FeaturesSection, GrammarSection
from hiero.core.errors import ConfigError, FormatError, HieroError
from hiero.core.records import record
from hiero.decoder.config import SearchConfig
from tests.worlds.experiments import CONFIG

CONFIGS = Path(__file__).parents[2] / "configs"


@dataclass(frozen=True, kw_only=True)
class Inner:
    number: int = 1


@dataclass(frozen=True, kw_only=True)
class Outer:
    one_or_more: str | list[str] | None = None
    table: dict[str, Inner] = field(default_factory=dict)
    flag_or_list: bool | list[float] = False
    null: float = 0.5


def test_one_or_several() -> None:
    assert record(Outer, {"one_or_more": "a"}, "x").one_or_more == "a"
    assert record(Outer, {"one_or_more": ["a", "b"]}, "x").one_or_more == ["a", "b"]
    assert record(Outer, {"one_or_more": None}, "x").one_or_more is None
    assert record(Outer, {"flag_or_list": True}, "x").flag_or_list is True
    assert record(Outer, {"flag_or_list": [1, 0.5]}, "x").flag_or_list == [1, 0.5]
    for value, message in (
        ({"one_or_more": 3}, "x: one_or_more: found 3, expected text"),
        ({"one_or_more": ["a", 3]}, "x: one_or_more: entry 2: found 3, expected text"),
        ({"flag_or_list": "yes"}, "x: flag_or_list: found 'yes', expected true or false"),
        ({"flag_or_list": None}, "x: flag_or_list: found nothing, expected true or false"),
    ):
        with pytest.raises(ConfigError) as caught:
            record(Outer, value, "x")
        assert str(caught.value) == message


def test_tables_with_user_defined_names() -> None:
    assert record(Outer, {"table": {"a": {"number": 2}}}, "x").table == {"a": Inner(number=2)}
    for value, message in (
        ({"a": {"numbr": 2}}, "x: table: a: unknown key 'numbr'; did you mean 'number'?"),
        ({3: {}}, "x: table: found 3, expected text"),
        ([], r"x: table: found \[\], expected names and values"),
    ):
        with pytest.raises(ConfigError, match=message):
            record(Outer, {"table": value}, "x")


def test_null_as_a_key() -> None:
    """YAML reads the key of ``align: {null: 0.1}`` as None."""
    assert record(Outer, yaml.safe_load("null: 0.25"), "x").null == 0.25
    config = config_of(yaml.safe_load("align: {null: 0.1}"))
    assert config.align is not None
    assert config.align.null == 0.1
    assert config_of(yaml.safe_load(yaml.safe_dump(resolved(config)))) == config
    with pytest.raises(ConfigError, match="unknown key nothing"):
        record(Inner, {None: 1}, "x")


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "configs"
    folder.mkdir()
    content = CONFIG | {"eval": {"against": {"a": {"dev": ["x", "../y"]}}}}
    (folder / "c.yaml").write_text(yaml.safe_dump(content))
    config = read_config(folder / "c.yaml")
    assert config.data["dev"].source == str(folder / "dev.de")
    assert config.data["test"].translations == [str(folder / "test.en"), str(folder / "test.other.en")]
    assert config.eval.against == {"a": {"dev": [str(folder / "x"), str(tmp_path / "y")]}}
    # This word is not a path.
    assert config.lm[0].estimate == config.grammar[0].index == "train"
    assert config.eval.seed == 3


def test_resolved_configurations_are_equivalent() -> None:
    config = config_of(CONFIG, base=Path("/data"))
    again = config_of(yaml.safe_load(yaml.safe_dump(resolved(config))), base=Path("/elsewhere"))
    assert again == config
    assert resolved(config)["search"]["pop_limit"] == 200


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"dta": {}}, "unknown key 'dta'; did you mean 'data'?"),
        ({"data": {"train": {"source": "a"}}}, "data: train: target is missing"),
        (
            {"data": {"train": {"source": "a", "references": "b"}}},
            "data: train: training data need target, not references",
        ),
        ({"data": {"dev": {"target": "a"}}}, "data: dev: source is missing"),
        (
            {"data": {"dev": {"source": "a", "target": "b", "references": "c"}}},
            "data: dev: target cannot be combined with references",
        ),
        (
            {"data": {"dev": {"source": "a", "references": []}}},
            "data: dev: references: needs at least one file",
        ),
        (
            {"data": {"dev": {"source": "a", "alignment": "b"}}},
            "data: dev: alignment is only allowed in train",
        ),
        ({"data": {"a/b": {"source": "a"}}}, "data: a/b: found 'a/b', expected a name of letters and digits"),
        ({"align": {"model": "ibm3"}}, "align: model: found 'ibm3', expected one of ibm2, hmm"),
        ({"align": {"iterations": 0}}, "align: iterations: found 0, expected 1 to 1000"),
        ({"grammar": [{"index": "train", "write": "all"}]}, "entry 1: write: found 'all', expected one of"),
        ({"prep": {"source_language": "de"}}, "prep: target_language is missing (such as de)"),
        ({"prep": {"tokenize": False, "max_words": -1}}, "prep: max_words: found -1, expected at least 0"),
        ({"seed": "one"}, "seed: found 'one', expected a whole number"),
        (
            {"tune": {"beta": "1e5"}},
            "beta: found '1e5', expected a number (1.0e+5 is one; 1e5 and '5' are text)",
        ),
    ],
)
def test_errors(content: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_of(content, "c.yaml")
    assert str(caught.value).startswith("c.yaml: ")
    assert message in str(caught.value)


def test_sections_that_only_a_run_can_fill() -> None:
    for section, message in (
        ({"grammar": [{"index": "train"}]}, "grammar: entry 1: found index: train, expected its path"),
        ({"lm": [{"estimate": "train"}]}, "lm: entry 1: path is missing"),
    ):
        with pytest.raises(HieroError, match=message):
            load(section, weights={})


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.name)
def test_examples_are_valid(path: Path) -> None:
    # Nothing to assert: the file is read without an error.
    read_config(path)


def test_own_bitext_example_shows_the_defaults() -> None:
    config = read_config(CONFIGS / "own-bitext.yaml")
    assert config.search == SearchConfig()
    assert config.align == AlignConfig()
    assert config.grammar == [GrammarSection(index="train")]
    assert config.features == FeaturesSection()
    assert config.weights is not None
    assert Path(config.weights.path).is_file()


def nested(begin: str, end: str) -> str:
    """Nine aliases of each of ten lines in the next."""
    lines = (f"{y}: &{y} {begin}{','.join([f'*{x}'] * 9)}{end}\n" for x, y in pairwise("abcdefghij"))
    return "a: &a {x: 1}\n" + "".join(lines)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (nested("[", "]"), "more than 100,000 values"),
        (nested("{<<: [", "]}"), "more than 100,000 values"),
        ("a: &a [*a]\n", "an alias within what it stands for"),
        ("a: " + "[" * 10_000, "lists nested too deeply"),
        ("a: " + "1:" * 100_000 + "1", "a number of 200001 characters"),
        ("a: " + "9" * 100_000, "a number of 100000 characters"),
        ("# " + "long " * 300_000, "more than 1 MB"),
    ],
)
def test_settings_without_bounds(tmp_path: Path, text: str, found: str) -> None:
    (tmp_path / "c.yaml").write_text(text)
    started = time.process_time()
    with pytest.raises(FormatError, match=found) as caught:
        read_settings(tmp_path / "c.yaml")
    assert "\n" not in str(caught.value)
    assert time.process_time() - started < 5
