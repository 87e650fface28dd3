"""Orientation features of rule applications, against naive twins and in the decoder."""

from __future__ import annotations

import functools
import math
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hiero.core.arrays import read_only
from hiero.core.symbol_kernels import gap_index
from hiero.core.symbols import Symbols, table_entry
from hiero.decoder.forest import Forest
from hiero.features.index import EdgeBatch
from hiero.grammar.cdec import parse_cdec
from hiero.grammar.rules import Rules
from hiero.reordering.block_kernels import CLASS, cut_rules_kernel
from hiero.reordering.config import ExampleConfig, LearnConfig
from hiero.reordering.evaluate import evaluate, evaluate_majority, evaluations_of
from hiero.reordering.examples import extract_examples, open_examples
from hiero.reordering.feature import Distortion, Orientation, Reordering
from hiero.reordering.feature_kernels import PlaceOdds, PlaceWeights, block_share, odds_kernel
from hiero.reordering.gap_kernels import gap_labels_kernel, gap_rows_kernel
from hiero.reordering.learn import calibrated, learn_dual, learn_primal, train_model, without_pairs
from hiero.reordering.model import Classifier, Lexicalised, open_model, smoothed_prior
from tests.naive import reorder as naive
from tests.worlds.reorder import write_bitext

SOURCE = ["hund", "katze", "sieht", "kauft", ".", "dass", "neu"]
TARGET = ["dog", "cat", "sees", "buys", ".", "that", "new"]


@st.composite
def rules(draw: st.DrawFn) -> naive.Rule:
    num_gaps = draw(st.integers(0, 2))
    sides: list[list[naive.Symbol]] = []
    for words in (SOURCE, TARGET):
        side: list[naive.Symbol] = list(draw(st.lists(st.sampled_from(words), min_size=1, max_size=5)))
        places = sorted(draw(st.integers(0, len(side))) for _ in range(num_gaps))
        order = list(range(1, num_gaps + 1))
        if words is TARGET and draw(st.booleans()):
            order.reverse()
        for shift, (place, gap) in enumerate(zip(places, order, strict=True)):
            side.insert(place + shift, gap)
        sides.append(side)
    src, tgt = sides
    links = [
        (i, j)
        for i in range(len(src))
        for j in range(len(tgt))
        if isinstance(src[i], str) and isinstance(tgt[j], str)
    ]
    return src, tgt, draw(st.lists(st.sampled_from(links), max_size=6, unique=True)) if links else []


def text_of(rule: naive.Rule) -> str:
    def side(symbols: object) -> str:
        return " ".join(f"[X,{s}]" if isinstance(s, int) else s for s in symbols)  # type: ignore[attr-defined]

    links = " ".join(f"{i}-{j}" for i, j in rule[2])
    return f"[X] ||| {side(rule[0])} ||| {side(rule[1])} ||| a=1" + (f" ||| {links}" if links else "")


def as_rules(found: list[naive.Rule], symbols: Symbols) -> Rules:
    table = parse_cdec([text_of(rule) for rule in found], symbols)
    return Rules._make(read_only(array) for array in table.rules)


@st.composite
def applications(draw: st.DrawFn) -> tuple[list[naive.Rule], list[str], list[tuple]]:
    """Rules, a sentence, and where rules are applied: (rule, start, spans of its gaps)."""
    found = draw(st.lists(rules(), min_size=1, max_size=3))
    sentence: list[str] = []
    places = []
    for _ in range(draw(st.integers(1, 3))):
        number = draw(st.integers(0, len(found) - 1))
        start, gaps = len(sentence), {}
        for symbol in found[number][0]:
            if isinstance(symbol, int):
                filler = draw(st.lists(st.sampled_from(SOURCE), min_size=1, max_size=9))
                gaps[symbol] = (len(sentence), len(sentence) + len(filler))
                sentence += filler
            else:
                sentence.append(symbol)
        places.append((number, start, gaps))
    return found, sentence, places


def batch_of(world: tuple[list[naive.Rule], list[str], list[tuple]], symbols: Symbols) -> EdgeBatch:
    _, sentence, places = world
    ends = [*(start for _, start, _ in places[1:]), len(sentence)]
    nowhere = (-1, -1)
    return EdgeBatch(
        np.array([rule for rule, _, _ in places], np.int32),
        np.array([start for _, start, _ in places], np.int32),
        np.array(ends, np.int32),
        np.array([gaps.get(1, nowhere) + gaps.get(2, nowhere) for _, _, gaps in places], np.int32),
        symbols.words.intern_all(word.encode() for word in sentence),
    )


@given(st.lists(rules(), min_size=1, max_size=4))
def test_blocks_equal_their_twin(found: list[naive.Rule]) -> None:
    table = as_rules(found, Symbols())
    which = np.array([*range(len(found)), 0], np.int32)[::-1].copy()
    blocks = cut_rules_kernel(which, table)
    for r, rule in enumerate(found):
        first, last = blocks.first[blocks.place[r]], blocks.first[blocks.place[r] + 1]
        expected = naive.blocks(rule)
        assert blocks.block[first:last, CLASS].tolist() == [label for _, label in expected]
        words = [[min(b.tgt), max(b.tgt) + 1, min(b.src), max(b.src)] for b, _ in expected]
        assert blocks.words[first:last].tolist() == words
        assert (blocks.rule[first:last] == r).all()


def classes(text: str) -> list[int]:
    """The classes of the blocks of one rule, by its text."""
    table = parse_cdec([text], Symbols())
    rules_of = Rules._make(read_only(array) for array in table.rules)
    return cut_rules_kernel(np.zeros(1, np.int32), rules_of).block[:, CLASS].tolist()


CLASS_NAMES = ("Monotone", "Swap", "Other")
M, S, O = naive.MONOTONE, naive.SWAP, naive.OTHER  # noqa: E741


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("[X] ||| das haus ||| the house ||| a=1 ||| 0-0 1-1", []),
        ("[X] ||| das [X,1] ||| the [1] ||| a=1 ||| 0-0", [M]),
        ("[X] ||| [X,1] haus ||| house [1] ||| a=1 ||| 1-0", [S]),
        # Verb-final: the gap precedes its verb.
        ("[X] ||| hat [X,1] versprochen ||| has promised [1] ||| a=1 ||| 0-0 2-1", [O, S]),
        ("[X] ||| ne [X,1] pas ||| not [1] ||| a=1 ||| 0-0 2-0", [O]),
        ("[X] ||| [X,1] de [X,2] ||| [2] 's [1] ||| a=1 ||| 1-1", [S, S]),
        ("[X] ||| [X,1] de [X,2] ||| [2] [1] ||| a=1", [S]),  # words without links do not separate them
        ("[X] ||| [X,1] von [X,2] ||| [1] [2] of ||| a=1 ||| 1-2", [O, S]),
        ("[X] ||| [X,1] [X,2] ||| [1] , [2] ||| a=1", [M]),
    ],
)
def test_orientations_of_known_rules(rule: str, expected: list[int]) -> None:
    assert classes(rule) == expected


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Classifier, Lexicalised, Path]:
    folder = tmp_path_factory.mktemp("models")
    paths = write_bitext(folder, 80)
    config = ExampleConfig(min_count=2, window=2, edges=True, max_length=3)
    extract_examples(*paths, folder / "ex", config)
    extract_examples(*paths, folder / "bag.ex", replace(config, context="bag"))
    train_model(folder / "ex", folder / "dual", LearnConfig(passes=20))
    train_model(folder / "bag.ex", folder / "bag", LearnConfig(passes=5))
    train_model(folder / "ex", folder / "twice", LearnConfig(passes=5, bidirectional=True))
    train_model(folder / "bag.ex", folder / "bag.twice", LearnConfig(passes=5, bidirectional=True))
    train_model(folder / "ex", folder / "lex", LearnConfig(learner="lexicalised"))
    train_model(folder / "ex", folder / "both", LearnConfig(learner="lexicalised", bidirectional=True))
    dual, lex = open_model(folder / "dual"), open_model(folder / "lex")
    assert isinstance(dual, Classifier)
    assert isinstance(lex, Lexicalised)
    return dual, lex, folder


def weights_by_name(model: Classifier, of_gaps: bool = False, ahead: bool = False) -> dict[tuple, np.ndarray]:
    """The weights of a model by the content of features; or those for the class of the next block."""
    kinds = {0: "bias", 1: "pair", 2: "first", 3: "last"}

    def word(table: object, number: int) -> str:
        return table_entry(table, number - 1).decode() if number else ""  # type: ignore[arg-type]

    found: dict[tuple, np.ndarray] = {}
    both = model.gap_weight if of_gaps else model.weight
    for key, weight in zip(model.key.tolist(), both[:, 3:] if ahead else both[:, :3], strict=True):
        kind, src, tgt = key >> 56, key >> 28 & 0xFFFFFFF, key & 0xFFFFFFF
        if kind == 0:
            found["bias",] = weight
        elif kind == 1:
            found["pair", word(model.src, src), word(model.tgt, tgt)] = weight
        elif kind < 4:
            found[kinds[kind], word(model.src, src)] = weight
        else:
            side = "before" if kind % 2 == 0 else "after"
            found[side, (kind - 4) // 2, word(model.src, src)] = weight
    return found


@functools.cache
def counts_by_words(folder: Path, max_length: int, ahead: bool = False) -> dict[tuple, list[int]]:
    """The count of each class for each phrase pair and source phrase of the bitext; or of the next phrase."""
    counts: dict[tuple, list[int]] = {}
    lines = [(folder / name).read_text().splitlines() for name in ("src", "tgt", "align")]
    for src_line, tgt_line, link_line in zip(*lines, strict=True):
        src, tgt = src_line.split(), tgt_line.split()
        links = [tuple(map(int, link.split("-"))) for link in link_line.split()]
        found = naive.phrases(len(src), len(tgt), links, max_length)
        labels = naive.orientations(found, links, False)
        if ahead:
            labels = naive.next_orientations(found, (len(src), len(tgt)), links, False)
        for (a, b, c, d), label in zip(found, labels, strict=True):
            for key in ((tuple(src[a:b]), tuple(tgt[c:d])), (tuple(src[a:b]),)):
                counts.setdefault(key, [0, 0, 0])[label] += 1
    return counts


def prior_of(model: Lexicalised, ahead: bool) -> list[float]:
    arrays = model.arrays(read_only(np.zeros(0, np.uint64)))
    return list((arrays.next_prior if ahead else arrays.prior).tolist())


def judge_of(  # type: ignore[no-untyped-def]
    model: Classifier | Lexicalised, folder: Path, rule: naive.Rule, sentence: list[str], ahead: bool = False
):
    settings = model.settings
    if isinstance(model, Lexicalised):
        counts = counts_by_words(folder, settings.max_length, ahead)
        args = counts, prior_of(model, ahead), model.smoothing, settings.max_length
        return lambda block, span: naive.block_shares(rule, block, span, sentence, *args)
    both = weights_by_name(model, ahead=ahead), weights_by_name(model, of_gaps=True, ahead=ahead)

    def judge(block: naive.Block, span: tuple[int, int], pairs: list | None = None) -> list[float]:
        """``pairs``: those of the words of a gap, if they are known."""
        given = settings.window, settings.edges, settings.context == "bag"
        features = naive.block_features(rule, block, span, sentence, *given)
        weights = both[bool(block.gap) and pairs is None]
        known = [*features, *(("pair", *pair) for pair in pairs or [])]
        scores = sum((weights[f].astype(float) for f in known if f in weights), np.zeros(3))
        raised = np.exp(scores - scores.max())
        return list(raised / raised.sum())

    return judge


# A block around a gap, which has more words than any phrase, and one of words that stand together.
AROUND = (
    [(["hund", 1, "katze", 2, "neu"], ["dog", 2, 1, "new"], [(0, 0), (2, 0), (4, 3)])],
    ["hund", *["neu"] * 12, "katze", "sieht", "neu"],
    [(0, 0, {1: (1, 13), 2: (14, 15)})],
)


@given(applications(), st.sampled_from(["dual", "lex", "both", "bag", "twice", "bag.twice"]))
@example(AROUND, "dual")
@example(AROUND, "twice")
@example(AROUND, "bag.twice")
@example(AROUND, "both")
@example(AROUND, "bag")
def test_features_of_edges_equal_their_twin(
    models: tuple[Classifier, Lexicalised, Path],
    world: tuple[list[naive.Rule], list[str], list[tuple]],
    kind: str,
) -> None:
    model, symbols = open_model(models[2] / kind), Symbols()
    feature = Reordering(model, symbols)
    table = as_rules(world[0], symbols)
    rows = feature.rows(batch_of(world, symbols), table)
    ids = [symbols.names.find(name.encode()) for name in feature.names()]
    is_bidirectional = kind in {"both", "twice", "bag.twice"}
    assert len(ids) == (9 if is_bidirectional else 6)
    for p, (number, start, gaps) in enumerate(world[2]):
        rule = world[0][number]
        expected = naive.edge_features(rule, start, gaps, judge_of(model, models[2], rule, world[1]))
        if is_bidirectional:
            judge = judge_of(model, models[2], rule, world[1], ahead=True)
            expected += naive.next_features(rule, start, gaps, judge)
        place = slice(rows.first[p], rows.first[p + 1])
        got = dict(zip(rows.id[place].tolist(), rows.value[place].tolist(), strict=True))
        assert len(got) == rows.first[p + 1] - rows.first[p]
        assert [got.get(one, 0.0) for one in ids] == pytest.approx(expected, abs=1e-5)


SCORES = st.floats(-1500.0, 1500.0)


@given(st.lists(SCORES, min_size=27, max_size=27), st.booleans())
def test_shares_of_large_scores(drawn: list[float], bag: bool) -> None:
    """Where the product of the odds is 0, shares are computed from scores."""
    values = np.array(drawn)
    own, start, end = values[:3].reshape(1, 3), values[3:9].reshape(2, 3), values[9:15].reshape(2, 3)
    both = values[15:27].reshape(2, 2, 3) if bag else np.zeros((1, 1, 3))
    odds = []
    for score in (own, start, end, -both):
        out = np.empty(score.shape)
        odds_kernel(score.reshape(-1, 3), out.reshape(-1, 3))
        assert np.allclose(out, np.exp(score - score.max(axis=-1, keepdims=True)), rtol=1e-12, atol=0.0)
        odds.append(out)
    places = PlaceWeights(start, end, both, start, end, both)
    total = own[0] + start[0] + end[1] - (both[0, 1] if bag else 0.0)
    expected = (total - np.logaddexp.reduce(total)) / math.log(10.0)
    for label in range(3):
        found = block_share(own, odds[0], 0, places, PlaceOdds(*odds[1:]), 0, 1, label, 0)
        assert found == pytest.approx(expected[label], rel=1e-9, abs=1e-9)


@given(applications())
@example(AROUND)
def test_distortion_equals_its_twin(world: tuple[list[naive.Rule], list[str], list[tuple]]) -> None:
    symbols = Symbols()
    feature = Distortion(symbols)
    rows = feature.rows(batch_of(world, symbols), as_rules(world[0], symbols))
    names = [symbols.names.text(one) for one in rows.id.tolist()]
    assert set(names) <= set(feature.names())
    for p, (number, start, gaps) in enumerate(world[2]):
        value = rows.value[rows.first[p] : rows.first[p + 1]].sum()
        assert value == naive.distortion(world[0][number], start, gaps)


@given(applications())
@example(AROUND)
def test_orientation_items_equal_their_twin(world: tuple[list[naive.Rule], list[str], list[tuple]]) -> None:
    symbols = Symbols()
    rows = Orientation(symbols).rows(batch_of(world, symbols), as_rules(world[0], symbols))
    for p, (number, start, gaps) in enumerate(world[2]):
        place = slice(rows.first[p], rows.first[p + 1])
        names = map(symbols.names.text, rows.id[place].tolist())
        expected = naive.orientation_items(world[0][number], start, gaps, world[1])
        assert dict(zip(names, rows.value[place].tolist(), strict=True)) == expected
        assert len(expected) == rows.first[p + 1] - rows.first[p]


def test_orientation_of_a_known_rule() -> None:
    """Features in lists are those of the search, and weights that no feature has are found."""
    import hiero

    lines = [
        "[X] ||| hat [X,1] versprochen ||| has promised [1] ||| a=1 ||| 0-0 2-1",
        "[X] ||| der hund ||| the dog ||| a=1 ||| 0-0 1-1",
    ]
    weights = {"a": 0.1, "LO:swap": -1.0, "LO:swap:src.last:hund": 0.25, "LO:other:tgt.first:promised": 0.5}
    weights["PassThrough"] = -5.0
    model = hiero.load(rules=lines, weights=weights, features=["orientation"], strict=True)
    best = model.translate("hat der hund versprochen")
    assert best.text == "has promised the dog"
    edges = {
        "src.first": "versprochen",
        "src.last": "versprochen",
        "tgt.first": "promised",
        "tgt.last": "promised",
    }
    expected = {"LO:other": 1.0} | {f"LO:other:{edge}:{word}": 1.0 for edge, word in edges.items()}
    expected |= {"LO:swap": 1.0, "LO:swap:src.first:der": 1.0, "LO:swap:src.last:hund": 1.0}
    assert {name: value for name, value in best.features.items() if name.startswith("LO:")} == expected
    assert best.score == pytest.approx(2 * 0.1 - 1.0 + 0.25 + 0.5)
    with pytest.raises(hiero.HieroError, match="the weight Feature names no feature"):
        hiero.load(rules=lines, weights=weights | {"Feature": 1.0}, features=["orientation"], strict=True)
    with pytest.raises(hiero.HieroError, match="3 weights need --features orientation"):
        hiero.load(rules=lines, weights=weights, strict=True)


WORLD = [
    "[X] ||| dass [X,1] ||| that [1] ||| a=0.2 ||| 0-0",
    "[X] ||| [X,1] [X,2] sieht ||| [1] sees [2] ||| a=0.1 ||| 2-1",
    "[X] ||| [X,1] [X,2] ||| [2] [1] ||| a=0.1",
    "[X] ||| [X,1] [X,2] ||| [1] [2] ||| a=0.1",
    "[X] ||| hund ||| dog ||| a=1 ||| 0-0",
    "[X] ||| hund ||| cat ||| a=0.9 ||| 0-0",
    "[X] ||| hund katze ||| dog ||| a=1.5 ||| 0-0 1-0",
    "[X] ||| katze ||| cat ||| a=1 ||| 0-0",
    "[X] ||| katze ||| ||| a=0.3",
    "[X] ||| sieht ||| sees ||| a=1 ||| 0-0",
]


def read_rule(forest: Forest, rule: int) -> naive.Rule:
    """A rule of a forest as a naive one."""
    table = forest.rules

    def side(symbols: np.ndarray, first: np.ndarray) -> list[naive.Symbol]:
        here = symbols[first[rule] : first[rule + 1]].tolist()
        return [forest.words.text(s) if s >= 0 else gap_index(s) for s in here]

    src, tgt = side(table.src, table.first_src), side(table.tgt, table.first_tgt)
    links = table.link[table.first_link[rule] : table.first_link[rule + 1]]
    return src, tgt, [tuple(link) for link in links.tolist()]


@pytest.mark.parametrize(
    ("kinds", "algorithm"),
    [
        (("dual",), "cube"),
        (("lex",), "cube"),
        (("bag", "both"), "cube"),
        (("dual", "both"), "coarse_to_fine"),
        (("twice",), "cube"),
        (("twice", "both"), "coarse_to_fine"),
        (("bag.twice", "lex"), "cube"),
    ],
)
def test_gaps_are_scored_with_the_words_of_the_best_derivation(
    models: tuple[Classifier, Lexicalised, Path], kinds: tuple[str, ...], algorithm: str
) -> None:
    """Every edge has the features of its twin, its score is their dot product, and so are those of lists."""
    import hiero

    opened = {kind: open_model(models[2] / kind) for kind in kinds}
    stems = dict.fromkeys(("dual", "bag", "twice", "bag.twice"), "Reordering")
    stems |= dict.fromkeys(("lex", "both"), "LexicalReordering")
    ahead = {kind: f"{stems[kind]}Next" for kind in ("both", "twice", "bag.twice")}
    weights = {"a": 0.3, "PassThrough": -5.0, "Glue": -0.3}
    for kind in kinds:
        for stem, sign in ((stems[kind], 1), (ahead.get(kind), 0.5)):
            each = zip(CLASS_NAMES, (0.9, 1.1, 0.6), strict=True)
            weights |= {f"{stem}{c}": sign * w for c, w in each if stem}
    config = {
        "features": {"reordering": [str(models[2] / kind) for kind in kinds]},
        "search": {"algorithm": algorithm, "pop_limit": 30},
    }
    model = hiero.load(config, rules=WORLD, weights=weights)
    forest = model.parse("dass hund katze sieht .")
    sentence, graph = list(forest.source), forest.graph
    _, best = forest.best()
    values = forest.features.of_edges(forest, np.arange(forest.num_edges, dtype=np.int32))
    fillers: list[tuple[list[str], list]] = []
    num_known = 0
    for node in range(forest.num_nodes):
        for edge in range(graph.first_edge[node], graph.first_edge[node + 1]):
            if forest.edge_rule[edge] < 0:
                continue
            rule, tails = read_rule(forest, forest.edge_rule[edge]), graph.tail[edge]
            start = int(forest.node_start[node])
            gaps = {t + 1: (int(forest.node_start[v]), int(forest.node_end[v])) for t, v in enumerate(tails)}
            all_stems = [*(stems[kind] for kind in kinds), *(ahead[kind] for kind in kinds if kind in ahead)]
            expected = dict.fromkeys((f"{stem}{c}" for stem in all_stems for c in CLASS_NAMES), 0.0)
            oriented = naive.blocks(rule)
            before = [(block, label) for block, (_, label) in zip(naive.cut(rule), oriented, strict=False)]
            for is_next, (block, label) in [
                *((False, one) for one in oriented),
                *((True, one) for one in before),
            ]:
                span = naive.source_span(rule, block, start, gaps)
                words, pairs = fillers[tails[block.gap - 1]] if block.gap else ([], [])
                is_known = 0 < len(words) <= 3 and span[1] - span[0] <= 3
                num_known += is_known
                for kind in kinds:
                    model_of_kind, stem = opened[kind], ahead.get(kind, "") if is_next else stems[kind]
                    if not stem:
                        continue
                    judge = judge_of(model_of_kind, models[2], rule, sentence, is_next)
                    if not is_known:
                        shares = judge(block, span)
                    elif isinstance(model_of_kind, Classifier):
                        shares = judge(block, span, pairs)
                    else:
                        source, prior = tuple(sentence[slice(*span)]), prior_of(model_of_kind, is_next)
                        pair, counts = (source, tuple(words)), counts_by_words(models[2], 3, is_next)
                        shares = naive.lexical_probs(pair, (source,), counts, prior, model_of_kind.smoothing)
                    expected[f"{stem}{CLASS_NAMES[label]}"] += math.log10(shares[label])
            row = values.row(edge)
            assert {name: row.get(name, 0.0) for name in expected} == pytest.approx(expected, abs=1e-5)
            total = math.fsum(weights.get(name, 0.0) * value for name, value in row.items())
            assert total == pytest.approx(forest.edge_score[edge], abs=1e-9)
        edge = best[node]
        parts = [fillers[v] for v in graph.tail[edge] if v >= 0]
        used = forest.edge_rule[edge]
        fillers.append(naive.filler(read_rule(forest, used), parts) if used >= 0 else parts[0])
    assert num_known > 20
    for one in forest.kbest(30):
        total = math.fsum(weights.get(name, 0.0) * value for name, value in one.features.items())
        assert total == pytest.approx(one.score, rel=1e-6)
    # A part of the forest, and one that was read again, have the same features.
    part = forest.prune(2.0)
    assert part.viterbi().features == pytest.approx(dict(forest.viterbi().features))
    again = pickle.loads(pickle.dumps(part)).with_weights(weights)
    assert again.edge_score == pytest.approx(part.edge_score)


@given(applications())
@example(AROUND)
def test_gains_of_edges_equal_their_twin(world: tuple[list[naive.Rule], list[str], list[tuple]]) -> None:
    table, numbers = as_rules(world[0], Symbols()), [number for number, _, _ in world[2]]
    rule = read_only(np.array(numbers, np.int32))
    blocks = cut_rules_kernel(rule, table)
    label = np.empty((len(world[0]), 4), np.int8)
    gap_labels_kernel(blocks, label)
    for number in numbers:
        assert label[number].tolist() == naive.gap_labels(world[0][number])
    gain, row = (
        read_only(np.arange(36, dtype=np.float32).reshape(3, 12) - 3),
        read_only(np.array([2, 0, -1], np.int32)),
    )
    tail = read_only(np.array([[p % 3, (p + 1) % 3] for p in range(len(numbers))], np.int32))
    names = read_only(np.array([17, 18, 19, 6, 7, 8, -1, -1, -1, 3, 4, 5], np.int32))
    first, room = np.empty(len(rule) + 1, np.int64), 8 * len(rule)
    ids, value = np.empty(room, np.int32), np.empty(room)
    gap_rows_kernel(rule, tail, read_only(label), row, gain, names, first, ids, value)
    for p, number in enumerate(numbers):
        rows = naive.gap_rows(
            world[0][number], [gain[row[v]].tolist() if row[v] >= 0 else [0] * 12 for v in tail[p]]
        )
        expected = {names[k]: x for k, x in rows.items() if x and names[k] >= 0}
        here = slice(first[p], first[p + 1])
        found = zip(ids[here].tolist(), value[here].tolist(), strict=True)
        assert {name: x for name, x in found if x} == expected


def test_blocks_of_either_kind_are_predicted_better_than_by_the_prior(tmp_path: Path) -> None:
    """Bits of held-out examples whose words are known, and as gaps; weights with pairs do not fit gaps."""
    paths = write_bitext(tmp_path, 120, seed=3)
    config = ExampleConfig(min_count=2)
    extract_examples(*paths, tmp_path / "ex", config, held_out=tmp_path / "held", every=3)
    held = open_examples(tmp_path / "held")
    for name in ("dual", "primal", "lexicalised"):
        passes = {} if name == "lexicalised" else {"passes": 8}
        train_model(tmp_path / "ex", tmp_path / name, LearnConfig(learner=name, **passes))  # type: ignore[arg-type]
        model = open_model(tmp_path / name)
        prior = evaluate_majority(model, held).loss
        known, gaps = (evaluate(model, held, as_gaps).loss for as_gaps in (False, True))
        assert known < gaps < prior
        if isinstance(model, Classifier):
            with_pairs = replace(model, gap_weight=np.where(is_pair(model.key), 0, model.weight))
            assert evaluate(with_pairs, held, True).loss > gaps
            assert not model.gap_weight[is_pair(model.key)[:, 0]].any()


@pytest.mark.parametrize("learner", ["dual", "primal"])
def test_a_bidirectional_classifier_also_learns_the_classes_of_next_phrases(
    tmp_path: Path, learner: Literal["dual", "primal"]
) -> None:
    """Its first columns are the classifier in one direction, the others one of the other labels."""
    paths = write_bitext(tmp_path, 90, seed=4)
    extract_examples(*paths, tmp_path / "ex", ExampleConfig(min_count=2), held_out=tmp_path / "held", every=3)
    held = open_examples(tmp_path / "held")
    for name, bidirectional in (("one", False), ("both", True)):
        config = LearnConfig(learner=learner, passes=4, bidirectional=bidirectional)
        train_model(tmp_path / "ex", tmp_path / name, config, held_out=tmp_path / "held")
    one, both = open_model(tmp_path / "one"), open_model(tmp_path / "both")
    assert isinstance(one, Classifier)
    assert isinstance(both, Classifier)
    examples = open_examples(tmp_path / "ex")
    swapped = replace(examples.of_next(), next_label=examples.rows.label)
    assert (swapped.rows.label == examples.next_label).all()
    learn = learn_dual if learner == "dual" else learn_primal
    for as_gaps in (False, True):
        assert both.weights_for(examples, as_gaps) == pytest.approx(one.weights_for(examples, as_gaps))
        given = without_pairs(swapped) if as_gaps else swapped
        judged = without_pairs(held.of_next()) if as_gaps else held.of_next()
        weight = learn(given, LearnConfig(learner=learner, passes=4), 1).weight
        expected, _ = calibrated(weight, swapped, smoothed_prior(swapped.classes), judged)
        assert both.weights_for(examples, as_gaps, ahead=True) == pytest.approx(expected, abs=1e-6)
    prior = log_loss(np.log(smoothed_prior(swapped.classes)), held.next_label)
    found = {result.name.removeprefix(str(both.path)): result.loss for result in evaluations_of(both, held)}
    assert list(found) == ["", ", as gaps", ", next phrases", ", next phrases, as gaps"]
    assert found[", next phrases"] < found[", next phrases, as gaps"] < prior
    assert len(evaluations_of(one, held)) == 2


def log_loss(logs: np.ndarray, label: np.ndarray) -> float:
    return float(-logs[label].mean() / math.log(2))


def is_pair(key: np.ndarray) -> np.ndarray:
    return (key >> 56 == 1)[:, None]


def test_predictions_for_training_examples(models: tuple[Classifier, Lexicalised, Path]) -> None:
    """Both predict the inversion of verbs; a lexicalised model gives the probabilities of eq. 4."""
    dual, lex, folder = models
    examples = open_examples(folder / "ex")
    size = examples.rows.size
    counts = counts_by_words(folder, 3)
    logs = lex.log_probs(examples, 0, size)
    assert np.exp(logs).sum(axis=1) == pytest.approx(1)
    error = {
        m.path.name: np.mean(m.log_probs(examples, 0, size).argmax(axis=1) != examples.rows.label)
        for m in (dual, lex)
    }
    majority = 1 - examples.classes.max() / examples.classes.sum()
    assert error["dual"] < 0.5 * majority
    assert error["lex"] < majority
    assert len(lex.pair.key) == sum(len(key) == 2 for key in counts)
    assert len(lex.source.key) == sum(len(key) == 1 for key in counts)
    assert lex.pair.count.sum() == lex.source.count.sum() == size
    both = open_model(folder / "both")
    assert isinstance(both, Lexicalised)
    ahead = both.log_probs(examples, 0, size, ahead=True)
    counts, prior = counts_by_words(folder, 3, ahead=True), prior_of(both, True)
    shares = {
        tuple(np.round(naive.lexical_probs(key, key[:1], counts, prior, both.smoothing), 9))
        for key in counts
        if len(key) == 2
    }
    assert {tuple(row) for row in np.round(np.exp(ahead), 9)} == shares


def test_scores_are_sums_of_features(models: tuple[Classifier, Lexicalised, Path]) -> None:
    import hiero

    folder = models[2]
    lines = [
        "[X] ||| dass [X,1] ||| that [1] ||| a=1 ||| 0-0",
        "[X] ||| [X,1] [X,2] sieht ||| [1] sees [2] ||| a=1 ||| 2-1",
        "[X] ||| [X,1] [X,2] sieht ||| [1] [2] sees ||| a=1 ||| 2-2",
        "[X] ||| hund ||| dog ||| a=1 ||| 0-0",
        "[X] ||| katze ||| cat ||| a=1 ||| 0-0",
    ]
    names = [
        f"{stem}{c}" for stem in ("Reordering", "LexicalReordering") for c in ("Monotone", "Swap", "Other")
    ]
    weights = {"a": 0.1, "PassThrough": -5.0, "Glue": -0.3} | dict.fromkeys(names, 0.7)
    config = {"features": {"reordering": [str(folder / "dual"), str(folder / "lex")]}}
    model = hiero.load(config, rules=lines, weights=weights)
    forest = model.parse("dass hund katze sieht .")
    found = forest.kbest(20)
    assert {name for one in found for name in one.features} >= set(names)
    for one in found:
        total = math.fsum(weights.get(name, 0.0) * value for name, value in one.features.items())
        assert total == pytest.approx(one.score, rel=1e-6)
    # The verb comes between its noun phrases, as in the examples.
    assert found[0].text == "that dog sees cat ."
    # What comes after "dass", and the full stop by glue, is monotone; the verb is far from the first noun
    # phrase, and changes places with the second.
    blocks = {c: found[0].features[f"Reordering{c}Blocks"] for c in ("Monotone", "Swap", "Other")}
    assert blocks == {"Monotone": 2, "Swap": 1, "Other": 1}
    none = hiero.load(rules=lines, weights={"a": 0.1, "PassThrough": -5.0, "Glue": -0.3})
    texts = {one.text: one.score for one in none.parse("dass hund katze sieht .").kbest(20)}
    assert texts["that dog sees cat ."] == pytest.approx(texts["that dog cat sees ."])


def test_each_application_is_scored_once(
    models: tuple[Classifier, Lexicalised, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them at once, before the search, independently of its pops."""
    import hiero

    asked: list[EdgeBatch] = []
    again: list[EdgeBatch] = []
    scores, rows = Reordering.scores, Reordering.rows

    def scored(feature: Reordering, batch: EdgeBatch, rules: Rules, weights: np.ndarray) -> object:
        asked.append(batch)
        return scores(feature, batch, rules, weights)

    def listed(feature: Reordering, batch: EdgeBatch, rules: Rules) -> object:
        again.append(batch)
        return rows(feature, batch, rules)

    monkeypatch.setattr(Reordering, "scores", scored)
    monkeypatch.setattr(Reordering, "rows", listed)
    lines = [
        "[X] ||| [X,1] [X,2] ||| [2] [1] ||| a=1",
        "[X] ||| hund ||| dog ||| a=1 ||| 0-0",
        "[X] ||| hund ||| hound ||| a=1 ||| 0-0",
    ]
    config = {"features": {"reordering": str(models[2] / "dual")}, "search": {"pop_limit": 0}}
    model = hiero.load(
        config, rules=lines, weights={"a": 0.1, "ReorderingSwapBlocks": 2.0, "ReorderingSwap": 0.5}
    )
    forest = model.parse(" ".join(["hund"] * 7))
    (batch,) = asked
    applied = [tuple(row) for row in np.column_stack([*batch[:3], batch.split]).tolist()]
    assert len(applied) == len(set(applied)) > 20
    assert forest.kbest(3)[0].features["ReorderingSwapBlocks"] > 0
    # Applications are scored again when their features are requested.
    assert sum(len(one.rule) for one in again) < len(batch.rule)
