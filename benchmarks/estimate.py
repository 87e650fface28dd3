"""CPU time and memory of ``hiero lm estimate``, each run in a separate process.

    python benchmarks/estimate.py TEXT [--reference LM.arpa[.gz]] [--loop SECONDS] [--memory 0 256 64 16]
                                  [options of hiero lm estimate]

With --reference the run fails unless every model has the same n-grams as that one, and the same numbers to
1e-4. With --loop, the time of one calibration loop, CPU times are also given in loops. All models must be
equal byte by byte, since the result does not depend on the memory for sorting.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.results import append_result
from hiero.core.text import read_lines

Model = dict[bytes, tuple[float, float]]

TOLERANCE = 1e-4


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path)
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--loop", type=float)
    parser.add_argument("--memory", type=int, nargs="+", default=[0, 256, 64, 16], help="MB; 0: the default")
    args, options = parser.parse_known_args()
    args.options = options
    with tempfile.TemporaryDirectory() as folder:
        return measure(args, Path(folder) / "lm.arpa")


def measure(args: argparse.Namespace, out: Path) -> int:
    run([*args.options, str(args.text), str(out)])  # compiles
    models, figures = set(), dict[str, object](text=args.text.name, options=" ".join(args.options))
    print("memory (MB)   CPU (s)" + ("   loops" if args.loop else "") + "   peak (MB)")
    for memory in args.memory:
        limit = ["--memory", str(memory)] if memory else []
        seconds, peak = run([*args.options, *limit, str(args.text), str(out)])
        loops = f"{seconds / args.loop:8.2f}" if args.loop else ""
        print(f"{memory or 'default':>11}{seconds:10.2f}{loops}{peak:12.0f}")
        figures |= {f"{memory or 'default'} MB, cpu_s": seconds, f"{memory or 'default'} MB, peak_mb": peak}
        models.add(hashlib.sha256(out.read_bytes()).hexdigest())
    base = run(["--help"])
    print(f"  (of which starting takes {base[0]:.2f} s and {base[1]:.0f} MB)")
    assert len(models) == 1, "the memory changed the model"
    append_result("estimate", figures | {"start, cpu_s": base[0], "loop_s": args.loop})
    if args.reference:
        difference = compare(read(args.reference), read(out))
        print(f"largest difference from {args.reference.name}: {difference:.2g}")
        return 0 if difference <= TOLERANCE else 1
    return 0


def run(arguments: list[str]) -> tuple[float, float]:
    """CPU seconds and peak memory in MB of one run."""
    command = [sys.executable, "-m", "hiero.cli.main", "lm", "estimate", "-q", *arguments]
    sink = os.open(os.devnull, os.O_WRONLY)
    child = os.posix_spawn(sys.executable, command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, sink, 1)])
    _, status, usage = os.wait4(child, 0)
    os.close(sink)
    if status:
        sys.exit(f"{' '.join(command)} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def read(path: Path) -> Model:
    model: Model = {}
    for line in read_lines(path):
        prob, *rest = line.split(b"\t")
        if rest:
            model[rest[0]] = (float(prob), float(rest[1]) if len(rest) > 1 else 0.0)
    return model


def compare(expected: Model, found: Model) -> float:
    assert expected.keys() == found.keys(), f"{len(expected.keys() ^ found.keys())} n-grams differ"
    return max(
        abs(gold - ours)
        for ngram, numbers in expected.items()
        for gold, ours in zip(numbers, found[ngram], strict=True)
    )


if __name__ == "__main__":
    sys.exit(main())
