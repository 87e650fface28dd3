"""The bundled model: its content, and that its script reproduces it."""

from __future__ import annotations

import gzip
import math
import pickle
import re
import warnings
from collections import Counter
from collections.abc import Callable
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hiero
from grammars.make_demo.__main__ import SIZES, TRAINED, WEIGHTS, files, install, pack
from grammars.make_demo.trees import Node, leaf, rule
from hiero.cli.main import main
from hiero.config.config import config_of
from hiero.config.model import OpenedFiles, bundled_names, bundled_path
from hiero.core.errors import HieroError, HieroWarning
from tests.conftest import import_kenlm

ONLY = [word for stage in ("align", "lm", "index", "extract") for word in ("--only", stage)]
NUMBER = re.compile(r"-?\b\d+(?:\.\d+)?(?:e-?\d+)?\b")
FEATURES = [line.split()[0] for line in WEIGHTS.splitlines()]


def read(name: str) -> str:
    data = bundled_path(name).read_bytes()
    return (gzip.decompress(data) if name.endswith(".gz") else data).decode()


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return dict(files())


def test_the_script_reproduces_the_files(made: dict[str, str]) -> None:
    assert sorted([*made, *TRAINED.values()]) == bundled_names()
    # Compared unpacked: the bytes of a gzip stream depend on the zlib implementation.
    assert [name for name, text in made.items() if read(name) != text] == []


@pytest.mark.heavy
def test_the_configuration_reproduces_the_models(tmp_path: Path) -> None:
    config = Path(__file__).parents[2] / "configs" / "demo.yaml"
    assert main(["run", "-q", str(config), "-o", str(tmp_path / "run"), *ONLY]) == 0
    install(tmp_path / "run", tmp_path)
    for name in TRAINED.values():
        made, known = gzip.decompress((tmp_path / name).read_bytes()).decode(), read(name)
        assert NUMBER.sub("#", made) == NUMBER.sub("#", known)
        # Logarithms differ in their last digit from one machine to the next.
        numbers = [np.array(NUMBER.findall(text), np.float64) for text in (made, known)]
        np.testing.assert_allclose(*numbers, rtol=1e-5, atol=1e-6)


def test_packing_does_not_depend_on_time_or_path(tmp_path: Path) -> None:
    packed = pack("ein satz\n")
    assert gzip.decompress(packed) == b"ein satz\n"
    assert packed[4:8] == bytes(4)
    assert packed[3] == 0  # no file name, no comment
    assert packed == pack("ein satz\n")


def test_size() -> None:
    assert sum(bundled_path(name).stat().st_size for name in bundled_names()) < 1_500_000


def test_unknown_file() -> None:
    with pytest.raises(
        HieroError, match=r"^there is no bundled file 'demo.grammer.gz'.*did you mean 'demo.grammar.gz'\?$"
    ):
        bundled_path("demo.grammer.gz")


def test_sizes_of_parts_and_no_common_sentences() -> None:
    parts = {part: read(f"demo.{part}.de{'.gz' * (part == 'train')}").splitlines() for part in SIZES}
    assert len(parts["train"]) >= SIZES["train"]
    others = ("dev", "devtest", "test")
    assert [len(parts[part]) for part in others] == [SIZES[part] for part in others]
    for one, other in combinations(parts.values(), 2):
        assert not set(one) & set(other)
    for part, lines in parts.items():
        targets = read(f"demo.{part}.en{'.gz' * (part == 'train')}").splitlines()
        assert len(targets) == len(lines)
        assert all(line == line.strip().lower() and "  " not in line for line in (*lines, *targets))


def test_links_are_inside_their_sentences() -> None:
    sides = [read(f"demo.train.{side}.gz").splitlines() for side in ("de", "en")]
    for src, tgt, line in zip(*sides, read("demo.train.align.gz").splitlines(), strict=True):
        for link in line.split():
            i, j = map(int, link.split("-"))
            assert i < len(src.split())
            assert j < len(tgt.split())


def test_rules_are_hierarchical_and_features_consistent() -> None:
    rules = [line.split(" ||| ") for line in read("demo.grammar.gz").splitlines()]
    assert len({(src, tgt) for _, src, tgt, _, _ in rules}) == len(rules)
    for lhs, src, tgt, features, links in rules:
        symbols, values = src.split(), dict(pair.split("=") for pair in features.split())
        gaps = [k for k, symbol in enumerate(symbols) if symbol.startswith("[X,")]
        assert lhs == "[X]"
        assert [symbols[k] for k in gaps] == ["[X,1]", "[X,2]"][: len(gaps)]
        assert all(b - a > 1 for a, b in pairwise(gaps))
        assert (
            sorted(word for word in tgt.split() if word.startswith("[X,")) == ["[X,1]", "[X,2]"][: len(gaps)]
        )
        assert list(values) == FEATURES[:7]
        n, c = (10 ** float(values[name]) - 1 for name in ("SampleCountF", "CountEF"))
        assert float(values["EgivenFCoherent"]) == pytest.approx(-math.log10(c / n), abs=1e-4)
        assert values["IsSingletonF"] in ("0", "1")
        assert round(n) > 1 or values["IsSingletonF"] == "1"
        assert float(values["IsSingletonFE"]) == (round(c) == 1)
        assert round(n) <= 300
        for i, j in (map(int, link.split("-")) for link in links.split()):
            assert i not in gaps
            assert not tgt.split()[j].startswith("[X,")


@pytest.mark.parametrize(
    ("src", "tgt"),
    [
        ("[X,1] hat [X,2] versprochen", "[X,1] promised [X,2]"),
        ("[X,1] hat mir [X,2] versprochen", "[X,1] promised me [X,2]"),
        ("will [X,1] kaufen", "wants to buy [X,1]"),
        ("vor [X,1]", "in front of [X,1]"),
        ("bank", "bank"),
        ("bank", "bench"),
        ("schloss", "castle"),
        ("schloss", "lock"),
        ("haustür", "front door"),
    ],
)
def test_grammar_contains(src: str, tgt: str) -> None:
    assert f"[X] ||| {src} ||| {tgt} ||| " in read("demo.grammar.gz")


def test_language_model_sums_to_one_and_is_readable_by_kenlm(tmp_path: Path) -> None:
    # Unpacked first: whether kenlm can read gz depends on how it was compiled.
    arpa = tmp_path / "demo.arpa"
    arpa.write_text(read("demo.lm.arpa.gz"), encoding="utf-8", newline="\n")
    kenlm = import_kenlm()
    config = kenlm.Config()
    config.show_progress = False
    config.arpa_complain = kenlm.ARPALoadComplain.NONE
    lm = kenlm.Model(str(arpa), config)
    vocabulary = {word for line in read("demo.train.en.gz").splitlines() for word in line.split()}
    for history in (["<s>"], ["<s>", "the"], ["has"], ["the", "man"], ["never-seen"], ["."]):
        state = kenlm.State()
        lm.BeginSentenceWrite(state) if history[0] == "<s>" else lm.NullContextWrite(state)
        for word in history[history[0] == "<s>" :]:
            state = advance(kenlm, lm, state, word)[0]
        total = sum(10 ** advance(kenlm, lm, state, word)[1] for word in (*vocabulary, "</s>", "<unk>"))
        assert total == pytest.approx(1.0, abs=1e-5)


def advance(kenlm: Any, lm: Any, state: Any, word: str) -> tuple[Any, float]:
    after = kenlm.State()
    return after, lm.BaseScore(state, word, after)


def test_dev_sets_have_a_few_unknown_words() -> None:
    """A few words are not in the training part, but most are."""
    known = Counter(read("demo.train.de.gz").split())
    for part in ("dev", "devtest", "test"):
        tokens = read(f"demo.{part}.de").split()
        unknown = [token for token in tokens if token not in known]
        assert 0 < len(unknown) < 0.02 * len(tokens)


def test_every_rule_has_its_gaps_on_both_sides() -> None:
    broken: list[Callable[[], Node]] = [lambda: rule("1 a", "b"), lambda: rule("a", "b 1", leaf("x", "y"))]
    for build in broken:
        with pytest.raises(AssertionError):
            build()


def test_opened_files_are_shared_until_their_content_changes(tmp_path: Path) -> None:
    grammar, weights, other = tmp_path / "grammar", tmp_path / "weights", tmp_path / "other"
    grammar.write_text("[X] ||| a ||| A ||| P=1 Q=0\n[X] ||| a ||| B ||| P=0 Q=1\n")
    weights.write_text("P 1\n")
    other.write_text("Q 1\n")
    first, second = (
        config_of({"grammar": [{"path": str(grammar)}], "weights": {"path": str(path)}})
        for path in (weights, other)
    )
    opened = OpenedFiles(lambda path: path.read_text())
    one, two = opened.model(first), opened.model(second)
    assert two.sources is one.sources
    assert (one.translate("a").text, two.translate("a").text) == ("A", "B")
    grammar.write_text("[X] ||| a ||| C ||| P=1 Q=0\n")
    three = opened.model(first)
    assert (one.translate("a").text, three.translate("a").text) == ("A", "C")
    weights.write_text("P 2\n")
    assert opened.model(first).weights["P"] == 2
    assert three.weights["P"] == 1


# ---- weights that do not fit


RULES = ["[X] ||| das ||| the ||| p=1 s=2", "[X] ||| haus ||| house ||| p=1", "[X] ||| ein ||| a ||| p=2"]
TINY = Path(__file__).parents[1] / "data" / "tiny.arpa"


def mismatch(**how: Any) -> str:
    """The one warning of ``load``; empty if there is none."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        hiero.load(**how)
    assert len(found) <= 1
    for one in found:
        assert one.category is HieroWarning
        assert one.filename == __file__
    return "".join(str(one.message) for one in found)


@hiero.rule_feature
def mine(rules: Any) -> dict[str, Any]:
    return {"Mine": np.ones(len(rules))}


def test_weights_that_fit_are_not_mentioned(tmp_path: Path) -> None:
    weights = {"p": -1.0, "s": 1.0, "WordPenalty": 1.0, "PassThrough": -1.0, "Glue": 1.0}
    assert mismatch(rules=RULES, weights=weights) == ""
    lm = {**weights, "LM": 1.0, "LM_OOV": -1.0}
    assert mismatch(rules=RULES, weights=lm, lm={"LM": TINY}) == ""
    more = {"SpanSize_X_3": 1.0, "R:X:das:the": 1.0, "Arity_1": 1.0, "SourceWordPenalty": 1.0}
    features = ["span_size", "rule_id", "arity", "source_word_penalty"]
    assert mismatch(rules=RULES, weights=weights | more, features=features) == ""
    assert mismatch(rules=RULES, weights=weights | {"Mine": 1.0}, features=mine) == ""
    # Many sparse features: weights of another part of the grammar.
    sparse = [f"[X] ||| w{i} ||| v{i} ||| p=1 F_{i}=1" for i in range(100)]
    assert mismatch(rules=sparse, weights={"p": 1.0, "F_7": 1.0, "F_1000": 1.0}) == ""
    # Grammars that sentences name may have any feature.
    assert mismatch(grammar=(), lm={"LM": TINY}, weights=lm) == ""
    written = tmp_path / "weights"
    written.write_text("p -1\ns 1\n")
    compiled = tmp_path / "compiled"
    (tmp_path / "rules").write_text("".join(f"{rule}\n" for rule in RULES))
    assert main(["grammar", "compile", str(tmp_path / "rules"), str(compiled)]) == 0
    assert mismatch(grammar=compiled, weights=written) == ""
    # Bins, and converted features, in place of a dense one.
    transform = {"features": {"transform": {"p": "probability"}}}
    assert mismatch(config=transform, rules=RULES, weights={"p_probability": 1.0}) == ""
    dropped = {"features": {"transform": {"p": "drop"}}}
    assert mismatch(config=dropped, rules=RULES, weights={"s": 1.0}) == ""


@pytest.mark.heavy
def test_the_bundled_model_fits_its_weights() -> None:
    assert mismatch() == ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hiero.load(strict=True, features=["shape"])


def test_weights_that_do_not_fit_are_told(tmp_path: Path) -> None:
    weights = {"p": -1.0, "LanguageModle": 0.5}
    expected = (
        "weights: the weight LanguageModle names no feature of the model; the language model LanguageModel "
        "has no weight (is 'LanguageModle' meant for 'LanguageModel'?)"
    )
    assert mismatch(rules=RULES, weights=weights, lm=TINY) == expected
    with pytest.raises(HieroError, match="weights: the weight LanguageModle names no feature"):
        hiero.load(rules=RULES, weights=weights, lm=TINY, strict=True)
    with pytest.raises(HieroError, match="weights: the weight LanguageModle names no feature"):
        hiero.load({"strict": True}, rules=RULES, weights=weights, lm=TINY)
    # Unknown names of features do not hide it.
    found = mismatch(rules=RULES, weights=weights | {"Mine": 1.0}, lm=TINY, features=mine)
    assert found == expected
    assert mismatch(rules=RULES, weights={"s": 1.0}) == "weights: the dense feature p has no weight"
    found = mismatch(rules=RULES, weights={"p": 1.0, "R:X:das:the": 1.0})
    assert found == "weights: 1 weight needs --features rule_id"
    assert mismatch(rules=RULES) == "no weights given: every translation scores 0"
    with pytest.raises(HieroError, match="no weights given"):
        hiero.load(rules=RULES, strict=True)
    # A file of hiero does not have weights of 0.
    written = tmp_path / "weights"
    written.write_text("# hiero weights: every name is exact\nGlue 1\n")
    assert mismatch(rules=RULES, weights=written) == f"{written}: the dense feature p has no weight"
    written.write_text("# hiero weights: every name is exact\nq 1\np 1\n")
    assert mismatch(rules=RULES, weights=written) == f"{written}: the weight q names no feature of the model"


def test_other_weights_that_do_not_fit_are_told(tmp_path: Path) -> None:
    model = hiero.load(rules=RULES, weights={"p": -1.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.with_weights({"p": 2.0, "Glue": 1.0}).weights["p"] == 2.0
        model.with_weights(model.weights).weights = {"p": 3.0}
    expected = "weights: the weight pp names no feature of the model; the dense feature p has no weight"
    with pytest.warns(HieroWarning, match=expected) as told:
        other = model.with_weights({"pp": 1.0})
    assert other.weights["pp"] == 1.0
    written = tmp_path / "weights"
    written.write_text("Glue 1\n")
    with pytest.warns(HieroWarning, match=f"{written}: the dense feature p has no weight") as also_told:
        other.weights = written
    assert {one.filename for one in [*told, *also_told]} == {__file__}
    strict = hiero.load(rules=RULES, weights={"p": -1.0}, strict=True)
    for _ in range(2):
        with pytest.raises(HieroError, match=expected):
            strict.with_weights({"pp": 1.0})
    with pytest.raises(HieroError, match=expected):
        strict.weights = {"pp": 1.0}
    assert strict.weights["p"] == -1.0
    # Another process, and a copy, do not tell it again.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.loads(pickle.dumps(other))


def test_grammars_that_share_names_of_features_are_told(tmp_path: Path) -> None:
    for name, value in (("one", "0.5 0.25"), ("two", "1 2"), ("labelled", "p=1")):
        (tmp_path / name).write_text(f"[X] ||| {name} ||| {name} ||| {value}\n")
    weights = {"PhraseModel_0": 1.0, "PhraseModel_1": 1.0}
    found = mismatch(grammar=[tmp_path / "one", tmp_path / "two"], weights=weights)
    assert found == (
        "2 grammars have unlabelled features of the same names, PhraseModel_0 and 1 more, and one weight "
        "(owner: NAME, of a grammar in the configuration, gives each its own)"
    )
    dropped = {"features": {"transform": {"PhraseModel_0": "drop"}}}
    config = {"grammar": [{"path": str(tmp_path / name)} for name in ("one", "two")]}
    assert mismatch(config=config | dropped, weights={"PhraseModel_1": 1.0}).startswith("2 grammars have")
    # It may be meant, and is no error.
    with pytest.warns(HieroWarning, match="2 grammars have unlabelled"):
        hiero.load(config, weights=weights, strict=True)
    config["grammar"][1]["owner"] = "b"
    named = weights | {"tm_b_0": 1.0, "tm_b_1": 1.0}
    assert mismatch(config=config, weights=named) == ""
    assert mismatch(grammar=[tmp_path / "one", tmp_path / "labelled"], weights=weights | {"p": 1.0}) == ""


def test_language_models_of_classes(tmp_path: Path) -> None:
    classes = tmp_path / "classes"
    classes.write_text("haus\tcat\nhouse\tcat\n")
    given = {"rules": "[X] ||| das haus ||| the house ||| p=1", "weights": dict.fromkeys(("p", "C"), 1.0)}
    one = hiero.load(**given, lm={"C": TINY}, classes={"C": classes})
    section = {"path": "tiny.arpa", "name": "C", "classes": str(classes)}
    two = hiero.load(config_of({"lm": [section]}, base=TINY.parent), **given)
    expected = hiero.LanguageModel.load(TINY).score("the cat") - hiero.LanguageModel.load(TINY).score("the")
    for model in (one, two):
        features = model.translate("das haus").features
        assert features["C"] == hiero.LanguageModel.load(TINY, classes).score("the house")
        assert features["C_OOV"] == 1
    assert expected != 0
    with pytest.raises(HieroError, match="features: bigram: the first language model, C, is one of classes"):
        hiero.load(**given, lm={"C": TINY}, classes={"C": classes}, features="bigram")
    given["weights"] = given["weights"] | {"W": 1.0}
    hiero.load(**given, lm={"W": TINY, "C": TINY}, classes={"C": classes}, features="bigram")
    with pytest.raises(HieroError, match="classes: 'D' is the name of no language model; one of C"):
        hiero.load(**given, lm={"C": TINY}, classes={"D": classes})


def test_a_run_with_a_language_model_of_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("a big house\na big tree\nthe house\n" * 3)
    Path("classes").write_text("house N\ntree N\nbig A\na D\n")
    lm = "{name: C, estimate: text, order: 2, discount_fallback: true, classes: classes}"
    Path("config.yaml").write_text(f"lm: [{lm}]\n")
    for expected in ("done", "unchanged"):
        assert main(["run", "config.yaml", "-o", "out"]) == 0
        assert f"lm:C: {expected}" in capfd.readouterr().err
    model = hiero.LanguageModel.load("out/C.lm", "classes")
    assert model.score("a tree") == model.score("a house") != model.score("the house")
    Path("classes").write_text("house N\ntree N\nbig A\na D\nthe D\n")
    assert main(["run", "config.yaml", "-o", "out"]) == 0
    assert "lm:C: started (lm: entry 1: classes has changed)" in capfd.readouterr().err
