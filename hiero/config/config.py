"""The configuration: YAML in sections, each read into a typed record; ``load`` makes a model of it.

Unknown keys are errors that name the nearest one. Paths in a file are relative to the file. ``load`` and
``hiero decode`` use the sections of a model, ``hiero run`` all of them (see ``pipeline``).
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hiero.alignment.config import AlignConfig
from hiero.bins.config import BinsConfig
from hiero.config.sections import (
    DataSection,
    EvalSection,
    FeaturesSection,
    GrammarSection,
    GridSection,
    LanguageModelSection,
    PrepSection,
    ReorderSection,
    WeightsSection,
    check_data,
)
from hiero.core.records import map_paths, read_settings, record, record_paths
from hiero.decoder.config import SearchConfig
from hiero.learning.config import TuneConfig


@dataclass(frozen=True, kw_only=True)
class Config:
    """A whole configuration. The default is the bundled model."""

    seed: int = 1  # of all random choices
    data: dict[str, DataSection] = field(default_factory=dict)
    prep: PrepSection | None = None
    align: AlignConfig | None = None
    grammar: list[GrammarSection] = field(default_factory=list)
    lm: list[LanguageModelSection] = field(default_factory=list)
    weights: WeightsSection | None = None
    features: FeaturesSection = field(default_factory=FeaturesSection)
    bins: BinsConfig | None = None
    reorder: ReorderSection | None = None
    search: SearchConfig = field(default_factory=SearchConfig)
    tune: TuneConfig | None = None
    grid: GridSection | None = None
    eval: EvalSection = field(default_factory=EvalSection)

    @property
    def is_bundled(self) -> bool:
        """Whether no part of a model is named, which stands for the bundled model."""
        return not self.grammar and not self.lm and self.weights is None

    @property
    def indexes(self) -> list[str]:
        """The bitext indexes among the grammars."""
        from hiero.extraction.index import is_index

        named = ((section.index, section.path) for section in self.grammar)
        return [str(index or path) for index, path in named if index is not None or is_index(path)]

    @property
    def grammar_folders(self) -> list[str]:
        """The directories of sentences' grammars; without any, their paths are relative to the text."""
        return [section.per_sentence for section in self.grammar if section.per_sentence is not None]

    @property
    def model_files(self) -> dict[str, str]:
        """The files and directories that the model is made of, by their keys."""
        model = Config(grammar=self.grammar, lm=self.lm, weights=self.weights, features=self.features)
        found = record_paths(model).items()
        return {key: path for key, path in found if key.rpartition(": ")[2] not in NOT_OF_MODEL}


NOT_OF_MODEL = ("store", "estimate", "vocabulary")  # a cache, and inputs of a model's estimation


def read_config(path: str | Path) -> Config:
    """Read a YAML file."""
    content = read_settings(path)
    return config_of({} if content is None else content, str(path), Path(path).parent)


def config_of(content: Any, where: str = "config", base: Path = Path()) -> Config:
    """Check nested mappings and make a configuration of them; paths are relative to ``base``."""
    config = record(Config, content, where)
    check_data(config.data, where)
    evaluation = config.eval
    if "seed" not in (content.get("eval") or {}):
        evaluation = dataclasses.replace(evaluation, seed=config.seed)

    config = dataclasses.replace(config, eval=evaluation)
    return map_paths(config, lambda key, path: os.path.normpath(base / path))


MADE_BY_RUN = "for files made by hiero run, use the model.yaml in its directory"


MODEL_SECTIONS = ("grammar", "lm", "weights", "features", "search")


def resolved(config: Config, base: Path | None = None) -> dict[str, Any]:
    """A configuration with its defaults as plain values.

    base  given, only the sections of a model, with the paths below this directory relative to it
    """

    def relative(key: str, path: str) -> str:
        below = path.startswith(f"{base}{os.sep}")
        return Path(path).relative_to(str(base)).as_posix() if below else path

    def plain(value: Any) -> Any:
        if dataclasses.is_dataclass(value):
            fields = dataclasses.fields(value)
            items = [(field, getattr(value, field.name)) for field in fields]
            # A None that is the default, and an empty mapping, are left out.
            return {
                f.name: plain(item) for f, item in items if item != {} and (item, f.default) != (None, None)
            }
        if isinstance(value, Mapping):
            return {key: plain(item) for key, item in value.items()}
        return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value

    written = plain(config if base is None else map_paths(config, relative))
    if base is not None:
        # Without the defaults of sections, which are left to the program that reads them.
        model = {key: written[key] for key in MODEL_SECTIONS if key in written}
        model["grammar"] = [
            {key: value for key, value in entry.items() if key != "write"} for entry in model["grammar"]
        ]
        model["lm"] = [{"name": entry["name"], "path": entry["path"]} for entry in model["lm"]]
        return model
    return dict(written)
