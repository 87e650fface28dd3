"""``hiero extract``, and ``hiero decode`` with an index as its grammar."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

from hiero.cli.main import main
from hiero.config.model import BUNDLED_LM, BUNDLED_WEIGHTS, bundled_path, load
from hiero.core.errors import ConfigError
from hiero.extraction.store import ENTRY, MAGIC, SEALED
from tests.naive import extract as naive
from tests.worlds.extract import write_files

PAIRS = [
    ("das alte haus", "the old house", "0-0 1-1 2-2"),
    ("das alte buch", "the old book", "0-0 1-1 2-2"),
    ("ein haus", "a house", "0-0 1-1"),
    ("er hat ein buch gelesen", "he has read a book", "0-0 1-1 2-3 3-4 4-2"),
]
SRC = "".join(f"{src}\n" for src, *_ in PAIRS)


def hiero(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def make_index(folder: Path, *, without_link: str = "") -> Path:
    """The index of the pairs above; ``without_link`` leaves out a link of the third one."""
    links = [
        [tuple(map(int, link.split("-"))) for link in line.split() if (number, link) != (2, without_link)]
        for number, (*_, line) in enumerate(PAIRS)
    ]
    bitext = naive.Bitext([src.split() for src, *_ in PAIRS], [tgt.split() for _, tgt, _ in PAIRS], [links])
    src, tgt, aligned = write_files(bitext, folder)
    assert hiero("index", "-q", "-s", src, "-t", tgt, "-a", aligned[0], "-o", folder / "x") == 0
    return folder / "x"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index for tests that do not modify it."""
    return make_index(tmp_path_factory.mktemp("index"))


def rules_in(path: Path) -> dict[str, str]:
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    return {" ||| ".join(line.split(" ||| ")[1:3]): line for line in lines}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_grammar_for_each_sentence(index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").write_text('das haus\n<seg id="k7" grammar="old">ein buch</seg> ||| a book\n\n')
    out = tmp_path / "grammars"
    assert hiero("extract", "-x", index, "-i", tmp_path / "in", "-o", out) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        f'<seg grammar="{out}/grammar.0.gz" id="0"> das haus </seg>',
        f'<seg grammar="{out}/grammar.1.gz" id="k7"> ein buch </seg> ||| a book',
        f'<seg grammar="{out}/grammar.2.gz" id="2">  </seg>',
    ]
    grammars = [rules_in(out / f"grammar.{number}.gz") for number in range(3)]
    assert captured.err == f"hiero extract: {sum(map(len, grammars))} rules\n"
    assert set(grammars[0]) >= {"das ||| the", "haus ||| house", "[X,1] haus ||| [X,1] house"}
    assert grammars[0]["haus ||| house"] == (
        "[X] ||| haus ||| house ||| EgivenFCoherent=0 SampleCountF=0.477121264 CountEF=0.477121264 "
        "MaxLexFgivenE=0 MaxLexEgivenF=0 IsSingletonF=0 IsSingletonFE=0 ||| 0-0"
    )
    assert grammars[2] == {}


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--leave-one-out",),
        ("--leave-one-out", "--leave-out-links"),
        ("--store", "kept"),
        ("--all",),
    ],
)
def test_output_does_not_depend_on_threads(
    options: tuple[str, ...],
    index: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hiero.extraction.write.BLOCK", 1)  # of four sentences, more than one
    (tmp_path / "in").write_text(SRC)
    found = []
    for threads in (1, 2, 1):
        folder = tmp_path / f"with{threads}"
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        source = ("-o", "one.gz") if "--all" in options else ("-i", "../in", "-o", "g")
        assert hiero("extract", "-x", index, *source, *options, "-j", threads) == 0
        made = contents(folder)
        if "--store" in options:  # stored in the order of threads
            assert made.pop("kept/000.index")
            assert made.pop("kept/000.rules")
        # Both threads may write at the same time.
        found.append(({k: v for k, v in made.items() if not k.startswith("kept/")}, capsys.readouterr()))
    assert found[0] == found[1] == found[2]
    assert sum(name.endswith(".gz") for name in found[0][0]) == (1 if "--all" in options else len(PAIRS))
    assert not any(name.endswith(".part") for name in found[0][0])


def test_standard_input(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"ein haus\n")))
    assert hiero("extract", "-q", "-x", index, "-i", "-", "-o", tmp_path / "g") == 0
    captured = capsys.readouterr()
    assert (captured.out.count("\n"), captured.err) == (1, "")
    assert "ein haus ||| a house" in rules_in(tmp_path / "g" / "grammar.0.gz")


def test_leave_one_out(index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "in", tmp_path / "g"
    command = ["extract", "-q", "-x", index, "-i", source, "-o", out, "--leave-one-out"]
    source.write_text(SRC)
    assert hiero(*command) == 0
    rules = rules_in(out / "grammar.2.gz")
    assert "ein haus ||| a house" not in rules
    assert "CountEF=0.30103001 " in rules["haus ||| house"]
    assert "ein ||| a" in rules  # of another sentence
    assert "er ||| he" not in rules_in(out / "grammar.3.gz")
    shutil.rmtree(out)
    capsys.readouterr()
    for content, message in (
        ("das alte haus\nhaus\n", "in:2: found another sentence, expected that of the bitext of"),
        ("haus\n", "in:1: found another sentence"),
        (SRC + "haus\n", "in:5: found a further sentence, expected that of the bitext of"),
    ):
        source.write_text(content)
        assert hiero(*command) == 1
        captured = capsys.readouterr()
        assert message in captured.err
        assert (captured.out, captured.err.count("\n")) == ("", 1)
        assert not out.exists()


def test_pairs_that_are_left_out_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = [("ein haus", "a house"), ("ein haus", "one house"), ("haus ein", "one house"), ("haus", "home")]
    for name, side in (("src", 0), ("tgt", 1)):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in pairs))
    (tmp_path / "align").write_text("0-0 1-1\n0-0 1-1\n0-1 1-0\n0-0\n")
    (tmp_path / "groups").write_text("\nx\ny\nx\n")
    bitext = ["-s", tmp_path / "src", "-t", tmp_path / "tgt", "-a", tmp_path / "align"]
    assert hiero("index", "-q", *bitext, "-o", tmp_path / "index") == 0
    command = ["extract", "-q", "-x", tmp_path / "index", "-i", tmp_path / "src", "--leave-one-out"]

    def translations(name: str, *options: Any) -> list[set[str]]:
        """Of haus in each sentence."""
        assert hiero(*command, "-o", tmp_path / name, *options) == 0
        found = [rules_in(tmp_path / name / f"grammar.{number}.gz") for number in range(4)]
        return [{rule.split()[-1] for rule in rules if rule.startswith("haus |||")} for rules in found]

    # The first and the third are in no group: they share no text.
    assert translations("equal") == [{"house", "home"}, {"home"}, {"house", "home"}, {"house"}]
    assert translations("pair", "--leave-out", "pair") == [{"house", "home"}] * 3 + [{"house"}]
    assert translations("file", "--leave-out", tmp_path / "groups") == [
        *({"house", "home"}, {"house"}, {"house", "home"}, {"house"})
    ]
    (tmp_path / "groups").write_text("x\n")
    capsys.readouterr()
    assert hiero(*command, "-o", tmp_path / "none", "--leave-out", tmp_path / "groups") == 1
    expected = f"groups: found 1 lines, expected 4, one for each pair of {tmp_path / 'index'}\n"
    assert capsys.readouterr().err.endswith(expected)


def test_one_grammar_for_all(index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("all", "all.gz"):
        assert hiero("extract", "-x", index, "--all", "-o", tmp_path / name, "--max-span", 3) == 0
    rules = rules_in(tmp_path / "all.gz")
    assert (tmp_path / "all").read_text().splitlines() == list(rules.values())
    assert "ein [X,1] gelesen ||| read a [X,1]" in rules
    assert "er hat ein [X,1] gelesen ||| he has read a [X,1]" not in rules
    assert f"{len(rules)} rules" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "x"], "requires either -i IN, --all or --phrases"),
        (["-o", "x", "--all", "-i", "y"], "requires either -i IN, --all or --phrases"),
        (["-o", "x", "--all", "--leave-one-out"], "argument --leave-one-out: not allowed with --all"),
        (["-o", "x", "--all", "--store", "y"], "argument --store: not allowed with --all"),
        (["-o", "x", "-i", "y", "--leave-out-links"], "--leave-out-links: requires --leave-one-out"),
        (["-o", "x", "-i", "y", "--leave-out", "pair"], "--leave-out: requires --leave-one-out"),
        (["-o", "x", "--all", "--max-gaps", "3"], "argument --max-gaps: found 3, expected 0 to 2"),
        (["-o", "x", "--all", "--category", "X Y"], "argument --category: found 'X Y', expected"),
        (["-o", "x", "--all", "--category", ""], "argument --category: found '', expected"),
    ],
)
def test_usage(options: list[str], message: str, index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hiero("extract", "-x", index, *options) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-i", "nothing"], "nothing: found no such file"),
        (["-i", "folder"], "folder: found a directory"),
        (["-i", "bad"], "bad:2: found '<seg a b'"),
        (["-i", "cut.gz"], "cut.gz:2: found the end of the file in the middle of compressed data"),
        (["--all", "-x", "good"], "good/meta.json: found"),
        (["--all", "-x", "nothing"], "nothing/meta.json: found no such file"),
        (["-i", "good", "-o", "bad"], "bad: found a file, expected a directory"),
        (["-i", "good", "--store", "good"], "good: found file exists, expected a directory"),
        (["--all", "-o", "folder"], "folder: found a directory, expected a writable path"),
        (["--all", "-o", "none/out"], "none/out: found no such file, expected a writable path"),
    ],
)
def test_errors_are_one_line(
    options: list[str],
    message: str,
    index: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "good").write_text("das haus\n")
    (tmp_path / "bad").write_text("a b\n<seg a b\n")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"das haus\n" * 50)[:-12])
    before = contents(tmp_path)
    assert hiero("extract", "-x", index, "-o", "g", *options) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(message)
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert contents(tmp_path) == before
    assert sorted(os.listdir()) == ["bad", "cut.gz", "folder", "good"]


# ---- cached rules


def test_cached_rules_are_used_and_never_stale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index, source, kept = make_index(tmp_path), tmp_path / "in", tmp_path / "kept"
    source.write_text("das haus\nein haus\n")

    def grammars(*options: object) -> list[bytes]:
        shutil.rmtree(tmp_path / "g", ignore_errors=True)
        assert hiero("extract", "-q", "-x", index, "-i", source, "-o", tmp_path / "g", *options) == 0
        return [gzip.decompress(path.read_bytes()) for path in sorted((tmp_path / "g").iterdir())]

    def with_store(*options: object) -> list[bytes]:
        return grammars("--store", kept, *options)

    index_of_store = kept / "000.index"

    def entries() -> list[bytes]:
        content = index_of_store.read_bytes()
        return [content[at : at + SEALED] for at in range(SEALED, len(content), SEALED)]

    plain = grammars()
    assert with_store() == plain
    (first, second), contents_before = entries(), contents(kept)
    assert with_store() == plain
    assert contents(kept) == contents_before
    # The cache is read: if its keys are swapped, the grammars are, too.
    swapped = second[:32] + first[32 : ENTRY.size], first[:32] + second[32 : ENTRY.size]
    sealed = b"".join(entry + zlib.crc32(entry).to_bytes(4, "little") for entry in swapped)
    index_of_store.write_bytes(MAGIC + sealed)
    assert with_store() == plain[::-1] != plain
    # Damaged rules are made again.
    index_of_store.write_bytes(contents_before["000.index"])
    (kept / "000.rules").write_bytes(contents_before["000.rules"][:-3])
    assert with_store() == plain
    assert len(entries()) == 3
    # Other settings have other rules, except for the label of gaps.
    for number, options in enumerate(
        [("--max-gaps", 0), ("--max-span", 1), ("--max-symbols", 1), ("--samples", 1)], 1
    ):
        assert with_store(*options) == grammars(*options)
        assert len(entries()) == 3 + 2 * number
    assert with_store("--category", "Y") == [text.replace(b"[X", b"[Y") for text in plain]
    assert with_store() == plain
    assert len(entries()) == 11
    # The same bitext with another alignment.
    make_index(tmp_path, without_link="1-1")
    assert with_store() == grammars() != plain
    assert len(entries()) == 13
    # Rules also depend on the sentence that is left out.
    source.write_text(SRC)
    assert with_store("--leave-one-out") == grammars("--leave-one-out") != with_store()


@pytest.mark.slow
@pytest.mark.heavy
def test_killed_and_run_again(tmp_path: Path) -> None:
    """Cached rules are found again, and existing files are complete."""
    files = [bundled_path(f"demo.train.{name}.gz") for name in ("de", "en", "align")]
    index, source = tmp_path / "x", tmp_path / "in"
    options = ["index", "-q", "-s", files[0], "-t", files[1], "-a", files[2], "-o", index]
    assert hiero(*options) == 0
    source.write_bytes(b"".join(gzip.decompress(files[0].read_bytes()).splitlines(keepends=True)[:500]))

    def command(folder: str, *more: str) -> list[str]:
        return [
            *(sys.executable, "-m", "hiero.cli.main", "extract", "-q", "-x", str(index), "-i", str(source)),
            *("-o", "g", "--leave-one-out", "-j", "2", "--store", f"{tmp_path}/{folder}/kept", *more),
        ]

    for folder in ("whole", "killed"):
        (tmp_path / folder).mkdir()
    whole = subprocess.run(command("whole"), cwd=tmp_path / "whole", capture_output=True, check=True)
    with subprocess.Popen(
        command("killed"), cwd=tmp_path / "killed", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        last = tmp_path / "killed" / "g" / "grammar.40.gz"
        deadline = time.monotonic() + 120
        while not last.exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
    expected, found = contents(tmp_path / "whole"), contents(tmp_path / "killed")
    assert sum(name.startswith("g/") for name in found) > 20
    for name, content in found.items():
        assert name.endswith((".part", ".lock")) or name.startswith("kept/") or content == expected[name]
    kept, whole_size = found["kept/000.index"], len(expected["kept/000.index"])
    assert 20 * SEALED < len(kept) < whole_size
    again = subprocess.run(command("killed"), cwd=tmp_path / "killed", capture_output=True, check=True)
    assert again.stdout == whole.stdout
    after = contents(tmp_path / "killed")
    # Of what was kept, nothing is made again.
    assert len(after["kept/000.index"]) == whole_size
    assert after["kept/000.index"].startswith(kept[: len(kept) // SEALED * SEALED])
    for files in (after, expected):
        del files["kept/000.index"], files["kept/000.rules"]  # in the order of threads
    assert after == expected


# ---- an index as a grammar


WEIGHTS = "EgivenFCoherent -1\nMaxLexFgivenE -0.2\nPassThrough -3\nGlue -0.1\n"
WEIGHTS += "SampleCountF 0\nCountEF 0\nMaxLexEgivenF 0\nIsSingletonF 0\nIsSingletonFE 0\n"


def assert_same_translations(
    index: Path, source: Path, folder: Path, capsys: pytest.CaptureFixture[str], *options: object
) -> list[str]:
    """Decode with an index and with the grammars extracted from it, and return the lines, which are equal."""
    assert hiero("extract", "-q", "-x", index, "-i", source, "-o", folder / "g") == 0
    (folder / "in.sgm").write_text(capsys.readouterr().out)
    (folder / "empty").write_text("")
    common = ["--kbest", "20", "-q", *options]
    outputs = []
    for more in (
        ("-g", index, "-i", source),
        ("-g", index, "-i", source, "-j", 2),
        ("-g", folder / "empty", "-i", folder / "in.sgm"),
    ):
        assert hiero("decode", *more, *common) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] == outputs[2]
    return outputs[0].splitlines()


def test_decoding_with_an_index_equals_decoding_with_its_grammars(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "w").write_text(WEIGHTS)
    (tmp_path / "in").write_text("das haus\n\ner hat ein altes haus gelesen\n")
    stats = tmp_path / "stats.json"
    lines = assert_same_translations(
        index, tmp_path / "in", tmp_path, capsys, "-w", tmp_path / "w", "--stats", stats
    )
    assert lines[0].startswith("0 ||| the house ||| ")
    assert any(line.startswith("2 ||| he has read a altes house ||| ") for line in lines)
    assert json.loads(stats.read_text())["extract_s"] >= 0


@pytest.mark.heavy
def test_the_same_with_the_bundled_bitext(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [bundled_path(f"demo.train.{name}.gz") for name in ("de", "en", "align")]
    index, source = tmp_path / "x", tmp_path / "in"
    assert hiero("index", "-q", "-s", files[0], "-t", files[1], "-a", files[2], "-o", index) == 0
    source.write_bytes(b"".join(bundled_path("demo.dev.de").read_bytes().splitlines(keepends=True)[:15]))
    model = ["-l", bundled_path(BUNDLED_LM), "-w", bundled_path(BUNDLED_WEIGHTS)]
    features = ["--features", "rule_id,source_bigram,shape"]
    lines = assert_same_translations(index, source, tmp_path, capsys, *model, *features)
    assert len(lines) > 100
    assert "R:X:" in lines[0]


def test_decoding_with_an_index_does_not_depend_on_threads(index: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("haus das\n" * 3 + SRC * 2)
    outputs = []
    for threads in (1, 2):
        out = tmp_path / f"out{threads}"
        assert hiero("decode", "-q", "-g", index, "-i", tmp_path / "in", "-o", out, "-j", threads) == 0
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1] != b""


def test_an_index_in_a_configuration(index: Path, tmp_path: Path) -> None:
    (tmp_path / "w").write_text(WEIGHTS)
    text = (
        f"grammar: [{{index: {index}, extract: {{max_gaps: 0, category: Y, store: kept}}}}]\n"
        "weights: {path: w}\nsearch: {category: Y}\n"
    )
    (tmp_path / "c.yaml").write_text(text)

    def translated(text: str) -> str:
        best = load(tmp_path / "c.yaml").translate(text)
        assert best is not None
        return best.text

    def kept() -> bytes:
        return (tmp_path / "kept" / "000.index").read_bytes()[SEALED:]

    assert translated("das alte buch") == "the old book"
    book = kept()
    assert translated("ein haus") == "a house"
    house = kept().removeprefix(book)
    assert len(book) == len(house) == SEALED
    (tmp_path / "c.yaml").write_text(text.replace("max_gaps: 0", "max_gaps: 0, max_symbols: 1"))
    assert translated("das alte buch") == "the old book"
    assert len(kept()) == 3 * SEALED
    # Cached rules are read as long as the settings are the same.
    changed = book[:32] + house[32 : ENTRY.size]
    changed += zlib.crc32(changed).to_bytes(4, "little")
    (tmp_path / "kept" / "000.index").write_bytes(MAGIC + changed + kept()[2 * SEALED :])
    assert translated("das alte buch") == "the old book"
    (tmp_path / "c.yaml").write_text(text)
    assert translated("das alte buch") == "das alte buch"


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"index": "{x}", "extract": {"sample": 3}}, "unknown key 'sample'; did you mean 'samples'"),
        ({"index": "{x}", "extract": {"samples": 0}}, "samples: found 0, expected 1 to 1000000"),
        ({"index": "{x}", "path": "{x}"}, "needs exactly one of path, index and per_sentence"),
        ({"path": "g", "extract": {"samples": 3}}, "extract needs an index"),
    ],
)
def test_invalid_configurations(section: dict[str, Any], message: str, index: Path) -> None:
    filled = {
        key: value.format(x=index) if isinstance(value, str) else value for key, value in section.items()
    }
    with pytest.raises(ConfigError, match=message):
        load({"grammar": [filled]}, weights={})


def test_rare_rules_may_be_left_out(index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for count in (1, 2, 3):
        options = ["--all", "-o", tmp_path / f"{count}.gz", "--min-count", count]
        assert hiero("extract", "-q", "-x", index, *options) == 0
    one, two, three = (rules_in(tmp_path / f"{count}.gz") for count in (1, 2, 3))

    def at_least(least: int) -> dict[str, str]:
        def count(line: str) -> int:
            return round(10 ** float(line.split("CountEF=")[1].split()[0])) - 1

        return {
            rule: line
            for rule, line in one.items()
            if count(line) >= least or len(rule.split(" ||| ")[0].split()) == 1
        }

    assert two == at_least(2)
    assert three == at_least(3)
    assert len(three) < len(two) < len(one)
    # Their cached rules are separate.
    (tmp_path / "in").write_text("das alte haus\n")
    sizes = []
    for count in (1, 2, 1, 2):
        options = ["-i", tmp_path / "in", "-o", tmp_path / "g", "--store", tmp_path / "kept"]
        assert hiero("extract", "-q", "-x", index, *options, "--min-count", count) == 0
        sizes.append(len(rules_in(tmp_path / "g" / "grammar.0.gz")))
    assert sizes[0] == sizes[2] > sizes[1] == sizes[3] > 0
    capsys.readouterr()
