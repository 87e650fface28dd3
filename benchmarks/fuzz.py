"""Damaged files of every kind that is read: ``python -m benchmarks.fuzz [KIND ...] [--cases N]``.

Makes a small specimen of each kind with the programs that write it, and mutants of it (see ``mutants.py``).
Each mutant is read and used: sentences are translated, text is scored, forests are listed, models are
trained. It must give results, or an error of one line, within a gigabyte and some seconds; never a signal,
another exception, a warning, or other results of an altered directory of arrays without a word. The exit code
is 1, with the first cases of each kind, if one does not. ``NUMBA_BOUNDSCHECK=1`` also finds places outside of
arrays that do no harm by chance.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import hiero
from benchmarks.mutants import BAD, OUTCOMES, Counts, FileKind, run_mutants
from benchmarks.results import append_result
from hiero.alignment.config import AlignConfig
from hiero.alignment.files import align_files
from hiero.alignment.model import read_model as read_aligner
from hiero.bins.file import read_bins
from hiero.bitext.alignments import check_alignment, read_alignment
from hiero.bitext.compounds import Compounds
from hiero.bitext.corpus import read_bitext
from hiero.bitext.prepare import Recaser
from hiero.config.config import config_of, read_config
from hiero.config.package import CONFIG as PACKED_CONFIG
from hiero.config.package import extract_package, read_package
from hiero.core.errors import HieroError, HieroWarning
from hiero.core.input import parse_input
from hiero.core.records import map_paths
from hiero.core.symbols import Symbols
from hiero.core.text import parse_segment, read_text
from hiero.decoder.forest import Forest
from hiero.evaluation.hypotheses import read_candidates, read_hypotheses
from hiero.extraction.config import PhraseConfig
from hiero.extraction.extractor import Extractor
from hiero.extraction.index import make_index, open_index
from hiero.extraction.store import RuleStore
from hiero.extraction.write import find_phrase_pairs, read_aligned_bitext, write_phrase_table
from hiero.features.index import FeatureIndex
from hiero.features.weights import read_weights
from hiero.grammar.assemble import build_grammar
from hiero.grammar.compiled import write_compiled
from hiero.grammar.config import GrammarFormat
from hiero.grammar.sources import open_grammar, read_grammar
from hiero.jobs.pack import write_package
from hiero.jobs.resumable_output import ResumableOutput
from hiero.jobs.run_directory import Manifest
from hiero.learning.candidates import candidates
from hiero.learning.learner import Example
from hiero.learning.lists import CandidateLists
from hiero.lm.load import compile_language_model, load_language_models
from hiero.lm.model import score_text
from hiero.reordering.config import ExampleConfig, LearnConfig
from hiero.reordering.evaluate import evaluate
from hiero.reordering.examples import extract_examples, open_examples
from hiero.reordering.learn import learn_dual, learn_primal, train_model
from hiero.reordering.model import Classifier, open_model, top_features
from hiero.tuning.batch import read_batch_examples, write_batch_examples
from hiero.tuning.held_out import statistics_in
from hiero.tuning.report import read_log
from hiero.tuning.vectors import read_vector, write_vectors

PROJECT = Path(__file__).parents[1]
SENTENCES = ("dass hund haus sieht .", "katze kauft kind .", "hund unbekannt")
TERMS = "hund\tthe hound\nhund haus\tkennel\t0.5\n\nkatze kauft\tcat buys\t-1e-3\n"
NOUNS = {"hund": "dog", "katze": "cat", "haus": "house", "kind": "child"}
VERBS = {"sieht": "sees", "kauft": "buys", "hat": "has"}
OTHER_WEIGHTS = {"LanguageModel": 2.0, "Phrase": 0.5, "R:X:hund:dog": -3.0, "SpanSize_X_2": 0.25}
WEIGHTS = "LanguageModel 0.4\nPhrase 1\nWordPenalty -0.5\nGlue -0.1\nR:X:hund:dog 0.3\n"
BINS = """\
feature Phrase of=given overlap=0 keep=no
bin -inf rules=3 values=2 low=-2 high=-1
bin -0.5 rules=2 values=1 low=-0.5 high=0
"""
CONFIG = """\
seed: 3
data: {train: {source: train.de, target: train.en}, dev: &dev {source: dev.de, target: dev.en}}
align: {iterations: 2}
lm: [{estimate: train, order: 2}]
grammar: [{index: train}]
features: {templates: [rule_id, shape]}
search: {pop_limit: 50}
tune: {algorithm: sgd, rate: 1.0e-2}
"""
SEGMENTS = (
    '<seg id="1"> ein haus </seg> ||| a house\n<seg id="2" grammar="g.2.gz" > das </seg>\nplain words\n'
)
COMPOUNDS = (
    '{"format": "hiero compounds 1", "min_length": 3, "min_count": 1, "fillers": "s es", "alternatives": 3}\n'
    "haus\t12\nhaustür\t1\nkatze\t3\nkatzenhaus\t1\ntür\t5\n"
)
LATTICES = (
    "((('hund',0.5,1),('katze',1.5,1),),(('kauft',0.25,1,1),('*EPS*',2,1),),(('haus',0,1),),)\n"
    '{"id": "b", "arcs": [{"from": 0, "to": 1, "word": "hund", "cost": 0.5}, {"from": 1, "to": 2, '
    '"word": "sieht"}, {"from": 0, "to": 2, "word": "kind", "features": {"asr": 2.5}}], '
    '"reference": "dog sees"}\n'
    "<seg id=\"c\"> ((('it\\'s',0,2),(\"haus\",1,1),),(('haus',0),),) </seg> ||| house\n"
)
KBEST = (
    "0 ||| a house ||| Glue=1 F=0.5 ||| -1.5\n0 ||| the house ||| Glue=2 ||| -2\n1 ||| a ||| Glue=1 ||| -1\n"
)


class Toy:
    """A bitext of a toy language, in which verbs move, and everything that is made of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        dice = random.Random(1)
        lines: list[list[str]] = [[], [], []]
        for _ in range(40):
            subject, verb, thing = (dice.choice(list(words)) for words in (NOUNS, VERBS, NOUNS))
            moved = dice.random() < 0.5
            src = ["dass", subject, thing, verb, "."] if moved else [subject, verb, thing, "."]
            tgt = [*["that"] * moved, NOUNS[subject], VERBS[verb], NOUNS[thing], "."]
            lines[0].append(" ".join(src))
            lines[1].append(" ".join(tgt))
            lines[2].append("0-0 1-1 2-3 3-2 4-4" if moved else "0-0 1-1 2-2 3-3")
        self.src, self.tgt, self.align = (folder / name for name in ("src", "tgt", "align.txt"))
        for path, text in zip((self.src, self.tgt, self.align), lines, strict=True):
            path.write_text("\n".join(text) + "\n", encoding="utf-8")
        self.cdec, self.arpa = folder / "cdec.gz", folder / "lm.arpa.gz"
        self.cdec.write_bytes(
            gzip.compress(_rules("{src} ||| {tgt} ||| Phrase={value} ||| {links}"), mtime=0)
        )
        self.arpa.write_bytes(gzip.compress(_arpa(), mtime=0))
        self.weights = folder / "weights.txt"
        self.weights.write_text(WEIGHTS)

    def model(self, **parts: Any) -> hiero.Model:
        return hiero.load(**({"grammar": self.cdec, "lm": self.arpa, "weights": self.weights} | parts))

    def translations(self, **parts: Any) -> object:
        """What a model says, with its scores and features."""
        model, found = self.model(**parts), []
        for sentence in SENTENCES:
            forest = model.parse(sentence)
            found += [(one.text, one.score, dict(one.features)) for one in forest.kbest(3)]
        return found


def _rules(line: str) -> bytes:
    pairs = NOUNS | VERBS | {"dass": "that", ".": "."}
    rows = [(f"[X] ||| {src}", tgt, "0-0") for src, tgt in pairs.items()]
    rows += [("[X] ||| dass [X,1]", "that [1]", "0-0"), ("[X] ||| [X,1] haus [X,2]", "[1] [2] house", "1-2")]
    rows += [
        ("[X] ||| [X,1] [X,2] sieht", "[1] sees [2]", "2-1"),
        ("[X] ||| hund kauft", "dog buys", "0-0 1-1"),
    ]
    text = (
        line.format(src=src, tgt=tgt, links=links, value=-k % 3) for k, (src, tgt, links) in enumerate(rows)
    )
    return ("\n".join(text) + "\n").encode()


def _arpa() -> bytes:
    words = ["<unk>", "<s>", "</s>", "that", ".", *NOUNS.values(), *VERBS.values()]
    unigrams = "".join(f"-{1 + k / 8}\t{word}\t-0.25\n" for k, word in enumerate(words))
    bigrams = "".join(f"-{0.5 + k / 8}\t{word} sees\n" for k, word in enumerate(NOUNS.values()))
    head = f"\\data\\\nngram 1={len(words)}\nngram 2={len(NOUNS)}\n\n"
    return f"{head}\\1-grams:\n{unigrams}\n\\2-grams:\n{bigrams}\n\\end\\\n".encode()


Made = dict[str, tuple[FileKind, Path]]


def specimens(folder: Path, chosen: set[str]) -> Made:
    """The specimens of the chosen kinds; names of directories of arrays have no suffix."""
    toy, made = Toy(folder / "toy"), Made()

    def add(name: str, make: Callable[[Path], object], use: Callable[[Path], object]) -> None:
        if name in chosen:
            path = folder / name.partition(":")[0]
            make(path)
            made[name] = FileKind(name, use), path

    _add_models(add, toy)
    _add_reordering(add, toy)
    _add_adaptation(add, toy)
    _add_forests(add, toy)
    _add_numbers(add, toy)
    _add_texts(add, toy)
    return made


def _content(content: str | bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content.encode() if isinstance(content, str) else content)


def _scored(path: Path) -> object:
    text = "".join(f"{line}\n" for line in ("that dog sees house .", "house unknown", "")).encode()
    scored = score_text(load_language_models([("LM", path)]), 0, text)
    return scored.prob.tolist(), scored.length.tolist()


def _add_models(add: Callable[..., None], toy: Toy) -> None:
    def grammar(path: Path) -> object:
        symbols = Symbols()
        return toy.translations(grammar=path), open_grammar(path, symbols).all_rules().rules.lhs.tolist()

    def table(path: Path) -> object:
        read = read_grammar(path, Symbols(), GrammarFormat(format="moses"))
        return [array.tolist() for array in read.rules]

    def compiled(path: Path) -> None:
        symbols = Symbols()
        write_compiled(path, build_grammar([read_grammar(toy.cdec, symbols)]), symbols)

    def moses(path: Path) -> None:
        lines = b"hund [X] ||| dog [X] ||| 0.5 0.25 ||| 0-0 ||| 2 2\n"
        lines += b"katze kauft [X] ||| cat buys [X] ||| 0.1 1 ||| 0-0 1-1 ||| 1 1\n"
        path.write_bytes(gzip.compress(lines, mtime=0))

    def phrases(path: Path) -> None:
        bitext = read_aligned_bitext(toy.src, toy.tgt, [toy.align])
        write_phrase_table(path, bitext, find_phrase_pairs(bitext, PhraseConfig(min_count=6)))

    def index(path: Path) -> None:
        make_index(toy.src, toy.tgt, [toy.align], path)

    def extracted(path: Path) -> object:
        opened = open_index(path)
        left_out = Extractor(opened).rules(read_words(opened), 0)
        return toy.translations(grammar=path), [array.tolist() for array in left_out]

    def read_words(opened: Any) -> Any:
        return Extractor(opened).word_ids([word.encode() for word in SENTENCES[0].split()])

    def opened_store(path: Path) -> RuleStore:
        return RuleStore(path.parent / "store", (99, 99))

    def store(path: Path) -> None:
        opened = open_index(toy.folder / "index")
        opened_store(path).put(bytes(32), Extractor(opened).rules(read_words(opened)))
        shutil.move(path.parent / "store" / "000.rules", path)
        shutil.rmtree(path.parent / "store")

    def stored(path: Path) -> object:
        shutil.rmtree(path.parent / "store", ignore_errors=True)
        opened_store(path).append(bytes(32), path.read_bytes())  # with a CRC-32 that fits
        rules = opened_store(path).get(bytes(32))
        if rules is None:
            raise HieroError("missing")  # and extracted again
        return [array.tolist() for array in rules.unpacked()]

    add("cdec.gz", lambda path: shutil.copy(toy.cdec, path), grammar)
    add("moses.gz", moses, table)
    add(
        "phrases.gz",
        phrases,
        lambda path: toy.translations(grammar=path, config={"search": {"brackets": True}}),
    )
    add("grammar", compiled, grammar)
    add(
        "arpa.gz",
        lambda path: shutil.copy(toy.arpa, path),
        lambda path: (_scored(path), toy.translations(lm=path)),
    )
    probing = PROJECT / "tests" / "data" / "tiny.probing"
    add("probing.binary", lambda path: shutil.copy(probing, path), _scored)
    for kind in ("trie", "qatrie"):
        tiny = probing.with_name(f"tiny.{kind}")
        add(f"{kind}.binary", lambda path, tiny=tiny: shutil.copy(tiny, path), _scored)
    add(
        "lm",
        lambda path: compile_language_model(toy.arpa, path),
        lambda path: (_scored(path), toy.translations(lm=path)),
    )
    add("index", index, extracted)
    index(toy.folder / "index")
    add("store.binary", store, stored)


def _add_adaptation(add: Callable[..., None], toy: Toy) -> None:
    folder = toy.folder / "adapted"

    def make(path: Path) -> None:
        if not folder.exists():
            with hiero.Adapter(toy.model(), state=folder, grow=False, learner="sgd") as adapter:
                for sentence in SENTENCES[:2]:
                    adapter.adapt(sentence, "a dog sees the house")
        shutil.copy(folder / path.name, path)

    def used(path: Path) -> object:
        other = path.parent / f"{path.name}.folder"
        shutil.rmtree(other, ignore_errors=True)
        shutil.copytree(folder, other)
        shutil.copy(path, other / path.name)
        with hiero.Adapter(toy.model(), state=other, grow=False, learner="sgd") as adapter:
            best = [adapter.translate(sentence) for sentence in SENTENCES]
            adapter.adapt(SENTENCES[0], "a house")
            return [(one.text, one.score) for one in best], len(adapter.weights)

    add("state.npz", make, used)
    add("pairs.jsonl", make, used)


def _add_reordering(add: Callable[..., None], toy: Toy) -> None:
    examples = toy.folder / "examples"

    def extract(path: Path) -> None:
        extract_examples(toy.src, toy.tgt, toy.align, path, ExampleConfig(min_count=1, window=1, edges=True))

    extract(examples)

    def train(learner: Any) -> Callable[[Path], object]:
        passes: dict[str, Any] = {} if learner == "lexicalised" else {"passes": 2}
        return lambda path: train_model(examples, path, LearnConfig(learner=learner, **passes))

    def learnt(path: Path) -> object:
        opened = open_examples(path)
        config = LearnConfig(passes=2)
        dual = learn_dual(opened, config)
        primal = learn_primal(opened, LearnConfig(learner="primal", passes=2, rate=0.1))
        return dual.weight.tolist(), primal.weight.tolist(), opened.classes.tolist()

    def used(path: Path) -> object:
        model = open_model(path)
        top = top_features(model, 3) if isinstance(model, Classifier) else None
        config = {"features": {"reordering": str(path)}}
        errors = evaluate(model, open_examples(examples))
        return toy.translations(config=config), errors.confusion.tolist(), errors.loss, top

    add("examples", extract, learnt)
    add("classifier", train("dual"), used)
    add("lexicalised", train("lexicalised"), used)


def _add_forests(add: Callable[..., None], toy: Toy) -> None:
    def used(path: Path) -> object:
        forest = Forest.load(path)
        best = [(one.text, one.score, one.alignment, str(one.tree())) for one in forest.kbest(4)]
        return best, forest.inside().tolist(), forest.outside().tolist(), forest.source

    for name in ("forest.json", "forest.json.gz", "forest.npz"):
        add(name, lambda path: toy.model().parse(SENTENCES[0]).save(path), used)

    def rescored(path: Path) -> object:
        forest = Forest.load(path)
        other = forest.with_weights(OTHER_WEIGHTS)
        other.save(path.with_name(f"again.{path.name}"))
        again = Forest.load(path.with_name(f"again.{path.name}"))
        found = [(one.text, one.score, dict(one.features)) for one in forest.kbest(4)]
        return found, [[(one.text, one.score) for one in lists.kbest(4)] for lists in (other, again)]

    features = ["rule_id", "shape", "span_size"]
    for name in ("features.json.gz", "features.npz"):
        add(name, lambda path: toy.model(features=features).parse(SENTENCES[0]).save(path), rescored)


def _examples(toy: Toy, index: FeatureIndex) -> tuple[hiero.Model, list[Example]]:
    model, found = toy.model(features=["rule_id", "shape", "lexical"]), []
    for number, sentence in enumerate(SENTENCES):
        listed = candidates(model.parse(sentence), 5, index)
        statistics = np.arange(10 * listed.size).reshape(-1, 10)
        found.append(Example(number, len(sentence.split()), listed, statistics, 4))
    return model, found


def _add_numbers(add: Callable[..., None], toy: Toy) -> None:
    def vectors(path: Path) -> None:
        index = FeatureIndex()
        model, _ = _examples(toy, index)
        numbers = np.arange(len(index))
        write_vectors(path, model.symbols, index, numbers, weight=numbers / 7)

    def batch(path: Path) -> None:
        index = FeatureIndex()
        model, examples = _examples(toy, index)
        write_batch_examples(str(path), model.symbols, index, examples)

    def batch_used(path: Path) -> object:
        lists = CandidateLists()
        for example in read_batch_examples(str(path), Symbols(), FeatureIndex()):
            lists.add(example)
        return lists.best(np.ones(lists.num_features)).tolist(), lists.bleu(np.ones(lists.num_features))

    def lists(path: Path) -> None:
        found, index = CandidateLists(), FeatureIndex()
        for example in _examples(toy, index)[1]:
            found.add(example)
        found.save(path)

    def lists_used(path: Path) -> object:
        found = CandidateLists.load(path)
        weight = np.arange(found.num_features) / 3 if found.num_features < 10**6 else np.zeros(0)
        result = found.best(weight).tolist() if len(weight) else None
        for example in _examples(toy, FeatureIndex())[1]:
            found.add(example)
        return result, len(found), found.lengths()[0].tolist()

    def statistics(path: Path) -> None:
        np.savez(path, statistics=np.arange(30).reshape(3, 10))

    def statistics_used(path: Path) -> object:
        task: Any = SimpleNamespace(out=str(path).removesuffix(".npz"))
        return statistics_in([task]).tolist()

    def vectors_used(path: Path) -> object:
        model = toy.model(features=["rule_id", "shape", "lexical"])
        vector = read_vector(str(path), model.symbols)
        best = [model.with_weights(vector).translate(sentence) for sentence in SENTENCES]
        return len(vector.as_weights()), [(one.text, one.score) for one in best]

    add("vectors.npz", vectors, vectors_used)
    add("batch.npz", batch, batch_used)
    add("statistics.npz", statistics, statistics_used)
    add("lists", lists, lists_used)


def _add_texts(add: Callable[..., None], toy: Toy) -> None:
    def bitext(path: Path) -> object:
        read = read_bitext(path, path)
        return read.num_pairs, read.src.word.tolist(), read_text(path)[:3]

    def alignment(path: Path) -> object:
        read, text = read_alignment(path), read_bitext(toy.src, toy.tgt)
        check_alignment(read, text.src.length, text.tgt.length, path)
        return read.link.tolist()

    def aligner(path: Path) -> None:
        align_files(toy.src, toy.tgt, toy.folder / "out.align", AlignConfig(model="hmm"), model=path)

    def aligned(path: Path) -> object:
        links = read_aligner(path).links(read_bitext(toy.src, toy.tgt))
        return links.fwd.tolist(), links.rev.tolist()

    def weights(path: Path) -> object:
        return sorted(read_weights(path, Symbols()).items()), toy.translations(
            weights=path, features=["rule_id"]
        )

    def config(path: Path) -> object:
        return map_paths(read_config(path), lambda _, value: Path(value).name)

    def segments(path: Path) -> object:
        return [parse_segment(line, "in", number) for number, line in enumerate(read_text(path), 1)]

    def compounds(path: Path) -> object:
        read, words = Compounds.read(path), ["die", "haustür", "im", "katzenhaus", "kindeshaus"]
        return [read.line(words, kind) for kind in ("best", "marked", "lattice")]

    def lattices(path: Path) -> object:
        model, found = toy.model(), list[object]()
        for number, line in enumerate(read_text(path), 1):
            best = model.translate(parse_input(line, "in", number))
            found.append((best.text, best.score, best.alignment))
        return found

    def terms(path: Path) -> object:
        model = toy.model().with_terms(path, hard=True)
        best = [model.translate(line) for line in SENTENCES]
        return [one.text for one in best]

    def hypotheses(path: Path) -> object:
        return read_hypotheses(path, 2, "reference"), read_candidates(path)

    def json_lines(path: Path) -> None:
        record = {"id": "1", "translations": [{"text": "a house", "score": -1.5, "features": {"Glue": 1.0}}]}
        path.write_text(2 * (json.dumps(record) + "\n"))

    def state(path: Path) -> None:
        output = ResumableOutput(path.parent / "out", "settings")
        output.write(b"block\n", b"origin")
        output.close()

    def resumed(path: Path) -> object:
        folder = path.parent
        (folder / "out.part").write_bytes(b"block\n")
        output = ResumableOutput(folder / "out", "settings", resume=True)
        output.close()
        return output.done

    def manifest(path: Path) -> None:
        found = Manifest(path.parent)
        found.stages["index"] = {"made_by": "0.1", "settings": {"a": 1}, "inputs": {}, "outputs": {"x": "12"}}
        found.write()

    def log(path: Path) -> object:
        return read_log(path.parent)

    def package(path: Path) -> None:
        files = {"grammar": [{"path": str(toy.cdec)}], "lm": [{"path": str(toy.arpa)}]}
        model = config_of(files | {"weights": {"path": str(toy.weights)}})
        write_package(model, path, name="toy", licence="CC0", card="# toy\n")

    def unpacked(path: Path) -> object:
        with tempfile.TemporaryDirectory() as folder:
            extract_package(read_package(path), Path(folder, "model"))
            model = hiero.load(Path(folder, "model", PACKED_CONFIG))
            return [(one.text, one.score) for one in map(model.translate, SENTENCES)]

    add("package.hiero", package, unpacked)
    add("bitext.gz", lambda path: path.write_bytes(gzip.compress(toy.src.read_bytes(), mtime=0)), bitext)
    add("aligner", aligner, aligned)
    add("align.txt", lambda path: shutil.copy(toy.align, path), alignment)
    add("weights.txt", _content(WEIGHTS), weights)
    add("bins.txt", _content(BINS), lambda path: (repr(read_bins(path)), toy.translations(bins=path)))
    add("config.yaml", _content(CONFIG), config)
    add("segments.txt", _content(SEGMENTS), segments)
    add("lattices.txt", _content(LATTICES), lattices)
    add("compounds.txt", _content(COMPOUNDS), compounds)
    add("kbest.txt", _content(KBEST), hypotheses)
    add("hypotheses.jsonl", json_lines, hypotheses)
    add("terms.tsv", _content(TERMS), terms)
    add("truecase.txt", _content("Haus\nBerlin\niPhone\n"), lambda path: Recaser.read(path).forms)
    add("out.part.state", state, resumed)
    add("manifest.json", manifest, lambda path: sorted(Manifest(path.parent).stages))
    add("log.jsonl", _content('{"epoch": 1, "bleu": 30.5}\n{"epoch": 2}\n'), log)


KINDS = (
    *("cdec.gz", "moses.gz", "grammar", "arpa.gz", "probing.binary", "lm", "index"),
    *("trie.binary", "qatrie.binary", "phrases.gz"),
    *("store.binary", "examples", "classifier", "lexicalised", "forest.json", "forest.json.gz", "forest.npz"),
    *("vectors.npz", "batch.npz", "statistics.npz", "lists", "bitext.gz", "aligner", "align.txt"),
    *(
        "weights.txt",
        "bins.txt",
        "config.yaml",
        "segments.txt",
        "lattices.txt",
        "compounds.txt",
        "kbest.txt",
        "hypotheses.jsonl",
    ),
    *("truecase.txt", "out.part.state", "manifest.json", "log.jsonl", "features.json.gz", "features.npz"),
    *("package.hiero", "state.npz", "pairs.jsonl", "terms.tsv"),
)


def campaign(kinds: list[str], cases: int, minutes: float, seed: int) -> dict[str, Counts]:
    """Mutants of each kind: ``cases`` of them, and further ones while there are minutes."""
    deadline, total = time.monotonic() + 60 * minutes, dict[str, Counts]()
    with tempfile.TemporaryDirectory() as name:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HieroWarning)  # of weights that not every model has
            made = specimens(Path(name) / "specimens", set(kinds))
        begin = 0
        while begin == 0 or time.monotonic() < deadline:
            for kind_name, (kind, path) in made.items():
                seeds = seed, KINDS.index(kind_name)
                counts = run_mutants(kind, path, Path(name) / "mutants", seeds, range(begin, begin + cases))
                known = total.setdefault(kind_name, Counts())
                known.outcomes += counts.outcomes
                known.bad += counts.bad
                known.seconds += counts.seconds
            begin += cases
    return total


def table(total: dict[str, Counts]) -> str:
    """The outcomes by kind."""
    columns = [*OUTCOMES, *BAD]
    rows = [["kind", "mutants", *columns, "s"]]
    for name, counts in total.items():
        numbers = [counts.outcomes.total(), *(counts.outcomes[column] for column in columns)]
        rows.append([name, *map(str, numbers), f"{counts.seconds:.1f}"])
    everything = sum((counts.outcomes for counts in total.values()), Counter[str]())
    numbers = [everything.total(), *(everything[column] for column in columns)]
    rows.append(["all", *map(str, numbers), f"{sum(counts.seconds for counts in total.values()):.1f}"])
    rows[1:1] = [["---"] * len(rows[0])]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", nargs="*", metavar="KIND", help=f"by default all: {', '.join(KINDS)}")
    parser.add_argument("--cases", type=int, default=800, help="mutants of each kind, at least")
    parser.add_argument("--minutes", type=float, default=0.0, help="go on for so long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print counts as JSON, and append nothing")
    args = parser.parse_args()
    if wrong := set(args.kind) - set(KINDS):
        parser.error(f"{', '.join(sorted(wrong))}: expected {', '.join(KINDS)}")
    total = campaign(args.kind or list(KINDS), args.cases, args.minutes, args.seed)
    if args.json:
        found = {n: {**c.outcomes, "seconds": c.seconds, "errors": c.bad} for n, c in total.items()}
        print(json.dumps(found))
        return 0
    print(table(total))
    for name, counts in total.items():
        for number, outcome, detail in counts.bad[:10]:
            print(f"{name} --seed {args.seed}, mutant {number}: {outcome}: {detail}")
    append_result(
        "fuzz",
        {"seed": args.seed} | {name: dict(counts.outcomes) for name, counts in total.items()},
    )
    return 1 if any(counts.bad for counts in total.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
