"""Small models to serve, services of them, and a client."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from hiero.server.config import ServerConfig
from hiero.server.models import load_served, specs_of
from hiero.server.run import address_of, listen, make_server
from hiero.server.service import Service

RULES = """\
[X] ||| das haus ||| the house ||| p=0.2 q=1 ||| 0-0 1-1
[X] ||| das haus ||| the home ||| p=0.9 q=1 ||| 0-0 1-1
[X] ||| haus ||| house ||| p=0.3 ||| 0-0
[X] ||| [X,1] ist alt ||| [1] is old ||| p=0.4 ||| 1-1 2-2
[X] ||| ist ||| is ||| p=0.5 ||| 0-0
[X] ||| alt ||| old ||| p=0.6 ||| 0-0
[X] ||| alt ||| ancient ||| p=1.1 ||| 0-0
[X] ||| . ||| . ||| p=0.1 ||| 0-0
"""
WEIGHTS = "p -1\nq -0.5\nPassThrough -3\nGlue -0.3\nWordPenalty -0.1\n"
OTHER = "[X] ||| la maison ||| the house ||| p=0.2 ||| 0-0 1-1\n"
PREP = "prep: {source_language: de, target_language: en, lowercase: true}\n"


def write_models(folder: Path) -> dict[str, Path]:
    """Configurations by the names of models: of words, of other words, and of raw text."""
    folder.mkdir(exist_ok=True)
    paths = {}
    for name, rules, more in (("words", RULES, ""), ("other", OTHER, ""), ("raw", RULES, PREP)):
        (folder / f"{name}.grammar").write_text(rules)
        (folder / f"{name}.weights").write_text(WEIGHTS if name != "other" else "p -1\nPassThrough -3\n")
        paths[name] = folder / f"{name}.yaml"
        paths[name].write_text(
            f"grammar: [{{path: {name}.grammar}}]\nweights: {{path: {name}.weights}}\n{more}"
        )
    return paths


@contextmanager
def running_service(models: list[str], threads: int = 2, **settings: Any) -> Iterator[Service]:
    """A service with threads, which end with the block."""
    config = ServerConfig(**settings)

    def report(note: str) -> None:
        raise AssertionError(note)

    served = [
        load_served(spec, report, strict=False, most_new_words=config.max_new_words)
        for spec in specs_of(models)
    ]
    service = Service(served, config, threads)
    try:
        yield service
    finally:
        service.end(10)


@contextmanager
def running_server(service: Service) -> Iterator[Client]:
    """A server in a thread, at a free port of this machine."""
    server = make_server(service)
    with listen(ServerConfig(port=0)) as listening:
        place = address_of(listening)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
        thread.start()
        try:
            while not server.started:
                time.sleep(0.005)
            yield Client(place)
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()


@contextmanager
def served(models: list[str], threads: int = 2, **settings: Any) -> Iterator[Client]:
    """A client of a service in this process."""
    with running_service(models, threads, **settings) as service, running_server(service) as client:
        yield client


@dataclass
class Answer:
    status: int
    headers: dict[str, str]  # by names in lower case
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()

    def json(self) -> Any:
        return json.loads(self.content)


class Client:
    """A client of a server: a connection for each request."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.host, self.port = str(urlsplit(place).hostname), int(urlsplit(place).port or 0)

    def ask(
        self, method: str, path: str, content: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        try:
            connection.request(method, path, content, dict(headers or {}))
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        return self.ask("GET", path, None, headers)

    def post(
        self,
        path: str,
        content: bytes = b"",
        *,
        kind: str | None = None,
        data: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        **asked: Any,
    ) -> Answer:
        """Send bytes, a form (``data``), or JSON (``json``)."""
        if data is not None:
            content, kind = urlencode(data, doseq=True).encode(), "application/x-www-form-urlencoded"
        elif "json" in asked:
            content, kind = json.dumps(asked["json"]).encode(), "application/json"
        query = f"?{urlencode(params)}" if params else ""
        return self.ask("POST", path + query, content, {} if kind is None else {"content-type": kind})
