"""Common parts of experiments on a bitext: paths of its sets, shared models, and runs of systems."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hiero.config.config import read_settings, write_settings
from hiero.core.progress import StageProgress
from hiero.core.text import read_lines, write_output
from hiero.evaluation.compare import SystemResult
from hiero.evaluation.significance import Comparison
from hiero.jobs.run_directory import Manifest
from hiero.pipeline.run import Run

CONFIGS = Path(__file__).parents[2] / "configs"
FORMS = (  # file names of the source and target of a set
    ("{d}/{n}.src.gz", "{d}/{n}.trg.gz"),
    ("{d}/{n}.src.gz", "{d}/{n}.ref0.gz"),
    ("{d}.{n}.de", "{d}.{n}.en"),  # as the demo's
    ("{d}.{n}.de.gz", "{d}.{n}.en.gz"),
)

Settings = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A directory of runs on one bitext.

        OUT/base.run    alignment, language model and index, for all systems, unless they are given
        OUT/NAME.yaml   the configuration of a system, and OUT/NAME.run, its run

    ``data`` has a bitext as train.src.gz, train.trg.gz and so on for dev and devtest; several references
    as devtest.ref0.gz, ...
    """

    out: Path
    data: str
    index: Path | None = None
    lm: Path | None = None
    alignment: Path | None = None
    order: int = 5
    threads: int = 1
    quiet: bool = False

    @classmethod
    def of(cls, args: argparse.Namespace) -> Experiment:
        """The experiment for parsed arguments of ``add_arguments``; makes its directory."""
        args.out.mkdir(parents=True, exist_ok=True)
        return cls(**{field.name: getattr(args, field.name) for field in dataclasses.fields(cls)})

    def part(self, name: str) -> Settings:
        """Source and target or references of a set."""
        for source, target in FORMS:
            sides = [Path(form.format(d=self.data, n=name)).resolve() for form in (source, target)]
            if all(path.exists() for path in sides):
                return {"source": str(sides[0])} | _target(sides[1])
        sys.exit(f"{self.data}: found no {name}.src.gz and {name}.trg.gz in it, expected a bitext")

    def train(self) -> Settings:
        """The training set with its alignment: the one given, the data's own, or the base's."""
        part = self.part("train")
        own = Path(self.data) / "train.align.gz", Path(f"{self.data}.train.align.gz")
        made = self.out.resolve() / "base.run" / "train.align.gz"
        found = next((path for path in (self.alignment, *own, made) if path and path.exists()), None)
        return part | ({"alignment": str(found.resolve())} if found else {})

    def drawn(self, name: str) -> Settings:
        """Source and target of a set that the base has drawn from the bitext, or of the rest of it, train."""
        folder = self.out.resolve() / "base.run" / "sequester"
        return {side: str(folder / f"{name}.{side}") for side in ("source", "target")}

    def make_base(self, data: Settings | None = None, lm: Settings | None = None, **more: Any) -> None:
        """Make the alignment, language model and index unless they exist.

        ``data`` and ``lm`` are added to their sections, and ``more`` has further ones.
        """
        if self.index and self.lm:
            return
        estimated = {"estimate": "train", "order": self.order, "discount_fallback": True} | (lm or {})
        train = self.train()
        if str(self.out.resolve() / "base.run") in train.get("alignment", ""):
            del train["alignment"]  # computed by the run itself
        content = {"seed": 1, "data": {"train": train} | (data or {}), "lm": [estimated]}
        self.run("base", content | {"grammar": [{"index": "train"}]} | more)

    def models(self) -> Settings:
        """The sections ``grammar`` and ``lm``."""
        base = self.out.resolve() / "base.run"
        index, lm = self.index or base / "train.index", self.lm or base / "LanguageModel.lm"
        return {"grammar": [{"index": str(index.resolve())}], "lm": [{"path": str(lm.resolve())}]}

    def run(self, name: str, content: Mapping[str, Any], only: Sequence[str] = ()) -> Manifest:
        """Write a configuration as OUT/NAME.yaml and run it, or only some stages."""
        path, folder = self.out / f"{name}.yaml", self.out / f"{name}.run"
        write_settings(path, dict(content), "made by a benchmark")
        print(f"== {name}", file=sys.stderr)
        with StageProgress(quiet=self.quiet) as display:
            Run(path, folder, only).run(display, self.threads)
        return Manifest(folder)

    def references(self, name: str) -> list[list[str]]:
        """The references of a set, each a list of lines."""
        return references_of(self.part(name))

    def write_table(self, text: str) -> None:
        """Write the tables to OUT/table.md, and print them."""
        write_output(self.out / "table.md", text)
        print(text, end="")

    def outputs(self, name: str, replicas: Sequence[str]) -> list[list[str]]:
        """Translations of devtest by those of the runs NAME, NAME.2, ... that are complete."""
        found = [self.out / f"{name}{replica}.run" / "devtest.output" for replica in replicas]
        return [lines(path) for path in found if path.exists()]


def compared(result: SystemResult) -> str:
    """Two cells: the difference from the first system, and its p."""
    if result.comparison is None:
        return " | "
    return f"{result.comparison.difference:+.2f} | {result.comparison.p:.4f}"


def with_interval(found: Comparison) -> str:
    """The text of a difference and its interval."""
    if found.interval is None:
        return f"{found.difference:+.2f}"
    return f"{found.difference:+.2f} ({found.interval.low:+.2f} to {found.interval.high:+.2f})"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for paths, runs and significance tests."""
    add = parser.add_argument
    add("out", type=Path, metavar="OUT", help="directory for all output")
    add("--data", required=True, metavar="DIR", help="a bitext: train, dev and devtest")
    add("--index", type=Path, help="an existing index of the training set")
    add("--lm", type=Path, help="an existing language model")
    add("--alignment", type=Path, help="an existing alignment of the training set")
    add("--order", type=int, default=5, help="order of a new language model (default 5)")
    add("--replicas", type=int, default=3, metavar="N", help="tuning runs of each system (default 3)")
    add("--epochs", type=int, metavar="N", help="of each run (default: as in the configuration)")
    add("--trials", type=int, default=10_000, help="of the test (default 10000)")
    add("--table", action="store_true", help="only make the table, from existing runs")
    add("-j", "--threads", type=int, default=1)
    add("-q", "--quiet", action="store_true")


def some_of(names: Collection[str]) -> Callable[[str], list[str]]:
    """The type of an argument that lists some of the names."""

    def parsed(text: str) -> list[str]:
        found = text.split(",")
        if unknown := [name for name in found if name not in names]:
            raise argparse.ArgumentTypeError(f"found {unknown[0]}, expected some of {', '.join(names)}")
        return found

    return parsed


def numbers(kind: type[int] | type[float]) -> Callable[[str], list[float]]:
    """The type of an argument that lists numbers."""
    return lambda text: [kind(part) for part in text.split(",")]


def replica_names(number: int) -> list[str]:
    """The suffixes of the names of runs: none for the first, then .2, .3, ..."""
    return ["", *(f".{replica}" for replica in range(2, number + 1))]


def config_named(name: str) -> Settings:
    return dict(read_settings(CONFIGS / f"{name}.yaml"))


def lines(path: str | Path) -> list[str]:
    return [line.decode() for line in read_lines(path)]


def references_of(part: Settings) -> list[list[str]]:
    return [lines(path) for path in part.get("references", [part.get("target")])]


def _target(path: Path) -> Settings:
    if not path.name.endswith("ref0.gz"):
        return {"target": str(path)}
    numbered = (path.with_name(path.name.replace("ref0", f"ref{number}")) for number in range(10))
    return {"references": [str(one) for one in numbered if one.exists()]}
