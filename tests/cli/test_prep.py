"""``hiero prep``: tokenization, filtering of pairs, truecasing and detokenization."""

from __future__ import annotations

import argparse
import gzip
import io
import random
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.bitext.config import PrepConfig
from hiero.bitext.prepare import (
    BATCH,
    CaseCounter,
    Recaser,
    detokenize,
    map_processes,
    prepare,
    rows_to_prepare,
    sentence_starts,
)
from hiero.cli.prep import add_parser
from hiero.core.errors import ConfigError, FormatError, UsageError

PLAIN = PrepConfig(tokenize=False)


def prep(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers(required=True))
    args = parser.parse_args(["prep", *map(str, arguments)])
    return int(args.run(args))


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def single(tmp_path: Path, text: str, *arguments: object) -> str:
    prep("-i", write(tmp_path / "in", text), "-o", tmp_path / "out", "-q", *arguments)
    return (tmp_path / "out").read_text(encoding="utf-8")


def pair(tmp_path: Path, src: str, tgt: str, *arguments: object) -> tuple[str, str]:
    write(tmp_path / "src", src)
    write(tmp_path / "tgt", tgt)
    out = tmp_path / "out.src", tmp_path / "out.tgt"
    prep("-s", tmp_path / "src", "-t", tmp_path / "tgt", "-o", *out, *arguments)
    return out[0].read_text(encoding="utf-8"), out[1].read_text(encoding="utf-8")


# ---- without sacremoses


def test_characters(tmp_path: Path) -> None:
    text = "Mu\u0308ller\tund\u00a0 Co \r\na\x00b\x07\u2028c\x85d\u00ad\u200be\n\ufeff\n  x  "
    assert single(tmp_path, "\ufeff" + text, "--no-tokenize") == "Müller und Co\na b c de\n\nx\n"
    # The combining dot above left by lower-casing is composed where possible.
    assert single(tmp_path, "İX É", "--no-tokenize", "--lowercase") == "i\u0307x é\n"


@given(st.text(max_size=30))
def test_words_are_clean(text: str) -> None:
    from hiero.bitext.prepare import Cleaner

    cleaned, _ = Cleaner("", PrepConfig(tokenize=False, lowercase=True))(text)
    assert unicodedata.is_normalized("NFC", cleaned)
    assert cleaned == " ".join(cleaned.split())
    assert not any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in cleaned)
    assert Cleaner("", PLAIN)(cleaned) == (cleaned, False)


def test_pairs_are_dropped_together(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    long = " ".join("w" * 81)
    rows = [("a", "b"), ("", "b"), ("a", " "), (long, "b b"), ("a", " ".join("b" * 10)), ("c\x01", "d")]
    src, tgt = ("".join(f"{row[side]}\n" for row in rows) for side in (0, 1))
    assert pair(tmp_path, src, tgt, "--no-tokenize") == ("a\nc\n", "b\nd\n")
    assert capfd.readouterr().err == (
        "hiero: 6 pairs read, 2 kept, 4 dropped (2 empty, 1 of more than 80 words, "
        "1 longer on one side by more than 9 times)\n"
        "hiero: control or invisible characters removed from 1 pairs\n"
    )
    kept = pair(tmp_path, src, tgt, "--no-tokenize", "--keep-empty", "--max-words", "0", "--max-ratio", "0")
    assert [side.count("\n") for side in kept] == [6, 6]
    assert kept[0].split("\n")[:3] == ["a", "", "a"]
    limits = ("--min-words", "2", "--max-words", "90", "--max-ratio", "40.5")
    assert pair(tmp_path, src, tgt, "--no-tokenize", *limits) == (f"{long}\n", "b b\n")
    assert "3 of fewer than 2 words" in capfd.readouterr().err


def test_the_ratio_is_inclusive() -> None:
    config = PrepConfig(max_ratio=2)
    assert config.reason_to_drop(("a a", "b")) == ""
    assert config.reason_to_drop(("a a a", "b")) == "ratio"
    assert PrepConfig(min_words=0).reason_to_drop(("", "b")) == ""
    assert PrepConfig(keep_empty=True, min_words=2).reason_to_drop(("b", "b b")) == "short"


def test_no_line_of_a_single_file_is_dropped(tmp_path: Path) -> None:
    text = "\n" + " ".join("w" * 500) + "\n\na\n"
    assert single(tmp_path, text, "--no-tokenize") == text
    assert single(tmp_path, text, "--no-tokenize", "--min-words", 1, "--max-words", 400) == "a\n"


def test_output_does_not_depend_on_processes(tmp_path: Path) -> None:
    rng = random.Random(1)
    rows = [" ".join(rng.choices("aBc", k=rng.randint(0, 4))) for _ in range(9 * BATCH + 7)]
    source = write(tmp_path / "in", "".join(f"{row}\n" for row in rows))
    counts = []
    for jobs in (1, 2):
        outputs = [tmp_path / f"{jobs}.{side}.gz" for side in "st"]
        config = PrepConfig(tokenize=False, lowercase=True)
        counts.append(prepare([source, source], outputs, ["", ""], config, jobs))
    assert counts[0] == counts[1]
    assert counts[0].read == len(rows)
    assert (tmp_path / "1.s.gz").read_bytes() == (tmp_path / "2.s.gz").read_bytes()
    assert gzip.decompress((tmp_path / "2.t.gz").read_bytes()).decode().split("\n")[:-1] == [
        row.lower() for row in rows if row
    ]


def test_a_killed_process_is_one_line() -> None:
    from hiero.core.errors import HieroError

    with pytest.raises(HieroError, match="a process was killed"):
        list(map_processes(_die, range(3), 2))


def _die(number: int) -> None:
    import os

    os._exit(number + 1)


def test_files_must_have_equally_many_lines(tmp_path: Path) -> None:
    src, tgt = write(tmp_path / "src", "a\nb\nc"), write(tmp_path / "tgt", "a\n")
    for files in ((src, tgt), (tgt, src)):
        with pytest.raises(FormatError) as error:
            prep("-s", files[0], "-t", files[1], "-o", tmp_path / "x", tmp_path / "y", "--no-tokenize")
        assert str(error.value) == f"{tgt}: found 1 lines, expected 3, as many as {src} has"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["src", "tgt"]
    assert list(rows_to_prepare([src, src]))[2] == ("c", "c")


@pytest.mark.parametrize("jobs", [1, 2])
def test_invalid_utf8(tmp_path: Path, jobs: int) -> None:
    source = tmp_path / "in"
    source.write_bytes(b"good\n\xc3\xa4 \xff\xfe bad\n")
    with pytest.raises(FormatError) as error:
        prep("-i", source, "-o", tmp_path / "out", "--no-tokenize", "-j", jobs)
    hint = "(convert the file first, for instance with iconv)"
    assert str(error.value) == f"{source}:2: found byte 0xff at position 4 of the line, expected UTF-8 {hint}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_streams(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"A  b")))
    prep("--no-tokenize", "--lowercase")
    out, err = capfdbinary.readouterr()
    assert (out, err) == (b"a b\n", b"hiero: 1 lines read, 1 kept, 0 dropped\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-s", "a", "-o", "x", "y"], "requires both -s and -t"),
        (["-s", "a", "-t", "b", "-i", "c"], "argument -i: not allowed with -s and -t"),
        (["-s", "a", "-t", "b"], "argument -o: found 0 files, expected two files"),
        (["-s", "a", "-t", "b", "-o", "x"], "argument -o: found 1 files, expected two files"),
        (["-s", "-", "-t", "-", "-o", "x", "y"], "standard input (-) can be read only once"),
        (["-i", "a", "-o", "x", "y"], "argument -o: found 2 files, expected one file"),
        (
            ["-s", "a", "-t", "b", "-o", "x", "y", "--lang", "de"],
            "argument --lang: not allowed with -s and -t",
        ),
        (["--src-lang", "de"], "arguments --src-lang, --tgt-lang: require -s and -t"),
        (["-s", "a", "-t", "b", "-o", "x", "y"], "argument --src-lang is missing (a language, such as de)"),
        ([], "argument --lang is missing (a language, such as de)"),
        (["--max-words", "-1"], "argument --max-words: found -1, expected at least 0"),
        (["--max-ratio", "2"], "argument --max-ratio: requires -s and -t"),
        (["--truecase", "x"], "arguments --truecase, --recase: require --detokenize"),
        (["--detokenize", "--no-recase", "--truecase", "x"], "not allowed with --no-recase"),
        (["--detokenize", "-s", "a", "-t", "b"], "argument --detokenize: requires a single file"),
        (["--detokenize", "--lowercase"], "argument --lowercase: not allowed with --detokenize"),
        (["--detokenize", "--no-tokenize"], "argument --no-tokenize: not allowed with --detokenize"),
        (["--learn-truecase", "--lowercase"], "argument --lowercase: not allowed with --learn-truecase"),
        (["--learn-truecase", "--max-words", "3"], "argument --max-words: not allowed with --learn-truecase"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError) as error:
        prep(*arguments)
    assert message in str(error.value)


# ---- capitals


def test_sentences_begin_with_letters() -> None:
    words = ["„", "so", "!", "“", "3", "tage", ".", "...", "und", "(", "ja", "?", ")", "ja"]
    begins = [word for word, flag in zip(words, sentence_starts(words), strict=True) if flag]
    assert begins == ["so", "und", "ja"]


def test_capitals() -> None:
    recase = Recaser({"berlin": "Berlin", "iphone": "iPhone", "eu": "EU"})
    assert recase(["in", "berlin", ".", "iphone", "und", "eu", "!"]) == [
        "In",
        "Berlin",
        ".",
        "iPhone",
        "und",
        "EU",
        "!",
    ]
    assert recase(["OBEN", "berlin", "BERLIN"]) == ["OBEN", "Berlin", "BERLIN"]
    assert recase([]) == []
    assert recase(["ǆep"]) == ["ǅep"]  # title case, not upper case


def test_learning_capitals(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    counter = CaseCounter()
    for line in ("Der Hund bellt . Die EU", "Der hund und der Hund", "Ein Test test", "1 km 1 KM"):
        counter.add(line.split())
    assert counter.forms() == ["EU", "Hund"]
    text = write(tmp_path / "text", "Das Haus in  Köln\u00ad .\nDer Baum , das Haus\n")
    prep("--learn-truecase", "-i", text, "-o", tmp_path / "list", "--no-tokenize")
    assert capfd.readouterr().err == "hiero: 3 words with capitals inside sentences\n"
    assert (tmp_path / "list").read_text(encoding="utf-8") == "Baum\nHaus\nKöln\n"
    assert Recaser.read(tmp_path / "list").forms == {"baum": "Baum", "haus": "Haus", "köln": "Köln"}


def test_wrong_lists(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"list:2: found 'b c', expected one word \(hiero prep --learn"):
        Recaser.read(write(tmp_path / "list", "A\nb c\n"))
    with pytest.raises(FormatError, match=r"list:2: found 'aA', expected each word once: there is 'AA'"):
        Recaser.read(write(tmp_path / "list", "AA\naA\n"))


def test_without_sacremoses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(ConfigError) as error:
        single(tmp_path, "a", "--lang", "de")
    assert str(error.value).startswith("sacremoses is not installed (pip install 'hiero-mt[prep]')")
    with pytest.raises(ConfigError):
        single(tmp_path, "a", "--lang", "de", "--detokenize")
    assert not (tmp_path / "out").exists()


# ---- with sacremoses


@pytest.fixture
def moses() -> None:
    pytest.importorskip("sacremoses", reason="Moses' tokeniser needs it")


@pytest.mark.usefixtures("moses")
class TestWithSacremoses:
    def test_tokens(self, tmp_path: Path) -> None:
        text = '"Das ist\'s", sagte Dr. Müller (z.B. am 3. Mai) & ging…\nA|||B <[X,1]>\n'
        assert single(tmp_path, text, "--lang", "de") == (
            '" Das ist \' s " , sagte Dr. Müller ( z.B. am 3. Mai ) & ging …\nA | | | B < [ X , 1 ] >\n'
        )
        assert single(tmp_path, "He's IN.", "--lang", "en", "--lowercase") == "he 's in .\n"
        assert single(tmp_path, "“So” – ja", "--lang", "en", "--normalize-punctuation") == '" So " - ja\n'

    def test_pairs(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        arguments = ("--src-lang", "de", "--tgt-lang", "en", "--lowercase")
        found = pair(tmp_path, "Ja, gut.\nNein\n", "Yes, it's good.\n\n", *arguments)
        assert found == ("ja , gut .\n", "yes , it 's good .\n")
        assert capfd.readouterr().err == "hiero: 2 pairs read, 1 kept, 1 dropped (1 empty)\n"

    def test_languages_without_abbreviations(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        prep("-i", write(tmp_path / "in", "a."), "--lang", "xx")
        out, err = capfd.readouterr()
        assert out == "a .\n"
        assert err.startswith("hiero: no list of abbreviations for language xx, using that of English\n")

    def test_detokenization(self, tmp_path: Path) -> None:
        words = '" das haus , " sagte er , " ist 3,5 m hoch . " ( ja ? ) wirklich !\n\n'
        assert single(tmp_path, words, "--detokenize", "--lang", "de", "--no-recase") == (
            '"das haus," sagte er, "ist 3,5 m hoch." (ja?) wirklich!\n\n'
        )
        names = write(tmp_path / "list", "Haus\n")
        assert single(tmp_path, words, "--detokenize", "--lang", "de", "--truecase", names) == (
            '"Das Haus," sagte er, "ist 3,5 m hoch." (Ja?) Wirklich!\n\n'
        )
        assert single(tmp_path, "it 's &amp; &#124;", "--detokenize", "--lang", "en") == "It's &amp; &#124;\n"

    @pytest.mark.once
    def test_processes_in_detokenization(self, tmp_path: Path) -> None:
        source = write(tmp_path / "in", "wie geht 's ?\n" * (BATCH + 3))
        for jobs in (1, 2):
            assert detokenize(source, tmp_path / f"{jobs}", "de", Recaser(), jobs) == BATCH + 3
        assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()

    def test_a_line_that_the_detokenizer_cannot_join(self, tmp_path: Path) -> None:
        """Czech "-li" after a word that ends in an apostrophe raises TypeError in sacremoses."""
        assert single(tmp_path, "je' - li to", "--detokenize", "--lang", "cs", "--no-recase").endswith("to\n")

    def test_round_trip(self, tmp_path: Path) -> None:
        text = "Das Haus in Köln ist alt. Wer sagt (heute) so etwas, Herr Dr. Müller?\n"
        raw = write(tmp_path / "raw", text)
        prep("--learn-truecase", "-i", raw, "--lang", "de", "-o", tmp_path / "list", "-q")
        words = single(tmp_path, text, "--lang", "de", "--lowercase")
        back = single(tmp_path, words, "--detokenize", "--lang", "de", "--truecase", tmp_path / "list")
        assert back == text

    @pytest.mark.once
    def test_as_a_command(self, tmp_path: Path) -> None:
        command = [sys.executable, "-m", "hiero.cli.main", "prep", "--lang", "en", "-j", "2"]
        done = subprocess.run(command, input="Yes.", capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "Yes .\n")
        assert done.stderr == "hiero: 1 lines read, 1 kept, 0 dropped\n"


@pytest.mark.parametrize(
    ("language", "name", "tokenizer"),
    [
        pytest.param("zh", "Chinese", "moses", marks=pytest.mark.once),
        ("th", "Thai", "auto"),
        pytest.param("zh-TW", "Chinese", "moses", marks=pytest.mark.once),
    ],
)
def test_text_without_spaces_is_not_segmented(
    tmp_path: Path, language: str, name: str, tokenizer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").write_text("我们有一本书。\n", encoding="utf-8")
    assert (
        prep("-i", tmp_path / "in", "--lang", language, "--tokenizer", tokenizer, "-o", tmp_path / "out") == 0
    )
    assert capsys.readouterr().err.splitlines()[0] == (
        f"hiero: {name} words are not segmented: what has no spaces stays one word (use a segmenter before)"
    )
    assert prep("-i", tmp_path / "in", "--lang", "de", "-o", tmp_path / "out") == 0
    assert "segmented" not in capsys.readouterr().err
