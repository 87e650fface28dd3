"""Typed records of settings, from YAML or from arguments; an error is one line with its place.

A record is a dataclass whose fields are numbers, strings, flags, literals, records, lists of these, mappings
from user-chosen names to these, or unions of one with a list of it. Unknown keys are errors that name the
nearest one, and no type is converted into another: ``"15"`` is not a number.
"""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import yaml

from hiero.core.errors import ConfigError, FormatError, did_you_mean, show
from hiero.core.text import decode_utf8, open_output, read_lines

Record = TypeVar("Record")

# Constants of the model that configurations need without loading compiled code.
MAX_GAPS = 2  # in one side of a rule

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


BOOL = "tag:yaml.org,2002:bool"
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


def read_settings(path: str | Path) -> Any:
    """The content of a YAML file, None if it is empty."""
    data = b"\n".join(read_lines(path, "settings in YAML"))
    text = decode_utf8(path, data)
    try:
        return yaml.load(text, _Loader)
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
    with open_output(path) as stream:
        stream.write(f"# {heading}\n{text}".encode())
