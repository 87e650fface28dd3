"""CPU time of loading grammars: reading text, building tries, compiling, mapping, filtering for a sentence.

    python benchmarks/grammar_load.py GRAMMAR... [--input SENTENCES]

Prints process CPU seconds without compilation of kernels. Without ``--input``, source sides of the grammar
are used as sentences.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.results import append_result, peak_mb
from hiero.core.jit import compile_timer
from hiero.core.symbols import Symbols
from hiero.core.text import read_lines
from hiero.grammar.assemble import build_grammar, merge_tables
from hiero.grammar.compiled import write_compiled
from hiero.grammar.sources import open_grammar, read_grammar


class Clock:
    """Process CPU seconds since the last reading."""

    def __init__(self) -> None:
        self.last = time.process_time()

    def __call__(self) -> float:
        now = time.process_time()
        self.last, elapsed = now, now - self.last
        return round(elapsed, 4)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("grammar", nargs="+", type=Path)
    parser.add_argument("--input", type=Path, help="sentences, plain or <seg> lines")
    args = parser.parse_args()
    # Once without measurement, to compile or load machine code.
    build_grammar([read_grammar(args.grammar[0], Symbols())])
    symbols, clock = Symbols(), Clock()
    tables = [read_grammar(path, symbols) for path in args.grammar]
    result: dict[str, object] = {"files": len(tables), "read_s": (read := clock())}
    result["rules"] = num_rules = sum(table.num_rules for table in tables)
    result["rules_per_s"] = round(num_rules / read)
    clock()
    for table in tables:
        build_grammar([table])
    result["plant_ms_per_file"] = round(1000 * clock() / len(tables), 3)
    grammar = build_grammar([merge_tables(tables)])
    result["merge_and_plant_s"] = clock()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "compiled"
        write_compiled(path, grammar, symbols)
        result["write_compiled_s"] = clock()
        fresh = Symbols()
        source = open_grammar(path, fresh, 15)
        result["open_compiled_s"] = clock()
        if args.input is not None:
            texts = [re.sub(rb"</?seg[^>]*>", b"", line).split() for line in read_lines(args.input)]
        else:
            first, src = grammar.rules.first_src, grammar.rules.src
            sides = [src[first[r] : first[r + 1]] for r in range(0, num_rules, max(1, num_rules // 100))]
            texts = [[symbols.words.entry(k) for k in side[side >= 0].tolist()] for side in sides]
        sentences = [fresh.words.intern_all(words) for words in texts]
        source.rules_for(sentences[0], {})
        clock()
        found = [source.rules_for(sentence, {}).num_rules for sentence in sentences]
        result["filter_ms_per_sentence"] = round(1000 * clock() / len(sentences), 3)
        result["rules_per_sentence"] = round(float(np.mean(found)), 1)
    result["peak_rss_mb"] = round(peak_mb())
    result["compile_s"] = round(compile_timer.seconds, 2)
    json.dump(result, sys.stdout, indent=1)
    print()
    append_result("grammar_load", result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
