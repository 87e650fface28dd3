"""Tuning from a configuration: ``tune`` learns weights, in a directory that a killed run is continued in.

RUNDIR/config.yaml  the configuration in full
RUNDIR/tune.json    what the answer depends on: settings, and digests of all that is read
RUNDIR/weights.gz   the answer; all else is described in ``tune/loop.py``
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from hiero import watch as watching
from hiero.bitext.extract import Extractor
from hiero.bitext.index import is_index, open_index
from hiero.bitext.limits import ExtractConfig
from hiero.config import MADE_BY_RUN, Config, config_of, make_model, with_bundled
from hiero.errors import ConfigError, FormatError, HieroError, did_you_mean
from hiero.features import FeatureIndex
from hiero.formats.settings import read_settings, write_settings
from hiero.formats.text import open_output
from hiero.formats.vectors import read_vectors
from hiero.manifest import Manifest, differences, versions
from hiero.names import Names
from hiero.records import record
from hiero.rundir import CONFIG, LOCK, locked, resolved, series
from hiero.sections import TRAIN
from hiero.symbols import Symbols
from hiero.teststages import model_config, model_inputs, model_settings
from hiero.tune.batch import BatchLoop
from hiero.tune.data import SetFiles
from hiero.tune.decoding import Session
from hiero.tune.executors import check_executor, open_executor
from hiero.tune.health import Health
from hiero.tune.loop import Loop, choose, read_log
from hiero.tune.presets import make_learner
from hiero.tune.settings import STARTS, TuneConfig

STATE, ANSWER = "tune.json", "weights.gz"
SOME = 20  # sentences are enough to tell whether they are those of an index


class TuneWatch(watching.Watch, Protocol):
    """Watches a run of tuning."""

    def epoch(self, record: Mapping[str, Any]) -> None:
        """An epoch is done; what happened in it, as in ``log.jsonl``."""


class _Silent(watching.Nobody):
    def epoch(self, record: Mapping[str, Any]) -> None:
        pass


@dataclass(frozen=True)
class Tuned:
    """What came of it.

    weights  the file with the chosen weights
    epoch    the epoch they are of, from 1: the best on odd lines of the held-out set, or else the last
    log      a record of each epoch: ``choose_bleu`` (odd lines), ``report_bleu`` (even lines), ...
    """

    weights: Path
    epoch: int
    log: list[dict[str, Any]]

    @property
    def chosen(self) -> dict[str, Any]:
        return self.log[self.epoch - 1]


def tune(
    config: str | Path | Mapping[str, Any] | Config,
    run_dir: str | Path,
    *,
    workers: int = 1,
    executor: str = "threads",
    resume: bool = False,
    watch: TuneWatch | None = None,
    **keys: Any,
) -> Tuned:
    """Learn weights.

    config    path of a YAML file, or its content; its ``tune`` section says how
    run_dir   a new directory; with ``resume``, one in which a run of the same configuration was begun
    executor  threads, processes, or dask://HOST:PORT; the answer is the same on all of them
    keys      keys of the ``tune`` section, which win over it
    """
    if isinstance(config, str | Path):
        # From the root: workers may stand elsewhere.
        settings = config_of(read_settings(config), str(config), Path(config).resolve().parent)
        where = str(config)
    else:
        content = resolved(config) if isinstance(config, Config) else config
        settings, where = config_of(content, base=Path.cwd()), "config"
    return Tuning(with_keys(settings, keys), where).run(
        Path(run_dir), workers=workers, executor=executor, resume=resume, watch=watch
    )


def with_keys(config: Config, keys: Mapping[str, Any]) -> Config:
    """The same, with some keys of its ``tune`` section set."""
    known = dataclasses.asdict(config.tune or TuneConfig())
    wanted = record(TuneConfig, known | dict(keys), "tune")
    if "start" in keys and wanted.start not in STARTS:
        wanted = dataclasses.replace(wanted, start=os.path.abspath(wanted.start))
    return dataclasses.replace(config, tune=wanted)


class Tuning:
    """A configuration that was found to make sense, as far as that can be told before anything is done.

    texts  what is decoded in place of the sources of some sets, because it names their grammars
    """

    def __init__(self, config: Config, where: str, texts: Mapping[str, Path] | None = None) -> None:
        self.where, self.texts = where, texts or {}
        if config.is_bundled:
            config = with_bundled(config)
        # Decoding begins with the weights that ``start`` says.
        self.config = dataclasses.replace(config, weights=None)
        self.settings = (config.tune or TuneConfig()).resolved()
        self.seed = config.seed if self.settings.seed is None else self.settings.seed
        self._check_made()
        self.files = self._set("on", self.settings.on)
        self.held_out = self._held_out()
        if self.settings.leave_one_out and not self._indexes():
            raise self._error("leave_one_out", "found true, expected a grammar that is an index with it")
        if self.settings.start not in STARTS and not Path(self.settings.start).is_file():
            expected = f"expected {', '.join(STARTS)} or a file of weights"
            raise self._error("start", f"found no file {self.settings.start}, {expected}")
        if self.settings.is_online:
            make_learner(self.settings, self.seed)  # which may find fault with it

    def _error(self, key: str, problem: str) -> ConfigError:
        return ConfigError(f"{self.where}: tune: {key}: {problem}")

    def _check_made(self) -> None:
        """All that is read must be there: what is yet to be made, ``hiero run`` makes."""
        hint = f"hiero run makes and uses it; {MADE_BY_RUN}"
        for number, section in enumerate(self.config.grammar, 1):
            if section.index == TRAIN:
                place = f"{self.where}: grammar: entry {number}"
                raise ConfigError(f"{place}: found index: {TRAIN}, expected its path ({hint})")
        for number, model in enumerate(self.config.lm, 1):
            if model.path is None:
                raise ConfigError(f"{self.where}: lm: entry {number}: found no path, expected one ({hint})")
        if self.config.prep is not None and not self.texts:
            raise ConfigError(f"{self.where}: prep: found with hiero tune, which does not prepare ({hint})")

    # ---- data

    def _set(self, key: str, name: str) -> SetFiles:
        data = self.config.data
        if name not in data:
            others = {other for other in data if key == "on" or other != self.settings.on}
            near = did_you_mean(name, others) if others else "there is no other in data"
            raise self._error(key, f"unknown set {name!r}; {near}")
        section = data[name]
        if not section.translations:
            raise self._error(key, f"found {name}, which has no references, expected a set with them")
        source = str(self.texts.get(name, section.source))
        left_out = key == "on" and self.settings.leave_one_out
        # Grammars that sentences name are beside the text, unless the configuration says where they are.
        own = any(entry.per_sentence is not None for entry in self.config.grammar)
        base = "" if own else str(Path(source).resolve().parent)
        return SetFiles(source, tuple(section.translations), left_out, base)

    def _held_out(self) -> SetFiles | None:
        name = self.settings.held_out
        default = TuneConfig.__dataclass_fields__["held_out"].default
        if name is None or (name == default and name not in self.config.data):
            return None
        if name == self.settings.on:
            raise self._error("held_out", f"found {name}, which is learnt from, expected another set")
        return self._set("held_out", name)

    def _indexes(self) -> list[str]:
        """The bitext indexes among the grammars."""
        named = [section.index or section.path for section in self.config.grammar]
        return [path for path in named if path is not None and is_index(path)]

    # ---- what the answer depends on

    def inputs(self) -> dict[str, Path]:
        """The files that are read, by the keys that name them."""
        found = model_inputs(self.config)
        for number, section in enumerate(self.config.grammar, 1):
            if section.per_sentence is not None and not self.texts:
                found[f"grammar: entry {number}: per_sentence"] = Path(section.per_sentence)
        held_out = [(str(self.settings.held_out), self.held_out)] if self.held_out else []
        for name, files in [(self.settings.on, self.files), *held_out]:
            found[f"data: {name}: source"] = Path(files.source)
            for number, path in enumerate(files.references, 1):
                found[f"data: {name}: references: entry {number}"] = Path(path)
        if self.settings.start not in STARTS:
            found["tune: start"] = Path(self.settings.start)
        return found

    def settings_of_answer(self) -> dict[str, Any]:
        # Not the number of epochs: what is learnt in one does not depend on how many follow. Not whether
        # the start is here or there: its content counts.
        chosen = dataclasses.asdict(self.settings) | {"seed": self.seed}
        del chosen["epochs"]
        if chosen["start"] not in STARTS:
            chosen["start"] = "a file"
        return {"tune": chosen, **model_settings(self.config)}

    def state(self, directory: Path) -> dict[str, Any]:
        """All that the answer depends on, as JSON has it."""
        manifest, digests = Manifest(directory), {}
        for key, path in self.inputs().items():
            digests[key] = manifest.digest(path)
            if not digests[key]:
                raise FormatError(path, 0, found="no such file", expected=f"it, as {key} says")
        content = {"made_by": series(), "settings": self.settings_of_answer(), "digests": digests}
        plain: dict[str, Any] = json.loads(json.dumps(content))
        return plain

    # ---- the run

    def run(
        self,
        directory: Path,
        *,
        workers: int = 1,
        executor: str = "threads",
        resume: bool = False,
        watch: TuneWatch | None = None,
    ) -> Tuned:
        """Learn, from where an earlier run in the directory ended, if there was one."""
        watch = watch or _Silent()
        check_executor(executor)
        directory = Path(os.path.abspath(directory))
        _check_directory(directory, resume)
        with locked(directory, "hiero tune"):
            _check_directory(directory, resume)  # once more: another run may have been faster
            state = self.state(directory)
            self._keep(directory, state)
            with open_executor(executor, workers, watch.say) as executors:
                overseer = _Overseer(watch, Health(self.settings), directory)
                make_loop = Loop if self.settings.is_online else BatchLoop
                watch.begin(None, "load")
                loop = make_loop(
                    self._session(state), self.held_out, str(directory), executors, workers, overseer
                )
                self._report(loop, overseer, workers)
                overseer.resume(read_log(directory))
                log = loop.run()
        epoch = choose(log)
        _copy(directory / f"weights.{epoch:02d}.gz", directory / ANSWER)
        return Tuned(directory / ANSWER, epoch, log)

    def _session(self, state: Mapping[str, Any]) -> Session:
        model = model_config(self.config)
        load = functools.partial(make_model, model)
        key = hashlib.sha256(json.dumps([state, resolved(model), self.files], default=vars).encode())
        return Session(load, self.files, self.settings, self.seed, key.hexdigest())

    def _keep(self, directory: Path, state: dict[str, Any]) -> None:
        """Write down what the answer depends on, or compare it with what was written down."""
        path = directory / STATE
        if path.exists():
            self._compare(directory, _read_state(path), state)
        else:
            _write_json(path, state | {"versions": versions()})
        heading = "the configuration of this run, in full"
        full = dataclasses.replace(self.config, tune=self.settings, weights=None)
        write_settings(directory / CONFIG, resolved(full), heading)

    def _compare(self, directory: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        hint = "-o names another directory"
        if old["made_by"] != new["made_by"]:
            begun = f"found a run of hiero {old['made_by']}, expected one of {new['made_by']}"
            raise HieroError(f"{directory}: {begun} ({hint})")
        for key in differences(old["settings"], new["settings"]):
            is_now, was = _at(new["settings"], key), _at(old["settings"], key)
            place = key.replace(".", ": ")
            raise HieroError(
                f"{directory}: {place}: found {is_now}, expected {was}, as it was begun ({hint})"
            )
        for key in differences(old["digests"], new["digests"]):
            found = "has changed since the run was begun" if key in new["digests"] else "is no longer read"
            raise HieroError(f"{directory}: {key}: {found} ({hint})")
        done, wanted = len(read_log(directory)), self.settings.epochs or 1
        if wanted < done:
            raise HieroError(
                f"{directory}: tune: epochs: found {wanted}, expected at least {done}: they are done"
            )

    def _report(self, loop: Loop, overseer: _Overseer, workers: int) -> None:
        """Say what is remarkable, before hours go by."""
        say, settings = overseer.watch.say, self.settings
        overseer.health.count(loop.set, loop.numbers)
        overseer.health.expect(name.decode("utf-8", "replace") for name in loop.model.symbols.names.entries())
        self._check_index(loop, say)
        if self.held_out is None:
            say("nothing is held out: the last epoch is the answer (held_out names a set of data)")
        num_shards = settings.shards or -(-len(loop.numbers) // settings.shard_size)
        if workers > num_shards and settings.is_online and settings.batch == 1:
            which = "there is one shard" if num_shards == 1 else f"there are {num_shards} shards"
            say(f"{which}, whose sentences are learnt from one by one: not all of {workers} workers are used")

    def _check_index(self, loop: Loop, say: Callable[[str], None]) -> None:
        """A sentence that rules are extracted from must be left out when it is learnt from."""
        indexes, segments = self._indexes(), loop.set.segments
        for path in indexes:
            extractor = Extractor(open_index(path), ExtractConfig())
            some = [number for number in range(min(SOME, len(segments))) if segments[number].words]
            same = [extractor.is_sentence(number, segments[number].words) for number in some]
            if not self.settings.leave_one_out:
                if some and all(same):
                    hint = "with leave_one_out: true, none is translated by rules of its own"
                    say(f"{path} is made of the sentences of {self.settings.on}: {hint}")
            elif not all(same) or len(segments) > extractor.index.num_sentences:
                number = some[same.index(False)] if not all(same) else extractor.index.num_sentences
                expected = (
                    f"that of pair {number + 1} of {path} (leave_one_out is for what the index is made of)"
                )
                raise FormatError(self.files.source, number + 1, found="another sentence", expected=expected)


class _Overseer:
    """Watches a loop for somebody, and the health of what is learnt."""

    def __init__(self, watch: TuneWatch, health: Health, directory: Path) -> None:
        self.watch, self.health, self.directory = watch, health, directory
        self._done = 0

    def resume(self, log: Sequence[Mapping[str, Any]]) -> None:
        """Epochs that an earlier run has done, and commented on."""
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


# ---- files


def _check_directory(directory: Path, resume: bool) -> None:
    """Only a new directory, or an empty one, or, to go on, one in which tuning was begun."""
    if not directory.is_dir():
        if directory.exists():
            raise FormatError(directory, 0, found="a file", expected="a directory")
        return
    names = set(os.listdir(directory)) - {LOCK, f"{STATE}.part"}
    if STATE in names and not resume:
        done = len(read_log(directory))
        found = f"a run of hiero tune, {done} epoch{'' if done == 1 else 's'} done"
        raise FormatError(
            directory, 0, found=found, expected="a new directory", hint="--resume goes on with it"
        )
    if names and STATE not in names:
        hint = "-o names another"
        expected = f"a new directory, or one with {STATE}"
        raise FormatError(directory, 0, found="other files", expected=expected, hint=hint)


def _read_state(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
        if {"made_by", "settings", "digests"} <= set(content):
            return content
    except (OSError, ValueError, TypeError):
        pass
    raise FormatError(path, 0, found="damage", expected="what a run of tuning depends on")


def _write_json(path: Path, content: Any) -> None:
    with open_output(path) as stream:
        stream.write((json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def _copy(source: Path, target: Path) -> None:
    with open_output(target, packed=True) as stream:
        stream.write(source.read_bytes())


def _at(settings: Mapping[str, Any], key: str) -> str:
    """The value under a dotted key, as the user may have written it."""
    value: Any = settings
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return "nothing"
        value = value[part]
    return json.dumps(value, ensure_ascii=False)
