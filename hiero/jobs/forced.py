"""Forced decoding of a text: each sentence with its given translations, or with beginnings to complete."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from typing import Any

from hiero.config.config import Config
from hiero.core.errors import FormatError
from hiero.core.input import BARS, parse_with_reference
from hiero.core.progress import Progress
from hiero.core.text import Segment, split_words
from hiero.decoder.forced import Completer, ForcedDecoding
from hiero.decoder.output import TranslationWriter, json_text, rounded, translation_record
from hiero.decoder.statistics import Statistics
from hiero.evaluation.hypotheses import read_candidates
from hiero.jobs.translate import BY_PREP, Block, Job, JobSettings, counted, file_state, list_translations


class ForcedJob(Job):
    """Finds the derivations of given translations: those in the text after |||, or those of a file.

    hypotheses  file with translations of the sentences of the text; empty if the text has them
    """

    MAKES_WORDS = BY_PREP

    def __init__(
        self, settings: JobSettings, config: Config, progress: Progress, hypotheses: str | None = None
    ) -> None:
        super().__init__(settings, config, progress)
        self.hypotheses = hypotheses
        self._candidates = {} if hypotheses is None else read_candidates(hypotheses)

    def _more_settings(self) -> list[Any]:
        return ["force", file_state(self.hypotheses) if self.hypotheses else None]

    def _read(self, text: str, number: int) -> Segment:
        if self.hypotheses:
            return super()._read(text, number)
        return parse_with_reference(text, self.path, number, self.config.search.form)

    def _targets(self, segment: Segment, number: int) -> list[tuple[str, ...]]:
        if self.hypotheses:
            for name in (segment.name, str(number - 1)):
                if name in self._candidates:
                    return [split_words(text) for text in self._candidates[name]]
            expected = f"one for each line of {self.path}"
            found = f"no translation of sentence {segment.name or number - 1}"
            raise FormatError(self.hypotheses, 0, found=found, expected=expected)
        if segment.reference is None:
            if not segment.words:
                return []
            hint = "or give translations in a file: --hypotheses"
            expected = "source ||| translation"
            raise FormatError(self.path, number, found="no |||", expected=expected, hint=hint)
        return _split_at_bars(segment.reference)

    def _block(self, segment: Segment, number: int, statistics: Statistics) -> Block:
        targets = self._targets(segment, number)
        found = self.model.force_all(segment, targets, statistics)
        if self.settings.forest:
            for place, one in enumerate(found or self.model.force_all(segment, [()])):
                path = self._forest_path(number - 1)
                if place:
                    path = path.with_name(f"{number - 1}.{place}.{self.settings.forest_format}")
                one.forest.save(path)
        name = segment.name or str(number - 1)
        writer, merged = TranslationWriter(self.style), set[str]()
        records, lines = list[dict[str, Any]](), list[str]()
        for one in found:
            features = self.features_of(one.forest)
            listed = one.forest.kbest(max(self.config.search.kbest, 1), unique=False) if one else []
            if self.style == "json":
                records.append(
                    {
                        "text": " ".join(one.target),
                        "reachable": one.reachable,
                        "score": rounded(one.score) if one else None,
                        "longest_match": _match(one),
                        "missing": list(one.missing),
                        "translations": [translation_record(d, features.of_derivation(d)) for d in listed],
                    }
                )
            elif self.style == "text":
                fields = [name, writer.escaped(" ".join(one.target)), f"{one.score:.9g}"]
                lines.append(" ||| ".join([*fields, *([] if one else [one.why()])]) + "\n")
            else:
                lines.append(writer.lines(name, segment.words, listed, features.of_derivation))
            merged |= features.merged
        if self.style == "json":
            lines = [json_text({"id": name, "source": list(segment.words), "hypotheses": records})]
        return Block("".join(lines), writer.num_escaped, frozenset(merged), False)

    def report(self) -> None:
        super().report()
        found = self.statistics
        if found.failed:
            pairs = counted(found.sentences, "pair has", "pairs have")
            self.progress.say(f"{found.failed} of {pairs} no derivation")


def _split_at_bars(words: Sequence[str]) -> list[tuple[str, ...]]:
    found: list[list[str]] = [[]]
    for word in words:
        if word == BARS:
            found.append([])
        else:
            found[-1].append(word)
    return [tuple(one) for one in found]


def _match(found: ForcedDecoding) -> dict[str, list[int]] | None:
    if found.longest is None:
        return None
    return {"source": list(found.longest.source), "target": list(found.longest.target)}


class PrefixJob(Job):
    """Completes the beginnings of translations that the text has after |||.

    partial  the last word of a beginning may be incomplete, unless a space follows it
    """

    MAKES_WORDS = BY_PREP

    def __init__(
        self, settings: JobSettings, config: Config, progress: Progress, *, partial: bool = False
    ) -> None:
        super().__init__(settings, config, progress)
        self.partial = partial
        self._lock = threading.Lock()
        self.num_edited = 0  # sentences whose beginning the grammar does not yield

    def _more_settings(self) -> list[Any]:
        return ["prefix", self.partial]

    def _read(self, text: str, number: int) -> Segment:
        segment = parse_with_reference(text, self.path, number, self.config.search.form)
        if segment.reference is not None and text.endswith((" ", "\t")):
            # An empty word at last: the one before is complete.
            segment = dataclasses.replace(segment, reference=(*segment.reference, ""))
        return segment

    def _block(self, segment: Segment, number: int, statistics: Statistics) -> Block:
        if segment.reference is None and segment.words:
            hint = "nothing after ||| for a translation without a given beginning"
            expected = "source ||| beginning of the translation"
            raise FormatError(self.path, number, found=f"no {BARS}", expected=expected, hint=hint)
        completer = Completer(self.model, segment, statistics)
        found = completer.complete(" ".join(segment.reference or ()), partial=self.partial)
        statistics.score += found.best.score if found.forest else 0.0
        statistics.failed += not found.forest
        features, writer = self.features_of(found.forest), TranslationWriter(self.style)
        listed = list_translations(found.forest, self.config.search, self.config.consensus)
        record = {
            "words": list(found.prefix),
            "partial": found.partial,
            "reachable": found.reachable,
            "edited": found.edited(found.best),
        }
        name = segment.name or str(number - 1)
        if self.style == "text":
            text = (listed[0].text if listed else found.text) + "\n"
        else:
            text = writer.lines(name, segment.words, listed, features.of_derivation, {"prefix": record})
        if self.settings.forest:
            found.forest.save(self._forest_path(number - 1))
        with self._lock:
            self.num_edited += not found.reachable
        is_failure = bool(segment.words) and not found.forest
        return Block(text, writer.num_escaped, frozenset(features.merged), is_failure)

    def report(self) -> None:
        super().report()
        if self.num_edited:
            lines = counted(self.num_edited, "beginning is", "beginnings are")
            self.progress.say(f"{lines} not reachable with the grammar; words of them were inserted as given")
