"""Sets of sources with several references, drawn from a bitext before anything else sees it.

A source that has as many references as the dev set of the bitext occurs that often in it, with different
targets. All other pairs with a drawn source or target are left out of what remains.
"""

from __future__ import annotations

import json
import random
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.papers.experiment import Experiment, lines
from hiero.core.text import write_output


class Drawn(NamedTuple):
    """Line numbers of each set, a list of references for each source; and those of the rest."""

    sets: list[list[list[int]]]
    rest: list[int]


def draw(
    source: Sequence[str], target: Sequence[str], sizes: Sequence[int], references: int, seed: int
) -> Drawn:
    """Draw sources that occur ``references`` times, with different targets."""
    places: dict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(source):
        places[line].append(number)
    found = [
        mine
        for line, mine in places.items()
        if line and len(mine) == references == len({target[k] for k in mine}) and all(target[k] for k in mine)
    ]
    if len(found) < sum(sizes):
        sys.exit(f"found {len(found)} sources with {references} targets, expected {sum(sizes)} or more")
    random.Random(seed).shuffle(found)
    sets = []
    for size in sizes:
        sets.append(found[:size])
        found = found[size:]
    numbers = [k for one in sets for mine in one for k in mine]
    sources, targets = {source[k] for k in numbers}, {target[k] for k in numbers}
    rest = [k for k in range(len(source)) if source[k] not in sources and target[k] not in targets]
    return Drawn(sets, rest)


def make_drawn(
    given: Experiment,
    sizes: Mapping[str, int],
    seed: int,
    beginnings: Mapping[str, Sequence[int]],
) -> Experiment:
    """Write the sets to OUT/drawn, unless they are there, and return the experiment with the rest.

    ``beginnings``: numbers of lines; those of NAME are written as NAME followed by the number, and not whole.
    """
    made = drawn_experiment(given)
    folder, record = Path(made.data), Path(made.data) / "drawn.json"
    references = len(given.references("dev"))
    settings: dict[str, object] = {"sizes": dict(sizes), "references": references, "seed": seed}
    settings |= {"beginnings": beginnings} if beginnings else {}
    if record.exists():
        if json.loads(record.read_bytes()) != settings:
            sys.exit(f"{record}: found other settings, expected {settings} (use another OUT)")
        return made
    folder.mkdir(exist_ok=True)
    train = given.train()
    texts = {"src": lines(train["source"]), "trg": lines(train["target"])}
    if "alignment" in train:
        texts["align"] = lines(train["alignment"])
    drawn = draw(texts["src"], texts["trg"], list(sizes.values()), references, seed)
    for side, text in texts.items():
        _write_lines(folder / f"train.{side}.gz", [text[k] for k in drawn.rest])
    for name, chosen in zip(sizes, drawn.sets, strict=True):
        labels = {f"{name}{size}": size for size in beginnings.get(name, ())} or {name: len(chosen)}
        for label, size in labels.items():
            _write_lines(folder / f"{label}.src.gz", [texts["src"][mine[0]] for mine in chosen[:size]])
            for k in range(references):
                _write_lines(folder / f"{label}.ref{k}.gz", [texts["trg"][mine[k]] for mine in chosen[:size]])
    write_output(record, json.dumps(settings) + "\n")
    return made


def drawn_experiment(given: Experiment) -> Experiment:
    """The experiment with the sets of OUT/drawn and the rest of the bitext."""
    return replace(given, data=str(given.out / "drawn"), alignment=None)


def _write_lines(path: Path, text: Sequence[str]) -> None:
    write_output(path, "".join(f"{line}\n" for line in text))
