"""Hierarchical phrase-based translation.

>>> import hiero
>>> model = hiero.load()                                   # the German-English model in the package
>>> model.translate("er hat mir ein buch versprochen .").text
'he has promised me a book .'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hiero.config import load
    from hiero.decode import Model
    from hiero.derivation import Derivation
    from hiero.errors import HieroError
    from hiero.forest import Forest
    from hiero.rulebatch import rule_feature
    from hiero.searchconfig import SearchConfig
    from hiero.statistics import Statistics
    from hiero.weights import Weights

# Imported on first use, so that ``hiero --help`` neither loads numba nor compiles anything.
_MODULES = {
    "load": "config",
    "Model": "decode",
    "SearchConfig": "searchconfig",
    "Statistics": "statistics",
    "Forest": "forest",
    "Derivation": "derivation",
    "Weights": "weights",
    "rule_feature": "rulebatch",
    "HieroError": "errors",
}
__all__ = [
    "Derivation",
    "Forest",
    "HieroError",
    "Model",
    "SearchConfig",
    "Statistics",
    "Weights",
    "load",
    "rule_feature",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"hiero.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'hiero' has no attribute {name!r}")
