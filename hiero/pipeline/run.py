"""``hiero run``: the stages of a configuration, each run only when its inputs have changed.

A stage is skipped when the digests of its inputs, its settings and its outputs are those of the last time.
A run that is killed at any moment and started again makes the same files, to the byte: outputs appear
complete, a stage is entered in the manifest after its outputs are written, and decoding continues in the
middle of a text. Only ``manifest.json`` and ``log.jsonl`` hold times and other values that differ between
runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import hiero
from hiero.config.config import config_of, read_settings, resolved, write_settings
from hiero.config.model import OpenedFiles, model_config
from hiero.core.errors import ConfigError, FormatError, UsageError, did_you_mean, is_interrupt, os_message
from hiero.core.progress import Progress, progress_lines
from hiero.core.records import record_paths
from hiero.core.usage import Usage
from hiero.jobs.run_directory import (
    CONFIG,
    NAME,
    Entry,
    Manifest,
    check_directory,
    first_change,
    locked_directory,
    version_series,
)
from hiero.pipeline.plan import Plan, Stage, Task, make_plan

LOG, TEMPORARY = "log.jsonl", "tmp"
MODEL = "model.yaml"
# Endings of files that killed work may leave beside its output.
LEFTOVERS = (".part", ".part.lock", ".part.old", ".part.packed", ".part.state", ".part.state.new")


class Display(Protocol):
    """Shows the stages of a run."""

    def plan(self, names: Sequence[str]) -> None:
        """Show the names of all stages."""

    def skip(self, name: str, reason: str) -> None:
        """Show that a stage is skipped."""

    def start(self, name: str, reason: str) -> Progress:
        """Show that a stage starts; returns where to report its progress."""

    def finish(self, name: str, usage: Mapping[str, float]) -> None:
        """Show that a stage is done."""


@dataclass(frozen=True)
class Step:
    """A stage with the reason to run it; None if it is skipped."""

    stage: Stage
    reason: str | None


def default_directory(config: Path) -> Path:
    """``NAME.run`` in the working directory, for a configuration ``NAME.yaml``."""
    return Path(f"{config.stem}.run")


class Run:
    """One run of a configuration in a directory."""

    def __init__(
        self,
        path: str | Path,
        directory: Path,
        only: Sequence[str] = (),
        *,
        strict: bool = False,
        allow_grammar_paths: bool = False,
    ) -> None:
        self.path, self.directory = Path(path), directory
        # Absolute and without links, so that paths written into files are valid from any directory.
        content = read_settings(path)
        config = config_of({} if content is None else content, str(path), Path(path).resolve().parent)
        self.config = dataclasses.replace(config, strict=config.strict or strict)
        # Absolute, so that paths in files do not depend on the working directory.
        out = Path(os.path.abspath(directory))
        self.plan: Plan = make_plan(self.config, out, str(path), allow_grammar_paths=allow_grammar_paths)
        self._check_inputs()
        self.only = self._chosen(only)
        check_directory(directory, NAME)
        self.manifest = Manifest(directory)
        self.opened = OpenedFiles(lambda path: self.manifest.digest(path))

    def _check_inputs(self) -> None:
        """Refuse inputs that a stage would overwrite."""
        makers = {path: stage.name for stage in self.plan.stages for path in stage.outputs}
        for key, path in record_paths(self.config).items():
            if maker := makers.get(Path(os.path.abspath(path))):
                raise ConfigError(f"{self.path}: {key}: {path} is an output of the stage {maker}")

    def _chosen(self, only: Sequence[str]) -> set[str]:
        known = {name: {name} for name in (stage.name for stage in self.plan.stages)}
        for stage in self.plan.stages:
            known.setdefault(stage.kind, set()).add(stage.name)
        for name in only:
            if name not in known:
                raise UsageError(f"argument --only: unknown stage {name!r}; {did_you_mean(name, known)}")
        return set().union(*(known[name] for name in only)) if only else {s.name for s in self.plan.stages}

    def leave_out(self, kinds: Container[str]) -> None:
        """Do not run the stages of these kinds."""
        self.only = {stage.name for stage in self.plan.stages if stage.kind not in kinds}

    # ---- planning

    def steps(self) -> Iterator[Step]:
        """The planned steps, as if every stage that runs changed its outputs."""
        changing: dict[Path, str] = {}
        for stage in self.plan.stages:
            if stage.name not in self.only:
                continue
            makers = [changing[path] for path in stage.inputs.values() if path in changing]
            reason = f"if {makers[0]} changes its inputs" if makers else self.reason(stage)
            if makers and stage.name not in self.manifest.stages:
                reason = "not done before"
            if reason is not None:
                changing |= dict.fromkeys(stage.outputs, stage.name)
            yield Step(stage, reason)

    def reason(self, stage: Stage) -> str | None:
        """The reason to run a stage; None if nothing has changed."""
        entry = self.manifest.stages.get(stage.name)
        if entry is None:
            return "not done before"
        made_from = {**entry, "digests": {key: one["sha256"] for key, one in entry["inputs"].items()}}
        changed = first_change(made_from, _plain(stage.settings), lambda: self._inputs(stage))
        if changed is not None:
            what, key = changed
            return f"made by hiero {entry['made_by']}" if what == "made_by" else f"{key} has changed"
        for path in stage.outputs:
            expected, found = entry["outputs"].get(self._local(path)), self.manifest.digest(path)
            if not found:
                return f"{self._local(path)} is missing"
            if found != expected:
                return f"{self._local(path)} was modified"
        return None

    def _inputs(self, stage: Stage) -> dict[str, str]:
        found = {}
        for key, path in stage.inputs.items():
            found[key] = self.manifest.digest(path)
            if not found[key]:
                made_by = [other.name for other in self.plan.stages if path in other.outputs]
                hint = f"made by the stage {made_by[0]}" if made_by else ""
                expected = f"an input of the stage {stage.name}"
                raise FormatError(path, 0, found="no such file", expected=expected, hint=hint)
        return found

    def _local(self, path: Path) -> str:
        return path.relative_to(self.plan.out).as_posix()

    # ---- running

    def run(self, display: Display, threads: int) -> None:
        """Run all chosen stages that are not up to date."""
        with locked_directory(self.directory, "hiero run"):
            self._prepare()
            chosen = [stage for stage in self.plan.stages if stage.name in self.only]
            display.plan([stage.name for stage in chosen])
            try:
                with _Log(self.directory / LOG) as log:
                    log.write("run", config=str(self.path), hiero=hiero.__version__, threads=threads)
                    for stage in chosen:
                        self._run_stage(stage, display, threads, log)
            finally:
                shutil.rmtree(self.directory / TEMPORARY, ignore_errors=True)

    def _prepare(self) -> None:
        # Read again: another run may have written it before the directory was locked.
        self.manifest = Manifest(self.directory)
        self.manifest.head = {"seed": self.config.seed, "config": resolved(self.config)}
        self.manifest.write()
        write_settings(
            self.directory / CONFIG, resolved(self.config), "the configuration of this run, in full"
        )
        if self.plan.config.grammar:
            config = dataclasses.replace(model_config(self.plan.config), prep=self.plan.config.prep)
            model = resolved(config, self.plan.out)
            write_settings(
                self.directory / MODEL, model, "hiero decode -c model.yaml; hiero.load('model.yaml')"
            )

    def _run_stage(self, stage: Stage, display: Display, threads: int, log: _Log) -> None:
        reason = self.reason(stage)
        if reason is None:
            display.skip(stage.name, "unchanged")
            log.write("skip", stage=stage.name)
            return
        log.write("start", stage=stage.name, reason=reason)
        inputs = self._inputs(stage)
        head = {"made_by": version_series(), "settings": _plain(stage.settings)}
        key = json.dumps([stage.name, head, inputs], sort_keys=True)
        temporary = self.directory / TEMPORARY
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        progress = _LoggedProgress(display.start(stage.name, reason), stage.name, log)
        usage = Usage()
        digest = hashlib.sha256(key.encode()).hexdigest()
        task = Task(threads, temporary, digest, progress, self.opened)
        try:
            figures = _plain(dict(stage.work(task)))
        except BaseException as error:
            reason = "interrupted" if is_interrupt(error) else str(error) or type(error).__name__
            with contextlib.suppress(FormatError):  # there may be no room for it
                log.write("stop", stage=stage.name, reason=reason, **usage.as_dict())
            raise
        used = usage.as_dict()
        for path in stage.outputs:
            for ending in LEFTOVERS:
                _remove(path.with_name(path.name + ending))
        entry: Entry = {
            **head,
            "inputs": {
                key: {"path": str(stage.inputs[key]), "sha256": digest} for key, digest in inputs.items()
            },
            "outputs": {self._local(path): self.manifest.digest(path) for path in stage.outputs},
            "figures": figures,
            "threads": threads,
            **used,
            "finished": _now(),
        }
        self.manifest.stages[stage.name] = entry
        self.manifest.write()
        log.write("end", stage=stage.name, figures=figures, **used)
        display.finish(stage.name, used)

    def scores(self) -> dict[str, Mapping[str, float]]:
        """The scores of each evaluated set; its name says whether weights depend on it."""
        kind = "eval:"
        found = {}
        for stage in self.plan.stages:
            if stage.name.startswith(kind) and stage.name in self.manifest.stages:
                entry = self.manifest.stages[stage.name]
                settings, note = entry["settings"], ""
                if "lines" in settings:
                    note = f" ({settings['lines']} lines)"
                elif "learnt_from" in settings:
                    note = " (learnt from)"
                found[stage.name.removeprefix(kind) + note] = entry["figures"]
        return found


# ---- the directory


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


# ---- the log


class _Log:
    """A log with a line of JSON for each event, appended to those of earlier runs."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> _Log:
        self._stream = open(self._path, "a", encoding="utf-8")
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(OSError):
            self._stream.close()

    def write(self, event: str, **content: Any) -> None:
        try:
            self._stream.write(
                json.dumps({"time": _now(), "event": event, **content}, ensure_ascii=False) + "\n"
            )
            self._stream.flush()
        except OSError as error:
            reason = os_message(error)
            raise FormatError(self._path, 0, found=reason, expected="room to write") from None


class _LoggedProgress:
    """Progress whose notes go to the log as well."""

    def __init__(self, progress: Progress, stage: str, log: _Log) -> None:
        self._progress, self._stage, self._log = progress, stage, log
        self._has_rows = False

    def begin(self, total: int | None, what: str = "") -> None:
        self._progress.begin(total, what)

    def part(self, what: str) -> None:
        self._progress.part(what)

    def advance(self, steps: int, note: str = "") -> None:
        self._progress.advance(steps, note)

    def say(self, note: str) -> None:
        self._progress.say(note)
        self._log.write("note", stage=self._stage, note=note)

    def record(self, row: Mapping[str, str]) -> None:
        self._progress.record(row)
        for line in progress_lines(row, heading=not self._has_rows):
            self._log.write("note", stage=self._stage, note=line)
        self._has_rows = True


# ---- values


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert to JSON types, so that values equal those read back."""
    plain: dict[str, Any] = json.loads(json.dumps(values))
    return plain


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")
