# mypy: ignore-errors
"""Phrases around the matches of a pattern: sampling, projection through the alignment, and what is kept."""

import math

import numpy as np

from hiero.core.jit import kernel, leaf, prefetch
from hiero.extraction.table_kernels import FOUND, GAP, GAPS, SPAN, SUFFIXES

LOW_HALF, HALF = np.int32(0xFFFF), np.int32(16)
WINDOW = 16  # words compared together: at least the usual span


@leaf
def match_at(suffix, found, listed, kind, k):
    """Match k of one of the three arrays in ``Patterns.place``."""
    if kind == SUFFIXES:
        return np.int64(suffix[k]) << 16
    if kind == FOUND:
        return np.int64(found[k])
    return np.int64(listed[k])


@leaf
def is_near(src, low, word):
    """Whether a word is in src[low:low + WINDOW].

    It compares all of them and uses unsigned places, which need no test for negative indices: so the loop
    compiles to a few vector instructions.
    """
    near = False
    for k in range(WINDOW):
        near |= src[np.uint64(low) + np.uint64(k)] == word
    return near


@kernel
def link_spans_kernel(first_src, first_tgt, first_link, link, out_src_span, out_tgt_span):
    """Write the span of the links of every word, through which phrases are projected.

    first_src ... link  as in Tables, of one alignment
    out_src_span        int16 [N, 2]  written: first linked target word, the one after the last; -1 if none
    out_tgt_span        int16 [M, 2]  likewise; -1 before

    O(words + links).  Twin: tests/naive/extract.py::spans.
    """
    for s in range(first_src.shape[0] - 1):
        begin = first_src[s]
        for at in range(begin, first_src[s + 1]):
            first, last = first_link[at], first_link[at + 1]
            out_src_span[at, 0] = -1
            out_src_span[at, 1] = -1
            if first < last:
                out_src_span[at, 0] = link[first]
                out_src_span[at, 1] = link[last - 1] + 1
            for k in range(first, last):
                there = first_tgt[s] + link[k]
                # Source words ascend: the first one seen is the first one.
                if out_tgt_span[there, 0] < 0:
                    out_tgt_span[there, 0] = at - begin
                out_tgt_span[there, 1] = at - begin + 1


@leaf
def sample_matches(suffix, found, listed, place, entry, samples, skip_low, skip_high, out_match):
    """Choose matches, evenly spaced; returns how many. Those at skip_low ... skip_high - 1 are left out.

    Those of several sentences are left out by ``sample_matches_outside``.

    Equal to cdec's sampler, including rounding: a match in the sentence left out is replaced by the nearest
    one that no earlier step has reached, if there is one between this step and its neighbours.
    """
    kind = place[entry, 2]
    # First rank in cdec, whose suffix array begins with the end of the text. Sums of steps that are no
    # binary fractions differ slightly with another first rank, and are then rounded to another match.
    low = place[entry, 0] + 1 if kind == SUFFIXES else np.int64(0)
    shift = place[entry, 0] - low
    high = place[entry, 1] - shift
    last, chosen = low - 1, 0
    step = max(1.0, (high - low) / samples)
    at, taken = np.float64(low), 0
    while taken < samples and at < high:
        away = 0.0
        while away < step:
            # First the match itself, then those around it, the one before first.
            sample = np.int64(math.floor(at - away + 0.5))
            good = sample > last
            match = match_at(suffix, found, listed, kind, max(sample, low) + shift)
            good = good and not skip_low <= match >> 16 < skip_high
            if not good and away > 0.0:
                sample = np.int64(math.floor(at + away + 0.5))
                if sample < high:
                    match = match_at(suffix, found, listed, kind, sample + shift)
                    good = not skip_low <= match >> 16 < skip_high
            if good:
                last = sample
                out_match[chosen] = match
                chosen += 1
                break
            away += 1.0
        taken += 1
        at += step
    return chosen


@leaf
def is_in_ranges(ranges, at):
    """Whether a place is in one of several half-open ranges, which ascend."""
    low, high = np.int64(0), np.int64(ranges.shape[0])
    while low < high:
        middle = (low + high) >> 1
        if ranges[middle, 1] <= at:
            low = middle + 1
        else:
            high = middle
    return low < ranges.shape[0] and ranges[low, 0] <= at


@leaf
def sample_matches_outside(suffix, found, listed, place, entry, samples, left_out, out_match):
    """Choose matches outside of some ranges, as if there were no others; returns how many, and of how many.

    Unlike ``sample_matches``, which may find none near a step, it loses no samples to matches left out.
    """
    begin, end, kind = place[entry, 0], place[entry, 1], place[entry, 2]
    total = np.int64(0)
    for k in range(begin, end):
        match = match_at(suffix, found, listed, kind, k)
        if not is_in_ranges(left_out, match >> 16):
            if total < samples:
                out_match[total] = match
            total += 1
    if total <= samples:
        return total, total
    low = begin + 1 if kind == SUFFIXES else np.int64(0)  # as above
    step, at, seen, chosen = total / samples, np.float64(low), low, 0
    for k in range(begin, end):
        match = match_at(suffix, found, listed, kind, k)
        if not is_in_ranges(left_out, match >> 16):
            if chosen < samples and seen == np.int64(math.floor(at + 0.5)):
                out_match[chosen] = match
                chosen += 1
                at += step
            seen += 1
    return chosen, total


@leaf
def lay_out(length, runs, match, src_base, low, high):
    """Write the runs of words of a match, and the gaps between them, as words of the sentence.

    length     int64 [4]   words of each run
    low, high  int64 [16]  written; runs from row 4, gaps from row 1: row 0 is for one before all words
    """
    base = (match >> 16) - src_base
    for run in range(runs):
        begin = base
        if run > 0:
            begin += (match >> 8) & 255 if run == 1 else match & 255
            low[run], high[run] = high[3 + run], begin
        low[4 + run], high[4 + run] = begin, begin + length[run]


@leaf
def is_linked(span, a, at):
    """Whether the word at a place of the text has a link; see PhraseLinks."""
    return span[np.uint64(a), np.uint64(at)] >= 0


@leaf
def project(span, a, base, low, high):
    """The half-open range that places base + low ... base + high - 1 are linked to; its end is -1 if none.

    Without branches, and with unsigned places, which need no test for negative indices: so the loop compiles
    to vector instructions.
    """
    begin, end = LOW_HALF, np.int32(-1)
    for at in range(np.uint64(base + low), np.uint64(base + high)):
        here = span[np.uint64(a), at]
        begin = min(begin, here & LOW_HALF)
        end = max(end, here >> HALF)
    return np.int64(begin), np.int64(end)


@leaf
def close_gap(src_span, tgt_span, a, src_base, tgt_base, low, high, limit):
    """(Whether some source words and the words linked to them make a phrase, its target side)."""
    tgt_low, tgt_high = project(src_span, a, src_base, low, high)
    if tgt_high < 0 or tgt_high - tgt_low > limit:
        return False, tgt_low, tgt_high
    back_low, back_high = project(tgt_span, a, tgt_base, tgt_low, tgt_high)
    return back_low >= low and back_high <= high, tgt_low, tgt_high


@leaf
def close_phrase(
    src_span,
    tgt_span,
    a,
    src_base,
    tgt_base,
    low,
    high,
    tgt_low,
    tgt_high,
    limit,
    left,
    right,
    sides,
    again,
):
    """Grow a source phrase until it and its target phrase are linked to nothing outside them.

    low ... high - 1 are source words of the sentence, linked to tgt_low ... tgt_high - 1. They may grow to
    the ``left`` and to the ``right``, on at most ``sides`` sides: repeatedly if ``again``, else once and only
    if the target phrase does not grow with them. Returns (whether it succeeds, target phrase, source phrase).
    """
    if tgt_high < 0 or tgt_high - tgt_low > limit:
        return False, tgt_low, tgt_high, low, high
    back_low, back_high = project(tgt_span, a, tgt_base, tgt_low, tgt_high)
    grown_left, grown_right = False, False
    while True:
        back_low, back_high = min(back_low, low), max(back_high, high)
        if back_low == low and back_high == high:
            return True, tgt_low, tgt_high, low, high
        grown_left |= back_low < low
        grown_right |= back_high > high
        if (grown_left and not left) or (grown_right and not right):
            break
        if np.int64(grown_left) + np.int64(grown_right) > sides or back_high - back_low > limit:
            break
        # Never empty: it has at least the links of the words it grew from.
        more_low, more_high = project(src_span, a, src_base, back_low, back_high)
        if more_low == tgt_low and more_high == tgt_high:
            return True, tgt_low, tgt_high, back_low, back_high
        tgt_low, tgt_high = more_low, more_high
        if not again or tgt_high - tgt_low > limit:
            break
        low, high = back_low, back_high
        back_low, back_high = project(tgt_span, a, tgt_base, tgt_low, tgt_high)
    return False, tgt_low, tgt_high, back_low, back_high


# ---- phrases around sampled matches


@leaf
def measure_runs(symbol, entry, size, out_run):
    """Write the lengths of the runs of a pattern; returns their number."""
    run = 0
    out_run[0] = 0
    for k in range(size):
        if symbol[entry, k] == GAP:
            run += 1
            out_run[run] = 0
        else:
            out_run[run] += 1
    return run + 1


@leaf
def put_phrase(phrase, row, match, a, tgt_low, tgt_high):
    """Write a match, its alignment, and the target words that it is linked to."""
    phrase[row, 0], phrase[row, 1], phrase[row, 4], phrase[row, 5] = match, a, tgt_low, tgt_high


@leaf
def keep_linked(text, links, limits, scratch, runs, num_matches):
    """Write the phrases around sampled matches that have a linked word, in words of the text.

    The gaps of a phrase must begin and end with linked words. Also writes the target words that it is linked
    to; returns how many there are.
    """
    phrase, src_span = scratch.phrase, links.src_span
    span, size, kept = limits[SPAN], src_span.shape[1], 0
    # A match is in a distant place of the text, and so are all arrays about it: each step loads in advance
    # what the next ones need.
    for k in range(num_matches):
        match = scratch.sample[k]
        at, far = match >> 16, max((match >> 8) & 255, match & 255)
        prefetch(text.sentence, at)
        for a in range(src_span.shape[0]):
            prefetch(src_span, a * size + at)
            prefetch(src_span, a * size + at + far)
    for k in range(num_matches):
        match = scratch.sample[k]
        start = match >> 16
        second, third = (match >> 8) & 255, match & 255
        words = max(second, third) + scratch.run[runs - 1]
        if words > span:
            continue
        for a in range(src_span.shape[0]):
            if runs > 1:
                good = is_linked(src_span, a, start + scratch.run[0])
                good &= is_linked(src_span, a, start + second - 1)
                if runs > 2:
                    good &= is_linked(src_span, a, start + second + scratch.run[1])
                    good &= is_linked(src_span, a, start + third - 1)
                if not good:
                    continue
            low, high = project(src_span, a, start, 0, words)
            good = high >= 0 and high - low <= span
            if runs > 1:
                _, one = project(src_span, a, start, 0, scratch.run[0])
                _, two = project(src_span, a, start + second, 0, scratch.run[1])
                if runs > 2:
                    _, three = project(src_span, a, start + third, 0, scratch.run[2])
                    two = max(two, three)
                good &= max(one, two) >= 0
            if not good:
                continue
            put_phrase(phrase, kept, match, a, low, high)
            kept += 1
    return kept


@leaf
def place_phrases(text, links, scratch, num_phrases):
    """Write where the sentences of phrases begin."""
    phrase, tgt_span = scratch.phrase, links.tgt_span
    for row in range(num_phrases):
        sentence = text.sentence[phrase[row, 0] >> 16]
        tgt_base = text.first_tgt[sentence]
        phrase[row, 2] = text.first_src[sentence]
        phrase[row, 3] = tgt_base
        prefetch(tgt_span, phrase[row, 1] * tgt_span.shape[1] + tgt_base + phrase[row, 4])


@leaf
def keep_closed(text, links, limits, scratch, runs, num_phrases):
    """Keep the phrases that are linked to nothing outside, or grow by a gap at either edge until they are.

    Writes both sides of them; returns how many are kept.
    """
    phrase = scratch.phrase
    span, sides, kept = limits[SPAN], limits[GAPS] - runs + 1, 0
    for row in range(num_phrases):
        match, a, src_base, tgt_base = phrase[row, 0], phrase[row, 1], phrase[row, 2], phrase[row, 3]
        low = (match >> 16) - src_base
        high = low + max((match >> 8) & 255, match & 255) + scratch.run[runs - 1]
        good, tgt_low, tgt_high, src_low, src_high = close_phrase(
            links.src_span,
            links.tgt_span,
            a,
            src_base,
            tgt_base,
            low,
            high,
            phrase[row, 4],
            phrase[row, 5],
            span,
            True,
            True,
            sides,
            False,
        )
        if not good:
            continue
        prefetch(text.tgt, tgt_base + tgt_low)
        prefetch(links.first_link, a * links.first_link.shape[1] + (match >> 16))
        put_phrase(phrase, kept, match, a, tgt_low, tgt_high)
        phrase[kept, 2], phrase[kept, 3] = src_base, tgt_base
        phrase[kept, 6], phrase[kept, 7] = src_low, src_high
        kept += 1
    return kept
