"""Lines of input: sentences as text, in ``<seg>``, with Moses' markup or as JSON; lattices as PLF or JSON.

A sentence as JSON is ``{"source": "...", "terms": [["das haus", "the premises"], ["buch", "tome", 2.5]],
"hard_terms": true}``, with ``id`` and ``reference``, or ``post_edit``, if there are any.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hiero.core.errors import FormatError, HieroError, show
from hiero.core.given import Given, check_longest, terms_of_pairs
from hiero.core.lattice import Lattice, looks_like_plf, read_json_lattice
from hiero.core.moses_markup import read_markup
from hiero.core.text import AUTO, InputForm, Segment, parse_json, split_markup, split_words

BARS = "|||"
TERMS, HARD_TERMS = "terms", "hard_terms"  # attributes of <seg>, and keys of JSON
EXPECTED = '{"source": "..."}, perhaps with id, reference or post_edit, terms, hard_terms'
TEXTS = ("source", "reference", "post_edit")
KEYS = (*TEXTS, "id", TERMS, HARD_TERMS)
EXAMPLE = """terms='[["source words", "translation"], ...]'"""

_BARS = re.compile(r"(?:^|(?<=[ \t]))\|\|\|(?=[ \t]|$)")
_SOURCE = re.compile(r'"source"\s*:')
_ARCS = re.compile(r'"arcs"\s*:')


def looks_like_json(text: str) -> bool:
    """Whether a line begins and ends as a JSON object that has arcs, or a source."""
    text = text.strip(" \t")
    return (
        text.startswith("{")
        and text.endswith("}")
        and re.match(r'\{\s*"', text) is not None
        and ('"arcs"' in text or _SOURCE.search(text) is not None)
    )


def parse_input(line: str, path: str = "<line>", number: int = 1, form: InputForm = AUTO) -> Segment:
    """A line of input; text and PLF may be in ``<seg>``."""
    if form.format == "json" or (form.format == "auto" and looks_like_json(line)):
        if not line.strip(" \t"):
            return Segment(())
        return parse_json_line(line, path, number, form)
    text, attributes, reference = split_markup(line, path, number)
    if form.format == "plf" and not text.strip(" \t"):
        return Segment((), attributes, reference)
    if form.format == "plf" or (form.format == "auto" and "(((" in line and looks_like_plf(text)):
        if TERMS in attributes or HARD_TERMS in attributes:
            raise FormatError(
                path, number, found="terms of a lattice", expected="a sentence, which has words"
            )
        return of_lattice(Lattice.from_plf(text.strip(" \t"), path, number), attributes, reference)
    if form.markup == "off" and TERMS not in attributes and HARD_TERMS not in attributes:
        return Segment(split_words(text), attributes, reference)
    terms, hard = _given_attributes(attributes, path, number)
    column = 0 if text is line else line.rindex("</seg>") - len(text)
    return _sentence(text, attributes, reference, terms, hard, path, number, form, column)


def parse_with_reference(line: str, path: str = "<line>", number: int = 1, form: InputForm = AUTO) -> Segment:
    """A line of input, or ``source ||| reference`` without ``<seg>``."""
    found = None
    if not line.lstrip(" \t").startswith("<seg") and not looks_like_json(line):
        found = _BARS.search(line)
    if found is None:
        return parse_input(line, path, number, form)
    segment = parse_input(line[: found.start()], path, number, form)
    return replace(segment, reference=split_words(line[found.end() :]))


def parse_json_line(
    line: str, path: str, number: int, form: InputForm = AUTO, *, edits: bool = False
) -> Segment:
    """A sentence or a lattice as JSON; ``edits``: or a post-edit alone, which has no words."""
    if _ARCS.search(line) or not (edits or _SOURCE.search(line)):
        lattice, name, reference = read_json_lattice(line, path, number)
        attributes = {} if name is None else {"id": name}
        return of_lattice(lattice, attributes, None if reference is None else split_words(reference))
    try:
        content: Any = parse_json(line)
    except ValueError:
        raise FormatError(path, number, found="broken JSON", expected=EXPECTED) from None
    if not content or not isinstance(content, dict) or not content.keys() <= set(KEYS):
        keys = ", ".join(map(str, content)) if isinstance(content, dict) else type(content).__name__
        raise FormatError(path, number, found=f"the keys {keys or 'none'}", expected=EXPECTED)
    for key in content.keys() & set(TEXTS):
        value = content[key]
        if not isinstance(value, str) or "\n" in value:
            found = f"{key} of type {type(value).__name__}" if not isinstance(value, str) else "two lines"
            raise FormatError(path, number, found=found, expected="a str of one line")
    needed = {"source", "post_edit"} if edits else {"source"}
    if not content.keys() & needed or {"reference", "post_edit"} <= content.keys():
        raise FormatError(path, number, found=f"the keys {', '.join(content)}", expected=EXPECTED)
    name = content.get("id")
    if name is not None and (isinstance(name, bool) or not isinstance(name, str | int)):
        raise FormatError(path, number, found=f"id of type {type(name).__name__}", expected="a str")
    attributes = {} if name is None else {"id": str(name)}
    other = content.get("reference", content.get("post_edit"))
    terms, hard = content.get(TERMS), content.get(HARD_TERMS)
    if hard is not None and not isinstance(hard, bool):
        raise FormatError(path, number, found=f"hard_terms: {show(str(hard))}", expected="true or false")
    words = None if other is None else split_words(other)
    source = content.get("source", "")
    return _sentence(source, attributes, words, terms, hard, path, number, form)


def _given_attributes(attributes: Mapping[str, str], path: str, number: int) -> tuple[Any, bool | None]:
    """Terms in the attributes of ``<seg>``, as in JSON."""
    terms, hard = None, attributes.get(HARD_TERMS)
    if hard is not None and hard not in ("true", "false"):
        raise FormatError(path, number, found=f"hard_terms={show(hard)}", expected="true or false")
    if TERMS in attributes:
        try:
            terms = parse_json(attributes[TERMS])
        except ValueError:
            found, hint = f"terms={show(attributes[TERMS])}", r"an apostrophe in it is \u0027"
            raise FormatError(path, number, found=found, expected=EXAMPLE, hint=hint) from None
    return terms, None if hard is None else hard == "true"


def _sentence(
    text: str,
    attributes: dict[str, str],
    reference: tuple[str, ...] | None,
    terms: Any,
    hard: bool | None,
    path: str,
    number: int,
    form: InputForm,
    column: int = 0,
) -> Segment:
    words, given = read_markup(text, form.markup, path, number, column)
    try:
        if terms is not None or hard is not None:
            given = replace(given or Given(), terms=terms_of_pairs(() if terms is None else terms), hard=hard)
        if given is not None:
            check_longest(given.longest, form.longest)
    except HieroError as error:
        raise HieroError(f"{path}:{number}: {error}") from None
    return Segment(words, attributes, reference, given=given)


def terms_attributes(given: Given | None) -> dict[str, str]:
    """The terms of a sentence as attributes of ``<seg>``, to be written in ``'``."""
    if given is None:
        return {}
    pairs = [[" ".join(term.source), " ".join(term.target), term.weight] for term in given.terms]
    found = {TERMS: json.dumps(pairs, ensure_ascii=False).replace("'", r"\u0027")} if pairs else {}
    return found | ({} if given.hard is None else {HARD_TERMS: str(given.hard).lower()})


def of_lattice(
    lattice: Lattice, attributes: Mapping[str, str] | None = None, reference: tuple[str, ...] | None = None
) -> Segment:
    """A lattice as a line of input; one that is a sentence counts as the sentence."""
    plain = Segment(lattice.words, attributes or {}, reference)
    return plain if lattice.is_sentence else replace(plain, lattice=lattice)
