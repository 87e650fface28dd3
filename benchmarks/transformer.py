"""A small Transformer and ``hiero run`` with tuning on the same bitext: BLEU of devtest against CPU minutes.

    python -m benchmarks.transformer train OUT --data DIR [--minutes 120]    (torch and sacrebleu; one thread)
    python -m benchmarks.transformer hiero OUT --data DIR                    (hiero)
    python -m benchmarks.transformer plot OUT.svg NAME=OUT/curve.jsonl ...
    python -m benchmarks.transformer check

DIR has train.src.gz, train.trg.gz and likewise dev and devtest, tokenized. Minutes are those of the CPU that
it takes to make a system: for the network, byte pair encoding, training and translating dev, which chooses
the point; for hiero, alignment, language model, index and tuning on dev, of which the last iteration counts.
Neither includes the translation of devtest, nor, for hiero, the compilation of kernels (``hiero warm-up``).

``train`` is resumed by the same command after it was killed at any moment: OUT/state.pt has parameters, the
state of the optimiser, the place in the epoch and the CPU seconds so far, and the network is then the one of
an undisturbed run. At about equal distances on a logarithmic scale, the parameters and the mean of the last
five snapshots of them are evaluated on dev, and the better ones translate devtest. ``check`` learns a few
sentences by heart, and tests that beam search repeats them.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from benchmarks.bpe import Encoder, decode, learn_merges

SNAPSHOTS = 5  # that are averaged
STEP = 1.35  # factor from one evaluation to the next, in minutes
SAVE_SECONDS = 120.0  # of CPU between two states

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of training; those of the network are as in ``transformer_model.Shape``."""

    merges: int = 6000
    layers: int = 4
    width: int = 128
    inner: int = 256
    heads: int = 4
    dropout: float = 0.3
    smoothing: float = 0.1
    rate: float = 0.003  # the largest, after the warm-up
    warmup: int = 1000
    tokens: int = 2048  # of a batch
    snapshot: int = 100  # updates from one snapshot to the next
    beam: int = 5
    alpha: float = 1.0  # of the penalty of length
    longest: int = 100  # units of a side of a pair to learn from
    seed: int = 1


# ---- data


def read(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as stream:
        return [line.rstrip("\n") for line in stream]


def read_set(data: Path, name: str) -> tuple[list[str], list[str]]:
    """Source and target of a set."""
    paths = [data / f"{name}.{side}.gz" for side in ("src", "trg")]
    if missing := [path for path in paths if not path.exists()]:
        sys.exit(f"{missing[0]}: found no such file, expected a side of a bitext")
    source, target = map(read, paths)
    if len(source) != len(target):
        sys.exit(f"{paths[1]}: found {len(target)} lines, expected {len(source)}, as in {paths[0]}")
    return source, target


class Units:
    """The units of both sides, and their ids."""

    def __init__(self, merges: Sequence[tuple[str, str]], train: Sequence[Sequence[str]]) -> None:
        from benchmarks.transformer_model import SPECIAL

        self.encoder = Encoder(merges)
        seen = {unit for side in train for line in side for unit in self.encoder.encode(line)}
        self.encoder.seen = seen  # as are all units of the training text
        self.units = sorted(seen)
        self.id = {unit: k + SPECIAL for k, unit in enumerate(self.units)}
        self.number = len(self.units) + SPECIAL
        self._special = SPECIAL

    def ids(self, line: str) -> list[int]:
        from benchmarks.transformer_model import END, UNKNOWN

        return [*(self.id.get(unit, UNKNOWN) for unit in self.encoder.encode(line)), END]

    def text(self, ids: Sequence[int]) -> str:
        return decode(self.units[k - self._special] for k in ids if k >= self._special)


# ---- training


class Training:
    """The state of training in a directory."""

    def __init__(
        self, out: Path, data: Mapping[str, tuple[list[str], list[str]]], settings: Settings
    ) -> None:
        import torch

        from benchmarks.transformer_model import BEGIN, Shape, Transformer

        torch.set_num_threads(1)
        self.out, self.data, self.settings = out, data, settings
        self.units = Units(self._merges(), data["train"])
        pairs = [
            (self.units.ids(src), [BEGIN, *self.units.ids(tgt)])
            for src, tgt in zip(*data["train"], strict=True)
        ]
        self.pairs = [
            (src, tgt)
            for src, tgt in pairs
            if len(src) > 1 and len(tgt) > 2 and max(len(src), len(tgt)) < settings.longest
        ]
        names = {field.name for field in fields(Shape)}
        chosen = {name: value for name, value in asdict(settings).items() if name in names}
        torch.manual_seed(settings.seed)
        self.network = Transformer(Shape(units=self.units.number, **chosen))
        self.optimizer = torch.optim.Adam(self.network.parameters(), betas=(0.9, 0.98), eps=1e-9)
        self.updates, self.epoch, self.batch = 0, 0, 0
        self.snapshots: list[dict[str, Any]] = []
        self.curve: list[Row] = []
        self.loss = 0.0  # a moving mean
        self._spent = 0.0  # CPU seconds, but for those of ``_since``
        self._since = 0.0
        self._uncounted = 0.0
        self.resume()

    # ---- time

    @property
    def seconds(self) -> float:
        """CPU seconds so far, in all processes, but for work that is done again after a kill."""
        return self._spent + time.process_time() - self._since - self._uncounted

    def uncounted(self, work: Callable[[], Any]) -> Any:
        """The result of work that is not part of making the system."""
        begin = time.process_time()
        result = work()
        self._uncounted += time.process_time() - begin
        return result

    # ---- files

    def _merges(self) -> list[tuple[str, str]]:
        path, number = self.out / "merges.json", self.settings.merges
        if not path.exists():
            source, target = self.data["train"]
            learnt = {"number": number, "merges": learn_merges([*source, *target], number)}
            replace(path, json.dumps(learnt).encode())
        found = json.loads(path.read_bytes())
        if found["number"] != number:
            sys.exit(f"{path}: found {found['number']} merges, expected {number} (use another OUT)")
        return [(one, other) for one, other in found["merges"]]

    def resume(self) -> None:
        import torch

        path = self.out / "state.pt"
        if not path.exists():
            return
        state = torch.load(path, weights_only=True)
        if state["settings"] != asdict(self.settings):
            sys.exit(f"{path}: found other settings, expected those of this command: {state['settings']}")
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        self.updates, self.epoch, self.batch = state["updates"], state["epoch"], state["batch"]
        self.snapshots, self.curve, self.loss = state["snapshots"], state["curve"], state["loss"]
        self._spent, self._since, self._uncounted = state["seconds"], time.process_time(), 0.0
        self._write_curve()  # which a kill may have prevented

    def save(self) -> None:
        import io

        import torch

        state = {
            "settings": asdict(self.settings),
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
            "updates": self.updates,
            "epoch": self.epoch,
            "batch": self.batch,
            "snapshots": self.snapshots,
            "curve": self.curve,
            "loss": self.loss,
            "seconds": self.seconds,
        }
        buffer = io.BytesIO()
        torch.save(state, buffer)
        replace(self.out / "state.pt", buffer.getvalue())
        self._write_curve()

    def _write_curve(self) -> None:
        replace(self.out / "curve.jsonl", "".join(json.dumps(row) + "\n" for row in self.curve).encode())

    # ---- work

    def run(self, minutes: float, say: Callable[[str], None]) -> None:
        """Train until so many minutes of CPU are spent, and evaluate along the way."""
        from benchmarks.transformer_model import batches

        due = self.curve[-1]["due"] * STEP if self.curve else 1.0
        due = min(due, minutes)
        saved = self.seconds
        while self.seconds < 60 * minutes:
            order = batches(self.pairs, self.settings.tokens, self.settings.seed + self.epoch)
            while self.batch < len(order):
                self.update(order[self.batch])
                self.batch += 1
                if self.seconds >= 60 * due:
                    say(self.evaluate(due))
                    if due >= minutes:
                        self.save()
                        return
                    due = min(due * STEP, minutes)
                    saved = -SAVE_SECONDS
                if self.seconds - saved >= SAVE_SECONDS:
                    self.save()
                    saved = self.seconds
            self.epoch, self.batch = self.epoch + 1, 0

    def update(self, batch: Sequence[int]) -> None:
        """A step of Adam on the mean loss of a batch."""
        import torch

        from benchmarks.transformer_model import loss_of

        self.network.train()
        self.updates += 1
        at, warmup = self.updates, self.settings.warmup
        rate = self.settings.rate * min(at / warmup, (warmup / at) ** 0.5)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        loss = loss_of(self.network, [self.pairs[k] for k in batch], self.settings.smoothing)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        value = float(loss.detach())
        self.loss = value if at == 1 else 0.99 * self.loss + 0.01 * value
        if at % self.settings.snapshot == 0:
            now = {name: value.detach().clone() for name, value in self.network.state_dict().items()}
            self.snapshots = [*self.snapshots[-SNAPSHOTS + 1 :], now]

    def evaluate(self, due: float) -> str:
        """Add a point to the curve; returns a line about it."""
        from benchmarks.transformer_model import averaged

        own = {name: value.clone() for name, value in self.network.state_dict().items()}
        dev = {"last": self.score("dev")[0]}
        if len(self.snapshots) == SNAPSHOTS:
            mean = averaged(self.snapshots)
            self.network.load_state_dict(mean)
            dev["mean"] = self.score("dev")[0]
            if dev["last"] > dev["mean"]:
                self.network.load_state_dict(own)
        minutes = self.seconds / 60
        begin = time.process_time()
        bleu, output = self.uncounted(lambda: self.score("devtest"))
        row = {
            "minutes": minutes, "due": due, "bleu": bleu, "dev": max(dev.values()), "dev_of": dev,
            "updates": self.updates, "epoch": self.epoch, "loss": self.loss,
            "devtest_seconds": time.process_time() - begin,
        }  # fmt: skip
        if row["dev"] >= max([one["dev"] for one in self.curve], default=0.0):
            text = "".join(f"{line}\n" for line in output).encode()
            replace(self.out / "devtest.output", text)
        self.curve.append(row)
        self.network.load_state_dict(own)
        return (
            f"{minutes:.1f} minutes, epoch {self.epoch + 1}, {self.updates} updates, loss {self.loss:.3f}: "
            f"dev {', '.join(f'{name} {value:.2f}' for name, value in dev.items())}; devtest {bleu:.2f}"
        )

    def score(self, name: str) -> tuple[float, list[str]]:
        """BLEU of a set, on tokens as they are, and its translation."""
        source, target = self.data[name]
        output = self.translate(source)
        return bleu_of(output, target), output

    def translate(self, lines: Sequence[str]) -> list[str]:
        from benchmarks.transformer_model import translate

        ids = [self.units.ids(line) for line in lines]
        found = translate(self.network, ids, beam=self.settings.beam, alpha=self.settings.alpha)
        return [self.units.text(one) for one in found]


def replace(path: Path, content: bytes) -> None:
    """Replace a file as a whole, also if the machine stops."""
    part = path.with_name(f"{path.name}.part")
    with open(part, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(part, path)


def bleu_of(output: Sequence[str], target: Sequence[str]) -> float:
    import sacrebleu

    return float(sacrebleu.corpus_bleu(output, [target], tokenize="none", force=True).score)


# ---- commands


def train(args: argparse.Namespace) -> int:
    data = {name: read_set(args.data, name) for name in ("train", "dev", "devtest")}
    args.out.mkdir(parents=True, exist_ok=True)
    settings = Settings(**{field.name: getattr(args, field.name) for field in fields(Settings)})
    training = Training(args.out, data, settings)
    size = sum(parameter.numel() for parameter in training.network.parameters())
    print(f"{training.units.number} units, {size:,} parameters, {len(training.pairs):,} pairs", flush=True)
    training.run(args.minutes, lambda line: print(line, flush=True))
    return 0


CHECKED = 40


def check(args: argparse.Namespace) -> int:
    """Learn the reversal of random words by heart."""
    import tempfile

    draw = random.Random(1)
    source = [" ".join(draw.choices("abcdefghijkl", k=draw.randint(2, 9))) for _ in range(CHECKED)]
    target = [" ".join(reversed(line.split())) for line in source]
    sets = dict.fromkeys(("train", "dev", "devtest"), (source, target))
    settings = Settings(layers=2, width=64, inner=128, dropout=0.0, merges=0, warmup=50, tokens=512)
    with tempfile.TemporaryDirectory() as folder:
        training = Training(Path(folder), sets, settings)
        for _ in range(400):
            training.update(range(CHECKED))
        found = bleu_of(training.translate(source), target)
    print(f"{CHECKED} sentences learnt by heart: loss {training.loss:.3f}, BLEU {found:.1f}")
    return int(found < 99.0)


# ---- hiero


def hiero(args: argparse.Namespace) -> int:
    """Run hiero with tuning, and translate devtest with the weights after each iteration."""
    from benchmarks.papers.experiment import CONFIGS, Experiment

    experiment = Experiment(out=args.out, data=str(args.data), threads=args.threads, quiet=args.quiet)
    args.out.mkdir(parents=True, exist_ok=True)
    evaluation = {"eval": {"metrics": ["bleu"], "tokenize": "none"}}
    by_hand = CONFIGS / "weights.dense"
    base, sets = made(experiment, args, by_hand)
    models = experiment.models()
    tune = {"algorithm": args.algorithm, "on": "dev", "held_out": None}
    tune |= {"epochs": args.epochs} if args.epochs else {}
    features = {"features": {"templates": args.templates.split(",")}} if args.templates else {}
    content = {"seed": args.seed, **models, **features}
    tuned = experiment.run("tuned", content | {"data": {"dev": sets["dev"]}, "tune": tune})
    minutes = sum(map(seconds, base.stages.values())) / 60
    log = args.out / "tuned.run" / "tune" / "log.jsonl"
    epochs = [json.loads(line) for line in log.read_text().splitlines()]
    start = max(seconds(tuned.stages["tune"]) - sum(row["cpu_s"] for row in epochs), 0.0) / 60
    curve: list[Row] = []
    data = {"data": {"devtest": sets["devtest"]}}
    for epoch in range(len(epochs) + 1):
        weights = by_hand
        if epoch:
            weights = log.with_name(f"weights.{epoch:02d}.gz").resolve()
            minutes += epochs[epoch - 1]["cpu_s"] / 60 + (start if epoch == 1 else 0.0)
        scored = experiment.run(
            f"epoch{epoch:02d}", content | data | evaluation | {"weights": {"path": str(weights)}}
        )
        name = next(name for name in scored.stages if name.startswith("eval:"))
        bleu = next(value for key, value in scored.stages[name]["figures"].items() if "bleu" in key.lower())
        decoding = next(stage for name, stage in scored.stages.items() if name.startswith("decode"))
        what = f"{args.algorithm}, iteration {epoch}" if epoch else "weights set by hand"
        row = {"minutes": minutes, "bleu": bleu, "what": what, "devtest_seconds": seconds(decoding)}
        curve.append(row | ({} if epoch else {"by_hand": True}))
        replace(args.out / "curve.jsonl", "".join(json.dumps(row) + "\n" for row in curve).encode())
        print(f"{minutes:.1f} minutes, {what}: devtest {bleu:.2f}", flush=True)
    return 0


def made(experiment: Any, args: argparse.Namespace, weights: Path) -> tuple[Any, dict[str, Any]]:
    """Alignment, language model and index, all of them made here; dev and devtest, perhaps split."""
    sets = {name: experiment.part(name) for name in ("train", "dev", "devtest")}
    content = {
        "seed": 1,
        "data": {"train": sets["train"]},
        "lm": [{"estimate": "train", "order": 5, "discount_fallback": True}],
        "grammar": [{"index": "train"}],
    }
    content |= {"align": {"null": args.null}} if args.null else {}
    if not args.split_compounds:
        return experiment.run("base", content), sets
    more = {"prep": {"tokenize": False, "split_compounds": "best"}, "data": sets}
    more["weights"] = {"path": str(weights)}  # sets need some; nothing is decoded here
    only = ("prep", "split", "align", "lm", "index")
    base = experiment.run("base", content | more, only)
    split = args.out.resolve() / "base.run" / "split"
    return base, {name: part | {"source": str(split / f"{name}.source")} for name, part in sets.items()}


def seconds(stage: Mapping[str, Any]) -> float:
    """CPU seconds of a stage, without compilation."""
    return float(stage["cpu_seconds"]) - float(stage["compile_seconds"])


# ---- the picture


def plot(args: argparse.Namespace) -> int:
    from benchmarks.papers.lineplot import svg
    from hiero.core.charts import Line

    lines = []
    for spec in args.curves:
        name, equals, path = spec.partition("=")
        if not equals or not Path(path).is_file():
            sys.exit(f"found {spec!r}, expected NAME=FILE, a curve made by train or hiero")
        rows = [json.loads(line) for line in Path(path).read_text().splitlines()]
        rows = [row for row in rows if not row.get("by_hand")]  # nothing was learnt for them
        lines.append(Line(name, tuple(chosen(rows))))
    replace(args.picture, svg(lines, "minutes of CPU", "BLEU").encode())
    return 0


def chosen(rows: Sequence[Row]) -> list[tuple[float, float]]:
    """Minutes and BLEU of devtest of what a user would have then: the best on dev so far, or the last."""
    found: list[tuple[float, float]] = []
    best = None
    for row in rows:
        if best is None or "dev" not in row or row["dev"] >= best["dev"]:
            best = row
        found.append((row["minutes"], best["bleu"]))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, run in (("train", train), ("hiero", hiero)):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        command.add_argument("out", type=Path, metavar="OUT")
        command.add_argument("--data", type=Path, required=True, metavar="DIR")
        if name == "train":
            command.add_argument("--minutes", type=float, default=120.0, help="of CPU (default 120)")
            for field in fields(Settings):
                kind = type(field.default)
                command.add_argument(f"--{field.name}", type=kind, default=field.default)
        else:
            command.add_argument("--algorithm", default="kbmira")
            command.add_argument("--epochs", type=int)
            command.add_argument("--templates", help="of sparse features, with commas")
            command.add_argument("--null", type=float, help="of the alignment")
            text = "into words of the training data, on the source side"
            command.add_argument("--split-compounds", action="store_true", help=text)
            command.add_argument("--seed", type=int, default=1)
            command.add_argument("-j", "--threads", type=int, default=1)
            command.add_argument("-q", "--quiet", action="store_true")
    command = commands.add_parser("plot")
    command.set_defaults(run=plot)
    command.add_argument("picture", type=Path, metavar="OUT.svg")
    command.add_argument("curves", nargs="+", metavar="NAME=FILE")
    commands.add_parser("check").set_defaults(run=check)
    args = parser.parse_args(arguments)
    if args.command in ("train", "check"):
        for package in ("torch", "sacrebleu"):
            if importlib.util.find_spec(package) is None:
                sys.exit(
                    f"{package} is not installed (pip install torch sacrebleu, in an environment of its own)"
                )
    result: int = args.run(args)
    return result


if __name__ == "__main__":
    sys.exit(main())
