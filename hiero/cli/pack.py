"""``hiero pack``: models as single files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hiero.cli.options import add_command, add_files, add_quiet
from hiero.core.errors import FormatError, UsageError
from hiero.core.progress import CommandProgress

if TYPE_CHECKING:
    from hiero.config.package import Package

DESCRIPTION = """\
Pack a model into one file, with a model card: its grammars or index, language models, weights, bins and
orientation models, and their digests. hiero decode -c MODEL.hiero and hiero.load("MODEL.hiero") use it.

SOURCE is the directory of a hiero run, whose scores are written into the card, or the configuration of a
model. Features in Python are not packed; whoever uses the model must have their modules."""
EPILOG = """\
examples:
  hiero pack multi30k.run -o de-en.hiero --name "German-English captions" --licence CC-BY-4.0
  hiero pack --show de-en.hiero
  hiero decode -c de-en.hiero -i test.de"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero pack`` with its arguments."""
    command = add_command(subparsers, "pack", "pack a model into one file", DESCRIPTION, EPILOG)
    add = command.add_argument
    add(
        "source",
        metavar="SOURCE",
        help="directory of a run, or configuration; with --show, --extract a package",
    )
    add(
        "-o", "--output", metavar="OUT", help="file to write, such as de-en.hiero; with --extract a directory"
    )
    add("--name", help="of the model, for the card (default: that of SOURCE)")
    add("--licence", metavar="TEXT", default="not stated", help="of the model and its data, for the card")
    add("--description", metavar="TEXT", default="", help="a paragraph for the card")
    add("--show", action="store_true", help="show the card and the files of a package")
    add("--extract", action="store_true", help="unpack a package into a new directory")
    add_quiet(command)
    command.set_defaults(run=run)
    add_files(command, "SOURCE", "-o")


def run(args: argparse.Namespace) -> int:
    """Run ``hiero pack``; return the exit status."""
    if args.show and (args.extract or args.output):
        raise UsageError("argument --show: not allowed with --extract and -o")
    if not args.show and args.output is None:
        raise UsageError("argument -o is missing")

    from hiero.config.package import CARD, extract_package, read_package

    if args.show:
        package = read_package(args.source)
        sys.stdout.write(_text_of(package, CARD))
        return 0
    if args.extract:
        package, folder = read_package(args.source), Path(args.output)
        if folder.exists():
            raise UsageError(f"argument -o: {folder} exists")
        with CommandProgress("pack", quiet=args.quiet) as progress:
            extract_package(package, folder, progress)
        progress.say(f"{folder} is complete")
        return 0
    return _pack(args)


def _pack(args: argparse.Namespace) -> int:
    from hiero.config.config import read_config
    from hiero.jobs.card import model_card
    from hiero.jobs.pack import write_package
    from hiero.pipeline.run import MODEL

    source = Path(args.source)
    is_run = source.is_dir()
    if is_run and not (source / MODEL).is_file():
        raise FormatError(
            source, 0, found=f"no {MODEL}", expected="the directory of a hiero run that is complete"
        )
    config = read_config(source / MODEL if is_run else source)
    name = args.name or source.name.removesuffix(".run").removesuffix(".yaml")
    card = model_card(name, args.description, args.licence, config, source if is_run else None)
    with CommandProgress("pack", quiet=args.quiet) as progress:
        package = write_package(
            config, args.output, name=name, licence=args.licence, card=card, progress=progress
        )
    total = sum(size for size, _ in package.files.values())
    progress.say(f"{args.output} has {len(package.files)} files, {total / 1e6:.1f} MB unpacked")
    return 0


def _text_of(package: Package, entry: str) -> str:
    import zipfile

    with zipfile.ZipFile(package.path) as archive:
        card = archive.read(entry).decode(errors="replace")
    rows = "".join(f"{size:14,}  {name}\n" for name, (size, _) in sorted(package.files.items()))
    return f"{card}\n{rows}"
