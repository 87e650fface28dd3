"""Forced decoding and completion: ``python -m benchmarks.constraints CONFIG --set SRC REF``.

With a model of ``hiero run``:

- forced: the first sentences of the set are translated, and each translation is forced. Exits with 1 if one
  is not reachable, or has a lower score than in the search (beyond rounding). The share of reachable
  references, and with ``--train SRC REF``, the texts of the model's index, that of training pairs with and
  without the rules that come from the pair itself.
- completion: translations (even lines) or references (odd lines) are cut anywhere and completed. Exits with
  1 if a completion does not begin with what is left. The median CPU time of translating, of the first request
  for a sentence, and of a further one.
- terms: in sentences that have some, words with translations that the reference has and ours lacks, of rules
  of the model. BLEU without, with soft and with hard terms. Exits with 1 if a hard term is not in its
  translation.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, TypeVar

import numpy as np

import hiero
from benchmarks.results import append_result
from hiero.core.text import Segment, read_text
from hiero.decoder.model import Model

# Of scores: forced and ordinary search add single-precision probabilities in different orders.
ROUNDING = 1e-5
LEAST_LETTERS = 4  # of terms
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
    parser.add_argument("--terms", type=int, default=200, help="sentences with terms")
    args = parser.parse_args()
    model = hiero.load(args.config)
    model.translate("a", "b")  # compiles
    pairs = read_pairs(args.set, args.sentences)
    figures = forced(model, pairs)
    if args.train:
        figures |= training(model, read_pairs(args.train, args.sentences))
    figures |= completions(model, pairs[: args.completions])
    figures |= terms(model, pairs, args.terms)
    for name, figure in figures.items():
        print(f"{name:<36}{figure:12.6g}")
    append_result("constraints", figures)
    return int(
        figures["own not reachable"] > 0
        or figures["least gain over the search"] < -ROUNDING
        or figures["completions without beginning"] > 0
        or figures["hard terms present, %"] < 100
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


def terms(model: Model, pairs: list[Pair], count: int) -> dict[str, float]:
    """Terms from references in the first sentences that have some."""
    cases = []
    for words, reference in pairs:
        best = model.translate(Segment(words))
        found = terms_of_reference(model, words, reference.split(), best.text.split())
        if found:
            cases.append((words, reference, found, best.text))
        if len(cases) == count:
            break
    figures: dict[str, float] = {"sentences with terms": len(cases)}
    figures["terms"] = sum(len(found) for _, _, found, _ in cases)
    references = [reference for _, reference, _, _ in cases]
    for name in ("no", "soft", "hard"):
        texts = [text for *_, text in cases]
        if name != "no":
            texts = [
                model.translate(Segment(words), terms=found, hard_terms=name == "hard").text
                for words, _, found, _ in cases
            ]
        present = sum(
            target in text.split()
            for text, (_, _, found, _) in zip(texts, cases, strict=True)
            for _, target in found
        )
        figures[f"{name} terms present, %"] = 100 * present / max(figures["terms"], 1)
        figures[f"BLEU with {name} terms"] = bleu(texts, references)
    return figures


def bleu(texts: list[str], references: list[str]) -> float:
    report = hiero.evaluate(texts, references, metrics=["bleu"], tokenize="none")
    return report.result("bleu", report.systems[0].name).score


def terms_of_reference(
    model: Model, words: Sequence[str], reference: Sequence[str], ours: Sequence[str]
) -> list[tuple[str, str]]:
    """Words of four letters or more, once in the sentence, with a rule to a word only the reference has."""
    found = model.parsed(Segment(tuple(words)), hiero.Statistics())
    rules, text = found.grammar.rules, model.symbols.words.text
    single = np.flatnonzero((np.diff(rules.first_src) == 1) & (np.diff(rules.first_tgt) == 1))
    src, tgt = rules.src[rules.first_src[single]], rules.tgt[rules.first_tgt[single]]
    pairs: dict[str, str] = {}
    missing = {word for word in reference if len(word) >= LEAST_LETTERS} - set(ours)
    for one, other in zip(src.tolist(), tgt.tolist(), strict=True):
        if one >= 0 and other >= 0 and text(other) in missing and words.count(text(one)) == 1:
            if text(one) != text(other) and len(text(one)) >= LEAST_LETTERS:
                pairs.setdefault(text(one), text(other))
    return list({target: (source, target) for source, target in pairs.items()}.values())


def timed(run: Callable[..., T], *arguments: Any, **how: Any) -> tuple[T, float]:
    """The result of a call and its CPU seconds."""
    start = time.process_time()
    found = run(*arguments, **how)
    return found, time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
