"""Typed records of settings, from a file or from arguments; an error is one line with its place.

A record is a dataclass whose fields are numbers, strings, flags, literals, records, lists of these, mappings
from user-chosen names to these, or unions of one with a list of it. Unknown keys are errors that name the
nearest one, and no type is converted into another: ``"15"`` is not a number.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from hiero.core.errors import ConfigError, did_you_mean

Record = TypeVar("Record")

MOST_SHOWN = 60
NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def record(kind: type[Record], content: Any, where: str) -> Record:
    """Make a record of a mapping. ``where`` begins each message: a file, or the name of a section."""
    if not isinstance(content, Mapping):
        raise _error(where, content, f"keys and values: {', '.join(_fields(kind))}")
    fields = _fields(kind)
    hints = get_type_hints(kind)
    values = {}
    for key, value in content.items():
        if key is None and "null" in fields:
            key = "null"  # YAML's null, meant as a name
        if key not in fields:
            raise ConfigError(f"{where}: unknown key {_shown(key)}; {did_you_mean(str(key), fields)}")
        if value is None and fields[key].default_factory is not dataclasses.MISSING:
            continue  # an empty section
        values[key] = _value(hints[key], value, f"{where}: {key}")
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in values:
            raise ConfigError(f"{where}: {name} is missing")
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
    # In Python a bool is an int as well: not here.
    allowed = (int, float) if kind is float else kind
    if not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool):
        raise _error(where, value, NAMES[kind] + _hint(kind, value))
    return value


def _hint(kind: Any, value: Any) -> str:
    """A hint for text that looks like a number: YAML needs a point and a sign in a power of ten."""
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
