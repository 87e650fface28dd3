"""Files of a bitext index: a directory of arrays that are memory-mapped.

::

    INDEX/meta.json        format, version, limits, source files, digests
    INDEX/src.npy ...      the arrays of IndexedText, IndexedLinks, LexicalLosses and Collocations
    INDEX/src_words_pool   and so on: two ``symbols.WordTable``; entry w is word w + 1

An index does not need its source files. But source files that still exist must be unchanged: rules of an
outdated bitext would otherwise go unnoticed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hiero.core.directories import META, Kind
from hiero.core.errors import FormatError
from hiero.core.symbols import WordTable
from hiero.lm.compiled import digest_of

_TABLES: dict[str, tuple[type[np.generic], int]] = {
    "src": (np.int32, 1),
    "sentence": (np.int32, 1),
    "first_src": (np.int64, 1),
    "tgt": (np.int32, 1),
    "first_tgt": (np.int64, 1),
    "suffix": (np.int32, 1),
    "first_suffix": (np.int64, 1),
    "src_span": (np.int16, 3),
    "tgt_span": (np.int16, 3),
    "first_link": (np.int64, 2),
    "link": (np.int16, 1),
    "pair_key": (np.int64, 1),
    "pair_loss": (np.float32, 2),
    "frequent": (np.int64, 2),
    "first_pair": (np.int64, 1),
    "first_triple": (np.int64, 1),
    "match": (np.int64, 1),
}
_WORDS: dict[str, tuple[type[np.generic], int]] = {
    "pool": (np.uint8, 1),
    "first": (np.int64, 1),
    "slot": (np.int32, 1),
}
SIDES = ("src_words", "tgt_words")
INDEX = Kind(
    "hiero index",
    1,
    "make it again with hiero index",
    _TABLES | {f"{side}_{name}": kind for side in SIDES for name, kind in _WORDS.items()},
)
Arrays = dict[str, npt.NDArray[Any]]
SPOTS, SPOT_BYTES = 64, 4096


def write_index(
    path: Path,
    tables: Mapping[str, npt.NDArray[Any]],
    words: Mapping[str, WordTable],
    settings: Mapping[str, int],
    sources: Sequence[Path],
) -> None:
    """Write a directory under a temporary name, then rename it; ``words`` by the names in SIDES."""
    arrays: Arrays = dict(tables)
    for side, table in words.items():
        arrays |= {f"{side}_{name}": getattr(table, name) for name in _WORDS}
    meta = {
        "sentences": len(tables["first_src"]) - 1,
        "settings": dict(settings),
        "sources": [
            {
                "path": os.path.relpath(source, path.parent),
                "bytes": source.stat().st_size,
                "sha256": digest_of(source),
            }
            for source in sources
        ],
        "arrays": {
            name: {"sha256": _whole(arrays[name]), "spots": _spots(arrays[name])} for name in INDEX.arrays
        },
    }
    INDEX.write(path, meta, arrays)


def read_index(path: Path, *, thorough: bool = False) -> tuple[dict[str, Any], Arrays, dict[str, WordTable]]:
    """Map an index: the content of ``meta.json``, the arrays, the words of both sides.

    Of every array, evenly spaced pieces are compared with their digest; with ``thorough``, all of it.
    """
    meta, arrays = INDEX.read(path)
    digests, sources = meta.get("arrays"), meta.get("sources")
    if (
        not isinstance(digests, dict)
        or not isinstance(sources, list)
        or not isinstance(meta.get("settings"), dict)
    ):
        raise INDEX.broken(path / META, "no digests", f"a {INDEX.name}")
    for name, array in arrays.items():
        known = digests.get(name)
        kind, digest = ("sha256", _whole) if thorough else ("spots", _spots)
        if not isinstance(known, dict) or known.get(kind) != digest(array):
            raise INDEX.broken(path / f"{name}.npy", "other content", "what was written with the index")
    for source in sources:
        _check_source(path, source)
    words = {side: WordTable(*(arrays[f"{side}_{name}"] for name in _WORDS)) for side in SIDES}
    return meta, {name: arrays[name] for name in _TABLES}, words


def _check_source(path: Path, source: Any) -> None:
    try:
        place, num_bytes, digest = path.parent / source["path"], source["bytes"], source["sha256"]
    except (TypeError, KeyError):
        raise INDEX.broken(path / META, "damage", f"a {INDEX.name}") from None
    if place.is_file() and (place.stat().st_size != num_bytes or digest_of(place) != digest):
        raise FormatError(
            place,
            0,
            found="other content than when the index was made",
            expected=f"the file that {path} is made from",
            hint=INDEX.hint,
        )


def _whole(array: npt.NDArray[Any]) -> str:
    return _digest(array, [array.reshape(-1).view(np.uint8)])


def _spots(array: npt.NDArray[Any]) -> str:
    """A digest of pieces of an array, so that opening a large index takes milliseconds."""
    data = array.reshape(-1).view(np.uint8)
    if len(data) <= SPOTS * SPOT_BYTES:
        return _digest(array, [data])
    starts = np.linspace(0, len(data) - SPOT_BYTES, SPOTS).astype(np.int64)
    return _digest(array, [data[start : start + SPOT_BYTES] for start in starts.tolist()])


def _digest(array: npt.NDArray[Any], pieces: Sequence[npt.NDArray[np.uint8]]) -> str:
    digest = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    for piece in pieces:
        digest.update(np.ascontiguousarray(piece).data)
    return digest.hexdigest()
