"""cdec's output in the reference data, and its model in plain Python.

Nothing here uses the package: grammars and weights are read by naive twins, language models by kenlm.
"""

from __future__ import annotations

import gzip
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.conftest import import_kenlm
from tests.naive import grammar, synchronous

SPAN_LIMIT = 15
WORD_PENALTY = -1 / math.log(10)  # a word

Features = dict[str, float]


class Line(NamedTuple):
    """One line of a k-best list."""

    text: str
    features: Features
    score: float


def parse_line(line: str) -> tuple[int, Line]:
    number, text, features, score = line.split(" ||| ")
    pairs = (pair.rpartition("=") for pair in features.split(" "))
    return int(number), Line(text, {name: float(value) for name, _, value in pairs}, float(score))


def read_lines(path: Path) -> list[str]:
    """Split lines at \\n only: words of the data contain other characters that str.splitlines splits at."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return data.decode().removesuffix("\n").split("\n")


def read_kbest(path: Path) -> dict[int, list[Line]]:
    found: dict[int, list[Line]] = defaultdict(list)
    for number, line in map(parse_line, read_lines(path)):
        found[number].append(line)
    return found


def read_onebest(path: Path) -> dict[int, list[float]]:
    """Scores of all sentences by pop limit."""
    found: dict[int, list[float]] = defaultdict(list)
    for line in read_lines(path):
        pop_limit, _, score, _ = line.split("\t", 3)
        found[int(pop_limit)].append(float(score))
    return found


def read_weights(path: Path) -> Features:
    return {name: float(weight) for name, weight in (line.split() for line in read_lines(path))}


def dot(features: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return math.fsum(weights.get(name, 0.0) * value for name, value in features.items())


def unit(value: float) -> float:
    """The unit of the last of six significant digits."""
    return 10.0 ** (math.floor(math.log10(abs(value))) - 5) if value else 0.0


def rounding(line: Line, weights: Mapping[str, float]) -> float:
    """The largest difference of cdec's score and the dot product if both are written with six digits."""
    terms = (abs(weights.get(name, 0.0)) * unit(value) for name, value in line.features.items())
    return (math.fsum(terms) + unit(line.score)) / 2


def same_vector(first: Mapping[str, float], second: Mapping[str, float]) -> bool:
    """Whether two vectors are equal up to cdec's rounding. Features of value 0 are ignored."""
    return all(
        math.isclose(first.get(name, 0.0), second.get(name, 0.0), rel_tol=1e-5, abs_tol=1e-9)
        for name in first.keys() | second.keys()
    )


def open_lm(path: Path) -> Any:
    kenlm = import_kenlm()
    config = kenlm.Config()
    config.show_progress, config.arpa_complain = False, kenlm.ARPALoadComplain.NONE
    return kenlm.Model(str(path), config)


class Exact:
    """The best scores of given translations of one sentence, computed without search."""

    def __init__(self, path: Path, src: Iterable[str], weights: Features, lm: Any) -> None:
        self.src, self.weights, self.lm = [word.encode() for word in src], weights, lm
        with gzip.open(path) as stream:
            rules = [rule[:4] for rule in grammar.read_rules(stream.read())]
        passed = {b"PassThrough": 1.0}
        rules += [(b"X", (word,), (word,), passed) for word in dict.fromkeys(self.src)]
        alone, both = ((b"X", 1),), ((b"S", 1), (b"X", 2))
        glue = [(b"S", alone, alone, {}), (b"S", both, both, {b"Glue": 1.0})]
        self.rules, self.glue = ([self._scored(*rule) for rule in some] for some in (rules, glue))

    def _scored(self, lhs: bytes, src: Any, tgt: Any, features: Mapping[bytes, float]) -> Any:
        words = [symbol.decode() for symbol in tgt if not isinstance(symbol, tuple)]
        named = {name.decode(): value for name, value in features.items()}
        named["WordPenalty"] = WORD_PENALTY * len(words)
        named["LanguageModel_OOV"] = sum(word not in self.lm for word in words)
        return lhs, src, tgt, dot(named, self.weights)

    def best_score(self, text: str) -> float:
        tgt = [word.encode() for word in text.split(" ")]
        nodes, edges, _ = synchronous.derive(self.rules, self.glue, self.src, tgt, SPAN_LIMIT, b"S")
        best = float(synchronous.best_score(nodes, edges))
        return best + self.weights["LanguageModel"] * float(self.lm.score(text))
