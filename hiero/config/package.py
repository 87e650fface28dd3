"""Model packages: one file with everything that a model is made of.

A zip archive::

    package.json    format, version, name, licence, and the other files with their sizes and digests
    README.md       the model card
    model.yaml      the configuration, with paths below files/
    files/...       grammars, indexes, language models, weights, and so on

A package is unpacked once, into a directory beside the compiled kernels that is named after the digest of its
``package.json``, since models are mapped into memory.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from hiero.core.errors import ConfigError, FormatError
from hiero.core.progress import Progress, SilentProgress
from hiero.core.records import map_paths
from hiero.core.text import open_output, parse_json

FORMAT, VERSION = "hiero model package", 1
META, CARD, CONFIG, FILES = "package.json", "README.md", "model.yaml", "files"
EPOCH = (1980, 1, 1, 0, 0, 0)  # of all entries, so that equal models make equal packages
BLOCK = 1 << 20
MOST_META = 1 << 24  # bytes
# What zipfile raises for damage, unknown compression and encryption.
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
HINT = "hiero pack makes packages"


@dataclass(frozen=True)
class Package:
    """What ``package.json`` says.

    files  bytes and SHA-256 of each file by its name
    """

    path: Path
    name: str
    licence: str
    hiero: str
    files: dict[str, tuple[int, str]]
    digest: str  # of package.json


def is_package(path: str | Path) -> bool:
    """Whether a file begins as a package does."""
    try:
        with open(path, "rb") as stream:
            return stream.read(4) == b"PK\x03\x04"
    except OSError:
        return False


# ---- writing


def write_package(
    config: Any, path: str | Path, *, name: str, licence: str, card: str, progress: Progress | None = None
) -> Package:
    """Write a package of the sections of a model of a ``Config``."""
    import hiero
    from hiero.config.config import resolved
    from hiero.config.model import model_config

    model = model_config(config)
    model = dataclasses.replace(model, grammar=[_without_caches(section) for section in model.grammar])
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


def _without_caches(section: Any) -> Any:
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
    import yaml

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


# ---- reading


def read_package(path: str | Path) -> Package:
    """Read and check ``package.json``."""
    try:
        with zipfile.ZipFile(path) as archive:
            info = archive.getinfo(META)
            if info.file_size > MOST_META:
                raise _broken(path, f"{META} of {info.file_size:,} bytes")
            data = archive.read(info)
            names = archive.namelist()
    except (KeyError, *DAMAGE):
        raise _broken(path, "damage, or another archive") from None
    meta = parse_json(data)
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise _broken(path, "another archive")
    if meta.get("version") != VERSION:
        raise FormatError(path, 0, found=f"version {meta.get('version')}", expected=f"version {VERSION}")
    try:
        listed = {str(entry): (int(one["bytes"]), str(one["sha256"])) for entry, one in meta["files"].items()}
        name, licence, version = (str(meta[key]) for key in ("name", "licence", "hiero"))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise _broken(path, f"an incomplete {META}") from None
    if sorted(names) != sorted([META, *listed]) or CONFIG not in listed or CARD not in listed:
        raise _broken(path, "other files than listed")
    for entry in listed:
        place = PurePosixPath(entry)
        if place.is_absolute() or ".." in place.parts or "\\" in entry or ":" in entry:
            raise _broken(path, f"a file named {entry}")
    return Package(Path(path), name, licence, version, listed, hashlib.sha256(data).hexdigest())


def _broken(path: str | Path, found: str) -> FormatError:
    return FormatError(path, 0, found=found, expected=f"a {FORMAT}", hint=HINT)


def extract_package(package: Package, folder: Path, progress: Progress | None = None) -> None:
    """Unpack all files into a new directory, which only appears when it is complete and all digests agree."""
    from hiero.core.directories import create_directory

    progress = progress or SilentProgress()
    total = sum(size for size, _ in package.files.values())
    progress.begin(total >> 20, "unpacking")
    with create_directory(folder) as part:
        free = shutil.disk_usage(part).free
        if total > free:
            raise ConfigError(f"{package.path}: needs {total:,} bytes in {folder.parent}, which has {free:,}")
        with zipfile.ZipFile(package.path) as archive:
            for entry, (size, digest) in package.files.items():
                target = part / entry
                target.parent.mkdir(parents=True, exist_ok=True)
                try:
                    with archive.open(entry) as source, target.open("xb") as out:
                        is_whole = _copied(source, out, size, progress) == digest
                except DAMAGE:
                    is_whole = False
                except OSError as error:
                    if error.errno is not None:
                        raise
                    is_whole = False  # zlib's
                if not is_whole:
                    raise _broken(package.path, f"damage in {entry}")


def _copied(source: IO[bytes], out: IO[bytes], size: int, progress: Progress) -> str:
    """Copy so many bytes; their digest, or an empty string if there are more or fewer."""
    digest, left = hashlib.sha256(), size
    while block := source.read(BLOCK):
        left -= len(block)
        if left < 0:
            return ""
        digest.update(block)
        out.write(block)
        progress.advance(1)
    return digest.hexdigest() if left == 0 else ""


def unpacked(path: str | Path) -> Path:
    """The directory of a package in the cache, where it is unpacked if it is not there yet."""
    from hiero.core.jit import CACHE_DIRECTORY

    package = read_package(path)
    if not CACHE_DIRECTORY:
        problem = "there is no private directory to unpack it into"
        raise ConfigError(f"{path}: {problem} (hiero pack --extract unpacks it where you like)")
    folder = Path(CACHE_DIRECTORY).parent / "models" / package.digest[:32]
    if not (folder / CONFIG).is_file():
        extract_package(package, folder)
    return folder
