"""``hiero run``: stages, reasons to run or skip them, and interruptions."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hiero
from benchmarks.kills import trial
from hiero.cli.main import main
from hiero.config.config import read_config
from hiero.jobs.run_directory import Manifest
from tests.worlds.experiments import FILES, STAGES, Experiment
from tests.worlds.tune import Tuning

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    return Experiment(tmp_path / "exp")


def test_all_stages_of_a_configuration(
    experiment: Experiment, capfd: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert experiment.run("-j", "2") == 0
    captured = capfd.readouterr()
    assert [line.split("BLEU")[0].rstrip() for line in captured.out.splitlines()] == ["dev", "test"]
    assert all("BLEU" in line and "chrF2" in line for line in captured.out.splitlines())
    made = experiment.artefacts()
    assert {name.split("/")[0] for name in made} == {
        *("LanguageModel.lm", "config.yaml", "dev.eval.json", "dev.eval.txt", "dev.output", "lock"),
        *("model.yaml", "test.eval.json", "test.eval.txt", "test.output", "train.align.gz", "train.index"),
    }
    assert made["dev.output"].decode().splitlines()[0] == "the house"
    assert len(gzip.decompress(made["train.align.gz"]).splitlines()) == FILES["train.de"].count("\n")
    record = json.loads(made["test.eval.json"])
    assert [system["name"] for system in record["systems"]] == ["hiero"]
    # The directory is a model, and can be loaded from anywhere.
    monkeypatch.chdir(tmp_path)
    best = hiero.load(experiment.out / "model.yaml").translate("das haus")
    assert best is not None
    assert best.text == "the house"


def test_weights_that_do_not_fit_are_told_once(experiment: Experiment, capfd: Capture) -> None:
    """Not for each set that is translated."""
    assert experiment.run() == 0
    assert "names no feature" not in capfd.readouterr().err
    weights = experiment.folder / "weights"
    weights.write_text(FILES["weights"].replace("LanguageModel", "LanguageModle"))
    assert experiment.run() == 0
    told = [line for line in capfd.readouterr().err.splitlines() if "no weight" in line]
    expected = f"{weights}: the weight LanguageModle names no feature of the model; the language model"
    assert len(told) == 1
    assert told[0].startswith(f"hiero run: decode:dev: {expected} LanguageModel has no weight (is ")
    # Translations that were made without it are not taken over.
    assert experiment.error(capfd, "--strict").startswith(expected)
    experiment.set(strict=True)
    assert experiment.error(capfd).startswith(expected)
    weights.write_text(FILES["weights"])
    assert experiment.run("-q") == 0


def test_the_manifest(experiment: Experiment, capfd: Capture) -> None:
    assert experiment.run("-q") == 0
    assert capfd.readouterr().err == ""
    manifest = json.loads((experiment.out / "manifest.json").read_text())
    assert list(manifest["stages"]) == STAGES
    assert manifest["seed"] == 3
    assert manifest["config"]["eval"]["seed"] == 3
    assert manifest["config"]["align"]["model"] == "ibm2"
    assert {"hiero", "python", "numpy", "numba"} <= set(manifest["versions"])
    assert manifest["versions"]["hiero"] == hiero.__version__
    for name, entry in manifest["stages"].items():
        assert {"wall_seconds", "cpu_seconds", "compile_seconds", "peak_mb", "finished"} <= set(entry), name
        assert entry["peak_mb"] > 1
        for one in entry["inputs"].values():
            assert len(one["sha256"]) == 64
        assert all(len(digest) == 64 for digest in entry["outputs"].values())
    assert manifest["stages"]["index"]["inputs"]["data: train: alignment"]["path"].endswith("train.align.gz")
    assert manifest["stages"]["decode:dev"]["figures"]["sentences"] == 2
    assert manifest["stages"]["lm:LanguageModel"]["figures"]["ngrams"][0] > 10
    events = [json.loads(line) for line in (experiment.out / "log.jsonl").read_text().splitlines()]
    assert [event["stage"] for event in events if event["event"] == "end"] == STAGES
    assert events[0]["event"] == "run"


def test_complete_stages_are_skipped(experiment: Experiment, capfd: Capture) -> None:
    assert experiment.stages_run(capfd) == STAGES
    times = {path: path.stat().st_mtime_ns for path in experiment.out.rglob("*.output")}
    assert experiment.stages_run(capfd, "-j", "2") == []
    # A new modification time is not a change.
    for name in FILES:
        os.utime(experiment.folder / name)
    assert experiment.stages_run(capfd) == []
    assert {path: path.stat().st_mtime_ns for path in times} == times
    # Nor is an equivalent configuration in another directory.
    experiment.path = experiment.out / "config.yaml"
    assert experiment.stages_run(capfd) == []


def edit(name: str, text: str) -> Callable[[Experiment], None]:
    return lambda experiment: (experiment.folder / name).write_text(text) and None


def setting(section: str, **keys: Any) -> Callable[[Experiment], None]:
    def change(experiment: Experiment) -> None:
        experiment.set(**{section: experiment.config.get(section, {}) | keys})

    return change


AFTER_MODEL = ["decode:dev", "decode:test"]


# The expected stages after a change of text or of settings.
CHANGES = [
    (edit("dev.de", "das buch\nein haus\n"), ["decode:dev", "eval:dev"]),
    (edit("dev.en", "the house\nhe read an old house\n"), ["eval:dev"]),
    (edit("test.other.en", "she has the house\n"), ["eval:test"]),
    (setting("eval", metrics=["bleu"]), ["eval:dev", "eval:test"]),
    (setting("eval", seed=4), ["eval:dev", "eval:test"]),
    (lambda experiment: experiment.set(seed=5), ["eval:dev", "eval:test"]),
    (setting("search", pop_limit=3), AFTER_MODEL),
    (setting("search", pop_limit=200), []),
    (setting("features", templates=["shape"]), AFTER_MODEL),
    (setting("align", symmetrize="grow-diag-final-and"), []),
    (lambda e: e.set(grammar=[{"index": "train", "extract": {"cache_mb": 1}}]), []),
    (lambda e: e.set(grammar=[{"index": "train", "extract": {"samples": 7}}]), AFTER_MODEL),
    (lambda e: e.set(lm=[e.config["lm"][0] | {"memory": 20}]), []),
]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        *(pytest.param(change, stages, marks=pytest.mark.heavy) for change, stages in CHANGES),
        (lambda e: (e.out / "test.output").unlink(), ["decode:test"]),
        (lambda e: (e.out / "dev.output").write_text("a\nb\n"), ["decode:dev"]),
        (lambda e: (e.out / "train.index" / "link.npy").unlink(), ["index"]),
        (lambda e: (e.out / "manifest.json").unlink() or (e.out / "lock").unlink(), None),
    ],
)
def test_only_stages_that_depend_on_a_change_run_again(
    experiment: Experiment, capfd: Capture, change: Callable[[Experiment], None], expected: list[str] | None
) -> None:
    assert experiment.run("-q") == 0
    change(experiment)
    if expected is None:
        # A directory that is not recognised as one of a run.
        assert "found other files" in experiment.error(capfd)
        return
    assert experiment.stages_run(capfd) == expected
    assert experiment.stages_run(capfd) == []
    made = experiment.artefacts()
    # The same as in a new run.
    experiment.out = experiment.folder / "fresh"
    assert experiment.run("-q") == 0
    assert experiment.artefacts() == made


def test_unchanged_output_ends_the_effect_of_a_change(experiment: Experiment, capfd: Capture) -> None:
    assert experiment.run("-q") == 0
    # Another target side: all stages that depend on it.
    text = FILES["train.en"].replace("house", "home")
    (experiment.folder / "train.en").write_text(text)
    assert experiment.stages_run(capfd) == STAGES[:1] + STAGES[1:]
    assert "home" in experiment.artefacts()["dev.output"].decode()
    # More training with the same links as the result changes nothing after the alignment.
    before = experiment.artefacts()["train.align.gz"]
    experiment.set(align={"iterations": 2, "tension": 4.000001})
    assert experiment.stages_run(capfd)[:1] == ["align"]
    if experiment.artefacts()["train.align.gz"] == before:
        assert experiment.stages_run(capfd) == []


def test_files_changed_within_the_clock_resolution_are_read_again(tmp_path: Path) -> None:
    manifest, path = Manifest(tmp_path), tmp_path / "file"
    path.write_text("one")
    first, status = manifest.digest(path), path.stat()
    path.write_text("two")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert manifest.digest(path) != first
    # A file that is old enough is not read twice.
    old = status.st_mtime_ns - 10_000_000_000
    os.utime(path, ns=(old, old))
    second = manifest.digest(path)
    with open(path, "r+") as stream:
        stream.write("six")
    os.utime(path, ns=(old, old))
    assert manifest.digest(path) == second


def test_dry_runs(experiment: Experiment, capfd: Capture) -> None:
    assert experiment.run("--dry-run") == 0
    assert capfd.readouterr().out.splitlines()[0] == "align: would run (not done before)"
    assert not experiment.out.exists()
    assert experiment.run("-q") == 0
    before = {path: path.read_bytes() for path in experiment.out.rglob("*") if path.is_file()}
    experiment.set(align={"iterations": 3})
    capfd.readouterr()
    assert experiment.run("--dry-run") == 0
    assert capfd.readouterr().out.splitlines() == [
        "align: would run (iterations has changed)",
        "lm:LanguageModel: unchanged",
        "index: would run (if align changes its inputs)",
        "decode:dev: would run (if index changes its inputs)",
        "decode:test: would run (if index changes its inputs)",
        "eval:dev: would run (if decode:dev changes its inputs)",
        "eval:test: would run (if decode:test changes its inputs)",
    ]
    assert {path: path.read_bytes() for path in experiment.out.rglob("*") if path.is_file()} == before


def test_one_stage_alone(experiment: Experiment, capfd: Capture) -> None:
    assert "made by the stage align" in experiment.error(capfd, "--only", "index")
    assert experiment.stages_run(capfd, "--only", "align", "--only", "lm") == STAGES[:2]
    assert experiment.stages_run(capfd) == STAGES[2:]
    experiment.set(eval={"metrics": ["bleu"], "trials": 0})
    assert experiment.stages_run(capfd, "--only", "eval:dev") == ["eval:dev"]
    message = experiment.error(capfd, "--only", "decode:de", code=2)
    assert message.endswith("unknown stage 'decode:de'; did you mean 'decode:dev'?")


def test_two_runs_in_one_directory(experiment: Experiment, capfd: Capture) -> None:
    experiment.out.mkdir()
    with open(experiment.out / "lock", "a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert experiment.error(capfd) == (f"{experiment.out}: another hiero run is using this directory")
    assert experiment.run("-q") == 0


# A simulated kill leaves files open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
def test_interrupted_anywhere(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated kills before each rename of a file."""
    assert experiment.run("-q") == 0
    whole, whole_out = experiment.artefacts(), experiment.out
    names = {name: getattr(os, name) for name in ("replace", "rename")}
    moment, finished = 0, False
    while not finished:
        experiment.out = experiment.folder / f"killed{moment}"
        left = moment

        def counted(name: str, source: Any, target: Any) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            names[name](source, target)

        with monkeypatch.context() as patch, contextlib.suppress(Killed):
            for name in names:
                patch.setattr(f"os.{name}", functools.partial(counted, name))
            finished = experiment.run("-q") == 0
        assert experiment.run("-q") == 0
        assert experiment.artefacts() == whole, moment
        moment += 2
    assert moment > 20
    assert whole_out.exists()


class Killed(BaseException):
    """Simulates SIGKILL: it is never caught."""


# ---- other configurations


@pytest.mark.parametrize("write", ["whole", "per_sentence"])
def test_written_rules_equal_rules_extracted_while_decoding(
    experiment: Experiment, capfd: Capture, write: str
) -> None:
    assert experiment.run("-q") == 0
    outputs = {name: data for name, data in experiment.artefacts().items() if name.endswith(".output")}
    experiment.set(grammar=[{"index": "train", "write": write}])
    sets = {"whole": ["grammar"], "per_sentence": ["dev", "test"]}[write]
    extracted = [f"extract:{name}" for name in sets]
    assert experiment.stages_run(capfd) == [*extracted, "decode:dev", "decode:test"]
    made = experiment.artefacts()
    assert {name: data for name, data in made.items() if name.endswith(".output")} == outputs
    if write == "per_sentence":
        assert made["grammars/dev.sgm"].decode().splitlines()[0] == (
            '<seg grammar="dev/grammar.0.gz" id="0"> das haus </seg>'
        )
        (experiment.folder / "dev.de").write_text("das haus\n")
        (experiment.folder / "dev.en").write_text("the house\n")
        assert experiment.stages_run(capfd) == ["extract:dev", "decode:dev", "eval:dev"]
        assert "grammars/dev/grammar.1.gz" not in experiment.artefacts()
    assert experiment.stages_run(capfd) == []


def test_kbest_lists_and_existing_models(experiment: Experiment, capfd: Capture) -> None:
    assert experiment.run("-q") == 0
    first, made = experiment.artefacts()["dev.eval.txt"], experiment.out
    experiment.out = experiment.folder / "second"
    data = experiment.config["data"]
    experiment.set(
        data={name: data[name] for name in ("dev", "test")},
        align=None,
        lm=[{"path": str(made / "LanguageModel.lm")}],
        grammar=[{"index": str(made / "train.index")}],
        search={"kbest": 5},
    )
    assert experiment.stages_run(capfd) == STAGES[3:]
    lines = gzip.decompress(experiment.artefacts()["dev.kbest.gz"]).decode().splitlines()
    assert lines[0].startswith("0 ||| the house ||| ")
    assert len(lines) > 2
    assert experiment.artefacts()["dev.eval.txt"] == first


def test_a_given_alignment(experiment: Experiment, capfd: Capture) -> None:
    assert experiment.run("-q") == 0
    outputs, alignment = experiment.artefacts()["dev.output"], experiment.folder / "own.gz"
    alignment.write_bytes(experiment.artefacts()["train.align.gz"])
    data = experiment.config["data"]
    data["train"] |= {"alignment": "own.gz"}
    experiment.set(data=data, align=None)
    experiment.out = experiment.folder / "own"
    assert experiment.stages_run(capfd) == STAGES[1:]
    assert experiment.artefacts()["dev.output"] == outputs
    data["train"] |= {"alignment": ["own.gz", "own.gz"]}
    experiment.set(data=data)
    assert experiment.stages_run(capfd)[0] == "index"
    experiment.set(align={"model": "hmm"})
    assert experiment.error(capfd).startswith(
        f"{experiment.path}: align: cannot be combined with data: train"
    )


def test_comparison_with_others(experiment: Experiment, capfd: Capture) -> None:
    for name in ("a", "b"):
        (experiment.folder / name).write_text("the home\nhe has an old house\n")
    evaluation = experiment.config["eval"] | {"against": {"theirs": {"dev": ["a", "b"]}}}
    experiment.set(eval=evaluation)
    assert experiment.run("-q") == 0
    record = json.loads(experiment.artefacts()["dev.eval.json"])
    assert [(system["name"], system["runs"]) for system in record["systems"]] == [("theirs", 2), ("hiero", 1)]
    assert "p" in record["systems"][1]["metrics"]["bleu"]
    assert "theirs" not in experiment.artefacts()["test.eval.txt"].decode()
    (experiment.folder / "b").write_text("the house\nhe has an old house\n")
    assert experiment.stages_run(capfd) == ["eval:dev"]
    evaluation["against"]["theirs"]["tset"] = ["a"]
    experiment.set(eval=evaluation)
    assert experiment.error(capfd).endswith("against: theirs: unknown set 'tset'; did you mean 'test'?")
    evaluation["against"] = {"hiero": {"dev": ["a"]}}
    experiment.set(eval=evaluation)
    hint = "expected another name: this one is that of the run itself"
    assert experiment.error(capfd).endswith(f"against: hiero: {hint}")


def test_model_cards_have_the_scores_of_the_run_alone(experiment: Experiment, capfd: Capture) -> None:
    (experiment.folder / "a").write_text("the home\nhe has an old house\n")
    experiment.set(eval=experiment.config["eval"] | {"against": {"theirs": {"dev": "a"}}})
    assert experiment.run("-q") == 0
    package = str(experiment.folder / "model.hiero")
    assert main(["pack", "-q", str(experiment.out), "-o", package]) == 0
    capfd.readouterr()
    assert main(["pack", "--show", package]) == 0
    card = capfd.readouterr().out
    expected = []
    for name in ("dev", "test"):
        record = json.loads(experiment.artefacts()[f"{name}.eval.json"])
        metrics = record["systems"][-1]["metrics"]
        expected += [[name, metric, f"{found['score']:.2f}"] for metric, found in metrics.items()]
    rows = [row.split("|") for row in card.splitlines() if row.startswith(("| dev", "| test"))]
    assert [[row[column].strip() for column in (1, 3, 4)] for row in rows] == expected


def test_raw_text(experiment: Experiment, capfd: Capture) -> None:
    pytest.importorskip("sacremoses", reason="Moses' tokeniser needs it")
    for name in ("train.de", "train.en", "dev.de", "dev.en", "test.de", "test.en", "test.other.en"):
        lines = (experiment.folder / name).read_text().splitlines()
        (experiment.folder / name).write_text("".join(f"{line.capitalize()}.\n" for line in lines))
    with open(experiment.folder / "train.de", "a") as src, open(experiment.folder / "train.en", "a") as tgt:
        src.write("\nHaus.\n")
        tgt.write("Nothing.\n" + "House " * 90 + "\n")
    prep = {"source_language": "de", "target_language": "en", "lowercase": True}
    experiment.set(prep=prep)
    ran = experiment.stages_run(capfd)
    assert ran == ["prep:train", "prep:dev", "prep:test", *STAGES]
    made = experiment.artefacts()
    assert made["prep/train.source"].decode() == FILES["train.de"].replace("\n", " .\n")
    assert made["dev.output"].decode().splitlines()[0] == "the house ."
    assert made["prep/test.reference2"] == b"she owns a house .\n"
    manifest = json.loads((experiment.out / "manifest.json").read_text())
    assert manifest["stages"]["prep:train"]["figures"]["kept"] == FILES["train.de"].count("\n")
    # The model says how its text is prepared, for hiero serve.
    found = read_config(experiment.out / "model.yaml").prep
    assert found is not None
    assert (found.source_language, found.target_language, found.lowercase) == ("de", "en", True)
    # References of a set change nothing else.
    (experiment.folder / "test.en").write_text("She has a home.\n")
    assert experiment.stages_run(capfd) == ["prep:test", "eval:test"]
    experiment.set(prep={"source_language": "de"})
    assert "prep: target_language is missing" in experiment.error(capfd)


@pytest.mark.slow
@pytest.mark.heavy
def test_killed_at_random_moments(experiment: Experiment) -> None:
    """benchmarks/kills.py does this twenty times with the demo."""
    kills = trial(experiment.path, experiment.folder, 4, seed=1)
    assert kills.total() == 4


def test_grammars_elsewhere_need_a_flag(
    tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In all stages, and in commands of their own."""
    world = Tuning(tmp_path / "world")
    (tmp_path / "more").write_text("[X] ||| a ||| A ||| Right=2 Length=1\n")
    world.file("dev.src", [f'<seg grammar="../more"> {x} </seg>' for x in "ab"])
    world.file("dev.ref", list("AB"))
    world.set(
        data={"dev": world.config["data"]["dev"]},
        bins={"features": {"Right": {}}, "bits": 1},
        tune={"held_out": None, "epochs": 1},
        eval={"metrics": ["chrf"]},
    )
    monkeypatch.chdir(tmp_path)
    place = f"{world.folder / 'dev.src'}:1: found the grammar '../more', expected a path inside"
    for command in (
        ["run", str(world.path), "-o", "run"],
        ["bins", "learn", "-c", str(world.path), "-o", "bins"],
        world.command(),
    ):
        assert main([*command, "-q"]) == 1
        assert place in capfd.readouterr().err
        assert main([*command, "-q", "--allow-grammar-paths"]) == 0
    assert (tmp_path / "run" / "dev.output").read_text() == "A\nB\n"
