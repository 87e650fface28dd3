"""Plug-ins: entry points of installed packages, by which they add features, learners and tokenisers.

A package declares them in its pyproject.toml::

    [project.entry-points."hiero.features"]
    first_word = "my_package.features:first_word"
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from hiero.core.errors import ConfigError

GROUPS = ("hiero.features", "hiero.learners", "hiero.tokenizers")


@functools.cache
def plugins(group: str) -> Mapping[str, str]:
    """The entry points of a group: MODULE:NAME by name. Nothing is imported."""
    from importlib.metadata import entry_points

    return MappingProxyType({point.name: point.value for point in entry_points(group=group)})


def load_plugin(group: str, name: str) -> Any:
    """Import an entry point."""
    value = plugins(group)[name]
    try:
        return pkgutil.resolve_name(value)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"plug-in {name!r} of {group}: cannot import {value}: {error}") from error
