"""The commands that pages show run, in a directory with the files that they name, and write what is shown.

A page's commands run one after the other. A new page needs nothing here if the files that it reads are among
those of ``files``, or if its own commands make them.
"""

from __future__ import annotations

import gzip
import re
import shutil
from pathlib import Path

import pytest
import yaml

from hiero.cli.main import main
from tests.worlds import console

pytestmark = [pytest.mark.slow, pytest.mark.heavy, pytest.mark.once]

PROJECT = Path(__file__).parents[2]
PAGES = [
    path.relative_to(PROJECT).as_posix()
    for path in (PROJECT / "README.md", *sorted(PROJECT.glob("docs/**/*.md")))
]

# Commands that do not run here, by their beginnings, and why.
SKIPPED = {
    "python3 -m venv": "installs packages; .ci/run does the same",
    "pip install": "installs packages",
    "dask ": "starts a cluster; tests/tuning has tests with one",
    "sbatch ": "needs SLURM",
    "hiero tune -c experiment.yaml -o /shared/": "needs a cluster",
    "hiero tune -c /shared/": "needs a cluster",
    "hiero serve": "serves until it is stopped; tests/server has the requests of the page",
    "curl ": "asks a server; tests/server has the requests of the page",
    "hiero run ~/data/own-bitext.yaml -j 4": "as configs/demo.yaml, which runs, with other files",
    "hiero run sgd/": "an experiment of minutes; its --dry-run runs",
    "hiero run selection/": "an experiment of minutes; its --dry-run runs",
    "hiero run mira/": "an experiment of minutes; its --dry-run runs",
    "hiero run adagrad/": "an experiment of minutes; its --dry-run runs",
    "hiero run bins/": "an experiment of minutes; its --dry-run runs",
    "hiero run orientation/": "an experiment of minutes; its --dry-run runs",
    "hiero tune -c mira/": "needs the index of the run before",
    "hiero tune -c adagrad/": "needs the index of the run before",
}
# Commands whose output on the page is that of other data: it has the same headings.
OTHER_DATA = ("hiero tune -c experiment.yaml", "hiero bins show")


def lines(name: str, number: int | None = None) -> list[str]:
    path = PROJECT / "grammars" / name
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return text.decode().splitlines()[:number]


def write(path: Path, text: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in text), encoding="utf-8")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the files that pages name: texts, a grammar, a model and configurations."""
    folder = tmp_path_factory.mktemp("files")
    shutil.copytree(PROJECT / "grammars", folder / "grammars")
    shutil.copytree(PROJECT / "configs", folder / "configs")
    for language in ("de", "en"):
        train = lines(f"demo.train.{language}.gz")
        for name in ("train", "corpus", "raw"):
            write(folder / f"{name}.{language}", train[:500])
        for name in ("dev", "devtest", "test"):
            write(folder / f"{name}.{language}", lines(f"demo.{name}.{language}", 10))
        write(folder / f"new.{language}", lines(f"demo.test.{language}", 10))
    write(folder / "input.de", lines("demo.dev.de", 4))
    write(folder / "input.txt", lines("demo.dev.de", 4))
    write(folder / "reference.en", lines("demo.dev.en", 4))
    write(
        folder / "input.sgm",
        [f'<seg id="{n}">{line}</seg>' for n, line in enumerate(lines("demo.dev.de", 4))],
    )
    write(folder / "glossary.tsv", ["ein buch\ta volume", "haus\tresidence\t2.5"])
    page = (PROJECT / "docs" / "constraints.md").read_text(encoding="utf-8")
    write(folder / "sentences.jsonl", re.findall(r"^(?:\{\"source|<seg).*$", page, re.MULTILINE)[:3])
    write(folder / "moses.gz.txt", ["haus [X] ||| house [X] ||| 0.5 0.4 0.3 0.2 ||| 0-0 ||| 4 5 2"])
    write(
        folder / "grammar.txt",
        [
            " ||| ".join([*fields[:3], f"{fields[3]} MyColumn={number % 7}.5", *fields[4:]])
            for number, fields in enumerate(rule.split(" ||| ") for rule in lines("demo.grammar.gz"))
        ],
    )
    for source, packed in (("moses.gz.txt", "moses.gz"), ("grammar.txt", "grammar.gz")):
        (folder / packed).write_bytes(gzip.compress((folder / source).read_bytes(), 1))
    for name in ("lm.arpa.gz", "weights"):
        shutil.copy(PROJECT / "grammars" / f"demo.{name}", folder / name)
    model = {"grammar": [{"path": "grammar.gz"}], "lm": [{"path": "lm.arpa.gz"}]}
    sets = {
        name: {"source": f"{name}.de", "references": [f"{name}.en"]} for name in ("dev", "devtest", "test")
    }
    for name, content in {
        "model.yaml": {**model, "weights": {"path": "weights"}},
        "experiment.yaml": {**model, "data": sets, "tune": {"epochs": 2}},
        "raw.yaml": {
            **model,
            "weights": {"path": "weights"},
            "prep": {"source_language": "de", "target_language": "en"},
        },
        "run.yaml": {**model, "data": sets, "weights": {"path": "weights"}},
    }.items():
        (folder / name).write_text(yaml.safe_dump(content), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for command in (
            "align -q -s train.de -t train.en -o train.align",
            "run -q run.yaml -o demo.run",
            "run -q run.yaml -o other.run",
        ):
            assert main(command.split()) == 0
    shutil.copytree(folder / "demo.run", folder / "multi30k.run")
    return folder


@pytest.mark.parametrize("page", PAGES)
def test_console_blocks(page: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = list(console.commands(PROJECT / page))
    if not shown:
        pytest.skip("no console block")
    work = tmp_path / "work"
    shutil.copytree(files, work)
    monkeypatch.chdir(work)
    if page != "README.md":  # which shows scores of the whole sets
        for path in work.glob("grammars/demo.*.[de][en]"):
            write(path, path.read_text(encoding="utf-8").splitlines()[:20])
    for command in shown:
        if command.text.startswith(tuple(SKIPPED)) and not command.text.endswith("--dry-run"):
            continue
        where = f"{page}:{command.line}: {command.text}"
        try:
            output = console.run(command.text, tmp_path)
        except (AssertionError, SystemExit, OSError) as error:
            pytest.fail(f"{where}\n{error}\n(files that pages name: fixture 'files'; exceptions: SKIPPED)")
        if command.output and command.text.startswith(OTHER_DATA):
            assert _words(command.output[0]) in map(_words, f"{output.out}\n{output.err}".split("\n")), where
        elif command.output and not console.shown(output.out, command.output):
            pytest.fail(f"{where}\nwrote:\n{output.out}")


def _words(line: str) -> str:
    """The beginning of a line without its numbers."""
    return " ".join(re.sub(r"[-+\d.,]+", "", line).split())[:40]


def test_nothing_is_skipped_that_no_page_has() -> None:
    shown = [command.text for page in PAGES for command in console.commands(PROJECT / page)]
    assert [text for text in SKIPPED if not any(command.startswith(text) for command in shown)] == []


def test_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert console.run("echo 'a  b' > x && echo c  # d", tmp_path).out == "c\n"
    assert Path("x").read_text() == "a  b\n"
    with pytest.raises(AssertionError, match="exit code 1"):
        console.run("hiero decode -q -i nothing", tmp_path)
    assert console.shown("a 1\nb\n", ["a ...", "b"])
    assert console.shown("a\nb\n", ["a", "...", "b", "..."])
    assert not console.shown("a 1\nb\n", ["a", "b"])
    assert not console.shown("a\nb\n", ["a"])
