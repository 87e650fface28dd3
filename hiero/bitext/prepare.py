"""Cleaning, tokenisation and filtering of raw text, a sentence a line, and detokenisation.

Text is normalised to NFC; control characters become spaces, invisible ones are removed; a tokeniser splits
words and punctuation; lower-casing comes last, because the tokeniser uses capitals.

Lower-case text is recased by rules: capitals at sentence starts and in words of a list. The list has one word
a line, in its form inside a sentence (Germany, EU, iPhone). It is learnt from cased text: of each word, the
most frequent form that does not begin a sentence.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from hiero.bitext.config import PrepConfig, Row
from hiero.bitext.tokenizers import BY_CHARACTERS, base_language, make_tokenizer, sacremoses, tokenizer_name
from hiero.core.errors import FormatError, HieroError, show
from hiero.core.parallel import process_pools
from hiero.core.progress import Progress, SilentProgress
from hiero.core.text import open_output, read_lines, read_text, utf8_line, write_output

ENDS = frozenset([".", "!", "?", "。", "！", "？"])


class Recaser:
    """Adds capitals to words; words with a capital stay as they are."""

    def __init__(self, forms: Mapping[str, str] | None = None) -> None:
        """``forms`` maps lower-case words to their cased forms."""
        self.forms = forms or {}

    @classmethod
    def read(cls, path: str | Path) -> Recaser:
        """Read a list from a file."""
        forms: dict[str, str] = {}
        for number, word in enumerate(read_text(path, "a list of words"), 1):
            if not word or word.split() != [word]:
                hint = "hiero prep --learn-truecase makes such lists"
                raise FormatError(path, number, found=show(word), expected="one word", hint=hint)
            if forms.setdefault(word.lower(), word) != word:
                expected = f"each word once: there is {show(forms[word.lower()])} already"
                raise FormatError(path, number, found=show(word), expected=expected)
        return cls(forms)

    def __call__(self, words: Sequence[str]) -> list[str]:
        """Add capitals to tokenised words.

        >>> Recaser({"berlin": "Berlin"})("' in berlin ? 3 times . yes !".split())
        ["'", 'In', 'Berlin', '?', '3', 'times', '.', 'Yes', '!']
        """
        cased = []
        for word, begins in zip(words, sentence_starts(words), strict=True):
            form = self.forms.get(word, word) if word == word.lower() else word
            # A listed form with a capital inside (iPhone) is kept at the beginning of a sentence too.
            cased.append(form[0].title() + form[1:] if begins and form == form.lower() else form)
        return cased


def sentence_starts(words: Iterable[str]) -> list[bool]:
    """Flags of the words to capitalise: those that begin a sentence and start with a letter."""
    flags, open_start = [], True
    for word in words:
        begins = open_start and word[0].isalpha()
        flags.append(begins)
        if any(character.isalnum() for character in word):
            open_start = False
        if word in ENDS:
            open_start = True
    return flags


class CaseCounter:
    """Learns a list for a ``Recaser`` from tokenised, cased text."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}

    def add(self, words: Sequence[str]) -> None:
        for word, begins in zip(words, sentence_starts(words), strict=True):
            if not begins and any(character.isalpha() for character in word):
                self._counts.setdefault(word.lower(), Counter())[word] += 1

    def forms(self) -> list[str]:
        """The sorted entries of the list.

        Ties go to the form with fewer capitals, then to the first by code point, so that the list does not
        depend on the order of the text.
        """
        best = (
            (lower, min(forms, key=lambda form: (-forms[form], sum(map(str.isupper, form)), form)))
            for lower, forms in self._counts.items()
        )
        return sorted(form for lower, form in best if form != lower)


MARK = "@@"  # at the end of the part of a compound that is joined to the next
Item = TypeVar("Item")
Result = TypeVar("Result")

BATCH = 1000  # rows that a process receives at once
AHEAD = 4  # batches a process may be ahead of the output
# Tabs are white space like any other. U+0085, U+2028 and U+2029 end lines for some programs, never for ours.
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
# Soft hyphen, zero width space, joiner, byte order mark.
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")


@dataclass
class PrepCounts:
    """Numbers of lines, or of pairs of lines, by outcome."""

    read: int = 0
    kept: int = 0
    empty: int = 0
    short: int = 0
    long: int = 0
    ratio: int = 0
    control: int = 0  # had control or invisible characters

    @property
    def dropped(self) -> int:
        return self.read - self.kept


class CleanedRows(NamedTuple):
    rows: list[Row]
    counts: PrepCounts


# ---- one line


class Cleaner:
    """Cleans a raw line: words with single spaces between them."""

    def __init__(self, language: str, config: PrepConfig) -> None:
        self.config = config
        self._normalize: Callable[[str], str] | None = None
        self._tokenize: Callable[[str], str] | None = None
        if config.normalize_punctuation:
            self._normalize = sacremoses().MosesPunctNormalizer(lang=language).normalize
        if config.tokenize:
            self._tokenize = make_tokenizer(language, config).split

    def __call__(self, line: str) -> tuple[str, bool]:
        """The words, and whether the line had control or invisible characters."""
        text = _INVISIBLE.sub("", _CONTROL.sub(" ", line))
        is_clean = text == line
        text = unicodedata.normalize("NFC", text)
        if self._normalize is not None:
            text = self._normalize(text)
        if self._tokenize is not None:
            text = self._tokenize(text)
        if self.config.lowercase:
            text = unicodedata.normalize("NFC", text.lower())
        return " ".join(text.split()), not is_clean


class Detokenizer:
    """Joins words to plain text."""

    def __init__(self, language: str, recaser: Recaser | None, config: PrepConfig) -> None:
        self._recase = recaser
        self._join: Callable[[list[str]], str] = " ".join
        if config.tokenize:
            self._join = make_tokenizer(language, config).join

    def __call__(self, line: str) -> str:
        words = line.split()
        return self._join(words if self._recase is None else self._recase(words))


UNSEGMENTED = {"zh": "Chinese", "ja": "Japanese", "th": "Thai", "lo": "Lao", "km": "Khmer", "my": "Burmese"}


def unsegmented_note(language: str, config: PrepConfig) -> str:
    """A note on languages written without spaces, if their words stay unsegmented; empty for others."""
    name = UNSEGMENTED.get(base_language(language))
    if name is None or tokenizer_name(language, config) != "moses":
        return ""
    return f"{name} words are not segmented: what has no spaces stays one word (use a segmenter before)"


def knows_language(language: str, config: PrepConfig) -> bool:
    """Whether sacremoses, if it is used, has a list of abbreviations; otherwise it uses the English one."""
    if tokenizer_name(language, config) not in ("moses", "characters"):
        return True
    return (
        base_language(language) in BY_CHARACTERS
        or language in sacremoses().corpus.NonbreakingPrefixes().available_langs
    )


# ---- whole files


def prepare(
    inputs: Sequence[str | Path],
    outputs: Sequence[str | Path],
    languages: Sequence[str],
    config: PrepConfig,
    jobs: int = 1,
    progress: Progress | None = None,
) -> PrepCounts:
    """Clean one file, or several parallel files, from all of which the same lines are dropped.

    The output does not depend on ``jobs``, the number of processes.
    """
    progress = progress or SilentProgress()
    progress.begin(None)
    total = PrepCounts()
    work = functools.partial(_clean_batch, config, tuple(languages))
    with ExitStack() as stack:
        streams = [stack.enter_context(open_output(path)) for path in outputs]
        for batch in map_processes(work, batches(rows_to_prepare(inputs)), jobs):
            for stream, column in zip(streams, zip(*batch.rows, strict=True), strict=bool(batch.rows)):
                stream.write("".join(f"{line}\n" for line in column).encode())
            for name, count in vars(batch.counts).items():
                setattr(total, name, getattr(total, name) + count)
            progress.advance(batch.counts.read)
    return total


def detokenize(
    source: str | Path,
    output: str | Path,
    language: str,
    recaser: Recaser | None,
    jobs: int = 1,
    progress: Progress | None = None,
    config: PrepConfig | None = None,
    *,
    join: bool = False,
) -> int:
    """Write words as text; returns the number of lines. A ``recaser`` adds capitals.

    join  the parts of compounds that end with a mark
    """
    forms = None if recaser is None else tuple(sorted(recaser.forms.items()))
    work = functools.partial(_join_batch, config or PrepConfig(), language, forms, join)
    return map_lines(work, source, output, jobs, progress)


def map_lines(
    work: Callable[[list[Row]], Sequence[str]],
    source: str | Path,
    output: str | Path,
    jobs: int,
    progress: Progress | None = None,
) -> int:
    """Write what ``work`` makes of each batch of the lines of a text; returns the number of lines."""
    progress = progress or SilentProgress()
    progress.begin(None)
    lines = 0
    with open_output(output) as stream:
        for texts in map_processes(work, batches(rows_to_prepare([source])), jobs):
            stream.write("".join(f"{text}\n" for text in texts).encode())
            lines += len(texts)
            progress.advance(len(texts))
    return lines


def learn_truecase(
    source: str | Path,
    output: str | Path,
    language: str,
    config: PrepConfig,
    jobs: int = 1,
    progress: Progress | None = None,
) -> int:
    """Learn a list for a ``Recaser`` from cased text and write it; returns the number of words."""
    progress = progress or SilentProgress()
    progress.begin(None)
    counter = CaseCounter()
    work = functools.partial(_clean_batch, config, (language,))
    for batch in map_processes(work, batches(rows_to_prepare([source])), jobs):
        for (text,) in batch.rows:
            counter.add(text.split())
        progress.advance(batch.counts.read)
    forms = counter.forms()
    write_output(output, "".join(f"{form}\n" for form in forms))
    return len(forms)


def rows_to_prepare(paths: Sequence[str | Path]) -> Iterator[Row]:
    """The rows to prepare: a line of each file. Files must be UTF-8, with the same number of lines."""
    streams = [enumerate(read_lines(path, "text"), 1) for path in paths]
    for rows in itertools.zip_longest(*streams):
        if None in rows:
            ended = rows.index(None)
            length = next(row for row in rows if row is not None)[0] - 1
            longer = next(at for at, row in enumerate(rows) if row is not None)
            others = length + 1 + sum(1 for _ in streams[longer])
            expected = f"{others}, as many as {paths[longer]} has"
            raise FormatError(paths[ended], 0, found=f"{length} lines", expected=expected)
        yield tuple(utf8_line(path, *numbered) for path, numbered in zip(paths, rows, strict=True))


def batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while batch := list(itertools.islice(rows, BATCH)):
        yield batch


# ---- in worker processes


_cleaner = functools.lru_cache(maxsize=8)(Cleaner)


@functools.lru_cache(maxsize=2)
def _detokenizer(language: str, forms: tuple[tuple[str, str], ...] | None, config: PrepConfig) -> Detokenizer:
    return Detokenizer(language, None if forms is None else Recaser(dict(forms)), config)


def _clean_batch(config: PrepConfig, languages: tuple[str, ...], rows: list[Row]) -> CleanedRows:
    cleaners = [_cleaner(language, config) for language in languages]
    counts, kept = PrepCounts(read=len(rows)), []
    for row in rows:
        cleaned = [cleaner(line) for cleaner, line in zip(cleaners, row, strict=True)]
        texts = tuple(text for text, _ in cleaned)
        counts.control += any(control for _, control in cleaned)
        reason = config.reason_to_drop(texts)
        if reason:
            setattr(counts, reason, getattr(counts, reason) + 1)
        else:
            kept.append(texts)
    counts.kept = len(kept)
    return CleanedRows(kept, counts)


def _join_batch(
    config: PrepConfig,
    language: str,
    forms: tuple[tuple[str, str], ...] | None,
    join: bool,
    rows: list[Row],
) -> list[str]:
    text = _detokenizer(language, forms, config)
    return [text(" ".join(join_compounds(line.split())) if join else line) for (line,) in rows]


def join_compounds(words: Iterable[str]) -> list[str]:
    """Join the parts of marked compounds.

    >>> join_compounds("der aktions@@ plan".split())
    ['der', 'aktionsplan']
    """
    found, start = [], ""
    for word in words:
        if word.endswith(MARK) and word != MARK:
            start += word.removesuffix(MARK)
            continue
        found.append(start + word)
        start = ""
    return [*found, start] if start else found


def map_processes(work: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    """An ordered map over ``jobs`` processes."""
    if jobs == 1:
        yield from map(work, items)
        return
    waiting: deque[Future[Result]] = deque()
    with process_pools(jobs) as current:
        pool = current()
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) >= AHEAD * jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise HieroError("hiero prep: a process was killed (out of memory? try a smaller -j)") from None
        finally:
            for future in waiting:
                future.cancel()
