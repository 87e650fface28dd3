"""Random grammars as text, and tables in the format of the naive twins."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from hiero.core.errors import FormatError
from hiero.core.symbol_kernels import gap_index, gap_label
from hiero.core.symbols import Symbols
from hiero.grammar.rules import Grammar, Rules, RuleTable
from tests.naive import grammar as naive

# Words that look like syntax.
WORDS = [
    "a",
    "b",
    "hat",
    "|",
    "||||",
    "=",
    ";",
    "a=b",
    "[",
    "]",
    "[]",
    "[,1]",
    "[a",
    "[X,0]",
    "[X,100]",
    "[X,1,2]",
]
WORDS += ["[[X]]", "0-0", "1.5", "#", "\u2028", "\xa0", "\x00", "ü", "澳洲", "a\rb", "&#91;", "%41", "\x0b"]
TARGET_WORDS = [*WORDS, "[foo]", "[0]", "[100]"]
LABELS = ["X", "S", "NP-SBJ", "1", "a=b"]
NAMES = ["F", "Count", "a_b", "|", "%", "x[1]", "7", "R:X:N1"]

numbers = st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr) | st.sampled_from(
    [
        "0",
        "-0.0",
        ".5",
        "5.",
        "+1",
        "1e5",
        "1E-05",
        "2.50e+1",
        "1e-400",
        "0e999",
        "0.30102999566398120",
        "1" * 25,
    ]
)
blanks = st.sampled_from([" ", "  ", "\t"])


@st.composite
def sides(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Source and target tokens of a rule."""
    labels = draw(st.lists(st.sampled_from(LABELS), max_size=2))
    src = draw(st.lists(st.sampled_from(WORDS), min_size=0 if labels else 1, max_size=4))
    tgt = draw(st.lists(st.sampled_from(TARGET_WORDS), max_size=4))
    places = sorted(draw(st.integers(0, len(src))) for _ in labels)
    # From the last, so that the positions of the others do not change.
    for index, label, place in reversed(list(zip((1, 2), labels, places, strict=False))):
        src.insert(place, draw(st.sampled_from([f"[{label}]", f"[{label},{index}]"])))
        tgt.insert(
            draw(st.integers(0, len(tgt))), draw(st.sampled_from([f"[{index}]", f"[{label},{index}]"]))
        )
    return src, tgt


def word_places(side: tuple[object, ...]) -> list[int]:
    return [k for k, symbol in enumerate(side) if isinstance(symbol, bytes)]


@st.composite
def rule_lines(draw: st.DrawFn) -> str:
    """One rule in cdec's syntax."""
    src, tgt = draw(sides())
    features = st.lists(st.builds("{}={}".format, st.sampled_from(NAMES), numbers) | numbers, max_size=4)
    src_side = naive.source_side([token.encode() for token in src])
    tgt_side = naive.target_side(
        [token.encode() for token in tgt], [s for s in src_side if isinstance(s, tuple)]
    )
    i, j = word_places(src_side), word_places(tgt_side)
    links = (
        st.lists(st.tuples(st.sampled_from(i), st.sampled_from(j)), max_size=3) if i and j else st.just([])
    )
    blank = draw(blanks)
    fields = [
        f"[{draw(st.sampled_from(LABELS))}]",
        blank.join(src),
        blank.join(tgt),
        draw(st.sampled_from([" ", ";", "; ", "\t"])).join(draw(features)),
        blank.join(f"{i}-{j}" for i, j in draw(links)),
        "(S x)",
    ]
    fields = fields[: draw(st.integers(3, len(fields)))]
    return f"{blank}|||{blank}".join(fields) + draw(st.sampled_from(["", " ", "\r"]))


patterns = st.sampled_from(
    [
        "a",
        "b",
        "a b",
        "b a a",
        "[X]",
        "[S]",
        "[X] a",
        "a [X]",
        "[X] a [X]",
        "[X] [X]",
        "[S] b [X] a",
        "a [X] [S]",
        "a [X] b",
    ]
)


@st.composite
def small_rules(draw: st.DrawFn) -> str:
    """Rules over two words, so that many source sides are the same and many match."""
    pattern = draw(patterns)
    gaps = [f"[{k}]" for k in range(1, pattern.count("[") + 1)]
    feature = draw(st.sampled_from(["", "F=1", "G=2 F=3", "H=1 I=1"]))
    lhs, word = draw(st.sampled_from("XS")), draw(st.sampled_from("xyz"))
    return f"[{lhs}] ||| {pattern} ||| {word} {' '.join(gaps)} ||| {feature}"


def rules_of(table: RuleTable | Grammar, symbols: Symbols) -> list[tuple[object, ...]]:
    """A table in the format of ``naive.grammar.read_rules``, features by name, without zeros."""
    rules: Rules = table.rules

    def symbol(code: int) -> object:
        if code >= 0:
            return symbols.words.entry(code)
        return symbols.labels.entry(int(gap_label(code))), int(gap_index(code))

    def row(first: str, item: str, r: int) -> list[object]:
        offsets = getattr(rules, first)
        return getattr(rules, item)[offsets[r] : offsets[r + 1]].tolist()  # type: ignore[no-any-return]

    listed = []
    for r in range(table.num_rules):
        names = [*table.columns, *row("first_sparse", "sparse_name", r)]
        values = [*rules.dense[r].tolist(), *row("first_sparse", "sparse_value", r)]
        listed.append(
            (
                symbols.labels.entry(rules.lhs[r]),
                tuple(symbol(code) for code in row("first_src", "src", r)),  # type: ignore[arg-type]
                tuple(symbol(code) for code in row("first_tgt", "tgt", r)),  # type: ignore[arg-type]
                {symbols.names.entry(n): v for n, v in zip(names, values, strict=True) if v != 0},  # type: ignore[arg-type]
                [tuple(link) for link in row("first_link", "link", r)],  # type: ignore[arg-type]
            )
        )
    return listed


def named(rules: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rules of a twin with names for all features, without zeros."""
    out = []
    for lhs, src, tgt, features, links in rules:
        names = {n if isinstance(n, bytes) else b"PhraseModel_%d" % n: v for n, v in features.items()}
        out.append((lhs, src, tgt, {n: v for n, v in names.items() if v != 0}, links))
    return out


def write_rules(folder: Path, text: str | bytes) -> Path:
    path = folder / "rules.txt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def outcome(read: Callable[[], Any]) -> Any:
    """The rules read, or the number of the wrong line."""
    try:
        return read()
    except (FormatError, naive.Wrong) as error:
        return error.line
