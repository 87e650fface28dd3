"""Splitting of compounds: a word becomes words of the same corpus, where these are more frequent.

Koehn and Knight (2003): of all ways to write a word as known words, with or without filler letters between
them (Aktion-s-plan), the one with the largest geometric mean of the frequencies is chosen; not to split is
one of the ways. A lattice has several of the best ways (Dyer 2009), with two costs for each word:
log10 of its mean frequency divided by that of the best way, and the number of joints.

A model is a text: settings as JSON in the first line, then the words of a corpus with their frequencies.
"""

from __future__ import annotations

import dataclasses
import functools
import heapq
import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hiero.bitext.config import CompoundConfig, PrepConfig, Row
from hiero.bitext.prepare import MARK, Cleaner, map_lines, rows_to_prepare
from hiero.core.errors import FormatError, HieroError, show
from hiero.core.lattice import COST, MOST_NODES, Lattice
from hiero.core.progress import Progress
from hiero.core.records import record
from hiero.core.text import read_lines, utf8_line, write_output

FORMAT = "hiero compounds 1"
LONGEST = 60  # characters of a word that is split
MOST_PARTS = 5
UNSEEN = 0.5  # the frequency of an unknown word as a way among others


Sum = tuple[float, tuple[tuple[int, int], ...]]  # of logarithms of frequencies, and the parts


class Way(NamedTuple):
    """A way to write a word: its score, a mean frequency, and its parts with the fillers after them."""

    score: float
    parts: tuple[tuple[str, str], ...]


class Compounds:
    """Splits words by the frequencies of a corpus.

    >>> found = Compounds.learn(["aktion plan"] * 9 + ["aktionsplan"])
    >>> found.split("der aktionsplan".split())
    ['der', 'aktion', 'plan']
    """

    def __init__(self, counts: Mapping[str, int], config: CompoundConfig | None = None) -> None:
        """``counts``: how often each word occurs; lower-case and capital forms count together."""
        self.counts, self.config = counts, config or CompoundConfig()
        self._total: Counter[str] = Counter()
        best: dict[str, tuple[int, str]] = {}
        for word, count in counts.items():
            lower = word.lower()
            self._total[lower] += count
            best[lower] = max(best.get(lower, (0, "")), (count, word))
        self._form = {lower: word for lower, (_, word) in best.items()}
        self.ways = functools.lru_cache(maxsize=1 << 16)(self._ways)

    # ---- models

    @classmethod
    def learn(cls, lines: Iterable[str], config: CompoundConfig | None = None) -> Compounds:
        """Count the words of a text that may be parts."""
        config = config or CompoundConfig()
        counts = Counter(word for line in lines for word in line.split(" "))
        return cls({w: n for w, n in sorted(counts.items()) if w.isalpha() and len(w) <= LONGEST}, config)

    @classmethod
    def read(cls, path: str | Path) -> Compounds:
        """Read a model."""
        lines = read_lines(path, "a model of compounds")
        hint = "hiero prep --learn-compounds makes such models"
        counts: dict[str, int] = {}
        config = None
        for number, line in enumerate(lines, 1):
            text = utf8_line(path, number, line)
            if config is None:
                config = _read_header(path, text, hint)
                continue
            word, tab, count = text.partition("\t")
            if not (tab and word.isalpha() and count.isascii() and count.isdigit() and 0 < len(count) < 16):
                raise FormatError(
                    path, number, found=show(text), expected="a word, a tab and its count", hint=hint
                )
            if word in counts:
                raise FormatError(path, number, found=f"{show(word)} again", expected="each word once")
            counts[word] = int(count)
        if config is None:
            raise FormatError(path, 0, found="an empty file", expected="a model of compounds", hint=hint)
        return cls(counts, config)

    def write(self, path: str | Path) -> None:
        """Write a model; equal models give equal files."""
        header = {"format": FORMAT} | dataclasses.asdict(self.config)
        lines = [json.dumps(header), *(f"{word}\t{count}" for word, count in sorted(self.counts.items()))]
        write_output(path, "".join(f"{line}\n" for line in lines))

    # ---- words

    def _ways(self, word: str) -> tuple[Way, ...]:
        """The best ways to write a word, the best first; ties go to fewer, then longer first, parts."""
        config, most = self.config, self.config.alternatives
        lower = word.lower()
        whole = Way(float(self._total[lower]), ((word, ""),))
        if not config.min_length * 2 <= len(word) <= LONGEST or not word.isalpha() or len(lower) != len(word):
            return (whole,)
        # best[end][number of parts]: sums of logarithms of the frequencies, with the places of joints.
        size, fillers = len(word), ("", *config.fillers.split())
        best: list[list[list[Sum]]] = [[[] for _ in range(MOST_PARTS + 1)] for _ in range(size + 1)]
        best[0][0].append((0.0, ()))
        for start in range(size):
            for end in range(start + config.min_length, size + 1):
                count = self._total[lower[start:end]]
                if count < config.min_count or end - start == size:
                    continue
                for filler in fillers if end < size else ("",):
                    if not lower.startswith(filler, end):
                        continue
                    after = end + len(filler)
                    if after > size or (filler and after == size):
                        continue
                    for number in range(MOST_PARTS):
                        for score, places in best[start][number]:
                            row = best[after][number + 1]
                            row.append((score + math.log(count), (*places, (start, end))))
                            if len(row) > 4 * most:
                                row[:] = heapq.nlargest(most, row)
        found = [whole]
        for number in range(2, MOST_PARTS + 1):
            for score, places in heapq.nlargest(most, best[size][number]):
                parts = []
                for (start, end), (after, _) in zip(places, [*places[1:], (size, size)], strict=True):
                    parts.append((word[start:end], word[end:after]))
                found.append(Way(math.exp(score / number), tuple(parts)))
        found.sort(key=lambda way: (-way.score, len(way.parts), [-len(part) for part, _ in way.parts]))
        return tuple(found[:most])

    def _free(self, way: Way) -> list[str]:
        """The parts of a way as words of the corpus, without fillers; an unsplit word is as it was."""
        if len(way.parts) == 1:
            return [way.parts[0][0]]
        return [self._form[part.lower()] for part, _ in way.parts]

    # ---- sentences

    def split(self, words: Iterable[str]) -> list[str]:
        """The best way to write each word."""
        return [part for word in words for part in self._free(self.ways(word)[0])]

    def marked(self, words: Iterable[str]) -> list[str]:
        """As ``split``, with fillers and with ``@@`` where parts are to be joined: ``aktions@@ plan``."""
        found = []
        for word in words:
            *parts, (last, _) = self.ways(word)[0].parts
            found += [f"{part}{filler}{MARK}" for part, filler in parts]
            found.append(last)
        return found

    def lattice(self, words: Sequence[str]) -> Lattice | None:
        """A lattice of the best ways to write each word; None if there is one way for each."""
        ways = [self._distinct(word) for word in words]
        if all(len(some) == 1 for some in ways):
            return None
        arcs, node = [], 0
        for some in ways:
            end = node + 1 + sum(len(parts) - 1 for _, parts in some)
            inner, best = node + 1, max(some[0][0], UNSEEN)
            for score, parts in some:
                costs = {COST: math.log10(max(score, UNSEEN) / best), f"{COST}_1": len(parts) - 1.0}
                at = node
                for k, part in enumerate(parts):
                    to = end if k == len(parts) - 1 else inner
                    arcs.append((at, to, part, costs if k == 0 else {}))
                    at, inner = to, inner + (to != end)
            node = end
        return None if node >= MOST_NODES else Lattice.make(arcs)

    def _distinct(self, word: str) -> list[tuple[float, tuple[str, ...]]]:
        """Ways to write a word that differ in their parts."""
        found: dict[tuple[str, ...], float] = {}
        for way in self.ways(word):
            found.setdefault(tuple(self._free(way)), way.score)
        return [(score, parts) for parts, score in found.items()]

    def line(self, words: Sequence[str], kind: str) -> str:
        """A sentence as text, with its compounds split as ``best``, ``marked`` or ``lattice``."""
        lattice = self.lattice(words) if kind == "lattice" else None
        if lattice is not None:
            return lattice.to_plf()
        return " ".join(self.marked(words) if kind == "marked" else self.split(words))


def split_compounds(
    source: str | Path,
    output: str | Path,
    model: str | Path,
    kind: str,
    jobs: int = 1,
    progress: Progress | None = None,
    cleaning: tuple[str, PrepConfig] | None = None,
) -> int:
    """Write a text with its compounds split as ``best``, ``marked`` or ``lattice``; returns its lines.

    cleaning  the language, and settings, where the text is raw
    """
    language, config = cleaning or ("", PrepConfig(tokenize=False))
    Compounds.read(model)  # a damaged one is not reported by a process
    version = os.stat(model).st_mtime_ns, os.stat(model).st_size
    work = functools.partial(_split_batch, str(model), version, kind, language, config)
    return map_lines(work, source, output, jobs, progress)


def learn_compounds(
    source: str | Path, output: str | Path, config: CompoundConfig, cleaning: tuple[str, PrepConfig]
) -> int:
    """Learn a model from a raw text and write it; returns the number of words."""
    clean = Cleaner(*cleaning)
    compounds = Compounds.learn((clean(line)[0] for (line,) in rows_to_prepare([source])), config)
    compounds.write(output)
    return len(compounds.counts)


@functools.lru_cache(maxsize=2)
def _model(path: str, version: tuple[int, int]) -> Compounds:
    """A model, read again when its file has changed."""
    return Compounds.read(path)


_cleaner = functools.lru_cache(maxsize=2)(Cleaner)


def _split_batch(
    model: str, version: tuple[int, int], kind: str, language: str, config: PrepConfig, rows: list[Row]
) -> list[str]:
    """In a worker process."""
    compounds, clean = _model(model, version), _cleaner(language, config)
    return [compounds.line(clean(line)[0].split(), kind) for (line,) in rows]


def _read_header(path: str | Path, text: str, hint: str) -> CompoundConfig:
    try:
        header = json.loads(text)
        if not isinstance(header, dict) or header.pop("format", None) != FORMAT:
            raise ValueError
        known = {one.name for one in dataclasses.fields(CompoundConfig)}
        if set(header) != known:
            raise ValueError
        return record(CompoundConfig, header, str(path))
    except (ValueError, RecursionError, HieroError):
        expected = f'{{"format": "{FORMAT}", …}}'
        raise FormatError(path, 1, found=show(text), expected=expected, hint=hint) from None
