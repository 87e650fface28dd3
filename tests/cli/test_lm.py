"""``hiero lm``: output equals that of KenLM's ``query`` in the golden files."""

from __future__ import annotations

import argparse
import gzip
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from hiero.cli.lm import add_parser
from hiero.core.errors import FormatError, UsageError
from hiero.lm.kenlm import format_kenlm_number

DATA = Path(__file__).parents[1] / "data"
GOLD = (DATA / "tiny.query").read_text(encoding="utf-8")


def lm(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers(required=True))
    args = parser.parse_args(["lm", *map(str, arguments)])
    return int(args.run(args))


@pytest.mark.parametrize("model", ["tiny.arpa", "tiny.probing"])
def test_query_equals_kenlm(tmp_path: Path, model: str) -> None:
    out = tmp_path / "out"
    assert lm("query", DATA / model, DATA / "tiny.txt", "-o", out) == 0
    assert out.read_text(encoding="utf-8") == GOLD
    assert lm("query", "-n", "-v", "sentence", DATA / model, DATA / "tiny.txt", "-o", out) == 0
    assert out.read_text(encoding="utf-8") == (DATA / "tiny.null.query").read_text(encoding="utf-8")


def test_levels_of_output(tmp_path: Path) -> None:
    def output(*levels: str) -> list[str]:
        flags = [flag for level in levels for flag in ("-v", level)]
        lm("query", *flags, DATA / "tiny.arpa", DATA / "tiny.txt", "-o", tmp_path / "out")
        return (tmp_path / "out").read_text(encoding="utf-8").splitlines()

    totals = [line[line.index("Total:") :] for line in GOLD.splitlines()[:5]]
    assert output() == output("2") == GOLD.splitlines()
    assert output("0") == output("summary") == GOLD.splitlines()[5:]
    assert output("1") == totals + GOLD.splitlines()[5:]
    assert output("sentence") == totals
    assert output("word", "summary") == [
        "".join(line[: line.index("Total:")] for line in GOLD.splitlines()[:5])
        + "Perplexity including OOVs:\t"
        + GOLD.splitlines()[5].split("\t")[1],
        *GOLD.splitlines()[6:],
    ]


def test_query_reads_standard_input_and_gz(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    text = (DATA / "tiny.txt").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text[:-1])))  # without a final newline
    assert lm("query", DATA / "tiny.arpa") == 0
    assert capfdbinary.readouterr().out.decode() == GOLD
    (tmp_path / "text.gz").write_bytes(gzip.compress(text.replace(b"\n", b"\r\n")))
    assert lm("query", DATA / "tiny.arpa", tmp_path / "text.gz", "-o", tmp_path / "out.gz") == 0
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()).decode() == GOLD


def test_any_bytes_are_words(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"\xff\0 the \xe2\x80\xa8x\n")
    lm("query", "-v", "word", DATA / "tiny.arpa", tmp_path / "text", "-o", tmp_path / "out")
    words = (tmp_path / "out").read_bytes().split(b"\t")
    assert [word.split(b" ")[0] for word in words] == [
        b"\xff\0=0",
        b"the=3",
        b"\xe2\x80\xa8x=0",
        b"</s>=2",
        b"",
    ]


def test_compile_then_query(tmp_path: Path) -> None:
    assert lm("compile", DATA / "tiny.arpa", tmp_path / "lm") == 0
    assert lm("query", tmp_path / "lm", DATA / "tiny.txt", "-o", tmp_path / "out") == 0
    assert (tmp_path / "out").read_text(encoding="utf-8") == GOLD
    with pytest.raises(FormatError, match="found a directory, expected an ARPA file"):
        lm("compile", tmp_path / "lm", tmp_path / "again")


def test_nothing_to_score(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"")
    lm("query", DATA / "tiny.arpa", tmp_path / "text", "-o", tmp_path / "out")
    assert (tmp_path / "out").read_text() == (
        "Perplexity including OOVs:\tNaN\nPerplexity excluding OOVs:\tNaN\nOOVs:\t0\nTokens:\t0\n"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(-1.5), "-1.5"),
        (np.float32(-99), "-99"),
        (np.float32(0), "0"),
        (np.float32(-0.0), "-0"),
        (np.float32(-0.1), "-0.1"),
        (np.float32(-1.2e-5), "-0.000012"),
        (np.float32(-1.2e-7), "-1.2e-7"),
        (np.float64(1.25e20), "125000000000000000000"),
        (np.float64(1.25e22), "1.25e22"),
        (np.float64(np.inf), "inf"),
        (np.float64(np.nan), "NaN"),
        (np.float64(2939.134987769381), "2939.134987769381"),
    ],
)
def test_numbers_are_written_as_kenlm_writes_them(value: np.floating, text: str) -> None:
    assert format_kenlm_number(value) == text


def test_compile_quantised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert lm("compile", "--quantize", 8, DATA / "tiny.arpa", tmp_path / "fine") == 0
    assert lm("query", tmp_path / "fine", DATA / "tiny.txt", "-o", out) == 0
    assert out.read_text(encoding="utf-8") == GOLD  # it has fewer values than codes
    assert lm("compile", "--quantize", 2, "--backoff-bits", 3, DATA / "tiny.arpa", tmp_path / "coarse") == 0
    assert lm("query", tmp_path / "coarse", DATA / "tiny.txt", "-o", out) == 0
    assert out.read_text(encoding="utf-8") != GOLD
    meta = json.loads((tmp_path / "coarse" / "meta.json").read_text())
    assert (meta["prob_bits"], meta["backoff_bits"]) == (3, 3)
    with pytest.raises(UsageError, match="argument --backoff-bits: requires --quantize BITS"):
        lm("compile", "--backoff-bits", 3, DATA / "tiny.arpa", tmp_path / "other")
    for bits in ("1", "9", "x"):
        with pytest.raises(SystemExit):
            lm("compile", "--quantize", bits, DATA / "tiny.arpa", tmp_path / "other")
    assert not (tmp_path / "other").exists()
