"""Joshua's (Thrax's) grammar files: cdec's syntax, with names ``tm_OWNER_0``, ``tm_OWNER_1`` ...

As in Joshua, unlabelled values are negated and labelled ones are not, so that weights tuned with Joshua mean
the same here; with ``sign=1`` values stay as written. A file cannot be told from one of cdec's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from hiero.core.symbols import Symbols
from hiero.core.text import Chunk, read_chunks
from hiero.grammar.reader import RuleReader, Scan
from hiero.grammar.rules import RuleTable


class JoshuaReader(RuleReader):
    count_all = False

    def __init__(self, path: str | Path, symbols: Symbols, owner: str, sign: int) -> None:
        super().__init__(path, symbols)
        self.prefix = f"tm_{owner}_".encode()
        self.sign = sign

    def unlabelled(self, k: int) -> bytes:
        return self.prefix + b"%d" % k

    def convert(self, scan: Scan) -> None:
        used = scan.batch.first_feature[scan.num_rules]
        value = scan.batch.value[:used]
        # Adding zero turns negative zero into zero.
        value[:] = np.where(scan.batch.name[:used] < 0, value * self.sign + 0.0, value)


def read_joshua(
    path: str | Path,
    symbols: Symbols,
    owner: str = "pt",
    sign: int = -1,
    progress: Callable[[int], None] | None = None,
    chunks: Iterable[Chunk] | None = None,
) -> RuleTable:
    """Read a grammar, plain or gz; unlabelled values are multiplied by ``sign``, -1 or 1.

    ``chunks`` are those of the file, if it is open already.
    """
    reader = JoshuaReader(path, symbols, owner, sign)
    return reader.read(read_chunks(path, what="a grammar") if chunks is None else chunks, progress)
