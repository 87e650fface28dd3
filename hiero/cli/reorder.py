"""``hiero reorder``: extract examples, learn and evaluate orientation models."""

from __future__ import annotations

import argparse
import json
from typing import Any

from hiero.cli.options import (
    add_command,
    add_files,
    add_quiet,
    add_settings,
    at_least,
    flag_of,
    overrides,
    replaced,
)
from hiero.core.errors import UsageError
from hiero.core.progress import CommandProgress
from hiero.core.text import open_output, write_output
from hiero.reordering.config import USED_BY, ExampleConfig, LearnConfig

EVERY = 20  # one sentence pair of 20 is held out
DESCRIPTION = """\
Models of the orientation of phrases: in the source sentence, a phrase of the translation comes right after
the previous phrase (monotone), right before it (swap), or neither (other). Their scores are features of hiero
decode: --reordering MODEL, or features: {reordering: MODEL} in a configuration."""
EPILOG = """\
examples:
  hiero reorder extract -s train.de -t train.en -a train.align -o train.examples --held-out held.examples
  hiero reorder train train.examples -o reordering.model --held-out held.examples
  hiero reorder train train.examples -o lexical.model --learner lexicalised
  hiero reorder eval reordering.model held.examples --against lexical.model
  hiero decode -c model.yaml --reordering reordering.model -w weights < input.de"""
EXTRACT_DESCRIPTION = """\
Extract examples from a word-aligned bitext: phrase pairs consistent with the alignment, with their
orientation towards the previous target phrase. The features of an example are its aligned word pairs and the
source words around it. The arrays are memory-mapped, so they may be larger than memory."""
TRAIN_DESCRIPTION = """\
Learn a model from examples. dual and primal are multinomial logistic regression (Alrajeh and Niranjan 2014):
primal by stochastic gradient descent; dual by exponentiated gradient, which skips examples already fitted
(shrinking), and stops when none is left. lexicalised counts how often each phrase pair has each orientation.
The same seed gives the same model."""
EVAL_DESCRIPTION = """\
Print the error rate of a model, of each class, its confusion matrix, the calibration of its probabilities,
and the features with the largest weights of each class. It is compared with the majority class, and with the
models of --against. Rows "as gaps" are of the same examples as if their words were not known."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero reorder`` with its subcommands."""
    reorder = add_command(subparsers, "reorder", "learn the orientation of phrases", DESCRIPTION, EPILOG)
    commands = reorder.add_subparsers(dest="reorder_command", required=True, metavar="COMMAND")
    _add_extract(commands)
    _add_train(commands)
    _add_eval(commands)
    reorder.set_defaults(run=run)


def _add_extract(commands: Any) -> None:
    command = add_command(commands, "extract", "extract examples from a bitext", EXTRACT_DESCRIPTION)
    add = command.add_argument
    add("-s", "--source", metavar="SRC", required=True, help="source side, a sentence a line; plain or gz")
    add("-t", "--target", metavar="TGT", required=True, help="target side, with the same number of lines")
    add("-a", "--alignment", metavar="ALIGN", required=True, help="word links i-j of each pair, from 0")
    add("-o", "--output", metavar="EXAMPLES", required=True, help="directory to write")
    add("--held-out", metavar="EXAMPLES", help="directory for the examples of held-out sentence pairs")
    add("--held-out-every", metavar="N", type=at_least(2), help=f"hold out one pair of N (default {EVERY})")
    add_settings(command, ExampleConfig)
    add_quiet(command)
    add_files(command, "-s -t -a", "-o --held-out")


def _add_train(commands: Any) -> None:
    command = add_command(commands, "train", "learn a model", TRAIN_DESCRIPTION)
    add = command.add_argument
    add("examples", metavar="EXAMPLES", help="directory of hiero reorder extract")
    add("-o", "--output", metavar="MODEL", required=True, help="directory to write")
    add("--held-out", metavar="EXAMPLES", help="classify these after each pass")
    add_settings(command, LearnConfig)
    add("--seed", metavar="N", type=at_least(0), default=1, help="random seed (default 1)")
    add("--history", metavar="FILE.json", help="write time, error and number of examples left of each pass")
    add_quiet(command)
    add_files(command, "EXAMPLES --held-out", "-o --history")


def _add_eval(commands: Any) -> None:
    command = add_command(commands, "eval", "classify examples", EVAL_DESCRIPTION)
    add = command.add_argument
    add("model", metavar="MODEL", help="model of hiero reorder train")
    add("examples", metavar="EXAMPLES", help="held-out examples of the same extraction")
    add("--against", metavar="MODEL", action="append", default=[], help="model to compare with; repeatable")
    add(
        "--top",
        metavar="N",
        type=at_least(0),
        default=10,
        help="features to print for each class (default 10)",
    )
    add("--format", choices=["text", "json"], default="text", help="default: text")
    add("-o", "--output", metavar="OUT", default="-", help="default: standard output")
    add_files(command, "MODEL EXAMPLES --against", "-o")


def run(args: argparse.Namespace) -> int:
    """Run ``hiero reorder``; return the exit status."""
    return {"extract": _extract, "train": _train, "eval": _eval}[args.reorder_command](args)


def _extract(args: argparse.Namespace) -> int:
    config = replaced(ExampleConfig(), args)
    every = EVERY if args.held_out_every is None else args.held_out_every
    if args.held_out is None and args.held_out_every is not None:
        raise UsageError("argument --held-out-every: requires --held-out")
    from hiero.reordering.examples import extract_examples

    with CommandProgress("reorder extract", quiet=args.quiet) as progress:
        summary = extract_examples(
            args.source,
            args.target,
            args.alignment,
            args.output,
            config,
            held_out=args.held_out,
            every=every,
            progress=progress,
        )
    progress.say(str(summary))
    return 0


def _train(args: argparse.Namespace) -> int:
    given = overrides(args, LearnConfig)
    learner = given.get("learner", LearnConfig.learner)
    for name, learners in USED_BY.items():
        if name in given and learner not in learners:
            raise UsageError(
                f"argument {flag_of(LearnConfig, name)}: requires --learner {' or '.join(learners)}"
            )
    config = replaced(LearnConfig(), args)
    for flag in ("history", "held_out"):
        if getattr(args, flag) is not None and config.learner == "lexicalised":
            name = flag.replace("_", "-")
            raise UsageError(f"argument --{name}: not allowed with --learner lexicalised")
    from hiero.reordering.learn import train_model

    with CommandProgress("reorder train", quiet=args.quiet) as progress:
        trained = train_model(
            args.examples, args.output, config, seed=args.seed, held_out=args.held_out, progress=progress
        )
    progress.say(str(trained))
    if args.history and trained.learned is not None:
        with open_output(args.history) as stream:
            passes = [one.as_dict() for one in trained.learned.history]
            stream.write((json.dumps(passes, indent=1) + "\n").encode())
    return 0


def _eval(args: argparse.Namespace) -> int:
    from hiero.reordering.evaluate import evaluate_majority, evaluations_of, report
    from hiero.reordering.examples import open_examples
    from hiero.reordering.model import Classifier, open_model, top_features

    examples, model = open_examples(args.examples), open_model(args.model)
    models = model, *map(open_model, args.against)
    evaluations = [result for one in models for result in evaluations_of(one, examples)]
    evaluations.append(evaluate_majority(model, examples))
    top = top_features(model, args.top) if isinstance(model, Classifier) and args.top else None
    if args.format == "json":
        content = {"systems": [one.as_dict() for one in evaluations], "top": top or {}}
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    else:
        text = report(evaluations, top)
    write_output(args.output, text)
    return 0
