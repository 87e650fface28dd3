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

from hiero.core.directories import Kind, digest_of
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
from hiero.grammar.rules import Grammar, Rules, Trie

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
GRAMMAR = Kind("hiero grammar", 1, "make it again with hiero grammar compile", _ARRAYS)


@dataclass(frozen=True, slots=True)
class CompiledGrammar:
    """A mapped grammar; all ids in it refer to its own tables."""

    grammar: Grammar
    words: WordTable
    labels: WordTable
    names: WordTable
    meta: Mapping[str, Any]


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
    GRAMMAR.write(Path(path), meta, arrays)


def _provenance(source: Path) -> dict[str, Any]:
    if source.is_dir():
        source = source / "meta.json"
    return {"name": source.name, "bytes": source.stat().st_size, "sha256": digest_of(source)}


def read_compiled(path: str | Path) -> CompiledGrammar:
    """Map a grammar; its arrays are read as they are used."""
    path = Path(path)
    meta, arrays = GRAMMAR.read(path)
    rules = Rules(**{name: arrays[name] for name in _RULES})
    trie = Trie(**{name: arrays[name] for name in _TRIE})
    words, labels, names = (word_table_from(arrays, name) for name in _TABLES)
    columns = meta.get("columns")
    if not (
        isinstance(columns, dict)
        and all(isinstance(column, int) for column in columns.values())
        and _rules_are_sound(rules, len(columns))
        and _trie_is_sound(trie, len(rules.lhs))
        and all(map(is_sound, (words, labels, names)))
    ):
        raise GRAMMAR.broken(path, "arrays that do not fit together", f"a {GRAMMAR.name}")
    num_names = len(names.first) - 1
    for name, column in columns.items():
        if not 0 <= column < num_names or table_entry(names, column) != name.encode():
            raise GRAMMAR.broken(path / "meta.json", f"column {name!r}", f"name {column} of this grammar")
    return CompiledGrammar(Grammar(rules, trie, tuple(columns.values())), words, labels, names, meta)


def _rules_are_sound(rules: Rules, num_columns: int) -> bool:
    rows = (
        (rules.first_src, rules.src),
        (rules.first_tgt, rules.tgt),
        (rules.first_sparse, rules.sparse_name),
        (rules.first_sparse, rules.sparse_value),
        (rules.first_link, rules.link),
    )
    return rules.dense.shape == (len(rules.lhs), num_columns) and all(
        len(first) == len(rules.lhs) + 1 and first[0] == 0 and first[-1] == len(items)
        for first, items in rows
    )


def _trie_is_sound(trie: Trie, num_rules: int) -> bool:
    num_nodes = len(trie.symbol)
    return (
        num_nodes > 0
        and len(trie.first_child) == len(trie.first_rule) == num_nodes + 1
        and trie.first_child[-1] == num_nodes
        and trie.first_rule[-1] == num_rules
    )
