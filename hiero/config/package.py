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

import hashlib
import shutil
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from hiero.core.errors import ConfigError, FormatError
from hiero.core.progress import Progress, SilentProgress
from hiero.core.text import parse_json

FORMAT, VERSION = "hiero model package", 1
META, CARD, CONFIG, FILES = "package.json", "README.md", "model.yaml", "files"
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
