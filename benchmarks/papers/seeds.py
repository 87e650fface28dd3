"""One system tuned with many seeds, as a box plot: ``python -m benchmarks.papers.seeds OUT --data DIR``.

Figure 4 of Simianer, Riezler and Dyer (2012; 000): BLEU of a test set with the weights of 100 runs of MIRA.
Here a seed assigns the sentences of dev to the 20 shards and shuffles them. All runs are made by one process,
which opens the model once, with the rules of sentences that the first one extracted; no set is translated
before the last epoch, whose weights count.

    OUT/base.run             sets, language model and index, as for ``learners``, which can share them
    OUT/rules                rules of sentences, likewise
    OUT/seeds/SYSTEM.N       the run with seed N, and BLEU on the test set, scores.json
    OUT/seeds.svg, seeds.md  the plot, and its numbers; --table only makes these

Systems have the names of ``learners``. It can be killed and restarted at any time, also with more runs.

    python -m benchmarks.papers.seeds runs --data ../shared/data/multi30k-de-en --runs 40 --epochs 10
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.papers.boxplot import Box, svg
from benchmarks.papers.experiment import Experiment, add_arguments
from benchmarks.papers.learners import (
    add_base_arguments,
    folder_name,
    make_base,
    sets_of,
    settings_of,
    system_names,
)
from benchmarks.papers.tables import variance
from hiero.config.config import Config, config_of
from hiero.config.model import OpenedFiles, model_config
from hiero.config.sections import WeightsSection
from hiero.core.parallel import in_order
from hiero.core.text import write_output
from hiero.jobs.run_directory import Manifest
from hiero.jobs.tune import Tuning
from hiero.tuning.held_out import held_out_score
from hiero.tuning.shard import SetFiles, TuningSet

SCORES = "scores.json"


def run_folder(experiment: Experiment, system: str, seed: int) -> Path:
    return experiment.out / "seeds" / f"{folder_name(system)}.{seed}"


def run_all(experiment: Experiment, args: argparse.Namespace) -> None:
    opened = OpenedFiles(Manifest(experiment.out / "seeds").digest)
    for system in args.systems:
        for seed in range(1, args.runs + 1):
            folder = run_folder(experiment, system, seed)
            if not (folder / SCORES).exists():
                run(experiment, args, system, seed, opened)


def run(
    experiment: Experiment, args: argparse.Namespace, system: str, seed: int, opened: OpenedFiles
) -> None:
    """Tune with a seed, continuing an interrupted run, and score the weights of the last epoch."""
    cpu, folder = time.process_time(), run_folder(experiment, system, seed)
    settings = settings_of(experiment, args, system, seed)
    del settings["eval"]
    settings["tune"]["held_out"] = None
    config = config_of(settings)
    tuned = Tuning(config, "seeds").run(folder, workers=args.threads, resume=folder.exists(), opened=opened)
    scores = scored(config, args, tuned.weights, opened)
    scores |= {"epochs": len(tuned.log), "cpu_s": round(time.process_time() - cpu, 1)}
    write_output(folder / SCORES, json.dumps(scores) + "\n")
    print(f"{folder.name}: {json.dumps(scores)}", file=sys.stderr)


def scored(config: Config, args: argparse.Namespace, weights: Path, opened: OpenedFiles) -> dict[str, float]:
    """BLEU and brevity of the test set."""
    section = WeightsSection(path=str(weights))
    model = opened.model(dataclasses.replace(model_config(config), weights=section))
    data = config.data[args.set]
    texts = TuningSet(SetFiles(data.source, tuple(data.translations)), model.symbols)
    forests = in_order(model.parse, texts.segments, args.threads)
    words = (forest.viterbi().words if forest else np.empty(0, np.int32) for forest in forests)
    rows = [texts.references.statistics(number, [one])[0] for number, one in enumerate(words)]
    score = held_out_score(np.sum(rows, axis=0))
    return {"bleu": score.bleu, "brevity": score.brevity}


def boxes(experiment: Experiment, args: argparse.Namespace) -> list[Box]:
    """A box for each system, of all its runs that are done."""
    found = []
    for system in args.systems:
        paths = [run_folder(experiment, system, seed) / SCORES for seed in range(1, args.runs + 1)]
        values = [json.loads(path.read_bytes())["bleu"] for path in paths if path.exists()]
        if len(values) > 1:
            found.append(Box(system, tuple(values)))
    if not found:
        sys.exit(f"{experiment.out}: found no system with several runs that are done, expected some")
    return found


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.seeds", description=(__doc__ or "").split("\n\n")[0]
    )
    add_arguments(parser)
    add_base_arguments(parser)
    add = parser.add_argument
    add("--systems", type=system_names, default=["mira.dev.dense"], metavar="A,B,...")
    add("--runs", type=int, default=40, metavar="N", help="seeds of each system (default 40)")
    add("--set", default="test", help="to score (default test)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    args = parsed(arguments)
    experiment = Experiment.of(args)
    if args.set not in sets_of(experiment, args):
        sys.exit(f"--set: found {args.set}, expected {', '.join(sets_of(experiment, args))}")
    if not args.table:
        make_base(experiment, args)
        run_all(experiment, args)
    several = boxes(experiment, args)
    for name, text in (("seeds.svg", svg(several, f"BLEU of {args.set}")), ("seeds.md", variance(several))):
        write_output(experiment.out / name, text)
    print(variance(several), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
