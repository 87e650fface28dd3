"""``hiero align``: word alignments of a bitext and their error rate."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hiero.alignment.config import OF_MODELS, AlignConfig
from hiero.cli.options import (
    add_command,
    add_files,
    add_quiet,
    add_settings,
    add_temporary,
    add_threads,
    at_least,
    flag_of,
    overrides,
    replaced,
)
from hiero.core.errors import FormatError, UsageError
from hiero.core.progress import CommandProgress

DESCRIPTION = """\
Align the words of a bitext, without supervision. A model is trained in each direction: IBM model 2 with a
prior that favours the diagonal, as in fast_align, an HMM initialised by it (better, twice the time), or an
HMM with fertilities whose links are sampled, initialised by the HMM (better still, five times the time). The
links of both directions are combined: a line for each sentence pair, i-j for each link, source position
first, from 0. The result does not depend on the number of threads.

--scores writes a line for each sentence pair: the mean log-probability of its words given the other side
(nan if one is empty), a tab, and the posterior of each link, the geometric mean of both directions.
--threshold links by posteriors. --save-model keeps the trained model; hiero align apply MODEL aligns other
text with it. hiero align score HYP GOLD compares an alignment with a gold standard. The entries of a
--dictionary are learnt from like sentence pairs; they count in the perplexities, and get no links."""
EPILOG = """\
examples:
  hiero align -s train.de -t train.en -o train.align.gz -j 4
  hiero align -s train.de -t train.en -o train.align --model hmm --forward train.fwd --reverse train.rev
  hiero align -s train.de -t train.en -o train.align --model hmm --save-model de-en.aligner
  hiero align apply de-en.aligner -s new.de -t new.en -o new.align -j 4
  hiero align score dev.align dev.gold"""
APPLY_DESCRIPTION = """\
Align the words of a bitext by a model that hiero align --save-model has kept. The text is read piece by
piece, so memory does not depend on its length. Sentence pairs of the training text get the links that they
had; with the model fertility some differ, since in training no link counts for itself. Words that the model
does not know are linked to unknown words and by their position."""
SCORE_DESCRIPTION = """\
Print the alignment error rate (AER), precision and recall of an alignment. In GOLD, i-j or i-j:s is a sure
link, i?j or i-j:p a possible one. With A the links of HYP, S the sure ones and P all of GOLD:

  AER = 1 - (|A and S| + |A and P|) / (|A| + |S|), precision = |A and P| / |A|, recall = |A and S| / |S|"""
MIN_MEMORY = 100  # MB
AS_TRAINED = dict.fromkeys(("symmetrize", "threshold"), "default: as in training")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero align`` with its subcommands."""
    command = add_command(subparsers, "align", "align words, score alignments", DESCRIPTION, EPILOG)
    add_texts(command)
    command.add_argument("--save-model", metavar="DIR", help="keep the trained model, for hiero align apply")
    add_settings(command, AlignConfig)
    group = command.add_argument_group("resources")
    text = (
        "memory for pairs of words that occur together; if they might need more, the bitext is worked on in "
        f"pieces, with temporary files and the same result; {MIN_MEMORY} or more (default: no limit)"
    )
    group.add_argument("--memory", metavar="MB", type=at_least(MIN_MEMORY), help=text)
    add_temporary(group)
    add_threads(group)
    add_quiet(command)
    add_files(command, "-s -t --dictionary", "-o --forward --reverse --scores --save-model")
    commands = command.add_subparsers(dest="align_command", metavar="apply | score")
    apply = add_command(commands, "apply", "align other text by a trained model", APPLY_DESCRIPTION)
    apply.add_argument("trained", metavar="MODEL", help="directory written by hiero align --save-model")
    add_texts(apply)
    add_settings(apply, AlignConfig, ["symmetrize", "threshold"], defaults=AS_TRAINED)
    add_threads(apply)
    add_quiet(apply)
    add_files(apply, "MODEL -s -t", "-o --forward --reverse --scores")
    score = add_command(commands, "score", "compare an alignment with a gold standard", SCORE_DESCRIPTION)
    score.add_argument("hypothesis", metavar="HYP", type=Path)
    score.add_argument("gold", metavar="GOLD", type=Path)
    command.set_defaults(run=run)


def add_texts(command: argparse.ArgumentParser) -> None:
    """Add the arguments of the files of a bitext and of its links."""
    add = command.add_argument
    add("-s", "--source", metavar="SRC", help="source side, a sentence a line; plain or gz")
    add("-t", "--target", metavar="TGT", help="target side, with the same number of lines")
    add("-o", "--output", metavar="OUT", default="-", help="default: standard output; .gz compresses")
    add("--forward", metavar="FILE", help="also write the links of target words to source words")
    add("--reverse", metavar="FILE", help="also write the links of source words to target words")
    add("--scores", metavar="FILE", help="also write the score of each pair and of each of its links")


def run(args: argparse.Namespace) -> int:
    """Run ``hiero align``; return the exit status."""
    if args.align_command == "score":
        return _score(args.hypothesis, args.gold)
    for flag, value in (("-s", args.source), ("-t", args.target)):
        if value is None:
            raise UsageError(f"argument {flag}: the {'source' if flag == '-s' else 'target'} text is missing")
    if args.source == args.target == "-":
        raise UsageError("argument -t: standard input (-) can be read only once")
    config = _config(args)

    # Imported after the command line is checked, since numba is slow to load.
    from hiero.alignment.files import align_files, apply_files
    from hiero.alignment.model import read_model

    directions = {name: path for name in ("forward", "reverse") if (path := getattr(args, name))}
    files = (args.source, args.target, args.output)
    common: dict[str, Any] = {"directions": directions, "scores": args.scores, "threads": args.threads}
    with CommandProgress("align", quiet=args.quiet) as progress:
        if args.align_command == "apply":
            given = overrides(args, AlignConfig)
            method, threshold = given.get("symmetrize"), given.get("threshold")
            model = read_model(args.trained)
            summary = apply_files(
                model, *files, method=method, threshold=threshold, **common, progress=progress
            )
            note = str(summary)
        else:
            common |= {"memory": (args.memory or 0) * 1_000_000, "folder": args.temp}
            saved = args.save_model
            note = str(align_files(*files, config, model=saved, **common, progress=progress))
    progress.say(note)
    return 0


def _config(args: argparse.Namespace) -> AlignConfig:
    config = replaced(AlignConfig(), args)
    given = overrides(args, AlignConfig)
    if given.get("threshold") and "symmetrize" in given:
        raise UsageError("argument --threshold: cannot be combined with --symmetrize")
    for name in given:
        if (models := OF_MODELS.get(name)) and config.model not in models:
            raise UsageError(f"argument {flag_of(AlignConfig, name)}: requires --model {' or '.join(models)}")
        if name == "dictionary_weight" and config.dictionary is None:
            raise UsageError(f"argument {flag_of(AlignConfig, name)}: requires --dictionary")
    return config


def _score(hypothesis: Path, gold: Path) -> int:
    from hiero.bitext.alignments import read_alignment, score_alignment

    found, expected = read_alignment(hypothesis), read_alignment(gold, possible=True)
    if found.num_pairs != expected.num_pairs:
        raise FormatError(
            hypothesis,
            min(found.num_pairs, expected.num_pairs) + 1,
            found="the end of the file" if found.num_pairs < expected.num_pairs else "another line",
            expected=f"{expected.num_pairs} lines, as in {gold}",
        )
    score = score_alignment(found, expected)
    print(f"AER {score.error_rate:.4f}")
    print(f"precision {score.precision:.4f}")
    print(f"recall {score.recall:.4f}")
    print(f"links {score.num_links}")
    print(f"sure {score.num_sure}")
    print(f"possible {score.num_gold - score.num_sure}")
    return 0
