"""``hiero init``: write a configuration to start from."""

from __future__ import annotations

import argparse
import os
import re
import sys
from functools import partial
from itertools import islice
from pathlib import Path

from hiero.cli.options import add_command, add_quiet
from hiero.core.errors import FormatError, UsageError
from hiero.core.text import read_lines, shipped_folder

DESCRIPTION = """\
Write a commented configuration for hiero run, with a bitext of your own, into a folder: from two text files
to a system and its scores. Nothing else is written but the file of weights that it names.

Without --paper, the configuration is that for raw text, whose languages are the endings of the files
(corpus.de, corpus.en.gz) or --languages; --tokenized leaves out the section prep, which splits it into words.
--paper NAME takes the settings of a paper, for text that is tokenized."""
EPILOG = """\
examples:
  hiero init --source corpus.de --target corpus.en --set dev dev.de dev.en --set test test.de test.en
  hiero init --source train.src.gz --target train.trg.gz --tokenized --set dev dev.src.gz dev.trg.gz
  hiero init experiments --source corpus.de --target corpus.en --paper 001-mira --set dev dev.de dev.en
  hiero run own-bitext.yaml -j 4"""
OWN, PAPER = "own-bitext", "paper-"
TRAIN = "train"
SIDES = (
    "src",
    "tgt",
    "trg",
    "ref",
    "raw",
    "tok",
    "txt",
    "out",
)  # endings of file names that name no language
SEEN_LINES = 1000  # of the source side, to tell whether it is tokenised


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero init`` with its arguments."""
    command = add_command(
        subparsers, "init", "write a configuration for a bitext of your own", DESCRIPTION, EPILOG
    )
    add = command.add_argument
    add(
        "folder",
        metavar="FOLDER",
        nargs="?",
        type=Path,
        default=Path(),
        help="default: the working directory",
    )
    add("--source", metavar="SRC", type=Path, required=True, help="source side of the bitext")
    add("--target", metavar="TGT", type=Path, required=True, help="its translations, line by line")
    add(
        "--set",
        metavar=("NAME", "SRC", "REF"),
        dest="sets",
        nargs=3,
        action="append",
        default=[],
        help="a set to translate and its reference translations; repeatable",
    )
    add = command.add_mutually_exclusive_group().add_argument
    add(
        "--languages",
        metavar=("SRC", "TGT"),
        nargs=2,
        type=_language_code,
        help="languages of raw text, such as de en (default: the endings of the files)",
    )
    text = "the texts have words with spaces between them: no section prep"
    add("--tokenized", action="store_true", help=text)
    add("--paper", metavar="NAME", help=f"settings of a paper: {', '.join(_papers())}")
    add_quiet(command)
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run ``hiero init``; return the exit status."""
    sets = {TRAIN: (args.source, args.target)}
    for name, source, target in args.sets:
        if name in sets:
            raise UsageError(f"argument --set: {name} is given twice")
        sets[name] = (Path(source), Path(target))
    for path in (path for pair in sets.values() for path in pair):
        if not path.is_file():
            raise FormatError(path, 0, found="no such file", expected="text, a sentence on each line")
    if args.paper is not None and args.paper not in _papers():
        raise UsageError(f"argument --paper: unknown paper {args.paper!r}; one of {', '.join(_papers())}")
    name = OWN if args.paper is None else f"{PAPER}{args.paper}"
    template = _template(f"{name}.yaml")
    if args.tokenized:
        template = _without_prep(template)
    if "\nprep:" in template:
        template = _with_languages(template, _languages(args))
        if not args.quiet and _looks_tokenized(args.source):
            print(
                f"hiero init: {args.source}: looks tokenized (then leave out prep by --tokenized)",
                file=sys.stderr,
            )
    text, missing = _filled(template, args.folder, sets)
    files = {f"{name}.yaml": text}
    if beside := re.search(r"^weights: \{path: ([\w.-]+)\}", text, re.MULTILINE):
        files[beside[1]] = _template(beside[1])
    _write(args.folder, files)
    if not args.quiet:
        path = args.folder / f"{name}.yaml"
        todo = f"enter the files of {', '.join(missing)} in it; then " if missing else ""
        print(f"hiero: {path} is written; {todo}hiero run {path} --dry-run shows the stages", file=sys.stderr)
    return 0


def _write(folder: Path, files: dict[str, str]) -> None:
    for name in files:
        if (folder / name).exists():
            raise FormatError(
                folder / name, 0, found="a file", expected="a new one (FOLDER names another place)"
            )
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def _template(name: str) -> str:
    return (shipped_folder("configs") / name).read_text(encoding="utf-8")


def _papers() -> list[str]:
    return sorted(path.stem.removeprefix(PAPER) for path in shipped_folder("configs").glob(f"{PAPER}*.yaml"))


# ---- the section data of a template

_SET = re.compile(r"  ([\w.-]+):")
_FILES = re.compile(r"(source|target|references): *(\[[^]]*\]|[^\s,}#]+)")


def _filled(template: str, folder: Path, sets: dict[str, tuple[Path, Path]]) -> tuple[str, list[str]]:
    """The text with the sets' files, and the names of sets that it needs and that are not given.

    A set that is not given keeps the names of its files where weights are learnt, which needs it, and becomes
    a comment elsewhere.
    """
    lines = template.splitlines()
    first = lines.index("data:") + 1
    last = next(i for i in range(first, len(lines) + 1) if i == len(lines) or re.match(r"\S", lines[i]))
    while last > first and not lines[last - 1].strip():
        last -= 1
    is_tuned = any(line.startswith("tune:") for line in lines)
    body, current, missing, seen = [], "", [], []
    for line in lines[first:last]:
        if match := _SET.match(line):
            current = match[1]
            seen.append(current)
            if current not in sets and is_tuned:
                missing.append(current)
        if current == TRAIN and line.lstrip().startswith("alignment:"):
            continue  # it is made
        if current in sets:
            line = _FILES.sub(partial(_entry, folder, sets[current]), line)
        elif current and is_tuned:
            line = _FILES.sub(_to_fill_in, line)
        elif current and line.startswith("  ") and not line.lstrip().startswith("#"):
            line = f"  # {line[2:]}"
        body.append(line)
    for name, (source, target) in sets.items():
        if name not in seen:
            files = f"source: {_path(source, folder)}, references: [{_path(target, folder)}]"
            body.append(f"  {name}: {{{files}}}")
    return "\n".join([*lines[:first], *body, *lines[last:]]) + "\n", missing


def _to_fill_in(found: re.Match[str]) -> str:
    return f"{found[1]}: {Path(found[2].strip('[]')).name}"


def _entry(folder: Path, files: tuple[Path, Path], found: re.Match[str]) -> str:
    path = _path(files[found[1] != "source"], folder)
    return f"{found[1]}: [{path}]" if found[2].startswith("[") else f"{found[1]}: {path}"


def _path(path: Path, folder: Path) -> str:
    """The path relative to the folder, quoted for YAML where it is needed."""
    text = Path(os.path.relpath(path, folder)).as_posix()
    return text if re.fullmatch(r"[\w./-]+", text) else "'" + text.replace("'", "''") + "'"


# ---- the section prep


def _language_code(text: str) -> str:
    if not re.fullmatch(r"[a-z]{2,3}(-[A-Za-z]+)?", text):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a code of a language such as de")
    return text


def _languages(args: argparse.Namespace) -> tuple[str, str]:
    if args.languages is not None:
        return args.languages[0], args.languages[1]
    for path in (args.source, args.target):
        if not _language(path):
            raise UsageError(
                f"found no language in the name of {path}: --languages SRC TGT names them, "
                "and --tokenized is for text that is split into words"
            )
    return _language(args.source), _language(args.target)


def _language(path: Path) -> str:
    """The language that the name of a file ends in: de for train.de and train.de.gz."""
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    return suffix[1:] if re.fullmatch(r"\.[a-z]{2,3}", suffix) and suffix[1:] not in SIDES else ""


def _with_languages(template: str, languages: tuple[str, str]) -> str:
    for side, language in zip(("source", "target"), languages, strict=True):
        template = re.sub(rf"^(  {side}_language:) \w+", rf"\1 {language}", template, flags=re.MULTILINE)
    return template


def _without_prep(template: str) -> str:
    """The template without the section and the comments before it."""
    return re.sub(r"(^#.*\n)*^prep:.*\n(^ .*\n)*\n?", "", template, flags=re.MULTILINE)


def _looks_tokenized(path: Path) -> bool:
    from hiero.evaluation.corpus_metrics import look_tokenized

    return look_tokenized([line.decode(errors="replace") for line in islice(read_lines(path), SEEN_LINES)])
