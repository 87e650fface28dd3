"""``hiero tune``: learn weights."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hiero.cli.options import (
    add_command,
    add_grammar_paths,
    add_quiet,
    add_settings,
    add_strict,
    add_threads,
    add_user_code,
    flag_of,
    overrides,
    replaced,
    show_default,
)
from hiero.config.sections import FeaturesSection
from hiero.core.errors import ConfigError, UsageError, is_interrupt
from hiero.core.progress import CommandProgress, StageProgress
from hiero.learning.config import COMMON, TuneConfig, algorithms, check_used

if TYPE_CHECKING:
    from hiero.config.config import Config

STAGES_AFTER_MODELS = ("grid", "tune", "curves", "decode", "join", "eval")

DESCRIPTION = """\
Learn the weights of a model. Section data of CONFIG names the sets, section tune has the settings, which the
flags below override. The configuration is one for hiero run, whose stages before tuning are run if they have
to be: prep, align, lm, index, reorder, extract, bins. Without grammar, language model and weights in CONFIG,
the German-English model of the package is tuned.

RUNDIR will contain weights.gz, chosen on the odd lines of the held-out set; weights.NN.gz of each epoch;
log.jsonl, with a line for each epoch; config.yaml; and files from which --resume continues an interrupted
run, with the same result. The chosen epoch and its BLEU on the even lines go to standard output."""
EPILOG = """\
examples:
  hiero tune -c experiment.yaml -o runs/mira --algorithm mira --epochs 15 -j 4
  hiero tune -c experiment.yaml -o runs/sparse --features rule_id,shape --algorithm iterselsgd --on train
  hiero tune -c experiment.yaml -o runs/mira --resume -j 8 --executor processes
  hiero tune -c experiment.yaml -o runs/big --executor dask://head:8786"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero tune`` with its arguments."""
    command = add_command(subparsers, "tune", "learn the weights of a model", DESCRIPTION, EPILOG)
    add = command.add_argument
    add("-c", "--config", metavar="CONFIG", required=True, help="YAML; docs/tuning.md describes its sections")
    add("-o", "--output", metavar="RUNDIR", type=Path, required=True, help="directory to write to")
    add_threads(command, "workers: threads or processes")
    add(
        "--executor",
        metavar="WHERE",
        default="threads",
        help="threads (default), processes, or dask://HOST:PORT; the weights are the same",
    )
    add("--resume", action="store_true", help="continue the run in RUNDIR")
    add_strict(command)
    add(
        "--run",
        metavar="DIR",
        dest="run_directory",
        type=Path,
        help="directory of hiero run, with the files that it makes (default for NAME.yaml: NAME.run in the "
        "working directory)",
    )
    add_settings(command, FeaturesSection, ("templates", "bins"))
    add_user_code(command)
    add_grammar_paths(command)
    add_quiet(command)
    add_settings(command, TuneConfig, defaults=_defaults())
    command.set_defaults(run=run)


def _defaults() -> dict[str, str]:
    """The defaults of settings that depend on the algorithm: the most frequent one, and the others."""
    found = {}
    rows = algorithms()
    for name in {key: None for row in rows.values() for key in (*COMMON, *row.preset)}:
        users: dict[Any, list[str]] = {}
        for algorithm, row in rows.items():
            value = row.preset.get(name, COMMON.get(name))
            if value is not None:
                users.setdefault(value, []).append(algorithm)
        usual, *others = sorted(users, key=lambda value: -len(users[value]))
        listed = [f"{', '.join(users[value])}: {show_default(value)}" for value in others]
        found[name] = "; ".join([f"default {show_default(usual)}", *listed])
    return found


def run(args: argparse.Namespace) -> int:
    """Run ``hiero tune``; return the exit status."""
    from hiero.config.config import config_of, needs_run, read_settings
    from hiero.jobs.tune import Tuned, Tuning

    content = read_settings(args.config)
    # Absolute paths: workers may have other working directories.
    config = config_of({} if content is None else content, args.config, Path(args.config).resolve().parent)
    texts: Mapping[str, Path] = {}
    if needs_run(config):
        config, texts = _made(args, config)
    config = dataclasses.replace(
        config,
        strict=config.strict or args.strict,
        tune=replaced(config.tune or TuneConfig(), args, absolute=True),
        features=replaced(config.features, args, absolute=True),
    )
    assert config.tune is not None
    try:
        check_used(config.tune.algorithm, overrides(args, TuneConfig), lambda key: flag_of(TuneConfig, key))
    except ConfigError as error:
        raise UsageError(f"argument {error}") from None
    tuning = Tuning(config, args.config, texts, allow_grammar_paths=args.allow_grammar_paths)
    for path in tuning.inputs().values():
        if Path(os.path.abspath(args.output)) in Path(os.path.abspath(path)).parents:
            raise UsageError(f"argument -o: {path}, an input, is in this directory")
    try:
        with CommandProgress("tune", quiet=args.quiet) as progress:
            tuned: Tuned = tuning.run(
                args.output,
                workers=args.threads,
                executor=args.executor,
                resume=args.resume,
                progress=progress,
            )
    except (KeyboardInterrupt, SystemError) as error:
        if not is_interrupt(error):
            raise
        start = "\n" if sys.stderr.isatty() else ""
        print(f"{start}hiero: interrupted; --resume continues the run", file=sys.stderr)
        return 130
    print(tuned.summary(tuning.settings.held_out, with_path=True))
    return 0


def _made(args: argparse.Namespace, config: Config) -> tuple[Config, Mapping[str, Path]]:
    """Make the files that ``hiero run`` makes before tuning.

    The configuration with their paths, and for each prepared set the text to translate.
    """
    from hiero.pipeline.run import Run, default_directory

    if config.grid is not None:
        raise ConfigError(f"{args.config}: grid: works with hiero run, not with hiero tune")
    directory = args.run_directory or default_directory(Path(args.config))
    planned = Run(args.config, directory, allow_grammar_paths=args.allow_grammar_paths)
    planned.leave_out(STAGES_AFTER_MODELS)
    with StageProgress(quiet=args.quiet) as display:
        planned.run(display, args.threads)
    return dataclasses.replace(planned.plan.config, prep=None, bins=None), planned.plan.texts
