"""``hiero reorder`` and runs with orientation models: options, results and error messages."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.mutants import reseal
from hiero.cli.main import main
from hiero.config.config import write_settings
from hiero.core.errors import FormatError, HieroError
from hiero.reordering.evaluate import evaluate
from hiero.reordering.examples import Rows, open_examples
from hiero.reordering.feature import check_language
from hiero.reordering.model import Classifier, Lexicalised, open_model
from tests.conftest import MODEL
from tests.worlds.reorder import write_bitext


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bitext, examples, held-out examples, and a model of each kind."""
    folder = tmp_path_factory.mktemp("reorder")
    src, tgt, align = write_bitext(folder, 120)
    extract = ["reorder", "extract", "-s", str(src), "-t", str(tgt), "-a", str(align), "-q"]
    extract += ["--min-count", "2", "--held-out", str(folder / "held"), "--held-out-every", "4"]
    assert main([*extract, "-o", str(folder / "ex")]) == 0
    assert main([*extract[:-4], "--window", "2", "-o", str(folder / "wide")]) == 0
    for learner in ("dual", "primal", "lexicalised"):
        train = [
            "reorder",
            "train",
            str(folder / "ex"),
            "-o",
            str(folder / learner),
            "--learner",
            learner,
            "-q",
        ]
        passes = [] if learner == "lexicalised" else ["--passes", "15"]
        assert main([*train, *passes]) == 0
    return folder


def test_a_model_is_the_same_for_the_same_seed(made: Path, tmp_path: Path) -> None:
    for name, seed in (("again", "1"), ("other", "2")):
        command = ["reorder", "train", str(made / "ex"), "-o", str(tmp_path / name), "--passes", "15", "-q"]
        assert main([*command, "--seed", seed, "--history", str(tmp_path / "history.json")]) == 0
    first, again, other = (
        {file.name: file.read_bytes() for file in folder.iterdir()}
        for folder in (made / "dual", tmp_path / "again", tmp_path / "other")
    )
    assert first == again
    assert first["weight.npy"] != other["weight.npy"]
    passes = json.loads((tmp_path / "history.json").read_text())
    assert [one["number"] for one in passes] == list(range(len(passes)))
    assert {"cpu", "active", "objective"} <= set(passes[-1])


def test_eval(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["reorder", "eval", str(made / "dual"), str(made / "held")]
    command += ["--against", str(made / "lexicalised"), "--against", str(made / "primal")]
    assert main([*command, "--top", "3"]) == 0
    text = capsys.readouterr().out
    assert "majority class" in text
    assert "for swap" in text
    assert main([*command, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    by_name = {Path(one["name"]).name: one for one in found["systems"]}
    models = {"dual", "lexicalised", "primal"}
    assert set(by_name) == {*models, *(f"{name}, as gaps" for name in models), "majority class"}
    held = open_examples(made / "held")
    for one in by_name.values():
        assert one["examples"] == held.rows.size
        assert [sum(row) for row in one["confusion"]] == held.classes.tolist()
        wrong = sum(map(sum, one["confusion"])) - sum(one["confusion"][k][k] for k in range(3))
        assert one["error"] == pytest.approx(wrong / held.rows.size)
        assert sum(bin_["examples"] for bin_ in one["calibration"]) == held.rows.size
    majority = by_name["majority class"]["error"]
    assert by_name["dual"]["error"] < 0.6 * majority
    assert by_name["lexicalised"]["error"] < majority
    assert by_name["dual"]["bits"] < by_name["majority class"]["bits"]
    for name in models:
        assert by_name[f"{name}, as gaps"]["bits"] < by_name["majority class"]["bits"]
    assert all(len(features) == 10 for features in found["top"].values())


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (
            ["eval", "dual", "wide"],
            1,
            "wide: found examples with window 2, expected the same as in dual",
        ),
        (
            ["train", "ex", "-o", "out", "--held-out", "wide"],
            1,
            "wide: found examples with window 2, expected",
        ),
        (
            ["eval", "nothing", "held"],
            1,
            "nothing: found no such directory, expected an orientation model of",
        ),
        (
            ["eval", "ex", "held"],
            1,
            "ex: found something else, expected an orientation model of hiero reorder",
        ),
        (
            ["eval", "src", "held"],
            1,
            "src: found a file, expected an orientation model of hiero reorder train",
        ),
        (
            ["train", "dual", "-o", "out"],
            1,
            "dual/meta.json: found something else, expected a hiero orientation",
        ),
        (
            ["train", "ex", "-o", "held"],
            1,
            "held: already exists and contains no hiero orientation class",
        ),
        (
            ["train", "ex", "-o", "out", "--variance", "0"],
            2,
            "argument --variance: found 0.0, expected 1e-09 to",
        ),
        (
            ["train", "ex", "-o", "out", "--smoothing", "1"],
            2,
            "argument --smoothing: requires --learner lexicali",
        ),
        (
            ["train", "ex", "-o", "o", "--learner", "primal", "--shrink", "1"],
            2,
            "--shrink: requires --learner dual",
        ),
        (
            ["train", "ex", "-o", "out", "--learner", "lexicalised", "--passes", "3"],
            2,
            "argument --passes: requires --learner dual or primal",
        ),
        (
            ["train", "ex", "-o", "out", "--learner", "lexicalised", "--held-out", "held"],
            2,
            "argument --held-out: not allowed with --learner lexicalised",
        ),
        (
            ["extract", "-s", "src", "-t", "tgt", "-a", "align", "-o", "out", "--held-out-every", "4"],
            2,
            "argument --held-out-every: requires --held-out",
        ),
        (["extract", "-s", "src", "-t", "tgt", "-a", "src", "-o", "out"], 1, "src:1: found '"),
        (
            ["extract", "-s", "src", "-t", "tgt", "-a", "align", "-o", "o", "--window", "-1"],
            2,
            "--window: found -1",
        ),
    ],
)
def test_errors_are_one_line(
    made: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    line: str,
) -> None:
    monkeypatch.chdir(made)
    assert main(["reorder", *arguments]) == code
    error = capsys.readouterr().err
    assert line in error
    assert error.count("\n") == 1
    assert not (made / "out").exists()


def test_an_alignment_that_does_not_fit(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(made)
    (made / "wrong.align").write_text("0-0\n" * 119 + "0-17\n")
    command = ["reorder", "extract", "-s", "src", "-t", "tgt", "-a", "wrong.align", "-o", "out"]
    assert main(command) == 1
    assert "wrong.align:120: found link 0-17, expected positions in" in capsys.readouterr().err


def test_a_model_of_another_language(made: Path) -> None:
    model = open_model(made / "dual")
    assert isinstance(model, Classifier)
    frequent = [f"wort{n}" for n in range(40)]
    model = replace(model, frequent={"source": frequent, "target": []})
    words = {f"word{n}".encode() for n in range(500)}
    with pytest.raises(
        HieroError, match=r"dual: found an orientation model of another source language \(wort0, "
    ):
        check_language(model, "source", words)
    check_language(model, "source", words | {word.encode() for word in frequent[:8]})
    check_language(model, "source", set(list(words)[:100]))  # too small to tell
    check_language(model, "target", words)


def test_eval_without_examples(made: Path) -> None:
    held = open_examples(made / "held")
    nothing = Rows(*(array[: k == 0] for k, array in enumerate(held.rows)))
    with pytest.raises(HieroError, match="held: there are no examples to evaluate"):
        evaluate(open_model(made / "dual"), replace(held, rows=nothing))


@pytest.mark.parametrize(
    ("learner", "change", "line"),
    [
        ("dual", {"frequent": {}}, "found no frequent words of the source side, expected a hiero orient"),
        ("dual", {"frequent": {"source": ["a"], "target": 3}}, "found no frequent words of the target side"),
        ("dual", {"classes": [1, 2]}, "found classes '[1, 2]', expected the number of examples of each of 3"),
        ("dual", {"classes": [1, "x", 2]}, "found classes \"[1, 'x', 2]\", expected the number"),
        ("dual", {"settings": {"orientation": "words"}}, "found invalid settings, expected"),
        ("lexicalised", {"learning": {}}, "found invalid settings, expected a hiero lexicalised"),
        ("dual", {"version": 2}, "found version 2, expected version 3 (train it again with hiero reorder"),
        ("lexicalised", {"version": 0}, "found version 0, expected version 3 (train it again with"),
    ],
)
def test_a_damaged_model(
    made: Path, tmp_path: Path, learner: str, change: dict[str, object], line: str
) -> None:
    shutil.copytree(made / learner, tmp_path / "model")
    meta = tmp_path / "model" / "meta.json"
    reseal(tmp_path / "model", **change)
    with pytest.raises(FormatError) as caught:
        open_model(tmp_path / "model")
    assert str(caught.value).startswith(f"{meta}: {line}")


@pytest.mark.parametrize(("learner", "file"), [("dual", "weight.npy"), ("lexicalised", "pair_count.npy")])
def test_a_model_with_a_missing_or_truncated_file(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, learner: str, file: str
) -> None:
    shutil.copytree(made / learner, tmp_path / "model")
    broken = tmp_path / "model" / file
    for small in (1 << 16, 0):  # read as a whole, and mapped
        monkeypatch.setattr("hiero.core.directories.SMALL_BYTES", small)
        broken.write_bytes((made / learner / file).read_bytes()[:-4])
        with pytest.raises(FormatError, match=rf"{file}: found damage .*\(train it again with hiero reorder"):
            open_model(tmp_path / "model")
    broken.unlink()
    with pytest.raises(FormatError, match=rf"{file}: found no such file, .*\(train it again with hiero"):
        open_model(tmp_path / "model")


@pytest.mark.parametrize(
    ("made_as", "file", "value"),
    [
        ("ex", "feature", 10**6),
        ("ex", "feature", -1),
        ("ex", "label", 3),
        ("ex", "first", 10**9),
        ("ex", "key", -1),
        ("dual", "slot", 10**6),
        ("dual", "key", 2**62),
        ("dual", "weight", np.nan),
        ("dual", "src_slot", 10**6),
        ("lexicalised", "pair_first", 10**6),
        ("lexicalised", "source_first", -1),
        ("lexicalised", "pair_count", -5),
    ],
)
def test_numbers_that_lead_outside_of_arrays(
    made: Path, tmp_path: Path, made_as: str, file: str, value: float
) -> None:
    shutil.copytree(made / made_as, tmp_path / "copy")
    path = tmp_path / "copy" / f"{file}.npy"
    array = np.load(path)
    array.reshape(-1)[1] = value
    np.save(path, array)
    read = open_examples if made_as == "ex" else open_model
    with pytest.raises(FormatError, match="found other content"):
        read(tmp_path / "copy")
    reseal(tmp_path / "copy")
    with pytest.raises(FormatError, match="found arrays that do not fit together"):
        read(tmp_path / "copy")


def test_models_are_mapped(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hiero.core.directories.SMALL_BYTES", 0)
    dual, lexicalised = open_model(made / "dual"), open_model(made / "lexicalised")
    assert isinstance(dual, Classifier)
    assert isinstance(lexicalised, Lexicalised)
    arrays = [dual.key, dual.slot, dual.weight, *lexicalised.pair, *lexicalised.source]
    for array in (*arrays, *open_examples(made / "ex").rows):
        assert not array.flags.writeable
        base: object = array
        while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
            base = base.base
        assert isinstance(base, np.memmap)  # not copied


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_model_of_another_language_does_not_decode(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], side: str
) -> None:
    words = {"source": [f"wort{n}" for n in range(250)], "target": [f"word{n}" for n in range(250)]}
    pairs = zip(words["source"], words["target"], strict=True)
    (tmp_path / "grammar").write_text("".join(f"[X] ||| {s} ||| {t} ||| a=1 ||| 0-0\n" for s, t in pairs))
    (tmp_path / "input").write_text("wort1 wort2\n")
    shutil.copytree(made / "dual", tmp_path / "model")
    files = ["-g", str(tmp_path / "grammar"), "-i", str(tmp_path / "input"), "-o", str(tmp_path / "out")]
    for other, code in ((side, 1), ("", 0)):
        frequent = {s: [f"parola{n}" if s == other else words[s][n] for n in range(40)] for s in words}
        reseal(tmp_path / "model", frequent=frequent)
        assert main(["decode", "-q", *files, "--reordering", str(tmp_path / "model")]) == code
        error = capsys.readouterr().err
        assert (f"model: found an orientation model of another {side} language (parola0, " in error) == code
        assert (tmp_path / "out").exists() == (not code)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["train", "ex", "-o", "lexicalised"],
            "lexicalised: already exists and contains no hiero orient",
        ),
        (["train", "ex", "-o", "dual", "--learner", "lexicalised"], "dual: already exists and contains no"),
        (
            ["extract", "-s", "src", "-t", "tgt", "-a", "align", "-o", "dual"],
            "dual: already exists and contains no",
        ),
        (
            ["extract", "-s", "src", "-t", "tgt", "-a", "align", "-o", "new", "--held-out", "lexicalised"],
            "lexicalised: already exists and contains no hiero orientation examples",
        ),
    ],
)
def test_existing_output_is_refused_before_learning(
    made: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    line: str,
) -> None:
    monkeypatch.chdir(made)
    for name in ("learn.learn_dual", "learn.write_lexicalised", "examples.read_bitext"):
        monkeypatch.setattr(f"hiero.reordering.{name}", None)
    assert main(["reorder", *arguments, "-q"]) == 1
    assert capsys.readouterr().err.startswith(line)


@pytest.mark.parametrize("place", ["examples.phrase_codes_kernel", "learn.dual_kernel"])
def test_interrupts_leave_no_partial_output(
    made: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    place: str,
) -> None:
    for name in ("ex", "held", "dual"):
        shutil.copytree(made / name, tmp_path / name)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"hiero.reordering.{place}", interrupt)
    if place.startswith("learn"):
        command = ["train", str(tmp_path / "ex"), "-o", str(tmp_path / "dual")]
    else:
        command = ["extract", "-s", str(made / "src"), "-t", str(made / "tgt"), "-a", str(made / "align")]
        command += ["-o", str(tmp_path / "ex"), "--held-out", str(tmp_path / "held"), "--min-count", "2"]
    assert main(["reorder", *command, "-q"]) == 130
    assert capsys.readouterr().err.endswith("hiero: interrupted\n")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert not list(tmp_path.glob("*.part"))


def decode(made: Path, *arguments: str, text: str = "dass hund katze sieht .\n") -> list[str]:
    (made / "input").write_text(text)
    output = made / "output"
    grammar = made / "grammar"
    grammar.write_text(
        "[X] ||| dass [X,1] ||| that [1] ||| a=1 ||| 0-0\n"
        "[X] ||| [X,1] [X,2] sieht ||| [1] sees [2] ||| a=1 ||| 2-1\n"
        "[X] ||| [X,1] [X,2] sieht ||| [1] [2] sees ||| a=1 ||| 2-2\n"
        "[X] ||| hund ||| dog ||| a=1 ||| 0-0\n"
        "[X] ||| katze ||| cat ||| a=1 ||| 0-0\n"
    )
    weights = made / "weights"
    weights.write_text("PassThrough -5\nReorderingMonotone 1\nReorderingSwap 1\nReorderingOther 1\n")
    files = ["-i", str(made / "input"), "-o", str(output), "-g", str(grammar), "-w", str(weights), "-q"]
    assert main(["decode", *files, *arguments]) == 0
    return output.read_text().splitlines()


@pytest.mark.parametrize("learner", ["dual", "primal"])
def test_decoding_with_a_model(made: Path, learner: str) -> None:
    assert decode(made, "--reordering", str(made / learner)) == ["that dog sees cat ."]
    lines = decode(made, "--reordering", str(made / learner), "--kbest", "5", "--features", "shape")
    assert "ReorderingSwap=" in lines[0]


def test_two_models_of_a_kind_are_refused(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["decode", "--reordering", str(made / "dual"), "--reordering", str(made / "primal")]
    arguments += ["-c", str(MODEL)] if MODEL else []
    assert main([*arguments, "-i", str(made / "src"), "-o", str(made / "none")]) == 1
    error = f"{made / 'dual'} and {made / 'primal'} are both classifiers; give at most one of each kind"
    assert capsys.readouterr().err.endswith(f"features: reordering: {error}\n")
    # In a run before anything is learnt.
    files = {"source": str(made / "src"), "target": str(made / "tgt"), "alignment": str(made / "align")}
    config = {
        "data": {"train": files},
        "features": {"reordering": str(made / "lexicalised")},
        "reorder": {"learner": "lexicalised"},
    }
    write_settings(tmp_path / "run.yaml", config, "a run")
    assert main(["run", str(tmp_path / "run.yaml"), "-o", str(tmp_path / "out")]) == 1
    assert "lexicalised and the one of reorder are both lexicalised mod" in capsys.readouterr().err
    assert not (tmp_path / "out" / "reordering.examples").exists()


def test_run_learns_a_model_and_decodes_with_it(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train = {"source": str(made / "src"), "target": str(made / "tgt"), "alignment": str(made / "align")}
    (tmp_path / "weights").write_text(
        "PassThrough -9\nGlue -0.1\nEgivenFCoherent -1\nReorderingMonotone 1\nReorderingSwap 1\n"
        "ReorderingOther 1\nLanguageModel 1\n"
    )
    lines = (made / "src").read_text().splitlines()[:5]
    (tmp_path / "dev").write_text("\n".join(lines) + "\n")
    config = {
        "data": {"train": train, "dev": {"source": str(tmp_path / "dev")}},
        "lm": [{"estimate": "train", "order": 2, "discount_fallback": True}],
        "grammar": [{"index": "train"}],
        "reorder": {"passes": 10, "min_count": 2, "held_out_every": 5},
        "weights": {"path": str(tmp_path / "weights")},
    }
    write_settings(tmp_path / "run.yaml", config, "a run")
    command = ["run", str(tmp_path / "run.yaml"), "-o", str(tmp_path / "out")]
    assert main(command) == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    stages = manifest["stages"]
    assert {"reorder:extract", "reorder:train", "reorder:eval"} <= set(stages)
    assert stages["reorder:eval"]["figures"]["error"] < stages["reorder:eval"]["figures"]["majority_error"]
    assert "features: reordering" in stages["decode:dev"]["inputs"]
    out = (tmp_path / "out" / "dev.output").read_text()
    assert "reordering.model" in (tmp_path / "out" / "model.yaml").read_text()
    capsys.readouterr()
    # A second run has nothing to do; single commands give the same.
    assert main(command) == 0
    assert "start" not in [
        json.loads(line)["event"] for line in (tmp_path / "out" / "log.jsonl").read_text().splitlines()[-7:]
    ]
    by_hand = ["decode", "-c", str(tmp_path / "out" / "model.yaml"), "-i", str(tmp_path / "dev"), "-q"]
    assert main([*by_hand, "-o", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again").read_text() == out
    assert main(["decode", "-c", str(tmp_path / "run.yaml"), "-i", str(tmp_path / "dev")]) == 1
