"""``hiero rescore``: k-best lists and forests with other weights and further features."""

from __future__ import annotations

import argparse
import math

from hiero.cli.options import (
    add_classes,
    add_command,
    add_files,
    add_quiet,
    add_threads,
    at_least,
    check_files,
    classes_of,
    named_path,
)
from hiero.core.errors import UsageError
from hiero.core.progress import CommandProgress
from hiero.learning.config import TuneConfig

DESCRIPTION = """\
Rescore k-best lists, or the forests of hiero decode --forest, and sort them anew. Lists are lines of cdec or
Moses, or JSON lines of hiero decode; the output has the same form.

Without -w, each score is what the list has, plus the further features times their weights (--weight). With
-w, or weights learnt from references (--tune), all scores are computed again from the features."""
EPILOG = """\
examples:
  hiero rescore -i dev.kbest -w weights -o dev.rescored
  hiero rescore -i test.kbest -l BigLM=big.trie.binary --weight BigLM=0.4 --format text -o test.output
  hiero rescore -i dev.kbest -w weights -l BigLM=big.binary --scores Neural=dev.neural \\
    --tune dev.ref --save-weights new.weights -o dev.rescored
  hiero rescore --forests forests/ -w new.weights --kbest 100 -o test.kbest"""

ALGORITHMS = ("kbmira", "pro", "mert")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero rescore`` with its arguments."""
    command = add_command(subparsers, "rescore", "rescore k-best lists and forests", DESCRIPTION, EPILOG)
    group = command.add_argument_group("input and output")
    add = group.add_argument
    add("-i", "--input", metavar="IN", default="-", help="k-best lists; default: standard input")
    add("--forests", metavar="DIR", help="forests 0.json.gz, 1.json.gz, ... instead of lists")
    add("-o", "--output", metavar="OUT", default="-", help="default: standard output; .gz compresses")
    add(
        "--kbest",
        metavar="K",
        type=at_least(1),
        help="translations to write (default: all), or to list from each forest (default 100)",
    )
    add(
        "--format",
        choices=["cdec", "moses", "json", "text"],
        help="default: that of the lists; text: the best translation of each sentence",
    )
    add_threads(group)
    add_quiet(group)
    group = command.add_argument_group("features and weights")
    add = group.add_argument
    add("-w", "--weights", metavar="WEIGHTS", help="weights of all features; others count as 0")
    add("--weight", metavar="NAME=X", action="append", default=[], help="one more weight; repeatable")
    add(
        "-l",
        "--lm",
        metavar="NAME=LM",
        action="append",
        default=[],
        help="a language model as the feature NAME, with NAME_OOV for unknown words: ARPA, compiled, or any "
        "binary of KenLM (those other than probing with the package kenlm); repeatable",
    )
    add_classes(group)
    add(
        "--scores",
        metavar="NAME=FILE",
        action="append",
        default=[],
        help="a feature with its values in a file, a line for each translation of the lists; repeatable",
    )
    group = command.add_argument_group("learning")
    add = group.add_argument
    add("--tune", metavar="REF", nargs="+", help="learn weights from one or several references of the lists")
    add("--algorithm", choices=ALGORITHMS, default="kbmira", help="default: kbmira")
    add("--iterations", metavar="N", type=at_least(1), default=5, help="of learning (default 5)")
    add("--seed", metavar="N", type=at_least(0), default=1, help="of the random numbers (default 1)")
    add("--save-weights", metavar="FILE", help="write the weights that were learnt")
    command.set_defaults(run=run)
    add_files(command, "-i --forests -w --tune", "-o --save-weights")


def run(args: argparse.Namespace) -> int:
    """Run ``hiero rescore``; return the exit status."""
    if args.forests and args.input != "-":
        raise UsageError("argument --forests: not allowed with -i")
    if args.save_weights and not args.tune:
        raise UsageError("argument --save-weights: requires --tune REF")
    if args.forests and args.scores:
        raise UsageError("argument --scores: not allowed with --forests (write lists first)")
    models = [named_path(spec, "-l", "NAME=LM") for spec in args.lm]
    classes = classes_of(args)
    for name in classes.keys() - dict(models).keys():
        raise UsageError(f"argument --classes: {name!r} is the name of no model of -l")
    columns = [named_path(spec, "--scores", "NAME=FILE") for spec in args.scores]
    given = dict(_weight(spec) for spec in args.weight)
    names = [name for name, _ in (*models, *columns)]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"found the feature {name!r} twice, expected different names")
    files = [("of -l", path) for _, path in models] + [("of --scores", path) for _, path in columns]
    files += [("of --classes", path) for path in classes.values()]
    check_files(args, files)
    if args.weights is None and not args.tune:
        for name in names:
            if name not in given:
                raise UsageError(f"found no weight of {name!r}, expected --weight {name}=X, -w or --tune")
        for name in given:
            if name not in names and not (name.endswith("_OOV") and name[:-4] in names):
                raise UsageError(f"argument --weight: {name!r} is none of the further features (see -w)")

    from hiero.jobs.rescore import RescoreSettings, Rescoring

    settings = RescoreSettings(
        input=args.input,
        forests=args.forests,
        output=args.output,
        weights=args.weights,
        given=given,
        lm=[(name, path, classes.get(name)) for name, path in models],
        columns=columns,
        kbest=args.kbest or 0,
        style=args.format,
        references=args.tune or (),
        save_weights=args.save_weights,
        threads=args.threads,
    )
    tune = TuneConfig(algorithm=args.algorithm, epochs=args.iterations)
    with CommandProgress("rescore", quiet=args.quiet) as progress:
        progress.begin(None)
        rescoring = Rescoring(settings, tune, args.seed, progress)
        rescoring.run()
    progress.say(rescoring.summary())
    return 0


def _weight(spec: str) -> tuple[str, float]:
    name, _, text = spec.rpartition("=")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not name or not math.isfinite(value):
        raise UsageError(f"argument --weight: found {spec!r}, expected NAME=X with a finite number")
    return name, value
