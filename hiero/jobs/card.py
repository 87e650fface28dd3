"""Model cards: what a model is, how to use it, and its scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import hiero
from hiero.config.config import Config
from hiero.evaluation.compare import OURS


def card_facts(config: Config, licence: str | None = None) -> dict[str, str]:
    """What is said of a model in a table."""
    templates = [one for one in config.features.templates if isinstance(one, str)]
    own = [one for one in templates if ":" in one]
    search = config.search
    facts = {} if licence is None else {"licence": licence}
    facts["features"] = ", ".join(templates) or "dense"
    facts["search"] = f"{search.algorithm}, {search.pop_limit} pops, {search.span_limit} words"
    if own:
        facts["needs modules"] = ", ".join(one.partition(":")[0] for one in own)
    return facts


def model_card(name: str, description: str, licence: str, config: Config, folder: Path | None) -> str:
    """The card of a model in Markdown; ``folder``: of its run, whose scores it has."""
    lines = [f"# {name}", ""]
    if description:
        lines += [description, ""]
    lines += [
        f"A model of hiero {hiero.__version__}: `hiero decode -c FILE`, or `hiero.load(FILE)` in Python.",
        "",
        "| | |",
        "|---|---|",
    ]
    lines += [f"| {what} | {fact} |" for what, fact in card_facts(config, licence).items()]
    if folder is not None and (rows := list(_scores(folder))):
        lines += ["", "## Scores", "", "| set | sentences | metric | score | 95 % interval | signature |"]
        lines += ["|---|---|---|---|---|---|", *rows]
    return "\n".join(lines) + "\n"


def _scores(folder: Path) -> list[str]:
    """Rows of a table of the scores of a run, without those of systems that it is compared with."""
    rows = []
    for path in sorted(folder.glob("*.eval.json")):
        report = json.loads(path.read_text(encoding="utf-8"))
        which = path.name.removesuffix(".eval.json")
        if report.get("learnt_from"):
            which += " (learnt from)"
        if report.get("lines"):
            which += f" ({report['lines']} lines)"
        for metric, found in _own_scores(report).items():
            around = found.get("interval")
            interval = f"{around[0]:.2f} to {around[1]:.2f}" if around else ""
            signature = report["signatures"].get(metric, "").replace("|", "\\|")
            rows.append(
                f"| {which} | {report['sentences']:,} | {metric} | {found['score']:.2f} | {interval} "
                f"| `{signature}` |"
            )
    return rows


def _own_scores(report: dict[str, Any]) -> dict[str, Any]:
    """The scores of the run by metric."""
    return next((one["metrics"] for one in report["systems"] if one["name"] == OURS), {})
