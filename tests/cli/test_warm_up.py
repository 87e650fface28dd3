"""``hiero warm-up``: afterwards nothing is compiled.

It fills the cache of the machine, and proves something if that is nearly empty: `.ci/run` runs it first.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import INTERPRETED, PROJECT

DEMO = PROJECT / "grammars"
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

    assert "all kernels are compiled" in run("-m", "hiero", "warm-up")
    shown = run("-c", PROGRAM, *(command.format(demo=DEMO) for command in COMMANDS))
    spent = [line.split(maxsplit=1) for line in shown.splitlines() if line[:1].isdigit()]
    assert len(spent) == len(COMMANDS)
    assert [command for seconds, command in spent if float(seconds) > 0] == []
