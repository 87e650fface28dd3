# mypy: allow-untyped-calls
"""Grammar sources, and the construction of tries from their rules."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hiero.core.segments import GRAMMAR as GRAMMAR_ATTRIBUTE
from hiero.core.symbols import Symbols, Vocabulary, WordTable, find_all, read_only, table_entry
from hiero.core.text import read_chunks
from hiero.grammar.assemble import Ranks
from hiero.grammar.cdec import parse_cdec, read_cdec
from hiero.grammar.columns import split_features
from hiero.grammar.compiled import GRAMMAR, CompiledGrammar, read_compiled
from hiero.grammar.config import AUTO, GrammarFormat
from hiero.grammar.joshua import read_joshua
from hiero.grammar.moses import read_moses
from hiero.grammar.reader import joined_columns
from hiero.grammar.reader_kernels import share_ids_kernel
from hiero.grammar.rules import Grammar, Rules, RuleTable, Trie, take_rows, take_rules
from hiero.grammar.trie_kernels import grow_trie_kernel, match_kernel, rank_gaps_kernel

EMPTY = Rules(
    lhs=np.zeros(0, np.int32),
    first_src=np.zeros(1, np.int64),
    src=np.zeros(0, np.int32),
    first_tgt=np.zeros(1, np.int64),
    tgt=np.zeros(0, np.int32),
    dense=np.zeros((0, 0), np.float32),
    first_sparse=np.zeros(1, np.int64),
    sparse_name=np.zeros(0, np.int32),
    sparse_value=np.zeros(0, np.float32),
    first_link=np.zeros(1, np.int64),
    link=np.zeros((0, 2), np.int16),
)


def build_grammar(
    tables: Sequence[RuleTable], unindexed: RuleTable | None = None, ranks: Ranks | None = None
) -> Grammar:
    """Build one trie over the rules of all tables; rules of ``unindexed`` follow, and are not in the trie.

    With ``ranks``, gaps in the trie have the ranks of their labels instead of the labels.
    """
    table = merge_tables(tables if unindexed is None else [*tables, unindexed])
    num_indexed = table.num_rules - (0 if unindexed is None else unindexed.num_rules)
    trie, order = _build_trie(table.rules, num_indexed, None if ranks is None or ranks.as_ids else ranks)
    return Grammar(take_rules(table.rules, order), trie, table.columns)


def _build_trie(rules: Rules, num_indexed: int, ranks: Ranks | None) -> tuple[Trie, npt.NDArray[np.int64]]:
    """The trie of the first ``num_indexed`` source sides, and the order of all rules, the others last."""
    first_src = read_only(rules.first_src[: num_indexed + 1])
    src, lhs = rules.src[: first_src[-1]], rules.lhs[:num_indexed]
    if ranks is not None:
        src, lhs = src.copy(), ranks.of_label[lhs]
        rank_gaps_kernel(src, ranks.of_label)
    most = len(src) + 1
    slots = 16
    while slots < 2 * most:
        slots *= 2
    parent, symbol, depth = (np.empty(most, np.int32) for _ in range(3))
    node = np.empty(num_indexed, np.int32)
    slot = np.full(slots, -1, np.int32)
    num_nodes = grow_trie_kernel(first_src, read_only(src), slot, parent, symbol, depth, node)
    parent, symbol, depth = parent[:num_nodes], symbol[:num_nodes], depth[:num_nodes]
    number = _breadth_first(parent, symbol, depth)
    first_child = np.ones(num_nodes + 1, np.int64)
    np.cumsum(np.bincount(number[parent[1:]], minlength=num_nodes), out=first_child[1:])
    first_child[1:] += 1
    first_rule = np.zeros(num_nodes + 1, np.int64)
    np.cumsum(np.bincount(number[node], minlength=num_nodes), out=first_rule[1:])
    symbol_of = np.empty(num_nodes, np.int32)
    symbol_of[number] = symbol
    order = np.argsort((number[node] << 32) + lhs, kind="stable")
    order = np.concatenate([order, np.arange(num_indexed, len(rules.lhs))])
    return Trie(read_only(symbol_of), read_only(first_child), read_only(first_rule)), order


def _breadth_first(
    parent: npt.NDArray[np.int32], symbol: npt.NDArray[np.int32], depth: npt.NDArray[np.int32]
) -> npt.NDArray[np.int64]:
    """Number nodes level by level, by parent and then by symbol."""
    number = np.zeros(len(parent), np.int64)
    by_depth = np.argsort(depth, kind="stable")
    level_end = np.cumsum(np.bincount(depth))
    for begin, end in itertools.pairwise(level_end):
        level = by_depth[begin:end]
        key = (number[parent[level]] << 32) + (symbol[level].astype(np.int64) + (1 << 31))
        number[level[np.argsort(key)]] = np.arange(begin, end)
    return number


def merge_tables(tables: Sequence[RuleTable]) -> RuleTable:
    """Concatenate tables. A feature that is a column of one table becomes a column of the result."""
    if len(tables) == 1:
        return tables[0]
    if not tables:
        return RuleTable(EMPTY, ())
    columns = tuple(dict.fromkeys(name for table in tables for name in table.columns))
    arrays = joined_columns(Rules._fields, [_with_columns(table, columns) for table in tables])
    return RuleTable(Rules(*map(read_only, arrays)), columns)


def _with_columns(table: RuleTable, columns: tuple[int, ...]) -> Rules:
    rules = table.rules
    if not len(rules.sparse_name) or not np.isin(rules.sparse_name, columns).any():
        if table.columns == columns:
            return rules
        dense = np.zeros((table.num_rules, len(columns)), np.float32)
        dense[:, [columns.index(name) for name in table.columns]] = rules.dense
        return rules._replace(dense=read_only(dense))
    # Merge dense and sparse features into one list per rule, and split them by the new columns.
    num_rules, width = rules.dense.shape
    num_sparse = np.diff(rules.first_sparse)
    first = np.zeros(num_rules + 1, np.int64)
    np.cumsum(num_sparse + width, out=first[1:])
    name = np.empty(first[-1], np.int32)
    value = np.empty(first[-1], np.float32)
    dense_place = first[:-1, None] + np.arange(width)
    name[dense_place], value[dense_place] = table.columns, rules.dense
    sparse_place = np.arange(len(rules.sparse_name)) + np.repeat(
        first[:-1] + width - rules.first_sparse[:-1], num_sparse
    )
    name[sparse_place], value[sparse_place] = rules.sparse_name, rules.sparse_value
    _, dense, first_sparse, sparse_name, sparse_value = split_features(
        first, name, value, np.array(columns, np.int32)
    )
    return rules._replace(
        dense=dense, first_sparse=first_sparse, sparse_name=sparse_name, sparse_value=sparse_value
    )


Progress = Callable[[int], None]


_FIRST_LINE = re.compile(rb"[^ \t\r\n][^\n]*")


def recognise(line: bytes) -> str:
    """Recognise the format of a file by its first rule; a Moses rule begins with its source side."""
    first_field = line.partition(b"|||")[0].strip(b" \t\r")
    last = re.split(rb"[ \t]", first_field)[-1]
    in_brackets = first_field != last and last.startswith(b"[") and last.endswith(b"]")
    return "moses" if in_brackets else "cdec"


def read_grammar(
    path: str | Path, symbols: Symbols, how: GrammarFormat = AUTO, progress: Progress | None = None
) -> RuleTable:
    """Read all rules of a text or compiled grammar; ``progress`` is called with the number read so far."""
    if is_compiled(path):
        return StaticGrammar.mapped(read_compiled(path), symbols).all_rules()
    return read_text_grammar(path, symbols, how, progress)


def read_text_grammar(
    path: str | Path, symbols: Symbols, how: GrammarFormat = AUTO, progress: Progress | None = None
) -> RuleTable:
    """Read all rules of a text grammar."""
    chunks = read_chunks(path, what="a grammar")
    first = next(chunks, None)
    if first is None:
        return merge_tables([])
    line = _FIRST_LINE.search(first.data)
    form = recognise(line[0] if line else b"") if how.format == "auto" else how.format
    chunks = itertools.chain([first], chunks)
    if form == "moses":
        return read_moses(path, symbols, how.scale, progress=progress, chunks=chunks)
    if form == "joshua":
        return read_joshua(path, symbols, how.owner, how.sign, progress=progress, chunks=chunks)
    return read_cdec(path, symbols, progress=progress, chunks=chunks)


def is_compiled(path: str | Path) -> bool:
    return GRAMMAR.recognises(Path(path))


def open_grammar(
    path: str | Path,
    symbols: Symbols,
    span_limit: int = 0,
    how: GrammarFormat = AUTO,
    progress: Progress | None = None,
) -> StaticGrammar:
    """Read a text grammar or map a compiled one; see ``StaticGrammar`` for ``span_limit``."""
    if is_compiled(path):
        return StaticGrammar.mapped(read_compiled(path), symbols, span_limit)
    return StaticGrammar(build_grammar([read_grammar(path, symbols, how, progress)]), span_limit)


class _IdMap:
    """Conversion between the ids of a compiled grammar and the shared ids, looked up on demand."""

    def __init__(self, table: WordTable, vocabulary: Vocabulary) -> None:
        self.table, self.vocabulary = table, vocabulary
        size = len(table.first) - 1
        self._shared = np.zeros(size, np.int32)
        self._known = np.zeros(size, np.bool_)

    def to_own(self, shared: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The ids in the grammar of shared ids; -1 for entries that it does not have."""
        return find_all(self.table, [self.vocabulary.entry(index) for index in shared.tolist()])

    def to_shared(self, own: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """An array of shared ids, indexed by the ids in the grammar; valid for those in ``own``."""
        new = np.unique(own[~self._known[own]])
        # Values are set before flags, for threads that read the flags at the same time.
        self._shared[new] = self.vocabulary.intern_all(table_entry(self.table, k) for k in new.tolist())
        self._known[new] = True
        return self._shared


class StaticGrammar:
    """A grammar that is the same for all sentences; returns the rules that match part of a sentence.

    A rule matches if its source side, with one word or more in each gap, equals some span of at most
    ``span_limit`` words (0: of any length).
    """

    def __init__(self, grammar: Grammar, span_limit: int = 0) -> None:
        self.grammar, self.span_limit = grammar, span_limit
        self._id_maps: tuple[_IdMap, _IdMap, _IdMap] | None = None
        self._columns = grammar.columns

    @classmethod
    def mapped(cls, compiled: CompiledGrammar, symbols: Symbols, span_limit: int = 0) -> StaticGrammar:
        source = cls(compiled.grammar, span_limit)
        words, labels, names = (
            _IdMap(table, vocabulary)
            for table, vocabulary in (
                (compiled.words, symbols.words),
                (compiled.labels, symbols.labels),
                (compiled.names, symbols.names),
            )
        )
        source._id_maps = words, labels, names
        columns = np.array(compiled.grammar.columns, np.int32)
        source._columns = tuple(names.to_shared(columns)[columns].tolist())
        return source

    def rules_for(self, src: npt.NDArray[np.int32], segment: Mapping[str, str]) -> RuleTable:
        if self._id_maps is not None:
            src = self._id_maps[0].to_own(src)
        trie = self.grammar.trie
        limit = self.span_limit if self.span_limit > 0 else len(src)
        node = np.unique(match_kernel(trie, read_only(src), limit))
        _, order = take_rows(trie.first_rule, node)
        return self._table(order)

    def some_words(self, symbols: Symbols, *, target: bool, most: int) -> set[bytes]:
        """A sample of words of one side of the rules, from at most ``most`` evenly spaced positions."""
        side = self.grammar.rules.tgt if target else self.grammar.rules.src
        places = np.linspace(0, len(side) - 1, min(most, len(side))).astype(np.int64)
        words = np.unique(side[places])
        words = words[words >= 0].tolist()
        if self._id_maps is None:
            return {symbols.words.entry(word) for word in words}
        return {table_entry(self._id_maps[0].table, word) for word in words}

    def all_rules(self) -> RuleTable:
        return self._table(np.arange(self.grammar.num_rules))

    def feature_names(self) -> frozenset[int]:
        """Ids in Symbols.names of all features that a rule may have."""
        sparse = np.unique(self.grammar.rules.sparse_name)
        if self._id_maps is not None and len(sparse):
            sparse = self._id_maps[2].to_shared(sparse)[sparse]
        return frozenset((*self._columns, *sparse.tolist()))

    def _table(self, order: npt.NDArray[np.int64]) -> RuleTable:
        rules = take_rules(self.grammar.rules, order)
        if self._id_maps is not None:
            rules = self._with_shared_ids(rules, *self._id_maps)
        return RuleTable(rules, self._columns)

    @staticmethod
    def _with_shared_ids(rules: Rules, words: _IdMap, labels: _IdMap, names: _IdMap) -> Rules:
        src, tgt = rules.src.copy(), rules.tgt.copy()
        word_ids = words.to_shared(np.concatenate([src[src >= 0], tgt[tgt >= 0]]))
        # All labels, since there are few.
        label_ids = labels.to_shared(np.arange(len(labels.table.first) - 1, dtype=np.int32))
        for side in (src, tgt):
            share_ids_kernel(side, word_ids, label_ids)
        sparse_name = names.to_shared(rules.sparse_name)[rules.sparse_name]
        return rules._replace(
            lhs=read_only(label_ids[rules.lhs]),
            src=read_only(src),
            tgt=read_only(tgt),
            sparse_name=read_only(sparse_name),
        )


class RuleList(StaticGrammar):
    """Rules given as text in cdec's syntax: ``[X] ||| a [X,1] ||| b [1] ||| Name=1``."""

    def __init__(self, symbols: Symbols, rules: Sequence[str], span_limit: int = 0) -> None:
        super().__init__(build_grammar([parse_cdec(rules, symbols)]), span_limit)


class PerSentence:
    """Grammars named in the input: ``<seg grammar="g.7.gz" grammar1="more.gz"> ... </seg>``.

    Paths are relative to ``base``. All rules of a text grammar are used; of a compiled grammar only those
    that match.
    """

    def __init__(
        self, symbols: Symbols, base: str | Path = ".", span_limit: int = 0, how: GrammarFormat = AUTO
    ) -> None:
        self.symbols, self.base, self.span_limit, self.how = symbols, Path(base), span_limit, how

    def rules_for(self, src: npt.NDArray[np.int32], segment: Mapping[str, str]) -> RuleTable:
        return merge_tables([self._table(self.base / path, src) for path in grammar_paths(segment)])

    def _table(self, path: Path, src: npt.NDArray[np.int32]) -> RuleTable:
        if is_compiled(path):
            return open_grammar(path, self.symbols, self.span_limit).rules_for(src, {})
        return read_text_grammar(path, self.symbols, self.how)


def grammar_paths(segment: Mapping[str, str]) -> list[str]:
    """The values of ``grammar``, ``grammar1``, ``grammar2`` ... of a ``<seg>`` tag, in this order."""
    numbered = {
        int(found[1] or 0): path
        for key, path in segment.items()
        if (found := GRAMMAR_ATTRIBUTE.fullmatch(key))
    }
    return [numbered[number] for number in sorted(numbered)]
