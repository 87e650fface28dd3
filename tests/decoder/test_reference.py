"""Output on real input compared with cdec's for the same model.

Both searches are approximate, so a translation in both lists may have a better derivation in one of them. The
tests check that no score exceeds that of the exact model, that equal feature vectors have equal scores, and
that scores are as good as cdec's on average.

With ``HIERO_REFERENCE=all``, the k-best lists of all sentences are checked and not only a part.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import kenlm
import pytest

import hiero
from hiero.core.text import Segment, parse_segment
from hiero.decoder.output import TranslationWriter
from tests.worlds.cdec_output import (
    Exact,
    Features,
    Line,
    dot,
    open_lm,
    parse_line,
    read_kbest,
    read_lines,
    read_onebest,
    read_weights,
    rounding,
    same_vector,
)

pytestmark = pytest.mark.reference

EVERYTHING = os.environ.get("HIERO_REFERENCE") == "all"
POP_LIMIT, K = 200, 100
MAX_LOSS = 0.02  # of the mean score
EVERY = {"m30k": 4, "ep": 10}  # the k-best list of every 4th or 10th sentence is checked
NUM_SPARSE = 30
TEMPLATES = ["rule_id", "source_bigram", "target_bigram", "shape", "lexical"]


@dataclass
class Decoded:
    """A reference set and its translations by hiero."""

    folder: Path
    segments: list[Segment]
    weights: Features
    lm: kenlm.Model
    scores: list[float]  # of all sentences' best derivations
    ours: dict[int, list[Line]]  # k-best lists as written
    cdecs: dict[int, list[Line]]


@pytest.fixture(scope="module", params=["m30k", "ep"])
def decoded(request: pytest.FixtureRequest, reference: Path) -> Decoded:
    folder = reference / request.param
    model = hiero.load(
        lm=folder / "lm.arpa.gz", weights=reference / "weights", base=folder, pop_limit=POP_LIMIT
    )
    segments = [parse_segment(line) for line in read_lines(folder / "input.sgm")]
    every = 1 if EVERYTHING else EVERY[request.param]
    scores, ours = [], {}
    for number, segment in enumerate(segments):
        forest = model.parse(segment)
        scores.append(forest.viterbi().score)
        if number % every == 0:
            features = forest.features.of_derivation
            text = TranslationWriter("cdec").lines(str(number), segment.words, forest.kbest(K), features)
            ours[number] = [parse_line(line)[1] for line in text.removesuffix("\n").split("\n")]
    cdecs = read_kbest(folder / "kbest100.gz")
    weights, lm = read_weights(reference / "weights"), open_lm(folder / "lm.arpa.gz")
    return Decoded(folder, segments, weights, lm, scores, ours, cdecs)


def test_mean_score_is_cdecs_or_better(decoded: Decoded) -> None:
    theirs = read_onebest(decoded.folder / "onebest.tsv.gz")[POP_LIMIT]
    assert len(theirs) == len(decoded.scores)
    assert math.fsum(decoded.scores) / len(theirs) >= math.fsum(theirs) / len(theirs) - MAX_LOSS


def test_kbest_lines_add_up(decoded: Decoded) -> None:
    for lines in decoded.ours.values():
        for line in lines:
            # A score near 0 is a difference of large terms with nine digits each.
            assert dot(line.features, decoded.weights) == pytest.approx(line.score, rel=1e-6, abs=2e-8)
            assert line.features["LanguageModel"] == pytest.approx(decoded.lm.score(line.text), abs=1e-4)


def test_kbest_lists_are_sorted_and_without_repetition(decoded: Decoded) -> None:
    for number, lines in decoded.ours.items():
        assert 1 <= len(lines) <= K
        assert lines[0].score == pytest.approx(decoded.scores[number], rel=1e-8)
        assert len({line.text for line in lines}) == len(lines)
        assert all(better.score >= worse.score for better, worse in pairwise(lines))


def test_cdecs_vectors_give_cdecs_scores(decoded: Decoded) -> None:
    for lines in decoded.cdecs.values():
        for line in lines:
            slack = rounding(line, decoded.weights) + 1e-9
            assert dot(line.features, decoded.weights) == pytest.approx(line.score, abs=slack)


def test_lists_are_as_good_as_cdecs(decoded: Decoded) -> None:
    ours, theirs = [], []
    for number, lines in decoded.ours.items():
        for our, their in zip(lines, decoded.cdecs[number], strict=False):
            ours.append(our.score)
            theirs.append(their.score)
    assert math.fsum(ours) / len(ours) >= math.fsum(theirs) / len(theirs) - 2 * MAX_LOSS


def test_strings_in_both_lists(decoded: Decoded) -> None:
    num_shared = num_same = 0
    differing: list[tuple[int, Line, Line]] = []
    for number, lines in decoded.ours.items():
        theirs = {line.text: line for line in decoded.cdecs[number]}
        for our in lines:
            if our.text not in theirs:
                continue
            num_shared += 1
            their = theirs[our.text]
            if same_vector(our.features, their.features):
                num_same += 1
                assert our.score == pytest.approx(their.score, abs=1e-4)
            else:
                differing.append((number, our, their))
    assert num_shared > 0.5 * sum(map(len, decoded.ours.values()))
    assert num_same > 0.2 * num_shared
    # One search found a better derivation than the other; both derivations are valid.
    exact: dict[int, Exact] = {}
    for number, our, their in differing[:: 10 if EVERYTHING else 100]:
        segment = decoded.segments[number]
        if number not in exact:
            path = decoded.folder / segment.attributes["grammar"]
            exact[number] = Exact(path, segment.words, decoded.weights, decoded.lm)
        best = exact[number].best_score(our.text)
        assert best >= our.score - 1e-5
        assert best >= their.score - rounding(their, decoded.weights) - 1e-5


def test_sparse_vectors_are_cdecs(reference: Path) -> None:
    folder = reference / "m30k"
    path = folder / "weights.sparse.gz"
    model = hiero.load(
        lm=folder / "lm.arpa.gz",
        weights=path,
        base=folder,
        features=TEMPLATES,
        pop_limit=POP_LIMIT,
        algorithm="cube",  # as cdec's, so that most lists hold the same derivations
    )
    weights, cdecs = read_weights(path), read_kbest(folder / "kbest20.sparse.gz")
    assert len(cdecs) == NUM_SPARSE
    num_equal, scores = 0, []
    for number, line in enumerate(read_lines(folder / "input.sgm")[:NUM_SPARSE]):
        forest = model.parse(line)
        features = forest.features.with_cdec_names().of_derivation
        ours = {derivation.text: derivation for derivation in forest.kbest(20)}
        scores.append(forest.viterbi().score)
        for derivation in ours.values():
            assert dot(features(derivation), weights) == pytest.approx(derivation.score, rel=1e-9, abs=1e-9)
        for their in cdecs[number]:
            slack = rounding(their, weights) + 1e-9
            assert dot(their.features, weights) == pytest.approx(their.score, abs=slack)
            our = ours.get(their.text)
            if our is None or abs(our.score - their.score) > slack:
                continue  # one of the two searches missed a better derivation
            num_equal += same_vector(features(our), their.features)
            if not same_vector(features(our), their.features):
                tied = (d for d in forest.kbest(1000, unique=False) if d.text == their.text)
                assert any(same_vector(features(d), their.features) for d in tied), their.text
    assert num_equal >= 0.75 * sum(map(len, cdecs.values()))
    best = [cdecs[number][0].score for number in range(NUM_SPARSE)]
    assert math.fsum(scores) / NUM_SPARSE >= math.fsum(best) / NUM_SPARSE - MAX_LOSS
