"""Clauses and sentences.

What stands between the finite verb and the end of a German clause is its middle field: one node, so that the
predicate is a rule around it (``hat X1 versprochen``, ``promised X1``), and with a subject one of two gaps.
"""

from __future__ import annotations

from typing import NamedTuple

from grammars.make_demo import lexicon, morphology, phrases, verbs
from grammars.make_demo.lexicon import Verb
from grammars.make_demo.phrases import Referent
from grammars.make_demo.trees import Node, Rng, join, leaf, rule

_SAYING = [
    ("sage", "sagt", "sagen", "say"), ("weiß", "weiß", "wissen", "know"),
    ("glaube", "glaubt", "glauben", "believe"), ("hoffe", "hofft", "hoffen", "hope"),
    ("denke", "denkt", "denken", "think"), ("höre", "hört", "hören", "hear"),
]  # fmt: skip
_TENSES = ("present", "past", "modal", "future")


class Predicate(NamedTuple):
    """A verb with its complements.

    The items are in German order with their English ranks; the first ``core`` ones precede a ``nicht``.
    """

    verb: Verb
    items: list[tuple[Node, int]]
    core: int


def middle_field(items: list[tuple[Node, int]]) -> Node | None:
    """Join the items by binary nodes, swapped where English has the first of them last."""
    if not items:
        return None
    (first, rank), rest = items[0], items[1:]
    if not rest:
        return first
    others = middle_field(rest)
    assert others is not None
    if rank > max(r for _, r in rest):
        return rule("1 2", "2 1", first, others)
    assert rank < min(r for _, r in rest)
    return join(first, others)


def predicate(rng: Rng) -> Predicate:
    """A verb and its objects, places, goals; times are added by the clause."""
    kind = rng.weighted(
        ("transitive", "two objects", "alone", "motion", "position", "preposition", "dative"),
        (9, 4, 2.5, 2.5, 2, 2, 1),
    )
    if kind == "transitive":
        verb = rng.zipf(lexicon.transitive)
        items = [(phrases.object_(rng, verb.objects, "a").node, 1)]
        if rng.chance(0.2):
            items.append((phrases.place_phrase(rng), 2))
        return Predicate(verb, items, 1)
    if kind == "two objects":
        verb = rng.zipf(lexicon.ditransitive)
        to = phrases.object_(rng, frozenset(["person"]), "d").node
        return Predicate(verb, [(to, 1), (phrases.noun_phrase(rng, verb.objects, "a").node, 2)], 2)
    if kind == "motion":
        goal = (phrases.goal_phrase(rng), 1)
        means = [(phrases.means_phrase(rng), 2)] if rng.chance(0.3) else []
        verb = lexicon.motion[1] if means else rng.zipf(lexicon.motion)
        return Predicate(verb, [*means, goal], 0)
    if kind == "position":
        seat = rng.zipf(lexicon.seats)
        items = [(phrases.place_phrase(rng, seat), 1)]
        if rng.chance(0.25):
            items.append((phrases.place_phrase(rng), 2))
        return Predicate(rng.zipf(lexicon.position), items, 0)
    if kind == "preposition":
        verb, preposition, case = rng.zipf(lexicon.prepositional)
        whom = phrases.object_(rng, verb.objects, case)
        return Predicate(verb, [(rule(f"{preposition}:a 1", "1", whom.node), 1)], 0)
    if kind == "dative":
        verb = rng.zipf(lexicon.dative)
        return Predicate(verb, [(phrases.object_(rng, verb.objects, "d").node, 1)], 1)
    verb = rng.zipf(lexicon.intransitive)
    return Predicate(verb, [(phrases.place_phrase(rng), 1)] if rng.chance(0.6) else [], 0)


def timed(rng: Rng, found: Predicate, tense: str, chance: float = 0.4) -> tuple[Predicate, bool]:
    """Maybe add a time: before the other items in German, but after a pronoun; at the end in English."""
    if not rng.chance(chance):
        return found, False
    when = (phrases.time_phrase(rng, verbs.time_of(tense)), 9)
    pronoun = found.core > 0 and not found.items[0][0].children
    at = 1 if pronoun or (found.core == 1 and rng.chance(0.3)) else 0
    return found._replace(items=[*found.items[:at], when, *found.items[at:]]), True


def pieces(*texts: str) -> str:
    return " ".join(text for text in texts if text)


def some(*nodes: Node | None) -> list[Node]:
    return [node for node in nodes if node is not None]


def clause(order: str, forms: verbs.Forms, who: Node, items: list[tuple[Node, int]]) -> Node:
    """A main clause with its subject ``first``, after the verb (``inverted``), or a ``question``."""
    middle = middle_field(items)
    if order == "first":
        gap = "1" if middle else ""
        german = pieces(forms.finite, gap, forms.end)
        return join(who, rule(german, pieces(forms.aux, forms.main, gap), *some(middle)))
    gap = "2" if middle else ""
    english = (forms.aux, "1") if order == "question" else ("1", forms.aux)
    german = pieces(forms.finite, "1", gap, forms.end)
    return rule(german, pieces(*english, forms.main, gap), who, *some(middle))


def verb_second(rng: Rng, *, last: bool = True) -> Node:
    """A simple main clause; ``last`` if nothing follows that needs another comma."""
    who = phrases.subject(rng)
    if rng.chance(0.12) and who.noun:
        described = rule("1 , 2 ,", "1 2", who.node, relative(rng, who))
        who = who._replace(node=described)
    tense = rng.weighted(_TENSES, (6, 5, 3, 1.5))
    what, dated = timed(rng, predicate(rng), tense)
    forms = verbs.conjugate(rng, what.verb, who.person, tense, dated=dated)
    if last and rng.chance(0.3) and not forms.end and "animal" in what.verb.objects and what.core == 1:
        found = phrases.noun_phrase(rng, frozenset(["person"]), "a")
        what = what._replace(items=[(rule("1 , 2", "1 2", found.node, relative(rng, found)), 1)])
    return clause("first", forms, who.node, what.items)


def relative(rng: Rng, of: Referent) -> Node:
    """A relative clause for a noun phrase, which is its subject or (half of the things) its object."""
    assert of.noun is not None
    fitting = [verb for verb in lexicon.transitive if verb.objects & of.noun.classes]
    if fitting and rng.chance(0.2 if "person" in of.noun.classes else 1.0):
        pronoun = morphology.definite(of.noun, of.plural, "a")
        who = phrases.subject(rng)
        tense = rng.weighted(_TENSES, (4, 5, 2, 0))
        forms = verbs.conjugate(rng, rng.zipf(fitting), who.person, tense)
        body = rule(pieces("1", forms.final), pieces("1", forms.aux, forms.main), who.node)
        return rule(f"{pronoun}:r 1", "that:r 1" if rng.chance(0.7) else "1", body)
    pronoun = morphology.definite(of.noun, of.plural, "n")
    english = "who" if "person" in of.noun.classes else "that"
    return rule(f"{pronoun}:r 1", f"{english}:r 1", final_predicate(rng, of.person))


def fronted(rng: Rng) -> Node:
    """A clause that begins with a time or a sentence adverb; its subject follows the finite verb."""
    tense = rng.weighted(_TENSES, (6, 5, 1, 1.5))
    adverbs = [("manchmal", "sometimes"), ("vielleicht", "perhaps"), ("leider", "unfortunately"),
               ("natürlich", "of course"), ("dann", "then"), ("deshalb", "therefore")]  # fmt: skip
    front = phrases.time_phrase(rng, verbs.time_of(tense)) if rng.chance(0.75) else leaf(*rng.zipf(adverbs))
    who = phrases.subject(rng)
    what = predicate(rng)
    forms = verbs.conjugate(rng, what.verb, who.person, tense, dated=True)
    return join(front, clause("inverted", forms, who.node, what.items))


def negated(rng: Rng) -> Node:
    """``nicht`` after the objects and before the places, or ``kein`` in front of an indefinite object."""
    who = phrases.subject(rng)
    tense = rng.weighted(_TENSES, (6, 4, 3, 1))
    if rng.chance(0.4):
        return _kein(rng, who, tense)
    what = predicate(rng)
    forms = verbs.conjugate(rng, what.verb, who.person, tense, support=True)
    before, after = middle_field(what.items[: what.core]), middle_field(what.items[what.core :])
    early = "1" if before else ""
    late = ("2" if before else "1") if after else ""
    german = pieces(forms.finite, early, "nicht:n", late, forms.end)
    english = pieces(forms.aux, "not:n", forms.main, early, late)
    return join(who.node, rule(german, english, *some(before, after)))


def _kein(rng: Rng, who: Referent, tense: str) -> Node:
    verb = rng.zipf(lexicon.transitive)
    noun = rng.zipf(phrases.nouns_of(verb.objects))
    plural = noun.plural != "-" and rng.chance(0.3)
    forms = verbs.conjugate(rng, verb, who.person, tense, support=True)
    group = phrases.noun_group(rng, noun, plural, "a", "ein")
    english = "any" if plural or noun.plural == "-" else phrases.indefinite(group)
    german = pieces(forms.finite, morphology.ein_word("kein", noun, plural, "a") + ":ni", "1", forms.end)
    return join(who.node, rule(german, pieces(forms.aux, "not:n", forms.main, f"{english}:i", "1"), group))


def question(rng: Rng) -> Node:
    who = phrases.subject(rng)
    tense = rng.weighted(_TENSES, (6, 5, 4, 1))
    opening = rng.weighted(
        ("", "wann when", "wo where", "warum why", "was what", "wen who"), (6, 2, 2, 2, 2, 1)
    )
    if opening[:3] in ("was", "wen"):
        classes = frozenset(["person"] if opening[:3] == "wen" else ["thing", "food", "read", "wear", "gift"])
        verb = rng.zipf([verb for verb in lexicon.transitive if verb.objects & classes])
        items = [(phrases.place_phrase(rng), 1)] if rng.chance(0.3) else []
        what = Predicate(verb, items, 0)
    else:
        what = predicate(rng)
        if opening[:2] == "wo":
            what = Predicate(rng.zipf(lexicon.transitive[:8]), [], 0)
            what = what._replace(items=[(phrases.object_(rng, what.verb.objects, "a").node, 1)])
    forms = verbs.conjugate(rng, what.verb, who.person, tense, support=True)
    asked = clause("question", forms, who.node, what.items)
    return join(leaf(*opening.split()), asked) if opening else asked


def verb_final(rng: Rng, who: Referent, tenses: tuple[float, ...] = (6, 5, 3, 1)) -> Node:
    """The body of a subordinate clause: subject and a predicate that ends in its verb."""
    return join(who.node, final_predicate(rng, who.person, tenses))


def final_predicate(rng: Rng, person: str, tenses: tuple[float, ...] = (6, 5, 3, 1)) -> Node:
    tense = rng.weighted(_TENSES, tenses)
    what, dated = timed(rng, predicate(rng), tense, 0.15)
    negative = what.core == len(what.items) > 0 and rng.chance(0.12)
    forms = verbs.conjugate(rng, what.verb, person, tense, support=negative, dated=dated)
    middle = middle_field(what.items)
    gap = "1" if middle else ""
    return rule(
        pieces(gap, "nicht:n" if negative else "", forms.final),
        pieces(forms.aux, "not:n" if negative else "", forms.main, gap),
        *some(middle),
    )


def subordinate(rng: Rng) -> Node:
    """A main clause followed by a verb-final one, or preceded by it with inversion."""
    kind = rng.weighted(("that", "because", "first", "infinitive"), (5, 3, 2.5, 2))
    if kind == "that":
        return _reported(rng)
    if kind == "infinitive":
        return _purpose(rng)
    choices = [("weil", "because"), ("obwohl", "although"), ("wenn", "if")]
    german, english = rng.zipf(choices if kind == "first" else choices[:2])
    tenses = (6, 0, 3, 0) if german == "wenn" else (6, 2, 3, 0)
    reason = rule(f"{german}:c 1", f"{english}:c 1", verb_final(rng, phrases.subject(rng), tenses))
    if kind == "because":
        return rule("1 , 2", "1 2", verb_second(rng, last=False), reason)
    who = phrases.subject(rng)
    what = predicate(rng)
    forms = verbs.conjugate(rng, what.verb, who.person, rng.weighted(_TENSES, (6, 0, 2, 1)))
    return rule("1 ,:k 2", "1 ,:k 2", reason, clause("inverted", forms, who.node, what.items))


def _reported(rng: Rng) -> Node:
    who = phrases.subject(rng)
    first, third, plural, english = rng.zipf(_SAYING)
    german = {"1s": first, "3s": third}.get(who.person, plural)
    english = morphology.third_person(english) if who.person == "3s" else english
    if plural == "wissen" and rng.chance(0.4):
        do = verbs.do(who.person)
        told = rule("ob:c 1", "whether:c 1", verb_final(rng, phrases.subject(rng)))
        return join(who.node, rule(f"{german}:a nicht:n , 1", f"{do}:a not:n know:a 1", told))
    told = rule("dass:c 1", "that:c 1" if rng.chance(0.8) else "1", verb_final(rng, phrases.subject(rng)))
    return join(who.node, rule(f"{german}:a , 1", f"{english}:a 1", told))


def _purpose(rng: Rng) -> Node:
    """``um ... zu``: the English infinitive comes first, the German one last."""
    who = phrases.subject(rng)
    forms = verbs.conjugate(rng, lexicon.motion[0], who.person, rng.weighted(("present", "past"), (2, 1)))
    main = clause("first", forms, who.node, [(phrases.goal_phrase(rng), 1)])
    verb = rng.zipf(lexicon.transitive[:12])
    what = phrases.noun_phrase(rng, verb.objects, "a").node
    ending = f"{verb.prefix}zu{verb.infinitive}:za" if verb.prefix else f"zu:z {verb.infinitive}:a"
    purpose = rule(f"um:z 1 {ending}", f"to:z {verbs.tag(verb.english, 'a')} 1", what)
    return rule("1 , 2", "1 2", main, purpose)
