"""Translation of a text whose post-edits are learnt from, sentence by sentence."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator

from hiero.adaptation.adapter import Adapter
from hiero.core.errors import FormatError, HieroError
from hiero.core.input import parse_json_line, parse_with_reference
from hiero.core.text import Segment, decode_line
from hiero.decoder.forest import Forest
from hiero.decoder.statistics import Statistics
from hiero.jobs.resumable_output import ResumableOutput, StandardOutput
from hiero.jobs.translate import BY_PREP, Job, counted


class AdaptJob(Job):
    """Translates each line with what was learnt from the post-edits of the lines before.

    A line is a sentence, ``source ||| post-edit``, or a JSON object with ``source``, ``post_edit`` or both; a
    post-edit alone is that of the sentence before.
    """

    MAKES_WORDS = BY_PREP
    adapter: Adapter

    def _parse(self, text: str, number: int) -> tuple[Segment, str]:
        if text.lstrip(" \t").startswith("{"):  # an error in it ends the run: the next line may depend on it
            form = self.config.search.form
            return parse_json_line(text, self.path, number, form, edits=True), ""
        return super()._parse(text, number)

    def _read(self, text: str, number: int) -> Segment:
        return parse_with_reference(text, self.path, number, self.config.search.form)

    def _decode(
        self, output: ResumableOutput | StandardOutput, lines: Iterator[bytes], total: int | None
    ) -> None:
        own = self.config.adapt
        skipped = Counter[str]()
        settings = dataclasses.asdict(own)
        del settings["aligner"], settings["state"]
        with Adapter(self.model, own.aligner, state=own.state, **settings) as self.adapter:
            if self.adapter.num_pairs:
                pairs = counted(self.adapter.num_pairs, "post-edit", "post-edits")
                self.progress.say(f"{own.state}: continues after {pairs}")
            self.progress.begin(total)
            before: Segment | None = None
            for number, line in enumerate(lines, 1):
                segment, _ = self._parse(decode_line(line, number)[0], number)
                is_edit = line.lstrip().startswith(b"{") and b'"source"' not in line
                if is_edit and before is None:
                    expected = "the sentence in the line before, or source beside post_edit"
                    raise FormatError(self.path, number, found="a post-edit alone", expected=expected)
                if not is_edit:
                    result = self._translate((number, line))
                    output.write(result.block, line)
                    self._account(result, number)
                    before = segment
                if segment.reference is not None and before is not None:
                    try:
                        step = self.adapter.adapt(before, " ".join(segment.reference))
                    except HieroError as error:
                        raise self._located(error, number) from error
                    if step.skipped:
                        skipped[step.skipped.partition(",")[0]] += 1
                self.progress.advance(1, f"{self.statistics.mean_score:.3f} mean score")
            num_pairs = self.adapter.num_pairs
        self.progress.say(f"adapted to {counted(num_pairs, 'post-edit', 'post-edits')}")
        if skipped:
            found = counted(skipped.total(), "post-edit was", "post-edits were")
            self.progress.say(f"{found} not learnt from: {', '.join(skipped)}")

    def _forest(self, segment: Segment, statistics: Statistics) -> Forest:
        return self.adapter.parse(segment, statistics)
