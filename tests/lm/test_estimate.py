"""``hiero lm estimate`` against the definition, KenLM's reader, and lmplz on real text."""

from __future__ import annotations

import argparse
import gzip
import io
import itertools
import json
import os
import random
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hiero.cli.lm import _fold, add_parser
from hiero.core.errors import FormatError, HieroError, UsageError
from hiero.core.progress import SilentProgress
from hiero.core.symbols import word_table
from hiero.core.text import read_chunks
from hiero.lm.arpa import read_arpa
from hiero.lm.arpa_kernels import MAX_DIGITS, write_entries_kernel
from hiero.lm.config import FALLBACK, TEMPORARY, EstimateConfig
from hiero.lm.estimate import WordNumbering, estimate_discounts, estimate_language_model
from hiero.lm.estimate_kernels import (
    combine_kernel,
    end_kernel,
    ngram_packing,
    sort_kernel,
    unpack_ngrams_kernel,
    windows_kernel,
)
from hiero.lm.external_sort import Sorter, Spool
from hiero.lm.load import compile_language_model, load_language_models
from hiero.lm.model import score_text
from tests.conftest import INTERPRETED
from tests.naive import estimate as naive
from tests.naive.lm import read_arpa as naive_read_arpa
from tests.worlds.lm import kenlm_model

Model = dict[tuple[str, ...], tuple[float, float]]

WORDS = ["a", "b", "c", "straße", "|||", "[X,1]", "x\u2028y", "\u00a0", "-0.5"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=8), min_size=1, max_size=25)
NUM_LINES = 150 if INTERPRETED else 400  # of a longer text
THRESHOLDS = st.lists(st.integers(0, 3), max_size=6).map(sorted)


def write_text(path: Path, sentences: list[list[str]]) -> Path:
    path.write_text("".join(" ".join(line) + "\n" for line in sentences), encoding="utf-8", newline="\n")
    return path


def read_model(path: Path) -> Model:
    text = b"".join(chunk.data for chunk in read_chunks(path)).decode()
    return naive_read_arpa(text).listed


def long_text(seed: int, lines: int) -> list[list[str]]:
    """Words with frequencies like those of a language."""
    draw = random.Random(seed)
    return [
        [f"w{int(draw.paretovariate(0.7)) % 60}" for _ in range(draw.randrange(12))] for _ in range(lines)
    ]


# ---- steps


@given(
    st.lists(
        st.sampled_from(["a", "bb", "ä", "<UNK", "<s", " ", "\t", "\r", "\0", "\n", " ccc "]), max_size=30
    ),
    st.sampled_from(["", " <s> ", " </s>\n", " <UNK> x", "<unk>"]),
    st.booleans(),
    st.booleans(),
)
def test_words_are_numbered(pieces: list[str], special: str, is_open: bool, skip: bool) -> None:
    text = ("".join([*pieces, special, *pieces]) + "\n").encode()
    known = [b"<unk>", b"<s>", b"</s>", b"bb"]
    numbering = WordNumbering()
    numbering.number(b"bb\n", is_open=True, skip=False)
    ids, stopped = numbering.number(text, is_open=is_open, skip=skip)
    assert (ids.tolist(), stopped) == naive.number_words(text, known, is_open, skip)
    table = numbering.freeze()
    assert [table.pool[a:b].tobytes() for a, b in zip(table.first, table.first[1:], strict=False)] == known


def test_a_numbering_grows() -> None:
    stop, most = (4500, 5) if INTERPRETED else (9000, 50)
    words = [b"%d" % number * (1 + number % most) for number in range(3, stop)]
    numbering = WordNumbering()
    ids, _ = numbering.number(b" ".join(words) + b"\n", is_open=True, skip=False)
    assert ids.tolist() == [*range(3, stop), 2]
    again, _ = numbering.number(words[-1] + b" " + b"x" * 99_999 + b"\n", is_open=True, skip=False)
    assert again.tolist() == [stop - 1, stop, 2]


@given(st.integers(1, 6), st.lists(st.sampled_from([0, 2, 3, 4, 700]), max_size=20), st.data())
def test_windows(order: int, ids: list[int], data: st.DataObject) -> None:
    packing = ngram_packing(
        order, data.draw(st.sampled_from([701, 1 << 15, (1 << 16) + 1, 1 << 21, 1 << 31]))
    )
    width = int(packing.column[-1]) + 1
    context = np.full(order - 1, 1, np.int64)
    cut = data.draw(st.integers(0, len(ids)))
    rows = np.empty((len(ids), width + 1), np.uint64)
    windows_kernel(packing, np.array(ids[:cut], np.int32), context, rows[:cut])
    windows_kernel(packing, np.array(ids[cut:], np.int32), context, rows[cut:])
    words = np.empty((len(ids), order), np.int32)
    number = np.arange(1000, dtype=np.int32)
    unpack_ngrams_kernel(packing, number, np.ascontiguousarray(rows[:, :width]), words)
    expected = naive.windows(order, ids)
    assert words.tolist() == [naive.unpack(list(window), number.tolist()) for window in expected]
    assert rows[:, width].tolist() == [1] * len(ids)
    # Rows sort as n-grams do.
    by_rows = sorted(range(len(ids)), key=lambda at: rows[at].tolist())
    assert [expected[at] for at in by_rows] == sorted(expected)


ROWS = st.lists(
    st.tuples(*[st.sampled_from([0, 1, 255, 256, 2**40, 2**64 - 1])] * 2, st.integers(0, 9)), max_size=40
)


@given(ROWS, st.integers(1, 2))
def test_sort_combine_end(rows: list[tuple[int, ...]], num_keys: int) -> None:
    array = np.array(rows, np.uint64).reshape(-1, 3)
    spare = np.empty_like(array)
    array = spare if sort_kernel(array, spare, num_keys) else array
    expected = naive.sort([list(row) for row in rows], num_keys)
    assert array.tolist() == expected
    for row in rows[:3]:
        cut = np.array([row], np.uint64)
        assert end_kernel(array, cut, num_keys) == naive.end(expected, list(row), num_keys)
    size = combine_kernel(array, num_keys)
    assert array[:size].tolist() == naive.combine(expected, num_keys)


@given(ROWS, st.sampled_from([1, 1000, 10**6]), st.integers(1, 30), st.booleans())
def test_sorting_on_disk(rows: list[tuple[int, ...]], memory: int, copies: int, combine: bool) -> None:
    sorter = Sorter(3, 2, memory, TEMPORARY, combine=combine)
    for _ in range(copies):
        sorter.add(np.array(rows, np.uint64).reshape(-1, 3))
    found = [row for block in sorter.blocks() for row in block.tolist()]
    expected = naive.sort([list(row) for row in rows * copies], 2)
    if combine:
        expected = naive.combine(expected, 2)
    assert sorted(found) == sorted(expected)
    assert [row[:2] for row in found] == [row[:2] for row in expected]


def test_many_runs_are_merged_in_steps() -> None:
    draw = np.random.default_rng(1)
    rows = draw.integers(0, 50, (5000, 2), np.uint64)
    sorter = Sorter(2, 1, 1, TEMPORARY, combine=True)
    sorter.add(rows)
    found = np.concatenate(list(sorter.blocks()))
    assert found.tolist() == naive.combine(naive.sort(rows.tolist(), 1), 1)


@given(st.lists(st.integers(0, 50), max_size=9), st.sampled_from([0, 100, 10**6]), st.integers(1, 60))
def test_a_spool_returns_its_content(sizes: list[int], memory: int, step: int) -> None:
    spool = Spool(2, np.uint64, memory, TEMPORARY)
    rows: list[list[int]] = []
    for size in sizes:
        fresh = np.arange(len(rows) * 2, len(rows) * 2 + size * 2, dtype=np.uint64).reshape(-1, 2)
        spool.append(fresh)
        rows += fresh.tolist()
    assert len(spool) == len(rows)
    found = [spool.take(step).tolist() for _ in range(len(rows) // step + 1)]
    assert list(itertools.chain(*found)) == rows
    assert spool.take(step).tolist() == []


@given(st.lists(st.floats(-100, 0, width=32), max_size=20), st.booleans())
@example([-1.0, -0.5, -0.1, -99.0, -1e-7, -2.6084e-08, -0.30103, -7.0], True)
def test_numbers_round_trip(values: list[float], has_backoff: bool) -> None:
    words = [b"x", "ä".encode()]
    ngrams: list[tuple[int, ...]] = [(at % 2, 1) for at in range(len(values))]
    number = np.array(values, np.float32)
    out = np.empty(200 * len(values) + 1, np.uint8)
    powers = np.array([float(f"1e{k}") for k in range(MAX_DIGITS + 1)])
    ids = np.array(ngrams, np.int32).reshape(-1, 2)
    size = write_entries_kernel(word_table(words), ids, number, number[::-1].copy(), has_backoff, powers, out)
    found = out[:size].tobytes().decode().split("\n")[:-1]
    given_numbers = [
        (v, w)[: 1 + has_backoff] for v, w in zip(number.tolist(), number[::-1].tolist(), strict=True)
    ]
    expected = naive.entries(words, ngrams, given_numbers)
    for line, gold in zip(found, expected, strict=True):
        fields, gold_fields = line.split("\t"), gold.split("\t")
        assert fields[1] == gold_fields[1]
        for text, value in zip(fields[::2], gold_fields[::2], strict=True):
            if abs(float(value)) > 1e-12 or float(value) == 0:  # 22 digits behind the point are written
                assert naive.float32(float(text)) == float(value)
            assert text == "0" or "e" not in text
            if abs(float(value)) > 1e-4:
                assert len(text.lstrip("-0.").replace(".", "")) <= 9


@pytest.mark.parametrize(
    ("numbers", "discounts", "problem"),
    [
        ([0, 100, 40, 20, 10], (0.5555556, 1.1666667, 1.8888889), ""),
        ([0, 0, 40, 20, 10], None, "none with an adjusted count of 1"),
        ([0, 10, 4, 0, 10], None, "none with an adjusted count of 3"),
        ([0, 1, 1, 9, 1], None, "an adjusted count of 2 would lose -7"),
        ([0, 100, 40, 20, 0], (0.5555556, 1.1666667, 3.0), ""),
    ],
)
def test_discounts(numbers: list[int], discounts: tuple[float, ...] | None, problem: str) -> None:
    found, why = estimate_discounts(numbers)
    assert why == problem
    assert found == pytest.approx(discounts or (0, 0, 0))


# ---- models


@settings(max_examples=100)
@given(TEXTS, st.integers(1, 6), THRESHOLDS, st.booleans(), st.sampled_from([1, 10**7]))
@example([["a"]], 3, [], False, 1)
@example([["b", "c", "a", "a", "a", "b"]], 2, [], True, 1)
@example([[]], 2, [], False, 1)
@example([["a", "a"], ["b", "a"], ["a", "a"]], 3, [0, 0, 1], False, 10**7)
@example([["a", "b", "a", "b", "b"], ["b", "b", "b"]], 3, [], False, 1)  # a discount of 0
def test_models_equal_the_definition(
    tmp_path_factory: pytest.TempPathFactory,
    sentences: list[list[str]],
    order: int,
    prune: list[int],
    has_vocabulary: bool,
    memory: int,
) -> None:
    folder = tmp_path_factory.mktemp("lm")
    prune = prune[:order]
    vocabulary = ["a", "c", "unseen"] if has_vocabulary else None
    if vocabulary:
        (folder / "words").write_text("a c\n<s>\nunseen", encoding="utf-8")
    fallback = (0.4, 1.1, 1.6)
    expected = naive.probabilities(order, sentences, prune, fallback, vocabulary)
    config = EstimateConfig(
        order=order,
        prune=tuple(prune),
        discount_fallback=fallback,
        vocabulary=folder / "words" if vocabulary else None,
        memory=memory,
    )
    out = folder / "lm.arpa"
    estimate_language_model(write_text(folder / "text", sentences), out, config, compiled=False)
    found = read_model(out)
    assert found.keys() == expected.keys()
    for ngram, numbers in expected.items():
        assert found[ngram] == pytest.approx(numbers, abs=1e-5), ngram
    for context in [(), ("a",), ("<s>",), ("a", "b"), ("<s>", "c"), ("b", "a", "c")]:
        # Contexts whose n-grams were all pruned and unknown words have no entry.
        assert naive.sum_of_probabilities(found, context) == pytest.approx(1, abs=1e-4)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("text") / "text", long_text(seed=1, lines=NUM_LINES))


@pytest.mark.parametrize("prune", [(), (0, 0, 1)])
def test_results_do_not_depend_on_memory_and_threads(
    text: Path, tmp_path: Path, prune: tuple[int, ...]
) -> None:
    outputs = []
    for memory, threads in ((10**8, 1), (1, 1), (10**5, 3), (10**6, 2)):
        config = EstimateConfig(
            order=4, prune=prune, discount_fallback=FALLBACK, memory=memory, temp=tmp_path, threads=threads
        )
        out = tmp_path / "lm.arpa"
        estimate_language_model(text, out, config, compiled=False)
        outputs.append(out.read_bytes())
        assert list(tmp_path.iterdir()) == [out]
    assert len(set(outputs)) == 1


@pytest.mark.parametrize("prune", [(), (0, 1), (2, 2, 4)])
def test_readers_agree_on_the_model(text: Path, tmp_path: Path, prune: tuple[int, ...]) -> None:
    """KenLM loads it; reading it gives, bit for bit, the model written in compiled form."""
    config = EstimateConfig(order=4, prune=prune, discount_fallback=FALLBACK, memory=10**7)
    estimate_language_model(text, tmp_path / "lm.arpa.gz", config, compiled=False)
    estimate_language_model(text, tmp_path / "lm", config, compiled=True)
    compile_language_model(tmp_path / "lm.arpa.gz", tmp_path / "again")
    for array in (tmp_path / "lm").glob("*.npy"):
        assert array.read_bytes() == (tmp_path / "again" / array.name).read_bytes()
    assert json.loads((tmp_path / "lm" / "meta.json").read_text())["source"]["name"] == "text"

    (tmp_path / "lm.arpa").write_bytes(gzip.decompress((tmp_path / "lm.arpa.gz").read_bytes()))
    rival = kenlm_model(tmp_path / "lm.arpa")
    models = load_language_models([("LM", tmp_path / "lm")])
    lines = [*long_text(seed=2, lines=20), ["unseen", "w1"]]
    scored = score_text(models, 0, "".join(" ".join(line) + "\n" for line in lines).encode())
    for line, begin, end in zip(lines, scored.first, scored.first[1:], strict=False):
        assert scored.prob[begin:end].sum() == pytest.approx(rival.score(" ".join(line)), abs=1e-4)
    unigram = read_arpa(tmp_path / "lm.arpa").unigram
    total = (10 ** -np.abs(unigram[:, 0].astype(float))).sum() - 1  # <s> has probability 1 and is no word
    assert total == pytest.approx(1, abs=1e-5)


def test_the_source_of_standard_input_is_unknown(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(text.read_bytes()))))
    assert lm("--order", 2, "--discount-fallback", "-q", "-", tmp_path / "lm") == 0
    assert json.loads((tmp_path / "lm" / "meta.json").read_text())["source"] is None
    load_language_models([("LM", tmp_path / "lm")])


# ---- the command


def lm(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers(required=True))
    args = parser.parse_args(["lm", "estimate", *map(str, arguments)])
    return int(args.run(args))


def test_options_with_lists_of_numbers() -> None:
    assert _fold(["--prune", "0", "0", "1", "text", "1"]) == ["--prune=0 0 1", "text", "1"]
    assert _fold(["text", "--discount-fallback", "out"]) == ["text", "--discount-fallback=", "out"]
    assert _fold(["--discount-fallback", ".5", "1", "1.5", "-q"]) == ["--discount-fallback=.5 1 1.5", "-q"]
    assert _fold(["--prune=0 1", "--order", "3"]) == ["--prune=0 1", "--order", "3"]


def test_messages(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lm("--order", 3, "--prune", 0, 0, 1, "--discount-fallback", text, tmp_path / "lm.arpa") == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f"hiero: {NUM_LINES} lines, ")
    assert [" 1-grams, discounts " in lines[1], " of " in lines[3], len(lines)] == [True, True, 4]
    listed = read_model(tmp_path / "lm.arpa")
    assert lines[3].startswith(f"hiero: {sum(len(ngram) == 3 for ngram in listed)} of ")
    assert lm("--order", 3, "-q", "--prune", 0, 0, 1, "--discount-fallback", ".5", 1, 1.5, text, "-") == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out == (tmp_path / "lm.arpa").read_text(encoding="utf-8")
    assert lm("--order", 1, "--discount-fallback", "--format", "compiled", text, tmp_path / "x.arpa") == 0
    assert (tmp_path / "x.arpa").is_dir()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "text: found an empty file, expected text, a sentence on each line"),
        (b"a b\nc <s> d\n", "text:2: found '<s>', expected words of the language ("),
        (b"a\nb\n</s>", "text:3: found '</s>', expected words of the language ("),
        (b"a\nb <unk>\n", "text:2: found '<unk>', expected words of the language ("),
        (b"a\nb <UNK>\n", "text:2: found '<UNK>', expected words of the language ("),
        (b"a\nb \xff c\n", "text:2: found byte 0xff at position 3 of the line, expected UTF-8 ("),
        (
            b"a b\na b\n",
            "text: found 1-grams whose discounts cannot be estimated: none with an adjusted count",
        ),
    ],
)
def test_invalid_text(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "text").write_bytes(content)
    with pytest.raises(FormatError) as caught:
        lm(tmp_path / "text", tmp_path / "lm.arpa")
    assert str(caught.value).removeprefix(f"{tmp_path}/").startswith(message)
    assert os.listdir(tmp_path) == ["text"]


def test_symbols_may_be_skipped(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"\xef\xbb\xbfa <s> b </s>\nb <unk>\n")
    (tmp_path / "plain").write_bytes(b"a b\nb")
    for name in ("text", "plain"):
        lm("--skip-symbols", "--discount-fallback", "-q", tmp_path / name, tmp_path / f"{name}.arpa")
    assert (tmp_path / "text.arpa").read_bytes() == (tmp_path / "plain.arpa").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--order", 7], "argument --order: found 7, expected 1 to 6"),
        (["--order", 1, "--prune", 0, 1], "argument --prune: found 2 thresholds, expected at most 1"),
        (["--prune", 1, 0], "argument --prune: found 1 0, expected thresholds from 0 on, in ascending order"),
        (
            ["--discount-fallback", 2, 1],
            "argument --discount-fallback: found 2.0, expected 0 to 1 for",
        ),
        (
            ["--discount-fallback", *[0.5] * 4],
            "argument --discount-fallback: found 4 values, expected 1 to",
        ),
    ],
)
def test_invalid_settings(tmp_path: Path, arguments: list[object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        lm(*arguments, tmp_path / "text", tmp_path / "lm")
    assert message in str(caught.value)


def test_invalid_lists_of_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["--prune", "text", "out"],
        ["--prune", "-1", "text", "out"],
        ["--prune", "1.5", "a", "b"],
    ):
        with pytest.raises(SystemExit):
            lm(*arguments)
        assert "argument --prune: found '" in capsys.readouterr().err


def test_unwritable_output(text: Path, tmp_path: Path) -> None:
    with pytest.raises(
        FormatError, match=r"nowhere/lm\.arpa: found no such directory, expected a writable path"
    ):
        lm(text, tmp_path / "nowhere" / "lm.arpa")
    with pytest.raises(
        FormatError, match="nowhere: found no such directory, expected a directory for temporary"
    ):
        lm("--temp", tmp_path / "nowhere", text, tmp_path / "lm.arpa")
    with pytest.raises(HieroError, match="already exists and contains no hiero language model"):
        lm(text, tmp_path)
    (tmp_path / "words").write_text("\n")
    with pytest.raises(FormatError, match="words: found no words, expected the vocabulary of the model"):
        lm("--vocab", tmp_path / "words", text, tmp_path / "lm.arpa")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk(text: Path) -> None:
    with pytest.raises(FormatError, match="/dev/full: found no space left on device, expected room to write"):
        lm("--order", 2, "--discount-fallback", "--format", "arpa", text, "/dev/full")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_for_temporary_files(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: Path("/dev/full").open("r+b", 0))  # noqa: SIM115
    config = EstimateConfig(order=3, discount_fallback=FALLBACK, memory=10**4, temp=tmp_path)
    with pytest.raises(HieroError, match="cannot hold temporary files: no space left on device"):
        estimate_language_model(text, tmp_path / "lm.arpa", config, compiled=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "stage", ["reading lines", "counting words", "adjusting counts", "discounting", "writing n-grams"]
)
@pytest.mark.parametrize("compiled", [False, True])
def test_interrupts_leave_no_files(text: Path, tmp_path: Path, stage: str, compiled: bool) -> None:
    class Interrupt(SilentProgress):
        reached = ""

        def begin(self, total: int | None, what: str = "") -> None:
            self.reached = what

        def advance(self, steps: int, note: str = "") -> None:
            if self.reached == stage:
                raise KeyboardInterrupt

    config = EstimateConfig(order=3, discount_fallback=FALLBACK, memory=10**4, temp=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        estimate_language_model(text, tmp_path / "lm", config, compiled=compiled, progress=Interrupt())
    assert list(tmp_path.iterdir()) == []


# ---- lmplz


@pytest.mark.reference
@pytest.mark.heavy
@pytest.mark.parametrize(
    ("name", "corpus", "settings"),
    [
        ("m30k", "multi30k-de-en", {"discount_fallback": FALLBACK}),
        ("ep", "europarl-de-en", {"prune": (0, 0, 1)}),
    ],
)
def test_lmplz_gives_the_same_model(
    reference: Path, tmp_path: Path, name: str, corpus: str, settings: dict[str, tuple[float, ...]]
) -> None:
    train = reference.parent / "data" / corpus / "train.trg.gz"
    if not train.is_file():
        pytest.skip(f"no {train}")
    out = tmp_path / "lm.arpa"
    config = EstimateConfig(memory=64 << 20, **settings)  # type: ignore[arg-type]
    estimate_language_model(train, out, config, compiled=False)
    expected, found = read_model(reference / name / "lm.arpa.gz"), read_model(out)
    assert found.keys() == expected.keys()
    gold, ours = (np.array([model[ngram] for ngram in expected]) for model in (expected, found))
    assert np.abs(gold - ours).max() < 1e-5
    assert kenlm_model(out).order == 5
