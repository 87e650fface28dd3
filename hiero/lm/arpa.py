r"""Read and write ARPA language models: ``\data\``, counts, ``\1-grams:`` ..., ``\end\``.

Interpreted as by KenLM, so that scores are equal: ``<unk>`` has id 0, and log10 probability -100 if it is not
listed. Words are numbered in the order of the 1-grams.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from hiero.core.arrays import Bytes, Floats, Floats32, Ints, read_only
from hiero.core.errors import FormatError, show
from hiero.core.records import MAX_ORDER
from hiero.core.scan_kernels import powers_of_ten
from hiero.core.symbol_kernels import WordTable, find_all_kernel
from hiero.core.symbols import find_all, table_entry, word_table_of
from hiero.core.text import GZIP_MAGIC, open_bytes, open_output, read_chunks
from hiero.lm import arpa_kernels as scan
from hiero.lm.arpa_kernels import MAX_DIGITS, write_entries_kernel
from hiero.lm.model import MODEL, ReadModel, write_ngrams
from hiero.lm.table_kernels import NgramBlock, OpenTable, doubled, ngram_table_of_blocks, open_table

WHAT = "an ARPA language model"
MISSING_UNKNOWN = -100.0  # as KenLM
MIN_LINE_BYTES = 8  # of an n-gram of two or more words
MAX_COMPRESSION = 10
BLANK_LINES = re.compile(rb"(?:[ \t\r]*\n)+")
COUNT_LINE = re.compile(rb"ngram\s+(\d{1,3})\s*=\s*(\d{1,18})")

# Other formats by their first bytes, with hints.
NOT_ARPA = {
    b"iARPA": "its probabilities are not interpolated yet; run compile-lm --text yes FILE OUT",
    b"blmt": "an IRSTLM binary; run compile-lm --text yes FILE OUT",
    b"mmap lm ": "a KenLM binary is mapped into memory: decompress it first",
}


def read_arpa(path: Path) -> ReadModel:
    """Read the model in a file, plain or gz."""
    reader = _ArpaReader(path)
    for chunk in read_chunks(path, what=WHAT):
        reader.feed(chunk.data)
    return reader.finish()


class _Unigrams:
    """The 1-grams while they are read: one array for each piece of the file, as written by the kernel."""

    def __init__(self) -> None:
        self.unknown = np.array([MISSING_UNKNOWN, -0.0], np.float32)
        self._pool = [np.frombuffer(b"<unk>", np.uint8)]
        self._end = [np.array([0, 5], np.int64)]
        self._line = [np.zeros(1, np.int64)]
        self._weight = [np.zeros((1, 2), np.float32)]

    def read(self, data: Bytes, is_longest: bool, powers: Floats, state: Ints, line: int) -> int:
        """Read 1-grams; returns why the kernel stopped. ``line`` is the number of the line at state[AT]."""
        num_bytes = len(data) - int(state[scan.AT])
        lines = num_bytes // 4 + 1
        pool, end, place = np.empty(num_bytes, np.uint8), np.empty(lines, np.int64), np.empty(lines, np.int64)
        weight = np.empty((lines, 2), np.float32)
        status, count = scan.read_unigrams_kernel(
            data, is_longest, powers, state, pool, end, place, weight, self.unknown
        )
        if count:
            self._pool.append(pool[: end[count - 1]].copy())
            self._end.append(end[:count] + self._end[-1][-1])
            self._line.append(place[:count] + line)
            self._weight.append(weight[:count].copy())
        return int(status)

    def table(self) -> WordTable:
        return word_table_of(read_only(np.concatenate(self._pool)), read_only(np.concatenate(self._end)))

    def lines(self) -> Ints:
        return np.concatenate(self._line)

    def weights(self) -> Floats32:
        weights = np.concatenate(self._weight)
        weights[0] = self.unknown
        return weights


class _ArpaReader:
    """Reads a file in pieces of whole lines; ``finish`` returns the model."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._line = 1
        self._begun = False  # the line \data\ has been read
        self._ended = False  # the line \end\ has been read
        self._counts: list[int] = []
        self._section = 0  # order of the n-grams that are being read; 0 in the header
        self._state = np.zeros(5, np.int64)
        self._powers = powers_of_ten()
        self._words = _Unigrams()

        # Known once the 1-grams are read.
        self._word_table: WordTable
        self._unigram: Floats32
        self._table: OpenTable
        self._markers: list[int]

    def feed(self, text: bytes) -> None:
        data = np.frombuffer(text, np.uint8)
        self._state[scan.AT] = 0
        while self._state[scan.AT] < len(text):
            at = int(self._state[scan.AT])
            if self._section and not self._ended and data[at] != scan.BACKSLASH:
                self._read_entries(data)
                continue
            if blank := BLANK_LINES.match(text, at):
                self._state[scan.AT] = blank.end()
                self._line += text.count(b"\n", at, blank.end())
                continue
            end = text.index(b"\n", at)
            self._read_line(text[at:end].strip(b" \t\r"))
            self._state[scan.AT] = end + 1
            self._line += 1

    def finish(self) -> ReadModel:
        if not self._ended:
            if self._line == 1:
                raise FormatError(self._path, 0, found="an empty file", expected=WHAT)
            expected = r"\end\ " if self._begun else r"\data\ "
            raise self._error("the end of the file", expected.strip(), "the file is truncated")
        bos, eos = self._markers
        return ReadModel(self._table, self._unigram, len(self._counts), bos, eos, self._word_table)

    def _error(self, found: str, expected: str, hint: str = "") -> FormatError:
        return FormatError(self._path, self._line, found=found, expected=expected, hint=hint)

    def _read_line(self, line: bytes) -> None:
        """Read a line other than an n-gram."""
        if not line:
            return
        if self._ended:
            raise self._error(show(line), r"nothing after \end" + "\\")
        if not self._begun:
            self._begun = line == b"\\data\\"
            if not self._begun and not line.startswith(b"#"):
                hint = next((hint for magic, hint in NOT_ARPA.items() if line.startswith(magic)), "")
                raise self._error(show(line), WHAT + r", which begins with \data" + "\\", hint)
        elif line.startswith(b"\\"):
            self._begin_section(line)
        else:
            self._read_count(line)

    def _read_count(self, line: bytes) -> None:
        order = len(self._counts) + 1
        match = COUNT_LINE.fullmatch(line)
        if not match or int(match[1]) != order:
            raise self._error(show(line), f"'ngram {order}=COUNT' or '\\1-grams:'")
        if order > MAX_ORDER:
            raise self._error(f"order {order}", f"{MAX_ORDER} or less", "estimate a model of lower order")
        self._counts.append(int(match[2]))

    def _begin_section(self, line: bytes) -> None:
        order = len(self._counts)
        if not order:
            raise self._error(show(line), "'ngram 1=COUNT'")
        if self._section:
            self._end_section()
        expected = f"\\{self._section + 1}-grams:" if self._section < order else "\\end\\"
        if line != expected.encode():
            raise self._error(show(line), f"'{expected}'", "the header announces order " + str(order))
        if self._section < order:
            self._section += 1
            self._state[scan.COUNT] = 0
        else:
            self._ended = True

    def _end_section(self) -> None:
        found, expected = int(self._state[scan.COUNT]), self._counts[self._section - 1]
        if found != expected:
            name = f"{self._section}-grams"
            raise self._error(f"{found} {name}", f"{expected} {name}, as the header says")
        if self._section == 1:
            self._freeze_words()

    def _freeze_words(self) -> None:
        self._word_table = table = self._words.table()
        ids = np.empty(len(table.first) - 1, np.int32)
        find_all_kernel(table, table.pool, table.first, ids)
        repeated = np.flatnonzero(ids != np.arange(len(ids)))
        if len(repeated):
            self._line = int(self._words.lines()[repeated[0]])
            entry = table_entry(table, int(repeated[0]))
            raise self._error(f"the word {show(entry)} again", "every word once")
        self._markers = find_all(table, [b"<s>", b"</s>"]).tolist()
        for marker, word in zip(self._markers, ("<s>", "</s>"), strict=True):
            if marker < 0:
                raise self._error(
                    f"no {word} among the 1-grams", "<s> and </s>", "KenLM refuses such models as well"
                )
        self._unigram = self._words.weights()
        self._table = open_table(min(sum(self._counts[1:]), self._plausible_ngrams()))

    def _plausible_ngrams(self) -> int:
        """A bound on the counts of the header, which may be wrong; a table that is too small grows."""
        with open_bytes(self._path, WHAT) as stream:
            packed = stream.read(2) == GZIP_MAGIC
            num_bytes = stream.seek(0, 2)
        return num_bytes * (MAX_COMPRESSION if packed else 1) // MIN_LINE_BYTES

    def _read_entries(self, data: Bytes) -> None:
        state = self._state
        state[scan.LINES] = 0
        is_longest = self._section == len(self._counts)
        if self._section == 1:
            status = self._words.read(data, is_longest, self._powers, state, self._line)
        else:
            status = scan.read_ngrams_kernel(
                data,
                self._section,
                is_longest,
                self._powers,
                self._word_table,
                state,
                self._table,
                self._unigram,
            )
        self._line += int(state[scan.LINES])
        if status == scan.NO_ROOM:
            self._table = doubled(self._table)
        elif status not in (scan.END_OF_DATA, scan.END_OF_SECTION):
            token = data[state[scan.BAD_START] : state[scan.BAD_END]].tobytes()
            expected, hint = _wrong_entry(status, self._section)
            raise self._error(show(token), expected, hint)


def _wrong_entry(status: int, length: int) -> tuple[str, str]:
    """The expectation that the token violates, and a hint."""
    words = f"{length} word{'s' * (length > 1)}"
    entry = f"a log10 probability, {words} and perhaps a back-off"
    return {
        scan.NOT_A_NUMBER: ("a log10 probability", f"in the {length}-grams"),
        scan.NOT_FINITE: ("a finite number", "write an impossible n-gram as -99"),
        scan.POSITIVE: ("a log10 probability, zero or less", "an error of the toolkit that wrote the file"),
        scan.TOO_FEW_WORDS: (entry, "there are too few fields"),
        scan.TOO_MANY_WORDS: (entry, "too many fields, or the back-off is not a number"),
        scan.UNKNOWN_WORD: ("a word of the 1-grams", "they must list every word of the model"),
        scan.LISTED_TWICE: (f"every {length}-gram once", "it is listed twice"),
        scan.LONGEST_BACKOFF: ("no back-off", f"{length}-grams are the longest of this model"),
    }[status]


MAX_NUMBER = 48  # bytes


def write_arpa(
    path: str | Path, table: WordTable, counts: Sequence[int], blocks: Iterable[NgramBlock]
) -> None:
    """Write a model, compressed if the name ends in ``.gz``. Blocks come in the order of their length."""
    powers = np.array([float(f"1e{k}") for k in range(MAX_DIGITS + 1)])
    size = np.diff(table.first)
    with open_output(path) as out:
        header = "".join(f"ngram {n}={count}\n" for n, count in enumerate(counts, 1))
        out.write(f"\\data\\\n{header}".encode())
        written = 0
        for block in blocks:
            length = block.words.shape[1]
            while written < length:
                written += 1
                out.write(f"\n\\{written}-grams:\n".encode())
            num_bytes = int(size[block.words].sum()) + len(block.words) * (2 * MAX_NUMBER + length + 2)
            text = np.empty(num_bytes, np.uint8)
            end = write_entries_kernel(table, *block, length < len(counts), powers, text)
            out.write(text[:end].data)
        while written < len(counts):
            written += 1
            out.write(f"\n\\{written}-grams:\n".encode())
        out.write(b"\n\\end\\\n")


# ---- models from their n-grams

LEAST = 1e-99  # written for zero probability, as by SRILM


def check_output(output: Path, *, compiled: bool) -> None:
    """Refuse a path where the model cannot be written, before long work."""
    if compiled:
        MODEL.check_place(output)
    elif str(output) != "-" and not output.parent.is_dir():
        raise FormatError(output, 0, found="no such directory", expected="a writable path")


def write_model(
    output: Path,
    words: WordTable,
    counts: Sequence[int],
    blocks: Iterable[NgramBlock],
    *,
    compiled: bool,
    source: Path | None,
) -> None:
    """Write a model. Blocks come in the order of their length; ``source`` is what it was made from."""
    if not compiled:
        write_arpa(output, words, counts, blocks)
        return
    table, unigram = ngram_table_of_blocks(counts, blocks)
    bos, eos = find_all(words, [b"<s>", b"</s>"]).tolist()
    write_ngrams(output, *ReadModel(table, unigram, len(counts), bos, eos, words).ngrams(), source)
