"""``hiero warm-up``: compile all kernels in advance."""

from __future__ import annotations

import argparse
import contextlib
import io
import struct
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from hiero.cli.options import add_command, add_quiet
from hiero.core.errors import HieroError
from hiero.core.progress import CommandProgress

DESCRIPTION = """\
Compile the kernels of all commands, by running each of them on a few sentences. They are kept in
~/.cache/hiero (XDG_CACHE_HOME moves it), for this version of hiero and this kind of processor; afterwards no
command compiles anything. It takes some minutes, once. Without it, each command compiles what it needs when
it is first used."""
EPILOG = """\
in a container image, on a processor of the same kind as that of the hosts:
  RUN hiero warm-up"""

DATA = """\
data:
  train: {source: train.de, target: train.en, alignment: train.align}
  dev: {source: dev.de, target: dev.en}
  test: {source: test.de, target: test.en}
"""
FOUND_ON_THE_FLY = "{index: train.idx}"
SPARSE = (
    "rule_id, source_bigram, target_bigram, shape, lexical, insertion_pair, source_word_penalty, arity, "
    "span_size, orientation, distortion, bigram"
)
MODEL = """\
grammar: [%s]
lm: [{path: %s}]
features: {%s}
search: {pop_limit: 10}
"""
TUNE = "tune: {on: dev, held_out: test, epochs: 2, kbest: 20, start: uniform, %s}\n"
MOST_LINKED = 200  # words of a sentence, each linked with each: more pairs than fit in the first table
# Settings that choose between kernels, or between types of their arguments.
TUNINGS = (
    "algorithm: sgd, variant: printed",
    "algorithm: sgd, loss: logistic, metric: nakov, average: sentences",
    "algorithm: iterselsgd, shards: 2, select: 50",
    "algorithm: mira",
    "algorithm: mira, oracle: lu, prediction: cost, metric: previous",
    "algorithm: adagrad",
    "algorithm: adagrad, pairs: multipartite, loss: perceptron",
    "algorithm: pro",
    "algorithm: pro, soft: true, length_deviations: 2",
    "algorithm: kbmira",
    "algorithm: mert",
    "algorithm: mert, forest: true",
)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero warm-up`` with its arguments."""
    command = add_command(subparsers, "warm-up", "compile all kernels in advance", DESCRIPTION, EPILOG)
    add_quiet(command)
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run ``hiero warm-up``; return the exit status."""
    from hiero.core.jit import CACHE_DIRECTORY, compile_timer

    if not CACHE_DIRECTORY:
        raise HieroError(
            "hiero warm-up: compiled kernels cannot be kept: no directory for them can be written"
        )
    started, seconds = time.perf_counter(), compile_timer.seconds
    with (
        tempfile.TemporaryDirectory(prefix="hiero-") as folder,
        CommandProgress("warm-up", quiet=args.quiet) as progress,
    ):
        commands = [line.split() for line in _commands(Path(folder))]
        progress.begin(len(commands) + 1, "compile")
        for command in commands:
            _run_quietly(command, Path(folder))
            progress.advance(1, f"hiero {command[0]}")
        _use_forests()
        _use_larger_tables(Path(folder))
        progress.advance(1)
    if not args.quiet:
        spent = f"{compile_timer.seconds - seconds:.0f} s of {time.perf_counter() - started:.0f} s"
        print(f"hiero: all kernels are compiled ({spent}), in {CACHE_DIRECTORY}", file=sys.stderr)
    return 0


def _run_quietly(command: Sequence[str], folder: Path) -> None:
    from hiero.cli.main import parser

    arguments = [part.replace("@", f"{folder}/") for part in command]
    args = parser().parse_args(arguments)
    output, messages = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(messages):
        code = args.run(args)
    if code:
        raise HieroError(f"hiero warm-up: hiero {' '.join(arguments)}: {messages.getvalue().strip()}")


def _commands(folder: Path) -> Iterator[str]:
    """Write small inputs into a folder, ``@``; the commands that use them, in an order of dependence."""
    _write_texts(folder)
    yield "align -s @train.de -t @train.en -o @train.align --forward @fwd --reverse @rev -j 2"
    yield "align -s @train.de -t @train.en -o @hmm.align --model hmm --save-model @hmm"
    yield "align apply @hmm -s @dev.de -t @dev.en -o @dev.align --scores @scores"
    yield "align -s @dev.de -t @dev.en -o @fertile.align --model fertility --save-model @fertile"
    yield "align apply @fertile -s @dev.de -t @dev.en -o @dev.align --scores @scores"
    yield "align -s @dev.de -t @dev.en -o @likely.align --threshold 0.5"
    for heuristic in ("intersection", "union", "grow-diag", "grow-diag-final"):
        yield f"align -s @dev.de -t @dev.en -o @{heuristic}.align --symmetrize {heuristic}"
    yield "align score @train.align @hmm.align"
    yield "lm estimate --order 3 --discount-fallback -- @train.en @lm.arpa"
    yield "lm estimate --prune 0 0 1 --discount-fallback 0.5 1 1.5 --format compiled -- @train.en @lm"
    yield "lm estimate --order 4 --memory 16 --discount-fallback -- @train.en @longer.arpa"
    yield "lm classes -q --classes 5 @train.en @classes"
    yield "lm interpolate -q @lm.arpa @longer.arpa @mixed.arpa --tune @dev.en"
    yield "lm compile @lm.arpa @lm.compiled"
    yield "lm compile --quantize 4 @lm.arpa @lm.quantised"
    for model in ("lm.arpa", "lm.compiled", "lm.quantised", "lm.binary", "lm.trie"):
        yield f"lm query @{model} @dev.en -o @query"
    yield "index -s @train.de -t @train.en -a @train.align -o @train.idx"
    yield "index -s @train.de -t @train.en -a @train.align -a @hmm.align -o @two.idx"
    yield "index -s @linked.txt -t @linked.txt -a @linked.align -o @linked.idx"
    yield "index --check @train.idx"
    yield "extract -x @train.idx -i @dev.de -o @dev.grammars"
    yield "extract -x @train.idx -i @first.de -o @first.grammars --leave-one-out --leave-out-links"
    yield "extract -x @train.idx -i @first.de -o @first.grammars --leave-one-out --target-counts @targets"
    for name in ("written", "read"):
        yield f"extract -x @train.idx -i @first.de -o @{name}.grammars --store @rules"
    yield "extract -x @train.idx --all -o @grammar.gz -j 2"
    yield "extract -x @train.idx --phrases -o @phrases.gz"
    yield "extract -s @train.de -t @train.en -a @train.align --phrases -o @phrases.gz"
    yield "grammar convert @phrases.gz -o @converted"
    yield "grammar compile @grammar.gz @grammar"
    yield "grammar convert @grammar -o @converted"
    yield "grammar convert @table --format moses -o @converted"
    yield "grammar compile @table --format moses @table.compiled"
    yield "grammar stats @grammar"
    yield "reorder extract -s @train.de -t @train.en -a @train.align -o @examples --held-out @held"
    for learner in ("dual", "primal", "lexicalised"):
        yield f"reorder train @examples -o @{learner} --learner {learner}"
        yield f"reorder eval @{learner} @held -o @report"
    features = "EgivenFCoherent=probability,CountEF=count"
    yield f"bins learn -g @train.idx -i @dev.de --features {features} -o @bins"
    yield f"bins learn -g @grammar -i @dev.de --features {features} -o @bins --overlap 1 --method exact"
    yield from _decoding(folder)
    yield from _tuning(folder)


def _decoding(folder: Path) -> Iterator[str]:
    models = {
        "text": MODEL % ("{path: grammar.gz}", "lm.arpa", ""),
        "compiled": MODEL % ("{path: grammar}", "lm.compiled", ""),
        "index": MODEL % (FOUND_ON_THE_FLY, "lm.compiled", ""),
        "sparse": MODEL % (FOUND_ON_THE_FLY, "lm.compiled", f"templates: [{SPARSE}]"),
        "reordering": MODEL % (FOUND_ON_THE_FLY, "lm.compiled", "reordering: dual"),
        "lexical": MODEL % ("{path: grammar}", "lm.compiled", "reordering: lexicalised"),
        "bins": MODEL % (FOUND_ON_THE_FLY, "lm.compiled", "bins: bins"),
        "wide": MODEL % ("{path: wide}", "lm.compiled", ""),
    }
    for name, model in models.items():
        (folder / f"{name}.yaml").write_text(model + "weights: {path: weights}\n")
        for output in ("text", "cdec --kbest 5", "json --kbest 5 --no-unique"):
            yield f"decode -c @{name}.yaml -i @test.de -o @output.{name} --format {output} --forest @forest"
        if name in ("text", "index"):
            yield f"decode -c @{name}.yaml -i @lattices -o @output --kbest 5"
    yield "decode -c @wide.yaml -i @one.de -o @output --format json --kbest 5"
    yield "decode -c @index.yaml -i @edits -o @output --adapt --aligner @hmm"
    yield "decode -c @sparse.yaml -i @edits -o @output --adapt --aligner @hmm --learner sgd"
    yield "decode -c @sparse.yaml -i @test.de -o @output --format moses --kbest 3 --cdec-names -j 2"
    yield "decode -c @compiled.yaml -i @test.de -o @output --kbest 2000"
    for rule in ("kbest", "forest", "consensus"):
        yield f"decode -c @text.yaml -i @test.de -o @output --mbr {rule} --kbest 3"
    yield "decode -c @compiled.yaml -i @test.de -o @output --hypotheses @output.compiled"
    yield "decode -c @sparse.yaml -i @test.de -o @output --hypotheses @output.sparse"
    yield "decode -c @text.yaml -i @test.de -o @output --format json --confidence --lattice @word-lattices"
    yield "decode -c @text.yaml -i @test.de -o @list --format cdec --kbest 5"
    yield "oracle -i @list -r @test.en -o @scores"
    yield "oracle --text @test.de -c @text.yaml -r @test.en -o @scores"
    yield "rescore -i @list -l B=@lm.arpa --tune @test.en -o @rescored --iterations 1"
    for name in ("compiled", "sparse"):
        yield f"decode -c @{name}.yaml -i @begun -o @output --prefix --pop-limit 10"
    mixed = "-l @lm.arpa -l B=@lm.compiled -g @grammar -g @grammar.gz"
    yield f"decode -c @sparse.yaml -i @test.de -o @output {mixed}"
    yield "decode -c @text.yaml -i @test.de -o @output --pass-through oov --oov drop --no-glue"
    # Quantised models are of another type.
    for name in ("compiled", "sparse"):
        yield f"decode -c @{name}.yaml -l @lm.quantised -i @test.de -o @output"
    yield "decode -c @compiled.yaml -l @lm.quantised -i @begun -o @output --prefix --pop-limit 10"
    yield "decode -c @compiled.yaml -l @lm.quantised -i @test.de -o @output --hypotheses @output.compiled"
    yield "eval @output.text @output.compiled -r @test.en @test.en -o @scores --trials 100"
    yield "eval @output.text -r @test.en -o @scores --test bootstrap --trials 100 --per-segment @segments"


def _tuning(folder: Path) -> Iterator[str]:
    for number, settings in enumerate(TUNINGS):
        for name, features in {"dense": "", "sparse": f"templates: [{SPARSE}]"}.items():
            if name == "sparse" and "mert" in settings:
                continue
            model = MODEL % (FOUND_ON_THE_FLY, "lm.compiled", features)
            (folder / f"tune.{name}.{number}.yaml").write_text(DATA + model + TUNE % settings)
            yield f"tune -c @tune.{name}.{number}.yaml -o @tune.{name}.{number} -q"
    model = MODEL % (FOUND_ON_THE_FLY, "lm.compiled", "bins: bins")
    for pull in ("linear", "monotone", "isotonic"):
        (folder / f"tune.{pull}.yaml").write_text(DATA + model + TUNE % f"algorithm: pro, neighbours: {pull}")
        yield f"tune -c @tune.{pull}.yaml -o @tune.{pull} -q"


def _use_forests() -> None:
    """Call the functions of the Python interface that no command calls."""
    import hiero

    @hiero.rule_feature(per_rule=True)
    def target_words(rule: Any) -> Iterator[tuple[str, float]]:
        yield "TargetWords", float(len(rule.tgt))

    model = hiero.load(features=[target_words])
    forest = model.parse("er hat mir ein buch versprochen .")
    forest.sample(2, seed=1)
    forest.posteriors()
    forest.prune(beam=5.0).kbest(2)
    _ = forest.num_derivations


def _use_larger_tables(folder: Path) -> None:
    """Call what only larger texts than those above need."""
    import numpy as np

    from hiero.alignment.align import pair_index
    from hiero.alignment.pair_kernels import find_pairs_kernel
    from hiero.alignment.pair_tables import sorted_pairs
    from hiero.bitext.corpus import read_bitext
    from hiero.core.arrays import read_only
    from hiero.decoder.kbest_kernels import larger_kbest_search, new_kbest_search
    from hiero.extraction.config import ExtractConfig
    from hiero.extraction.extractor import new_patterns
    from hiero.extraction.growth import new_pattern_counts
    from hiero.extraction.suffix_kernels import locate_frequent_kernel
    from hiero.extraction.table_kernels import rehash_patterns_kernel
    from hiero.lm.external_sort import Sorter
    from hiero.lm.table_kernels import doubled, open_table

    one = read_only(np.array([1, 0], np.int32))
    first = read_only(np.array([0, 1, 2]))
    found = np.array([[0, 0, 1]])
    locate_frequent_kernel(one, read_only(np.array([1, 0], np.int32)), first, one[None, :1], found)
    sorter = Sorter(2, 1, 0, folder, combine=True)
    sorter.add(np.arange(64, dtype=np.uint64).reshape(-1, 2))
    for _ in sorter.blocks():
        pass
    bitext = read_bitext(folder / "dev.de", folder / "dev.en")
    index = pair_index(bitext)
    table = sorted_pairs([index], bitext.src.num_words, bitext.tgt.num_words, 1 << 20, folder)[:2]
    find_pairs_kernel(*table, index.first_pair, index.pair_tgt, np.empty(len(index.pair_tgt), np.int64))
    doubled(open_table(1))
    larger_kbest_search(new_kbest_search(1, 4), 8, 8)
    rehash_patterns_kernel(new_patterns(ExtractConfig()))
    rehash_patterns_kernel(new_pattern_counts(ExtractConfig().max_symbols))


def _write_texts(folder: Path) -> None:
    """The beginning of the texts of the package, a sentence with many links, and a phrase table."""
    from hiero.config.model import bundled_path
    from hiero.core.text import read_lines

    for language in ("de", "en"):
        for name, packed, number in (
            ("train", f"demo.train.{language}.gz", None),  # enough for all tables to grow
            ("first", f"demo.train.{language}.gz", 6),
            ("dev", f"demo.dev.{language}", 6),
            ("test", f"demo.devtest.{language}", 6),
        ):
            lines = islice(read_lines(bundled_path(packed)), number)
            (folder / f"{name}.{language}").write_bytes(b"".join(line + b"\n" for line in lines))
    (folder / "lattices").write_text(
        "((('er',1,1),('sie',2,1),),(('hat',0,1),('*EPS*',1,1),),(('.',0,1),),)\n"
    )
    (folder / "one.de").write_text("er hat mir ein buch .\n")
    (folder / "wide").write_text(  # a rule with more than two gaps
        "[X] ||| [X,1] hat [X,2] ein [X,3] ||| [1] has a [3] [2] ||| EgivenFCoherent=1\n"
    )
    (folder / "begun").write_text("er hat mir ein buch versprochen . ||| he has something\n")
    (folder / "lm.binary").write_bytes(_empty_kenlm())
    (folder / "lm.trie").write_bytes(_small_trie())
    (folder / "edits").write_text("er hat ein buch . ||| he has a book .\nein haus ||| a house\n")
    words = range(MOST_LINKED)
    (folder / "linked.txt").write_text(" ".join(map(str, words)) + "\n")
    (folder / "linked.align").write_text(" ".join(f"{i}-{j}" for i in words for j in words) + "\n")
    (folder / "table").write_text(
        "ein [X][X] [X] ||| a [X][X] [X] ||| 0.5 0.4 0.3 0.2 ||| 0-0 1-1 ||| 2 3 1\n"
    )
    names = (
        "EgivenFCoherent",
        "SampleCountF",
        "CountEF",
        "MaxLexFgivenE",
        "LanguageModel",
        "Glue",
        "WordPenalty",
    )
    (folder / "weights").write_text("".join(f"{name} -0.1\n" for name in names))


def _small_trie() -> bytes:
    """A trie of order 2 with one 2-gram, <s> </s>."""
    from hiero.lm.kenlm import CHECK, CHECKED, FIRST_TRIE, FIXED, SPARE_BYTES, TRIE_VERSION, WORD_ENTRY

    head = CHECK.pack(*CHECKED) + FIXED.pack(2, 1.5, FIRST_TRIE, 1, TRIE_VERSION) + struct.pack("<QQ", 3, 1)
    head = head.ljust(-(-len(head) // 8) * 8, b"\0") + bytes(4 * 8)
    words = b"".join(struct.pack("<ffq", -1.0, -0.0, child) for child in (0, 0, 0, 1))
    packed = (1).to_bytes(-(-2 * (2 + 31) // 8), "little") + bytes(SPARE_BYTES)
    return head + words + bytes(WORD_ENTRY.itemsize) + packed + b"<unk>\0<s>\0</s>\0"


def _empty_kenlm() -> bytes:
    """A probing model of order 2 without n-grams, but for its three words."""
    from hiero.lm.kenlm import CHECK, CHECKED, FIXED, LONGEST_BUCKET, UNIGRAM, WORD_BUCKET

    head = CHECK.pack(*CHECKED) + FIXED.pack(2, 1.5, 0, 1, 0) + struct.pack("<QQ", 3, 1)
    head = head.ljust(-(-len(head) // 8) * 8, b"\0") + struct.pack("<II", 0, 3)
    tables = 4 * WORD_BUCKET + 4 * UNIGRAM + 2 * LONGEST_BUCKET
    return head + bytes(tables) + b"<unk>\0<s>\0</s>\0"
