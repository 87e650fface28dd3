"""Input lines: plain sentences, or ``<seg id="7" grammar="g.7.gz">a b c</seg> ||| reference``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from hiero.core.errors import FormatError, show
from hiero.core.text import BYTE_ORDER_MARK

# As liberal as cdec: quotes and spaces around "=" are optional.
_ATTRIBUTE = r"""\s+([A-Za-z_][\w.-]*)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))"""
_SEGMENT = re.compile(
    rf"[ \t]*<seg((?:{_ATTRIBUTE})*)[ \t]*>(.*)</seg>[ \t]*(?:\|\|\|(.*))?", re.ASCII | re.DOTALL
)
_ATTRIBUTES = re.compile(_ATTRIBUTE, re.ASCII)
_SPACES = re.compile("[ \t]+")
# Attributes that name grammars. Others are ignored, unless they look like one of these misspelt, an error.
GRAMMAR = re.compile("grammar([1-9][0-9]*)?")


@dataclass(frozen=True, slots=True)
class Segment:
    """One input line. Words are separated by ASCII spaces and tabs."""

    words: tuple[str, ...]
    attributes: Mapping[str, str] = field(default_factory=dict)
    reference: tuple[str, ...] | None = None

    @property
    def name(self) -> str | None:
        """The ``id`` attribute of the line."""
        return self.attributes.get("id")


def split_words(text: str) -> tuple[str, ...]:
    return tuple(word for word in _SPACES.split(text) if word)


def parse_segment(line: str, path: str = "<line>", number: int = 1) -> Segment:
    """Read one line, without its end."""
    if not line.lstrip(" \t").startswith(("<seg ", "<seg>", "<seg\t")):
        return Segment(split_words(line))
    found = _SEGMENT.fullmatch(line)
    if found is None:
        raise FormatError(
            path,
            number,
            found=show(line.strip()),
            expected='<seg id="…" grammar="…"> words </seg>',
            hint='optionally followed by ||| and a reference; every attribute is name="value"',
        )
    attributes: dict[str, str] = {}
    for name, *values in _ATTRIBUTES.findall(found.group(1)):
        if name in attributes:
            raise FormatError(path, number, found=f"{name} twice", expected="each attribute once")
        if name not in ("id", "grammar") and difflib.get_close_matches(name, ["grammar"], cutoff=0.8):
            if not GRAMMAR.fullmatch(name):
                expected = "grammar, grammar1, grammar2, …"
                raise FormatError(path, number, found=f"the attribute {name}", expected=expected)
        attributes[name] = next((value for value in values if value), "")
    text, reference = found.group(found.re.groups - 1), found.group(found.re.groups)
    return Segment(split_words(text), attributes, None if reference is None else split_words(reference))


def decode_line(line: bytes, number: int) -> tuple[str, bool]:
    """The text of a line without its end, and whether it is UTF-8; invalid bytes become U+FFFD."""
    if number == 1:
        line = line.removeprefix(BYTE_ORDER_MARK)
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    try:
        return line.decode(), True
    except UnicodeDecodeError:
        return line.decode(errors="replace"), False
