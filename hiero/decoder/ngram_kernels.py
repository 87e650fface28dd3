# mypy: ignore-errors
"""n-grams of target words in a forest: nodes split by their outer words, and the n-grams that edges create.

A node whose derivations all have the same first and last N - 1 words determines, with the rule above it, all
n-grams up to order N that arise where the rule's words meet those in its gaps, and where two gaps meet. The
search keeps such words as far as its language models need them; here nodes are split until it holds.
"""

import numpy as np

from hiero.core.array_kernels import grown, longer_rows
from hiero.core.hash_kernels import hash_number, is_key_of, mix, probe, table_size
from hiero.core.jit import kernel, leaf
from hiero.core.symbol_kernels import gap_index, is_gap
from hiero.decoder.forest_kernels import edge_total

OWN_WORD = np.int64(0)  # of a rule; words of gap k have the number k


@leaf
def _is_split(states, entry, key):
    """Whether two rows of the states are equal."""
    node, length, left, right = states
    if node[entry] != node[key] or length[entry] != length[key]:
        return False
    for k in range(length[key]):
        if left[entry, k] != left[key, k] or right[entry, k] != right[key, k]:
            return False
    return True


@leaf
def _state_code(node, length, left, right, row):
    """The hash of a row of the states."""
    code = mix(np.uint64(node[row]), length[row])
    for k in range(length[row]):
        code = mix(mix(code, left[row, k]), right[row, k])
    return code


@leaf
def _write_state(rules, rule, tail_1, tail_2, width, length, left, right, row):
    """The outer words of a rule applied to split nodes: their number up to ``width``, first and last ones."""
    total = np.int64(0)  # words so far, up to ``width``; beyond, only the last ones change
    last = rules.first_tgt[rule + 1] if rule >= 0 else 1
    for at in range(rules.first_tgt[rule] if rule >= 0 else 0, last):
        symbol = np.int64(rules.tgt[at]) if rule >= 0 else np.int64(-1)
        gap = np.int64(0)
        if rule < 0:
            gap = np.int64(1)
        elif is_gap(symbol):
            gap = np.int64(gap_index(symbol))
        tail = tail_2 if gap == 2 else tail_1
        count = np.int64(1) if gap == 0 else np.int64(length[tail])
        for k in range(count):
            word = symbol if gap == 0 else np.int64(left[tail, k])
            if total < width:
                left[row, total] = word
                right[row, total] = word
                total += 1
            elif width > 0 and (gap == 0 or count < width):
                for j in range(width - 1):
                    right[row, j] = right[row, j + 1]
                right[row, width - 1] = word
        if gap > 0 and count == width:
            for k in range(width):
                right[row, k] = right[tail, k]
    length[row] = total


@kernel
def split_nodes_kernel(graph, edge_score, edge_rule, rules, width, most):
    """Split the nodes of a forest by the first and last words of their derivations.

    graph       Hypergraph
    edge_score  float64 [E]  edges of -inf are left out
    edge_rule   int32 [E]
    rules       Rules
    width       int          words at either end
    most        int          edges at most

    Returns, for W split nodes in the order of the nodes that they are parts of, node int32 [W], length int32
    [W] (number of words, up to ``width``), left and right int32 [W, width] (the first and last ones; in
    shorter strings all), and for F split edges head int32 [F], edge int32 [F] and tail int32 [F, 2]. The goal
    is not split. If there were more than ``most`` edges, they are the first ones, ``most`` + 1.

    O(F * words).  Twin: tests/naive/consensus.py::split_nodes.
    """
    num_nodes = graph.first_edge.shape[0] - 1
    room = max(num_nodes, 16)
    node, length = np.empty(room, np.int32), np.zeros(room, np.int32)
    left, right = np.empty((room, width), np.int32), np.empty((room, width), np.int32)
    slot = np.full(table_size(room), -1, np.int32)
    head, edge_of = np.empty(16, np.int32), np.empty(16, np.int32)
    tail = np.empty((16, 2), np.int32)
    first = np.zeros(num_nodes + 1, np.int64)
    used, edges = np.int64(0), np.int64(0)
    for v in range(num_nodes):
        first[v] = used
        goal = np.int64(-1)
        for edge in range(graph.first_edge[v], graph.first_edge[v + 1]):
            if edge_score[edge] == -np.inf:
                continue
            one, two = graph.tail[edge, 0], graph.tail[edge, 1]
            for a in range(first[one] if one >= 0 else -1, first[one + 1] if one >= 0 else 0):
                for b in range(first[two] if two >= 0 else -1, first[two + 1] if two >= 0 else 0):
                    if used + 1 >= node.shape[0]:
                        size = 2 * node.shape[0]
                        node, length = grown(node, size), grown(length, size)
                        left, right = longer_rows(left, size), longer_rows(right, size)
                        slot = np.full(table_size(size), -1, np.int32)
                        for row in range(used):
                            code = _state_code(node, length, left, right, row)
                            slot[probe(slot, code, _is_split, (node, length, left, right), row)] = row
                    state = used
                    node[used] = v
                    if v == num_nodes - 1:
                        length[used] = 0
                        state = goal if goal >= 0 else used
                        goal = state
                    else:
                        _write_state(rules, edge_rule[edge], a, b, width, length, left, right, used)
                        code = _state_code(node, length, left, right, used)
                        at = probe(slot, code, _is_split, (node, length, left, right), used)
                        if slot[at] < 0:
                            slot[at] = used
                        state = np.int64(slot[at])
                    if state == used:
                        used += 1
                    if edges == head.shape[0]:
                        head, edge_of = grown(head, 2 * edges), grown(edge_of, 2 * edges)
                        tail = longer_rows(tail, 2 * edges)
                    head[edges], edge_of[edges] = state, edge
                    tail[edges, 0], tail[edges, 1] = a, b
                    edges += 1
                    if edges > most:
                        return (
                            (node[:used], length[:used], left[:used], right[:used]),
                            (head[:edges], edge_of[:edges], tail[:edges]),
                        )
        first[v + 1] = used
    return (
        (node[:used], length[:used], left[:used], right[:used]),
        (head[:edges], edge_of[:edges], tail[:edges]),
    )


@leaf
def ngram_key(prefix, word):
    """The key of an n-gram, one more word after n-gram ``prefix`` (-1: none): exact, without collisions."""
    return ((np.int64(prefix) + 1) << np.int64(32)) | np.int64(word)


@leaf
def _write_line(rules, rule, tail_1, tail_2, width, length, left, right, line):
    """The words around the places where an edge creates n-grams; return their number.

    Rows of ``line``: the word, its gap or OWN_WORD, and the number of its run: between two runs are words
    inside of a gap that are not known and not needed.
    """
    n, run = np.int64(0), np.int64(0)
    for at in range(rules.first_tgt[rule], rules.first_tgt[rule + 1]):
        symbol = np.int64(rules.tgt[at])
        if not is_gap(symbol):
            line[0, n], line[1, n], line[2, n] = symbol, OWN_WORD, run
            n += 1
            continue
        gap = np.int64(gap_index(symbol))
        tail = tail_2 if gap == 2 else tail_1
        for k in range(length[tail]):
            line[0, n], line[1, n], line[2, n] = left[tail, k], gap, run
            n += 1
        if length[tail] == width:
            run += 1
            for k in range(width):
                line[0, n], line[1, n], line[2, n] = right[tail, k], gap, run
                n += 1
    return n


@kernel
def edge_ngrams_kernel(tail, edge_rule, rules, order, length, left, right):
    """The n-grams that each edge creates: those that are not inside of one of its gaps.

    tail       int32 [F, 2]  split nodes
    edge_rule  int32 [F]
    rules      Rules
    order      int
    length     int32 [W]     of ``split_nodes_kernel`` with width ``order`` - 1, as
    left       int32 [W, order - 1]
    right      int32 [W, order - 1]

    Returns first int64 [F + 1] and ngram int32: edge e creates ngram[first[e]:first[e + 1]], one entry for
    each occurrence; and key int64 [G] of ``ngram_key`` and slot int32, a table of the n-grams by their keys.

    O(F * words * order).  Twin: tests/naive/consensus.py::edge_ngrams.
    """
    width = order - 1
    longest = np.int64(0)
    for rule in range(rules.lhs.shape[0]):
        longest = max(longest, rules.first_tgt[rule + 1] - rules.first_tgt[rule])
    line = np.empty((3, longest + 4 * width + 4), np.int64)
    first = np.zeros(edge_rule.shape[0] + 1, np.int64)
    ngram, key = np.empty(16, np.int32), np.empty(16, np.int64)
    slot = np.full(table_size(16), -1, np.int32)
    used, known = np.int64(0), np.int64(0)
    for e in range(edge_rule.shape[0]):
        rule = np.int64(edge_rule[e])
        n = np.int64(0)
        if rule >= 0:
            n = _write_line(rules, rule, tail[e, 0], tail[e, 1], width, length, left, right, line)
        for start in range(n):
            prefix = np.int64(-1)
            for at in range(start, min(start + order, n)):
                if line[2, at] != line[2, start]:
                    break
                if known == key.shape[0]:
                    key = grown(key, 2 * known)
                    slot = np.full(table_size(2 * known), -1, np.int32)
                    for old in range(known):
                        slot[probe(slot, hash_number(key[old]), is_key_of, key, key[old])] = old
                this = ngram_key(prefix, line[0, at])
                place = probe(slot, hash_number(this), is_key_of, key, this)
                if slot[place] < 0:
                    key[known] = this
                    slot[place] = known
                    known += 1
                prefix = np.int64(slot[place])
                if line[1, start] == OWN_WORD or line[1, start] != line[1, at]:
                    if used == ngram.shape[0]:
                        ngram = grown(ngram, 2 * used)
                    ngram[used] = prefix
                    used += 1
        first[e + 1] = used
    return first, ngram[:used], key[:known], slot


@kernel
def expected_matches_kernel(first_word, word, key, slot, expected, out_match):
    """The n-grams that translations share with expected counts.

    first_word  int64 [H + 1]  words of translation h: word[first_word[h]:first_word[h + 1]]
    word        int32
    key         int64 [G]      of ``edge_ngrams_kernel``, as
    slot        int32
    expected    float64 [G]    counts
    out_match   float64 [H, N] written; for each order the sum over n-grams of the smaller count: that in the
                               translation, or the expected one

    O(words * N).  Twin: tests/naive/consensus.py::expected_matches.
    """
    order = out_match.shape[1]
    count, last = np.zeros(key.shape[0], np.int64), np.full(key.shape[0], -1, np.int64)
    for h in range(out_match.shape[0]):
        for n in range(order):
            out_match[h, n] = 0.0
        for start in range(first_word[h], first_word[h + 1]):
            prefix = np.int64(-1)
            for at in range(start, min(start + order, first_word[h + 1])):
                this = ngram_key(prefix, word[at])
                prefix = np.int64(slot[probe(slot, hash_number(this), is_key_of, key, this)])
                if prefix < 0:
                    break
                if last[prefix] != h:
                    last[prefix], count[prefix] = h, 0
                more = min(1.0, expected[prefix] - count[prefix])
                count[prefix] += 1
                if more > 0.0:
                    out_match[h, at - start] += more


@kernel
def best_gain_kernel(graph, gain, edge_score, out_gain, out_score, out_edge):
    """The derivation of every node with the largest gain; of equal ones, that with the better score.

    graph       Hypergraph
    gain        float64 [E]  sums of gains are exact, so that equal ones are
    edge_score  float64 [E]
    out_gain    float64 [V]  written; -inf for a node with no derivation
    out_score   float64 [V]  written; the score of that derivation
    out_edge    int32 [V]    written; its topmost edge, the smallest, or -1

    O(E).  Twin: tests/naive/consensus.py::best_gain.
    """
    for v in range(out_gain.shape[0]):
        best, best_score, best_edge = -np.inf, -np.inf, np.int64(-1)
        for edge in range(graph.first_edge[v], graph.first_edge[v + 1]):
            score = edge_total(graph, edge_score, out_score, edge)
            if score == -np.inf:
                continue
            total = edge_total(graph, gain, out_gain, edge)
            if total > best or (total == best and score > best_score):
                best, best_score, best_edge = total, score, edge
        out_gain[v], out_score[v], out_edge[v] = best, best_score, best_edge
