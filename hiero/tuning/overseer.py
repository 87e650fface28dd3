"""Progress of a loop, its epochs, and warnings about them, passed on to a display."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from hiero.core import progress as watching
from hiero.core.symbols import Symbols
from hiero.features.index import FeatureIndex
from hiero.features.names import Names
from hiero.tuning.report import Health
from hiero.tuning.vectors import read_vectors


class TuneWatch(watching.Progress, Protocol):
    """Display of the progress of tuning."""

    def epoch(self, record: Mapping[str, Any]) -> None:
        """Show an epoch that is done; ``record`` is its line of ``log.jsonl``."""


class Silent(watching.SilentProgress):
    """Display nothing."""

    def epoch(self, record: Mapping[str, Any]) -> None:
        pass


class Overseer:
    """Progress of a loop passed on to a display, with warnings after each epoch."""

    def __init__(self, watch: TuneWatch, health: Health, directory: Path) -> None:
        self.watch, self.health, self.directory = watch, health, directory
        self._done = 0

    def resume(self, log: Sequence[Mapping[str, Any]]) -> None:
        """Show the epochs of an earlier run, without its warnings."""
        for done in log:
            self._look(done)
            self.watch.epoch(done)

    def _look(self, record: Mapping[str, Any]) -> list[str]:
        path = self.directory / "epochs" / f"{record['epoch']:02d}" / "answer.npz"
        symbols, index = Symbols(), FeatureIndex()
        ids, values = read_vectors(path, symbols, index)
        weight = values["weight"]
        largest = int(ids[np.argmax(np.abs(weight))]) if len(ids) else -1
        name = Names(symbols).name(index.key(largest)) if len(ids) else ""
        return self.health.look(record, weight, name)

    def begin(self, what: str, total: int) -> None:
        self._done = 0
        self.watch.begin(total, what)

    def reach(self, done: int) -> None:
        if done > self._done:
            self.watch.advance(done - self._done)
            self._done = done

    def epoch(self, record: Mapping[str, Any]) -> None:
        self.watch.epoch(record)
        for note in self._look(record):
            self.watch.say(note)
