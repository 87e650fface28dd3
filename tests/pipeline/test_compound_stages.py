"""``hiero run``: compounds that are split, on the source side, or on the target side and joined again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from hiero.cli.main import main
from hiero.core.lattice import Lattice
from hiero.evaluation.hypotheses import read_hypotheses
from hiero.pipeline.plan import STAGES
from hiero.reporting.directory import RunDirectory
from hiero.reporting.scores import set_files
from tests.worlds.experiments import Experiment
from tests.worlds.server import served

Capture = pytest.CaptureFixture[str]
# The compounds of dev and test are in no target sentence here, their parts are.
PAIRS = [
    *[(f"a book {name}", f"ein buch {name}") for name in ("one", "two", "three")],
    *[(f"the house {name}", f"das haus {name}") for name in ("one", "two", "three")],
    *[(f"the door {name}", f"die tür {name}") for name in ("one", "two", "three")],
    *[(f"a bookhouse {name}", f"ein buchhaus {name}") for name in ("one", "two")],
]
COMPOUNDS = {"min_count": 2, "min_length": 3}
MARKED: dict[str, Any] = {"tokenize": False, "split_compounds_target": "marked", "compounds": COMPOUNDS}


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    """A bitext with compounds on the target side, and sets with one or several references."""
    experiment = Experiment(tmp_path / "exp")
    texts = {
        "train.en": [src for src, _ in PAIRS],
        "train.de": [tgt for _, tgt in PAIRS],
        "dev.en": ["the bookhouse", "a house"],
        "dev.de": ["das buchhaus", "ein haus"],
        "test.en": ["a bookhouse", "the door"],
        "test.de": ["ein buchhaus", "die tür"],
        "test.other.de": ["ein haus", "die haustür"],
    }
    for name, found in texts.items():
        (experiment.folder / name).write_text("".join(f"{line}\n" for line in found))
    experiment.config["data"] = {
        "train": {"source": "train.en", "target": "train.de"},
        "dev": {"source": "dev.en", "target": "dev.de"},
        "test": {"source": "test.en", "references": ["test.de", "test.other.de"]},
    }
    experiment.set(prep=MARKED)
    return experiment


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_the_target_side_is_split_and_translations_are_joined(experiment: Experiment, capfd: Capture) -> None:
    tune = {"algorithm": "kbmira", "on": "dev", "epochs": 1, "kbest": 5, "held_out": None}
    experiment.set(weights=None, tune=tune)
    out, marked = experiment.out, experiment.out / "marked"
    ran = experiment.stages_run(capfd)
    prepared = ["prep:train", "prep:dev", "prep:test"]
    assert ran[:6] == [*prepared, "mark:train", "mark:dev", "mark:test"]
    assert ran[-6:] == ["decode:dev", "decode:test", "join:dev", "join:test", "eval:dev", "eval:test"]
    assert {name.partition(":")[0] for name in ran} <= set(STAGES)
    text = (out / "prep" / "train.target").read_text()
    assert (marked / "train.target").read_text() == text.replace("buchhaus", "buch@@ haus")
    assert lines(marked / "dev.reference1") == ["das buch@@ haus", "ein haus"]
    assert lines(marked / "test.reference2") == ["ein haus", "die haus@@ tür"]

    stages = json.loads((out / "manifest.json").read_text())["stages"]

    def inputs(stage: str) -> str:
        return " ".join(one["path"] for one in stages[stage]["inputs"].values())

    # Everything is learnt from parts, and translations are compared with references that have none.
    assert all("marked/train.target" in inputs(name) for name in ("align", "lm:LanguageModel", "index"))
    assert "marked/dev.reference1" in inputs("tune")
    assert "marked" not in inputs("eval:dev") + inputs("eval:test")
    found = lines(marked / "test.output")
    assert found[0].split()[-2:] == ["buch@@", "haus"]
    assert lines(out / "test.output") == [line.replace("@@ ", "") for line in found]
    scored = json.loads((out / "test.eval.json").read_text())["systems"][0]["metrics"]["bleu"]
    references = [str(experiment.folder / f"test.{name}") for name in ("de", "other.de")]
    settings = ["--metrics", "bleu", "--tokenize", "none", "--trials", "0", "--format", "json"]
    assert main(["eval", str(out / "test.output"), "-r", *references, *settings]) == 0
    assert scored["score"] == json.loads(capfd.readouterr().out)["systems"][0]["metrics"]["bleu"]["score"]
    assert experiment.stages_run(capfd) == []
    # hiero tune makes the same texts by these stages, and joins nothing.
    again = ["--run", str(experiment.folder / "again"), "-o", str(experiment.folder / "tuned"), "-q"]
    assert main(["tune", "-c", str(experiment.path), *again]) == 0
    weights = experiment.folder / "tuned" / "weights.gz"
    assert weights.read_bytes() == (out / "weights.gz").read_bytes()
    shown = set_files(RunDirectory(out, "out"), "test")
    assert shown is not None
    assert shown.output == lines(out / "test.output")
    assert shown.references == [lines(experiment.folder / name) for name in ("test.de", "test.other.de")]


def test_lists_have_parts_and_their_best_are_joined(experiment: Experiment, capfd: Capture) -> None:
    experiment.set(search={"kbest": 3})
    assert "join:test" in experiment.stages_run(capfd)
    listed = read_hypotheses(experiment.out / "test.kbest.gz", 2, "test").lines
    assert "buch@@ haus" in listed[0]
    assert lines(experiment.out / "test.output") == [line.replace("@@ ", "") for line in listed]


def test_both_sides(experiment: Experiment, capfd: Capture) -> None:
    """Pairs that lattices need twice have the split target; the language model has each sentence once."""
    experiment.set(prep=MARKED | {"split_compounds": "lattice"})
    ran = experiment.stages_run(capfd)
    assert ran.index("mark:test") < ran.index("split:train") < ran.index("align")
    split = experiment.out / "split"
    source, target = (lines(split / f"train.{side}") for side in ("source", "target"))
    twice = [(src, "ein buch@@ haus") for src, _ in PAIRS if "bookhouse" in src]
    assert [(src, tgt.rpartition(" ")[0]) for src, tgt in zip(source, target, strict=True)][
        len(PAIRS) :
    ] == twice
    stages = json.loads((experiment.out / "manifest.json").read_text())["stages"]
    (text,) = (
        one["path"] for one in stages["lm:LanguageModel"]["inputs"].values() if "target" in one["path"]
    )
    assert lines(Path(text)) == lines(experiment.out / "marked" / "train.target")
    assert lines(experiment.out / "test.output")[0].endswith("buchhaus")


def test_decode_pack_and_serve_join(experiment: Experiment, capfd: Capture, tmp_path: Path) -> None:
    experiment.set(prep=MARKED | {"split_compounds": "lattice"})
    experiment.stages_run(capfd)
    package = tmp_path / "model.hiero"
    assert main(["pack", str(experiment.out), "-o", str(package), "-q"]) == 0
    expected = lines(experiment.out / "test.output")
    source = str(experiment.folder / "test.en")
    for model in (experiment.out / "model.yaml", package):
        capfd.readouterr()
        assert main(["decode", "-c", str(model), "-i", source, "--raw", "-q"]) == 0
        assert capfd.readouterr().out.splitlines() == expected
    assert main(["decode", "-c", str(package), "-i", source, "--raw", "-q", "--format", "json"]) == 0
    first = json.loads(capfd.readouterr().out.splitlines()[0])["translations"][0]
    assert first["text"] == expected[0]
    assert first["words"][-2:] == ["buch@@", "haus"]
    with served([f"en-de={package}"]) as client:
        asked = {"q": ["a bookhouse", "the door"], "source": "en", "target": "de"}
        assert client.post("/translate", json=asked).json() == {"translatedText": expected}
        asked = {"text": "a bookhouse", "translation": expected[0]}
        compared = client.post("/api/compare", json=asked).json()
        assert compared["wanted"] == first["words"]
        assert compared["is_wanted"] is True


def test_a_given_model_of_compounds(experiment: Experiment, capfd: Capture) -> None:
    counts = experiment.folder / "counts.gz"
    target = str(experiment.folder / "train.de")
    learn = ["prep", "--learn-compounds", "-i", target, "--no-tokenize", "-o", str(counts), "-q"]
    assert main([*learn, "--min-count", "2", "--min-length", "3"]) == 0
    given = {key: value for key, value in MARKED.items() if key != "compounds"}
    experiment.set(prep=given | {"target_compounds": "counts.gz"})
    assert "mark:train" in experiment.stages_run(capfd)
    assert lines(experiment.out / "marked" / "dev.reference1") == ["das buch@@ haus", "ein haus"]
    assert not (experiment.out / "compounds.target.gz").exists()
    model = yaml.safe_load((experiment.out / "model.yaml").read_text())
    assert model["prep"]["target_compounds"] == str(counts)
    counts.unlink()
    assert "prep: target_compounds: no such file" in experiment.error(capfd)


@pytest.mark.parametrize(
    ("prep", "message"),
    [
        ({"target_compounds": "weights"}, "prep: target_compounds: requires split_compounds_target"),
        ({"source_compounds": "weights"}, "prep: source_compounds: requires split_compounds"),
        ({"compounds": COMPOUNDS}, "prep: compounds: settings of models that are learnt, but there are none"),
        ({"split_compounds_target": "best"}, "prep: split_compounds_target: found 'best', expected"),
    ],
)
def test_settings_that_contradict(
    experiment: Experiment, capfd: Capture, prep: dict[str, Any], message: str
) -> None:
    experiment.set(prep={"tokenize": False} | prep)
    assert message in experiment.error(capfd)


def test_words_with_marks_of_their_own_are_refused(experiment: Experiment, capfd: Capture) -> None:
    with (experiment.folder / "train.de").open("a") as stream:
        stream.write("pie@@ ces\n")
    with (experiment.folder / "train.en").open("a") as stream:
        stream.write("pieces\n")
    found = experiment.error(capfd)
    assert f"train.target:{len(PAIRS) + 1}: found 'pie@@', expected no word that ends with @@" in found


@pytest.mark.parametrize("kind", ["best", "lattice"])
def test_the_source_side_is_split(tmp_path: Path, capfd: Capture, kind: str) -> None:
    """They are split by the words of the training data, after sets are drawn; lattices keep both forms."""
    experiment, train = Experiment(tmp_path / "exp"), {"source": "train.de", "target": "train.en"}
    more = [(f"ein buch haus n{k}", f"a book house m{k}") for k in range(4)]
    more += [(f"ein buchhaus v{k}", f"one house w{k}") for k in range(4)]
    for side, name in enumerate(("train.de", "train.en")):
        text = (experiment.folder / name).read_text() + "".join(f"{pair[side]}\n" for pair in more)
        (experiment.folder / name).write_text(text)
    (experiment.folder / "more.de").write_text("das buchhaus\ndas haus\n")
    experiment.config["data"] = {"train": train, "more": {"source": "more.de"}, "sequester": {"test": 2}}
    compounds = {"min_count": 2}
    experiment.set(prep={"tokenize": False, "split_compounds": kind, "compounds": compounds})
    ran = experiment.stages_run(capfd)
    split = ["split:train", "split:more", "split:test"]
    assert ran[: ran.index("align")] == ["prep:train", "prep:more", "sequester", *split]
    source, target = (
        (experiment.out / "split" / f"train.{side}").read_text() for side in ("source", "target")
    )
    unsplit = (experiment.out / "sequester" / "train.source").read_text()
    together = [line for line in unsplit.splitlines() if "buchhaus" in line]
    assert together
    head = source.splitlines()[: unsplit.count("\n")]
    assert head == unsplit.replace("buchhaus", "buch haus").splitlines()
    assert source.splitlines()[len(head) :] == (together if kind == "lattice" else [])
    assert source.count("\n") == target.count("\n")
    found = (experiment.out / "split" / "more.source").read_text().splitlines()
    assert found[1] == "das haus"
    if kind == "best":
        assert found[0] == "das buch haus"
    else:
        assert Lattice.from_plf(found[0]).words == ("das", "buch", "buchhaus", "haus")
    inputs = json.loads((experiment.out / "manifest.json").read_text())["stages"]
    assert inputs["lm:LanguageModel"]["inputs"]["data: train: target"]["path"].endswith(
        "sequester/train.target"
    )
    assert len((experiment.out / "more.output").read_text().splitlines()) == 2
    assert experiment.stages_run(capfd) == []
    experiment.set(prep={"tokenize": False, "split_compounds": kind, "compounds": {"min_count": 99}})
    ran = experiment.stages_run(capfd)
    assert ran[:2] == ["split:train", "split:more"]
    assert (experiment.out / "split" / "more.source").read_text() == "das buchhaus\ndas haus\n"
