# mypy: ignore-errors
"""Count the patterns that ``growth_kernels`` grows, and make their rules.

If a pattern has more matches than are looked at, those are chosen that ``match_kernels`` chooses, which
depends on the order in which it finds them, and so on the counts of parts of the pattern: these are found
first, for all patterns of as many matches as matter.
"""

from typing import NamedTuple

import numpy as np

from hiero.core.jit import kernel, leaf
from hiero.extraction.growth_kernels import (
    ALIVE,
    DEAD,
    DEPTH,
    GROW,
    HIGH,
    LOW,
    MATCHES,
    NUM_GAPS,
    SIZE,
    STEP,
    USE,
    WORDS,
    advance,
    begin_pattern,
)
from hiero.extraction.match_kernels import listed_range
from hiero.extraction.phrase_kernels import sample_matches
from hiero.extraction.rule_kernels import rules_of_sample
from hiero.extraction.suffix_kernels import narrow, sort_suffixes
from hiero.extraction.table_kernels import (
    FOUND,
    GAP,
    GAPS,
    MORE_MATCHES,
    MORE_PATTERNS,
    MORE_RULES,
    OK,
    SAMPLES,
    SPAN,
    SUFFIXES,
    SYMBOLS,
    find_pattern,
)


class PatternCounts(NamedTuple):
    """Patterns and the numbers of their matches; written and growing.

    slot    int32 [2 ** k]  hash table by symbols, -1 empty
    symbol  int32 [P, W]
    shape   int32 [P, 2]    symbols; row of Collocations.frequent, or -1
    count   int64 [P]
    used    int64 [1]       patterns
    """

    slot: np.ndarray
    symbol: np.ndarray
    shape: np.ndarray
    count: np.ndarray
    used: np.ndarray


class Grown(NamedTuple):
    """Patterns that have rules; written.

    symbol  int32 [P, W]
    shape   int32 [P, 1]  symbols
    rule    int64 [P, 3]  its rules: first, last + 1; how many matches its samples stand for
    first   int64 [P, 2]  first match; lengths of the runs of words, a byte each
    used    int64 [1]     patterns
    """

    symbol: np.ndarray
    shape: np.ndarray
    rule: np.ndarray
    first: np.ndarray
    used: np.ndarray


@leaf
def note_count(counts, pattern, size, count, row):
    """Enter a pattern with its number of matches; returns OK, or MORE_PATTERNS."""
    entry = find_pattern(counts.slot, counts.symbol, counts.shape, pattern, 0, 0, size)
    if entry >= 0:
        return OK
    used = counts.used[0]
    if 2 * used + 2 > counts.slot.shape[0] or used == counts.count.shape[0]:
        return MORE_PATTERNS
    counts.slot[-1 - entry] = used
    for k in range(size):
        counts.symbol[used, k] = pattern[0, k]
    counts.shape[used, 0], counts.shape[used, 1] = size, row
    counts.count[used] = count
    counts.used[0] = used + 1
    return OK


@kernel
def count_patterns_kernel(text, places, listed, limits, least, growth, counts):
    """Count the matches of all patterns that have enough, and enter all frequent sequences of words.

    text, places, listed  IndexedText, Places, Collocations
    limits  int64 [4]  SPAN, SYMBOLS, GAPS, SAMPLES
    least   fewest matches
    growth  Growth         written
    counts  PatternCounts  written

    Returns OK, or a code for the array that is too short: the caller extends it and calls again.

    O(matches of the patterns).  Twin: tests/naive/extract.py::extract.
    """
    width = counts.symbol.shape[1]
    for row in range(listed.frequent.shape[0]):
        count, low, length = listed.frequent[row, 0], listed.frequent[row, 1], listed.frequent[row, 2]
        if length <= width and growth.used[DEPTH] < 0:
            for k in range(length):
                growth.pattern[0, k] = text.src[text.suffix[low] + k]
            status = note_count(counts, growth.pattern, length, count, row)
            if status != OK:
                return status
    num_words = text.first_suffix.shape[0] - 1
    while growth.used[DEPTH] >= 0 or growth.used[WORDS] < num_words:
        depth = growth.used[DEPTH]
        if depth < 0:
            word = growth.used[WORDS]
            if text.first_suffix[word + 1] - text.first_suffix[word] >= least:
                status = begin_pattern(text, places, growth, word)
                if status != OK:
                    return status
            growth.used[WORDS] += 1
        elif growth.frame[depth, STEP] == USE:
            count = growth.frame[depth, HIGH] - growth.frame[depth, LOW]
            status = note_count(counts, growth.pattern, growth.frame[depth, SIZE], count, -1)
            if status != OK:
                return status
            growth.frame[depth, STEP] = GROW
        else:
            status = advance(
                text, places.closed, limits[SPAN], limits[SYMBOLS] - 1, limits[GAPS], least, growth
            )
            if status != OK:
                return status
    return OK


# ---- the order of matches


@leaf
def count_part(text, counts, pattern, begin, end, gaps):
    """The number of matches of a part of a pattern."""
    word = pattern[0, begin]
    low, high = text.first_suffix[word], text.first_suffix[word + 1]
    if end - begin == 1:
        return high - low
    entry = find_pattern(counts.slot, counts.symbol, counts.shape, pattern, 0, begin, end)
    if entry >= 0:
        return counts.count[entry]
    if gaps > 0:
        return np.int64(0)  # does not happen: ``least`` is small enough
    for k in range(begin + 1, end):
        word = pattern[0, k]
        low = narrow(text.suffix, text.src, low, high, k - begin, word)
        high = narrow(text.suffix, text.src, low, high, k - begin, word + 1)
    return high - low


@leaf
def is_collocation(listed, counts, pattern, begin, end):
    """Whether the matches of a part of a pattern are listed."""
    low, high = listed_range(listed, counts.slot, counts.symbol, counts.shape, 1, pattern, 0, begin, end)
    return low < high


@leaf
def plan_search(text, listed, counts, span, pattern, size, step):
    """How ``match_kernels`` finds a pattern: the part that it begins with, and the words that it adds.

    step  int64 [W, 2]  written, the last addition first: whether it is at the right, whether behind a gap

    Returns (additions, first symbol of the part, last + 1, its gaps).
    """
    begin, end, num_steps, gaps = 0, size, 0, 0
    for k in range(size):
        gaps += np.int64(pattern[0, k] == GAP)
    while gaps > 0 and not is_collocation(listed, counts, pattern, begin, end):
        left_gap = np.int64(pattern[0, end - 2] == GAP)
        right_gap = np.int64(pattern[0, begin + 1] == GAP)
        left_end, right_begin = end - 1 - left_gap, begin + 1 + right_gap
        left_cost = count_part(text, counts, pattern, begin, left_end, gaps - left_gap)
        right_cost = count_part(text, counts, pattern, right_begin, end, gaps - right_gap)
        # As in ``match_kernels.cheaper_side``.
        if gaps > left_gap:
            left_cost *= gaps - left_gap + 1
        if gaps > right_gap:
            right_cost *= gaps - right_gap + 1
        if left_gap:
            left_cost *= span
        if right_gap:
            right_cost *= span
        if left_cost <= right_cost:
            step[num_steps, 0], step[num_steps, 1] = 1, left_gap
            end, gaps = left_end, gaps - left_gap
        else:
            step[num_steps, 0], step[num_steps, 1] = 0, right_gap
            begin, gaps = right_begin, gaps - right_gap
        num_steps += 1
    return num_steps, begin, end, gaps


@leaf
def symbol_at(pattern, match, k):
    """The place of symbol k of a pattern, a word."""
    begin, run = 0, 0
    for j in range(k):
        if pattern[0, j] == GAP:
            begin = j + 1
            run += 1
    start = match >> 16
    if run > 0:
        start += (match >> 8) & 255 if run == 1 else match & 255
    return start + k - begin


@leaf
def sort_matches(text, places, listed, counts, span, growth, depth):
    """Copy the matches of a frame, in the order of ``match_kernels``; returns the first, or -1 without room.

    That order is by the place of the part that is found first, and then by how far each word that is added
    behind a gap is from the first word of what there is, or the first word from that which is added.
    """
    frame, pattern, step = growth.frame, growth.pattern, growth.step
    low, count = frame[depth, LOW], frame[depth, HIGH] - frame[depth, LOW]
    first = growth.used[MATCHES]
    if first + count > growth.match.shape[0]:
        return np.int64(-1)
    num_steps, part_begin, part_end, gaps = plan_search(
        text, listed, counts, span, pattern, frame[depth, SIZE], step
    )
    # Where the run of words after each gap of the part begins.
    second, third = part_begin, part_begin
    for k in range(part_begin, part_end):
        if pattern[0, k] == GAP:
            if second == part_begin:
                second = k + 1
            else:
                third = k + 1
    for k in range(count):
        match = growth.match[low + k] & ALIVE
        start = symbol_at(pattern, match, part_begin)
        if gaps == 0:
            key = np.int64(places.rank[start])
        else:
            key = start << 8 | (symbol_at(pattern, match, second) - start)
            if gaps > 1:
                key = key << 8 | (symbol_at(pattern, match, third) - start)
        begin, end = part_begin, part_end
        for s in range(num_steps - 1, -1, -1):
            if step[s, 0]:
                if step[s, 1]:
                    key = key << 8 | (symbol_at(pattern, match, end + 1) - symbol_at(pattern, match, begin))
                end += 1 + step[s, 1]
            else:
                if step[s, 1]:
                    key = key << 8 | (symbol_at(pattern, match, begin) - symbol_at(pattern, match, begin - 2))
                begin -= 1 + step[s, 1]
        growth.key[first + k] = key
        growth.match[first + k] = growth.match[low + k]
    sort_suffixes(growth.key, growth.match, first, first + count, growth.stack)
    return first


@leaf
def first_rank(places, growth, depth):
    """The place in the suffix array of the first match of a pattern without gaps."""
    frame = growth.frame
    rank = np.int64(places.rank[growth.match[frame[depth, LOW]] >> 16])
    for k in range(frame[depth, LOW], frame[depth, HIGH]):
        rank = min(rank, np.int64(places.rank[growth.match[k] >> 16]))
    return rank


# ---- rules


@leaf
def runs_of(pattern, size):
    """The lengths of the runs of a pattern, a byte each."""
    lengths, run = np.int64(0), np.int64(0)
    for k in range(size):
        if pattern[0, k] == GAP:
            lengths, run = lengths << 8 | run, 0
        else:
            run += 1
    return lengths << 8 | run


@leaf
def use_pattern(
    text, places, links, lexicon, listed, counts, limits, growth, depth, place, grown, store, scratch
):
    """Append the rules of the pattern of a frame; returns OK, MORE_MATCHES or MORE_RULES."""
    frame, size = growth.frame, growth.frame[depth, SIZE]
    low, high, samples = frame[depth, LOW], frame[depth, HIGH], limits[SAMPLES]
    if grown.used[0] == grown.rule.shape[0]:
        return MORE_RULES
    num_seen, stands_for, kept = high - low, high - low, 0
    if num_seen <= samples:
        for k in range(low, high):
            if growth.match[k] < DEAD:
                scratch.sample[kept] = growth.match[k]
                kept += 1
    else:
        if frame[depth, NUM_GAPS] == 0:
            place[0, 0] = first_rank(places, growth, depth)
            place[0, 2] = SUFFIXES
        else:
            place[0, 0] = sort_matches(text, places, listed, counts, limits[SPAN], growth, depth)
            place[0, 2] = FOUND
            if place[0, 0] < 0:
                return MORE_MATCHES
        place[0, 1] = place[0, 0] + high - low
        num_seen = sample_matches(
            text.suffix, growth.match, listed.match, place, 0, samples, 0, 0, scratch.sample
        )
        for k in range(num_seen):
            if scratch.sample[k] < DEAD:
                scratch.sample[kept] = scratch.sample[k]
                kept += 1
    if kept == 0:
        return OK
    rule = store.used[0]
    status = rules_of_sample(
        text, links, lexicon, limits, growth.pattern, 0, size, num_seen, kept, store, scratch
    )
    if status != OK or store.used[0] == rule:
        return status
    used = grown.used[0]
    for k in range(size):
        grown.symbol[used, k] = growth.pattern[0, k]
    grown.shape[used, 0] = size
    grown.rule[used, 0], grown.rule[used, 1], grown.rule[used, 2] = rule, store.used[0], stands_for
    grown.first[used, 0] = growth.match[low] & ALIVE
    grown.first[used, 1] = runs_of(growth.pattern, size)
    grown.used[0] = used + 1
    return OK


@kernel
def grow_rules_kernel(
    text, places, links, lexicon, listed, counts, limits, last_word, growth, grown, store, scratch
):
    """Make the rules of all patterns that begin with words from ``growth.used`` on.

    text, places, links  IndexedText, Places, PhraseLinks
    lexicon, listed      Lexicon, Collocations
    counts     PatternCounts  of patterns with ``samples`` / span matches or more
    limits     int64 [4]  SPAN, SYMBOLS, GAPS, SAMPLES
    last_word  the first word that is left out
    growth     Growth          written
    grown      Grown           written; patterns that have rules
    store      Store           written; their rules
    scratch    PatternScratch  written

    Returns OK, or a code for the array that is too short: the caller extends or empties it, and calls again.

    O(matches of all patterns), and log of those of patterns that are sampled.
    Twin: tests/naive/extract.py::extract.
    """
    place = np.zeros((1, 3), np.int64)
    while growth.used[DEPTH] >= 0 or growth.used[WORDS] < last_word:
        depth = growth.used[DEPTH]
        if depth < 0:
            if text.first_suffix[growth.used[WORDS]] < text.first_suffix[growth.used[WORDS] + 1]:
                status = begin_pattern(text, places, growth, growth.used[WORDS])
                if status != OK:
                    return status
            growth.used[WORDS] += 1
        elif growth.frame[depth, STEP] == USE:
            status = use_pattern(
                text,
                places,
                links,
                lexicon,
                listed,
                counts,
                limits,
                growth,
                depth,
                place,
                grown,
                store,
                scratch,
            )
            if status != OK:
                return status
            growth.frame[depth, STEP] = GROW
        else:
            status = advance(text, places.closed, limits[SPAN], limits[SYMBOLS], limits[GAPS], 0, growth)
            if status != OK:
                return status
    return OK
