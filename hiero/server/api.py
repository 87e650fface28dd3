"""The addresses below /api: translations with all that is known of them, spans, comparisons."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

import hiero
from hiero.server.answers import MOST_RULES, Wanted
from hiero.server.models import LineForm, ServedModel
from hiero.server.requests import Fields, invalid, lines_of
from hiero.server.service import Json, Service


def model_record(served: ServedModel) -> dict[str, Any]:
    """A model as /api/models lists it."""
    return {
        "name": served.name,
        "source_language": served.source_language,
        "target_language": served.target_language,
        "raw_text": served.is_raw,
        "description": repr(served.model)[1:-1],
    }


async def models(service: Service, request: Request) -> Response:
    """GET /api/models."""
    config = service.config
    limits = {"words": config.max_words, "characters": config.max_chars, "lines": config.max_lines}
    limits |= {"kbest": config.max_kbest, "terms": config.max_terms, "bytes": config.max_body}
    listed = [model_record(served) for served in service.models.values()]
    return Json({"hiero": hiero.__version__, "models": listed, "limits": limits})


def form_of(fields: Fields, service: Service) -> LineForm:
    """How the lines of a request are read."""
    return LineForm(
        tokens=fields.flag("tokens"),
        terms=fields.terms("terms", service.config.max_terms),
        hard_terms=fields.choice("hard_terms"),
    )


def wanted_of(fields: Fields, service: Service) -> Wanted:
    """What a request wants of each line."""
    return Wanted(
        kbest=fields.number("kbest", 1, 1, service.config.max_kbest),
        unique=not fields.flag("all_derivations"),
        form=form_of(fields, service),
        alignment=fields.flag("alignment"),
        features=fields.flag("features"),
        derivation=fields.flag("derivation"),
        confidence=fields.flag("confidence"),
    )


async def translate(service: Service, request: Request) -> Response:
    """POST /api/translate."""
    fields = await service.fields(request)
    texts, _ = fields.texts("text")
    translator, wanted = service.translator(fields.text("model")), wanted_of(fields, service)
    fields.check()
    lines = [line for text in texts for line in lines_of(text)]
    service.check_size(lines)
    found = await service.results(request, [partial(translator.line, line, wanted) for line in lines])
    return Json({"model": translator.served.name, "lines": found})


def _line(fields: Fields, service: Service) -> str:
    text = fields.text("text")
    if text is None:
        raise invalid("text is missing")
    lines = lines_of(text)
    if len(lines) > 1:
        raise invalid(f"text: found {len(lines)} lines, expected one")
    service.check_size(lines)
    return lines[0]


async def span(service: Service, request: Request) -> Response:
    """POST /api/span."""
    fields = await service.fields(request)
    line, translator = _line(fields, service), service.translator(fields.text("model"))
    start = fields.number("start", 0, 0, service.config.max_words)
    end = fields.number("end", start + 1, 0, service.config.max_words)
    limit, form = fields.number("limit", 30, 1, MOST_RULES), form_of(fields, service)
    fields.check()
    (found,) = await service.results(request, [partial(translator.span, line, start, end, limit, form)])
    return Json(found)


async def compare(service: Service, request: Request) -> Response:
    """POST /api/compare."""
    fields = await service.fields(request)
    line, translator = _line(fields, service), service.translator(fields.text("model"))
    translation, form = fields.text("translation"), form_of(fields, service)
    fields.check()
    if translation is None:
        raise invalid("translation is missing")
    (found,) = await service.results(request, [partial(translator.comparison, line, translation, form)])
    return Json(found)
