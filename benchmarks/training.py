"""Epochs of tuning on a bitext itself: ``python -m benchmarks.training DATA LM [--sentences 500]``.

DATA has ``train.src.gz``, ``train.trg.gz`` and ``train.align.gz``; LM is a language model. The bitext is
indexed, unless ``--index`` names an index of it, and weights of all sparse templates are learnt from its
first sentences by SGD: leave-one-out with links, 100 unique translations, pop limit 200. Printed are, for
each epoch, CPU seconds for 100 sentences and, with ``--reference``, loops of its ``calibrate.py``, which runs
before and after; then the stored rules of a sentence in kB and the peak memory. With ``-j 2`` it learns in as
many processes, from as many shards times four, and prints wall-clock seconds, which only a machine that does
nothing else can measure.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from benchmarks.results import append_result

TEMPLATES = ["rule_id", "source_bigram", "target_bigram", "shape", "lexical"]


def hiero(*arguments: object) -> None:
    command = [sys.executable, "-m", "hiero.cli.main", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def write_experiment(folder: Path, args: argparse.Namespace, index: Path) -> Path:
    for name in ("src", "trg"):
        with gzip.open(args.data / f"train.{name}.gz") as stream, open(folder / name, "wb") as out:
            out.writelines(itertools.islice(stream, args.sentences))
    tune: dict[str, object] = {
        "algorithm": "sgd" if args.threads == 1 else "itermixsgd",
        "on": "set",
        "held_out": None,
    }
    tune |= {"shards": 1 if args.threads == 1 else 4 * args.threads, "epochs": args.epochs}
    tune |= {"leave_one_out": True, "kbest": 100, "unique": True, "start": "uniform"}
    content = {
        "data": {"set": {"source": "src", "references": "trg"}},
        "grammar": [{"index": str(index), "extract": {"leave_out_links": True}}],
        "lm": [{"path": str(args.lm.resolve())}],
        "features": {"templates": TEMPLATES},
        "search": {"pop_limit": 200},
        "tune": tune,
    }
    path = folder / "tune.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("data", metavar="DATA", type=Path)
    add("lm", metavar="LM", type=Path)
    add("--index", metavar="DIR", type=Path)
    add("--sentences", metavar="N", type=int, default=500)
    add("--epochs", metavar="N", type=int, default=3)
    add("--reference", metavar="DIR", type=Path)
    add("-j", "--threads", metavar="N", type=int, default=1)
    args = parser.parse_args()

    def loop() -> float:
        if args.reference is None:
            return float("nan")
        command = [sys.executable, str(args.reference / "calibrate.py")]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    hiero("warm-up", "-q")
    with tempfile.TemporaryDirectory() as name:
        folder, index = Path(name), args.index and args.index.resolve()
        if index is None:
            index, sides = folder / "index", zip("sta", ("src", "trg", "align"), strict=True)
            files = (part for flag, side in sides for part in (f"-{flag}", args.data / f"train.{side}.gz"))
            hiero("index", "-q", *files, "-o", index)
        how = ["-j", args.threads, "--executor", "processes" if args.threads > 1 else "threads"]
        before, path = loop(), write_experiment(folder, args, index)
        hiero("tune", "-q", "-c", path, "-o", folder / "run", *how)
        unit = min(before, loop())
        log = [json.loads(line) for line in (folder / "run" / "log.jsonl").read_text().splitlines()]
        stored = sum(file.stat().st_size for file in (folder / "run" / "rules").iterdir())
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    figures: dict[str, object] = {"sentences": args.sentences, "workers": args.threads, "loop": unit}
    figures |= {"kb_a_sentence": stored / args.sentences / 1000, "peak_mb": peak}
    print(f"{'epoch':>5}{'CPU s':>8}{'loops':>8}{'wall s':>8}   for 100 sentences")
    for record in log:
        cpu = record["cpu_s"] if args.threads == 1 else record["decode_s"] + record["learn_s"]
        seconds, wall = (100 * spent / args.sentences for spent in (cpu, record["wall_s"]))
        print(f"{record['epoch']:>5}{seconds:>8.2f}{seconds / unit:>8.2f}{wall:>8.2f}")
        figures |= {f"epoch_{record['epoch']}_cpu_s": seconds, f"epoch_{record['epoch']}_wall_s": wall}
    print(f"stored rules: {figures['kb_a_sentence']:.0f} kB a sentence; peak memory: {peak:.0f} MB")
    append_result("training", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
