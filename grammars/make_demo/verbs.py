"""Verb complexes, which enclose the clause in German and are contiguous in English."""

from __future__ import annotations

from typing import NamedTuple

from grammars.make_demo import morphology
from grammars.make_demo.lexicon import Verb
from grammars.make_demo.trees import Rng

# German modal, its English statement, its English under do-support (None: it inverts and negates by itself).
MODALS = [
    ("wollen", {"3s": "wants to", "": "want to"}, "want to"),
    ("können", {"": "can"}, None),
    ("müssen", {"3s": "has to", "": "have to"}, "have to"),
    ("sollen", {"": "should"}, None),
    ("möchten", {"": "would like to"}, None),
    ("dürfen", {"": "may"}, None),
]


class Forms(NamedTuple):
    """The pieces of one verb complex as tagged text, for ``trees.rule``.

    German main clauses are ``subject finite ... end``, subordinate ones ``... final``; English statements
    ``subject aux main ...``, questions ``aux subject main ...``. Only end and aux may be "".
    """

    finite: str
    end: str
    final: str
    aux: str
    main: str


def tag(text: str, tags: str) -> str:
    return " ".join(f"{word}:{tags}" for word in text.split())


def present(verb: Verb, person: str, support: bool) -> Forms:
    fin = morphology.finite(verb, person)
    end = tag(verb.prefix, "a")
    final = tag(verb.prefix + fin, "a")
    if support:
        return Forms(tag(fin, "a"), end, final, tag(do(person), "a"), tag(verb.english, "a"))
    return Forms(tag(fin, "a"), end, final, "", tag(morphology.english_present(verb, person), "a"))


def perfect(rng: Rng, verb: Verb, person: str, support: bool, dated: bool) -> Forms:
    """German perfect: English past, or the perfect if there is no date."""
    fin = tag(morphology.auxiliary("haben" if verb.auxiliary == "h" else "sein", person), "h")
    end = tag(verb.participle, "a")
    final = f"{end} {fin}"
    if not dated and rng.chance(0.3):
        have = "has" if person == "3s" else "have"
        return Forms(fin, end, final, tag(have, "h"), tag(verb.english_participle, "a"))
    if support:
        return Forms(fin, end, final, "did:h", tag(verb.english, "a"))
    return Forms(fin, end, final, "", tag(verb.past, "ah"))


def modal(rng: Rng, verb: Verb, person: str, support: bool) -> Forms:
    german, statement, supported = rng.zipf(MODALS)
    fin = tag(morphology.auxiliary(german, person), "m")
    end = tag(verb.prefix + verb.infinitive, "a")
    main = tag(verb.english, "a")
    if supported is None:
        aux, _, rest = statement[""].partition(" ")
        return Forms(fin, end, f"{end} {fin}", tag(aux, "m"), f"{tag(rest, 'm')} {main}".strip())
    if support:
        return Forms(fin, end, f"{end} {fin}", tag(do(person), "m"), f"{tag(supported, 'm')} {main}")
    english = statement.get(person, statement[""])
    return Forms(fin, end, f"{end} {fin}", "", f"{tag(english, 'm')} {main}")


def future(verb: Verb, person: str) -> Forms:
    fin = tag(morphology.auxiliary("werden", person), "m")
    end = tag(verb.prefix + verb.infinitive, "a")
    return Forms(fin, end, f"{end} {fin}", "will:m", tag(verb.english, "a"))


def do(person: str) -> str:
    return "does" if person == "3s" else "do"


def conjugate(
    rng: Rng, verb: Verb, person: str, tense: str, *, support: bool = False, dated: bool = False
) -> Forms:
    """The forms of a verb in a tense.

    ``support`` requests an auxiliary in English, for negation and questions; ``dated`` the English past.
    """
    if tense == "past":
        return perfect(rng, verb, person, support, dated)
    if tense == "modal":
        return modal(rng, verb, person, support)
    return future(verb, person) if tense == "future" else present(verb, person, support)


def time_of(tense: str) -> str:
    """The kind of time adverb for a tense."""
    return {"modal": "future"}.get(tense, tense)
