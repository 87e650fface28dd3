"""A model of a few rules, which loads fast even without compilation."""

from __future__ import annotations

from pathlib import Path

LM = Path(__file__).parents[1] / "data" / "tiny.arpa"
WEIGHTS = "p -1\nGlue -0.1\nPassThrough -3\nWordPenalty -0.3\nLanguageModel 0.5\n"


def small_model(folder: Path, rules: str) -> list[str]:
    """Write the rules, and weights; returns the options of ``hiero decode`` for the model."""
    grammar, weights = folder / "grammar", folder / "weights"
    grammar.write_text(rules)
    weights.write_text(WEIGHTS)
    return ["-g", str(grammar), "-w", str(weights), "-l", str(LM)]
