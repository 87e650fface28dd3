"""The stages as functions: the same as the commands."""

from __future__ import annotations

import gzip
import logging
import math
from pathlib import Path
from typing import Any

import pytest

import hiero
from hiero.cli.main import main
from hiero.core.errors import HieroError
from hiero.extraction.extractor import FEATURES

SRC = ["das alte haus", "das alte buch", "ein haus", "er hat ein buch", "das haus"]
TGT = ["the old house", "the old book", "a house", "he has a book", "the house"]


def command(*arguments: object) -> None:
    assert main([str(argument) for argument in arguments]) == 0


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bitext as files, its alignment and its index, by commands."""
    folder = tmp_path_factory.mktemp("bitext")
    for name, lines in (("src", SRC), ("tgt", TGT)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    texts = ("-s", folder / "src", "-t", folder / "tgt")
    command("align", "-q", *texts, "-o", folder / "links", "--save-model", folder / "aligner")
    command("index", "-q", *texts, "-a", folder / "links", "-o", folder / "index")
    return folder


# ---- alignment


def test_align(files: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "hiero")
    seen: list[tuple[str, int, int | None]] = []
    aligner = hiero.align(SRC, TGT, progress=lambda *step: seen.append(step))
    assert seen
    assert [record.message for record in caplog.records] == ["align: 5 sentence pairs, 14 links"]
    aligner.write(tmp_path / "links")
    assert (tmp_path / "links").read_bytes() == (files / "links").read_bytes()
    lines = [" ".join(f"{a}-{b}" for a, b in links) for links in aligner.links]
    assert lines == (files / "links").read_text().splitlines()
    assert hiero.align(files / "src", str(files / "tgt"), threads=2).links == aligner.links
    aligner.save(tmp_path / "aligner")
    saved, made = ({p.name: p.read_bytes() for p in (f / "aligner").iterdir()} for f in (tmp_path, files))
    assert saved == made

    loaded = hiero.Aligner.load(files / "aligner")
    assert loaded.apply(SRC, TGT) == aligner.links == aligner.apply(SRC, TGT)
    scores = loaded.score(SRC, TGT)
    assert [len(score.links) for score in scores] == [len(links) for links in aligner.links]
    assert all(0 <= link <= 1 + 1e-6 for score in scores for link in score.links)
    assert loaded.score(["das haus"], ["he has"])[0].log_prob < scores[-1].log_prob < 0
    assert loaded.score(SRC, TGT, aligner.links) == scores
    assert math.isnan(loaded.score(["", "das"], ["the", "the"])[0].log_prob)
    for attribute in ("links", "write"):
        with pytest.raises(HieroError, match="has no links of its own; use apply"):
            getattr(loaded, attribute) if attribute == "links" else loaded.write(tmp_path / "none")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hiero.align(SRC, TGT[:4]), "target:5: found the end of the file, expected a line"),
        (lambda: hiero.align([], []), "source: found no line, expected sentences"),
        (lambda: hiero.align(["a\nb"], ["c"]), r"sentence 0: found 'a\\nb', expected a str of one line"),
        (
            lambda: hiero.align(SRC, TGT, modell="hmm"),
            "align: unknown argument 'modell'; did you mean 'model'",
        ),
        (lambda: hiero.align(SRC, TGT, model="ibm9"), "align: model: found 'ibm9', expected one of"),
        (lambda: hiero.align(SRC, TGT).score(SRC, TGT, [[]]), "links: found 1 lists, expected 5"),
        (lambda: hiero.align(["a"], ["b"]).score(["a"], ["b"], [[(0, 1)]]), "position outside of a sentence"),
    ],
)
def test_mistakes(call: Any, message: str) -> None:
    with pytest.raises(HieroError, match=message):
        call()


# ---- language models


@pytest.mark.parametrize("name", ["lm.arpa.gz", "lm"])
def test_estimate_lm(files: Path, tmp_path: Path, name: str) -> None:
    options: dict[str, Any] = {"order": 3, "discount_fallback": True, "prune": [0, 0, 0]}
    command(
        "lm",
        "estimate",
        "-q",
        "--order",
        3,
        "--discount-fallback",
        "--",
        files / "tgt",
        tmp_path / f"c{name}",
    )
    made = hiero.estimate_lm(files / "tgt", tmp_path / name, **options)
    again = hiero.estimate_lm(TGT, tmp_path / f"b{name}", **options)
    other = hiero.LanguageModel.load(tmp_path / f"c{name}")
    words = made.words("the old zebra")
    assert [one.word for one in words] == ["the", "old", "zebra", "</s>"]
    assert [one.length for one in words] == [2, 3, 1, 1]
    for line in [*TGT, "", "the old zebra"]:
        assert (
            made.score(line)
            == again.score(line)
            == other.score(line)
            == sum(one.log10_prob for one in made.words(line))
        )
    total, number = sum(map(made.score, TGT)), sum(len(line.split()) + 1 for line in TGT)
    assert made.perplexity(TGT) == pytest.approx(10 ** (-total / number), rel=1e-6)
    assert made.perplexity(files / "tgt") == made.perplexity(TGT)
    assert made.score("the", markers=False) > made.score("the")
    with pytest.raises(HieroError, match="found no sentence"):
        made.perplexity([])
    with pytest.raises(HieroError, match="estimate_lm: unknown argument 'ordre'; did you mean 'order'"):
        hiero.estimate_lm(TGT, tmp_path / "x", ordre=3)


# ---- index


def test_index_lookup_extract(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = hiero.index(SRC, TGT, hiero.align(SRC, TGT), tmp_path / "index")
    twice = hiero.index(files / "src", files / "tgt", [files / "links", files / "links"], tmp_path / "twice")
    assert made.num_sentences == twice.num_sentences == 5
    (files / "in").write_text("das alte haus\n")
    command("extract", "-q", "-x", files / "index", "-i", files / "in", "-o", tmp_path / "grammars")
    capsys.readouterr()
    rules = gzip.decompress((tmp_path / "grammars" / "grammar.0.gz").read_bytes()).decode().splitlines()
    assert hiero.extract(made, "das alte haus") == rules
    assert hiero.extract(files / "index", "das alte haus", max_gaps=0) == [
        rule for rule in rules if "[X,1]" not in rule
    ]
    model = hiero.load(rules=rules, weights={**dict.fromkeys(FEATURES, -0.1), "PassThrough": -9})
    assert model.translate("das alte haus").text == "the old house"

    phrases = hiero.lookup(made, "das alte haus", examples=1)
    assert phrases == hiero.lookup(files / "index", "das alte haus", examples=1)
    assert phrases[0].source == "das alte haus"
    assert phrases[0].translations[0].target == "the old house"
    assert phrases[0].translations[0].examples[0].line == 1
    with pytest.raises(HieroError, match="lookup: unknown argument 'exampels'; did you mean 'examples'"):
        hiero.lookup(made, "das", exampels=1)


# ---- evaluation


def test_evaluate(files: Path, tmp_path: Path) -> None:
    worse = [*TGT[:3], "he has a boot", "house"]
    report = hiero.evaluate({"all": TGT, "worse": worse}, files / "tgt", tokenize="none", trials=100)
    assert report.result("bleu", "all").score == 100
    assert report.result("bleu", "worse").score < 90
    assert "worse" in report.table()
    one = hiero.evaluate(worse, [TGT, worse], metrics=["bleu"], tokenize="none", trials=0)
    assert one.result("bleu", "system").score == 100
    runs = hiero.evaluate({"s": [TGT, worse]}, TGT, metrics=["bleu"], tokenize="none", trials=0)
    assert len(runs.systems[0].runs) == 2
    with pytest.raises(HieroError, match="evaluate: unknown argument 'metric'; did you mean 'metrics'"):
        hiero.evaluate(TGT, TGT, metric="bleu")
