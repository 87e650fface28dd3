"""A back-off language model with Witten-Bell interpolation, written as ARPA."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable

_START, _END, _UNKNOWN = "<s>", "</s>", "<unk>"
Ngram = tuple[str, ...]


class Model:
    """P(w | h) = (c(h w) + t(h) P(w | h')) / (c(h) + t(h)), where t counts the kinds of words seen after h.

    The mass t(h) / (c(h) + t(h)) is at once the weight of the shorter history and the back-off of unseen
    words, so every distribution sums to one by construction. Unigrams fall back on all words being alike.
    """

    def __init__(self, sentences: Iterable[list[str]], order: int) -> None:
        self.order = order
        self.counts: list[Counter[Ngram]] = [Counter() for _ in range(order)]
        for sentence in sentences:
            tokens = (_START, *sentence, _END)
            for end in range(2, len(tokens) + 1):
                for length in range(1, min(order, end) + 1):
                    self.counts[length - 1][tokens[end - length : end]] += 1
        self.after: dict[Ngram, int] = defaultdict(int)  # c(h)
        self.kinds: dict[Ngram, int] = defaultdict(int)  # t(h)
        for counts in self.counts:
            for ngram, count in counts.items():
                self.after[ngram[:-1]] += count
                self.kinds[ngram[:-1]] += 1
        self.probability: dict[Ngram, float] = {}
        uniform = 1 / (len(self.counts[0]) + 1)  # one more for the unknown word
        for counts in self.counts:
            for ngram, count in counts.items():
                history = ngram[:-1]
                shorter = self.probability[ngram[1:]] if history else uniform
                mass = self.after[history] + self.kinds[history]
                self.probability[ngram] = (count + self.kinds[history] * shorter) / mass
        self.unknown = self.backoff(()) * uniform

    def backoff(self, history: Ngram) -> float:
        """The weight of the shorter history; 1 for a history that no word follows."""
        if not self.kinds.get(history):
            return 1.0
        return self.kinds[history] / (self.after[history] + self.kinds[history])

    def arpa(self) -> str:
        sections = [[(ngram, self.probability[ngram]) for ngram in sorted(counts)] for counts in self.counts]
        lines = ["\\data\\"]
        # The two words that are never predicted from counts still need an entry.
        lines += [f"ngram {n}={len(entries) + 2 * (n == 1)}" for n, entries in enumerate(sections, 1)]
        for n, entries in enumerate(sections, 1):
            lines += ["", f"\\{n}-grams:"]
            if n == 1:
                lines += [
                    f"{_log(self.unknown)}\t{_UNKNOWN}",
                    f"-99\t{_START}\t{_log(self.backoff((_START,)))}",
                ]
            for ngram, probability in entries:
                line = f"{_log(probability)}\t{' '.join(ngram)}"
                lines.append(
                    line if n == self.order or ngram[-1] == _END else f"{line}\t{_log(self.backoff(ngram))}"
                )
        return "\n".join([*lines, "", "\\end\\", ""])


def _log(probability: float) -> str:
    return f"{math.log10(probability) + 0.0:.6g}"
