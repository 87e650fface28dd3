"""``hiero run`` killed at random moments: ``python -m benchmarks.kills [CONFIG] [--kills 20] [--seed 1]``.

Runs a configuration (default: configs/demo.yaml) once without interruption, and again in another directory,
where it is killed with SIGKILL at random moments and restarted, ``--kills`` times; if it completes earlier,
it begins again in a new directory. All files must then be equal byte by byte, except for ``manifest.json``
and ``log.jsonl``, which contain times, and stored rules, and there must be no other files.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.results import append_result

PROJECT = Path(__file__).parents[1]
WITH_TIMES = {"manifest.json", "log.jsonl"}
RULES = "rules"  # stored in the order of threads


def artefacts(directory: Path) -> dict[str, bytes]:
    """All output files of a run that do not contain times, or rules."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name not in WITH_TIMES and path.parent != directory / RULES
    }


def compare(folder: Path) -> None:
    whole, killed = artefacts(folder / "whole"), artefacts(folder / "killed")
    assert set(whole) == set(killed), set(whole) ^ set(killed)
    different = [name for name in whole if whole[name] != killed[name]]
    assert not different, different


def stages_begun(log: Path) -> list[str]:
    """The stages started by the last run."""
    begun: list[str] = []
    for line in log.read_text().splitlines() if log.exists() else ():
        # The last line may be cut off.
        event = json.loads(line) if line.endswith("}") else {}
        begun = [] if event.get("event") == "run" else begun
        begun += [event["stage"]] if event.get("event") == "start" else []
    return begun


def trial(config: Path, folder: Path, kills: int, seed: int, threads: int = 1) -> Counter[str]:
    """The number of kills in each stage; raises AssertionError if the final output differs."""

    def command(name: str) -> list[str]:
        program = [sys.executable, "-m", "hiero.cli.main", "run", str(config), "-q", "-j", str(threads)]
        return [*program, "-o", str(folder / name)]

    for name in ("whole", "killed"):  # the first run compiles
        subprocess.run(command(name), check=True, stdout=subprocess.DEVNULL)
    compare(folder)
    stages = json.loads((folder / "killed" / "manifest.json").read_text())["stages"]
    shutil.rmtree(folder / "killed")
    # Long enough for every stage to complete sometimes.
    longest = 1.5 * max(entry["wall_seconds"] for entry in stages.values())
    dice, seen, log = random.Random(seed), Counter[str](), folder / "killed" / "log.jsonl"
    while seen.total() < kills:
        length = log.stat().st_size if log.exists() else 0
        with subprocess.Popen(command("killed"), stdout=subprocess.DEVNULL) as process:
            while process.poll() is None and not (log.exists() and log.stat().st_size > length):
                time.sleep(0.001)  # until work begins: starting Python takes longer than some stages
            try:
                process.wait(dice.uniform(0, longest))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        if process.returncode == -signal.SIGKILL:
            seen[(stages_begun(log) or ["before any stage"])[-1]] += 1
        else:
            assert process.returncode == 0
            compare(folder)
            shutil.rmtree(folder / "killed")
    subprocess.run(command("killed"), check=True, stdout=subprocess.DEVNULL)
    compare(folder)
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", nargs="?", type=Path, default=PROJECT / "configs" / "demo.yaml")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-j", "--threads", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seen = trial(args.config, Path(folder), args.kills, args.seed, args.threads)
    for stage, times in sorted(seen.items()):
        print(f"killed in {stage}: {times}")
    print(f"{args.kills} kills: every artefact is equal to the byte")
    append_result("kills", {"config": args.config.name, "threads": args.threads, **seen})


if __name__ == "__main__":
    main()
