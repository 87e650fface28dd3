"""Extensions that need a row of a table, beside their own code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hiero
from hiero.cli.main import main
from hiero.cli.options import Parser, add_settings, replaced
from hiero.config.config import config_of
from hiero.config.model import model_settings
from hiero.core.arrays import Floats, read_only
from hiero.core.errors import ConfigError, UsageError
from hiero.core.records import PathKey, map_paths, record, record_paths, setting
from hiero.core.symbol_kernels import gap
from hiero.core.symbols import Symbols
from hiero.decoder.config import SearchConfig
from hiero.decoder.search import SEARCHES, cube
from hiero.evaluation.bleu import sentence_bleu
from hiero.features.feature_set import BUILT_IN, TEMPLATES, feature_set
from hiero.features.index import KINDS, FeatureIndex, KeyKind, KeyPart, pack_keys
from hiero.features.names import Names
from hiero.features.shared_names import SharedNames
from hiero.features.shared_names_kernels import shared_scores_kernel
from hiero.features.weights import Weights
from hiero.grammar.cdec import parse_cdec
from hiero.grammar.config import FORMATS, Format, GrammarFormat
from hiero.grammar.reader import RuleReader
from hiero.grammar.sources import read_grammar
from hiero.jobs.tune import tune
from hiero.learning.config import ALGORITHMS, Algorithm, TuneSettings
from hiero.learning.learner import Example, LearnerContext, UpdateReport
from hiero.learning.lists import CandidateLists
from hiero.pipeline.plan import STAGES, Plan, StageKind
from hiero.tuning.vectors import read_vectors, write_vectors
from tests.worlds.grammars import rules_of
from tests.worlds.tune import Tuning

# ---- formats of grammars


class TabReader(RuleReader):
    """Reads ``source<TAB>target<TAB>value``."""

    def __init__(self, path, symbols, owner):
        super().__init__(path, symbols)
        self.owner = owner

    @staticmethod
    def recognises(line):
        return line.count(b"\t") == 2

    def read(self, chunks=None, progress=None):
        lines = b"".join(chunk.data for chunk in chunks).decode().splitlines()
        rules = [
            "[X] ||| {} ||| {} ||| {owner}={}".format(*line.split("\t"), owner=self.owner) for line in lines
        ]
        return parse_cdec(rules, self.symbols)


def test_a_format_of_grammars(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys) -> None:
    """It is recognised, read with its settings, and known to configurations and commands."""
    monkeypatch.setitem(FORMATS, "tabs", Format(f"{__name__}:{TabReader.__name__}", ("owner",)))
    path = tmp_path / "rules"
    path.write_text("a\tb\t2\na\tc\t3\n")
    symbols = Symbols()
    expected = [(b"X", (b"a",), (b"b",), {b"me": 2.0}, []), (b"X", (b"a",), (b"c",), {b"me": 3.0}, [])]
    assert rules_of(read_grammar(path, symbols, GrammarFormat(owner="me")), symbols) == expected
    assert (
        rules_of(read_grammar(path, symbols, GrammarFormat(format="tabs", owner="me")), symbols) == expected
    )
    assert main(["grammar", "convert", str(path), "--format", "tabs", "--owner", "me"]) == 0
    assert capsys.readouterr().out == "[X] ||| a ||| b ||| me=2\n[X] ||| a ||| c ||| me=3\n"
    config = config_of({"grammar": [{"path": str(path), "format": "tabs"}]})
    assert model_settings(config)["grammar"] == [
        {"format": "tabs", "owner": None, "sign": -1, "scale": "cdec"}
    ]


# ---- searches


def greedy(parse, pairs, rules, lm, weight, goal, pop_limit, most_edges):
    """Cube pruning with one candidate for each cell."""
    return cube(parse, pairs, rules, lm, weight, goal, 1, most_edges)


def test_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is used by the model, and known to configurations and commands."""
    with pytest.raises(ConfigError, match="search: algorithm: found 'greedy'"):
        config_of({"search": {"algorithm": "greedy"}})
    monkeypatch.setitem(SEARCHES, "greedy", f"{__name__}:greedy")
    assert config_of({"search": {"algorithm": "greedy"}}).search.algorithm == "greedy"
    parser = Parser()
    add_settings(parser, SearchConfig)
    assert replaced(SearchConfig(), parser.parse_args(["--search", "greedy"])).algorithm == "greedy"

    rules = [f"[X] ||| {a} ||| {b} ||| p={len(b)}" for a in ("a", "b") for b in ("c", "dd")]
    edges = {
        algorithm: hiero.load(rules=rules, weights={"p": -1.0}, algorithm=algorithm).parse("a b").num_edges
        for algorithm in ("greedy", "cube")
    }
    one_pop = hiero.load(rules=rules, weights={"p": -1.0}, pop_limit=1).parse("a b")
    assert edges["greedy"] == one_pop.num_edges < edges["cube"]


# ---- learners


class TowardsTheBest:
    """Online: moves the weights towards the best translation of a sentence, and away from the worst."""

    @classmethod
    def make(cls, settings: TuneSettings, context: LearnerContext) -> TowardsTheBest:
        return cls()

    def learn(self, batch: Sequence[Example], weight: Floats) -> UpdateReport:
        for example in batch:
            found = example.candidates
            gold = sentence_bleu("lin")(example.statistics, example.shortest)
            for place, step in ((gold.argmax(), 0.1), (gold.argmin(), -0.1)):
                mine = slice(found.first[place], found.first[place + 1])
                weight[found.id[mine]] += step * found.value[mine]
        return UpdateReport(sentences=len(batch))

    def end_epoch(self, weight: Floats) -> None:
        pass

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        pass


class BestOfTwenty:
    """Batch: the best of random weights."""

    @classmethod
    def make(cls, settings: TuneSettings, context: LearnerContext) -> BestOfTwenty:
        return cls()

    def fit(
        self, lists: CandidateLists, weight: Floats, iteration: int, seed: int
    ) -> tuple[Floats, dict[str, float]]:
        draws = np.random.default_rng([seed, iteration]).normal(size=(20, len(weight)))
        best = max([weight, *draws], key=lists.bleu)
        return best, {"predicted_bleu": lists.bleu(best)}


@pytest.mark.parametrize("learner", [TowardsTheBest, BestOfTwenty])
def test_a_learner_is_a_class_and_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], learner: type
) -> None:
    row = Algorithm(
        learner=f"{__name__}:{learner.__name__}",
        online=learner is TowardsTheBest,
        preset={"epochs": 3, "kbest": 20},
    )
    monkeypatch.setitem(ALGORITHMS, "mine", row)
    world = Tuning(tmp_path / "exp")
    found = tune(world.path, world.out, algorithm="mine")
    assert found.chosen["report_bleu"] == 100
    assert world.run("-q", "--algorithm", "mine", "--resume") == 0
    world.set(tune={"algorithm": "mine", "freeze": "dense"})
    message = world.error(capfd)
    assert message.endswith("freeze works with sgd, mixsgd, itermixsgd and iterselsgd, not with mine")


# ---- stages of hiero run


def add_count(plan: Plan) -> None:
    """Count the lines of the sets to translate."""
    for name, data in plan.test_sets():
        output = plan.out / f"{name}.count"

        def work(task, source=Path(data.source), output=output):
            lines = source.read_bytes().count(b"\n")
            output.write_text(f"{lines}\n")
            return {"lines": lines}

        inputs = {f"data: {name}: source": Path(data.source)}
        plan.add(name=f"count:{name}", work=work, inputs=inputs, outputs=(output,))


def test_a_stage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd) -> None:
    """It is planned, run, chosen by --only and skipped, like those of the package."""
    monkeypatch.setattr(
        "hiero.pipeline.plan.STAGES", {"count": StageKind(f"{__name__}:add_count", ("data",), "")}
    )
    (tmp_path / "dev").write_text("a\nb\n")
    config, out = tmp_path / "c.yaml", tmp_path / "out"
    config.write_text("data: {dev: {source: dev}, test: {source: dev}}\n")
    command = ["run", str(config), "-o", str(out)]
    assert main([*command, "--only", "count:test"]) == 0
    assert (out / "test.count").read_text() == "2\n"
    assert not (out / "dev.count").exists()
    assert main([*command, "--only", "count"]) == 0
    assert main([*command, "--dry-run"]) == 0
    assert capfd.readouterr().out == "count:dev: unchanged\ncount:test: unchanged\n"


def test_stages_that_are_not_asked_for_are_not_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(STAGES, "prep", StageKind("no_such_module:add", ("prep",), ""))
    (tmp_path / "dev").write_text("a\n")
    config = tmp_path / "c.yaml"
    config.write_text("data: {dev: {source: dev}}\ngrammar: [{path: dev}]\nweights: {path: dev}\n")
    assert main(["run", str(config), "--dry-run", "-o", str(tmp_path / "out")]) == 0


# ---- templates of rules


@pytest.fixture
def first_words(monkeypatch: pytest.MonkeyPatch) -> int:
    """A kind of features with a row in each table; kernels would make its keys."""
    kind, bit = len(KINDS), 2 * max(TEMPLATES.values())
    monkeypatch.setitem(KINDS, kind, KeyKind(b"FW:", (KeyPart.SOURCE, KeyPart.TARGET), b"_"))
    monkeypatch.setitem(TEMPLATES, "first_words", bit)
    assert feature_set(["first_words", "shape"], Symbols()).templates == bit | TEMPLATES["shape"]
    return kind


def test_a_template_of_rules(first_words: int, tmp_path: Path) -> None:
    """Its names, its features in files of vectors, and weights under cdec's names."""
    symbols, other = Symbols(), Symbols()
    other.words.intern_all([b"other", b"words"])
    key = first_words, symbols.words.intern(b"a_b"), int(gap(symbols.labels.intern(b"X"), 2))
    names = Names(symbols)
    assert (names.name(key), names.cdec_name(key)) == ("FW:a%5Fb_X2", "FW:a_b_X2")
    assert names.parse("FW:a%5Fb_X2") == key

    index, read = FeatureIndex(), FeatureIndex()
    write_vectors(tmp_path / "vectors", symbols, index, index.intern_all([key]), weight=np.array([2.5]))
    ids, values = read_vectors(tmp_path / "vectors", other, read)
    assert [Names(other).name(read.key(feature)) for feature in ids.tolist()] == [names.name(key)]
    assert values["weight"].tolist() == [2.5]

    shared = Weights(symbols, {"FW:a_b_X2": 3.0}, exact=False)
    scores = np.zeros(1)
    table, _ = shared.template_weights()
    rows, sequence = pack_keys([key])
    shared_scores_kernel(
        read_only(np.arange(2)), rows, sequence, table, SharedNames(symbols, shared).current(), scores
    )
    assert scores.tolist() == [3.0]


def test_help_lists_the_built_in_features(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["decode", "--help"])
    words = capsys.readouterr().out.replace(",", " ").split()
    assert set(BUILT_IN) <= set(words)


# ---- options


@dataclass(frozen=True, kw_only=True)
class WiderSearch(SearchConfig):
    """The search with two more options, each in one field."""

    beam: int = setting(30, "hypotheses kept per span", least=1, most=1000)
    hints: PathKey | None = setting(None, "translations to prefer")


def test_an_option_needs_a_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The key of the configuration, the flag, its help, the check, and the handling of the path."""
    parser = Parser()
    add_settings(parser, WiderSearch)
    with pytest.raises(SystemExit):
        parser.parse_args(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "--beam N hypotheses kept per span (default 30; 1 to 1000)" in text
    assert "--hints FILE translations to prefer" in text

    written = record(WiderSearch, {"beam": 3, "hints": "hints.txt"}, "search")
    based = map_paths(written, lambda key, path: f"/base/{path}")
    assert based == WiderSearch(beam=3, hints="/base/hints.txt")
    assert record_paths(based) == {"hints": "/base/hints.txt"}
    with pytest.raises(ConfigError, match="search: beam: found 0, expected 1 to 1000"):
        record(WiderSearch, {"beam": 0}, "search")

    monkeypatch.chdir(tmp_path)
    args = parser.parse_args(["--hints", "mine", "--pop-limit", "9"])
    expected = WiderSearch(beam=3, hints=str(tmp_path / "mine"), pop_limit=9)
    assert replaced(based, args, absolute=True) == expected
    with pytest.raises(UsageError, match="argument --beam: found 1001, expected 1 to 1000"):
        replaced(based, parser.parse_args(["--beam", "1001"]))
