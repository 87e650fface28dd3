"""Score the words of rules as far as they need no context, once per rule and not once per candidate."""

from typing import NamedTuple

import numpy as np

from hiero.core.jit import kernel
from hiero.decoder.lm_state_kernels import States, add_word, close_row, empty_row, new_states


class RuleStates(NamedTuple):
    """Language model states and scores of R rules before their gaps are filled.

    first_tgt  int64 [R + 1]
    tgt        int32 [M, T]    target sides in each model's word ids; gaps as in symbols.py
    resume     int64 [R]       place of the first gap in tgt, or the end
    prefix     States, R rows  the words before the first gap; closed if there is no gap
    prob       float64 [R, M]  their log10 probability
    estimate   float64 [R]     weighted score with all words, each run of them without context
    """

    first_tgt: np.ndarray
    tgt: np.ndarray
    resume: np.ndarray
    prefix: States
    prob: np.ndarray
    estimate: np.ndarray


@kernel
def rule_states_kernel(first_tgt, tgt, word_id, lm, lm_weight, stride, rule_score):
    """Score the words of every rule as far as they need no context.

    first_tgt, tgt  target sides in the model's symbols
    word_id         int32 [M, W]  language model ids of words
    stride          highest order minus one
    rule_score      float64 [R]   weighted score without language models

    O(M * words).  Twin: tests/naive/chart.py::fragment.
    """
    num_rules = first_tgt.shape[0] - 1
    num_models = lm_weight.shape[0]
    ids = np.empty((num_models, tgt.shape[0]), np.int32)
    for m in range(num_models):
        for i in range(tgt.shape[0]):
            ids[m, i] = word_id[m, tgt[i]] if tgt[i] >= 0 else tgt[i]
    states = new_states(num_rules, num_models, stride)
    first_row = np.int64(0)
    aside = new_states(np.int64(1), num_models, stride)
    prob = np.zeros((num_rules, num_models))
    estimate = rule_score.copy()
    resume = np.empty(num_rules, np.int64)
    scratch = np.empty(2 * stride + 2, np.float32)
    for rule in range(num_rules):
        last = first_tgt[rule + 1]
        at = first_tgt[rule]
        while at < last and tgt[at] >= 0:
            at += 1
        resume[rule] = at
        for m in range(num_models):
            total = 0.0
            for i in range(first_tgt[rule], at):
                total += add_word(lm, m, states, rule, ids[m, i], scratch)
            prob[rule, m] = total
            if at == last:
                close_row(lm, m, states, rule)
            for i in range(at, last):
                if tgt[i] < 0:
                    empty_row(aside, first_row, m)
                else:
                    total += add_word(lm, m, aside, first_row, ids[m, i], scratch)
            estimate[rule] += lm_weight[m] * total
    return RuleStates(first_tgt, ids, resume, states, prob, estimate)
