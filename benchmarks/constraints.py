"""Forced decoding and completion: ``python -m benchmarks.constraints CONFIG --set SRC REF``.

With a model of ``hiero run``:

- forced: the first sentences of the set are translated, and each translation is forced. Exits with 1 if one
  is not reachable, or has a lower score than in the search (beyond rounding). The share of reachable
  references, and with ``--train SRC REF``, the texts of the model's index, that of training pairs with and
  without the rules that come from the pair itself.
- completion: translations (even lines) or references (odd lines) are cut anywhere and completed. Exits with
  1 if a completion does not begin with what is left. The median CPU time of translating, of the first request
  for a sentence, and of a further one.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from itertools import islice
from typing import Any, TypeVar

import hiero
from benchmarks.results import append_result
from hiero.core.text import Segment, read_text
from hiero.decoder.model import Model

# Of scores: forced and ordinary search add single-precision probabilities in different orders.
ROUNDING = 1e-5
Pair = tuple[tuple[str, ...], str]
T = TypeVar("T")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", metavar="CONFIG", help="model.yaml of hiero run")
    parser.add_argument("--set", nargs=2, required=True, metavar=("SRC", "REF"))
    parser.add_argument("--train", nargs=2, metavar=("SRC", "REF"))
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--completions", type=int, default=500)
    args = parser.parse_args()
    model = hiero.load(args.config)
    model.translate("a", "b")  # compiles
    pairs = read_pairs(args.set, args.sentences)
    figures = forced(model, pairs)
    if args.train:
        figures |= training(model, read_pairs(args.train, args.sentences))
    figures |= completions(model, pairs[: args.completions])
    for name, figure in figures.items():
        print(f"{name:<36}{figure:12.6g}")
    append_result("constraints", figures)
    return int(
        figures["own not reachable"] > 0
        or figures["least gain over the search"] < -ROUNDING
        or figures["completions without beginning"] > 0
    )


def read_pairs(paths: list[str], count: int) -> list[Pair]:
    src, ref = (read_text(path) for path in paths)
    return [(tuple(line.split()), other.strip()) for line, other in islice(zip(src, ref, strict=True), count)]


def forced(model: Model, pairs: list[Pair]) -> dict[str, float]:
    gains, seconds = [], {"search": 0.0, "force": 0.0}
    own = references = 0
    for words, reference in pairs:
        segment = Segment(words)
        best, seconds_here = timed(model.translate, segment)
        seconds["search"] += seconds_here
        found, seconds_here = timed(model.force_all, segment, (best.text, reference))
        seconds["force"] += seconds_here
        own += not found[0]
        references += bool(found[1])
        if found[0]:
            gains.append(found[0].score - best.score)
    return {
        "sentences": len(pairs),
        "own not reachable": own,
        "least gain over the search": min(gains),
        "mean gain over the search": statistics.fmean(gains),
        "references reachable, %": 100 * references / len(pairs),
        "CPU ms, search": 1e3 * seconds["search"] / len(pairs),
        "CPU ms, both forced": 1e3 * seconds["force"] / len(pairs),
    }


def training(model: Model, pairs: list[Pair]) -> dict[str, float]:
    found = {}
    for name, left_out in (("with", False), ("without", True)):
        reachable = 0
        for number, (words, reference) in enumerate(pairs):
            attributes = {"leave_out": str(number)} if left_out else {}
            reachable += bool(model.force(Segment(words, attributes), reference))
        found[f"training pairs, {name} own rules, %"] = 100 * reachable / len(pairs)
    return found


def completions(model: Model, pairs: list[Pair]) -> dict[str, float]:
    rng = random.Random(1)
    seconds: dict[str, list[float]] = {"translate": [], "first": [], "further": []}
    wrong, reachable = 0, [0, 0]
    for number, (words, reference) in enumerate(pairs):
        best, spent = timed(model.translate, Segment(words))
        seconds["translate"].append(spent)
        text = reference if number % 2 else best.text
        typed = text[: rng.randrange(len(text) + 1)]
        completer = model.completer(Segment(words))
        for name in ("first", "further"):
            found, spent = timed(completer.complete, typed, partial=True)
            seconds[name].append(spent)
        wrong += not found.text.startswith(typed.rstrip())
        reachable[number % 2] += found.reachable
    return {
        "completions": len(pairs),
        "completions without beginning": wrong,
        "own beginnings reachable, %": 100 * reachable[0] / max((len(pairs) + 1) // 2, 1),
        "reference beginnings reachable, %": 100 * reachable[1] / max(len(pairs) // 2, 1),
        **{f"median CPU ms, {name}": 1e3 * statistics.median(times) for name, times in seconds.items()},
    }


def timed(run: Callable[..., T], *arguments: Any, **how: Any) -> tuple[T, float]:
    """The result of a call and its CPU seconds."""
    start = time.process_time()
    found = run(*arguments, **how)
    return found, time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
