# mypy: ignore-errors
"""Find the patterns of a sentence in a bitext: suffix-array ranges, and intersection for those with gaps.

Lopez (2007, 2008): a pattern occurs only where the pattern without its last word and the one without its
first word do; the cheaper of the two is searched.
"""

import numpy as np

from hiero.core.jit import kernel, leaf, prefetch
from hiero.extraction.phrase_kernels import WINDOW, is_in_ranges, is_near, match_at
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

MARK = 48  # bits of a match; a mark is above them
MATCH = (np.int64(1) << MARK) - 1
ENTRY = (np.int64(1) << 32) - 1  # a pattern in Patterns.chain
MAX_MARKS = 255  # of one byte
AHEAD = 12  # matches


@leaf
def places_of(match):
    """Where a match begins, and where its second and its third run of words begin, from there."""
    return match >> 16, (match >> 8) & 255, match & 255


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
    for k in range(4):
        patterns.stamp[entry, k] = -1
    for k in range(3):
        patterns.chain[entry, k] = -1
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
def listed_range(listed, slot, symbol, shape, column, pattern, row, begin, end):
    """The listed matches of pattern[row, begin:end], which has gaps: first, last + 1; none if equal.

    slot, symbol, shape  a table of patterns; column of ``shape`` has their rows of ``Collocations.frequent``
    """
    num_frequent = listed.frequent.shape[0]
    if num_frequent == 0:
        return np.int64(0), np.int64(0)
    code, runs, start = np.int64(0), 0, begin
    for k in range(begin, end + 1):
        if k < end and pattern[row, k] != GAP:
            continue
        part = find_pattern(slot, symbol, shape, pattern, row, start, k)
        if part < 0 or shape[part, column] < 0:
            return np.int64(0), np.int64(0)
        code = code * num_frequent + shape[part, column]
        start = k + 1
        runs += 1
    if runs == 2:
        return listed.first_pair[code], listed.first_pair[code + 1]
    return listed.first_triple[code], listed.first_triple[code + 1]


@leaf
def locate_listed(listed, patterns, entry):
    """Look a pattern with gaps up among the collocations; returns whether it is there."""
    slot, symbol, shape = patterns.slot, patterns.symbol, patterns.shape
    low, high = listed_range(listed, slot, symbol, shape, 3, symbol, entry, 0, np.int64(shape[entry, 0]))
    if low == high:
        return False
    patterns.place[entry, 0] = low
    patterns.place[entry, 1] = high
    patterns.place[entry, 2] = LISTED
    patterns.count[entry] = high - low
    return True


@leaf
def load_ahead(text, found, listed, kind, k, first, last, far):
    """Load the text of a later match, which is in a distant place, from there to ``far`` words on."""
    # At the first match, those of all up to there.
    for later in range(k if k == first else k + AHEAD, min(k + AHEAD + 1, last)):
        at = match_at(text.suffix, found, listed, kind, later) >> 16
        prefetch(text.src, at)
        prefetch(text.src, at + far)


@leaf
def extend_right(text, listed, patterns, scratch, span, entry, side, gap):
    """Matches of a pattern from those of the pattern without its last word; False if there is no room."""
    word = patterns.symbol[entry, patterns.shape[entry, 0] - 1]
    tail, runs = patterns.shape[side, 2], patterns.shape[side, 1]
    kind, out = patterns.place[side, 2], scratch.round[1]
    room, size = scratch.match.shape[0], text.src.shape[0]
    low, high = patterns.place[side, 0], patterns.place[side, 1]
    for k in range(low, high):
        load_ahead(text, scratch.match, listed, kind, k, low, high, span)
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
    low, high = patterns.place[side, 0], patterns.place[side, 1]
    for k in range(low, high):
        load_ahead(text, scratch.match, listed, kind, k, low, high, -span)
        old, second, third = places_of(match_at(text.suffix, scratch.match, listed, kind, k))
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


@leaf
def chain_up(patterns, scratch, entry, side, is_left):
    """Add a pattern to those that are found behind, or before, a gap at the matches of one part."""
    call = scratch.round[3] << 32
    column = 0 if is_left else 1
    head = patterns.chain[side, column]
    patterns.chain[entry, 2] = head if head >= call else -1
    patterns.chain[side, column] = call | entry


@leaf
def mark_words(patterns, scratch, head, is_left):
    """Mark the words that a chain of patterns adds; returns how many."""
    num_words, entry = 0, head
    while entry >= 0 and num_words < MAX_MARKS:
        at = patterns.shape[entry, 0] - 1 if is_left else 0
        scratch.slot[num_words, 0] = entry
        scratch.slot[num_words, 1] = 0
        num_words += 1
        scratch.mark[patterns.symbol[entry, at]] = num_words
        entry = patterns.chain[entry, 2]
        if entry >= 0:
            entry &= ENTRY
    return num_words


@leaf
def unmark_words(patterns, scratch, num_words, is_left):
    for k in range(num_words):
        entry = scratch.slot[k, 0]
        at = patterns.shape[entry, 0] - 1 if is_left else 0
        scratch.mark[patterns.symbol[entry, at]] = 0


@leaf
def meet_right(text, listed, patterns, scratch, span, side, first):
    """Write the matches of the marked patterns that a gap and a word follow; returns where they end.

    As ``extend_right`` for all of them, each with its mark << MARK; -1 if there is no room.
    """
    tail, runs = patterns.shape[side, 2], patterns.shape[side, 1]
    kind, out, room = patterns.place[side, 2], first, scratch.match.shape[0] - span
    low, high = patterns.place[side, 0], patterns.place[side, 1]
    for k in range(low, high):
        load_ahead(text, scratch.match, listed, kind, k, low, high, span)
        match = match_at(text.suffix, scratch.match, listed, kind, k)
        start = match >> 16
        at, end = start + last_run(match) + tail, start + span
        if out > room:
            return np.int64(-1)
        while at + 1 < end and text.src[np.uint64(at)] != 0:
            at += 1
            mark = np.int64(scratch.mark[np.uint64(text.src[np.uint64(at)])])
            if mark > 0:
                scratch.match[out] = match | (at - start) << (8 if runs == 0 else 0) | mark << MARK
                out += 1
    return out


@leaf
def meet_left(text, listed, patterns, scratch, span, side, first):
    """Likewise for words before a gap, as ``extend_left``."""
    tail = patterns.shape[side, 2]
    kind, out, room = patterns.place[side, 2], first, scratch.match.shape[0] - span
    low, high = patterns.place[side, 0], patterns.place[side, 1]
    for k in range(low, high):
        load_ahead(text, scratch.match, listed, kind, k, low, high, -span)
        old, second, third = places_of(match_at(text.suffix, scratch.match, listed, kind, k))
        farthest = max(old + max(second, third) + tail - span, np.int64(0))
        at = old - 1
        if out > room:
            return np.int64(-1)
        if at < 0 or text.src[at] == 0:
            continue
        at -= 1
        while at >= farthest and text.src[np.uint64(at)] != 0:
            mark = np.int64(scratch.mark[np.uint64(text.src[np.uint64(at)])])
            if mark > 0:
                moved = old - at
                new = at << 16 | moved << 8 | (second + moved if second > 0 else 0)
                scratch.match[out] = new | mark << MARK
                out += 1
            at -= 1
    return out


@leaf
def extend_together(text, listed, patterns, scratch, span, side, is_left):
    """Find the matches of a chain of patterns in one look at those of their part; returns OK or MORE_MATCHES.

    The words behind a gap, or before it, are as many as the sentence has there, and a match is in a distant
    place of the text: so it is visited once for all of them.
    """
    entry = patterns.chain[side, 0 if is_left else 1] & ENTRY
    while entry >= 0:
        num_words = mark_words(patterns, scratch, entry, is_left)
        entry = patterns.chain[scratch.slot[num_words - 1, 0], 2]
        if entry >= 0:
            entry &= ENTRY
        first = scratch.round[1]
        if is_left:
            last = meet_right(text, listed, patterns, scratch, span, side, first)
        else:
            last = meet_left(text, listed, patterns, scratch, span, side, first)
        unmark_words(patterns, scratch, num_words, is_left)
        if last < 0 or 2 * last - first > scratch.match.shape[0]:
            return MORE_MATCHES
        # Matches are sorted by pattern, in their order: counted, copied behind, and copied back.
        for k in range(first, last):
            scratch.slot[(scratch.match[k] >> MARK) - 1, 1] += 1
        at = first
        for k in range(num_words):
            new, count = scratch.slot[k, 0], scratch.slot[k, 1]
            patterns.place[new, 0], patterns.place[new, 1], patterns.place[new, 2] = at, at + count, FOUND
            patterns.stamp[new, 0] = scratch.round[0]
            patterns.count[new] = count
            scratch.slot[k, 1] = at
            at += count
        for k in range(first, last):
            scratch.match[k + last - first] = scratch.match[k]
        for k in range(last, 2 * last - first):
            mark = (scratch.match[k] >> MARK) - 1
            scratch.match[scratch.slot[mark, 1]] = scratch.match[k] & MATCH
            scratch.slot[mark, 1] += 1
        scratch.round[1] = last
    return OK


@leaf
def find_level(text, listed, limits, patterns, scratch, num_candidates):
    """Find the matches of candidates, patterns of the same number of words; returns OK or MORE_MATCHES."""
    span = limits[SPAN]
    waiting = False
    for k in range(num_candidates):
        entry = np.int64(scratch.candidate[k, 0])
        if not lacks_matches(patterns, scratch, entry) or patterns.stamp[entry, 3] == scratch.round[3]:
            continue
        if patterns.shape[entry, 1] > 0 and not locate_listed(listed, patterns, entry):
            side, gap, is_left = cheaper_side(patterns, span, entry)
            if gap:
                chain_up(patterns, scratch, entry, side, is_left)
                patterns.stamp[entry, 3] = scratch.round[3]
                waiting = True
                continue
        status = find_matches(text, listed, limits, patterns, scratch, entry)
        if status != OK:
            return status
    if not waiting:
        return OK
    for k in range(num_candidates):
        entry = np.int64(scratch.candidate[k, 0])
        if not lacks_matches(patterns, scratch, entry):
            continue
        side, _, is_left = cheaper_side(patterns, span, entry)
        if patterns.place[side, 2] == FOUND and patterns.stamp[side, 0] != scratch.round[0]:
            status = find_matches(text, listed, limits, patterns, scratch, side)
            if status != OK:
                return status
        head = patterns.chain[side, 0 if is_left else 1] & ENTRY
        if patterns.chain[head, 2] < 0:
            status = find_matches(text, listed, limits, patterns, scratch, entry)
        else:
            status = extend_together(text, listed.match, patterns, scratch, span, side, is_left)
        if status != OK:
            return status
    return OK


@leaf
def has_matches(suffix, found, listed, patterns, entry, left_out):
    """Whether a pattern has a match outside of some ranges of the text.

    A sentence of the bitext has all its patterns, and most of them nowhere else: neither they nor longer ones
    yield a rule.
    """
    if left_out.shape[0] == 0:
        return patterns.count[entry] > 0
    if patterns.count[entry] == 0:
        return False
    kind = patterns.place[entry, 2]
    for k in range(patterns.place[entry, 0], patterns.place[entry, 1]):
        if not is_in_ranges(left_out, match_at(suffix, found, listed, kind, k) >> 16):
            return True
    return False


@leaf
def enter_candidate(patterns, scratch, pattern, size, new, num_candidates, first, place):
    """Note a pattern at a place of the sentence, unless a part of it has no match.

    Returns (OK, MORE_PATTERNS or MORE_STATES; the number of candidates).
    """
    known = find_pattern(patterns.slot, patterns.symbol, patterns.shape, pattern, 0, 0, new)
    if known < 0:
        if size > 0:
            cut = 2 if pattern[0, 1] == GAP else 1
            part = find_pattern(patterns.slot, patterns.symbol, patterns.shape, pattern, 0, cut, new)
            # Parts have been looked up, and noted if they have a match outside of what is left out.
            if part < 0 or patterns.stamp[part, 2] != scratch.round[3]:
                return OK, num_candidates
        used = patterns.used[0]
        if 2 * used + 2 > patterns.slot.shape[0] or used == patterns.count.shape[0]:
            return MORE_PATTERNS, num_candidates
        known = new_pattern(patterns, -1 - known, pattern, new)
    if num_candidates == scratch.candidate.shape[0]:
        return MORE_STATES, num_candidates
    scratch.candidate[num_candidates, 0] = known
    scratch.candidate[num_candidates, 1] = first
    scratch.candidate[num_candidates, 2] = place
    return OK, num_candidates + 1


@leaf
def next_candidates(limits, sentence, patterns, scratch, num_states):
    """Note all patterns of one more word; as ``enter_candidate``."""
    span, symbols, max_gaps = limits[SPAN], limits[SYMBOLS], limits[GAPS]
    pattern, length, num_candidates = scratch.pattern, sentence.shape[0], 0
    for state in range(num_states):
        entry, first = scratch.state[state, 0], np.int64(scratch.state[state, 1])
        at = np.int64(scratch.state[state, 2]) + 1
        last = min(first + span, length - 1)
        size, gaps = np.int64(patterns.shape[entry, 0]), np.int64(patterns.shape[entry, 1])
        for k in range(size):
            pattern[0, k] = patterns.symbol[entry, k]
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
            status, num_candidates = enter_candidate(
                patterns, scratch, pattern, size, new + 1, num_candidates, first, place
            )
            if status != OK:
                return status, num_candidates
    return OK, num_candidates


@leaf
def next_lattice_candidates(limits, sentence, paths, patterns, scratch, num_states):
    """As ``next_candidates``, along the paths of a lattice.

    In place of the first word, a candidate has the number of words so far, with the fewest in each gap.
    """
    span, symbols, max_gaps = limits[SPAN], limits[SYMBOLS], limits[GAPS]
    pattern, num_candidates = scratch.pattern, 0
    for state in range(num_states):
        entry, words = scratch.state[state, 0], np.int64(scratch.state[state, 1])
        node = np.int64(paths.end[scratch.state[state, 2]])
        size, gaps = np.int64(patterns.shape[entry, 0]), np.int64(patterns.shape[entry, 1])
        for k in range(size):
            pattern[0, k] = patterns.symbol[entry, k]
        ways = np.int64(0)
        if gaps < max_gaps and size + 2 <= symbols:
            ways = paths.first_reach[node + 1] - paths.first_reach[node]
        for way in range(-1, ways):  # -1: without a gap
            far, total, new = node, words + 1, size
            if way >= 0:
                far = np.int64(paths.node[paths.first_reach[node] + way])
                total += paths.size[paths.first_reach[node] + way]
                pattern[0, size] = GAP
                new = size + 1
            if new + 1 > symbols or total > span + 1:
                continue
            for place in range(paths.first[far], paths.first[far + 1]):
                if sentence[place] <= 0:
                    continue
                pattern[0, new] = sentence[place]
                status, num_candidates = enter_candidate(
                    patterns, scratch, pattern, size, new + 1, num_candidates, total, place
                )
                if status != OK:
                    return status, num_candidates
    return OK, num_candidates


@kernel
def match_sentence_kernel(
    text,
    links,
    lexicon,
    listed,
    limits,
    sentence,
    paths,
    left_out,
    patterns,
    store,
    scratch,
    pattern_scratch,
):
    """Match the patterns of a sentence with the bitext, and make the rules of those that occur there.

    text, links, lexicon, listed  IndexedText, PhraseLinks, Lexicon, Collocations
    limits           int64 [4]  SPAN, SYMBOLS, GAPS, SAMPLES
    sentence         int32 [L]  words as numbered in the bitext, 0 for those it does not have
    paths            LatticePaths  of the words, if they are those of a lattice
    left_out         int64 [G, 2]  ranges of the text from which nothing is taken, ascending
    patterns, store  Patterns, Store  written; results already there are reused
    scratch          SentenceScratch  written; ``found`` lists the patterns
    pattern_scratch  PatternScratch   written

    Returns OK, or a code for the array that is too short: the caller extends it and calls again.

    Breadth-first over the number of words, so that the parts of a pattern are looked up before it is. In the
    sentence a pattern may span one word more than ``limits[SPAN]``, as in cdec.
    O(patterns + matches searched).  Twin: tests/naive/extract.py::extract.
    """
    length = sentence.shape[0]
    is_lattice = paths.first.shape[0] > 0
    scratch.round[4] = 0
    num_candidates = 0
    for place in range(length):
        if sentence[place] > 0:
            scratch.pattern[0, 0] = sentence[place]
            status, num_candidates = enter_candidate(
                patterns, scratch, scratch.pattern, 0, 1, num_candidates, 1 if is_lattice else place, place
            )
            if status != OK:
                return status
    while num_candidates > 0:
        status = find_level(text, listed, limits, patterns, scratch, num_candidates)
        if status != OK:
            return status
        num_states = 0
        for k in range(num_candidates):
            known = np.int64(scratch.candidate[k, 0])
            first, place = scratch.candidate[k, 1], scratch.candidate[k, 2]
            if not has_matches(text.suffix, scratch.match, listed.match, patterns, known, left_out):
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
            if patterns.shape[known, 0] < limits[SYMBOLS] and place < length - 1:
                scratch.state[num_states, 0] = known
                scratch.state[num_states, 1] = first
                scratch.state[num_states, 2] = place
                num_states += 1
        if is_lattice:
            status, num_candidates = next_lattice_candidates(
                limits, sentence, paths, patterns, scratch, num_states
            )
        else:
            status, num_candidates = next_candidates(limits, sentence, patterns, scratch, num_states)
        if status != OK:
            return status
    return OK
