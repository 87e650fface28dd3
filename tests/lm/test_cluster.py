"""Learnt classes against the objective, computed anew for each move."""

from __future__ import annotations

import argparse
import itertools
import math
import random
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hiero.cli.lm import add_parser
from hiero.core.errors import FormatError
from hiero.lm.classes import read_classes
from hiero.lm.cluster import LearntClasses, learn_classes
from hiero.lm.config import ClassConfig
from tests.lm.test_estimate import write_text
from tests.naive import lm as naive

SENTENCES = st.lists(st.lists(st.sampled_from("abcdefg"), max_size=6), min_size=1, max_size=12)


def learnt(sentences: list[list[str]], classes: int, passes: int) -> LearntClasses:
    with TemporaryDirectory() as folder:
        path = write_text(Path(folder, "text"), sentences)
        return learn_classes(path, ClassConfig(classes=classes, passes=passes))


def perplexity(sentences: list[list[str]], class_of: dict[str, int]) -> float:
    """By the definition: the product of p(class | class before) p(word | class)."""
    lines = [["</s>", *line, "</s>"] for line in sentences]
    pairs = [pair for line in lines for pair in itertools.pairwise(line)]
    classes = {**class_of, "</s>": 0}
    both = Counter((classes[a], classes[b]) for a, b in pairs)
    left, right = Counter(classes[a] for a, _ in pairs), Counter(classes[b] for _, b in pairs)
    words = Counter(b for _, b in pairs)
    logs = [
        math.log(both[classes[a], classes[b]] / left[classes[a]] * words[b] / right[classes[b]])
        for a, b in pairs
    ]
    return math.exp(-sum(logs) / len(logs))


@given(SENTENCES, st.integers(1, 4), st.integers(1, 3))
@example([["a", "a", "a", "b"], ["b", "a"]], 2, 2)
def test_words_move_as_the_objective_says(sentences: list[list[str]], classes: int, passes: int) -> None:
    counts = Counter(word for line in sentences for word in line)  # in the order of the text
    if len(counts) < classes:
        with pytest.raises(FormatError, match=f"found {len(counts)} different words"):
            learnt(sentences, classes, passes)
        return
    order = sorted(counts, key=lambda word: -counts[word])
    number = {word: n for n, word in enumerate(order)}
    texts = [[number[word] for word in line] for line in sentences]
    class_of = {n: 1 + n % classes for n in range(len(order))}
    found = learnt(sentences, classes, passes)
    assert found.words == [word.encode() for word in order]
    perplexities = [perplexity(sentences, {word: class_of[number[word]] for word in order})]
    for _ in range(passes):
        before = class_of
        class_of = naive.exchange(texts, [*range(len(order))], class_of, classes)
        perplexities.append(perplexity(sentences, {word: class_of[number[word]] for word in order}))
        if class_of == before:
            break
    assert found.classes.tolist() == [*class_of.values()]
    assert found.perplexities == pytest.approx(perplexities)
    assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(found.perplexities))


def test_planted_classes_are_found() -> None:
    """Sentences of determiner, adjective, noun and verb, whose words are drawn independently."""
    draw = random.Random(1)
    kinds = [[f"{kind}{n}" for n in range(6)] for kind in ("det", "adj", "noun", "verb")]
    sentences = [[draw.choice(words) for words in kinds] for _ in range(400)]
    found = learnt(sentences, 4, 20)
    class_of = dict(zip(found.words, found.classes.tolist(), strict=True))
    groups = [{class_of[word.encode()] for word in words} for words in kinds]
    assert [len(group) for group in groups] == [1] * 4
    assert len(set.union(*groups)) == 4


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers(required=True))
    text, out = write_text(tmp_path / "text", [["a", "<s>", "b", "c"], ["a", "d"]]), tmp_path / "classes"
    args = parser.parse_args(["lm", "classes", "--classes", "2", str(text), str(out)])
    assert args.run(args) == 0
    classes = read_classes(out)
    assert sorted(line.split("\t")[0] for line in out.read_text().splitlines()) == ["a", "b", "c", "d"]
    assert set(classes.class_of[3:].tolist()) <= {3, 4}
    assert "4 words in 2 classes; perplexity of the class bigram model" in capsys.readouterr().err
    assert np.isfinite(learn_classes(text, ClassConfig(classes=4)).perplexities).all()
