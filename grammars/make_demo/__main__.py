"""Write the bitext of the bundled model, and install the models trained on it.

``python -m grammars.make_demo [FOLDER]`` writes the bitext, by default into ``grammars/``. ``hiero run
configs/demo.yaml`` trains models on it in ``demo.run``, and ``python -m grammars.make_demo --install
demo.run`` copies them.
"""

from __future__ import annotations

import argparse
import gzip
import io
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from grammars.make_demo.sentences import FREE, sentence
from grammars.make_demo.trees import Node, Rng, add_noise, find_leaf, leaf, num_leaves, spell

SEED = 7
SIZES = {"train": 4000, "dev": 200, "devtest": 200, "test": 200}
NOISE_RATE = 0.05  # fraction of the training sentences with noise
MAX_WORDS = 25

# Set by hand, on the scale of tuned weights.
WEIGHTS = """\
EgivenFCoherent -0.3
SampleCountF -0.05
CountEF 0.1
MaxLexFgivenE -0.2
MaxLexEgivenF -0.2
IsSingletonF 0.05
IsSingletonFE -0.05
WordPenalty -1.2
LanguageModel 0.6
LanguageModel_OOV -0.5
PassThrough -1
Glue -0.1
"""


class Corpus(NamedTuple):
    train: list[Node]
    dev: list[Node]
    devtest: list[Node]
    test: list[Node]


def draw(rng: Rng) -> Corpus:
    """Draw derivations with distinct source sides, so that no part contains a sentence of another."""
    known = {german for german, _ in FREE}

    def part(name: str) -> list[Node]:
        nodes: list[Node] = []
        while len(nodes) < SIZES[name]:
            node = sentence(rng)
            src = " ".join(spell(node).src)
            if src not in known and len(src.split()) <= MAX_WORDS:
                known.add(src)
                nodes.append(node)
        return nodes

    clean, dev, devtest = part("train"), part("dev"), part("devtest")
    wrong_leaves = leaves(clean)
    train = [add_noise(node, rng, wrong_leaves) if rng.chance(NOISE_RATE) else node for node in clean]
    free = [leaf(german, english) for german, english in FREE]
    train += [rng.zipf(free) for _ in range(SIZES["train"] // 50)]
    return Corpus(train, dev, devtest, part("test"))


def leaves(nodes: Iterable[Node]) -> list[Node]:
    """Leaves for wrong translations: one from the middle of each derivation."""
    return [find_leaf(node, num_leaves(node) // 2) for node in nodes]


def files() -> Iterator[tuple[str, str]]:
    """Name and uncompressed text of every file."""
    corpus = draw(Rng(SEED))
    pairs = {part: [spell(node) for node in getattr(corpus, part)] for part in SIZES}
    for part, suffix in (("train", ".gz"), ("dev", ""), ("devtest", ""), ("test", "")):
        yield f"demo.{part}.de{suffix}", "".join(f"{' '.join(pair.src)}\n" for pair in pairs[part])
        yield f"demo.{part}.en{suffix}", "".join(f"{' '.join(pair.tgt)}\n" for pair in pairs[part])
    links = (" ".join(f"{i}-{j}" for i, j in pair.links) for pair in pairs["train"])
    yield "demo.train.align.gz", "".join(f"{line}\n" for line in links)
    yield "demo.weights", WEIGHTS


def pack(text: str) -> bytes:
    """Compress by gzip without time and name, so that the bytes are the same in every run."""
    buffer = io.BytesIO()
    with gzip.GzipFile("", "wb", 9, buffer, mtime=0) as stream:
        stream.write(text.encode())
    return buffer.getvalue()


# Files of a run of configs/demo.yaml, and their names here.
TRAINED = {"grammar.gz": "demo.grammar.gz", "LanguageModel.arpa.gz": "demo.lm.arpa.gz"}


def install(run: Path, folder: Path) -> None:
    """Copy the models of a run."""
    for made, name in TRAINED.items():
        shutil.copyfile(run / made, folder / name)
        print(f"{name}: {(folder / name).stat().st_size} bytes")


def write(folder: Path) -> None:
    """Write the bitext."""
    for name, text in files():
        data = pack(text) if name.endswith(".gz") else text.encode()
        (folder / name).write_bytes(data)
        print(f"{name}: {text.count(chr(10))} lines, {len(data)} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m grammars.make_demo", description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--install", metavar="RUNDIR", type=Path, help="take the models made there")
    args = parser.parse_args()
    if args.install is not None:
        install(args.install, args.folder)
    else:
        write(args.folder)


if __name__ == "__main__":
    main()
