"""Random forests for property tests: small enough to enumerate, with many special cases.

They have repeated tails, dead nodes, edges of score -inf, edges without tails, rules without words, many
equal scores and many equal strings. Scores are quarters, so sums are exact in any order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from hiero.decoder.forest import Forest, TextMap
from hiero.decoder.hypergraph import Hypergraph
from hiero.grammar.rules import Rules
from tests.naive import forest as naive

Side = list[int]  # words >= 0, gap k as -k


@dataclass
class World:
    """A forest in the formats of the naive twins and of the package."""

    nodes: list[list[int]]
    edges: list[tuple[list[int], float]]
    edge_rule: list[int]
    src: list[Side]
    tgt: list[Side]
    links: list[list[tuple[int, int]]]
    spans: list[tuple[int, int]]

    @property
    def forest(self) -> Forest:
        """A new forest with empty caches. All gaps and nodes have label 0."""
        first_edge = np.cumsum([0] + [len(incoming) for incoming in self.nodes]).astype(np.int64)
        tail = np.array([[*tails, -1, -1][:2] for tails, _ in self.edges], np.int32).reshape(-1, 2)
        return Forest(
            Hypergraph(first_edge, tail),
            np.array([score for _, score in self.edges], np.float64),
            np.array(self.edge_rule, np.int32),
            np.zeros(len(self.nodes), np.int32),
            np.array([start for start, _ in self.spans], np.int32),
            np.array([end for _, end in self.spans], np.int32),
            self.rules(),
            words=TextMap(enumerate("abcdefgh")),
            labels=TextMap(enumerate("X")),
            source=["s"] * 9,
            edge_lm=np.arange(len(self.edges), dtype=np.float32).reshape(-1, 1),
            lm_names=["LM"],
        )

    def rules(self) -> Rules:
        count = len(self.src)

        def rows(lists: list, dtype: type) -> tuple[np.ndarray, np.ndarray]:
            first = np.cumsum([0] + [len(row) for row in lists]).astype(np.int64)
            return first, np.array([item for row in lists for item in row], dtype)

        # Label 0: the gap with index k is coded as -k - 1.
        coded = [[[s if s >= 0 else s - 1 for s in side] for side in sides] for sides in (self.src, self.tgt)]
        first_link, link = rows(self.links, np.int16)
        return Rules(
            np.zeros(count, np.int32),
            *rows(coded[0], np.int32),
            *rows(coded[1], np.int32),
            np.zeros((count, 0), np.float32),
            np.zeros(count + 1, np.int64),
            np.zeros(0, np.int32),
            np.zeros(0, np.float32),
            first_link,
            link.reshape(-1, 2),
        )


@st.composite
def sides(draw: st.DrawFn, arity: int, num_words: int = 3) -> Side:
    """Words and every gap once, in any order."""
    words = draw(st.lists(st.integers(0, num_words - 1), max_size=2))
    return draw(st.permutations([*words, *range(-arity, 0)]))


@st.composite
def worlds(draw: st.DrawFn, max_nodes: int = 5, max_derivations: int = 400, dead: bool = True) -> World:
    """A forest whose goal has at least one derivation; with ``dead``, possibly none."""
    world = World([], [], [], [], [], [], [])
    quarters = st.integers(-8, 2).map(lambda quarter: quarter / 4)
    scores = st.one_of(quarters, st.just(-math.inf)) if dead else quarters
    for v in range(draw(st.integers(1, max_nodes))):
        incoming = []
        for _ in range(draw(st.integers(0 if dead else 1, 3))):
            tails = draw(st.lists(st.integers(0, v - 1), max_size=2)) if v else []
            incoming.append(len(world.edges))
            world.edges.append((tails, draw(scores)))
            if len(tails) == 1 and draw(st.booleans()):
                world.edge_rule.append(-1)
                continue
            world.edge_rule.append(len(world.src))
            src = sorted(draw(sides(len(tails))), key=lambda s: -s if s < 0 else 0)
            tgt = draw(sides(len(tails)))
            world.src.append(src)
            world.tgt.append(tgt)
            places = st.tuples(st.integers(0, max(0, len(src) - 1)), st.integers(0, max(0, len(tgt) - 1)))
            world.links.append(draw(st.lists(places, max_size=3, unique=True)) if src and tgt else [])
        world.nodes.append(incoming)
        start = draw(st.integers(0, 6))
        world.spans.append((start, start + draw(st.integers(0, 5))))
        assume(count_quickly(world) <= max_derivations)
    return world


def count_quickly(world: World) -> int:
    """The largest number of derivations of a node, without enumeration."""
    counts: list[int] = []
    for incoming in world.nodes:
        counts.append(sum(math.prod(counts[tail] for tail in world.edges[edge][0]) for edge in incoming))
    return max(counts)


def enumerated(world: World) -> list:
    return naive.enumerate_derivations(world.nodes, world.edges, len(world.nodes) - 1)
