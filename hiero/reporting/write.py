"""Write the report of run directories to a file: ``hiero.report`` and ``hiero report``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from hiero.core.progress import Callback, Progress, shown_progress
from hiero.core.text import write_output
from hiero.reporting.gather import make_report
from hiero.reporting.page import page
from hiero.reporting.records import Report


def report(
    directory: str | Path,
    output: str | Path | None = None,
    *,
    compare: Sequence[str | Path] = (),
    form: Literal["html", "json"] = "html",
    examples: int = 6,
    sample: int = 40,
    set_name: str | None = None,
    threads: int = 1,
    allow_grammar_paths: bool = False,
    progress: Progress | Callback | None = None,
) -> Report:
    """Describe the directory of a run, or of tuning, as records; write a page of HTML if ``output`` is given.

    compare   directories of other runs; the first directory is the baseline
    form      of the output
    examples  sentences to show; 0: none
    sample    sentences to translate again for the mean values of features; 0: none
    set_name  the set of these sentences; by default the last that the weights do not depend on
    allow_grammar_paths  permit paths in ``<seg grammar=…>`` outside the directory of their text
    progress  an object, or a function of task, steps done, and steps; by default bars in notebooks, and
              nothing elsewhere
    """
    with shown_progress("report", progress) as shown:
        found = make_report(
            directory,
            compare,
            examples=examples,
            sample=sample,
            set_name=set_name,
            threads=threads,
            allow_grammar_paths=allow_grammar_paths,
            progress=shown,
        )
    if output is not None:
        text = page(found) if form == "html" else as_json(found)
        write_output(output, text.encode("utf-8", "replace"))
    return found


def as_json(found: Report) -> str:
    """A report as JSON, without pictures."""
    content = dataclasses.asdict(found)
    for curve in content["curves"]:
        del curve["picture"]
    # YAML has dates as well.
    return json.dumps(content, ensure_ascii=False, indent=1, default=str) + "\n"
