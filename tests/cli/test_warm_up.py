"""``hiero warm-up``: afterwards every kernel that Python calls has machine code, and nothing is compiled.

It fills the cache of the machine, and proves something if that is nearly empty: `.ci/run` runs it first.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from hiero.cli.warm_up import _empty_kenlm
from hiero.core.symbols import find_all
from hiero.lm.kenlm import read_kenlm
from tests.conftest import INTERPRETED, PROJECT
from tests.test_architecture import SOURCES, kernels

DEMO = PROJECT / "grammars"
# Compiles all kernels, and writes the given names of those that have no machine code.
WARM_UP = """
import sys
from hiero.cli.main import main
from hiero.core.jit import has_machine_code
assert main(["warm-up"]) == 0
for name in sys.argv[1:]:
    module, _, function = name.rpartition(".")
    if module not in sys.modules or not has_machine_code(getattr(sys.modules[module], function)):
        print("missed", name, file=sys.stderr)
"""
# Runs commands, each with the seconds that it compiles.
PROGRAM = """
import sys
from hiero.cli.main import main
from hiero.core.jit import compile_timer
for command in sys.argv[1:]:
    before = compile_timer.seconds
    assert main(command.split()) == 0, command
    print(compile_timer.seconds - before, command, file=sys.stderr)
"""
COMMANDS = (
    "align -s {demo}/demo.train.de.gz -t {demo}/demo.train.en.gz -o train.align -q",
    "align -s dev.de -t dev.en -o dev.align --model hmm -q",
    "lm estimate -q --order 4 --discount-fallback -- {demo}/demo.train.en.gz lm.arpa.gz",
    "lm estimate -q --order 2 --discount-fallback --format compiled -- {demo}/demo.train.en.gz lm",
    "lm query lm dev.en -o query",
    "index -s {demo}/demo.train.de.gz -t {demo}/demo.train.en.gz -a train.align -o train.idx -q",
    "extract -x train.idx -i dev.de -o grammars -q",
    "extract -x train.idx --all -o grammar.gz -q",
    "grammar compile grammar.gz grammar",
    "decode -i dev.de -o output -q",
    "decode -i dev.de -o output --kbest 20 --features rule_id,source_bigram,shape -q -j 2",
    "decode -i dev.de -o output -g train.idx -l lm -w {demo}/demo.weights --format json --kbest 3 -q",
    "decode -i dev.de -o output -g grammar -l lm.arpa.gz -w {demo}/demo.weights --forest forests -q",
    "tune -c tune.yaml -o sgd --epochs 1 -q",
    "tune -c tune.yaml -o mira --algorithm mira --features rule_id --epochs 1 -q -j 2",
    "tune -c tune.yaml -o pro --algorithm pro --epochs 1 -q",
    "tune -c tune.yaml -o mert --algorithm mert --epochs 1 -q",
    "eval output -r dev.en -q",
)
TUNE = "data:\n  dev: {source: dev.de, target: dev.en}\n  devtest: {source: dev.de, target: dev.en}\n"


def called_from_python() -> set[tuple[str, str]]:
    """Modules and names of all kernels that are called by anything but kernels."""
    decorated = {(f"hiero.{'.'.join(module)}", function.name): function for module, function in kernels()}
    functions = set(decorated.values())
    found = set()
    for module, tree in SOURCES.items():
        own = ".".join(("hiero", *module))
        known = {name: (place, name) for place, name in decorated if place == own}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                known |= {one.asname or one.name: (node.module, one.name) for one in node.names}
        stack: list[ast.AST] = [tree]
        while stack:
            node = stack.pop()
            if node in functions:
                continue
            if isinstance(node, ast.Name):
                found.add(known.get(node.id, ("", "")))
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found.add((".".join(known.get(node.value.id, ())), node.attr))
            stack += ast.iter_child_nodes(node)
    return found & set(decorated)


def test_kernels_that_python_calls_are_found() -> None:
    found = called_from_python()
    assert ("hiero.lm.kenlm", "insert_kernel") not in found
    # Imported by name, by module, and called beside its definition.
    assert ("hiero.lm.table_kernels", "insert_kernel") in found
    assert ("hiero.lm.table_kernels", "copy_ngrams_kernel") in found
    assert any(module == "hiero.lm.arpa_kernels" for module, _ in found)
    # Called by a kernel.
    assert ("hiero.features.index_kernels", "_content_length") not in found
    assert len(found) > 100


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_nothing_is_compiled_afterwards(tmp_path: Path) -> None:
    for language in ("de", "en"):
        lines = (DEMO / f"demo.dev.{language}").read_text(encoding="utf-8").splitlines(keepends=True)
        (tmp_path / f"dev.{language}").write_text("".join(lines[20:28]), encoding="utf-8")
    (tmp_path / "tune.yaml").write_text(TUNE)

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    messages = run("-c", WARM_UP, *sorted(".".join(name) for name in called_from_python()))
    assert "all kernels are compiled" in messages
    assert [line for line in messages.splitlines() if line.startswith("missed")] == []
    shown = run("-c", PROGRAM, *(command.format(demo=DEMO) for command in COMMANDS))
    spent = [line.split(maxsplit=1) for line in shown.splitlines() if line[:1].isdigit()]
    assert len(spent) == len(COMMANDS)
    assert [command for seconds, command in spent if float(seconds) > 0] == []


def test_an_empty_model_of_kenlm(tmp_path: Path) -> None:
    (tmp_path / "lm").write_bytes(_empty_kenlm())
    model, words = read_kenlm(tmp_path / "lm").ngrams()
    assert (len(model.unigram), model.order) == (3, 2)
    assert find_all(words, [b"<unk>", b"<s>", b"</s>"]).tolist() == [0, 1, 2]
