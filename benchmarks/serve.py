"""Load on ``hiero serve``: ``python -m benchmarks.serve [--requests 20000] [--clients 1 2 8] [-j 2]``.

Starts a server of the bundled model at a free port of this machine, and checks that its translations are
those of ``hiero decode``, byte for byte. Then clients, each with a connection that it keeps, send a line a
request and wait for the answer: requests a second, and the median and the 99th percentile of the time of an
answer, for each number of clients. At last, 8 clients send --requests requests, of which one in 50 is
malformed, too large or abandoned; after the first tenth of them the memory of the server must not grow by
more than --growth MB. Clients and server share the cores.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import hiero
from benchmarks.results import append_result
from benchmarks.soak import growth, resident_mb, short_lines
from hiero.config.model import bundled_path
from hiero.core.text import read_text

HEADERS = {"content-type": "application/json"}
SAMPLES = 100
BAD_EVERY = 50


class Target:
    """A running server."""

    def __init__(self, process: subprocess.Popen[str], place: str) -> None:
        self.process, parts = process, urlsplit(place)
        self.host, self.port = str(parts.hostname), int(parts.port or 0)

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=60)

    def ask(self, path: str, content: bytes) -> bytes:
        """The answer to a request of its own connection."""
        with contextlib.closing(self.connect()) as connection:
            connection.request("POST", path, content, HEADERS if path != "/api/stream?format=text" else {})
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            return answer.read()


@contextlib.contextmanager
def running(options: Sequence[str]) -> Iterator[Target]:
    """``hiero serve`` in another process, ended by SIGTERM."""
    environment = os.environ | {"PYTHONPATH": str(Path(hiero.__file__).parents[1])}
    command = [sys.executable, "-m", "hiero", "serve", "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        try:
            place = next(line.split(" at ")[1].split()[0] for line in process.stderr if " at http" in line)
            # The log of requests must be read, or the server would wait.
            reader = threading.Thread(target=process.stderr.read, daemon=True)
            reader.start()
            yield Target(process, place)
            process.terminate()
            assert process.wait(60) == 0, "the server did not end by itself"
        finally:
            process.kill()


def compare(target: Target, lines: Sequence[str], options: Sequence[str] = ()) -> int:
    """Check that translations are those of ``hiero decode``; the number of lines."""
    text = "".join(f"{line}\n" for line in lines).encode()
    environment = os.environ | {"PYTHONPATH": str(Path(hiero.__file__).parents[1])}
    command = [sys.executable, "-m", "hiero", "decode", "-q", *options]
    expected = subprocess.run(command, input=text, capture_output=True, env=environment, check=True).stdout
    assert target.ask("/api/stream?format=text", text) == expected, "a stream differs from hiero decode"
    for start in range(0, len(lines), 100):
        part = list(lines[start : start + 100])
        asked = json.dumps({"q": part, "source": "de", "target": "en"}).encode()
        found = json.loads(target.ask("/translate", asked))["translatedText"]
        assert found == expected.decode().split("\n")[start : start + len(part)], "/translate differs"
    return len(lines)


def ask_all(target: Target, contents: Sequence[bytes]) -> list[float]:
    """Send requests one after the other through one connection; the seconds of each."""
    seconds = []
    with contextlib.closing(target.connect()) as connection:
        for content in contents:
            began = time.perf_counter()
            connection.request("POST", "/api/translate", content, HEADERS)
            answer = connection.getresponse()
            found = answer.read()
            seconds.append(time.perf_counter() - began)
            assert answer.status == 200, found
    return seconds


def load(target: Target, lines: Sequence[str], clients: int, requests: int) -> dict[str, float]:
    """Requests a second and times of answers, in milliseconds."""
    contents = [json.dumps({"text": line}).encode() for line in lines]
    parts = [
        list(itertools.islice(itertools.cycle(contents), at, at + requests // clients))
        for at in range(clients)
    ]
    with ThreadPoolExecutor(clients) as pool:
        began = time.perf_counter()
        seconds = sorted(itertools.chain(*pool.map(lambda part: ask_all(target, part), parts)))
        wall = time.perf_counter() - began
    return {
        "requests/s": len(seconds) / wall,
        "p50 ms": 1e3 * seconds[len(seconds) // 2],
        "p99 ms": 1e3 * seconds[len(seconds) * 99 // 100],
    }


def misbehave(target: Target, number: int) -> None:
    """Send a request that is malformed or too large, or leave before its answer."""
    kind = number % 3
    if kind < 2:
        content = b'{"text": [[[' if kind == 0 else b" " * (2 << 20)
        with contextlib.closing(target.connect()) as connection, contextlib.suppress(OSError):
            connection.request("POST", "/api/translate", content, HEADERS)
            assert connection.getresponse().status == (400 if kind == 0 else 413)
        return
    content = json.dumps({"text": ["er hat ein buch ."] * 50, "kbest": 50}).encode()
    head = f"POST /api/translate HTTP/1.1\r\nHost: x\r\nContent-Length: {len(content)}\r\n\r\n"
    with socket.create_connection((target.host, target.port), timeout=60) as stream:
        stream.sendall(head.encode() + content)


def soak(target: Target, lines: Sequence[str], clients: int, requests: int) -> list[float]:
    """The memory of the server in MB, at times when equal numbers of requests were sent."""
    numbered = enumerate(short_lines(lines, requests), 1)
    drawing, samples, every = threading.Lock(), list[float](), max(1, requests // SAMPLES)

    def work(_: int) -> None:
        with contextlib.closing(target.connect()) as connection:
            while True:
                with drawing:
                    number, line = next(numbered, (0, ""))
                    if number and number % every == 0:
                        samples.append(resident_mb(target.process.pid))
                if not number:
                    return
                if number % BAD_EVERY == 0:
                    misbehave(target, number // BAD_EVERY)
                    continue
                content = {
                    "text": line,
                    "kbest": 5,
                    "alignment": True,
                    "derivation": True,
                    "confidence": True,
                }
                connection.request("POST", "/api/translate", json.dumps(content).encode(), HEADERS)
                answer = connection.getresponse()
                found = answer.read()
                assert answer.status == 200, found

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(work, range(clients)))
    return samples


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--each", type=int, default=2000, help="requests for each number of clients")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 2, 8])
    parser.add_argument("-j", "--threads", type=int, default=2, help="of the server")
    parser.add_argument("--growth", type=float, default=16.0, metavar="MB")
    args = parser.parse_args()
    lines = read_text(bundled_path("demo.test.de"))
    with running(["-j", str(args.threads)]) as target:
        print(f"{compare(target, lines)} lines: translations equal those of hiero decode")
        ask_all(target, [b'{"text": "a"}'] * 50)
        figures: dict[str, object] = {"threads": args.threads, "each": args.each, "requests": args.requests}
        for clients in args.clients:
            row = load(target, lines, clients, args.each)
            print(f"{clients} clients: " + ", ".join(f"{name} {value:.1f}" for name, value in row.items()))
            figures |= {f"{clients} clients, {name}": value for name, value in row.items()}
        began = time.perf_counter()
        samples = soak(target, lines, 8, args.requests)
        wall, grown = time.perf_counter() - began, growth(samples)
        figures |= {"begin MB": samples[len(samples) // 10], "end MB": samples[-1], "growth MB": grown}
        print(
            f"{args.requests} requests of 8 clients in {wall:.1f} s: "
            f"{figures['begin MB']:.1f} MB, then at most {grown:.1f} MB more"
        )
        assert grown <= args.growth, f"memory has grown by {grown:.1f} MB"
    append_result("serve", figures)


if __name__ == "__main__":
    main()
