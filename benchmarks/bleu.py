"""CPU time of BLEU statistics of k-best lists: ``python -m benchmarks.bleu``.

200 sentences with lists of 100 translations, with the errors of a real system: some words are missing, some
are replaced, some are swapped. For comparison, the time of sacrebleu for the same strings, and the time of a
significance test with 3,000 sentences. Times are process CPU time, the best of several runs after the first;
compilation is a row of its own.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import sacrebleu

from benchmarks.results import Rows, append_result, best
from hiero.core.jit import compile_timer
from hiero.evaluation.bleu import SENTENCE_BLEU, References, corpus_bleu
from hiero.evaluation.significance import bootstrap_scores, randomization_test

SENTENCES, KBEST, LENGTH, VOCABULARY = 200, 100, 25, 10_000
TEST_SET, TRIALS = 3_000, 10_000

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.int32]


def sentence(rng: np.random.Generator) -> Words:
    """Words from a Zipf distribution, so that some are repeated."""
    length = int(rng.integers(LENGTH // 2, 2 * LENGTH))
    return np.minimum(rng.zipf(1.3, length), VOCABULARY - 1).astype(np.int32)


def translation(rng: np.random.Generator, reference: Words) -> Words:
    words = reference.copy()
    other = rng.random(len(words)) < 0.3
    words[other] = rng.integers(0, VOCABULARY, np.count_nonzero(other))
    place = int(rng.integers(1, len(words)))
    words[place - 1], words[place] = words[place], words[place - 1]
    return words[rng.random(len(words)) < 0.95]


def main() -> None:
    rng = np.random.default_rng(1)
    sentences = [sentence(rng) for _ in range(SENTENCES)]
    lists = [[translation(rng, words) for _ in range(KBEST)] for words in sentences]
    references = References([[words] for words in sentences])
    flat = [words for found in lists for words in found]
    first_hyp = np.arange(0, len(flat) + 1, KBEST)
    first_word = np.concatenate([[0], np.cumsum([len(words) for words in flat])])
    word = np.concatenate(flat)
    chosen = np.arange(SENTENCES)
    print(f"{SENTENCES} lists of {KBEST}, {len(word) / len(flat):.1f} words a translation")

    stats = references.batch_statistics(chosen, first_hyp, first_word, word)
    compiling = compile_timer.seconds
    texts = [" ".join(map(str, words.tolist())) for words in flat[:2000]]
    metric = sacrebleu.BLEU(tokenize="none", force=True)
    streams = [[" ".join(map(str, sentences[n // KBEST].tolist())) for n in range(len(texts))]]
    # The results must be equal.
    assert metric._extract_corpus_statistics(texts, streams) == stats[: len(texts)].tolist()

    row = Rows(48)
    row(
        "statistics, all lists in one call",
        best(lambda: references.batch_statistics(chosen, first_hyp, first_word, word), 5),
        len(flat),
        "translation",
    )
    row(
        "statistics, a call for each list",
        best(lambda: [references.statistics(s, found) for s, found in enumerate(lists)], 5),
        len(flat),
        "translation",
    )
    row(
        "statistics by sacrebleu",
        best(lambda: metric._extract_corpus_statistics(texts, streams), 2),
        len(texts),
        "translation",
    )
    for name in ("liang", "lin", "cdec-ibm"):
        row(
            f"sentence BLEU: {name}",
            best(partial(SENTENCE_BLEU[name], stats), 5),
            len(flat),
            "translation",
        )
    significance(row, stats)
    print(f"{'compiling (0 if cached)':48}{compiling:10.2f} s")
    append_result("bleu", row.figures | {"compile_s": compiling})


def significance(row: Rows, stats: Ints) -> None:
    first, second = (stats[start::6][:TEST_SET][None].astype(np.float64) for start in (0, 1))

    def bleu(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return 100 * corpus_bleu(sums)

    row(
        f"approximate randomisation, {TRIALS} trials",
        best(lambda: randomization_test(bleu, first, second, TRIALS), 2),
        TRIALS,
        "trial",
    )
    row(
        f"bootstrap of two systems, {TRIALS} samples",
        best(lambda: bootstrap_scores(bleu, [first, second], TRIALS), 2),
        TRIALS,
        "sample",
    )


if __name__ == "__main__":
    main()
