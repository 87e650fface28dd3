"""Hierarchical phrase-based translation.

>>> import hiero
>>> model = hiero.load()                                   # the German-English model in the package
>>> model.translate("er hat mir ein buch versprochen .").text
'he has promised me a book .'

``load`` returns a ``Model``; its ``parse`` returns the ``Forest`` of a sentence, its ``translate`` the best
``Derivation``. ``tune`` learns ``Weights``. The other stages are functions, too: ``align`` a bitext,
``index`` it, ``lookup`` its phrases or ``extract`` rules, ``estimate_lm``, ``evaluate``; ``report``
describes a run. Errors in the input
are ``HieroError``s.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hiero.adaptation.adapter import Adapter
    from hiero.config.model import load
    from hiero.core.errors import HieroError
    from hiero.core.lattice import Lattice
    from hiero.decoder.config import SearchConfig
    from hiero.decoder.derivation import Derivation
    from hiero.decoder.forest import Forest
    from hiero.decoder.model import Model
    from hiero.decoder.statistics import Statistics
    from hiero.features.user import rule_feature
    from hiero.features.user_edges import edge_feature
    from hiero.features.weights import Weights
    from hiero.jobs.functions import (
        Aligner,
        LanguageModel,
        align,
        estimate_lm,
        evaluate,
        extract,
        index,
        lookup,
    )
    from hiero.jobs.raw_text import RawText
    from hiero.jobs.tune import tune
    from hiero.reporting.write import report

__all__ = [
    "Adapter",
    "Aligner",
    "Derivation",
    "Forest",
    "HieroError",
    "LanguageModel",
    "Lattice",
    "Model",
    "RawText",
    "SearchConfig",
    "Statistics",
    "Weights",
    "align",
    "edge_feature",
    "estimate_lm",
    "evaluate",
    "extract",
    "index",
    "load",
    "lookup",
    "report",
    "rule_feature",
    "tune",
]

# Imported on first use, so that ``hiero --help`` neither loads numba nor compiles anything.
_MODULES = {
    "Adapter": "adaptation.adapter",
    "load": "config.model",
    "tune": "jobs.tune",
    "Model": "decoder.model",
    "SearchConfig": "decoder.config",
    "Statistics": "decoder.statistics",
    "Forest": "decoder.forest",
    "Derivation": "decoder.derivation",
    "Weights": "features.weights",
    "rule_feature": "features.user",
    "edge_feature": "features.user_edges",
    "HieroError": "core.errors",
    "Lattice": "core.lattice",
    "RawText": "jobs.raw_text",
    "Aligner": "jobs.functions",
    "LanguageModel": "jobs.functions",
    "align": "jobs.functions",
    "estimate_lm": "jobs.functions",
    "evaluate": "jobs.functions",
    "extract": "jobs.functions",
    "index": "jobs.functions",
    "lookup": "jobs.functions",
    "report": "reporting.write",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"hiero.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'hiero' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, without modules and what this module imports."""
    return [*__all__, "__version__"]
