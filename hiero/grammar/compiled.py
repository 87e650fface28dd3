"""Compiled grammars: a directory of arrays, memory-mapped, so that all processes share one copy.

::

    OUT/meta.json        format, version, rules, the dense columns, source files
    OUT/lhs.npy ...      the arrays of ``rules.Rules`` and ``rules.Trie``
    OUT/words_pool.npy   and so on: three ``WordTable``: words, labels, names

Ids in the arrays refer to these tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hiero.core.arrays import are_offsets, is_finite, is_within
from hiero.core.directories import Arrays, Kind, digest_of
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import (
    Symbols,
    is_sound,
    table_entry,
    word_table,
    word_table_arrays,
    word_table_files,
    word_table_from,
)
from hiero.grammar.binarize import has_wide_gaps, indivisible_rows
from hiero.grammar.rules import Grammar, Rules, Trie
from hiero.grammar.trie_kernels import first_unsound_node_kernel, first_unsound_rule_kernel

INDIVISIBLE = "rules that cannot be divided"  # in the meta-data, if rules have more than two gaps
_TABLES = ("words", "labels", "names")
_Types = dict[str, tuple[type[np.generic], int]]
_RULES: _Types = {
    "lhs": (np.int32, 1),
    "first_src": (np.int64, 1),
    "src": (np.int32, 1),
    "first_tgt": (np.int64, 1),
    "tgt": (np.int32, 1),
    "dense": (np.float32, 2),
    "first_sparse": (np.int64, 1),
    "sparse_name": (np.int32, 1),
    "sparse_value": (np.float32, 1),
    "first_link": (np.int64, 1),
    "link": (np.int16, 2),
}
_TRIE: _Types = {"symbol": (np.int32, 1), "first_child": (np.int64, 1), "first_rule": (np.int64, 1)}
_ARRAYS = _RULES | _TRIE | word_table_files(*_TABLES)


def _is_sound(meta: Mapping[str, Any], arrays: Arrays) -> bool:
    rules, trie = _rules_in(arrays), _trie_in(arrays)
    words, labels, names = (word_table_from(arrays, name) for name in _TABLES)
    columns = meta.get("columns")
    return (
        isinstance(columns, dict)
        and all(type(column) is int for column in columns.values())
        and type(meta.get(INDIVISIBLE, -1)) is int
        and (INDIVISIBLE in meta or not any(map(has_wide_gaps, (rules.src, rules.tgt, trie.symbol))))
        and all(map(is_sound, (words, labels, names)))
        and _rules_are_sound(rules, len(columns), *(len(table.first) - 1 for table in (words, labels, names)))
        and _trie_is_sound(trie, len(rules.lhs))
        and all(_is_entry(names, column, name.encode()) for name, column in columns.items())
    )


def _rules_are_sound(rules: Rules, num_columns: int, num_words: int, num_labels: int, num_names: int) -> bool:
    rows = (
        (rules.first_src, rules.src),
        (rules.first_tgt, rules.tgt),
        (rules.first_sparse, rules.sparse_name),
        (rules.first_sparse, rules.sparse_value),
        (rules.first_link, rules.link),
    )
    num_rules = len(rules.lhs)
    return (
        rules.dense.shape == (num_rules, num_columns)
        and rules.link.shape[1] == 2
        and all(len(first) == num_rules + 1 and are_offsets(first, len(items)) for first, items in rows)
        and is_within(rules.lhs, 0, num_labels)
        and is_within(rules.sparse_name, 0, num_names)
        and is_finite(rules.dense)
        and is_finite(rules.sparse_value)
        and first_unsound_rule_kernel(rules, num_words, num_labels) == num_rules
    )


def _trie_is_sound(trie: Trie, num_rules: int) -> bool:
    num_nodes = len(trie.symbol)
    return (
        num_nodes > 0
        and len(trie.first_child) == len(trie.first_rule) == num_nodes + 1
        and trie.first_child[-1] == num_nodes
        and are_offsets(trie.first_rule, num_rules)
        and first_unsound_node_kernel(trie) == num_nodes
    )


def _is_entry(table: WordTable, index: int, entry: bytes) -> bool:
    return 0 <= index < len(table.first) - 1 and table_entry(table, index) == entry


def _rules_in(arrays: Arrays) -> Rules:
    return Rules(**{name: arrays[name] for name in _RULES})


def _trie_in(arrays: Arrays) -> Trie:
    return Trie(**{name: arrays[name] for name in _TRIE})


GRAMMAR = Kind("hiero grammar", 2, "make it again with hiero grammar compile", _ARRAYS, _is_sound)


@dataclass(frozen=True, slots=True)
class CompiledGrammar:
    """A mapped grammar; all ids in it refer to its own tables.

    indivisible  rules with more than two gaps that cannot be divided; -1 if no rule has so many
    """

    grammar: Grammar
    words: WordTable
    labels: WordTable
    names: WordTable
    meta: Mapping[str, Any]
    indivisible: int


def is_compiled(path: str | Path) -> bool:
    """Whether a path is a compiled grammar, not one as text."""
    return GRAMMAR.recognises(Path(path))


def write_compiled(
    path: str | Path, grammar: Grammar, symbols: Symbols, sources: Sequence[str | Path] = ()
) -> None:
    """Write a grammar together with the vocabularies; ``sources`` are the files it was made from."""
    arrays: dict[str, Any] = grammar.rules._asdict() | grammar.trie._asdict()
    arrays |= word_table_arrays({name: word_table(getattr(symbols, name).entries()) for name in _TABLES})
    meta = {
        "rules": grammar.num_rules,
        "columns": {symbols.names.text(column): int(column) for column in grammar.columns},
        "sources": [_provenance(Path(source)) for source in sources],
    }
    if has_wide_gaps(grammar.trie.symbol):
        meta[INDIVISIBLE] = len(indivisible_rows(grammar.rules))
    GRAMMAR.write(Path(path), meta, arrays)


def _provenance(source: Path) -> dict[str, Any]:
    if source.is_dir():
        source = source / "meta.json"
    return {"name": source.name, "bytes": source.stat().st_size, "sha256": digest_of(source)}


def read_compiled(path: str | Path) -> CompiledGrammar:
    """Map and check a grammar."""
    meta, arrays = GRAMMAR.read(Path(path))
    words, labels, names = (word_table_from(arrays, name) for name in _TABLES)
    grammar = Grammar(_rules_in(arrays), _trie_in(arrays), tuple(meta["columns"].values()))
    return CompiledGrammar(grammar, words, labels, names, meta, meta.get(INDIVISIBLE, -1))
