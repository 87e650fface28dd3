# mypy: ignore-errors
"""Find the patterns of a sentence in a bitext: suffix-array ranges, and intersection for those with gaps.

Lopez (2007, 2008): a pattern occurs only where the pattern without its last word and the one without its
first word do; the cheaper of the two is searched.
"""

import numpy as np

from hiero.core.jit import kernel, leaf
from hiero.extraction.phrase_kernels import WINDOW, is_near, match_at
from hiero.extraction.rule_kernels import make_rules
from hiero.extraction.suffix_kernels import narrow
from hiero.extraction.table_kernels import (
    FOUND,
    GAP,
    GAPS,
    LISTED,
    MORE_MATCHES,
    MORE_PATTERNS,
    MORE_STATES,
    OK,
    SPAN,
    SUFFIXES,
    SYMBOLS,
    find_pattern,
)


@leaf
def last_run(match):
    """Where the last run of words begins, from the first word."""
    return max((match >> 8) & 255, match & 255)


@leaf
def new_pattern(patterns, slot, pattern, length):
    """Enter ``pattern[0, :length]``; its matches are not known yet."""
    entry = patterns.used[0]
    patterns.used[0] = entry + 1
    patterns.slot[slot] = entry
    gaps, tail = 0, 0
    for k in range(length):
        patterns.symbol[entry, k] = pattern[0, k]
        tail += 1
        if pattern[0, k] == GAP:
            gaps += 1
            tail = 0
    patterns.shape[entry, 0] = length
    patterns.shape[entry, 1] = gaps
    patterns.shape[entry, 2] = tail
    patterns.shape[entry, 3] = -1
    patterns.count[entry] = -1
    for k in range(3):
        patterns.stamp[entry, k] = -1
    patterns.rule[entry, 0] = 0
    patterns.rule[entry, 1] = 0
    return entry


@leaf
def without_last(slot, symbol, shape, entry):
    """The pattern without its last word, and whether a gap was before that."""
    end = shape[entry, 0] - 1
    gap = symbol[entry, end - 1] == GAP
    if gap:
        end -= 1
    return find_pattern(slot, symbol, shape, symbol, entry, 0, end), gap


@leaf
def without_first(slot, symbol, shape, entry):
    """The pattern without its first word, and whether a gap was after that."""
    begin = 1
    gap = symbol[entry, 1] == GAP
    if gap:
        begin = 2
    end = shape[entry, 0]
    return find_pattern(slot, symbol, shape, symbol, entry, begin, end), gap


@leaf
def locate_words(text, frequent, patterns, entry):
    """Find the suffix-array range of a pattern without gaps."""
    length = patterns.shape[entry, 0]
    word = patterns.symbol[entry, length - 1]
    low, high = text.first_suffix[word], text.first_suffix[word + 1]
    if length > 1:
        prefix, _ = without_last(patterns.slot, patterns.symbol, patterns.shape, entry)
        low, high = patterns.place[prefix, 0], patterns.place[prefix, 1]
        low = narrow(text.suffix, text.src, low, high, length - 1, word)
        high = narrow(text.suffix, text.src, low, high, length - 1, word + 1)
    patterns.place[entry, 0] = low
    patterns.place[entry, 1] = high
    patterns.place[entry, 2] = SUFFIXES
    patterns.count[entry] = high - low
    num_frequent = frequent.shape[0]
    if num_frequent > 0 and high - low >= frequent[num_frequent - 1, 0]:
        for k in range(num_frequent):
            if frequent[k, 1] == low and frequent[k, 2] == length:
                patterns.shape[entry, 3] = k


@leaf
def locate_listed(listed, patterns, entry):
    """Look a pattern with gaps up among the collocations; returns whether it is there."""
    num_frequent = listed.frequent.shape[0]
    if num_frequent == 0:
        return False
    code, begin, runs = np.int64(0), 0, 0
    end = patterns.shape[entry, 0]
    for k in range(end + 1):
        if k < end and patterns.symbol[entry, k] != GAP:
            continue
        part = find_pattern(patterns.slot, patterns.symbol, patterns.shape, patterns.symbol, entry, begin, k)
        if part < 0 or patterns.shape[part, 3] < 0:
            return False
        code = code * num_frequent + patterns.shape[part, 3]
        begin = k + 1
        runs += 1
    if runs == 2:
        low, high = listed.first_pair[code], listed.first_pair[code + 1]
    else:
        low, high = listed.first_triple[code], listed.first_triple[code + 1]
    if low == high:
        return False
    patterns.place[entry, 0] = low
    patterns.place[entry, 1] = high
    patterns.place[entry, 2] = LISTED
    patterns.count[entry] = high - low
    return True


@leaf
def extend_right(text, listed, patterns, scratch, span, entry, side, gap):
    """Matches of a pattern from those of the pattern without its last word; False if there is no room."""
    word = patterns.symbol[entry, patterns.shape[entry, 0] - 1]
    tail, runs = patterns.shape[side, 2], patterns.shape[side, 1]
    kind, out = patterns.place[side, 2], scratch.round[1]
    room, size = scratch.match.shape[0], text.src.shape[0]
    for k in range(patterns.place[side, 0], patterns.place[side, 1]):
        match = match_at(text.suffix, scratch.match, listed, kind, k)
        start = match >> 16
        at = start + last_run(match) + tail
        if not gap:
            if at < start + span and text.src[at] == word:
                if out == room:
                    return False
                scratch.match[out] = match
                out += 1
            continue
        # Mostly there is no match.
        if span <= WINDOW and at + WINDOW < size and not is_near(text.src, at + 1, word):
            continue
        while at + 1 < start + span and text.src[at] != 0:
            at += 1
            if text.src[at] == word:
                if out == room:
                    return False
                scratch.match[out] = match | (at - start) << (8 if runs == 0 else 0)
                out += 1
    patterns.place[entry, 0] = scratch.round[1]
    patterns.place[entry, 1] = out
    return True


@leaf
def extend_left(text, listed, patterns, scratch, span, entry, side, gap):
    """Matches of a pattern from those of the pattern without its first word; False if there is no room."""
    word = patterns.symbol[entry, 0]
    tail = patterns.shape[side, 2]
    kind, out = patterns.place[side, 2], scratch.round[1]
    room = scratch.match.shape[0]
    for k in range(patterns.place[side, 0], patterns.place[side, 1]):
        match = match_at(text.suffix, scratch.match, listed, kind, k)
        old = match >> 16
        second, third = (match >> 8) & 255, match & 255
        end = old + max(second, third) + tail
        at = old - 1
        if at < 0 or text.src[at] == 0:
            continue
        if gap:
            at -= 1
            if span <= WINDOW and at + 1 >= WINDOW and not is_near(text.src, at + 1 - WINDOW, word):
                continue
        while at >= 0 and text.src[at] != 0 and end - at <= span:
            if text.src[at] == word:
                if out == room:
                    return False
                moved = old - at
                if gap:
                    # The first run becomes the second, the second the third.
                    new = moved << 8 | (second + moved if second > 0 else 0)
                else:
                    new = (second + moved) << 8 | (third + moved if third > 0 else 0)
                scratch.match[out] = at << 16 | new
                out += 1
            if not gap:
                break
            at -= 1
    patterns.place[entry, 0] = scratch.round[1]
    patterns.place[entry, 1] = out
    return True


@leaf
def cheaper_side(patterns, span, entry):
    """The part of a pattern to search: its number, whether a gap was cut off, whether it is the left.

    Costs are computed as in cdec, since the order of matches, and so the sample, depends on the choice.
    """
    left, left_gap = without_last(patterns.slot, patterns.symbol, patterns.shape, entry)
    right, right_gap = without_first(patterns.slot, patterns.symbol, patterns.shape, entry)
    left_cost, right_cost = patterns.count[left], patterns.count[right]
    if patterns.shape[left, 1] > 0:
        left_cost *= patterns.shape[left, 1] + 1
    if patterns.shape[right, 1] > 0:
        right_cost *= patterns.shape[right, 1] + 1
    if left_gap:
        left_cost *= span
    if right_gap:
        right_cost *= span
    if left_cost <= right_cost:
        return left, left_gap, True
    return right, right_gap, False


@leaf
def find_matches(text, listed, limits, patterns, scratch, entry):
    """Find the matches of a pattern; if needed, find those of a part again that an earlier sentence had."""
    if patterns.shape[entry, 1] == 0:
        locate_words(text, listed.frequent, patterns, entry)
        return OK
    span = limits[SPAN]
    depth = 0
    scratch.wait[0] = entry
    while depth >= 0:
        here = scratch.wait[depth]
        if locate_listed(listed, patterns, here):
            depth -= 1
            continue
        side, gap, is_left = cheaper_side(patterns, span, here)
        if patterns.place[side, 2] == FOUND and patterns.stamp[side, 0] != scratch.round[0]:
            depth += 1
            scratch.wait[depth] = side
            continue
        if is_left:
            done = extend_right(text, listed.match, patterns, scratch, span, here, side, gap)
        else:
            done = extend_left(text, listed.match, patterns, scratch, span, here, side, gap)
        if not done:
            return MORE_MATCHES
        patterns.place[here, 2] = FOUND
        patterns.stamp[here, 0] = scratch.round[0]
        patterns.count[here] = patterns.place[here, 1] - patterns.place[here, 0]
        scratch.round[1] = patterns.place[here, 1]
        depth -= 1
    return OK


@leaf
def lacks_matches(patterns, scratch, entry):
    """Whether the matches of a pattern are not known yet, or were discarded and are needed again."""
    if patterns.count[entry] < 0:
        return True
    if patterns.count[entry] == 0 or patterns.stamp[entry, 1] == scratch.round[2]:
        return False
    return patterns.place[entry, 2] == FOUND and patterns.stamp[entry, 0] != scratch.round[0]


@kernel
def match_sentence_kernel(
    text,
    links,
    lexicon,
    listed,
    limits,
    sentence,
    left_out,
    patterns,
    store,
    scratch,
    pattern_scratch,
):
    """Match the patterns of a sentence with the bitext, and make the rules of those that occur there.

    text, links, lexicon, listed  IndexedText, PhraseLinks, LexicalLosses, Collocations
    limits           int64 [4]  SPAN, SYMBOLS, GAPS, SAMPLES
    sentence         int32 [L]  words as numbered in the bitext, 0 for those it does not have
    left_out         sentence of the bitext from which nothing is taken, or -1
    patterns, store  Patterns, Store  written; results already there are reused
    scratch          SentenceScratch  written; ``found`` lists the patterns
    pattern_scratch  PatternScratch   written

    Returns OK, or a code for the array that is too short: the caller extends it and calls again.

    Breadth-first over the number of words, so that the parts of a pattern are looked up before it is. In the
    sentence a pattern may span one word more than ``limits[SPAN]``, as in cdec.
    O(patterns + matches searched).  Twin: tests/naive/extract.py::extract.
    """
    span, symbols, max_gaps = limits[SPAN], limits[SYMBOLS], limits[GAPS]
    length = sentence.shape[0]
    pattern = scratch.pattern
    scratch.round[4] = 0
    head, tail, start = 0, 0, -1
    while True:
        # The first rounds of the loop begin a pattern at every word, later ones extend a pattern.
        if start < length - 1:
            start += 1
            first, at, last, size, gaps = start, start, start, 0, 0
        elif head < tail:
            entry = scratch.state[head, 0]
            first = np.int64(scratch.state[head, 1])
            at = np.int64(scratch.state[head, 2]) + 1
            last = min(first + span, length - 1)
            size, gaps = np.int64(patterns.shape[entry, 0]), np.int64(patterns.shape[entry, 1])
            for k in range(size):
                pattern[0, k] = patterns.symbol[entry, k]
            head += 1
        else:
            return OK
        for place in range(at, last + 1):
            new = size
            if place > at:
                if gaps == max_gaps or size + 2 > symbols:
                    break
                pattern[0, size] = GAP
                new = size + 1
            if new + 1 > symbols:
                break
            if sentence[place] <= 0:
                continue
            pattern[0, new] = sentence[place]
            new += 1
            known = find_pattern(patterns.slot, patterns.symbol, patterns.shape, pattern, 0, 0, new)
            if known < 0:
                if size > 0:
                    cut = 2 if pattern[0, 1] == GAP else 1
                    part = find_pattern(patterns.slot, patterns.symbol, patterns.shape, pattern, 0, cut, new)
                    if part < 0 or patterns.count[part] == 0:
                        continue
                used = patterns.used[0]
                if 2 * used + 2 > patterns.slot.shape[0] or used == patterns.count.shape[0]:
                    return MORE_PATTERNS
                known = new_pattern(patterns, -1 - known, pattern, new)
            if lacks_matches(patterns, scratch, known):
                status = find_matches(text, listed, limits, patterns, scratch, known)
                if status != OK:
                    return status
            if patterns.count[known] == 0:
                continue
            if patterns.stamp[known, 2] != scratch.round[3]:
                if patterns.stamp[known, 1] != scratch.round[2]:
                    status = make_rules(
                        text,
                        links,
                        lexicon,
                        listed.match,
                        limits,
                        patterns,
                        store,
                        scratch.match,
                        pattern_scratch,
                        known,
                        left_out,
                    )
                    if status != OK:
                        return status
                    patterns.stamp[known, 1] = scratch.round[2]
                patterns.stamp[known, 2] = scratch.round[3]
                scratch.found[scratch.round[4]] = known
                scratch.round[4] += 1
            if new < symbols and place < length - 1:
                if tail == scratch.state.shape[0]:
                    return MORE_STATES
                scratch.state[tail, 0] = known
                scratch.state[tail, 1] = first
                scratch.state[tail, 2] = place
                tail += 1
