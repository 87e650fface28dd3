"""Read tuning runs: their logs, and translations of the held-out set with their weights.

A run is a directory with ``log.jsonl`` and ``weights.NN.gz``, written by ``hiero tune``; folder ``tune`` of
``hiero run`` is one, too. The epoch is chosen on odd lines of the held-out set; even ones are translated.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hiero.config.config import Config, read_config
from hiero.config.model import make_model, model_config
from hiero.config.sections import WeightsSection
from hiero.core.errors import ConfigError, FormatError
from hiero.core.parallel import in_order
from hiero.core.symbols import Symbols
from hiero.core.text import write_output
from hiero.features.feature_set import TEMPLATE_OF, TEMPLATES, expanded
from hiero.features.index_kernels import NAME
from hiero.features.weights import Weights, read_weights
from hiero.tuning.held_out import choose_epoch, held_out_score
from hiero.tuning.report import read_log
from hiero.tuning.shard import SetFiles, TuningSet

SAME = 0.005  # points of BLEU: larger differences mean that the model has changed
CLOSE = 0.1  # points of BLEU from the best, for convergence

Statistics = npt.NDArray[np.float64]  # of BLEU, a row for each line


@dataclass(frozen=True)
class Run:
    """A run of a system. Several runs of one system, as with different seeds, differ in ``label``."""

    system: str
    label: str
    directory: Path
    log: list[dict[str, Any]]

    @property
    def name(self) -> str:
        return f"{self.system}#{self.label}" if self.label else self.system

    @property
    def epoch(self) -> int:
        """The chosen epoch, from 1."""
        return choose_epoch(self.log)

    @property
    def chosen(self) -> dict[str, Any]:
        return self.log[self.epoch - 1]

    @property
    def converged(self) -> int | None:
        """The first epoch within a tenth of a point of the best one."""
        if "choose_bleu" not in self.log[0]:
            return None
        bleu = [record["choose_bleu"] for record in self.log]
        return 1 + next(i for i, found in enumerate(bleu) if found >= max(bleu) - CLOSE)

    @property
    def seconds(self) -> tuple[float, float]:
        """Median wall-clock and CPU seconds of an epoch, including held-out decoding.

        The time of an interrupted epoch is only that after the interruption. Processes and clusters report
        only decoding and learning; other times are not known to this process.
        """
        cpu = [max(record["cpu_s"], record["decode_s"] + record.get("learn_s", 0.0)) for record in self.log]
        wall = [record["wall_s"] for record in self.log]
        return float(np.median(wall)), float(np.median(cpu))

    @property
    def weights(self) -> Path:
        return self.directory / f"weights.{self.epoch:02d}.gz"


def read_run(spec: str) -> Run:
    """``NAME=DIR`` or ``NAME#LABEL=DIR``."""
    name, equals, directory = spec.partition("=")
    system, _, label = name.partition("#")
    if not equals or not system or not directory:
        raise ConfigError(f"found {spec!r}, expected NAME=DIR, or NAME#SEED=DIR for one of several")
    return run_in(Path(directory), system, label)


def run_in(directory: Path, system: str, label: str = "") -> Run:
    log = read_log(directory)
    if not log:
        raise FormatError(directory, 0, found="no epoch that is done", expected="a run with log.jsonl")
    return Run(system, label, directory, log)


# ---- translating


class HeldOut:
    """The even lines of a set, and the model that translates them with the weights of a run."""

    def __init__(self, config: Config, name: str | None, threads: int) -> None:
        self.config, self.threads = config, threads
        name = name or (config.tune.held_out if config.tune else None) or "devtest"
        if name not in config.data or not config.data[name].translations:
            raise ConfigError(f"data: found no set {name} with references, expected it")
        section = config.data[name]
        base = "" if any(g.per_sentence for g in config.grammar) else str(Path(section.source).parent)
        self.files = SetFiles(section.source, tuple(section.translations), base=base)
        self.symbols = Symbols()
        self.texts = TuningSet(self.files, self.symbols)
        self.numbers = range(1, len(self.texts), 2)

    def statistics(self, run: Run) -> Statistics:
        """BLEU statistics of each even line; the score is compared with that in the log of the run."""
        rows = []
        for number, line in zip(self.numbers, self.translations(run), strict=True):
            words = self.symbols.words.intern_all(word.encode() for word in line.split())
            rows.append(self.texts.references.statistics(number, [words])[0])
        found = np.array(rows, np.float64).reshape(-1, 10)
        bleu = held_out_score(found.sum(axis=0)).bleu
        if "report_bleu" in run.chosen and abs(bleu - run.chosen["report_bleu"]) > SAME:
            expected = f"expected {run.chosen['report_bleu']:.2f}, as in its log"
            hint = "is it the same grammar and language model?"
            print(f"{run.name}: found BLEU {bleu:.2f}, {expected} ({hint})", file=sys.stderr)
        return found

    def translations(self, run: Run) -> list[str]:
        """Translations of even lines; stored with the weights, and read again if nothing has changed."""
        weights = read_weights(run.weights, Symbols())
        config = dataclasses.replace(
            with_templates(model_config(self.config), weights),
            weights=WeightsSection(path=str(run.weights)),
        )
        key, path = self._key(config, run.weights), run.directory / f"even.{run.epoch:02d}.json"
        if path.exists():
            kept = json.loads(path.read_bytes())
            if kept["key"] == key:
                lines: list[str] = kept["lines"]
                return lines
        print(f"{run.name}: translating {len(self.numbers)} even lines", file=sys.stderr)
        lines = self._decoded(config)
        write_output(path, json.dumps({"key": key, "lines": lines}, ensure_ascii=False))
        return lines

    def _decoded(self, config: Config) -> list[str]:
        model = make_model(config, base=self.files.base or ".")
        segments = [self.texts.segments[number] for number in self.numbers]

        def translate(segment: Any) -> str:
            forest = model.parse(segment)
            return forest.viterbi().text if forest else ""

        return list(in_order(translate, segments, self.threads))

    def _key(self, config: Config, weights: Path) -> str:
        """A digest of everything that translations depend on."""
        files = [Path(path) for path in config.model_files.values() if Path(path) != weights]
        parts = [dataclasses.replace(config, weights=None), [(str(p), os.stat(p).st_mtime_ns) for p in files]]
        digest = hashlib.sha256(repr(parts).encode())
        for content in (weights, Path(self.files.source)):
            digest.update(content.read_bytes())
        return digest.hexdigest()


def with_templates(config: Config, weights: Weights) -> Config:
    """The same configuration without templates whose features have no weights, which have no effect."""
    if weights.has_shared_names:  # which may apply to any feature
        return config
    kinds = {key[0] for key in weights.index.all_keys()} - {NAME}
    needed = {TEMPLATE_OF[kind] for kind in kinds}
    asked = [name for name in expanded(config.features.templates) if isinstance(name, str)]
    if lacking := sorted(needed - set(asked)):
        found = f"found weights for {', '.join(lacking)}"
        raise ConfigError(f"features: templates: {found}, expected these templates, too")
    kept = [name for name in asked if name in needed or name not in TEMPLATES]
    return dataclasses.replace(config, features=dataclasses.replace(config.features, templates=kept))


def config_for(run: Run, given: Path | None) -> Config:
    """The given configuration, or else that of the run."""
    path = given or run.directory / "config.yaml"
    if not path.exists():
        hint = "--config names one"
        raise FormatError(path, 0, found="no such file", expected="a configuration", hint=hint)
    return read_config(path)
