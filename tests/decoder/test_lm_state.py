"""Language model states of partial translations: scores, minimal states and merging.

However a string is composed, its score is KenLM's, and its state is that of the definition. No context
distinguishes equal states.
"""

from __future__ import annotations

import itertools
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hiero.core.symbols import Symbols, find_all
from hiero.decoder.lm_state_kernels import (
    FULL,
    LEFT,
    RIGHT,
    States,
    add_tail,
    add_word,
    begin_sentence,
    close_row,
    copy_row,
    empty_row,
    grown_states,
    hash_row,
    new_states,
    rule_states_kernel,
    same_rows,
)
from hiero.grammar.cdec import parse_cdec
from hiero.lm.load import load_language_models
from hiero.lm.model import LanguageModels
from tests.naive import chart as naive
from tests.naive import lm as naive_lm
from tests.naive.lm import Ngram
from tests.naive.search import Rule
from tests.worlds.lm import kenlm_model
from tests.worlds.search import arpa_texts, rule_text, rules

WORDS = ["u", "v", "w"]
UNSEEN = "z"
SMALL = """\\data\\
ngram 1=5
ngram 2=3
ngram 3=3

\\1-grams:
-1\t<s>\t-0.5
-1.5\t</s>
-2\tu\t-0.25
-1\tv
0\tw\t-0.125

\\2-grams:
-0.5\tu v\t-0.75
0\tv w
-1\tw u\t-0.5

\\3-grams:
-0.25\tu v w
-0.125\tv w u
0\tw u u

\\end\\
"""

Tree = list["str | Tree"]
strings = st.lists(st.sampled_from([*WORDS, UNSEEN]), max_size=7)


@st.composite
def trees(draw: st.DrawFn, depth: int = 3) -> Tree:
    """A target side: words and at most two partial translations, which may be empty."""
    words: Tree = list(draw(st.lists(st.sampled_from([*WORDS, UNSEEN]), max_size=3)))
    for _ in range(draw(st.integers(0, 2)) if depth else 0):
        words.insert(draw(st.integers(0, len(words))), draw(trees(depth - 1)))
    return words


def leaves(tree: Tree) -> Ngram:
    return tuple(w for item in tree for w in ((item,) if isinstance(item, str) else leaves(item)))


class Builder:
    """Composes partial translations in rows of one table, as the search does with rules."""

    def __init__(self, models: LanguageModels) -> None:
        self.models = models
        self.lm = models.arrays
        self.num_models = len(models.names)
        stride = max(1, int(max(self.lm.order)) - 1)
        self.states: States = new_states(8, self.num_models, stride)
        self.scratch = np.empty(2 * stride + 2, np.float32)
        self.num_rows = 0

    def ids(self, words: Ngram, m: int) -> list[int]:
        found = find_all(self.models.tables[m], [word.encode() for word in words])
        return np.maximum(found, 0).tolist()  # type: ignore[no-any-return]

    def row(self) -> int:
        if self.num_rows == len(self.states.length):
            self.states = grown_states(self.states, 2 * self.num_rows)
        self.num_rows += 1
        return self.num_rows - 1

    def build(self, tree: Tree) -> tuple[int, list[float]]:
        """A row for a tree, and its score by each model."""
        parts = [item if isinstance(item, str) else self.build(item) for item in tree]
        row, scores = self.row(), [0.0] * self.num_models
        for m in range(self.num_models):
            empty_row(self.states, row, m)
            for part in parts:
                if isinstance(part, str):
                    scores[m] += self.add_word(row, m, part)
                else:
                    scores[m] += part[1][m] + self.add_tail(row, m, part[0])
            close_row(self.lm, m, self.states, row)
        return row, scores

    def add_word(self, row: int, m: int, word: str) -> float:
        change: float = add_word(self.lm, m, self.states, row, self.ids((word,), m)[0], self.scratch)
        return change

    def add_tail(self, row: int, m: int, tail: int) -> float:
        change: float = add_tail(self.lm, m, self.states, row, self.states, tail, self.scratch)
        return change

    def finish(self, tail: int, m: int) -> float:
        """The score added by <s> before and </s> after a row."""
        row = self.row()
        begin_sentence(self.lm, m, self.states, row)
        change = self.add_tail(row, m, tail)
        return change + self.add_word(row, m, "</s>")

    def flat(self, words: Ngram) -> int:
        return self.build(list(words))[0]

    def same(self, row: int, other: int) -> bool:
        return bool(same_rows(self.states, row, self.states, other))


def opened(texts: list[str]) -> tuple[Builder, list[naive_lm.Model]]:
    with tempfile.TemporaryDirectory() as folder:
        specs = []
        for m, text in enumerate(texts):
            specs.append((f"LM{m}", Path(folder) / f"{m}.arpa"))
            specs[-1][1].write_text(text)
        return Builder(load_language_models(specs)), [naive_lm.read_arpa(text) for text in texts]


two_models = st.lists(arpa_texts(), min_size=1, max_size=2)


# "w u" has a back-off, though no n-gram begins with it or with "u", and "u" has none.
LONELY = """\\data\\
ngram 1=4
ngram 2=1
ngram 3=0

\\1-grams:
-1.0\t<s>
-1.0\t</s>
-1.0\tu
-1.0\tw

\\2-grams:
-1.0\tw u\t0.125

\\3-grams:

\\end\\
"""


def has_lonely_backoffs(model: naive_lm.Model) -> bool:
    """Whether an n-gram has a back-off, and one that it ends with, and that is no context, has none.

    A word on its own is then no context, and that it is one behind other words is seen too late: the back-off
    is paid at once, by the word itself, and not by the next one. Sentences cost the same. Models that are
    estimated from text have no such n-grams.
    """
    closed = naive_lm.signed_ngrams(model)
    return any(
        signed.extends_right and not all(closed[words[n:]].extends_right for n in range(1, len(words)))
        for words, signed in closed.items()
    )


@given(two_models, trees())
@example([SMALL], [["u"], "v", ["w", ["u", "u"]]])
@example([SMALL], [[], [[]], "u"])
@example([LONELY], ["w", ["u"]])
@example([LONELY], ["w", ["u"], "w", ["u", "u"]])
def test_any_bracketing_has_the_score_of_the_string(texts: list[str], tree: Tree) -> None:
    builder, models = opened(texts)
    row, scores = builder.build(tree)
    words = leaves(tree)
    for m, model in enumerate(models):
        if not has_lonely_backoffs(model):
            assert scores[m] == pytest.approx(naive.fragment(model, words), abs=1e-9)
        whole = scores[m] + builder.finish(row, m)
        assert whole == pytest.approx(naive.sentence(model, words), abs=1e-9)


@given(arpa_texts(), trees())
def test_any_bracketing_has_kenlms_score(text: str, tree: Tree) -> None:
    builder, _ = opened([text])
    row, scores = builder.build(tree)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.arpa"
        path.write_text(text)
        kenlm = kenlm_model(path)
    if kenlm is not None:
        found = scores[0] + builder.finish(row, 0)
        assert found == pytest.approx(kenlm.score(" ".join(leaves(tree))), abs=1e-4)


@given(two_models, trees())
@example([SMALL], [["u"], "v", ["w", ["u", "u"]]])
@example([SMALL], [["w"], ["w", "u"]])
def test_any_bracketing_has_the_smallest_state(texts: list[str], tree: Tree) -> None:
    builder, models = opened(texts)
    row, _ = builder.build(tree)
    words, states = leaves(tree), builder.states
    for m, model in enumerate(models):
        if has_lonely_backoffs(model):
            continue  # then the state depends on the bracketing, too
        expected, closed = naive.state(model, words), naive_lm.signed_ngrams(model)
        num_left, full, num_right = states.length[row, m].tolist()
        assert (num_left, bool(full), num_right) == (
            len(expected.left),
            expected.full,
            len(expected.right),
        )
        for i in range(num_left):
            ngram = expected.left[: i + 1]
            assert int(states.left_key[row, m, i]) == naive_lm.key(builder.ids(ngram, m))
            assert -states.left_prob[row, m, i] == closed[ngram].prob
        ids = builder.ids(tuple(reversed(expected.right)), m)
        assert states.right_word[row, m, :num_right].tolist() == ids
        for i in range(num_right):
            assert states.right_backoff[row, m, i] == closed[expected.right[num_right - 1 - i :]].backoff
    if any(map(has_lonely_backoffs, models)):
        return
    assert builder.same(row, builder.flat(words))
    assert hash_row(states, row) == hash_row(builder.states, builder.num_rows - 1)


contexts = st.lists(
    st.tuples(
        st.tuples(st.sampled_from([(), ("<s>",)]), strings.map(tuple)).map(lambda pair: pair[0] + pair[1]),
        st.tuples(strings.map(tuple), st.sampled_from([(), ("</s>",)])).map(lambda pair: pair[0] + pair[1]),
    ),
    min_size=3,
    max_size=6,
)


@given(two_models, st.lists(strings.map(tuple), min_size=2, max_size=12, unique=True), contexts)
@example([SMALL], [("v", "u"), ("v", "v", "u"), ("z", "u"), ("w",), ("v", "w"), ()], [(("u",), ("v",))])
def test_equal_states_score_equally_in_any_context(
    texts: list[str], yields: list[Ngram], around: list[tuple[Ngram, Ngram]]
) -> None:
    """A context adds the same score to all strings with one state."""
    builder, models = opened(texts)
    rows = [builder.flat(words) for words in yields]
    for (one, row), (two, other) in itertools.combinations(zip(yields, rows, strict=True), 2):
        if not builder.same(row, other):
            continue
        assert hash_row(builder.states, row) == hash_row(builder.states, other)
        for model in models:
            for before, after in around:
                changes = [naive.between(model, before, words, after) for words in (one, two)]
                assert changes[0] == pytest.approx(changes[1], abs=1e-9), (one, two, before, after)


@pytest.mark.heavy
def test_equivalent_states_are_merged() -> None:
    """All strings of up to four words have far fewer states; no context distinguishes merged ones."""
    builder, (model,) = opened([SMALL])
    short = [words for n in range(4) for words in itertools.product([*WORDS, UNSEEN], repeat=n)]
    classes: dict[tuple[tuple[int, ...], ...], list[Ngram]] = defaultdict(list)
    for words in (*short, *itertools.product([*WORDS, UNSEEN], repeat=4)):
        row = builder.flat(words)
        num_left, full, num_right = builder.states.length[row, 0].tolist()
        left = tuple(builder.states.left_key[row, 0, :num_left].tolist())
        right = tuple(builder.states.right_word[row, 0, :num_right].tolist())
        classes[(left, (full,), right)].append(words)
    sides = [words for words in short if len(words) < 3]
    for merged in classes.values():
        first, *others = merged
        for before, after in itertools.product([*sides, *(("<s>", *words) for words in sides)], sides):
            change = naive.between(model, before, first, after)
            for words in others[:3]:
                assert naive.between(model, before, words, after) == pytest.approx(change, abs=1e-9)
    assert sum(map(len, classes.values())) == 341
    assert len(classes) == len({naive.state(model, words) for same in classes.values() for words in same})
    assert len(classes) < 60


def test_rows_of_different_states_differ() -> None:
    builder, _ = opened([SMALL, SMALL])
    row = builder.flat(("v", "w"))
    assert builder.states.length[row, 0, [LEFT, FULL, RIGHT]].tolist() == [2, 1, 2]
    for table, place in (("length", (0, LEFT)), ("length", (1, FULL)), ("length", (1, RIGHT))):
        _assert_some_context_distinguishes(builder, row, table, place)
    for table in ("left_key", "right_word"):
        for place in ((0, 0), (0, 1), (1, 1)):
            _assert_some_context_distinguishes(builder, row, table, place)


def _assert_some_context_distinguishes(
    builder: Builder, row: int, table: str, place: tuple[int, int]
) -> None:
    copy = builder.row()
    for m in range(builder.num_models):
        copy_row(builder.states, row, builder.states, copy, m)
    assert builder.same(row, copy)
    getattr(builder.states, table)[(copy, *place)] ^= 1
    assert not builder.same(row, copy)


def runs(tgt: tuple[str, ...]) -> list[Ngram]:
    """The words of a target side before, between and after its gaps."""
    found: list[list[str]] = [[]]
    for symbol in tgt:
        if symbol.startswith("["):
            found.append([])
        else:
            found[-1].append(symbol)
    return [tuple(run) for run in found]


@given(two_models, st.lists(rules(), min_size=1, max_size=4))
def test_words_of_rules_are_scored_without_context(texts: list[str], some: list[Rule]) -> None:
    builder, models = opened(texts)
    symbols = Symbols()
    table = parse_cdec([rule_text(rule) for rule in some], symbols).rules
    weight = np.array([0.5, -0.25])[: len(models)]
    score = np.array([rule.score for rule in some])
    found = rule_states_kernel(
        table.first_tgt,
        table.tgt,
        builder.models.word_ids(symbols.words),
        builder.lm,
        weight,
        builder.states.left_key.shape[2],
        score,
    )
    prefixes = {(runs(rule.tgt)[0], len(runs(rule.tgt)) == 1) for rule in some}
    assert len(found.prob) == len(prefixes) == len(set(found.row.tolist()))
    for r, rule in enumerate(some):
        first, estimate = runs(rule.tgt)[0], rule.score
        assert found.resume[r] == table.first_tgt[r] + len(first)
        for m, model in enumerate(models):
            assert found.prob[found.row[r], m] == pytest.approx(naive.fragment(model, first), abs=1e-9)
            estimate += weight[m] * sum(naive.fragment(model, run) for run in runs(rule.tgt))
        assert found.estimate[r] == pytest.approx(estimate, abs=1e-9)
        if len(runs(rule.tgt)) == 1:
            row = builder.flat(first)
            assert same_rows(found.prefix, found.row[r], builder.states, row)


def test_growing_keeps_rows() -> None:
    builder, _ = opened([SMALL])
    rows = [builder.flat(words) for words in itertools.product(WORDS, repeat=2)]
    again = [builder.flat(words) for words in itertools.product(WORDS, repeat=2)]
    assert len(builder.states.length) > 8
    for row, other in zip(rows, again, strict=True):
        assert builder.same(row, other)
