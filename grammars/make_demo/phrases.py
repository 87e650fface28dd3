"""Noun phrases, places and times in both languages."""

from __future__ import annotations

from typing import NamedTuple

from grammars.make_demo import lexicon, morphology
from grammars.make_demo.lexicon import Adjective, Noun, Place
from grammars.make_demo.trees import Node, Rng, leaf, rule, spell

# German, its English, the person.
_SUBJECT_PRONOUNS = [
    ("er", "he", "3s"), ("sie", "she", "3s"), ("ich", "i", "1s"), ("wir", "we", "1p"), ("sie", "they", "3p"),
]  # fmt: skip
_OBJECT_PRONOUNS = {
    "a": [("ihn", "him"), ("sie", "her"), ("mich", "me"), ("sie", "them"), ("uns", "us")],
    "d": [("mir", "me"), ("ihm", "him"), ("ihr", "her"), ("ihnen", "them"), ("uns", "us")],
}
_POSSESSIVES = [("mein", "my"), ("sein", "his"), ("ihr", "her"), ("unser", "our"), ("ihr", "their")]
_WEEKDAYS = [
    ("montag", "monday"), ("freitag", "friday"), ("samstag", "saturday"), ("sonntag", "sunday"),
    ("mittwoch", "wednesday"), ("dienstag", "tuesday"), ("donnerstag", "thursday"),
]  # fmt: skip
_NUMBERS = [("zwei", "two"), ("drei", "three"), ("vier", "four"), ("fünf", "five"), ("zehn", "ten")]
_UNITS = [
    ("jahren", "years"),
    ("wochen", "weeks"),
    ("tagen", "days"),
    ("monaten", "months"),
    ("stunden", "hours"),
]
_CLOCK = [("acht", "eight"), ("neun", "nine"), ("sieben", "seven"), ("zwölf", "twelve"), ("elf", "eleven")]
_OWNED = frozenset(["thing", "vehicle", "wear", "building", "room", "play"])


class Referent(NamedTuple):
    """A noun phrase and its properties for agreement."""

    node: Node
    person: str
    noun: Noun | None = None  # None for pronouns and names
    plural: bool = False


def nouns_of(classes: frozenset[str]) -> list[Noun]:
    return [noun for noun in lexicon.nouns if noun.classes & classes]


def adjectives_of(noun: Noun) -> list[Adjective]:
    """The adjectives that make sense with a noun and do not repeat it (``ein junger junge``)."""
    fitting = (adjective for adjective in lexicon.adjectives if adjective.classes & noun.classes)
    return [adjective for adjective in fitting if not noun.german.startswith(adjective.stem)]


def noun_group(rng: Rng, noun: Noun, plural: bool, case: str, article: str, adjective: float = 0.3) -> Node:
    """A noun with its adjectives, without article."""
    english = noun.english_plural if plural else noun.english
    group = leaf(morphology.noun_form(noun, plural, case), english)
    if noun.german == "haus" and rng.chance(0.15):
        group = leaf(morphology.noun_form(noun, plural, case), "homes" if plural else "home")
    fitting = adjectives_of(noun)
    if fitting and rng.chance(adjective):
        chosen = rng.zipf(fitting)
        form = morphology.adjective_form(chosen, noun, plural, case, article)
        if rng.chance(0.12):
            group = rule(f"sehr:b {form}:a 1", f"very:b {chosen.english}:a 1", group)
        else:
            group = rule(f"{form}:a 1", f"{chosen.english}:a 1", group)
    return group


def _counted(rng: Rng, noun: Noun, plural: bool, case: str, allow_none: bool) -> Node:
    """An article, possessive or number, and the noun group it requires."""
    kinds = {"definite": 10.0, "this": 1.5, "possessive": 2.5, "indefinite": 7.0}
    if noun.plural == "-":
        kinds = {"definite": 5, "bare": 4, "much": 1}
    elif plural:
        kinds = {
            "definite": 6,
            "this": 1,
            "possessive": 2,
            "number": 3,
            "many": 1.5,
            "bare": 1.0 * allow_none,
        }
    kind = rng.weighted(list(kinds), list(kinds.values()))
    if kind in ("definite", "this"):
        group = noun_group(rng, noun, plural, case, "definite")
        if kind == "this":
            german = morphology.demonstrative(noun, plural, case)
            return rule(f"{german}:a 1", f"{'these' if plural else 'this'}:a 1", group)
        return rule(f"{morphology.definite(noun, plural, case)}:a 1", "the:a 1", group)
    if kind == "possessive":
        german, english = rng.zipf(_POSSESSIVES)
        form = morphology.ein_word(german, noun, plural, case)
        return rule(f"{form}:a 1", f"{english}:a 1", noun_group(rng, noun, plural, case, "ein"))
    if kind == "indefinite":
        return _indefinite(rng, noun, case)
    group = noun_group(rng, noun, plural, case, "none")
    if kind == "number":
        german, english = rng.zipf(_NUMBERS)
        return rule(f"{german}:a 1", f"{english}:a 1", group)
    if kind == "many":
        return rule(f"viele{'n' if case == 'd' else ''}:a 1", "many:a 1", group)
    return rule("viel:a 1", "a:a lot:a of:a 1", group) if kind == "much" else group


def indefinite(group: Node) -> str:
    """``a`` or ``an`` for a noun group."""
    return morphology.article_before(spell(group).tgt[0])


def noun_phrase(rng: Rng, classes: frozenset[str], case: str, *, fresh: Noun | None = None) -> Referent:
    """A noun phrase of one of the classes, or of a given noun."""
    noun = fresh or rng.zipf(nouns_of(classes))
    plural = noun.plural != "-" and rng.chance(0.25)
    node = _counted(rng, noun, plural, case, allow_none=case != "d")
    if rng.chance(0.1) and noun.classes & _OWNED:
        node = _owned(rng, node)
    return Referent(node, "3p" if plural else "3s", noun, plural)


def indefinite_phrase(rng: Rng, classes: frozenset[str], case: str) -> Referent:
    """An indefinite noun phrase, as in ``es gibt einen turm``."""
    noun = rng.zipf([noun for noun in nouns_of(classes) if noun.plural != "-"])
    return Referent(_indefinite(rng, noun, case), "3s", noun)


def _indefinite(rng: Rng, noun: Noun, case: str) -> Node:
    group = noun_group(rng, noun, False, case, "ein", adjective=0.45)
    article = morphology.ein_word("ein", noun, False, case)
    return rule(f"{article}:a 1", f"{indefinite(group)}:a 1", group)


def _owned(rng: Rng, node: Node) -> Node:
    """With an owner: ``das buch von peter`` is ``peter 's book`` or ``the book of`` a person."""
    if rng.chance(0.4) and node.tgt == ("the", 1) and node.src[1:] == (1,):
        name = leaf(*[rng.zipf(lexicon.PERSON_NAMES.split())] * 2)
        return rule(f"{node.src[0]} 1 von:a 2", "2 's:a 1", node.children[0], name)
    owner = rng.zipf(nouns_of(frozenset(["person"])))
    article = morphology.definite(owner, False, "d")
    group = noun_group(rng, owner, False, "d", "definite", adjective=0.15)
    if article == "dem":
        return rule("1 vom:ab 2", "1 of:a the:b 2", node, group)
    return rule(f"1 von:a {article}:b 2", "1 of:a the:b 2", node, group)


def person_name(rng: Rng) -> Referent:
    names = lexicon.RARE_NAMES if rng.chance(0.04) else lexicon.PERSON_NAMES
    name = rng.zipf(names.split())
    return Referent(leaf(name, name), "3s")


def subject(rng: Rng, classes: frozenset[str] = frozenset(["person"])) -> Referent:
    """A subject: a pronoun, a name or a noun phrase in the nominative."""
    if classes != frozenset(["person"]):
        return noun_phrase(rng, classes, "n")
    kind = rng.weighted(("noun", "pronoun", "name"), (5, 3.5, 2))
    if kind == "noun":
        return noun_phrase(rng, classes, "n")
    if kind == "name":
        return person_name(rng)
    german, english, person = rng.zipf(_SUBJECT_PRONOUNS)
    return Referent(leaf(german, english), person)


def object_(rng: Rng, classes: frozenset[str], case: str) -> Referent:
    """An object; persons, more often in the dative, may be pronouns or names."""
    if "person" in classes and rng.chance(0.75 if case == "d" else 0.5):
        if rng.chance(0.3):
            return person_name(rng)
        german, english = rng.zipf(_OBJECT_PRONOUNS[case])
        return Referent(leaf(german, english), "3s")
    return noun_phrase(rng, classes, case)


def prepositional(preposition: str, english: str, referent: Referent) -> Node:
    """A preposition before a noun phrase, contracted with its article where German does so."""
    node = referent.node
    first = node.src[0] if isinstance(node.src[0], str) else ""
    short = morphology.CONTRACTIONS.get((preposition, first))
    tagged = " ".join(f"{word}:a" for word in english.split())
    if short and node.src == (first, 1) and node.tgt == ("the", 1):
        return rule(f"{short}:ab 1", f"{tagged} the:b 1", *node.children)
    return rule(f"{preposition}:a 1", f"{tagged} 1", node)


def place_phrase(rng: Rng, place: Place | None = None) -> Node:
    """A place."""
    if place is None:
        if rng.chance(0.12):
            return leaf("zu hause", "at home")
        if rng.chance(0.15):
            return prepositional("in", "in", _city(rng))
        place = rng.zipf(lexicon.places)
    return prepositional(place.preposition, place.english, noun_phrase_definite(rng, place.noun, "d"))


def noun_phrase_definite(rng: Rng, noun: Noun, case: str) -> Referent:
    """A noun phrase of a place, mostly definite."""
    if rng.chance(0.2):
        node = _counted(rng, noun, False, case, allow_none=False)
    else:
        group = noun_group(rng, noun, False, case, "definite", adjective=0.15)
        node = rule(f"{morphology.definite(noun, False, case)}:a 1", "the:a 1", group)
    return Referent(node, "3s", noun)


def _city(rng: Rng) -> Referent:
    city = rng.zipf(lexicon.CITIES.split())
    return Referent(leaf(city, lexicon.ENGLISH_CITIES.get(city, city)), "3s")


def goal_phrase(rng: Rng) -> Node:
    """A destination."""
    if rng.chance(0.4):
        return prepositional("nach", "to", _city(rng))
    if rng.chance(0.15):
        return leaf("nach hause", "home")
    place = rng.zipf(lexicon.places)
    if rng.chance(0.5):
        return prepositional("zu", "to", noun_phrase_definite(rng, place.noun, "d"))
    english = "into" if place.preposition == "in" and rng.chance(0.4) else "to"
    preposition = "zu" if place.noun.german in ("bahnhof", "hauptbahnhof", "flughafen") else place.preposition
    case = "d" if preposition == "zu" else "a"
    return prepositional(preposition, english, noun_phrase_definite(rng, place.noun, case))


def means_phrase(rng: Rng) -> Node:
    german, english = rng.zipf(
        [("zug", "train"), ("auto", "car"), ("bus", "bus"), ("fahrrad", "bike"), ("boot", "boat")]
    )
    return rule("mit:a dem:a 1", "by:a 1", leaf(german, english))


def time_phrase(rng: Rng, tense: str) -> Node:
    """A time that fits a tense: past, present or future."""
    if tense == "past" and rng.chance(0.3):
        number, unit = rng.zipf(_NUMBERS), rng.zipf(_UNITS)
        count = rule(f"{number[0]}:a {unit[0]}:b", f"{number[1]}:a {unit[1]}:b")
        return rule("vor:a 1", "1 ago:a", count)
    if rng.chance(0.25):
        day = rng.zipf(_WEEKDAYS)
        return rule("am:a 1", "on:a 1", leaf(*day))
    if rng.chance(0.15):
        hour = rng.zipf(_CLOCK)
        return rule("um:a 1 uhr:b", "at:a 1 o'clock:b", leaf(*hour))
    simple = {
        "past": [("gestern", "yesterday"), ("heute morgen", "this morning"), ("letzte woche", "last week"),
                 ("gestern abend", "last night"), ("letztes jahr", "last year")],
        "present": [("heute", "today"), ("jeden tag", "every day"), ("heute abend", "tonight"),
                    ("jeden morgen", "every morning"), ("im sommer", "in the summer")],
        "future": [("morgen", "tomorrow"), ("nächste woche", "next week"), ("heute abend", "tonight"),
                   ("bald", "soon"), ("morgen früh", "tomorrow morning"), ("nächstes jahr", "next year")],
    }  # fmt: skip
    return leaf(*rng.zipf(simple[tense]))
