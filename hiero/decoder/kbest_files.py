"""k-best lists as files, read and written sentence by sentence: cdec's and Moses' lines, and JSON.

A line of cdec's form is ``id ||| translation ||| NAME=VALUE ... ||| score``; Moses' features are ``NAME=
VALUE ...``, several values being NAME_0, NAME_1, ..., and further fields follow the score. JSON is that of
``hiero decode --format json``, an object a sentence.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hiero.core.errors import FormatError, show
from hiero.core.text import decode_utf8, parse_json, read_chunks
from hiero.decoder.output import BAR

WHAT = "a k-best list"
LIST_LINE = "id ||| translation ||| features ||| score"
_FIELDS = re.compile(r"[ \t]*(?<![^ \t])\|\|\|(?![^ \t])[ \t]*")


@dataclass(slots=True)
class ListedTranslation:
    """A translation of a list.

    fields   those after the score, as they are
    record   what JSON has beside text, score and features
    """

    text: str
    features: dict[str, float]
    score: float
    line: int = 0
    fields: list[str] = field(default_factory=list)
    record: dict[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> list[str]:
        """The words, ``|||`` among them as it is spelt in the text."""
        return [word.replace(BAR, "|") if word == 3 * BAR else word for word in self.text.split()]


@dataclass(slots=True)
class TranslationList:
    """The translations of a sentence; ``style`` is cdec, moses or json, ``record`` what else JSON has."""

    name: str
    style: str
    translations: list[ListedTranslation]
    record: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """The lines of the list."""
        if self.style == "json":
            listed = [
                one.record
                | {"text": one.text, "score": _nine(one.score), "features": _all_nine(one.features)}
                for one in self.translations
            ]
            record = {"id": self.name, **self.record, "translations": listed}
            return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
        equals = "=" if self.style == "cdec" else "= "
        lines = []
        for one in self.translations:
            features = " ".join(f"{name}{equals}{value:.9g}" for name, value in one.features.items())
            fields = [self.name, _escaped(one.text), features, f"{one.score:.9g}", *one.fields]
            lines.append(" ||| ".join(fields) + "\n")
        return "".join(lines)


def _escaped(text: str) -> str:
    if "|||" not in text:
        return text
    return " ".join(3 * BAR if word == "|||" else word for word in text.split(" "))


def _nine(value: float) -> float:
    return float(f"{value:.9g}")


def _all_nine(values: dict[str, float]) -> dict[str, float]:
    return {name: _nine(value) for name, value in values.items()}


def read_translation_lists(path: str | Path) -> Iterator[TranslationList]:
    """The lists of a file, one sentence after the other; all lines of a sentence must be consecutive."""
    seen: set[str] = set()
    last: TranslationList | None = None
    for number, line in _lines(path):
        if not line.strip():
            continue
        found = _from_json(path, number, line) if line.startswith("{") else _from_line(path, number, line)
        if last is not None and found.name == last.name and found.style == last.style != "json":
            last.translations += found.translations
            continue
        if last is not None:
            if found.style != last.style and "json" in (found.style, last.style):
                raise FormatError(path, number, found=show(line), expected=f"a list as {last.style}")
            yield last
        if found.name in seen:
            hint = "all lines of a sentence stand together"
            what = f"sentence {show(found.name)} a second time"
            raise FormatError(path, number, found=what, expected="another sentence", hint=hint)
        seen.add(found.name)
        last = found
    if last is not None:
        yield last


def _lines(path: str | Path) -> Iterator[tuple[int, str]]:
    for chunk in read_chunks(path, what=WHAT):
        text = decode_utf8(path, chunk.data, chunk.first_line)
        yield from enumerate(text[:-1].split("\n"), chunk.first_line)


def _number(path: str | Path, line: int, text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FormatError(path, line, found=f"{show(text)} as {what}", expected="a finite number")
    return value


def _from_line(path: str | Path, number: int, line: str) -> TranslationList:
    fields = _FIELDS.split(line.rstrip("\r").strip(" \t"))
    if len(fields) < 4 or not fields[0]:
        hint = "is this a k-best list, and complete?"
        raise FormatError(path, number, found=show(line), expected=LIST_LINE, hint=hint)
    name, text, listed, score, *rest = fields
    tokens = listed.split()
    style = "moses" if any(token.endswith("=") for token in tokens) else "cdec"
    features = (_moses_features if style == "moses" else _cdec_features)(path, number, tokens)
    if not tokens and rest:
        style = "moses"
    total = _number(path, number, score, "a score")
    one = ListedTranslation(text, features, total, number, rest)
    return TranslationList(name, style, [one])


def _cdec_features(path: str | Path, number: int, tokens: Iterable[str]) -> dict[str, float]:
    features = {}
    for token in tokens:
        name, equals, value = token.rpartition("=")
        if not equals or not name:
            raise FormatError(path, number, found=show(token), expected="NAME=VALUE")
        features[name] = _number(path, number, value, f"the value of {show(name)}")
    return features


def _moses_features(path: str | Path, number: int, tokens: Iterable[str]) -> dict[str, float]:
    groups: list[tuple[str, list[float]]] = []
    for token in tokens:
        if token.endswith("="):
            groups.append((token[:-1], []))
        elif groups:
            groups[-1][1].append(_number(path, number, token, f"a value of {show(groups[-1][0])}"))
        else:
            raise FormatError(path, number, found=show(token), expected="NAME= VALUE")
    features: dict[str, float] = {}
    for name, values in groups:
        if not name or not values:
            raise FormatError(path, number, found=f"{show(name)} without a value", expected="NAME= VALUE")
        numbered = {f"{name}_{i}": value for i, value in enumerate(values)}
        features |= numbered if len(values) > 1 else {name: values[0]}
    return features


def _from_json(path: str | Path, number: int, line: str) -> TranslationList:
    try:
        record = dict(parse_json(line))
        name, translations = str(record.pop("id")), list(record.pop("translations"))
        listed = []
        for one in translations:
            own = dict(one)
            text, score, features = str(own.pop("text")), float(own.pop("score")), dict(own.pop("features"))
            values = {str(key): float(value) for key, value in features.items()}
            if not all(map(math.isfinite, [score, *values.values()])):
                raise ValueError("a number that is not finite")
            listed.append(ListedTranslation(text, values, score, number, record=own))
    except (ValueError, KeyError, TypeError) as error:
        found = f"no {error}" if isinstance(error, KeyError) else str(error).split(" (")[0].lower()
        expected = "an object as hiero decode --format json writes it"
        raise FormatError(path, number, found=found, expected=expected) from None
    return TranslationList(name, "json", listed, record)
