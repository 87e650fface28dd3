"""The addresses of LibreTranslate, for its clients: /translate, /languages, /detect, /frontend/settings.

The forms of requests and answers are LibreTranslate's. Languages are those of the models; a source language
``auto`` is decided by the words that the grammars know. Unknown fields are ignored, as there.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from hiero.core.errors import show
from hiero.server.answers import Translator
from hiero.server.requests import Refused, invalid, lines_of
from hiero.server.service import Json, Service

AUTO = "auto"
MOST_ALTERNATIVES = 20
NAMES = {
    "ar": "Arabic",
    "bg": "Bulgarian",
    "bn": "Bengali",
    "ca": "Catalan",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "eo": "Esperanto",
    "es": "Spanish",
    "et": "Estonian",
    "eu": "Basque",
    "fa": "Persian",
    "fi": "Finnish",
    "fr": "French",
    "ga": "Irish",
    "gl": "Galician",
    "he": "Hebrew",
    "hi": "Hindi",
    "hr": "Croatian",
    "hu": "Hungarian",
    "id": "Indonesian",
    "is": "Icelandic",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "lt": "Lithuanian",
    "lv": "Latvian",
    "mk": "Macedonian",
    "ms": "Malay",
    "mt": "Maltese",
    "nb": "Norwegian",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sk": "Slovak",
    "sl": "Slovenian",
    "sq": "Albanian",
    "sr": "Serbian",
    "sv": "Swedish",
    "sw": "Swahili",
    "ta": "Tamil",
    "th": "Thai",
    "tl": "Tagalog",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "ur": "Urdu",
    "vi": "Vietnamese",
    "zh": "Chinese",
}


def language_pairs(service: Service) -> dict[str, dict[str, str]]:
    """The name of the model for each source language and target language; of several, the first."""
    pairs: dict[str, dict[str, str]] = {}
    for name, served in service.models.items():
        if served.source_language is not None and served.target_language is not None:
            pairs.setdefault(served.source_language, {}).setdefault(served.target_language, name)
    return pairs


def _name(code: str) -> str:
    return NAMES.get(code, code)


async def languages(service: Service, request: Request) -> Response:
    """GET and POST /languages."""
    pairs = language_pairs(service)
    listed = [{"code": code, "name": _name(code), "targets": sorted(pairs[code])} for code in sorted(pairs)]
    return Json(listed)


async def settings(service: Service, request: Request) -> Response:
    """GET /frontend/settings."""
    pairs = language_pairs(service)
    source = next(iter(pairs), "")
    target = next(iter(pairs.get(source, ())), "")
    return Json(
        {
            "apiKeys": False,
            "charLimit": service.config.max_chars,
            "filesTranslation": False,
            "frontendTimeout": 500,
            "keyRequired": False,
            "language": {
                "source": {"code": source, "name": _name(source)},
                "target": {"code": target, "name": _name(target)},
            },
            "suggestions": False,
            "supportedFilesFormat": [],
        }
    )


async def detect(service: Service, request: Request) -> Response:
    """POST /detect."""
    fields = await service.fields(request, forms=True)
    texts, is_list = fields.texts("q")
    if is_list and len(texts) != 1:
        raise invalid(f"q: found {len(texts)} texts, expected one")
    service.check_size(lines_of(texts[0]))
    return Json(await detected(service, request, texts[0]))


async def detected(
    service: Service, request: Request, text: str, target: str | None = None
) -> list[dict[str, Any]]:
    """The source languages of models, most likely first, with the percentage of words that a model knows."""
    pairs = language_pairs(service)
    first = {
        source: next(iter(targets.values())) if target is None else targets[target]
        for source, targets in pairs.items()
        if target is None or target in targets
    }
    line = " ".join(lines_of(text))
    calls = [partial(service.models[name].known_share, line) for name in first.values()]
    shares = dict(zip(first, await service.results(request, calls), strict=True))
    ranked = sorted(shares, key=lambda code: -shares[code])  # stable: models in their order
    return [{"confidence": round(100 * shares[code], 1), "language": code} for code in ranked]


async def translate(service: Service, request: Request) -> Response:
    """POST /translate."""
    fields = await service.fields(request, forms=True)
    texts, is_list = fields.texts("q")
    source, target = fields.text("source"), fields.text("target")
    kind = fields.text("format", "text")
    alternatives = fields.number("alternatives", 0, 0, min(MOST_ALTERNATIVES, service.config.max_kbest - 1))
    if kind != "text":
        raise invalid(f"format: found {show(str(kind))}, expected text (markup is not translated)")
    for name, value in (("source", source), ("target", target)):
        if value is None:
            raise invalid(f"{name} is missing")
    lines = [lines_of(text) for text in texts]
    service.check_size([line for own in lines for line in own])
    found = None
    if source == AUTO:
        pairs = language_pairs(service)
        if not any(target in targets for targets in pairs.values()):
            raise _unknown("target", str(target), {code for targets in pairs.values() for code in targets})
        found = (await detected(service, request, " ".join(texts), target))[0]
        source = found["language"]
    translator = _translator(service, str(source), str(target))
    # An empty line is not translated: it has no words.
    calls = [partial(translator.texts, line, alternatives + 1) for own in lines for line in own]
    results = iter(await service.results(request, calls))
    answers = [[next(results) for _ in own] for own in lines]
    translated = ["\n".join(line[0] for line in own) for own in answers]
    record: dict[str, Any] = {"translatedText": translated if is_list else translated[0]}
    if alternatives:
        others = [_alternatives(own, alternatives) for own in answers]
        record["alternatives"] = others if is_list else others[0]
    if found is not None:
        record["detectedLanguage"] = [found] * len(texts) if is_list else found
    return Json(record)


def _alternatives(lines: list[list[str]], number: int) -> list[str]:
    """Other translations of a text: in each, the next translation of every line that has one more."""
    longest = min(number + 1, max(map(len, lines)))
    return ["\n".join(line[min(at, len(line) - 1)] for line in lines) for at in range(1, longest)]


def _translator(service: Service, source: str, target: str) -> Translator:
    pairs = language_pairs(service)
    if source not in pairs:
        raise _unknown("source", source, set(pairs))
    if target not in pairs[source]:
        raise _unknown("target", target, set(pairs[source]))
    return service.translator(pairs[source][target])


def _unknown(field: str, found: str, known: set[str]) -> Refused:
    hint = ", ".join(sorted(known)) if known else "none: no model here has languages (--model de-en=FILE)"
    return invalid(f"{field}: found {show(found)}, expected one of {hint}")
