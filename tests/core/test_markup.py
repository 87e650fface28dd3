"""Elements of HTML and SVG."""

from __future__ import annotations

import html
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.core.markup import Markup, element, escape, join

TEXT = st.text(st.characters(codec=None), max_size=30)


@given(TEXT, TEXT)
def test_texts_come_back_from_a_parser(content: str, value: str) -> None:
    made = element("p", content, element("b", content), title=value)
    made.encode()
    root = ElementTree.fromstring(made)
    (inner,) = root
    # A parser of XML changes ends of lines.
    same = html.unescape(escape(content)).replace("\r\n", "\n").replace("\r", "\n")
    assert root.text or same == ""
    assert inner.text or same == ""
    assert [one.tag for one in root.iter()] == ["p", "b"]
    assert set(root.attrib) == {"title"}


@given(TEXT)
def test_what_may_be_shown_is_kept(content: str) -> None:
    shown = html.unescape(escape(content))
    assert len(shown) == len(content)
    for before, after in zip(content, shown, strict=True):
        assert after in (before, "\ufffd")
        if before.isprintable():
            assert after == before


def test_elements() -> None:
    assert element("a", "x < y", href="#a&b", class_="n", hidden=True, id=None, title=False) == (
        '<a href="#a&amp;b" class="n" hidden="">x &lt; y</a>'
    )
    assert element("td") == "<td></td>"
    assert element("br") == "<br/>"
    assert element("g", [element("b", "1"), None, ["2", ["3"]]], font_size=1.5, x=2.0, r=3) == (
        '<g font-size="1.5" x="2" r="3"><b>1</b>23</g>'
    )
    assert join(["<", Markup("<i></i>")]) == "&lt;<i></i>"


@pytest.mark.parametrize(
    "character", ["\x00", "\x1b", "\x7f", "\x85", "\u202e", "\u2066", "\ud800", "\ufffe"]
)
def test_characters_that_pages_must_not_have(character: str) -> None:
    assert escape(f"a{character}b") == "a\ufffdb"
