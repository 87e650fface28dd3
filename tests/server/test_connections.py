"""Clients that are slow, leave, or send what is no request; and the end of the server."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the server needs it")

import hiero
from hiero.server.service import Service
from tests.worlds.server import Answer, Client, running_server, running_service, write_models

LINE = "das haus ist alt ."
POST = "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_models(tmp_path_factory.mktemp("models"))["words"]


@pytest.fixture(scope="module")
def service(model: Path) -> Iterator[Service]:
    settings = {"read_timeout": 0.4, "max_body": 2_000, "max_connections": 12, "timeout": 5.0}
    with running_service([f"de-en={model}"], **settings) as service:
        yield service


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[Client]:
    with running_server(service) as client:
        yield client


@contextlib.contextmanager
def connection(client: Client) -> Iterator[socket.socket]:
    with socket.create_connection((client.host, client.port), timeout=20) as found:
        yield found


def received(stream: socket.socket) -> bytes:
    """What comes until the server closes the connection."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := stream.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def until(condition: Callable[[], object]) -> bool:
    """Wait for a condition."""
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(condition())


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX-"])
def test_headers_must_arrive_in_time(client: Client, sent: bytes) -> None:
    with connection(client) as stream:
        stream.sendall(sent)
        began = time.monotonic()
        assert received(stream) == b""
        assert time.monotonic() - began < 10


def test_a_header_byte_by_byte_gains_no_time(client: Client) -> None:
    with connection(client) as stream:
        began = time.monotonic()
        with contextlib.suppress(OSError):
            for byte in b"GET /health HTTP/1.1\r\nX-Slow: " + b"x" * 500:
                stream.sendall(bytes([byte]))
                time.sleep(0.02)
        assert time.monotonic() - began < 5


def test_headers_of_later_requests_must_arrive_in_time(client: Client) -> None:
    with connection(client) as stream:
        stream.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        found = b""
        while b'{"status":"ok"}' not in found:
            found += stream.recv(1 << 16)
        stream.sendall(b"GET /health HT")
        assert received(stream) == b""


def test_content_must_arrive_in_time(client: Client) -> None:
    for path in ("/api/translate", "/api/stream"):
        with connection(client) as stream:
            stream.sendall(POST.format(path=path, size=100).encode() + b'{"text"')
            answer = received(stream)
            assert b" 408 " in answer.splitlines()[0]
            assert b"did not arrive within 0.4 seconds" in answer


def test_too_much_content(client: Client) -> None:
    answer = client.post("/api/translate", b"x" * 100_000, kind="application/json")
    assert (answer.status, answer.json()["error"]) == (413, "the content has more than 2,000 bytes")
    with connection(client) as stream:  # of unknown size
        stream.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        stream.sendall(b"bb8\r\n" + b"x" * 3000 + b"\r\n")
        assert b" 413 " in received(stream).splitlines()[0]
    with connection(client) as stream:  # a header
        stream.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 40_000)
        assert received(stream)[:12] in (b"HTTP/1.1 400", b"")


@pytest.mark.parametrize(
    "sent", [b"\x16\x03\x01\x00\xa5", b"\x00" * 50 + b"\r\n\r\n", b"HELO x\r\n\r\n", b"GET\r\n\r\n"]
)
def test_what_is_no_request(client: Client, sent: bytes) -> None:
    with connection(client) as stream:
        stream.sendall(sent)
        assert received(stream)[:12] in (b"HTTP/1.1 400", b"")
    assert client.get("/health").status == 200


def test_abandoned_requests_are_not_translated(
    client: Client, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, tried = threading.Event(), list[str]()

    def wait(self: object, line: str, *_: object) -> dict[str, object]:
        tried.append(line)
        gate.wait(20)
        return {"source": [], "translations": []}

    monkeypatch.setattr("hiero.server.answers.Translator.line", wait)
    body = json.dumps({"text": "\n".join(map(str, range(20)))})
    for path in ("/api/translate", "/api/stream"):
        with connection(client) as stream:
            content = body if path == "/api/translate" else "a\n" * 20
            head = POST.format(path=path, size=len(content))
            stream.sendall(head.encode() + content.encode())
            assert until(lambda: service.workers.num_waiting >= 14)
        assert until(lambda: service.workers.num_waiting == 0)
    gate.set()
    assert until(lambda: service.workers.num_busy == 0)
    assert len(tried) == 2  # one in each thread
    assert 'hiero_rejected_total{reason="abandoned"}' in service.metrics_text()


def test_connections_are_limited(client: Client) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(12):
            stack.enter_context(connection(client))
        assert client.get("/health").status == 503
    assert until(lambda: client.get("/health").status == 200)


def test_streams_are_answered_line_by_line(client: Client) -> None:
    """An answer comes before the next line is sent."""
    with connection(client) as stream:
        stream.sendall(
            b"POST /api/stream?format=text HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for line, translation in ((b"haus\n", b"house\n"), (b"alt\n", b"old\n")):
            stream.sendall(b"%x\r\n%b\r\n" % (len(line), line))
            found = b""
            while translation not in found:
                found += stream.recv(1 << 16)
        stream.sendall(b"0\r\n\r\n")
        while not found.endswith(b"0\r\n\r\n"):
            found += stream.recv(1 << 16)


def test_a_broken_stream_of_text_has_no_end(client: Client) -> None:
    """A message in it would look like a translation."""
    with connection(client) as stream:
        stream.sendall(
            b"POST /api/stream?format=text HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\nhaus\n"
        )
        found = received(stream)
        assert b" 200 " in found.splitlines()[0]
        assert found.endswith(b"house\n\r\n")


# ---- the process


@contextlib.contextmanager
def process(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], Client]]:
    """``hiero serve`` and a client of it."""
    environment = os.environ | {"PYTHONPATH": str(Path(hiero.__file__).parents[1])}
    command = [sys.executable, "-m", "hiero", "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as started:
        try:
            assert started.stderr is not None
            for line in started.stderr:
                if line.startswith("hiero: serving"):
                    break
            yield started, Client(line.split(" at ")[1].split()[0])
        finally:
            started.kill()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_requests_first(model: Path, number: int, code: int) -> None:
    with process("--model", f"de-en={model}", "--max-words", "20000", "--max-chars", "1000000") as (
        server,
        client,
    ):
        answers: list[int] = []

        def ask() -> None:
            answers.append(client.post("/api/translate", json={"text": "das haus ist alt . " * 2000}).status)

        asking = threading.Thread(target=ask)
        asking.start()
        assert until(lambda: "hiero_busy_threads 1" in client.get("/metrics").text or answers)
        server.send_signal(number)
        asking.join(30)
        assert answers == [200]
        assert server.wait(30) == code
        assert server.stderr is not None
        assert server.stderr.read().endswith("hiero: stopped\n")
        with pytest.raises(ConnectionRefusedError):
            client.get("/health")


@pytest.mark.slow
def test_requests_that_take_longer_are_refused(model: Path) -> None:
    limits = ("--max-words", "300000", "--max-chars", "1000000", "--grace", "1")
    with process("--model", f"de-en={model}", *limits) as (server, client):
        answers: list[Answer] = []

        def ask() -> None:
            asked = {"text": "das haus ist alt . " * 45_000, "derivation": True, "alignment": True}
            answers.append(client.post("/api/translate", json=asked))

        asking = threading.Thread(target=ask)
        asking.start()
        assert until(lambda: "hiero_busy_threads 1" in client.get("/metrics").text)
        server.send_signal(signal.SIGTERM)
        asking.join(30)
        assert (answers[0].status, answers[0].json()) == (503, {"error": "the server ends"})
        assert server.wait(30) == 0
        assert server.stderr is not None
        assert "Traceback" not in server.stderr.read()


@pytest.mark.slow
def test_two_servers_cannot_have_one_port(model: Path) -> None:
    with process("-c", str(model)) as (_, client):
        command = [sys.executable, "-m", "hiero", "serve", "-c", str(model), "--port", str(client.port)]
        environment = os.environ | {"PYTHONPATH": str(Path(hiero.__file__).parents[1])}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 1
        expected = f"127.0.0.1:{client.port}: cannot listen: address already in use (--host, --port)\n"
        assert done.stderr == expected
