"""Tuning from a configuration: ``tune`` learns weights, in a directory from which it can be resumed.

RUNDIR/config.yaml  the complete configuration
RUNDIR/tune.json    everything the result depends on: settings, and digests of all input files
RUNDIR/rules        rules of sentences, if there is an index; can be deleted
RUNDIR/weights.gz   the result; see ``tuning/loop.py`` for the other files
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hiero.config.config import (
    MADE_BY_RUN,
    Config,
    check_made,
    config_of,
    read_settings,
    resolved,
    write_settings,
)
from hiero.config.model import (
    OpenedFiles,
    WeightsCheck,
    make_model,
    model_config,
    model_inputs,
    model_settings,
    shared_names,
    with_bundled,
)
from hiero.core.errors import ConfigError, FormatError, HieroError, did_you_mean
from hiero.core.progress import Callback, Progress, SilentProgress, shown_progress
from hiero.core.records import map_paths, record, record_paths
from hiero.core.symbols import Symbols
from hiero.core.text import TRANSLATED_BARS, parse_json, write_output
from hiero.decoder.model import Model
from hiero.extraction.config import ExtractConfig
from hiero.extraction.extractor import Extractor
from hiero.extraction.index import BitextIndex, open_index
from hiero.features.weights import read_weights
from hiero.grammar.sources import grammar_paths
from hiero.jobs.run_directory import (
    CONFIG,
    Manifest,
    check_directory,
    first_change,
    locked_directory,
    version_series,
    versions,
)
from hiero.learning.config import STARTS, TuneConfig, check_used
from hiero.learning.learner import LearnerContext, make_learner
from hiero.lm.config import FALLBACK
from hiero.tuning.batch import BatchCourse
from hiero.tuning.executors import check_executor, open_executor
from hiero.tuning.held_out import choose_epoch
from hiero.tuning.jackknife import Recipe
from hiero.tuning.loop import Course, Loop
from hiero.tuning.online import OnlineCourse
from hiero.tuning.report import read_log
from hiero.tuning.shard import TEMPORARY, RunFiles, Session, SetFiles, read_tuning_segments

STATE = "tune.json"


def _check_directory(directory: Path, resume: bool) -> None:
    """Refuse a directory with other files, or, unless ``resume``, with a run of tuning."""
    if check_directory(directory, STATE) and not resume:
        done = len(read_log(directory))
        found = f"a run of hiero tune, {done} epoch{'' if done == 1 else 's'} done"
        raise FormatError(directory, 0, found=found, expected="a new directory", hint="--resume continues it")


def _read_state(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = parse_json(path.read_bytes())
        if {"made_by", "settings", "digests"} <= set(content):
            return content
    except (OSError, ValueError, TypeError):
        pass
    raise FormatError(path, 0, found="damage", expected="the settings and digests of a run")


def _write_state(directory: Path, state: Mapping[str, Any]) -> None:
    """Write everything the result depends on."""
    content = {**state, "versions": versions()}
    write_output(directory / STATE, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _check_unchanged(directory: Path, new: Mapping[str, Any], epochs: int) -> None:
    """Raise an error if settings or inputs differ from those of the run in the directory."""
    old, hint = _read_state(directory / STATE), "-o names another directory"
    what, key = first_change(old, new["settings"], lambda: new["digests"]) or ("", "")
    if what == "made_by":
        problem = f"found a run of hiero {old['made_by']}, expected one of {new['made_by']}"
        raise HieroError(f"{directory}: {problem} ({hint})")
    if what == "settings":
        found, expected = _at(new["settings"], key), _at(old["settings"], key)
        problem = f"found {found}, expected {expected}, as in the run there"
        raise HieroError(f"{directory}: {key.replace('.', ': ')}: {problem} ({hint})")
    if what == "digests":
        problem = "has changed since the run began" if key in new["digests"] else "is no longer read"
        raise HieroError(f"{directory}: {key}: {problem} ({hint})")
    done = len(read_log(directory))
    if epochs < done:
        raise HieroError(f"{directory}: tune: epochs: found {epochs}, expected at least {done}, as are done")


def _remove_leftovers(directory: Path) -> None:
    """Delete incomplete files of a run that was killed."""
    unfinished = [*directory.rglob("*.part"), *directory.rglob("*.part.lock")]
    for path in [*directory.glob(f"epochs/*/{TEMPORARY}*"), *unfinished]:
        path.unlink(missing_ok=True)


def _at(settings: Mapping[str, Any], key: str) -> str:
    """The value of a dotted key, formatted for messages."""
    value: Any = settings
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return "nothing"
        value = value[part]
    return json.dumps(value, ensure_ascii=False)


ANSWER, RULES = "weights.gz", "rules"
NUM_COMPARED = 20  # sentences compared with those of an index


@dataclass(frozen=True)
class Tuned:
    """The result of tuning.

    weights  the file with the chosen weights
    epoch    their epoch, from 1: the best on odd lines of the held-out set, or else the last
    log      a record of each epoch: ``choose_bleu`` (odd lines), ``report_bleu`` (even lines), ...
    """

    weights: Path
    epoch: int
    log: list[dict[str, Any]]

    @property
    def chosen(self) -> dict[str, Any]:
        return self.log[self.epoch - 1]

    def summary(self, held_out: str | None, *, with_path: bool = False) -> str:
        """The chosen epoch, and its BLEU on odd and even lines of the held-out set."""
        record, path = self.chosen, f": {self.weights}" if with_path else ""
        which = f"epoch {self.epoch} of {len(self.log)}{path}"
        if "report_bleu" not in record:
            return f"{which} (the last: nothing is held out)"
        odd, even = (
            f"BLEU {record[f'{half}_bleu']:.2f} (brevity {record[f'{half}_brevity']:.3f})"
            for half in ("choose", "report")
        )
        return f"{which}: {odd} on odd lines of {held_out}, which chose it; {even} on even lines"


def tune(
    config: str | Path | Mapping[str, Any] | Config,
    run_dir: str | Path,
    *,
    workers: int = 1,
    executor: str = "threads",
    resume: bool = False,
    progress: Progress | Callback | None = None,
    allow_grammar_paths: bool = False,
    **keys: Any,
) -> Tuned:
    """Learn weights as ``hiero tune`` does; the result has the path of a file for ``load(weights=...)``.

    config    path of a YAML file, or its content, with a ``tune`` section
    run_dir   a new directory; with ``resume``, that of an earlier run of the same configuration
    progress  an object, or a function of task, steps done, and steps; by default bars in notebooks, and
              nothing elsewhere
    executor  threads, processes, or dask://HOST:PORT; the result is the same on all of them
    keys      keys of the ``tune`` section, which override it
    allow_grammar_paths  permit paths in ``<seg grammar=…>`` outside the directory of their text
    """
    if isinstance(config, str | Path):
        # Absolute paths: workers may have other working directories.
        settings = config_of(read_settings(config), str(config), Path(config).resolve().parent)
        where = str(config)
    else:
        content = resolved(config) if isinstance(config, Config) else config
        settings, where = config_of(content, base=Path.cwd()), "config"
    tuning = Tuning(_with_keys(settings, keys), where, allow_grammar_paths=allow_grammar_paths)
    with shown_progress("tune", progress) as shown:
        return tuning.run(Path(run_dir), workers=workers, executor=executor, resume=resume, progress=shown)


def _with_keys(config: Config, keys: Mapping[str, Any]) -> Config:
    """Return the configuration with some keys of its ``tune`` section set."""
    known = dataclasses.asdict(config.tune or TuneConfig())
    settings = record(TuneConfig, known | dict(keys), "tune")
    check_used(settings.algorithm, keys, "tune: {}".format)
    settings = map_paths(settings, lambda key, path: os.path.abspath(path) if key in keys else path)
    return dataclasses.replace(config, tune=settings)


def _plain_recipe(recipe: Recipe) -> dict[str, Any]:
    """The settings of a recipe, without its files and what changes no model."""
    files = ("vocabulary", "memory", "temp", "threads", "order")
    return {key: value for key, value in dataclasses.asdict(recipe.config).items() if key not in files}


class Tuning:
    """A validated tuning configuration.

    texts  replacements of the sources of some sets, which name the grammars of their sentences
    made   whether earlier stages make the files that do not exist yet
    allow_grammar_paths  permit grammars of sentences outside the directory of their text
    """

    def __init__(
        self,
        config: Config,
        where: str,
        texts: Mapping[str, Path] = MappingProxyType({}),
        *,
        made: bool = False,
        allow_grammar_paths: bool = False,
    ) -> None:
        self.allow_grammar_paths = allow_grammar_paths
        self.where, self.texts = where, texts
        if config.is_bundled:
            config = with_bundled(config)
        # The initial weights are those of ``start``.
        self.config = dataclasses.replace(config, weights=None)
        self.written = (config.tune or TuneConfig()).with_presets()
        self.settings = self.written.resolved()
        self.seed = config.seed if self.settings.seed is None else self.settings.seed
        if not made:
            self._check_made()
        self.recipe = self._recipe()
        self.files = self._set("on", self.settings.on)
        self.held_out = self._held_out()
        if self.settings.leave_one_out and not self.config.indexes:
            raise self._error("leave_one_out", "needs a grammar that is an index")
        if len(self.config.indexes) > 1 and self.settings.leave_one_out:
            raise self._error("leave_one_out", "found several indexes, expected the one of the sentences")
        if self.settings.start not in STARTS and not Path(self.settings.start).is_file():
            expected = f"expected {', '.join(STARTS)} or a file of weights"
            raise self._error("start", f"found no file {self.settings.start}, {expected}")
        if self.settings.neighbours != "none" and self.config.features.bins is None:
            raise self._error("neighbours", "needs bins (features: {bins: FILE})")
        try:  # learners check their settings
            # The features are not known yet.
            make_learner(self.settings, LearnerContext(seed=self.seed, named=[0]))
        except ConfigError as error:
            raise ConfigError(f"{self.where}: tune: {error}") from None

    def _error(self, key: str, problem: str) -> ConfigError:
        return ConfigError(f"{self.where}: tune: {key}: {problem}")

    def _check_made(self) -> None:
        """Refuse sections for files that only ``hiero run`` makes."""
        check_made(self.config, self.where)
        if self.config.grid is not None:
            raise ConfigError(f"{self.where}: grid: works with hiero run, not with hiero tune")
        if self.config.prep is not None:
            raise ConfigError(f"{self.where}: prep: hiero tune does not prepare text ({MADE_BY_RUN})")
        if self.config.sequester:
            raise ConfigError(f"{self.where}: data: sequester: hiero tune draws no sets ({MADE_BY_RUN})")

    # ---- data

    def _set(self, key: str, name: str) -> SetFiles:
        data = self.config.data
        if name not in data:
            others = {other for other in data if key == "on" or other != self.settings.on}
            near = did_you_mean(name, others) if others else "there is no other in data"
            raise self._error(key, f"unknown set {name!r}; {near}")
        section = data[name]
        if not section.translations:
            raise self._error(key, f"found {name}, which has no references, expected a set with references")
        source = str(self.texts.get(name, section.source))
        left_out = key == "on" and self.settings.leave_one_out
        base = "" if self.config.grammar_folders else str(Path(source).resolve().parent)
        return SetFiles(source, tuple(section.translations), left_out, base, self.allow_grammar_paths)

    def _held_out(self) -> SetFiles | None:
        name = self.settings.held_out
        default = TuneConfig.__dataclass_fields__["held_out"].default
        if name is None or (name == default and name not in self.config.data):
            return None
        if name == self.settings.on:
            raise self._error("held_out", f"found {name}, the set to learn from, expected another set")
        return self._set("held_out", name)

    def _recipe(self) -> Recipe | None:
        """How the first language model was estimated, to do it again without some of its text."""
        if self.settings.lm != "jackknife":
            return None
        if not self.config.lm:
            raise self._error("lm", "jackknife needs a language model to replace")
        section = self.config.lm[0]
        try:
            config = section.estimation()
        except ConfigError as error:
            raise ConfigError(f"{self.where}: lm: entry 1: {error}") from None
        # Less text may be too little for discounts, and has no symbols to refuse.
        fallback = config.discount_fallback or FALLBACK
        return Recipe(
            section.text, dataclasses.replace(config, discount_fallback=fallback, skip_symbols=True)
        )

    # ---- inputs and settings of the result

    def inputs(self) -> dict[str, Path]:
        """The input files, by the keys that name them."""
        found = model_inputs(self.config)
        for name, files in self._sets():
            found[f"data: {name}: source"] = Path(files.source)
            for number, path in enumerate(files.references, 1):
                found[f"data: {name}: references: entry {number}"] = Path(path)
        if self.recipe is not None:
            section = self.config.lm[0]
            for key, file in (("text", section.text), ("vocabulary", section.vocabulary)):
                found |= {} if file is None else {f"lm: entry 1: {key}": Path(file)}
        return found | {f"tune: {key}": Path(path) for key, path in record_paths(self.settings).items()}

    def _sets(self) -> list[tuple[str, SetFiles]]:
        held_out = [(str(self.settings.held_out), self.held_out)] if self.held_out else []
        return [(self.settings.on, self.files), *held_out]

    def _own_grammars(self, files: SetFiles) -> list[Path]:
        """The grammars named by the sentences of a set."""
        base = files.base or self.config.grammar_folders[0]
        segments = read_tuning_segments(dataclasses.replace(files, base=base), self.config.search.form)
        return [Path(path) for segment in segments for path in grammar_paths(segment.attributes)]

    def settings_of_answer(self) -> dict[str, Any]:
        # Without what does not change the weights of any epoch, and without paths, since the content of the
        # files counts.
        chosen = dataclasses.asdict(map_paths(self.written, lambda key, path: "a file")) | {"seed": self.seed}
        del chosen["epochs"], chosen["keep_rules"]
        jackknife = {} if self.recipe is None else {"jackknife": _plain_recipe(self.recipe)}
        return {"tune": chosen, **jackknife, **model_settings(self.config)}

    def state(self, digest: Callable[[Path], str]) -> dict[str, Any]:
        """Everything the result depends on, as JSON."""
        digests = {}
        for key, path in self.inputs().items():
            digests[key] = digest(path)
            if not digests[key]:
                raise FormatError(path, 0, found="no such file", expected=f"that of {key}")
        for name, files in self._sets():
            if own := self._own_grammars(files):
                listed = "".join(digest(path) for path in own)
                digests[f"grammars of data: {name}"] = hashlib.sha256(listed.encode()).hexdigest()
        content = {"made_by": version_series(), "settings": self.settings_of_answer(), "digests": digests}
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
        progress: Progress | None = None,
        opened: OpenedFiles | None = None,
        rules: Path | None = None,
    ) -> Tuned:
        """Learn weights, continuing an earlier run in the directory, if there is one.

        opened  the files of the model, where tasks run in threads of this process
        rules   where to keep rules of sentences; by default in the directory of the run
        """
        progress = progress or SilentProgress()
        check_executor(executor)
        directory = Path(os.path.abspath(directory))
        _check_directory(directory, resume)
        with locked_directory(directory, "hiero tune"):
            _check_directory(directory, resume)  # again, under the lock
            state = self.state(Manifest(directory).digest if opened is None else opened.digest)
            self._keep(directory, state)
            with open_executor(executor, workers, progress) as executors:
                progress.begin(None, "load")
                files = RunFiles(directory)
                load = make_model if opened is None else opened.model
                session = self._session(state, load, rules or directory / RULES)
                course: Course
                if self.settings.row.online:
                    course = OnlineCourse(session, files)
                else:
                    course = BatchCourse(session, files, workers, progress)
                loop = Loop(session, course, files, self.held_out, executors, workers, progress)
                self._report(loop, open_index if opened is None else opened.index)
                log = loop.run()
        epoch = choose_epoch(log)
        write_output(directory / ANSWER, files.weights(epoch - 1).read_bytes(), packed=True)
        return Tuned(directory / ANSWER, epoch, log)

    def _session(self, state: Mapping[str, Any], make: Callable[..., Model], rules: Path) -> Session:
        model = model_config(self.config)
        keeps_rules = self.settings.keep_rules and self.settings.epochs > 1 and self.config.indexes
        store = str(rules) if keeps_rules else None
        load = functools.partial(make, model, spare_store=store)
        key = hashlib.sha256(json.dumps([state, resolved(model), store, self.files], default=vars).encode())
        models = tuple(section.files for section in model.lm)
        return Session(load, self.files, self.settings, self.seed, key.hexdigest(), models, self.recipe)

    def fits(self, directory: Path, digest: Callable[[Path], str]) -> bool:
        """Whether a directory is new, or that of a run with the same settings and inputs."""
        if not (directory / STATE).exists():
            return not directory.exists()
        try:
            _check_unchanged(directory, self.state(digest), self.settings.epochs)
        except HieroError:
            return False
        return True

    def _keep(self, directory: Path, state: dict[str, Any]) -> None:
        """Write everything the result depends on, or compare it with that of an earlier run."""
        if (directory / STATE).exists():
            _check_unchanged(directory, state, self.settings.epochs)
            _remove_leftovers(directory)
        else:
            _write_state(directory, state)
        full = dataclasses.replace(self.config, tune=self.written, weights=None)
        write_settings(directory / CONFIG, resolved(full), "the configuration of this run, in full")

    def _report(self, loop: Loop, index: Callable[[str], BitextIndex]) -> None:
        """Print warnings about the settings and the data, before the first epoch."""
        say, settings, workers = loop.progress.say, self.settings, loop.workers
        loop.health.count(loop.set, loop.numbers)
        known = loop.model.symbols.names.entries()[: loop.model.num_names]
        names = (name.decode("utf-8", "replace") for name in known)
        bins = loop.model.bins
        not_expected = {one.feature for one in bins if one.replaces}
        if settings.neighbours != "none":  # bins without translations get weights, too
            not_expected.update(*(one.names for one in bins))
        loop.health.expect(name for name in names if name not in not_expected)
        self._compare_start(loop)
        if problem := shared_names(loop.model):
            say(problem)
        bars = next((n for n, one in enumerate(loop.set.segments, 1) if "|||" in one.words), 0)
        if bars:
            say(f"{self.files.source}:{bars}: {TRANSLATED_BARS}")
        self._check_index(loop, say, index)
        if self.held_out is None:
            say("nothing is held out: the result is the last epoch (held_out names a set of data)")
        if settings.stale:
            say("stale: gradients are applied late, and another run will learn other weights")
        num_shards = settings.shards or -(-len(loop.numbers) // settings.shard_size)
        if workers > num_shards and settings.row.online and settings.batch == 1:
            which = "one shard" if num_shards == 1 else f"{num_shards} shards"
            say(f"not all of {workers} workers are used: {which}, each learning sentence by sentence")

    def _compare_start(self, loop: Loop) -> None:
        """Compare initial weights from a file with the features of the model."""
        start = self.settings.start
        if start in STARTS:
            return
        path = f"{self.where}: tune: start: {start}"
        check = WeightsCheck(path, strict=self.config.strict, report=loop.progress.say)
        named = [segment for segment in loop.set.segments if grammar_paths(segment.attributes)]
        check.compare(loop.model, read_weights(start, Symbols()), unread=named)

    def _check_index(
        self, loop: Loop, say: Callable[[str], None], index: Callable[[str], BitextIndex]
    ) -> None:
        """Check that sentences of an index are learnt from with ``leave_one_out``, and no others."""
        segments = loop.set.segments
        for path in self.config.indexes:
            extractor = Extractor(index(path), ExtractConfig())
            numbers = [n for n in range(min(NUM_COMPARED, len(segments))) if segments[n].words]
            same = [extractor.is_sentence(number, segments[number].words) for number in numbers]
            if not self.settings.leave_one_out:
                if numbers and all(same):
                    hint = "leave_one_out: true translates each without the rules extracted from it"
                    say(f"{path} is an index of the sentences of {self.settings.on}: {hint}")
            elif not all(same) or len(segments) > extractor.index.num_sentences:
                number = numbers[same.index(False)] if not all(same) else extractor.index.num_sentences
                hint = "leave_one_out is for the sentences of the index"
                expected = f"that of pair {number + 1} of {path} ({hint})"
                raise FormatError(self.files.source, number + 1, found="another sentence", expected=expected)
