"""Endings of both languages. Cases are n, a, d (nominative, accusative, dative); persons 1s, 3s, 1p, 3p."""

from __future__ import annotations

from grammars.make_demo.lexicon import Adjective, Noun, Verb

# Article forms by case, for m, f, n and the plural.
_DEFINITE = {
    "n": ("der", "die", "das", "die"),
    "a": ("den", "die", "das", "die"),
    "d": ("dem", "der", "dem", "den"),
}
_INDEFINITE_ENDING = {"n": ("", "e", "", "e"), "a": ("en", "e", "", "e"), "d": ("em", "er", "em", "en")}
_STRONG_ENDING = {"n": ("er", "e", "es", "e"), "a": ("en", "e", "es", "e"), "d": ("em", "er", "em", "en")}
_WEAK_ENDING = {"n": ("e", "e", "e", "en"), "a": ("en", "e", "e", "en"), "d": ("en", "en", "en", "en")}
_COLUMN = {"m": 0, "w": 0, "f": 1, "n": 2}

CONTRACTIONS = {
    ("in", "dem"): "im", ("in", "das"): "ins", ("an", "dem"): "am", ("an", "das"): "ans",
    ("zu", "dem"): "zum", ("zu", "der"): "zur", ("von", "dem"): "vom", ("bei", "dem"): "beim",
}  # fmt: skip

# Finite forms of the verbs that do not follow the rule, by person.
IRREGULAR = {
    "haben": {"1s": "habe", "3s": "hat"},
    "sein": {"1s": "bin", "3s": "ist", "1p": "sind", "3p": "sind"},
    "werden": {"1s": "werde", "3s": "wird"},
    "wollen": {"1s": "will", "3s": "will"},
    "können": {"1s": "kann", "3s": "kann"},
    "müssen": {"1s": "muss", "3s": "muss"},
    "sollen": {"1s": "soll", "3s": "soll"},
    "dürfen": {"1s": "darf", "3s": "darf"},
    "möchten": {"1s": "möchte", "3s": "möchte"},
}
_DOUBLING = frozenset(["put", "get", "hit", "sit", "swim", "stop", "cut", "run"])


def column(noun: Noun, plural: bool) -> int:
    """The column of a noun in the tables of articles and endings."""
    return 3 if plural else _COLUMN[noun.gender]


def definite(noun: Noun, plural: bool, case: str) -> str:
    return _DEFINITE[case][column(noun, plural)]


def demonstrative(noun: Noun, plural: bool, case: str) -> str:
    return "dies" + _STRONG_ENDING[case][column(noun, plural)]


def ein_word(stem: str, noun: Noun, plural: bool, case: str) -> str:
    """``ein``, ``kein``, ``mein`` and their like."""
    ending = _INDEFINITE_ENDING[case][column(noun, plural)]
    return ("unsr" if stem == "unser" and ending else stem) + ending


def noun_form(noun: Noun, plural: bool, case: str) -> str:
    if plural:
        return noun.plural + ("n" if case == "d" and noun.plural[-1] not in "ns" else "")
    return noun.plural if noun.gender == "w" and case != "n" else noun.german


def adjective_form(adjective: Adjective, noun: Noun, plural: bool, case: str, article: str) -> str:
    """Endings after a definite article, after an ``ein`` word, or after none."""
    at = column(noun, plural)
    weak, strong = _WEAK_ENDING[case][at], _STRONG_ENDING[case][at]
    if article == "ein":
        bare = not _INDEFINITE_ENDING[case][at]
        return adjective.stem + (strong if bare else weak)
    return adjective.stem + (weak if article == "definite" else strong)


def finite(verb: Verb, person: str) -> str:
    if person == "3s":
        return verb.singular
    if person == "1s":
        return verb.infinitive.removesuffix("n")
    return verb.infinitive


def auxiliary(infinitive: str, person: str) -> str:
    return IRREGULAR[infinitive].get(person, infinitive)


def third_person(verb: str) -> str:
    """``go out`` to ``goes out``: the first word is inflected."""
    head, _, rest = verb.partition(" ")
    if head.endswith(("s", "sh", "ch", "x", "z", "o")):
        head += "es"
    elif head.endswith("y") and head[-2] not in "aeiou":
        head = head[:-1] + "ies"
    else:
        head += "s"
    return f"{head} {rest}".rstrip()


def progressive(verb: str) -> str:
    head, _, rest = verb.partition(" ")
    if head in ("lie", "die"):
        head = head[:-2] + "y"
    elif head in _DOUBLING:
        head += head[-1]
    elif head.endswith("e") and not head.endswith("ee"):
        head = head[:-1]
    return f"{head}ing {rest}".rstrip()


def english_present(verb: Verb, person: str) -> str:
    return third_person(verb.english) if person == "3s" else verb.english


def be(person: str, past: bool = False) -> str:
    if past:
        return "was" if person in ("1s", "3s") else "were"
    return {"1s": "am", "3s": "is"}.get(person, "are")


def article_before(word: str) -> str:
    """``a`` or ``an``, by spelling, since no word of the lexicon begins with a silent letter."""
    return "an" if word[0] in "aeiou" and not word.startswith("uni") else "a"
