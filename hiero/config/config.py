"""The configuration: YAML in sections, each read into a typed record; ``load`` makes a model of it.

Unknown keys are errors that name the nearest one. Paths in a file are relative to the file. ``load`` and
``hiero decode`` use the sections of a model, ``hiero run`` all of them (see ``pipeline``).
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hiero.adaptation.config import AdaptConfig
from hiero.alignment.config import AlignConfig
from hiero.bins.config import BinsConfig
from hiero.bitext.config import OF_LINES
from hiero.config.package import CONFIG as PACKED_CONFIG
from hiero.config.package import is_package, unpacked
from hiero.config.sections import (
    SEQUESTER,
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
    check_data,
)
from hiero.core.errors import ConfigError, FormatError, show
from hiero.core.records import PathKey, map_paths, record, record_paths, value_of
from hiero.core.text import decode_utf8, read_chunks, write_output
from hiero.decoder.config import ConsensusConfig, SearchConfig
from hiero.learning.config import TuneConfig


@dataclass(frozen=True, kw_only=True)
class Config:
    """A whole configuration. The default is the bundled model."""

    seed: int = 1  # of all random choices
    strict: bool = False  # whether weights that do not fit the model are an error, not a warning
    data: dict[str, DataSection] = field(default_factory=dict)
    # In files: data: sequester. For each set to draw from the training data, its number of sentence pairs.
    sequester: dict[str, int] = field(default_factory=dict)
    prep: PrepSection | None = None
    align: AlignConfig | None = None
    grammar: list[GrammarSection] = field(default_factory=list)
    lm: list[LanguageModelSection] = field(default_factory=list)
    weights: WeightsSection | None = None
    features: FeaturesSection = field(default_factory=FeaturesSection)
    bins: BinsConfig | None = None
    reorder: ReorderSection | None = None
    search: SearchConfig = field(default_factory=SearchConfig)
    terms: PathKey | None = None  # file with terms and their translations
    hard_terms: bool = False  # whether these are the only translations of the terms
    consensus: ConsensusConfig = field(default_factory=ConsensusConfig)
    adapt: AdaptConfig = field(default_factory=AdaptConfig)
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
        model = Config(
            grammar=self.grammar,
            lm=self.lm,
            weights=self.weights,
            features=self.features,
            terms=self.terms,
        )
        found = record_paths(model).items()
        return {key: path for key, path in found if key.rpartition(": ")[2] not in NOT_OF_MODEL}


NOT_OF_MODEL = ("store", "target_counts", "estimate", "text", "vocabulary")  # caches, inputs of estimation


def read_config(path: str | Path) -> Config:
    """Read a configuration from a YAML file, or that of a model package, which is unpacked."""
    if is_package(path):
        path = unpacked(path) / PACKED_CONFIG
    content = read_settings(path)
    return config_of({} if content is None else content, str(path), Path(path).parent)


def config_from(given: str | Path | Mapping[str, Any] | Config) -> Config:
    """A configuration as a user gives it in Python: a file, its content, or one made before."""
    if isinstance(given, str | Path):
        return read_config(given)
    return given if isinstance(given, Config) else config_of(given)


def config_of(content: Any, where: str = "config", base: Path = Path()) -> Config:
    """Check nested mappings and make a configuration of them; paths are relative to ``base``."""
    config = record(Config, *_without_sequester(content, where))
    check_data(config.data, config.sequester, where)
    evaluation = config.eval
    if "seed" not in (content.get("eval") or {}):
        evaluation = dataclasses.replace(evaluation, seed=config.seed)

    config = dataclasses.replace(config, eval=evaluation)
    return map_paths(config, lambda key, path: os.path.normpath(base / path))


def _without_sequester(content: Any, where: str) -> tuple[Any, str]:
    """The content of a file with ``data: sequester`` as a section of its own, and ``where``."""
    data = content.get("data") if isinstance(content, Mapping) else None
    if isinstance(content, Mapping) and SEQUESTER in content:
        raise ConfigError(f"{where}: {SEQUESTER}: belongs in data (data: {{{SEQUESTER}: {{NAME: PAIRS}}}})")
    if not isinstance(data, Mapping) or SEQUESTER not in data:
        return content, where
    sets = {name: section for name, section in data.items() if name != SEQUESTER}
    sizes = value_of(dict[str, int], data[SEQUESTER] or {}, f"{where}: data: {SEQUESTER}")
    return {**content, "data": sets, SEQUESTER: sizes}, where


MODEL_SECTIONS = ("grammar", "lm", "weights", "features", "search")


def resolved(config: Config, base: Path | None = None) -> dict[str, Any]:
    """A configuration with its defaults as plain values.

    base  given, only the sections of a model, and how its text is prepared, with the paths below this
          directory relative to it
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
        if config.terms is not None:
            model |= {"terms": written["terms"], "hard_terms": written["hard_terms"]}
        if config.consensus != ConsensusConfig():
            model["consensus"] = written["consensus"]
        if config.prep is not None:
            left_out = (*OF_LINES, "compounds")  # of lines to drop, and of models that are learnt
            model["prep"] = {key: value for key, value in written["prep"].items() if key not in left_out}
        model["lm"] = [_existing(entry) for entry in model["lm"]]
        return model
    if sizes := written.pop(SEQUESTER, None):
        written["data"] = {**written.get("data", {}), SEQUESTER: sizes}
    return dict(written)


def _existing(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What is written of a language model in the section of a model: not how it was estimated."""
    return {key: entry[key] for key in ("name", "path", "classes") if key in entry}


# ---- checks

MADE_BY_RUN = "for files made by hiero run, use the model.yaml in its directory"


def check_made(config: Config, where: str = "") -> None:
    """Refuse a configuration with files that only ``hiero run`` makes. ``where`` begins messages."""
    start = f"{where}: " if where else ""
    for number, section in enumerate(config.grammar, 1):
        if section.index == TRAIN:
            found = f"found index: {TRAIN}, expected its path ({MADE_BY_RUN})"
            raise ConfigError(f"{start}grammar: entry {number}: {found}")
    for number, model in enumerate(config.lm, 1):
        if model.path is None:
            raise ConfigError(f"{start}lm: entry {number}: path is missing ({MADE_BY_RUN})")
    for name, key, kind in (("bins", "bins", "a bins file"), ("reorder", "reordering", "a model")):
        if getattr(config, name) is not None and not getattr(config.features, key):
            needed = f"needs features: {key}, the path of {kind} ({MADE_BY_RUN})"
            raise ConfigError(f"{start}{name}: {needed}")


def needs_run(config: Config) -> bool:
    """Whether ``hiero run`` makes some of the files of a configuration."""
    try:
        check_made(config)
    except ConfigError:
        return True
    return config.prep is not None or bool(config.sequester)


def check_entries(config: Config, where: str = "") -> None:
    """Check that each grammar is named by one key. ``where`` begins messages."""
    start = f"{where}: " if where else ""
    for number, section in enumerate(config.grammar, 1):
        if (section.path, section.index, section.per_sentence).count(None) != 2:
            needed = "needs exactly one of path, index and per_sentence"
            raise ConfigError(f"{start}grammar: entry {number}: {needed}")


# ---- YAML

BOOL = "tag:yaml.org,2002:bool"
NUMBER_TAGS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """Loads plain values only, and refuses repeated keys, of which YAML would drop the first.

    ``on``, ``off``, ``yes``, ``no`` are strings, as in YAML 1.2: ``on`` is one of our keys.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key_node.tag != MERGE:
                if key in seen:
                    problem = f"the key {show(str(key))} a second time"
                    raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
                seen.add(key)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, shape) for tag, shape in resolvers if tag != BOOL]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(BOOL, re.compile("(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))


MOST_SETTINGS = 1 << 20  # bytes of a file
MOST_VALUES = 100_000  # with those that aliases repeat
MOST_DIGITS = 1000


def _check_size(root: yaml.Node) -> None:
    """Refuse aliases that repeat too much, or themselves, and numbers that take minutes to convert."""
    sizes: dict[int, int] = {}  # of nodes; 0 while the node is being counted

    def size(node: yaml.Node) -> int:
        if id(node) not in sizes:
            sizes[id(node)] = 0
            below: Iterable[yaml.Node] = ()
            if isinstance(node, yaml.MappingNode):
                below = itertools.chain.from_iterable(node.value)
            elif isinstance(node, yaml.SequenceNode):
                below = node.value
            elif node.tag in NUMBER_TAGS and len(node.value) > MOST_DIGITS:
                problem = f"a number of {len(node.value)} characters"
                raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
            sizes[id(node)] = 1 + sum(map(size, below))
        found = sizes[id(node)]
        if not found or found > MOST_VALUES:
            problem = f"more than {MOST_VALUES:,} values" if found else "an alias within what it stands for"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        return found

    size(root)


def read_settings(path: str | Path) -> Any:
    """The content of a YAML file, None if it is empty."""
    data = bytearray()
    for chunk in read_chunks(path, what="settings in YAML"):
        data += chunk.data
        if len(data) > MOST_SETTINGS:
            found = f"more than {MOST_SETTINGS >> 20} MB"
            raise FormatError(path, 0, found=found, expected="settings in YAML")
    text = decode_utf8(path, bytes(data))
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            return None
        _check_size(root)
        return loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        found = (error.problem or error.context or "a mistake").removeprefix("but ").removeprefix("found ")
        raise FormatError(path, line, found=found, expected="YAML") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        found = f"the character U+{error.character:04X}"
        raise FormatError(path, line, found=found, expected="YAML") from None
    except RecursionError:
        raise FormatError(path, 0, found="lists nested too deeply", expected="YAML") from None
    except ValueError as error:  # a date such as 2020-99-99
        raise FormatError(path, 0, found=f"an impossible value ({error})", expected="YAML") from None


def write_settings(path: Path, content: Any, heading: str) -> None:
    """Write settings in their order, after a line of comment."""
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110)
    write_output(path, f"# {heading}\n{text}")
