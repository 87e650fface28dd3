"""Write model packages; see ``config.package``."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

import hiero
from hiero.config.config import Config, resolved
from hiero.config.model import model_config
from hiero.config.package import BLOCK, CARD, CONFIG, FILES, FORMAT, META, VERSION, Package
from hiero.config.sections import GrammarSection
from hiero.core.errors import FormatError
from hiero.core.progress import Progress, SilentProgress
from hiero.core.records import map_paths
from hiero.core.text import open_output

EPOCH = (1980, 1, 1, 0, 0, 0)  # of all entries, so that equal models make equal packages


def write_package(
    config: Config, path: str | Path, *, name: str, licence: str, card: str, progress: Progress | None = None
) -> Package:
    """Write a package of the sections of a model of a ``Config``."""

    model = model_config(config)
    grammar = [without_caches(section) for section in model.grammar]
    model = dataclasses.replace(model, grammar=grammar, prep=config.prep)
    places: dict[str, str] = {}

    def packed(key: str, given: str) -> str:
        if given not in places:
            if not os.path.exists(given):
                raise FormatError(given, 0, found="no such file", expected=f"{key} of the model")
            places[given] = _new_name(Path(given).name, set(places.values()))
        return places[given]

    root = os.path.abspath(FILES)  # to which ``resolved`` makes the new paths relative
    moved = map_paths(model, lambda key, given: os.path.join(root, packed(key, given)))
    settings = resolved(moved, Path(root))
    texts = {CARD: card, CONFIG: _yaml(settings)}
    sources = [(f"{place}{below}", file) for given, place in places.items() for below, file in _files(given)]
    progress = progress or SilentProgress()
    progress.begin(sum(file.stat().st_size for _, file in sources) >> 20, "packing")
    listed: dict[str, tuple[int, str]] = {}
    with open_output(path, packed=False) as stream, zipfile.ZipFile(stream, "w") as archive:
        for entry, text in texts.items():
            listed[entry] = len(text.encode()), hashlib.sha256(text.encode()).hexdigest()
            _store(archive, entry, text.encode())
        for entry, file in sources:
            listed[entry] = _copy_in(archive, entry, file, progress)
        meta = {
            "format": FORMAT,
            "version": VERSION,
            "hiero": hiero.__version__,
            "name": name,
            "licence": licence,
            "files": {entry: {"bytes": size, "sha256": digest} for entry, (size, digest) in listed.items()},
        }
        data = json.dumps(meta, indent=1, ensure_ascii=False).encode()
        _store(archive, META, data)
    return Package(Path(path), name, licence, hiero.__version__, listed, hashlib.sha256(data).hexdigest())


def without_caches(section: GrammarSection) -> GrammarSection:
    """The same grammar, without a store to read and write."""
    return dataclasses.replace(section, extract=dataclasses.replace(section.extract, store=None))


def _new_name(base: str, taken: set[str]) -> str:
    name, number = f"{FILES}/{base}", 1
    while name in taken:
        number += 1
        name = f"{FILES}/{number}.{base}"
    return name


def _files(given: str) -> Iterator[tuple[str, Path]]:
    """The files of a path: it alone, or those of a directory with their places below it."""
    path = Path(given)
    if path.is_file():
        yield "", path
        return
    for file in sorted(path.rglob("*")):
        if file.is_file() and not file.name.startswith("."):
            yield f"/{file.relative_to(path).as_posix()}", file


def _yaml(settings: dict[str, Any]) -> str:
    text: str = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)
    return f"# hiero decode -c model.yaml; hiero.load('model.yaml')\n{text}"


def _info(entry: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(entry, EPOCH)
    info.compress_type = zipfile.ZIP_STORED if entry.endswith(".gz") else zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    return info


def _store(archive: zipfile.ZipFile, entry: str, data: bytes) -> None:
    archive.writestr(_info(entry), data)


def _copy_in(archive: zipfile.ZipFile, entry: str, file: Path, progress: Progress) -> tuple[int, str]:
    digest, size = hashlib.sha256(), 0
    info = _info(entry)
    info.file_size = file.stat().st_size  # whether it needs the form for large files
    with file.open("rb") as source, archive.open(info, "w") as out:
        while block := source.read(BLOCK):
            digest.update(block)
            out.write(block)
            size += len(block)
            progress.advance(1)
    return size, digest.hexdigest()
