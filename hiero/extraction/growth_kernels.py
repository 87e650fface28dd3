# mypy: ignore-errors
"""Find all patterns of a bitext, by growing them word by word.

The matches of a pattern are those of the pattern without its last word that are followed by the word, at once
or behind a gap. So one look at the text behind the matches of a pattern finds all longer ones with their
matches, and the time is proportional to the number of places where patterns match: nothing is searched for.

Patterns and matches are as in ``table_kernels``. Matches are in the order of the text; a match has the bit
DEAD if it yields no rule for any pattern that it grows to, since a gap inside is no phrase: it only counts.
"""

from typing import NamedTuple

import numpy as np

from hiero.core.jit import kernel, leaf
from hiero.extraction.match_kernels import last_run
from hiero.extraction.phrase_kernels import close_gap, is_linked
from hiero.extraction.table_kernels import GAP, MORE_MATCHES, MORE_STATES, OK, SPAN

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


@leaf
def advance(text, closed, span, symbols, max_gaps, least, growth):
    """Grow the pattern at hand, which was used, or go on to the next one; returns as ``grow_pattern``."""
    depth = growth.used[DEPTH]
    if growth.frame[depth, STEP] == VISIT:
        growth.used[DEPTH] += 1 if visit_group(growth, depth) else -1
        return OK
    status = grow_pattern(text, closed, span, symbols, max_gaps, least, growth, depth)
    if status == OK:
        growth.frame[depth, STEP] = VISIT
    return status
