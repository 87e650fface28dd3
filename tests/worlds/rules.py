"""Random rules for property tests, as text for the naive twins and as arrays."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from hiero.core.arrays import read_only
from hiero.core.symbols import Symbols
from hiero.grammar.rules import Rules, RuleTable
from tests.naive.features import Rule, Symbol, code

# Words that look like syntax, and ordinary words.
NASTY = [
    "a",
    "b",
    "hat",
    "has",
    "a_b",
    "_",
    "__",
    "_a",
    "a_",
    "=",
    "a=b",
    ";",
    "&apos;s",
    "&apos_s",
    ":",
    "::",
    "a:b",
    "12:30",
    "%",
    "%%",
    "10%",
    "%3D",
    "%%X",
    "%25",
    "100%25",
    "#",
    "#a",
    "|",
    "|||",
    "||||",
    "X",
    "S",
    "X1",
    "X2",
    "S1",
    "NX",
    "NS",
    "N1",
    "N2",
    "N3",
    "N",
    "X3",
    "Goal",
    "Goal1",
    "NP",
    "NP1",
    "NNP",
    "<r>",
    "</r>",
    "R:",
    "RBS:a_b",
    "LT:a:b",
    "Shape_S11111_T11111",
    "%~a",
    "ü",
    "ü_ß",
    "\u2028",
    "\xa0",
    "a\rb",
    "\x00",
    "[X,1]",
    "N%%x",
    "%%x1",
    "IP:a:b",
    "A_1",
    "WordPenalty",
]
LABELS = ["X", "S", "NP", "Goal", "x", "NP-SBJ", "N_P", "a:b", "a=b", "100%", "%", "X1", ""]

words = st.sampled_from(NASTY) | st.text(
    st.characters(exclude_characters=" \t\n", codec="utf-8"), min_size=1, max_size=4
)


def symbols_of(extra: list[str] | None = None) -> Symbols:
    symbols = Symbols()
    symbols.words.intern_all(word.encode() for word in [*NASTY, *(extra or [])])
    symbols.labels.intern_all(label.encode() for label in LABELS)
    symbols.names.intern_all(name.encode() for name in ("F0", "F1", "F2", "Glue", "PassThrough"))
    return symbols


@st.composite
def rule(draw: st.DrawFn, num_words: int = len(NASTY), num_columns: int = 2) -> Rule:
    """A rule with up to two gaps; the target side may be empty if there are none."""
    word = st.integers(0, num_words - 1)
    label = st.integers(0, len(LABELS) - 1)
    gaps: list[Symbol] = [(draw(label), index + 1) for index in range(draw(st.integers(0, 2)))]
    src: list[Symbol] = list(draw(st.lists(word, max_size=4)))
    for place, gap in zip(
        sorted(draw(st.lists(st.integers(0, len(src)), min_size=2, max_size=2))), gaps, strict=False
    ):
        src.insert(place + gap[1] - 1, gap)
    if not src:
        src = [draw(word)]
    tgt: list[Symbol] = list(draw(st.lists(word, max_size=4)))
    for gap in gaps:
        tgt.insert(draw(st.integers(0, len(tgt))), gap)
    every_link = st.tuples(st.integers(0, len(src) - 1), st.integers(0, max(len(tgt) - 1, 0)))
    links = draw(st.lists(every_link, max_size=5, unique=True)) if tgt else []
    number = st.integers(-4, 4).map(lambda n: n / 4)
    dense = draw(st.lists(number, min_size=num_columns, max_size=num_columns))
    sparse = draw(st.lists(st.tuples(st.integers(0, 4), number), max_size=2))
    return Rule(draw(label), src, tgt, links, dense, sparse)


def table(rules: list[Rule], columns: tuple[int, ...] = (0, 1)) -> RuleTable:
    """The same rules as arrays."""

    def flat(sides: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
        first = np.cumsum([0] + [len(side) for side in sides]).astype(np.int64)
        return first, np.array([code for side in sides for code in side], np.int32)

    first_src, src = flat([[code(s) for s in r.src] for r in rules])
    first_tgt, tgt = flat([[code(s) for s in r.tgt] for r in rules])
    first_sparse, sparse_name = flat([[name for name, _ in r.sparse] for r in rules])
    first_link, _ = flat([[0] * len(r.links) for r in rules])
    arrays = Rules(
        lhs=np.array([r.lhs for r in rules], np.int32),
        first_src=first_src,
        src=src,
        first_tgt=first_tgt,
        tgt=tgt,
        dense=np.array([r.dense for r in rules], np.float32).reshape(len(rules), len(columns)),
        first_sparse=first_sparse,
        sparse_name=sparse_name,
        sparse_value=np.array([value for r in rules for _, value in r.sparse], np.float32),
        first_link=first_link,
        link=np.array([link for r in rules for link in r.links], np.int16).reshape(-1, 2),
    )
    return RuleTable(Rules._make(read_only(array) for array in arrays), columns)
