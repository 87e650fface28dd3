"""Pages of commands, made from their parsers."""

from __future__ import annotations

import argparse
import html
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from hiero.cli.main import COMMANDS, parser

WIDTH = 80  # of usage lines
SPECIAL = re.compile(r"([\\`*_{}\[\]#])")
FLAG = re.compile(r"(?<![\w\\-])--?[a-z][a-z-]*(?![\w\\])")


def command_pages() -> dict[str, str]:
    """The Markdown of a page for each command, by its name."""
    top = parser()
    return {name: _page(command, summary) for name, command, summary in _children(top)}


def options_of(command: argparse.ArgumentParser) -> list[str]:
    """The names of all options of a command and of its subcommands, but for help."""
    names = [name for action in command._actions if _is_shown(action) for name in action.option_strings]
    return [*names, *(name for _, child, _ in _children(command) for name in options_of(child))]


def _page(command: argparse.ArgumentParser, summary: str) -> str:
    return "\n\n".join([f"# hiero {command.prog.split()[-1]}", *_sections(command, summary)]) + "\n"


def _sections(command: argparse.ArgumentParser, summary: str) -> Iterator[str]:
    """Usage, description, options, examples and subcommands of a command."""
    yield f"```text\n{_usage(command)}\n```"
    yield from _prose(command.description or summary)
    children = list(_children(command))
    if children and len(children) > 1:
        yield "\n".join(
            f"- [`{child.prog}`](#{_slug(child.prog)}): {_plain(text)}" for _, child, text in children
        )
    for group in command._action_groups:
        shown = [action for action in group._group_actions if _is_shown(action)]
        if shown:
            title = {"positional arguments": "arguments"}.get(group.title or "", group.title or "options")
            yield f"**{title[0].upper()}{title[1:]}**"
            if group.description:
                yield from _prose(group.description)
            yield "\n\n".join(_definition(command, action) for action in shown)
    if command.epilog:
        yield from _prose(command.epilog)
    for _, child, text in children:
        yield f"## {child.prog}"
        yield from _sections(child, text)


def _children(command: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser, str]]:
    """The subcommands of a parser: name, parser, summary."""
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}
            names = COMMANDS if set(action.choices) == set(COMMANDS) else action.choices
            for name in names:
                yield name, action.choices[name], summaries.get(name, "")


def _is_shown(action: argparse.Action) -> bool:
    hidden = action.help == argparse.SUPPRESS or isinstance(
        action, (argparse._HelpAction, argparse._SubParsersAction)
    )
    return not hidden


def _formatter(command: argparse.ArgumentParser) -> Any:
    kind: Any = command.formatter_class
    return kind(prog=command.prog, width=WIDTH)


def _usage(command: argparse.ArgumentParser) -> str:
    formatter = _formatter(command)
    formatter.add_usage(command.usage, command._actions, command._mutually_exclusive_groups)
    return str(formatter.format_help()).strip()


def _definition(command: argparse.ArgumentParser, action: argparse.Action) -> str:
    formatter = _formatter(command)
    if action.option_strings:
        values = formatter._format_args(action, formatter._get_default_metavar_for_optional(action))
        names = ", ".join(action.option_strings) + (f" {values}" if values else "")
    else:
        names = str(action.metavar or action.dest)
    text = formatter._expand_help(action) if action.help else ""
    return f"`{names}`\n:   {_plain(text) or '&nbsp;'}"


def _prose(text: str) -> Iterator[str]:
    """Paragraphs of a help text; indented lines are shown as they are."""
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        lines: list[str] = []
        for line in paragraph.split("\n"):
            if lines and line.startswith(" ") != lines[-1].startswith(" "):
                yield _block(lines)
                lines = []
            lines.append(line)
        yield _block(lines)


def _block(lines: list[str]) -> str:
    text = textwrap.dedent("\n".join(lines)).strip("\n")
    if lines[0].startswith(" "):
        return f"```text\n{text}\n```"
    return _plain(text)


def _plain(text: str) -> str:
    """Text without markup, with flags as code."""
    pieces, end = [], 0
    for found in FLAG.finditer(text):
        pieces += [_escape(text[end : found.start()]), f"`{found[0]}`"]
        end = found.end()
    return "".join([*pieces, _escape(text[end:])])


def _escape(text: str) -> str:
    return SPECIAL.sub(r"\\\1", html.escape(text, quote=False))


def _slug(title: str) -> str:
    return title.replace(" ", "-")
