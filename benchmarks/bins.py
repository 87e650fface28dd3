"""What bins cost: ``python -m benchmarks.bins CONFIG TEXT --bins FILE``.

Translates TEXT with the model of a configuration, with its dense features as they are and with bins in place
of some of them, in turns. The search is as wide in both: what is compared is CPU time. The exit code is 1,
after a line that begins with ``NOT MET``, if bins make decoding more than 1.3 times as slow.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
import warnings
from collections.abc import Sequence

from hiero.config import make_model, read_config
from hiero.decode import Model
from hiero.formats.bins import read_bins
from hiero.formats.text import read_lines
from hiero.statistics import Statistics
from hiero.teststages import model_config

MOST = 1.3


def seconds(model: Model, lines: Sequence[str]) -> tuple[float, int]:
    """CPU, and rules that were looked at."""
    statistics, began = Statistics(), time.process_time()
    for line in lines:
        model.parse(line, statistics)
    return time.process_time() - began, statistics.rules


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bins", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("config")
    parser.add_argument("text")
    parser.add_argument("--bins", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    plain = model_config(read_config(args.config))
    binned = dataclasses.replace(plain, features=dataclasses.replace(plain.features, bins=args.bins))
    models = {"plain": make_model(plain), "bins": make_model(binned)}
    lines = [line.decode() for line in read_lines(args.text)]
    for model in models.values():
        seconds(model, lines)  # compiles, and extracts what an index then remembers
    best = dict.fromkeys(models, float("inf"))
    for _ in range(args.rounds):
        for name, model in models.items():
            took, rules = seconds(model, lines)
            best[name] = min(best[name], took)
    used = [one for one in read_bins(args.bins) if len(one)]
    ratio = best["bins"] / best["plain"]
    print(f"{len(lines)} sentences, {rules:,} rules; {sum(map(len, used)):,} bins of {len(used)} features")
    print(f"plain {best['plain']:.3f} s, bins {best['bins']:.3f} s: {ratio:.2f} times")
    if ratio > MOST:
        print(f"NOT MET: {ratio:.2f} is more than {MOST}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
