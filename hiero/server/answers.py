"""What answers say about translations: records for JSON, made of forests."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiero.core.arrays import Ids
from hiero.core.errors import HieroError
from hiero.core.symbol_kernels import gap_index, gap_label, is_gap
from hiero.core.text import Segment
from hiero.decoder.consensus import check_choice
from hiero.decoder.derivation import Derivation, Tree
from hiero.decoder.forest import Forest
from hiero.decoder.hypergraph import heads
from hiero.decoder.model import Model
from hiero.decoder.output import rounded, tree_nodes
from hiero.decoder.statistics import STAGES, Statistics
from hiero.grammar.rules import rule_lists
from hiero.jobs.translate import list_translations
from hiero.server.config import ServerConfig
from hiero.server.metrics import Metrics
from hiero.server.models import PLAIN, LineForm, ServedModel

# Confidence is the share of a translation in so many of the best ones.
LISTED = 100
# Translations among which the nearest to one that cannot be derived is searched.
COMPARED = 1000
MOST_RULES = 200  # of a span


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a request wants of each line."""

    kbest: int = 1
    unique: bool = True
    form: LineForm = PLAIN
    alignment: bool = False
    features: bool = False
    derivation: bool = False
    confidence: bool = False


class Translator:
    """Translates lines of one model for answers, within limits; counts them."""

    def __init__(self, served: ServedModel, config: ServerConfig, metrics: Metrics) -> None:
        self.served, self.config, self.metrics = served, config, metrics

    def forest(self, line: str, form: LineForm = PLAIN) -> tuple[Model, Segment, Forest]:
        """The forest of a line, with its words, and the model that made it."""
        segment = self.served.segment(line, form)
        num_terms = 0 if segment.given is None else segment.given.num_translations
        if num_terms > self.config.max_terms:
            raise HieroError(f"found {num_terms} terms, expected at most {self.config.max_terms}")
        if len(segment.words) > self.config.max_words:
            raise HieroError(
                f"found a line of {len(segment.words)} words, expected at most {self.config.max_words}"
            )
        model, statistics = self.served.model, Statistics()
        forest = model.parse(segment, statistics)
        name = self.served.name
        self.metrics.add("hiero_lines_total", model=name)
        self.metrics.add("hiero_words_total", len(segment.words), model=name)
        self.metrics.add("hiero_failed_lines_total", float(bool(segment.words) and not forest), model=name)
        seconds = sum(statistics.seconds[stage] for stage in STAGES)
        self.metrics.add("hiero_search_cpu_seconds_total", seconds, model=name)
        self.served.renew()
        return model, segment, forest

    def warm_up(self) -> None:
        """Compile what answers need, before the first request waits for it."""
        words = LineForm(tokens=True)
        everything = Wanted(
            kbest=2, form=words, alignment=True, features=True, derivation=True, confidence=True
        )
        can_repeat = self.served.config.consensus.mbr == "none"
        for unique in (True, False)[: 1 + can_repeat]:
            self.line("\x00", dataclasses.replace(everything, unique=unique))
        *_, forest = self.forest("\x00", words)
        if forest:
            self.span("\x00", 0, 1, 1, words)
            self.comparison("\x00", "", words)

    def texts(self, line: str, kbest: int = 1) -> list[str]:
        """The best translations of a line as text; one, if only an empty one, at least."""
        *_, forest = self.forest(line)
        found = self._listed(forest, kbest, unique=True)
        return [self.served.text(one.text) for one in found] or [""]

    def line(self, line: str, wanted: Wanted) -> dict[str, Any]:
        """The record of a line: its source words, and its translations."""
        *_, forest = self.forest(line, wanted.form)
        found = self._listed(forest, wanted.kbest, unique=wanted.unique)
        confidences = confidence_of(forest, found) if wanted.confidence else []
        translations = []
        for number, one in enumerate(found):
            record: dict[str, Any] = {
                "text": self.served.text(one.text, tokens=wanted.form.tokens),
                "words": one.text.split(" ") if len(one) else [],
                "score": rounded(one.score),
            }
            if wanted.confidence:
                record["confidence"] = rounded(confidences[number])
            record |= self._details(forest, one, wanted)
            translations.append(record)
        return {"source": list(forest.source), "translations": translations}

    def _listed(self, forest: Forest, kbest: int, *, unique: bool) -> list[Derivation]:
        """As ``hiero decode`` lists them: without --kbest if there is to be only one."""
        config = self.served.config
        search = dataclasses.replace(config.search, kbest=0 if kbest == 1 else kbest, unique=unique)
        check_choice(config.consensus, search)
        return list_translations(forest, search, config.consensus)

    def _details(self, forest: Forest, one: Derivation, wanted: Wanted) -> dict[str, Any]:
        record: dict[str, Any] = {}
        if wanted.features:
            features = forest.features
            if self.served.config.features.cdec_names:
                features = features.with_cdec_names()
            row = features.of_derivation(one).items()
            record["features"] = {name: rounded(value) for name, value in sorted(row)}
        if wanted.alignment:
            record["alignment"] = [list(link) for link in one.alignment]
            if forest.lattice is not None:
                record["arcs"] = one.arcs
        if wanted.derivation:
            posterior = forest.posteriors()

            def more(tree: Tree) -> dict[str, Any]:
                return {
                    "rule": rule_text(forest, tree.edge),
                    "posterior": rounded(float(posterior[tree.edge])),
                }

            record["derivation"] = tree_nodes(one.tree(), more)
        return record

    def span(self, line: str, start: int, end: int, limit: int, form: LineForm = PLAIN) -> dict[str, Any]:
        """The record of the chart behind a span of source words."""
        *_, forest = self.forest(line, form)
        if not 0 <= start < end <= len(forest.source):
            raise HieroError(
                f"found the words {start} to {end}, expected a span of the {len(forest.source)} words"
            )
        return {
            "source": list(forest.source),
            "start": start,
            "end": end,
            **span_rules(forest, start, end, limit),
        }

    def comparison(self, line: str, translation: str, form: LineForm = PLAIN) -> dict[str, Any]:
        """The record of a comparison of the best translation with another, or the nearest to it."""
        model, segment, forest = self.forest(line, form)
        served, tokens = self.served, form.tokens
        words = served.target_words(translation, tokens=tokens)
        if len(words) > 4 * self.config.max_words:
            raise HieroError(
                f"found a translation of {len(words)} words, expected at most {4 * self.config.max_words}"
            )
        if not forest:
            raise HieroError("the line has no translation to compare with")
        best, found = forest.viterbi(), find_translation(model, segment, forest, words)
        names = sorted({*best.features, *found.derivation.features})
        rows: list[dict[str, Any]] = []
        for name in names:
            weight = model.weights.get(name, 0.0)
            values = best.features.get(name, 0.0), found.derivation.features.get(name, 0.0)
            rows.append(
                {
                    "feature": name,
                    "weight": rounded(weight),
                    "best": rounded(values[0]),
                    "other": rounded(values[1]),
                    "difference": rounded(weight * (values[1] - values[0])) + 0.0,  # no -0.0
                }
            )
        rows.sort(key=lambda row: (-abs(row["difference"]), row["feature"]))

        def side(one: Derivation) -> dict[str, Any]:
            return {
                "text": served.text(one.text, tokens=tokens),
                "words": one.text.split(" ") if len(one) else [],
                "score": rounded(one.score),
                "alignment": [list(link) for link in one.alignment],
            }

        return {
            "source": list(forest.source),
            "wanted": list(words),
            "is_wanted": found.distance == 0,
            "why": found.why,
            "distance": found.distance,
            "searched": found.searched,
            "best": side(best),
            "other": side(found.derivation),
            "features": rows,
        }


def confidence_of(forest: Forest, found: list[Derivation]) -> list[float]:
    """The share of translations in the weight of the ``LISTED`` best distinct ones.

    A translation weighs exp(score of its best derivation). These are the posteriors of the model in that
    list: they add up to 1 over it, and are not calibrated.
    """
    score = np.array([one.score for one in forest.kbest(LISTED)])
    top = float(score.max(initial=-np.inf))
    total = float(np.exp(score - top).sum())
    return [float(np.exp(one.score - top)) / total for one in found]


# ---- rules


def rule_text(forest: Forest, edge: int) -> str:
    """The rule of an edge, ``[X] ||| hat [X,1] versprochen ||| promised [1]``; "" for that into the goal."""
    rule = int(forest.edge_rule[edge])
    if rule < 0:
        return ""
    src, tgt, _ = rule_lists(forest.whole, rule)
    lhs = forest.labels.text(int(forest.rules.lhs[rule]))
    sides = (" ".join(_symbol(forest, symbol, side is src) for symbol in side) for side in (src, tgt))
    return " ||| ".join([f"[{lhs}]", *sides])


def _symbol(forest: Forest, symbol: int, is_source: bool) -> str:
    if not is_gap(symbol):
        return forest.words.text(symbol)
    label = forest.labels.text(gap_label(symbol))
    return f"[{label},{gap_index(symbol)}]" if is_source else f"[{gap_index(symbol)}]"


def span_rules(forest: Forest, start: int, end: int, limit: int) -> dict[str, Any]:
    """The rules that the search applied to a span, best first.

    Of each rule: the score of its best application there, of the best translation that has it (null if none
    has), the summed posterior of its applications, their number, and whether the best derivation has one.
    """
    covers = (forest.node_start == start) & (forest.node_end == end)
    head = heads(forest.graph)
    edges = np.flatnonzero(covers[head] & (forest.edge_rule >= 0))
    edges = edges[~forest.is_part(edges)]
    if not forest or not len(edges):
        return {"nodes": int(covers.sum()), "edges": 0, "num_rules": 0, "rules": []}
    through, posterior = forest.max_marginals(), forest.posteriors()
    best = float(forest.best()[0][-1])
    in_best = set(forest.viterbi().edges.tolist())
    of_rule: dict[int, list[int]] = {}
    for edge in edges.tolist():
        of_rule.setdefault(int(forest.edge_rule[edge]), []).append(edge)
    order = {
        rule: max(own, key=lambda edge: (through[edge], forest.edge_score[edge], -edge))
        for rule, own in of_rule.items()
    }
    ranked = sorted(order, key=lambda rule: (-through[order[rule]], -forest.edge_score[order[rule]], rule))[
        :limit
    ]
    shown: Ids = np.array([order[rule] for rule in ranked], np.int32)
    features = forest.features_of_edges(shown)
    rules = []
    for number, rule in enumerate(ranked):
        edge, own = order[rule], of_rule[rule]
        whole = float(through[edge])
        row = {} if features is None else features.row(number)
        rules.append(
            {
                "rule": rule_text(forest, edge),
                "score": rounded(float(forest.edge_score[edge])),
                "best": rounded(whole) if whole > -np.inf else None,
                "loss": rounded(max(0.0, best - whole)) if whole > -np.inf else None,
                "posterior": rounded(min(1.0, float(posterior[own].sum()))),
                "applications": len(own),
                "is_used": not in_best.isdisjoint(own),
                "features": {name: rounded(value) for name, value in sorted(row.items())},
            }
        )
    return {"nodes": int(covers.sum()), "edges": len(edges), "num_rules": len(of_rule), "rules": rules}


# ---- a translation that was not chosen


@dataclass(frozen=True)
class Edited:
    """A derivation of the translation that was asked for, or of the nearest one.

    why       why the rules do not derive it; empty: they do, and it is the one
    distance  words to insert, delete or replace in it
    searched  number of translations among which the nearest was searched; 0 if none was
    """

    derivation: Derivation
    why: str = ""
    distance: int = 0
    searched: int = 0


def find_translation(model: Model, segment: Segment, forest: Forest, words: tuple[str, ...]) -> Edited:
    """The best of all derivations of a translation, also of those that the search left out.

    If the rules derive none, that of the nearest translation in ``forest``.
    """
    forced = model.force(segment, words)
    return Edited(forced.best) if forced else nearest(forest, words, forced.why())


def nearest(forest: Forest, words: tuple[str, ...], why: str) -> Edited:
    """The translation among the ``COMPARED`` best that is nearest to ``words``; of equal ones, the best."""
    listed = forest.kbest(COMPARED)
    ids = {word: number for number, word in enumerate(dict.fromkeys(words))}
    text, known = forest.words.text, dict[int, int]()

    def number(word: int) -> int:
        if word not in known:
            known[word] = ids.get(text(word), -1)
        return known[word]

    rows = [[number(word) for word in one.words.tolist()] for one in listed]
    distance = edit_distances(np.array([ids[word] for word in words], np.int32), rows)
    at = int(np.argmin(distance))
    return Edited(listed[at], why, int(distance[at]), len(listed))


def edit_distances(words: Ids, rows: list[list[int]]) -> Ids:
    """The edit distance of ``words`` to each of some rows; all of them are computed side by side.

    Rows may have words of -1, which equal none. Twin: tests/naive/server.py::edit_distance.
    """
    lengths = np.array([len(row) for row in rows])
    width = int(lengths.max(initial=0))
    table = np.full((len(rows), width), -1, np.int32)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    # line[:, j]: the distance of the words so far to the first j of a row.
    line = np.tile(np.arange(width + 1, dtype=np.int32), (len(rows), 1))
    for count, word in enumerate(words.tolist(), 1):
        new = np.empty_like(line)
        new[:, 0] = count
        differs = (table != word).astype(np.int32)
        new[:, 1:] = np.minimum(line[:, :-1] + differs, line[:, 1:] + 1)
        # Insertions go from left to right: the least of new[i] - i, plus j.
        steps = np.arange(width + 1, dtype=np.int32)
        line = np.minimum.accumulate(new - steps, axis=1) + steps
    return np.asarray(line[np.arange(len(rows)), lengths], np.int32)
