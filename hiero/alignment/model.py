"""Trained alignment models: in memory, and as directories of mapped arrays.

Sentence pairs of the training text get the links that they got in training, except that links of an HMM with
fertilities may differ: there, no link counts for itself. Pairs of words whose expected
count was 0 have probabilities that depend on one of the words only, and are not stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hiero.alignment.align import Trainer, pair_index
from hiero.alignment.config import METHODS, MIN_NULL, Method
from hiero.alignment.links import DirectionalLinks, Fitted, combine, decoded, links_above
from hiero.alignment.pair_kernels import LexicalProbs, StoredProbs, look_up_pairs_kernel
from hiero.alignment.parameters import PARAMETERS, Parameters
from hiero.bitext.alignments import Alignment
from hiero.bitext.corpus import Bitext
from hiero.core.arrays import Floats32, Ids, are_offsets, is_finite, is_within, offsets_of, read_only
from hiero.core.directories import Arrays, Kind
from hiero.core.symbol_kernels import WordTable, find_all_kernel
from hiero.core.symbols import is_sound, word_table_arrays, word_table_files, word_table_from

SIDES = ("src", "tgt")


@dataclass(frozen=True)
class AlignmentModel:
    """A trained model.

    model       name in PARAMETERS
    parameters  of all words and, as the last one, of unknown ones
    null        probability that a word has no counterpart
    symmetrize  method that combines both directions, unless another is chosen
    threshold   least posterior of a link; 0: links are combined instead
    """

    lexicon: StoredProbs
    model: str
    parameters: Parameters
    null: float
    symmetrize: Method
    threshold: float
    src_words: WordTable
    tgt_words: WordTable

    def links(self, bitext: Bitext) -> DirectionalLinks:
        """The best links of a bitext."""
        return decoded(self.fitted(bitext))

    def fitted(self, bitext: Bitext) -> Fitted:
        """A bitext with the probabilities that the model has for it."""
        index = pair_index(bitext)
        src, tgt = _ids(self.src_words, bitext.src.words), _ids(self.tgt_words, bitext.tgt.words)
        prob = np.empty((len(index.pair_tgt), 2), np.float32)
        look_up_pairs_kernel(self.lexicon, src, tgt, index.first_pair, index.pair_tgt, prob)
        null = _null_probs(self.lexicon.null_tgt, tgt), _null_probs(self.lexicon.null_src, src)
        return Fitted(index, LexicalProbs(prob, *null), self.parameters.of_words(src, tgt), self.null)

    def aligned(self, bitext: Bitext) -> Alignment:
        """The links of a bitext: above the threshold of the model, or both directions combined."""
        fitted = self.fitted(bitext)
        if self.threshold:
            return links_above(fitted, 0, bitext.num_pairs, self.threshold)
        return combine(bitext, decoded(fitted), self.symmetrize)


def _ids(known: WordTable, words: WordTable) -> Ids:
    ids = np.empty(len(words.first) - 1, np.int32)
    find_all_kernel(known, words.pool, words.first, ids)
    return ids


def _null_probs(known: Floats32, ids: Ids) -> Floats32:
    """p(word | NULL) of some words; unknown ones are as probable as the least probable one."""
    least = known.min(initial=np.float32(1.0))
    found: Floats32 = np.where(ids >= 0, known[ids] if len(known) else least, least).astype(np.float32)
    return found


def model_of(trainer: Trainer, bitext: Bitext) -> AlignmentModel:
    """The model that was trained on a bitext."""
    index, lexicon = trainer.index, trainer.lexicon
    rest_src, rest_tgt = trainer.unaligned()
    of_src = np.zeros(len(rest_src), np.int64)
    tgt, prob = [np.zeros(0, np.int32)], [np.zeros((0, 2), np.float32)]
    for begin, end in trainer.word_blocks:  # the tables may be larger than memory
        own = slice(index.first_pair[begin], index.first_pair[end])
        row = np.repeat(np.arange(begin, end), np.diff(index.first_pair[begin : end + 1]))
        target, value = index.pair_tgt[own], lexicon.prob[own]
        kept = np.flatnonzero((value[:, 0] != rest_src[row]) | (value[:, 1] != rest_tgt[target]))
        kept = kept[np.lexsort((target[kept], row[kept]))]
        of_src += np.bincount(row[kept], minlength=len(rest_src))
        tgt.append(target[kept])
        prob.append(value[kept])
    stored = StoredProbs(
        read_only(offsets_of(of_src)),
        read_only(np.concatenate(tgt)),
        read_only(np.concatenate(prob)),
        read_only(lexicon.null_tgt),
        read_only(lexicon.null_src),
        read_only(rest_src),
        read_only(rest_tgt),
    )
    config = trainer.config
    return AlignmentModel(
        stored,
        trainer.model,
        trainer.parameters(),
        config.null,
        config.symmetrize,
        config.threshold,
        bitext.src.words,
        bitext.tgt.words,
    )


# ---- files

_ARRAYS: dict[str, tuple[type[np.generic], int]] = {
    "first_pair": (np.int64, 1),
    "pair_tgt": (np.int32, 1),
    "prob": (np.float32, 2),
    "null_tgt": (np.float32, 1),
    "null_src": (np.float32, 1),
    "rest_src": (np.float32, 1),
    "rest_tgt": (np.float32, 1),
    "positions": (np.float64, 1),
    "fertility_src": (np.float32, 2),
    "fertility_tgt": (np.float32, 2),
}


def _is_sound(meta: Mapping[str, Any], arrays: Arrays) -> bool:
    src, tgt = (word_table_from(arrays, side) for side in SIDES)
    num_src, num_tgt = len(src.first) - 1, len(tgt.first) - 1
    num_pairs = len(arrays["pair_tgt"])
    lengths = {"null_src": num_src, "rest_src": num_src, "null_tgt": num_tgt, "rest_tgt": num_tgt}
    null, threshold = meta.get("null"), meta.get("threshold")
    return (
        is_sound(src)
        and is_sound(tgt)
        and len(arrays["first_pair"]) == num_src + 1
        and are_offsets(arrays["first_pair"], num_pairs)
        and is_within(arrays["pair_tgt"], 0, num_tgt)
        and arrays["prob"].shape == (num_pairs, 2)
        and _are_probabilities(arrays["prob"])
        and all(len(arrays[name]) == length for name, length in lengths.items())
        and all(_are_probabilities(arrays[name]) for name in lengths)
        and meta.get("model") in tuple(PARAMETERS)
        and PARAMETERS[meta["model"]].read(arrays, num_src, num_tgt) is not None
        and type(null) is float
        and MIN_NULL <= null <= 1 - MIN_NULL
        and type(threshold) is float
        and 0 <= threshold <= 1
        and meta.get("symmetrize") in METHODS
    )


def _are_probabilities(array: Any) -> bool:
    return not array.size or (is_finite(array) and bool(array.min() > 0 and array.max() <= 1.001))


MODEL = Kind(
    "hiero alignment model",
    2,
    "make it again with hiero align --save-model",
    _ARRAYS | word_table_files(*SIDES),
    _is_sound,
)


def write_model(path: Path, model: AlignmentModel) -> None:
    """Write a model as a directory."""
    meta = {name: getattr(model, name) for name in ("model", "null", "symmetrize", "threshold")}
    tables = {"src": model.src_words, "tgt": model.tgt_words}
    arrays = {
        **model.lexicon._asdict(),
        **model.parameters.arrays(),
        **word_table_arrays(tables),
    }
    MODEL.write(path, meta, arrays)


def read_model(path: str | Path) -> AlignmentModel:
    """Map and check a model."""
    meta, arrays = MODEL.read(Path(path))
    lexicon = StoredProbs(*(arrays[name] for name in StoredProbs._fields))
    parameters = PARAMETERS[meta["model"]].read(arrays, len(lexicon.null_src), len(lexicon.null_tgt))
    assert parameters is not None  # as checked
    return AlignmentModel(
        lexicon,
        meta["model"],
        parameters,
        meta["null"],
        meta["symmetrize"],
        meta["threshold"],
        *(word_table_from(arrays, side) for side in SIDES),
    )
