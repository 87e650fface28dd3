"""One derivation of a forest: its words, rules, spans, alignment and tree, each computed on demand."""

from __future__ import annotations

import functools
import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hiero.core.arrays import Floats, Ids, Ints, read_only
from hiero.core.symbol_kernels import gap_index, gap_label, is_gap
from hiero.decoder.derivation_kernels import (
    DEPTH,
    EDGE,
    END,
    NODE,
    STEP_COLUMNS,
    TGT_END,
    TGT_START,
    align_derivation_kernel,
    whole_steps_kernel,
)
from hiero.decoder.hypergraph import Derivations
from hiero.decoder.lattices import PathFinder, word_arc
from hiero.grammar.cdec import spell_cdec_word
from hiero.grammar.rules import rule_lists

if TYPE_CHECKING:
    from hiero.decoder.forest import Forest


class Span(NamedTuple):
    """The source words and the target words of one edge."""

    src_start: int
    src_end: int
    tgt_start: int
    tgt_end: int


def _escape_brackets(word: str) -> str:
    return word.replace("(", "-LRB-").replace(")", "-RRB-")


@dataclass(eq=False, repr=False, slots=True)
class Tree:
    """A node of a derivation tree; its children, nodes and words, are in target order."""

    label: str
    span: Span
    edge: int
    rule: int
    score: float  # of this edge alone, or of all parts of its rule
    children: list[Tree | str] = field(default_factory=list)

    def __str__(self) -> str:
        """``(S (X the house) (X is small))``; brackets in words are written -LRB- and -RRB-."""
        pieces: list[str] = []
        # A stack, not recursion: with glue, the depth grows with the length of the sentence.
        todo: list[Tree | str] = [self]
        while todo:
            item = todo.pop()
            if isinstance(item, Tree):
                pieces.append(f" ({item.label}")
                todo.append(")")
                for child in reversed(item.children):
                    todo.append(child if isinstance(child, Tree) else " " + _escape_brackets(child))
            else:
                pieces.append(item)
        return "".join(pieces).lstrip()

    __repr__ = __str__


class DerivationBatch:
    """Derivations whose words and steps are computed together, on first access to one of them."""

    def __init__(self, forest: Forest, table: Derivations, roots: Ids) -> None:
        self.forest, self.table, self.roots = forest, table, roots

    @cached_property
    def expanded(self) -> tuple[Ints, Ids, Ints, Ids]:
        return self.forest.expand(self.table, self.roots)


class Derivation:
    """A derivation of the goal, or an empty one, which is false and stands for a missing translation.

    Lists of edges are in pre-order, a rule's first gap before its second. A rule with more than two gaps, of
    which the forest has parts, is one edge here: its topmost one.
    """

    __slots__ = ("_batch", "_features", "_index", "_whole", "score")

    def __init__(self, batch: DerivationBatch, index: int, score: float) -> None:
        self._batch, self._index, self.score = batch, index, score
        self._features: Mapping[str, float] | None = None
        self._whole: tuple[Ids, Ids] | None = None

    @classmethod
    def none(cls, forest: Forest, score: float) -> Derivation:
        """An empty derivation, for a forest that has no other."""
        none = np.zeros(0, np.int32)
        nowhere = np.zeros(2, np.int64)
        batch = DerivationBatch(
            forest, Derivations(none, none, none.reshape(0, 2), nowhere[:0], nowhere[:0], np.zeros(0)), none
        )
        batch.expanded = nowhere, none, nowhere, np.zeros((0, STEP_COLUMNS), np.int32)
        derivation = cls(batch, 0, score)
        derivation._features = {}
        return derivation

    def __bool__(self) -> bool:
        """Whether there is a derivation, if only of the empty string."""
        return len(self._batch.table.edge) > 0

    @property
    def forest(self) -> Forest:
        """The forest that the derivation is from."""
        return self._batch.forest

    @property
    def words(self) -> Ids:
        """The target words, as ids."""
        first, word, _, _ = self._batch.expanded
        return word[first[self._index] : first[self._index + 1]]

    @property
    def text(self) -> str:
        """The target words, separated by spaces."""
        text = self.forest.words.text
        return " ".join([text(word) for word in self.words.tolist()])

    @property
    def all_steps(self) -> Ids:
        """One row an edge, also of parts; columns as in ``derivation_kernels.expand_derivations_kernel``."""
        _, _, first, step = self._batch.expanded
        return step[first[self._index] : first[self._index + 1]]

    @property
    def all_edges(self) -> Ids:
        """The edges with those of parts of rules: over all of them, scores add up."""
        return self.all_steps[:, EDGE]

    @property
    def steps(self) -> Ids:
        """One row an edge."""
        return self._whole_steps()[0]

    def _whole_steps(self) -> tuple[Ids, Ids]:
        """The steps without those of parts, and the one that each of all steps belongs to."""
        if self._whole is None:
            steps = self.all_steps
            if self.forest.has_parts:
                self._whole = whole_steps_kernel(read_only(steps), self.forest.is_part(steps[:, EDGE]))
            else:
                self._whole = steps, np.arange(len(steps), dtype=np.int32)
        return self._whole

    @property
    def edge_scores(self) -> Floats:
        """The score of each edge, those of the parts of its rule included."""
        steps, owner = self._whole_steps()
        if len(owner) == len(steps):
            return self.forest.edge_score[self.edges]
        scores = np.bincount(owner, self.forest.edge_score[self.all_edges], len(steps))
        return np.asarray(scores, np.float64)

    @property
    def edges(self) -> Ids:
        """The edges, as numbers in the forest."""
        return self.steps[:, EDGE]

    @property
    def nodes(self) -> Ids:
        """The heads of the edges."""
        return self.steps[:, NODE]

    @property
    def rules(self) -> Ids:
        """The rules of the edges, as rows of ``forest.whole``; -1 for the edge into the goal.

        ``rule_texts`` has them as text.
        """
        return self.forest.edge_rule[self.edges]

    @property
    def rule_texts(self) -> list[str]:
        """The rule of each edge in cdec's form, ``[X] ||| das [X,1] ||| the [1] ||| p=0.5 ||| 0-0``.

        Features are those of the edge, with what it adds to the scores of language models: over all edges,
        they add up to ``features``. The rule of the edge into the goal is ``[S] ||| [S,1] ||| [1]``.
        """
        texts = []
        for sides, rule, row in zip(self._rule_sides(), self.rules.tolist(), self._edge_rows(), strict=True):
            fields = [sides, " ".join(f"{name}={value:.9g}" for name, value in sorted(row.items()))]
            if rule >= 0:
                _, _, links = rule_lists(self.forest.whole, rule)
                fields.append(" ".join(f"{src}-{tgt}" for src, tgt in links))
            while not fields[-1]:
                fields.pop()
            texts.append(" ||| ".join(fields))
        return texts

    def _edge_rows(self) -> list[dict[str, float]]:
        """The features of each edge, those of the parts of its rule included."""
        steps, owner = self._whole_steps()
        rows: list[dict[str, float]] = [{} for _ in range(len(steps))]
        features = self.forest.features_of_edges(self.all_edges)
        if features is not None:
            for number, whole in enumerate(owner.tolist()):
                for name, value in features.row(number).items():
                    rows[whole][name] = rows[whole].get(name, 0.0) + value
        return rows

    @property
    def lm_scores(self) -> Floats:
        """The log10 probability of the translation under each language model."""
        return np.asarray(self.forest.edge_lm[self.all_edges].sum(axis=0, dtype=np.float64))

    @property
    def spans(self) -> list[Span]:
        """The source and target words of each edge."""
        forest, nodes, steps = self.forest, self.nodes, self.steps
        columns = forest.node_start[nodes], forest.node_end[nodes], steps[:, TGT_START], steps[:, TGT_END]
        return [Span(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]

    @property
    def alignment(self) -> list[tuple[int, int]]:
        """Source word and target word of each link in the rules, sorted.

        Of a lattice, arcs are counted instead of source words.
        """
        forest = self.forest
        if forest.lattice is not None:
            return self._lattice_alignment()
        spans = forest.node_start, forest.node_end
        pairs = align_derivation_kernel(forest.edge_rule, forest.whole, *spans, read_only(self.steps))
        return sorted({(src, tgt) for src, tgt in pairs.tolist()})

    @property
    def arcs(self) -> list[int]:
        """The arcs of the path that is translated, if the input was a lattice; else the source words."""
        forest = self.forest
        if forest.lattice is None:
            return list(range(len(forest.source))) if self else []
        return sorted(arc for paths in self._edge_arcs() for path in paths for arc in path)

    def _edge_arcs(self) -> list[list[tuple[int, ...]]]:
        """``rule_arcs`` of each edge."""
        forest, nodes = self.forest, self.nodes
        start, end = forest.node_start[nodes].tolist(), forest.node_end[nodes].tolist()
        finder, rows = PathFinder(forest), functools.cache(self._edge_rows)
        found = []
        for at, (rule, parts) in enumerate(zip(self.rules.tolist(), self._parts(), strict=True)):
            gaps = [(start[part], end[part]) for part in parts]
            features = functools.partial(lambda at: rows()[at], at)
            found.append(finder.rule_arcs(rule, start[at], end[at], gaps, features))
        return found

    def _parts(self) -> list[list[int]]:
        """The steps that fill the gaps of each step."""
        ends = self.steps[:, END].tolist()
        found = []
        for at, end in enumerate(ends):
            parts, part = list[int](), at + 1
            while part < end:
                parts.append(part)
                part = ends[part]
            found.append(parts)
        return found

    def _lattice_alignment(self) -> list[tuple[int, int]]:
        """As ``alignment``, of arcs."""
        forest, steps = self.forest, self.steps
        assert forest.lattice is not None
        links: set[tuple[int, int]] = set()
        columns = self.rules.tolist(), self._edge_arcs(), self._parts()
        for at, (rule, paths, parts) in enumerate(zip(*columns, strict=True)):
            if rule < 0:
                continue
            src, tgt, pairs = rule_lists(forest.whole, rule)
            arcs = iter(paths)
            arc_at = [None if is_gap(symbol) else next(arcs, None) for symbol in src]
            word, word_at = int(steps[at, TGT_START]), list[int]()
            for symbol in tgt:
                word_at.append(-1 if is_gap(symbol) else word)
                if is_gap(symbol):
                    part = parts[gap_index(symbol) - 1]
                    word += int(steps[part, TGT_END] - steps[part, TGT_START])
                else:
                    word += 1
            for i, j in pairs:
                path = arc_at[i]
                if path is not None and word_at[j] >= 0:
                    links.add((word_arc(forest.lattice, path), word_at[j]))
        return sorted(links)

    @property
    def confidence(self) -> list[float]:
        """The posterior of each word: the expected count of the same word with the same links, at most 1.

        ``Forest.confidence`` takes another scale of scores.
        """
        return self.forest.confidence(self)

    @property
    def features(self) -> Mapping[str, float]:
        """The feature values by name; the score is their dot product with the weights."""
        if self._features is None:
            self._features = self.forest.features_of(self)
        return self._features

    def tree(self) -> Tree:
        """The derivation as nested nodes with the target words at the leaves."""
        if not self:
            return Tree("", Span(0, 0, 0, 0), -1, -1, self.score)
        forest, spans = self.forest, self.spans
        trees: list[Tree] = []
        columns = self.nodes.tolist(), self.edges.tolist(), self.rules.tolist(), self.edge_scores.tolist()
        for span, node, edge, rule, score in zip(spans, *columns, strict=True):
            label = forest.labels.text(int(forest.node_label[node]))
            trees.append(Tree(label, span, edge, rule, score))
        for tree, parts in zip(trees, self._parts(), strict=True):
            if tree.rule < 0:
                tree.children += [trees[part] for part in parts]
                continue
            for symbol in rule_lists(forest.whole, tree.rule)[1]:
                tree.children.append(
                    trees[parts[gap_index(symbol) - 1]] if is_gap(symbol) else forest.words.text(symbol)
                )
        return trees[0]

    def __reduce__(self) -> tuple[Any, ...]:
        """With the part of the forest that it uses, ``forest.only(self)``."""
        forest = self.forest.only(self)
        features = self._features if forest.edge_features is None else dict(self.features)
        return _unpickled, (forest, self.score, features)

    def __len__(self) -> int:
        """The number of target words."""
        return len(self.words)

    def __repr__(self) -> str:
        return f"<Derivation {self.score:.9g}: {self.text}>"

    def _repr_html_(self) -> str:
        scores, depths = self.edge_scores.tolist(), self.steps[:, DEPTH].tolist()
        rows = "".join(
            f"<tr><td style='text-align:left;padding-left:{1 + int(depth)}em'>{html.escape(tree)}</td>"
            f"<td>{span.src_start}–{span.src_end}</td><td>{span.tgt_start}–{span.tgt_end}</td>"
            f"<td>{score:.4f}</td></tr>"
            for tree, span, score, depth in zip(self._rule_sides(), self.spans, scores, depths, strict=True)
        )
        title = f"<p><b>{html.escape(self.text)}</b> ({self.score:.4f})</p>"
        return (
            f"{title}<table><tr><th>rule</th><th>source</th><th>target</th><th>score</th></tr>{rows}</table>"
        )

    def _rule_sides(self) -> list[str]:
        """Each rule as ``[X] ||| das [X,1] ||| the [1]``."""
        forest, label = self.forest, self.forest.labels.text

        def text(symbol: int, is_src: bool) -> str:
            if not is_gap(symbol):
                return spell_cdec_word(forest.words.text(symbol).encode()).decode()
            return f"[{label(gap_label(symbol))},{gap_index(symbol)}]" if is_src else f"[{gap_index(symbol)}]"

        texts = []
        for node, edge in zip(self.nodes.tolist(), self.edges.tolist(), strict=True):
            lhs, rule = label(int(forest.node_label[node])), int(forest.edge_rule[edge])
            if rule < 0:
                tail = int(forest.node_label[forest.graph.tail[edge, 0]])
                texts.append(f"[{lhs}] ||| [{label(tail)},1] ||| [1]")
                continue
            src, tgt, _ = rule_lists(forest.whole, rule)
            sides = (" ".join(text(symbol, side is src) for symbol in side) for side in (src, tgt))
            texts.append(" ||| ".join([f"[{lhs}]", *sides]))
        return texts


def _unpickled(forest: Forest, score: float, features: Mapping[str, float] | None) -> Derivation:
    derivation = forest.viterbi() if forest else Derivation.none(forest, score)
    derivation.score = score
    derivation._features = features
    return derivation
