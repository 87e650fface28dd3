"""Stages of an experiment, a plan of stages that build on each other, and the table of their kinds."""

from __future__ import annotations

import dataclasses
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hiero.config.config import Config
from hiero.config.sections import TRAIN, DataSection
from hiero.core.errors import ConfigError, did_you_mean
from hiero.core.progress import Progress
from hiero.core.records import numbered_keys

if TYPE_CHECKING:
    from hiero.config.model import OpenedFiles

Figures = Mapping[str, Any]  # results of a stage, for the manifest


@dataclass(frozen=True)
class Task:
    """The arguments of a stage's work.

    temp    an empty directory, removed afterwards
    key     a digest of everything that the outputs depend on
    opened  models and indexes, shared with the other stages
    """

    threads: int
    temp: Path
    key: str
    progress: Progress
    opened: OpenedFiles


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A piece of work. Its outputs depend on its inputs and settings, and on nothing else.

    name      ``kind`` or ``kind:what``
    inputs    files and directories by name; for those of the configuration, the key that names them
    outputs   files and directories; each appears complete
    settings  plain values
    """

    name: str
    work: Callable[[Task], Figures]
    inputs: Mapping[str, Path]
    outputs: tuple[Path, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return self.name.partition(":")[0]


class Plan:
    """The stages of a configuration so far.

    config  with the paths of the stages' outputs
    where   the beginning of messages: the file of the configuration
    texts   for each set to translate, the input of decoding
    learnt_from, chosen_on  the set from which weights are learnt, and that whose odd lines choose them
    allow_grammar_paths  permit grammars of sentences outside the directory of their text
    """

    def __init__(self, config: Config, out: Path, where: str, *, allow_grammar_paths: bool = False) -> None:
        self.config, self.out, self.where = config, out, where
        self.allow_grammar_paths = allow_grammar_paths
        self.stages: list[Stage] = []
        self.texts: dict[str, Path] = {}
        self.grammars: dict[str, Path] = {}  # for each set, the directory of its sentences' grammars
        self.learnt_from: str | None = None
        self.chosen_on: str | None = None
        self.outputs: dict[str, Path] = {}  # for each set, its translations
        self.unmarked: dict[str, DataSection] = {}  # sets before compounds of their references were split
        self.lm_text: Path | None = None  # each target sentence once, where the training data have some twice

    def add(self, **stage: Any) -> None:
        """Add a stage, given by its fields."""
        made = {path for earlier in self.stages for path in earlier.outputs}
        self.stages.append(Stage(**stage))
        for key, path in self.stages[-1].inputs.items():
            if path not in made and not path.exists():
                raise self.error(key, f"no such file: {path}")

    def error(self, key: str, problem: str) -> ConfigError:
        return ConfigError(f"{self.where}: {key}: {problem}")

    def train(self, purpose: str) -> DataSection:
        if TRAIN not in self.config.data:
            others = self.config.data
            hint = f"; {did_you_mean(TRAIN, others)}" if others else ""
            raise self.error("data", f"{TRAIN} is missing, which {purpose} needs{hint}")
        return self.config.data[TRAIN]

    def test_sets(self) -> Iterator[tuple[str, DataSection]]:
        return ((name, section) for name, section in self.config.data.items() if name != TRAIN)

    def replace(self, **sections: Any) -> None:
        self.config = dataclasses.replace(self.config, **sections)


def keys_of(name: str, section: DataSection) -> list[str]:
    """The keys of a source and its translations, in a configuration."""
    place = f"data: {name}"
    if section.target is not None:
        return [f"{place}: source", f"{place}: target"]
    return [f"{place}: source", *numbered_keys(f"{place}: references", section.translations)]


# ---- kinds of stages


class StageKind(NamedTuple):
    """A kind of stage.

    add       MODULE:FUNCTION, imported when it is needed; it adds the stages that a plan's configuration asks
              for, and puts their outputs into the configuration for the kinds that follow
    sections  sections of the configuration; the function is called if one of them is given
    help      what the stages do
    """

    add: str
    sections: tuple[str, ...]
    help: str

    def is_asked_for(self, config: Config) -> bool:
        return any(getattr(config, section) for section in self.sections)

    def function(self) -> Callable[[Plan], None]:
        found: Callable[[Plan], None] = pkgutil.resolve_name(self.add)
        return found


_MODELS, _TRANSLATE = "hiero.pipeline.model_stages", "hiero.pipeline.translate_stages"
_TUNE, _COMPOUNDS = "hiero.pipeline.tune_stages", "hiero.pipeline.compound_stages"

# Kinds of stages in the order of planning, by the names of their stages before a colon.
STAGES = {
    "prep": StageKind(f"{_MODELS}:add_prep", ("prep",), "prepare text"),
    "sequester": StageKind(f"{_MODELS}:add_sequester", ("sequester",), "take sets out of the bitext"),
    "mark": StageKind(f"{_COMPOUNDS}:add_mark", ("prep",), "split compounds of the target side"),
    "split": StageKind(f"{_COMPOUNDS}:add_split", ("prep",), "split compounds"),
    "align": StageKind(f"{_MODELS}:add_align", ("data", "align", "grammar", "reorder"), "align words"),
    "lm": StageKind(f"{_MODELS}:add_lm", ("lm",), "estimate language models"),
    "index": StageKind(f"{_MODELS}:add_index", ("grammar",), "index the bitext"),
    "reorder": StageKind(f"{_MODELS}:add_reorder", ("reorder",), "learn an orientation model"),
    "extract": StageKind(f"{_TRANSLATE}:add_extract", ("grammar",), "extract grammars"),
    "grid": StageKind(f"{_TUNE}:add_grid", ("grid",), "tune with several settings and choose the best"),
    "bins": StageKind(f"{_MODELS}:add_bins", ("bins",), "learn bins of dense features"),
    "tune": StageKind(f"{_TUNE}:add_tune", ("tune",), "learn weights"),
    "curves": StageKind(f"{_TUNE}:add_curves", ("tune",), "draw the weights of bins"),
    "decode": StageKind(f"{_TRANSLATE}:add_decode", ("data",), "translate"),
    "join": StageKind(f"{_COMPOUNDS}:add_join", ("prep",), "join compounds of translations"),
    "eval": StageKind(f"{_TRANSLATE}:add_eval", ("data", "eval"), "evaluate"),
}


def make_plan(config: Config, out: Path, where: str, *, allow_grammar_paths: bool = False) -> Plan:
    """The plan of a configuration: all its stages, in the order of running."""
    made = Plan(config, out, where, allow_grammar_paths=allow_grammar_paths)
    for kind in STAGES.values():
        if kind.is_asked_for(made.config):
            kind.function()(made)
    if not made.stages:
        raise ConfigError(f"{where}: nothing to do: needs data, and sections such as align, lm or grammar")
    return made
