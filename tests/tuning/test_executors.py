"""Executors give the same weights, also when processes die."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import hiero
from hiero.config.model import bundled_names, bundled_path
from hiero.core.errors import HieroError
from hiero.core.parallel import stop
from hiero.core.progress import SilentProgress
from hiero.jobs.tune import tune
from hiero.tuning.executors import DaskExecutor, open_executor, run_all
from hiero.tuning.report import read_log
from tests.worlds.tune import Tuning

LEARN = {"algorithm": "itermixsgd", "shards": 3, "epochs": 2, "kbest": 20}
KILLS = int(os.environ.get("HIERO_KILLS", "3"))


def nothing() -> None:
    pass


# ---- tasks


def fail(number: int) -> None:
    if number == 2:
        raise HieroError("two")
    time.sleep(0.01)


def record_and_die(folder: Path, number: int) -> None:
    """Record the call; the first call for task 1 kills its process."""
    if number == 1 and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    (folder / f"{number}").touch()


def die(number: int) -> None:
    os._exit(1)


def test_the_first_error_ends_the_run() -> None:
    with pytest.raises(HieroError, match=r"^two$"), open_executor("threads", 2) as current:
        run_all(current, fail, range(100), nothing)
    assert not stop.is_set()


@pytest.mark.slow
@pytest.mark.heavy
def test_a_process_that_dies(tmp_path: Path) -> None:
    with open_executor("processes", 2) as current:
        run_all(current, partial(record_and_die, tmp_path), range(5), nothing)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2", "3", "4", "died"]


@pytest.mark.slow
@pytest.mark.heavy
def test_processes_that_always_die() -> None:
    message = r"^2 tasks failed: the process died 3 times \(out of memory\?\)$"
    with pytest.raises(HieroError, match=message), open_executor("processes", 1) as current:
        run_all(current, die, range(2), nothing)


def test_files_of_tasks_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hiero.tuning.executors.SLOW_FILES", 0.1)
    with (
        pytest.raises(HieroError, match="do all workers share a file system"),
        open_executor("threads", 1) as pool,
    ):
        run_all(pool, lambda task: str(tmp_path / "nowhere"), [0], nothing)


# ---- weights


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Tuning:
    world = Tuning(tmp_path_factory.mktemp("same"))
    world.set(features={"templates": ["rule_id", "shape"]}, tune=LEARN)
    world.out = world.folder / "threads1"
    tune(world.path, world.out)
    return world


def learnt(world: Tuning, name: str, executor: str, workers: int) -> dict[str, bytes]:
    place = Tuning.__new__(Tuning)
    place.out = world.folder / name
    tuned = tune(world.path, place.out, executor=executor, workers=workers)
    assert bleu(tuned.log) == bleu(read_log(world.out))
    return place.answer()


def bleu(log: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The exact scores on the held-out set."""
    named = ("choose_bleu", "choose_brevity", "report_bleu", "report_brevity", "held_out_bleu")
    return [{name: record[name] for name in named} for record in log]


@pytest.mark.parametrize("workers", [2, 3])
def test_threads(world: Tuning, workers: int) -> None:
    assert learnt(world, f"threads{workers}", "threads", workers) == world.answer()


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_processes(world: Tuning, workers: int) -> None:
    assert learnt(world, f"processes{workers}", "processes", workers) == world.answer()


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize("algorithm", ["mira", "adagrad", "pro", "kbmira", "mert"])
def test_every_kind_of_algorithm(tmp_path: Path, algorithm: str) -> None:
    world = Tuning(tmp_path / "exp")
    world.set(tune={"algorithm": algorithm, "shards": 3, "epochs": 2, "kbest": 10, "rate": None})
    tune(world.path, world.out)
    for workers in (2, 3):
        assert learnt(world, f"threads{workers}", "threads", workers) == world.answer()
    assert learnt(world, "processes2", "processes", 2) == world.answer()


# ---- Dask


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(Path(hiero.__file__).parents[1])}


class Cluster:
    """A scheduler and two worker processes."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self.file = folder / "scheduler.json"
        self._stack = stack
        self.scheduler = self._start(
            "scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(self.file)
        )
        options = ("--scheduler-file", str(self.file), "--nthreads", "1", "--no-nanny", "--no-dashboard")
        options = (*options, "--local-directory", str(folder))
        self.workers = [self._start("worker", *options) for _ in range(2)]

    def _start(self, kind: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options]
        process = subprocess.Popen(
            command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    @property
    def executor(self) -> str:
        from distributed import Client

        with Client(scheduler_file=str(self.file), set_as_default=False) as client:
            client.wait_for_workers(len(self.workers), timeout=120)
            address: str = client.scheduler.address
        return f"dask://{address.removeprefix('tcp://')}"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    pytest.importorskip("distributed", reason="Dask is not installed")
    with contextlib.ExitStack() as stack:
        yield Cluster(tmp_path, stack)


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")  # Dask's own
def test_dask(world: Tuning, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = cluster.executor
    assert learnt(world, "dask", executor, 2) == world.answer()
    # From far away, everything that is read must be named from the root.
    monkeypatch.chdir(world.folder)
    tuned = tune("exp.yaml", "relative", executor=executor)
    assert tuned.weights.read_bytes() == world.answer()["weights.gz"]


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
def test_a_worker_dies_in_the_middle(tmp_path: Path, cluster: Cluster) -> None:
    world = Tuning(tmp_path / "exp")
    lines = world.lines("dev.src") * 60
    world.file("dev.src", lines)
    world.file("dev.ref", [line.upper() for line in lines])
    world.set(tune=LEARN | {"shards": 4, "epochs": 2, "rate": 0.01})
    tune(world.path, world.out)
    executor, killed = cluster.executor, []

    class WorkerKiller(SilentProgress):
        """Kills a worker after some sentences of an epoch."""

        def part(self, what: str) -> None:
            self.what = what

        def advance(self, steps: int, note: str = "") -> None:
            if self.what == "epoch 2 of 2: learn" and not killed:
                killed.append(self.what)
                cluster.workers[0].kill()

    other = world.folder / "murder"
    tune(world.path, other, executor=executor, progress=WorkerKiller())
    assert killed
    assert cluster.workers[0].wait(10) == -signal.SIGKILL
    expected, world.out = world.answer(), other
    assert world.answer() == expected


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
def test_the_scheduler_dies(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed")
    world = Tuning(tmp_path / "exp")
    lines = world.lines("dev.src") * 60
    world.file("dev.src", lines)
    world.file("dev.ref", [line.upper() for line in lines])
    world.set(tune=LEARN | {"shards": 4, "epochs": 9, "rate": 0.01})
    with contextlib.ExitStack() as stack:
        cluster = Cluster(tmp_path, stack)
        executor = cluster.executor

        class SchedulerKiller(SilentProgress):
            def part(self, what: str) -> None:
                if what == "epoch 2 of 9: learn":
                    cluster.scheduler.kill()

        capfd.readouterr()
        message = r"the connection to the Dask scheduler at .* is lost \(--resume continues the run\)$"
        with pytest.raises(HieroError, match=message):
            tune(world.path, world.out, executor=executor, progress=SchedulerKiller())
        assert capfd.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
def test_all_workers_die(tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hiero.tuning.executors.PATIENCE", 1.0)
    monkeypatch.setattr("hiero.tuning.executors.CHECK_SECONDS", 0.2)
    world = Tuning(tmp_path / "exp")
    world.set(tune=LEARN | {"epochs": 9})
    said: list[str] = []
    executor = cluster.executor

    class WorkersKiller(SilentProgress):
        def part(self, what: str) -> None:
            if what == "epoch 2 of 9: learn":
                for worker in cluster.workers:
                    worker.kill()

        def say(self, text: str) -> None:
            said.append(text)

    message = r"^executor: the Dask cluster at .* has had no workers for 1 s \(--resume continues the run\)$"
    with pytest.raises(HieroError, match=message):
        tune(world.path, world.out, executor=executor, progress=WorkersKiller())
    assert [text for text in said if "no workers left; waiting up to 1 s for another" in text] == said[-1:]


class LonelyClient:
    """A client of a cluster; the workers are gone at some times."""

    def __init__(self, workers: list[int]) -> None:
        self.workers = workers

    def get_executor(self, **_: object) -> LonelyClient:
        return self

    def submit(self, *_: object) -> Future[None]:
        return Future()

    def nthreads(self) -> dict[str, int]:
        if self.workers[0] < 0:
            raise OSError("the scheduler is gone")
        return {} if self.workers.pop(0) == 0 else {"tcp": 1}


def test_no_workers_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now: list[float] = [0.0]
    said: list[str] = []
    monkeypatch.setattr("hiero.tuning.executors.POLL_INTERVAL", 0)
    monkeypatch.setattr("hiero.tuning.executors.time", SimpleNamespace(monotonic=lambda: now[0]))

    class Notes(SilentProgress):
        def say(self, text: str) -> None:
            said.append(text)

    def pass_time() -> None:
        now[0] += 200

    client = LonelyClient([1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0])
    executor = DaskExecutor(client, "host:1", Notes())
    with pytest.raises(
        HieroError, match=r"host:1 has had no workers for 600 s \(--resume continues the run\)"
    ):
        run_all(lambda: executor, fail, [0], pass_time)
    assert said == 2 * ["the Dask cluster at host:1 has no workers left; waiting up to 600 s for another"]
    assert client.workers == [0]
    # Without a scheduler, that is the error.
    client.workers = [-1]
    for _ in range(10):
        pass_time()
        executor.check_workers()


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
def test_no_scheduler(world: Tuning, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed")
    monkeypatch.setattr("hiero.tuning.executors.SECONDS", 1)
    with pytest.raises(HieroError, match=r"^executor: no Dask scheduler answers at 127.0.0.1:9 "):
        tune(world.path, world.folder / "none", executor="dask://127.0.0.1:9")


# ---- killed, and gone on with


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_killed_at_random_moments(tmp_path: Path, executor: str) -> None:
    """HIERO_KILLS=10 sets the number of kills."""
    config = tmp_path / "exp.yaml"
    for name in bundled_names():
        shutil.copyfile(bundled_path(name), tmp_path / name)
    config.write_text(
        "data:\n"
        "  dev: {source: demo.dev.de, references: demo.dev.en}\n"
        "  devtest: {source: demo.devtest.de, references: demo.devtest.en}\n"
        "grammar: [path: demo.grammar.gz]\n"
        "lm: [path: demo.lm.arpa.gz]\n"
        "features: {templates: [rule_id, shape]}\n"
    )
    options = "--algorithm itermixsgd --shards 4 --epochs 5 --kbest 50 -j 2 -q --executor"
    command = [
        sys.executable,
        "-m",
        "hiero.cli.main",
        "tune",
        "-c",
        str(config),
        *options.split(),
        executor,
        "-o",
    ]

    def start(out: str, *more: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*command, str(tmp_path / out), *more], env=environment(), stdout=subprocess.DEVNULL
        )

    begun = time.monotonic()
    assert start("whole").wait() == 0
    seconds = time.monotonic() - begun
    draw, kills, runs = random.Random(1), 0, 0
    while kills < KILLS:
        runs += 1
        out, finished = f"killed{runs}", False
        while not finished and kills < KILLS:
            process = start(out, "--resume")
            try:
                finished = process.wait(draw.uniform(0.2, 0.6) * seconds) == 0
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                kills += 1
        assert start(out, "--resume").wait() == 0
        for path in (tmp_path / "whole").glob("weights*.gz"):
            assert (tmp_path / out / path.name).read_bytes() == path.read_bytes(), (runs, kills, path.name)
