# mypy: ignore-errors
"""From the matches of a pattern to rules: project, count, score.

As in cdec's extractor, a match yields the rule whose source side is the pattern itself, with a gap at an
edge where the alignment requires one, and those with a further gap at the left, the right or both edges, each
as short as can be. Phrases and gaps are tight: their outermost source words are linked.
"""

import math

import numpy as np

from hiero.core.hash_kernels import FNV_START, fnv_step, probe_within, table_size
from hiero.core.jit import kernel, leaf
from hiero.extraction.lexicon_kernels import loss_of
from hiero.extraction.phrase_kernels import (
    HALF,
    LOW_HALF,
    close_gap,
    close_phrase,
    is_linked,
    keep_closed,
    keep_linked,
    lay_out,
    measure_runs,
    place_phrases,
    project,
    sample_matches,
    sample_matches_outside,
)
from hiero.extraction.table_kernels import (
    GAP,
    GAPS,
    LEADING,
    MORE_RULES,
    NUM_FEATURES,
    OK,
    SAMPLES,
    SPAN,
    SYMBOLS,
    TRAILING,
    UNSEEN,
    find_pair,
    finish_hash,
)


@leaf
def put_target(tgt, scratch, tgt_base, tgt_low, tgt_high, first_gap, last_gap):
    """Write a target side after those of ``scratch.symbol``; returns where it ends."""
    used, at = scratch.used[2], tgt_low
    while at < tgt_high:
        symbol = tgt[tgt_base + at]
        after = at + 1
        for row in range(first_gap, last_gap + 1):
            if scratch.low[8 + row] == at:
                symbol = np.int32(first_gap - row - 1)
                after = scratch.high[8 + row]
        scratch.symbol[used] = symbol
        used += 1
        at = after
    return used


@leaf
def put_links(links, scratch, a, src_base, tgt_low, runs, leading, first_gap, last_gap):
    """Write the links of a rule, by source place, after those of ``scratch.link``; returns where they end."""
    used = scratch.used[3]
    place = np.int64(leading)
    for run in range(runs):
        for at in range(src_base + scratch.low[4 + run], src_base + scratch.high[4 + run]):
            both = links.src_span[np.uint64(a), np.uint64(at)]
            begin, end = np.int64(both & LOW_HALF), np.int64(both >> HALF)
            if end > begin + 1:
                first, last = links.first_link[a, at], links.first_link[a, at + 1]
            else:
                # At most one link, which is the span: no need to look it up.
                first, last = np.int64(0), max(end - begin, np.int64(0))
            for k in range(first, last):
                there = np.int64(links.link[k]) if end > begin + 1 else begin
                target = there - tgt_low
                for row in range(first_gap, last_gap + 1):
                    if scratch.low[8 + row] < there:
                        target -= scratch.high[8 + row] - scratch.low[8 + row] - 1
                scratch.link[used, 0] = place
                scratch.link[used, 1] = target
                used += 1
            place += 1
        place += 1
    return used


@leaf
def is_rule(scratch, rule, key):
    """``equal`` of rules: the same gaps at the edges and the same target side."""
    edges, begin, end = key
    first = np.int64(scratch.group[rule, 2])
    if scratch.group[rule, 0] != edges or scratch.group[rule, 3] - first != end - begin:
        return False
    for k in range(end - begin):
        if scratch.symbol[first + k] != scratch.symbol[begin + k]:
            return False
    return True


@leaf
def note_rule(scratch, mask, edges, end):
    """Count the rule whose target side ends ``scratch.symbol`` at ``end``; returns its number."""
    begin = scratch.used[2]
    code = fnv_step(FNV_START, edges)
    for k in range(begin, end):
        code = fnv_step(code, np.int64(scratch.symbol[k]) & 0xFFFFFFFF)
    at = probe_within(scratch.rule_slot, mask, finish_hash(code), is_rule, scratch, (edges, begin, end))
    rule = np.int64(scratch.rule_slot[at])
    if rule >= 0:
        scratch.group[rule, 1] += 1
        return rule
    rule = scratch.used[0]
    scratch.rule_slot[at] = rule
    scratch.group[rule, 0], scratch.group[rule, 1] = edges, 1
    scratch.group[rule, 2], scratch.group[rule, 3] = begin, end
    scratch.used[0], scratch.used[2] = rule + 1, end
    return rule


@leaf
def is_variant(scratch, variant, key):
    """``equal`` of alignments of rules."""
    rule, begin, end = key
    first = np.int64(scratch.variant[variant, 2])
    if scratch.variant[variant, 0] != rule or scratch.variant[variant, 3] - first != end - begin:
        return False
    for k in range(end - begin):
        for side in range(2):
            if scratch.link[first + k, side] != scratch.link[begin + k, side]:
                return False
    return True


@leaf
def note_variant(scratch, mask, rule, end):
    """Count the alignment of a rule that ends ``scratch.link`` at ``end``."""
    begin = scratch.used[3]
    code = fnv_step(FNV_START, rule)
    for k in range(begin, end):
        code = fnv_step(code, np.int64(scratch.link[k, 0]) << 16 | np.int64(scratch.link[k, 1]))
    key = (rule, begin, end)
    at = probe_within(scratch.variant_slot, mask, finish_hash(code), is_variant, scratch, key)
    variant = np.int64(scratch.variant_slot[at])
    if variant >= 0:
        scratch.variant[variant, 1] += 1
        return
    variant = scratch.used[1]
    scratch.variant_slot[at] = variant
    scratch.variant[variant, 0], scratch.variant[variant, 1] = rule, 1
    scratch.variant[variant, 2], scratch.variant[variant, 3] = begin, end
    scratch.used[1], scratch.used[3] = variant + 1, end


@leaf
def earlier(scratch, one, two):
    """Whether the links of one alignment come before those of another, as lists of pairs are ordered."""
    a, b = scratch.variant[one, 2], scratch.variant[two, 2]
    while a < scratch.variant[one, 3] and b < scratch.variant[two, 3]:
        for side in range(2):
            if scratch.link[a, side] != scratch.link[b, side]:
                return scratch.link[a, side] < scratch.link[b, side]
        a += 1
        b += 1
    return a == scratch.variant[one, 3] and b < scratch.variant[two, 3]


@leaf
def take_apart(text, links, limits, scratch, words, runs, row, mask):
    """Count the rules that one phrase yields: a pattern of so many words and gaps, in so many runs."""
    span, symbols, max_gaps = limits[SPAN], limits[SYMBOLS], limits[GAPS]
    phrase = scratch.phrase
    match, a, src_base, tgt_base = phrase[row, 0], phrase[row, 1], phrase[row, 2], phrase[row, 3]
    tgt_low, tgt_high, src_low, src_high = phrase[row, 4], phrase[row, 5], phrase[row, 6], phrase[row, 7]
    src_span, tgt_span = links.src_span, links.tgt_span
    lay_out(scratch.run, runs, match, src_base, scratch.low, scratch.high)
    low, high = scratch.low[4], scratch.high[3 + runs]
    leading, trailing = src_low < low, src_high > high
    size = words + np.int64(leading) + np.int64(trailing)
    if size > symbols:
        return
    scratch.low[0], scratch.high[0] = src_low, low
    scratch.low[runs], scratch.high[runs] = high, src_high
    if leading and not is_linked(src_span, a, src_base + src_low):
        return
    if leading and not is_linked(src_span, a, src_base + low - 1):
        return
    if trailing and not is_linked(src_span, a, src_base + high):
        return
    if trailing and not is_linked(src_span, a, src_base + src_high - 1):
        return
    for gap in range(0 if leading else 1, runs + 1 if trailing else runs):
        good, gap_low, gap_high = close_gap(
            src_span, tgt_span, a, src_base, tgt_base, scratch.low[gap], scratch.high[gap], span
        )
        if not good:
            return
        scratch.low[8 + gap], scratch.high[8 + gap] = gap_low, gap_high
    tight_left = is_linked(src_span, a, src_base + src_low)
    tight_right = is_linked(src_span, a, src_base + src_high - 1)
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
            # The end of a sentence is not linked.
            if far_low < 0 or far_high - far_low > span:
                continue
            if not is_linked(src_span, a, src_base + far_low):
                continue
            if not is_linked(src_span, a, src_base + far_high - 1):
                continue
            first_low, first_high = project(src_span, a, src_base, far_low, far_high)
            good, first_low, first_high, far_low, far_high = close_phrase(
                src_span,
                tgt_span,
                a,
                src_base,
                tgt_base,
                far_low,
                far_high,
                first_low,
                first_high,
                span,
                left,
                right,
                extra,
                True,
            )
            if not good:
                continue
            for side in range(2):
                if (side == 0 and not left) or (side == 1 and not right):
                    continue
                gap_low, gap_high = (far_low, src_low) if side == 0 else (src_high, far_high)
                good &= is_linked(src_span, a, src_base + (far_low if side == 0 else far_high - 1))
                if good:
                    good, gap_low, gap_high = close_gap(
                        src_span, tgt_span, a, src_base, tgt_base, gap_low, gap_high, span
                    )
                    place = 8 if side == 0 else 8 + runs
                    scratch.low[place], scratch.high[place] = gap_low, gap_high
            if not good:
                continue
        edges = np.int64(LEADING if leading or left else 0) + np.int64(TRAILING if trailing or right else 0)
        first_gap = 0 if edges & LEADING else 1
        last_gap = runs if edges & TRAILING else runs - 1
        end = put_target(text.tgt, scratch, tgt_base, first_low, first_high, first_gap, last_gap)
        rule = note_rule(scratch, mask, edges, end)
        end = put_links(links, scratch, a, src_base, first_low, runs, edges & LEADING, first_gap, last_gap)
        note_variant(scratch, mask, rule, end)
        scratch.tally[edges] += 1


@leaf
def word_losses(lexicon, symbol, entry, size, scratch, begin, end):
    """Sum over source words, and over target words, of -log10 of the best explanation of each."""
    for k in range(begin, end):
        if scratch.symbol[k] > 0:
            pair = find_pair(lexicon.pair_key, np.int64(0), np.int64(scratch.symbol[k]))
            scratch.loss[k - begin] = loss_of(lexicon, pair, 1) if pair >= 0 else UNSEEN
    src_loss, tgt_loss = 0.0, 0.0
    for s in range(size):
        src = np.int64(symbol[entry, s])
        if src == GAP:
            continue
        pair = find_pair(lexicon.pair_key, src, np.int64(0))
        best = loss_of(lexicon, pair, 0) if pair >= 0 else UNSEEN
        for k in range(begin, end):
            if scratch.symbol[k] > 0:
                pair = find_pair(lexicon.pair_key, src, np.int64(scratch.symbol[k]))
                if pair >= 0:
                    best = min(best, loss_of(lexicon, pair, 0))
                    scratch.loss[k - begin] = min(scratch.loss[k - begin], loss_of(lexicon, pair, 1))
        src_loss += best
    for k in range(begin, end):
        if scratch.symbol[k] > 0:
            tgt_loss += scratch.loss[k - begin]
    return src_loss, tgt_loss


@leaf
def rules_of_sample(
    text, links, lexicon, limits, symbol, entry, size, num_matches, num_samples, store, scratch
):
    """Append the rules of a pattern, ``symbol[entry, :size]``, to a Store.

    num_matches  matches looked at
    num_samples  those of them that are in ``scratch.sample``: the others yield no rule

    Returns OK, or MORE_RULES if there is no room.
    """
    num_alignments = links.src_span.shape[0]
    num_seen = num_matches * num_alignments
    runs = measure_runs(symbol, entry, size, scratch.run)
    num_phrases = keep_linked(text, links, limits, scratch, runs, num_samples)
    place_phrases(text, links, scratch, num_phrases)
    num_phrases = keep_closed(text, links, limits, scratch, runs, num_phrases)
    if num_phrases == 0:
        return OK
    slots = table_size(4 * num_phrases)
    for k in range(slots):
        scratch.rule_slot[k] = -1
        scratch.variant_slot[k] = -1
    for k in range(4):
        scratch.used[k] = 0
        scratch.tally[k] = 0
    for row in range(num_phrases):
        take_apart(text, links, limits, scratch, size, runs, row, slots - 1)
    num_rules, first_rule = scratch.used[0], store.used[0]
    if (
        first_rule + num_rules > store.edge.shape[0]
        or store.first_tgt[first_rule] + scratch.used[2] > store.tgt.shape[0]
        or store.first_link[first_rule] + scratch.used[3] > store.link.shape[0]
    ):
        return MORE_RULES
    for k in range(num_rules):
        scratch.best[k] = -1
    for variant in range(scratch.used[1]):
        rule = scratch.variant[variant, 0]
        best = scratch.best[rule]
        if (
            best < 0
            or scratch.variant[variant, 1] > scratch.variant[best, 1]
            or (scratch.variant[variant, 1] == scratch.variant[best, 1] and earlier(scratch, variant, best))
        ):
            scratch.best[rule] = variant
    for k in range(num_rules):
        rule = first_rule + k
        edges, count, begin, end = (
            scratch.group[k, 0],
            scratch.group[k, 1],
            scratch.group[k, 2],
            scratch.group[k, 3],
        )
        src_loss, tgt_loss = word_losses(lexicon, symbol, entry, size, scratch, begin, end)
        store.edge[rule] = edges
        store.feature[rule, 0] = math.log10(num_seen / count)
        store.feature[rule, 1] = math.log10(1.0 + num_seen)
        store.feature[rule, 2] = math.log10(1.0 + count)
        store.feature[rule, 3] = src_loss
        store.feature[rule, 4] = tgt_loss
        # Tight phrases have one target side: the fractional count of a source side is a count.
        store.feature[rule, 5] = 1.0 if scratch.tally[edges] == 1 else 0.0
        store.feature[rule, 6] = 1.0 if count == 1 else 0.0
        at = store.first_tgt[rule]
        for s in range(begin, end):
            store.tgt[at] = scratch.symbol[s]
            at += 1
        store.first_tgt[rule + 1] = at
        at = store.first_link[rule]
        for s in range(scratch.variant[scratch.best[k], 2], scratch.variant[scratch.best[k], 3]):
            store.link[at, 0], store.link[at, 1] = scratch.link[s, 0], scratch.link[s, 1]
            at += 1
        store.first_link[rule + 1] = at
    store.used[0] = first_rule + num_rules
    return OK


@leaf
def make_rules(text, links, lexicon, listed, limits, patterns, store, found, scratch, entry, left_out):
    """Append the rules of a pattern to a Store; returns OK, or MORE_RULES if there is no room."""
    total = patterns.place[entry, 1] - patterns.place[entry, 0]
    if left_out.shape[0] > 1:
        num_samples, total = sample_matches_outside(
            text.suffix,
            found,
            listed,
            patterns.place,
            entry,
            limits[SAMPLES],
            left_out,
            scratch.sample,
        )
    else:
        skip_low, skip_high = np.int64(0), np.int64(0)
        if left_out.shape[0] == 1:
            skip_low, skip_high = left_out[0, 0], left_out[0, 1]
        num_samples = sample_matches(
            text.suffix,
            found,
            listed,
            patterns.place,
            entry,
            limits[SAMPLES],
            skip_low,
            skip_high,
            scratch.sample,
        )
    first_rule, size = store.used[0], np.int64(patterns.shape[entry, 0])
    status = rules_of_sample(
        text,
        links,
        lexicon,
        limits,
        patterns.symbol,
        entry,
        size,
        num_samples,
        num_samples,
        store,
        scratch,
    )
    patterns.rule[entry, 0] = first_rule
    patterns.rule[entry, 1] = store.used[0]
    patterns.rule[entry, 2] = total if total > limits[SAMPLES] else num_samples
    return status


@kernel
def target_keys_kernel(first_tgt, tgt, out_key):
    """Hash target sides, in which all gaps are equal.

    first_tgt  int64 [R + 1]
    tgt        int32 [.]      words >= 1; gap g is -g
    out_key    uint64 [R]     written

    O(symbols).  Twin: tests/naive/extract.py::target_numbers.
    """
    for r in range(out_key.shape[0]):
        code = FNV_START
        for k in range(first_tgt[r], first_tgt[r + 1]):
            code = fnv_step(code, np.int64(max(tgt[k], GAP)) & 0xFFFFFFFF)
        out_key[r] = finish_hash(code)


@kernel
def rule_room_kernel(patterns, store, found, out_room):
    """Count the room that the rules of some patterns take: rules, source symbols, target symbols, links.

    patterns  Patterns
    store     Store
    found     int32 [P]  patterns
    out_room  int64 [4]  written

    O(rules).  Twin: tests/naive/extract.py::extract.
    """
    for k in range(4):
        out_room[k] = 0
    for entry in found:
        first, last = patterns.rule[entry, 0], patterns.rule[entry, 1]
        if first == last:
            continue
        out_room[0] += last - first
        out_room[1] += (last - first) * patterns.shape[entry, 0]
        for rule in range(first, last):
            edge = store.edge[rule]
            out_room[1] += (edge & LEADING) // LEADING + (edge & TRAILING) // TRAILING
        out_room[2] += store.first_tgt[last] - store.first_tgt[first]
        out_room[3] += store.first_link[last] - store.first_link[first]


@kernel
def emit_rules_kernel(
    patterns,
    store,
    found,
    out_first_src,
    out_src,
    out_first_tgt,
    out_tgt,
    out_dense,
    out_first_link,
    out_link,
):
    """Write the rules of some patterns one after the other.

    patterns        Patterns
    store           Store
    found           int32 [P]      patterns
    out_first_src   int64 [R + 1]  written, as all that follows; lengths from rule_room_kernel
    out_src         int32 [.]      words stay numbered as in the bitext; gap g is -g
    out_first_tgt   int64 [R + 1]
    out_tgt         int32 [.]
    out_dense       float32 [R, 7]
    out_first_link  int64 [R + 1]
    out_link        int16 [., 2]

    O(output).  Twin: tests/naive/extract.py::extract.
    """
    rules, src, tgt, links = 0, 0, 0, 0
    out_first_src[0] = 0
    out_first_tgt[0] = 0
    out_first_link[0] = 0
    for entry in found:
        for rule in range(patterns.rule[entry, 0], patterns.rule[entry, 1]):
            edge, gaps = store.edge[rule], 0
            if edge & LEADING:
                gaps += 1
                out_src[src] = -gaps
                src += 1
            for k in range(patterns.shape[entry, 0]):
                symbol = patterns.symbol[entry, k]
                if symbol == GAP:
                    gaps += 1
                    symbol = np.int32(-gaps)
                out_src[src] = symbol
                src += 1
            if edge & TRAILING:
                out_src[src] = -gaps - 1
                src += 1
            for k in range(store.first_tgt[rule], store.first_tgt[rule + 1]):
                out_tgt[tgt] = store.tgt[k]
                tgt += 1
            for k in range(NUM_FEATURES):
                out_dense[rules, k] = store.feature[rule, k]
            for k in range(store.first_link[rule], store.first_link[rule + 1]):
                out_link[links, 0] = store.link[k, 0]
                out_link[links, 1] = store.link[k, 1]
                links += 1
            rules += 1
            out_first_src[rules] = src
            out_first_tgt[rules] = tgt
            out_first_link[rules] = links
