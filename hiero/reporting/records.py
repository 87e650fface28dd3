"""What a report says, as plain records: ``dataclasses.asdict`` of them is the JSON of ``hiero report``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

DONE, NOT_DONE, STOPPED, RUNNING = "done", "not done", "stopped", "running"


@dataclass
class StageReport:
    """A stage of a run.

    state    DONE, NOT_DONE, STOPPED or RUNNING
    reason   why it stopped
    seconds, cpu_seconds, compile_seconds, peak_mb  None where they are not known
    """

    name: str
    state: str
    reason: str = ""
    seconds: float | None = None
    cpu_seconds: float | None = None
    compile_seconds: float | None = None
    peak_mb: float | None = None
    threads: int | None = None
    finished: str = ""
    figures: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass
class TuningReport:
    """The epochs of tuning.

    name    of the stage
    epochs  figures of each epoch, by their names in the log of tuning
    chosen  number of the chosen epoch, from 1; 0 if there is none yet
    """

    name: str
    on: str
    held_out: str | None
    epochs: list[dict[str, float]]
    chosen: int


@dataclass
class SystemReport:
    """A run directory.

    kind      ``run`` (of hiero run) or ``tune``
    complete  whether all that the configuration asks for is done
    problems  what is missing or could not be read, a sentence each
    model     facts about the model; files with their digests
    """

    name: str
    path: str
    kind: str
    complete: bool = False
    problems: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, str] = field(default_factory=dict)
    finished: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    stages: list[StageReport] = field(default_factory=list)
    tunings: list[TuningReport] = field(default_factory=list)
    grid: str = ""
    model: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


@dataclass
class SetScores:
    """The scores of a set: what ``hiero eval --format json`` writes of it.

    name     of the set
    problem  why other systems are not compared
    """

    name: str
    scores: dict[str, Any]
    problem: str = ""


@dataclass
class StepReport:
    """An application of a rule in a derivation, in pre-order."""

    depth: int
    category: str
    source: str
    target: str
    source_span: tuple[int, int]
    target_span: tuple[int, int]
    score: float


@dataclass
class DerivationReport:
    """The best derivation of a sentence, decoded again with the model of a system.

    source    the words, or the arcs of a lattice, as the system read them
    features  name, value and weight, by the size of their product
    more      features left out
    links     source and target positions
    """

    source: list[str]
    text: str
    score: float
    steps: list[StepReport]
    links: list[tuple[int, int]]
    features: list[tuple[str, float, float]]
    more: int = 0


@dataclass
class OutputReport:
    """The translation of a sentence by a system, its sentence BLEU, and how it came about."""

    system: str
    text: str
    bleu: float
    derivation: DerivationReport | None = None
    problem: str = ""


@dataclass
class ExampleReport:
    """A sentence of a set, with the translations of all systems.

    number  its line, from 1
    why     why it was chosen
    """

    number: int
    why: str
    source: str
    references: list[str]
    outputs: list[OutputReport] = field(default_factory=list)


@dataclass
class ExamplesReport:
    """Sentences of a set.

    rule     how they were chosen
    problem  why there are none
    """

    set: str = ""
    rule: str = ""
    sentences: list[ExampleReport] = field(default_factory=list)
    problem: str = ""


@dataclass
class FeatureReport:
    """A feature: its weight and its mean value in each system, None where it has none."""

    name: str
    weights: list[float | None]
    means: list[float | None]


@dataclass
class FeaturesReport:
    """The heaviest features.

    numbers    of weights in each system; None where there are none
    sentences  number of sentences of which the mean values are; 0 without mean values
    """

    numbers: list[int | None] = field(default_factory=list)
    sentences: int = 0
    by_weight: list[FeatureReport] = field(default_factory=list)
    by_share: list[FeatureReport] = field(default_factory=list)


@dataclass
class CurveReport:
    """The weights of the bins of a feature, and a picture of them, which JSON does not have."""

    system: str
    feature: str
    begin: list[float]
    weight: list[float]
    picture: str = field(repr=False)


@dataclass
class AlignedPair:
    """A sentence pair of the training data with its links."""

    number: int
    source: list[str]
    target: list[str]
    links: list[tuple[int, int]]


@dataclass
class Report:
    """A report of one run directory, or of several side by side; the first is the one compared with."""

    systems: list[SystemReport]
    scores: list[SetScores] = field(default_factory=list)
    differences: dict[str, list[str]] = field(default_factory=dict)  # settings that differ, as YAML
    features: FeaturesReport = field(default_factory=FeaturesReport)
    curves: list[CurveReport] = field(default_factory=list)
    examples: ExamplesReport = field(default_factory=ExamplesReport)
    alignments: list[AlignedPair] = field(default_factory=list)
    hiero: str = ""
