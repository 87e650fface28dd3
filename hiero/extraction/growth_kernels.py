# mypy: ignore-errors
"""Find all patterns of a bitext, by growing them word by word.

The matches of a pattern are those of the pattern without its last word that are followed by the word, at once
or behind a gap. So one look at the text behind the matches of a pattern finds all longer ones with their
matches, and the time is proportional to the number of places where patterns match: nothing is searched for.

Patterns and matches are as in ``table_kernels``. Matches are in the order of the text; a match has the bit
DEAD if it yields no rule for any pattern that it grows to, since a gap inside is no phrase: it only counts.

If a pattern has more matches than are looked at, those are chosen that ``match_kernels`` chooses, which
depends on the order in which it finds them, and so on the counts of parts of the pattern: these are found
first, for all patterns of as many matches as matter.
"""

from typing import NamedTuple

import numpy as np

from hiero.core.jit import kernel, leaf
from hiero.extraction.match_kernels import last_run
from hiero.extraction.phrase_kernels import close_gap, is_linked, sample_matches
from hiero.extraction.rule_kernels import rules_of_sample
from hiero.extraction.suffix_kernels import narrow, sort_suffixes
from hiero.extraction.table_kernels import (
    FOUND,
    GAP,
    GAPS,
    MORE_MATCHES,
    MORE_PATTERNS,
    MORE_RULES,
    MORE_STATES,
    OK,
    SAMPLES,
    SPAN,
    SUFFIXES,
    SYMBOLS,
    find_pattern,
)

DEAD = np.int64(1) << 62
ALIVE = DEAD - 1
NUM_BITS = 31  # gaps up to this length have a bit in ``Places.closed``

# Columns of Growth.frame: the pattern at a depth, its matches, its longer patterns, and what to do next.
SIZE, TAIL, NUM_GAPS, LOW, HIGH, NEXT, LAST, STEP = 0, 1, 2, 3, 4, 5, 6, 7
BASE_MATCHES, BASE_GROUPS = 8, 9  # in use before it grew
NUM_COLUMNS = 10
USE, GROW, VISIT = 0, 1, 2  # steps
# Columns of Growth.group.
WORD, AFTER_GAP, FIRST_MATCH, LAST_MATCH = 0, 1, 2, 3
# Places in Growth.used.
DEPTH, WORDS, MATCHES, GROUPS = 0, 1, 2, 3


class Places(NamedTuple):
    """Where words, suffixes and phrases are.

    place   int32 [N]  places by word, in order; those of word w from ``IndexedText.first_suffix[w]``
    rank    int32 [N]  the place of each suffix in the suffix array
    closed  int32 [N]  bit k: whether k + 1 words from here can be a gap
    """

    place: np.ndarray
    rank: np.ndarray
    closed: np.ndarray


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


class Growth(NamedTuple):
    """Patterns that are growing, by depth; written.

    used     int64 [4]        depth, or -1; the next first word; matches and groups in use
    pattern  int32 [1, W]     the pattern at hand
    frame    int64 [W, 10]    one pattern at each depth: its columns are named above
    group    int64 [., 4]     longer patterns: last word, whether a gap is before it, first match, last + 1
    match    int64 [.]        matches of the patterns of frames and groups
    key      int64 [.]        room to sort as many
    tally    int32 [V + 1, 2] matches of the pattern with this word, and of these, those that are not dead; 0
    touched  int32 [V + 1]    words that have a tally
    stack    int64 [128]      for sorting
    step     int64 [W, 2]     how a pattern is found: which end is added last, and whether behind a gap
    """

    used: np.ndarray
    pattern: np.ndarray
    frame: np.ndarray
    group: np.ndarray
    match: np.ndarray
    key: np.ndarray
    tally: np.ndarray
    touched: np.ndarray
    stack: np.ndarray
    step: np.ndarray


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


@kernel
def places_kernel(text, links, limits, out_place, out_rank, out_closed):
    """Write ``Places``.

    text, links  IndexedText, PhraseLinks
    limits       int64 [4]  SPAN, SYMBOLS, GAPS, SAMPLES
    out_place    int32 [N]  written
    out_rank     int32 [N]  written
    out_closed   int32 [N]  written

    O(N SPAN).  Twin: tests/naive/extract.py::gap_lengths.
    """
    fill = text.first_suffix.copy()
    for at in range(text.src.shape[0]):
        word = text.src[at]
        out_place[fill[word]] = at
        fill[word] += 1
    for k in range(text.suffix.shape[0]):
        out_rank[text.suffix[k]] = k
    for k in range(out_closed.shape[0]):
        out_closed[k] = 0
    longest = min(limits[SPAN] - 2, NUM_BITS)
    for s in range(text.first_src.shape[0] - 1):
        src_base, tgt_base = text.first_src[s], text.first_tgt[s]
        size = text.first_src[s + 1] - 1 - src_base
        for a in range(links.src_span.shape[0]):
            for low in range(size):
                if not is_linked(links.src_span, a, src_base + low):
                    continue
                bits = np.int32(0)
                for high in range(low + 1, min(low + longest, size) + 1):
                    if is_linked(links.src_span, a, src_base + high - 1):
                        good, _, _ = close_gap(
                            links.src_span, links.tgt_span, a, src_base, tgt_base, low, high, limits[SPAN]
                        )
                        bits |= np.int32(good) << np.int32(high - low - 1)
                out_closed[src_base + low] |= bits


@leaf
def can_be_gap(closed, low, high):
    """Whether some words of a sentence can be a gap, or it is not known."""
    return high - low > NUM_BITS or (closed[low] >> (high - low - 1)) & 1 != 0


@leaf
def begin_pattern(text, places, growth, word):
    """Let a word be the pattern at depth 0; returns OK, or MORE_MATCHES."""
    first, last = text.first_suffix[word], text.first_suffix[word + 1]
    if last - first > growth.match.shape[0]:
        return MORE_MATCHES
    for k in range(first, last):
        growth.match[k - first] = np.int64(places.place[k]) << 16
    frame = growth.frame
    growth.pattern[0, 0] = word
    frame[0, SIZE], frame[0, TAIL], frame[0, NUM_GAPS] = 1, 1, 0
    frame[0, LOW], frame[0, HIGH] = 0, last - first
    frame[0, STEP] = USE
    growth.used[DEPTH], growth.used[MATCHES], growth.used[GROUPS] = 0, last - first, 0
    return OK


@leaf
def visit_group(growth, depth):
    """Let the next longer pattern of a frame be the pattern one deeper; False if there is none."""
    frame = growth.frame
    group = frame[depth, NEXT]
    if group == frame[depth, LAST]:
        growth.used[MATCHES], growth.used[GROUPS] = frame[depth, BASE_MATCHES], frame[depth, BASE_GROUPS]
        return False
    frame[depth, NEXT] = group + 1
    size, gap = frame[depth, SIZE], growth.group[group, AFTER_GAP]
    if gap:
        growth.pattern[0, size] = GAP
        size += 1
    growth.pattern[0, size] = growth.group[group, WORD]
    below = depth + 1
    frame[below, SIZE] = size + 1
    frame[below, TAIL] = 1 if gap else frame[depth, TAIL] + 1
    frame[below, NUM_GAPS] = frame[depth, NUM_GAPS] + gap
    frame[below, LOW], frame[below, HIGH] = growth.group[group, FIRST_MATCH], growth.group[group, LAST_MATCH]
    frame[below, STEP] = USE
    return True


@leaf
def count_word(growth, num_touched, word, alive):
    """Count a word behind a match; returns the number of words with a tally."""
    if growth.tally[word, 0] == 0:
        growth.touched[num_touched] = word
        num_touched += 1
    growth.tally[word, 0] += 1
    growth.tally[word, 1] += alive
    return num_touched


@leaf
def put_match(growth, word, match):
    """Write a match of the pattern with this word, unless it is dropped."""
    at = growth.tally[word, 0]
    if at >= 0:
        growth.match[growth.used[MATCHES] + at] = match
        growth.tally[word, 0] = at + 1


@leaf
def words_behind(text, closed, span, growth, depth, gap, least, counting, num_touched):
    """Count the words behind all matches of a frame, or write the matches with them."""
    frame = growth.frame
    tail, runs = frame[depth, TAIL], frame[depth, NUM_GAPS]
    for k in range(frame[depth, LOW], frame[depth, HIGH]):
        code = growth.match[k]
        match = code & ALIVE
        start = match >> 16
        low = start + last_run(match) + tail
        end = start + span
        if gap == 0:
            if low < end and text.src[low] != 0:
                word = np.int64(text.src[low])
                if counting:
                    num_touched = count_word(growth, num_touched, word, np.int32(code < DEAD))
                else:
                    put_match(growth, word, code)
            continue
        at = low
        while at + 1 < end and text.src[at] != 0:
            at += 1
            word = np.int64(text.src[at])
            if word == 0:
                break
            alive = code < DEAD and (least > 0 or can_be_gap(closed, low, at))
            if counting:
                num_touched = count_word(growth, num_touched, word, np.int32(alive))
            else:
                new = match | (at - start) << (8 if runs == 0 else 0)
                put_match(growth, word, new if alive else new | DEAD)
    return num_touched


@leaf
def grow_pattern(text, closed, span, symbols, max_gaps, least, growth, depth):
    """Find the patterns of one more word, of ``least`` matches at least or, if 0, with one that is not dead.

    Returns OK, MORE_MATCHES or MORE_STATES.
    """
    frame, used = growth.frame, growth.used
    base_matches, base_groups = used[MATCHES], used[GROUPS]
    frame[depth, BASE_MATCHES], frame[depth, BASE_GROUPS] = base_matches, base_groups
    frame[depth, NEXT] = base_groups
    for gap in range(2):
        if frame[depth, SIZE] + gap + 1 > symbols or frame[depth, NUM_GAPS] + gap > max_gaps:
            break
        num_touched = words_behind(text, closed, span, growth, depth, gap, least, True, 0)
        room, status, kept = growth.match.shape[0] - used[MATCHES], OK, 0
        for k in range(num_touched):
            word = growth.touched[k]
            count, alive = growth.tally[word, 0], growth.tally[word, 1]
            growth.tally[word, 0], growth.tally[word, 1] = -1, 0
            if status != OK or count < least or (least == 0 and alive == 0):
                continue
            if kept + count > room:
                status = MORE_MATCHES
            elif used[GROUPS] == growth.group.shape[0]:
                status = MORE_STATES
            else:
                group = growth.group[used[GROUPS]]
                group[WORD], group[AFTER_GAP] = word, gap
                group[FIRST_MATCH] = used[MATCHES] + kept
                group[LAST_MATCH] = used[MATCHES] + kept + count
                used[GROUPS] += 1
                growth.tally[word, 0] = kept
                kept += count
        if status == OK and kept > 0:
            words_behind(text, closed, span, growth, depth, gap, least, False, 0)
            used[MATCHES] += kept
        for k in range(num_touched):
            growth.tally[growth.touched[k], 0] = 0
        if status != OK:
            used[MATCHES], used[GROUPS] = base_matches, base_groups
            return status
    frame[depth, LAST] = used[GROUPS]
    return OK


# ---- counts


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
        elif growth.frame[depth, STEP] == GROW:
            status = grow_pattern(
                text, places.closed, limits[SPAN], limits[SYMBOLS] - 1, limits[GAPS], least, growth, depth
            )
            if status != OK:
                return status
            growth.frame[depth, STEP] = VISIT
        else:
            growth.used[DEPTH] += 1 if visit_group(growth, depth) else -1
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
    num_frequent = listed.frequent.shape[0]
    if num_frequent == 0:
        return False
    code, runs, start = np.int64(0), 0, begin
    for k in range(begin, end + 1):
        if k < end and pattern[0, k] != GAP:
            continue
        entry = find_pattern(counts.slot, counts.symbol, counts.shape, pattern, 0, start, k)
        if entry < 0 or counts.shape[entry, 1] < 0:
            return False
        code = code * num_frequent + counts.shape[entry, 1]
        start = k + 1
        runs += 1
    if runs == 2:
        return listed.first_pair[code] < listed.first_pair[code + 1]
    return listed.first_triple[code] < listed.first_triple[code + 1]


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
        elif growth.frame[depth, STEP] == GROW:
            status = grow_pattern(
                text, places.closed, limits[SPAN], limits[SYMBOLS], limits[GAPS], 0, growth, depth
            )
            if status != OK:
                return status
            growth.frame[depth, STEP] = VISIT
        else:
            growth.used[DEPTH] += 1 if visit_group(growth, depth) else -1
    return OK
