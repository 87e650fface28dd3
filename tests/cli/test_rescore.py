"""``hiero rescore``: lists and forests with other weights and further features."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hiero.cli.main import main
from hiero.decoder.output import read_translation_lists
from tests.cli.test_decode import TEXT, run, small, written
from tests.conftest import import_kenlm

__all__ = ["small"]  # a fixture
LM = Path(__file__).parents[1] / "data" / "tiny.arpa"
Capture = pytest.CaptureFixture[str]


def rescore(*arguments: str) -> int:
    return main(["rescore", "-q", *arguments])


@pytest.fixture(scope="module")
def listed(small: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with lists in all forms, and forests."""
    folder = tmp_path_factory.mktemp("lists")
    text = written(folder / "text", TEXT)
    for style in ("cdec", "moses", "json"):
        options = ["--format", style, "--kbest", "5", "--forest", str(folder / "forests")]
        assert run(*small, "-i", text, "-o", str(folder / style), *options) == 0
    return folder


def entries(path: Path) -> list[tuple[str, str, float]]:
    return [(one.name, t.text, t.score) for one in read_translation_lists(path) for t in one.translations]


@pytest.mark.parametrize("style", ["cdec", "moses", "json"])
def test_a_list_rescored_with_its_own_model_is_unchanged(
    style: str, small: list[str], listed: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert rescore("-i", str(listed / style), "-w", small[3], "-o", str(out)) == 0
    for (name, text, score), (old_name, old_text, old_score) in zip(
        entries(out), entries(listed / style), strict=True
    ):
        assert (name, text) == (old_name, old_text)
        assert score == pytest.approx(old_score, abs=1e-6)
    # Without weights, nothing is computed: the file is the same to the byte.
    assert rescore("-i", str(listed / style), "-o", str(out), "-j", "2") == 0
    if style == "json":
        parsed = [list(map(json.loads, path.read_text().splitlines())) for path in (out, listed / style)]
        assert parsed[0] == parsed[1]
    else:
        assert out.read_text() == (listed / style).read_text()


def test_other_weights_give_the_order_of_the_decoder(small: list[str], listed: Path, tmp_path: Path) -> None:
    weights = written(tmp_path / "w", "p -0.1\nGlue -0.1\nPassThrough -3\nWordPenalty 2\nLanguageModel 0.9\n")
    out, direct = tmp_path / "out", tmp_path / "direct"
    assert rescore("--forests", str(listed / "forests"), "-w", weights, "-o", str(out), "--kbest", "4") == 0
    other = [*small[:3], weights, *small[4:]]
    options = ["--kbest", "4", "--pop-limit", "0"]
    assert run(*other, "-i", str(listed / "text"), "-o", str(direct), *options) == 0
    for found, expected in zip(entries(out), entries(direct), strict=True):
        assert found[:1] == expected[:1]
        assert found[2] == pytest.approx(expected[2], abs=1e-6)


def test_a_language_model_has_the_values_of_the_decoder(
    small: list[str], listed: Path, tmp_path: Path
) -> None:
    """Under a second name, the model of the list has its features once more."""
    out = tmp_path / "out"
    given = ["--weight", "Twin=1", "--weight", "Twin_OOV=-1"]
    assert rescore("-i", str(listed / "cdec"), "-l", f"Twin={LM}", *given, "-o", str(out)) == 0
    old = {(name, text): score for name, text, score in entries(listed / "cdec")}
    for found in read_translation_lists(out):
        scores = [one.score for one in found.translations]
        assert scores == sorted(scores, reverse=True)
        for one in found.translations:
            assert one.features["Twin"] == pytest.approx(one.features["LanguageModel"], abs=1e-5)
            unknown = one.features.get("Twin_OOV", 0.0)
            assert unknown == one.features.get("LanguageModel_OOV", 0.0)
            added = one.features["Twin"] - unknown
            assert one.score == pytest.approx(old[found.name, one.text] + added, abs=1e-6)


def test_binaries_of_kenlm(listed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kenlm = import_kenlm()
    own, theirs = tmp_path / "own", tmp_path / "theirs"
    arguments = ["-i", str(listed / "cdec"), "--weight", "Twin=1"]
    assert rescore(*arguments, "-l", f"Twin={LM}", "-o", str(own)) == 0
    # What reads binaries with rest costs: the kind in the header is all that chooses the reader.
    monkeypatch.setattr("hiero.lm.load.kenlm_type", lambda start: 1)
    assert rescore(*arguments, "-l", f"Twin={LM}", "-o", str(theirs)) == 0
    assert kenlm.Model(str(LM)).order > 1
    for one, other in zip(entries(own), entries(theirs), strict=True):
        assert one[:2] == other[:2]
        assert one[2] == pytest.approx(other[2], abs=1e-5)


def test_columns_of_scores(listed: Path, tmp_path: Path) -> None:
    lists = list(read_translation_lists(listed / "cdec"))
    # The last of each list becomes the best.
    values = [float(place) for one in lists for place in range(len(one.translations))]
    column = written(tmp_path / "column", "".join(f"{value}\n" for value in values))
    out = tmp_path / "out"
    given = ["--scores", f"Mine={column}", "--weight", "Mine=100"]
    assert rescore("-i", str(listed / "cdec"), *given, "--format", "text", "-o", str(out)) == 0
    assert out.read_text().splitlines() == [one.translations[-1].text for one in lists]


@pytest.mark.parametrize(
    "algorithm", ["kbmira", *(pytest.param(one, marks=pytest.mark.heavy) for one in ("pro", "mert"))]
)
def test_weights_are_learnt(algorithm: str, small: list[str], listed: Path, tmp_path: Path) -> None:
    """A column says which translation is the reference; its weight becomes positive and decides."""
    lists = list(read_translation_lists(listed / "cdec"))
    references = [one.translations[-1].text for one in lists]
    flags = [
        float(t.text == ref) for one, ref in zip(lists, references, strict=True) for t in one.translations
    ]
    column = written(tmp_path / "column", "".join(f"{flag}\n" for flag in flags))
    reference = written(tmp_path / "ref", "".join(f"{line}\n" for line in references))
    out, weights = tmp_path / "out", tmp_path / "weights"
    given = ["-i", str(listed / "cdec"), "-w", small[3], "--scores", f"Mine={column}"]
    learn = ["--tune", reference, "--algorithm", algorithm, "--save-weights", str(weights)]
    assert rescore(*given, *learn, "--format", "text", "-o", str(out)) == 0
    assert out.read_text().splitlines() == references
    learnt = dict(line.split() for line in weights.read_text().splitlines() if not line.startswith("#"))
    assert float(learnt["Mine"]) > 0
    assert rescore(*given[:2], "-w", str(weights), *given[4:], "--format", "text", "-o", str(out)) == 0
    assert out.read_text().splitlines() == references


LINE = "0 ||| a b ||| p=1 q=-2 ||| -3"


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("0 ||| a b ||| p=1\n", [], "in:1: found '0 ||| a b ||| p=1', expected id ||| translation"),
        (f"{LINE}\n1 ||| a |||", [], "in:2: found '1 ||| a |||', expected id"),
        (f"{LINE}\n0 ||| c ||| p=x ||| 0\n", [], "in:2: found 'x' as the value of 'p', expected a finite"),
        (f"{LINE}\n1 ||| c ||| p ||| 0\n", [], "in:2: found 'p', expected NAME=VALUE"),
        (f"{LINE}\n1 ||| c ||| p= ||| 0\n", [], "in:2: found 'p' without a value"),
        (f"{LINE}\n1 ||| c ||| ||| nan\n", [], "in:2: found 'nan' as a score"),
        (f"{LINE}\n1 ||| c ||| ||| 0\n{LINE}\n", [], "in:3: found sentence '0' a second time"),
        ('{"id": "0"}\n', [], "in:1: found no 'translations', expected an object"),
        ('{"id": "0", \n', [], "in:1: found expecting property name"),
        (
            LINE,
            ["--scores", "S=short", "--weight", "S=1"],
            "short: found 0 lines, expected a number for",
        ),
        (LINE, ["--scores", "S=long", "--weight", "S=1"], "long: found 2 lines, expected 1, as many as"),
        (LINE, ["--scores", "S=words", "--weight", "S=1"], "words:1: found 'x', expected a finite number"),
        (
            LINE,
            ["--scores", "p=long", "--weight", "p=1"],
            "in:1: found the feature 'p' of sentence '0'",
        ),
        (f"{LINE}\n7 ||| c ||| ||| 0\n", ["--tune", "long"], "in: found sentence 7, expected 2 sentences"),
        (LINE, ["--tune", "long", "--algorithm", "mert"], "mert needs weights to start from"),
        (LINE, ["--scores", "S=long"], "found no weight of 'S', expected --weight S=X, -w or --tune"),
        (LINE, ["--weight", "S=1"], "argument --weight: 'S' is none of the further features"),
        (LINE, ["--weight", "S=one"], "argument --weight: found 'S=one', expected NAME=X"),
        (LINE, ["-l", "model"], "argument -l: found 'model', expected NAME=LM"),
        (LINE, ["--save-weights", "new"], "argument --save-weights: requires --tune REF"),
    ],
)
def test_mistakes(
    content: str,
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("in", content), ("short", ""), ("long", "1\n2\n"), ("words", "x\n")):
        Path(name).write_text(text)
    assert rescore("-i", "in", "-o", "out", *arguments) in (1, 2)
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not Path("out").exists()


def test_lists_of_moses(tmp_path: Path) -> None:
    content = "0 ||| a b  ||| LM0= -3 TM= -1 -2 ||| -0.5 ||| 0-0 1-1\n0 ||| c ||| LM0= -1 TM= 0 -9 ||| -0.7\n"
    path = tmp_path / "in"
    path.write_text(content)
    (found,) = read_translation_lists(path)
    assert found.translations[0].features == {"LM0": -3.0, "TM_0": -1.0, "TM_1": -2.0}
    assert found.translations[0].fields == ["0-0 1-1"]
    weights, out = written(tmp_path / "w", "LM0 1\nTM_1 0.1\n"), tmp_path / "out"
    assert rescore("-i", str(path), "-w", weights, "-o", str(out)) == 0
    assert out.read_text().splitlines() == [
        "0 ||| c ||| LM0= -1 TM_0= 0 TM_1= -9 ||| -1.9",
        "0 ||| a b ||| LM0= -3 TM_0= -1 TM_1= -2 ||| -3.2 ||| 0-0 1-1",
    ]


def test_gaps_between_sentences_are_empty_lines(tmp_path: Path) -> None:
    path, out = tmp_path / "in", tmp_path / "out"
    path.write_text("1 ||| a ||| p=1 ||| 0\n1 ||| b ||| p=2 ||| 1\n4 ||| &#124;&#124;&#124; c ||| ||| 0\n")
    assert rescore("-i", str(path), "--format", "text", "-o", str(out)) == 0
    assert out.read_text() == "\nb\n\n\n||| c\n"


def test_a_model_of_classes(small: list[str], listed: Path, tmp_path: Path, capsys: Capture) -> None:
    """If each word is its own class, such a model has the values of the one of words."""
    text = LM.read_text().split("\\1-grams:\n")[1].split("\n\n")[0]
    words = [line.split()[1] for line in text.splitlines()]
    classes = written(tmp_path / "classes", "".join(f"{word}\t{word}\n" for word in words if word[0] != "<"))
    weights = written(tmp_path / "weights", Path(small[3]).read_text() + "Twin 0.5\n")
    twin = ["-l", f"Twin={LM}", "--classes", f"Twin={classes}"]
    assert (
        run(
            *small[:3],
            weights,
            "-l",
            f"LanguageModel={LM}",
            *twin,
            "-i",
            str(listed / "text"),
            "-o",
            str(tmp_path / "out"),
            "--kbest",
            "5",
        )
        == 0
    )
    rescored = [*twin, "--weight", "Twin=0.5", "-o", str(tmp_path / "rescored")]
    assert rescore("-i", str(listed / "cdec"), *rescored) == 0
    for path in (tmp_path / "out", tmp_path / "rescored"):
        for found in read_translation_lists(path):
            for one in found.translations:
                assert one.features["Twin"] == pytest.approx(one.features["LanguageModel"], abs=1e-5)
                assert one.features.get("Twin_OOV", 0.0) == one.features.get("LanguageModel_OOV", 0.0)
    assert rescore("-i", str(listed / "cdec"), *twin[:2], "--classes", f"Twen={classes}") == 2
    assert "argument --classes: 'Twen' is the name of no model of -l" in capsys.readouterr().err
    assert run(*small, "--classes", f"Twin={classes}", "-i", str(listed / "text")) == 1
    assert "classes: 'Twin' is the name of no language model; one of LanguageModel" in capsys.readouterr().err
