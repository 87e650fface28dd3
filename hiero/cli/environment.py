"""``hiero env``: versions and settings of this installation, for reports of faults."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import hiero
from hiero.cli.options import add_command

DESCRIPTION = """\
Show the versions of hiero, Python and the packages it uses, the machine, where compiled kernels are kept, and
which environment variables are set. Please add it to reports of faults."""

PACKAGES = (
    *("numpy", "numba", "llvmlite", "scipy", "sacrebleu", "pyyaml", "msgspec", "rich", "shtab"),
    *("sacremoses", "sentencepiece", "distributed", "kenlm"),  # of extras
)
VARIABLES = (
    "HIERO_TRACEBACK",
    "XDG_CACHE_HOME",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero env`` with its arguments."""
    command = add_command(subparsers, "env", "show versions and the machine, for reports", DESCRIPTION)
    command.add_argument("--json", action="store_true", help="as an object of JSON")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run ``hiero env``; return the exit status."""
    found = environment()
    if args.json:
        print(json.dumps(found, indent=1))
        return 0
    flat = {name: value for name, value in found.items() if not isinstance(value, dict)}
    for part in ("packages", "plug-ins", "variables"):
        flat |= found[part]
    width = max(map(len, flat))
    for name, value in flat.items():
        print(f"{name:{width}}  {value}")
    return 0


def environment() -> dict[str, Any]:
    """What may matter for a fault; ``variables`` are those that are set."""
    from hiero.core.jit import CACHE_DIRECTORY
    from hiero.core.plugins import GROUPS, plugins

    named = ("HIERO_", "NUMBA_")
    variables = {
        key: os.environ[key] for key in sorted(os.environ) if key.startswith(named) or key in VARIABLES
    }
    return {
        "hiero": hiero.__version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "executable": sys.executable,
        "system": platform.platform(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory": _memory(),
        "kernels": CACHE_DIRECTORY or "compiled each time: no private directory",
        "compiled": sum(1 for _ in Path(CACHE_DIRECTORY).rglob("*.nbi")) if CACHE_DIRECTORY else 0,
        "packages": {name: _version(name) for name in PACKAGES},
        "plug-ins": {
            name: f"{value} ({group})" for group in GROUPS for name, value in sorted(plugins(group).items())
        },
        "variables": variables,
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
            names = [line.partition(":")[2].strip() for line in stream if line.startswith("model name")]
    except OSError:
        names = []
    return f"{names[0]} ({platform.machine()})" if names else platform.machine()


def _memory() -> str:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return "unknown"
    return f"{total / 2**30:.1f} GiB"
