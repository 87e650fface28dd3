"""Flags made of the fields of records, and flags that several commands share.

A field declared by ``setting`` with a help text is a flag: its type, choices, limits, default and placeholder
follow from the declaration.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import difflib
import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar, get_args, get_origin

from hiero.core.errors import ConfigError, FormatError, UsageError
from hiero.core.records import (
    NAMES,
    Declared,
    choices,
    declaration,
    declared_range,
    hints_of,
    is_path_key,
    map_paths,
    optional,
)

Record = TypeVar("Record")


class Parser(argparse.ArgumentParser):
    """An argument parser with errors of one line, which name the nearest option to an unknown one."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        known, rest = super().parse_known_args(args, namespace)
        if rest:
            near = difflib.get_close_matches(rest[0].partition("=")[0], self._option_string_actions, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            self.error(f"unknown argument {rest[0]}{hint}")
        return known, rest


# ---- flags of records


def add_settings(
    parser: argparse._ActionsContainer,
    kind: type,
    names: Iterable[str] | None = None,
    *,
    without: Container[str] = (),
    defaults: Mapping[str, str] | None = None,
) -> None:
    """Add flags for the fields of a record, in groups.

    names     these fields only
    without   not these
    defaults  the defaults in help, where the field has none
    """
    target = parser
    for name, field in _flagged(kind).items():
        declared: Declared = field.metadata["setting"]
        if name in without or (names is not None and name not in names):
            continue
        if declared.group is not None and names is None:
            target = parser.add_argument_group(declared.group)
        default = (defaults or {}).get(name) or _default(field)
        notes = "; ".join(filter(None, (default, declared_range(declared))))
        text = f"{declared.help} ({notes})" if notes else declared.help
        kwargs = _value_of(kind, name, declared)
        target.add_argument(
            flag_of(kind, name), dest=_dest(kind, name), help=text.replace("%", "%%"), **kwargs
        )


def overrides(args: argparse.Namespace, kind: type) -> dict[str, Any]:
    """The fields of a record whose flags are given."""
    values = {name: getattr(args, _dest(kind, name), None) for name in _flagged(kind)}
    return {name: value for name, value in values.items() if value is not None}


def replaced(
    settings: Record,
    args: argparse.Namespace,
    more: Mapping[str, Any] = MappingProxyType({}),
    *,
    absolute: bool = False,
) -> Record:
    """The same settings, but those whose flags are given; errors are those of the command line.

    more      other fields to set
    absolute  make the paths of flags absolute
    """
    kind: Any = type(settings)
    given = {**overrides(args, kind), **more}
    try:
        changed: Record = dataclasses.replace(settings, **given)  # type: ignore[type-var]
    except ConfigError as error:
        name, colon, problem = str(error).partition(": ")
        if not colon or name not in hints_of(kind):
            raise UsageError(str(error)) from None
        raise UsageError(f"argument {flag_of(kind, name)}: {problem}") from None
    if not absolute:
        return changed
    return map_paths(changed, lambda key, path: os.path.abspath(path) if key.split(":")[0] in given else path)


def flag_of(kind: Any, name: str) -> str:
    declared = declaration(kind, name)
    return f"--{(declared and declared.flag) or name.replace('_', '-')}"


def _flagged(kind: Any) -> dict[str, dataclasses.Field[Any]]:
    fields = {field.name: field for field in dataclasses.fields(kind)}
    return {n: f for n, f in fields.items() if "setting" in f.metadata and f.metadata["setting"].help}


def _dest(kind: type, name: str) -> str:
    """The attribute of the parsed arguments; that of a key cannot be that of another record's."""
    return f"{kind.__name__}.{name}"


def _default(field: dataclasses.Field[Any]) -> str:
    """The default as it is shown in help."""
    value = field.default
    if field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    if value is None or value is False or value == [] or value is dataclasses.MISSING:
        return ""
    if value is True:
        return "default"
    return f"default {show_default(value)}"


def show_default(value: Any) -> str:
    """A value as it is shown in help: 50,000,000, 1e-8, a,b."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, int):
        return f"{value:,}" if value >= 10_000 else str(value)
    return f"{value:g}".replace("e-0", "e-") if isinstance(value, float) else str(value)


def _value_of(kind: type, name: str, declared: Declared) -> dict[str, Any]:
    """Arguments of argparse for the value of a field."""
    hint = optional(hints_of(kind)[name])
    if hint is bool:
        return {"action": argparse.BooleanOptionalAction}
    if options := choices(kind, name):
        return {"choices": options, "type": type(options[0])}
    if get_origin(hint) is list:
        return {"metavar": declared.metavar} | (
            {"action": "append"} if declared.repeatable else {"type": _names}
        )
    if is_path_key(hint):
        repeatable = any(get_origin(member) is list for member in get_args(hint))
        return {"metavar": declared.metavar or "FILE"} | ({"action": "append"} if repeatable else {})
    if hint is str:
        return {"metavar": declared.metavar or "NAME"}

    def read(text: str) -> Any:
        try:
            return hint(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"found {text!r}, expected {NAMES[hint]}") from None

    return {"metavar": declared.metavar or ("N" if hint is int else "X"), "type": read}


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


# ---- commands, and flags that they share


def add_command(
    subparsers: argparse._SubParsersAction[Any],
    name: str,
    summary: str,
    description: str,
    epilog: str | None = None,
) -> argparse.ArgumentParser:
    """Add a command whose description and epilog keep their line breaks."""
    style = argparse.RawDescriptionHelpFormatter
    command: argparse.ArgumentParser = subparsers.add_parser(
        name, help=summary, description=description, epilog=epilog, formatter_class=style
    )
    return command


def at_least(least: int) -> Callable[[str], int]:
    """A type of argparse: whole numbers that are large enough."""

    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"found {text!r}, expected a whole number") from None
        if value < least:
            raise argparse.ArgumentTypeError(f"found {text}, expected at least {least}")
        return value

    return number


def add_user_code(parser: argparse._ActionsContainer) -> None:
    text = "search the working directory for features MODULE:NAME of the configuration, as for those of flags"
    parser.add_argument("--user-code", action="store_true", help=text)


@contextlib.contextmanager
def user_modules(args: argparse.Namespace) -> Iterator[None]:
    """Search the working directory for modules if --user-code is given, or a flag names a feature in one."""
    named = getattr(args, "FeaturesSection.templates", None) or ()
    if not (getattr(args, "user_code", False) or any(":" in name for name in named)):
        yield
        return
    from hiero.features.feature_set import working_directory_importable

    with working_directory_importable():
        yield


def add_grammar_paths(parser: argparse._ActionsContainer, folder: str = "the directory of its text") -> None:
    text = f'permit <seg grammar="..."> outside {folder}'
    parser.add_argument("--allow-grammar-paths", action="store_true", help=text)


def add_classes(group: argparse._ActionsContainer) -> None:
    """Add --classes of language models; see ``classes_of``."""
    group.add_argument(
        "--classes",
        metavar="NAME=FILE",
        action="append",
        default=[],
        help="NAME is a language model of classes: FILE has a word and its class on each line; repeatable",
    )


def classes_of(args: argparse.Namespace) -> dict[str, str]:
    """The files of --classes, by the names of models."""
    found: dict[str, str] = {}
    for spec in args.classes:
        name, path = named_path(spec, "--classes", "NAME=FILE")
        if name in found:
            raise UsageError(f"argument --classes: found the model {name!r} twice")
        found[name] = path
    return found


def named_path(spec: str, flag: str, expected: str) -> tuple[str, str]:
    """A name and a path of an argument NAME=PATH."""
    name, equals, path = spec.partition("=")
    if not (name and equals and path) or not Path(path).name:
        raise UsageError(f"argument {flag}: found {spec!r}, expected {expected}")
    return name, path


def add_files(command: argparse.ArgumentParser, inputs: str, outputs: str) -> None:
    """Declare which arguments name files to read and to write: flags, or names of positional arguments.

    ``check_files`` refuses outputs that would overwrite an input or another output.
    """
    dests = {
        name: action.dest
        for action in command._actions
        for name in (action.option_strings or [str(action.metavar)])
    }
    files = [{name: dests[name] for name in names.split()} for names in (inputs, outputs)]
    command.set_defaults(files=files)


def check_files(args: argparse.Namespace, more: Iterable[tuple[str, str]] = ()) -> None:
    """Refuse outputs that are also an input or another output of the command.

    more  inputs that are not arguments: a description, such as ``of the model``, and the path
    """
    inputs, outputs = getattr(args, "files", ({}, {}))
    taken = [*_paths(args, inputs), *more]
    for name, path in _paths(args, outputs):
        for other, used in taken:
            if _is_same(path, used):
                if name == other:
                    raise UsageError(f"argument {name}: {used} is given twice")
                raise UsageError(f"argument {name}: {path} is also the file {other}")
        taken.append((name, path))


def _paths(args: argparse.Namespace, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, dest in names.items():
        value = getattr(args, dest)
        paths = value if isinstance(value, list) else [value]
        yield from ((name, str(path)) for path in paths if path is not None and str(path) != "-")


def _is_same(one: str, other: str) -> bool:
    """Whether two paths are one file or directory, even by links; devices are not."""
    if not (os.path.exists(one) and os.path.exists(other)):
        return os.path.abspath(one) == os.path.abspath(other)
    return (os.path.isfile(one) or os.path.isdir(one)) and os.path.samefile(one, other)


def check_writable(path: str | None) -> None:
    """Check that a result can be written, before the work is done."""
    if path is None or path == "-":
        return
    folder = Path(path).parent
    found = ""
    if Path(path).is_dir():
        found = "a directory"
    elif not folder.is_dir():
        found = "no such directory"
    elif not os.access(path if Path(path).exists() else folder, os.W_OK):
        found = "no write permission"
    if found:
        raise FormatError(path, 0, found=found, expected="a file that can be written")


def add_threads(parser: argparse._ActionsContainer, what: str = "threads", name: str = "--threads") -> None:
    parser.add_argument("-j", name, metavar="N", type=at_least(1), default=1, help=f"{what} (default 1)")


def add_temporary(parser: argparse._ActionsContainer) -> None:
    text = "directory of temporary files (default: the system's)"
    parser.add_argument("--temp", metavar="DIR", type=Path, help=text)


def add_quiet(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("-q", "--quiet", action="store_true", help="nothing on standard error but errors")


def add_strict(parser: argparse._ActionsContainer) -> None:
    text = "stop if weights and model do not fit: a name without a feature, a language model without a weight"
    parser.add_argument("--strict", action="store_true", help=text)
