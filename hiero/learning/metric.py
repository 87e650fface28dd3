"""Metrics that score each translation of a sentence for learning ("gold").

SentenceGold    BLEU of the sentence by itself, in one of the variants of ``hiero.evaluation.bleu``
BackgroundGold  BLEU with a decaying sum of statistics of the sentences before it (Chiang et al. 2008)
PreviousPass    BLEU with the previous pass's translations of all other sentences (Eidelman 2012)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import numpy as np

from hiero.core.arrays import Floats
from hiero.core.errors import ConfigError, did_you_mean
from hiero.evaluation.bleu import BACKGROUNDS, SENTENCE_BLEU, bleu_background, sentence_bleu
from hiero.learning.learner import Example

PREVIOUS = "previous"


class Gold(Protocol):
    """A metric for translations, with an optional memory of those chosen before."""

    def scores(self, example: Example) -> Floats:
        """A score for each translation; higher is better."""
        ...

    def remember(self, example: Example, oracle: int) -> None:
        """Update the memory; called once for each sentence, after its translations were scored.

        The model's best translation is at position 0; ``oracle`` is the position of the one learnt towards.
        """
        ...

    def end_epoch(self) -> None: ...

    def state(self) -> dict[str, Any]:
        """The memory, for ``restore``. Arrays have a first axis of length 1, unlike arrays over features."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None: ...


class SentenceGold:
    def __init__(self, variant: str) -> None:
        self.bleu = sentence_bleu(variant)

    def scores(self, example: Example) -> Floats:
        return self.bleu(example.statistics, example.shortest)

    def remember(self, example: Example, oracle: int) -> None:
        pass

    def end_epoch(self) -> None:
        pass

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        pass


class BackgroundGold:
    """BLEU with a decaying sum of the statistics of the translations chosen before.

    chosen  the translation of a sentence that is added: the model's best, or the oracle
    """

    def __init__(self, kind: str, chosen: Literal["model", "oracle"] = "model") -> None:
        if chosen not in ("model", "oracle"):
            raise ConfigError(f"chosen: found {chosen!r}, expected model or oracle")
        self.background = bleu_background(kind)
        self.chosen = chosen

    def scores(self, example: Example) -> Floats:
        return self.background.scores(example.statistics, example.source_length)

    def remember(self, example: Example, oracle: int) -> None:
        row = oracle if self.chosen == "oracle" else 0
        self.background.add(example.statistics[row], example.source_length)

    def end_epoch(self) -> None:
        pass

    def state(self) -> dict[str, Any]:
        memory, source = self.background.state()
        return {"memory": np.array([memory]), "source": source}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.background.restore(np.asarray(state["memory"])[0].tolist(), float(state["source"]))


class PreviousPass:
    """BLEU of the model's translations of the previous pass with that of this sentence replaced.

    In the first pass it is BLEU of the sentence by itself. Later, one translation changes corpus BLEU only by
    a little, so the score is the gain times the number of sentences: a gain of 0.1 is then as large as 0.1
    of sentence BLEU, long sentences weigh more than short ones, and settings on the scale of scores (C, the
    scale of the metric in hope and fear) suit all passes. (cdec halves the counts of the other sentences, and
    leaves the magnitude to ``mt_metric_scale``.)

    A learner of one shard only has the translations of its own sentences; see ``widen``.
    """

    def __init__(self, first: str = "lin") -> None:
        self.first = sentence_bleu(first)
        # Smoothing does not matter for counts in the thousands, but keeps a small set from scoring 0.
        self.later = sentence_bleu("lin")
        self._now: dict[int, Floats] = {}
        self._before: dict[int, Floats] = {}
        self._total = np.zeros(0)
        self._sentences = 0

    def scores(self, example: Example) -> Floats:
        if not self._sentences:
            return self.first(example.statistics, example.shortest)
        own = self._before.get(example.number)
        others = self._total if own is None else self._total - own
        before = self.later(others)[0]
        gain: Floats = (self.later(others + example.statistics) - before) * self._sentences
        return gain

    def remember(self, example: Example, oracle: int) -> None:
        self._now[example.number] = example.statistics[0].astype(np.float64)

    def end_epoch(self) -> None:
        if self._now:
            self._before, self._now = self._now, {}
            self.widen(np.sum(list(self._before.values()), axis=0), len(self._before))

    def widen(self, total: Floats, sentences: int) -> None:
        """Replace the learner's own sum of statistics by that of all shards (``UpdateReport.model``).

        Call it after ``end_epoch``, with the number of sentences in the sum.
        """
        self._total, self._sentences = np.asarray(total, np.float64).copy(), int(sentences)

    def state(self) -> dict[str, Any]:
        kept = {"total": self._total[None], "sentences": self._sentences}
        for name, memory in (("before", self._before), ("now", self._now)):
            kept[f"{name}_number"] = np.array([list(memory)], np.int64)
            kept[f"{name}_statistics"] = np.array([list(memory.values())], np.float64)
        return kept

    def restore(self, state: Mapping[str, Any]) -> None:
        for name, memory in (("before", self._before), ("now", self._now)):
            memory.clear()
            rows = zip(state[f"{name}_number"][0].tolist(), state[f"{name}_statistics"][0], strict=True)
            memory.update((number, np.array(row, np.float64)) for number, row in rows)
        self.widen(state["total"][0], state["sentences"])


def gold_metric(name: str, *, first: str = "lin", chosen: Literal["model", "oracle"] = "model") -> Gold:
    """Return a metric by its name.

    name    a variant of sentence BLEU, a kind of background, or "previous"
    first   for "previous": the variant of sentence BLEU in the first pass
    chosen  for a background: the translation of a sentence that is added to it
    """
    if name == PREVIOUS:
        return PreviousPass(first)
    if name in BACKGROUNDS:
        return BackgroundGold(name, chosen)
    if name in SENTENCE_BLEU:
        return SentenceGold(name)
    known = [PREVIOUS, *BACKGROUNDS, *SENTENCE_BLEU]
    raise ConfigError(f"unknown metric {name!r}; {did_you_mean(name, known)}")
