"""Table of the epochs of a run, printed line by line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hiero.learning.config import TuneConfig

Record = Mapping[str, Any]


def _bleu(name: str) -> Callable[[Record], str]:
    def show(record: Record) -> str:
        if f"{name}_bleu" not in record:
            return "-"
        return f"{record[f'{name}_bleu']:.2f} ({record[f'{name}_brevity']:.3f})"

    return show


def _share(record: Record) -> str:
    pairs = record.get("pairs", 0)
    return f"{record['errors']} ({record['errors'] / pairs:.1%})" if pairs else "-"


def _seconds(record: Record) -> str:
    sentences = record["sentences"] + record["failed"]
    spent = record["decode_s"] + record.get("learn_s", 0.0)
    return f"{spent / sentences:.3f}" if sentences else "-"


EPOCH, CHOOSE = "epoch", "held out, odd lines"
Column = tuple[str, int, Callable[[Record], str]]


def columns(config: TuneConfig, held_out: bool) -> list[Column]:
    """Heading, width and content of each column. The number in brackets after BLEU is the brevity."""
    shown: list[Column] = [(EPOCH, 5, lambda record: str(record["epoch"]))]
    if held_out:
        shown.append((CHOOSE, 19, _bleu("choose")))
    shown.append(("weights", 9, lambda record: str(record["features"])))
    if config.is_online:
        shown.append(("pairs", 10, lambda record: str(record["pairs"])))
        shown.append(("errors", 17, _share))
    else:
        shown.append(("candidates", 10, lambda record: str(record["candidates"])))
        shown.append(("new", 9, lambda record: str(record["new_candidates"])))
    shown.append(("s/sentence", 10, _seconds))
    shown.append((config.on if config.on != EPOCH else "tuning", max(14, len(config.on)), _bleu("model")))
    if config.algorithm == "mira":
        shown += [("oracle", 14, _bleu("oracle")), ("prediction", 14, _bleu("prediction"))]
    return shown


class Table:
    """Lines of text with aligned columns."""

    def __init__(self, config: TuneConfig, *, held_out: bool) -> None:
        self._columns = columns(config, held_out)

    def heading(self) -> str:
        return "  ".join(name.rjust(width) for name, width, _ in self._columns)

    def row(self, record: Record) -> str:
        return "  ".join(show(record).rjust(width) for _, width, show in self._columns)
