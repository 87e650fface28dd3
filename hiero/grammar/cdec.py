"""Grammar files of cdec and Joshua: ``[X] ||| [X,1] hat [X,2] ||| [1] has [2] ||| EgivenF=1.2 ||| 1-1``.

cdec's are read as cdec reads them: features, labelled or not, are separated by spaces, tabs or ``;``; the
target side may be empty, and the fields after it may be missing; a sixth field is not read; blank lines are
skipped; there are no comments. More liberal than cdec: numbers like ``.5`` and ``1e-05``, carriage returns at
line ends. Stricter: alignment links inside the rule, a source side that is not empty,
UTF-8.

Joshua's (Thrax's) have cdec's syntax, with names ``tm_OWNER_0``, ``tm_OWNER_1`` ...

As in Joshua, unlabelled values are negated and labelled ones are not, so that weights tuned with Joshua mean
the same here; with ``sign=1`` values stay as written. A file cannot be told from one of cdec's.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from hiero.core.arrays import Ints
from hiero.core.symbol_kernels import gap_index, gap_label
from hiero.core.symbols import Symbols, Vocabulary
from hiero.core.text import Chunk
from hiero.grammar.reader import RuleReader, Scan
from hiero.grammar.rules import Rules, RuleTable

RULES_AT_ONCE = 20_000

_GAP_LIKE = re.compile(rb"\[[^\t \[\],]+(?:,[1-9][0-9]?)?\]")
_NAME_UNSAFE = re.compile(rb"[\x00-\x20;=]|^\|\|\|$")


def parse_cdec(rules: Sequence[str], symbols: Symbols, origin: str = "<rules>") -> RuleTable:
    """Rules from strings; ``origin`` stands for the path in messages, in which a line is a string."""
    # A string with a newline would be two rules and shift line numbers; with a blank it is an invalid rule.
    text = "".join(rule.replace("\n", " ") + "\n" for rule in rules)
    data = text.encode("utf-8", errors="surrogatepass")
    return RuleReader(origin, symbols).read([Chunk(data, 1, 0)] if data else [])


class JoshuaReader(RuleReader):
    """Reads Joshua's grammars; unlabelled values are multiplied by ``sign``, -1 or 1."""

    count_all = False

    def __init__(self, path: str | Path, symbols: Symbols, owner: str | None = None, sign: int = -1) -> None:
        super().__init__(path, symbols, "pt" if owner is None else owner)
        self.sign = sign

    def convert(self, scan: Scan) -> None:
        used = scan.batch.first_feature[scan.num_rules]
        value = scan.batch.value[:used]
        # Adding zero turns negative zero into zero.
        value[:] = np.where(scan.batch.name[:used] < 0, value * self.sign + 0.0, value)


# ---- writing


class _WrittenForms:
    """A cache of written forms, and the number of entries that had to be escaped."""

    def __init__(self, vocabulary: Vocabulary, unsafe: re.Pattern[bytes] | None = None) -> None:
        self.vocabulary, self.unsafe = vocabulary, unsafe
        self.known: dict[int, bytes] = {}
        self.escaped = 0

    def __call__(self, index: int) -> bytes:
        spelt = self.known.get(index)
        if spelt is None:
            entry = self.vocabulary.entry(index)
            spelt = self.known[index] = self._spell(entry)
            self.escaped += spelt != entry
        return spelt

    def _spell(self, entry: bytes) -> bytes:
        if self.unsafe is not None:
            return self.unsafe.sub(lambda found: b"".join(b"%%%02X" % byte for byte in found[0]), entry)
        return spell_cdec_word(entry)


def spell_cdec_word(entry: bytes) -> bytes:
    """A word as cdec's grammars have it: escaped if it looks like a gap or like ``|||``."""
    if entry == b"|||":
        return b"&#124;" * 3
    if _GAP_LIKE.fullmatch(entry):
        return b"&#91;" + entry[1:-1] + b"&#93;"
    return entry


def write_cdec(table: RuleTable, symbols: Symbols, file: IO[bytes]) -> int:
    """Write rules as cdec reads them, numbers with nine significant digits (enough for a float32).

    A word shaped like a gap, or ``|||``, is written with ``&#91;``, ``&#93;``, ``&#124;``; a blank, ``=``
    or ``;`` in a feature name as ``%XX``. Returns the number of words and names changed in this way.
    """
    words, names = _WrittenForms(symbols.words), _WrittenForms(symbols.names, _NAME_UNSAFE)

    def symbol(code: int) -> bytes:
        if code >= 0:
            return words(code)
        return b"[%s,%d]" % (symbols.labels.entry(int(gap_label(code))), int(gap_index(code)))

    # All dense features of a rule in one formatting step.
    row = b" ".join(names(column).replace(b"%", b"%%") + b"=%.9g" for column in table.columns)
    for start in range(0, table.num_rules, RULES_AT_ONCE):
        run = _RuleSlice(table.rules, start, min(start + RULES_AT_ONCE, table.num_rules))
        src = run.rows("first_src", map(symbol, run.items("first_src", "src")))
        tgt = run.rows("first_tgt", map(symbol, run.items("first_tgt", "tgt")))
        named = map(names, run.items("first_sparse", "sparse_name"))
        values = run.items("first_sparse", "sparse_value")
        sparse = run.rows("first_sparse", (b"%s=%.9g" % pair for pair in zip(named, values, strict=True)))
        links = run.rows("first_link", (b"%d-%d" % tuple(link) for link in run.items("first_link", "link")))
        for k, (lhs, dense) in enumerate(run.heads()):
            features = b" ".join([row % tuple(dense), *sparse[k]] if dense else sparse[k])
            fields = [b"[%s]" % symbols.labels.entry(lhs), b" ".join(src[k]), b" ".join(tgt[k]), features]
            if links[k]:
                fields.append(b" ".join(links[k]))
            file.write(b" ||| ".join(fields) + b"\n")
    return words.escaped + names.escaped


class _RuleSlice:
    """Consecutive rules as Python lists."""

    def __init__(self, rules: Rules, start: int, end: int) -> None:
        self.rules, self.start, self.end = rules, start, end

    def _offsets(self, first: str) -> Ints:
        offsets: Ints = getattr(self.rules, first)[self.start : self.end + 1]
        return offsets

    def heads(self) -> Iterable[tuple[int, list[float]]]:
        """Left-hand side and dense features of each rule."""
        here = slice(self.start, self.end)
        return zip(self.rules.lhs[here].tolist(), self.rules.dense[here].tolist(), strict=True)

    def items(self, first: str, item: str) -> list[Any]:
        offsets = self._offsets(first)
        flat: list[Any] = getattr(self.rules, item)[offsets[0] : offsets[-1]].tolist()
        return flat

    def rows(self, first: str, spelt: Iterable[bytes]) -> list[list[bytes]]:
        """The items of each rule."""
        flat = list(spelt)
        offsets = self._offsets(first)
        return [flat[a:b] for a, b in itertools.pairwise((offsets - offsets[0]).tolist())]
