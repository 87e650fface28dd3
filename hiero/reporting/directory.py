"""Read a run directory: its stages, the epochs of tuning, and files that are as the run left them.

Files that the manifest does not list, or that have changed since, are not used: a directory from a stranger
can name any file of this machine.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from hiero.config.config import Config, config_of, read_settings
from hiero.core.errors import FormatError, HieroError, os_message
from hiero.core.records import record_paths
from hiero.core.text import lock_file, parse_json
from hiero.jobs.card import card_facts
from hiero.jobs.run_directory import CONFIG, LOCK, NAME, Manifest
from hiero.jobs.tune import ANSWER, STATE
from hiero.pipeline.plan import make_plan
from hiero.pipeline.run import LOG, MODEL
from hiero.pipeline.tune_stages import FOLDER, GRID_FOLDER, TABLE
from hiero.reporting.records import (
    DONE,
    NOT_DONE,
    RUNNING,
    STOPPED,
    StageReport,
    SystemReport,
    TuningReport,
)
from hiero.tuning.held_out import choose_epoch

RUN, TUNE = "run", "tune"
MOST_NOTES = 200  # of a stage
MOST = 1e15  # seconds or megabytes


class _Input(msgspec.Struct):
    path: str
    sha256: str


class StageEntry(msgspec.Struct):
    """A stage in ``manifest.json``."""

    inputs: dict[str, _Input]
    outputs: dict[str, str]
    settings: dict[str, Any] = {}
    figures: dict[str, Any] = {}
    threads: int = 1
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    compile_seconds: float = 0.0
    peak_mb: float = 0.0
    finished: str = ""

    def __post_init__(self) -> None:
        usage = (self.wall_seconds, self.cpu_seconds, self.compile_seconds, self.peak_mb)
        if not all(0 <= value < MOST for value in usage):
            raise ValueError("seconds or megabytes out of range")


class RunDirectory:
    """What a run directory holds."""

    def __init__(self, path: str | Path, name: str) -> None:
        self.path = Path(path)
        self.name = name
        if (self.path / NAME).is_file():
            self.kind = RUN
        elif (self.path / STATE).is_file():
            self.kind = TUNE
        else:
            expected = f"the directory of hiero run or hiero tune, with {NAME} or {STATE}"
            found = "no such directory" if not self.path.is_dir() else "other files, or none"
            raise FormatError(self.path, 0, found=found, expected=expected)
        self.manifest = Manifest(self.path)
        self.problems: list[str] = []
        self.stages = self._entries()

    def _entries(self) -> dict[str, StageEntry]:
        try:
            return msgspec.convert(self.manifest.stages, dict[str, StageEntry])
        except msgspec.ValidationError as error:
            expected = "the manifest of a run"
            raise FormatError(self.path / NAME, 0, found=f"damage ({error})", expected=expected) from None

    def _json(self, name: str) -> dict[str, Any]:
        try:
            content = parse_json((self.path / name).read_bytes())
        except (OSError, ValueError):
            content = None
        if not isinstance(content, dict):
            raise FormatError(self.path / name, 0, found="damage", expected="an object in JSON")
        return content

    def problem(self, text: str) -> None:
        """Note what is missing; once."""
        if text not in self.problems:
            self.problems.append(text)

    @cached_property
    def config(self) -> Config | None:
        """The configuration; None if there is none that can be read."""
        return self._config(CONFIG, "its configuration is missing")

    @cached_property
    def model(self) -> Config | None:
        """The configuration of the model."""
        if self.kind == TUNE:
            return None
        return self._config(MODEL, "")

    def _config(self, name: str, missing: str) -> Config | None:
        path = self.path / name
        if not path.is_file():
            if missing:
                self.problem(missing)
            return None
        try:
            return config_of(read_settings(path), str(path), Path(os.path.abspath(self.path)))
        except HieroError as error:
            self.problem(str(error))
            return None

    # ---- files

    @cached_property
    def recorded(self) -> dict[str, str]:
        """The digests of all inputs and outputs of the stages that are done, by their paths."""
        found: dict[str, str] = {}
        for entry in self.stages.values():
            found |= {os.path.abspath(one.path): one.sha256 for one in entry.inputs.values()}
            found |= {self._place(name): digest for name, digest in entry.outputs.items()}
        return found

    def _place(self, name: str) -> str:
        return os.path.abspath(self.path / name)

    def is_unchanged(self, path: str | Path) -> bool:
        """Whether a file is there, and what a stage has read or written; otherwise a problem is noted."""
        place = os.path.abspath(path)
        digest = self.recorded.get(place)
        if digest is None:
            return False
        if not (os.path.isfile(place) or os.path.isdir(place)):
            self.problem(f"{path} is missing")
            return False
        try:
            found = self.manifest.digest(Path(place))
        except FormatError as error:
            self.problem(str(error))
            return False
        if found != digest:
            self.problem(f"{path} has changed since the run, and is left out")
            return False
        return True

    def digests(self, paths: list[str]) -> list[str]:
        """The recorded digests of files."""
        return [self.recorded.get(os.path.abspath(path), "") for path in paths]

    def output_of(self, stage: str) -> Path | None:
        """The first output of a stage that is done."""
        entry = self.stages.get(stage)
        return Path(self._place(next(iter(entry.outputs)))) if entry and entry.outputs else None

    @property
    def weights(self) -> Path | None:
        """The file of the weights, if it is that of the run."""
        if self.kind == TUNE:
            path = self.path / ANSWER
            return path if path.is_file() else None
        config = self.model
        if config is None or config.weights is None:
            return None
        path = Path(config.weights.path)
        return path if self.is_unchanged(path) else None

    @property
    def bins(self) -> Path | None:
        """The file of the bins, if it is that of the run."""
        config = self.config if self.kind == TUNE else self.model
        if config is None or config.features.bins is None:
            return None
        path = Path(config.features.bins)
        if self.kind == TUNE:
            digests = self._json(STATE).get("digests", {})
            known = digests.get("features: bins") if isinstance(digests, dict) else None
            return path if path.is_file() and self.manifest.digest(path) == known else None
        return path if self.is_unchanged(path) else None

    # ---- the report

    def report(self) -> SystemReport:
        """What is known without other files than those of the directory itself."""
        report = SystemReport(self.name, str(self.path), self.kind)
        content = self._json(NAME if self.kind == RUN else STATE)
        report.versions, report.machine = _texts(content.get("versions")), _texts(content.get("machine"))
        report.settings = self._settings()
        if self.kind == RUN:
            report.stages = self._stage_reports()
            report.complete = bool(report.stages) and all(one.state == DONE for one in report.stages)
            report.finished = max((one.finished for one in report.stages), default="")
            table = self.path / TABLE
            if "grid" in self.stages and self.is_unchanged(table):
                report.grid = table.read_text(encoding="utf-8", errors="replace")
        report.tunings = list(self._tunings())
        if self.kind == TUNE:
            asked = (self.config.tune.epochs if self.config and self.config.tune else None) or 0
            done = len(report.tunings[0].epochs) if report.tunings else 0
            report.complete = 0 < asked <= done and (self.path / ANSWER).is_file()
            if not report.complete:
                self.problem(f"{done} of {asked} epochs are done")
        if self.config is not None:
            report.model = card_facts(self.model or self.config)
        report.files = {
            name: digest for entry in self.stages.values() for name, digest in entry.outputs.items()
        }
        report.problems = self.problems
        return report

    def _settings(self) -> dict[str, Any]:
        with contextlib.suppress(HieroError):
            content = read_settings(self.path / CONFIG)
            if isinstance(content, dict):
                return content
        return {}

    def _is_locked(self) -> bool:
        path = self.path / LOCK
        if not path.exists():
            return False
        try:
            os.close(lock_file(path))
        except BlockingIOError:
            return True
        except (OSError, HieroError):
            pass  # of another user
        return False

    def _stage_reports(self) -> list[StageReport]:
        events = list(self._events())
        notes: dict[str, list[str]] = {}
        begun: dict[str, str] = {}  # stages that have started and not ended, with what stopped them
        for event in events:
            stage, kind = str(event.get("stage", "")), event.get("event")
            if kind == "start":
                begun[stage], notes[stage] = "no reason is recorded: it was killed, or the machine was", []
            elif kind == "note" and len(notes.setdefault(stage, [])) < MOST_NOTES:
                notes[stage].append(str(event.get("note", "")))
            elif kind == "stop":
                begun[stage] = str(event.get("reason", ""))
            elif kind in ("end", "skip"):
                begun.pop(stage, None)
        locked = self._is_locked()
        reports = []
        for name in self._planned(list(begun)):
            if name in begun:
                if locked and name == list(begun)[-1]:
                    report = StageReport(name, RUNNING)
                    self.problem(f"the stage {name} is running")
                else:
                    report = StageReport(name, STOPPED, begun[name])
                    self.problem(f"the stage {name} stopped: {begun[name]}")
            elif name in self.stages:
                entry = self.stages[name]
                measured = (entry.wall_seconds, entry.cpu_seconds, entry.compile_seconds, entry.peak_mb)
                report = StageReport(name, DONE, "", *measured, entry.threads, entry.finished, entry.figures)
            else:
                report = StageReport(name, NOT_DONE)
            report.notes = notes.get(name, [])
            reports.append(report)
        missing = [one.name for one in reports if one.state == NOT_DONE]
        if missing:
            self.problem(f"not done: {', '.join(missing)}")
        return reports

    def _planned(self, begun: list[str]) -> list[str]:
        """The names of all stages in order; without a plan, those that are known to have started."""
        known = list(dict.fromkeys([*self.stages, *begun]))
        config = self.config
        if config is None:
            return known
        try:
            for key, path in record_paths(config).items():
                if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
                    raise HieroError(f"{key}: {path} is not a file")
            plan = make_plan(config, Path(os.path.abspath(self.path)), str(self.path / CONFIG))
        except (HieroError, OSError) as error:
            self.problem(f"the stages that are left are not known: {error}")
            return known
        names = [stage.name for stage in plan.stages]
        return [*names, *(name for name in begun if name not in names)]

    def _events(self) -> Iterator[dict[str, Any]]:
        yield from self._lines(self.path / LOG)

    def _lines(self, path: Path) -> Iterator[dict[str, Any]]:
        """The objects in a file of JSON lines; an incomplete last line is left out, and damage noted."""
        try:
            data = path.read_bytes() if path.is_file() else b""
        except OSError as error:
            self.problem(f"{path}: {os_message(error)}")
            return
        for number, line in enumerate(data.split(b"\n")[:-1], 1):
            try:
                content = parse_json(line)
            except ValueError:
                content = None
            if isinstance(content, dict):
                yield content
            else:
                self.problem(f"{path}:{number}: damaged, and left out")

    def _tunings(self) -> Iterator[TuningReport]:
        if self.kind == TUNE:
            folders = {"tune": self.path}
        else:
            trials = [path.parent for path in sorted((self.path / GRID_FOLDER).glob(f"*/{LOG}"))]
            folders = {"tune": self.path / FOLDER} | {f"tune:{path.name}": path for path in trials}
        settings = self.config.tune if self.config is not None else None
        on, held_out = (settings.on, settings.held_out) if settings else ("dev", None)
        for name, folder in folders.items():
            epochs = [_numbers(one) for one in self._lines(folder / LOG)]
            if not epochs:
                continue
            chosen = 0
            with contextlib.suppress(KeyError, ValueError, TypeError, IndexError):
                chosen = choose_epoch(epochs)
            yield TuningReport(name, on, held_out, epochs, chosen)


def _texts(given: object) -> dict[str, str]:
    return {str(key): str(value) for key, value in given.items()} if isinstance(given, Mapping) else {}


def _numbers(record: Mapping[str, Any]) -> dict[str, float]:
    """The figures of an epoch that are numbers."""
    return {
        str(name): value
        for name, value in record.items()
        if isinstance(value, float) or (type(value) is int and abs(value) < MOST)
    }
