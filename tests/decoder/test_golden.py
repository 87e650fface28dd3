"""Golden statistics of small systems: sizes of forests, scores, translations.

    python -m tests.decoder.test_golden

writes the current results to ``tests/golden``; a difference needs a line under **Scores** in the changelog.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hiero

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/config.yaml"))


def run(case: str) -> tuple[list[str], list[dict[str, Any]]]:
    """The translations of the sentences of a case, and the statistics of their search."""
    model = hiero.load(GOLDEN / case / "config.yaml")
    outputs, stats = [], []
    for line in (GOLDEN / case / "input.txt").read_text(encoding="utf-8").splitlines():
        statistics = hiero.Statistics()
        forest = model.parse(line, statistics)
        outputs.append(forest.viterbi().text if forest else "")
        stats.append(
            {
                "nodes": forest.num_nodes,
                "edges": forest.num_edges,
                "derivations": float(f"{forest.num_derivations:.9g}"),
                "pops": statistics.pops,
                "scored": statistics.scored,
                "score": float(f"{forest.viterbi().score:.9g}") if forest else 0.0,
            }
        )
    return outputs, stats


@pytest.mark.parametrize("case", CASES)
def test_search_is_unchanged(case: str) -> None:
    outputs, stats = run(case)
    assert outputs == (GOLDEN / case / "gold.output").read_text(encoding="utf-8").splitlines()
    gold = [json.loads(line) for line in (GOLDEN / case / "gold.stats").read_text().splitlines()]
    for number, (found, expected) in enumerate(zip(stats, gold, strict=True), 1):
        # Logarithms differ in their last digit from one machine to the next.
        assert found == pytest.approx(expected, rel=1e-7), number


def test_there_are_cases() -> None:
    assert CASES == ["categories", "pruned", "reordering"]


if __name__ == "__main__":
    for name in CASES:
        translations, sizes = run(name)
        (GOLDEN / name / "gold.output").write_text("".join(f"{t}\n" for t in translations), encoding="utf-8")
        (GOLDEN / name / "gold.stats").write_text("".join(f"{json.dumps(size)}\n" for size in sizes))
