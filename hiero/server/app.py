"""The application: addresses, the page, and what is around all answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from hiero.server import api, libre
from hiero.server.openapi import description
from hiero.server.service import Json, Service, Watched, answered, error_response
from hiero.server.stream import stream

PAGE = Path(__file__).with_name("page.html")
# The page is one file: nothing is loaded, and only this server is asked.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


async def page(service: Service, request: Request) -> Response:
    """GET /."""
    return HTMLResponse(
        PAGE.read_bytes(), headers={"content-security-policy": POLICY, "cache-control": "no-cache"}
    )


async def openapi(service: Service, request: Request) -> Response:
    """GET /openapi.json."""
    return Json(description(service.config))


async def health(service: Service, request: Request) -> Response:
    """GET /health: 200, or 503 while the server ends."""
    return Json({"status": "ending" if service.is_ending else "ok"}, 503 if service.is_ending else 200)


async def metrics(service: Service, request: Request) -> Response:
    """GET /metrics."""
    return PlainTextResponse(service.metrics_text(), media_type="text/plain; version=0.0.4; charset=utf-8")


Handler = Callable[[Service, Request], Awaitable[Response]]
ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("/", "GET", page),
    ("/api/models", "GET", api.models),
    ("/api/translate", "POST", api.translate),
    ("/api/stream", "POST", stream),
    ("/api/span", "POST", api.span),
    ("/api/compare", "POST", api.compare),
    ("/translate", "POST", libre.translate),
    ("/detect", "POST", libre.detect),
    ("/languages", "GET", libre.languages),
    ("/frontend/settings", "GET", libre.settings),
    ("/health", "GET", health),
    ("/metrics", "GET", metrics),
    ("/openapi.json", "GET", openapi),
)


def make_app(service: Service) -> ASGIApp:
    """The application of a service."""
    routes = [Route(path, answered(service, handler), methods=[method]) for path, method, handler in ROUTES]
    middleware = [Middleware(Watched, service=service, paths={path for path, _, _ in ROUTES})]
    if origin := service.config.allow_origin:
        cors = Middleware(
            CORSMiddleware,
            allow_origins=[origin],
            allow_methods=["GET", "POST"],
            allow_headers=["content-type"],
        )
        middleware.append(cors)
    return Starlette(routes=routes, middleware=middleware, exception_handlers={HTTPException: _refused})


async def _refused(request: Request, error: Exception) -> Response:
    """An address that does not exist, or a method that it does not have."""
    assert isinstance(error, HTTPException)
    answer = error_response(
        error.status_code, f"{request.method} {request.url.path[:200]}: {error.detail.lower()}"
    )
    answer.headers.update(error.headers or {})
    return answer
