"""Whole sentences: the constructions of ``clauses`` and others."""

from __future__ import annotations

from collections.abc import Callable

from grammars.make_demo import clauses, lexicon, morphology, phrases, verbs
from grammars.make_demo.trees import Node, Rng, join, leaf, rule


def copula(rng: Rng) -> Node:
    """A predicative adjective or a comparison."""
    who = _describable(rng)
    assert who.noun is not None
    adjective = rng.zipf(phrases.adjectives_of(who.noun))
    person = "3p" if who.plural else "3s"
    past = rng.chance(0.25)
    finite = ("waren" if who.plural else "war") if past else morphology.auxiliary("sein", person)
    be = morphology.be(person, past)
    if rng.chance(0.35) and adjective.comparative != "-":
        other = phrases.noun_phrase(rng, who.noun.classes, "n")
        compared = adjective.english_comparative
        english = f"more:b {adjective.english}:b" if compared == "-" else f"{compared}:b"
        german = f"{finite}:a {adjective.comparative}:b als:c 1"
        return join(who.node, rule(german, f"{be}:a {english} than:c 1", other.node))
    degree = rng.weighted(("", "sehr very", "zu too", "nicht not"), (4, 2, 1, 1.5))
    quality = leaf(adjective.german, adjective.english)
    if degree:
        word, translation = degree.split()
        quality = rule(f"{word}:b 1", f"{translation}:b 1", quality)
    return join(who.node, rule(f"{finite}:a 1", f"{be}:a 1", quality))


def _describable(rng: Rng) -> phrases.Referent:
    nouns = [noun for noun in lexicon.nouns if phrases.adjectives_of(noun)]
    return phrases.noun_phrase(rng, frozenset(), "n", fresh=rng.zipf(nouns))


def pleasing(rng: Rng) -> Node:
    """``das buch gefällt der frau``: the German dative is the English subject."""
    verb = rng.zipf(lexicon.pleasing)
    what = phrases.noun_phrase(rng, verb.objects, "n")
    whom = phrases.noun_phrase(rng, frozenset(["person"]), "d")
    german, english, person = rng.zipf(
        [("mir", "i", "1s"), ("ihm", "he", "3s"), ("ihr", "she", "3s"), ("uns", "we", "1p")]
    )
    pronoun = rng.chance(0.5)
    node, person = (leaf(german, english), person) if pronoun else (whom.node, whom.person)
    tense = rng.weighted(("present", "past"), (3, 1))
    forms = verbs.conjugate(rng, verb, what.person, tense, dated=True)
    clause = clauses.pieces("1", forms.finite, "2", forms.end)
    likes = f"{verb.past}:ah" if tense == "past" else f"{morphology.english_present(verb, person)}:a"
    if pronoun and rng.chance(0.4):
        return rule(clause, f"1 {likes} 2", node, what.node)
    return rule(clause, f"2 {likes} 1", what.node, node)


def existence(rng: Rng) -> Node:
    place = phrases.place_phrase(rng, rng.zipf(lexicon.places))
    found = phrases.indefinite_phrase(rng, frozenset(["sight", "thing", "food", "animal"]), "a")
    be = morphology.be(found.person)
    if rng.chance(0.6):
        return rule("1 gibt:a es:b 2", f"there:b {be}:a 2 1", place, found.node)
    return rule("es:b gibt:a 1 2", f"there:b {be}:a 1 2", found.node, place)


_ENJOYED = frozenset(
    ["lesen", "essen", "trinken", "kochen", "besuchen", "backen", "lernen", "spielen", "singen"]
)


def gladly(rng: Rng) -> Node:
    """``isst gern suppe``: an adverb is translated by a verb."""
    who = phrases.subject(rng)
    verb = rng.zipf([verb for verb in lexicon.transitive if verb.infinitive in _ENJOYED])
    likes = morphology.third_person("like") if who.person == "3s" else "like"
    what = phrases.noun_phrase(rng, verb.objects, "a").node
    prefix = verbs.tag(verb.prefix, "a")
    finite = verbs.tag(morphology.finite(verb, who.person), "a")
    english = f"{likes}:g to:g {verbs.tag(verb.english, 'a')} 1"
    return join(who.node, rule(clauses.pieces(finite, "gern:g 1", prefix), english, what))


def just_now(rng: Rng) -> Node:
    """``liest gerade``: the English progressive."""
    who = phrases.subject(rng)
    verb = rng.zipf([verb for verb in lexicon.transitive if verb.english not in ("know", "need", "see")])
    finite = verbs.tag(morphology.finite(verb, who.person), "a")
    ing = verbs.tag(morphology.progressive(verb.english), "a")
    what = phrases.noun_phrase(rng, verb.objects, "a").node
    german = clauses.pieces(finite, "gerade:g 1", verbs.tag(verb.prefix, "a"))
    return join(who.node, rule(german, f"{morphology.be(who.person)}:g {ing} 1", what))


def weather(rng: Rng) -> Node:
    verb, english = rng.pick([("regnet", "rain"), ("schneit", "snow")])
    when = phrases.time_phrase(rng, "present")
    where = phrases.place_phrase(rng)
    if rng.chance(0.5):
        return join(when, rule(f"{verb}:a es:b 1", f"it:b {english}s:a 1", where))
    said, place = leaf(f"es {verb}", f"it {english}s"), where
    return join(said, rule("1 2", "2 1", when, place))


_KINDS: list[tuple[Callable[[Rng], Node], float]] = [
    (clauses.verb_second, 26),
    (clauses.subordinate, 16),
    (clauses.fronted, 12),
    (clauses.negated, 10),
    (clauses.question, 10),
    (copula, 8),
    (pleasing, 4),
    (existence, 3),
    (gladly, 3),
    (just_now, 3),
    (weather, 1),
]


def sentence(rng: Rng) -> Node:
    """A derivation of one sentence, with full stop or question mark."""
    make = rng.weighted([kind for kind, _ in _KINDS], [weight for _, weight in _KINDS])
    mark = "?" if make is clauses.question else "."
    return rule(f"1 {mark}:p", f"1 {mark}:p", make(rng))


# Idioms: no word of one side is a translation of a word of the other.
FREE = [
    ("das macht nichts .", "never mind ."),
    ("das stimmt .", "that is right ."),
    ("keine ahnung .", "i have no idea ."),
    ("wie geht es dir ?", "how are you ?"),
    ("vielen dank .", "thank you very much ."),
    ("es tut mir leid .", "i am sorry ."),
    ("wie spät ist es ?", "what time is it ?"),
    ("bis morgen .", "see you tomorrow ."),
    ("das ist mir egal .", "i do not care ."),
    ("herzlichen glückwunsch .", "congratulations ."),
]
