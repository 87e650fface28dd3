# mypy: ignore-errors
"""Cube pruning with language models over the bundles of a parse.

A bundle spans a cube: its rules by estimate, times the nodes of its first tail by score, times those of its
second. A candidate is a point of it. Each cell has one heap of candidates. A candidate that reaches the top
for the first time is scored with the language models and its neighbours are pushed; if another one is now
better, it is pushed back. A candidate at the top with its true score is *popped*: it becomes a node, or joins
the node with the same state. So only promising candidates are scored with language models, and candidates are
popped in the order of true scores among those scored.

A search from coarse to fine first looks for the best derivation through each cell with estimates alone. The
worse it is than the best of all, the fewer candidates the cell pops.
"""

import numpy as np

from hiero.core.jit import kernel, leaf, routine, scalar
from hiero.core.symbol_kernels import gap_index
from hiero.decoder.bigram_kernels import score_bigrams
from hiero.decoder.hypergraph import Chart, Pairs
from hiero.decoder.lm_state_kernels import (
    add_tail,
    add_word,
    begin_sentence,
    close_row,
    copy_row,
    hash_row,
    same_rows,
)
from hiero.decoder.search_table_kernels import (
    heap_pop,
    heap_push,
    larger_agenda,
    larger_search_edges,
    larger_search_nodes,
    new_agenda,
    new_search_edges,
    new_search_nodes,
    order_by_score,
)

# Candidates scored for each that is popped, at most. Real grammars need 1.5 to 2.
SCORED_PER_POP = 4
# An estimate ignores context, and context mostly helps: a bonus in log10 units for a rule that was not scored
# in its place yet, half of it for other tails of one that was. Those also inherit the effect of context on
# their neighbour, and another rule of the bundle half of it. Chosen on news and captions.
DOUBT = 0.8
INHERITED = 0.5
# Search from coarse to fine: a cell pops at most FINE times the limit, and e times fewer for each WIDTH log10
# units that its derivations fall short. Chosen on sentences of newstest and the Bible, not on the reference.
FINE = 2.0
WIDTH = 1.5


@kernel
def sort_pairs_kernel(pairs, num_rules):
    """Order pairs for cube pruning: in every bundle, or run that bundles share, by estimate, then number.

    pairs      Pairs
    num_rules  int64 [B]  number of pairs of each bundle

    O(P log P).  Twin: tests/naive/tables.py::by_estimate.
    """
    order = np.empty(pairs.rule.shape[0], np.int32)
    for i in range(order.shape[0]):
        order[i] = i
    scratch = np.empty(order.shape[0], np.int32)
    done = np.zeros(pairs.rule.shape[0], np.bool_)
    for b in range(pairs.first.shape[0]):
        first = pairs.first[b]
        if done[first]:
            continue
        done[first] = True
        order_by_score(pairs.estimate, first, first + num_rules[b], order, scratch)
    return Pairs(pairs.first, pairs.rule[order], pairs.score[order], pairs.estimate[order])


@leaf
def _score_row(rules, rule, lm, states, tail_1, tail_2, agenda, row):
    """Combine a rule and its tails in a row of the agenda: state, and log10 probability by model."""
    last, prefix = rules.first_tgt[rule + 1], rules.row[rule]
    for m in range(agenda.lm.shape[1]):
        copy_row(rules.prefix, prefix, agenda.state, row, m)
        total = rules.prob[prefix, m]
        for at in range(rules.resume[rule], last):
            symbol = rules.tgt[m, at]
            if symbol >= 0:
                total += add_word(lm, m, agenda.state, row, symbol, agenda.scratch)
            else:
                tail = tail_1 if gap_index(symbol) == 1 else tail_2
                total += add_tail(lm, m, agenda.state, row, states, tail, agenda.scratch)
        close_row(lm, m, agenda.state, row)
        agenda.lm[row, m] = total


@leaf
def _enter(agenda, num_candidates, size, priority, bundle, place, rank_1, rank_2):
    """Write a candidate and push it on the heap."""
    agenda.candidate[num_candidates, 0] = bundle
    agenda.candidate[num_candidates, 1] = place
    agenda.candidate[num_candidates, 2] = rank_1
    agenda.candidate[num_candidates, 3] = rank_2
    agenda.candidate[num_candidates, 4] = -1
    heap_push(agenda.priority, agenda.entry, size, priority, num_candidates)


@leaf
def _node_at(nodes, cells, cell, rank):
    """The node of a cell with a given rank, or -1 if there is no cell."""
    return np.int64(nodes.rank[cells[cell, 0] + rank]) if cell >= 0 else np.int64(-1)


@leaf
def _next_score(nodes, cells, cell, rank):
    """The score of the next worse node of a cell less that of this one, or 1 if there is none."""
    if cell < 0 or cells[cell, 0] + rank + 1 >= cells[cell, 1]:
        return 1.0
    this = nodes.rank[cells[cell, 0] + rank]
    return nodes.score[nodes.rank[cells[cell, 0] + rank + 1]] - nodes.score[this]


@leaf
def _join(nodes, num_nodes, agenda, row, cell, score):
    """The node with the state of a row of the agenda: one of the current cell or, if new, ``num_nodes``."""
    code = hash_row(agenda.state, row)
    mask = agenda.slot.shape[0] - 1
    at = np.int64(code & np.uint64(mask))
    while agenda.slot[at] >= 0:
        node = np.int64(agenda.slot[at])
        if nodes.hash[node] == code and same_rows(nodes.state, node, agenda.state, row):
            nodes.score[node] = max(nodes.score[node], score)
            return node
        at = (at + 1) & mask
    agenda.slot[at] = num_nodes
    for m in range(agenda.lm.shape[1]):
        copy_row(agenda.state, row, nodes.state, num_nodes, m)
    nodes.hash[num_nodes] = code
    nodes.cell[num_nodes] = cell
    nodes.score[num_nodes] = score
    return num_nodes


@routine
def _search_cell(
    cell,
    parse,
    pairs,
    rules,
    lm,
    weight,
    most_pops,
    most_scored,
    cells,
    nodes,
    num_nodes,
    edges,
    num_edges,
    agenda,
    bigrams,
):
    """Fill one cell; all tables have enough room. Returns the new numbers of nodes and edges."""
    doubt = 0.0
    for m in range(weight.shape[0]):
        doubt += DOUBT * abs(weight[m])
    for at in range(agenda.slot.shape[0]):
        agenda.slot[at] = -1
    # Not a bare 0: numba would compile every callee once more for the literal.
    zero = np.int64(0)
    size = zero
    for b in range(parse.first_bundle[cell], parse.first_bundle[cell + 1]):
        best = pairs.estimate[pairs.first[b]] + doubt
        for t in range(2):
            if parse.tail[b, t] >= 0:
                best += nodes.score[nodes.rank[cells[parse.tail[b, t], 0]]]
        _enter(agenda, size, size, best, b, zero, zero, zero)
        size += 1
    num_candidates = size
    num_scored = zero
    pops = zero
    while size > 0 and pops < most_pops:
        score = agenda.priority[0]
        top = np.int64(agenda.entry[0])
        heap_pop(agenda.priority, agenda.entry, size)
        size -= 1
        b = np.int64(agenda.candidate[top, 0])
        place = np.int64(agenda.candidate[top, 1])
        rank_1 = np.int64(agenda.candidate[top, 2])
        rank_2 = np.int64(agenda.candidate[top, 3])
        row = np.int64(agenda.candidate[top, 4])
        tail_1 = _node_at(nodes, cells, parse.tail[b, 0], rank_1)
        tail_2 = _node_at(nodes, cells, parse.tail[b, 1], rank_2)
        pair = pairs.first[b] + place

        if row < 0:
            if num_scored == most_scored:
                continue
            row = num_scored
            num_scored += 1
            agenda.candidate[top, 4] = row
            _score_row(rules, pairs.rule[pair], lm, nodes.state, tail_1, tail_2, agenda, row)
            local = pairs.score[pair]
            for m in range(weight.shape[0]):
                local += weight[m] * agenda.lm[row, m]
            if bigrams is not None:
                local += score_bigrams(rules, pairs.rule[pair], nodes.state, tail_1, tail_2, bigrams)
            agenda.local[row] = local
            before = pairs.estimate[pair] - local
            score = local
            if tail_1 >= 0:
                score += nodes.score[tail_1]
            if tail_2 >= 0:
                score += nodes.score[tail_2]

            # Every candidate has one parent, its last rank above 0 less one: none can come twice.
            step = _next_score(nodes, cells, parse.tail[b, 1], rank_2)
            if step <= 0.0:
                _enter(agenda, num_candidates, size, score + step + doubt / 2, b, place, rank_1, rank_2 + 1)
                num_candidates += 1
                size += 1
            step = _next_score(nodes, cells, parse.tail[b, 0], rank_1)
            if rank_2 == 0 and step <= 0.0:
                _enter(agenda, num_candidates, size, score + step + doubt / 2, b, place, rank_1 + 1, zero)
                num_candidates += 1
                size += 1
            if rank_1 == 0 and rank_2 == 0 and place + 1 < parse.rules[b, 1]:
                step = pairs.estimate[pair + 1] - pairs.estimate[pair]
                guess = score + step + before * (1.0 - INHERITED) + doubt
                _enter(agenda, num_candidates, size, guess, b, place + 1, zero, zero)
                num_candidates += 1
                size += 1
            if size > 0 and score < agenda.priority[0]:
                heap_push(agenda.priority, agenda.entry, size, score, top)
                size += 1
                continue

        pops += 1
        head = _join(nodes, num_nodes, agenda, row, cell, score)
        if head == num_nodes:
            num_nodes += 1
        edges.head[num_edges] = head
        edges.tail[num_edges, 0] = tail_1
        edges.tail[num_edges, 1] = tail_2
        edges.rule[num_edges] = pairs.rule[pair]
        edges.local[num_edges] = agenda.local[row]
        for m in range(weight.shape[0]):
            edges.lm[num_edges, m] = agenda.lm[row, m]
        num_edges += 1
    return num_nodes, num_edges, num_scored


@leaf
def _finish(lm, weight, nodes, num_nodes, edges, num_edges, first, last, scratch):
    """Make the goal, with an edge from every node of the goal's cell that adds <s> and </s>."""
    nodes.cell[num_nodes] = -1
    for tail in range(first, last):
        local = 0.0
        for m in range(weight.shape[0]):
            begin_sentence(lm, m, nodes.state, num_nodes)
            change = add_tail(lm, m, nodes.state, num_nodes, nodes.state, tail, scratch)
            change += add_word(lm, m, nodes.state, num_nodes, np.int32(lm.eos[m]), scratch)
            edges.lm[num_edges, m] = change
            # In the precision in which it was stored: features must add up to the score.
            local += weight[m] * edges.lm[num_edges, m]
        edges.head[num_edges] = num_nodes
        edges.tail[num_edges, 0] = tail
        edges.tail[num_edges, 1] = -1
        edges.rule[num_edges] = -1
        edges.local[num_edges] = local
        num_edges += 1
    return num_edges


@kernel
def _num_candidates(parse, cells, cell):
    """The number of candidates of a cell: rules of its bundles times nodes of their tails; may be huge."""
    total = 0.0
    for b in range(parse.first_bundle[cell], parse.first_bundle[cell + 1]):
        here = float(parse.rules[b, 1])
        for t in range(2):
            if parse.tail[b, t] >= 0:
                here *= cells[parse.tail[b, t], 1] - cells[parse.tail[b, t], 0]
        total += here
    return total


@kernel
def loss_kernel(parse, pairs, goal, out_loss):
    """How much worse than the best derivation the best one through each cell is, by estimates alone.

    parse     Parse
    pairs     Pairs        in the order of ``sort_pairs_kernel``
    goal      cell of the best derivation
    out_loss  float64 [C]  written; >= 0, infinite where no derivation goes through a cell

    O(B).  Twin: tests/naive/search.py::losses.
    """
    num_cells = parse.cell.shape[0]
    inside = np.full(num_cells, -np.inf)
    for c in range(num_cells):
        for b in range(parse.first_bundle[c], parse.first_bundle[c + 1]):
            score = pairs.estimate[pairs.first[b]]
            for t in range(2):
                if parse.tail[b, t] >= 0:
                    score += inside[parse.tail[b, t]]
            inside[c] = max(inside[c], score)
    outside = np.full(num_cells, -np.inf)
    outside[goal] = 0.0
    for c in range(num_cells - 1, -1, -1):
        # Sums in another order may exceed the best by a rounding error.
        out_loss[c] = max(inside[goal] - inside[c] - outside[c], 0.0)
        for b in range(parse.first_bundle[c], parse.first_bundle[c + 1]):
            above = outside[c] + pairs.estimate[pairs.first[b]]
            for t in range(2):
                if parse.tail[b, t] >= 0:
                    here = above
                    if parse.tail[b, 1 - t] >= 0:
                        here += inside[parse.tail[b, 1 - t]]
                    outside[parse.tail[b, t]] = max(outside[parse.tail[b, t]], here)


@kernel
def _limits(parse, pairs, weight, goal, pop_limit, by_loss):
    """The number of candidates that each cell may pop, as a float."""
    loss = np.zeros(parse.cell.shape[0])
    width = 0.0
    for m in range(weight.shape[0]):
        width += WIDTH * abs(weight[m])
    if not by_loss or goal < 0 or width == 0.0:
        return np.full(loss.shape[0], float(pop_limit))
    loss_kernel(parse, pairs, goal, loss)
    return np.maximum(FINE * pop_limit * np.exp(-loss / width), 1.0)


@scalar
def search_cells_kernel(parse, pairs, rules, lm, weight, goal, pop_limit, most_edges, by_loss, bigrams):
    """Fill the cells of a parse; arguments as of ``search_kernel``.

    Returns the number of cells done, the number of candidates scored, the tables ArenaNodes and Edges, each
    with the number of rows in use, and the range of nodes of each cell, int64 [C, 2].
    O(pops * log) language model scores of a rule.  Twin: tests/naive/search.py::derivations.
    """
    num_models = weight.shape[0]
    stride = rules.prefix.left_key.shape[2]
    num_cells = parse.cell.shape[0]
    best_first = sort_pairs_kernel(pairs, parse.rules[:, 1].copy())
    limit = _limits(parse, best_first, weight, goal, pop_limit, by_loss)
    nodes = new_search_nodes(np.int64(1024), num_models, stride)
    edges = new_search_edges(np.int64(1024), num_models)
    agenda = new_agenda(np.int64(1024), np.int64(1024), np.int64(512), num_models, stride)
    cells = np.zeros((num_cells, 2), np.int64)
    num_nodes = np.int64(0)
    num_edges = np.int64(0)
    total_scored = np.int64(0)
    for c in range(num_cells):
        most = _num_candidates(parse, cells, c)
        if pop_limit == 0 and most + num_edges > most_edges:
            return c, total_scored, nodes, num_nodes, edges, num_edges, cells
        pops = np.int64(min(most, limit[c]) if pop_limit > 0 else most)
        most_scored = np.int64(min(most, float(SCORED_PER_POP * pops)))
        nodes = larger_search_nodes(nodes, num_nodes + pops + 2)
        edges = larger_search_edges(edges, num_edges + pops)
        num_bundles = parse.first_bundle[c + 1] - parse.first_bundle[c]
        agenda = larger_agenda(agenda, num_bundles + 3 * most_scored, most_scored, pops)
        cells[c, 0] = num_nodes
        num_nodes, num_edges, num_scored = _search_cell(
            c,
            parse,
            best_first,
            rules,
            lm,
            weight,
            pops,
            most_scored,
            cells,
            nodes,
            num_nodes,
            edges,
            num_edges,
            agenda,
            bigrams,
        )
        total_scored += num_scored
        cells[c, 1] = num_nodes
        # Candidates are no longer needed.
        order_by_score(nodes.score, cells[c, 0], num_nodes, nodes.rank, agenda.entry)
    return num_cells, total_scored, nodes, num_nodes, edges, num_edges, cells


@scalar
def search_kernel(parse, pairs, rules, lm, weight, goal, pop_limit, most_edges, by_loss, bigrams):
    """Search a parse with language models.

    parse          Parse
    pairs          Pairs        in the order of each bundle's rules
    rules          RuleStates
    lm, weight     Ngrams of M models, float64 [M]
    goal           cell to finish with <s> and </s>, or -1
    pop_limit      candidates popped per cell; 0 for all there are
    most_edges     stop before an exhaustive search has more
    by_loss        False: all cells pop as many. True: FINE exp(-x / WIDTH) times as many for a loss (see
                   ``loss_kernel``) of x log10 units of language models
    bigrams        Bigrams, or None: compiled apart, so that a search without them does nothing for them

    Returns the number of cells done, the number of candidates scored, and a Chart (of the cells done, without
    a goal, if that is not all of them). O(pops * log) language model scores of a rule.
    Twin: tests/naive/search.py::derivations.
    """
    done, total_scored, nodes, num_nodes, edges, num_edges, cells = search_cells_kernel(
        parse, pairs, rules, lm, weight, goal, pop_limit, most_edges, by_loss, bigrams
    )
    if done == parse.cell.shape[0] and goal >= 0:
        first = cells[goal, 0]
        last = cells[goal, 1]
        nodes = larger_search_nodes(nodes, num_nodes + 1)
        edges = larger_search_edges(edges, num_edges + last - first)
        scratch = np.empty(2 * rules.prefix.left_key.shape[2] + 2, np.float32)
        num_edges = _finish(lm, weight, nodes, num_nodes, edges, num_edges, first, last, scratch)
        num_nodes += 1
    return done, total_scored, _pack(nodes, num_nodes, edges, num_edges)


@kernel
def _pack(nodes, num_nodes, edges, num_edges):
    """The chart: exact sizes, edges by head and among those as found."""
    first_edge = np.zeros(num_nodes + 1, np.int64)
    for e in range(num_edges):
        first_edge[edges.head[e] + 1] += 1
    for v in range(num_nodes):
        first_edge[v + 1] += first_edge[v]
    chart = Chart(
        first_edge,
        nodes.cell[:num_nodes].copy(),
        np.empty((num_edges, 2), np.int32),
        np.empty(num_edges, np.int32),
        np.empty(num_edges, np.float64),
        np.empty((num_edges, edges.lm.shape[1]), np.float32),
    )
    filled = first_edge[:num_nodes].copy()
    for e in range(num_edges):
        at = filled[edges.head[e]]
        filled[edges.head[e]] += 1
        chart.tail[at, 0] = edges.tail[e, 0]
        chart.tail[at, 1] = edges.tail[e, 1]
        chart.rule[at] = edges.rule[e]
        chart.local[at] = edges.local[e]
        for m in range(edges.lm.shape[1]):
            chart.lm[at, m] = edges.lm[e, m]
    return chart
