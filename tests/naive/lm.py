"""Language models by definition: dictionaries of word tuples."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

Ngram = tuple[str, ...]


@dataclass
class Model:
    """An ARPA file: log10 probability and back-off (0 if absent) of every n-gram it lists."""

    order: int
    listed: dict[Ngram, tuple[float, float]] = field(default_factory=dict)


@dataclass
class Signed:
    """An n-gram in the table: log10 probability, back-off, and whether longer n-grams extend it."""

    prob: float
    backoff: float
    extends_left: bool = False
    extends_right: bool = False


def read_arpa(text: str) -> Model:
    model, section = Model(0), 0
    for line in text.replace("\r\n", "\n").split("\n"):
        fields = [field for field in re.split("[ \\t]", line) if field]
        if line.startswith("ngram "):
            model.order += 1
        elif line.endswith("-grams:"):
            section = int(line[1:-7])
        elif section and fields and not line.startswith("\\"):
            words = tuple("<unk>" if word == "<UNK>" else word for word in fields[1 : section + 1])
            backoff = float(fields[section + 1]) if len(fields) > section + 1 else 0.0
            model.listed[words] = float(fields[0]), backoff
    model.listed.setdefault(("<unk>",), (-100.0, 0.0))
    return model


def prob(model: Model, words: Ngram) -> float:
    """log10 p(last word | the words before it) by backing off."""
    if words in model.listed:
        return model.listed[words][0]
    if len(words) == 1:
        return model.listed[("<unk>",)][0]
    return model.listed.get(words[:-1], (0.0, 0.0))[1] + prob(model, words[1:])


def signed_ngrams(model: Model) -> dict[Ngram, Signed]:
    """All n-grams of the table: those listed, their beginnings and their endings."""
    closed: dict[Ngram, Signed] = {}
    for words in model.listed:
        for start in range(len(words)):
            for end in range(start + 1, len(words) + 1):
                part = words[start:end]
                closed[part] = Signed(prob(model, part), model.listed.get(part, (0.0, 0.0))[1])
    for words in closed:
        if len(words) > 1:
            closed[words[1:]].extends_left = True
            closed[words[:-1]].extends_right = True
    for signed in closed.values():
        signed.extends_right |= signed.backoff != 0.0
    return closed


def score_word(model: Model, history: Ngram, word: str) -> tuple[float, int]:
    """log10 probability of a word after a history, and the length of the longest n-gram found."""
    closed = signed_ngrams(model)
    known = tuple(w if (w,) in closed else "<unk>" for w in (*history, word))
    longest = known[max(0, len(known) - model.order) :]
    found = max(n for n in range(1, len(longest) + 1) if longest[-n:] in closed)
    return prob(model, longest), found


def score_sentences(model: Model, sentences: list[list[str]], markers: bool) -> list[list[tuple[float, int]]]:
    scores = []
    for sentence in sentences:
        words = ["<s>", *sentence, "</s>"] if markers else sentence
        scores.append(
            [score_word(model, tuple(words[:at]), words[at]) for at in range(int(markers), len(words))]
        )
    return scores


def key(ids: list[int]) -> int:
    """KenLM's chain hash of an n-gram, given in the order of the text."""
    code = ids[-1]
    for word in reversed(ids[:-1]):
        code = (code * 8978948897894561157 % 2**64) ^ ((1 + word) * 17894857484156487943 % 2**64)
    return code


def read_kenlm(buckets: bytes, size: int) -> dict[int, tuple[float, float]]:
    """The filled buckets, of 16 or 12 bytes, of one of KenLM's tables."""
    found = {}
    for at in range(0, len(buckets), size):
        code, value = struct.unpack_from("<Qf", buckets, at)
        if code:
            found[code] = value, struct.unpack_from("<f", buckets, at + 12)[0] if size == 16 else -0.0
    return found


def look_up(words: list[bytes], text: bytes) -> list[list[tuple[bytes, int]]]:
    """Lines of (word, id), 0 if unknown."""
    lines = []
    for line in text.split(b"\n")[:-1]:
        tokens = line.removesuffix(b"\r").replace(b"\t", b" ").split(b" ")
        lines.append([(token, words.index(token) if token in words else 0) for token in tokens if token])
    return lines
