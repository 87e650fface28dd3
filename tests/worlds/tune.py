"""A toy language, with a right and a wrong translation of each letter, and a tuning configuration."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from hiero.cli.main import main
from tests.conftest import INTERPRETED

LETTERS = "abcdef"
CONFIG: dict[str, Any] = {
    "seed": 7,
    "data": {
        "dev": {"source": "dev.src", "references": ["dev.ref"]},
        "devtest": {"source": "devtest.src", "references": "devtest.ref"},
    },
    "grammar": [{"path": "grammar"}],
    "tune": {"algorithm": "sgd", "epochs": 3, "kbest": 20, "rate": 0.1},
}


def sentences(number: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    # Of fewer words where nothing is compiled.
    shortest, longest = (3, 4) if INTERPRETED else (5, 7)
    return [" ".join(draw.choices(LETTERS, k=draw.randint(shortest, longest))) for _ in range(number)]


class Tuning:
    """A folder with a grammar, sentences, a configuration, and a directory for the run."""

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self.folder, self.path, self.out = folder, folder / "exp.yaml", folder / "out"
        folder.mkdir(parents=True, exist_ok=True)
        rules = [f"[X] ||| {x} ||| {x.upper()} ||| Right=1 Length=1" for x in LETTERS]
        rules += [f"[X] ||| {x} ||| {x}{x} ||| Wrong=1 Length=1" for x in LETTERS]
        self.file("grammar", rules)
        for name, number in (("dev", 12), ("devtest", 6)):
            lines = sentences(number, seed + number)
            self.file(f"{name}.src", lines)
            self.file(f"{name}.ref", [line.upper() for line in lines])
        self.config = copy.deepcopy(CONFIG)
        self.set()

    def file(self, name: str, lines: list[str]) -> Path:
        path = self.folder / name
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    def lines(self, name: str) -> list[str]:
        return (self.folder / name).read_text().splitlines()

    def set(self, **sections: Any) -> None:
        """Replace sections; None removes one. The keys of ``tune`` are added to its section."""
        tune = self.config["tune"] | (sections.pop("tune", {}) or {})
        self.config |= {"tune": tune} | sections
        self.config = {name: section for name, section in self.config.items() if section is not None}
        self.path.write_text(yaml.safe_dump(self.config, sort_keys=False))

    def command(self, *more: str) -> list[str]:
        return ["tune", "-c", str(self.path), "-o", str(self.out), *more]

    def run(self, *more: str) -> int:
        return main(self.command(*more))

    def error(self, capfd: pytest.CaptureFixture[str], *more: str, code: int = 1) -> str:
        """Run it, expect failure, and return its one line of output."""
        capfd.readouterr()
        assert self.run("-q", *more) == code
        captured = capfd.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1, captured.err
        return captured.err.rstrip("\n")

    def answer(self) -> dict[str, bytes]:
        """All weights written."""
        return {path.name: path.read_bytes() for path in sorted(self.out.glob("weights*.gz"))}
