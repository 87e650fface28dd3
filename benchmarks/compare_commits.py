"""Compare the outputs of two commits, byte for byte, through the command line alone.

    python -m benchmarks.compare_commits OLD NEW OUT [--data DIR] [--reference DIR] [--part NAME ...]

OLD and NEW are checkouts, or revisions of this repository, which are exported to OUT/checkouts. Both run the
same commands on the same inputs, in OUT/old/PART and OUT/new/PART (``--name`` gives another folder for NEW).
Then every file is compared:

* npy and npz by their arrays (name, type, shape, bytes); gz by what it decompresses to;
* JSON and JSON lines without the keys in DROPPED and those that end in one of MEASURED: times, memory,
  versions, the machine, messages, and sizes, times and inodes of files. Keys in RENAMED are intended renames;
* all other files, and standard output (NAME.out), as they are, but for the path of the output directory.

Exit codes are compared as well. Standard error (NAME.err) and ``--help`` are not: messages may change. The
exit code is 1 if anything differs or a command fails.

Inputs are made in OUT/input, from OLD's bundled model and bitext. A part is not made again if its marker
``done`` says that the same program ran the same commands on the same inputs. So the outputs of OLD serve
every NEW, and an interrupted comparison goes on with the part that was interrupted. ``--only old`` makes
outputs without comparing them.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

PROJECT = Path(__file__).resolve().parents[1]
SIDES = ("old", "new")

# ---- What is not compared

# Keys of JSON and YAML, at any depth.
DROPPED = {
    "time",  # log.jsonl: of an event
    "note",  # log.jsonl: a message, as on standard error
    "reason",  # log.jsonl: a message
    "cpu",  # reorder train --history
    "finished",  # manifest.json: time of day
    "versions",  # manifest.json, tune.json: of Python and packages
    "machine",  # manifest.json
    "files",  # manifest.json: size, time, inode and digest of files met
    "hiero",  # log.jsonl: version of hiero
}
# Ends of keys with times and memory: wall_seconds, decode_s, lm_search_cpu_s, learning_cpu, peak_mb.
MEASURED = ("_seconds", "_s", "_cpu", "_mb")
SETTINGS = {"cache_mb"}  # ends like one of these, and is compared
# Keys of OLD that have another name in NEW on purpose. Those that are measured need no entry.
RENAMED: dict[str, str] = {}
IGNORED_NAMES = {"done", "lock", "seconds.json"}
IGNORED_SUFFIXES = {".err", ".rules", ".index"}  # stored rules: in the order of threads, in packed form

# ---- Parts. A command runs in OUT/SIDE/PART; these are the inputs from there.

GRAMMARS = "../../input/grammars"
SETS = "../../input/sets"
CONFIGS = "../../input/configs"
DATA = "../../input/data"
REFERENCE = "../../input/reference"
MODEL = f"-g {GRAMMARS}/demo.grammar.gz -l {GRAMMARS}/demo.lm.arpa.gz"
WEIGHTED = f"{MODEL} -w {GRAMMARS}/demo.weights"
TRAIN = f"-s {GRAMMARS}/demo.train.de.gz -t {GRAMMARS}/demo.train.en.gz"
ALIGNED = f"{TRAIN} -a {GRAMMARS}/demo.train.align.gz"
SMALL = f"-s {SETS}/small.de -t {SETS}/small.en"
M30K = f"{DATA}/multi30k-de-en"
TEMPLATES = "rule_id,source_bigram,target_bigram,shape,lexical,insertion_pair"
EVERYTHING = f"{TEMPLATES},source_word_penalty,arity,span_size"
SYMMETRIZE = ("intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and", "none")


class Command(NamedTuple):
    """One command of hiero."""

    name: str  # of the files with its output
    arguments: str
    stdin: str | None = None


class Write(NamedTuple):
    """A file for the commands that follow."""

    name: str
    text: str


class SparseWeights(NamedTuple):
    """Weights for all features in a k-best list written before: checksums of their names as numbers."""

    name: str
    kbest: str


Step = Command | Write | SparseWeights


def demo() -> Iterator[Step]:
    """All stages of the demo, and again, when nothing is to be done."""
    yield Command("run", f"run {CONFIGS}/demo.yaml -o demo")
    yield Command("again", f"run {CONFIGS}/demo.yaml -o demo")
    yield Command("dry", f"run {CONFIGS}/demo.yaml -o other --dry-run")


EXPERIMENT = f"""
seed: 3
data:
  train: {{source: {SETS}/raw.de, target: {SETS}/raw.en}}
  dev: {{source: {SETS}/dev.de, target: {SETS}/dev.en}}
  devtest: {{source: {SETS}/held.de, references: [{SETS}/held.en, {SETS}/other.en]}}
prep: {{source_language: de, target_language: en, lowercase: true}}
align: {{model: hmm, symmetrize: grow-diag}}
lm:
  - {{estimate: train, order: 4, discount_fallback: true}}
grammar:
  - index: train
    write: per_sentence
features:
  templates: [shape, arity]
  transform: {{SampleCountF: drop, CountEF: count}}
bins:
  features: {{EgivenFCoherent: {{of: probability}}, MaxLexFgivenE: {{of: probability, bits: 2}}}}
  bits: 3
reorder: {{learner: dual, min_count: 2, passes: 10}}
tune: {{algorithm: pro, start: uniform, epochs: 2, kbest: 30, neighbours: monotone}}
grid: {{beta: [1, 100]}}
eval:
  metrics: [bleu, chrf++]
  tokenize: none
  trials: 200
  against: {{copy: {{devtest: {SETS}/other.en}}}}
"""


def experiment() -> Iterator[Step]:
    """A run with prep, HMM, reorder, bins, grid, curves and per-sentence grammars, which the demo lacks."""
    yield Write("experiment.yaml", EXPERIMENT)
    yield Command("run", "run experiment.yaml -o run")
    yield Command("only", "run experiment.yaml -o run --only eval")
    yield Command("model", "decode -c run/model.yaml -i run/grammars/dev.sgm")
    yield Command("kbest", "decode -c run/model.yaml -i run/grammars/devtest.sgm --kbest 10")


FEATURE = """
import hiero


@hiero.rule_feature(per_rule=True)
def longer(rule):
    yield "Longer", float(len(rule.tgt) > len(rule.src))


@hiero.rule_feature(per_rule=True)
def words(rule):
    for word in rule.tgt:
        yield f"Word:{word}", 0.5
"""


def decode() -> Iterator[Step]:
    """The bundled model: formats of output, forests, features, search settings, ways to name a model."""
    dev, few, odd = (f"-i {SETS}/{name}.de" for name in ("dev", "few", "odd"))
    yield Command("bundled", f"decode {dev} --stats bundled.json")
    yield Command("text", f"decode {WEIGHTED} {dev} -o text.txt.gz --stats text.json")
    yield Command("threads", f"decode {WEIGHTED} {dev} -j 2 --stats threads.json")
    yield Command("stdin", f"decode {WEIGHTED}", stdin=f"{SETS}/odd.de")
    yield Command("unique", f"decode {WEIGHTED} {dev} --kbest 100 --stats unique.json")
    yield Command("all", f"decode {WEIGHTED} {few} --kbest 100 --no-unique --stats all.json")
    yield Command("all.moses", f"decode {WEIGHTED} {few} --kbest 20 --no-unique --format moses")
    yield Command("moses", f"decode {WEIGHTED} {odd} --kbest 5 --format moses")
    yield Command("json", f"decode {WEIGHTED} {odd} --kbest 5 --format json")
    yield Command("json.best", f"decode {WEIGHTED} {few} --format json")
    yield Command("cdec", f"decode {WEIGHTED} {odd} --format cdec --cdec-names")
    for kind in ("json", "json.gz", "npz"):
        yield Command(f"forest.{kind}", f"decode {WEIGHTED} {few} --forest {kind} --forest-format {kind}")
    yield Command(
        "forest.exact",
        f"decode {WEIGHTED} -i {SETS}/short.de --forest exact --pop-limit 0 --stats exact.json",
    )
    yield Command("sparse", f"decode {WEIGHTED} {few} --features {EVERYTHING} --kbest 50 --stats sparse.json")
    yield SparseWeights("sparse.weights", "sparse.out")
    sparse = f"{MODEL} -w sparse.weights --features {EVERYTHING}"
    yield Command("weighted", f"decode {sparse} {dev} --kbest 20 --stats weighted.json")
    yield Command("weighted.cdec", f"decode {sparse} {few} --kbest 20 --cdec-names")
    yield Command("weighted.json", f"decode {sparse} {few} --kbest 5 --format json")
    yield Command("weighted.forest", f"decode {sparse} {few} --forest weighted --forest-format npz")
    for template in (*TEMPLATES.split(","), "source_word_penalty", "arity", "span_size"):
        yield Command(
            f"template.{template}", f"decode {MODEL} -w sparse.weights --features {template} {few} --kbest 5"
        )
    yield Write("own_features.py", FEATURE)
    own = "--features shape,own_features:longer,own_features:words"
    yield Command("own", f"decode {WEIGHTED} {own} {few} --kbest 10")
    settings = {
        "pops": "--pop-limit 10",
        "span": "--span-limit 4",
        "oov": "--pass-through oov",
        "none": "--pass-through none",
        "drop": "--oov drop --pass-through oov",
        "mark": "--oov mark",
        "glueless": "--no-glue --goal X",
    }
    for name, flags in settings.items():
        yield Command(name, f"decode {WEIGHTED} {odd} {flags} --kbest 3 --stats {name}.json")
    yield Command("two", f"decode {WEIGHTED} -l Second={SETS}/second.arpa {few} --kbest 10")
    yield Command("unweighted", f"decode {MODEL} {few} --kbest 10")
    yield Command(
        "modelless", f"decode -g {GRAMMARS}/demo.grammar.gz -w {GRAMMARS}/demo.weights {few} --kbest 10"
    )
    yield Command("config", f"decode -c {CONFIGS}/tune.yaml -w {GRAMMARS}/demo.weights {few}")


def reference() -> Iterator[Step]:
    """The reference sets: best translations, k-best lists, templates, leave-one-out grammars."""
    cdec = "rule_id,source_bigram,target_bigram,shape,lexical"
    for name, num_lists in (("m30k", 40), ("ep", 20)):
        folder = f"{REFERENCE}/{name}"
        yield Command(f"{name}.lm", f"lm compile {folder}/lm.arpa.gz {name}.lm")
        model = f"-l {name}.lm -w {REFERENCE}/weights"
        yield Command(f"{name}.best", f"decode {model} -i {folder}/input.sgm --stats {name}.json")
        part = f"-i {SETS}/{name}.{num_lists}.sgm"
        yield Command(f"{name}.kbest", f"decode {model} {part} --kbest 100 --stats {name}.kbest.json")
        yield Command(
            f"{name}.pops", f"decode {model} {part} --pop-limit 30 --format json --stats {name}.pops.json"
        )
    sparse = f"-w {REFERENCE}/m30k/weights.sparse.gz --features {cdec} -i {SETS}/m30k.30.sgm"
    yield Command("sparse", f"decode -l m30k.lm {sparse} --kbest 20 --stats sparse.json")
    yield Command("sparse.cdec", f"decode -l m30k.lm {sparse} --kbest 20 --cdec-names")
    yield Command(
        "loo", f"decode -l m30k.lm -w {REFERENCE}/weights -i {SETS}/loo.sgm --kbest 20 --stats loo.json"
    )


def extract() -> Iterator[Step]:
    """Indexes, and the rules in them."""
    yield Command("demo.index", f"index {ALIGNED} -o demo.index")
    yield Command("two.index", f"index {ALIGNED} -a {SETS}/diagonal.align.gz -o two.index")
    files = f"-s {M30K}/train.src.gz -t {M30K}/train.trg.gz -a {M30K}/train.align.gz"
    yield Command("m30k.index", f"index {files} -o m30k.index")
    yield Command("check", "index --check m30k.index")
    yield Command("all", "extract -x demo.index --all -o all.gz")
    yield Command(
        "all.few",
        "extract -x two.index --all -o all.few --min-count 2 --max-gaps 1 --max-span 8 --max-symbols 4",
    )
    dev = f"-i {SETS}/dev.de"
    yield Command("dev", f"extract -x demo.index {dev} -o dev")
    yield Command("dev.two", f"extract -x two.index {dev} -o dev.two --store store")
    yield Command("dev.found", f"extract -x two.index {dev} -o dev.found --store store")
    yield Command("few", f"extract -x demo.index {dev} -o few --samples 20 --min-count 2 --category Y -j 2")
    m30k = f"-i {SETS}/m30k.dev.de"
    yield Command("m30k", f"extract -x m30k.index {m30k} -o m30k")
    yield Command(
        "m30k.limits",
        f"extract -x m30k.index {m30k} -o m30k.limits --max-gaps 1 --max-symbols 3 --max-span 7",
    )
    train = f"-x m30k.index -i {SETS}/m30k.train.de --leave-one-out"
    yield Command("loo", f"extract {train} -o loo")
    yield Command("loo.links", f"extract {train} --leave-out-links -o loo.links --cache-mb 16")
    weights = f"-w {GRAMMARS}/demo.weights"
    yield Command(
        "decode",
        f"decode -g demo.index -l {GRAMMARS}/demo.lm.arpa.gz {weights} {dev} --kbest 5 --stats decode.json",
    )


def grammar() -> Iterator[Step]:
    """Grammars compiled, converted and described."""
    text = f"{GRAMMARS}/demo.grammar.gz"
    yield Command("compile", f"grammar compile {text} compiled")
    yield Command("compile.two", f"grammar compile {text} {SETS}/rules.cdec two")
    yield Command("convert", "grammar convert two -o two.gz")
    yield Command("convert.cdec", f"grammar convert {SETS}/rules.cdec")
    yield Command("joshua", f"grammar convert --format joshua {SETS}/rules.joshua")
    yield Command(
        "joshua.owner", f"grammar convert --format joshua --owner glue --sign 1 {SETS}/rules.joshua"
    )
    for scale in ("cdec", "moses", "keep"):
        yield Command(f"moses.{scale}", f"grammar convert --scale {scale} {SETS}/rules.moses")
    yield Command("moses.compile", f"grammar compile --format moses {SETS}/rules.moses moses")
    yield Command("stats", f"grammar stats {text}")
    yield Command("stats.compiled", f"grammar stats compiled {SETS}/rules.cdec")
    rest = f"-l {GRAMMARS}/demo.lm.arpa.gz -w {GRAMMARS}/demo.weights -i {SETS}/dev.de --kbest 5"
    yield Command("decode", f"decode -g compiled {rest} --stats decode.json")
    yield Command(
        "decode.two", f"decode -g compiled -g {SETS}/rules.cdec {rest} --features rule_id --stats two.json"
    )


def language() -> Iterator[Step]:
    """Language models estimated, compiled and queried."""
    english, large = f"{GRAMMARS}/demo.train.en.gz", f"{M30K}/train.trg.gz"
    settings = {
        "order3.arpa": f"--order 3 {english}",
        "order1.arpa": f"--order 1 --discount-fallback -j 2 {SETS}/small.en",
        "order6.arpa.gz": f"--order 6 --discount-fallback {SETS}/small.en",
        "pruned.arpa": f"--order 4 --prune 0 0 1 --discount-fallback {english}",
        "discounts.arpa": f"--order 3 --discount-fallback 0.4 0.8 1.2 {SETS}/few.en",
        "vocab.arpa": f"--order 3 --discount-fallback --vocab {SETS}/vocabulary {english}",
        "symbols.arpa": f"--order 3 --discount-fallback --skip-symbols {SETS}/symbols.en",
        "compiled": f"--order 4 --discount-fallback {english}",
        "large": f"--order 5 --discount-fallback --memory 16 --temp . {large}",
        "large.arpa.gz": f"--order 5 --prune 0 1 2 {large}",
    }
    for name, flags in settings.items():
        yield Command(f"estimate.{name}", f"lm estimate {flags} {name}")
    yield Command("estimate.stdin", "lm estimate --order 2 --discount-fallback - -", stdin=f"{SETS}/small.en")
    yield Command("compile", "lm compile order3.arpa order3")
    yield Command("compile.gz", "lm compile large.arpa.gz pruned")
    for name in ("order3.arpa", "order6.arpa.gz", "pruned", "vocab.arpa"):
        yield Command(f"query.{name}", f"lm query {name} {SETS}/odd.en")
    yield Command("query.null", f"lm query -n order3 {SETS}/held.en")
    yield Command("query.large", f"lm query -v sentence -v summary large {SETS}/held.en")


def align() -> Iterator[Step]:
    """Both models, all symmetrisations, settings, and scores."""
    for model in ("ibm2", "hmm"):
        for way in SYMMETRIZE:
            yield Command(f"{model}.{way}", f"align {SMALL} --model {model} --symmetrize {way}")
        files = f"-o {model}.gz --forward {model}.forward --reverse {model}.reverse"
        yield Command(f"{model}.all", f"align {TRAIN} --model {model} {files} -j 2")
    settings = {
        "flat": "--null 0.05 --smoothing 0 --iterations 3",
        "tension": "--tension 6 --tension-rounds 3",
        "apart": "--model hmm --no-hmm-agreement --hmm-iterations 2",
    }
    for name, flags in settings.items():
        yield Command(name, f"align {SMALL} {flags}")
    gold = f"{DATA}/europarl-de-en/gold100"
    yield Command("gold", f"align -s {gold}.src -t {gold}.trg -o gold.align")
    yield Command("score", f"align score gold.align {gold}.align")
    yield Command("score.demo", f"align score ibm2.gz {GRAMMARS}/demo.train.align.gz")


def prep() -> Iterator[Step]:
    """Text to words and back."""
    both = f"-s {SETS}/raw.de -t {SETS}/raw.en --src-lang de --tgt-lang en"
    yield Command("pairs", f"prep {both} --lowercase -o pairs.de pairs.en")
    limits = "--min-words 3 --max-words 8 --max-ratio 1.5 --normalize-punctuation -j 2"
    yield Command("limits", f"prep {both} {limits} -o limits.de.gz limits.en.gz")
    yield Command(
        "empty", f"prep -s {SETS}/odd.en -t {SETS}/odd.en --no-tokenize --keep-empty -o odd.1 odd.2"
    )
    yield Command("single", f"prep -i {SETS}/raw.en --lang en")
    yield Command("odd", f"prep -i {SETS}/odd.en --lang en --normalize-punctuation")
    yield Command("truecase", f"prep --learn-truecase -i {SETS}/raw.en --lang en -o truecase")
    yield Command("back", f"prep --detokenize -i {SETS}/held.en --lang en --truecase truecase")
    yield Command("lower", "prep --detokenize --no-recase --lang en", stdin=f"{SETS}/held.en")


def reorder() -> Iterator[Step]:
    """Examples of orientation, each learner, and decoding with what it learnt."""
    yield Command("examples", f"reorder extract {ALIGNED} -o examples --held-out held")
    word = "--orientation word --window 2 --edges --min-count 3 --max-length 5 --held-out-every 10"
    yield Command("word", f"reorder extract {ALIGNED} {word} -o word --held-out word.held")
    for learner in ("dual", "primal", "lexicalised"):
        passes = "" if learner == "lexicalised" else " --passes 10"
        held = "" if learner == "lexicalised" else f" --held-out held --history {learner}.json"
        flags = f"--learner {learner}{passes}"
        yield Command(learner, f"reorder train examples {flags}{held} -o {learner}")
        yield Command(f"word.{learner}", f"reorder train word {flags} -o word.{learner} --seed 2")
        weights = f"{SETS}/reordering.weights"
        rest = f"-w {weights} -i {SETS}/dev.de --kbest 10"
        yield Command(
            f"decode.{learner}", f"decode {MODEL} --reordering {learner} {rest} --stats {learner}.stats.json"
        )
    yield Command(
        "variance",
        "reorder train examples -o other --variance 1 --shrink 0.01 --rate 0.25 --trials 5 --passes 5",
    )
    yield Command("eval", "reorder eval dual held --against primal --against lexicalised --top 5")
    yield Command("eval.json", "reorder eval primal held --format json")
    yield Command("eval.word", "reorder eval word.lexicalised word.held --against word.dual")


NEIGHBOURS = "--bins features.bins --start zero --kbest 30"


def bins() -> Iterator[Step]:
    """Bins learnt, shown, decoded and tuned with, and drawn."""
    columns = "EgivenFCoherent=probability,MaxLexFgivenE=probability,CountEF=count,WordPenalty"
    learn = f"bins learn -g {GRAMMARS}/demo.grammar.gz -i {SETS}/dev.de"
    yield Command("learn", f"{learn} --features {columns} -o features.bins")
    yield Command(
        "given",
        f"{learn} --features MaxLexEgivenF,SampleCountF --bits 2 --overlap 1 --keep -o given.bins -j 2",
    )
    yield Command("config", f"bins learn -c {CONFIGS}/tune.yaml --features CountEF --bits 5 -o -")
    yield Command("index", f"index {ALIGNED} -o demo.index")
    loo = f"-g demo.index -i {SETS}/train.de --leave-one-out"
    yield Command("loo", f"bins learn {loo} --features EgivenFCoherent=probability -o loo.bins")
    yield Command("show", "bins show features.bins")
    yield Command(
        "tune", f"tune -c {CONFIGS}/tune.yaml {NEIGHBOURS} --algorithm adagrad --epochs 3 --rate 0.1 -o tune"
    )
    yield Command("show.learnt", "bins show features.bins -w tune/weights.gz")
    yield Command("plot", "bins plot features.bins -w tune/weights.gz -o plot")
    yield Command(
        "decode", f"decode {MODEL} --bins features.bins -w tune/weights.gz -i {SETS}/dev.de --kbest 10"
    )
    yield Command(
        "keep", f"decode {MODEL} --bins given.bins -w {SETS}/bins.weights -i {SETS}/few.de --kbest 10"
    )


def evaluate() -> Iterator[Step]:
    """Scores, tests and intervals."""
    systems = {"best": "", "fast": "--pop-limit 5", "faster": "--pop-limit 1", "monotone": "--span-limit 1"}
    for name, flags in systems.items():
        yield Command(name, f"decode {WEIGHTED} -i {SETS}/dev.de {flags} -o {name}")
    yield Command("kbest", f"decode {WEIGHTED} -i {SETS}/dev.de --kbest 3 -o best.kbest.gz")
    yield Command("json", f"decode {WEIGHTED} -i {SETS}/dev.de --format json -o best.json")
    two = f"-r {SETS}/dev.en {SETS}/dev.other.en"
    one = f"-r {SETS}/dev.en --trials 500"
    all_metrics = "--metrics bleu,chrf,chrf++,ter"
    yield Command("default", f"eval best -r {SETS}/dev.en")
    yield Command(
        "ar", f"eval best fast monotone {one} {all_metrics} --tokenize none --per-segment segments.tsv"
    )
    yield Command(
        "bootstrap",
        f"eval best fast monotone {one} {all_metrics} --test bootstrap --format json -o bootstrap.json",
    )
    yield Command("none", f"eval best fast {one} --test none --lowercase --force")
    yield Command("no-trials", f"eval best fast {two} --trials 0 {all_metrics} --format json")
    yield Command(
        "references", f"eval best faster {two} --trials 300 --seed 7 {all_metrics} --per-segment two.tsv"
    )
    runs = "--system a=best,fast --system b=faster,monotone"
    yield Command("runs", f"eval {runs} {one} --tokenize none")
    yield Command("runs.bootstrap", f"eval {runs} {one} --tokenize none --test bootstrap --format json")
    yield Command("formats", f"eval best best.kbest.gz best.json {one}")
    yield Command(
        "stdin", f"eval - -r {SETS}/dev.en --input-format text --tokenize none", stdin=f"{SETS}/dev.other.en"
    )


LEAVE_ONE_OUT = f"""
seed: 2
data:
  dev: {{source: {SETS}/train.de, references: {SETS}/train.en}}
  devtest: {{source: {SETS}/held.de, references: {SETS}/held.en}}
grammar: [{{path: demo.index}}]
lm: [{{path: {GRAMMARS}/demo.lm.arpa.gz}}]
features: {{templates: [rule_id]}}
"""
SPARSE = "--features rule_id,source_bigram,shape"
SHARDS = "--shards 4 --epochs 2"
# Settings of tuning by name. Two epochs, unless they say otherwise.
TUNINGS = {
    "sgd": "",
    "sgd.printed": "--variant printed",
    "sgd.l2": f"{SPARSE} --l2 0.1 --l2-sparse 1 --average sentences",
    "sgd.shards": SHARDS,
    "sgd.threads": f"{SHARDS} -j 2",
    "sgd.processes": f"{SHARDS} -j 2 --executor processes {SPARSE}",
    "sgd.sparse": f"{SPARSE} --rate 1e-3",
    "sgd.margin": "--pairs all --loss margin --by-gold margin --update sentence --average sentences",
    "sgd.logistic": (
        "--pairs pro --draws 200 --keep 20 --loss logistic --by-gold loss --decay sqrt --decay-after 20"
        " --order shuffle"
    ),
    "sgd.linear": (
        "--share 0.3 --decay linear --decay-after 20 --batch 5 --average none --no-unique --metric nakov"
    ),
    "sgd.sentences": "--sentences 30 --margin 2 --loss margin --metric plain --seed 5",
    "sgd.freeze-dense": f"{SPARSE} --freeze dense --update sentence --start {GRAMMARS}/demo.weights",
    "sgd.freeze-sparse": f"{SPARSE} --freeze sparse --update sentence --start {SETS}/sparse.weights",
    "sgd.jackknife": f"{SHARDS} --lm jackknife --folds 2",
    "mixsgd": f"{SPARSE} {SHARDS} --select 200 --norm l1",
    "itermixsgd": f"{SPARSE} {SHARDS} --shuffle-shards epoch -j 2",
    "iterselsgd": f"{SPARSE} {SHARDS} --select 200 -j 2 --executor processes",
    "iterselsgd.averages": f"{SPARSE} {SHARDS} --select 100 --average sentences --mix-what average",
    "iterselsgd.linf": f"{SPARSE} {SHARDS} --select 100 --norm linf --shuffle-shards none",
    "iterselsgd.mean": f"{SPARSE} {SHARDS} --select 100 --norm mean --by-sentences",
    "iterselsgd.l0": f"{SPARSE} --shards 0 --shard-size 15 --select 100 --norm l0 --average sentences",
    "mira": "--shards 4 --kbest 100",
    "mira.sparse": f"{SPARSE} --shards 2 -j 2",
    "mira.lu-model": "--shards 1 --oracle lu --prediction model --metric liang --c 0.1",
    "mira.lu-cost": "--shards 3 --oracle lu --prediction cost --metric chiang --no-by-sentences --scale 2",
    "mira.approx": "--shards 2 --metric approx --average epochs",
    "mira.cdec": "--shards 2 --metric cdec-mira --mix end",
    "mira.kbmira": "--shards 2 --metric kbmira --average sentences",
    "adagrad": "",
    "adagrad.sparse": f"{SPARSE} --l1 0.01 --epsilon 1e-3 --batch 7 -j 2",
    "adagrad.stale": "--stale --batch 10 --shards 2",
    "pro": "",
    "pro.sparse": f"{SPARSE} --l2 0.1 --l2-sparse 1 --min-count 2",
    "pro.l1": f"{SPARSE} --l1 0.1 --l2 0.5 -j 2",
    "pro.cdec": "--peer cdec --kbest 100",
    "pro.moses": "--peer moses",
    "pro.hopkins-may": "--peer hopkins-may --kbest 100 --epochs 3",
    "pro.drawn": (
        "--no-largest --soft --length-deviations 2 --threshold 0.02 --draws 500 --keep 30 --l2-previous 0.5"
    ),
    "pro.history": "--history 1 --iterations 20 --buffers 5 --interpolation 0.5 --epochs 3",
    "kbmira": "",
    "kbmira.model": f"{SPARSE} --remembered model --memory 0.9 --passes 20 --c 0.1 -j 2",
    "kbmira.history": "--history 1 --epochs 3 --average epochs",
    "mert": "--restarts 3 --directions 5 --start uniform",
    "mert.history": "--restarts 2 --directions 5 --history 1 --epochs 3 -j 2",
    "mert.forest": "--forest --directions 3 --start uniform",
    "mert.beam": "--forest --directions 2 --restarts 1 --beam 1 --start uniform -j 2",
}
METRICS = (
    "lin",
    "nakov-all",
    "moses",
    "cdec-ibm",
    "cdec-qcri",
    "sacrebleu",
    "dtrain-plain",
    "dtrain-stupid",
    "previous",
)
BINNED = {
    "sgd.linear": "--algorithm sgd --neighbours linear --beta 0.1",
    "sgd.monotone": "--algorithm sgd --neighbours monotone --beta 0.1 --gamma 3 --update sentence",
    "itermixsgd.linear": "--algorithm itermixsgd --shards 2 --neighbours linear --beta 0.1 -j 2",
    "adagrad.monotone": "--algorithm adagrad --neighbours monotone --beta 0.1",
    "pro.linear": "--algorithm pro --neighbours linear --beta 10",
    "pro.monotone": "--algorithm pro --neighbours monotone --beta 10 -j 2",
    "pro.l1": "--algorithm pro --neighbours monotone --beta 10 --l1 0.1",
    "pro.released": "--algorithm pro --neighbours monotone --variant released --beta 10",
    "pro.released-linear": "--algorithm pro --neighbours linear --variant released --beta 10",
}


def tune() -> Iterator[Step]:
    """Every algorithm and preset, with the settings that change what is learnt."""
    tune = f"tune -c {CONFIGS}/tune.yaml -q"
    for name, flags in TUNINGS.items():
        algorithm = f"--algorithm {name.partition('.')[0]}"
        # The last of a flag that is given twice counts.
        yield Command(name, f"{tune} {algorithm} --epochs 2 --kbest 40 {flags} -o {name}")
    for metric in METRICS:
        yield Command(
            f"metric.{metric}", f"{tune} --epochs 1 --kbest 40 --metric {metric} -o metric.{metric}"
        )
    yield Command("bins", f"bins learn -c {CONFIGS}/tune.yaml --features {COLUMNS} --bits 3 -o features.bins")
    for name, flags in BINNED.items():
        yield Command(f"bins.{name}", f"{tune} --epochs 2 {NEIGHBOURS} {flags} -o bins.{name}")
    yield Command("index", f"index {ALIGNED} -o demo.index")
    yield Write("leave-one-out.yaml", LEAVE_ONE_OUT)
    loo = "--leave-one-out --kbest 40 --epochs 2 --rate 1e-3"
    yield Command("leave-one-out", f"tune -c leave-one-out.yaml -q {loo} -o leave-one-out")
    yield Command("resumed", f"{tune} --epochs 1 --kbest 40 --algorithm mira --shards 2 -o resumed")
    yield Command("resume", f"{tune} --epochs 2 --kbest 40 --algorithm mira --shards 2 -o resumed --resume")


COLUMNS = "EgivenFCoherent=probability,MaxLexFgivenE=probability"
PARTS: dict[str, Callable[[], Iterator[Step]]] = {
    "demo": demo,
    "decode": decode,
    "reference": reference,
    "extract": extract,
    "grammar": grammar,
    "lm": language,
    "align": align,
    "prep": prep,
    "reorder": reorder,
    "bins": bins,
    "eval": evaluate,
    "tune": tune,
    "experiment": experiment,
}

# ---- Inputs

TUNE = """
seed: 1
data:
  dev: {source: ../sets/dev.de, references: ../sets/dev.en}
  devtest: {source: ../sets/held.de, references: ../sets/held.en}
grammar: [{path: ../grammars/demo.grammar.gz}]
lm: [{path: ../grammars/demo.lm.arpa.gz}]
"""
ODD = [
    "der junge spricht nicht über die zeitung .",
    "",
    "  der   mann  ist müde . ",
    "quantenchromodynamik der mann & < > \" ' = : ; ,",
    "[X] [X,1] [ ] | |||| müde",
    '<seg id="7">wen sucht der nachbar zu hause ?</seg>',
    "müde müde müde müde müde müde müde müde müde müde müde müde",
]
ODD_ENGLISH = [
    "the boy does not talk about the newspaper .",
    "",
    "  the   man  is tired . ",
    "unheard-of words & < > \" ' = : ; , \u201equoted\u201c \u2018so\u2019 \u2013 \u2026",
    "No\u00a0break\u2009spaces, e\u0301 in two parts; 3.14 and 1,000 at http://example.org/a?b=c (see p. 5)!",
]
CDEC_RULES = """\
[X] ||| der mann ||| the man ||| EgivenFCoherent=0.25 CountEF=1.5 Own=2 ||| 0-0 1-1
[X] ||| [X,1] ist [X,2] ||| [2] is [1] ||| EgivenFCoherent=1 MaxLexEgivenF=0.5 ||| 1-1
[X] ||| der [X,1] ||| that [1] ||| Own=-1e-3
[Y] ||| müde ||| weary tired ||| 0.5 0.25 ||| 0-0
"""
JOSHUA_RULES = """\
[X] ||| der mann ||| the man ||| 0.25 1.5 Own=2 ||| 0-0 1-1
[X] ||| [X,1] ist [X,2] ||| [X,2] is [X,1] ||| 1 0.5
"""
MOSES_RULES = """\
[X][S] [X][X] [X] ||| [X][S] [X][X] [S] ||| 2.718 ||| 0-0 1-1 ||| 0 ||| |||
[X][X] of [X][X] [X] ||| [X][X] de [X][X] [X] ||| 0.5 0 1e-3 ||| 0-2 2-0 1-1 ||| 1 2 3 ||| dlm_a 0.25 q 3
a b [X] ||| c [X] ||| 0.1 ||| 0-0 1-0
"""
ORIENTATIONS = [
    f"{model}{name}{what}"
    for model in ("Reordering", "LexicalReordering")
    for name in ("Monotone", "Swap", "Other")
    for what in ("", "Blocks")
]


def make_inputs(old: Path, out: Path, data: Path, reference: Path) -> None:
    """The inputs of all parts, in OUT/input. What is there stays: another comparison may be reading it."""
    folder = out / "input"
    sets = folder / "sets"
    for path in sorted((old / "grammars").glob("demo.*")):
        keep(folder / "grammars" / path.name, path.read_bytes())
    keep(folder / "configs" / "demo.yaml", (old / "configs" / "demo.yaml").read_bytes())
    keep(folder / "configs" / "tune.yaml", TUNE.encode())
    for link, target in (("data", data.resolve()), ("reference", reference.resolve())):
        if not (folder / link).is_dir() or (folder / link).resolve() != target:
            (folder / link).unlink(missing_ok=True)
            (folder / link).symlink_to(target)

    def put(name: str, found: list[str]) -> None:
        text = "".join(f"{line}\n" for line in found).encode()
        keep(sets / name, gzip.compress(text, mtime=0) if name.endswith(".gz") else text)

    grammars = old / "grammars"
    for side in ("de", "en"):
        dev, held = lines(grammars / f"demo.dev.{side}"), lines(grammars / f"demo.devtest.{side}")
        train = lines(grammars / f"demo.train.{side}.gz")
        put(f"dev.{side}", dev[:80])
        put(f"held.{side}", held[:40])
        put(f"few.{side}", dev[80:92])
        put(f"small.{side}", train[:600])
        put(f"train.{side}", train[:40])
        put(f"raw.{side}", [raw(line) for line in train[:500]] + [""])
    put("short.de", [line for line in lines(grammars / "demo.dev.de") if len(line.split()) <= 4][:5])
    put("other.en", [line.replace("the ", "a ") for line in lines(sets / "held.en")])
    put("dev.other.en", [line.replace("the ", "a ").replace(" .", " !") for line in lines(sets / "dev.en")])
    put("odd.de", ODD)
    put("odd.en", ODD_ENGLISH)
    put("symbols.en", [f"{line} <s> </s> <unk>" for line in lines(sets / "small.en")])
    put("vocabulary", ["the", "man", "is", ".", "boy", "not"])
    pairs = zip(lines(grammars / "demo.train.de.gz"), lines(grammars / "demo.train.en.gz"), strict=True)
    lengths = [min(len(one.split()), len(other.split())) for one, other in pairs]
    put("diagonal.align.gz", [" ".join(f"{i}-{i}" for i in range(length)) for length in lengths])
    for kind, text in (("cdec", CDEC_RULES), ("joshua", JOSHUA_RULES), ("moses", MOSES_RULES)):
        keep(sets / f"rules.{kind}", text.encode())
    put("second.arpa", lines(grammars / "demo.lm.arpa.gz"))
    dense = lines(grammars / "demo.weights")
    orientations = [f"{name} {(k % 5 - 1) / 20}" for k, name in enumerate(ORIENTATIONS)]
    put("reordering.weights", dense + orientations)
    put("sparse.weights", [*dense, "Shape_S01110_T01110 0.1", "RBS:der_mann -0.2"])
    put("bins.weights", dense)
    for name, number in (("m30k", 30), ("m30k", 40), ("ep", 20)):
        found = lines(reference / name / "input.sgm")[:number]
        base = f"../reference/{name}"
        put(f"{name}.{number}.sgm", [line.replace('grammar="', f'grammar="{base}/') for line in found])
    put("m30k.dev.de", lines(data / "multi30k-de-en" / "dev.src.gz")[:40])
    train = lines(data / "multi30k-de-en" / "train.src.gz")[:40]
    put("m30k.train.de", train)
    segment = '<seg grammar="../reference/m30k/loo/grammar.{}.gz" id="{}">{}</seg>'
    put("loo.sgm", [segment.format(k, k, line) for k, line in enumerate(train)])


def keep(path: Path, content: bytes) -> None:
    """Write a file unless it is there with this content."""
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def lines(path: Path) -> list[str]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return text.removesuffix("\n").split("\n")


def raw(line: str) -> str:
    """Words as text once was: a capital at the beginning, no space before punctuation."""
    joined = re.sub(r" ([.,?!])", r"\1", line).replace("zeitung", "Zeitung").replace("wednesday", "Wednesday")
    return joined[:1].upper() + joined[1:]


# ---- Running


class Side(NamedTuple):
    """One of the two programs."""

    name: str  # old or new
    checkout: Path
    program: str  # digest of its source
    folder: Path


def side_of(name: str, checkout: Path, folder: Path) -> Side:
    if not (checkout / "hiero").is_dir():
        sys.exit(f"{checkout}: no folder hiero in it, expected a checkout")
    digest = hashlib.sha256()
    for tree in ("hiero", "grammars"):
        for path in sorted((checkout / tree).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(path.relative_to(checkout).as_posix().encode() + b"\0" + path.read_bytes())
    return Side(name, checkout, digest.hexdigest(), folder)


def checkout_of(what: str, out: Path) -> Path:
    """A folder as it is; a revision of this repository exported to OUT/checkouts."""
    if Path(what).is_dir():
        return Path(what).resolve()

    def git(*arguments: str) -> str:
        result = subprocess.run(["git", "-C", str(PROJECT), *arguments], capture_output=True, text=True)
        if result.returncode:
            sys.exit(f"{what}: neither a folder nor a revision: {result.stderr.strip()}")
        return result.stdout.strip()

    revision = git("rev-parse", "--verify", f"{what}^{{commit}}")
    place = out / "checkouts" / revision[:12]
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        archive, part = place.with_suffix(".tar"), place.with_suffix(".part")
        git("-C", git("rev-parse", "--show-toplevel"), "archive", "-o", str(archive), revision)
        with tarfile.open(archive) as stream:
            stream.extractall(part, filter="data")
        part.rename(place)
        archive.unlink()
    return place


def make(side: Side, part: str) -> list[str]:
    """All commands of a part, unless they have been run; those that failed."""
    steps, folder = list(PARTS[part]()), side.folder / part
    inputs = hashlib.sha256()
    for path in sorted((side.folder.parent / "input").glob("[!dr]*/*")):  # data and reference never change
        inputs.update(path.name.encode() + b"\0" + path.read_bytes())
    state = {"program": side.program, "steps": digest_of(steps), "inputs": inputs.hexdigest()}
    marker = folder / "done"
    if marker.exists() and json.loads(marker.read_text()) == state:
        print(f"{side.name}: {part}: done before", flush=True)
        return failed(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    start, seconds, codes = time.perf_counter(), {}, []
    for step in steps:
        begun = time.perf_counter()
        if isinstance(step, Write):
            (folder / step.name).write_text(step.text)
        elif isinstance(step, SparseWeights):
            write_sparse_weights(folder, step)
        else:
            code = run(side, folder, step)
            codes.append(f"{step.name}: {code}\n")
            seconds[step.name] = round(time.perf_counter() - begun, 2)
            if code:
                message = (folder / f"{step.name}.err").read_text().strip().split("\n")[-1]
                print(f"{side.name}: {part}: {step.name}: exit code {code}: {message}", flush=True)
    (folder / "codes").write_text("".join(codes))
    (folder / "seconds.json").write_text(json.dumps(seconds, indent=1) + "\n")
    marker.write_text(json.dumps(state, indent=1) + "\n")
    print(f"{side.name}: {part}: {len(codes)} commands, {time.perf_counter() - start:.0f} s", flush=True)
    return failed(folder)


def failed(folder: Path) -> list[str]:
    codes = (folder / "codes").read_text().splitlines()
    return [f"{folder.name}/{line}" for line in codes if not line.endswith(": 0")]


def digest_of(steps: list[Step]) -> str:
    return hashlib.sha256(repr(steps).encode()).hexdigest()


def run(side: Side, folder: Path, step: Command) -> int:
    main = side.checkout / "hiero" / "__main__.py"
    module = "hiero" if main.exists() else "hiero.cli.main"
    environment = {**os.environ, "PYTHONPATH": str(side.checkout), "PYTHONDONTWRITEBYTECODE": "1"}
    with (
        open(folder / (step.stdin or os.devnull), "rb") as stdin,
        open(folder / f"{step.name}.out", "wb") as stdout,
        open(folder / f"{step.name}.err", "wb") as stderr,
    ):
        command = [sys.executable, "-m", module, *shlex.split(step.arguments)]
        return subprocess.run(
            command, cwd=folder, env=environment, stdin=stdin, stdout=stdout, stderr=stderr
        ).returncode


def write_sparse_weights(folder: Path, step: SparseWeights) -> None:
    names: set[str] = set()
    for line in (folder / step.kbest).read_text().splitlines():
        names.update(item.rpartition("=")[0] for item in line.split(" ||| ")[-2].split(" "))
    dense = (folder / GRAMMARS / "demo.weights").read_text()
    names -= {line.split()[0] for line in dense.splitlines()}
    weights = [f"{name} {(zlib.crc32(name.encode()) % 1001 - 500) / 1e4}\n" for name in sorted(names)]
    (folder / step.name).write_text(dense + "".join(weights))


# ---- Comparing


def compare(old: Side, new: Side, part: str) -> list[str]:
    """What differs, a line for each file."""
    files = {side.name: names_in(side.folder / part) for side in (old, new)}
    found = [
        f"only in {side}: {part}/{name}"
        for side, other in (SIDES, SIDES[::-1])
        for name in sorted(files[side] - files[other])
    ]
    for name in sorted(files["old"] & files["new"]):
        one, other = old.folder / part / name, new.folder / part / name
        if one.read_bytes() != other.read_bytes():
            difference = difference_of(one, other, old, new)
            if difference:
                found.append(f"{part}/{name}: {difference}")
    print(f"{part}: {len(files['old'] & files['new'])} files compared, {len(found)} differ", flush=True)
    return found


def names_in(folder: Path) -> set[str]:
    paths = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {
        path.relative_to(folder).as_posix()
        for path in paths
        if path.name not in IGNORED_NAMES and path.suffix not in IGNORED_SUFFIXES
    }


def difference_of(one: Path, other: Path, old: Side, new: Side) -> str | None:
    """The first difference between two files, if there is one."""
    suffix = one.suffix
    if suffix in (".npy", ".npz"):
        return arrays_differ(arrays_in(one), arrays_in(other))
    contents = one.read_bytes(), other.read_bytes()
    if all(data[:2] == b"\x1f\x8b" for data in contents):
        contents = gzip.decompress(contents[0]), gzip.decompress(contents[1])
        suffix = Path(one.stem).suffix
    try:
        texts = [plain(data.decode(), suffix, side) for data, side in zip(contents, (old, new), strict=True)]
    except UnicodeDecodeError:
        if contents[0] == contents[1]:
            return None
        pairs = enumerate(itertools.zip_longest(*contents))
        place = next(place for place, (a, b) in pairs if a != b)
        return f"byte {place}; {len(contents[0])} and {len(contents[1])} bytes"
    rows = itertools.zip_longest(texts[0].split("\n"), texts[1].split("\n"), fillvalue="(end)")
    for number, (a, b) in enumerate(rows, 1):
        if a != b:
            return f"line {number}\n    old: {around(a, b)}\n    new: {around(b, a)}"
    return None


def around(text: str, other: str) -> str:
    """A line, or what surrounds the first difference if it is long."""
    same = next(
        (k for k, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), min(len(text), len(other))
    )
    start = max(0, same - 60)
    shown = text[start : same + 100]
    return f"{'...' if start else ''}{shown}{'...' if same + 100 < len(text) else ''}"


def plain(text: str, suffix: str, side: Side) -> str:
    """Text without what depends on the run: the output directory's path, and measured values."""
    text = text.replace(str(side.folder), "SIDE")
    if suffix == ".jsonl" or (suffix in (".json", ".out") and all(map(is_record, text.splitlines()))):
        return "\n".join(json.dumps(stripped(json.loads(line), side)) for line in text.splitlines())
    if suffix == ".json":
        return json.dumps(stripped(json.loads(text), side), indent=1)
    return text


def is_record(line: str) -> bool:
    return line.startswith("{") and line.endswith("}")


def stripped(value: Any, side: Side) -> Any:
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if not is_dropped(key, item)}
        named = {RENAMED.get(key, key) if side.name == "old" else key: item for key, item in kept.items()}
        return {key: stripped(item, side) for key, item in named.items()}
    if isinstance(value, list):
        return [stripped(item, side) for item in value]
    return value


def is_dropped(key: str, value: Any) -> bool:
    if key in DROPPED:
        return True
    # A key of ours, and not the name of a feature or a word.
    is_plain = isinstance(value, (int, float)) and re.fullmatch("[a-z_]+", key) is not None
    return is_plain and key.endswith(MEASURED) and key not in SETTINGS


def arrays_in(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    found = np.load(path)
    return {"": found} if path.suffix == ".npy" else dict(found)


def arrays_differ(old: dict[str, np.ndarray[Any, Any]], new: dict[str, np.ndarray[Any, Any]]) -> str | None:
    if set(old) != set(new):
        return f"arrays {', '.join(sorted(set(old) ^ set(new)))} only on one side"
    for name, one in old.items():
        other = new[name]
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return f"array {name}: {one.dtype} {one.shape} and {other.dtype} {other.shape}"
        if one.tobytes() != other.tobytes():
            places = np.flatnonzero(one.ravel() != other.ravel())
            place = int(places[0]) if len(places) else 0  # 0 and -0, or nan
            found = f"{one.flat[place]!r} and {other.flat[place]!r}"
            return f"array {name}: element {place}: {found}; {len(places)} differ"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("old", metavar="OLD", help="checkout or revision")
    add("new", metavar="NEW", help="checkout or revision")
    add("out", metavar="OUT", type=Path, help="directory for inputs and outputs")
    add("--data", type=Path, default=PROJECT.parent / "shared" / "data", metavar="DIR")
    add("--reference", type=Path, default=PROJECT.parent / "shared" / "reference", metavar="DIR")
    add(
        "--part", nargs="+", choices=PARTS, default=list(PARTS), metavar="NAME", help=f"of {', '.join(PARTS)}"
    )
    add("--name", default="new", help="folder in OUT for the outputs of NEW (default: new)")
    add("--only", choices=SIDES, help="make the outputs of one side, and compare nothing")
    args = parser.parse_args()
    out = args.out.resolve()
    for folder in (args.data, args.reference):
        if not folder.is_dir():
            parser.error(f"no data in {folder}")
    if args.name in ("old", "input", "checkouts"):
        parser.error(f"--name: found {args.name}, expected another name")
    old = checkout_of(args.old, out)
    make_inputs(old, out, args.data, args.reference)
    sides: list[Side] = []
    if args.only != "new":
        sides.append(side_of("old", old, out / "old"))
    if args.only != "old":
        sides.append(side_of("new", checkout_of(args.new, out), out / args.name))
    failures: list[str] = []
    differences: list[str] = []
    for part in args.part:
        for side in sides:
            failures += [f"{side.name}: {what}" for what in make(side, part)]
        if len(sides) == 2:
            differences += compare(sides[0], sides[1], part)
    for failure in failures:
        print(f"FAILED: {failure}")
    for difference in differences:
        print(f"DIFFERS: {difference}")
    return 1 if failures or differences else 0


if __name__ == "__main__":
    sys.exit(main())
