"""Names of features.

A feature's *name* is cdec's name for it wherever that is unambiguous:

    NAME            EgivenFCoherent                       as in the grammar
    RULE_ID         R:X:NX_hat_NX:N1_has_N2               left-hand side, source side, target side
    SOURCE_BIGRAM   RBS:<r>_X  RBS:X_hat  RBS:hat_</r>
    TARGET_BIGRAM   RBT:<r>_X1  RBT:X1_has
    SHAPE           Shape_S01110_T01110                   slots words, gap, words, gap, words
    WORD_PAIR       LT:hat:has
    DELETION        LD:hat
    INSERTION       LI:has
    INSERTION_PAIR  IP:hat:of                             not in cdec
    BIGRAM          B:has_promised

Otherwise bytes of words are written ``%XX``, upper-case hexadecimal:

* always ``=``, ``;``, spaces and control characters, the first ``|`` of ``|||``, bytes that are not UTF-8,
  and ``%`` unless a word ends with it;
* ``_`` in rule ids; in a bigram, pair or rule id every ``_`` or ``:`` of a word if the name could be split
  in more than one way;
* the first letter of a word which would look like a gap or a boundary of the rule in its position (``X`` in a
  source bigram, ``X1`` in a target bigram, ``NX`` and ``N1`` in the sides of a rule id, ``<r>``), and of a
  grammar's own feature with a name like one of a template.

A word looks like a gap if it is one of the usual ``CATEGORIES``; any other category is written ``%%NAME``.
Escapes depend on nothing but the feature: names are the same in every file and run, and ``parse`` is the
inverse of ``name``. ``cdec_name`` is cdec's spelling, which several features may share.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from hiero.core.records import MAX_GAPS, MOST_GAPS
from hiero.core.symbol_kernels import gap, gap_index, gap_label
from hiero.core.symbols import Symbols, Vocabulary
from hiero.core.text import is_utf8
from hiero.features.index import KINDS, Key, KeyKind, KeyPart
from hiero.features.index_kernels import NAME, RULE_END, RULE_ID, RULE_START, SEPARATOR

CATEGORIES = frozenset(
    b"X S Goal GOAL ROOT TOP ADJP ADVP CONJP FRAG INTJ LST NAC NP NX PP PRN PRT QP RRC SBAR SBARQ SINV SQ "
    b"UCP VP WHADJP WHADVP WHNP WHPP".split()
)
START, END = b"<r>", b"</r>"
INDICES = tuple(b"%d" % index for index in range(1, MAX_GAPS + 1))
# Higher indices have a mark that no word has, so that no further words look like gaps.
_HIGH_INDEX = re.compile(rb"(.+)%%([1-9][0-9]?)", re.DOTALL)
# Words that look like a gap or a boundary in a source or target bigram, or in the sides of a rule id.
_LIKE_SOURCE = CATEGORIES | {START, END}
_LIKE_TARGET = frozenset({START, END} | {category + index for category in CATEGORIES for index in INDICES})
_LIKE_RULE_SOURCE = frozenset(b"N" + category for category in CATEGORIES)
_LIKE_RULE_TARGET = frozenset(b"N" + index for index in INDICES)
RESERVED = _LIKE_SOURCE | _LIKE_TARGET | _LIKE_RULE_SOURCE | _LIKE_RULE_TARGET
_BOUNDARIES = {RULE_START: START, RULE_END: END}

_UNSAFE = re.compile(rb"[\x00-\x20=;\x7f]|%(?!\Z)|\|(?=\|\|)")
_UNSAFE_OR = {separator: re.compile(_UNSAFE.pattern + b"|" + separator) for separator in (b"_", b":")}
_UNSAFE_OR_BOTH = re.compile(_UNSAFE.pattern + b"|[_:]")
# A name without these has no escapes and needs none.
_SUSPECT = re.compile(rb"[%\x00-\x20=;\x7f]|\|\|\|")
_ESCAPED = re.compile(rb"%([0-9A-F]{2})")
_SHAPE_FOLLOWS = rb"(?=[01]{5}_T[01]{5}\Z)"
_TO_CDEC = bytes.maketrans(b"=;", b"__")


_NOT_SIMPLE = re.compile(rb"[%_:]")
_WriteSymbol = Callable[[int, re.Pattern[bytes]], bytes]


def _percent(found: re.Match[bytes]) -> bytes:
    return b"%%%02X" % found[0][0]


def _escape(text: bytes, unsafe: re.Pattern[bytes]) -> bytes:
    text = unsafe.sub(_percent, text)
    if not text.isascii() and not is_utf8(text):
        text = re.sub(rb"[\x80-\xff]", _percent, text)
    return text


def _escape_first(text: bytes) -> bytes:
    return b"%%%02X" % text[0] + text[1:]


def _unescape(text: bytes) -> bytes:
    return _ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode()), text)


def _category(label: bytes) -> bytes:
    return label if label in CATEGORIES else b"%%" + _escape(label, _UNSAFE_OR_BOTH)


def _index(index: int) -> bytes:
    """The index of a gap after its category, or after N."""
    return b"%d" % index if index <= MAX_GAPS else b"%%%%%d" % index


def _cut_index(text: bytes) -> tuple[bytes, int]:
    """The text before the index of a gap, and the index; 0 if it has none."""
    found = _HIGH_INDEX.fullmatch(text)
    if found and MAX_GAPS < int(found[2]) <= MOST_GAPS:
        return found[1], int(found[2])
    return (text[:-1], int(text[-1:])) if text[-1:] in INDICES else (text, 0)


def _splits(text: bytes, separator: bytes) -> list[tuple[bytes, bytes]]:
    """All ways to cut a text at a separator into two parts that are not empty."""
    found = []
    at = text.find(separator, 1)
    while 0 < at < len(text) - 1:
        found.append((text[:at], text[at + 1 :]))
        at = text.find(separator, at + 1)
    return found


def _sides(text: bytes) -> list[tuple[bytes, bytes]]:
    """All ways to cut ``source side:target side``; sides are symbols joined by ``_``, none of them empty."""
    return [(src, tgt) for src, tgt in _splits(text, b":") if _joined(src) and _joined(tgt)]


def _joined(side: bytes) -> bool:
    return b"__" not in side and side[0] != 95 and side[-1] != 95


def as_cdec(name: bytes) -> bytes:
    """A name as cdec writes it: with ``_`` for ``=`` and ``;``."""
    return name.translate(_TO_CDEC)


class _Texts(dict[int, bytes]):
    """Texts of symbols, each written once."""

    def __init__(self, write: Callable[[int], bytes]) -> None:
        self._write = write

    def __missing__(self, symbol: int) -> bytes:
        self[symbol] = text = self._write(symbol)
        return text


def _simple_texts(write: _WriteSymbol) -> _Texts:
    """Texts of symbols without separators, and without anything that can be escaped; empty for others."""

    def text(symbol: int) -> bytes:
        found = write(symbol, _UNSAFE_OR_BOTH)
        return b"" if _NOT_SIMPLE.search(found) else found

    return _Texts(text)


class Names:
    """The names of features over one set of symbols."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self._template = _template_pattern()
        self._adding, self._finding = _NameReader(symbols, True), _NameReader(symbols, False)
        write: dict[KeyPart, _WriteSymbol] = {
            KeyPart.WORD: self._word,
            KeyPart.SOURCE: self._source_symbol,
            KeyPart.TARGET: self._target_symbol,
            KeyPart.SHAPE: lambda bits, _: _shape(bits),
        }
        self._write = {
            number: [write[part] for part in kind.parts if part in write] for number, kind in KINDS.items()
        }
        simple = {part: _simple_texts(one) for part, one in write.items()}
        self._simple = {
            number: [simple[part] for part in kind.parts if part in write] for number, kind in KINDS.items()
        }
        self._lhs = _Texts(lambda label: _escape(symbols.labels.entry(label), _UNSAFE_OR[b":"]) + b":")
        self._simple[RULE_ID] = [_simple_texts(self._rule_source), _simple_texts(self._rule_target)]

    def name(self, key: Key) -> str:
        """The name, which is unique."""
        return self.name_bytes(key).decode()

    def name_bytes(self, key: Key) -> bytes:
        if key[0] == NAME:
            return self._own_name(self.symbols.names.entry(key[1]))
        prefix, parts, separator = KINDS[key[0]]
        if key[0] == RULE_ID:
            return prefix + self._rule(key[1:])
        write = self._write[key[0]]
        if len(parts) == 2:
            simple = self._simple[key[0]]
            one, two = simple[0][key[1]], simple[1][key[2]]
            if one and two:
                return prefix + one + separator + two
        text = write[0](key[1], _UNSAFE)
        if len(parts) == 2:
            text += separator + write[1](key[2], _UNSAFE)
            # Separators inside words are escaped if the name could be split in more than one way.
            if len(_splits(text, separator)) != 1:
                unsafe = _UNSAFE_OR[separator]
                text = write[0](key[1], unsafe) + separator + write[1](key[2], unsafe)
        return prefix + text

    def cdec_name(self, key: Key) -> str:
        """The name in cdec: ``=`` and ``;`` become ``_``, nothing else is escaped."""
        return self.cdec_bytes(key).decode(errors="replace")

    def cdec_bytes(self, key: Key) -> bytes:
        if key[0] == NAME:
            return as_cdec(self.symbols.names.entry(key[1]))
        prefix, parts, separator = KINDS[key[0]]
        if key[0] == RULE_ID:
            return as_cdec(prefix + self._cdec_rule(key[1:]))
        plain = (self._plain(part, value) for part, value in zip(parts, key[1:], strict=False))
        return as_cdec(prefix + separator.join(plain))

    def parse(self, name: str | bytes, *, add: bool = True) -> Key | None:
        """The feature with exactly this name, or None if there is none.

        New words, labels and names are added to the symbols; without ``add``, they make the result None.
        """
        text = name.encode(errors="surrogateescape") if isinstance(name, str) else name
        key = (self._adding if add else self._finding).key(text)
        if key is None or (_is_plain(text) or self.name_bytes(key) == text):
            return key
        return None

    def _own_name(self, name: bytes) -> bytes:
        text = _escape(name, _UNSAFE)
        return _escape_first(text) if text[:1] == b"#" or self._template.match(text) else text

    def _label(self, symbol: int) -> bytes:
        return self.symbols.labels.entry(gap_label(symbol))

    def _plain(self, part: KeyPart, value: int) -> bytes:
        """A part as in cdec's names."""
        if part is KeyPart.SHAPE:
            return _shape(value)
        if value >= 0:
            return self.symbols.words.entry(value)
        if value in _BOUNDARIES:
            return _BOUNDARIES[value]
        return self._label(value) + (b"%d" % gap_index(value) if part is KeyPart.TARGET else b"")

    def _word(self, word: int, unsafe: re.Pattern[bytes], reserved: frozenset[bytes] = frozenset()) -> bytes:
        entry = self.symbols.words.entry(word)
        text = _escape(entry, unsafe)
        return _escape_first(text) if entry in reserved else text

    def _source_symbol(self, symbol: int, unsafe: re.Pattern[bytes]) -> bytes:
        if symbol >= 0:
            return self._word(symbol, unsafe, _LIKE_SOURCE)
        return _BOUNDARIES.get(symbol) or _category(self._label(symbol))

    def _target_symbol(self, symbol: int, unsafe: re.Pattern[bytes]) -> bytes:
        if symbol >= 0:
            return self._word(symbol, unsafe, _LIKE_TARGET)
        return _BOUNDARIES.get(symbol) or _category(self._label(symbol)) + _index(int(gap_index(symbol)))

    def _rule(self, sequence: Sequence[int]) -> bytes:
        cut = sequence.index(SEPARATOR)
        lhs = self._lhs[sequence[0]]
        simple_src, simple_tgt = self._simple[RULE_ID]
        sides = [*map(simple_src.__getitem__, sequence[1:cut])]
        targets = [*map(simple_tgt.__getitem__, sequence[cut + 1 :])]
        if targets and b"" not in sides and b"" not in targets:
            return lhs + b"_".join(sides) + b":" + b"_".join(targets)
        for unsafe in (_UNSAFE_OR[b"_"], _UNSAFE_OR_BOTH):
            src = b"_".join(self._rule_source(symbol, unsafe) for symbol in sequence[1:cut])
            # An empty side is marked, so that words with a colon at the end need no escape.
            tgt = b"_".join(self._rule_target(symbol, unsafe) for symbol in sequence[cut + 1 :]) or b"%%"
            if len(_sides(src + b":" + tgt)) == 1:
                break
        return lhs + src + b":" + tgt

    def _rule_source(self, symbol: int, unsafe: re.Pattern[bytes]) -> bytes:
        if symbol < 0:
            return b"N" + _category(self._label(symbol))
        return self._word(symbol, unsafe, _LIKE_RULE_SOURCE)

    def _rule_target(self, symbol: int, unsafe: re.Pattern[bytes]) -> bytes:
        if symbol < 0:
            return b"N" + _index(int(gap_index(symbol)))
        return self._word(symbol, unsafe, _LIKE_RULE_TARGET)

    def _cdec_rule(self, sequence: Sequence[int]) -> bytes:
        cut = sequence.index(SEPARATOR)
        words = self.symbols.words
        src = (words.entry(s) if s >= 0 else b"N" + self._label(s) for s in sequence[1:cut])
        tgt = (words.entry(s) if s >= 0 else b"N%d" % gap_index(s) for s in sequence[cut + 1 :])
        lhs = self.symbols.labels.entry(sequence[0])
        return lhs + b":" + b"_".join(src) + b":" + b"_".join(tgt)


def _is_plain(text: bytes) -> bool:
    """Whether a name has no escapes and needs none."""
    return not _SUSPECT.search(text) and text[:1] != b"#" and (text.isascii() or is_utf8(text))


def _shape(bits: int) -> bytes:
    return b"%s_T%s" % (format(bits >> 5, "05b").encode(), format(bits & 31, "05b").encode())


def _read_shape(text: bytes) -> int:
    return int(text[:5], 2) << 5 | int(text[7:], 2)


def _template_pattern() -> re.Pattern[bytes]:
    """The beginning of the name of a template's feature: a prefix, and a shape whose text is complete."""
    prefixes = (
        re.escape(kind.prefix) + (_SHAPE_FOLLOWS if KeyPart.SHAPE in kind.parts else b"")
        for number, kind in KINDS.items()
        if number != NAME
    )
    return re.compile(b"|".join(prefixes))


class _Unknown(Exception):
    """A symbol is not in the vocabulary and must not be added."""


class _NameReader:
    """Parse names. Some accepted names have superfluous or missing escapes; ``Names.parse`` checks this."""

    def __init__(self, symbols: Symbols, add: bool) -> None:
        self.symbols = symbols
        self.add = add
        self._template = _template_pattern()
        read: dict[KeyPart, Callable[[bytes], int]] = {
            KeyPart.WORD: self._word,
            KeyPart.SOURCE: self._category,
            KeyPart.TARGET: self._gap,
            KeyPart.SHAPE: _read_shape,
        }
        self._kinds = {
            kind.prefix: (number, kind, [read[part] for part in kind.parts if part in read])
            for number, kind in KINDS.items()
        }

    def key(self, text: bytes) -> Key | None:
        found = self._template.match(text)
        try:
            if not found:
                return (NAME, self._id(self.symbols.names, text), 0) if text else None
            number, kind, read = self._kinds[found[0]]
            rest = text[found.end() :]
            return self._rule(rest) if number == RULE_ID else self._key(number, kind, read, rest)
        except _Unknown:
            return None

    def _key(
        self, number: int, kind: KeyKind, read: Sequence[Callable[[bytes], int]], text: bytes
    ) -> Key | None:
        if len(read) == 1:
            return (number, read[0](text), 0) if text else None
        splits = _splits(text, kind.separator)
        if len(splits) != 1:
            return None
        first, second = splits[0]
        if KeyPart.WORD not in kind.parts and (first == END or second == START):
            return None
        return (number, read[0](first), read[1](second))

    def _rule(self, rest: bytes) -> Key | None:
        lhs, colon, rest = rest.partition(b":")
        splits = _sides(rest) if colon else []
        if len(splits) != 1:
            return None
        src_text, tgt_text = (side.split(b"_") for side in splits[0])
        num_gaps = sum(map(_is_source_gap, src_text))
        indices = [index if before == b"N" else 0 for before, index in map(_cut_index, tgt_text)]
        if sorted(filter(None, indices)) != [*range(1, num_gaps + 1)]:
            return None
        src = [self._category(t[1:]) if _is_source_gap(t) else self._word(t) for t in src_text]
        if tgt_text == [b"%%"]:
            tgt_text = []
        pairs = zip(tgt_text, [*indices, 0], strict=False)
        tgt = [gap(0, index) if index else self._word(text) for text, index in pairs]
        return (RULE_ID, self._id(self.symbols.labels, lhs), *src, SEPARATOR, *tgt)

    def _id(self, vocabulary: Vocabulary, text: bytes) -> int:
        entry = _unescape(text) if b"%" in text else text
        if self.add:
            return vocabulary.intern(entry)
        index = vocabulary.find(entry)
        if index < 0:
            raise _Unknown
        return index

    def _word(self, text: bytes) -> int:
        return self._id(self.symbols.words, text)

    def _category(self, text: bytes) -> int:
        """A symbol of a source bigram."""
        if text in (START, END):
            return RULE_START if text == START else RULE_END
        if text in CATEGORIES or text[:2] == b"%%":
            return int(gap(self._id(self.symbols.labels, text.removeprefix(b"%%")), 0))
        return self._word(text)

    def _gap(self, text: bytes) -> int:
        """A symbol of a target bigram."""
        if text in (START, END):
            return RULE_START if text == START else RULE_END
        category, index = _cut_index(text)
        if index and (category in CATEGORIES or category[:2] == b"%%"):
            return int(gap(self._id(self.symbols.labels, category.removeprefix(b"%%")), index))
        return self._word(text)


def _is_source_gap(token: bytes) -> bool:
    return token[:1] == b"N" and (token[1:] in CATEGORIES or token[1:3] == b"%%")
