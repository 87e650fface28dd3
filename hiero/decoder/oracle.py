"""Oracle translations: those of a list or a forest with the best sentence BLEU against references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hiero.core.arrays import Ints
from hiero.decoder.consensus import best_gains, split_forest
from hiero.evaluation.bleu import MAX_ORDER, References, SentenceBleu

if TYPE_CHECKING:
    from hiero.decoder.forest import Forest

# Precision and ratio of the linear BLEU that finds candidates: for translations of different quality.
SLOPES = ((0.95, 0.9), (0.8, 0.7), (0.6, 0.55), (0.4, 0.4))
PER_SLOPE = 100


@dataclass(frozen=True)
class OracleTranslation:
    """A translation and its statistics of BLEU."""

    text: str
    statistics: Ints
    bleu: float


class OracleSearch:
    """Finds the oracle translations of the sentences of a test set.

    references  the words of each reference of each sentence
    bleu        variant of the BLEU of a sentence
    """

    def __init__(self, references: Sequence[Sequence[Sequence[str]]], bleu: SentenceBleu) -> None:
        self.bleu, self.references = bleu, references

    def of_list(self, number: int, texts: Sequence[str], sizes: Sequence[int]) -> list[OracleTranslation]:
        """The oracle among the first ``size`` translations, for each size; of equal ones the first."""
        if not texts:
            texts = [""]
        ids: dict[str, int] = {}

        def numbered(words: Sequence[str]) -> list[int]:
            return [ids.setdefault(word, len(ids)) for word in words]

        references = References([[numbered(one) for one in self.references[number]]])
        statistics = references.statistics(0, [numbered(text.split()) for text in texts])
        scores = self.bleu(statistics, references.shortest()[0])
        found = []
        for size in sizes:
            best = int(np.argmax(scores[:size]))
            found.append(OracleTranslation(texts[best], statistics[best], float(scores[best])))
        return found

    def of_forest(self, number: int, forest: Forest, texts: Sequence[str], beam: float) -> OracleTranslation:
        """The oracle of a forest: of ``texts``, a list, and of the translations with the largest linear BLEU.

        Exact if ``texts`` are all translations of the forest; otherwise an approximation, never worse than
        the oracle of the list. Linear BLEU (``consensus.by_forest``) counts each n-gram of a reference as
        often as the translation has it.

        beam  leave out derivations whose scores are more than this below the best
        """
        split = split_forest(forest.prune(beam), MAX_ORDER)
        known = {
            tuple(words[at : at + n])
            for words in self.references[number]
            for n in range(1, MAX_ORDER + 1)
            for at in range(len(words) - n + 1)
        }
        text = forest.words.text
        right = np.array([tuple(map(text, ngram)) in known for ngram in split.words()], np.float64)
        more = list(texts)
        for precision, ratio in SLOPES if len(right) else ():
            theta = 1 / (MAX_ORDER * precision * ratio ** np.arange(MAX_ORDER))
            gains = split.gains(theta[split.lengths - 1] * right, -1.0)
            more += [one.derivation.text for one in best_gains(split, gains, PER_SLOPE)]
        more = list(dict.fromkeys(more))
        return self.of_list(number, more, [len(more)])[0]
