"""A small experiment for ``hiero run``: a bitext of a dozen words, and a configuration."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from hiero.cli.main import main

PAIRS = [
    ("das alte haus", "the old house"),
    ("das alte buch", "the old book"),
    ("ein haus", "a house"),
    ("ein buch", "a book"),
    ("er hat ein buch gelesen", "he has read a book"),
    ("er hat das haus", "he has the house"),
    ("sie hat das buch gelesen", "she has read the book"),
]
WEIGHTS = "EgivenFCoherent -1\nMaxLexFgivenE -0.3\nLanguageModel 0.5\nPassThrough -3\nGlue -0.1\n"
WEIGHTS += "SampleCountF 0\nCountEF 0\nMaxLexEgivenF 0\nIsSingletonF 0\nIsSingletonFE 0\n"
FILES = {
    "train.de": "".join(f"{src}\n" for src, _ in PAIRS),
    "train.en": "".join(f"{tgt}\n" for _, tgt in PAIRS),
    "dev.de": "das haus\ner hat ein altes haus gelesen\n",
    "dev.en": "the house\nhe has read an old house\n",
    "test.de": "sie hat ein haus\n",
    "test.en": "she has a house\n",
    "test.other.en": "she owns a house\n",
    "weights": WEIGHTS,
}
CONFIG: dict[str, Any] = {
    "seed": 3,
    "data": {
        "train": {"source": "train.de", "target": "train.en"},
        "dev": {"source": "dev.de", "target": "dev.en"},
        "test": {"source": "test.de", "references": ["test.en", "test.other.en"]},
    },
    "align": {"iterations": 2},
    "lm": [{"estimate": "train", "order": 2, "discount_fallback": True}],
    "grammar": [{"index": "train"}],
    "weights": {"path": "weights"},
    "eval": {"metrics": ["bleu", "chrf"], "tokenize": "none", "trials": 10},
}
STAGES = ["align", "lm:LanguageModel", "index", "decode:dev", "decode:test", "eval:dev", "eval:test"]


class Experiment:
    """A folder with the files of an experiment, its configuration, and a directory for its runs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path, self.out = folder, folder / "exp.yaml", folder / "out"
        self.config = copy.deepcopy(CONFIG)
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in FILES.items():
            (folder / name).write_text(text)
        self.write()

    def add_line(self) -> None:
        """Add a line to the test set, so that it has an odd and an even one."""
        for name, line in (("de", "er hat das buch"), ("en", "he has the book"), ("other.en", "he owns it")):
            with (self.folder / f"test.{name}").open("a") as stream:
                stream.write(f"{line}\n")

    def write(self) -> None:
        self.path.write_text(yaml.safe_dump(self.config, sort_keys=False))

    def set(self, **sections: Any) -> None:
        """Replace sections; None removes one."""
        self.config |= sections
        self.config = {name: section for name, section in self.config.items() if section is not None}
        self.write()

    def command(self, *more: str) -> list[str]:
        return ["run", str(self.path), "-o", str(self.out), *more]

    def run(self, *more: str) -> int:
        return main(self.command(*more))

    def stages_run(self, capfd: pytest.CaptureFixture[str], *more: str) -> list[str]:
        """Run it; return the stages that were not skipped."""
        capfd.readouterr()
        assert self.run(*more) == 0
        lines = [line.split(": ") for line in capfd.readouterr().err.splitlines()]
        return [parts[1] for parts in lines if len(parts) > 2 and parts[2].startswith("started")]

    def error(self, capfd: pytest.CaptureFixture[str], *more: str, code: int = 1) -> str:
        """Run it quietly, expect failure, and return its one line of output."""
        capfd.readouterr()
        assert self.run("-q", *more) == code
        captured = capfd.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1, captured.err
        return captured.err.rstrip("\n")

    def artefacts(self) -> dict[str, bytes]:
        """All output files except those that contain times, and stored rules, in the order of threads."""
        return {
            path.relative_to(self.out).as_posix(): path.read_bytes()
            for path in sorted(self.out.rglob("*"))
            if path.is_file() and path.name not in ("manifest.json", "log.jsonl")
            if path.parent != self.out / "rules"
        }
