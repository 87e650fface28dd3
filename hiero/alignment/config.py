"""Settings of word alignment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from hiero.core.records import Checked, PathKey, setting

Method = Literal["intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and", "none"]
METHODS: tuple[Method, ...] = get_args(Method)
Model = Literal["ibm2", "hmm", "fertility"]
MODELS: tuple[Model, ...] = get_args(Model)
MIN_NULL = 1e-6
MIN_TENSION, MAX_TENSION = 0.1, 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignConfig(Checked):
    """The ``align`` section of a configuration."""

    model: Model = setting(
        "ibm2",
        "model of alignments: hmm is initialised by ibm2; fertility, an HMM with fertilities whose links are "
        "sampled, by hmm",
    )
    symmetrize: Method = setting(
        "grow-diag-final-and",
        "method that combines both directions; none: only links of target words to source words",
    )
    threshold: float = setting(
        0.0,
        "link words whose posterior, the geometric mean of both directions, is at least this, in place of "
        "symmetrize; 0: none",
        least=0,
        most=1,
        metavar="P",
    )
    iterations: int = setting(5, "rounds of training (EM) of ibm2", least=1, most=1000, group="models")
    null: float = setting(
        0.2, "probability that a word has no counterpart", least=MIN_NULL, most=1 - MIN_NULL, metavar="P"
    )
    smoothing: float = setting(
        0.01,
        "parameter of the symmetric Dirichlet prior of word translations; 0: none",
        least=0,
        most=1000,
        metavar="A",
    )
    tension: float = setting(
        4.0,
        "initial tension of ibm2: how strongly links keep to the diagonal",
        least=MIN_TENSION,
        most=MAX_TENSION,
        metavar="T",
    )
    # The first round has no lexical knowledge yet. With more rounds the tension reinforces itself: it
    # doubles, and the alignment gets worse.
    tension_rounds: int = setting(
        2, "rounds in which the tension is fitted to the bitext; the first has no effect", least=0, most=1000
    )
    hmm_iterations: int = setting(3, "rounds of training (EM) of the HMM", least=1, most=1000)
    hmm_agreement: bool = setting(True, "train both directions of the HMM to agree")
    fertility_iterations: int = setting(12, "rounds of sampling", least=1, most=1000)
    fertility_smoothing: float = setting(
        0.001,
        "as smoothing, for the model fertility",
        least=1e-6,
        most=1000,
        metavar="A",
    )
    seed: int = setting(1, "of the random numbers of sampling", least=0, most=2**31 - 1)
    dictionary: PathKey | None = setting(
        None,
        "dictionary to learn from as well: a source phrase, a tab and its translation a line",
        metavar="FILE",
        group="dictionary",
    )
    dictionary_weight: int = setting(
        1, "how often an entry of the dictionary counts, as a sentence pair of its own", least=1, most=1000
    )


# The settings that only some models have.
OF_MODELS = {
    "hmm_iterations": ("hmm", "fertility"),
    "hmm_agreement": ("hmm", "fertility"),
    "fertility_iterations": ("fertility",),
    "fertility_smoothing": ("fertility",),
    "seed": ("fertility",),
}
