"""Classes of words, for models whose words are classes.

A file has a word and its class on each line, separated by spaces or tabs, as the files of mkcls and the maps
of cdec and Joshua. ``<s>`` and ``</s>`` are their own classes; a word that is not listed is ``<unk>``.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Ids
from hiero.core.errors import FormatError, show
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import find_all, word_table
from hiero.core.text import read_lines, split_words, utf8_line

WHAT = "a word and its class on each line"
OWN = (b"<unk>", b"<s>", b"</s>")  # symbols that are their own classes
RESERVED = (*OWN, b"<UNK>")


class WordClasses(NamedTuple):
    """The classes of words.

    path
    words      WordTable  <unk>, <s>, </s>, and the words of the file in its order
    names      their classes as words of a model: <unk>, <s>, </s>, and those of the file, each once
    class_of   int32 [W]  the class of each word, by its position in ``names``
    """

    path: Path
    words: WordTable
    names: tuple[bytes, ...]
    class_of: Ids


def read_classes(path: Path) -> WordClasses:
    """Read and check a file of classes, plain or gz."""
    names = {name: number for number, name in enumerate(OWN)}
    listed: dict[bytes, int] = dict(names)
    for number, line in enumerate(read_lines(path, WHAT), 1):
        fields = split_words(utf8_line(path, number, line))
        if len(fields) != 2:
            hint = "other columns, such as counts, must be removed" if len(fields) > 2 else ""
            raise FormatError(path, number, found=f"{len(fields)} fields", expected=WHAT, hint=hint)
        word, name = (field.encode() for field in fields)
        if not set(word + name).isdisjoint(b"\r\0"):
            raise FormatError(path, number, found=show(line), expected=WHAT, hint="is it a text file?")
        if word == name and word in OWN:
            continue
        for reserved in (word, name):
            if reserved in RESERVED:
                hint = "the symbol is reserved; words without a class are <unk>"
                raise FormatError(path, number, found=show(reserved), expected=WHAT, hint=hint)
        if word in listed:
            raise FormatError(path, number, found=f"the word {show(word)} again", expected="every word once")
        listed[word] = names.setdefault(name, len(names))
    if len(listed) == len(OWN):
        raise FormatError(path, 0, found="no words", expected=WHAT)
    class_of = np.fromiter(listed.values(), np.int32, len(listed))
    return WordClasses(path, word_table(list(listed)), tuple(names), class_of)


def ids_in_model(classes: WordClasses, model: WordTable) -> Ids:
    """The id in a model of the class of each word in ``classes.words``; 0 if the model does not have it."""
    found = np.maximum(find_all(model, classes.names), 0)
    if not found[len(OWN) :].any():
        hint = "the model is one of words, or of other classes"
        raise FormatError(classes.path, 0, found="no class of the model", expected="its classes", hint=hint)
    return found[classes.class_of]
