"""Translation quality while a model is adapted to post-edits, and the time that a sentence takes.

    python -m benchmarks.adapt --data ../shared/data/bible-de-en

The text is one German and one English Bible: a model is made of its end (6,000 verses of the New Testament;
word alignment, index, trigram language model), its weights are learnt from 200 verses of Exodus, and the
first 1,000 verses of Genesis are translated in order. After each, the model learns from the reference as if
it were a post-edit. Verses occur four times in the set, with four English translations; all parts are taken
from the first of them, so no verse is in two parts.

Four systems translate: without adapting; with the index growing; with the learner; and with both. BLEU is
reported for each hundred sentences, which were translated before their references were seen, and the CPU
seconds of a sentence for translation and for adaptation.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from pathlib import Path
from typing import Any

import hiero
from hiero.core.errors import HieroError

PARTS = {"train": (21_000, 27_000), "dev": (2_000, 2_200), "test": (0, 1_000)}  # lines of the set
SYSTEMS: dict[str, dict[str, Any]] = {
    "not adapted": {},
    "index": {"grow": True, "learner": "none"},
    "learner": {"grow": False, "learner": "mira"},
    "both": {"grow": True, "learner": "mira"},
}
STEP = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--data", type=Path, required=True, metavar="DIR", help="with train.src.gz and train.trg.gz")
    add("--folder", type=Path, default=Path("adapt.benchmark"), help="for the model; default: %(default)s")
    add("--sentences", type=int, default=1_000, help="of Genesis, at most 1000; default: %(default)s")
    add("--c", type=float, default=0.001, help="MIRA's largest step; default: %(default)s")
    add("--pop-limit", type=int, default=50, help="default: %(default)s")
    args = parser.parse_args()
    if not (args.data / "train.src.gz").is_file():
        raise SystemExit(f"{args.data}: no train.src.gz")
    try:
        report(args)
    except HieroError as error:
        raise SystemExit(f"benchmarks.adapt: {error}") from None


def report(args: argparse.Namespace) -> None:
    texts = {
        name: tuple(lines_of(args.data / f"train.{side}.gz", *part) for side in ("src", "trg"))
        for name, part in PARTS.items()
    }
    args.folder.mkdir(parents=True, exist_ok=True)
    weights = prepare(args.folder, texts)
    src, ref = (side[: args.sentences] for side in texts["test"])
    table, seconds = {}, {}
    for name, how in SYSTEMS.items():
        model = hiero.load(
            grammar=args.folder / "index", lm=args.folder / "lm", weights=weights, pop_limit=args.pop_limit
        )
        model.warm_up()
        table[name], seconds[name] = run(model, args, how, src, ref)
        print(f"{name}: {table[name][-1]:.2f}", flush=True)
    print(f"\n{'sentences':12}" + "".join(f"{name:>14}" for name in SYSTEMS))
    for k, row in enumerate(zip(*table.values(), strict=True)):
        last = min(STEP * (k + 1), len(src))
        label = "all" if k == len(table["both"]) - 1 else f"{STEP * k + 1}-{last}"
        print(f"{label:12}" + "".join(f"{value:14.2f}" for value in row))
    for k, what in enumerate(("translate", "adapt")):
        print(f"{f's, {what}':12}" + "".join(f"{seconds[name][k]:14.3f}" for name in SYSTEMS))
    result = {"bleu": table, "seconds": seconds, "sentences": len(src), "c": args.c}
    (args.folder / "result.json").write_text(json.dumps(result, indent=1) + "\n")


def lines_of(path: Path, first: int, last: int) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [line.rstrip("\n") for k, line in enumerate(stream) if first <= k < last]


def prepare(folder: Path, texts: dict[str, tuple[list[str], ...]]) -> Path:
    """Make the model, unless it is there; return the file of its weights."""
    weights = folder / "tuned" / "weights.gz"
    if weights.exists():
        return weights
    for name, sides in texts.items():
        for ending, side in zip(("src", "trg"), sides, strict=True):
            (folder / f"{name}.{ending}").write_text("".join(f"{line}\n" for line in side))
    src, tgt = texts["train"]
    aligner = hiero.align(src, tgt)
    aligner.save(folder / "aligner")
    hiero.index(src, tgt, aligner, folder / "index")
    hiero.estimate_lm(tgt, folder / "lm", order=3, discount_fallback=True)
    dev = {"source": str(folder / "dev.src"), "references": str(folder / "dev.trg")}
    config = {
        "seed": 1,
        "data": {"dev": dev},
        "grammar": [{"path": str(folder / "index")}],
        "lm": [{"path": str(folder / "lm")}],
        "search": {"pop_limit": 50},
    }
    hiero.tune(config, folder / "tuned", algorithm="kbmira", epochs=5, kbest=100)
    return weights


def run(
    model: hiero.Model, args: argparse.Namespace, how: dict[str, Any], src: list[str], ref: list[str]
) -> tuple[list[float], tuple[float, float]]:
    """BLEU of each hundred and of all, and CPU seconds of a sentence: to translate it, and to adapt."""
    adapter = None
    if how:
        adapter = hiero.Adapter(model, args.folder / "aligner", c=args.c, **how)
    output, spent = [], [0.0, 0.0]
    for source, reference in zip(src, ref, strict=True):
        started = time.process_time()
        output.append((model if adapter is None else adapter).translate(source).text)
        translated = time.process_time()
        if adapter is not None:
            adapter.adapt(source, reference)
        spent[0] += translated - started
        spent[1] += time.process_time() - translated
    parts = [slice(at, at + STEP) for at in range(0, len(src), STEP)]
    bleu = [
        hiero.evaluate(output[part], ref[part], tokenize="none", metrics=["bleu"], trials=0, test="none")
        .result("bleu", "system")
        .score
        for part in (*parts, slice(None))
    ]
    return bleu, (spent[0] / len(src), spent[1] / len(src))


if __name__ == "__main__":
    main()
