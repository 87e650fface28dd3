"""Running the service: its socket, its connections, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from hiero.core.errors import HieroError, os_message
from hiero.server.app import make_app
from hiero.server.config import ServerConfig
from hiero.server.service import Service

BACKLOG = 2048
MOST_HEADER = 16 << 10  # bytes
KEEP_ALIVE = 20  # seconds between two requests of a connection


def listen(config: ServerConfig) -> socket.socket:
    """A socket that is bound to the address, and accepts connections once the server runs."""
    try:
        places = socket.getaddrinfo(
            config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, place = places[0]
        found = socket.socket(family, kind, protocol)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(place)
        except BaseException:
            found.close()
            raise
    except OSError as error:
        problem = os_message(error)
        raise HieroError(f"{config.host}:{config.port}: cannot listen: {problem} (--host, --port)") from None
    return found


def address_of(listening: socket.socket) -> str:
    """The address of a socket for a browser."""
    host, port = listening.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "localhost"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


class Connection(H11Protocol):
    """A connection whose client must send the header of a request in time.

    uvicorn only limits the time between requests.
    """

    timeout_header = 10.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before or (self.cycle is not None and not self.cycle.response_complete):
            self._stop_waiting()
        elif self._timer is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._timer = self.loop.call_later(self.timeout_header, self._close)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self.transport.close()


class HTTPServer(uvicorn.Server):
    """A server that ends its requests when a signal comes, and returns; a second one ends it at once."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self.ended_by: int | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals in the main thread. Not uvicorn's, which raises them again at the end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._service.is_ending = True
        if self.ended_by is not None:
            self.force_exit = True
        self.ended_by = self.ended_by or sig
        self.should_exit = True


def make_server(service: Service) -> HTTPServer:
    """The server of a service."""
    config = service.config
    connection: Any = type("TimedConnection", (Connection,), {"timeout_header": config.read_timeout})
    settings = uvicorn.Config(
        make_app(service),
        http=connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=config.max_connections,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=max(1, round(config.grace)),
        h11_max_incomplete_event_size=MOST_HEADER,
        backlog=BACKLOG,
    )
    return HTTPServer(settings, service)


def serve(service: Service, listening: socket.socket, started: Callable[[], None]) -> int | None:
    """Answer requests until a signal comes, which is returned."""
    server = make_server(service)

    async def run() -> None:
        ready = asyncio.ensure_future(_until_started(server, started))
        try:
            await server.serve(sockets=[listening])
            # Requests that were not finished in time tell their clients.
            if left := list(server.server_state.tasks):
                await asyncio.wait(left, timeout=1.0)
        finally:
            ready.cancel()

    try:
        asyncio.run(run())
    finally:
        service.end(0.0 if server.force_exit else 1.0)
    return server.ended_by


async def _until_started(server: uvicorn.Server, started: Callable[[], None]) -> None:
    while not server.started:
        await asyncio.sleep(0.01)
    started()


@contextlib.contextmanager
def shown_log(level: int) -> Iterator[None]:
    """Write the log of the server to standard error, as it is now, until the end of the block."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    levels = {"hiero.server": level, "uvicorn": max(level, logging.WARNING)}
    loggers = [logging.getLogger(name) for name in levels]
    before = [(logger.handlers, logger.propagate, logger.level) for logger in loggers]
    for logger in loggers:
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(levels[logger.name])
    try:
        yield
    finally:
        for logger, (handlers, propagate, old) in zip(loggers, before, strict=True):
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(old)
