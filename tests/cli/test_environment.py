"""``hiero env``."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import hiero
from hiero.cli.main import main
from hiero.core.jit import CACHE_DIRECTORY


def test_environment(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("HIERO_TRACEBACK", "1")
    monkeypatch.setenv("SECRET_TOKEN", "hidden")
    assert main(["env", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["hiero"] == hiero.__version__
    assert found["packages"]["numpy"] == np.__version__
    assert found["variables"]["HIERO_TRACEBACK"] == "1"
    assert "SECRET_TOKEN" not in found["variables"]
    assert found["kernels"] == CACHE_DIRECTORY
    assert 1 <= found["cores"] <= (os.cpu_count() or 1)
    assert main(["env"]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["numpy"] == np.__version__
    assert lines["HIERO_TRACEBACK"] == "1"


def test_commands_use_one_thread_of_blas() -> None:
    show = "import os, sys; from hiero.cli.main import main; main(['--version'])"
    code = f"try:\n    exec({show!r})\nfinally:\n    import os; print(os.environ['OPENBLAS_NUM_THREADS'])"
    for given, expected in (({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")):
        environment = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment | given, capture_output=True, text=True
        )
        assert done.stdout.splitlines()[-1] == expected
