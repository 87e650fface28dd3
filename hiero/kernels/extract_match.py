"""Find the patterns of a sentence in a bitext: suffix-array ranges, and intersection for those with gaps.

Lopez (2007, 2008): a pattern occurs only where the pattern without its last word and the one without its
first word do; the one that is cheaper to look through is.
"""

import numpy as np

from hiero._jit import kernel, leaf
from hiero.kernels.extract_rules import make_rules, match_at
from hiero.kernels.extract_tables import (
    FOUND,
    GAP,
    GAPS,
    LISTED,
    MORE_ENTRIES,
    MORE_MATCHES,
    MORE_STATES,
    OK,
    SPAN,
    SUFFIXES,
    SYMBOLS,
    find_pattern,
)
from hiero.kernels.suffix import narrow


@leaf
def last_run(match):
    """Where the last run of words begins, from the first word."""
    return max((match >> 8) & 255, match & 255)


@leaf
def new_pattern(memory, slot, pattern, length):
    """Enter ``pattern[0, :length]``; its matches are not known yet."""
    entry = memory.used[0]
    memory.used[0] = entry + 1
    memory.slot[slot] = entry
    gaps, tail = 0, 0
    for k in range(length):
        memory.symbol[entry, k] = pattern[0, k]
        tail += 1
        if pattern[0, k] == GAP:
            gaps += 1
            tail = 0
    memory.shape[entry, 0] = length
    memory.shape[entry, 1] = gaps
    memory.shape[entry, 2] = tail
    memory.shape[entry, 3] = -1
    memory.count[entry] = -1
    for k in range(3):
        memory.stamp[entry, k] = -1
    memory.rule[entry, 0] = 0
    memory.rule[entry, 1] = 0
    return entry


@leaf
def without_last(memory, entry):
    """The pattern without its last word, and whether a gap was before that."""
    end = memory.shape[entry, 0] - 1
    gap = memory.symbol[entry, end - 1] == GAP
    if gap:
        end -= 1
    return find_pattern(memory.slot, memory.symbol, memory.shape, memory.symbol, entry, 0, end), gap


@leaf
def without_first(memory, entry):
    """The pattern without its first word, and whether a gap was after that."""
    begin = 1
    gap = memory.symbol[entry, 1] == GAP
    if gap:
        begin = 2
    end = memory.shape[entry, 0]
    return find_pattern(memory.slot, memory.symbol, memory.shape, memory.symbol, entry, begin, end), gap


@leaf
def locate_words(tables, memory, entry):
    """Find the suffix-array range of a pattern without gaps."""
    length = memory.shape[entry, 0]
    word = memory.symbol[entry, length - 1]
    low, high = tables.first_suffix[word], tables.first_suffix[word + 1]
    if length > 1:
        prefix, _ = without_last(memory, entry)
        low, high = memory.place[prefix, 0], memory.place[prefix, 1]
        low = narrow(tables.suffix, tables.src, low, high, length - 1, word)
        high = narrow(tables.suffix, tables.src, low, high, length - 1, word + 1)
    memory.place[entry, 0] = low
    memory.place[entry, 1] = high
    memory.place[entry, 2] = SUFFIXES
    memory.count[entry] = high - low
    num_frequent = tables.frequent.shape[0]
    if num_frequent > 0 and high - low >= tables.frequent[num_frequent - 1, 0]:
        for k in range(num_frequent):
            if tables.frequent[k, 1] == low and tables.frequent[k, 2] == length:
                memory.shape[entry, 3] = k


@leaf
def locate_listed(tables, memory, entry):
    """Look a pattern with gaps up among the collocations; whether it is there."""
    num_frequent = tables.frequent.shape[0]
    if num_frequent == 0:
        return False
    code, top, begin, runs = np.int64(0), np.int64(-1), 0, 0
    end = memory.shape[entry, 0]
    for k in range(end + 1):
        if k < end and memory.symbol[entry, k] != GAP:
            continue
        part = find_pattern(memory.slot, memory.symbol, memory.shape, memory.symbol, entry, begin, k)
        if part < 0 or memory.shape[part, 3] < 0:
            return False
        code = code * num_frequent + memory.shape[part, 3]
        begin = k + 1
        runs += 1
    if runs == 2:
        low, high = tables.first_pair[code], tables.first_pair[code + 1]
    else:
        low, high = tables.first_triple[code], tables.first_triple[code + 1]
    if low == high:
        return False
    memory.place[entry, 0] = low
    memory.place[entry, 1] = high
    memory.place[entry, 2] = LISTED
    memory.count[entry] = high - low
    return True


@leaf
def extend_right(tables, memory, paper, span, entry, side, gap):
    """Matches of a pattern from those of the pattern without its last word; False if there is no room."""
    word = memory.symbol[entry, memory.shape[entry, 0] - 1]
    tail, runs = memory.shape[side, 2], memory.shape[side, 1]
    kind, out = memory.place[side, 2], paper.round[1]
    room = paper.match.shape[0]
    for k in range(memory.place[side, 0], memory.place[side, 1]):
        match = match_at(tables, paper.match, kind, k)
        start = match >> 16
        at = start + last_run(match) + tail
        if not gap:
            if at < start + span and tables.src[at] == word:
                if out == room:
                    return False
                paper.match[out] = match
                out += 1
            continue
        while at + 1 < start + span and tables.src[at] != 0:
            at += 1
            if tables.src[at] == word:
                if out == room:
                    return False
                paper.match[out] = match | (at - start) << (8 if runs == 0 else 0)
                out += 1
    memory.place[entry, 0] = paper.round[1]
    memory.place[entry, 1] = out
    return True


@leaf
def extend_left(tables, memory, paper, span, entry, side, gap):
    """Matches of a pattern from those of the pattern without its first word; False if there is no room."""
    word = memory.symbol[entry, 0]
    tail = memory.shape[side, 2]
    kind, out = memory.place[side, 2], paper.round[1]
    room = paper.match.shape[0]
    for k in range(memory.place[side, 0], memory.place[side, 1]):
        match = match_at(tables, paper.match, kind, k)
        old = match >> 16
        second, third = (match >> 8) & 255, match & 255
        end = old + max(second, third) + tail
        at = old - 1
        if at < 0 or tables.src[at] == 0:
            continue
        if gap:
            at -= 1
        while at >= 0 and tables.src[at] != 0 and end - at <= span:
            if tables.src[at] == word:
                if out == room:
                    return False
                moved = old - at
                if gap:
                    # What was the first run is the second now, the second the third.
                    new = moved << 8 | (second + moved if second > 0 else 0)
                else:
                    new = (second + moved) << 8 | (third + moved if third > 0 else 0)
                paper.match[out] = at << 16 | new
                out += 1
            if not gap:
                break
            at -= 1
    memory.place[entry, 0] = paper.round[1]
    memory.place[entry, 1] = out
    return True


@leaf
def cheaper_side(memory, span, entry):
    """The part of a pattern to look through: its number, whether a gap was cut off, whether it is the left.

    What it costs is reckoned as cdec does, since the order of matches, and so what is sampled, depends on it.
    """
    left, left_gap = without_last(memory, entry)
    right, right_gap = without_first(memory, entry)
    left_cost, right_cost = memory.count[left], memory.count[right]
    if memory.shape[left, 1] > 0:
        left_cost *= memory.shape[left, 1] + 1
    if memory.shape[right, 1] > 0:
        right_cost *= memory.shape[right, 1] + 1
    if left_gap:
        left_cost *= span
    if right_gap:
        right_cost *= span
    if left_cost <= right_cost:
        return left, left_gap, True
    return right, right_gap, False


@kernel
def locate(tables, limits, memory, paper, entry):
    """Find the matches of a pattern; if need be, once more those of a part that an earlier sentence had."""
    if memory.shape[entry, 1] == 0:
        locate_words(tables, memory, entry)
        return OK
    span = limits[SPAN]
    depth = 0
    paper.low[0] = entry
    while depth >= 0:
        here = paper.low[depth]
        if locate_listed(tables, memory, here):
            depth -= 1
            continue
        side, gap, is_left = cheaper_side(memory, span, here)
        if memory.place[side, 2] == FOUND and memory.stamp[side, 0] != paper.round[0]:
            depth += 1
            paper.low[depth] = side
            continue
        if is_left:
            done = extend_right(tables, memory, paper, span, here, side, gap)
        else:
            done = extend_left(tables, memory, paper, span, here, side, gap)
        if not done:
            return MORE_MATCHES
        memory.place[here, 2] = FOUND
        memory.stamp[here, 0] = paper.round[0]
        memory.count[here] = memory.place[here, 1] - memory.place[here, 0]
        paper.round[1] = memory.place[here, 1]
        depth -= 1
    return OK


@kernel
def collect_kernel(tables, limits, sentence, left_out, memory, paper):
    """Find all patterns of a sentence that occur in the bitext, and their rules.

    tables    Tables
    limits    int64 [4]  SPAN, SYMBOLS, GAPS, SAMPLES
    sentence  int32 [L]  words as numbered in the bitext, 0 for those it does not have
    left_out  the sentence of the bitext from which nothing is taken, or -1
    memory    Memory     written; what it knows is not worked out again
    paper     Paper      written; ``found`` lists the patterns

    Returns OK, or which of the arrays is too short: the caller makes it longer and calls again.

    Breadth-first over the number of words, so that the parts of a pattern are looked up before it is. In the
    sentence a pattern may span one word more than ``limits[SPAN]``, as in cdec.
    O(patterns + matches looked through).  Twin: tests/naive/extract.py::extract.
    """
    span, symbols, max_gaps = limits[SPAN], limits[SYMBOLS], limits[GAPS]
    length = sentence.shape[0]
    pattern = paper.pattern
    paper.round[4] = 0
    head, tail, start = 0, 0, -1
    entry, first = np.int64(0), np.int64(-1)
    while True:
        # The first round of the loop begins a pattern at every word, later ones take up where one ended.
        if start < length - 1:
            start += 1
            first, at, last, size, gaps = start, start, start, 0, 0
        elif head < tail:
            entry = np.int64(paper.state[head, 0])
            first = paper.state[head, 1]
            at = paper.state[head, 2] + 1
            last = min(first + span, length - 1)
            size, gaps = memory.shape[entry, 0], memory.shape[entry, 1]
            for k in range(size):
                pattern[0, k] = memory.symbol[entry, k]
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
            known = find_pattern(memory.slot, memory.symbol, memory.shape, pattern, 0, 0, new)
            if known < 0:
                if size > 0:
                    cut = 2 if pattern[0, 1] == GAP else 1
                    part = find_pattern(memory.slot, memory.symbol, memory.shape, pattern, 0, cut, new)
                    if part < 0 or memory.count[part] == 0:
                        continue
                if 2 * (memory.used[0] + 1) > memory.slot.shape[0] or memory.used[0] == memory.count.shape[0]:
                    return MORE_ENTRIES
                known = new_pattern(memory, -1 - known, pattern, new)
            if memory.count[known] < 0:
                status = locate(tables, limits, memory, paper, known)
                if status != OK:
                    return status
            if memory.count[known] == 0:
                continue
            if memory.stamp[known, 2] != paper.round[3]:
                if memory.stamp[known, 1] != paper.round[2]:
                    if memory.place[known, 2] == FOUND and memory.stamp[known, 0] != paper.round[0]:
                        status = locate(tables, limits, memory, paper, known)
                        if status != OK:
                            return status
                    status = make_rules(tables, limits, memory, paper, known, left_out)
                    if status != OK:
                        return status
                    memory.stamp[known, 1] = paper.round[2]
                memory.stamp[known, 2] = paper.round[3]
                paper.found[paper.round[4]] = known
                paper.round[4] += 1
            if new < symbols and place < length - 1:
                if tail == paper.state.shape[0]:
                    return MORE_STATES
                paper.state[tail, 0] = known
                paper.state[tail, 1] = first
                paper.state[tail, 2] = place
                tail += 1


@kernel
def rehash_kernel(memory):
    """Enter all patterns of a Memory into its slots, which are empty. O(P)."""
    for entry in range(memory.used[0]):
        length = memory.shape[entry, 0]
        slot = find_pattern(memory.slot, memory.symbol, memory.shape, memory.symbol, entry, 0, length)
        memory.slot[-1 - slot] = entry
