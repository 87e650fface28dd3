"""Check a page of HTML: well-formed, complete in itself, and without scripts."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

VOID = {"br", "hr", "img", "link", "meta"}
ACTIVE = {"script", "iframe", "object", "embed", "form", "base", "link", "img", "input", "button"}


class _Parser(HTMLParser):
    """Checks that elements are closed in order, and collects them as browsers see them."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs)
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID, f"browsers take <{tag}/> for a start"
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check_page(text: str) -> ElementTree.Element:
    """Assert that a page is well-formed and self-contained; return its root."""
    assert text.startswith("<!DOCTYPE html>\n")
    parser = _Parser()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    ids = [attributes["id"] for _, attributes in parser.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    for tag, attributes in parser.elements:
        assert tag not in ACTIVE, tag
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in ("src", "srcset", "action", "xlink:href"), (tag, name)
            if name == "href":
                assert value.startswith("#"), value
                assert value[1:] in ids, value
            if name == "style":
                assert re.fullmatch(r"[a-z0-9:;%.\-]*", value), value
    styles = "".join(re.findall("<style>(.*?)</style>", text, re.S))
    assert "url(" not in styles
    assert "@import" not in styles
    names = [(tag, attributes.get("name")) for tag, attributes in parser.elements]
    assert ("meta", "viewport") in names
    policies = [a["content"] for _, a in parser.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]
    root = ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
    # Both parsers see the same elements.
    assert [tag for tag, _ in parser.elements] == [one.tag.rpartition("}")[2].lower() for one in root.iter()]
    return root


def text_of(root: ElementTree.Element) -> str:
    """The text of a page without its style sheet, with single spaces."""
    body = root.find("body")
    assert body is not None
    return " ".join("".join(f"{text} " for text in body.itertext()).split())


def sections(root: ElementTree.Element) -> dict[str, str]:
    """The text of each section by its heading."""
    found = {}
    for section in root.iter("section"):
        head = section.find("h2")
        assert head is not None
        found[str(head.text)] = " ".join(" ".join(section.itertext()).split())
    return found
