"""CPU time of features per sentence: ``python -m benchmarks.features``.

A sentence has 9,000 random rules with fifteen template features each; 200,000 features have a weight. Words
are from a Zipf distribution, so that as in real text many look-ups hit and many miss. Times are process CPU
time, the best of several runs after the first; compilation is a row of its own.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.results import Rows, append_result, best
from hiero.core.arrays import read_only
from hiero.core.jit import compile_timer
from hiero.core.symbol_kernels import gap
from hiero.core.symbols import Symbols
from hiero.features.feature_set import TEMPLATES, feature_set
from hiero.features.index import FeatureIndex
from hiero.features.names import Names
from hiero.features.score import Replay, RuleScorer, template_keys, template_rows
from hiero.features.weights import Weights, read_weights, write_weights
from hiero.grammar.rules import Rules, RuleTable

SENTENCE, TRAINING, WEIGHTS, VOCABULARY = 9_000, 90_000, 200_000, 20_000
CHOSEN = ("rule_id", "source_bigram", "target_bigram", "shape", "lexical")


def sides(
    rng: np.random.Generator, num_rules: int, longest: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Rule sides of one word or more."""
    lengths = rng.integers(1, longest + 1, num_rules)
    first = np.concatenate([[0], np.cumsum(lengths)])
    side = np.minimum(rng.zipf(1.3, first[-1]), VOCABULARY - 1).astype(np.int32)
    return first, side


def random_rules(rng: np.random.Generator, num_rules: int) -> RuleTable:
    first_src, src = sides(rng, num_rules, 5)
    first_tgt, tgt = sides(rng, num_rules, 6)
    with_gap = (np.diff(first_src) > 1) & (np.diff(first_tgt) > 1) & (rng.random(num_rules) < 2 / 3)
    src[first_src[:-1][with_gap]] = tgt[first_tgt[1:][with_gap] - 1] = gap(0, 1)
    num_links = np.diff(first_src) - with_gap  # each source word is linked to some target word
    first_link = np.concatenate([[0], np.cumsum(num_links)])
    row = np.repeat(np.arange(num_rules), num_links)
    source = np.arange(first_link[-1]) - first_link[row] + with_gap[row]
    target = (rng.random(len(row)) * (np.diff(first_tgt) - with_gap)[row]).astype(np.int64)
    rules = Rules(
        lhs=np.zeros(num_rules, np.int32),
        first_src=first_src,
        src=src,
        first_tgt=first_tgt,
        tgt=tgt,
        dense=rng.random((num_rules, 7), np.float32),
        first_sparse=np.zeros(num_rules + 1, np.int64),
        sparse_name=np.empty(0, np.int32),
        sparse_value=np.empty(0, np.float32),
        first_link=first_link,
        link=np.stack([source, target], axis=1).astype(np.int16),
    )
    return RuleTable(Rules._make(read_only(array) for array in rules), tuple(range(7)))


def trained(symbols: Symbols, rng: np.random.Generator) -> Weights:
    """Weights for the features of the rules of a training set."""
    index = FeatureIndex()
    training = random_rules(rng, TRAINING)
    template_rows(training.rules, read_only(np.arange(TRAINING)), sum(TEMPLATES[t] for t in CHOSEN), index)
    keys = index.all_keys()
    picked = [keys[i] for i in rng.permutation(len(keys))[:WEIGHTS]]
    weights = Weights(symbols)
    weights.set_all(picked, rng.normal(size=len(picked)).tolist())
    return weights


def main() -> None:
    rng = np.random.default_rng(1)
    symbols = Symbols()
    symbols.words.intern_all(b"w%d" % i for i in range(VOCABULARY))
    symbols.labels.intern(b"X")
    symbols.names.intern_all(b"Dense_%d" % i for i in range(7))
    weights = trained(symbols, rng)
    rules = random_rules(rng, SENTENCE)
    lm_word = read_only(np.ones((1, VOCABULARY), np.int32))
    features = feature_set(CHOSEN, symbols)
    chosen = read_only(np.arange(SENTENCE))
    first, _, _ = template_keys(rules.rules, chosen, features.templates)
    num_features = int(first[-1])
    print(f"{SENTENCE} rules, {num_features} features, {len(weights)} weights")

    row = Rows(44)
    dense = RuleScorer(symbols, weights, None, ["LanguageModel"])
    row("scores, dense features only", best(lambda: dense.scores(rules, lm_word), 20), SENTENCE, "rule")
    sparse = RuleScorer(symbols, weights, features, ["LanguageModel"])
    row("scores, with templates", best(lambda: sparse.scores(rules, lm_word), 20), num_features, "feature")
    few = read_only(np.arange(2000))
    row("scores of 2,000 rules, with templates", best(lambda: sparse.scores(rules, lm_word, few), 20))
    weights.exact = False
    loose = RuleScorer(symbols, weights, features, ["LanguageModel"])
    row(
        "scores, with weights in cdec's names",
        best(lambda: loose.scores(rules, lm_word), 20),
        num_features,
        "feature",
    )
    weights.exact = True
    # The results must be equal.
    assert np.allclose(sparse.scores(rules, lm_word), loose.scores(rules, lm_word))
    plain = {key: value for key, _, value in weights.items_bytes()}
    replay = Replay(sparse, rules, lm_word).rules(range(200))
    names = Names(symbols)
    products = [sum(plain.get(names.parse(n) or (), 0.0) * v for n, v in found.items()) for found in replay]
    assert np.allclose(products, sparse.scores(rules, lm_word)[:200])

    row("features of 300 rules by name", best(lambda: Replay(sparse, rules, lm_word).rules(range(300)), 5))
    row(
        "rows of 9,000 rules numbered, all new",
        best(lambda: template_rows(rules.rules, chosen, features.templates, FeatureIndex()), 5),
        num_features,
        "feature",
    )
    row("scorer made", best(lambda: RuleScorer(symbols, weights, features), 3))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.gz"
        row("weights written", best(lambda: write_weights(path, weights), 1), len(weights), "weight")
        row("weights read", best(lambda: read_weights(path, Symbols()), 2), len(weights), "weight")
    print(f"{'compiling (0 if cached)':44}{compile_timer.seconds:10.2f} s")
    append_result("features", row.figures | {"compile_s": compile_timer.seconds})


if __name__ == "__main__":
    main()
