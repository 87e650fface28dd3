"""The directory of a run of tuning: what its answer depends on, so that nothing else is made of it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hiero.errors import FormatError, HieroError
from hiero.formats.text import open_output
from hiero.manifest import differences, versions
from hiero.rundir import LOCK
from hiero.tune.decoding import TEMPORARY
from hiero.tune.loop import read_log

STATE = "tune.json"


def check_directory(directory: Path, resume: bool) -> None:
    """Only a new directory, or an empty one, or, to go on, one in which tuning was begun."""
    if not directory.is_dir():
        if directory.exists():
            raise FormatError(directory, 0, found="a file", expected="a directory")
        return
    names = set(os.listdir(directory)) - {LOCK, f"{STATE}.part"}
    if STATE in names and not resume:
        done = len(read_log(directory))
        found = f"a run of hiero tune, {done} epoch{'' if done == 1 else 's'} done"
        raise FormatError(
            directory, 0, found=found, expected="a new directory", hint="--resume goes on with it"
        )
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
    raise FormatError(path, 0, found="damage", expected="what a run of tuning depends on")


def write_state(directory: Path, state: Mapping[str, Any]) -> None:
    """Write down what the answer depends on."""
    content = {**state, "versions": versions()}
    with open_output(directory / STATE) as stream:
        stream.write((json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def compare(directory: Path, new: Mapping[str, Any], epochs: int) -> None:
    """Raise an error unless the answer depends on what it did when the run was begun."""
    old, hint = _read_state(directory / STATE), "-o names another directory"
    if old["made_by"] != new["made_by"]:
        begun = f"found a run of hiero {old['made_by']}, expected one of {new['made_by']}"
        raise HieroError(f"{directory}: {begun} ({hint})")
    for key in differences(old["settings"], new["settings"]):
        place, is_now, was = key.replace(".", ": "), _at(new["settings"], key), _at(old["settings"], key)
        raise HieroError(f"{directory}: {place}: found {is_now}, expected {was}, as it was begun ({hint})")
    for key in differences(old["digests"], new["digests"]):
        found = "has changed since the run was begun" if key in new["digests"] else "is no longer read"
        raise HieroError(f"{directory}: {key}: {found} ({hint})")
    done = len(read_log(directory))
    if epochs < done:
        raise HieroError(
            f"{directory}: tune: epochs: found {epochs}, expected at least the {done} that are done"
        )


def remove_leftovers(directory: Path) -> None:
    """Delete what was being written when a run was killed."""
    for path in [*directory.glob(f"epochs/*/{TEMPORARY}*"), *directory.rglob("*.part")]:
        path.unlink(missing_ok=True)


def _at(settings: Mapping[str, Any], key: str) -> str:
    """The value under a dotted key, as the user may have written it."""
    value: Any = settings
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return "nothing"
        value = value[part]
    return json.dumps(value, ensure_ascii=False)
