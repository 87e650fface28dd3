"""cdec's grammar files: ``[X] ||| [X,1] hat [X,2] ||| [1] has [2] ||| EgivenF=1.2 CountEF=0.3 ||| 1-1``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hiero.formats.table import RuleReader, rule_table
from hiero.grammar import RuleTable
from hiero.symbols import Symbols


def unlabelled_name(k: int) -> bytes:
    """What cdec calls the k-th feature of a rule (labelled ones counted) if it has no name."""
    return b"PhraseModel_%d" % k


def read_cdec(path: str | Path, symbols: Symbols, progress: Callable[[int], None] | None = None) -> RuleTable:
    """Read a grammar, plain or gz; ``progress`` hears the number of rules read so far."""
    return rule_table(RuleReader(path, symbols).read(progress), symbols, unlabelled_name)
