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
    TRAIN,
    DataSection,
    EvalSection,
    FeaturesSection,
    GrammarSection,
    GridSection,
    LanguageModelSection,
    PrepSection,
    ReorderSection,
    WeightsSection,
    as_list,
    check_data,
)
from hiero.core.records import read_settings, record
from hiero.decoder.config import SearchConfig
from hiero.extraction.index import is_index
from hiero.learning.config import STARTS, TuneConfig


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
        named = ((section.index, section.path) for section in self.grammar)
        return [str(index or path) for index, path in named if index is not None or (path and is_index(path))]

    @property
    def model_files(self) -> list[str]:
        """The files and directories that the model is loaded from."""
        named = [section.path or section.index for section in self.grammar]
        grammars = [path for path in named if path is not None and path != TRAIN]
        weights = [self.weights.path] if self.weights is not None else []
        models = [section.path for section in self.lm if section.path is not None]
        bins = [self.features.bins] if self.features.bins is not None else []
        return [*grammars, *models, *weights, *bins, *as_list(self.features.reordering)]


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

    def based(path: Any) -> Any:
        """Resolve a path, a list of paths, or None."""
        if isinstance(path, list):
            return [based(one) for one in path]
        return None if path is None else os.path.normpath(base / path)

    def unless_train(path: str | None) -> Any:
        return path if path == TRAIN else based(path)

    def start_of(name: str) -> Any:
        return name if name in STARTS else based(name)

    return dataclasses.replace(
        config,
        data={
            name: DataSection(
                **{key.name: based(getattr(section, key.name)) for key in dataclasses.fields(section)}
            )
            for name, section in config.data.items()
        },
        grammar=[
            dataclasses.replace(
                section,
                path=based(section.path),
                index=unless_train(section.index),
                per_sentence=based(section.per_sentence),
                extract=dataclasses.replace(section.extract, store=based(section.extract.store)),
            )
            for section in config.grammar
        ],
        lm=[
            dataclasses.replace(
                section,
                path=based(section.path),
                estimate=unless_train(section.estimate),
                vocabulary=based(section.vocabulary),
            )
            for section in config.lm
        ],
        weights=config.weights and WeightsSection(path=based(config.weights.path)),
        features=dataclasses.replace(
            config.features,
            bins=based(config.features.bins),
            reordering=based(config.features.reordering),
        ),
        tune=config.tune and dataclasses.replace(config.tune, start=start_of(config.tune.start)),
        eval=dataclasses.replace(
            evaluation,
            against={
                system: {name: based(paths) for name, paths in sets.items()}
                for system, sets in evaluation.against.items()
            },
        ),
    )


MADE_BY_RUN = "for files made by hiero run, use the model.yaml in its directory"


MODEL_SECTIONS = ("grammar", "lm", "weights", "features", "search")


def resolved(config: Config, base: Path | None = None) -> dict[str, Any]:
    """A configuration with its defaults as plain values.

    base  given, only the sections of a model, with the paths below this directory relative to it
    """

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
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        if base is not None and isinstance(value, str) and value.startswith(f"{base}{os.sep}"):
            return Path(value).relative_to(base).as_posix()
        return value

    written = plain(config)
    if base is not None:
        # Without the defaults of sections, which are left to the program that reads them.
        model = {key: written[key] for key in MODEL_SECTIONS if key in written}
        model["grammar"] = [
            {key: value for key, value in entry.items() if key != "write"} for entry in model["grammar"]
        ]
        model["lm"] = [{"name": entry["name"], "path": entry["path"]} for entry in model["lm"]]
        return model
    return dict(written)
