"""Learning from post-edits: weights, rules, and the saved state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hiero
from hiero.adaptation import state as state_module
from hiero.adaptation.config import AdaptConfig
from hiero.cli.main import main
from hiero.core.errors import ConfigError, HieroError
from hiero.core.text import MARK

pytestmark = pytest.mark.heavy

SRC = ["das alte haus", "das alte buch", "ein haus", "das haus", "ein altes buch"]
TGT = ["the old house", "the old book", "a house", "the house", "an old book"]
RULES = [f"[X] ||| haus ||| {word} ||| {name}=1" for word, name in (("house", "A"), ("building", "B"))]
WEIGHTS = {"A": 0.1, "B": 0.099, "PassThrough": -5.0, "Glue": -0.1, "WordPenalty": 0.0}
OF_INDEX = {
    **dict.fromkeys(("SampleCountF", "IsSingletonF", "IsSingletonFE", "WordPenalty"), 0.001),
    **dict.fromkeys(("EgivenFCoherent", "MaxLexFgivenE", "MaxLexEgivenF"), -0.5),
    "CountEF": 0.1,
    "PassThrough": -5.0,
    "Glue": -0.1,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bitext index and its aligner."""
    place: Path = tmp_path_factory.mktemp("adapter")
    aligner = hiero.align(SRC, TGT)
    aligner.save(place / "aligner")
    hiero.index(SRC, TGT, aligner, place / "index")
    (place / "weights").write_text("".join(f"{name} {value}\n" for name, value in OF_INDEX.items()))
    return place


def model_of(folder: Path, **more: Any) -> hiero.Model:
    return hiero.load(grammar=folder / "index", weights=folder / "weights", **more)


def test_pairs_are_used_for_the_next_sentence(folder: Path) -> None:
    model = model_of(folder)
    adapter = hiero.Adapter(model, folder / "aligner", learner="none")
    assert adapter.translate("das neue haus").text == "the neue house"
    assert adapter.adapt("das neue haus", "the new house") == (False, True, "")
    assert adapter.translate("ein neue haus").text == "a new house"
    assert adapter.num_pairs == 1
    assert "1 post-edits" in repr(adapter)
    assert model.translate("ein neue haus").text == "a neue house", "the given model is not changed"
    assert dict(adapter.weights.items()) == dict(model.weights.items())


@pytest.mark.parametrize("learner", ["mira", "sgd"])
def test_weights_move_towards_post_edits(learner: str) -> None:
    model = hiero.load(rules=RULES, weights=WEIGHTS)
    adapter = hiero.Adapter(model, grow=False, learner=learner, c=0.01, rate=0.01)
    assert adapter.translate("haus haus").text == "house house"
    assert adapter.adapt("haus haus", "building building") == (True, False, "")
    assert adapter.translate("haus haus").text == "building building"
    weights = dict(adapter.weights.items())
    assert weights["B"] > WEIGHTS["B"]
    assert weights["A"] < WEIGHTS["A"]
    assert model.translate("haus").text == "house"


def test_translations_are_listed_before_the_pair_is_added(folder: Path) -> None:
    """A step compares what the model could say, without rules of the pair itself."""
    seen = []
    adapter = hiero.Adapter(model_of(folder), folder / "aligner")
    learner = adapter._learner
    assert learner is not None
    learn = learner.learn

    def spy(batch: Any, weight: Any) -> Any:
        words = batch[0].candidates.word.tolist()
        seen.append({adapter.symbols.words.text(word) for word in words})
        return learn(batch, weight)

    learner.learn = spy  # type: ignore[method-assign]
    adapter.translate("das neue haus")
    adapter.adapt("das neue haus", "the new house")
    adapter.adapt("das neue haus", "the new house")  # not translated before
    assert "new" not in seen[0]
    assert "new" in seen[1]


def test_post_edits_that_are_not_learnt_from(folder: Path) -> None:
    adapter = hiero.Adapter(model_of(folder), folder / "aligner", max_words=4)
    for source, target in (("", "a"), ("haus", ""), ("haus", " \t")):
        assert adapter.adapt(source, target) == (False, False, "an empty side")
    assert adapter.adapt("haus", "a b c d e") == (False, False, "5 words, more than max_words")
    assert adapter.num_pairs == 0
    # Equal to the translation; and words that nobody knows.
    assert adapter.adapt("das haus", adapter.translate("das haus").text) == (True, True, "")
    assert adapter.adapt("qux", "quux") == (True, True, "")
    assert adapter.translate("qux").text == "quux"


EDITS = [("das neue haus", "the new house"), ("ein haus", "a building"), ("das alte ding", "the old thing")]


def files(place: Path) -> dict[str, bytes]:
    return {name: (place / name).read_bytes() for name in ("meta.json", "pairs.jsonl", "state.npz")}


def adapted(folder: Path, place: Path, edits: Any, **more: Any) -> list[str]:
    with hiero.Adapter(model_of(folder, **more), folder / "aligner", state=place) as adapter:
        output = []
        for source, target in edits:
            output.append(adapter.translate(source).text)
            adapter.adapt(source, target)
    return output


@pytest.mark.parametrize("learner_state", ["dense", "sparse"])
def test_replaying_and_continuing_give_the_same_state(
    folder: Path, tmp_path: Path, learner_state: str
) -> None:
    more = {"features": ["shape", "lexical"]} if learner_state == "sparse" else {}
    whole = adapted(folder, tmp_path / "a", EDITS, **more)
    assert adapted(folder, tmp_path / "b", EDITS, **more) == whole
    assert files(tmp_path / "a") == files(tmp_path / "b")
    parts = adapted(folder, tmp_path / "c", EDITS[:1], **more) + adapted(
        folder, tmp_path / "c", EDITS[1:], **more
    )
    assert parts == whole
    found = [
        dict(
            hiero.Adapter(model_of(folder, **more), folder / "aligner", state=tmp_path / name).weights.items()
        )
        for name in "ac"
    ]
    assert found[0] == found[1]
    if learner_state == "dense":
        assert files(tmp_path / "c") == files(tmp_path / "a")


@pytest.mark.parametrize("when", ["before the state", "within the line"])
def test_a_kill_loses_at_most_the_last_pair(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    adapted(folder, tmp_path / "whole", EDITS)
    place = tmp_path / "killed"
    adapted(folder, place, EDITS[:1])

    class Killed(BaseException):
        pass

    def kill(*args: Any, **more: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(state_module, "write_vectors", kill)
        with pytest.raises(Killed):
            adapted(folder, place, EDITS[1:])
    lines = (place / "pairs.jsonl").read_bytes()
    assert lines.count(b"\n") == 2
    if when == "within the line":
        (place / "pairs.jsonl").write_bytes(lines[:-5])
    for name in ("state.npz.part", "state.npz.part.lock"):
        (place / name).write_bytes(MARK)
    adapted(folder, place, EDITS[1:])
    assert files(place) == files(tmp_path / "whole")


def test_states_that_do_not_fit(folder: Path, tmp_path: Path) -> None:
    adapted(folder, tmp_path / "a", EDITS[:1])
    model, aligner = model_of(folder), folder / "aligner"
    with pytest.raises(
        HieroError, match=r"a: was begun with another setting of c: 0.001, expected 0.5 \(remove"
    ):
        hiero.Adapter(model, aligner, state=tmp_path / "a", c=0.5)
    with pytest.raises(HieroError, match="was begun with another setting of weights: other ones"):
        hiero.Adapter(model.with_weights({**OF_INDEX, "Glue": 2.0}), aligner, state=tmp_path / "a")
    with hiero.Adapter(model, aligner, state=tmp_path / "a") as adapter:
        assert adapter.num_pairs == 1
        with pytest.raises(HieroError, match="another process adapts with this directory"):
            hiero.Adapter(model, aligner, state=tmp_path / "a")
    (tmp_path / "a" / "pairs.jsonl").write_text("{}\n")
    with pytest.raises(HieroError, match=r"pairs.jsonl: found 1 lines, expected 1 lines of \d+ bytes"):
        hiero.Adapter(model, aligner, state=tmp_path / "a")
    (tmp_path / "a" / "meta.json").write_text("{}\n")
    with pytest.raises(HieroError, match=r"meta\.json: found other content, expected hiero adaptation 1"):
        hiero.Adapter(model, aligner, state=tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "mine").touch()
    with pytest.raises(HieroError, match="b: found the file mine, expected an empty directory"):
        hiero.Adapter(model, aligner, state=tmp_path / "b")
    with pytest.raises(HieroError, match="mine: found a file, expected a directory"):
        hiero.Adapter(model, aligner, state=tmp_path / "b" / "mine")


def test_models_that_cannot_grow(folder: Path) -> None:
    with pytest.raises(HieroError, match=r"the model has no bitext index \(adapting adds pairs"):
        hiero.Adapter(hiero.load(rules=RULES, weights=WEIGHTS), folder / "aligner")
    with pytest.raises(HieroError, match=r"adapting: no word aligner \(hiero align --save-model"):
        hiero.Adapter(model_of(folder))
    with pytest.raises(ConfigError, match="Adapter: unknown argument 'learn'; did you mean 'learner'"):
        hiero.Adapter(model_of(folder), folder / "aligner", learn="sgd")
    assert AdaptConfig().learner == "mira"


# ---- hiero decode --adapt


def run(folder: Path, *more: Any) -> int:
    model = ["-g", folder / "index", "-w", folder / "weights", "--aligner", folder / "aligner"]
    return main(["decode", "--adapt", "-q", *map(str, [*model, *more])])


def test_command(folder: Path, tmp_path: Path) -> None:
    """Text and JSON lines; a post-edit alone has no line of output."""
    lines = [f"{src} ||| {tgt}" for src, tgt in EDITS]
    objects = [json.dumps({"source": src, "post_edit": tgt}) for src, tgt in EDITS[:2]]
    objects += [json.dumps({"source": EDITS[2][0]}), json.dumps({"post_edit": EDITS[2][1]})]
    outputs = []
    for name, text in (("text", lines), ("json", objects)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in [*text, "ein neue ding"]))
        args = (
            "-i",
            tmp_path / name,
            "-o",
            tmp_path / f"{name}.out",
            "--adapt-state",
            tmp_path / f"{name}.state",
        )
        assert run(folder, *args) == 0
        outputs.append((tmp_path / f"{name}.out").read_text().splitlines())
    assert outputs[0] == outputs[1]
    assert outputs[0][0] == "the neue house"
    assert outputs[0][-1] == "a new thing"
    assert files(tmp_path / "text.state") == files(tmp_path / "json.state")
    config = tmp_path / "config.yaml"
    config.write_text(f"adapt: {{aligner: {folder / 'aligner'}, learner: none, max_words: 2}}\n")
    model = ["-g", str(folder / "index"), "-w", str(folder / "weights")]
    args = ["-c", str(config), *model, "-i", str(tmp_path / "text"), "-o", str(tmp_path / "out")]
    assert main(["decode", "--adapt", "-q", *args]) == 0
    assert (tmp_path / "out").read_text().splitlines()[-1] == "a neue ding"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"source": "a", "target": "b"}', ':1: found the keys source, target, expected {"source": "..."}'),
        ('{"source": 3}', ":1: found source of type int, expected a str of one line"),
        ('{"source"', ":1: found broken JSON, expected"),
        ('{"post_edit": "a"}', ":1: found a post-edit alone, expected the sentence in the line before"),
    ],
)
def test_lines_of_the_command(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], line: str, message: str
) -> None:
    (tmp_path / "in").write_text(f"{line}\n")
    assert run(folder, "-i", tmp_path / "in", "-o", tmp_path / "out") == 1
    err = capfd.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--adapt", "-j", "2"], "argument -j: found several threads, expected 1 with --adapt"),
        (["--adapt", "--resume", "-o", "out"], "argument --resume: not with --adapt"),
        (["--adapt", "--force"], "argument --force or --prefix: not with --adapt"),
        (["--learner", "sgd"], "argument --learner: works with --adapt only"),
        (["--adapt-state", "a"], "argument --adapt-state: works with --adapt only"),
        (["--adapt", "--c", "0"], "argument --c: found 0.0, expected more than 0"),
    ],
)
def test_arguments(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", *arguments]) == 2
    assert message in capsys.readouterr().err
