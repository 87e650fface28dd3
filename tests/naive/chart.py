"""Language model states of partial translations, by keeping the whole string.

A partial translation is scored with the context that it contains: its first word as a unigram, and so on.
Combining partial translations changes the score by the difference between the score of the whole and those of
the parts.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.naive import lm
from tests.naive.lm import Model, Ngram


class State(NamedTuple):
    """Words that matter to a continuation: on the left those whose score may change, on the right context."""

    left: Ngram
    full: bool  # no context further to the left reaches past the left words
    right: Ngram


def known(model: Model, words: Ngram) -> Ngram:
    return tuple(word if (word,) in model.listed else "<unk>" for word in words)


def fragment(model: Model, words: Ngram) -> float:
    """log10 probability of a string in no context."""
    words = known(model, words)
    return sum(lm.prob(model, words[max(0, at + 1 - model.order) : at + 1]) for at in range(len(words)))


def between(model: Model, before: Ngram, words: Ngram, after: Ngram) -> float:
    """The change of score by a context: of the whole, less those of ``before`` and ``words`` alone."""
    return fragment(model, before + words + after) - fragment(model, before) - fragment(model, words)


def sentence(model: Model, words: Ngram) -> float:
    """log10 probability of a sentence between <s> and </s>."""
    return fragment(model, ("<s>", *words, "</s>")) - fragment(model, ("<s>",))


def state(model: Model, words: Ngram) -> State:
    """The smallest state, by definition.

    A word's score may still change as long as some n-gram ends in all words up to it, and words on the right
    matter as long as some n-gram begins with them or they have a back-off.
    """
    words, closed, longest = known(model, words), lm.signed_ngrams(model), model.order - 1
    right = max(
        (n for n in range(1, min(longest, len(words)) + 1) if _goes_on(closed, words[-n:], "right")),
        default=0,
    )
    left, full = 0, longest == 0
    for n in range(1, len(words) + 1):
        if not _goes_on(closed, words[:n], "left") or n > longest:
            full = True
            break
        left = n
        # Words before these do not matter after them.
        if n == longest or not _goes_on(closed, words[:n], "right"):
            full = True
            break
    return State(words[:left], full, words[len(words) - right :])


def _goes_on(closed: dict[Ngram, lm.Signed], words: Ngram, side: str) -> bool:
    return words in closed and (closed[words].extends_left if side == "left" else closed[words].extends_right)
