"""``hiero decode``: translate lines."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hiero.cli.progress import CommandProgress
from hiero.core.errors import FormatError, UsageError
from hiero.decoder.config import MOST, SearchConfig

if TYPE_CHECKING:
    from hiero.config.config import Config


DESCRIPTION = """\
Translate sentences, a line each: plain words, or <seg id="7" grammar="g.7.gz">words</seg>, whose grammars
are added for that sentence. The output has a line for each input line, in the same order.

Without a grammar, language model and weights, the bundled German-English model is used."""
EPILOG = """\
examples:
  echo 'er hat mir ein buch versprochen .' | hiero decode
  hiero decode -g grammar.gz -l lm.arpa.gz -w weights -i input.txt -o output.txt -j 4
  hiero decode -c model.yaml --kbest 100 --features rule_id,shape < input.sgm > kbest.txt
  hiero decode -c model.yaml --format json --forest forests/ -i input.txt -o output.json --resume"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Define ``hiero decode``."""
    command = subparsers.add_parser(
        "decode",
        help="translate text",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = command.add_argument_group("model").add_argument
    add("-c", "--config", metavar="CONFIG", help="YAML configuration; options take precedence over it")
    add(
        "-g",
        "--grammar",
        metavar="GRAMMAR",
        action="append",
        help="text (plain or gz), compiled grammar or index; repeatable",
    )
    add(
        "-l",
        "--lm",
        metavar="[NAME=]LM",
        action="append",
        help="ARPA, KenLM probing binary or compiled; repeatable",
    )
    add("-w", "--weights", metavar="WEIGHTS", help="file with a feature name and its weight on each line")
    add(
        "--features",
        metavar="A,B,...",
        help="rule_id, source_bigram, target_bigram, shape, lexical, insertion_pair, source_word_penalty, "
        "arity, span_size, cdec's names for them, or your own as MODULE:NAME",
    )
    add("--bins", metavar="FILE", help="bins that replace dense features, from hiero bins learn")
    add(
        "--reordering",
        metavar="MODEL",
        action="append",
        help="orientation model of hiero reorder train; repeatable, one of each kind",
    )
    add = command.add_argument_group("input and output").add_argument
    add("-i", "--input", metavar="IN", default="-", help="default: standard input; gz is recognised")
    add(
        "-o",
        "--output",
        metavar="OUT",
        default="-",
        help="default: standard output; compressed if it ends in .gz",
    )
    add("--kbest", metavar="K", type=_at_least(0), help="list the K best translations of each sentence")
    add("--unique", action=argparse.BooleanOptionalAction, help="list every string once (default)")
    add("--format", choices=["text", "cdec", "moses", "json"], help="default: text, and cdec with --kbest")
    add(
        "--cdec-names",
        action="store_true",
        default=None,
        help="write features under cdec's names, some of which several features share",
    )
    add("--forest", metavar="DIR", help="write the forest of each sentence into a directory, as N.json.gz")
    add("--forest-format", choices=["json", "json.gz", "npz"], default="json.gz", help="default: json.gz")
    add("--stats", metavar="FILE.json", help="write counts, scores, times and memory")
    add(
        "--resume",
        action="store_true",
        help="continue an interrupted run with the same settings (requires -o)",
    )
    add("-j", "--threads", metavar="N", type=_at_least(1), default=1, help="threads (default 1)")
    add("-q", "--quiet", action="store_true", help="nothing on standard error but errors")
    add = command.add_argument_group("search").add_argument
    add("--span-limit", metavar="N", type=_at_least(1), help="longest span of a rule (default 15)")
    add(
        "--pop-limit",
        metavar="N",
        type=_at_least(0),
        help="candidates popped per span and category (default 200); 0: all",
    )
    add(
        "--pass-through",
        choices=["all", "oov", "none"],
        help="source words that may be copied to the translation (default all)",
    )
    add("--oov", choices=["copy", "drop", "mark"], help="treatment of words without a rule (default copy)")
    add(
        "--glue",
        action=argparse.BooleanOptionalAction,
        help="join partial translations left to right (default)",
    )
    add("--goal", metavar="LABEL", help="category of a whole sentence (default S)")
    add("--category", metavar="LABEL", help="category that glue rules join (default X)")
    add(
        "--max-edges",
        metavar="N",
        type=_at_least(1),
        help="limit of edges in an exhaustive search (default 50,000,000)",
    )
    command.set_defaults(run=run)


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if not least <= value <= MOST:
            raise argparse.ArgumentTypeError(f"found {text!r}, expected a whole number of at least {least}")
        return value

    return number


def run(args: argparse.Namespace) -> int:
    if args.resume and args.output == "-":
        raise UsageError("argument --resume: requires -o OUT (standard output cannot be continued)")
    if args.stats == args.output == "-":
        raise UsageError("argument --stats: requires a file, since translations go to standard output")
    for path in (args.output, args.stats):
        _check_writable(path)
    config = _config(args)
    _check_distinct(args, config)

    from hiero.core.jit import compile_timer
    from hiero.jobs.translate import Job, JobSettings

    if not args.quiet:
        compile_timer.on_first = lambda: print(
            "hiero: compiling for this machine; this takes up to a minute, once", file=sys.stderr
        )
    started = time.perf_counter()
    settings = JobSettings(
        input=args.input,
        output=args.output,
        style=args.format,
        forest=args.forest,
        forest_format=args.forest_format,
        threads=args.threads,
        resume=args.resume,
    )
    # No bar where the results themselves appear on the terminal.
    bar = not (args.output == "-" and sys.stdout.isatty())
    with CommandProgress("decode", quiet=args.quiet, bar=bar) as progress:
        job = Job(settings, config, progress)
        job.run()
    job.report()
    if args.stats:
        job.write_statistics(args.stats, time.perf_counter() - started)
    return 0


def _check_writable(path: str | None) -> None:
    """Check that a result can be written, before the work is done."""
    if path is None or path == "-":
        return
    folder = Path(path).parent
    found = ""
    if Path(path).is_dir():
        found = "a directory"
    elif not folder.is_dir():
        found = "no such directory"
    elif not os.access(path if Path(path).exists() else folder, os.W_OK):
        found = "no write permission"
    if found:
        raise FormatError(path, 0, found=found, expected="a file that can be written")


def _check_distinct(args: argparse.Namespace, config: Config) -> None:
    """Refuse outputs that would overwrite an input or another output."""
    taken = [("-i", args.input), ("-c", args.config)]
    taken += [("of the model", path) for path in config.model_files]
    for flag, path in (("-o", args.output), ("--stats", args.stats)):
        for other, used in taken:
            if path and used and "-" not in (path, used) and _same_file(path, used):
                raise UsageError(f"argument {flag}: {path} is also the file {other}")
        taken.append((flag, path))


def _same_file(one: str, other: str) -> bool:
    if not (os.path.exists(one) and os.path.exists(other)):
        return os.path.abspath(one) == os.path.abspath(other)
    return Path(one).is_file() and os.path.samefile(one, other)


def _named(spec: str) -> dict[str, Any]:
    """Parse ``[NAME=]PATH``; an existing path may contain ``=``."""
    name, equals, path = spec.partition("=")
    if not equals or Path(spec).exists():
        return {"path": spec}
    if not path or not name:
        raise UsageError(f"argument -l: found {spec!r}, expected NAME=PATH or PATH")
    return {"path": path, "name": name}


def _config(args: argparse.Namespace) -> Config:
    """The configuration, with the given options replacing its settings."""
    from hiero.config.config import Config, read_config
    from hiero.config.load import with_bundled
    from hiero.config.sections import GrammarSection, LanguageModelSection, WeightsSection
    from hiero.core.records import record

    config = read_config(args.config) if args.config else Config()
    if args.grammar:
        config = dataclasses.replace(config, grammar=[GrammarSection(path=path) for path in args.grammar])
    if args.lm:
        config = dataclasses.replace(config, lm=[LanguageModelSection(**_named(spec)) for spec in args.lm])
    if args.weights:
        config = dataclasses.replace(config, weights=WeightsSection(path=args.weights))
    features: dict[str, Any] = {}
    if args.features is not None:
        features["templates"] = [name.strip() for name in args.features.split(",") if name.strip()]
    if args.bins is not None:
        features["bins"] = args.bins
    if args.cdec_names is not None:
        features["cdec_names"] = args.cdec_names
    if args.reordering:
        features["reordering"] = args.reordering
    config = dataclasses.replace(config, features=dataclasses.replace(config.features, **features))
    given = {f.name: getattr(args, f.name) for f in dataclasses.fields(SearchConfig) if hasattr(args, f.name)}
    given = {name: value for name, value in given.items() if value is not None}
    config = dataclasses.replace(
        config, search=record(SearchConfig, dataclasses.asdict(config.search) | given, "search")
    )
    if config.is_bundled:
        config = with_bundled(config)
    return config
