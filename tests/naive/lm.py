"""Language models by definition: dictionaries of word tuples."""

from __future__ import annotations

import itertools
import math
import re
import struct
from collections import Counter
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


# ---- interpolation


def mixed_prob(models: list[Model], weights: list[float], words: Ngram) -> float:
    """The probability of the last word after the words before it, by a mixture."""
    total = 0.0
    for model, weight in zip(models, weights, strict=True):
        if words[-1:] in model.listed:
            known = tuple(word if (word,) in model.listed else "<unk>" for word in words)
            total += weight * 10 ** prob(model, known[-model.order :])
    return total


def backoffs(rows: list[tuple[list[int], float, float]], bos: int) -> dict[tuple[int, ...], float]:
    """The back-off weight of each context of n-grams with probabilities in it and in the shorter one."""
    found = {}
    for context in {tuple(words[:-1]) for words, _, _ in rows}:
        mine = [row for row in rows if tuple(row[0][:-1]) == context and row[0][-1] != bos]
        left, left_lower = 1 - sum(row[1] for row in mine), 1 - sum(row[2] for row in mine)
        found[context] = max(left, 0.0) / left_lower if left_lower > 1e-9 else 1.0
    return found


def mixture_weights(prob: list[list[float]], steps: int) -> list[float]:
    """Weights by expectation maximisation, from equal ones; a row for each word."""
    num = len(prob[0])
    weights = [1 / num] * num
    for _ in range(steps):
        shares = [0.0] * num
        for row in prob:
            mixed = sum(w * p for w, p in zip(weights, row, strict=True))
            shares = [s + w * p / mixed for s, w, p in zip(shares, weights, row, strict=True)]
        weights = [share / len(prob) for share in shares]
    return weights


# ---- KenLM's tries


def unpack_level(data: bytes, first: int, widths: list[int], size: int) -> list[list[int]]:
    """The fields of packed entries, as numbers."""
    bits = int.from_bytes(data, "little")
    rows = []
    for entry in range(first, first + size):
        at, row = entry * sum(widths), []
        for width in widths:
            row.append(bits >> at & ((1 << width) - 1))
            at += width
        rows.append(row)
    return rows


def trie_keys(paths: list[list[int]]) -> list[int]:
    """Keys of n-grams, each given as its last word, the one before it, ..."""
    return [key(path[::-1]) for path in paths]


def write_trie(model: Model, code_bits: tuple[int, int] | None, pointer_bits: int | None) -> bytes:
    """The KenLM binary of a model: quantised, if there are ``code_bits``; with compressed pointers."""
    closed = signed_ngrams(model)
    words = ["<unk>", *sorted(words[0] for words in closed if len(words) == 1 and words[0] != "<unk>")]
    ids = {word: number for number, word in enumerate(words)}
    levels: list[list[Ngram]] = []
    for length in range(1, model.order + 1):
        ngrams = [words for words in closed if len(words) == length]
        levels.append(sorted(ngrams, key=lambda ngram: [ids[word] for word in reversed(ngram)]))
    kind = 2 + (code_bits is not None) + 2 * (pointer_bits is not None)
    head = struct.pack(
        "<56s3f3IQ", b"mmap lm http://kheafield.com/code format version 5\n", 0, 1, -0.5, 1, 2**32 - 1, 0, 1
    )
    head += struct.pack("<B3xfIB3xI", model.order, 1.5, kind, 1, 1)
    head += struct.pack(f"<{model.order}Q", *map(len, levels))
    out = head + bytes(-len(head) % 8) + struct.pack("<Q", len(words) - 1) + bytes(8 * len(words))
    numbers = [[_stored(closed[ngram]) for ngram in level] for level in levels]
    codes: list[list[list[float]]] = [[], *([] for _ in levels[1:])]
    if code_bits is not None:
        out += bytes([2, *code_bits, 0, 0, 0, 0, 0])
        for n in range(1, model.order):
            for column, bits in enumerate(code_bits[: 2 if n + 1 < model.order else 1]):
                # As strings, because -0.0 and 0.0 are different numbers here.
                values = [float(text) for text in sorted({repr(row[column]) for row in numbers[n]})]
                codes[n].append(values + [-math.inf] * ((1 << bits) - len(values)))
                out += struct.pack(f"<{1 << bits}f", *codes[n][-1])
    pointers = [_first_children(levels[n], levels[n + 1]) for n in range(model.order - 1)] + [[0]]
    rows = [*numbers[0], (0.0, 0.0)]
    out += b"".join(struct.pack("<ffq", *row, child) for row, child in zip(rows, pointers[0], strict=True))
    out += bytes(16)
    for n in range(1, model.order):
        is_longest = n + 1 == model.order
        entries = [[(ids[ngram[0]], len(words).bit_length())] for ngram in levels[n]]
        for entry, row in zip(entries, numbers[n], strict=True):
            if code_bits is None:
                entry += [(_bits(row[0]) & 0x7FFFFFFF, 31)] + [(_bits(row[1]), 32)] * (not is_longest)
            else:
                coded = [(_index(codes[n][c], row[c]), code_bits[c]) for c in range(len(codes[n]))]
                entry += coded[::-1]
        width = sum(bits for _, bits in entries[0]) if entries else 0
        if not is_longest:
            low, listed = len(levels[n + 1]).bit_length(), b""
            if pointer_bits is not None:
                listed, low = _high_bits(pointers[n], len(levels[n + 1]), pointer_bits, len(out))
            out += listed
            last = (
                [(0, 0)]
                if entries
                else [(0, len(words).bit_length() + (63 if code_bits is None else sum(code_bits)))]
            )
            entries.append(last if not width else [(0, width)])
            for entry, pointer in zip(entries, pointers[n], strict=True):
                entry.append((pointer & ((1 << low) - 1), low))
        packed, at = 0, 0
        for entry in entries:
            for value, bits in entry:
                packed |= value << at
                at += bits
        extra = (
            0
            if not is_longest
            else (width or len(words).bit_length() + (31 if code_bits is None else code_bits[0]))
        )
        out += packed.to_bytes((at + extra + 7) // 8 + 8, "little")
    return out + b"".join(word.encode() + b"\0" for word in words)


def _stored(signed: Signed) -> tuple[float, float]:
    """Probability and back-off, of which -0.0 says that no longer n-gram begins so."""
    return signed.prob, signed.backoff or (0.0 if signed.extends_right else -0.0)


def _bits(value: float) -> int:
    return int.from_bytes(struct.pack("<f", value), "little")


def _index(codes: list[float], value: float) -> int:
    return [repr(code) for code in codes].index(repr(value))


def _first_children(parents: list[Ngram], children: list[Ngram]) -> list[int]:
    endings = [child[1:] for child in children]
    first, begin = [], 0
    for parent in parents:
        first.append(begin)
        begin += endings.count(parent)
    return [*first, begin]


def _high_bits(pointers: list[int], largest: int, most: int, at: int) -> tuple[bytes, int]:
    """The list of high bits, to be written at an offset, and the number of low bits."""
    required = largest.bit_length()
    costs = {k: (largest >> (required - k)) * 64 - len(pointers) * k for k in range(min(required, most) + 1)}
    low = required - min(costs, key=lambda k: (costs[k], k))
    size = (largest >> low) + 1
    limits = [
        next((i for i, pointer in enumerate(pointers) if pointer >> low >= high)) for high in range(size)
    ]
    limits[0] = 0
    padding = -at % 8
    listed = bytes([0, most]).ljust(padding + 8, b"\0") + struct.pack(f"<{size}Q", *limits)
    return listed.ljust(8 * (1 + size) + 7, b"\0"), low


def codebook(values: list[float], size: int) -> list[float]:
    """Means of bins with equal numbers of values, or all different values if they are no more than that."""
    values = sorted(values)
    if len(set(values)) <= size:
        return sorted(set(values))
    bounds = [len(values) * n // size for n in range(size + 1)]
    bins = [values[begin:end] for begin, end in itertools.pairwise(bounds)]
    return [sum(one) / len(one) for one in bins]


def nearest(book: list[float], value: float) -> float:
    """The value of a codebook with the least distance, the higher one of two."""
    return min(book, key=lambda one: (abs(one - value), -one))


def quantised(model: Model, prob_bits: int, backoff_bits: int) -> dict[Ngram, tuple[float, float]]:
    """What the table has for each n-gram of two or more words: numbers with the signs of ``Ngrams``."""
    found: dict[Ngram, tuple[float, float]] = {}
    signed = signed_ngrams(model)
    for length in range(2, model.order + 1):
        mine = {words: one for words, one in signed.items() if len(words) == length}
        probs = codebook([one.prob for one in mine.values()], 1 << prob_bits)
        backoffs = codebook([one.backoff for one in mine.values() if one.backoff], (1 << backoff_bits) - 2)
        for words, one in mine.items():
            prob = abs(nearest(probs, one.prob))
            backoff = nearest(backoffs, one.backoff) if one.backoff else 0.0
            found[words] = (
                prob if one.extends_left else -prob,
                backoff if backoff or one.extends_right else -0.0,
            )
    return found


def enter_codes(
    keys: list[int], codes: list[int], slots: int, displacement_bits: int, code_bits: int
) -> list[int] | None:
    """The slots of a quantised table; None if a key is too far from its home."""
    entries = [0] * (slots + (1 << displacement_bits))
    for key_, code in zip(keys, codes, strict=True):
        high, low = divmod(key_, 2**32)
        home, rest = divmod(high * slots, 2**32)
        at = home
        while at < len(entries) and entries[at]:
            at += 1
        if at - home >= 2**displacement_bits - 1:
            return None
        rest = (rest // 2 ** (slots.bit_length() - 1)) * 2**32 + low
        entries[at] = (rest * 2**displacement_bits + at - home + 1) * 2**code_bits + code
    return entries


def bigram_fit(sentences: list[list[int]], class_of: dict[int, int]) -> float:
    """The log-likelihood of a class bigram model, but for a constant; class 0 is the boundary."""
    pairs: Counter[tuple[int, int]] = Counter()
    for sentence in sentences:
        line = [0, *(class_of[word] for word in sentence), 0]
        pairs.update(itertools.pairwise(line))
    left, right = Counter[int](), Counter[int]()
    for (one, two), number in pairs.items():
        left[one] += number
        right[two] += number
    parts = [sum(n * math.log(n) for n in counts.values()) for counts in (pairs, left, right)]
    return parts[0] - parts[1] - parts[2]


def exchange(
    sentences: list[list[int]], order: list[int], class_of: dict[int, int], num_classes: int
) -> dict[int, int]:
    """Move each word in turn to the class where the text fits best; classes are 1 ... num_classes."""
    class_of = dict(class_of)
    for word in order:
        mine = class_of[word]
        best, best_fit = mine, bigram_fit(sentences, class_of)
        for one in range(1, num_classes + 1):
            fit = bigram_fit(sentences, {**class_of, word: one})
            if fit > best_fit + 1e-9:
                best, best_fit = one, fit
        class_of[word] = best
    return class_of
