"""``hiero tune``: learn weights."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hiero.cli.progress import CommandProgress
from hiero.core.errors import UsageError, is_interrupt
from hiero.learning.config import ALGORITHMS, TuneConfig, TuneSettings

if TYPE_CHECKING:
    from hiero.tuning.report import Table


DESCRIPTION = """\
Learn the weights of a model. Section data of CONFIG names the sets, section tune has the settings, which the
flags below override. Without grammar, language model and weights in CONFIG, the German-English model of the
package is tuned.

RUNDIR will contain weights.gz, chosen on the odd lines of the held-out set; weights.NN.gz of each epoch;
log.jsonl, with a line for each epoch; config.yaml; and files from which --resume continues an interrupted
run, with the same result. The chosen epoch and its BLEU on the even lines go to standard output."""
EPILOG = """\
examples:
  hiero tune -c experiment.yaml -o runs/mira --algorithm mira --epochs 15 -j 4
  hiero tune -c experiment.yaml -o runs/sparse --features rule_id,shape --algorithm iterselsgd --on train
  hiero tune -c experiment.yaml -o runs/mira --resume -j 8 --executor processes
  hiero tune -c experiment.yaml -o runs/big --executor dask://head:8786"""

# Help texts of the keys of ``tune``, by groups. Keys missing here have flags, too.
FLAGS: dict[str, dict[str, str]] = {
    "data": {
        "algorithm": "default sgd",
        "on": "set of data to learn from (default dev)",
        "sentences": "learn from a random sample of N of them (default 0: all)",
        "lm": "given (default), or jackknife: decode each shard with one estimated without its references",
        "folds": "language models estimated by --lm jackknife (default 10)",
        "leave_one_out": "line N is pair N of the index: leave out rules extracted only from it",
        "held_out": "set of data whose odd lines choose the epoch (default devtest, if there is one)",
    },
    "course": {
        "epochs": "passes over the data, or iterations (default: 10; mira and mert 15, pro and kbmira 25)",
        "kbest": "translations of each sentence (default: 100; mira 500, adagrad 200)",
        "unique": "list every string once (default)",
        "order": "of the sentences of a shard in an epoch (default: file; adagrad: shuffle)",
        "batch": "sentences of a mini-batch (default: 1; adagrad: 20)",
        "stale": "adagrad: threads do not wait for each other; the result is not reproducible",
        "start": "initial weights: zero (default), uniform, or a file",
        "freeze": "keep the initial weights of dense or sparse features (needs --update sentence)",
        "seed": "of the random numbers (default: that of CONFIG)",
    },
    "shards": {
        "shards": "parts of the data to learn from in parallel; 0: number that gives --shard-size",
        "shard_size": "sentences of a shard, about (default 1000)",
        "shuffle_shards": "assign sentences to shards at random: never, once (default), in each epoch",
        "mix": "average the weights of shards: never, in the end, or after each epoch",
        "by_sentences": "weight shards by their numbers of sentences when mixing (default for mira)",
        "select": "features kept when mixing; 0: all (default; iterselsgd: 100000)",
        "norm": "of a feature's weights over shards, by which it is selected (default l2)",
        "average": "result: the last weights, or an average (default epochs for sgd and mixsgd)",
    },
    "learning": {
        "metric": "sentence-level BLEU: liang, lin, ..., or previous: BLEU with the other sentences",
        "pairs": "translations compared: multipartite, all, pro (sampled)",
        "share": "fraction of the list that is good, and that is bad (multipartite; default 0.1)",
        "draws": "pairs drawn for a sentence (pro)",
        "keep": "pairs kept of them (pro)",
        "threshold": "smallest difference in the metric of a pair (pro)",
        "soft": "accept drawn pairs at random, larger differences more often (pro)",
        "length_deviations": "reject pairs whose lengths differ by more than X deviations (pro; 0: none)",
        "largest": "keep pairs with the largest differences (default), or those drawn first (pro)",
        "loss": "of a pair",
        "margin": "between the scores of a pair (default 1)",
        "by_gold": "scale the margin or the loss by the difference in the metric (default nothing)",
        "update": "after each pair, or after each sentence",
        "rate": "of learning (default: 1e-4; adagrad 0.02)",
        "decay": "of the rate (default none)",
        "decay_after": "sentences after which the rate falls (default 1000)",
        "epsilon": "adagrad: added to the root of summed squares (default 0)",
        "l1": "adagrad, pro: strength of regularisation (default: adagrad 0.1)",
    },
    "bins": {
        "neighbours": "penalise weights of neighbouring bins that are not linear, or not monotone",
        "beta": "strength of the penalty (default 1)",
        "gamma": "monotone: how sharply the penalty sets in where the order is violated (default 2)",
        "variant": "paper (default), or released: as in the program of the paper's authors",
    },
    "MIRA": {
        "c": "largest step (default 0.01)",
        "oracle": "translation to learn towards: local update, or hope (default)",
        "prediction": "translation to learn away from (default fear)",
        "scale": "factor of the metric beside the score of the model (default 1)",
    },
    "batch learners": {
        "history": "learn from the lists of the last N iterations (default 0: of all)",
        "peer": "pro: defaults as in cdec, in Moses, or in the paper of Hopkins and May",
        "l2": "pro: strength of regularisation (default 0.1)",
        "l2_previous": "pro: strength of regularisation towards the previous weights (default 0)",
        "interpolation": "pro: share of the new weights; the rest are the previous ones (default 1)",
        "iterations": "pro: steps of L-BFGS, or of Newton's method, at most (default 200)",
        "buffers": "pro: steps stored by L-BFGS (default 20)",
        "restarts": "mert: random points to start from (default 20; over hypergraphs 0)",
        "directions": "mert: random directions (default 15)",
        "passes": "kbmira: passes over the lists in an iteration (default 60)",
        "memory": "kbmira: decay of the BLEU statistics of earlier sentences (default 0.999)",
        "remembered": "kbmira: add the statistics of the hope (oracle; default), or of the model's best",
        "forest": "mert: over hypergraphs instead of lists",
        "beam": "mert --forest: keep derivations at most X below the best score (default 3)",
    },
}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Define ``hiero tune``."""
    command = subparsers.add_parser(
        "tune",
        help="learn the weights of a model",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = command.add_argument
    add("-c", "--config", metavar="CONFIG", required=True, help="YAML; see the README for its sections")
    add("-o", "--output", metavar="RUNDIR", type=Path, required=True, help="directory to write to")
    add("-j", "--threads", metavar="N", type=int, default=1, help="workers: threads or processes (default 1)")
    add(
        "--executor",
        metavar="WHERE",
        default="threads",
        help="threads (default), processes, or dask://HOST:PORT; the weights are the same",
    )
    add("--resume", action="store_true", help="continue the run in RUNDIR")
    add("--features", metavar="A,B,...", help="templates of features, as in hiero decode")
    add("--bins", metavar="FILE", help="bins in place of dense features, as in hiero decode")
    add("-q", "--quiet", action="store_true", help="write only errors to standard error")
    hints = typing.get_type_hints(TuneConfig)
    further = {key: "see the section tune" for key in hints if key not in _named()}
    for title, keys in (FLAGS | ({"further": further} if further else {})).items():
        group = command.add_argument_group(title)
        for key, text in keys.items():
            flag = f"--{key.replace('_', '-')}"
            group.add_argument(flag, dest=f"tune_{key}", help=text, **_kind(key, hints[key]))
    command.set_defaults(run=run)


def _named() -> set[str]:
    return {key for keys in FLAGS.values() for key in keys}


def _kind(key: str, hint: Any) -> dict[str, Any]:
    """Arguments of argparse for the value of a key, which has a type."""
    if key == "algorithm":
        return {"choices": tuple(ALGORITHMS)}
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        (hint,) = (member for member in typing.get_args(hint) if member is not type(None))
    if hint is bool:
        return {"action": argparse.BooleanOptionalAction}
    if typing.get_origin(hint) is typing.Literal:
        return {"choices": typing.get_args(hint)}
    if hint is str:
        return {"metavar": "NAME"}
    return {"type": hint, "metavar": "N" if hint is int else "X"}


def run(args: argparse.Namespace) -> int:
    if args.threads < 1:
        raise UsageError(f"argument -j: found {args.threads}, expected at least 1")

    from hiero.config.config import config_of
    from hiero.core.jit import compile_timer
    from hiero.core.records import read_settings
    from hiero.jobs.tune import Tuned, Tuning, with_keys
    from hiero.tuning.report import Table

    content = read_settings(args.config)
    # Absolute paths: workers may have other working directories.
    config = config_of({} if content is None else content, args.config, Path(args.config).resolve().parent)
    given = {field.name: getattr(args, f"tune_{field.name}") for field in dataclasses.fields(TuneConfig)}
    config = with_keys(config, {key: value for key, value in given.items() if value is not None})
    if args.features is not None:
        names = [name.strip() for name in args.features.split(",") if name.strip()]
        features = dataclasses.replace(config.features, templates=names)
        config = dataclasses.replace(config, features=features)
    if args.bins is not None:
        features = dataclasses.replace(config.features, bins=os.path.abspath(args.bins))
        config = dataclasses.replace(config, features=features)
    tuning = Tuning(config, args.config)
    if not args.quiet:
        compile_timer.on_first = lambda: print(
            "hiero: compiling for this machine; this takes up to a minute, once", file=sys.stderr
        )
    table = Table(tuning.settings, held_out=tuning.held_out is not None)
    try:
        with _TuneDisplay(table, quiet=args.quiet) as watch:
            tuned: Tuned = tuning.run(
                args.output,
                workers=args.threads,
                executor=args.executor,
                resume=args.resume,
                watch=watch,
            )
    except (KeyboardInterrupt, SystemError) as error:
        if not is_interrupt(error):
            raise
        start = "\n" if sys.stderr.isatty() else ""
        print(f"{start}hiero: interrupted; --resume continues the run", file=sys.stderr)
        return 130
    print(_summary(tuned, tuning.settings))
    return 0


def _summary(tuned: Any, settings: TuneSettings) -> str:
    """The chosen epoch, and its BLEU on odd and even lines."""
    record = tuned.chosen
    which = f"epoch {tuned.epoch} of {len(tuned.log)}: {tuned.weights}"
    if "report_bleu" not in record:
        return f"{which} (the last: nothing is held out)"
    odd = f"BLEU {record['choose_bleu']:.2f} (brevity {record['choose_brevity']:.3f}) on odd lines"
    even = f"BLEU {record['report_bleu']:.2f} (brevity {record['report_brevity']:.3f}) on even lines"
    return f"{which}: {odd} of {settings.held_out}, which chose it; {even}"


class _TuneDisplay(CommandProgress):
    """With a table of the epochs."""

    def __init__(self, table: Table, *, quiet: bool) -> None:
        super().__init__("tune", quiet=quiet)
        self._table = table

    def __enter__(self) -> _TuneDisplay:
        super().__enter__()
        return self

    def epoch(self, record: Mapping[str, Any]) -> None:
        self.record(self._table.row(record))
