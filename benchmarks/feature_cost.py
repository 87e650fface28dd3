"""Cost of bins or orientation models: ``python -m benchmarks.feature_cost CONFIG TEXT --bins FILE``
(or ``--reordering DIR``).

Translates TEXT alternately with the features of a configuration and with bins in place of some dense ones, or
with an additional orientation model, and compares CPU times, the least of each line. The search limits are
the same. An orientation model without weights changes no translation. The exit code is 1, after a line that
begins with ``NOT MET``, if decoding takes more than 1.3 times as long with bins, or 1.25 times with an
orientation model.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.results import append_result
from hiero.bins.file import read_bins
from hiero.config.config import read_config
from hiero.config.model import make_model, model_config
from hiero.core.arrays import Floats
from hiero.core.text import read_lines
from hiero.decoder.model import Model
from hiero.decoder.statistics import Statistics

MOST = {"bins": 1.3, "reordering": 1.25}


def seconds(model: Model, lines: Sequence[str]) -> tuple[Floats, int]:
    """CPU seconds of each line, and the number of rules."""
    statistics, taken = Statistics(), []
    for line in lines:
        began = time.process_time()
        model.parse(line, statistics)
        taken.append(time.process_time() - began)
    return np.array(taken), statistics.rules


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.feature_cost", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("config")
    parser.add_argument("text")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--bins", metavar="FILE")
    which.add_argument("--reordering", metavar="MODEL")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    plain = model_config(read_config(args.config))
    name, given = ("bins", args.bins) if args.bins else ("reordering", [args.reordering])
    change: dict[str, Any] = {name: given}
    other = dataclasses.replace(plain, features=dataclasses.replace(plain.features, **change))
    models = {"plain": make_model(plain), name: make_model(other)}
    lines = [line.decode() for line in read_lines(args.text)]
    for model in models.values():
        seconds(model, lines)  # compiles, and fills the caches of an index
    least = dict.fromkeys(models, np.full(len(lines), np.inf))
    for _ in range(args.rounds):
        for key, model in models.items():
            took, rules = seconds(model, lines)
            least[key] = np.minimum(least[key], took)
    best = {key: float(taken.sum()) for key, taken in least.items()}
    ratio = best[name] / best["plain"]
    print(f"{len(lines)} sentences, {rules:,} rules{_described(args.bins)}")
    print(f"plain {best['plain']:.3f} s, {name} {best[name]:.3f} s: {ratio:.2f} times")
    append_result("feature_cost", {"with": name, "sentences": len(lines), **best, "ratio": ratio})
    if ratio > MOST[name]:
        print(f"NOT MET: {ratio:.2f} is more than {MOST[name]}")
        return 1
    return 0


def _described(path: str | None) -> str:
    if path is None:
        return ""
    used = [one for one in read_bins(path) if len(one)]
    return f"; {sum(map(len, used)):,} bins of {len(used)} features"


if __name__ == "__main__":
    sys.exit(main())
