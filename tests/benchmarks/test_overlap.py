"""benchmarks/papers/overlap.py: how many features of a test set occurred in tuning."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers import overlap
from benchmarks.papers.tune_runs import config_for, read_run
from hiero.learning.config import TuneConfig
from tests.worlds.tune import Tuning

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Tuning:
    """Tuning sentences of a, b and c; a test set of c, d and e."""
    world = Tuning(tmp_path_factory.mktemp("overlap"))
    for name, lines in (("dev", ["a b c", "c b", "a"]), ("devtest", ["c d", "d e", "c", "e"])):
        world.file(f"{name}.src", lines)
        world.file(f"{name}.ref", [line.upper() for line in lines])
    world.set(tune={"epochs": 2}, features={"templates": ["rule_id"]}, search={"glue": True})
    assert world.run("-q") == 0
    return world


def words_of(counts: overlap.Counts, features: overlap.Features) -> set[str]:
    """The source sides of rules whose ids fire, without glue and gaps."""
    names = features.model.symbols
    found = set()
    for feature in np.flatnonzero(counts).tolist():
        key = features.index.key(feature)
        if key[0] == overlap.RULE_ID and key[2] >= 0:
            found.add(names.words.text(key[2]))
    return found


def test_features_that_fire_and_features_with_a_weight(world: Tuning) -> None:
    folder = world.folder / "by hand"
    folder.mkdir()
    (folder / "log.jsonl").write_text('{"epoch": 1}\n')
    with gzip.open(folder / "weights.01.gz", "wt") as stream:
        stream.write("R:X:a:A 1\nR:X:c:C 1\nR:X:d:D 1\nRight 1\n")
    run = read_run(f"sgd={folder}")
    features = overlap.Features(config_for(run, world.path), 20)
    model, weighted = features.weights(run)
    dev, test = features.texts("dev", False), features.texts("devtest", False)
    tuned, fires = features.fire(model, dev, range(3)), features.fire(model, test, range(4))
    assert words_of(tuned, features) == {"a", "b", "c"}
    assert words_of(fires, features) == {"c", "d", "e"}
    found = features.overlaps(fires, tuned, weighted)
    # c C, c CC, c c (passed through), of nine; and a rule or two of glue.
    rules = found["rule_id"]
    glue = rules.test - 9
    assert glue in (1, 2)
    assert rules.seen == 3 + glue
    assert rules.weighted == 2  # not that of a, which the test set does not have
    # Each of two words in two sentences, and e besides, each with three rules; and glue.
    assert rules.weighted_firings == 2 + 2
    assert 3 * 6 < rules.firings <= 3 * 6 + 4 + 2
    dense = found["dense"]
    assert (dense.test, dense.seen, dense.weighted, dense.weighted_firings) == (6, 6, 1, 4)
    assert set(found) == {"dense", "rule_id"}


def test_from_runs_to_tables(world: Tuning, capsys: Capture) -> None:
    assert overlap.main([f"one={world.out}", f"two={world.out}", "--kbest", "20"]) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    assert [line.split(" | ")[:3] for line in lines[2:6]] == [
        ["| one", "dev", "dense"], ["| one", "dev", "rule_id"],
        ["| two", "dev", "dense"], ["| two", "dev", "rule_id"],
    ]  # fmt: skip
    one, other, *counts = lines[-1].strip("| ").split(" | ")
    assert (one, other) == ("one", "two")
    assert counts[0] == counts[1] == counts[2] != "0"  # a run has the same weights as itself


def test_errors(world: Tuning, capsys: Capture, tmp_path: Path) -> None:
    run = f"one={world.out}"
    for more, message in (
        (["--test", "tst"], "found no set tst with references"),
        (["--on", "dev", "dev"], "on: found 2 sets, expected one, or one for each of 1 runs"),
        (["--config", str(tmp_path / "none.yaml")], "none.yaml: found no such file"),
    ):
        assert overlap.main([run, *more]) == 1
        err = capsys.readouterr().err
        assert message in err
        assert err.count("\n") == 1


def test_the_sentences_that_were_learnt_from() -> None:
    some = overlap.chosen_sentences(TuneConfig(sentences=5), 3, 20, 0)
    assert len(some) == 5
    assert some == overlap.chosen_sentences(TuneConfig(sentences=5), 3, 20, 7)
    assert set(overlap.chosen_sentences(TuneConfig(sentences=5), 3, 20, 2)) < set(some)
    assert overlap.chosen_sentences(TuneConfig(), 3, 4, 9) == [0, 1, 2, 3]
