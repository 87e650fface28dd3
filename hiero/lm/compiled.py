"""Compiled language models: a directory of memory-mapped arrays, and ``meta.json``.

``meta.json`` holds ``format``, ``version``, ``order``, ``bos``, ``eos``, ``ngrams`` (the number of those of
two or more words) and ``source`` with the name and SHA-256 of the source file (null: standard input). The
arrays are those of ``table_kernels.Ngrams`` and ``core.symbol_kernels.WordTable``.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import read_only
from hiero.core.errors import FormatError, HieroError, os_message
from hiero.core.symbol_kernels import WordTable
from hiero.core.text import digest_of, open_bytes
from hiero.lm.model import ngrams_of
from hiero.lm.table_kernels import MAX_ORDER, Ngrams

FORMAT, VERSION = "hiero language model", 1
META = "meta.json"
RECOMPILE = "make it again with hiero lm compile"


ARRAYS = {
    "slots": (np.uint64, 1),
    "unigram": (np.float32, 2),
    "word_pool": (np.uint8, 1),
    "word_first": (np.int64, 1),
    "word_slot": (np.int32, 1),
}


def check_target(path: Path) -> None:
    """Refuse to replace anything but a compiled model."""
    if path.exists() and not (path / META).is_file():
        raise HieroError(f"{path}: already exists and contains no compiled language model")


def write_ngrams(path: Path, model: Ngrams, words: WordTable, source: Path | None) -> None:
    """Write a directory as ``PATH.part``, and rename it when it is complete.

    ``source`` is the file that the model was made from; None for standard input.
    """
    check_target(path)
    arrays: tuple[npt.NDArray[Any], ...] = (model.key, model.unigram, words.pool, words.first, words.slot)
    part, old = path.with_name(path.name + ".part"), path.with_name(path.name + ".old")
    meta = {
        "format": FORMAT,
        "version": VERSION,
        "order": int(model.order[0]),
        "bos": int(model.bos[0]),
        "eos": int(model.eos[0]),
        "ngrams": int(np.count_nonzero(model.key[::2])),
        "source": {"name": source.name, "sha256": digest_of(source)} if source else None,
    }
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        for name, array in zip(ARRAYS, arrays, strict=True):
            np.save(part / f"{name}.npy", array)
        (part / META).write_text(json.dumps(meta, indent=1) + "\n", encoding="utf-8")
        if path.exists():
            os.rename(path, old)
        os.rename(part, path)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise HieroError(f"{path}: cannot be written: {os_message(error)}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def read_ngrams(path: Path) -> tuple[Ngrams, WordTable]:
    """Map a compiled model; its arrays are read as they are used."""
    meta = _read_meta(path)
    slots, unigram, pool, first, slot = (
        _map(path / f"{name}.npy", np.dtype(scalar), dimensions)
        for name, (scalar, dimensions) in ARRAYS.items()
    )
    num_slots, num_words = len(slots) // 2, len(unigram)
    sound = (
        len(slots) == 2 * num_slots
        and _is_power_of_two(num_slots)
        and _is_power_of_two(len(slot))
        and 0 <= meta["ngrams"] < num_slots
        and unigram.shape == (num_words, 2)
        and len(first) == num_words + 1 <= len(slot)
        and first[-1] == len(pool)
        and 1 <= meta["order"] <= MAX_ORDER
        and max(meta["bos"], meta["eos"]) < num_words
    )
    if not sound:
        raise FormatError(path, 0, found="arrays that do not fit together", expected=FORMAT, hint=RECOMPILE)
    return ngrams_of(slots, unigram, meta["order"], meta["bos"], meta["eos"]), WordTable(pool, first, slot)


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _read_meta(path: Path) -> dict[str, Any]:
    what = f"a compiled language model, which has {META}"
    with open_bytes(path / META, what) as stream:
        text = stream.read()
    try:
        meta = json.loads(text)
        kind, version = meta["format"], meta["version"]
        numbers = [meta[name] for name in ("order", "bos", "eos", "ngrams")]
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(path / META, 0, found=f"damage ({error})", expected=what, hint=RECOMPILE) from None
    if kind != FORMAT:
        raise FormatError(path / META, 0, found=f"a {kind}", expected=f"a {FORMAT}")
    if version != VERSION or not all(isinstance(number, int) for number in numbers):
        raise FormatError(
            path / META, 0, found=f"version {version}", expected=f"version {VERSION}", hint=RECOMPILE
        )
    return dict(meta)


def _map(path: Path, dtype: np.dtype[Any], dimensions: int) -> npt.NDArray[Any]:
    try:
        array = np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError) as error:
        found = "no such file" if isinstance(error, FileNotFoundError) else f"damage ({error})"
        raise FormatError(path, 0, found=found, expected="an array of the model", hint=RECOMPILE) from None
    if array.dtype != dtype or array.ndim != dimensions:
        found = f"{array.ndim} dimensions of {array.dtype}"
        raise FormatError(path, 0, found=found, expected=f"{dimensions} of {dtype}", hint=RECOMPILE)
    return read_only(array)
