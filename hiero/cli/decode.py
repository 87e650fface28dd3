"""``hiero decode``: translate lines."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hiero.adaptation.config import AdaptConfig
from hiero.cli.options import (
    add_classes,
    add_command,
    add_files,
    add_grammar_paths,
    add_quiet,
    add_settings,
    add_strict,
    add_threads,
    add_user_code,
    check_files,
    check_writable,
    classes_of,
    flag_of,
    overrides,
    replaced,
)
from hiero.config.sections import FeaturesSection
from hiero.core.errors import UsageError
from hiero.core.progress import CommandProgress
from hiero.decoder.config import ConsensusConfig, SearchConfig

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
  hiero decode -c model.yaml --mbr forest < input.txt > output.txt
  echo 'das ist gut . ||| this is good .' | hiero decode --force
  hiero decode -c model.yaml --terms glossary.tsv --hard-terms < input.txt > output.txt
  hiero decode -c model.yaml --format json --forest forests/ -i input.txt -o output.json --resume"""


FORMATS = "default: text, and cdec with --kbest; align: the links of words of the translation, 0-0 1-2"
OF_OUTPUT = ("input_format", "kbest", "unique")  # settings of the search
OF_CONSTRAINTS = ("markup", "copy")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero decode`` with its arguments."""
    command = add_command(subparsers, "decode", "translate text", DESCRIPTION, EPILOG)
    group = command.add_argument_group("model")
    add = group.add_argument
    add("-c", "--config", metavar="CONFIG", help="YAML configuration; options take precedence over it")
    add(
        "-g",
        "--grammar",
        metavar="GRAMMAR",
        action="append",
        help="text (plain or gz), compiled grammar or index; repeatable",
    )
    add(
        "-l", "--lm", metavar="[NAME=]LM", action="append", help="ARPA, KenLM probing or compiled; repeatable"
    )
    add_classes(group)
    add("-w", "--weights", metavar="WEIGHTS", help="file with a feature name and its weight on each line")
    add_settings(group, FeaturesSection, ("templates", "bins", "reordering"))
    add_user_code(group)
    group = command.add_argument_group("input and output")
    add = group.add_argument
    add("-i", "--input", metavar="IN", default="-", help="default: standard input; gz is recognised")
    add("-o", "--output", metavar="OUT", default="-", help="default: standard output; .gz compresses")
    add_settings(group, SearchConfig, OF_OUTPUT)
    add("--format", choices=["text", "align", "cdec", "moses", "json"], help=FORMATS)
    add_settings(group, FeaturesSection, ("cdec_names",))
    add("--forest", metavar="DIR", help="write the forest of each sentence into a directory, as N.json.gz")
    add("--forest-format", choices=["json", "json.gz", "npz"], default="json.gz", help="default: json.gz")
    add("--lattice", metavar="DIR", help="write a word lattice of each sentence into a directory")
    add(
        "--lattice-format",
        choices=["openfst", "plf"],
        default="openfst",
        help="N.fst.txt with N.syms, or N.plf (default: openfst)",
    )
    add(
        "--lattice-beam",
        metavar="X",
        type=float,
        default=1.0,
        help="leave out derivations whose scores, times --mbr-alpha, are more than X below the best "
        "(default 1)",
    )
    add(
        "--lattice-posterior",
        metavar="P",
        type=float,
        default=0.0,
        help="leave out arcs with a smaller posterior, but not those of the best path (default 0)",
    )
    add(
        "--raw",
        action="store_true",
        help="lines are raw text: prepare them, and join translations, by the section prep of the model",
    )
    add("--truecase", metavar="LIST", help="words with capitals, one a line, for translations of --raw")
    add_grammar_paths(group, "the directory of IN (the working directory without -i)")
    add("--stats", metavar="FILE.json", help="write counts, scores, times and memory")
    add_strict(group)
    add("--resume", action="store_true", help="continue an interrupted run of the same settings (with -o)")
    add_threads(group)
    add_quiet(group)
    add_settings(command.add_argument_group("search"), SearchConfig, without=OF_OUTPUT + OF_CONSTRAINTS)
    add_settings(command.add_argument_group("choice of translations"), ConsensusConfig)
    add_constraints(command)
    add_adaptation(command)
    command.set_defaults(run=run)
    add_files(command, "-i -c --hypotheses --terms --truecase", "-o --stats --forest --lattice")


def add_constraints(command: argparse.ArgumentParser) -> None:
    """Add the flags of decoding under constraints."""
    group = command.add_argument_group("constraints")
    add = group.add_argument
    add(
        "--force",
        action="store_true",
        help="find the derivations of given translations: lines are source ||| translation ||| ...",
    )
    add(
        "--hypotheses",
        metavar="FILE",
        help="--force with the translations of a file: a line for each sentence, a k-best list, or JSON",
    )
    add(
        "--prefix",
        action="store_true",
        help="complete given beginnings of translations: lines are source ||| beginning",
    )
    add(
        "--partial-word",
        action="store_true",
        help="--prefix whose last word may be incomplete, unless a space follows it",
    )
    add(
        "--terms",
        metavar="FILE",
        help="translations of terms, as further rules: source words, a tab, their translation (and perhaps a "
        "tab and a weight)",
    )
    add("--hard-terms", action="store_true", help="translate terms in no other way")
    add_settings(group, SearchConfig, OF_CONSTRAINTS)


def add_adaptation(command: argparse.ArgumentParser) -> None:
    """Add the flags of learning from post-edits."""
    group = command.add_argument_group("adaptation")
    group.add_argument(
        "--adapt",
        action="store_true",
        help="learn from post-edits: lines are source ||| post-edit, or JSON with source and post_edit",
    )
    add_settings(group, AdaptConfig, without=("kbest", "metric", "max_words"))


def _check_adaptation(args: argparse.Namespace) -> None:
    given = [flag_of(AdaptConfig, name) for name in overrides(args, AdaptConfig)]
    if given and not args.adapt:
        raise UsageError(f"argument {given[0]}: works with --adapt only")
    constrained = args.force or args.hypotheses or args.prefix or args.partial_word
    for flag, value in (("--resume", args.resume), ("--force or --prefix", constrained)):
        if args.adapt and value:
            raise UsageError(f"argument {flag}: not with --adapt, where each line depends on those before")
    if args.adapt and args.threads > 1:
        raise UsageError(
            "argument -j: found several threads, expected 1 with --adapt, a line after the other"
        )


def _check_raw(args: argparse.Namespace, config: Config) -> None:
    """Check what goes together with --raw."""
    if not args.raw:
        if args.truecase:
            raise UsageError("argument --truecase: requires --raw")
        return
    if config.prep is None:
        hint = "hiero run and hiero pack keep that of their configuration"
        raise UsageError(f"argument --raw: the model has no section prep ({hint})")
    style = args.format or ("cdec" if config.search.kbest else "text")
    if style not in ("text", "json"):
        raise UsageError(
            f"argument --raw: not with --format {style}, which has words (text and json have text)"
        )
    if config.search.input_format in ("plf", "json"):
        raise UsageError(f"argument --raw: not with --input-format {config.search.input_format}")
    if config.search.markup != "off":
        raise UsageError(
            f"argument --raw: not with --markup {config.search.markup} (tokenisers take tags apart)"
        )
    constrained = args.force or args.hypotheses or args.prefix or args.partial_word
    for flag, value in (("--force or --prefix", constrained), ("--adapt", args.adapt)):
        if value:
            raise UsageError(f"argument --raw: not with {flag}")


def run(args: argparse.Namespace) -> int:
    """Run ``hiero decode``; return the exit status."""
    if args.resume and args.output == "-":
        raise UsageError("argument --resume: requires -o OUT (standard output cannot be continued)")
    if args.stats == args.output == "-":
        raise UsageError("argument --stats: requires a file, since translations go to standard output")
    _check_adaptation(args)
    for path in (args.output, args.stats):
        check_writable(path)
    config = _config(args)
    if args.format in ("text", "align") and config.search.kbest:
        problem = f"{args.format} has no room for the translations of --kbest {config.search.kbest}"
        raise UsageError(f"argument --format: {problem} (cdec, moses and json have)")
    _check_raw(args, config)
    args.force, args.prefix = args.force or bool(args.hypotheses), args.prefix or args.partial_word
    if args.force and args.prefix:
        raise UsageError("argument --force: not with --prefix")
    if args.force and config.consensus.mbr != "none":
        raise UsageError("argument --force: not with --mbr, which chooses among translations")
    if (args.force or args.prefix) and (args.lattice or config.consensus.confidence):
        flag = "--lattice" if args.lattice else "--confidence"
        raise UsageError(f"argument {flag}: not with {'--force' if args.force else '--prefix'}")
    if config.consensus.confidence and args.format != "json":
        raise UsageError("argument --confidence: requires --format json")
    if not (args.lattice_beam >= 0 and 0 <= args.lattice_posterior <= 1):
        raise UsageError("argument --lattice-beam, --lattice-posterior: found less than 0, or more than 1")
    check_files(args, (("of the model", path) for path in config.model_files.values()))

    from hiero.jobs.adapt import AdaptJob
    from hiero.jobs.forced import ForcedJob, PrefixJob
    from hiero.jobs.resumable_output import is_complete
    from hiero.jobs.translate import Job, JobSettings

    if args.resume and is_complete(args.output):
        if not args.quiet:
            done = "the output is complete, nothing to resume (remove it to start again)"
            print(f"hiero: {args.output}: {done}", file=sys.stderr)
        return 0
    started = time.perf_counter()
    settings = JobSettings(
        input=args.input,
        output=args.output,
        style=args.format,
        forest=args.forest,
        forest_format=args.forest_format,
        lattice=args.lattice,
        lattice_format=args.lattice_format,
        lattice_beam=args.lattice_beam,
        lattice_posterior=args.lattice_posterior,
        threads=args.threads,
        resume=args.resume,
        allow_grammar_paths=args.allow_grammar_paths,
        raw=args.raw,
        truecase=args.truecase,
    )
    # No bar where the results themselves appear on the terminal.
    bar = not (args.output == "-" and sys.stdout.isatty())
    with CommandProgress("decode", quiet=args.quiet, bar=bar) as progress:
        job = Job(settings, config, progress)
        if args.force:
            job = ForcedJob(settings, config, progress, args.hypotheses)
        elif args.prefix:
            job = PrefixJob(settings, config, progress, partial=args.partial_word)
        elif args.adapt:
            job = AdaptJob(settings, config, progress)
        job.run()
    job.report()
    progress.say(job.summary(time.perf_counter() - started))
    if args.stats:
        job.write_statistics(args.stats, time.perf_counter() - started)
    return 0


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
    from hiero.config.model import with_bundled
    from hiero.config.sections import GrammarSection, LanguageModelSection, WeightsSection, with_classes

    config = read_config(args.config) if args.config else Config()
    if args.grammar:
        config = dataclasses.replace(config, grammar=[GrammarSection(path=path) for path in args.grammar])
    if args.lm:
        config = dataclasses.replace(config, lm=[LanguageModelSection(**_named(spec)) for spec in args.lm])
    if classes := classes_of(args):
        config = dataclasses.replace(config, lm=with_classes(config.lm, classes))
    if args.weights:
        config = dataclasses.replace(config, weights=WeightsSection(path=args.weights))
    config = dataclasses.replace(
        config,
        features=replaced(config.features, args),
        search=replaced(config.search, args),
        consensus=replaced(config.consensus, args),
        adapt=replaced(config.adapt, args),
    )
    if args.terms:
        config = dataclasses.replace(config, terms=args.terms)
    if args.hard_terms and config.terms is None:
        raise UsageError("argument --hard-terms: requires --terms FILE")
    config = dataclasses.replace(config, hard_terms=config.hard_terms or args.hard_terms)
    if config.is_bundled:
        config = with_bundled(config)
    return dataclasses.replace(config, strict=config.strict or args.strict)
