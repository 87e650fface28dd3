"""``hiero bins``: learn bins of dense features, and show the weights learnt for them."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hiero.bins.config import OF, BinsConfig, FeatureConfig
from hiero.cli.options import (
    add_command,
    add_files,
    add_grammar_paths,
    add_quiet,
    add_settings,
    add_threads,
    check_files,
    overrides,
    replaced,
)
from hiero.core.errors import UsageError

if TYPE_CHECKING:
    from hiero.config.config import Config


DESCRIPTION = """\
Replace dense features by indicators of bins (Clark, Dyer and Lavie 2014). The score is linear in a dense
feature; with one weight for each bin of its values, it can be any step function of them, so that a logarithm,
for instance, is learnt and not assumed.

learn  reads the rules of a text and makes bins with about the same number of rules in each. A bin is an
       indicator, NAME_bin2_0.25: it counts the rules whose value is in the second bin, which begins at 0.25
show   prints bins, and with -w their weights
plot   draws the weights against the values, and the logarithm that fits them best

hiero tune --neighbours isotonic --beta-per curve regularises the weights of neighbouring bins."""
EPILOG = """\
examples:
  hiero bins learn -g train.idx -i dev.de --features EgivenFCoherent=probability,CountEF=count -o my.bins
  hiero bins learn -c experiment.yaml -o my.bins --bits 6
  hiero tune -c experiment.yaml --bins my.bins --algorithm pro --neighbours isotonic -o runs/mnr
  hiero bins show my.bins -w runs/mnr/weights.gz
  hiero bins plot my.bins -w runs/mnr/weights.gz -o curves/
  hiero decode -c experiment.yaml --bins my.bins -w runs/mnr/weights.gz -i input.de

in a configuration:
  features: {bins: my.bins}                        # existing bins
  bins:                                            # or bins learnt by hiero run
    features: {EgivenFCoherent: {of: probability}, CountEF: {of: count, keep: true}}
    bits: 4"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero bins`` with its subcommands."""
    parser = add_command(
        subparsers, "bins", "learn bins of dense features, show and draw their weights", DESCRIPTION, EPILOG
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_learn(actions)
    for name, text in {
        "show": "print bins, and the weights of their indicators",
        "plot": "draw weights against feature values, as SVG",
    }.items():
        action = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        action.add_argument("bins", metavar="BINS", help="file of bins")
        needed = name == "plot"
        action.add_argument(
            "-w", "--weights", metavar="WEIGHTS", required=needed, help="weights learnt with these bins"
        )
        if needed:
            action.add_argument(
                "-o",
                "--output",
                metavar="DIR",
                type=Path,
                required=True,
                help="directory for NAME.svg of each feature",
            )
        add_files(action, "BINS -w", "-o" if needed else "")
    parser.set_defaults(run=run)


def _add_learn(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "make bins of the rules of a text, with about the same number of rules in each"
    learn = actions.add_parser("learn", help=text, description=f"{text[0].upper()}{text[1:]}.")
    add = learn.add_argument
    add("-c", "--config", metavar="CONFIG", help="YAML with grammars, data and, optionally, bins")
    add("-g", "--grammar", metavar="GRAMMAR", action="append", help="file, compiled or index; repeatable")
    add("-i", "--input", metavar="IN", help="text whose rules are counted (instead of --on)")
    add("-o", "--output", metavar="BINS", required=True, help="file to write; - for standard output")
    add_threads(learn)
    add(
        "--features",
        metavar="A,B=OF,...",
        help="columns of the grammar, or WordPenalty for the number of target words; OF is given (default) "
        "for the value itself, probability for a value of -log10 p, count for a value of log10(1 + count)",
    )
    add_settings(learn, BinsConfig)
    add_grammar_paths(learn)
    add_quiet(learn)
    add_files(learn, "-c -g -i", "-o")


def run(args: argparse.Namespace) -> int:
    """Run ``hiero bins``; return the exit status."""
    if args.action == "learn":
        return _learn(args)
    from hiero.bins.curves import curves_of, table, write_pictures
    from hiero.bins.file import read_bins
    from hiero.core.symbols import Symbols
    from hiero.features.weights import read_weights
    from hiero.jobs.run_directory import locked_directory

    bins = read_bins(args.bins)
    weights = read_weights(args.weights, Symbols()) if args.weights else None
    curves = curves_of(bins, weights, args.weights or "")
    if args.action == "show":
        sys.stdout.write("\n".join(table(curve, with_weights=weights is not None) for curve in curves))
        return 0
    with locked_directory(args.output, "hiero bins plot", keep=False):
        for path in write_pictures(curves, args.output):
            print(path)
    return 0


def _learn(args: argparse.Namespace) -> int:
    if args.input and "on" in overrides(args, BinsConfig):
        raise UsageError("argument --on: not allowed with -i")
    if not (args.config or (args.grammar and args.input)):
        raise UsageError("requires -c CONFIG, or both -g GRAMMAR and -i IN")

    from hiero.core.progress import CommandProgress
    from hiero.jobs.learn_bins import Binning

    config = _config(args)
    more = config.model_files | {name: data.source for name, data in config.data.items()}
    check_files(args, (("of the configuration", path) for path in more.values()))
    where = args.config or "hiero bins learn"
    binning = Binning(config, where, allow_grammar_paths=args.allow_grammar_paths)
    with CommandProgress("bins", quiet=args.quiet) as progress:
        bins = binning.run(args.output, args.threads, progress)
    if not args.quiet:
        sizes = ", ".join(f"{one.feature} {len(one)}" for one in bins)
        print(f"{args.output}: bins of {sizes}", file=sys.stderr)
    return 0


def _config(args: argparse.Namespace) -> Config:
    """The configuration, with the given options replacing its settings."""
    from hiero.config.config import Config, read_config
    from hiero.config.sections import DataSection, GrammarSection

    config = read_config(args.config) if args.config else Config()
    given = {} if args.features is None else {"features": _features(args.features)}
    bins = replaced(config.bins or BinsConfig(), args, given)
    if args.grammar:
        config = dataclasses.replace(config, grammar=[GrammarSection(path=path) for path in args.grammar])
    if args.input:
        bins = dataclasses.replace(bins, on=args.input)
        config = dataclasses.replace(config, data={args.input: DataSection(source=args.input)})
    # Existing bins do not influence those learnt here.
    features = dataclasses.replace(config.features, bins=None)
    return dataclasses.replace(config, bins=bins, features=features)


def _features(text: str) -> dict[str, FeatureConfig]:
    found: dict[str, FeatureConfig] = {}
    for name, settings in map(_feature, filter(str.strip, text.split(","))):
        if name in found:
            raise UsageError(f"argument --features: {name} is given twice")
        found[name] = settings
    return found


def _feature(text: str) -> tuple[str, FeatureConfig]:
    name, equals, of = text.strip().partition("=")
    if name and not equals:
        return name, FeatureConfig()
    if not name or of not in OF:
        raise UsageError(f"argument --features: found {text.strip()!r}, expected NAME or NAME={'|'.join(OF)}")
    return name, FeatureConfig(of=of)
