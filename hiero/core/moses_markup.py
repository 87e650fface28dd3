"""Moses' markup of sentences: translations of words, zones and walls.

``das ist <n translation="a cute place||a hut" prob="0.8||0.2">ein kleines haus</n>`` gives translations of
words, under any name of the tag. ``<zone>...</zone>`` is translated as a block, and nothing is reordered
across ``<wall/>``; within a zone, a wall concerns the words of the zone only. Tags separate words. A ``<``
that no letter or ``/`` follows is part of a word; ``&lt;``, ``&gt;`` and ``&amp;`` stand for these
characters, in values ``&quot;`` as well.
"""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass
from typing import NoReturn

from hiero.core.errors import FormatError, show
from hiero.core.given import Given, MarkedSpan, Wall, Words
from hiero.core.text import split_words

_ATTRIBUTE = re.compile(r"""[ \t]*([A-Za-z_][\w.:-]*)[ \t]*=[ \t]*("[^"]*"|'[^']*')""")
_NAME = re.compile(r"<(/?)([A-Za-z][\w.:-]*)")
_BEGIN = re.compile(r"</?[A-Za-z]")
_ENTITY = re.compile("&(lt|gt|amp|quot);")
_CHARACTERS = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
# Attributes with a meaning; others are ignored, unless they look like one of these misspelt.
KNOWN = ("translation", "english", "prob", "entity", "translate")
BARS = "||"


@dataclass(slots=True)
class _Tag:
    name: str
    start: int  # number of words before it
    column: int
    attributes: dict[str, str]
    zone: int = -1  # its number, of a zone


class _Reader:
    """One sentence."""

    def __init__(self, text: str, mode: str, path: str, number: int, column: int) -> None:
        self.text, self.mode, self.path, self.number, self.column = text, mode, path, number, column
        self.at = 0
        self.words: list[str] = []
        self.open: list[_Tag] = []
        self.spans: list[MarkedSpan] = []
        self.zones: list[tuple[int, int]] = []
        self.walls: list[tuple[int, int]] = []  # place, and number of the innermost zone or -1

    def read(self) -> tuple[Words, Given | None]:
        while (found := _BEGIN.search(self.text, self.at)) is not None:
            self._add_words(found.start())
            self._tag()
        self._add_words(len(self.text))
        if self.open:
            tag = self.open[-1]
            self._fail(f"<{tag.name}> without an end", f"</{tag.name}>", tag.column)
        if self.mode == "ignore" or not (self.spans or self.zones or self.walls):
            return tuple(self.words), None
        size = len(self.words)
        bounds = {-1: (0, size), **dict(enumerate(self.zones))}
        walls = {
            Wall(bounds[zone][0], place, bounds[zone][1])
            for place, zone in self.walls
            if bounds[zone][0] < place < bounds[zone][1]
        }
        zones = sorted(set(self.zones) - {(0, size)})
        return tuple(self.words), Given(
            spans=tuple(self.spans), zones=tuple(zones), walls=tuple(sorted(walls))
        )

    def _add_words(self, end: int) -> None:
        """Add the words of the text before a tag, or the end."""
        self.words += (_plain(word, ("lt", "gt", "amp")) for word in split_words(self.text[self.at : end]))
        self.at = end

    def _tag(self) -> None:
        column = self.at + 1
        name = _NAME.match(self.text, self.at)
        assert name is not None
        self.at = name.end()
        attributes: dict[str, str] = {}
        while (found := _ATTRIBUTE.match(self.text, self.at)) is not None:
            if found[1] in attributes:
                self._fail(f"{found[1]} twice", "each attribute once", self.at + 1)
            attributes[found[1]] = found[2][1:-1]
            self.at = found.end()
        rest = re.compile(r"[ \t]*(/?)>").match(self.text, self.at)
        if rest is None or (name[1] and (attributes or rest[1])):
            example = f"</{name[2]}>" if name[1] else f'<{name[2]} translation="...">'
            self._fail(
                show(self.text[column - 1 :], 30),
                f"a tag like {example}",
                column,
                "&lt; is < as a part of a word",
            )
        self.at = rest.end()
        if name[1]:
            self._close(name[2], column)
            return
        tag = _Tag(name[2], len(self.words), column, attributes)
        self._check_names(tag)
        if tag.name == "zone":
            tag.zone = len(self.zones)
            self.zones.append((tag.start, tag.start))
        self.open.append(tag)
        if rest[1]:
            self._close(tag.name, column)

    def _close(self, name: str, column: int) -> None:
        if not self.open:
            self._fail(f"</{name}>", f"<{name}> before it", column)
        tag = self.open.pop()
        if tag.name != name:
            self._fail(
                f"</{name}>",
                f"</{tag.name}>, the end of the tag in column {self.column + tag.column}",
                column,
            )
        end = len(self.words)
        if name == "wall":
            if end > tag.start:
                self._fail("words in <wall>", "<wall/>, which has none", tag.column)
            inner = [one.zone for one in self.open if one.zone >= 0]
            self.walls.append((tag.start, inner[-1] if inner else -1))
            return
        translations = self._translations(tag)
        if end == tag.start and (translations or tag.zone >= 0):
            self._fail(f"no words in <{name}>", "the words that it is about", tag.column)
        if tag.zone >= 0:
            self.zones[tag.zone] = (tag.start, end)
        elif translations is not None:
            self.spans.append(translations)

    def _check_names(self, tag: _Tag) -> None:
        for name in tag.attributes:
            near = [] if name in KNOWN else difflib.get_close_matches(name, KNOWN, n=1, cutoff=0.8)
            if near:
                self._fail(f"the attribute {name}", f"{near[0]}, or another name", tag.column)
            if name == "span":
                self._fail("the attribute span", "a tag around the words", tag.column)

    def _translations(self, tag: _Tag) -> MarkedSpan | None:
        """The translations that a tag gives to its words."""
        given, end = tag.attributes, len(self.words)
        mode, probs = self.mode, given.get("prob")
        targets: list[Words] = []
        if tag.name == "ne" and "entity" in given:
            mode, probs, targets = "exclusive", None, [self._target(given["entity"], "entity", tag)]
        elif given.get("translate") == "no":
            mode, probs, targets = "exclusive", None, [tuple(self.words[tag.start : end])]
        else:
            for name in ("translation", "english"):
                if name in given:
                    targets += (self._target(one, name, tag) for one in given[name].split(BARS))
        if "translate" in given and given["translate"] not in ("yes", "no"):
            self._fail(f"translate={show(given['translate'])}", "yes or no", tag.column)
        if not targets:
            if probs is not None:
                self._fail("prob without translation", "both", tag.column)
            return None
        values = [0.0] * len(targets)
        if probs is not None:
            values = [self._log_prob(one, tag) for one in probs.split(BARS)]
        if len(values) != len(targets):
            found = f"{len(values)} probabilities of {len(targets)} translations"
            self._fail(found, "as many, with || between them", tag.column)
        return MarkedSpan(tag.start, end, tuple(dict(zip(targets, values, strict=True)).items()), mode)

    def _target(self, text: str, name: str, tag: _Tag) -> Words:
        words = tuple(_plain(word, tuple(_CHARACTERS)) for word in split_words(text))
        if not words:
            self._fail(f"no words in {name} of <{tag.name}>", "a translation", tag.column)
        return words

    def _log_prob(self, text: str, tag: _Tag) -> float:
        try:
            prob = float(text)
        except ValueError:
            prob = math.nan
        if not 0 < prob < math.inf:
            self._fail(f"the probability {show(text.strip())}", "a number above 0", tag.column)
        return math.log10(prob)

    def _fail(self, found: str, expected: str, column: int, hint: str = "") -> NoReturn:
        found = f"{found} in column {self.column + column}"
        raise FormatError(self.path, self.number, found=found, expected=expected, hint=hint)


def _plain(word: str, names: tuple[str, ...]) -> str:
    """A word with characters in place of some entities."""
    if "&" not in word:
        return word
    return _ENTITY.sub(lambda found: _CHARACTERS[found[1]] if found[1] in names else found[0], word)


def read_markup(
    text: str, mode: str, path: str = "<line>", number: int = 1, column: int = 0
) -> tuple[Words, Given | None]:
    """The words of a sentence, and what its tags give; ``mode`` is that of an ``InputForm``.

    Errors name ``path``, the line ``number`` and the column in it; ``column`` characters precede the text.
    """
    if mode == "off" or not ("<" in text or "&" in text):
        return split_words(text), None
    return _Reader(text, mode, path, number, column).read()
