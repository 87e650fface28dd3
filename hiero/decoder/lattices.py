"""Parse lattices with the rules of a grammar, and give the features of arcs to copies of rules.

After the parse, a lattice is searched as a sentence is: an application of a rule along arcs with features is
one of a copy of the rule that has these features as well.

The translations of a forest are the paths of a word lattice. A forest is context-free, and a lattice is not.
It is made from right to left: a state is the sequence of nodes and words that are still to be derived to the
left of it, so that the prefixes which glue builds from left to right are one node, and states that have the
same to derive are one state.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hiero.core.arrays import Floats, Ids, Ints, read_only
from hiero.core.errors import HieroError
from hiero.core.lattice import EPSILON, Arcs, Lattice
from hiero.core.symbol_kernels import gap_index, is_gap
from hiero.decoder.lattice_kernels import LatticeParse, parse_lattice_kernel
from hiero.decoder.parse_kernels import Parse
from hiero.grammar.rules import Grammar, Rules, Trie, frozen, rule_lists, take_rules
from hiero.grammar.trie_kernels import reach_kernel

if TYPE_CHECKING:
    from hiero.decoder.forest import Forest

MAX_ARCS = 2_000_000
FST_EPSILON, PLF_EPSILON = "<eps>", "*EPS*"
NO_WORD = -1
DIGITS = 9  # of log-probabilities of states that are merged
BEST_SLACK = 1e-9  # rounding must not prune the best path


def parse_lattice(
    src: Ids, arcs: Arcs, trie: Trie, lhs: Ids, glue: Ints, order: Ids, span_limit: int
) -> LatticeParse:
    """Find the bundles of a lattice. A span is as long as the shortest path, arcs without words included."""
    length = read_only(np.minimum(arcs.length, np.int32(span_limit)))  # a single word has no limit
    reach = reach_kernel(arcs.first, arcs.end, length, span_limit)
    parse: LatticeParse = parse_lattice_kernel(read_only(src), arcs, reach, trie, lhs, glue, order)
    return parse


def with_arc_features(grammar: Grammar, found: LatticeParse, names: Sequence[int]) -> tuple[Grammar, Parse]:
    """The grammar with copies of rules that have the features of arcs, and the parse with these copies.

    names  of the features of arcs, ids in Symbols.names

    The copies follow the other rules and are not in the trie.
    """
    parse = found.parse
    chosen = np.flatnonzero(found.cost)
    if not len(chosen):
        return grammar, parse
    keys = np.column_stack([parse.rules[chosen], found.cost[chosen]])
    kept, place = np.unique(keys, axis=0, return_inverse=True)
    size = kept[:, 1]
    first = np.cumsum(size) - size
    row = np.repeat(kept[:, 0] - first, size) + np.arange(size.sum())
    columns = list(grammar.columns) + [name for name in names if name not in grammar.columns]
    value = np.repeat(found.total[kept[:, 2]], size, axis=0)

    def extended(rules: Rules) -> Rules:
        copies = take_rules(rules, np.concatenate([np.arange(grammar.num_rules), row]))
        dense = np.zeros((len(copies.lhs), len(columns)), np.float32)
        dense[:, : len(grammar.columns)] = copies.dense
        dense[grammar.num_rules :, [columns.index(name) for name in names]] += value.astype(np.float32)
        return frozen(copies._replace(dense=dense))

    new = parse.rules.copy()
    new[chosen, 0] = grammar.num_rules + first[place.reshape(-1)]
    whole = None if grammar.whole is None else extended(grammar.whole)
    longer = Grammar(extended(grammar.rules), grammar.trie, tuple(columns), whole)
    return longer, parse._replace(rules=new)


# ---- the arcs of a derivation


MOST_WAYS = 1000


class PathFinder:
    """Paths of the lattice of a forest by their words."""

    def __init__(self, forest: Forest) -> None:
        assert forest.lattice is not None
        self.forest, self.lattice = forest, forest.lattice
        (first, _, end, _, self._value), words, self.paths = forest.lattice.word_arcs
        self._first, self._end = first.tolist(), end.tolist()
        self._words = [word.encode(errors="replace").decode() for word in words]

    def rule_arcs(
        self,
        rule: int,
        start: int,
        end: int,
        gaps: Sequence[tuple[int, int]],
        features: Callable[[], Mapping[str, float]],
    ) -> list[tuple[int, ...]]:
        """For each word of the source side of a rule, as read, the arcs that it stands for.

        start, end, gaps  the nodes between which the rule, and each of its gaps, is applied
        features          returns those of the edge, which decide between several paths with the same words
        """
        if rule < 0:
            return []
        runs: list[tuple[int, list[str]]] = [(start, [])]
        ends: list[int] = []
        for symbol in rule_lists(self.forest.whole, rule)[0]:
            if is_gap(symbol):
                before, after = gaps[gap_index(symbol) - 1]
                ends.append(before)
                runs.append((after, []))
            else:
                runs[-1][1].append(self.forest.words.text(symbol))
        ways = [self.ways(at, last, words) for (at, words), last in zip(runs, [*ends, end], strict=True)]
        choices = list(itertools.islice(itertools.product(*ways), MOST_WAYS))
        if not choices:
            return []
        best = choices[0]
        if len(choices) > 1:
            row = features()
            given = np.array([row.get(name, 0.0) for name in self.lattice.names])
            best = min(choices, key=lambda way: float(np.abs(self.total(way) - given).sum()))
        return [self.paths[arc] for run in best for arc in run]

    def ways(self, start: int, end: int, words: Sequence[str]) -> list[tuple[int, ...]]:
        """All ways to spell words from one node to another."""
        ways: list[tuple[int, tuple[int, ...]]] = [(start, ())]
        for word in words:
            ways = [
                (self._end[arc], (*way, arc))
                for node, way in ways[:MOST_WAYS]
                for arc in range(self._first[node], self._first[node + 1])
                if self._words[arc] == word
            ]
        return [way for node, way in ways if node == end]

    def total(self, way: Sequence[Sequence[int]]) -> Floats:
        """What the arcs of several runs add up to."""
        arcs = [arc for run in way for arc in run]
        return np.asarray(self._value[arcs].sum(axis=0))


def word_arc(lattice: Lattice, path: Sequence[int]) -> int:
    """The arc of a path that has a word."""
    return next(arc for arc in path if lattice.arcs[arc].word != EPSILON)


# ---- word lattices of forests


@dataclass(frozen=True, eq=False)
class WordLattice:
    """States in topological order, the first one initial and the last one final, and arcs by their sources.

    source, target  int32 [A]    states
    word            A strings; empty for an arc without a word, which only an empty translation has
    log_prob        float64 [A]  log of the probability of an arc among those of its source: over a path, they
                                 add up to the log of the posterior of the derivations that it stands for
    """

    num_states: int
    source: Ids
    target: Ids
    word: list[str]
    log_prob: Floats

    @property
    def num_arcs(self) -> int:
        return len(self.source)

    def paths(self) -> Iterator[tuple[str, float]]:
        """The text and the log-probability of every path; there can be very many."""
        first = np.searchsorted(self.source, np.arange(self.num_states + 1)).tolist()
        target, log_prob = self.target.tolist(), self.log_prob.tolist()
        stack: list[tuple[int, tuple[str, ...], float]] = [(0, (), 0.0)] if self.num_states else []
        while stack:
            state, words, total = stack.pop()
            if state == self.num_states - 1:
                yield " ".join(words), total
                continue
            for arc in reversed(range(first[state], first[state + 1])):
                more = (self.word[arc],) if self.word[arc] else ()
                stack.append((target[arc], words + more, total + log_prob[arc]))

    def openfst(self) -> str:
        """The arcs in OpenFst's text form: source, target, word, word, and -log of the probability."""
        lines = [
            f"{source}\t{target}\t{word}\t{word}\t{max(0.0, -log_prob):.9g}\n"
            for source, target, word, log_prob in self._rows(FST_EPSILON)
        ]
        return "".join(lines) + (f"{self.num_states - 1}\n" if self.num_states else "")

    def symbols(self) -> str:
        """The symbol table of ``openfst``: words and numbers."""
        words = dict.fromkeys(word for *_, word, _ in self._rows(FST_EPSILON) if word != FST_EPSILON)
        return "".join(f"{word}\t{number}\n" for number, word in enumerate([FST_EPSILON, *words]))

    def plf(self) -> str:
        """The lattice in PLF, a line: for each state but the last, its arcs as (word, value, distance)."""
        columns: list[list[str]] = [[] for _ in range(self.num_states - 1)]
        for source, target, word, log_prob in self._rows(PLF_EPSILON):
            quoted = word.replace("\\", "\\\\").replace("'", "\\'")
            columns[source].append(f"('{quoted}', {min(0.0, log_prob):.9g}, {target - source}),")
        return f"({''.join(f'({chr(32).join(arcs)}),' for arcs in columns)})\n"

    def _rows(self, epsilon: str) -> Iterator[tuple[int, int, str, float]]:
        """The columns of the arcs; a word that is spelt like ``epsilon`` gets a mark."""
        words = [word + "_" if word == epsilon else word or epsilon for word in self.word]
        return zip(self.source.tolist(), self.target.tolist(), words, self.log_prob.tolist(), strict=True)


def _add_logs(a: float, b: float) -> float:
    if a < b:
        a, b = b, a
    return a if b == -math.inf else a + math.log1p(math.exp(b - a))


class _Expansion:
    """States and arcs from right to left.

    A state is what remains: 0 is nothing, others are a symbol, a word or ~node, and the state after it.
    """

    def __init__(self, forest: Forest, alpha: float, max_arcs: int) -> None:
        self.remains: list[tuple[int, int]] = [(0, 0)]
        self.number: dict[tuple[int, int], int] = {}
        self.steps: dict[int, dict[tuple[int, int], float]] = {0: {(NO_WORD, 0): 0.0}}
        self.max_arcs, self.num_arcs = max_arcs, 0
        graph, rules = forest.graph, forest.rules
        self.first_edge, self.tail = graph.first_edge.tolist(), graph.tail.tolist()
        self.score = (alpha * forest.edge_score).tolist()
        self.rule = forest.edge_rule.tolist()
        used = sorted({rule for rule in self.rule if rule >= 0})
        spans = {rule: slice(rules.first_tgt[rule], rules.first_tgt[rule + 1]) for rule in used}
        self.tgt = {rule: rules.tgt[span].tolist() for rule, span in spans.items()}

    def state(self, symbol: int, after: int) -> int:
        key = symbol, after
        found = self.number.get(key)
        if found is None:
            found = self.number[key] = len(self.remains)
            self.remains.append(key)
        return found

    def _below(self, state: int) -> list[tuple[int, float]]:
        """The states that the first node of a state expands to, and the scores of the edges."""
        symbol, after = self.remains[state]
        found = []
        for edge in range(self.first_edge[~symbol], self.first_edge[~symbol + 1]):
            if self.score[edge] == -math.inf:
                continue
            one = after
            if self.rule[edge] < 0:
                one = self.state(~self.tail[edge][0], one)
            else:
                for item in self.tgt[self.rule[edge]]:
                    one = self.state(~self.tail[edge][gap_index(item) - 1] if is_gap(item) else item, one)
            found.append((one, self.score[edge]))
        return found

    def arcs(self, state: int) -> dict[tuple[int, int], float]:
        """The words that can stand last in what remains, what remains then, and the logs of their weights."""
        todo = [state]
        while todo:
            top = todo[-1]
            if top in self.steps:
                todo.pop()
                continue
            symbol, after = self.remains[top]
            if symbol >= 0:
                self.steps[top] = {(symbol, after): 0.0}
                continue
            below = self._below(top)
            missing = [one for one, _ in below if one not in self.steps]
            if missing:
                todo += missing
                continue
            total: dict[tuple[int, int], float] = {}
            for one, score in below:
                for key, weight in self.steps[one].items():
                    total[key] = _add_logs(total.get(key, -math.inf), weight + score)
            self.steps[top] = total
            self.num_arcs += len(total)
            if self.num_arcs > self.max_arcs:
                found = f"the lattice of a sentence has more than {self.max_arcs:,} arcs"
                raise HieroError(f"{found} (a smaller beam leaves fewer)")
        return self.steps[state]


def lattice_of(
    forest: Forest, beam: float, alpha: float, least: float, max_arcs: int = MAX_ARCS
) -> WordLattice:
    """The lattice of a forest.

    beam   leave out derivations with alpha * score more than this below the best
    least  leave out arcs with a posterior below, except those of the best path
    """
    if not forest:
        return WordLattice(0, np.zeros(0, np.int32), np.zeros(0, np.int32), [], np.zeros(0))
    pruned = forest.prune(beam / alpha)
    expansion = _Expansion(pruned, alpha, max_arcs)
    last = expansion.state(~(pruned.num_nodes - 1), 0)
    arcs: list[tuple[int, int, int, float]] = []  # source and target, left to right, word, weight
    seen, todo = {last}, [last]
    while todo:
        state = todo.pop()
        for (word, before), weight in expansion.arcs(state).items():
            if state != before or word != NO_WORD:
                arcs.append((before, state, word, weight))
            if before not in seen:
                seen.add(before)
                if before:
                    todo.append(before)
    texts = {word: pruned.words.text(word) for word in {word for _, _, word, _ in arcs if word >= 0}}
    return _finished(arcs, last, texts, least)


def _finished(
    arcs: list[tuple[int, int, int, float]], last: int, texts: dict[int, str], least: float
) -> WordLattice:
    """Number the states, leave out arcs, and turn weights into probabilities; the first state is 0."""
    order = _topological(arcs, last)
    if least > 0:
        arcs = _pruned(arcs, order, last, least)
        order = _topological(arcs, last)
        useful = set(order)
        arcs = [arc for arc in arcs if arc[1] in useful]
    after = _sums(arcs, order, last)
    arcs = [(s, t, word, weight + after[t] - after[s]) for s, t, word, weight in arcs]
    arcs, order = _merged(arcs, order, last)
    place = {state: number for number, state in enumerate(order)}
    rows = sorted((place[s], place[t], texts.get(word, ""), log_prob) for s, t, word, log_prob in arcs)
    source, target = (np.array([row[k] for row in rows], np.int32) for k in (0, 1))
    words, log_prob = [row[2] for row in rows], np.array([row[3] for row in rows], np.float64)
    return WordLattice(len(order), source, target, words, log_prob)


def _merged(
    arcs: list[tuple[int, int, int, float]], order: list[int], last: int
) -> tuple[list[tuple[int, int, int, float]], list[int]]:
    """The arcs and states that are left when states that the same arcs leave, up to rounding, are one."""
    leaving: dict[int, list[tuple[int, int, float]]] = {}
    for source, target, word, log_prob in arcs:
        leaving.setdefault(source, []).append((target, word, log_prob))
    found: dict[tuple[tuple[int, int, float], ...], int] = {}
    same = {last: last}
    for state in reversed(order):
        if state != last:
            own = sorted(
                (same[target], word, round(log_prob, DIGITS)) for target, word, log_prob in leaving[state]
            )
            same[state] = found.setdefault(tuple(own), state)
    kept = [(s, same[t], word, log_prob) for s, t, word, log_prob in arcs if same[s] == s]
    return kept, [state for state in order if same[state] == state]


def _topological(arcs: list[tuple[int, int, int, float]], last: int) -> list[int]:
    """The states on paths to the last one, sources before targets."""
    before: dict[int, list[int]] = {}
    for source, target, _, _ in arcs:
        before.setdefault(target, []).append(source)
    order: list[int] = []
    done: set[int] = set()
    stack = [(last, False)]
    while stack:
        state, left = stack.pop()
        if left:
            order.append(state)
        elif state not in done:
            done.add(state)
            stack.append((state, True))
            stack += [(one, False) for one in before.get(state, ()) if one not in done]
    return order


def _sums(arcs: list[tuple[int, int, int, float]], order: list[int], last: int) -> dict[int, float]:
    """For every state the log of the summed weights of the paths to the last one."""
    leaving: dict[int, list[tuple[int, float]]] = {}
    for source, target, _, weight in arcs:
        leaving.setdefault(source, []).append((target, weight))
    after = {last: 0.0}
    for state in reversed(order):
        if state != last:
            values = [weight + after[target] for target, weight in leaving[state]]
            top = max(values)
            after[state] = top + math.log(sum(math.exp(value - top) for value in values))
    return after


def _pruned(
    arcs: list[tuple[int, int, int, float]], order: list[int], last: int, least: float
) -> list[tuple[int, int, int, float]]:
    """The arcs with a posterior of at least ``least``, those of the best path, and only such on paths."""
    after, entering = _sums(arcs, order, last), dict[int, list[tuple[int, float]]]()
    for source, target, _, weight in arcs:
        entering.setdefault(target, []).append((source, weight))
    before, best = {0: 0.0}, {0: 0.0}
    for state in order:
        if state:
            values = [weight + before[source] for source, weight in entering[state]]
            top = max(values)
            before[state] = top + math.log(sum(math.exp(value - top) for value in values))
            best[state] = max(weight + best[source] for source, weight in entering[state])
    total = after[0]
    log_least, state = math.log(least), last
    while state:  # back along the best path
        source, weight = max(entering[state], key=lambda one: (one[1] + best[one[0]], -one[0]))
        log_least = min(log_least, before[source] + weight + after[state] - total - BEST_SLACK)
        state = source
    kept = [arc for arc in arcs if before[arc[0]] + arc[3] + after[arc[1]] - total >= log_least]
    reached = {0}
    for state in order:
        reached |= {target for source, target, _, _ in kept if source == state} if state in reached else set()
    return [arc for arc in kept if arc[0] in reached]
