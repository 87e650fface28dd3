"""Bins learnt from the grammars of a set of data, as a configuration describes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from hiero.bins.bins import FeatureBins
from hiero.bins.config import BinsConfig
from hiero.bins.file import write_bins
from hiero.bins.learn import learn_bins
from hiero.config.config import MADE_BY_RUN, Config, check_made
from hiero.config.model import open_model_sources, with_bundled
from hiero.core.errors import ConfigError, FormatError, did_you_mean
from hiero.core.progress import Progress
from hiero.core.symbols import Symbols
from hiero.extraction.index import BitextIndex, open_index
from hiero.tuning.shard import SetFiles, read_tuning_segments


class Binning:
    """A validated configuration for learning bins.

    texts  for some sets, a file to read in place of the source, because it names the sentences' grammars
    allow_grammar_paths  permit grammars of sentences outside the directory of their text
    """

    def __init__(
        self,
        config: Config,
        where: str,
        texts: Mapping[str, Path] = MappingProxyType({}),
        *,
        allow_grammar_paths: bool = False,
    ) -> None:
        self.config = with_bundled(config) if config.is_bundled else config
        self.settings = config.bins or BinsConfig()
        self.where = where
        check_made(Config(grammar=config.grammar), where)
        if not self.settings.features:
            hint = "such as EgivenFCoherent: {of: probability}"
            raise self._error("features", f"needs names of dense features, {hint}")
        if config.features.bins is not None:
            raise self._error("features", "cannot be combined with features: bins")
        if self.settings.on in config.sequester:
            raise self._error("on", f"found {self.settings.on}, a set to be drawn ({MADE_BY_RUN})")
        if self.settings.on not in config.data:
            near = did_you_mean(self.settings.on, config.data) if config.data else "data is empty"
            raise self._error("on", f"unknown set {self.settings.on!r}; {near}")
        for feature in self.settings.features:
            if feature in config.features.transform:
                raise self._error(f"features: {feature}", "cannot be combined with features: transform")
        if self.settings.leave_one_out and len(config.indexes) != 1:
            found = f"found {len(config.indexes) or 'no'} indexes"
            raise self._error("leave_one_out", f"{found}, expected one, of a bitext with the same sentences")
        source = str(texts.get(self.settings.on, config.data[self.settings.on].source))
        base = "" if config.grammar_folders else str(Path(source).resolve().parent)
        self.files = SetFiles(source, (), self.settings.leave_one_out, base, allow_grammar_paths)

    def _error(self, key: str, problem: str) -> ConfigError:
        return ConfigError(f"{self.where}: bins: {key}: {problem}")

    def run(
        self,
        output: str | Path,
        threads: int = 1,
        progress: Progress | None = None,
        index: Callable[[str], BitextIndex] = open_index,
    ) -> list[FeatureBins]:
        """Learn the bins and write them to a file; ``index`` opens a bitext index."""
        symbols = Symbols()
        sources = open_model_sources(self.config, symbols, index=index)
        segments = read_tuning_segments(self.files, self.config.search.form)
        if not segments:
            raise FormatError(self.files.source, 0, found="no sentences", expected="some")
        bins = learn_bins(self.settings, sources, symbols, segments, threads=threads, progress=progress)
        what = "left out of themselves, " if self.settings.leave_one_out else ""
        write_bins(output, bins, f"of the rules of the sentences of {self.settings.on}, {what}a vote each")
        return bins
