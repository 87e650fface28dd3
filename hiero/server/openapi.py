"""The description of all addresses in the form of OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

import hiero
from hiero.server.answers import MOST_RULES
from hiero.server.config import ServerConfig
from hiero.server.libre import MOST_ALTERNATIVES

Schema = dict[str, Any]


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _text(description: str = "") -> Schema:
    return {"type": "string"} | ({"description": description} if description else {})


def _number(description: str, least: int, most: int, default: int | None = None) -> Schema:
    schema = {"type": "integer", "minimum": least, "maximum": most, "description": description}
    return schema if default is None else schema | {"default": default}


def _flag(description: str) -> Schema:
    return {"type": "boolean", "default": False, "description": description}


def _list(items: Schema, description: str = "") -> Schema:
    return {"type": "array", "items": items} | ({"description": description} if description else {})


def _record(required: str, **properties: Schema) -> Schema:
    return {"type": "object", "required": required.split(), "properties": properties}


def _either(one: Schema) -> Schema:
    return {"oneOf": [one, _list(one)]}


REAL = {"type": "number"}
PAIR = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
FEATURES = {"type": "object", "additionalProperties": REAL}


def _schemas(config: ServerConfig) -> dict[str, Schema]:
    model = _text("name of a model of /api/models; by default the first")
    tokens = _flag("the text is words with spaces between them, and so is the translation")
    line = _text("one line")
    pair = {"type": "array", "prefixItems": [_text(), _text(), REAL], "minItems": 2, "maxItems": 3}
    form = {
        "tokens": tokens,
        "terms": _list(pair, "source words, their translation, and perhaps a weight")
        | {"maxItems": config.max_terms},
        "hard_terms": {"type": "boolean", "description": "whether terms have no other translations"},
    }
    wanted = {
        "kbest": _number("translations of each line", 1, config.max_kbest, 1),
        "all_derivations": _flag("list all derivations of a translation, not only the best"),
        **form,
        "alignment": _flag("with pairs of source word and target word"),
        "features": _flag("with the features of each translation"),
        "derivation": _flag("with the nodes of the derivation"),
        "confidence": _flag("with the share of each translation among the 100 best"),
    }
    node = _record(
        "label source target score children rule posterior",
        label=_text("category"),
        source=PAIR | {"description": "first word, and the one after the last"},
        target=PAIR,
        score=REAL,
        children=_list({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "words, and places of nodes"),
        rule=_text(),
        posterior=REAL,
    )
    translation = _record(
        "text words score",
        text=_text(),
        words=_list(_text()),
        score=REAL,
        confidence=REAL,
        alignment=_list(PAIR),
        arcs=_list({"type": "integer"}, "of the path in a lattice"),
        features=FEATURES,
        derivation=_list(node, "in pre-order"),
    )
    rule = _record(
        "rule score best loss posterior applications is_used features",
        rule=_text("left-hand side, source side and target side"),
        score=REAL | {"description": "of its best application here, alone"},
        best={"type": ["number", "null"], "description": "score of the best translation with it"},
        loss={"type": ["number", "null"], "description": "what that is below the best"},
        posterior=REAL,
        applications={"type": "integer"},
        is_used={"type": "boolean", "description": "whether the best translation has it"},
        features=FEATURES,
    )
    side = _record(
        "text words score alignment", text=_text(), words=_list(_text()), score=REAL, alignment=_list(PAIR)
    )
    row = _record(
        "feature weight best other difference",
        feature=_text(),
        weight=REAL,
        best=REAL,
        other=REAL,
        difference=REAL,
    )
    language = _record("confidence language", confidence=REAL, language=_text())
    return {
        "Error": _record("error", error=_text()),
        "Wanted": {"type": "object", "properties": wanted},
        "Request": _record("text", text=_either(_text("lines")), model=model, **wanted),
        "Line": _record(
            "source translations", source=_list(_text()), translations=_list(_ref("Translation"))
        ),
        "Translation": translation,
        "Answer": _record("model lines", model=_text(), lines=_list(_ref("Line"))),
        "SpanRequest": _record(
            "text start end",
            text=line,
            model=model,
            **form,
            start=_number("first word", 0, config.max_words),
            end=_number("the word after the last", 1, config.max_words),
            limit=_number("rules to list", 1, MOST_RULES, 30),
        ),
        "Span": _record(
            "source start end nodes edges num_rules rules",
            source=_list(_text()),
            start={"type": "integer"},
            end={"type": "integer"},
            nodes={"type": "integer"},
            edges={"type": "integer"},
            num_rules={"type": "integer"},
            rules=_list(rule),
        ),
        "CompareRequest": _record(
            "text translation",
            text=line,
            translation=_text("another translation of the line"),
            model=model,
            **form,
        ),
        "Comparison": _record(
            "source wanted is_wanted why distance searched best other features",
            source=_list(_text()),
            wanted=_list(_text()),
            is_wanted={
                "type": "boolean",
                "description": "whether rules derive the translation",
            },
            why=_text("why they do not"),
            distance={"type": "integer", "description": "words in which the nearest one differs"},
            searched={"type": "integer", "description": "translations among which it was searched"},
            best=side,
            other=side,
            features=_list(row, "those that differ most first"),
        ),
        "Models": _record(
            "hiero models limits",
            hiero=_text("version"),
            models=_list(
                _record(
                    "name source_language target_language raw_text description",
                    name=_text(),
                    source_language={"type": ["string", "null"]},
                    target_language={"type": ["string", "null"]},
                    raw_text={"type": "boolean"},
                    description=_text(),
                )
            ),
            limits={"type": "object", "additionalProperties": {"type": "integer"}},
        ),
        "LibreRequest": _record(
            "q source target",
            q=_either(_text()),
            source=_text("a code of /languages, or auto"),
            target=_text("a code of /languages"),
            format={"type": "string", "enum": ["text"]},
            alternatives=_number("other translations", 0, min(MOST_ALTERNATIVES, config.max_kbest - 1), 0),
            api_key=_text("not needed"),
        ),
        "LibreAnswer": _record(
            "translatedText",
            translatedText=_either(_text()),
            alternatives=_either(_list(_text())),
            detectedLanguage=_either(language),
        ),
        "DetectRequest": _record("q", q=_text()),
        "Detected": _list(language),
        "Languages": _list(_record("code name targets", code=_text(), name=_text(), targets=_list(_text()))),
    }


def _answers(schema: str | None, kind: str = "application/json", *, errors: bool = True) -> Schema:
    content = {kind: {"schema": {"type": "string"} if schema is None else _ref(schema)}}
    found: Schema = {"200": {"description": "the answer", "content": content}}
    if errors:
        refused = {"application/json": {"schema": _ref("Error")}}
        for status, meaning in (
            ("400", "a field that cannot be used"),
            ("408", "content that arrives too slowly"),
            ("413", "too many bytes, characters or lines"),
            ("415", "another type of content"),
            ("503", "too many lines wait"),
            ("504", "no answer in time"),
        ):
            found[status] = {"description": meaning, "content": refused}
    return found


def _get(summary: str, schema: str | None, kind: str = "application/json") -> Schema:
    return {"get": {"summary": summary, "responses": _answers(schema, kind, errors=False)}}


def _post(summary: str, body: str, schema: str, *, forms: bool = False) -> Schema:
    kinds = ["application/json", *(["application/x-www-form-urlencoded"] if forms else [])]
    content = {kind: {"schema": _ref(body)} for kind in kinds}
    return {
        "post": {
            "summary": summary,
            "requestBody": {"required": True, "content": content},
            "responses": _answers(schema),
        }
    }


def description(config: ServerConfig) -> Schema:
    """The description, with the limits of a server."""
    schemas = _schemas(config)
    queries = {"model": _text("name of a model"), **schemas["Wanted"]["properties"]}
    queries["format"] = {"type": "string", "enum": ["json", "text"], "default": "json"}
    stream = _post("translate lines, each as it arrives", "Line", "Line")["post"]
    lines = (
        "a line of text each, or with application/x-ndjson a JSON string, or an object with the field text, "
        "and perhaps terms and hard_terms"
    )
    stream["requestBody"] = {
        "required": True,
        "description": lines,
        "content": {kind: {"schema": {"type": "string"}} for kind in ("text/plain", "application/x-ndjson")},
    }
    stream["responses"]["200"] = {
        "description": "an object for each line, with its number as line, or a line of text for each",
        "content": {kind: {"schema": {"type": "string"}} for kind in ("application/x-ndjson", "text/plain")},
    }
    stream["parameters"] = [
        {
            "name": name,
            "in": "query",
            "schema": {key: value for key, value in schema.items() if key != "description"},
        }
        for name, schema in queries.items()
    ]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "hiero serve",
            "version": hiero.__version__,
            "description": "Hierarchical phrase-based translation.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            "/": _get("a page to translate and look inside", None, "text/html"),
            "/api/models": _get("the models and the limits", "Models"),
            "/api/translate": _post("translate lines", "Request", "Answer"),
            "/api/stream": {"post": stream},
            "/api/span": _post("the rules that cover a span of source words", "SpanRequest", "Span"),
            "/api/compare": _post(
                "compare the best translation with another", "CompareRequest", "Comparison"
            ),
            "/translate": _post("translate, as LibreTranslate", "LibreRequest", "LibreAnswer", forms=True),
            "/detect": _post(
                "the language of a text, as LibreTranslate", "DetectRequest", "Detected", forms=True
            ),
            "/languages": _get("the languages, as LibreTranslate", "Languages"),
            "/frontend/settings": _get("settings of pages, as LibreTranslate", None),
            "/health": _get("whether the server answers", None),
            "/metrics": _get("counts and times for Prometheus", None, "text/plain"),
            "/openapi.json": _get("this description", None),
        },
        "components": {"schemas": schemas},
    }
