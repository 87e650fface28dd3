"""ARPA files: their content is read exactly, and errors are one line."""

from __future__ import annotations

import gzip
import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hiero.core.errors import FormatError
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import table_entry
from hiero.lm import table_kernels as ngram_table
from hiero.lm.arpa import _ArpaReader, read_arpa
from hiero.lm.table_kernels import Ngrams
from tests.conftest import INTERPRETED
from tests.naive import lm as naive
from tests.worlds.lm import arpa_texts

DATA = Path(__file__).parents[1] / "data"
GOOD = (DATA / "tiny.arpa").read_text(encoding="utf-8")


def read_text(text: str) -> tuple[Ngrams, WordTable]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lm.arpa"
        path.write_bytes(text.encode())
        return read_arpa(path).ngrams()


def contents(model: Ngrams, words: WordTable) -> dict[int, tuple[float, float]]:
    """From keys (for single words, -1 - id) to the two numbers as they are stored."""
    found = {-word - 1: tuple(model.unigram[word].tolist()) for word in range(len(words.first) - 1)}
    for slot in np.flatnonzero(model.key[::2]):
        found[int(model.key[2 * slot])] = tuple(model.value[4 * slot + 2 : 4 * slot + 4].tolist())
    return found


def assert_says(model: Ngrams, words: WordTable, said: naive.Model) -> None:
    ids = {table_entry(words, word).decode(): word for word in range(len(words.first) - 1)}
    found = contents(model, words)
    expected = naive.signed_ngrams(said)
    assert len(found) == len(expected)
    assert model.order[0] == said.order
    for ngram, signed in expected.items():
        listed = [ids[word] for word in ngram]
        prob, backoff = found[naive.key(listed) if len(listed) > 1 else -listed[0] - 1]
        assert -abs(prob) == pytest.approx(signed.prob, abs=1e-5)
        assert backoff == pytest.approx(signed.backoff, abs=1e-6)
        assert (math.copysign(1, prob) > 0) == signed.extends_left
        assert (backoff != 0 or math.copysign(1, backoff) > 0) == signed.extends_right


@given(arpa_texts())
def test_table_holds_the_content_of_the_file(text: str) -> None:
    assert_says(*read_text(text), naive.read_arpa(text))


@given(arpa_texts(), st.integers(1, 9))
def test_results_do_not_depend_on_chunks(text: str, lines: int) -> None:
    whole, words = read_text(text)
    reader, rows = _ArpaReader(DATA / "tiny.arpa"), [line + "\n" for line in text.split("\n")]
    for start in range(0, len(rows), lines):
        reader.feed("".join(rows[start : start + lines]).encode())
    pieces, same_words = reader.finish().ngrams()
    assert contents(whole, words) == contents(pieces, same_words)
    assert bytes(words.pool) == bytes(same_words.pool)


@given(st.sets(st.integers(1, 2**64 - 1), max_size=85))
@example(set(range(1, 86)))
def test_a_table_grows_and_keeps_all(keys: set[int]) -> None:
    table = ngram_table.open_table(0)
    for value, key in enumerate(keys):
        if not ngram_table.has_room(table, 1):
            table = ngram_table.doubled(table)
        code = np.uint64(key)
        values = np.float32(value), np.float32(-value)
        ngram_table.put(table, ngram_table.locate(table, code), code, 2 + value % 5, *values)
    slots = len(table.key) // 2
    assert table.used[0] == len(keys) <= slots * ngram_table.MAX_LOAD
    assert slots in (64, 128)  # 64 are enough for the required load factor
    for value, key in enumerate(keys):
        slot = ngram_table.locate(table, np.uint64(key))
        assert int(table.key[2 * slot]) == key
        assert table.value[4 * slot + 2 : 4 * slot + 4].tolist() == [value, -value]
        assert table.size[slot] == 2 + value % 5


def test_more_entries_than_the_header_says(tmp_path: Path) -> None:
    words = [f"w{i}" for i in range(40)]
    unigrams = "".join(f"-1\t{word}\t-0.5\n" for word in ["<s>", "</s>", *words])
    longest = "".join(f"-0.5\t{a} {b} {c}\n" for a, b, c in zip(words, words[1:], words[2:], strict=False))
    text = f"\\data\\\nngram 1=42\nngram 2=0\nngram 3=38\n\n\\1-grams:\n{unigrams}\n\\2-grams:\n\n"
    text += f"\\3-grams:\n{longest}\n\\end\\\n"
    assert_says(*read_text(text), naive.read_arpa(text))


def test_gz_and_plain_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "lm.gz").write_bytes(gzip.compress(GOOD.encode()))
    packed, plain = read_arpa(tmp_path / "lm.gz").ngrams(), read_text(GOOD)
    assert contents(*packed) == contents(*plain)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ngram 2=8", "ngram 2=9", "29: found 8 2-grams, expected 9 2-grams, as the header says"),
        (
            "ngram 3=5",
            "",
            "20: found '-0.3125', expected no back-off (2-grams are the longest of this model)",
        ),
        ("ngram 2=8", "ngram 2:8", "5: found 'ngram 2:8', expected 'ngram 2=COUNT' or '\\1-grams:'"),
        ("ngram 2=8", "ngram 3=8", "5: found 'ngram 3=8', expected 'ngram 2=COUNT' or '\\1-grams:'"),
        (
            "ngram 3=5",
            "ngram 3=5\nngram 4=0\nngram 5=0\nngram 6=0\nngram 7=0",
            "10: found order 7, expected 6 or less (estimate a model of lower order)",
        ),
        (
            "\\data\\",
            "Hello,",
            "3: found 'Hello,', expected an ARPA language model, which begins with \\data\\",
        ),
        (
            "# Written",
            "iARPA\n",
            "1: found 'iARPA', expected an ARPA language model, which begins with \\data\\ "
            "(its probabilities are not interpolated yet; run compile-lm --text yes FILE OUT)",
        ),
        (
            "-1.25\tcat",
            "1.25\tcat",
            "13: found '1.25', expected a log10 probability, zero or less "
            "(an error of the toolkit that wrote the file)",
        ),
        ("-1.25\tcat", "nan\tcat", "13: found 'nan', expected a log10 probability (in the 1-grams)"),
        ("-1.25\tcat", "-1.25x\tcat", "13: found '-1.25x', expected a log10 probability (in the 1-grams)"),
        (
            "-1.25\tcat",
            "-1e99\tcat",
            "13: found '-1e99', expected a finite number (write an impossible n-gram as -99)",
        ),
        (
            "-0.625	cat sat",
            "-0.625	cat",
            "22: found '-0.4375', expected a word of the 1-grams (they must list every word of the model)",
        ),
        (
            "-0.875	on the",
            "-0.875	on",
            "23: found '-0.875\\ton', expected a log10 probability, 2 words and perhaps a back-off "
            "(there are too few fields)",
        ),
        (
            "-0.875	on the",
            "-0.875	on the cat",
            "23: found '-0.875\\ton the cat', expected a log10 probability, 2 words and perhaps a back-off "
            "(too many fields, or the back-off is not a number)",
        ),
        (
            "-0.3125	the cat sat",
            "-0.3125	the dog sat",
            "31: found 'dog', expected a word of the 1-grams (they must list every word of the model)",
        ),
        (
            "-0.625	cat sat",
            "-0.625	the cat",
            "22: found 'the cat', expected every 2-gram once (it is listed twice)",
        ),
        (
            "-0.3125	the cat sat",
            "-0.3125	the cat sat	-0.5",
            "31: found '-0.5', expected no back-off (3-grams are the longest of this model)",
        ),
        ("-1.75	sat", "-1.75	cat", "14: found the word 'cat' again, expected every word once"),
        (
            "-99	<s>	",
            "-99	S	",
            "19: found no <s> among the 1-grams, expected <s> and </s> (KenLM refuses such models as well)",
        ),
        ("\\2-grams:", "", "20: found '-0.25\\t<s> the\\t-0.3125', expected a log10 probability, 1 word"),
        ("\\end\\", "", "37: found the end of the file, expected \\end\\ (the file is truncated)"),
        ("\\end\\", "\\end\\\nmore", "37: found 'more', expected nothing after \\end\\"),
    ],
)
def test_errors_are_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    path = tmp_path / "lm.arpa"
    path.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(FormatError) as caught:
        read_arpa(path)
    assert str(caught.value).startswith(f"{path}:{message}")


def test_files_that_are_no_models(tmp_path: Path) -> None:
    path = tmp_path / "lm"
    packed = gzip.compress(GOOD.encode() * 100)
    for data, message in [
        (b"", f"{path}: found an empty file, expected an ARPA language model"),
        (b"\n\n", f"{path}:3: found the end of the file, expected \\data\\ (the file is truncated)"),
        (packed[: len(packed) // 2], "found the end of the file in the middle of compressed data"),
        (bytes(range(256)), f"{path}:1: found "),
        (gzip.compress(b"mmap lm http"), "a KenLM binary is mapped into memory: decompress it first"),
    ]:
        path.write_bytes(data)
        with pytest.raises(FormatError) as caught:
            read_arpa(path)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


def test_long_and_short_lines() -> None:
    word = "x" * (10_000 if INTERPRETED else 100_000)
    text = GOOD.replace("cat", word)
    model, words = read_text(text)
    assert_says(model, words, naive.read_arpa(text))
