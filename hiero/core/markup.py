"""Elements of HTML and SVG as text. All text is escaped but that of other elements."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Union

Child = Union[str, None, "Iterable[Child]"]

VOID = frozenset({"br", "hr", "img", "link", "meta"})  # elements of HTML that have no end tag
# Characters that XML does not allow, half characters, and those that change the direction of what follows.
_NOT_SHOWN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


class Markup(str):
    """Text that is markup, and is not escaped again."""

    __slots__ = ()


def escape(text: str) -> Markup:
    """Text as markup. U+FFFD stands for characters that are not allowed, and for marks of direction."""
    return Markup(html.escape(_NOT_SHOWN.sub("\ufffd", text)))


def join(children: Iterable[Child]) -> Markup:
    """The markup of elements and texts, one after the other; None is left out."""
    return Markup("".join(map(_markup, children)))


def _markup(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    return escape(child) if isinstance(child, str) else join(child)


def element(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """An element, well-formed as HTML and as XML.

    children    texts and elements, also in lists; None is left out
    attributes  ``font_size`` is font-size, ``class_`` is class; None and False are left out, True is empty;
                numbers are written with two decimals at most
    """
    parts = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        text = "" if value is True else value if isinstance(value, str) else number(value)
        parts.append(f'{key.rstrip("_").replace("_", "-")}="{escape(text)}"')
    start = " ".join(parts)
    if name in VOID:
        return Markup(f"<{start}/>")
    return Markup(f"<{start}>{join(children)}</{name}>")


def number(value: float) -> str:
    """A coordinate or size: two decimals at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
