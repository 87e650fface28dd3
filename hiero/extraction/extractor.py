# mypy: allow-untyped-calls
"""Extract the rules of sentences from a bitext index; the index as a grammar."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hiero.core.errors import HieroError
from hiero.core.symbols import Symbols, Vocabulary, WordTable, find_all, gap, read_only, table_entry
from hiero.extraction.config import ExtractConfig
from hiero.extraction.desk import Workspace
from hiero.extraction.index import BitextIndex, open_index
from hiero.extraction.rulestore import RuleStore
from hiero.grammar.rules import Rules, RuleTable

# Names and order as in cdec. n: sampled occurrences of the source side; c: those with this target side.
FEATURES = (
    "EgivenFCoherent",  # -log10 c/n
    "SampleCountF",  # log10(1 + n)
    "CountEF",  # log10(1 + c)
    "MaxLexFgivenE",  # sum over source words of -log10 p given the best of the target words, or no word
    "MaxLexEgivenF",  # likewise in the other direction
    "IsSingletonF",  # 1 if the source side, with its gaps, occurs once
    "IsSingletonFE",  # 1 if c is 1
)
LEAVE_OUT = "leave_out"  # attribute of a <seg> tag


class Extractor:
    """Extracts rules, and caches those of phrases; safe to share between threads.

    Each thread that extracts at the same time has its own cache of ``cache_mb``.
    """

    def __init__(self, index: BitextIndex, config: ExtractConfig | None = None) -> None:
        self.index = index
        self.config = config or ExtractConfig()
        self.collocations = index.collocations_for(self.config.limits)
        self._store = RuleStore(self.config.store) if self.config.store is not None else None
        self._free: list[Workspace] = []
        self._lock = threading.Lock()

    def word_ids(self, words: Sequence[bytes]) -> npt.NDArray[np.int32]:
        """The ids of source words in the index, 0 for unknown ones."""
        return find_all(self.index.src_words, words) + np.int32(1)

    def is_sentence(self, number: int, words: Sequence[str]) -> bool:
        """Whether this is the source side of a pair of the bitext, counted from 0."""
        text = self.index.text
        if number >= self.index.num_sentences:
            return False
        known = text.src[text.first_src[number] : text.first_src[number + 1] - 1]
        return bool(np.array_equal(known, self.word_ids([word.encode() for word in words])))

    def rules(self, src: npt.NDArray[np.int32], left_out: int = -1) -> Rules:
        """The rules of a sentence, in which words are numbered as in the index and gap g is -g.

        Sentence pair ``left_out`` of the index, counted from 0, is ignored.
        """
        if not -1 <= left_out < self.index.num_sentences:
            expected = f"a sentence of {self.index.path}, 0 to {self.index.num_sentences - 1}"
            raise HieroError(f"sentence to leave out: found {left_out}, expected {expected}")
        if self._store is None:
            with self.workspace() as workspace:
                return workspace.rules(src, left_out)
        key = self._key(src, left_out)
        rules = self._store.get(key)
        if rules is None:
            with self.workspace() as workspace:
                rules = workspace.rules(src, left_out)
            self._store.put(key, rules)
        return rules

    def _key(self, src: npt.NDArray[np.int32], left_out: int) -> str:
        config = self.config
        numbers = [config.max_span, config.max_symbols, config.max_gaps, config.samples, left_out]
        if config.min_count > 1:
            numbers.append(config.min_count)
        if config.leave_out_links and left_out >= 0:
            numbers.append(-1)
        digest = hashlib.sha256(f"{self.index.digest} {tuple(numbers)}\n".encode())
        digest.update(np.ascontiguousarray(src, "<i4").tobytes())
        return digest.hexdigest()

    @contextmanager
    def workspace(self) -> Iterator[Workspace]:
        """A workspace for a thread: an idle one, or a new one."""
        with self._lock:
            workspace = self._free.pop() if self._free else None
        workspace = workspace or Workspace(self.index, self.config, self.collocations)
        try:
            yield workspace
        finally:
            with self._lock:
                self._free.append(workspace)


class _SharedWords:
    """A map from words of one side of an index to shared ids, each looked up on first use."""

    def __init__(self, table: WordTable, vocabulary: Vocabulary, gaps: Sequence[int]) -> None:
        self.table, self.vocabulary = table, vocabulary
        # Word w is at index w; gaps, which are negative, are at the end of the arrays.
        size = len(table.first) + len(gaps)
        self._shared = np.zeros(size, np.int32)
        self._known = np.zeros(size, np.bool_)
        for index, code in enumerate(gaps, 1):
            self._shared[-index], self._known[-index] = code, True

    def __call__(self, symbols: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        new = np.unique(symbols[~self._known[symbols]])
        if len(new):
            # Values before flags: a thread that sees the flag sees the value.
            entries = (table_entry(self.table, word - 1) for word in new.tolist())
            self._shared[new] = self.vocabulary.intern_all(entries)
            self._known[new] = True
        return self._shared[symbols]


class IndexSource:
    """A bitext index as a grammar: rules are extracted for each sentence to translate."""

    stage = "extract"  # name in the statistics of decoding

    def __init__(self, extractor: Extractor, symbols: Symbols) -> None:
        self.extractor, self.symbols = extractor, symbols
        index = extractor.index
        self._label = symbols.labels.intern(extractor.config.category.encode())
        gaps = int(gap(self._label, 1)), int(gap(self._label, 2))
        self._src = _SharedWords(index.src_words, symbols.words, gaps)
        self._tgt = _SharedWords(index.tgt_words, symbols.words, gaps)
        self._columns = tuple(symbols.names.intern(name.encode()) for name in FEATURES)

    @classmethod
    def open(cls, path: str | Path, symbols: Symbols, config: ExtractConfig | None = None) -> IndexSource:
        return cls(Extractor(open_index(path), config), symbols)

    def rules_for(self, src: npt.NDArray[np.int32], segment: Mapping[str, str]) -> RuleTable:
        """The rules of a sentence; with ``<seg leave_out="N">``, without sentence pair N of the bitext."""
        left_out = segment.get(LEAVE_OUT)
        if left_out is None:
            return self.extract(src)
        if not (left_out.isascii() and left_out.isdigit()):
            raise HieroError(
                f"<seg {LEAVE_OUT}=…>: found {left_out!r}, expected the number of a sentence pair"
            )
        return self.extract(src, int(left_out))

    def feature_names(self) -> frozenset[int]:
        """Ids in Symbols.names of the features that rules have."""
        return frozenset(self._columns)

    def extract(self, src: npt.NDArray[np.int32], left_out: int = -1) -> RuleTable:
        """The rules of a sentence; sentence pair ``left_out`` of the bitext is ignored."""
        own = self.extractor.word_ids([self.symbols.words.entry(word) for word in src.tolist()])
        return self.shared(self.extractor.rules(own, left_out))

    def shared(self, rules: Rules) -> RuleTable:
        """Rules with shared ids."""
        lhs = np.full(len(rules.lhs), self._label, np.int32)
        rules = rules._replace(lhs=lhs, src=self._src(rules.src), tgt=self._tgt(rules.tgt))
        arrays = {name: read_only(array) for name, array in rules._asdict().items()}
        return RuleTable(Rules(**arrays), self._columns)
