"""Settings of the preparation of text."""

from __future__ import annotations

from dataclasses import dataclass

from hiero.core.plugins import plugins
from hiero.core.records import Checked, PathKey, setting

# MODULE:CLASS, imported if it is used; see tokenizers.py.
TOKENIZERS = {
    "moses": "hiero.bitext.tokenizers:Moses",
    "characters": "hiero.bitext.tokenizers:Characters",
    "sentencepiece": "hiero.bitext.tokenizers:SentencePiece",
}
NO_LIMIT = 0
OF_LINES = ("min_words", "max_words", "max_ratio", "keep_empty")  # settings that drop lines
Row = tuple[str, ...]  # one line of each file


@dataclass(frozen=True, kw_only=True)
class PrepConfig(Checked):
    """Settings of cleaning and filtering; 0 means no limit."""

    tokenize: bool = setting(True, "split text into words")
    tokenizer: str = setting(
        "auto",
        "moses: split off punctuation; characters: each Chinese or Japanese character is a word; "
        "sentencepiece: pieces by a model; auto: characters for zh and ja, otherwise moses",
        choices=lambda: ("auto", *TOKENIZERS, *plugins("hiero.tokenizers")),
    )
    sentencepiece_model: PathKey | None = setting(None, "of --tokenizer sentencepiece, for both languages")
    normalize_punctuation: bool = setting(False, "write quotes, dashes and spaces as Moses does")
    lowercase: bool = setting(False, "write all words in lower case")
    min_words: int = setting(1, "lines of fewer words", least=0)
    max_words: int = setting(80, "lines of more words", least=0)
    max_ratio: float = setting(9.0, "pairs with a larger ratio of the longer to the shorter side", least=0)
    keep_empty: bool = setting(False, "keep pairs with an empty side, regardless of --min-words")

    @property
    def needs_language(self) -> bool:
        return self.normalize_punctuation or (self.tokenize and self.tokenizer != "sentencepiece")

    def reason_to_drop(self, row: Row) -> str:
        """The name of a count of ``PrepCounts``, or an empty string."""
        lengths = [len(text.split(" ")) if text else 0 for text in row]
        shortest, longest = min(lengths), max(lengths)
        if shortest == 0 and self.min_words and not self.keep_empty:
            return "empty"
        if 0 < shortest < self.min_words:
            return "short"
        if self.max_words and longest > self.max_words:
            return "long"
        return "ratio" if self.max_ratio and longest > self.max_ratio * shortest > 0 else ""


@dataclass(frozen=True, kw_only=True)
class CompoundConfig(Checked):
    """Settings of the splitting of compounds; they are kept in a model."""

    min_length: int = setting(4, "letters of the shortest part of a compound", least=1, most=60)
    min_count: int = setting(3, "occurrences of the rarest part of a compound", least=1)
    fillers: str = setting("s es", "letters that may be between the parts of a compound, with spaces between")
    alternatives: int = setting(3, "ways to write a word in a lattice, at most", least=2, most=100)
