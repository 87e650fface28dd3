"""Time and memory of each stage of ``hiero run``: ``python -m benchmarks.endtoend [CONFIG]``.

Runs a configuration (default: configs/multi30k.yaml) in a new directory and prints a table of its stages:
CPU time without compilation, in seconds and in loops of the reference data's ``calibrate.py``, which is run
before and after (the shorter time is used); compilation time, wall-clock time, peak memory; and the scores.
With ``--bleu dev=39.6 devtest=33.8`` the exit code is 1 if a set has a lower score.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.results import append_result

PROJECT = Path(__file__).parents[1]


def calibrate(reference: Path) -> float:
    """Seconds of the calibration loop."""
    script = reference / "calibrate.py"
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    return float(result.stdout.split()[0])


def row(name: str, entry: dict[str, Any], loop: float) -> str:
    cpu = entry["cpu_seconds"] - entry["compile_seconds"]
    return (
        f"| {name} | {cpu:.1f} | {cpu / loop:.1f} | {entry['compile_seconds']:.1f} | "
        f"{entry['wall_seconds']:.1f} | {entry['peak_mb']:.0f} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", nargs="?", type=Path, default=PROJECT / "configs" / "multi30k.yaml")
    parser.add_argument("-j", "--threads", type=int, default=1)
    parser.add_argument("--reference", type=Path, default=PROJECT.parent / "shared" / "reference")
    parser.add_argument("--bleu", metavar="SET=LEAST", nargs="+", default=[])
    args = parser.parse_args()
    before = calibrate(args.reference)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = [sys.executable, "-m", "hiero.cli.main", "run", str(args.config), "-o", str(out)]
        subprocess.run([*command, "-j", str(args.threads)], check=True)
        manifest = json.loads((out / "manifest.json").read_text())
    loop = min(before, calibrate(args.reference))
    stages: dict[str, dict[str, Any]] = manifest["stages"]
    print(f"\n{args.config.name}, {args.threads} thread(s), one loop {loop:.3f} s\n")
    print("| stage | CPU s | loops | compiling s | clock s | peak MB |")
    print("|---|---|---|---|---|---|")
    for name, entry in stages.items():
        print(row(name, entry, loop))
    keys = ("cpu_seconds", "compile_seconds", "wall_seconds")
    total = {key: sum(entry[key] for entry in stages.values()) for key in keys}
    print(row("all", total | {"peak_mb": max(entry["peak_mb"] for entry in stages.values())}, loop))
    scores = {name.partition(":")[2]: e["figures"] for name, e in stages.items() if name.startswith("eval:")}
    print()
    for name, found in scores.items():
        print(f"{name}: " + ", ".join(f"{metric} {score:.2f}" for metric, score in found.items()))
    figures: dict[str, object] = {"config": args.config.name, "threads": args.threads, "loop_s": loop}
    for name, entry in stages.items():
        figures[f"{name}, cpu_s"] = entry["cpu_seconds"] - entry["compile_seconds"]
        figures[f"{name}, peak_mb"] = entry["peak_mb"]
    figures |= {
        f"{name}, {metric}": score for name, found in scores.items() for metric, score in found.items()
    }
    append_result("endtoend", figures)
    wanted = dict(spec.split("=") for spec in args.bleu)
    missed = [name for name, least in wanted.items() if scores[name]["BLEU"] < float(least)]
    for name in missed:
        print(f"NOT MET: BLEU of {name} {scores[name]['BLEU']:.2f}, expected at least {wanted[name]}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
