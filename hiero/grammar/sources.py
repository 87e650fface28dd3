"""Grammar sources: text files, compiled grammars, rules from Python, and grammars of sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from hiero.core.arrays import Ids, Ints, read_only
from hiero.core.errors import FormatError
from hiero.core.lattice import Arcs
from hiero.core.progress import Progress
from hiero.core.symbol_kernels import LOW_CODE, UNKNOWN, gap, unknown_ids_kernel
from hiero.core.symbols import SharedIds, Symbols, table_entry
from hiero.core.text import GRAMMAR as GRAMMAR_ATTRIBUTE
from hiero.core.text import CheckedPath, checked_path
from hiero.grammar.assemble import build_grammar, merge_tables
from hiero.grammar.assemble_kernels import IdMaps
from hiero.grammar.binarize import has_wide_gaps, indivisible_rows
from hiero.grammar.cdec import parse_cdec
from hiero.grammar.compiled import CompiledGrammar, is_compiled, read_compiled
from hiero.grammar.config import AUTO, GrammarFormat
from hiero.grammar.reader import read_text_grammar
from hiero.grammar.rules import Grammar, Rules, RuleTable, take_rules
from hiero.grammar.trie_kernels import (
    Reach,
    match_lattice_kernel,
    match_trie_kernel,
    reach_kernel,
    trie_rules_kernel,
)


def read_grammar(
    path: str | Path, symbols: Symbols, how: GrammarFormat = AUTO, progress: Progress | None = None
) -> RuleTable:
    """Read all rules of a source of rules, a text or compiled grammar."""
    if is_compiled(path):
        return StaticGrammar.mapped(read_compiled(path), symbols).all_rules()
    return read_text_grammar(path, symbols, how, progress)


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


def reach_of(lattice: Arcs, limit: int) -> Reach:
    """The pairs of nodes with at most so many words between them."""
    reach: Reach = reach_kernel(
        lattice.first, lattice.end, read_only(np.ones(len(lattice.end), np.int32)), limit
    )
    return reach


class _OwnIds:
    """The ids of a compiled grammar and the shared ids, looked up on demand."""

    def __init__(self, compiled: CompiledGrammar, symbols: Symbols) -> None:
        num_labels = len(compiled.labels.first) - 1
        self.words = SharedIds(compiled.words, symbols.words, gaps=[UNKNOWN] * (4 * num_labels))
        self.labels = SharedIds(compiled.labels, symbols.labels)
        self.names = SharedIds(compiled.names, symbols.names)
        self._num_labels = num_labels

    def shared(self, rules: Rules, rows: Ints) -> IdMaps:
        """The shared ids of everything in some rules."""
        words, labels, names = self.words.ids, self.labels.ids, self.names.ids
        if self._num_labels and words[-1] == UNKNOWN:
            # All labels, since there are few. Every code is set before the last in the array, which is that
            # of label 0, index 0.
            self.labels.look_up(np.arange(self._num_labels, dtype=np.int32))
            for label in range(self._num_labels - 1, -1, -1):
                for index in (2, 1, 0):
                    words[gap(label, index)] = gap(int(labels[label]), index)
        src = unknown_ids_kernel(rules.first_src, rules.src, rows, words)
        tgt = unknown_ids_kernel(rules.first_tgt, rules.tgt, rows, words)
        self.words.look_up(np.concatenate([src, tgt]))
        self.names.look_up(unknown_ids_kernel(rules.first_sparse, rules.sparse_name, rows, names))
        return IdMaps(words, words, labels, names)

    def with_shared(self, rules: Rules) -> Rules:
        """Rules with shared ids, also those with more gaps than maps have codes for."""
        high = [np.where(side < 0, (-side - 1) & ~LOW_CODE, 0) for side in (rules.src, rules.tgt)]
        low = rules._replace(src=read_only(rules.src + high[0]), tgt=read_only(rules.tgt + high[1]))
        every = np.arange(len(rules.lhs))
        found = take_rules(low, every, self.shared(low, every))
        return found._replace(src=read_only(found.src - high[0]), tgt=read_only(found.tgt - high[1]))


class StaticGrammar:
    """A grammar that is the same for all sentences; returns the rules that match part of a sentence.

    A rule matches if its source side, with one word or more in each gap, equals some span of at most
    ``span_limit`` words (0: of any length).

    has_wide_rules   whether rules have more than two gaps
    num_indivisible  rules among them that cannot be divided into rules with two, and are not used
    """

    stage = "load"

    def __init__(self, grammar: Grammar, span_limit: int = 0, indivisible: int | None = None) -> None:
        self.grammar, self.span_limit = grammar, span_limit
        self._ids: _OwnIds | None = None
        self._columns = grammar.columns
        self.has_wide_rules = has_wide_gaps(grammar.trie.symbol) if indivisible is None else indivisible >= 0
        if indivisible is None and self.has_wide_rules:
            indivisible = len(indivisible_rows(grammar.rules))
        self.num_indivisible = max(indivisible or 0, 0)

    @classmethod
    def mapped(cls, compiled: CompiledGrammar, symbols: Symbols, span_limit: int = 0) -> StaticGrammar:
        source = cls(compiled.grammar, span_limit, compiled.indivisible)
        source._ids = ids = _OwnIds(compiled, symbols)
        columns = np.array(compiled.grammar.columns, np.int32)
        source._columns = tuple(ids.names.to_shared(columns)[columns].tolist())
        return source

    def rules_for(self, src: Ids, segment: Mapping[str, str], lattice: Arcs | None = None) -> RuleTable:
        if self._ids is not None:
            src = self._ids.words.to_own(src)
        trie = self.grammar.trie
        limit = self.span_limit if self.span_limit > 0 else len(src)
        if lattice is None:
            node = match_trie_kernel(trie, read_only(src), limit)
        else:
            node = match_lattice_kernel(trie, read_only(src), lattice, reach_of(lattice, limit))
        node.sort()
        return self._table(trie_rules_kernel(trie.first_rule, node))

    def some_words(self, symbols: Symbols, *, target: bool, most: int) -> set[bytes]:
        """A sample of words of one side of the rules, from at most ``most`` evenly spaced positions."""
        side = self.grammar.rules.tgt if target else self.grammar.rules.src
        places = np.linspace(0, len(side) - 1, min(most, len(side))).astype(np.int64)
        words = np.unique(side[places])
        words = words[words >= 0].tolist()
        if self._ids is None:
            return {symbols.words.entry(word) for word in words}
        return {table_entry(self._ids.words.table, word) for word in words}

    def __repr__(self) -> str:
        return f"{self.grammar.num_rules:,} rules"

    def all_rules(self) -> RuleTable:
        return self._table(np.arange(self.grammar.num_rules))

    def feature_names(self) -> frozenset[int]:
        """Ids in Symbols.names of all features that a rule may have."""
        sparse = np.unique(self.grammar.rules.sparse_name)
        if self._ids is not None:
            sparse = self._ids.names.to_shared(sparse)[sparse]
        return frozenset((*self._columns, *sparse.tolist()))

    def dense_names(self) -> Sequence[int]:
        return self._columns

    def _table(self, rows: Ints) -> RuleTable:
        rules = self.grammar.rules
        if self._ids is None:
            return RuleTable(rules, self._columns, rows)
        if self.has_wide_rules:
            return RuleTable(self._ids.with_shared(take_rules(rules, rows)), self._columns)
        return RuleTable(rules, self._columns, rows, self._ids.shared(rules, rows))


class RuleList(StaticGrammar):
    """Rules given as text in cdec's syntax: ``[X] ||| a [X,1] ||| b [1] ||| Name=1``."""

    def __init__(self, symbols: Symbols, rules: Sequence[str], span_limit: int = 0) -> None:
        super().__init__(build_grammar([parse_cdec(rules, symbols)]), span_limit)


class PerSentence:
    """Grammars named in the input: ``<seg grammar="g.7.gz" grammar1="more.gz"> ... </seg>``.

    Paths are relative to ``base`` and inside it, unless ``anywhere``. All rules of a text grammar are used;
    of a compiled grammar only those that match.
    """

    stage = "load"

    def __init__(
        self,
        symbols: Symbols,
        base: str | Path = ".",
        span_limit: int = 0,
        how: GrammarFormat = AUTO,
        *,
        anywhere: bool = False,
    ) -> None:
        self.symbols, self.base, self.span_limit, self.how = symbols, Path(base), span_limit, how
        self.anywhere = anywhere
        self._dense: dict[int, None] = {}
        self._names: set[int] = set()
        self._compiled: set[Path] = set()
        self.num_indivisible = 0  # as of ``StaticGrammar``, in the grammars read so far

    def rules_for(self, src: Ids, segment: Mapping[str, str], lattice: Arcs | None = None) -> RuleTable:
        return merge_tables([self._table(self._path(name), src, lattice) for name in grammar_paths(segment)])

    def unread(self) -> PerSentence:
        """The same source, without the names of the grammars read so far."""
        return PerSentence(self.symbols, self.base, self.span_limit, self.how, anywhere=self.anywhere)

    def note(self, segment: Mapping[str, str]) -> bool:
        """Read the grammars of a sentence for the names of features; return whether there are new ones."""
        before = len(self._names)
        for name in grammar_paths(segment):
            if name != "-":  # standard input can be read only once
                self._table(self._path(name), np.zeros(0, np.int32))
        return len(self._names) > before

    def _path(self, name: str) -> Path:
        if not isinstance(name, CheckedPath):
            checked_path(name, self.base, anywhere=self.anywhere)
        return Path(name) if name == "-" else self.base / name

    def feature_names(self) -> None:
        """Unknown before the files are read."""

    def dense_names(self) -> Sequence[int]:
        """Those of the grammars read so far."""
        return list(self._dense)

    def seen_names(self) -> frozenset[int]:
        """Ids in Symbols.names of all features of the grammars read so far."""
        return frozenset(self._names)

    def __repr__(self) -> str:
        return "those named by <seg>"

    def _table(self, path: Path, src: Ids, lattice: Arcs | None = None) -> RuleTable:
        if is_compiled(path):
            grammar = open_grammar(path, self.symbols, self.span_limit)
            if path not in self._compiled:  # a large one may be named by every sentence
                self._compiled.add(path)
                self._note(grammar.dense_names(), grammar.feature_names())
                self.num_indivisible += grammar.num_indivisible
            return grammar.rules_for(src, {}, lattice)
        try:
            table = read_text_grammar(path, self.symbols, self.how)
        except FormatError as error:
            if not error.line:
                raise
            # A line of input can name any file: nothing of its content is shown.
            found = "something else (it is not shown, since a sentence names the file)"
            raise FormatError(error.path, error.line, found=found, expected=error.expected) from None
        self._note(table.columns, np.unique(table.rules.sparse_name).tolist())
        self.num_indivisible += len(indivisible_rows(table.rules))
        return table

    def _note(self, dense: Sequence[int], others: Iterable[int]) -> None:
        self._dense.update(dict.fromkeys(dense))
        self._names.update((*dense, *others))


def grammar_paths(segment: Mapping[str, str]) -> list[str]:
    """The values of ``grammar``, ``grammar1``, ``grammar2`` ... of a ``<seg>`` tag, in this order."""
    numbered = {
        int(found[1] or 0): path
        for key, path in segment.items()
        if (found := GRAMMAR_ATTRIBUTE.fullmatch(key))
    }
    return [numbered[number] for number in sorted(numbered)]
