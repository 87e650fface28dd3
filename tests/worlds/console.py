"""The console blocks of a page, and a shell that runs their commands in this process."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hiero.cli.main import main

BLOCK = re.compile(r"^( *)```console\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
PUNCTUATION = {"|", "<", ">", ">>", "&&", "&", ";", "(", ")"}


class Command(NamedTuple):
    """A command of a block, the lines of output that the page shows, and where it stands."""

    text: str
    output: list[str]
    line: int


def commands(page: Path) -> Iterator[Command]:
    """The commands of all console blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(2)) + 1
        found: Command | None = None
        lines = block[2].removesuffix("\n").split("\n")
        for number, line in enumerate((line.removeprefix(block[1]) for line in lines), first):
            if line.startswith("$ "):
                if found is not None:
                    yield found
                found = Command(line[2:], [], number)
            elif found is None:
                raise AssertionError(f"{page.name}:{number}: found {line!r}, expected a command, '$ ...'")
            elif found.text.endswith("\\"):
                found = found._replace(text=f"{found.text[:-1]}{line.strip()}")
            else:
                found.output.append(line)
        if found is not None:
            yield found


class Output(NamedTuple):
    """What a command writes to standard output, and to standard error."""

    out: str
    err: str


def run(text: str, home: Path) -> Output:
    """Run a command in the working directory.

    text  ``hiero ...``, or ``echo TEXT | hiero ...``, with ``< FILE``, ``> FILE`` and ``&& COMMAND``
    home  the directory ``~``
    """
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, "#"
    written = [_pipeline(words, home) for words in _divided(list(lexer), "&&")]
    return Output("".join(one.out for one in written), "".join(one.err for one in written))


def shown(output: str, expected: list[str]) -> bool:
    """Whether an output is that of the page, whose ``...`` stand for anything."""
    lines = [
        "(?:.*\n)*?" if line == "..." else ".*?".join(map(re.escape, re.split(r" ?\.\.\. ?", line))) + "\n"
        for line in expected
    ]
    return re.fullmatch("".join(lines), output) is not None


def _divided(words: list[str], at: str) -> Iterator[list[str]]:
    part: list[str] = []
    for word in [*words, at]:
        if word == at:
            yield part
            part = []
        else:
            part.append(word)


def _pipeline(words: list[str], home: Path) -> Output:
    written = Output("", "")
    for part in _divided(words, "|"):
        written = _run(part, written.out, home)
    return written


def _run(words: list[str], given: str, home: Path) -> Output:
    program, arguments, files = words[0], [], {}
    rest = iter(words[1:])
    for word in rest:
        if word in ("<", ">"):
            files[word] = next(rest)
        else:
            assert word not in PUNCTUATION, f"{word} is not for this shell"
            arguments.append(f"{home}{word[1:]}" if word.startswith("~") else word)
    if program == "echo":
        out, err = " ".join(arguments) + "\n", ""
    else:
        assert program == "hiero", f"{program} is not for this shell"
        if "<" in files:
            given = Path(files["<"]).read_text(encoding="utf-8")
        out, err = _hiero(arguments, given)
    if ">" in files:
        Path(files[">"]).write_text(out, encoding="utf-8")
        out = ""
    return Output(out, err)


def _hiero(arguments: list[str], given: str) -> tuple[str, str]:
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(given.encode()), encoding="utf-8")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(arguments)
    finally:
        sys.stdin = stdin
    written = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    assert code == 0, f"hiero {' '.join(arguments)}: exit code {code}\n{written[1]}"
    return written[0], written[1]
