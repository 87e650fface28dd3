"""The forest of a sentence: all derivations that the search built, and operations on them.

>>> forest = model.parse("das haus ist klein")             # doctest: +SKIP
>>> forest.viterbi().text                                  # doctest: +SKIP
'the house is small'
>>> [d.text for d in forest.kbest(3)]                      # doctest: +SKIP
['the house is small', 'the house is little', 'the home is small']
"""

from __future__ import annotations

import copy
import html
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from hiero.core.arrays import Flags, Floats, Floats32, Ids, Ints, is_finite, offsets_by_row, read_only
from hiero.core.errors import HieroError
from hiero.core.lattice import Lattice
from hiero.core.records import record
from hiero.core.symbol_kernels import gap_label
from hiero.decoder.config import ConsensusConfig
from hiero.decoder.consensus import Chosen, choose, expected_ngrams, word_confidence
from hiero.decoder.derivation import Derivation, DerivationBatch
from hiero.decoder.derivation_kernels import (
    EDGE,
    END,
    NODE,
    best_derivation_kernel,
    expand_derivations_kernel,
    sample_derivations_kernel,
)
from hiero.decoder.forest_features import EdgeFeatures, ForestFeatures
from hiero.decoder.forest_files import StoredForest, read_forest, stored_forest, to_json, write_forest
from hiero.decoder.forest_kernels import (
    best_outside_kernel,
    count_kernel,
    edge_marginals_kernel,
    inside_kernel,
    outside_kernel,
    prune_kernel,
    viterbi_kernel,
)
from hiero.decoder.hypergraph import Derivations, Hypergraph, heads
from hiero.decoder.kbest_kernels import KBestSearch, kbest, kbest_capacity, new_kbest_search
from hiero.decoder.lattices import MAX_ARCS, WordLattice, lattice_of
from hiero.grammar.rules import Rules, take_rules

# Derivations that are expanded together, on first access to one of them.
BATCH = 256
# Relative slack of a beam: summation in another order must not prune the best derivation.
ROUNDING = 1e-9


class Texts(Protocol):
    """A mapping from ids to texts; ``symbols.Vocabulary`` is one."""

    def text(self, index: int, /) -> str: ...


class TextMap(dict[int, str]):
    """Texts by some ids."""

    text = dict.__getitem__


class Origin(NamedTuple):
    """Where the nodes and edges of a forest were in the forest that it was taken from."""

    node: Ids
    edge: Ids


class Forest:
    """All derivations that the search built for a sentence.

    Nodes and edges are numpy arrays, all read-only; node and edge ids are places in them.

    graph        Hypergraph of V nodes and E edges, the goal last
    edge_score   float64 [E]     local score: a derivation's score is the sum over its edges
    edge_rule    int32 [E]       row of ``rules``; -1 for an edge that passes its first tail on unchanged
    edge_lm      float32 [E, M]  what each language model added, log10
    node_label   int32 [V]       category; ``labels`` has its name
    node_start   int32 [V]       first source word ...
    node_end     int32 [V]       ... and the one after the last
    gain_row     int32 [V]       row of ``gain``, -1 for none; empty without orientation models
    gain         float32 [F, .]  of GapNodes: what nodes add to the orientations of gaps that they fill
    rules        Rules         with at most two gaps each
    whole        Rules         the same as read: if rules with more gaps were divided, these in place of the
                               topmost part, and rules without symbols in place of the others
    source       the words of the sentence, or of the arcs of ``lattice``
    lattice      the lattice that was translated, or None; spans of nodes are then nodes of it

    Use a forest from one thread at a time: results are cached.
    """

    def __init__(
        self,
        graph: Hypergraph,
        edge_score: Floats,
        edge_rule: Ids,
        node_label: Ids,
        node_start: Ids,
        node_end: Ids,
        rules: Rules,
        *,
        words: Texts,
        labels: Texts,
        source: Sequence[str] = (),
        lattice: Lattice | None = None,
        edge_lm: Floats32 | None = None,
        lm_names: Sequence[str] = (),
        gains: tuple[Ids, Floats32] | None = None,
        edge_features: EdgeFeatures | None = None,
        features: ForestFeatures | None = None,
        origin: Origin | None = None,
        whole: Rules | None = None,
    ) -> None:
        self.graph = Hypergraph(read_only(graph.first_edge), read_only(graph.tail))
        self.edge_score: Floats = read_only(edge_score)
        self.edge_rule: Ids = read_only(edge_rule)
        if edge_lm is None:
            edge_lm = np.zeros((len(edge_score), 0), np.float32)
        self.edge_lm: Floats32 = read_only(edge_lm)
        row, gain = (np.empty(0, np.int32), np.empty((0, 0), np.float32)) if gains is None else gains
        self.gain_row: Ids = read_only(row)
        self.gain: Floats32 = read_only(gain)
        self.node_label: Ids = read_only(node_label)
        self.node_start: Ids = read_only(node_start)
        self.node_end: Ids = read_only(node_end)
        self.rules = Rules._make(read_only(array) for array in rules)
        self.has_parts = whole is not None
        self.whole = self.rules if whole is None else Rules._make(read_only(array) for array in whole)
        self.words, self.labels = words, labels
        self.source, self.lm_names = tuple(source), tuple(lm_names)
        self.lattice = lattice
        self.edge_features, self.origin = edge_features, origin
        self._features = features
        self._best: tuple[Floats, Ids] | None = None
        self._inside: Floats | None = None
        self._outside: Floats | None = None
        self._search: dict[bool, KBestSearch] = {}

    # ---- size

    @property
    def num_nodes(self) -> int:
        return len(self.node_label)

    @property
    def num_edges(self) -> int:
        return len(self.edge_score)

    @property
    def num_derivations(self) -> float:
        """The number of derivations of the goal; inf beyond 1.8e308."""
        count = np.empty(self.num_nodes)
        count_kernel(self.graph, self.edge_score, count)
        return float(count[-1]) if self.num_nodes else 0.0

    def __bool__(self) -> bool:
        """Whether there is a derivation."""
        best, _ = self.best()
        return bool(self.num_nodes and best[-1] > -np.inf)

    # ---- best derivations

    def best(self) -> tuple[Floats, Ids]:
        """The best score of every node (-inf: no derivation) and its topmost edge (-1)."""
        if self._best is None:
            best, edge = np.empty(self.num_nodes), np.empty(self.num_nodes, np.int32)
            viterbi_kernel(self.graph, self.edge_score, best, edge)
            self._best = best, edge
        return self._best

    def viterbi(self) -> Derivation:
        """The best derivation."""
        table = best_derivation_kernel(self.graph, self.edge_rule, self.rules, *self.best())
        if not len(table.edge):
            raise HieroError("the forest has no derivation")
        return self._derivations(table, np.full(1, len(table.edge) - 1, np.int32))[0]

    def kbest(self, k: int, unique: bool = True) -> list[Derivation]:
        """The k best derivations, or all if there are fewer; with ``unique``, the best of each string.

        A later call with a larger ``k`` continues where the last one stopped.
        """
        return self._derivations(*self.list_kbest(k, unique))

    def list_kbest(self, k: int, unique: bool = True) -> tuple[Derivations, Ids]:
        """Return the k best derivations as a table and their rows in it."""
        if k < 0:
            raise ValueError(f"k is {k}, must not be negative")
        best, best_edge = self.best()
        search = self._search.pop(unique, None) or new_kbest_search(self.num_nodes, kbest_capacity(k))
        search, found = kbest(
            self.graph, self.edge_score, self.edge_rule, self.rules, best, best_edge, search, k, unique
        )
        self._search[unique] = search
        return search.found, found

    def expand(self, table: Derivations, roots: Ids) -> tuple[Ints, Ids, Ints, Ids]:
        """The words and steps of derivations, concatenated; see ``expand_derivations_kernel``."""
        found: tuple[Ints, Ids, Ints, Ids] = expand_derivations_kernel(
            self.graph, self.edge_rule, self.rules, table, roots
        )
        return found

    def derivations(self, unique: bool = True) -> Iterator[Derivation]:
        """Iterate over all derivations, best first, computed on demand."""
        seen, k = 0, 16
        while True:
            found = self.kbest(k, unique)
            yield from found[seen:]
            if len(found) < k:
                return
            seen, k = k, 2 * k

    def sample(self, count: int, seed: int) -> list[Derivation]:
        """Draw independent derivations with probability proportional to exp(score)."""
        if not self:
            raise HieroError("the forest has no derivation")
        state = np.full(1, seed % 2**64, np.uint64)
        forest = self.graph, self.edge_score, self.edge_rule, self.rules
        return self._derivations(*sample_derivations_kernel(*forest, self.inside(), count, state))

    def listed(self, table: Derivations, roots: Ids) -> list[Derivation]:
        """Derivations of a table of this forest by their rows."""
        return self._derivations(table, roots)

    def _derivations(self, table: Derivations, roots: Ids) -> list[Derivation]:
        scores = table.score[roots].tolist()
        found: list[Derivation] = []
        for start in range(0, len(scores), BATCH):
            batch = DerivationBatch(self, table, roots[start : start + BATCH])
            found += [Derivation(batch, i, s) for i, s in enumerate(scores[start : start + BATCH])]
        return found

    @property
    def features(self) -> ForestFeatures:
        """The features of rules, edges and derivations; only in a forest that comes from a model."""
        if self._features is None:
            raise HieroError("this forest does not come from a model, and its rules have no features")
        return self._features

    def features_of(self, derivation: Derivation) -> Mapping[str, float]:
        """The features of a derivation of this forest, by name."""
        if self._features is not None:
            return self._features.of_derivation(derivation)
        if self.edge_features is None:
            raise HieroError("this forest was made without features")
        return self.edge_features.total(derivation.all_edges)

    def is_part(self, edges: Ids | Ints) -> Flags:
        """Which edges have parts of rules with more than two gaps, other than the topmost."""
        rule, first = self.edge_rule[edges], self.whole.first_src
        return np.asarray((rule >= 0) & (first[rule] == first[rule + 1]))

    def features_of_edges(self, edges: Ids) -> EdgeFeatures | None:
        """The features of some edges, numbered from 0; None if the forest has none."""
        if self._features is not None:
            return self._features.of_edges(self, edges)
        return self.edge_features and self.edge_features.of(edges)

    def with_weights(self, weights: Mapping[str, float]) -> Forest:
        """The same derivations with the scores that other weights give them.

        Features without a weight count as 0. The search that made the forest used its own weights, and may
        have left out derivations that are better with these.
        """
        forest = copy.copy(self)
        if forest.edge_features is None:
            raise HieroError("this forest was made without features")
        with np.errstate(over="ignore", invalid="ignore"):
            scores = forest.edge_features.scores(weights)
        if not is_finite(scores):
            found = float(scores[np.argmin(np.isfinite(scores))])
            hint = "weights or values of features are too large"
            raise HieroError(f"the score of an edge with these weights is {found} ({hint})")
        forest.edge_score = read_only(np.where(self.edge_score > -np.inf, scores, -np.inf))
        return forest

    # ---- sums over all derivations; a score is the natural logarithm of a weight

    def inside(self) -> Floats:
        """The log of the summed weights of the derivations of every node; -inf if there are none."""
        if self._inside is None:
            self._inside = np.empty(self.num_nodes)
            inside_kernel(self.graph, self.edge_score, self._inside)
        return self._inside

    def outside(self) -> Floats:
        """The log of the summed weights of the contexts of every node in derivations of the goal."""
        if self._outside is None:
            self._outside = np.empty(self.num_nodes)
            outside_kernel(self.graph, self.edge_score, self.inside(), self._outside)
        return self._outside

    def posteriors(self) -> Floats:
        """The posterior of each edge: its expected count under p(derivation) ∝ exp(score)."""
        if not self:
            return np.zeros(self.num_edges)
        marginal = np.empty(self.num_edges)
        edge_marginals_kernel(self.graph, self.edge_score, self.inside(), self.outside(), marginal)
        return np.asarray(np.exp(marginal - self.inside()[-1]))

    def node_posteriors(self) -> Floats:
        """The posterior of each node: its expected count under p(derivation) ∝ exp(score)."""
        if not self:
            return np.zeros(self.num_nodes)
        return np.asarray(np.exp(self.inside() + self.outside() - self.inside()[-1]))

    def expected_rule_counts(self) -> Floats:
        """The expected count of each rule under p(derivation) ∝ exp(score)."""
        ruled = self.edge_rule >= 0
        counts = np.bincount(self.edge_rule[ruled], self.posteriors()[ruled], len(self.rules.lhs))
        return counts.astype(np.float64)

    # ---- n-grams, and the choice of a translation by them

    def expected_ngrams(
        self, order: int = 4, *, alpha: float = 1.0, beam: float = math.inf
    ) -> dict[tuple[str, ...], float]:
        """The expected count of each n-gram in a translation, under p(derivation) ∝ exp(alpha * score).

        beam  leave out derivations with alpha * score more than this below the best, which is faster
        """
        return expected_ngrams(self, order, alpha, beam)

    def mbr(self, rule: str = "forest", **settings: Any) -> Derivation:
        """The translation with the best expected BLEU; see ``mbr_list``."""
        if not self:
            raise HieroError("the forest has no derivation")
        return self.mbr_list(1, rule, **settings)[0].derivation

    def mbr_list(self, k: int, rule: str = "forest", **settings: Any) -> list[Chosen]:
        """The k translations with the best expected BLEU, and what it is.

        rule      kbest, forest or consensus, as ``--mbr`` of ``hiero decode``
        settings  other keys of ``ConsensusConfig``: alpha, size, metric, precision, ratio, beam
        """
        return choose(self, record(ConsensusConfig, {"mbr": rule, **settings}, "mbr"), k)

    def confidence(self, derivation: Derivation, *, alpha: float = 1.0) -> list[float]:
        """The posterior of each word of a derivation: see ``hiero.decoder.consensus``."""
        return word_confidence(self, derivation, alpha)

    def word_lattice(
        self, *, beam: float = math.inf, alpha: float = 1.0, least: float = 0.0, max_arcs: int = MAX_ARCS
    ) -> WordLattice:
        """The word lattice whose paths are the translations of the forest.

        beam   leave out derivations with alpha * score more than this below the best
        least  leave out arcs with a posterior below, except those of the best path
        """
        return lattice_of(self, beam, alpha, least, max_arcs)

    # ---- pruning

    def max_marginals(self) -> Floats:
        """The score of the best derivation through each edge, -inf if there is none."""
        best, _ = self.best()
        outside, marginal = np.empty(self.num_nodes), np.empty(self.num_edges)
        best_outside_kernel(self.graph, self.edge_score, best, outside)
        edge_marginals_kernel(self.graph, self.edge_score, best, outside, marginal)
        return marginal

    def prune(self, beam: float) -> Forest:
        """Keep the edges of derivations whose scores are at most ``beam`` below the best.

        ``origin`` of the result has the ids that nodes and edges had in this forest.
        """
        if not beam >= 0:
            raise ValueError(f"the beam is {beam}, must not be negative")
        best = self.best()[0][-1] if self.num_nodes else 0.0
        threshold = best - beam - ROUNDING * (1.0 + abs(best)) if best > -np.inf else best
        new_node, new_edge = np.empty(self.num_nodes, np.int32), np.empty(self.num_edges, np.int32)
        prune_kernel(self.graph, self.max_marginals(), threshold, new_node, new_edge)
        node = np.flatnonzero(new_node >= 0).astype(np.int32)
        edge = np.flatnonzero(new_edge >= 0).astype(np.int32)
        tail = self.graph.tail[edge]
        tail = np.where(tail >= 0, new_node[tail], np.int32(-1))
        first_edge = offsets_by_row(new_node[heads(self.graph)[edge]], len(node))
        return self.part(Hypergraph(first_edge, tail), node, edge)

    def only(self, derivation: Derivation) -> Forest:
        """The forest of one derivation of this forest, with the rules that it uses and their features.

        Its edges are those of the derivation, last to first; ``origin`` has the ids that they had here.
        """
        steps = derivation.all_steps[::-1]
        edge, node, end = steps[:, EDGE], steps[:, NODE], steps[:, END]
        last = len(steps) - 1
        tail = np.full((len(steps), 2), -1, np.int32)
        for new in range(len(steps)):
            # The first child follows its parent; the second follows the subtree of the first.
            child, old_end = last - new + 1, end[new]
            for gap in range(2):
                if child < old_end:
                    tail[new, gap] = last - child
                    child = end[last - child]
        used, place = np.unique(self.edge_rule[edge], return_inverse=True)
        num_bare = np.count_nonzero(used < 0)
        kept = used[num_bare:].astype(np.int64)
        rules, whole = take_rules(self.rules, kept), take_rules(self.whole, kept) if self.has_parts else None
        graph = Hypergraph(np.arange(len(steps) + 1, dtype=np.int64), tail)
        edge_rule = (place - num_bare).astype(np.int32)
        return self._part(graph, Origin(node, edge), edge_rule, rules, whole, None)

    def part(self, graph: Hypergraph, node: Ids, edge: Ids) -> Forest:
        """A forest of copies of these nodes and edges in another graph; ``origin`` has their ids here."""
        whole = self.whole if self.has_parts else None
        rules = self.edge_rule[edge], self.rules, whole
        return self._part(graph, Origin(node, edge), *rules, self._features)

    def _part(
        self,
        graph: Hypergraph,
        origin: Origin,
        edge_rule: Ids,
        rules: Rules,
        whole: Rules | None,
        features: ForestFeatures | None,
    ) -> Forest:
        """A forest of some nodes and edges, with their feature values unless it has ``features``."""
        node, edge = origin
        return Forest(
            graph,
            self.edge_score[edge],
            edge_rule,
            self.node_label[node],
            self.node_start[node],
            self.node_end[node],
            rules,
            words=self.words,
            labels=self.labels,
            source=self.source,
            lattice=self.lattice,
            edge_lm=self.edge_lm[edge],
            lm_names=self.lm_names,
            gains=(self.gain_row[node], self.gain) if len(self.gain_row) else None,
            edge_features=None if features else self.features_of_edges(edge),
            features=features,
            origin=origin,
            whole=whole,
        )

    # ---- files

    def stored(self) -> StoredForest:
        """The content of a file for this forest, with only those rules, words and labels that are in use."""
        return stored_forest(self)

    def to_json(self) -> str:
        """The forest as JSON, documented in ``hiero.decoder.forest_files``."""
        return to_json(self.stored()).decode()

    def save(self, path: str | Path) -> None:
        """Write ``path``; its suffix chooses the form: .json, .json.gz or .npz."""
        write_forest(self.stored(), path)

    @classmethod
    def load(cls, path: str | Path) -> Forest:
        """Read a file written by ``save``. No grammar or language model is needed."""
        stored = read_forest(path)
        return cls(
            stored.graph,
            stored.edge_score,
            stored.edge_rule,
            stored.node_label,
            stored.node_start,
            stored.node_end,
            stored.rules,
            words=TextMap(enumerate(stored.words)),
            labels=TextMap(enumerate(stored.labels)),
            source=stored.source,
            lattice=stored.lattice,
            edge_lm=stored.edge_lm,
            lm_names=stored.lm_names,
            edge_features=stored.edge_features,
            whole=stored.whole,
        )

    # ---- representation

    def __repr__(self) -> str:
        return (
            f"<Forest: {len(self.source)} words, {self.num_nodes:,} nodes, {self.num_edges:,} edges, "
            f"{self.num_derivations:.3g} derivations>"
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{d.score:.4f}</td><td style='text-align:left'>{html.escape(d.text)}</td></tr>"
            for d in self.kbest(5)
        )
        return f"<p>{html.escape(repr(self)[1:-1])}</p><table>{rows}</table>"

    def __getstate__(self) -> dict[str, Any]:
        """Without the model and cached results: with the texts in use, and the features of all edges."""
        symbols = np.unique(np.concatenate([self.rules.src, self.rules.tgt, self.whole.src]))
        words = symbols[symbols >= 0].tolist()
        labels = {*self.node_label.tolist(), *self.rules.lhs.tolist()}
        labels.update(gap_label(symbol) for symbol in symbols[symbols < 0].tolist())
        every_edge = np.arange(self.num_edges, dtype=np.int32)
        return {
            **self.__dict__,
            "words": TextMap((word, self.words.text(word)) for word in words),
            "labels": TextMap((label, self.labels.text(label)) for label in labels),
            "edge_features": self.features_of_edges(every_edge) if self._features else self.edge_features,
            **dict.fromkeys(("_features", "_best", "_inside", "_outside")),
            "_search": {},
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickling makes read-only arrays writable, for which kernels would be compiled again.
        for name, value in state.items():
            if isinstance(value, np.ndarray):
                value = read_only(value)
            elif isinstance(value, (Hypergraph, Rules)):
                value = type(value)._make(read_only(array) for array in value)
            self.__dict__[name] = value
