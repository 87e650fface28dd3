"""Typed records of settings, from YAML or from arguments; an error is one line with its place.

A record is a dataclass whose fields are numbers, strings, flags, literals, records, lists of these, mappings
from user-chosen names to these, or unions of one with a list of it or with literals. Unknown keys are errors
that name the nearest one, and no type is converted into another: ``"15"`` is not a number.

A field declares its limits and help text (``setting``), its choices (``Literal``) and whether it is a path
(``PathKey``). Checks (``Checked``), the flags of commands (``cli.options``) and the handling of paths
(``map_paths``) follow from these.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from hiero.core.errors import ConfigError, did_you_mean

Record = TypeVar("Record")

PathKey = Annotated[str, "path"]  # relative to the file of the configuration

# Constants of the model that configurations need without loading compiled code.
MAX_GAPS = 2  # of a rule that a search applies, or that is extracted
MOST_GAPS = 32  # of a rule that is read
MAX_ORDER = 6  # of a language model

MOST_SHOWN = 60  # characters of a value in messages
LARGEST_SHOWN = 1_000_000  # limit in help
NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


# ---- declarations


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The declaration of a setting.

    help     text of its flag, without default and limits, which are added
    least, above, most  limits of a number; one with limits is finite
    choices  the allowed values, where they come from a table and the type is no ``Literal``
    group    title of a group of flags, which begins with this field
    metavar  placeholder of the value in help
    flag     name of the flag, where it is not that of the field
    repeatable  whether the flag of a list has one entry each time; by default all, separated by commas
    """

    help: str = ""
    least: float | None = None
    above: float | None = None
    most: float | None = None
    choices: Callable[[], Iterable[Any]] | None = None
    group: str | None = None
    metavar: str | None = None
    flag: str | None = None
    repeatable: bool = False

    @property
    def limits(self) -> str:
        """The limits as messages state them; empty if there are none."""
        if self.above is not None:
            at_most = "" if self.most is None else f" and at most {self.most:g}"
            return f"more than {self.above:g}{at_most}"
        if self.least is None or self.most is None:
            return "" if self.least is None else f"at least {self.least:g}"
        return f"{_plain(self.least)} to {_plain(self.most)}"

    def allows(self, value: float) -> bool:
        return (
            (self.above is None or value > self.above)
            and (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (not self.limits or value < math.inf)
        )


def setting(
    default: Any = dataclasses.MISSING,
    help: str = "",  # noqa: A002
    *,
    default_factory: Any = dataclasses.MISSING,
    **declared: Any,
) -> Any:
    """Declare a field of a record, like ``dataclasses.field``, with the other fields of ``Declared``."""
    metadata = {"setting": Declared(help=help, **declared)}
    if default_factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=default_factory, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


class Checked:
    """Base of records with declared limits and choices, which are checked on construction."""

    __slots__ = ()

    def __post_init__(self) -> None:
        check(self)


def check(settings: Any) -> None:
    """Check a record against the declarations of its fields. None stands for a value decided elsewhere."""
    for name in (field.name for field in dataclasses.fields(settings) if field.init):
        value = getattr(settings, name)
        if value is not None and (expected := expectation(type(settings), name, value)):
            raise _error(name, value, expected)


def declaration(kind: Any, name: str) -> Declared | None:
    declared: Declared | None = _fields(kind)[name].metadata.get("setting")
    return declared


def expectation(kind: type, name: str, value: Any) -> str:
    """The values that a setting allows if this is not one of them; otherwise empty."""
    declared = declaration(kind, name)
    if declared is not None and declared.limits and not declared.allows(value):
        return "a finite number" if value == math.inf and declared.most is None else declared.limits
    options = choices(kind, name)
    return f"one of {', '.join(map(str, options))}" if options and value not in options else ""


def choices(kind: type, name: str) -> tuple[Any, ...]:
    """The values that a setting can have; () if it has no list of them."""
    declared = declaration(kind, name)
    if declared is not None and declared.choices is not None:
        return tuple(declared.choices())
    hint = optional(hints_of(kind)[name])
    return get_args(hint) if get_origin(hint) is Literal else ()


@functools.cache
def hints_of(kind: Any) -> dict[str, Any]:
    """The types of a record's fields, with marks such as that of ``PathKey``."""
    return get_type_hints(kind, include_extras=True)


def optional(hint: Any) -> Any:
    """A type without ``| None``."""
    if get_origin(hint) not in (Union, types.UnionType):
        return hint
    others = tuple(member for member in get_args(hint) if member is not type(None))
    return others[0] if len(others) == 1 else Union[others]  # noqa: UP007


def declared_range(declared: Declared) -> str:
    """The limits of a declared setting as help shows them: without those that only guard against overflow."""
    return declared.limits if declared.most is not None and declared.most < LARGEST_SHOWN else ""


def _plain(number: float) -> str:
    """A limit as it is written in settings: 50, 0.1, 1e-06."""
    return str(number) if isinstance(number, int) else f"{number:g}"


def part(kind: type[Record], settings: Any, **others: Any) -> Record:
    """A record of ``others``, and of the values of ``settings`` for its other fields."""
    names = {field.name for field in dataclasses.fields(cast(Any, kind)) if field.init} - others.keys()
    return kind(**others, **{name: getattr(settings, name) for name in names if hasattr(settings, name)})


# ---- paths


def is_path_key(hint: Any) -> bool:
    """Whether the type of a record's field is ``PathKey``, or made of it."""
    return get_origin(hint) is Annotated or any(map(is_path_key, get_args(hint)))


def map_paths(settings: Record, change: Callable[[str, str], str]) -> Record:
    """The same settings with changed paths. ``change`` takes the key, as in messages, and the path."""
    return cast(Record, _map_value(type(settings), settings, "", change))


def record_paths(settings: Any) -> dict[str, str]:
    """The paths in a record by their keys."""
    found: dict[str, str] = {}

    def note(key: str, path: str) -> str:
        found[key] = path
        return path

    map_paths(settings, note)
    return found


def _map_value(kind: Any, value: Any, key: str, change: Callable[[str, str], str]) -> Any:
    if value is None:
        return None
    if dataclasses.is_dataclass(kind):
        hints, start = hints_of(cast(type, kind)), f"{key}: " if key else ""
        items = {name: (hints[name], getattr(value, name), start + name) for name in _fields(kind)}
        return dataclasses.replace(value, **{n: _map_value(*item, change) for n, item in items.items()})
    if get_origin(kind) is Annotated:
        return change(key, value)
    if get_origin(kind) is list:
        (inner,) = get_args(kind)
        is_record = dataclasses.is_dataclass(inner)
        each = [f"{key}: entry {n}" for n in range(1, len(value) + 1)]
        keys = each if is_record else numbered_keys(key, value)
        return [_map_value(inner, item, one, change) for one, item in zip(keys, value, strict=True)]
    if get_origin(kind) is dict:
        inner = get_args(kind)[1]
        return {name: _map_value(inner, item, f"{key}: {name}", change) for name, item in value.items()}
    if get_origin(kind) in (Union, types.UnionType):
        member = _member(kind, value)
        return value if member is None else _map_value(member, value, key, change)
    return value


def numbered_keys(key: str, entries: Sequence[Any]) -> list[str]:
    """The keys of the entries of a record's list, as in messages; of a single one, that of the list."""
    return [key] if len(entries) == 1 else [f"{key}: entry {number + 1}" for number in range(len(entries))]


# ---- from plain values


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
        values[key] = value_of(hints[key], value, f"{where}: {key}")
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


def _member(union: Any, value: Any) -> Any:
    """The type in a union that a value is read as; None if the value is one of its literals."""
    members = [member for member in get_args(union) if member is not type(None)]
    if any(get_origin(member) is Literal and value in get_args(member) for member in members):
        return None
    others = [member for member in members if get_origin(member) is not Literal] or members
    lists = [member for member in others if get_origin(member) is list]
    return lists[0] if lists and isinstance(value, (list, tuple)) else others[0]


def value_of(kind: Any, value: Any, where: str) -> Any:
    """Read a plain value as a type that fields of records can have."""
    if dataclasses.is_dataclass(kind):
        return record(cast(type, kind), value, where)
    if get_origin(kind) is list:
        if not isinstance(value, (list, tuple)):
            raise _error(where, value, "a list")
        (inner,) = get_args(kind)
        return [value_of(inner, item, f"{where}: entry {number}") for number, item in enumerate(value, 1)]
    if get_origin(kind) is dict:
        if not isinstance(value, Mapping):
            raise _error(where, value, "names and values")
        inner = get_args(kind)[1]
        named = ((value_of(str, name, where), item) for name, item in value.items())
        return {name: value_of(inner, item, f"{where}: {name}") for name, item in named}
    if get_origin(kind) is Literal:
        options = get_args(kind)
        if not any(value == option and type(value) is type(option) for option in options):
            raise _error(where, value, f"one of {', '.join(map(str, options))}")
        return value
    if get_origin(kind) in (Union, types.UnionType):
        if value is None and type(None) in get_args(kind):
            return None
        member = _member(kind, value)
        return value if member is None else value_of(member, value, where)
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
