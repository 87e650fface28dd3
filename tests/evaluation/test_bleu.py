"""BLEU of word ids against naive twins and sacrebleu."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from hiero.core.errors import ConfigError
from hiero.core.symbols import Vocabulary
from hiero.evaluation.bleu import (
    BACKGROUNDS,
    MAX_ORDER,
    SENTENCE_BLEU,
    References,
    bleu_background,
    corpus_bleu,
    sentence_bleu,
)
from tests.naive import bleu as naive

# Few words, so that n-grams repeat; negative ones are in no reference.
SENTENCES = st.lists(st.integers(-1, 3), max_size=12)
KNOWN = st.lists(st.integers(0, 3), max_size=12)
WORLDS = st.lists(
    st.tuples(st.lists(SENTENCES, max_size=4), st.lists(SENTENCES, min_size=1, max_size=3)),
    min_size=1,
    max_size=4,
)

TWINS = {
    "plain": naive.plain,
    "lin": naive.lin,
    "nakov": naive.nakov,
    "nakov-all": naive.nakov_all,
    "moses": naive.moses,
    "liang": naive.liang,
    "cdec-ibm": naive.ibm,
    "cdec-qcri": naive.qcri,
    "dtrain-plain": lambda stats: naive.plain(naive.shortened(stats)),
    "dtrain-stupid": lambda stats: naive.lin(naive.shortened(stats)),
    "dtrain-fixed-stupid": lambda stats: naive.nakov(naive.shortened(stats)),
    "dtrain-smooth": naive.liang,
    "phrasal-smooth": lambda stats: naive.lin(stats) * stats[1],
    "phrasal-nakov": lambda stats: naive.nakov_all(stats) * stats[1],
}


def text(words: list[int]) -> str:
    return " ".join(f"w{word}" for word in words)


@given(WORLDS, st.integers(1, 5), st.booleans())
def test_statistics_of_lists_equal_their_twin(
    world: list[tuple[list[list[int]], list[list[int]]]], order: int, shortest: bool
) -> None:
    references = References([refs for _, refs in world])
    sentence = [s for s in range(len(world)) if len(world[s][0])]
    hyps = [hyp for s in sentence for hyp in world[s][0]]
    got = references.batch_statistics(
        np.array(sentence, np.int64),
        np.cumsum([0] + [len(world[s][0]) for s in sentence]),
        np.cumsum([0] + [len(hyp) for hyp in hyps]),
        np.array([word for hyp in hyps for word in hyp], np.int32),
        order,
        shortest=shortest,
    )
    wanted = [naive.statistics(hyp, refs, order, shortest) for hyps, refs in world for hyp in hyps]
    assert got.tolist() == wanted
    for s, (lists, refs) in enumerate(world):
        alone = references.statistics(s, lists, order, shortest=shortest)
        assert alone.tolist() == [naive.statistics(hyp, refs, order, shortest) for hyp in lists]
    assert references.shortest().tolist() == [min(map(len, refs)) for _, refs in world]


@given(st.lists(st.tuples(KNOWN, KNOWN, KNOWN), min_size=1, max_size=5))
def test_corpus_scores_equal_sacrebleu(rows: list[tuple[list[int], list[int], list[int]]]) -> None:
    hyps, first, second = zip(*rows, strict=True)
    references = References(list(zip(first, second, strict=True)))
    stats = np.concatenate([references.statistics(s, [hyp]) for s, hyp in enumerate(hyps)])
    total = stats.sum(axis=0)
    streams = [[text(words) for words in refs] for refs in (first, second)]
    for smooth, value in (("exp", None), ("none", None), ("floor", 0.3), ("add-k", None), ("add-k", 2.0)):
        for effective in (False, True):
            metric = sacrebleu.BLEU(
                tokenize="none",
                smooth_method=smooth,
                smooth_value=value,
                effective_order=effective,
                force=True,
            )
            wanted = metric.corpus_score([text(hyp) for hyp in hyps], streams)
            if smooth != "add-k":  # which changes the counts
                assert [wanted.sys_len, wanted.ref_len, *wanted.counts, *wanted.totals] == total.tolist()
            score = corpus_bleu(total, smooth, value, effective_order=effective)
            assert score * 100 == pytest.approx(wanted.score, abs=1e-9)
    metric = sacrebleu.BLEU(tokenize="none", effective_order=True, force=True)
    wanted_each = [metric.sentence_score(text(hyp), [text(a), text(b)]).score for hyp, a, b in rows]
    assert sentence_bleu("sacrebleu")(stats) * 100 == pytest.approx(wanted_each, abs=1e-9)


@given(st.lists(SENTENCES, min_size=1, max_size=6), st.lists(SENTENCES, min_size=1, max_size=3))
def test_every_sentence_score_equals_its_twin(hyps: list[list[int]], refs: list[list[int]]) -> None:
    references = References([refs])
    stats = references.statistics(0, hyps)
    for name, twin in TWINS.items():
        wanted = [twin(row) for row in stats.tolist()]
        assert sentence_bleu(name)(stats) == pytest.approx(wanted, abs=1e-12), name
        assert sentence_bleu(name)(stats[0]) == pytest.approx(wanted[:1], abs=1e-12), name


def test_every_sentence_score_has_a_twin() -> None:
    assert set(SENTENCE_BLEU) == {*TWINS, "sacrebleu"}


def test_a_perfect_translation() -> None:
    stats = References([[range(9)]]).statistics(0, [range(9)])
    scores = {name: float(score(stats)[0]) for name, score in SENTENCE_BLEU.items()}
    # One word is added to the reference length; without matches, the score is (1/(10*9*8*7))**0.25.
    short, worst = math.exp(1 - 10 / 9), (1 / 5040) ** 0.25
    assert scores == pytest.approx(
        dict.fromkeys(scores, 1.0)
        | {"liang": 0.9375, "dtrain-smooth": 0.9375}
        | {"nakov": short, "nakov-all": short, "dtrain-fixed-stupid": short}
        | {"cdec-qcri": 1 - worst, "phrasal-smooth": 9.0, "phrasal-nakov": 9 * short}
    )


def test_short_references_need_shorter_orders() -> None:
    stats = References([[[1, 2]]]).statistics(0, [[1, 2], [1, 2, 3]])
    assert sentence_bleu("plain")(stats).tolist() == [0.0, 0.0]
    assert sentence_bleu("dtrain-plain")(stats) == pytest.approx([1.0, math.sqrt(2 / 3 * 1 / 2)])


def test_phrasal_multiplies_with_the_shortest_reference() -> None:
    references = References([[[1, 2, 3], [1, 2, 3, 4, 5]]])
    stats = references.statistics(0, [[1, 2, 3, 4, 5]])
    assert stats[0, 1] == 5
    assert sentence_bleu("phrasal-smooth")(stats, references.shortest()[0]) == pytest.approx([3.0])


@pytest.mark.parametrize("name", BACKGROUNDS)
def test_a_background_decays(name: str) -> None:
    """Against the definition, with explicit sums."""
    decay, start, times, new_fades, bleu = {
        "approx": (0.9, 0, "", True, naive.plain),
        "chiang": (0.9, 0, "source", True, naive.plain),
        "cdec-mira": (0.95, 0, "source", True, naive.ibm),
        "kbmira": (0.999, 1, "reference", False, naive.plain),
    }[name]
    rng = np.random.default_rng(1)
    memory, remembered = [float(start)] * (2 + 2 * MAX_ORDER), float(start)
    context, half = bleu_background(name), bleu_background(name)
    for step in range(6):
        ref = rng.integers(0, 4, 8).tolist()
        hyps = [rng.integers(0, 4, rng.integers(1, 10)).tolist() for _ in range(3)]
        source_length = int(rng.integers(1, 10))
        stats = References([[ref]]).statistics(0, hyps)
        wanted = []
        for row in stats.tolist():
            together = [a + b for a, b in zip(memory, row, strict=True)]
            factor = {"": 1.0, "source": remembered + source_length, "reference": together[1]}[times]
            wanted.append(bleu(together) * factor)
        assert context.scores(stats, source_length) == pytest.approx(wanted)
        context.add(stats[0], source_length)
        if step == 3:
            half.restore(*context.state())
        fresh = decay if new_fades else 1.0
        memory = [decay * a + fresh * b for a, b in zip(memory, stats[0].tolist(), strict=True)]
        remembered = decay * remembered + fresh * source_length
        if step > 3:
            half.add(stats[0], source_length)
    assert half.state() == context.state()


def test_several_references() -> None:
    words = Vocabulary([b"a", b"b"])
    lines = [[b"a b", b"b c"], [b"b", b""]]
    references = References([words.intern_all(line.split()) for line in row] for row in lines)
    assert len(references) == 2
    assert references.statistics(0, [words.intern_all([b"b", b"c"])]).tolist()[0][:4] == [2, 2, 2, 1]
    assert references.statistics(1, [[], [1]])[:, :3].tolist() == [[0, 0, 0], [1, 1, 1]]
    assert references.statistics(0, []).shape == (0, 10)


def test_invalid_arguments() -> None:
    with pytest.raises(ConfigError, match="unknown sentence BLEU 'lian'; did you mean 'liang'"):
        sentence_bleu("lian")
    with pytest.raises(ConfigError, match="unknown background 'chang'; did you mean 'chiang'"):
        bleu_background("chang")
    with pytest.raises(ConfigError, match="found no reference"):
        References([[]])
    with pytest.raises(ConfigError, match="smooth: unknown 'ad-k'; did you mean 'add-k'"):
        corpus_bleu(np.ones((1, 10)), "ad-k")
    with pytest.raises(ConfigError, match="expected source, reference or nothing"):
        type(bleu_background("chiang"))(times="target")
    with pytest.raises(IndexError):
        References([[[1]]]).statistics(1, [[1]])
