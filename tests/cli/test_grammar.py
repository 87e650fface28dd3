"""``hiero grammar``, compiled grammars on disk, and their error messages."""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from benchmarks.mutants import reseal
from hiero.cli import grammar as cli
from hiero.core.errors import FormatError, HieroError, UsageError
from hiero.core.symbols import Symbols
from hiero.grammar.compiled import GRAMMAR, read_compiled
from hiero.grammar.sources import open_grammar, read_grammar
from tests.worlds.grammars import rules_of

TEXT = """[X] ||| a [X,1] ||| [1] b ||| F=1 G=2 ||| 0-1
[X] ||| a ||| c ||| F=0.5
[S] ||| [X,1] ||| [1] ||| F=1 rare=3
"""


def run(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    cli.add_parser(parser.add_subparsers())
    return cli.run(parser.parse_args(["grammar", *map(str, arguments)]))


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "g.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    return path


@pytest.fixture
def compiled(text, tmp_path):
    assert run("compile", text, tmp_path / "out") == 0
    return tmp_path / "out"


def test_compile_several_into_one(text, tmp_path, capsys):
    more = tmp_path / "more"
    more.write_text("a [X] ||| d [X] ||| 0.1 ||| 0-0\n")
    assert run("compile", text, more, tmp_path / "out") == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "4 rules" in err
    symbols = Symbols()
    assert [rule[2] for rule in rules_of(read_grammar(tmp_path / "out", symbols), symbols)][1:] != []
    meta = json.loads((tmp_path / "out" / "meta.json").read_text())
    assert meta["rules"] == 4
    assert [source["name"] for source in meta["sources"]] == ["g.gz", "more"]
    assert len(meta["sources"][0]["sha256"]) == 64
    assert not (tmp_path / "out.part").exists()


def test_only_compiled_grammars_are_overwritten(text, compiled, tmp_path):
    assert run("compile", compiled, text, compiled) == 0
    assert open_grammar(compiled, Symbols()).grammar.num_rules == 6
    (tmp_path / "mine").mkdir()
    for place in (tmp_path / "mine", text):
        with pytest.raises(HieroError, match="already exists and contains no hiero grammar"):
            run("compile", text, place)
    assert (tmp_path / "mine").is_dir()


def test_a_broken_grammar_leaves_no_output(text, tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("[X] ||| a\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    for arguments in (
        ("compile", text, broken, tmp_path / "out"),
        ("convert", broken, "-o", tmp_path / "out.gz"),
    ):
        with pytest.raises(FormatError, match="broken:1: found the end of the line"):
            run(*arguments)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_convert_to_text(compiled, tmp_path, capfdbinary):
    assert run("convert", compiled, "-o", tmp_path / "out.gz") == 0
    symbols = Symbols()
    again = rules_of(read_grammar(tmp_path / "out.gz", symbols), symbols)
    assert again == rules_of(read_grammar(compiled, symbols), symbols)
    assert run("convert", compiled) == 0
    out, err = capfdbinary.readouterr()
    assert out == gzip.decompress((tmp_path / "out.gz").read_bytes())
    assert err == b""


def test_convert_from_a_given_format(tmp_path, capfdbinary):
    path = tmp_path / "thrax"
    path.write_text("[X] ||| a ||| b ||| 2 named=1\n")
    assert run("convert", path, "--format", "joshua", "--owner", "me") == 0
    assert capfdbinary.readouterr().out == b"[X] ||| a ||| b ||| tm_me_0=-2 named=1\n"
    assert run("convert", path, "--format", "joshua", "--sign", "1") == 0
    assert capfdbinary.readouterr().out == b"[X] ||| a ||| b ||| tm_pt_0=2 named=1\n"
    path.write_text("a [X] ||| b [X] ||| 0.5\n")
    assert run("convert", path, "--scale", "keep") == 0
    assert capfdbinary.readouterr().out == b"[X] ||| a ||| b ||| PhraseModel_0=0.5\n"


def test_stats(compiled, capsys):
    assert run("stats", compiled) == 0
    lines = capsys.readouterr().out.splitlines()
    facts = dict(line.split("\t") for line in lines if line.count("\t") == 1)
    assert facts["rules"] == "3"
    assert facts["source sides"] == "3"
    assert [facts[f"rules with {n} gaps"] for n in range(3)] == ["1", "2", "0"]
    assert (facts["rules for [X]"], facts["rules for [S]"]) == ("2", "1")
    assert facts["sparse features"] == "2"
    assert facts["alignment links"] == "1"
    assert lines[-2:] == ["feature\tmin\tmean\tmax\tnot zero", "F\t0.5\t0.833333\t1\t3"]


def test_stats_of_an_empty_grammar(tmp_path, capsys):
    (tmp_path / "empty").write_text("")
    assert run("stats", tmp_path / "empty") == 0
    assert "rules\t0\n" in capsys.readouterr().out


def test_standard_input_only_once(text):
    with pytest.raises(UsageError, match="only once"):
        run("stats", "-", "-")


def damaged(compiled: Path, name: str, data: bytes | None) -> Path:
    copy = compiled.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(compiled, copy)
    if data is None:
        (copy / name).unlink()
    else:
        (copy / name).write_bytes(data)
    return copy


def resealed(directory: Path, **changes: object) -> Path:
    reseal(directory, **changes)
    return directory


def test_damaged_directories_are_refused_in_one_line(compiled):
    src = compiled / "src.npy"
    longer = compiled / "long.npy"
    np.save(longer, np.zeros(100, np.int32))
    wide = compiled / "wide.npy"
    np.save(wide, np.zeros(100, np.int64))
    meta = (compiled / "meta.json").read_bytes()
    for name, data, message in (
        ("src.npy", None, "found no such file"),
        ("src.npy", b"", "found damage"),
        ("src.npy", src.read_bytes()[:-2], "found damage"),
        (
            "src.npy",
            src.read_bytes()[:-1] + b"\x07",
            "src.npy: found other content, expected what was written",
        ),
        ("src.npy", wide.read_bytes(), "found 1 dimensions of int64, expected 1 of int32"),
        ("meta.json", meta.replace(b'"rules": 3', b'"rules": 4'), "meta.json: found other content"),
        ("meta.json", meta[:-30], "meta.json: found damage"),
        ("meta.json", b"[" * 100_000, "meta.json: found lists nested too deeply"),
        ("meta.json", b" " * (17 << 20), "meta.json: found 17,825,792 bytes, expected at most"),
    ):
        with pytest.raises(FormatError) as caught:
            read_compiled(damaged(compiled, name, data))
        assert message in str(caught.value)
        assert "make it again with hiero grammar compile" in str(caught.value)
    fit = "found arrays that do not fit together"
    for name in ("src.npy", "lhs.npy", "words_slot.npy"):
        with pytest.raises(FormatError, match=fit):
            read_compiled(resealed(damaged(compiled, name, longer.read_bytes())))
    for change, message in (
        ({"version": 99}, "found version 99, expected version 2"),
        ({"columns": {"F": 1}}, fit),
        ({"columns": 7}, fit),
    ):
        with pytest.raises(FormatError, match=message):
            read_compiled(resealed(damaged(compiled, "meta.json", meta), **change))
    for data in (b"{", b"[]", b'{"format": "hiero language model"}'):
        broken = damaged(compiled, "meta.json", data)
        assert not GRAMMAR.recognises(broken)
        with pytest.raises(FormatError):
            read_compiled(broken)
        with pytest.raises(FormatError, match="found a directory, expected a grammar"):
            open_grammar(broken, Symbols())


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("first_child", 1, 0),  # a cycle
        ("first_child", 2, 99),
        ("first_rule", 1, 99),
        ("first_src", 1, -5),
        ("src", 0, 10**6),
        ("src", 0, -(2**31)),
        ("tgt", 0, 10**6),
        ("tgt", -1, -9),
        ("link", 0, -1),
        ("link", 1, 30_000),
        ("lhs", 0, 7),
        ("words_slot", 0, 10**6),
        ("dense", 0, np.inf),
        ("sparse_name", 0, -1),
    ],
)
def test_numbers_that_lead_outside_of_arrays(compiled, name, place, value):
    array = np.load(compiled / f"{name}.npy")
    if not array.size:
        pytest.skip("nothing to change")
    array.reshape(-1)[place] = value
    np.save(compiled / f"{name}.npy", array)
    with pytest.raises(FormatError, match="found other content"):
        read_compiled(compiled)
    reseal(compiled)
    with pytest.raises(FormatError, match="found arrays that do not fit together"):
        read_compiled(compiled)


def test_help_describes_everything(capsys):
    for action in ("compile", "convert", "stats"):
        with pytest.raises(SystemExit):
            run(action, "--help")
        assert "--scale" in capsys.readouterr().out
