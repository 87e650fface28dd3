"""Options of the decoder, and properties that hold for all of them."""

from __future__ import annotations

import copy
import gc
import math
import multiprocessing
import pickle
import random
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import hiero
from hiero import Derivation, Model, SearchConfig, Statistics, rule_feature
from hiero.core.errors import ConfigError, HieroError
from hiero.core.text import Segment
from hiero.decoder.parse_kernels import Parse, parse_kernel
from tests.conftest import INTERPRETED
from tests.naive import search as naive
from tests.worlds.search import LABELS, System, enumerated, steps_of, systems

# Weights here leave out what a test does not need.
pytestmark = pytest.mark.filterwarnings("ignore::hiero.core.errors.HieroWarning")

TINY = Path(__file__).parents[1] / "data" / "tiny.arpa"
RULES = [
    "[X] ||| das ||| the ||| p=0.5",
    "[X] ||| das ||| that ||| p=1",
    "[X] ||| haus ||| house ||| p=0.25",
    "[X] ||| hat [X,1] gesehen ||| saw [1] ||| p=0.5",
    "[X] ||| [X,1] haus ||| [1] home ||| p=2",
]
WEIGHTS = {"p": -1.0, "PassThrough": -2.0, "Glue": -0.5}


def model_of(rules: Sequence[str] = RULES, weights: Mapping[str, float] = WEIGHTS, **how: Any) -> Model:
    return hiero.load(rules=rules, weights=weights, **how)


def translations(model: Model, sentence: str) -> list[str]:
    return [d.text for d in model.parse(sentence).kbest(1000)]


# ---- words


def test_a_sentence_is_translated() -> None:
    best = model_of().translate("er hat das haus gesehen")
    assert best.text == "er saw the home"
    assert best.score == -0.5 - 2.0 - 0.5 - 2.0 - 0.5
    expected = {"p": 3.0, "PassThrough": 1.0, "Glue": 1.0, "WordPenalty": -4 / math.log(10)}
    assert best.features == pytest.approx(expected)


def test_pass_through() -> None:
    assert translations(model_of(), "das x") == ["the x", "that x", "das x"]
    assert translations(model_of(pass_through="oov"), "das x") == ["the x", "that x"]
    none = model_of(pass_through="none")
    assert translations(none, "das x") == []
    assert translations(none, "das das") == ["the the", "the that", "that the", "that that"]


def test_words_in_matching_rules_are_known() -> None:
    # "hat" and "gesehen" are not in the positions of the rule.
    oov = model_of(pass_through="oov")
    assert translations(oov, "gesehen hat") == ["gesehen hat"]
    assert translations(oov, "hat das gesehen") == ["saw the", "saw that"]


@pytest.mark.parametrize(
    ("oov", "text"), [("copy", "the x house"), ("drop", "the house"), ("mark", "the x_OOV house")]
)
@pytest.mark.parametrize("pass_through", ["all", "oov"])
def test_unknown_words(oov: str, text: str, pass_through: str) -> None:
    model = model_of(oov=oov, pass_through=pass_through)
    best = model.translate("das x haus")
    assert best.text == text
    assert best.features["PassThrough"] == 1.0
    assert best.alignment == ([(1, 1)] if oov != "drop" else [])
    # Known words are copied as they are.
    assert ("das haus" in translations(model, "das haus")) == (pass_through == "all")


def test_dropping_all_words_of_a_sentence() -> None:
    best = model_of(oov="drop").translate("x y")
    assert (best.text, best.words.tolist(), best.score) == ("", [], -4.5)


def test_special_symbols_as_words() -> None:
    words = [
        "|||",
        "[X,1]",
        "[X]",
        "\u2028",
        "\u00a0",
        "\x00",
        "<s>",
        "</s>",
        "<unk>",
        "\ufeff",
        "&#124;",
        "]",
    ]
    model = model_of(lm=TINY)
    best = model.translate(Segment(tuple(words)))
    assert best.text == " ".join(words)
    assert translations(model, "a\u2028b\tc\u00a0d  e") == ["a\u2028b c\u00a0d e"]


# ---- glue, spans, categories


def test_without_glue_a_rule_must_cover_the_sentence() -> None:
    rules = [*RULES, "[S] ||| [X,1] . ||| [1] !"]
    assert translations(model_of(rules, glue=False, pass_through="oov"), "das haus .") == [
        "the home !",
        "that home !",
    ]
    assert not model_of(rules, glue=False).parse("das haus")
    assert translations(model_of(rules, pass_through="oov"), "das haus")[0] == "the house"


@pytest.mark.parametrize(("span_limit", "longest"), [(1, 1), (2, 2), (3, 2), (4, 4), (15, 4)])
def test_span_limit_applies_to_rules_but_not_to_glue(span_limit: int, longest: int) -> None:
    forest = model_of(span_limit=span_limit).parse("er hat das haus gesehen und das haus " + "x " * 20)
    spans = forest.node_end - forest.node_start
    glued = np.array([forest.labels.text(label) == "S" for label in forest.node_label.tolist()])
    assert spans[~glued].max() == longest
    assert spans[glued].max() == 28
    best = forest.viterbi()
    assert best.text.startswith("er saw the home" if longest == 4 else "er hat the")


def test_user_defined_categories() -> None:
    rules = ["[NP] ||| das haus ||| the house", "[T] ||| [NP,1] [NP,2] ||| [2] [1]"]
    own = model_of(rules, goal="T", category="NP", pass_through="none")
    assert sorted(translations(own, "das haus das haus")) == ["the house the house"]
    assert len(own.parse("das haus das haus").kbest(9, unique=False)) == 2
    assert not model_of(rules, pass_through="none").parse("das haus")


def test_glue_is_used_in_a_cycle_of_unary_rules() -> None:
    for circle in (["[X] ||| [S,1] ||| [1]"], ["[Y] ||| [S,1] ||| [1]", "[X] ||| [Y,1] ||| [1]"]):
        rules = ["[S] ||| never ||| never", *circle, *RULES]  # S gets the lowest number
        assert translations(model_of(rules, pass_through="none"), "das haus") == translations(
            model_of(pass_through="none"), "das haus"
        )


# ---- where rules come from


def test_several_grammars_are_one(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.grammar" for number in range(len(RULES))]
    for path, rule in zip(paths, RULES, strict=True):
        path.write_text(rule + "\n")
    together = hiero.load(grammar=paths, weights=WEIGHTS)
    sentence = "er hat das haus gesehen"
    found, expected = (model.parse(sentence).kbest(100, unique=False) for model in (together, model_of()))
    assert [(d.score, d.text, steps_of(d)) for d in found] == [
        (d.score, d.text, steps_of(d)) for d in expected
    ]


def test_grammars_of_sentences(tmp_path: Path) -> None:
    (tmp_path / "one.grammar").write_text("[X] ||| das ||| this ||| p=-1\n")
    (tmp_path / "two.grammar").write_text("[X] ||| haus ||| building ||| p=-1\n")
    model = model_of(base=tmp_path)
    for sentence, text in (
        ("das haus", "the house"),
        ('<seg id="1" grammar="one.grammar">das haus</seg>', "this house"),
        ('<seg grammar="two.grammar" grammar1="one.grammar">das haus</seg>', "this building"),
        ("das haus", "the house"),
    ):
        best = model.translate(sentence)
        assert best.text == text
    with pytest.raises(HieroError, match=r"three\.grammar"):
        model.translate('<seg grammar="three.grammar">das haus</seg>')


def test_no_rules_at_all() -> None:
    assert translations(model_of([], oov="mark"), "das haus") == ["das_OOV haus_OOV"]
    assert not model_of([], pass_through="none").parse("das haus")


# ---- no derivation


@pytest.mark.parametrize("sentence", ["", "   ", "x", "das x", '<seg id="1"></seg>'])
def test_no_derivation(sentence: str) -> None:
    model = model_of(pass_through="none", lm=TINY)
    statistics = Statistics()
    forest = model.parse(sentence, statistics)
    assert not forest
    assert (forest.num_derivations, forest.kbest(5)) == (0.0, [])
    best = model.translate(sentence)
    assert not best
    assert (best.text, best.words.tolist(), best.alignment, best.spans, best.features) == ("", [], [], [], {})
    assert (str(best.tree()), repr(best)) == ("()", f"<Derivation {best.score:.9g}: >")
    assert best.score == (-math.inf if forest.source else 0.0)
    assert (statistics.sentences, statistics.failed, statistics.mean_score) == (1, 1, 0.0)
    with pytest.raises(HieroError, match="no derivation"):
        forest.viterbi()


def test_settings_are_checked() -> None:
    for wrong in (
        {"span_limit": 0},
        {"pop_limit": -1},
        {"max_edges": 0},
        {"kbest": -1},
        {"pop_limit": 2**40},
        {"pass_through": "some"},
        {"oov": "keep"},
    ):
        ((key, value),) = wrong.items()
        with pytest.raises(ConfigError, match=f"{key}: found '?{value}'?, expected"):
            SearchConfig(**wrong)


# ---- features


@rule_feature(per_rule=True)
def shared_words(rule):  # type: ignore[no-untyped-def]
    """Words that are on both sides."""
    if shared := set(rule.src) & set(rule.tgt) - {"[X,1]"}:
        yield "Shared", float(len(shared))
        for word in shared:
            yield f"Shared_{word}", 1.0


def weight_of(name: str) -> float:
    return (sum(map(ord, name)) % 9 - 4) / 4


NAMES = [f"SpanSize_{label}_{size}" for label in LABELS for size in range(1, 6)]
NAMES += [f"GapSize_{label}{k}_{size}" for label in LABELS for k in (1, 2) for size in range(1, 6)]
NAMES += [
    "Shared",
    *(f"Shared_{word}" for word in ("a", "b", "z", "[X,2]", "[Y,1]", "[Y,2]", "[S,1]", "[S,2]")),
]


def naive_features(derivation: naive.Derivation) -> dict[str, float]:
    total = naive.features(derivation)
    for step in naive.steps(derivation):
        shared = set(step.rule.src) & set(step.rule.tgt) - {"[X,1]"}
        for name, value in [("Shared", float(len(shared))), *((f"Shared_{word}", 1.0) for word in shared)]:
            total[name] = total.get(name, 0.0) + value
    return {name: value for name, value in total.items() if value}


@given(systems())
def test_features_add_up(system: System) -> None:
    """Scores and listed features of rules and spans equal those computed from the finished derivation."""
    system = replace(system, more_weights={name: weight_of(name) for name in NAMES})
    expected = [
        (score + sum(weight_of(name) * value for name, value in naive_features(d).items()), d)
        for score, d in enumerated(system)
    ]
    with system.opened(features=["span_size", shared_words]) as model:
        forest = model.parse(Segment(system.words))
        found = forest.kbest(10_000, unique=False)
        assert sorted(d.score for d in found) == sorted(score for score, _ in expected)
        by_steps = {
            (score, *((*step.rule[:3], *step.cell[1:]) for step in naive.steps(d))): d
            for score, d in expected
        }
        for d in found[:20]:
            twin = by_steps[(d.score, *steps_of(d))]
            own = {name: value for name, value in d.features.items() if name in NAMES}
            assert own == naive_features(twin)
            product = sum(model.weights.get(name, 0.0) * value for name, value in d.features.items())
            assert product == pytest.approx(d.score, abs=1e-9)
        for d in forest.prune(1.0).kbest(5) if forest else []:
            product = sum(model.weights.get(name, 0.0) * value for name, value in d.features.items())
            assert product == pytest.approx(d.score, abs=1e-9)


def test_penalties_and_unknown_words() -> None:
    weights = {"WordPenalty": 1.0, "LM": 0.5, "LM_OOV": -3.0, "SourceWordPenalty": 0.25, "Arity_1": 2.0}
    model = model_of(weights=weights, lm={"LM": TINY}, features=["source_word_penalty", "arity"])
    best = model.translate("hat das gesehen")
    word = -1 / math.log(10)
    assert best.text == "saw the"
    assert best.features == pytest.approx(
        {
            "p": 1.0,
            "WordPenalty": 2 * word,
            "LM_OOV": 1.0,
            "LM": best.lm_scores[0],
            "SourceWordPenalty": 3 * word,
        }
        | {"Arity_0": word, "Arity_1": 2 * word}
    )
    assert best.score == pytest.approx(sum(weights.get(k, 0.0) * v for k, v in best.features.items()))


def test_changed_weights_apply_to_the_next_sentence() -> None:
    model = model_of()
    assert translations(model, "das")[0] == "the"
    model.weights["p"] = 1.0
    assert translations(model, "das")[0] == "that"
    del model.weights["p"]
    assert model.translate("das").score == 0.0
    model.weights = {"p": 2.0}
    assert model.translate("das").score == 2.0


def test_other_weights(tmp_path: Path) -> None:
    model, path = model_of(), tmp_path / "weights"
    path.write_text("p 1\n")
    # From a mapping, from a file, and from another model, which numbers features in its own way.
    foreign = model_of(rules=RULES[::-1], weights={"Glue": 1.0, "p": 1.0}).weights
    for weights in ({"p": 1.0}, path, str(path), foreign):
        other = model.with_weights(weights)
        assert other.translate("das").text == "that"
        assert model.translate("das").text == "the"
    assert other.weights == {"p": 1.0, "Glue": 1.0}
    assert other.weights is not foreign
    assert model.with_weights(model.weights).weights is model.weights
    with pytest.raises(HieroError, match="nope: found no such file"):
        model.with_weights(tmp_path / "nope")


# ---- representation


def test_representation() -> None:
    assert repr(full_model(span_limit=9)) == (
        "<Model: grammars: 5 rules, those named by <seg>; language models: LM (order 3, 9 words);"
        " features: source_bigram, shared_words, span_size; search: span_limit=9, pop_limit=200; 7 weights>"
    )
    assert repr(model_of().weights) == "<Weights: p=-1, PassThrough=-2, Glue=-0.5>"
    assert repr(full_model().weights).endswith(", Shared=0.1, 2 more>")
    assert repr(hiero.Weights(model_of().symbols)) == "<Weights: none>"


# ---- rules as text


def test_rules_as_text() -> None:
    model = model_of(["[X] ||| das [Y,1] ||| [1] |||", "[Y] ||| b a ||| x %y ||| p=0.5 q=2 ||| 0-1 1-0"])
    best = model.translate("das b a ||| c")
    penalty = "WordPenalty=-0.434294482"
    assert best.rule_texts == [
        "[S] ||| [S,1] ||| [1]",
        "[S] ||| [S,1] [X,2] ||| [1] [2] ||| Glue=1",
        "[S] ||| [S,1] [X,2] ||| [1] [2] ||| Glue=1",
        "[S] ||| [X,1] ||| [1]",
        "[X] ||| das [Y,1] ||| [1]",
        "[Y] ||| b a ||| x %y ||| WordPenalty=-0.868588964 p=0.5 q=2 ||| 0-1 1-0",
        f"[X] ||| &#124;&#124;&#124; ||| &#124;&#124;&#124; ||| PassThrough=1 {penalty} ||| 0-0",
        f"[X] ||| c ||| c ||| PassThrough=1 {penalty} ||| 0-0",
    ]
    assert len(best.rule_texts) == len(best.rules) == len(best.spans)
    assert model.with_weights({}).parse("b").prune(0.0).viterbi().rule_texts[-1].startswith("[X] ||| b ||| b")


def test_features_of_rules_add_up() -> None:
    best = full_model().translate("er hat das haus gesehen")
    total: dict[str, float] = {}
    for text in best.rule_texts:
        for field in text.split(" ||| ")[3].split() if text.count("|||") > 2 else []:
            name, _, value = field.rpartition("=")
            total[name] = total.get(name, 0.0) + float(value)
    assert total == pytest.approx(best.features)


# ---- pickling


def full_model(**how: Any) -> Model:
    weights = {**WEIGHTS, "LM": 0.5, "Shared": 0.1, "SpanSize_X_2": 0.2, "%~RBS:X_haus": 0.3}
    features = ["span_size", "source_bigram", shared_words]
    return model_of(weights=weights, lm={"LM": TINY}, features=features, **how)


def content(derivation: Derivation) -> tuple[Any, ...]:
    return (
        derivation.text,
        derivation.score,
        derivation.features,
        derivation.alignment,
        derivation.spans,
        str(derivation.tree()),
        derivation.lm_scores.tolist(),
    )


def test_forests_and_derivations_are_pickled() -> None:
    forest = full_model().parse("er hat das haus gesehen")
    other = pickle.loads(pickle.dumps(forest))
    assert repr(other) == repr(forest)
    for name in ("edge_score", "edge_rule", "edge_lm", "node_label", "node_start", "node_end"):
        np.testing.assert_array_equal(getattr(other, name), getattr(forest, name))
    pairs = list(zip(other.kbest(20, unique=False), forest.kbest(20, unique=False), strict=True))
    for one, original in pairs:
        assert (one.text, one.score, str(one.tree())) == (original.text, original.score, str(original.tree()))
        assert one.features == pytest.approx(original.features)
        assert content(pickle.loads(pickle.dumps(original))) == content(original)
        assert content(pickle.loads(pickle.dumps(one))) == content(one)
    assert pickle.loads(pickle.dumps(forest.viterbi())).forest.source == forest.source
    with pytest.raises(HieroError, match="does not come from a model"):
        _ = other.features


@pytest.mark.parametrize("suffix", [".json.gz", ".npz"])
def test_saved_forests_have_features(tmp_path: Path, suffix: str) -> None:
    model = full_model()
    forest = model.parse("er hat das haus gesehen")
    forest.save(tmp_path / f"forest{suffix}")
    other = hiero.Forest.load(tmp_path / f"forest{suffix}")
    found, originals = other.kbest(20, unique=False), forest.kbest(20, unique=False)
    assert len(found) == len(originals) > 5
    for one, original in zip(found, originals, strict=True):
        assert one.features == pytest.approx(original.features)
        assert sum(map(len, (one.features, original.features))) > 0


def test_forests_are_rescored() -> None:
    model = full_model()
    forest = model.parse("er hat das haus gesehen")
    weights = {**model.weights, "LM": -0.25, "p": 3.0, "SpanSize_X_2": 0.0}
    for one in (forest, pickle.loads(pickle.dumps(forest))):
        other = one.with_weights(weights)
        expected = sorted(
            sum(weights.get(name, 0.0) * value for name, value in d.features.items())
            for d in forest.kbest(1000, unique=False)
        )
        scores = [d.score for d in other.kbest(1000, unique=False)]
        assert sorted(scores) == pytest.approx(expected)
        assert scores != [d.score for d in one.kbest(1000, unique=False)]
        same = one.with_weights(model.weights)
        np.testing.assert_allclose(same.edge_score, forest.edge_score, atol=1e-6)


def test_an_empty_derivation_is_pickled() -> None:
    for sentence in ("", "das x"):
        best = full_model(pass_through="none").translate(sentence)
        other = pickle.loads(pickle.dumps(best))
        assert not other
        assert content(other) == content(best)


def test_models_are_pickled_with_their_weights() -> None:
    model = full_model(pop_limit=20)
    model.weights["p"] = 1.0
    sentence = "er hat das haus gesehen"
    expected = content(model.translate(sentence))
    data = pickle.dumps(model)
    one, two = pickle.loads(data), pickle.loads(data)
    assert one.search == model.search
    one.weights["p"] = -1.0
    assert content(two.translate(sentence)) == expected != content(one.translate(sentence))
    assert one.sources is model.sources, "a process that has the model shares its files"
    for other in (copy.deepcopy(model), copy.copy(model), model.with_weights(two.weights)):
        assert content(other.translate(sentence)) == expected
    del model, one, two, other
    gc.collect()
    again = pickle.loads(data)
    assert content(again.translate(sentence)) == expected
    assert pickle.loads(data).sources is again.sources, "files are read once"


def test_models_that_cannot_be_pickled() -> None:
    @rule_feature(per_rule=True)
    def local(rule):  # type: ignore[no-untyped-def]
        yield "Local", 1.0

    with pytest.raises(HieroError, match=r"cannot be pickled: .*local.*top level of a module"):
        pickle.dumps(model_of(features=[local]))
    model = model_of()
    with pytest.raises(HieroError, match=r"not made by hiero\.load"):
        pickle.dumps(Model(model.symbols, model.sources, model.language_models, model.weights))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_pool_of_processes(method: str) -> None:
    model = full_model()
    lines = ["er hat das haus gesehen", "", "das haus", "x y das", "hat haus gesehen"]
    expected = [content(model.translate(line)) for line in lines]
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert [content(best) for best in pool.map(model.translate, lines, 2)] == expected
        assert [forest.num_edges for forest in pool.map(model.parse, lines)] == [
            model.parse(line).num_edges for line in lines
        ]


# ---- many sentences


def test_what_is_not_a_sentence() -> None:
    model = model_of()
    for wrong, message in (
        (["das", "haus"], "type list, expected a str .*translate_all"),
        (b"das haus", "type bytes, expected a str .decode"),
        (7, "type int, expected a str"),
        (None, "type NoneType, expected a str"),
    ):
        with pytest.raises(HieroError, match=message):
            model.translate(wrong)  # type: ignore[arg-type]
        with pytest.raises(HieroError, match=message):
            list(model.translate_all([wrong]))  # type: ignore[list-item]
    with pytest.raises(HieroError, match="found one str, expected several sentences"):
        model.translate_all("das haus")
    with pytest.raises(HieroError, match="threads: found 0"):
        model.translate_all(["das haus"], threads=0)


@pytest.mark.parametrize("threads", [1, 3])
def test_translating_all(threads: int) -> None:
    rules, sentences = many_sentences()
    model = model_of(rules, {"p": -1.0, "LM": 0.5}, lm={"LM": TINY}, pop_limit=7)
    expected = [model.translate(sentence) for sentence in sentences]
    lines = (f"{sentence}\n" for sentence in sentences)
    found = model.translate_all(lines, threads)
    assert next(lines) == f"{sentences[0]}\n", "nothing is read before the first result is asked for"
    assert [(d.text, d.score) for d in found] == [(d.text, d.score) for d in expected[1:]]


def many_sentences() -> tuple[list[str], list[str]]:
    """Rules and sentences, some with unknown words."""
    rng = random.Random(7)
    words, targets = "abcdef", ["the", "cat", "sat", "on", "straße", "unseen"]
    rules = [
        f"[X] ||| {w} ||| {t} ||| p={rng.randrange(8) / 4}" for w in words for t in rng.sample(targets, 3)
    ]
    rules += [f"[X] ||| [X,1] {w} [X,2] ||| [2] {rng.choice(targets)} [1] ||| p=0.25" for w in words]
    rules += [f"[X] ||| {w} [X,1] ||| [1] {rng.choice(targets)} ||| p=0.5" for w in words]
    sentences = [" ".join(rng.choices(words, k=rng.randrange(8))) for _ in range(12 if INTERPRETED else 30)]
    return rules, [sentence + f" new{i}" * (i % 3 == 0) for i, sentence in enumerate(sentences)]


@pytest.mark.parametrize("threads", [1, 4])
def test_results_do_not_depend_on_threads_or_order(threads: int) -> None:
    rules, sentences = many_sentences()

    def run(order: Sequence[int], threads: int) -> list[Any]:
        model = model_of(rules, {"p": -1.0, "LM": 0.5, "Glue": -0.25}, lm={"LM": TINY}, pop_limit=7)
        model.warm_up()

        def one(i: int) -> tuple[int, Any, Any]:
            found = model.parse(sentences[i]).kbest(20)
            return i, [(d.score, d.text, d.features) for d in found], [steps_of(d) for d in found]

        with ThreadPoolExecutor(threads) as executor:
            return sorted(executor.map(one, order), key=lambda result: result[0])

    order = random.Random(threads).sample(range(len(sentences)), len(sentences))
    assert run(order, threads) == run(range(len(sentences)), 1)


@pytest.mark.heavy
def test_size_is_linear_in_the_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the words, twice the cells, bundles, nodes and edges, although glue reaches back to word 0."""
    rules, _ = many_sentences()
    model = model_of(rules, {"p": -1.0, "LM": 0.5}, lm={"LM": TINY}, pop_limit=3, span_limit=3)
    parses: list[Parse] = []

    def spy(*arguments: Any) -> Parse:
        parses.append(parse_kernel(*arguments))
        return parses[-1]

    monkeypatch.setattr("hiero.decoder.parse.parse_kernel", spy)
    sizes = []
    for num_words in (125, 250, 500):
        statistics = Statistics()
        assert model.parse(" ".join("abcdef"[i * i % 6] for i in range(num_words)), statistics)
        parse = parses[-1]
        sizes.append(
            [len(parse.cell), len(parse.rules), statistics.nodes, statistics.edges, statistics.scored]
        )
    shorter, middle, longer = np.array(sizes)
    assert (longer - middle <= 2.1 * (middle - shorter)).all(), sizes
    assert (longer < 500 * np.array([7, 30, 20, 25, 90])).all(), sizes


@pytest.mark.parametrize("weight", [1e308, -1e308])
def test_scores_that_are_not_finite(weight: float) -> None:
    rules = ["[X] ||| a ||| b ||| F=10", "[X] ||| [X,1] c ||| [1] d ||| F=10"]
    model = hiero.load(rules=rules, weights={"F": weight, "Glue": 1.0})
    with pytest.raises(
        HieroError, match=r"sentence of 2 words: the score of a rule is -?inf \(weights or val"
    ):
        model.translate("a c")


def test_sums_of_scores_that_are_not_finite() -> None:
    rules = ["[X] ||| a ||| b ||| F=1", "[X] ||| [X,1] c ||| [1] d ||| F=1"]
    model = hiero.load(rules=rules, weights={"F": 1e308})
    with pytest.raises(HieroError, match="sentence of 8 words: the score of the best translation is inf"):
        model.translate("a c a c a c a c")


def test_brackets_reorder_phrases() -> None:
    """A grammar without gaps can swap adjacent spans, within the span limit, at a price."""
    lines = [f"[X] ||| {a} ||| {b} ||| a=1" for a, b in (("rot", "red"), ("haus", "house"), ("gut", "good"))]
    swapped = {"Bracket": -0.1, "Distortion": 0.5, "a": -1.0, "PassThrough": -9.0}
    search = {"brackets": True, "pop_limit": 0}
    found = {}
    for name, weights, more in (
        ("swapped", swapped, {}),
        ("monotone", swapped | {"Distortion": -0.5}, {}),
        ("limited", swapped, {"span_limit": 2}),
    ):
        model = hiero.load({"search": search | more}, rules=lines, weights=weights, features=["distortion"])
        found[name] = model.translate("haus rot gut")
    assert found["swapped"].text == "good red house"
    # Words 0-1 and 2 change places (3 words), and in one of them 0 and 1 (2 words).
    features = dict(found["swapped"].features)
    assert features.pop("WordPenalty")
    assert features == {"a": 3.0, "Bracket": 2.0, "Distortion": 5.0}
    assert found["swapped"].score == pytest.approx(-3 - 0.2 + 2.5)
    assert found["monotone"].text == "house red good"
    assert "Distortion" not in found["monotone"].features
    assert found["limited"].text in ("red house good", "house good red")
    with pytest.raises(HieroError, match="the weight Bracket names no feature"):
        hiero.load(rules=lines, weights=swapped, features=["distortion"], strict=True)
