"""``hiero completion``."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hiero.cli.main import COMMANDS, main


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("hiero ", set(COMMANDS)),
        ("hiero lo", {"lookup"}),
        ("hiero lm ", {"classes", "estimate", "compile", "interpolate", "query"}),
        ("hiero decode --pop", {"--pop-limit"}),
        ("hiero decode --search ", {"coarse_to_fine", "cube"}),
        ("hiero eval ho", {"home.txt"}),
    ],
)
def test_bash(tmp_path: Path, line: str, expected: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    (tmp_path / "home.txt").touch()
    words = line.split(" ")
    ask = (
        "source ./script; COMP_WORDS=("
        + " ".join(f"'{word}'" for word in words)
        + f"); COMP_CWORD={len(words) - 1}; "
        f"_shtab_hiero hiero '{words[-1]}' '{words[-2]}'; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, cwd=tmp_path)
    assert done.stderr == ""
    found = {word.strip() for word in done.stdout.splitlines()}
    assert expected <= found
    assert line == "hiero " or found <= {*expected, "-h", "--help"}


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_other_shells(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "warm-up" in capsys.readouterr().out


def test_unknown_shell(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["completion", "fish"])
    assert "invalid choice: 'fish'" in capsys.readouterr().err
