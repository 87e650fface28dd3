"""Rule-based recasing of lower-case text: capitals at sentence starts and in words of a list.

The list has one word a line, in its form inside a sentence (Germany, EU, iPhone). It is learnt from cased
text: of each word, the most frequent form that does not begin a sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hiero.core.errors import FormatError, show
from hiero.evaluation.hypotheses import read_text

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
