"""Small bitexts and examples for the tests of orientation models."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from hiero.core.arrays import read_only
from hiero.core.symbols import word_table
from hiero.reordering.config import ExampleConfig
from hiero.reordering.examples import Examples, FeatureKeys, Rows
from tests.naive import reorder as naive


class Pair(NamedTuple):
    """A sentence pair with its links."""

    src: list[int]
    tgt: list[int]
    links: list[tuple[int, int]]


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    words = st.lists(st.integers(0, 4), max_size=6)
    src, tgt = draw(words), draw(words)
    places = [(i, j) for i in range(len(src)) for j in range(len(tgt))]
    links = draw(st.lists(st.sampled_from(places), max_size=7)) if places else []
    return Pair(src, tgt, links)


class Bitext(NamedTuple):
    """Sentence pairs as arrays."""

    src_first: np.ndarray
    src: np.ndarray
    tgt_first: np.ndarray
    tgt: np.ndarray
    link_first: np.ndarray
    link: np.ndarray


def bitext_of(found: list[Pair]) -> Bitext:
    def ends(lists: list[list]) -> np.ndarray:
        return read_only(np.cumsum([0, *map(len, lists)], dtype=np.int64))

    src, tgt, links = ([pair[side] for pair in found] for side in range(3))
    return Bitext(
        ends(src),
        read_only(np.array([word for each in src for word in each], np.int32)),
        ends(tgt),
        read_only(np.array([word for each in tgt for word in each], np.int32)),
        ends(links),
        read_only(np.array([link for each in links for link in each], np.int32).reshape(-1, 2)),
    )


FEATURES = 6


@st.composite
def labelled(draw: st.DrawFn) -> list[naive.Example]:
    rows = st.sets(st.integers(1, FEATURES - 1), max_size=4).map(lambda row: [0, *sorted(row)])
    return draw(st.lists(st.tuples(rows, st.integers(0, 2)), min_size=1, max_size=8))


def rows_of(examples: list[naive.Example]) -> Rows:
    return Rows(
        read_only(np.cumsum([0, *(len(row) for row, _ in examples)], dtype=np.int64)),
        read_only(np.array([f for row, _ in examples for f in row], np.int32)),
        read_only(np.array([label for _, label in examples], np.int8)),
    )


def examples_of(examples: list[naive.Example], num_features: int = FEATURES) -> Examples:
    """Examples as they are read from a directory."""
    none = read_only(np.zeros(len(examples), np.uint64))
    words = word_table([b"a"])
    keys = read_only(np.arange(num_features, dtype=np.int64))
    return Examples(
        Path("nowhere"),
        rows_of(examples),
        rows_of(examples).label,
        none,
        none,
        FeatureKeys(keys, keys, words, words),
        ExampleConfig(),
        np.bincount([label for _, label in examples], minlength=3),
        "",
        {"source": [], "target": []},
    )


def generated(size: int, seed: int, num_features: int = 60, truth: int = 7) -> list[naive.Example]:
    """Examples whose classes a linear model explains in part; ``truth`` draws the model."""
    world = random.Random(truth)
    weight = [[world.gauss(0, 1.2) for _ in range(3)] for _ in range(num_features)]
    rng = random.Random(seed)
    found = []
    for _ in range(size):
        row = [0, *sorted({1 + int((num_features - 1) * rng.random() ** 2) for _ in range(5)})]
        scores = [sum(weight[f][k] for f in row) + rng.gauss(0, 1) for k in range(3)]
        found.append((row, scores.index(max(scores))))
    return found


def write_bitext(folder: Path, size: int = 60, seed: int = 1) -> tuple[Path, Path, Path]:
    """Three files: sentences of a toy language whose verbs move to the end, and their alignment."""
    rng = random.Random(seed)
    nouns, verbs = ["hund", "katze", "haus", "kind"], ["sieht", "kauft", "hat"]
    english = {"hund": "dog", "katze": "cat", "haus": "house", "kind": "child"}
    english |= {"sieht": "sees", "kauft": "buys", "hat": "has"}
    lines: list[list[str]] = [[], [], []]
    for _ in range(size):
        subject, verb, thing = rng.choice(nouns), rng.choice(verbs), rng.choice(nouns)
        turned = rng.random() < 0.5
        src = ["dass", subject, thing, verb, "."] if turned else [subject, verb, thing, "."]
        tgt = ["that", subject, verb, thing, "."] if turned else [subject, verb, thing, "."]
        links = [(0, 0), (1, 1), (2, 3), (3, 2), (4, 4)] if turned else [(i, i) for i in range(4)]
        lines[0].append(" ".join(src))
        lines[1].append(" ".join(english.get(word, word) for word in tgt))
        lines[2].append(" ".join(f"{i}-{j}" for i, j in links))
    paths = tuple(folder / name for name in ("src", "tgt", "align"))
    for path, each in zip(paths, lines, strict=True):
        path.write_text("\n".join(each) + "\n", encoding="utf-8")
    return paths[0], paths[1], paths[2]
