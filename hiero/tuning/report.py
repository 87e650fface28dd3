"""Log and table of a run's epochs, and warnings when training degenerates: symptom, and settings to try."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hiero.core.arrays import Floats
from hiero.core.errors import FormatError, HieroError
from hiero.core.text import parse_json, write_output
from hiero.learning.config import TuneSettings
from hiero.tuning.shard import MAX_NAMED, TuningSet

SHORT, LONG = 0.85, 1.15  # length of the translations divided by that of the references
FALLING = 3  # epochs in a row
BELOW_BEST = 2.0  # points of BLEU
EXPLODES = 30.0  # times, from one epoch to the next

MAY_BE_UNUSED = {
    "PassThrough",
    "Glue",
    "Bracket",
}  # if every word has a rule, and every sentence one that covers it

Record = Mapping[str, Any]


class Health:
    """Checks after each epoch. A warning is not repeated in consecutive epochs."""

    def __init__(self, config: TuneSettings) -> None:
        self.config = config
        self.log: list[Record] = []
        self.norms: list[float] = []
        self.largest = ""
        self._expected: set[str] = set()
        self._warned: set[str] = set()  # checks that failed after the last epoch
        self._skipped = {"no words": 0, "no reference": 0}

    def expect(self, names: Iterable[str]) -> None:
        """Set the features of the model, each of which should occur in some translation."""
        expected = list(itertools.islice(names, MAX_NAMED + 1))
        if len(expected) <= MAX_NAMED:
            self._expected = {
                name for name in expected if name not in MAY_BE_UNUSED and not name.endswith("_OOV")
            }

    def count(self, texts: TuningSet, numbers: Sequence[int]) -> None:
        """Count sentences without words or references, before decoding."""
        chosen = np.array(numbers, np.int64)
        blank = np.array([not segment.words for segment in texts.segments], np.bool_)[chosen]
        bare = ~texts.has_reference[chosen] & ~blank
        self._skipped = {"no words": int(blank.sum()), "no reference": int(bare.sum())}
        if blank.sum() + bare.sum() == len(chosen):
            found = f"{len(chosen)} sentences, none with words and a reference"
            raise HieroError(f"{texts.files.source}: found {found}, expected some to learn from")

    def look(self, record: Record, weight: Floats, largest: str) -> list[str]:
        """Check an epoch that is done; return warnings. ``largest`` names the feature of largest weight."""
        self.largest = largest
        self.log.append(record)
        self.norms.append(float(np.sqrt(weight @ weight)))
        if len(self.log) == 1:
            self._check_taught(record)
        notes = self._first() if len(self.log) == 1 else []
        checks = {
            "falls": self._falls(),
            "length": self._length(),
            "explodes": self._explodes(),
            "nothing": self._learns_nothing(),
            "unfinished": self._stopped_early(),
        }
        for name, note in checks.items():
            if note and name not in self._warned:
                notes.append(note)
        self._warned = {name for name, note in checks.items() if note}
        return notes

    # ---- sentences

    def _check_taught(self, record: Record) -> None:
        total = record["sentences"] + record["failed"]
        if record["failed"] >= total:
            hint = "are grammar and text of the same language, and prepared alike?"
            raise HieroError(f"found no derivation of any of {total} sentences, expected some ({hint})")

    def _first(self) -> list[str]:
        """Notes after the first epoch only."""
        record = self.log[0]
        counts = dict(self._skipped)
        counts["no derivation"] = record["failed"] - sum(counts.values())
        parts = [f"{number} {_have(number)} {what}" for what, number in counts.items() if number > 0]
        notes = []
        if parts:
            notes.append(
                f"of {record['sentences'] + record['failed']} sentences, {', '.join(parts)}: not learnt from"
            )
        if record.get("equal"):
            equal, total = record["equal"], record["sentences"]
            what = "all translations have the same score by the metric, so nothing is learnt from them"
            notes.append(f"in {equal} of {total} sentences {what}")
        fired = record.get("fired")
        if fired is not None:
            unused = sorted(self._expected - set(fired))
            if unused:
                features = f"feature{'' if len(unused) == 1 else 's'} {', '.join(unused)}"
                hint = "is a column of the grammar 0?"
                notes.append(f"no translation has the {features}; no weight is learnt ({hint})")
        return notes

    # ---- from epoch to epoch

    def _falls(self) -> str:
        bleu = [record["choose_bleu"] for record in self.log if "choose_bleu" in record]
        if len(bleu) < 2:
            return ""
        best = int(np.argmax(bleu))
        since = len(bleu) - 1 - best
        last = bleu[-FALLING - 1 :]
        falls = len(last) > FALLING and all(a > b for a, b in itertools.pairwise(last))
        if not falls and (since < 2 or bleu[best] - bleu[-1] < BELOW_BEST):
            return ""
        what = f"held-out BLEU fell from {bleu[best]:.2f} (epoch {best + 1}) to {bleu[-1]:.2f}"
        cure = self.config.row.advice.get("falls", "more sentences to learn from")
        return f"{what}: try {cure}, or fewer epochs"

    def _length(self) -> str:
        record = self.log[-1]
        key = "held_out_brevity" if "held_out_brevity" in record else "model_brevity"
        ratio = record.get(key)
        # The first epoch does not count: its weights are those to start from.
        if len(self.log) < 2 or ratio is None or SHORT <= ratio <= LONG:
            return ""
        where = "held-out" if key == "held_out_brevity" else "tuning"
        what = f"translations of the {where} set have {ratio:.2f} times the length of the references"
        advice = self.config.row.advice
        cures = [advice[key] for key in ("short" if ratio < 1 else "long", "diverge") if key in advice]
        if self.config.row.online and self.config.metric != "previous":
            cures.insert(0, "metric: previous (BLEU with the other sentences)")
        if self.config.start == "zero":
            cures.append("start: uniform")
        return f"{what}: try {' or '.join(cures) or 'another metric'}"

    def _explodes(self) -> str:
        if len(self.norms) < 2 or not self.norms[-2] or self.norms[-1] < EXPLODES * self.norms[-2]:
            return ""
        cure = self.config.row.advice.get("diverge", "a larger l2")
        grown = f"from {self.norms[-2]:.3g} to {self.norms[-1]:.3g} in an epoch"
        return f"the weights diverge: their norm grew {grown}, most of it {self.largest}; try {cure}"

    def _learns_nothing(self) -> str:
        if self.norms[-1] > 0:
            return ""
        if self.config.l1:
            return f"all weights are 0: try a smaller l1 than {self.config.l1}"
        return (
            "all weights are 0: no two translations of a sentence differ in the metric, or in their features"
        )

    def _stopped_early(self) -> str:
        record = self.log[-1]
        cure = self.config.row.advice.get("unfinished")
        if cure is None or record.get("fit_converged", 1.0):
            return ""
        steps = int(record["fit_iterations"])
        # L-BFGS also stops where no step decreases the objective; more iterations would not help.
        if steps < self.config.iterations:
            return ""
        many = "1 step" if steps == 1 else f"{steps} steps"
        return f"the weights had not converged after {many} within the epoch: try {cure}"


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _bleu(name: str) -> Callable[[Record], str]:
    def show(record: Record) -> str:
        if f"{name}_bleu" not in record:
            return "-"
        return f"{record[f'{name}_bleu']:.2f} ({record[f'{name}_brevity']:.3f})"

    return show


def _share(record: Record) -> str:
    pairs = record.get("pairs", 0)
    return f"{record['errors']} ({record['errors'] / pairs:.1%})" if pairs else "-"


def _seconds(record: Record) -> str:
    sentences = record["sentences"] + record["failed"]
    spent = record["decode_s"] + record.get("learn_s", 0.0)
    return f"{spent / sentences:.3f}" if sentences else "-"


EPOCH, CHOOSE = "epoch", "held out, odd lines"
Column = tuple[str, int, Callable[[Record], str]]


def columns(config: TuneSettings, held_out: bool) -> list[Column]:
    """Heading, width and content of each column. The number in brackets after BLEU is the brevity."""
    shown: list[Column] = [(EPOCH, 5, lambda record: str(record["epoch"]))]
    if held_out:
        shown.append((CHOOSE, 19, _bleu("choose")))
    shown.append(("weights", 9, lambda record: str(record["features"])))
    if config.row.online:
        shown.append(("pairs", 10, lambda record: str(record["pairs"])))
        shown.append(("errors", 17, _share))
    else:
        shown.append(("candidates", 10, lambda record: str(record["candidates"])))
        shown.append(("new", 9, lambda record: str(record["new_candidates"])))
    shown.append(("s/sentence", 10, _seconds))
    shown.append((config.on if config.on != EPOCH else "tuning", max(14, len(config.on)), _bleu("model")))
    if config.row.oracles:
        shown += [("oracle", 14, _bleu("oracle")), ("prediction", 14, _bleu("prediction"))]
    return shown


class Table:
    """Rows of cells for ``Progress.record``."""

    def __init__(self, config: TuneSettings, *, held_out: bool) -> None:
        self._columns = columns(config, held_out)

    def row(self, record: Record) -> dict[str, str]:
        return {name: show(record).rjust(width) for name, width, show in self._columns}


def read_log(run_dir: str | Path) -> list[dict[str, Any]]:
    """Read the log of a run: the records of the epochs that are done, without an incomplete last line."""
    return list(_log_lines(Path(run_dir) / "log.jsonl"))


def _log_lines(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
            try:
                yield dict(parse_json(line))
            except (ValueError, TypeError):
                raise FormatError(path, number, found="damage", expected="the record of an epoch") from None


def append_log(run_dir: str | Path, record: dict[str, Any]) -> None:
    """Append an epoch to the log that is reported; the file is replaced as a whole, no line is incomplete."""
    path = Path(run_dir) / "log.jsonl"
    before = path.read_bytes() if path.exists() else b""
    write_output(path, before + json.dumps(record).encode() + b"\n")
