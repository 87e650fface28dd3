"""BLEU, chrF and TER: statistics and signatures by sacrebleu, vectorised scores of many sums by hiero.

Resampling scores thousands of sums, which sacrebleu does one by one. Whenever a text is scored, the
vectorised score is checked against that of sacrebleu.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiero.core.arrays import Floats
from hiero.core.errors import ConfigError, did_you_mean

METRICS = {"bleu": "BLEU", "chrf": "chrF2", "chrf++": "chrF2++", "ter": "TER"}  # to sacrebleu's names
TOKENIZED_LINES = 100  # lines that end in " ." for sacrebleu to consider its input tokenised
AGREEMENT = 1e-6  # in points


@dataclass(frozen=True)
class CorpusMetric:
    """A metric with references.

    key             as in METRICS
    label           sacrebleu's name: BLEU, chrF2, chrF2++, TER
    better          1 if higher is better, -1 if lower
    scores          scores, in points of 100, of sums of statistics, [T, K] -> [T]
    segment_scores  the same of single lines; BLEU with the effective order, as sacrebleu advises
    """

    key: str
    label: str
    better: int
    _sacrebleu: Any
    scores: Callable[[Floats], Floats]
    segment_scores: Callable[[Floats], Floats]

    def statistics(self, lines: Sequence[str]) -> Floats:
        """Statistics of each line, which add up to those of the text, float64 [lines, K]."""
        rows = self._sacrebleu._extract_corpus_statistics(lines, None)
        stats = np.array(rows, np.float64)
        expected = self._sacrebleu._compute_score_from_stats(stats.sum(axis=0).tolist()).score
        score = float(self.scores(stats.sum(axis=0)[None, :])[0])
        assert abs(score - expected) < AGREEMENT, f"{self.label} is {score} here and {expected} in sacrebleu"
        return stats

    def details(self, sums: Floats) -> str:
        """sacrebleu's details of BLEU: precisions, brevity penalty, lengths; empty for other metrics."""
        verbose: str = self._sacrebleu._compute_score_from_stats(np.rint(sums).astype(int).tolist())._verbose
        return verbose if self.key == "bleu" else ""

    @property
    def signature(self) -> str:
        return str(self._sacrebleu.get_signature())


def corpus_metric(
    key: str, references: Sequence[Sequence[str]], *, tokenize: str = "13a", lowercase: bool = False
) -> CorpusMetric:
    """A metric by its name in METRICS; ``references[k]`` are the lines of one reference.

    tokenize   for BLEU, one of ``corpus_metric_tokenizers()``
    lowercase  ignore case; TER always does
    """
    # Imported here, since sacrebleu is slow to load.
    import sacrebleu

    from hiero.evaluation.bleu import corpus_bleu

    if key == "bleu":
        if tokenize not in corpus_metric_tokenizers():
            raise ConfigError(
                f"tokenize: unknown {tokenize!r}; {did_you_mean(tokenize, corpus_metric_tokenizers())}"
            )
        try:
            # force: hiero eval warns of tokenised input itself, once for all systems.
            bleu = sacrebleu.BLEU(tokenize=tokenize, lowercase=lowercase, force=True, references=references)
        except (ImportError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise ConfigError(f"tokenize: {tokenize} is not installed ({reason})") from None
        return CorpusMetric(
            key,
            METRICS[key],
            1,
            bleu,
            lambda sums: 100 * corpus_bleu(sums),
            lambda stats: 100 * corpus_bleu(stats, effective_order=True),
        )
    if key in ("chrf", "chrf++"):
        order = 2 if key == "chrf++" else 0
        chrf = sacrebleu.CHRF(word_order=order, lowercase=lowercase, references=references)
        return CorpusMetric(key, METRICS[key], 1, chrf, chrf_scores, chrf_scores)
    if key == "ter":
        ter = sacrebleu.TER(references=references)
        return CorpusMetric(key, METRICS[key], -1, ter, ter_scores, ter_scores)
    raise ConfigError(f"metrics: unknown {key!r}; {did_you_mean(key, METRICS)}")


def corpus_metric_tokenizers() -> list[str]:
    """sacrebleu's tokenizers for the corpus metric BLEU."""
    from sacrebleu.metrics import BLEU

    return list(BLEU.TOKENIZERS)


def chrf_scores(sums: Floats, beta: float = 2.0) -> Floats:
    """chrF (Popović 2015) of rows of (n-grams, n-grams of the reference, matches) of each order.

    Precision and recall are averaged over the orders that both sides have.
    """
    counts = sums.reshape(len(sums), -1, 3)
    hyp, ref, match = counts[..., 0], counts[..., 1], counts[..., 2]
    used = (hyp > 0) & (ref > 0)
    orders = np.maximum(used.sum(axis=1), 1)
    precision = np.divide(match, hyp, out=np.zeros_like(match), where=used).sum(axis=1) / orders
    recall = np.divide(match, ref, out=np.zeros_like(match), where=used).sum(axis=1) / orders
    below = beta**2 * precision + recall
    above = (1 + beta**2) * precision * recall
    score: Floats = 100 * np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    return score


def ter_scores(sums: Floats) -> Floats:
    """TER of rows of (edits, reference length); with an empty reference, any edits count as 100 %."""
    edits, length = sums[:, 0], sums[:, 1]
    return 100 * np.divide(edits, length, out=(edits > 0).astype(np.float64), where=length > 0)


def look_tokenized(lines: Sequence[str]) -> bool:
    """Whether sacrebleu would warn that the input is tokenised already."""
    return sum(line.endswith(" .") for line in lines) >= TOKENIZED_LINES
