"""``hiero tune``: output files, messages, errors and resumption."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

import hiero
from hiero.cli.main import parser
from hiero.config.config import resolved
from hiero.core.errors import ConfigError, FormatError, HieroError
from hiero.core.symbols import Symbols
from hiero.features.weights import read_weights
from hiero.jobs.tune import tune
from hiero.learning.candidates import NotFinite
from hiero.learning.config import TuneConfig
from tests.worlds.tune import Tuning

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def world(tmp_path: Path) -> Tuning:
    return Tuning(tmp_path / "exp")


TINY = ["\\data\\", "ngram 1=3", "", "\\1-grams:", "-1\t<unk>", "-1\t<s>", "-1\t</s>", "", "\\end\\"]


def weights_in(path: Path) -> dict[str, float]:
    return dict(read_weights(path, Symbols()).items())


def test_weights_that_translate(world: Tuning, capfd: Capture) -> None:
    assert world.run() == 0
    captured = capfd.readouterr()
    made = sorted(path.name for path in world.out.iterdir())
    assert made == sorted(
        ["config.yaml", "epochs", "lock", "log.jsonl", "tune.json", "weights.gz"]
        + [f"weights.0{epoch}.gz" for epoch in (1, 2, 3)]
    )
    chosen = re.fullmatch(
        r"epoch (\d) of 3: (.*): BLEU 100.00 \(brevity 1.000\) on odd lines of devtest, which chose it; "
        r"BLEU 100.00 \(brevity 1.000\) on even lines\n",
        captured.out,
    )
    assert chosen is not None
    assert chosen[2] == str(world.out / "weights.gz")
    assert world.answer()["weights.gz"] == world.answer()[f"weights.0{chosen[1]}.gz"]
    learnt = weights_in(world.out / "weights.gz")
    assert learnt["Right"] > 0 > learnt["Wrong"]
    model = hiero.load(grammar=world.folder / "grammar", weights=world.out / "weights.gz")
    best = model.translate("f a d e")
    assert best is not None
    assert best.text == "F A D E"
    lines = [line for line in captured.err.splitlines() if not line.startswith("hiero: compiling")]
    assert lines[0].split("  ")[0] == "epoch"
    assert [line.split()[0] for line in lines[1:4]] == ["1", "2", "3"]
    log = [json.loads(line) for line in (world.out / "log.jsonl").read_text().splitlines()]
    assert [record["epoch"] for record in log] == [1, 2, 3]
    assert log[0]["sentences"] == 12
    # The written configuration gives the same run.
    kept = yaml.safe_load((world.out / "config.yaml").read_text())
    assert kept["tune"]["metric"] == "liang"
    assert kept["data"]["dev"]["source"] == str(world.folder / "dev.src")


def test_flags_take_precedence(world: Tuning) -> None:
    world.set(data={"text": world.config["data"]["dev"]})
    more = ["--on", "text", "--epochs", "1", "--no-unique", "--kbest", "7", "--features", "shape"]
    assert world.run("-q", *more, "--held-out", "text") == 1  # the tuning set cannot be held out
    assert world.run("-q", *more) == 0
    kept = yaml.safe_load((world.out / "config.yaml").read_text())
    assert (kept["tune"]["on"], kept["tune"]["unique"], kept["tune"]["kbest"]) == ("text", False, 7)
    assert kept["features"]["templates"] == ["shape"]
    assert kept["seed"] == 7


def test_every_key_has_its_flag() -> None:
    known = vars(parser().parse_args(["tune", "-c", "x", "-o", "y"]))
    assert {f"TuneConfig.{field.name}" for field in dataclasses.fields(TuneConfig)} <= set(known)


def test_nothing_held_out(world: Tuning, capfd: Capture) -> None:
    world.set(tune={"held_out": None, "epochs": 2})
    assert world.run() == 0
    captured = capfd.readouterr()
    assert captured.out.endswith("weights.gz (the last: nothing is held out)\n")
    assert "nothing is held out: the result is the last epoch" in captured.err
    # An empty value is also kept when the configuration is read again.
    kept = yaml.safe_load((world.out / "config.yaml").read_text())
    assert kept["tune"]["held_out"] is None


def test_from_python(world: Tuning) -> None:
    tuned = tune(world.path, world.out, epochs=2, rate=0.2)
    assert tuned.weights == world.out / "weights.gz"
    assert len(tuned.log) == 2
    assert tuned.chosen["report_bleu"] == 100
    content = yaml.safe_load((world.out / "config.yaml").read_text())
    again = tune(content, world.folder / "again")
    assert again.weights.read_bytes() == tuned.weights.read_bytes()
    with pytest.raises(ConfigError, match=r"tune: rate: kbmira does not use it \(sgd, .* do\)"):
        tune(world.path, world.folder / "third", algorithm="kbmira", rate=0.2)
    with pytest.raises(ConfigError, match=r"tune: unknown key 'rates'; did you mean 'rate'\?"):
        tune(world.path, world.folder / "third", rates=0.2)


def test_paths_of_grammars_are_relative_to_the_text(world: Tuning, capfd: Capture) -> None:
    """Grammars named in a text are relative to the text, not to the current directory."""
    for name, place in (("dev", "one"), ("devtest", "two")):
        folder = world.folder / place
        folder.mkdir()
        (folder / "g").write_bytes((world.folder / "grammar").read_bytes())
        tagged = [f'<seg grammar="g"> {line} </seg>' for line in world.lines(f"{name}.src")]
        world.file(f"{place}/{name}.src", tagged)
        world.config["data"][name]["source"] = f"{place}/{name}.src"
    world.file("lm", TINY)
    world.set(grammar=None, lm=[{"path": "lm"}])
    assert world.run("-q") == 0
    assert "BLEU 100.00 (brevity 1.000) on even lines" in capfd.readouterr().out
    (world.folder / "two" / "g").write_bytes(b"[X] ||| a ||| A ||| Right=1\n")
    assert "grammars of data: devtest: has changed since" in world.error(capfd, "--resume")


def test_on_as_a_key(world: Tuning) -> None:
    """YAML 1.1 reads the key ``on`` as True."""
    text = world.path.read_text().replace("tune:\n", "tune:\n  on: dev\n")
    assert "  on: dev" in text
    world.path.write_text(text)
    assert world.run("-q") == 0
    world.path.write_text(text.replace("on: dev", "on: dve"))
    with pytest.raises(ConfigError, match="did you mean 'dev'"):
        tune(world.path, world.folder / "other")


def test_the_example_has_all_keys() -> None:
    path = Path(__file__).parents[2] / "configs" / "tune.yaml"
    config = hiero.config.config.read_config(path)
    assert config.tune is not None
    lines = path.read_text().partition("\ntune:\n")[2]
    named = re.findall(r"^  (?:# )?(\w+):", lines, re.MULTILINE)
    assert sorted(named) == sorted(field.name for field in dataclasses.fields(TuneConfig))
    # All values are the defaults, except for the rate.
    preset = TuneConfig(rate=1e-3).with_presets()
    left_out = {"c": None, "oracle": None, "prediction": None, "restarts": None, "peer": None}
    assert dataclasses.replace(config.tune, **left_out) == dataclasses.replace(preset, **left_out)


# ---- resuming


def test_existing_output_is_not_overwritten(world: Tuning, capfd: Capture) -> None:
    assert world.run("-q", "--epochs", "2") == 0
    said = capfd.readouterr().out
    message = world.error(capfd, "--epochs", "2")
    assert message.endswith(
        "found a run of hiero tune, 2 epochs done, expected a new directory (--resume continues it)"
    )
    before = world.answer()
    assert world.run("-q", "--epochs", "2", "--resume") == 0
    assert capfd.readouterr().out == said
    assert world.answer() == before
    assert "--resume" in (world.error(capfd, "--epochs", "2"))


def test_additional_epochs_equal_one_longer_run(world: Tuning, capfd: Capture) -> None:
    assert world.run("-q", "--epochs", "1") == 0
    assert world.run("-q", "--resume") == 0
    found, world.out = world.answer(), world.folder / "other"
    assert world.run("-q") == 0
    assert world.answer() == found
    assert world.error(capfd, "--resume", "--epochs", "2").endswith(
        "tune: epochs: found 2, expected at least 3, as are done"
    )


def test_another_run_is_not_resumed(world: Tuning, capfd: Capture) -> None:
    assert world.run("-q") == 0
    assert world.error(capfd, "--resume", "--rate", "0.5") == (
        f"{world.out}: tune: rate: found 0.5, expected 0.1, as in the run there (-o names another directory)"
    )
    assert "features: templates: found" in world.error(capfd, "--resume", "--features", "shape")
    world.set(search={"pop_limit": 30})
    assert "search: pop_limit: found 30, expected 200" in world.error(capfd, "--resume")
    world.set(search=None)
    text = world.lines("dev.ref")
    world.file("dev.ref", [text[1], *text[1:]])
    assert "data: dev: references: entry 1: has changed since" in world.error(capfd, "--resume")
    world.file("dev.ref", text)
    assert world.run("-q", "--resume") == 0
    (world.out / "tune.json").write_text("{")
    assert "tune.json: found damage" in world.error(capfd, "--resume")


def test_directories_with_other_files_are_refused(world: Tuning, capfd: Capture) -> None:
    world.out.mkdir()
    (world.out / "thesis.tex").touch()
    for more in ([], ["--resume"]):
        assert "found other files, expected a new directory, or one with tune.json" in world.error(
            capfd, *more
        )
    world.out = world.folder / "grammar"
    assert world.error(capfd).endswith("grammar: found a file, expected a directory")


def test_two_runs_in_one_directory(world: Tuning, capfd: Capture) -> None:
    world.out.mkdir()
    with open(world.out / "lock", "a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert world.error(capfd) == f"{world.out}: another hiero tune is using this directory"
    assert world.run("-q") == 0


class Killed(BaseException):
    """Simulates SIGKILL: it is never caught."""


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # a simulated kill leaves files open
@pytest.mark.parametrize("algorithm", ["itermixsgd", "mira", "adagrad", "kbmira"])
def test_interrupted_anywhere(world: Tuning, monkeypatch: pytest.MonkeyPatch, algorithm: str) -> None:
    """Simulated kills before each rename of a file."""
    more = ["-q", "--algorithm", algorithm, "--shards", "2", "--epochs", "2"]
    assert world.run(*more) == 0
    whole, replace = world.answer(), os.replace
    moment, finished = 0, False
    while not finished:
        world.out = world.folder / f"killed{moment}"
        left = moment

        def counted(source: Any, target: Any) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            replace(source, target)

        with monkeypatch.context() as patch, contextlib.suppress(Killed):
            patch.setattr("os.replace", counted)
            finished = world.run(*more) == 0
        assert world.run(*more, "--resume") == 0
        assert world.answer() == whole, moment
        moment += 3
    assert moment > 15


# ---- subprocesses


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(Path(hiero.__file__).parents[1])}


def started(world: Tuning, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "hiero.cli.main", *world.command(*more)]
    # Tests run in the background (nohup) ignore Ctrl-C, and children inherit this.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    finally:
        signal.signal(signal.SIGINT, before)


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 120
    while not path.exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    assert path.exists()


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_ctrl_c(world: Tuning, executor: str) -> None:
    lines = world.lines("dev.src") * 20
    world.file("dev.src", lines)
    world.file("dev.ref", [line.upper() for line in lines])
    more = ("--algorithm", "itermixsgd", "--shards", "3", "-j", "2", "--executor", executor, "--epochs")
    process = started(world, *more, "1000")
    wait_for(world.out / "weights.02.gz", process)
    process.send_signal(signal.SIGINT)
    begun = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - begun < 10
    assert process.returncode == 130
    assert out == ""
    assert err.splitlines()[-1] == "hiero: interrupted; --resume continues the run"
    assert "Traceback" not in err
    done = len((world.out / "log.jsonl").read_text().splitlines())
    assert not list(world.out.rglob("*.part"))
    assert world.run("-q", *more, str(done + 2), "--resume") == 0
    found, world.out = world.answer(), world.folder / "whole"
    assert world.run("-q", *more, str(done + 2)) == 0
    assert world.answer() == found


FULL = """
import os, resource, signal, sys
from hiero.cli.main import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="no limit on the size of files here")
@pytest.mark.parametrize("room", [1000, 2500])
def test_full_disk(world: Tuning, room: int) -> None:
    """With space for almost nothing, and with space for the first files but not for weights."""
    command = [sys.executable, "-c", FULL, str(room), *world.command("-q")]
    # Without compilation, whose cache would need space as well.
    env = environment() | {"PYTHONDONTWRITEBYTECODE": "1", "NUMBA_DISABLE_JIT": "1"}
    process = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert process.returncode == 1
    assert process.stderr.count("\n") == 1, process.stderr
    assert "found file too large, expected room to write" in process.stderr
    assert not [path for path in world.out.rglob("*") if path.name.endswith(".part")]
    assert world.run("-q", "--resume") == 0


# ---- errors


def lacks(**sections: Any) -> Any:
    return lambda world: world.set(**sections)


def cut(name: str, lines: int) -> Any:
    return lambda world: world.file(name, world.lines(name)[:lines])


def gone(name: str) -> Any:
    return lambda world: (world.folder / name).unlink()


def text(name: str, lines: list[str]) -> Any:
    return lambda world: world.file(name, lines)


DEV = {"source": "dev.src", "references": "dev.ref"}


@pytest.mark.parametrize(
    ("change", "more", "message"),
    [
        (None, ["--on", "dve"], "tune: on: unknown set 'dve'; did you mean 'dev'?"),
        (None, ["--held-out", "dev"], "held_out: found dev, the set to learn from, expected another set"),
        (None, ["--held-out", "tst"], "tune: held_out: unknown set 'tst'; did you mean 'devtest'?"),
        (None, ["--start", "unifrom"], "/unifrom, expected zero, uniform or a file of weights"),
        (text("devtest.ref", [""] * 5), [], "devtest.ref: found 5 lines, expected 6, as in "),
        (None, ["--executor", "slurm"], "executor: found 'slurm', expected threads, processes or dask://HOST:PORT"),
        (None, ["--leave-one-out"], "leave_one_out: needs a grammar that is an index"),
        (None, ["--metric", "blue"], "blue"),
        (None, ["--algorithm", "pro", "--metric", "blue"], "tune: unknown sentence BLEU 'blue'; one of"),
        (None, ["--algorithm", "pro", "--pairs", "all"], "tune: pro works with pairs: pro, not with"),
        (cut("dev.ref", 11), [], "dev.ref: found 11 lines, expected 12, as in "),
        (cut("devtest.ref", 5), [], "devtest.ref: found 5 lines, expected 6, as in "),
        (gone("dev.ref"), [], "dev.ref: found no such file, expected that of data: dev"),
        (gone("grammar"), [], "grammar: found no such file, expected that of grammar: "),
        (text("dev.ref", [""] * 12), [], "found 12 sentences, none with words and a reference"),
        (text("dev.src", ["x"] * 12), ["--kbest", "1"], ""),
        (lacks(data={"dev": {"source": "dev.src"}}), [], "tune: on: found dev, which has no references"),
        (lacks(data={"dev": DEV}), ["--held-out", "x"], "unknown set 'x'; there is no other in data"),
        (lacks(tune={"epohcs": 3}), [], "unknown key 'epohcs'; did you mean 'epochs'?"),
        (lacks(search={"max_edges": 1, "pop_limit": 0}), [], ""),
    ],
)  # fmt: skip
def test_invalid_configurations(
    world: Tuning, capfd: Capture, change: Any, more: list[str], message: str
) -> None:
    if change is not None:
        change(world)
    if message:
        assert message in world.error(capfd, *more)
        assert not (world.out / "epochs").exists()
    else:
        assert world.run("-q", *more) in (0, 1)
        assert capfd.readouterr().err.count("\n") <= 1


def test_invalid_start_weights(world: Tuning, capfd: Capture) -> None:
    given = world.file("given", ["Right 1", "Wrong nan"])
    expected = f"{given}:2: found the weight 'nan', expected a finite number"
    assert world.error(capfd, "--start", str(given)) == expected
    world.file("given", ["Right 1", "Wrong 0"])
    assert world.run("-q", "--start", str(given), "--resume") == 1  # not the start weights of the first run
    world.out = world.folder / "other"
    assert world.run("-q", "--start", str(given)) == 0


def test_start_weights_that_do_not_fit(world: Tuning, capfd: Capture) -> None:
    given = world.file("given", ["Right 1", "Wrnog -1", "Length 0"])
    expected = (
        f"{world.path}: tune: start: {given}: the weight Wrnog names no feature of the model "
        "(is 'Wrnog' meant for 'Wrong'?)"
    )
    assert world.error(capfd, "--start", str(given), "--strict") == expected
    world.out = world.folder / "key"
    world.set(strict=True)
    assert world.error(capfd, "--start", str(given)) == expected
    world.set(strict=None)
    world.out = world.folder / "other"
    assert world.run("--start", str(given)) == 0
    assert capfd.readouterr().err.count(f"hiero: {expected}\n") == 1
    world.out = world.folder / "fitting"
    world.file("given", ["Right 1", "Wrong -1", "Length 0"])
    assert world.run("--start", str(given), "--strict") == 0
    assert "no weight" not in capfd.readouterr().err


def test_start_weights_and_grammars_of_sentences(world: Tuning, capfd: Capture) -> None:
    """Grammars of sentences are read in advance as long as they may explain a weight."""
    rules = world.lines("grammar")
    lines = [f'<seg grammar="{"rest" if n else "first"}"> {x} </seg>' for n, x in enumerate("abab")]
    world.file("dev.src", lines)
    world.file("dev.ref", list("ABAB"))
    world.file("first", [rule.replace("Length=1", "") for rule in rules])
    world.file("rest", rules)
    world.file("lm", TINY)
    world.set(grammar=None, lm=[{"path": "lm"}], tune={"held_out": None, "epochs": 1})
    given = world.file("given", ["Right 1", "Wrong -1", "Length 1", "Lenght 1", "LanguageModel 1"])
    assert world.error(capfd, "--start", str(given), "--strict") == (
        f"{world.path}: tune: start: {given}: the weight Lenght names no feature of the model "
        "(is 'Lenght' meant for 'Length'?)"
    )
    world.out = world.folder / "fitting"
    world.file("given", ["Right 1", "Wrong -1", "Length 1", "LanguageModel 1"])
    assert world.run("-q", "--start", str(given), "--strict") == 0


def test_usage(world: Tuning, capfd: Capture) -> None:
    for more, message in (
        (["--stale"], "stale works with adagrad, not with sgd"),
        (["--rate", "-1"], "argument --rate: found -1.0, expected more than 0"),
        (["--rate", "nan"], "argument --rate: found nan, expected more than 0"),
        (["--kbest", "0"], "argument --kbest: found 0, expected at least 1"),
        (["--peer", "moses"], "peer works with pro, not with sgd"),
        (["--algorithm", "kbmira", "--rate", "0.1"], "argument --rate: kbmira does not use it (sgd, "),
        (["--algorithm", "mert", "--mix", "end"], "argument --mix: mert does not use it"),
        (["--passes", "3"], "argument --passes: sgd does not use it (kbmira does)"),
    ):
        assert message in world.error(capfd, *more, code=2)
    with pytest.raises(SystemExit) as stopped:
        world.run("--algorithm", "mirra")
    assert stopped.value.code == 2
    assert "invalid choice: 'mirra'" in capfd.readouterr().err


def test_sentences_that_cannot_be_learnt_from_are_counted(world: Tuning, capfd: Capture) -> None:
    source, reference = world.lines("dev.src"), world.lines("dev.ref")
    world.file("dev.src", ["", *source[1:]])
    world.file("dev.ref", [reference[0], "", "", *reference[3:11], "Q"])
    world.set(search={"pass_through": "none"})
    world.file("dev.src", ["", *source[1:10], "z", source[11]])
    assert world.run("--epochs", "2") == 0
    said = capfd.readouterr().err
    assert said.count("1 has no words, 2 have no reference, 1 has no derivation: not learnt from") == 1
    assert said.count("all translations have the same score by the metric") == 1


def test_references_outside_of_tags_are_told(world: Tuning, capfd: Capture) -> None:
    source = world.lines("dev.src")
    world.file("dev.src", [source[0], *(f"{line} ||| {line.upper()}" for line in source[1:])])
    assert world.run() == 0
    told = [line for line in capfd.readouterr().err.splitlines() if "|||" in line]
    assert len(told) == 1
    assert told[0].startswith(f"hiero: {world.folder / 'dev.src'}:2: the words from ||| on are translated")


def test_no_derivation_at_all(world: Tuning, capfd: Capture) -> None:
    world.set(search={"pass_through": "none"})
    world.file("dev.src", ["z"] * 12)
    message = world.error(capfd)
    assert message.startswith("found no derivation of any of 12 sentences, expected some")
    assert world.error(capfd, "--resume") == message


def test_a_feature_that_never_fires(world: Tuning, capfd: Capture) -> None:
    rules = [f"{rule} Never=0" for rule in world.lines("grammar")]
    world.file("grammar", rules)
    assert world.run("--epochs", "1") == 0
    assert "no translation has the feature Never; no weight is learnt" in capfd.readouterr().err


def test_weights_that_are_not_numbers(world: Tuning, capfd: Capture) -> None:
    for executor in ("threads", "processes"):
        world.out = world.folder / executor
        message = world.error(capfd, "--rate", "1e308", "--executor", executor)
        assert message.startswith("feature '")
        assert "expected a finite number (the weights diverge: try a lower rate)" in message
        if os.environ.get("NUMBA_DISABLE_JIT"):
            break  # a process that begins with interpreted kernels takes its time


@pytest.mark.parametrize(
    "error",
    [
        FormatError("x", 3, found="a", expected="b", hint="c"),
        NotFinite(3, float("inf"), "its weight", "hint", "name"),
        HieroError("plain"),
    ],
)
def test_errors_in_other_processes(error: HieroError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.__dict__ == error.__dict__


def test_a_full_configuration_round_trips(world: Tuning) -> None:
    config = hiero.config.config.read_config(world.path)
    for section in (TuneConfig(held_out=None), TuneConfig(), TuneConfig(algorithm="mira").with_presets()):
        whole = dataclasses.replace(config, tune=section)
        assert hiero.config.config.config_of(resolved(whole)).tune == section


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"grammar": [{"index": "train"}]}, "found index: train, expected its path (for files made by"),
        ({"lm": [{"estimate": "dev.ref"}]}, "lm: entry 1: path is missing (for files made by"),
        ({"prep": {"tokenize": False, "normalize_punctuation": False}}, "prep: hiero tune does not"),
    ],
)
def test_the_function_takes_models_that_exist(world: Tuning, sections: dict[str, Any], message: str) -> None:
    """The command makes them, as ``hiero run`` does."""
    world.set(**sections)
    with pytest.raises(ConfigError, match=re.escape(message)):
        tune(world.path, world.out)


def test_prepared_text(world: Tuning, monkeypatch: pytest.MonkeyPatch, capfd: Capture) -> None:
    monkeypatch.chdir(world.folder)
    world.set(prep={"tokenize": False, "normalize_punctuation": False})
    assert world.run() == 0
    kept = yaml.safe_load((world.out / "config.yaml").read_text())
    assert Path(kept["data"]["dev"]["source"]).parent == world.folder / "exp.run" / "prep"
