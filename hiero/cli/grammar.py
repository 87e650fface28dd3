"""``hiero grammar``: compile, convert and describe grammars."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from hiero.cli.options import add_files, add_settings, replaced
from hiero.core.errors import UsageError
from hiero.core.progress import CommandProgress
from hiero.core.text import open_output
from hiero.grammar.config import GrammarFormat

if TYPE_CHECKING:
    from hiero.core.symbols import Symbols
    from hiero.grammar.rules import RuleTable


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero grammar`` with its subcommands."""
    parser = subparsers.add_parser(
        "grammar",
        help="compile, convert or describe grammars",
        description="Compile, convert or describe synchronous grammars. Grammars are text files of cdec, "
        "Joshua or Moses, plain or gz, or compiled grammars; several are combined into one.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    described = {
        "compile": "write a directory of arrays, which opens at once and is shared between processes",
        "convert": "write a grammar as text in cdec's format",
        "stats": "print the numbers of rules, source sides, gaps, labels and the ranges of the features",
    }
    for name, text in described.items():
        action = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        action.add_argument(
            "grammar", nargs="+", metavar="GRAMMAR", help="grammar to read, - for standard input"
        )
        if name == "compile":
            action.add_argument("out", metavar="OUT", help="directory to write; an old grammar is replaced")
        if name == "convert":
            action.add_argument(
                "-o",
                "--output",
                default="-",
                metavar="OUT",
                help="file to write, compressed if it ends in .gz (default: standard output)",
            )
        add_settings(action.add_argument_group("reading of text"), GrammarFormat)
        add_files(action, "GRAMMAR", {"compile": "OUT", "convert": "-o"}.get(name, ""))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run ``hiero grammar``; return the exit status."""
    if args.grammar.count("-") > 1:
        raise UsageError("standard input (-) can be read only once")
    # Imported after the command line is checked, since numba is slow to load.
    from hiero.core.symbols import Symbols
    from hiero.grammar.assemble import build_grammar, merge_tables
    from hiero.grammar.cdec import write_cdec
    from hiero.grammar.compiled import write_compiled
    from hiero.grammar.sources import read_grammar

    symbols = Symbols()
    grammar_format = replaced(GrammarFormat(), args)
    with CommandProgress("grammar") as progress:
        table = merge_tables([read_grammar(path, symbols, grammar_format, progress) for path in args.grammar])
    if args.action == "compile":
        sources = [path for path in args.grammar if path != "-"]
        write_compiled(args.out, build_grammar([table]), symbols, sources)
        print(f"{args.out}: {table.num_rules:,} rules", file=sys.stderr)
    elif args.action == "convert":
        with open_output(args.output) as file:
            changed = write_cdec(table, symbols, file)
        if changed:
            print(f"{changed:,} words or names that look like syntax were escaped", file=sys.stderr)
    else:
        sys.stdout.write(describe(table, symbols))
    return 0


def describe(table: RuleTable, symbols: Symbols) -> str:
    """Facts about a grammar, a ``name<TAB>value`` on each line, and a table of its dense features."""
    import numpy as np

    from hiero.core.arrays import count_per_row
    from hiero.core.records import MAX_GAPS
    from hiero.grammar.assemble import build_grammar
    from hiero.grammar.binarize import indivisible_rows

    grammar = build_grammar([table])
    rules, trie = grammar.rules, grammar.trie
    num_gaps = count_per_row(rules.src < 0, rules.first_src)
    by_label = np.bincount(rules.lhs, minlength=len(symbols.labels)).tolist()
    with_gaps = np.bincount(num_gaps, minlength=MAX_GAPS + 1).tolist()
    wide = [("rules left out", len(indivisible_rows(rules)))] if len(with_gaps) > MAX_GAPS + 1 else []
    facts: list[tuple[str, object]] = [
        ("rules", table.num_rules),
        ("source sides", int(np.count_nonzero(np.diff(trie.first_rule)))),
        ("trie nodes", len(trie.symbol)),
        *((f"rules with {n} gaps", number) for n, number in enumerate(with_gaps)),
        *wide,
        *((f"rules for [{symbols.labels.text(k)}]", number) for k, number in enumerate(by_label)),
        ("longest source side", int(np.diff(rules.first_src).max(initial=0))),
        ("longest target side", int(np.diff(rules.first_tgt).max(initial=0))),
        ("words", len(symbols.words)),
        ("alignment links", len(rules.link)),
        ("sparse features", len(np.unique(rules.sparse_name))),
        ("sparse values", len(rules.sparse_name)),
        ("bytes", sum(array.nbytes for array in (*rules, *trie))),
    ]
    lines = [f"{name}\t{value}" for name, value in facts]
    if table.num_rules and table.columns:
        lines.append("feature\tmin\tmean\tmax\tnot zero")
        for column, values in zip(table.columns, rules.dense.T, strict=True):
            nonzero = np.count_nonzero(values)
            mean = values.mean(dtype=np.float64)
            name = symbols.names.text(column)
            lines.append(f"{name}\t{values.min():.6g}\t{mean:.6g}\t{values.max():.6g}\t{nonzero}")
    return "\n".join(lines) + "\n"
