"""Search algorithms, by their names in configurations."""

from __future__ import annotations

import functools
import pkgutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from hiero.core.arrays import Flags, Floats, Ids
    from hiero.core.text import Segment
    from hiero.decoder.bigram_kernels import Bigrams
    from hiero.decoder.hypergraph import Chart, Pairs
    from hiero.decoder.lm_state_kernels import RuleStates
    from hiero.decoder.parse_kernels import Parse
    from hiero.grammar.rules import Grammar

# MODULE:FUNCTION, imported for the first sentence: a ``SearchFunction``.
SEARCHES = {"coarse_to_fine": f"{__name__}:coarse_to_fine", "cube": f"{__name__}:cube"}


@dataclass(frozen=True, slots=True)
class ParsedSentence:
    """A sentence before the search.

    goal    the cell of the whole sentence, -1 if there is none
    kept    words of bigrams across rules, as ``kept_words`` says; None without these features
    search  the rules with the language models, and their applications with scores; None without a goal
    """

    segment: Segment
    src: Ids
    grammar: Grammar
    lm_word: Ids
    lm_weight: Floats
    parse: Parse
    goal: int
    kept: Flags | None
    search: tuple[RuleStates, Pairs] | None


class SearchFunction(Protocol):
    """A function, mostly a kernel, that searches the parse of a sentence with language models."""

    def __call__(
        self,
        parse: Parse,
        pairs: Pairs,
        rules: RuleStates,
        lm: Any,
        weight: Floats,
        goal: int,
        pop_limit: int,
        most_edges: int,
        /,
        *,
        bigrams: Bigrams | None = None,
    ) -> tuple[int, int, Chart]:
        """Return the number of cells done, the number of candidates scored, and a chart.

        ``goal`` is the cell to finish with <s> and </s>. A search stops, with fewer cells done, before it has
        more than ``most_edges`` edges; ``pop_limit`` is 0 for an exhaustive one. ``bigrams`` are passed only
        if the model has the feature ``bigram``.
        """
        ...


@functools.cache
def search_of(algorithm: str) -> SearchFunction:
    """The search of a name in ``SEARCHES``."""
    found: SearchFunction = pkgutil.resolve_name(SEARCHES[algorithm])
    return found


def cube(*arguments: Any, bigrams: Bigrams | None = None) -> tuple[int, int, Chart]:
    """Cube pruning: the same number of pops for every cell."""
    from hiero.decoder.cube_kernels import search_kernel

    return search_kernel(*arguments, False, bigrams)  # type: ignore[no-any-return, call-arg]


def coarse_to_fine(*arguments: Any, bigrams: Bigrams | None = None) -> tuple[int, int, Chart]:
    """Cube pruning with more pops for cells of good derivations, by estimates, than for others."""
    from hiero.decoder.cube_kernels import search_kernel

    return search_kernel(*arguments, True, bigrams)  # type: ignore[no-any-return, call-arg]
