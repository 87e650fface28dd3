"""Compiling: machine code only for what Python calls, and the note about it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hiero.core import progress
from hiero.core.jit import kernel, leaf, prefetch
from tests.conftest import INTERPRETED

compiled_only = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")

PROGRAM = """
import numpy as np
from hiero.core.array_kernels import grown, longer
from hiero.core.jit import compile_timer
if REVERSED:
    print(longer(np.arange(3), 5)[:3], grown(np.arange(3), 4)[:3])
else:
    print(grown(np.arange(3), 4)[:3], longer(np.arange(3), 5)[:3])
print(compile_timer.seconds > 0)
"""


@leaf
def twice(number):  # type: ignore[no-untyped-def]
    return 2 * number


@kernel
def summed(array, places):  # type: ignore[no-untyped-def]
    total = 0
    for place in places:
        prefetch(array, place + 1)
        prefetch(array, place - 1_000_000)
        total += array[place // array.shape[1], place % array.shape[1]]
    return total


@kernel
def filled(number, size):  # type: ignore[no-untyped-def]
    return np.full(size, twice(number), np.int64)


@kernel
def total(number, size):  # type: ignore[no-untyped-def]
    values = filled(number, size)
    return values.sum()


def test_a_function_called_from_a_kernel_can_be_called_from_python_afterwards() -> None:
    assert total(3, 4) == 24
    assert filled(3, 4).tolist() == [6, 6, 6, 6]
    assert filled(3, 4).tolist() == [6, 6, 6, 6]
    assert twice(5) == 10
    assert twice(0.5) == 1.0
    assert total(3, 4) == 24


@compiled_only
def test_what_only_kernels_call_has_no_machine_code() -> None:
    @kernel
    def inner(number):  # type: ignore[no-untyped-def]
        return number + 1

    @kernel
    def outer(number):  # type: ignore[no-untyped-def]
        return inner(number)

    assert outer(1) == 2
    (result,) = inner.overloads.values()
    assert not result.library._is_emitted
    (result,) = outer.overloads.values()
    assert result.library._is_emitted


@compiled_only
def test_kernels_in_functions_that_users_compile() -> None:
    import numba

    assert numba.njit(lambda number: total(number, 2) + filled(number, 2)[0])(1) == 6


@pytest.mark.once
@compiled_only
def test_scipy_is_loaded_when_it_is_used() -> None:
    program = (
        "import sys, numba, numpy as np\n"
        "from hiero.core.array_kernels import longer\n"
        "longer(np.arange(3), 5)\n"
        "print('scipy.linalg' in sys.modules)\n"
        "a = np.eye(3)\n"
        "print(numba.njit(lambda a: np.dot(a, a) + np.linalg.inv(a))(a)[0, 0])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n2.0\n"


@pytest.mark.once
@compiled_only
@pytest.mark.parametrize("reverse", [False, True])
def test_the_cache_has_what_python_calls(tmp_path: Path, reverse: bool) -> None:
    """Also where a kernel is first compiled for another kernel."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    program = PROGRAM.replace("REVERSED", str(reverse))
    for compiles in (True, False):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
        )
        assert done.stdout == f"[0 1 2] [0 1 2]\n{compiles}\n"


@pytest.mark.parametrize(("wanted", "shown"), [(True, progress.COMPILING + "\n"), (False, ""), (None, "")])
def test_the_note_about_compiling(
    wanted: bool | None, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_announces_compiling", wanted)
    progress.show_compiling()
    assert capsys.readouterr().err == shown


def test_the_note_in_an_interactive_session(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_announces_compiling", None)
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    progress.show_compiling()
    assert capsys.readouterr().err == progress.COMPILING + "\n"


def test_loading_ahead_changes_nothing() -> None:
    assert summed(np.arange(6, dtype=np.int32).reshape(2, 3), np.array([5, 0, 3, 5])) == 13
