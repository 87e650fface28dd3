"""A planted signal: what a dense column says, and only sparse features can say once it is dropped.

Each item of a made-up language, of two or three words, has a right and a wrong translation: one by a phrase,
the other, in reverse order, by a rule with gaps. Which one is right either differs from item to item, so that
features of words have to tell, or follows from the length, so that features of the forms of rules can, or is
always the reversed one. No other dense feature depends on it: both translations have as many words and as
much glue. Some translations in the set that is learnt from are wrong.

In a further signal the word before an item tells, which no rule has: a marker, which is always translated by
the same word. Only a feature of rule applications can learn that.
"""

from __future__ import annotations

import itertools
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hiero import edge_feature
from hiero.core.lattice import Lattice
from hiero.features.feature_set import ARITY, EDGE_FEATURES, TEMPLATES
from hiero.jobs.tune import tune
from hiero.learning.config import ALGORITHMS

pytestmark = pytest.mark.heavy

NUM_ITEMS = 8
SETS = {"dev": (60, 1 / 16), "devtest": (20, 0.0)}  # sentences, and the share of wrong references
FULL = 95.0  # least BLEU on held-out text with the column, and with sparse features in its place
MARGIN = 40.0  # least gain of sparse features over dense ones, in BLEU on held-out text
CONTEXT_MARGIN = 25.0  # where a third of the words, those of markers, is right in any case
FEATURES = (*TEMPLATES, *EDGE_FEATURES, ARITY)
SIGNAL = dict.fromkeys(("shape", "span_size", ARITY), "form") | {"distortion": "order"}  # others: words
# MERT learns few weights.
FEATURE_OF = dict.fromkeys(ALGORITHMS, "rule_id") | {"mert": ARITY}
# For so few sentences; what is learnt how is as in the presets.
SHARDS: dict[str, dict[str, Any]] = {
    "mixsgd": {"shards": 3},
    "itermixsgd": {"shards": 3},
    "iterselsgd": {"shards": 3, "select": 30},
    "mira": {"shards": 3},
}


MARKERS = {"m0": True, "m1": False}  # whether the phrase is the right translation of the next item


@edge_feature
def left_word(edges: Any) -> Any:
    """The word before the span of a rule, with the first word of its translation."""
    return edges.sparse("Left_{}_{}", edges.left, edges.first_tgt)


def world(folder: Path, *, signal: str, seed: int = 1) -> dict[str, Any]:
    """Write a language; return the configuration.

    signal  what tells the right translation of an item: its words, its form, the order of its translation or
            the word before it
    """
    draw, items = random.Random(seed), []
    for n in range(NUM_ITEMS):
        item = [f"s{n}{letter}" for letter in "abc"[: 2 + n % 2]]
        is_phrase = {"words": n % 4 < 2, "form": len(item) == 2}.get(signal, False)
        items.append((item, is_phrase))
    grammar = folder / "grammar"
    rules = [rule for item, is_phrase in items for rule in rules_of(item, is_phrase)]
    if signal == "context":
        rules += [f"[X] ||| {marker} ||| m ||| ||| 0-0" for marker in MARKERS]
    grammar.write_text("".join(f"{rule}\n" for rule in rules))
    data = {}
    for name, (size, noise) in SETS.items():
        paths = {"source": folder / f"{name}.src", "references": folder / f"{name}.ref"}
        with paths["source"].open("w") as src, paths["references"].open("w") as ref:
            for line in (draw.choices(items, k=3) for _ in range(size)):
                if signal == "context":
                    line = [(item, draw.random() < 1 / 2) for item, _ in line]
                words = [translation(item, is_phrase != (draw.random() < noise)) for item, is_phrase in line]
                source = [item for item, _ in line]
                if signal == "context":
                    of_phrase = {is_phrase: marker for marker, is_phrase in MARKERS.items()}
                    source = [[of_phrase[is_phrase], *item] for item, is_phrase in line]
                    words = [["m", *one] for one in words]
                print(*itertools.chain(*words), file=ref)
                print(*itertools.chain(*source), file=src)
        data[name] = {key: str(path) for key, path in paths.items()}
    return {"seed": seed, "data": data, "grammar": [{"path": str(grammar)}]}


def translation(item: list[str], is_phrase: bool) -> list[str]:
    return [f"p{word}" for word in item] if is_phrase else [f"t{word}" for word in reversed(item)]


def rules_of(item: list[str], is_phrase: bool) -> list[str]:
    """The rules of both translations: an unlinked phrase, and linked rules with gaps and for these."""
    turned = translation(item, False)
    rules = [(item, translation(item, True), is_phrase, "")]
    if len(item) == 2:
        rules += [([item[0], "[X,1]"], ["[X,1]", turned[1]], not is_phrase, "0-1")]
        inner = {item[1]: turned[0]}
    else:
        around = ["[X,1]", item[1], "[X,2]"], ["[X,2]", turned[1], "[X,1]"]
        rules += [(*around, not is_phrase, "1-1")]
        inner = {item[0]: turned[2], item[2]: turned[0]}
    rules += [([src], [tgt], not is_phrase, "0-0") for src, tgt in inner.items()]
    return [
        f"[X] ||| {' '.join(src)} ||| {' '.join(tgt)} ||| Right={int(is_right)} ||| {links}"
        for src, tgt, is_right, links in rules
    ]


@pytest.fixture(scope="module")
def bleu(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """BLEU on held-out text with weights of an algorithm, with or without the column and with a feature."""

    @cache
    def found(algorithm: str, signal: str, drop: bool, feature: str = "") -> float:
        folder = tmp_path_factory.mktemp("planted")
        templates = feature.split(",") if feature else []
        features = {"templates": templates, "transform": {"Right": "drop"} if drop else {}}
        config = world(folder, signal=signal) | {"features": features}
        keys = {"algorithm": algorithm, "epochs": 3, "kbest": 100} | SHARDS.get(algorithm, {})
        return float(tune(config, folder / "run", **keys).chosen["report_bleu"])

    return found


@pytest.mark.parametrize(
    ("algorithm", "feature"),
    [*FEATURE_OF.items(), *(("sgd", feature) for feature in FEATURES if feature != FEATURE_OF["sgd"])],
)
def test_sparse_features_replace_a_dense_one(bleu: Any, algorithm: str, feature: str) -> None:
    signal = SIGNAL.get(feature, "words")
    assert bleu(algorithm, signal, False) > FULL
    dense, sparse = bleu(algorithm, signal, True), bleu(algorithm, signal, True, feature)
    print(f"{algorithm} {feature}: dense {dense:.2f}, sparse {sparse:.2f}")
    assert sparse > max(FULL, dense + MARGIN)


@pytest.mark.parametrize("algorithm", ["sgd", "kbmira"])
def test_only_a_feature_of_the_application_sees_the_word_before(bleu: Any, algorithm: str) -> None:
    built_in = bleu(algorithm, "context", True, ",".join(FEATURES)) if algorithm == "sgd" else 0.0
    own = bleu(algorithm, "context", True, f"{__name__}:left_word")
    print(f"{algorithm}: all built-in features {built_in:.2f}, a feature of the word before {own:.2f}")
    assert own > max(FULL, built_in + CONTEXT_MARGIN)


@pytest.mark.parametrize("algorithm", ["sgd", "mert"])
def test_costs_of_arcs_are_learnt(tmp_path: Path, algorithm: str) -> None:
    """Each word has a wrong reading, at a cost of 1, or of 0 in data without a signal."""
    found = {}
    for cost in (1, 0):
        folder, draw, data = tmp_path / str(cost), random.Random(1), {}
        folder.mkdir()
        (folder / "grammar").write_text(
            "".join(f"[X] ||| s{n} ||| t{n} ||| F={n % 3} ||| 0-0\n" for n in range(9))
        )
        for name in SETS:
            paths = {"source": folder / f"{name}.src", "references": folder / f"{name}.ref"}
            lines = [[draw.sample(range(9), 2) for _ in range(5)] for _ in range(30)]
            paths["references"].write_text(
                "".join(" ".join(f"t{a}" for a, _ in line) + "\n" for line in lines)
            )
            slots = [[sorted([(f"s{a}", 0.0), (f"s{b}", float(cost))]) for a, b in line] for line in lines]
            paths["source"].write_text("".join(Lattice.from_slots(line).to_plf() + "\n" for line in slots))
            data[name] = {key: str(path) for key, path in paths.items()}
        config = {"seed": 1, "data": data, "grammar": [{"path": str(folder / "grammar")}]}
        keys = {"algorithm": algorithm, "epochs": 3, "kbest": 50}
        found[cost] = float(tune(config, folder / "run", **keys).chosen["report_bleu"])
    assert found[1] > FULL
    assert found[0] < FULL - MARGIN
