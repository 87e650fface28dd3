"""What to tell whoever tunes when training goes wrong, or learns nothing: what is seen, and what to do."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hiero.errors import HieroError
from hiero.tune.data import TuningSet
from hiero.tune.decoding import MANY
from hiero.tune.settings import ITERATIONS, TuneConfig

SHORT, LONG = 0.85, 1.15  # translations by the length of the references
FALLING = 3  # epochs in a row
BELOW_BEST = 2.0  # points of BLEU
EXPLODES = 30.0  # times, from one epoch to the next

MAY_BE_SILENT = {"PassThrough", "Glue"}  # where every word has a rule, and every sentence one for all of it

Record = Mapping[str, Any]


class Health:
    """Looks at one epoch after the other; says each thing once, until it has been well again."""

    def __init__(self, config: TuneConfig) -> None:
        self.config = config
        self.log: list[Record] = []
        self.norms: list[float] = []
        self.largest = ""
        self._expected: set[str] = set()
        self._ill: set[str] = set()
        self._skipped = {"no words": 0, "no reference": 0}

    def expect(self, names: Iterable[str]) -> None:
        """The features of the model, of which some translation should have each."""
        some = list(itertools.islice(names, MANY + 1))
        if len(some) <= MANY:
            self._expected = {
                name for name in some if name not in MAY_BE_SILENT and not name.endswith("_OOV")
            }

    def count(self, texts: TuningSet, numbers: Sequence[int]) -> None:
        """Look at the sentences to learn from, before they are decoded."""
        chosen = np.array(numbers, np.int64)
        blank = np.array([not segment.words for segment in texts.segments], np.bool_)[chosen]
        bare = ~texts.has_reference[chosen] & ~blank
        self._skipped = {"no words": int(blank.sum()), "no reference": int(bare.sum())}
        if blank.sum() + bare.sum() == len(chosen):
            found = f"{len(chosen)} sentences, none with words and a reference"
            raise HieroError(f"{texts.files.source}: found {found}, expected some to learn from")

    def look(self, record: Record, weight: npt.NDArray[np.float64], largest: str) -> list[str]:
        """An epoch is done; what is wrong. ``largest`` is the name of the largest of the weights."""
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
            if note and name not in self._ill:
                notes.append(note)
        self._ill = {name for name, note in checks.items() if note}
        return notes

    # ---- sentences

    def _check_taught(self, record: Record) -> None:
        total = record["sentences"] + record["failed"]
        if record["failed"] >= total:
            hint = "are grammar and text of the same language, and prepared alike?"
            raise HieroError(f"found {total} sentences and not one derivation, expected some ({hint})")

    def _first(self) -> list[str]:
        """What is counted, and said once."""
        record = self.log[0]
        counts = dict(self._skipped)
        counts["no derivation"] = record["failed"] - sum(counts.values())
        said = [f"{number} {_have(number)} {what}" for what, number in counts.items() if number > 0]
        notes = []
        if said:
            notes.append(
                f"of {record['sentences'] + record['failed']} sentences, {', '.join(said)}: not learnt from"
            )
        if record.get("equal"):
            equal, total = record["equal"], record["sentences"]
            what = "all translations are equally good by the metric, which teaches nothing"
            notes.append(f"in {equal} of {total} sentences {what}")
        fired = record.get("fired")
        if fired is not None:
            silent = sorted(self._expected - set(fired))
            if silent:
                one = len(silent) == 1
                what = f"{'a feature' if one else 'features'} that no translation has: {', '.join(silent)}"
                hint = "is a column of the grammar 0?"
                notes.append(f"{what}; nothing is learnt for {'it' if one else 'them'} ({hint})")
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
        cure = {"mira": "a smaller c", "kbmira": "a smaller c", "adagrad": "a lower rate or a larger l1"}
        other = "a larger l2" if self.config.algorithm == "pro" else "more sentences to learn from"
        if self.config.is_online:
            other = "a lower rate"
        return f"{what}: try {cure.get(self.config.algorithm, other)}, or fewer epochs"

    def _length(self) -> str:
        record = self.log[-1]
        key = "held_out_brevity" if "held_out_brevity" in record else "model_brevity"
        ratio = record.get(key)
        # With the first weights of all, anything may happen.
        if len(self.log) < 2 or ratio is None or SHORT <= ratio <= LONG:
            return ""
        where = "held-out" if key == "held_out_brevity" else "tuning"
        what = f"translations of the {where} set have {ratio:.2f} times the length of the references"
        cures = []
        if self.config.algorithm == "mert":
            cures.append("more restarts")
        elif self.config.algorithm == "pro":
            # BLEU + 1 prefers short translations, nakov makes up for more than that.
            cures += ["metric: liang", "largest: false"] if ratio < 1 else ["metric: lin"]
        elif self.config.is_online and self.config.metric != "previous":
            cures.append("metric: previous (BLEU with the other sentences)")
        if self.config.rate or self.config.c:
            cures.append("a lower rate" if self.config.rate else "a smaller c")
        if self.config.start == "zero":
            cures.append("start: uniform")
        return f"{what}: try {' or '.join(cures) or 'another metric'}"

    def _explodes(self) -> str:
        if len(self.norms) < 2 or not self.norms[-2] or self.norms[-1] < EXPLODES * self.norms[-2]:
            return ""
        cure = "a lower rate" if self.config.rate else "a smaller c" if self.config.c else "a larger l2"
        grown = f"from {self.norms[-2]:.3g} to {self.norms[-1]:.3g} in an epoch"
        return f"the weights explode: their norm grew {grown}, most of it {self.largest}; try {cure}"

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
        if self.config.algorithm != "pro" or record.get("fit_converged", 1.0):
            return ""
        steps = int(record["fit_iterations"])
        # L-BFGS also gives up where no step leads further down, and that more of them would not change.
        if steps < (self.config.iterations or ITERATIONS):
            return ""
        many = "1 step" if steps == 1 else f"{steps} steps"
        return f"the weights had not settled after {many} within the epoch: try more iterations"


def _have(number: int) -> str:
    return "has" if number == 1 else "have"
