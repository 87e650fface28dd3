"""The table of stages of ``hiero run``, from which their order, their names and the help text follow."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hiero.config.config import Config
    from hiero.pipeline.plan import Plan


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
_TUNE = "hiero.pipeline.tune_stages"

# Kinds of stages in the order of planning, by the names of their stages before a colon.
STAGES = {
    "prep": StageKind(f"{_MODELS}:add_prep", ("prep",), "prepare text"),
    "align": StageKind(f"{_MODELS}:add_align", ("data", "align", "grammar", "reorder"), "align words"),
    "lm": StageKind(f"{_MODELS}:add_lm", ("lm",), "estimate language models"),
    "index": StageKind(f"{_MODELS}:add_index", ("grammar",), "index the bitext"),
    "reorder": StageKind(f"{_MODELS}:add_reorder", ("reorder",), "learn an orientation model"),
    "extract": StageKind(f"{_TRANSLATE}:add_extract", ("grammar",), "extract grammars"),
    "grid": StageKind(f"{_TUNE}:add_grid", ("grid",), "tune with several settings and choose the best"),
    "bins": StageKind(f"{_MODELS}:add_bins", ("bins",), "learn bins of dense features"),
    "tune": StageKind(f"{_TUNE}:add_tune", ("tune",), "learn weights"),
    "curves": StageKind(f"{_MODELS}:add_curves", ("tune",), "draw the weights of bins"),
    "decode": StageKind(f"{_TRANSLATE}:add_decode", ("data",), "translate"),
    "eval": StageKind(f"{_TRANSLATE}:add_eval", ("data", "eval"), "evaluate"),
}
