"""Read translations of a test set (lines, k-best lists, JSON of ``hiero decode``) and its references."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from hiero.core.errors import FormatError, show
from hiero.core.text import read_text

FORMS = ("text", "kbest", "json")
_BAR = re.compile(r"(?:^|(?<=[ \t]))\|\|\|(?=[ \t]|$)")
_ID = re.compile(r"\S+")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*([eE][-+]?\d+)?|inf|nan)")


class Hypotheses(NamedTuple):
    """One translation for each sentence of a test set.

    missing  number of sentences without one in the file; their translation is empty
    """

    lines: list[str]
    missing: int


def read_hypotheses(
    path: str | Path, num_sentences: int, like: str | Path, form: str | None = None
) -> Hypotheses:
    """The first translation of each of ``num_sentences`` sentences, as many as the reference ``like`` has.

    ``form`` is one of FORMS. By default the first line decides: JSON begins with a brace, and a line of a
    k-best list has fields between ``|||``, the first of them a word and the fourth a number.
    """
    lines = read_text(path, "translations")
    if form is None:
        form = _form_of(lines[0]) if lines else "text"
    if form == "kbest":
        found = _from_kbest(path, lines, num_sentences)
    elif form == "json":
        found = _from_json(path, lines)
    else:
        found = Hypotheses(lines, 0)
    if len(found.lines) != num_sentences:
        unit = "lines" if form != "kbest" else "sentences"
        expected = f"{num_sentences}, as many as {like} has lines"
        raise FormatError(path, 0, found=f"{len(found.lines)} {unit}", expected=expected)
    return found


def read_candidates(path: str | Path) -> dict[str, list[str]]:
    """All translations of each sentence, by its id: the number from 0 of a line of text, or what is given.

    path  a line for each sentence, a k-best list, or JSON
    """
    lines = read_text(path, "translations")
    form = _form_of(lines[0]) if lines else "text"
    if form == "text":
        return {str(number): [line] for number, line in enumerate(lines)}
    found: dict[str, list[str]] = {}
    for number, line in enumerate(lines, 1):
        if form == "json":
            record = _record(path, number, line)
            texts = _texts(path, number, line, record)
            found.setdefault(str(record.get("id", number - 1)), []).extend(texts)
        elif line.strip():
            name, text = _kbest_fields(path, number, line)[:2]
            found.setdefault(name, []).append(text)
    return found


def _form_of(line: str) -> str:
    if line.startswith("{") and line.rstrip().endswith("}") and '"translations"' in line:
        return "json"
    fields = _BAR.split(line)
    if len(fields) >= 4 and _ID.fullmatch(fields[0].strip()) and _NUMBER.fullmatch(fields[3].strip()):
        return "kbest"
    return "text"


def _from_kbest(path: str | Path, lines: list[str], num_sentences: int) -> Hypotheses:
    """The first line of each id.

    Where ids are numbers and the last sentence is present, missing ids are sentences without a translation.
    Otherwise the list is probably incomplete.
    """
    first: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        fields = _kbest_fields(path, number, line)
        first.setdefault(fields[0], fields[1])
    if all(key.isascii() and key.isdigit() for key in first):
        texts = {int(key): text for key, text in first.items()}
        if len(texts) < num_sentences and max(texts, default=0) == num_sentences - 1:
            filled = [texts.get(number, "") for number in range(num_sentences)]
            return Hypotheses(filled, num_sentences - len(texts))
        return Hypotheses([texts[number] for number in sorted(texts)], 0)
    return Hypotheses(list(first.values()), 0)


def _kbest_fields(path: str | Path, number: int, line: str) -> list[str]:
    fields = [field.strip(" \t") for field in _BAR.split(line)]
    if len(fields) < 3 or not _ID.fullmatch(fields[0]):
        hint = "is this a k-best list?"
        expected = "id ||| translation ||| features ||| score"
        raise FormatError(path, number, found=show(line), expected=expected, hint=hint)
    return fields


def _from_json(path: str | Path, lines: list[str]) -> Hypotheses:
    texts = [_texts(path, n, line, _record(path, n, line)) for n, line in enumerate(lines, 1)]
    return Hypotheses([found[0] if found else "" for found in texts], sum(not found for found in texts))


def _record(path: str | Path, number: int, line: str) -> Any:
    try:
        return msgspec.json.decode(line.encode())
    except (msgspec.DecodeError, RecursionError) as error:
        reason = str(error).split(" (")[0].lower()
        raise FormatError(path, number, found=reason, expected="a JSON object on a line") from None


def _texts(path: str | Path, number: int, line: str, record: Any) -> list[str]:
    """The translations in a line of JSON."""
    try:
        return [str(found["text"]) for found in record["translations"]]
    except (KeyError, IndexError, TypeError):
        expected = 'an object with "translations", a list of objects with "text"'
        raise FormatError(path, number, found=show(line), expected=expected) from None


def read_references(paths: Iterable[str | Path]) -> list[list[str]]:
    """Read the references of a test set: files of one length, at least one of them, and not empty."""
    named = [(path, read_text(path, "references")) for path in paths]
    for (first, lines), (path, others) in itertools.pairwise(named):
        if len(lines) != len(others):
            expected = f"{len(lines)}, as many as {first} has"
            raise FormatError(path, 0, found=f"{len(others)} lines", expected=expected)
    if not named[0][1]:
        raise FormatError(named[0][0], 0, found="no lines", expected="references")
    return [lines for _, lines in named]
