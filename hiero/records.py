"""Typed records made of what a settings file or a caller says; a mistake is one line with its place.

A record is a dataclass whose fields are numbers, strings, flags, literals, records, lists of these, tables of
these under names of the user's own, and one of these or a list of them.
Unknown keys are errors that name the nearest one, and no type is turned into another: ``"15"`` is no number.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from hiero.errors import ConfigError, did_you_mean

Record = TypeVar("Record")

MOST_SHOWN = 60
NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def record(kind: type[Record], content: Any, where: str) -> Record:
    """A record of a mapping. ``where`` begins each message: a file, or the name of a section."""
    if not isinstance(content, Mapping):
        raise _error(where, content, f"keys and values: {', '.join(_fields(kind))}")
    fields = _fields(kind)
    hints = get_type_hints(kind)
    values = {}
    for key, value in content.items():
        if key is None and "null" in fields:
            key = "null"  # what YAML reads as nothing where it stands for a name
        if key not in fields:
            raise ConfigError(f"{where}: unknown key {_shown(key)}; {did_you_mean(str(key), fields)}")
        if value is None and fields[key].default_factory is not dataclasses.MISSING:
            continue  # a section with nothing in it
        values[key] = _value(hints[key], value, f"{where}: {key}")
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in values:
            raise ConfigError(f"{where}: found no {name}, expected one")
    try:
        return kind(**values)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _fields(kind: Any) -> dict[str, dataclasses.Field[Any]]:
    return {field.name: field for field in dataclasses.fields(kind)}


def _value(kind: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(kind):
        return record(cast(type, kind), value, where)
    if get_origin(kind) is list:
        if not isinstance(value, (list, tuple)):
            raise _error(where, value, "a list")
        (inner,) = get_args(kind)
        return [_value(inner, item, f"{where}: entry {number}") for number, item in enumerate(value, 1)]
    if get_origin(kind) is dict:
        if not isinstance(value, Mapping):
            raise _error(where, value, "names and values")
        inner = get_args(kind)[1]
        named = ((_value(str, name, where), item) for name, item in value.items())
        return {name: _value(inner, item, f"{where}: {name}") for name, item in named}
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        if value not in choices:
            raise _error(where, value, f"one of {', '.join(choices)}")
        return value
    if get_origin(kind) in (Union, types.UnionType):
        others = [member for member in get_args(kind) if member is not type(None)]
        if value is None and len(others) < len(get_args(kind)):
            return None
        lists = [member for member in others if get_origin(member) is list]
        return _value(lists[0] if lists and isinstance(value, (list, tuple)) else others[0], value, where)
    # A flag is an int to Python, and nobody means that.
    wanted = (int, float) if kind is float else kind
    if not isinstance(value, wanted) or (isinstance(value, bool) and kind is not bool):
        raise _error(where, value, NAMES[kind] + _hint(kind, value))
    return value


def _hint(kind: Any, value: Any) -> str:
    """Of what looks like a number and is text: in YAML a power of ten has a point and a sign."""
    if kind is not float or not isinstance(value, str):
        return ""
    try:
        float(value)
    except ValueError:
        return ""
    return " (1.0e+5 is one; 1e5 and '5' are text)"


def _error(where: str, value: Any, expected: str) -> ConfigError:
    return ConfigError(f"{where}: found {_shown(value)}, expected {expected}")


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1] + "…"
