"""Write models from their n-grams, as ARPA files or compiled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from hiero.core.errors import FormatError
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import find_all
from hiero.lm.arpa import write_arpa
from hiero.lm.model import MODEL, ngrams_of, write_ngrams
from hiero.lm.table_kernels import NgramBlock, ngram_table_of_blocks

LEAST = 1e-99  # written for zero probability, as by SRILM


def check_output(output: Path, *, compiled: bool) -> None:
    """Refuse a path where the model cannot be written, before long work."""
    if compiled:
        MODEL.check_place(output)
    elif str(output) != "-" and not output.parent.is_dir():
        raise FormatError(output, 0, found="no such directory", expected="a writable path")


def write_model(
    output: Path,
    words: WordTable,
    counts: Sequence[int],
    blocks: Iterable[NgramBlock],
    *,
    compiled: bool,
    source: Path | None,
) -> None:
    """Write a model. Blocks come in the order of their length; ``source`` is what it was made from."""
    if not compiled:
        write_arpa(output, words, counts, blocks)
        return
    table, unigram = ngram_table_of_blocks(counts, blocks)
    markers = find_all(words, [b"<s>", b"</s>"]).tolist()
    write_ngrams(output, ngrams_of(table.key, unigram, len(counts), *markers), words, source)
