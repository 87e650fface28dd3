"""Learning while it translates: post-edited sentences change the weights and the rules of a model.

After each sentence and its post-edit, the weights take a step by the translations that were listed before,
and the pair, whose words are aligned, becomes a part of the model's bitext index. Language models do not
change.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol

import numpy as np

from hiero.adaptation.config import AdaptConfig
from hiero.adaptation.state import AdaptState, EditedPair
from hiero.alignment.model import AlignmentModel, read_model
from hiero.bins.bins import Binned
from hiero.bitext.corpus import Bitext, text_of
from hiero.core.errors import ConfigError, HieroError, did_you_mean
from hiero.core.text import Segment, parse_segment, split_words
from hiero.decoder.derivation import Derivation
from hiero.decoder.forest import Forest
from hiero.decoder.model import Model
from hiero.decoder.statistics import Statistics
from hiero.evaluation.bleu import References
from hiero.extraction.extractor import IndexSource
from hiero.extraction.growing import GrowingSource, LinkedPair
from hiero.features.names import Names
from hiero.features.weights import Weights
from hiero.grammar.rules import GrammarSource
from hiero.learning.candidates import NotFinite, candidates
from hiero.learning.config import TuneConfig
from hiero.learning.learner import Example, Learner, LearnerContext, make_learner
from hiero.tuning.vectors import WeightVector, spelled_vector


class HasAlignmentModel(Protocol):
    """A ``hiero.Aligner``."""

    @property
    def model(self) -> AlignmentModel: ...


class AdaptStep(NamedTuple):
    """What an adapter did with a sentence and its post-edit.

    learnt   the weights took a step, which may be 0
    added    the pair was added to the index
    skipped  why nothing was done, or empty
    """

    learnt: bool
    added: bool
    skipped: str = ""


class Adapter:
    """Translates with a model, and adapts it to post-edits.

    model     the given model is not changed
    aligner   a ``hiero.Aligner``, or the directory of a saved one; needed unless ``grow`` is false
    state     directory in which pairs and weights are kept; if it exists, it is continued
    settings  of ``hiero.adaptation.config.AdaptConfig``, as the flags of ``hiero decode --adapt``

    >>> adapter = hiero.Adapter(model, "de-en.aligner")     # doctest: +SKIP
    >>> adapter.translate("das haus").text                  # doctest: +SKIP
    >>> adapter.adapt("das haus", "the building")           # doctest: +SKIP
    """

    def __init__(
        self,
        model: Model,
        aligner: HasAlignmentModel | str | Path | None = None,
        *,
        state: str | Path | None = None,
        **settings: Any,
    ) -> None:
        self.settings = _configured(settings)
        self.symbols = model.symbols
        self._last: tuple[Segment, Forest] | None = None
        self.vector = WeightVector(self.symbols)
        start = model.weights
        base = ""
        model = copy.copy(model)
        self._source: GrowingSource | None = None
        self._aligner: AlignmentModel | None = None
        if self.settings.grow:
            model.sources, self._source = _growing(model)
            base = self._source.growing.index.digest
            if aligner is None:
                raise HieroError("adapting: no word aligner (hiero align --save-model; or --no-grow)")
            self._aligner = read_model(Path(aligner)) if isinstance(aligner, str | Path) else aligner.model
        self.num_pairs = 0
        self._state: AdaptState | None = None
        memory = None
        if state is not None:
            made_with = dataclasses.asdict(self.settings)
            made_with |= {"index": hashlib.sha256(base.encode()).hexdigest(), "weights": _digest(start)}
            made_with |= {"features": model.features.names}
            self._state = AdaptState(state, {k: v for k, v in made_with.items() if k not in PLACES})
        try:
            if self._state is not None and self._state.exists:
                memory = self._state.read(self.vector)
                self.num_pairs = self._state.num_pairs
            else:
                _copy_weights(start, self.vector)
            self.model = model.with_weights(self.vector)
            self._learner = self._new_learner()
            if self._state is not None:
                if memory is not None and self._learner is not None:
                    self._state.restore(self._learner, memory)
                pairs = [_aligned(pair) for pair in self._state.pairs()]
                if self._source is not None:
                    self._source.add(pairs)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<Adapter: {self.num_pairs:,} post-edits; {self.model!r}>"

    @property
    def weights(self) -> Weights:
        """The present weights, a copy."""
        return self.vector.as_weights()

    def parse(self, source: str | Segment, statistics: Statistics | None = None) -> Forest:
        """The forest of a sentence by the present model."""
        segment = _segment(source)
        forest = self.model.parse(segment, statistics)
        self._last = segment, forest
        return forest

    def translate(self, source: str | Segment) -> Derivation:
        """The best translation of a sentence by the present model."""
        forest = self.parse(source)
        return forest.viterbi() if forest else Derivation.none(forest, -np.inf if forest.source else 0.0)

    def adapt(self, source: str | Segment, post_edit: str) -> AdaptStep:
        """Learn from a sentence and its translation as it should be."""
        segment, target = _segment(source), split_words(post_edit)
        if segment.lattice is not None:
            return AdaptStep(False, False, "a lattice")
        longest = max(len(segment.words), len(target))
        if not segment.words or not target:
            return AdaptStep(False, False, "an empty side")
        if longest > self.settings.max_words:
            return AdaptStep(False, False, f"{longest} words, more than max_words")
        learnt = self._learner is not None and self._learn(segment, target)
        pair = EditedPair(" ".join(segment.words), " ".join(target), ())
        if self._source is not None:
            pair = pair._replace(links=self._links(pair))
            self._source.add([_aligned(pair)])
        self._last = None
        self.num_pairs += 1
        if self._state is not None:
            memory = {} if self._learner is None else self._learner.state()
            self._state.add(pair, self.vector, memory)
        return AdaptStep(learnt, self._source is not None)

    def close(self) -> None:
        """Release the directory of the state, which is complete after each ``adapt``."""
        if self._state is not None:
            self._state.close()

    def __enter__(self) -> Adapter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _new_learner(self) -> Learner | None:
        own = self.settings
        if own.learner == "none":
            return None
        config = TuneConfig(algorithm=own.learner, kbest=own.kbest, metric=own.metric, c=own.c, rate=own.rate)
        learner: Learner = make_learner(config.resolved(), LearnerContext())
        return learner

    def _learn(self, segment: Segment, target: Sequence[str]) -> bool:
        """Take a step by the translations before the pair is in the index, where it would be found again."""
        if self._last is None or self._last[0].words != segment.words:
            self.parse(segment)
        assert self._last is not None
        assert self._learner is not None
        forest = self._last[1]
        if not forest:
            return False
        found = candidates(forest, self.settings.kbest, self.vector.index)
        self.vector.grow()
        reference = self.symbols.words.intern_all(word.encode() for word in target)
        references = References([[reference]])
        statistics = references.batch_statistics(
            np.array([0]), np.array([0, found.size]), found.first_word, found.word
        )
        example = Example(self.num_pairs, len(segment.words), found, statistics, len(reference))
        try:
            self._learner.learn([example], self.vector.value)
        except NotFinite as error:
            raise error.named(Names(self.symbols).name(self.vector.index.key(error.feature))) from None
        self.model.weights_changed()
        return True

    def _links(self, pair: EditedPair) -> list[tuple[int, int]]:
        assert self._aligner is not None
        sides = (text_of([f"{side}\n".encode()]) for side in (pair.source, pair.target))
        return [(s, t) for s, t in self._aligner.aligned(Bitext(*sides)).link.tolist()]


PLACES = ("aligner", "state")  # settings that may differ when a state is continued


def _configured(settings: dict[str, Any]) -> AdaptConfig:
    names = [field.name for field in dataclasses.fields(AdaptConfig) if field.name not in PLACES]
    for name in settings:
        if name not in names:
            raise ConfigError(f"Adapter: unknown argument {name!r}; {did_you_mean(name, names)}")
    return AdaptConfig(**settings)


def _segment(source: str | Segment) -> Segment:
    return source if isinstance(source, Segment) else parse_segment(source.removesuffix("\n"))


def _aligned(pair: EditedPair) -> LinkedPair:
    src, tgt = ([word.encode() for word in side.split(" ")] for side in (pair.source, pair.target))
    return LinkedPair(src, tgt, pair.links)


def _growing(model: Model) -> tuple[tuple[GrammarSource, ...], GrowingSource]:
    """The sources of a model with its index replaced by one that grows."""
    sources: list[GrammarSource] = []
    found: list[GrowingSource] = []
    for source in model.sources:
        plain = source.source if isinstance(source, Binned) else source
        if isinstance(plain, IndexSource):
            found.append(GrowingSource(plain))
            source = Binned(found[-1], model.bins, model.symbols) if model.bins else found[-1]
        sources.append(source)
    if len(found) != 1:
        hint = "adapting adds pairs to one grammar that is an index of hiero index; see --no-grow"
        raise HieroError(
            f"the model has {len(found) or 'no'} bitext {'indexes' if found else 'index'} ({hint})"
        )
    return tuple(sources), found[0]


def _digest(weights: Weights) -> str:
    lines = (f"{name} {value!r}\n" for name, value in sorted(weights.items()))
    return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()


def _copy_weights(weights: Weights, vector: WeightVector) -> None:
    value, index = weights.vector(), weights.index
    if weights.has_shared_names:
        value, index = spelled_vector(weights)
    chosen = np.flatnonzero(value)
    ids = vector.index.intern_all([index.key(feature) for feature in chosen.tolist()])
    vector.grow()
    vector.value[ids] = value[chosen]
