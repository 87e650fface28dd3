"""Docstrings as Markdown: columns of names and meanings, examples."""

from __future__ import annotations

import re
from typing import Any

import griffe

ENTRY = re.compile(r"^(\S(?:.*?\S)?) {2,}(\S.*)$")


class Columns(griffe.Extension):
    """Converts the form of docstrings in this project, which the API pages show."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """A docstring whose blocks of ``name  meaning`` are definitions, and whose examples are code."""
    blocks = re.split(r"\n\s*\n", text.expandtabs())
    return "\n\n".join(_block(block) for block in blocks)


def _block(block: str) -> str:
    lines = block.split("\n")
    if lines[0].lstrip().startswith(">>>"):
        return "\n".join(["```pycon", *lines, "```"])
    if ENTRY.match(lines[0]) and len(lines[0]) - len(lines[0].lstrip()) == 0:
        column = len(lines[0]) - len(ENTRY.sub(r"\2", lines[0]))
        entries: list[tuple[str, list[str]]] = []
        for line in lines:
            if line[:column].strip():
                found = ENTRY.match(line)
                if found is None:
                    return block
                entries.append((found[1], [found[2]]))
            else:
                entries[-1][1].append(line.strip())
        return "\n\n".join(f"`{name}`\n:   {' '.join(meaning)}" for name, meaning in entries)
    return block
