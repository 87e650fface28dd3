"""Splitting of compounds: the best ways against enumeration, lattices, models and the command."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.bitext.compounds import LONGEST, MOST_PARTS, Compounds, split_compounds
from hiero.bitext.config import CompoundConfig
from hiero.bitext.prepare import join_compounds
from hiero.cli.main import main
from hiero.core.errors import FormatError
from hiero.core.input import parse_input
from hiero.core.lattice import Lattice
from tests.naive import compounds as naive

words = st.text("abs", min_size=1, max_size=8)
configs = st.builds(
    CompoundConfig,
    min_length=st.integers(1, 3),
    min_count=st.integers(1, 3),
    fillers=st.sampled_from(["", "s", "s es", "ab"]),
    alternatives=st.integers(2, 4),
)


@given(st.dictionaries(words, st.integers(1, 9), max_size=12), words, configs)
def test_ways_equal_enumeration(counts: dict[str, int], word: str, config: CompoundConfig) -> None:
    limits = config.min_length, config.min_count, config.fillers.split(), MOST_PARTS
    expected = naive.ways(word, counts, *limits)
    if len(word) < 2 * config.min_length:
        expected = [way for way in expected if len(way[1]) == 1]
    found = Compounds(counts, config).ways(word)
    scores = [way.score for way in found]
    assert scores == pytest.approx([score for score, _ in expected[: config.alternatives]])
    known = {parts: score for score, parts in expected}
    assert all(known[way.parts] == pytest.approx(way.score) for way in found)
    assert len({way.parts for way in found}) == len(found)


TEXT = ["aktion plan tagung ort"] * 4 + ["aktionsplan", "Haus Tür Tür", "Haus tür", "Haustür ."]


def test_what_is_split() -> None:
    compounds = Compounds.learn(TEXT, CompoundConfig(min_length=3, min_count=1))
    assert compounds.split(["der", "aktionsplan", "."]) == ["der", "aktion", "plan", "."]
    assert compounds.split(["tagungsort", "aktionsplanort"]) == ["tagung", "ort", "aktion", "plan", "ort"]
    # In the form in which a part is most frequent.
    assert compounds.split(["haustür", "Haustür"]) == ["Haus", "Tür", "Haus", "Tür"]
    assert compounds.split(["aktion-plan", "aktionplan7", "x" * LONGEST * 2]) == [
        "aktion-plan",
        "aktionplan7",
        "x" * LONGEST * 2,
    ]
    marked = compounds.marked(["Haustür", "am", "aktionsplanort", "."])
    assert marked == ["Haus@@", "tür", "am", "aktions@@", "plan@@", "ort", "."]
    assert join_compounds(marked) == ["Haustür", "am", "aktionsplanort", "."]
    assert join_compounds(["a@@", "b", "@@", "c@@"]) == ["ab", "@@", "c"]


@given(st.lists(words, max_size=4), configs)
def test_marks_are_undone(sentence: list[str], config: CompoundConfig) -> None:
    compounds = Compounds.learn(["a b ab aab s ba"] * 3, config)
    assert join_compounds(compounds.marked(sentence)) == sentence


@given(st.lists(words, max_size=4), configs)
def test_lattices_have_the_best_ways(sentence: list[str], config: CompoundConfig) -> None:
    """Each path is one way for each word, at the logarithm of how much less frequent it is than the best."""
    compounds = Compounds.learn(["a b ab aab s ba"] * 3 + ["a"], config)
    lattice = compounds.lattice(sentence)
    segment = parse_input(compounds.line(sentence, "lattice"))
    if lattice is None:
        assert compounds.split(sentence) == list(segment.words)
        return
    assert segment.lattice is not None
    assert segment.lattice.arcs == lattice.arcs
    found = {}
    for path in lattice.paths():
        cost, joints = lattice.values[list(path)].sum(axis=0)
        found[tuple(lattice.words[arc] for arc in path)] = cost
        assert joints == len(path) - len(sentence)
    assert tuple(compounds.split(sentence)) in found
    assert found[tuple(compounds.split(sentence))] == pytest.approx(max(found.values())) == pytest.approx(0)
    number = math.prod(len(compounds._distinct(word)) for word in sentence)
    assert lattice.num_paths == number


def test_models(tmp_path: Path) -> None:
    config = CompoundConfig(min_length=3, fillers="en", alternatives=5)
    compounds = Compounds.learn(TEXT, config)
    for name in ("one.gz", "two.gz"):
        compounds.write(tmp_path / name)
    again = Compounds.read(tmp_path / "one.gz")
    assert (again.counts, again.config) == (compounds.counts, config)
    assert (tmp_path / "one.gz").read_bytes() == (tmp_path / "two.gz").read_bytes()
    path = tmp_path / "model"
    compounds.write(path)
    text = path.read_text()
    for old, new, message in (
        ("hiero compounds 1", "hiero compounds 2", "model:1: found"),
        ('"min_length": 3', '"min_length": 0', "model:1: found"),
        ("aktion\t4", "aktion\t-4", "model:[0-9]+: found 'aktion.*-4', expected a word, a tab and its count"),
        ("aktionsplan\t1", "aktion\t1", "model:[0-9]+: found 'aktion' again"),
        (text, "", "an empty file, expected a model of compounds"),
    ):
        assert old in text
        path.write_text(text.replace(old, new, 1) if new else "")
        with pytest.raises(FormatError, match=message):
            Compounds.read(path)


def prep(*arguments: object) -> int:
    return main(["prep", "-q", "--no-tokenize", *map(str, arguments)])


def test_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text, model, out = tmp_path / "text", tmp_path / "model", tmp_path / "out"
    text.write_text("".join(f"{line}\n" for line in TEXT))
    assert prep("--learn-compounds", "-i", text, "-o", model, "--min-length", 3, "--min-count", 1) == 0
    split = "--split-compounds", "best", "--compounds", model
    assert prep(*split, "-i", text, "-o", out, "-j", 2) == 0
    assert out.read_text().splitlines()[4:] == ["aktion plan", "Haus Tür Tür", "Haus tür", "Haus Tür ."]
    assert prep("--split-compounds", "marked", "--compounds", model, "-i", text, "-o", out) == 0
    assert split_compounds(text, tmp_path / "lattices", model, "lattice") == len(TEXT)
    assert Lattice.from_plf((tmp_path / "lattices").read_text().splitlines()[4]).num_paths == 2
    # The model is read again when it has changed.
    assert prep("--learn-compounds", "-i", text, "-o", model, "--min-count", 99) == 0
    assert prep(*split, "-i", text, "-o", out) == 0
    assert out.read_text() == text.read_text()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--compounds", "in"], "argument --compounds: requires --split-compounds"),
        (["--split-compounds", "best"], "argument --split-compounds: requires --compounds MODEL"),
        (["--join-compounds"], "argument --join-compounds: requires --detokenize"),
        (["--min-count", "3"], "argument --min-count: requires --learn-compounds"),
        (
            ["--learn-compounds", "--max-words", "3"],
            "argument --max-words: not allowed with --learn-compounds",
        ),
    ],
)
def test_flags_that_do_not_go_together(
    flags: list[str], message: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert prep("-i", tmp_path / "in", *flags) == 2
    assert message in capfd.readouterr().err
