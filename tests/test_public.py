"""The names, and the command, as a user meets them."""

from __future__ import annotations

import inspect
import os
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import hiero
from hiero import HieroError
from hiero.cli.main import parser

PROJECT = Path(__file__).parents[1]
NAMES = {
    "Adapter",
    "Aligner",
    "Derivation",
    "Forest",
    "HieroError",
    "LanguageModel",
    "Lattice",
    "Model",
    "RawText",
    "SearchConfig",
    "Statistics",
    "Weights",
    "align",
    "edge_feature",
    "estimate_lm",
    "evaluate",
    "extract",
    "index",
    "load",
    "lookup",
    "report",
    "rule_feature",
    "tune",
}


def run(*command: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(PROJECT), "COLUMNS": "200"}
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True)


# ---- names


def test_names() -> None:
    assert set(hiero.__all__) == NAMES
    assert set(dir(hiero)) == NAMES | {"__version__"}
    for name in NAMES:
        assert inspect.getdoc(getattr(hiero, name)), name
    assert callable(hiero.tune)


def test_help_describes_the_names_alone() -> None:
    text = pydoc.plain(pydoc.render_doc(hiero))
    assert "hiero.load()" in text
    for name in NAMES:
        assert name in text
    assert "TYPE_CHECKING" not in text


IMPORT = """
import sys, time
start = time.process_time()
import pytest

import hiero
dir(hiero)
print(time.process_time() - start, any(name.startswith(("numba", "numpy")) for name in sys.modules))
"""


def test_import_is_fast_and_loads_no_numba() -> None:
    seconds, loaded = run("-c", IMPORT).stdout.split()
    assert float(seconds) < 0.15
    assert loaded == "False"


# ---- the command


def test_python_m_hiero_is_the_command() -> None:
    done = run("-m", "hiero", "--version")
    assert (done.returncode, done.stdout) == (0, f"hiero {hiero.__version__}\n")
    done = run("-m", "hiero", "nothing")
    assert done.returncode == 2
    assert done.stderr.startswith("hiero: ")


def test_without_arguments_help_is_printed() -> None:
    done = run("-m", "hiero")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == run("-m", "hiero", "--help").stdout
    assert parser().format_usage().split()[1] == "hiero"


# ---- messages


def test_a_missing_file_is_reported_before_missing_weights(tmp_path: Path) -> None:
    with pytest.raises(HieroError, match="nope: found no such file"):
        hiero.load(rules=["[X] ||| a ||| b ||| p=1"], lm=tmp_path / "nope")


def test_mistakes_in_arguments_of_load(tmp_path: Path) -> None:
    rule = "[X] ||| a ||| b ||| p=1"
    with pytest.raises(HieroError, match=r"load: unknown argument 'gramar'; did you mean 'grammar'\?"):
        hiero.load(gramar="x")
    with pytest.raises(HieroError, match="weights: found 3, expected a path, or names and numbers"):
        hiero.load(rules=[rule], weights=3)  # type: ignore[arg-type]
    # One rule and one feature need no list.
    model = hiero.load(rules=rule, weights={"p": 1.0}, features="shape")
    assert model.translate("a").text == "b"
    assert model.features.names == ["shape"]
