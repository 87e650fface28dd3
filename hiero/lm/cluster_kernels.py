# mypy: ignore-errors
"""The exchange algorithm: words move to the classes where a class bigram model fits a text best."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Ids, Ints
from hiero.core.jit import kernel, leaf

# A move must raise the log-likelihood by more than errors of rounding.
LEAST_GAIN = 1e-9


class AdjacentWords(NamedTuple):
    """The words that follow each of W words, or those before it, and how often.

    first  int64 [W + 1]
    word   int32 [N]
    count  int64 [N]
    """

    first: Ints
    word: Ids
    count: Ints


@leaf
def _xlogx(number):
    return number * math.log(number) if number > 0 else 0.0


@leaf
def _gain(before, added):
    """What a count adds to the sum of n log n when it grows."""
    return _xlogx(before + added) - _xlogx(before)


@leaf
def _count_neighbours(neighbours, word, class_of, out_count, out_listed):
    """Count the neighbours of a word by class; returns the number of classes, and how often it is its own."""
    listed, itself = 0, np.int64(0)
    for i in range(neighbours.first[word], neighbours.first[word + 1]):
        other = neighbours.word[i]
        if other == word:
            itself = neighbours.count[i]
            continue
        mine = class_of[other]
        if out_count[mine] == 0:
            out_listed[listed] = mine
            listed += 1
        out_count[mine] += neighbours.count[i]
    return listed, itself


@kernel
def exchange_kernel(after, before, order, out_class, out_pair, out_total):
    """Move each word in turn to the class with the greatest log-likelihood; returns the number of moves.

    after      AdjacentWords
    before     AdjacentWords
    order      int32 [.]     words to move; others keep their class
    out_class  int32 [W]     read and written
    out_pair   int64 [G, G]  read and written; how often a class is followed by another
    out_total  int64 [G]     read and written; occurrences of the words of a class

    Class 0 is that of the boundaries of sentences, which no word joins. Of several equal moves, the first is
    made, and none that gains nothing.

    O(W G^2) at most; G is replaced by the different classes beside a word.  Twin:
    tests/naive/lm.py::exchange.
    """
    num_classes = out_total.shape[0]
    next_count, previous_count = np.zeros(num_classes, np.int64), np.zeros(num_classes, np.int64)
    next_class, previous_class = np.empty(num_classes, np.int64), np.empty(num_classes, np.int64)
    moves = 0
    for i in range(order.shape[0]):
        word = order[i]
        num_next, itself = _count_neighbours(after, word, out_class, next_count, next_class)
        num_previous, _ = _count_neighbours(before, word, out_class, previous_count, previous_class)
        total = itself
        for k in range(num_next):
            total += next_count[next_class[k]]
        mine = np.int64(out_class[word])
        for k in range(num_next):
            out_pair[mine, next_class[k]] -= next_count[next_class[k]]
        for k in range(num_previous):
            out_pair[previous_class[k], mine] -= previous_count[previous_class[k]]
        out_pair[mine, mine] -= itself
        out_total[mine] -= total
        best, best_gain = mine, -np.inf
        for turn in range(num_classes):
            # The class of the word first: it stays unless another one is better.
            one = mine if turn == 0 else np.int64(turn if turn > mine else turn - 1)
            if turn > 0 and one == 0:
                continue
            gain = -2.0 * _gain(out_total[one], total)
            inside = itself + next_count[one] + previous_count[one]
            gain += _gain(out_pair[one, one], inside)
            for k in range(num_next):
                if next_class[k] != one:
                    gain += _gain(out_pair[one, next_class[k]], next_count[next_class[k]])
            for k in range(num_previous):
                if previous_class[k] != one:
                    gain += _gain(out_pair[previous_class[k], one], previous_count[previous_class[k]])
            if gain > best_gain + LEAST_GAIN:
                best, best_gain = one, gain
        for k in range(num_next):
            out_pair[best, next_class[k]] += next_count[next_class[k]]
            next_count[next_class[k]] = 0
        for k in range(num_previous):
            out_pair[previous_class[k], best] += previous_count[previous_class[k]]
            previous_count[previous_class[k]] = 0
        out_pair[best, best] += itself
        out_total[best] += total
        if best != mine:
            out_class[word] = best
            moves += 1
    return moves
