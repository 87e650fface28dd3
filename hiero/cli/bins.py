"""``hiero bins``: put dense features into bins, and look at what was learnt for them."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hiero.bins import OF
from hiero.errors import UsageError
from hiero.tune.binsconfig import BinsConfig, FeatureConfig

if TYPE_CHECKING:
    from hiero.config import Config

DESCRIPTION = """\
A dense feature of a grammar is a number, and its weight the slope of a straight line. In bins, each of which
has a weight, the line may bend: whether a logarithm, a root or a step is best is then learnt, and not guessed
(Clark, Dyer and Lavie 2014).

learn  reads the rules of a text and makes bins with as many rules in each as can be had. A bin is an
       indicator, NAME_bin2_0.25: it counts the rules whose number is in the second bin, which begins at 0.25
show   prints bins, and with -w their weights
plot   draws the weights against the numbers, and the logarithm that fits them best

What makes weights of neighbouring bins alike is said to hiero tune: --neighbours monotone --beta 1000."""
EPILOG = """\
examples:
  hiero bins learn -g train.idx -i dev.de --features EgivenFCoherent=probability,CountEF=count -o my.bins
  hiero bins learn -c experiment.yaml -o my.bins --bits 6
  hiero tune -c experiment.yaml --bins my.bins --algorithm pro --neighbours monotone -o runs/mnr
  hiero bins show my.bins -w runs/mnr/weights.gz
  hiero bins plot my.bins -w runs/mnr/weights.gz -o curves/
  hiero decode -c experiment.yaml --bins my.bins -w runs/mnr/weights.gz -i input.de

in a configuration:
  features: {bins: my.bins}                        # bins there are
  bins:                                            # or bins that hiero run learns
    features: {EgivenFCoherent: {of: probability}, CountEF: {of: count, keep: true}}
    bits: 4"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Define ``hiero bins learn | show | plot``."""
    parser = subparsers.add_parser(
        "bins",
        help="put dense features into bins, and draw what is learnt for them",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_learn(actions)
    for name, text in {
        "show": "print bins, and the weights of their indicators",
        "plot": "draw weights against the numbers that features have, as SVG",
    }.items():
        action = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        action.add_argument("bins", metavar="BINS", help="a file of bins")
        needed = name == "plot"
        action.add_argument("-w", "--weights", metavar="WEIGHTS", required=needed, help="learnt with them")
        if needed:
            action.add_argument(
                "-o",
                "--output",
                metavar="DIR",
                type=Path,
                required=True,
                help="gets NAME.svg of each feature",
            )
    parser.set_defaults(run=run)


def _add_learn(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "make bins of the rules of a text, with as many rules in each as can be had"
    learn = actions.add_parser("learn", help=text, description=f"{text[0].upper()}{text[1:]}.")
    add = learn.add_argument
    add("-c", "--config", metavar="CONFIG", help="YAML with grammars, data, and maybe a section bins")
    add(
        "-g",
        "--grammar",
        metavar="GRAMMAR",
        action="append",
        help="file, compiled grammar or index; repeatable",
    )
    add("-i", "--input", metavar="IN", help="sentences whose rules have a vote each (in place of --on)")
    add("-o", "--output", metavar="BINS", required=True, help="file to write; - for standard output")
    add("-j", "--threads", metavar="N", type=int, default=1, help="threads (default 1)")
    add(
        "--features",
        metavar="A,B=OF,...",
        help="columns of the grammar, or WordPenalty for the number of target words; OF is given (default): "
        "the number as it is; probability, where it is -log10 of one; count, where it is log10(1 + count)",
    )
    add("--on", metavar="SET", help="set of data in CONFIG whose rules have votes (default dev)")
    add("--bits", metavar="N", type=int, help="2 ** N bins of each feature (default 4)")
    add("--overlap", metavar="N", type=int, help="a number counts for N bins more on either side (default 0)")
    add("--keep", action=argparse.BooleanOptionalAction, help="keep the number itself beside its bins")
    add(
        "--leave-one-out",
        action=argparse.BooleanOptionalAction,
        help="line N is pair N of the index: leave out rules that only it yields",
    )
    add("-q", "--quiet", action="store_true", help="nothing on standard error but errors")


def run(args: argparse.Namespace) -> int:
    if args.action == "learn":
        return _learn(args)
    from hiero.formats.bins import read_bins
    from hiero.formats.weights import read_weights
    from hiero.report.curves import curves_of, table, write_pictures
    from hiero.symbols import Symbols

    bins = read_bins(args.bins)
    weights = read_weights(args.weights, Symbols()) if args.weights else None
    curves = curves_of(bins, weights, args.weights or "")
    if args.action == "show":
        sys.stdout.write("\n".join(table(curve, with_weights=weights is not None) for curve in curves))
        return 0
    for path in write_pictures(curves, args.output):
        print(path)
    return 0


def _learn(args: argparse.Namespace) -> int:
    if args.threads < 1:
        raise UsageError(f"argument -j: found {args.threads}, expected at least 1")
    if args.input and args.on:
        raise UsageError("argument --on: found with -i, expected one of them")
    if not (args.config or (args.grammar and args.input)):
        raise UsageError("expected -c CONFIG, or both -g GRAMMAR and -i IN")

    from hiero.binning import Binning, check_train
    from hiero.cli.progress import CommandProgress

    config = _config(args)
    where = args.config or "hiero bins learn"
    check_train(config, where)
    binning = Binning(config, where)
    with CommandProgress("bins", quiet=args.quiet) as watch:
        bins = binning.run(args.output, args.threads, watch)
    if not args.quiet:
        said = ", ".join(f"{one.feature} {len(one)}" for one in bins)
        print(f"{args.output}: bins of {said}", file=sys.stderr)
    return 0


def _config(args: argparse.Namespace) -> Config:
    """The configuration with what the flags say in place of it."""
    from hiero.config import Config, read_config
    from hiero.sections import DataSection, GrammarSection

    config = read_config(args.config) if args.config else Config()
    bins = config.bins or BinsConfig()
    given: dict[str, Any] = {
        key: getattr(args, key) for key in ("on", "bits", "overlap", "keep", "leave_one_out")
    }
    if args.features is not None:
        given["features"] = _features(args.features)
    bins = dataclasses.replace(bins, **{key: value for key, value in given.items() if value is not None})
    if args.grammar:
        config = dataclasses.replace(config, grammar=[GrammarSection(path=path) for path in args.grammar])
    if args.input:
        bins = dataclasses.replace(bins, on=args.input)
        config = dataclasses.replace(config, data={args.input: DataSection(source=args.input)})
    # Bins that are in use already have no say in what is learnt now.
    features = dataclasses.replace(config.features, bins=None)
    return dataclasses.replace(config, bins=bins, features=features)


def _features(text: str) -> dict[str, FeatureConfig]:
    found: dict[str, FeatureConfig] = {}
    for name, settings in map(_feature, filter(str.strip, text.split(","))):
        if name in found:
            raise UsageError(f"argument --features: found {name} twice, expected it once")
        found[name] = settings
    return found


def _feature(text: str) -> tuple[str, FeatureConfig]:
    name, equals, of = text.strip().partition("=")
    if name and not equals:
        return name, FeatureConfig()
    if not name or of not in OF:
        raise UsageError(f"argument --features: found {text.strip()!r}, expected NAME or NAME={'|'.join(OF)}")
    return name, FeatureConfig(of=of)
