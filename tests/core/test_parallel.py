"""Worker processes end with the process that started them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hiero

SCRIPT = """\
import time

def work(kind):
    print("begun", flush=True)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        time.sleep(60 if kind == "sleep" else 0)

if __name__ == "__main__":
    from hiero.core.parallel import process_pools

    with process_pools(2) as current:
        print("started", flush=True)
        tasks = [current().submit(work, kind) for kind in ("sleep", "compute")]
        for task in tasks:
            task.result()
"""


def running(session: int) -> list[int]:
    """The processes of a session, without those that only wait for their parent to notice their end."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, _, _, its_session, *_ = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(its_session) == session and state != "Z":
            found.append(int(name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("moment", ["started", "at work", "idle"])
def test_processes_end_after_kill_9(tmp_path: Path, moment: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("60", "0") if moment == "idle" else SCRIPT)
    if moment == "idle":
        script.write_text(script.read_text() + "        time.sleep(60)\n")
    process = subprocess.Popen(
        [sys.executable, str(script)],
        env=os.environ | {"PYTHONPATH": str(Path(hiero.__file__).parents[1])},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    with process, process.stdout:
        for _ in range(1 if moment == "started" else 3):
            process.stdout.readline()
        time.sleep(0.2)
        assert len(running(process.pid)) >= 3
        process.kill()
        process.wait()
        killed = time.monotonic()
        while running(process.pid):
            assert time.monotonic() - killed < 2  # 0.2 s at most, on a machine that is not busy
            time.sleep(0.01)
