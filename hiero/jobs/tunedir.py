"""The directory of a run of tuning, and the record of everything its result depends on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hiero.core.errors import FormatError, HieroError
from hiero.core.text import open_output
from hiero.jobs.directory import LOCK
from hiero.jobs.manifest import differences, versions
from hiero.tuning.loop import read_log
from hiero.tuning.shard import TEMPORARY

STATE = "tune.json"


def check_directory(directory: Path, resume: bool) -> None:
    """Refuse a directory with other files, or, unless ``resume``, with a run of tuning."""
    if not directory.is_dir():
        if directory.exists():
            raise FormatError(directory, 0, found="a file", expected="a directory")
        return
    names = set(os.listdir(directory)) - {LOCK, f"{STATE}.part"}
    if STATE in names and not resume:
        done = len(read_log(directory))
        found = f"a run of hiero tune, {done} epoch{'' if done == 1 else 's'} done"
        raise FormatError(directory, 0, found=found, expected="a new directory", hint="--resume continues it")
    if names and STATE not in names:
        hint = "-o names another"
        expected = f"a new directory, or one with {STATE}"
        raise FormatError(directory, 0, found="other files", expected=expected, hint=hint)


def _read_state(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
        if {"made_by", "settings", "digests"} <= set(content):
            return content
    except (OSError, ValueError, TypeError):
        pass
    raise FormatError(path, 0, found="damage", expected="the settings and digests of a run")


def write_state(directory: Path, state: Mapping[str, Any]) -> None:
    """Write everything the result depends on."""
    content = {**state, "versions": versions()}
    with open_output(directory / STATE) as stream:
        stream.write((json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def compare(directory: Path, new: Mapping[str, Any], epochs: int) -> None:
    """Raise an error if settings or inputs differ from those of the run in the directory."""
    old, hint = _read_state(directory / STATE), "-o names another directory"
    if old["made_by"] != new["made_by"]:
        problem = f"found a run of hiero {old['made_by']}, expected one of {new['made_by']}"
        raise HieroError(f"{directory}: {problem} ({hint})")
    for key in differences(old["settings"], new["settings"]):
        where, found, expected = key.replace(".", ": "), _at(new["settings"], key), _at(old["settings"], key)
        problem = f"found {found}, expected {expected}, as in the run there"
        raise HieroError(f"{directory}: {where}: {problem} ({hint})")
    for key in differences(old["digests"], new["digests"]):
        problem = "has changed since the run began" if key in new["digests"] else "is no longer read"
        raise HieroError(f"{directory}: {key}: {problem} ({hint})")
    done = len(read_log(directory))
    if epochs < done:
        raise HieroError(f"{directory}: tune: epochs: found {epochs}, expected at least {done}, as are done")


def remove_leftovers(directory: Path) -> None:
    """Delete incomplete files of a run that was killed."""
    for path in [*directory.glob(f"epochs/*/{TEMPORARY}*"), *directory.rglob("*.part")]:
        path.unlink(missing_ok=True)


def _at(settings: Mapping[str, Any], key: str) -> str:
    """The value of a dotted key, formatted for messages."""
    value: Any = settings
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return "nothing"
        value = value[part]
    return json.dumps(value, ensure_ascii=False)
