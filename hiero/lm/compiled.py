"""Compiled language models: a directory of memory-mapped arrays, and ``meta.json``.

``meta.json`` holds ``format``, ``version``, ``order``, ``bos``, ``eos``, ``ngrams`` (the number of those of
two or more words) and ``source`` with the name and SHA-256 of the source file (null: standard input). The
arrays are those of ``table_kernels.Ngrams`` and ``core.symbol_kernels.WordTable``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hiero.core.directories import META, Kind
from hiero.core.records import MAX_ORDER
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import is_sound, word_table_arrays, word_table_files, word_table_from
from hiero.core.text import digest_of
from hiero.lm.model import ngrams_of
from hiero.lm.table_kernels import Ngrams

MODEL = Kind(
    "hiero language model",
    1,
    "make it again with hiero lm compile",
    {"slots": (np.uint64, 1), "unigram": (np.float32, 2), **word_table_files("word")},
)


def write_ngrams(path: Path, model: Ngrams, words: WordTable, source: Path | None) -> None:
    """Write a model made from a file, or from standard input (None)."""
    meta = {
        "order": int(model.order[0]),
        "bos": int(model.bos[0]),
        "eos": int(model.eos[0]),
        "ngrams": int(np.count_nonzero(model.key[::2])),
        "source": {"name": source.name, "sha256": digest_of(source)} if source else None,
    }
    arrays = word_table_arrays({"word": words})
    MODEL.write(path, meta, {"slots": model.key, "unigram": model.unigram, **arrays})


def read_ngrams(path: Path) -> tuple[Ngrams, WordTable]:
    """Map a compiled model; its arrays are read as they are used."""
    meta, arrays = MODEL.read(path)
    slots, unigram, words = arrays["slots"], arrays["unigram"], word_table_from(arrays, "word")
    order, bos, eos, num_ngrams = numbers = [meta.get(name, -1) for name in ("order", "bos", "eos", "ngrams")]
    if not all(isinstance(number, int) for number in numbers):
        raise MODEL.broken(path / META, "damage", f"a {MODEL.name}")
    num_slots, num_words = len(slots) // 2, len(unigram)
    fits = (
        len(slots) == 2 * num_slots > 0
        and num_slots & (num_slots - 1) == 0
        and 0 <= num_ngrams < num_slots
        and unigram.shape == (num_words, 2)
        and len(words.first) == num_words + 1
        and is_sound(words)
        and 1 <= order <= MAX_ORDER
        and max(bos, eos) < num_words
    )
    if not fits:
        raise MODEL.broken(path, "arrays that do not fit together", f"a {MODEL.name}")
    return ngrams_of(slots, unigram, order, bos, eos), words
