"""``hiero report``: pages of real runs, complete, partial and damaged ones."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from hiero.cli.main import main
from hiero.core.text import lock_file
from hiero.reporting.gather import make_report
from hiero.reporting.records import DONE, NOT_DONE, RUNNING, STOPPED, Report
from tests.worlds.experiments import PAIRS, Experiment
from tests.worlds.pages import check_page, sections, text_of
from tests.worlds.tune import Tuning

pytestmark = pytest.mark.heavy

Capture = pytest.CaptureFixture[str]
TUNE = {"algorithm": "pro", "epochs": 2, "kbest": 10, "held_out": "test", "neighbours": "monotone"}
PARTS = ["Scores", "Stages", "Learning", "Features", "Bins", "Sentences", "Word alignments", "Model"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """A complete run with bins and tuning, and another one in ``other.run`` with other weights."""
    experiment = Experiment(tmp_path_factory.mktemp("report") / "exp")
    experiment.add_line()
    experiment.set(
        weights=None,
        bins={"features": {"EgivenFCoherent": {"of": "probability"}}, "bits": 2},
        tune=TUNE,
        eval={"metrics": ["bleu", "chrf"], "tokenize": "none", "trials": 20},
    )
    experiment.out = experiment.folder / "main.run"
    assert experiment.run("-q") == 0
    other = experiment.folder / "other.yaml"
    experiment.path = other
    experiment.set(bins=None, tune={"algorithm": "mira", "epochs": 1, "kbest": 10, "held_out": "test"})
    assert main(["run", str(other), "-o", str(experiment.folder / "other.run"), "-q"]) == 0
    # Times that do not depend on the machine.
    path = experiment.out / "manifest.json"
    manifest = json.loads(path.read_text())
    for number, entry in enumerate(manifest["stages"].values(), 1):
        entry |= {"wall_seconds": 3.5 + number, "cpu_seconds": 2.5 + number, "compile_seconds": 0.0}
    path.write_text(json.dumps(manifest))
    return experiment


@pytest.fixture
def copy(made: Experiment, tmp_path: Path) -> Path:
    """A copy of the run in the place of its files, to be changed."""
    folder = tmp_path / "main.run"
    shutil.copytree(made.out, folder)
    text = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text(text.replace(str(made.out), str(folder)))
    return folder


def states(report: Report) -> dict[str, str]:
    return {stage.name: stage.state for stage in report.systems[0].stages}


def damage(path: Path, **changes: Any) -> None:
    """Change the content of a file in JSON."""
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_the_page_of_a_run(made: Experiment, tmp_path: Path, capfd: Capture) -> None:
    out = tmp_path / "report.html"
    capfd.readouterr()
    assert main(["report", str(made.out), "-o", str(out), "-j", "2"]) == 0
    assert capfd.readouterr().err.endswith(f"hiero: {out} is complete\n")
    root = check_page(out.read_text())
    parts = sections(root)
    assert list(parts) == [*PARTS, "Configuration"]
    manifest = json.loads((made.out / "manifest.json").read_text())
    for name, entry in manifest["stages"].items():
        assert f" {name} done {entry['wall_seconds']:.1f} s {entry['cpu_seconds']:.1f} s " in parts["Stages"]
        assert f"{entry['peak_mb']:,.0f} MB {entry['threads']} " in parts["Stages"]
    for name in ("dev", "test"):
        scores = json.loads((made.out / f"{name}.eval.json").read_text())
        bleu = scores["systems"][0]["metrics"]["bleu"]
        low, high = bleu["interval"]
        assert f"{name} metric system score 95 % interval BLEU main {bleu['score']:.2f}" in parts["Scores"]
        assert f"{bleu['score']:.2f} {low:.2f} – {high:.2f}" in parts["Scores"]
        assert scores["signatures"]["chrf"] in parts["Scores"]
    assert "Only even lines are scored" in parts["Scores"]
    assert "The weights were learnt from these lines" in parts["Scores"]
    log = [json.loads(line) for line in (made.out / "tune" / "log.jsonl").read_text().splitlines()]
    epoch = manifest["stages"]["tune"]["figures"]["epoch"]
    assert f"2 epochs on dev. The odd lines of test chose epoch {epoch}" in parts["Learning"]
    assert f"{log[1]['model_bleu']:.4g}" in parts["Learning"]
    assert all(record["peak_mb"] > 1 for record in log)
    for line in gzip.decompress((made.out / "weights.gz").read_bytes()).decode().splitlines()[1:]:
        name, weight = line.split()
        if abs(float(weight)) > 1e-3 and "_bin" not in name:
            assert f"{name} {float(weight):.4g}" in parts["Features"]
    assert "EgivenFCoherent: " in parts["Bins"]
    assert "Line 2: " in parts["Sentences"]
    assert "Line 1: " not in parts["Sentences"]  # it chose the weights
    for text in ("er hat das buch", "he has the book", (made.out / "test.output").read_text().split("\n")[1]):
        assert text in parts["Sentences"]
    links = gzip.decompress((made.out / "train.align.gz").read_bytes()).decode().splitlines()
    source, target = (side.split() for side in PAIRS[4])
    named = (link.split("-") for link in links[4].split())
    title = ", ".join(f"{source[int(i)]}–{target[int(j)]}" for i, j in named)
    assert f"Links: {title}" in parts["Word alignments"]
    assert manifest["stages"]["tune"]["outputs"]["weights.gz"] in parts["Model"]
    assert "algorithm: pro" in parts["Configuration"]
    assert "complete · hiero run" in text_of(root)


def test_derivations_add_up(made: Experiment) -> None:
    report = make_report(made.out, examples=9, set_name="dev")
    assert report.systems[0].problems == []
    (first, second) = sorted(report.examples.sentences, key=lambda one: one.number)
    assert first.source == "das haus"
    assert first.references == ["the house"]
    assert second.number == 2
    values = []
    for example in (first, second):
        (output,) = example.outputs
        found = output.derivation
        assert found is not None
        assert found.text == output.text
        assert found.score == pytest.approx(sum(step.score for step in found.steps))
        assert found.more == 0
        values.append({name: value for name, value, _ in found.features})
        assert found.score == pytest.approx(sum(value * weight for _, value, weight in found.features))
        assert all(i < len(example.source.split()) and j < len(found.text.split()) for i, j in found.links)
        assert [step.depth for step in found.steps][:2] == [0, 1]
    # The mean values are those of both sentences.
    shares = {one.name: one.means[0] for one in report.features.by_share}
    for name, mean in shares.items():
        assert mean == pytest.approx(sum(one.get(name, 0.0) for one in values) / 2)
    weights = [abs(one.weights[0] or 0.0) for one in report.features.by_weight]
    assert weights == sorted(weights, reverse=True)


def test_systems_side_by_side(made: Experiment, tmp_path: Path) -> None:
    other = made.folder / "other.run"
    out = tmp_path / "report.html"
    assert main(["report", str(made.out), "--compare", str(other), "-o", str(out), "-q"]) == 0
    parts = sections(check_page(out.read_text()))
    assert "p against main" in parts["Scores"]
    assert "Stages main stage" in parts["Stages"]
    assert "other stage state" in parts["Stages"]
    assert "tune.algorithm pro mira" in parts["Configuration"]
    report = make_report(made.out, [other], examples=9)
    assert [system.name for system in report.systems] == ["main", "other"]
    assert report.differences["tune.epochs"] == ["2", "1"]
    (test,) = [one for one in report.scores if one.name == "test"]
    for system, folder in zip(test.scores["systems"], (made.out, other), strict=True):
        recorded = json.loads((folder / "test.eval.json").read_text())["systems"][0]["metrics"]["bleu"]
        assert system["metrics"]["bleu"]["score"] == recorded["score"]
        assert system["metrics"]["bleu"]["interval"] == recorded["interval"]
    assert "p" in test.scores["systems"][1]["metrics"]["bleu"]
    for example in report.examples.sentences:
        one, two = example.outputs
        assert abs(one.bleu - two.bleu) > 0
        assert f"{abs(one.bleu - two.bleu):.1f}" in example.why
    assert [len(one.weights) for one in report.features.by_weight[:1]] == [2]


def test_systems_that_are_scored_on_other_lines(made: Experiment, tmp_path: Path) -> None:
    """All lines of the other system are test data; odd lines of the first chose the weights."""
    plain = Experiment(tmp_path / "plain")
    plain.set(
        data={n: {k: _absolute(made, v) for k, v in d.items()} for n, d in plain.config["data"].items()}
    )
    (plain.folder / "weights").write_text("Glue -0.1\nPassThrough 100\n")
    assert plain.run("-q") == 0
    for paths in ((made.out, plain.out), (plain.out, made.out)):
        report = make_report(paths[0], [paths[1]], examples=9, set_name="test")
        (example,) = report.examples.sentences
        assert example.number == 2
        values = []
        for output in example.outputs:
            assert output.problem == ""
            assert output.derivation is not None
            assert output.derivation.text == output.text
            values.append({name: value for name, value, _ in output.derivation.features})
        assert "er hat das buch" in [output.text for output in example.outputs]
        assert report.features.sentences == 1
        for row in report.features.by_share:
            assert row.means == pytest.approx([one.get(row.name, 0.0) for one in values]), row.name
        check_page_of(report)


def test_sources_with_markup_as_json_and_as_lattices(tmp_path: Path, capfd: Capture) -> None:
    experiment = Experiment(tmp_path / "exp")
    experiment.add_line()
    lines = [
        'sie hat ein <n translation="flat">haus</n>',
        '{"source": "er hat das buch", "terms": [["buch", "tome"]]}',
    ]
    (experiment.folder / "test.de").write_text("".join(f"{line}\n" for line in lines))
    dev = ["((('das',-1,1),('ein',-2,1),),(('haus',0,1),),)", "<seg id='x'>er hat ein haus gelesen</seg>"]
    (experiment.folder / "dev.de").write_text("".join(f"{line}\n" for line in dev))
    experiment.set(search={"markup": "exclusive"})
    assert experiment.run("-q") == 0
    sources = {
        "test": ["sie hat ein haus", "er hat das buch"],
        "dev": ["das ein haus", "er hat ein haus gelesen"],
    }
    for name, expected in sources.items():
        report = make_report(experiment.out, examples=2, set_name=name)
        sentences = sorted(report.examples.sentences, key=lambda one: one.number)
        assert [one.source for one in sentences] == expected
        outputs = (experiment.out / f"{name}.output").read_text().splitlines()
        found = [one.outputs[0].derivation for one in sentences]
        assert [one.text for one in found if one is not None] == outputs
        if name == "test":
            assert ["flat" in outputs[0], "tome" in outputs[1]] == [True, True]
        check_page_of(report)
        output = str(experiment.out / f"{name}.output")
        command = ["oracle", "-q", "-c", str(experiment.out / "model.yaml"), "--text"]
        command += [str(experiment.folder / f"{name}.de"), "-r", output, "--sizes", "1", "--format", "json"]
        capfd.readouterr()
        assert main(command) == 0
        (row,) = json.loads(capfd.readouterr().out)
        assert row["bleu"]["1"] == pytest.approx(100)


def test_malformed_lines_count_as_empty(tmp_path: Path) -> None:
    """As ``hiero decode`` reads them; the other sentences have their derivations."""
    experiment = Experiment(tmp_path / "exp")
    experiment.add_line()
    (experiment.folder / "test.de").write_text("<seg sie hat\ner hat das buch\n")
    assert experiment.run("-q") == 0
    report = make_report(experiment.out, examples=2, set_name="test")
    assert report.systems[0].problems == []
    first, second = sorted(report.examples.sentences, key=lambda one: one.number)
    assert (first.source, first.outputs[0].text) == ("<seg sie hat", "")
    assert first.outputs[0].derivation is None
    assert second.outputs[0].derivation is not None
    assert second.outputs[0].derivation.text == second.outputs[0].text == "he has the book"
    check_page_of(report)


def test_systems_that_read_other_sources(made: Experiment, tmp_path: Path) -> None:
    """Such as the parts of compounds: the references are the same."""
    plain = Experiment(tmp_path / "plain")
    data = {n: {k: _absolute(made, v) for k, v in d.items()} for n, d in plain.config["data"].items()}
    (plain.folder / "parts.de").write_text("sie hat ein haus\nja er hat das dicke buch mit viel text\n")
    data["test"]["source"] = "parts.de"
    plain.set(data=data)
    assert plain.run("-q") == 0
    report = make_report(made.out, [plain.out], examples=9, set_name="test")
    (example,) = report.examples.sentences
    assert example.source == "er hat das buch"
    for output, source in zip(
        example.outputs, ("er hat das buch", "ja er hat das dicke buch mit viel text"), strict=True
    ):
        assert output.derivation is not None
        assert " ".join(output.derivation.source) == source
        assert max(i for i, _ in output.derivation.links) < len(source.split())
    assert "dicke–dicke" in check_page_of(report)


def _absolute(made: Experiment, paths: str | list[str]) -> str | list[str]:
    """Paths in the folder of an experiment."""
    return str(made.folder / paths) if isinstance(paths, str) else [str(made.folder / one) for one in paths]


def test_json(made: Experiment, tmp_path: Path, capfd: Capture) -> None:
    capfd.readouterr()
    assert main(["report", str(made.out), "--format", "json", "-o", "-", "-q", "--set", "dev"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["systems"][0]["complete"] is True
    assert found["examples"]["set"] == "dev"
    assert [one["name"] for one in found["scores"]] == ["dev", "test"]
    assert len(found["curves"][0]["weight"]) == len(found["curves"][0]["begin"])


def test_without_a_model(made: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hiero.reporting.examples.make_model", lambda *_: pytest.fail("a model was loaded"))
    report = make_report(made.out, examples=0, sample=0)
    assert not report.examples.sentences
    assert not report.features.by_share
    assert report.features.by_weight
    check_page_of(report)


def check_page_of(report: Report) -> str:
    from hiero.reporting.page import page

    return text_of(check_page(page(report)))


# ---- partial runs


def test_an_interrupted_run(tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = Experiment(tmp_path / "exp")
    with monkeypatch.context() as patch:

        def fail(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        patch.setattr("hiero.pipeline.translate_stages.Job.run", fail)
        assert main(experiment.command("-q")) == 130
    report = make_report(experiment.out)
    assert states(report) == {
        **dict.fromkeys(["align", "lm:LanguageModel", "index"], DONE),
        "decode:dev": STOPPED,
        **dict.fromkeys(["decode:test", "eval:dev", "eval:test"], NOT_DONE),
    }
    told = ["the stage decode:dev stopped: interrupted", "not done: decode:test, eval:dev, eval:test"]
    assert report.systems[0].problems[:2] == told
    assert not report.systems[0].complete
    text = check_page_of(report)
    assert all(line in text for line in told)
    assert "No sentences are shown: no set has been translated and scored" in text
    # Stages without an end, while another process has the lock.
    log = experiment.out / "log.jsonl"
    log.write_text("".join(line for line in log.read_text().splitlines(True) if '"stop"' not in line))
    assert "it was killed" in make_report(experiment.out).systems[0].stages[3].reason
    file = lock_file(experiment.out / "lock")
    assert states(make_report(experiment.out))["decode:dev"] == RUNNING
    os.close(file)
    # The next run ends it.
    assert experiment.run("-q") == 0
    assert make_report(experiment.out).systems[0].problems == []


def test_a_stage_that_fails_is_logged(tmp_path: Path, capfd: Capture) -> None:
    experiment = Experiment(tmp_path / "exp")
    (experiment.folder / "train.en").write_text("the\n")
    message = experiment.error(capfd)
    (stage, *_) = make_report(experiment.out).systems[0].stages
    assert (stage.state, stage.reason) == (STOPPED, message)
    assert message in check_page_of(make_report(experiment.out))


def test_changed_files_are_left_out(copy: Path) -> None:
    (copy / "test.output").write_text("no longer\nthe same\n")
    (copy / "weights.gz").unlink()
    (copy / "dev.eval.json").write_text("{}")
    report = make_report(copy)
    problems = "\n".join(report.systems[0].problems)
    assert f"{copy}/test.output has changed since the run, and is left out" in problems
    assert f"{copy}/weights.gz is missing" in problems
    assert f"{copy / 'dev.eval.json'} has changed" in problems
    assert "the model cannot be loaded or used" in problems
    assert report.examples.set == "dev"
    assert not report.features.by_weight
    assert not report.curves
    assert [one.name for one in report.scores] == ["test"]
    check_page_of(report)


def test_files_that_the_run_has_not_read_are_never_shown(copy: Path, tmp_path: Path) -> None:
    """A manifest from a stranger names a file of ours."""
    secret = tmp_path / "secret"
    secret.write_text("the password\nis xyzzy\n")
    text = (copy / "manifest.json").read_text()
    content = json.loads(text)
    for stage in content["stages"].values():
        for key, one in stage["inputs"].items():
            if key.startswith(("data: test", "data: train")):
                one["path"] = str(secret)
    (copy / "manifest.json").write_text(json.dumps(content))
    report = make_report(copy)
    assert "xyzzy" not in check_page_of(report)
    assert report.alignments == []
    assert f"{secret} has changed since the run, and is left out" in report.systems[0].problems


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"stages": {"align": 3}}, "found damage (Expected `object`, got `int` - at `$[...]`), expected"),
        ({"stages": 3}, "found damage, expected a manifest"),
        ({"stages": {"align": {"inputs": {}, "outputs": {}, "wall_seconds": 1e999}}}, "out of range"),
        ({"version": 99}, "found version 99, expected 1"),
    ],
)
def test_damaged_manifests(copy: Path, changes: dict[str, Any], expected: str, capfd: Capture) -> None:
    damage(copy / "manifest.json", **changes)
    capfd.readouterr()
    assert main(["report", str(copy)]) == 1
    error = capfd.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith(f"{copy}/manifest.json: found ")
    assert expected in error


def test_damage_elsewhere_is_a_problem(copy: Path) -> None:
    (copy / "config.yaml").write_text("unknown: 3\n")
    (copy / "model.yaml").write_text("grammar: {\n")
    (copy / "log.jsonl").write_text(
        '{"event": "start", "stage": "x\\ud800"}\nnot json\n[]\n{"event": 3}\nhalf'
    )
    (copy / "tune" / "log.jsonl").write_text('{"epoch": 1, "choose_bleu": "x", "model_bleu": 1e400}\n{}\n')
    report = make_report(copy)
    problems = "\n".join(report.systems[0].problems)
    for expected in (
        "unknown key 'unknown'",
        "log.jsonl:2: damaged",
        "log.jsonl:3: damaged",
        "model.yaml:2: found",
    ):
        assert expected in problems
    check_page_of(report)


def test_errors(made: Experiment, tmp_path: Path, capfd: Capture) -> None:
    for arguments, expected, code in (
        ([str(tmp_path)], "found other files, or none, expected the directory of hiero run or hiero tune", 1),
        ([str(tmp_path / "none")], "found no such directory, expected", 1),
        ([str(made.out), "--set", "nothing"], "argument --set: there is no set nothing", 2),
        ([str(made.out), "--compare", str(made.out)], "the same directory is given twice", 2),
        ([str(made.out), "--examples", "-1"], "found -1, expected at least 0", 2),
        ([str(made.out), "-o", str(made.out)], "is also the file RUNDIR", 2),
    ):
        capfd.readouterr()
        with contextlib.suppress(SystemExit):  # of the parser
            assert main(["report", *arguments]) == code
        error = capfd.readouterr().err
        assert error.count("\n") == 1
        assert expected in error


# ---- directories of hiero tune


def test_a_directory_of_tuning(tmp_path: Path, capfd: Capture) -> None:
    world = Tuning(tmp_path / "exp")
    world.set(tune={"held_out": "devtest"})
    assert world.run("-q") == 0
    assert main(["report", str(world.out), "-q"]) == 0
    root = check_page((world.out / "report.html").read_text())
    parts = sections(root)
    assert list(parts) == ["Learning", "Features", "Sentences", "Model", "Configuration"]
    assert "3 epochs on dev. The odd lines of devtest chose epoch" in parts["Learning"]
    assert "Right " in parts["Features"]
    assert "No sentences are shown: the directory has no translations." in parts["Sentences"]
    assert "complete · hiero tune" in text_of(root)
    # The report does not disturb another epoch, which it shows afterwards.
    assert world.run("-q", "--resume", "--epochs", "4") == 0
    (tuning,) = make_report(world.out).systems[0].tunings
    assert len(tuning.epochs) == 4
    # An incomplete one.
    log = world.out / "log.jsonl"
    log.write_text("".join(log.read_text().splitlines(True)[:1]))
    assert make_report(world.out).systems[0].problems == ["1 of 4 epochs are done"]
