"""BLEU of translations as word ids, for tuning: whole k-best lists at once.

All scores lie between 0 and 1. Statistics are rows of numbers that add up over a corpus: length, length of
the reference, matches of orders 1 ... N, n-grams of orders 1 ... N. Reported scores are computed by sacrebleu
(``hiero.evaluation``), which gives the same score for the same sums.

``SENTENCE_BLEU`` names the variants of sentence BLEU in the literature and in other systems:

    plain         Papineni et al. 2002; 0 unless every order has a match
    lin           Lin and Och 2004: one more match and n-gram for orders >= 2; 0 without a common word
    nakov         Nakov et al. 2012: as lin, with one word more of the reference in the brevity penalty
    nakov-all     as nakov, and order 1 is smoothed too
    moses         one more match and n-gram for every order (PRO in Moses)
    liang         Liang et al. 2006: BLEU of orders 1, 2, ..., N with weights 1/2^N ... 1/2; at most 0.9375
    cdec-ibm      no match counts as 0.01; orders longer than the translation are left out
    cdec-qcri     no match counts as 1, minus the score of a translation without matches
    sacrebleu     sacrebleu's sentence score: exponential smoothing, effective order
    dtrain-...    plain, stupid (lin), fixed-stupid (nakov), smooth (liang), without orders longer than the
                  reference
    phrasal-...   smooth (lin), nakov (nakov-all), times the length of the shortest reference
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from hiero.core.arrays import Flags, Floats, Ids, Ints, offsets_of, read_only
from hiero.core.errors import ConfigError, did_you_mean
from hiero.evaluation.bleu_kernels import ReferenceWords, bleu_statistics_kernel

Statistics = Ints | Floats

MAX_ORDER = 4
NO_MATCH = 0.01  # cdec-ibm's count of matches where there is none


class References:
    """The references of a set of sentences, one or several each, as word ids."""

    def __init__(self, sentences: Iterable[Sequence[Sequence[int] | Ids]]) -> None:
        rows: list[Ids] = []
        per_sentence: list[int] = []
        for number, refs in enumerate(sentences):
            if not len(refs):
                raise ConfigError(f"sentence {number}: found no reference, expected at least one")
            per_sentence.append(len(refs))
            rows.extend(np.asarray(ref, np.int32) for ref in refs)
        self.arrays = ReferenceWords(
            read_only(offsets_of(per_sentence)), read_only(offsets_of(map(len, rows))), _joined(rows)
        )

    def __len__(self) -> int:
        return len(self.arrays.first_ref) - 1

    def shortest(self) -> Ints:
        """The length of each sentence's shortest reference."""
        return np.minimum.reduceat(np.diff(self.arrays.first_word), self.arrays.first_ref[:-1])

    def statistics(
        self,
        sentence: int,
        translations: Sequence[Sequence[int] | Ids],
        order: int = MAX_ORDER,
        *,
        shortest: bool = False,
    ) -> Ints:
        """Statistics of some translations of one sentence, a row each."""
        rows = [np.asarray(words, np.int32) for words in translations]
        place = np.array([sentence], np.int64), np.array([0, len(rows)], np.int64)
        words = offsets_of(map(len, rows)), _joined(rows)
        return self.batch_statistics(*place, *words, order, shortest=shortest)

    def batch_statistics(
        self,
        sentence: Ints,
        first_hyp: Ints,
        first_word: Ints,
        word: Ids,
        order: int = MAX_ORDER,
        *,
        shortest: bool = False,
    ) -> Ints:
        """Statistics of k-best lists in one call; see ``bleu_statistics_kernel`` for the arrays.

        shortest  compare lengths with the shortest reference (NIST) instead of the closest (IBM)
        """
        sentence = read_only(np.asarray(sentence, np.int64))
        if len(sentence) and not 0 <= sentence.min() <= sentence.max() < len(self):
            raise IndexError(f"there are references for {len(self)} sentences, not for {sentence.max()}")
        stats = np.empty((len(first_word) - 1, 2 + 2 * order), np.int64)
        if len(stats):
            first_hyp = read_only(np.asarray(first_hyp, np.int64))
            first_word = read_only(np.asarray(first_word, np.int64))
            word = read_only(np.asarray(word, np.int32))
            bleu_statistics_kernel(self.arrays, sentence, first_hyp, first_word, word, shortest, stats)
        return stats


def _joined(rows: Sequence[Ids]) -> Ids:
    return read_only(np.concatenate([np.empty(0, np.int32), *rows]))


# ---- of a corpus


def corpus_bleu(
    stats: Statistics, smooth: str = "exp", value: float | None = None, *, effective_order: bool = False
) -> Floats:
    """BLEU of each row of (summed) statistics, as sacrebleu defines it.

    smooth   none, floor, add-k or exp: smoothing of orders without a match
    value    for floor (0.1) and add-k (1)
    effective_order  leave out orders that are longer than the text, which would make the score 0
    """
    length, ref_length, match, total = _parts(stats)
    has_match = match.any(axis=1)
    if smooth == "add-k":
        extra = 1.0 if value is None else value
        match[:, 1:] += extra
        total[:, 1:] += extra
    reached = np.logical_and.accumulate(total > 0, axis=1)
    missing = reached & (match == 0)
    precision = _ratio(match, total)
    with np.errstate(divide="ignore", invalid="ignore"):
        if smooth == "exp":
            precision = np.where(missing, 0.5 ** np.cumsum(missing, axis=1) / total, precision)
        elif smooth == "floor":
            precision = np.where(missing, (0.1 if value is None else value) / total, precision)
        elif smooth not in ("none", "add-k"):
            raise ConfigError(
                f"smooth: unknown {smooth!r}; {did_you_mean(smooth, ['none', 'floor', 'add-k', 'exp'])}"
            )
    used = reached if effective_order else np.ones_like(reached)
    return np.where(has_match, _brevity(length, ref_length) * _geometric_mean(precision, used), 0.0)


# ---- of a sentence


def _parts(stats: Statistics) -> tuple[Floats, Floats, Floats, Floats]:
    """Lengths, reference lengths, matches and n-grams: writable copies."""
    rows = np.array(stats, np.float64, ndmin=2)
    order = (rows.shape[1] - 2) // 2
    return rows[:, 0], rows[:, 1], rows[:, 2 : 2 + order], rows[:, 2 + order :]


def _brevity(length: Floats, ref_length: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(length < ref_length, np.exp(1 - ref_length / length), 1.0)


def _ratio(match: Floats, total: Floats) -> Floats:
    return np.divide(match, total, out=np.zeros_like(match), where=total > 0)


def _geometric_mean(precision: Floats, used: Flags) -> Floats:
    with np.errstate(divide="ignore"):
        logs = np.where(used, np.log(np.where(used, precision, 1.0)), 0.0)
    result: Floats = np.exp(logs.sum(axis=1) / np.maximum(used.sum(axis=1), 1))
    return result


def _added(stats: Statistics, used: Flags, first: int, longer: int) -> Floats:
    """One more match and n-gram from order ``first`` on, and ``longer`` more words of the reference."""
    length, ref_length, match, total = _parts(stats)
    match[:, first - 1 :] += 1
    total[:, first - 1 :] += 1
    score = _brevity(length, ref_length + longer) * _geometric_mean(_ratio(match, total), used)
    return np.where(length > 0, score, 0.0)


def _plain(stats: Statistics, used: Flags) -> Floats:
    length, ref_length, match, total = _parts(stats)
    return _brevity(length, ref_length) * _geometric_mean(_ratio(match, total), used)


def _liang(stats: Statistics, used: Flags) -> Floats:
    # Orders above one without a match, or above the reference's length, have no match either and score 0:
    # there is no need to leave them out.
    order = used.shape[1]
    score = np.zeros(len(used))
    for longest in range(1, order + 1):
        up_to = np.broadcast_to(np.arange(order) < longest, used.shape)
        score += _plain(stats, up_to) / 2.0 ** (order - longest + 1)
    return score


def _cdec_ibm(stats: Statistics, _used: Flags) -> Floats:
    length, ref_length, match, total = _parts(stats)
    precision = _ratio(np.where(match > 0, match, NO_MATCH), total)
    return np.where(length > 0, _brevity(length, ref_length) * _geometric_mean(precision, total > 0), 0.0)


def _cdec_qcri(stats: Statistics, _used: Flags) -> Floats:
    length, ref_length, match, total = _parts(stats)
    reached = total > 0
    score = _geometric_mean(_ratio(np.where(match > 0, match, 1.0), total), reached)
    score -= _geometric_mean(1 / (total + 1), reached)
    with np.errstate(divide="ignore"):
        short = np.where(length < ref_length, np.exp((length - ref_length - 1) / length), 1.0)
    return np.where(length > 0, short * score, 0.0)


_Variant = Callable[[Statistics, Flags], Floats]
_VARIANTS: dict[str, _Variant] = {
    "plain": _plain,
    "lin": lambda stats, used: np.where(_parts(stats)[2][:, 0] > 0, _added(stats, used, 2, 0), 0.0),
    "nakov": lambda stats, used: np.where(_parts(stats)[2][:, 0] > 0, _added(stats, used, 2, 1), 0.0),
    "nakov-all": lambda stats, used: _added(stats, used, 1, 1),
    "moses": lambda stats, used: _added(stats, used, 1, 0),
    "liang": _liang,
    "cdec-ibm": _cdec_ibm,
    "cdec-qcri": _cdec_qcri,
    "sacrebleu": lambda stats, _used: corpus_bleu(stats, effective_order=True),
}


@dataclass(frozen=True)
class SentenceBleu:
    """A variant of sentence BLEU; see the module's docstring."""

    variant: str
    shorten: bool = False  # leave out orders that are longer than the reference
    scaled: bool = False  # multiply with the length of the shortest reference

    def __call__(self, stats: Statistics, shortest: float | Ints | None = None) -> Floats:
        """The score of each row.

        shortest  lengths of the shortest references, for ``scaled``; by default the reference lengths of the
                  statistics, which are the same for a single reference
        """
        rows: Floats = np.array(stats, np.float64, ndmin=2)
        order = (rows.shape[1] - 2) // 2
        longest = np.clip(rows[:, 1], 1, order) if self.shorten else np.full(len(rows), order)
        score = _VARIANTS[self.variant](rows, np.arange(order) < longest[:, None])
        if self.scaled:
            score = np.multiply(score, rows[:, 1] if shortest is None else shortest)
        return score


SENTENCE_BLEU: dict[str, SentenceBleu] = {
    **{name: SentenceBleu(name) for name in _VARIANTS},
    "dtrain-plain": SentenceBleu("plain", shorten=True),
    "dtrain-stupid": SentenceBleu("lin", shorten=True),
    "dtrain-fixed-stupid": SentenceBleu("nakov", shorten=True),
    "dtrain-smooth": SentenceBleu("liang", shorten=True),
    "phrasal-smooth": SentenceBleu("lin", scaled=True),
    "phrasal-nakov": SentenceBleu("nakov-all", scaled=True),
}


def sentence_bleu(name: str) -> SentenceBleu:
    """A variant of the BLEU of a sentence by its name in ``SENTENCE_BLEU``.

    >>> references = References([[[1, 2, 3, 4, 5]]])
    >>> statistics = references.statistics(0, [[1, 2, 3, 4, 5], [1, 2, 3], [6]])
    >>> sentence_bleu("liang")(statistics).round(3).tolist()
    [0.938, 0.225, 0.0]
    """
    if name not in SENTENCE_BLEU:
        raise ConfigError(f"unknown sentence BLEU {name!r}; {did_you_mean(name, SENTENCE_BLEU)}")
    return SENTENCE_BLEU[name]


# ---- of a sentence with a background


@dataclass
class Background:
    """BLEU of a sentence together with a decaying sum of earlier sentences (Chiang et al. 2008).

    decay     factor of all counts after each sentence
    start     initial value of all counts
    times     factor of the score: 1, or the length of "source" or "reference", memory included, so that long
              sentences weigh more
    new_fades whether a sentence decays when it is added (Chiang), or only with the next one (Moses)
    bleu      variant that scores the sum
    """

    decay: float = 0.9
    start: float = 0.0
    times: str = ""
    new_fades: bool = True
    bleu: str = "plain"
    order: int = MAX_ORDER
    memory: Floats = field(init=False)
    source: float = field(init=False)

    def __post_init__(self) -> None:
        if self.times not in ("", "source", "reference"):
            raise ConfigError(f"background: found {self.times!r}, expected source, reference or nothing")
        sentence_bleu(self.bleu)
        self.restore([self.start] * (2 + 2 * self.order), self.start)

    def scores(self, stats: Statistics, source_length: int = 0) -> Floats:
        """The score of each row, a translation of a sentence of ``source_length`` words."""
        together: Floats = np.add(self.memory, np.atleast_2d(stats), dtype=np.float64)
        score = SENTENCE_BLEU[self.bleu](together)
        if self.times == "source":
            score *= self.source + source_length
        elif self.times == "reference":
            score *= together[:, 1]
        return score

    def add(self, stats: Statistics, source_length: int = 0) -> None:
        """Add the statistics of the chosen translation, one row."""
        row = np.asarray(stats, np.float64).reshape(-1)
        fresh = self.decay if self.new_fades else 1.0
        self.memory = self.decay * self.memory + fresh * row
        self.source = self.decay * self.source + fresh * source_length

    def state(self) -> tuple[list[float], float]:
        """The memory, for ``restore``."""
        return self.memory.tolist(), self.source

    def restore(self, memory: Sequence[float], source: float) -> None:
        self.memory, self.source = np.array(memory, np.float64), float(source)


_BACKGROUNDS: dict[str, Callable[[], Background]] = {
    "approx": Background,
    "chiang": lambda: Background(times="source"),
    "cdec-mira": lambda: Background(decay=0.95, times="source", bleu="cdec-ibm"),
    "kbmira": lambda: Background(decay=0.999, start=1.0, times="reference", new_fades=False),
}
BACKGROUNDS = tuple(_BACKGROUNDS)


def bleu_background(name: str) -> Background:
    """An empty background for BLEU, one of ``BACKGROUNDS``: approx, chiang, cdec-mira or kbmira (Moses)."""
    if name not in _BACKGROUNDS:
        raise ConfigError(f"unknown background {name!r}; {did_you_mean(name, _BACKGROUNDS)}")
    return _BACKGROUNDS[name]()
