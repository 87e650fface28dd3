"""From the matches of a pattern to rules: sample, project through the alignment, count, score.

As cdec's extractor does it: a match yields the rule whose source side is the pattern itself, with a gap at an
edge where the alignment asks for one, and those with a further gap at the left, the right or both edges, each
as short as can be. Phrases and gaps are tight: their outermost source words are linked.
"""

import math

import numpy as np

from hiero._jit import kernel, leaf
from hiero.kernels.extract_tables import (
    FOUND,
    GAP,
    GAPS,
    LEADING,
    MORE_RULES,
    OK,
    SAMPLES,
    SPAN,
    SUFFIXES,
    SYMBOLS,
    TRAILING,
    find_pair,
    finish,
    mix,
)

UNSEEN = 99.0  # the loss of a word that no pair explains
START = 14695981039346656037


@leaf
def project(span, a, base, low, high):
    """The places that base + low ... base + high - 1 are linked to, as a half-open range; (-1, -1) if none."""
    begin, end = np.int64(-1), np.int64(-1)
    for at in range(base + low, base + high):
        here = np.int64(span[a, at, 0])
        if here >= 0:
            if begin < 0 or here < begin:
                begin = here
            end = max(end, np.int64(span[a, at, 1]))
    return begin, end


@leaf
def close_phrase(tables, a, src_base, tgt_base, low, high, span, new, may_left, may_right, again):
    """Grow a source phrase until it and its target phrase are linked to nothing outside them.

    low ... high - 1 are source words of the sentence; it may grow to the left or the right, by ``new`` sides
    at most, and ``again`` as often as it takes or else once and without the target phrase growing. Returns
    (whether that can be, target phrase, source phrase).
    """
    tgt_low, tgt_high = project(tables.src_span, a, src_base, low, high)
    back_low, back_high = low, high
    if tgt_low < 0 or tgt_high - tgt_low > span:
        return False, tgt_low, tgt_high, low, high
    back_low, back_high = project(tables.tgt_span, a, tgt_base, tgt_low, tgt_high)
    grown_left, grown_right = False, False
    while True:
        back_low, back_high = min(back_low, low), max(back_high, high)
        if back_low == low and back_high == high:
            return True, tgt_low, tgt_high, low, high
        grown_left |= back_low < low
        grown_right |= back_high > high
        if (grown_left and not may_left) or (grown_right and not may_right):
            break
        if np.int64(grown_left) + np.int64(grown_right) > new or back_high - back_low > span:
            break
        before_low, before_high = tgt_low, tgt_high
        left_low, left_high = project(tables.src_span, a, src_base, back_low, low)
        if left_low >= 0:
            tgt_low, tgt_high = min(tgt_low, left_low), max(tgt_high, left_high)
        right_low, right_high = project(tables.src_span, a, src_base, high, back_high)
        if right_low >= 0:
            tgt_low, tgt_high = min(tgt_low, right_low), max(tgt_high, right_high)
        if tgt_low == before_low and tgt_high == before_high:
            return True, tgt_low, tgt_high, back_low, back_high
        if not again or tgt_high - tgt_low > span:
            break
        low, high = back_low, back_high
        more_low, more_high = project(tables.tgt_span, a, tgt_base, tgt_low, tgt_high)
        back_low, back_high = min(back_low, more_low), max(back_high, more_high)
    return False, tgt_low, tgt_high, back_low, back_high


@leaf
def close_gap(tables, a, src_base, tgt_base, low, high, span):
    """(Whether some source words and what they are linked to make a phrase, its target side)."""
    tgt_low, tgt_high = project(tables.src_span, a, src_base, low, high)
    if tgt_low < 0 or tgt_high - tgt_low > span:
        return False, tgt_low, tgt_high
    back_low, back_high = project(tables.tgt_span, a, tgt_base, tgt_low, tgt_high)
    return back_low >= low and back_high <= high, tgt_low, tgt_high


@leaf
def is_linked(tables, a, at):
    return tables.src_span[a, at, 0] >= 0


@leaf
def sample_places(tables, memory, paper, samples, entry, left_out, out_match):
    """Choose matches, evenly spaced; returns how many.

    As cdec's sampler, down to its rounding: a match in the sentence that is left out is replaced by the
    nearest that no earlier step has reached, if there is one between this step and its neighbours.
    """
    kind = memory.place[entry, 2]
    # Where cdec would count from: its suffix array begins with the end of the text. Sums of steps that are no
    # binary fractions come out a little different elsewhere, and are then rounded to another match.
    low = memory.place[entry, 0] + 1 if kind == SUFFIXES else np.int64(0)
    shift = memory.place[entry, 0] - low
    high = memory.place[entry, 1] - shift
    last, chosen = low - 1, 0
    step = max(1.0, (high - low) / samples)
    at, taken = np.float64(low), 0
    while taken < samples and at < high:
        sample = np.int64(math.floor(at + 0.5))
        match = match_at(tables, paper.match, kind, sample + shift)
        good = last < sample and tables.sentence[match >> 16] != left_out
        away = 1.0
        while not good and away < step:
            sample = np.int64(math.floor(at - away + 0.5))
            if sample > last:
                match = match_at(tables, paper.match, kind, sample + shift)
                good = tables.sentence[match >> 16] != left_out
            if not good:
                sample = np.int64(math.floor(at + away + 0.5))
                if sample < high:
                    match = match_at(tables, paper.match, kind, sample + shift)
                    good = tables.sentence[match >> 16] != left_out
            away += 1.0
        if good:
            last = sample
            out_match[chosen] = match
            chosen += 1
        taken += 1
        at += step
    return chosen


@leaf
def match_at(tables, found, kind, k):
    """Match k of one of the three arrays that ``Memory.place`` tells apart."""
    if kind == SUFFIXES:
        return np.int64(tables.suffix[k]) << 16
    if kind == FOUND:
        return np.int64(found[k])
    return np.int64(tables.match[k])


@leaf
def lay_out(memory, paper, entry, match, src_base):
    """Write the runs of words of a match and the gaps between them, as words of the sentence.

    Runs go to rows 4, 5, 6 of ``paper.low`` and ``high``, gaps from row 1 on: row 0 is for one before all.
    Returns the number of runs.
    """
    size = memory.shape[entry, 0]
    base = (match >> 16) - src_base
    run, at = 0, 0
    begin = base
    while at < size:
        end = begin
        while at < size and memory.symbol[entry, at] != GAP:
            at += 1
            end += 1
        paper.low[4 + run], paper.high[4 + run] = begin, end
        if at < size:
            begin = base + ((match >> 8) & 255 if run == 0 else match & 255)
            paper.low[1 + run], paper.high[1 + run] = end, begin
            at += 1
        run += 1
    return run


@leaf
def put_target(tables, paper, tgt_base, tgt_low, tgt_high, first_gap, last_gap, used):
    """Write a target side to ``paper.symbol`` from ``used`` on; returns where it ends."""
    at = tgt_low
    while at < tgt_high:
        symbol = tables.tgt[tgt_base + at]
        after = at + 1
        for row in range(first_gap, last_gap + 1):
            if paper.low[8 + row] == at:
                symbol = np.int32(first_gap - row - 1)
                after = paper.high[8 + row]
        paper.symbol[used] = symbol
        used += 1
        at = after
    return used


@leaf
def put_links(tables, paper, a, src_base, tgt_low, runs, leading, first_gap, last_gap, used):
    """Write the links of a rule to ``paper.link``, by source place, from ``used`` on; where they end."""
    place = np.int64(leading)
    for run in range(runs):
        for at in range(src_base + paper.low[4 + run], src_base + paper.high[4 + run]):
            for k in range(tables.first_link[a, at], tables.first_link[a, at + 1]):
                there = np.int64(tables.link[k])
                target = there - tgt_low
                for row in range(first_gap, last_gap + 1):
                    if paper.low[8 + row] < there:
                        target -= paper.high[8 + row] - paper.low[8 + row] - 1
                paper.link[used, 0] = place
                paper.link[used, 1] = target
                used += 1
            place += 1
        place += 1
    return used


@leaf
def note_rule(paper, mask, edges, counts, end):
    """Count the rule whose target side is ``paper.symbol`` up to ``end``; its number.

    counts  int64 [4]  rules, alignments, symbols and links in use; written
    """
    begin = counts[2]
    code = mix(np.uint64(START), edges)
    for k in range(begin, end):
        code = mix(code, np.int64(paper.symbol[k]) & 0xFFFFFFFF)
    at = np.int64(finish(code) & np.uint64(mask))
    while paper.slot[0, at] >= 0:
        rule = np.int64(paper.slot[0, at])
        first = np.int64(paper.group[rule, 2])
        if paper.group[rule, 0] == edges and paper.group[rule, 3] - first == end - begin:
            k = 0
            while k < end - begin and paper.symbol[first + k] == paper.symbol[begin + k]:
                k += 1
            if k == end - begin:
                paper.group[rule, 1] += 1
                return rule
        at = (at + 1) & mask
    rule = counts[0]
    paper.slot[0, at] = rule
    paper.group[rule, 0], paper.group[rule, 1] = edges, 1
    paper.group[rule, 2], paper.group[rule, 3] = begin, end
    counts[0], counts[2] = rule + 1, end
    return rule


@leaf
def note_variant(paper, mask, rule, counts, end):
    """Count the alignment of a rule that is ``paper.link`` up to ``end``."""
    begin = counts[3]
    code = mix(np.uint64(START), rule)
    for k in range(begin, end):
        code = mix(code, np.int64(paper.link[k, 0]) << 16 | np.int64(paper.link[k, 1]))
    at = np.int64(finish(code) & np.uint64(mask))
    while paper.slot[1, at] >= 0:
        variant = np.int64(paper.slot[1, at])
        first = np.int64(paper.variant[variant, 2])
        if paper.variant[variant, 0] == rule and paper.variant[variant, 3] - first == end - begin:
            k = 0
            while k < end - begin and (
                paper.link[first + k, 0] == paper.link[begin + k, 0]
                and paper.link[first + k, 1] == paper.link[begin + k, 1]
            ):
                k += 1
            if k == end - begin:
                paper.variant[variant, 1] += 1
                return
        at = (at + 1) & mask
    variant = counts[1]
    paper.slot[1, at] = variant
    paper.variant[variant, 0], paper.variant[variant, 1] = rule, 1
    paper.variant[variant, 2], paper.variant[variant, 3] = begin, end
    counts[1], counts[3] = variant + 1, end


@leaf
def earlier(paper, one, two):
    """Whether the links of one alignment come before those of another, as lists of pairs are ordered."""
    a, b = paper.variant[one, 2], paper.variant[two, 2]
    while a < paper.variant[one, 3] and b < paper.variant[two, 3]:
        for side in range(2):
            if paper.link[a, side] != paper.link[b, side]:
                return paper.link[a, side] < paper.link[b, side]
        a += 1
        b += 1
    return a == paper.variant[one, 3] and b < paper.variant[two, 3]


@kernel
def take_apart(tables, limits, memory, paper, entry, a, match, mask, counts):
    """Count the rules that one match yields under alignment a."""
    span, symbols, max_gaps = limits[SPAN], limits[SYMBOLS], limits[GAPS]
    sentence = tables.sentence[match >> 16]
    src_base, tgt_base = tables.first_src[sentence], tables.first_tgt[sentence]
    src_size = tables.first_src[sentence + 1] - src_base - 1
    runs = lay_out(memory, paper, entry, match, src_base)
    linked = False
    for run in range(runs):
        for at in range(paper.low[4 + run], paper.high[4 + run]):
            linked |= is_linked(tables, a, src_base + at)
    for gap in range(1, runs):
        linked &= is_linked(tables, a, src_base + paper.low[gap])
        linked &= is_linked(tables, a, src_base + paper.high[gap] - 1)
    if not linked:
        return
    low, high = paper.low[4], paper.high[3 + runs]
    size = np.int64(memory.shape[entry, 0])
    # The phrase around the match, which may have to grow by a gap at either edge.
    good, tgt_low, tgt_high, src_low, src_high = close_phrase(
        tables, a, src_base, tgt_base, low, high, span, max_gaps - runs + 1, True, True, False
    )
    if not good:
        return
    leading, trailing = src_low < low, src_high > high
    size += np.int64(leading) + np.int64(trailing)
    if size > symbols:
        return
    paper.low[0], paper.high[0] = src_low, low
    paper.low[runs], paper.high[runs] = high, src_high
    if leading and not is_linked(tables, a, src_base + src_low):
        return
    if leading and not is_linked(tables, a, src_base + low - 1):
        return
    if trailing and not is_linked(tables, a, src_base + high):
        return
    if trailing and not is_linked(tables, a, src_base + src_high - 1):
        return
    for gap in range(0 if leading else 1, runs + 1 if trailing else runs):
        good, gap_low, gap_high = close_gap(
            tables, a, src_base, tgt_base, paper.low[gap], paper.high[gap], span
        )
        if not good:
            return
        paper.low[8 + gap], paper.high[8 + gap] = gap_low, gap_high
    tight_left = is_linked(tables, a, src_base + src_low)
    tight_right = is_linked(tables, a, src_base + src_high - 1)
    gaps = runs - 1 + np.int64(leading) + np.int64(trailing)
    for more in range(4):
        # Without a further gap, with one at the right, at the left, at both edges.
        left, right = more >= 2, more == 1 or more == 3
        first_low, first_high = tgt_low, tgt_high
        if more == 0:
            if not (tight_left and tight_right):
                continue
        else:
            extra = np.int64(left) + np.int64(right)
            if gaps + extra > max_gaps or size + extra > symbols:
                continue
            if (left and leading) or (right and trailing):
                continue
            far_low, far_high = src_low - np.int64(left), src_high + np.int64(right)
            if far_low < 0 or far_high > src_size or far_high - far_low > span:
                continue
            if not is_linked(tables, a, src_base + far_low):
                continue
            if not is_linked(tables, a, src_base + far_high - 1):
                continue
            good, first_low, first_high, far_low, far_high = close_phrase(
                tables, a, src_base, tgt_base, far_low, far_high, span, extra, left, right, True
            )
            if not good:
                continue
            for side in range(2):
                if (side == 0 and not left) or (side == 1 and not right):
                    continue
                row = 0 if side == 0 else runs
                gap_low, gap_high = (far_low, src_low) if side == 0 else (src_high, far_high)
                good &= is_linked(tables, a, src_base + (far_low if side == 0 else far_high - 1))
                if good:
                    good, gap_low, gap_high = close_gap(
                        tables, a, src_base, tgt_base, gap_low, gap_high, span
                    )
                    paper.low[8 + row], paper.high[8 + row] = gap_low, gap_high
            if not good:
                continue
        edges = np.int64(LEADING if leading or left else 0) + np.int64(TRAILING if trailing or right else 0)
        first_gap = 0 if edges & LEADING else 1
        last_gap = runs if edges & TRAILING else runs - 1
        end = put_target(tables, paper, tgt_base, first_low, first_high, first_gap, last_gap, counts[2])
        rule = note_rule(paper, mask, edges, counts, end)
        end = put_links(
            tables, paper, a, src_base, first_low, runs, edges & LEADING, first_gap, last_gap, counts[3]
        )
        note_variant(paper, mask, rule, counts, end)
        paper.tally[edges] += 1


@leaf
def word_losses(tables, memory, paper, entry, begin, end):
    """Sum over source words, and over target words, of -log10 of the best explanation of each."""
    for k in range(begin, end):
        if paper.symbol[k] > 0:
            pair = find_pair(tables.pair_key, np.int64(0), np.int64(paper.symbol[k]))
            paper.loss[k - begin] = np.float64(tables.pair_loss[pair, 1]) if pair >= 0 else UNSEEN
    src_loss, tgt_loss = 0.0, 0.0
    for s in range(memory.shape[entry, 0]):
        src = np.int64(memory.symbol[entry, s])
        if src == GAP:
            continue
        pair = find_pair(tables.pair_key, src, np.int64(0))
        best = np.float64(tables.pair_loss[pair, 0]) if pair >= 0 else UNSEEN
        for k in range(begin, end):
            if paper.symbol[k] > 0:
                pair = find_pair(tables.pair_key, src, np.int64(paper.symbol[k]))
                if pair >= 0:
                    best = min(best, np.float64(tables.pair_loss[pair, 0]))
                    paper.loss[k - begin] = min(paper.loss[k - begin], np.float64(tables.pair_loss[pair, 1]))
        src_loss += best
    for k in range(begin, end):
        if paper.symbol[k] > 0:
            tgt_loss += paper.loss[k - begin]
    return src_loss, tgt_loss


@kernel
def make_rules(tables, limits, memory, paper, entry, left_out):
    """Append the rules of a pattern to ``memory``; OK, or MORE_RULES if there is no room."""
    num_samples = sample_places(
        tables, memory, paper, limits[SAMPLES], entry, left_out, paper.sample
    )
    num_alignments = tables.src_span.shape[0]
    slots = 16
    while slots < 8 * num_samples * num_alignments:
        slots *= 2
    paper.slot[:, :slots] = -1
    counts = np.zeros(4, np.int64)
    paper.tally[:] = 0
    for k in range(num_samples):
        for a in range(num_alignments):
            take_apart(tables, limits, memory, paper, entry, a, paper.sample[k], slots - 1, counts)
    num_rules = counts[0]
    first_rule = memory.used[1]
    if (
        first_rule + num_rules > memory.edge.shape[0]
        or memory.first_tgt[first_rule] + counts[2] > memory.tgt.shape[0]
        or memory.first_link[first_rule] + counts[3] > memory.link.shape[0]
    ):
        return MORE_RULES
    paper.best[:num_rules] = -1
    for variant in range(counts[1]):
        rule = paper.variant[variant, 0]
        best = paper.best[rule]
        if (
            best < 0
            or paper.variant[variant, 1] > paper.variant[best, 1]
            or (paper.variant[variant, 1] == paper.variant[best, 1] and earlier(paper, variant, best))
        ):
            paper.best[rule] = variant
    for k in range(num_rules):
        rule = first_rule + k
        edges, count, begin, end = paper.group[k, 0], paper.group[k, 1], paper.group[k, 2], paper.group[k, 3]
        src_loss, tgt_loss = word_losses(tables, memory, paper, entry, begin, end)
        memory.edge[rule] = edges
        memory.feature[rule, 0] = -math.log10(count / (num_samples * num_alignments))
        memory.feature[rule, 1] = math.log10(1.0 + num_samples * num_alignments)
        memory.feature[rule, 2] = math.log10(1.0 + count)
        memory.feature[rule, 3] = src_loss
        memory.feature[rule, 4] = tgt_loss
        # Tight phrases have one target side: the fractional count of a source side is a count.
        memory.feature[rule, 5] = 1.0 if paper.tally[edges] == 1 else 0.0
        memory.feature[rule, 6] = 1.0 if count == 1 else 0.0
        at = memory.first_tgt[rule]
        for s in range(begin, end):
            memory.tgt[at] = paper.symbol[s]
            at += 1
        memory.first_tgt[rule + 1] = at
        at = memory.first_link[rule]
        for s in range(paper.variant[paper.best[k], 2], paper.variant[paper.best[k], 3]):
            memory.link[at, 0], memory.link[at, 1] = paper.link[s, 0], paper.link[s, 1]
            at += 1
        memory.first_link[rule + 1] = at
    memory.rule[entry, 0] = first_rule
    memory.rule[entry, 1] = first_rule + num_rules
    memory.used[1] = first_rule + num_rules
    return OK
