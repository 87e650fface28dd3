"""Rules of choice among translations, and oracles: ``python -m benchmarks.consensus OUT --data DIR``.

A model is tuned on dev, from equal weights, in ``--replicas`` runs of different seeds; or ``--runs`` names
runs of ``hiero run`` that are done, with the same sets. Its forests are searched for

- the translations that the rules of ``hiero decode --mbr`` choose: on dev by each factor of scores of
  ``--alphas``, on devtest by the one with the best BLEU on dev. Precision and ratio of linear BLEU are those
  of the best translations of dev;
- the oracles of lists and of the forest, on devtest, with the first run, at each of ``--pop-limits``.

    OUT/model.run     the first replica, with alignment, language model and index; OUT/model.2.run, ...
    OUT/*.jsonl       translations of a set, named by a digest of all settings
    OUT/table.md      both tables; --table only makes them

It can be killed and restarted at any time.

    python -m benchmarks.consensus runs --data ../shared/data/multi30k-de-en -j 2
    python -m benchmarks.consensus runs --data ../shared/data/europarl-de-en --pairs 25000
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.aligners import TUNE, first_pairs
from benchmarks.papers.experiment import (
    Experiment,
    Settings,
    add_arguments,
    compared,
    lines,
    numbers,
    replica_names,
    some_of,
)
from hiero.config.config import Config, read_config
from hiero.config.model import make_model
from hiero.core.input import parse_input
from hiero.core.parallel import in_order
from hiero.core.progress import CommandProgress
from hiero.core.records import record
from hiero.core.text import read_lines
from hiero.decoder.config import ConsensusConfig
from hiero.decoder.consensus import RULES, choose
from hiero.decoder.forest import Forest
from hiero.evaluation.bleu import MAX_ORDER, sentence_bleu
from hiero.evaluation.compare import System, evaluate
from hiero.evaluation.config import EvalConfig
from hiero.jobs.oracle import FOREST, OracleSearch
from hiero.jobs.resumable_output import ResumableOutput, is_begun
from hiero.jobs.translate import file_state

BEST = "best"
Choice = tuple[str, ConsensusConfig]  # its name, and its settings


def main(arguments: Sequence[str] | None = None) -> int:
    args = parsed(arguments)
    experiment = Experiment.of(args)
    if not args.runs:
        if not args.table:
            for replica, suffix in enumerate(replica_names(args.replicas), 1):
                experiment.run(f"model{suffix}", settings_of(experiment, args, replica))
        args.runs = [experiment.out / f"model{suffix}.run" for suffix in replica_names(args.replicas)]
    experiment.write_table("\n".join([choice_table(experiment, args), oracle_table(experiment, args)]))
    return 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.consensus", description=(__doc__ or "").split("\n\n")[0]
    )
    add_arguments(parser)
    add = parser.add_argument
    add("--pairs", type=int, default=0, metavar="N", help="train on the first N pairs (default: all)")
    add("--runs", type=Path, nargs="+", metavar="RUNDIR", help="replicas of a tuned model")
    add("--rules", type=some_of(RULES), default=list(RULES), metavar="A,B,...", help="default: all")
    add(
        "--alphas",
        type=numbers(float),
        default=[0.5, 1.0, 2.0, 4.0],
        metavar="X,...",
        help="default 0.5,1,2,4",
    )
    add("--size", type=int, default=200, help="of the lists of kbest and consensus (default 200)")
    add(
        "--sizes",
        type=numbers(int),
        default=[1, 10, 100, 1000],
        metavar="N,...",
        help="default 1,10,100,1000",
    )
    add(
        "--pop-limits",
        type=numbers(int),
        default=[10, 50, 200, 1000],
        metavar="N,...",
        help="of the oracles (default 10,50,200,1000)",
    )
    add("--sentences", type=int, metavar="N", help="the first N of both sets (default: all)")
    add("--oracle-sentences", type=int, metavar="N", help="the first N for oracles (default: --sentences)")
    args = parser.parse_args(arguments)
    args.runs = args.runs and [run.resolve() for run in args.runs]  # the same work from any directory
    return args


def settings_of(experiment: Experiment, args: argparse.Namespace, seed: int) -> Settings:
    """The configuration of a replica of the model; all share the index and language model of the first."""
    first = experiment.out.resolve() / "model.run"
    data: Settings = {name: experiment.part(name) for name in ("dev", "devtest")}
    made: Settings = {
        "grammar": [{"index": str(first / "train.index")}],
        "lm": [{"path": str(first / "LanguageModel.lm")}],
    }
    if seed == 1:
        data["train"] = first_pairs(experiment, args.pairs)
        lm: Settings = {"estimate": "train", "order": args.order, "discount_fallback": True}
        made = {"grammar": [{"index": "train"}], "lm": [lm]}
    epochs = {"epochs": args.epochs} if args.epochs else {}
    return made | {
        "seed": seed,
        "data": data,
        "tune": TUNE | {"seed": seed} | epochs,
        "eval": {"metrics": ["bleu"], "tokenize": "none"},
    }


# ---- translations of a set


@dataclass(frozen=True)
class Work:
    """What is found in the forests of a set: choices, and oracles of lists of ``sizes`` and of forests."""

    experiment: Experiment
    run: Path
    name: str  # of the set
    sentences: int | None
    choices: Sequence[Choice] = ()
    sizes: Sequence[int] = ()
    pop_limit: int | None = None  # by default the model's

    def config(self) -> Config:
        config = read_config(self.run / "model.yaml")
        limit = config.search.pop_limit if self.pop_limit is None else self.pop_limit
        return dataclasses.replace(
            config,
            search=dataclasses.replace(config.search, pop_limit=limit, kbest=0),
            consensus=ConsensusConfig(),
        )

    def references(self) -> list[list[str]]:
        return [one[: self.sentences] for one in self.experiment.references(self.name)]

    def texts(self) -> dict[str, list[str]]:
        """The translations of the set by name: the best, those chosen, and oracles."""
        config = self.config()
        source = self.experiment.part(self.name)["source"]
        files = [str(self.run), source, *config.model_files.values()]
        choices = [(name, dataclasses.asdict(chosen)) for name, chosen in self.choices]
        made_with = [
            dataclasses.asdict(config),
            [[path, *file_state(path)] for path in files[1:]],
            [choices, list(self.sizes), self.sentences],
        ]
        key = json.dumps(made_with, sort_keys=True)
        digest = hashlib.sha256(key.encode()).hexdigest()[:12]
        path = self.experiment.out / f"{self.run.stem}.{self.name}.{digest}.jsonl"
        if not path.exists():
            self._make(path, key, config, source)
        rows = [json.loads(line) for line in read_lines(path)]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def _make(self, path: Path, key: str, config: Config, source: str) -> None:
        given = list(islice(read_lines(source), self.sentences))
        columns = zip(*self.references(), strict=True)
        oracle = OracleSearch([[one.split() for one in row] for row in columns], sentence_bleu("lin"))
        model = make_model(config)
        model.warm_up()

        def of_line(number: int) -> dict[str, str]:
            forest = model.parse(parse_input(given[number].decode(), source, number + 1))
            return self._of_forest(forest, number, oracle)

        output = ResumableOutput(path, key, resume=is_begun(path, key))
        output.skip(iter(given))
        left = range(output.done, len(given))
        with CommandProgress(path.stem, quiet=self.experiment.quiet) as progress:
            progress.begin(len(given))
            progress.advance(output.done)
            try:
                with closing(in_order(of_line, left, self.experiment.threads)) as results:
                    for number, found in zip(left, results, strict=True):
                        output.write(json.dumps(found).encode() + b"\n", given[number])
                        progress.advance(1)
            except BaseException:
                output.close()
                raise
        output.finish()

    def _of_forest(self, forest: Forest, number: int, oracle: OracleSearch) -> dict[str, str]:
        found = {BEST: forest.viterbi().text if forest else ""}
        for name, chosen in self.choices:
            found[name] = next((one.derivation.text for one in choose(forest, chosen)), "")
        if self.sizes:
            listed = [one.text for one in forest.kbest(max(self.sizes))] if forest else []
            oracles = oracle.of_list(number, listed, self.sizes)
            found |= {str(size): one.text for size, one in zip(self.sizes, oracles, strict=True)}
            best = oracle.of_forest(number, forest, listed, beam=20.0) if forest else oracles[-1]
            found[FOREST] = best.text
        return found


# ---- tables


def choice_table(experiment: Experiment, args: argparse.Namespace) -> str:
    """BLEU of the rules on dev by alpha, and on devtest with the one chosen."""
    dev, devtest = (
        [Work(experiment, run, name, args.sentences) for run in args.runs] for name in ("dev", "devtest")
    )
    precision, ratio = slope(lines(args.runs[0] / "dev.output"), dev[0].references())

    def choice(rule: str, alpha: float) -> Choice:
        given = {"mbr": rule, "alpha": alpha, "size": args.size, "precision": precision, "ratio": ratio}
        return f"{rule} {alpha:g}", record(ConsensusConfig, given, rule)

    choices = [choice(rule, alpha) for rule in args.rules for alpha in args.alphas]
    texts = [dataclasses.replace(one, choices=choices).texts() for one in dev]
    scores = mean_bleu(texts, dev[0].references())
    best = {
        rule: max((one for one in choices if one[1].mbr == rule), key=lambda one: scores[one[0]])
        for rule in args.rules
    }
    found = [dataclasses.replace(one, choices=list(best.values())).texts() for one in devtest]
    names = [BEST, *(name for name, _ in best.values())]
    systems = [System(name, [text[name] for text in found]) for name in names]
    config = EvalConfig(metrics=["bleu"], tokenize="none", trials=args.trials)
    report = evaluate(systems, devtest[0].references(), config)
    alphas = ", ".join(f"{alpha:g}" for alpha in args.alphas)
    rows = [
        f"| choice | BLEU of dev by alpha ({alphas}) | alpha | devtest | over replicas | from the best | p |",
        "|---|---|---:|---:|---|---:|---:|",
    ]
    for rule, name in zip([BEST, *args.rules], names, strict=True):
        result = report.result("bleu", name)
        by_alpha = [name] if rule == BEST else [choice(rule, alpha)[0] for alpha in args.alphas]
        cells = [
            "the model's best" if rule == BEST else rule,
            ", ".join(f"{scores[one]:.2f}" for one in by_alpha),
            "" if rule == BEST else f"{best[rule][1].alpha:g}",
            f"{result.spread.mean:.2f}",
            ", ".join(f"{score:.2f}" for score in result.spread.scores),
            compared(result),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    note = f"Linear BLEU (forest): precision {precision}, ratio {ratio}; lists of {args.size} translations."
    return "\n".join([*rows, "", note, ""])


def oracle_table(experiment: Experiment, args: argparse.Namespace) -> str:
    """BLEU of the oracles of the first run by size of lists, and of forests, a row for each pop limit."""
    sizes, sentences = sorted(set(args.sizes)), args.oracle_sentences or args.sentences
    columns = [*map(str, sizes), FOREST]
    rows = [f"| pop limit | {' | '.join(columns)} |", f"|---:|{'---:|' * len(columns)}"]
    for limit in args.pop_limits:
        work = Work(experiment, args.runs[0], "devtest", sentences, sizes=sizes, pop_limit=limit)
        scores = mean_bleu([work.texts()], work.references())
        rows.append(f"| {limit:,} | {' | '.join(f'{scores[column]:.2f}' for column in columns)} |")
    note = f"BLEU of oracles: {len(work.references()[0]):,} sentences."
    return "\n".join([*rows, "", note, ""])


def mean_bleu(replicas: Sequence[dict[str, list[str]]], references: Sequence[list[str]]) -> dict[str, float]:
    """BLEU of each kind of translations, over replicas."""
    config = EvalConfig(metrics=["bleu"], tokenize="none", trials=0, test="none")
    systems = [System(name, [texts[name] for texts in replicas]) for name in replicas[0]]
    report = evaluate(systems, references, config)
    return {name: report.result("bleu", name).spread.mean for name in replicas[0]}


def slope(texts: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[float, float]:
    """The precision of words, and the mean ratio of the precision of n-grams to that of shorter ones.

    Orders without a match are left out; where there are no ratios, the defaults of the settings count.
    """
    rows = [[one.split() for one in row] for row in zip(*references, strict=True)]
    search = OracleSearch(rows, sentence_bleu("lin"))
    each = [search.of_list(number, [texts[number]], [1])[0].statistics for number in range(len(rows))]
    match, total = np.sum(each, axis=0)[2:].reshape(2, MAX_ORDER)
    found = match[match > 0] / total[match > 0]
    if len(found) < 2:
        return ConsensusConfig().precision, ConsensusConfig().ratio
    return round(float(found[0]), 3), round(min(1.0, float(np.mean(found[1:] / found[:-1]))), 3)


if __name__ == "__main__":
    sys.exit(main())
