# mypy: ignore-errors
"""Language model state of partial translations, and the change of score when they are combined.

A partial translation lacks context on both sides. Its state keeps, per model, the words on its left whose
score can still change, as keys of the n-grams scored so far, and the words on its right that can still be
context; both are minimised as in Heafield (2011) and Li and Khudanpur (2008), so that states which no
continuation can tell apart are equal. Words on the left are scored with the context known so far; when words
are added before them, the difference is added.

A kernel below works on one row of ``States`` in place: begin it empty, add words and tails, close it. The
words of rules are scored as far as they need no context once per rule, not once per candidate.
"""

from typing import NamedTuple

import numpy as np

from hiero.core.hash_kernels import mix, probe, table_size
from hiero.core.jit import kernel, leaf, prefetch, scalar
from hiero.lm.table_kernels import (
    chain,
    extends_left,
    extends_right,
    find_slot,
    prefetch_ngram,
    stored_backoff,
    stored_prob,
)

LEFT, FULL, RIGHT = 0, 1, 2


class States(NamedTuple):
    """One row per node for M models; S is the highest order minus one.

    left_key       uint64 [V, M, S]   key of the n-gram that left word i ends with words 0 ... i of the yield
    left_prob      float32 [V, M, S]  its log10 probability without the sign, as counted in the node's score
    right_word     int32 [V, M, S]    last words, nearest to the end first
    right_backoff  float32 [V, M, S]  back-off of the n-gram made of right words 0 ... i
    length         int32 [V, M, 3]    number of left words; 1 if no context to the left reaches past them;
                                      number of right words
    """

    left_key: np.ndarray
    left_prob: np.ndarray
    right_word: np.ndarray
    right_backoff: np.ndarray
    length: np.ndarray


@kernel
def new_states(num_rows, num_models, stride):
    return States(
        np.zeros((num_rows, num_models, stride), np.uint64),
        np.zeros((num_rows, num_models, stride), np.float32),
        np.zeros((num_rows, num_models, stride), np.int32),
        np.zeros((num_rows, num_models, stride), np.float32),
        np.zeros((num_rows, num_models, 3), np.int32),
    )


@kernel
def grown_states(states, num_rows):
    """The same rows with room for ``num_rows``."""
    old = states.length.shape[0]
    grown = new_states(num_rows, states.length.shape[1], states.left_key.shape[2])
    # Item by item: an assignment of slices takes seconds to compile.
    for row in range(old):
        for m in range(states.length.shape[1]):
            for i in range(states.left_key.shape[2]):
                grown.left_key[row, m, i] = states.left_key[row, m, i]
                grown.left_prob[row, m, i] = states.left_prob[row, m, i]
                grown.right_word[row, m, i] = states.right_word[row, m, i]
                grown.right_backoff[row, m, i] = states.right_backoff[row, m, i]
            for i in range(3):
                grown.length[row, m, i] = states.length[row, m, i]
    return grown


@leaf
def copy_row(source, row, target, to, m):
    """Copy model m's state from a row of one table to a row of another, as far as it is in use."""
    for i in range(source.length[row, m, LEFT]):
        target.left_key[to, m, i] = source.left_key[row, m, i]
        target.left_prob[to, m, i] = source.left_prob[row, m, i]
    for i in range(source.length[row, m, RIGHT]):
        target.right_word[to, m, i] = source.right_word[row, m, i]
        target.right_backoff[to, m, i] = source.right_backoff[row, m, i]
    for i in range(3):
        target.length[to, m, i] = source.length[row, m, i]


@leaf
def empty_row(states, row, m):
    states.length[row, m, LEFT] = 0
    states.length[row, m, FULL] = 0
    states.length[row, m, RIGHT] = 0


@leaf
def begin_sentence(lm, m, states, row):
    """Initialise a row with <s> as context and nothing to extend on the left."""
    states.length[row, m, LEFT] = 0
    states.length[row, m, FULL] = 1
    states.length[row, m, RIGHT] = 1
    states.right_word[row, m, 0] = np.int32(lm.bos[m])
    states.right_backoff[row, m, 0] = lm.unigram[lm.first_word[m] + lm.bos[m], 1]


@leaf
def add_word(lm, m, states, row, word, scratch):
    """Append a word to a row; returns its log10 probability in the context known so far.

    scratch  float32 [S + 1]  overwritten
    """
    order = lm.order[m]
    num_context = states.length[row, m, RIGHT]
    unigram = lm.first_word[m] + word
    prob = lm.unigram[unigram, 0]
    scratch[0] = lm.unigram[unigram, 1]
    num_right = 1 if extends_right(scratch[0]) else 0
    key = np.uint64(word)
    left_key = key
    matched = 1
    while matched <= num_context and extends_left(prob):
        key = chain(key, states.right_word[row, m, matched - 1])
        slot = find_slot(lm, m, key)
        if slot < 0:
            break
        matched += 1
        prob = stored_prob(lm, m, slot, matched)
        left_key = key
        if matched < order:
            scratch[matched - 1] = stored_backoff(lm, m, slot, matched)
            if extends_right(scratch[matched - 1]):
                num_right = matched
    score = -abs(np.float64(prob))
    for i in range(matched - 1, num_context):
        score += states.right_backoff[row, m, i]
    if states.length[row, m, FULL] == 0:
        if not extends_left(prob) or matched == order or matched <= num_context:
            states.length[row, m, FULL] = 1
        else:
            at = states.length[row, m, LEFT]
            states.left_key[row, m, at] = left_key
            states.left_prob[row, m, at] = abs(prob)
            states.length[row, m, LEFT] = at + 1
            # Context that was dropped on the right will be missing when later words are extended leftwards.
            if num_right != num_context + 1:
                states.length[row, m, FULL] = 1
    for i in range(num_right - 1, 0, -1):
        states.right_word[row, m, i] = states.right_word[row, m, i - 1]
        states.right_backoff[row, m, i] = scratch[i]
    if num_right > 0:
        states.right_word[row, m, 0] = word
        states.right_backoff[row, m, 0] = scratch[0]
    states.length[row, m, RIGHT] = num_right
    return score


@leaf
def add_tail(lm, m, states, row, tails, tail, scratch):
    """Append a finished partial translation (a row of ``tails``) to a row.

    Returns the change of score due to the context; the caller adds the tail's own score.
    scratch  float32 [2 S + 2]  overwritten
    """
    num_left = tails.length[tail, m, LEFT]
    tail_full = tails.length[tail, m, FULL]
    num_context = states.length[row, m, RIGHT]
    if num_left == 0:
        if tail_full == 0:
            return 0.0  # an empty yield
        score = 0.0
        for i in range(num_context):
            score += states.right_backoff[row, m, i]
        states.length[row, m, FULL] = 1
        _take_right(states, row, tails, tail, m)
        return score
    if num_context == 0:
        if states.length[row, m, FULL] == 0:
            if states.length[row, m, LEFT] == 0:
                copy_row(tails, tail, states, row, m)
                return 0.0
            states.length[row, m, FULL] = 1
        _take_right(states, row, tails, tail, m)
        return 0.0

    order = lm.order[m]
    score = 0.0
    use = num_context  # context words that still matter
    for i in range(num_context):
        scratch[i] = states.right_backoff[row, m, i]
    for word in range(num_left):
        # Left word ``word`` ends an n-gram of word + 1 words; let the context lengthen it.
        length = word + 1
        key = tails.left_key[tail, m, word]
        left_key = key
        known = -np.float64(tails.left_prob[tail, m, word])
        prob = tails.left_prob[tail, m, word]
        matched = 0
        next_use = 0
        found = True
        while matched < use and extends_left(prob):
            key = chain(key, states.right_word[row, m, matched])
            slot = find_slot(lm, m, key)
            if slot < 0:
                found = False
                break
            left_key = key
            matched += 1
            prob = stored_prob(lm, m, slot, length + matched)
            if length + matched == order:
                break
            # The back-off for words further right; scratch[:use] is still needed where nothing matched.
            backoff = stored_backoff(lm, m, slot, length + matched)
            scratch[num_context + matched - 1] = backoff
            if extends_right(backoff):
                next_use = matched
        score += -np.float64(abs(prob)) - known
        for i in range(matched, use):
            score += scratch[i]
        for i in range(next_use):
            scratch[i] = scratch[num_context + i]
        if states.length[row, m, FULL] == 0:
            if not extends_left(prob) or not found or length + matched == order:
                states.length[row, m, FULL] = 1
            else:
                at = states.length[row, m, LEFT]
                states.left_key[row, m, at] = left_key
                states.left_prob[row, m, at] = abs(prob)
                states.length[row, m, LEFT] = at + 1
        use = next_use
        if use != num_context:
            states.length[row, m, FULL] = 1
            if use == 0:
                _take_right(states, row, tails, tail, m)
                return score

    if tail_full == 1:
        for i in range(use):
            score += scratch[i]
        states.length[row, m, FULL] = 1
        _take_right(states, row, tails, tail, m)
        return score
    # A tail that is not full is all context: its words on the right are those on the left.
    num_right = tails.length[tail, m, RIGHT]
    for i in range(use - 1, -1, -1):
        states.right_word[row, m, num_right + i] = states.right_word[row, m, i]
    for i in range(num_right):
        states.right_word[row, m, i] = tails.right_word[tail, m, i]
        states.right_backoff[row, m, i] = tails.right_backoff[tail, m, i]
    for i in range(use):
        states.right_backoff[row, m, num_right + i] = scratch[i]
    states.length[row, m, RIGHT] = num_right + use
    return score


@leaf
def _take_right(states, row, tails, tail, m):
    for i in range(tails.length[tail, m, RIGHT]):
        states.right_word[row, m, i] = tails.right_word[tail, m, i]
        states.right_backoff[row, m, i] = tails.right_backoff[tail, m, i]
    states.length[row, m, RIGHT] = tails.length[tail, m, RIGHT]


@leaf
def close_row(lm, m, states, row):
    """Finish a row: a left side of S words cannot be extended further."""
    if states.length[row, m, LEFT] == lm.order[m] - 1:
        states.length[row, m, FULL] = 1


@leaf
def hash_row(states, row):
    """A hash of all models' states; equal rows have equal hashes."""
    code = np.uint64(0x9E3779B97F4A7C15)
    for m in range(states.length.shape[1]):
        num_left = states.length[row, m, LEFT]
        num_right = states.length[row, m, RIGHT]
        code = chain(code, num_left * 16 + states.length[row, m, FULL] * 8 + num_right)
        if num_left > 0:
            code = (code ^ states.left_key[row, m, num_left - 1]) * np.uint64(0xC2B2AE3D27D4EB4F)
        for i in range(num_right):
            code = chain(code, states.right_word[row, m, i])
    return code ^ (code >> np.uint64(32))


@leaf
def same_rows(states, row, others, other):
    """Whether no continuation can tell apart a row of one table and a row of another."""
    for m in range(states.length.shape[1]):
        for i in range(3):
            if states.length[row, m, i] != others.length[other, m, i]:
                return False
        for i in range(states.length[row, m, LEFT]):
            if states.left_key[row, m, i] != others.left_key[other, m, i]:
                return False
        for i in range(states.length[row, m, RIGHT]):
            if states.right_word[row, m, i] != others.right_word[other, m, i]:
                return False
    return True


class RuleStates(NamedTuple):
    """Language model states and scores of R rules before their gaps are filled.

    Rules that begin with the same words share P prefixes: the words before the first gap, or all of them.

    first_tgt  int64 [R + 1]
    tgt        int32 [M, T]    target sides in each model's word ids; gaps as in core/symbols.py
    resume     int64 [R]       place of the first gap in tgt, or the end
    row        int32 [R]       prefix of each rule
    prefix     States, P rows  closed if it is all of a rule
    prob       float64 [P, M]  their log10 probability
    estimate   float64 [R]     weighted score with all words, each run of them without context
    """

    first_tgt: np.ndarray
    tgt: np.ndarray
    resume: np.ndarray
    row: np.ndarray
    prefix: States
    prob: np.ndarray
    estimate: np.ndarray


class _Runs(NamedTuple):
    """Runs of words: equal ones, which many rules have, are scored once.

    tgt   int32 [T]  target sides
    end   int64 [T]  end of the run that begins at a place
    same  int32 [T]  the first of the equal runs, by the place where it begins, for all but prefixes
    """

    tgt: np.ndarray
    end: np.ndarray
    same: np.ndarray


@leaf
def _is_run(tgt, one, two, size):
    for k in range(size):
        if tgt[one + k] != tgt[two + k]:
            return False
    return True


@leaf
def _is_inner_run(runs, entry, begin):
    """``equal`` of runs that are not prefixes."""
    size = runs.end[begin] - begin
    return runs.end[entry] - entry == size and _is_run(runs.tgt, np.int64(entry), begin, size)


@leaf
def _is_prefix(sides, entry, rule):
    """``equal`` of rules that have the same prefix."""
    first_tgt, tgt, resume = sides
    size = resume[rule] - first_tgt[rule]
    if resume[entry] - first_tgt[entry] != size:
        return False
    if (resume[entry] == first_tgt[entry + 1]) != (resume[rule] == first_tgt[rule + 1]):
        return False
    return _is_run(tgt, first_tgt[entry], first_tgt[rule], size)


@leaf
def _run_code(tgt, begin, end):
    code = np.uint64(end - begin)
    for k in range(begin, end):
        code = mix(code, np.int64(tgt[k]))
    return code


@leaf
def _load_ngrams(lm, ids, begin, end):
    """Load in advance what the words of a run are scored with: the processor waits for many at a time."""
    for m in range(ids.shape[0]):
        for i in range(begin, end):
            prefetch(lm.unigram, 2 * (lm.first_word[m] + ids[m, i]))
            key = np.uint64(ids[m, i])
            for j in range(i - 1, max(begin, i - 2, i + 1 - lm.order[m]) - 1, -1):
                key = chain(key, ids[m, j])
                prefetch_ngram(lm, m, key)


@leaf
def _end_of_run(tgt, begin, last):
    while begin < last and tgt[begin] >= 0:
        begin += 1
    return begin


@kernel
def _share_runs(first_tgt, tgt, ids, lm, resume, row, runs):
    """Find equal runs of words, and number the different prefixes; returns how many there are."""
    num_rules, num_inner = resume.shape[0], 0
    for rule in range(num_rules):
        resume[rule] = _end_of_run(tgt, first_tgt[rule], first_tgt[rule + 1])
        num_inner += first_tgt[rule + 1] - resume[rule]
    slot, inner_slot = (
        np.full(table_size(num_rules), -1, np.int32),
        np.full(table_size(num_inner), -1, np.int32),
    )
    num_rows = 0
    for rule in range(num_rules):
        at, last = resume[rule], first_tgt[rule + 1]
        place = probe(slot, _run_code(tgt, first_tgt[rule], at), _is_prefix, (first_tgt, tgt, resume), rule)
        if slot[place] < 0:
            slot[place] = rule
            row[rule] = num_rows
            num_rows += 1
            _load_ngrams(lm, ids, first_tgt[rule], at)
        else:
            row[rule] = row[slot[place]]
        while at < last:
            end = _end_of_run(tgt, at, last)
            if end > at:
                runs.end[at] = end
                place = probe(inner_slot, _run_code(tgt, at, end), _is_inner_run, runs, at)
                if inner_slot[place] < 0:
                    inner_slot[place] = at
                    _load_ngrams(lm, ids, at, end)
                runs.same[at] = inner_slot[place]
            at = end + 1
    return num_rows


@scalar
def rule_states_kernel(first_tgt, tgt, word_id, lm, lm_weight, stride, rule_score):
    """Score the words of every rule as far as they need no context.

    first_tgt, tgt  target sides in the model's symbols
    word_id         int32 [M, W]  language model ids of words
    stride          highest order minus one
    rule_score      float64 [R]   weighted score without language models

    O(T + M * words of different runs).  Twin: tests/naive/chart.py::fragment.
    """
    num_rules = first_tgt.shape[0] - 1
    num_models, num_symbols = lm_weight.shape[0], tgt.shape[0]
    ids = np.empty((num_models, num_symbols), np.int32)
    for m in range(num_models):
        for i in range(num_symbols):
            ids[m, i] = word_id[m, tgt[i]] if tgt[i] >= 0 else tgt[i]
    resume, row = np.empty(num_rules, np.int64), np.empty(num_rules, np.int32)
    runs = _Runs(tgt, np.empty(num_symbols, np.int64), np.empty(num_symbols, np.int32))
    num_rows = _share_runs(first_tgt, tgt, ids, lm, resume, row, runs)
    states = new_states(num_rows, num_models, stride)
    first_row = np.int64(0)
    aside = new_states(np.int64(1), num_models, stride)
    prob = np.zeros((num_rows, num_models))
    estimate = rule_score.copy()
    scratch = np.empty(2 * stride + 2, np.float32)
    word_score = np.empty((num_models, num_symbols))  # of the first of equal runs
    num_scored = 0
    for rule in range(num_rules):
        last = first_tgt[rule + 1]
        here = row[rule]
        if here == num_scored:
            num_scored += 1
            for m in range(num_models):
                for i in range(first_tgt[rule], resume[rule]):
                    prob[here, m] += add_word(lm, m, states, here, ids[m, i], scratch)
                if resume[rule] == last:
                    close_row(lm, m, states, here)
        for m in range(num_models):
            total, at = prob[here, m], resume[rule]
            while at < last:
                if tgt[at] < 0:
                    at += 1
                    continue
                first, end = np.int64(runs.same[at]), runs.end[at]
                if first == at:
                    empty_row(aside, first_row, m)
                    for i in range(at, end):
                        word_score[m, i] = add_word(lm, m, aside, first_row, ids[m, i], scratch)
                # Word by word: the sum does not depend on which rules have the same run.
                for i in range(end - at):
                    total += word_score[m, first + i]
                at = end
            estimate[rule] += lm_weight[m] * total
    return RuleStates(first_tgt, ids, resume, row, states, prob, estimate)


# ---- given words


class Track(NamedTuple):
    """Target words to match, n of them.

    word  int32 [n - 1]  all but the last, ids in Symbols.words; -1 for words that no rule has
    last  int32 [K]      what the last word may be, ascending; empty for n = 0

    Positions are 0 ... n - 1, before each word, and an end n + k for each word k of ``last``.
    """

    word: np.ndarray
    last: np.ndarray


class TrackProbs(NamedTuple):
    """What language models say about P positions of a track.

    prob   float64 [P, M]  log10 probability of the word that leads to a position, 0 for the first
    stop   float64 [P, M]  and of </s> after it
    state  States, P rows  of the words up to it, from <s> on
    """

    prob: np.ndarray
    stop: np.ndarray
    state: States


@leaf
def track_length(track):
    """The number of words."""
    return np.int64(track.word.shape[0] + (1 if track.last.shape[0] > 0 else 0))


@leaf
def follow(track, at, word):
    """The position after a word, or -1 if the track does not go on with it."""
    size = np.int64(track.word.shape[0])
    if at < size:
        return at + 1 if track.word[at] == word else np.int64(-1)
    if at > size:
        return np.int64(-1)
    low, high = np.int64(0), np.int64(track.last.shape[0])
    while low < high:
        middle = (low + high) >> 1
        if track.last[middle] < word:
            low = middle + 1
        else:
            high = middle
    if low < track.last.shape[0] and track.last[low] == word:
        return size + 1 + low
    return np.int64(-1)


@scalar
def track_probs_kernel(track, word_id, lm, stride):
    """Score the words of a track with language models.

    track    Track
    word_id  int32 [M, W]  language model ids of words
    lm       Ngrams of M models
    stride   highest order minus one

    Returns TrackProbs. O(P * M).  Twin: tests/naive/chart.py::sentence.
    """
    num_models = word_id.shape[0]
    size = track_length(track)
    num_places = size + max(track.last.shape[0], 1)
    prob, stop = np.zeros((num_places, num_models)), np.zeros((num_places, num_models))
    state, aside = new_states(num_places, num_models, stride), new_states(np.int64(1), num_models, stride)
    scratch = np.empty(2 * stride + 2, np.float32)
    zero = np.int64(0)
    for m in range(num_models):
        begin_sentence(lm, m, state, zero)
        for at in range(1, num_places):
            before = np.int64(min(at, size) - 1)
            word = track.word[at - 1] if at < size else track.last[at - size]
            copy_row(state, before, state, np.int64(at), m)
            known = word_id[m, word] if word >= 0 else np.int32(0)
            prob[at, m] = add_word(lm, m, state, np.int64(at), known, scratch)
        for at in range(num_places):
            copy_row(state, np.int64(at), aside, zero, m)
            stop[at, m] = add_word(lm, m, aside, zero, np.int32(lm.eos[m]), scratch)
    return TrackProbs(prob, stop, state)
