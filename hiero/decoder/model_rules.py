"""The rules of a sentence: those of grammars, and pass-through, brackets and glue, which are in none."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from hiero.core.arrays import Ids
from hiero.core.symbol_kernels import gap
from hiero.core.symbols import Symbols, Vocabulary
from hiero.decoder.config import SearchConfig
from hiero.features.feature_set import FeatureSet
from hiero.grammar.assemble import Ranks, build_grammar
from hiero.grammar.binarize import binarized
from hiero.grammar.rules import Grammar, Rules, RuleTable, featureless_rules, frozen, source_words


def model_rules(
    symbols: Symbols, src: Ids, tables: Sequence[RuleTable], search: SearchConfig, goal: int, category: int
) -> RuleTable:
    """Make the rules that a model adds to its grammars: pass-through, brackets, and two for glue at last.

    Pass-through rules translate words by themselves, or unknown words according to ``search.oov``. A word is
    unknown if it is in no source side of the given tables. Brackets, if ``search.brackets`` is set, are
    category -> category category in either order, with the feature ``Bracket``. Glue rules, if
    ``search.glue`` is set, are goal -> category, and goal -> goal category with the feature ``Glue``.
    """
    words = np.array(sorted(set(src.tolist())), np.int32)
    dropped = words[:0]
    if search.pass_through == "none":
        words = dropped
    elif search.pass_through == "oov" or search.oov != "copy":
        unknown = np.setdiff1d(words, source_words(tables))
        if search.pass_through == "oov":
            words = unknown
        if search.oov == "drop":
            words, dropped = np.setdiff1d(words, unknown), unknown
    targets = words
    if search.oov == "mark" and len(words):
        entries = symbols.words.entry
        is_unknown = np.isin(words, unknown)
        targets = words.copy()
        targets[is_unknown] = symbols.words.intern_all(
            entries(w) + b"_OOV" for w in words[is_unknown].tolist()
        )
    glue_src = np.array([gap(category, 1), gap(goal, 1), gap(category, 2)] if search.glue else [], np.int32)
    one, two = gap(category, 1), gap(category, 2)
    bracket_src = np.array([one, two, one, two] if search.brackets else [], np.int32)
    bracket_tgt = np.array([one, two, two, one] if search.brackets else [], np.int32)
    rules = _layout(goal, category, search.glue, search.brackets, len(words), len(dropped))._replace(
        src=np.concatenate([words, dropped, bracket_src, glue_src]),
        tgt=np.concatenate([targets, bracket_tgt, glue_src]),
    )
    passed, glue = symbols.names.intern(b"PassThrough"), symbols.names.intern(b"Glue")
    columns = (passed,) * bool(len(words) + len(dropped)) + (glue,) * search.glue
    if search.brackets:
        columns = (
            *columns[: len(columns) - search.glue],
            symbols.names.intern(b"Bracket"),
            *(glue,) * search.glue,
        )
    return RuleTable(frozen(rules), columns)


def sentence_grammar(
    symbols: Symbols,
    src: Ids,
    tables: Sequence[RuleTable],
    search: SearchConfig,
    goal: int,
    category: int,
    *,
    given: Sequence[RuleTable],
    ranks: Ranks,
    features: FeatureSet,
) -> tuple[Grammar, int, Ranks]:
    """All rules of a sentence, the row of the first glue rule, and the order of categories, parts included.

    Glue is not in the trie. Words that are only in ``given`` count as unknown, since not all that they stand
    in are terms.
    """
    own = model_rules(symbols, src, tables, search, goal, category)
    num_glue = 2 if search.glue else 0
    divided = binarized(tables, len(ranks.label))
    whole: list[RuleTable] = []
    if divided is not None:
        features.check_wide_rules()
        tables, whole = divided.tables, [*given, *divided.whole, own]
        ranks = ranks.with_parts(divided.num_parts)
    grammar = build_grammar([*given, *tables, own], num_glue, ranks, whole)
    return grammar, grammar.num_rules - num_glue, ranks


@functools.lru_cache(maxsize=256)
def _layout(goal: int, category: int, glue: bool, brackets: bool, num_words: int, num_dropped: int) -> Rules:
    """The rules of ``model_rules`` without their symbols."""
    num_passed, num_brackets, num_glue = num_words + num_dropped, 2 * brackets, 2 * glue
    src_size, tgt_size = [1] * num_passed, [1] * num_words + [0] * num_dropped
    num_own, joined = num_passed + num_brackets, [2] * num_brackets + [1, 2][:num_glue]
    dense = np.zeros((num_own + num_glue, (num_passed > 0) + brackets + glue), np.float32)
    dense[:num_passed, :1] = 1
    if brackets:
        dense[num_passed:num_own, int(num_passed > 0)] = 1
    if glue:
        dense[num_own + 1 :, -1:] = 1
    lhs, none = np.array([category] * num_own + [goal] * num_glue, np.int32), np.zeros(0, np.int32)
    first_src, first_tgt = (np.cumsum([0, *size, *joined]) for size in (src_size, tgt_size))
    # The words of both sides are aligned.
    first_link, link = np.cumsum([0, *tgt_size, *[0] * len(joined)]), np.zeros((num_words, 2), np.int16)
    rules = featureless_rules(lhs, first_src, none, first_tgt, none, first_link, link)
    return frozen(rules._replace(dense=dense))


class _Labels:
    """Names of labels; those from ``first_part`` on are parts of rules."""

    def __init__(self, named: Vocabulary, first_part: int) -> None:
        self.named, self.first_part = named, first_part

    def text(self, index: int, /) -> str:
        return self.named.text(index) if index < self.first_part else f"part {index - self.first_part + 1}"


def with_part_names(grammar: Grammar, symbols: Symbols) -> _Labels:
    """The names of the labels of a grammar with divided rules."""
    assert grammar.whole is not None
    is_part = np.diff(grammar.whole.first_src) == 0
    return _Labels(symbols.labels, int(grammar.rules.lhs[is_part].min(initial=len(symbols.labels))))
