"""Write translations: plain lines, alignments, k-best lists in cdec's and Moses' formats, and JSON.

Numbers have nine significant digits. Fields of a k-best line are separated by ``|||``; a word ``|||`` is
written with its bars as ``&#124;``, which is not converted back on reading.

Lists are read sentence by sentence. Several values of one of Moses' features are NAME_0, NAME_1, ...
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hiero.core.errors import FormatError, show
from hiero.core.text import decode_utf8, parse_json, read_chunks
from hiero.decoder.derivation import Derivation, Tree

BAR = "&#124;"
WHAT = "a k-best list"
LIST_LINE = "id ||| translation ||| features ||| score"
_FIELDS = re.compile(r"[ \t]*(?<![^ \t])\|\|\|(?![^ \t])[ \t]*")
FORMATS = ("text", "align", "cdec", "moses", "json")
FeaturesOf = Callable[[Derivation], Mapping[str, float]]
ConfidenceOf = Callable[[Derivation], Sequence[float]]


class TranslationWriter:
    """Format the lines of one sentence, and count escaped words."""

    def __init__(
        self,
        style: str,
        confidence_of: ConfidenceOf | None = None,
        text_of: Callable[[str], str] | None = None,
    ) -> None:
        """``text_of`` makes text of translated words; JSON has both."""
        self.style, self.confidence_of, self.text_of = style, confidence_of, text_of
        self.num_escaped = 0

    def lines(
        self,
        name: str,
        source: Sequence[str],
        translations: Sequence[Derivation],
        features_of: FeaturesOf,
        more: Mapping[str, Any] = MappingProxyType({}),
    ) -> str:
        """All lines for a sentence; text, align and json have exactly one, even without a translation.

        more  further keys of JSON
        """
        if self.style == "text":
            text = translations[0].text if translations else ""
            return (text if self.text_of is None else self.text_of(text)) + "\n"
        if self.style == "align":
            return (_links(translations[0]) if translations else "") + "\n"
        if self.style == "json":
            listed = [self._record(one, features_of) for one in translations]
            return json_text({"id": name, "source": list(source), **more, "translations": listed})
        return "".join(self._line(name, one, features_of(one)) for one in translations)

    def _record(self, translation: Derivation, features_of: FeaturesOf) -> dict[str, Any]:
        record = translation_record(translation, features_of(translation))
        if self.text_of is not None:
            words = translation.text.split(" ") if len(translation) else []
            record = {"text": self.text_of(translation.text), "words": words} | {
                key: value for key, value in record.items() if key != "text"
            }
        if self.confidence_of is not None:
            record["confidence"] = [rounded(value) for value in self.confidence_of(translation)]
        return record

    def _line(self, name: str, translation: Derivation, features: Mapping[str, float]) -> str:
        equals = "=" if self.style == "cdec" else "= "
        listed = " ".join(f"{key}{equals}{value:.9g}" for key, value in sorted(features.items()))
        fields = [self.escaped(name), self.escaped(translation.text), listed, f"{translation.score:.9g}"]
        if self.style == "moses":
            fields.append(_links(translation))
        return " ||| ".join(fields) + "\n"

    def escaped(self, text: str) -> str:
        if "|||" not in text:
            return text
        words = text.split(" ")
        self.num_escaped += words.count("|||")
        return " ".join(3 * BAR if word == "|||" else word for word in words)


def _links(translation: Derivation) -> str:
    return " ".join(f"{src}-{tgt}" for src, tgt in translation.alignment)


def json_text(record: Mapping[str, Any]) -> str:
    """A line of JSON."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"


def translation_record(translation: Derivation, features: Mapping[str, float]) -> dict[str, Any]:
    """A translation as in lines of JSON."""
    return {
        "text": translation.text,
        "score": rounded(translation.score),
        "features": {key: rounded(value) for key, value in sorted(features.items())},
        "alignment": [list(link) for link in translation.alignment],
        **({} if translation.forest.lattice is None else {"arcs": translation.arcs}),
        "derivation": tree_nodes(translation.tree()),
    }


def tree_nodes(root: Tree, more: Callable[[Tree], Mapping[str, Any]] | None = None) -> list[dict[str, Any]]:
    """A tree as a list of its nodes in pre-order: children are words, or positions of nodes in the list.

    Not nested, because with glue the depth grows with the sentence, and many JSON readers limit depth.

    more  makes further entries of a node
    """
    nodes: list[dict[str, Any]] = []
    todo: list[tuple[Tree, list[Any] | None, int]] = [(root, None, 0)]
    while todo:
        tree, siblings, place = todo.pop()
        if siblings is not None:
            siblings[place] = len(nodes)
        children: list[Any] = list(tree.children)
        nodes.append(
            {
                "label": tree.label,
                "source": [tree.span.src_start, tree.span.src_end],
                "target": [tree.span.tgt_start, tree.span.tgt_end],
                "score": rounded(tree.score),
                "children": children,
                **({} if more is None else more(tree)),
            }
        )
        below = [(child, children, at) for at, child in enumerate(tree.children) if isinstance(child, Tree)]
        todo.extend(reversed(below))
    return nodes


def rounded(value: float) -> float:
    """A number with as many digits as are written."""
    return float(f"{value:.9g}")


# ---- reading lists


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
                | {"text": one.text, "score": rounded(one.score), "features": _all_rounded(one.features)}
                for one in self.translations
            ]
            record = {"id": self.name, **self.record, "translations": listed}
            return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
        equals = "=" if self.style == "cdec" else "= "
        lines = []
        for one in self.translations:
            features = " ".join(f"{name}{equals}{value:.9g}" for name, value in one.features.items())
            fields = [self.name, _with_bars_escaped(one.text), features, f"{one.score:.9g}", *one.fields]
            lines.append(" ||| ".join(fields) + "\n")
        return "".join(lines)


def _with_bars_escaped(text: str) -> str:
    if "|||" not in text:
        return text
    return " ".join(3 * BAR if word == "|||" else word for word in text.split(" "))


def _all_rounded(values: dict[str, float]) -> dict[str, float]:
    return {name: rounded(value) for name, value in values.items()}


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
