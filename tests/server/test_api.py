"""Requests and answers."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hiero.config.config import Config, read_config
from hiero.config.model import bundled_path, with_bundled
from hiero.core.progress import SilentProgress
from hiero.jobs.translate import Job, JobSettings

pytest.importorskip("starlette", reason="the server needs it")
pytest.importorskip("uvicorn", reason="the server needs it")

from hiero.server.app import ROUTES
from tests.conftest import PROJECT
from tests.worlds import console
from tests.worlds.server import Client, running_server, running_service, served, write_models

LINE = "das haus ist alt ."
LIMITS = {
    "max_words": 20,
    "max_chars": 400,
    "max_lines": 8,
    "max_body": 4000,
    "max_kbest": 20,
    "max_terms": 5,
}


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def client(paths: dict[str, Path]) -> Iterator[Client]:
    models = [f"de-en={paths['words']}", f"fr-en={paths['other']}"]
    with served(models, **LIMITS) as client:
        yield client


def decoded(text: bytes, folder: Path, model: Path | None = None, kbest: int = 0) -> bytes:
    """What ``hiero decode`` writes: text, or JSON of k-best lists."""
    config = with_bundled(Config()) if model is None else read_config(model)
    config = dataclasses.replace(config, search=dataclasses.replace(config.search, kbest=kbest))
    (folder / "input").write_bytes(text)
    style = "json" if kbest else "text"
    settings = JobSettings(input=str(folder / "input"), output=str(folder / "output"), style=style)
    Job(settings, config, SilentProgress()).run()
    return (folder / "output").read_bytes()


# ---- translation


def test_translate_with_details(client: Client) -> None:
    asked = {"text": LINE, "kbest": 2, "alignment": True, "features": True, "confidence": True}
    answer = client.post("/api/translate", json=asked).json()
    assert answer["model"] == "de-en"
    (line,) = answer["lines"]
    assert line["source"] == LINE.split()
    assert [one["text"] for one in line["translations"]] == ["the house is old .", "the home is old ."]
    keys = {"text", "words", "score", "confidence", "alignment", "features"}
    assert set(line["translations"][0]) == keys


def test_several_lines_and_models(client: Client) -> None:
    texts = [f"{LINE}\n", "haus\r\nalt"]
    answer = client.post("/api/translate", json={"text": texts}).json()
    found = [[one["text"] for one in line["translations"]] for line in answer["lines"]]
    assert found == [["the house is old ."], [], ["house"], ["old"]]
    answer = client.post("/api/translate", json={"text": "la maison", "model": "fr-en"}).json()
    assert answer["lines"][0]["translations"][0]["text"] == "the house"
    listed = client.get("/api/models").json()
    assert [one["name"] for one in listed["models"]] == ["de-en", "fr-en"]
    assert listed["limits"]["kbest"] == 20


def test_terms(client: Client) -> None:
    """Of a request, of a line of a stream, and of a line of text; each adds to the limit."""

    def first(path: str = "/api/translate", **asked: Any) -> str:
        found = client.post(path, json={"text": LINE, **asked}).json()
        return str(found["lines"][0]["translations"][0]["text"])

    terms = [["alt", "aged", -9], ["das haus", "the premises"]]
    assert first(terms=terms) == "the premises is old ."
    assert first(terms=terms, hard_terms=True) == "the premises is aged ."
    assert first(terms=terms, hard_terms=None) == first(terms=terms, hard_terms=False)
    assert first(text=json.dumps({"source": "haus", "terms": [["haus", "hut"]]})) == "hut"
    asked = {"text": LINE, "terms": terms, "hard_terms": True}
    span = client.post("/api/span", json={**asked, "start": 0, "end": 2}).json()
    assert [rule["rule"] for rule in span["rules"] if rule["rule"].startswith("[X]")] == [
        "[X] ||| das haus ||| the premises"
    ]
    compared = client.post("/api/compare", json={**asked, "translation": "the premises is old ."}).json()
    assert (compared["best"]["text"], compared["is_wanted"]) == ("the premises is aged .", False)
    lines = [json.dumps({"text": "alt", "terms": [["alt", "aged"]], "hard_terms": True}), '"das haus"']
    address = f"/api/stream?{urlencode({'terms': json.dumps(terms), 'hard_terms': 1})}"
    found = client.post(address, content="\n".join(lines).encode(), kind="application/x-ndjson")
    rows = [json.loads(line) for line in found.text.splitlines()]
    assert [row["translations"][0]["text"] for row in rows] == ["aged", "the premises"]
    many = [[str(number), "x"] for number in range(6)]
    answer = client.post("/api/translate", json={"text": LINE, "terms": many})
    assert (answer.status, answer.json()["error"]) == (413, "found 6 terms, expected at most 5")
    line = json.dumps({"source": "haus", "terms": many[:3]})
    answer = client.post("/api/translate", json={"text": line, "terms": many[:3]})
    assert (answer.status, answer.json()["error"]) == (400, "found 6 terms, expected at most 5")


def test_lattices(client: Client) -> None:
    text = "((('das',0,1),),(('haus',0,1),('xyz',9,1),),)"
    answer = client.post("/api/translate", json={"text": text, "alignment": True}).json()
    (line,) = answer["lines"]
    assert line["source"] == ["das", "haus", "xyz"]
    assert line["translations"][0]["text"] == "the house"
    assert line["translations"][0]["arcs"] == [0, 1]
    answer = client.post("/api/translate", json={"text": "((('das',0,3),),)"})
    assert answer.status == 400


def test_derivations_of_one_translation(client: Client) -> None:
    asked = {"text": LINE, "kbest": 20, "all_derivations": True, "derivation": True}
    found = client.post("/api/translate", json=asked).json()["lines"][0]["translations"]
    texts = [one["text"] for one in found]
    assert len(texts) > len(set(texts))


@pytest.mark.parametrize("style", ["text", "json"])
def test_answers_are_those_of_decode(
    client: Client, paths: dict[str, Path], style: str, tmp_path: Path
) -> None:
    text = (
        "das haus ist alt .\n\n ein  neues\thaus\r\nalt ||| alt\nä\xad\u2028ö\x00\x01 \U0001f600\n".encode()
    )
    text += b"\xff\xfehaus\nohne ende"
    if style == "text":
        found = client.post("/api/stream", params={"format": "text"}, content=text)
        assert found.status == 200
        assert found.content == decoded(text, tmp_path, paths["words"])
        return
    expected = [json.loads(line) for line in decoded(text, tmp_path, paths["words"], 3).splitlines()]
    params: dict[str, Any] = {"kbest": 3, "alignment": 1, "features": "true", "derivation": 1}
    found = client.post("/api/stream", params=params, content=text)
    for line, other in zip(map(json.loads, found.content.splitlines()), expected, strict=True):
        assert line["source"] == other["source"]
        assert line["line"] == int(other["id"]) + 1
        for mine, theirs in zip(line["translations"], other["translations"], strict=True):
            for node in mine["derivation"]:
                del node["rule"], node["posterior"]
            del mine["words"]
            assert mine == theirs


@pytest.mark.heavy
def test_answers_of_the_bundled_model_are_those_of_decode(tmp_path: Path) -> None:
    text = bundled_path("demo.test.de").read_bytes()
    expected = decoded(text, tmp_path)
    with served([]) as client:
        assert client.post("/api/stream", params={"format": "text"}, content=text).content == expected
        lines = text.decode().splitlines()[:100]
        answer = client.post("/translate", json={"q": lines, "source": "de", "target": "en"}).json()
        assert (
            "\n".join(answer["translatedText"]) + "\n"
            == "\n".join(expected.decode().splitlines()[:100]) + "\n"
        )


def test_streams_of_json(client: Client) -> None:
    lines = [
        '"haus"',
        '{"text": "alt"}',
        "[1]",
        "{",
        '{"text": "a\\nb"}',
        '"' + 401 * "x" + '"',
        '{"q": "a"}',
    ]
    found = client.post("/api/stream", content="\n".join(lines).encode(), kind="application/x-ndjson")
    assert found.headers["content-type"] == "application/x-ndjson"
    rows = [json.loads(line) for line in found.text.splitlines()]
    assert [row["line"] for row in rows] == [1, 2, 3, 4, 5, 6, 7]
    assert [row["translations"][0]["text"] for row in rows[:2]] == ["house", "old"]
    errors = [row["error"] for row in rows[2:]]
    assert errors[0] == "text: found a list, expected text"
    assert errors[1].startswith("expected JSON (")
    assert errors[2] == "expected one line of text"
    assert errors[3] == "found 401 characters, expected at most 400"
    assert errors[4] == "unknown field 'q'; did you mean 'text'?" or "unknown field 'q'" in errors[4]
    assert client.post("/api/stream", content=b"").content == b""


def test_streams_are_limited(client: Client) -> None:
    found = client.post("/api/stream", content=b"haus\n" * 801)
    rows = [json.loads(line) for line in found.text.splitlines()]
    assert rows[-1] == {"error": "the content has more than 4,000 bytes"}
    for params, message in (
        ({"format": "xml"}, "format: found 'xml', expected json or text"),
        ({"format": "text", "kbest": "2"}, "format: text has no room for more than one translation"),
        ({"kbest": "many"}, "kbest: found 'many', expected a whole number"),
        ({"alignment": "maybe"}, "alignment: found 'maybe', expected true or false"),
        ({"what": "1"}, "unknown field 'what'"),
        ({"model": "x"}, "model: found 'x', expected one of de-en, fr-en"),
    ):
        found = client.post("/api/stream", params=params, content=b"haus")
        assert found.status == 400
        assert found.json()["error"].startswith(message)
    found = client.post("/api/stream", content=b"haus", kind="image/png")
    assert found.status == 415


# ---- raw text


def test_raw_text(paths: dict[str, Path], tmp_path: Path) -> None:
    pytest.importorskip("sacremoses", reason="raw text needs it")
    from hiero.server.models import ModelSpec, load_served

    with served([str(paths["raw"])]) as client:
        assert client.get("/api/models").json()["models"][0]["raw_text"] is True
        answer = client.post("/translate", json={"q": "Das Haus ist alt.", "source": "de", "target": "en"})
        assert answer.json() == {"translatedText": "The house is old."}
        line = client.post("/api/translate", json={"text": "Das Haus ist alt."}).json()["lines"][0]
        assert line["source"] == LINE.split()
        assert line["translations"][0]["words"] == ["the", "house", "is", "old", "."]
        asked = {"text": "Das haus", "tokens": True}
        line = client.post("/api/translate", json=asked).json()["lines"][0]
        assert line["translations"][0]["text"] == "Das house"
        # Terms are raw text, too.
        asked = {"text": "Das Haus ist alt.", "terms": [[" ", "x"]]}
        assert client.post("/api/translate", json=asked).status == 400
        asked |= {"terms": [["Das  Haus", "The home!"]], "hard_terms": True}
        line = client.post("/api/translate", json=asked).json()["lines"][0]
        assert line["translations"][0]["words"] == ["the", "home", "!", "is", "old", "."]
        asked = {"text": "Das Haus ist alt.", "translation": "The home is old."}
        assert client.post("/api/compare", json=asked).json()["is_wanted"] is True
    (tmp_path / "list").write_text("House\n")
    spec = ModelSpec("raw", str(paths["raw"]), str(tmp_path / "list"))
    model = load_served(spec, print, strict=False, most_new_words=100)
    assert model.text("the house .") == "The House."


# ---- LibreTranslate


def test_libretranslate(client: Client) -> None:
    """The forms of its documentation."""
    asked: dict[str, Any] = {"q": LINE, "source": "de", "target": "en", "format": "text", "api_key": ""}
    assert client.post("/translate", json=asked).json() == {"translatedText": "the house is old ."}
    answer = client.post("/translate", json=asked | {"alternatives": 2}).json()
    assert answer["alternatives"] == ["the home is old .", "the house is ancient ."]
    answer = client.post("/translate", json=asked | {"q": ["haus", "alt\n\nhaus"], "alternatives": 1}).json()
    assert answer["translatedText"] == ["house", "old\n\nhouse"]
    assert answer["alternatives"][1] == ["ancient\n\nhaus"]
    assert client.post("/translate", data=asked).json() == {"translatedText": "the house is old ."}
    two = client.post("/translate", data={"q": ["haus", "alt"], "source": "de", "target": "en"}).json()
    assert two == {"translatedText": ["house", "old"]}
    assert client.post("/translate", json=asked | {"q": ""}).json() == {"translatedText": ""}
    assert client.post("/translate", json=asked | {"q": [], "source": "auto"}).json()["translatedText"] == []


def test_detection(client: Client) -> None:
    """By the words that are in grammars."""
    found = client.post("/detect", json={"q": "la maison ist"}).json()
    assert found == [{"confidence": 66.7, "language": "fr"}, {"confidence": 33.3, "language": "de"}]
    assert client.post("/detect", data={"q": "das haus"}).json()[0]["language"] == "de"
    asked = {"q": "la maison", "source": "auto", "target": "en"}
    answer = client.post("/translate", json=asked).json()
    assert answer == {
        "translatedText": "the house",
        "detectedLanguage": {"confidence": 100.0, "language": "fr"},
    }
    listed = client.get("/languages").json()
    assert listed == [
        {"code": "de", "name": "German", "targets": ["en"]},
        {"code": "fr", "name": "French", "targets": ["en"]},
    ]
    settings = client.get("/frontend/settings").json()
    assert settings["language"]["source"] == {"code": "de", "name": "German"}
    assert settings["charLimit"] == 400


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": None}, "q is missing"),
        ({"q": 3}, "q: found '3', expected text, or a list of texts"),
        ({"q": ["a", None]}, "q: found a list, expected text, or a list of texts"),
        ({"source": None}, "source is missing"),
        ({"source": "xx"}, "source: found 'xx', expected one of de, fr"),
        ({"target": "de"}, "target: found 'de', expected one of en"),
        ({"target": "de", "source": "auto"}, "target: found 'de', expected one of en"),
        ({"format": "html"}, "format: found 'html', expected text (markup is not translated)"),
        ({"alternatives": 20}, "alternatives: found 20, expected 0 to 19"),
        ({"alternatives": True}, "alternatives: found 'true', expected a whole number"),
    ],
)
def test_mistakes_in_requests_of_libretranslate(client: Client, change: dict[str, Any], message: str) -> None:
    answer = client.post("/translate", json={"q": LINE, "source": "de", "target": "en", **change})
    assert (answer.status, answer.json()) == (400, {"error": message})


# ---- mistakes and limits


@pytest.mark.parametrize(
    ("content", "status", "message"),
    [
        (b"", 400, "found '', expected JSON"),
        (b"\xff\x00\x80", 400, "expected JSON"),
        (b"[" * 3000, 400, "nested too deeply"),
        (b'{"text":' * 400, 400, "expected JSON"),
        (b"[]", 400, "found a list, expected a JSON object"),
        (b"null", 400, "found nothing, expected a JSON object"),
        (b'{"text": 3}', 400, "text: found '3', expected text"),
        (b'{"kbest": 2}', 400, "text is missing"),
        (b'{"text": "a", "kbest": 1.5}', 400, "kbest: found '1.5', expected a whole number"),
        (b'{"text": "a", "kbest": NaN}', 400, "kbest: found 'nan'"),
        (b'{"text": "a", "kbest": 0}', 400, "kbest: found 0, expected 1 to 20"),
        (b'{"text": "a", "kbest": 1' + b"0" * 3900 + b"}", 400, "kbest"),
        (b'{"text": "a", "alignment": 1}', 400, "alignment: found '1', expected true or false"),
        (b'{"text": "a", "model": ["de-en"]}', 400, "model: found a list, expected text"),
        (b'{"text": "a", "model": "es-en"}', 400, "model: found 'es-en', expected one of de-en, fr-en"),
        (b'{"text": "a", "aligment": true}', 400, "unknown field 'aligment'; did you mean 'alignment'?"),
        (b'{"text": "' + b"a " * 21 + b'"}', 400, "found a line of 21 words, expected at most 20"),
        (b'{"text": "' + b"a" * 401 + b'"}', 413, "found 401 characters, expected at most 400"),
        (b'{"text": "' + b"\\n" * 8 + b'"}', 413, "found 9 lines, expected at most 8"),
        (b'{"text": "' + b"a" * 4000 + b'"}', 413, "the content has more than 4,000 bytes"),
        (b'{"text": "<seg id=3>"}', 400, "expected <seg id="),
        (b'{"text": "a", "terms": "a=b"}', 400, "terms: found 'a=b', expected a list of pairs"),
        (b'{"text": "a", "terms": {"a": "b"}}', 400, "terms: found an object, expected a list of pairs"),
        (b'{"text": "a", "terms": [["a"]]}', 400, "terms: found ['a'], expected source words, translation"),
        (b'{"text": "a", "terms": [["a", "b", "c"]]}', 400, "terms: found the weight 'c'"),
        (b'{"text": "a", "terms": [["' + b"a " * 16 + b'", "b"]]}', 400, "expected at most 15 (span_limit"),
        (b'{"text": "a", "hard_terms": 1}', 400, "hard_terms: found '1', expected true or false"),
        (b'{"text": "((((\'a\',1,1),),)", "terms": [["a", "b"]]}'.replace(b"((((", b"((("), 400, "a lattice"),
        (b'{"text": "<seg grammar=\\"/etc/passwd\\">a</seg>"}', 400, "cannot name grammars here"),
    ],
)
def test_mistakes(client: Client, content: bytes, status: int, message: str) -> None:
    answer = client.post("/api/translate", content=content, kind="application/json")
    assert answer.status == status
    assert message in answer.json()["error"]
    assert "\n" not in answer.json()["error"]
    assert len(answer.json()["error"]) < 300


def test_strange_text_is_translated(client: Client) -> None:
    """Half a pair of UTF-16 cannot be written as UTF-8."""
    content = b'{"text": "haus \\ud800 \\u0000 \\udc00\\ud83d\\ude00"}'
    answer = client.post("/api/translate", content=content, kind="application/json")
    text = answer.json()["lines"][0]["translations"][0]["text"]
    assert text == "house \ufffd \x00 \ufffd\U0001f600"


def test_other_addresses_methods_and_types(client: Client) -> None:
    answer = client.get("/nothing")
    assert (answer.status, answer.json()) == (404, {"error": "GET /nothing: not found"})
    answer = client.get("/api/translate")
    assert answer.status == 405
    assert answer.headers["allow"] == "POST"
    answer = client.post("/api/translate", content=b"x", kind="text/plain")
    assert answer.status == 415
    assert answer.json()["error"] == "found content of type text/plain, expected application/json"
    # As curl -d sends it.
    answer = client.post(
        "/api/translate",
        content=b'{"text": "haus"}',
        kind="application/x-www-form-urlencoded",
    )
    assert answer.status == 200
    answer = client.post("/translate", content=b"q=%ff", kind="application/x-www-form-urlencoded")
    assert answer.status == 400


def test_spans_and_comparisons(client: Client) -> None:
    answer = client.post("/api/span", json={"text": LINE, "start": 0, "end": 2}).json()
    assert [rule["rule"].split(" ||| ")[2] for rule in answer["rules"]] == [
        "the house",
        "the home",
        "[1]",
        "[1] [2]",
    ]
    answer = client.post("/api/span", json={"text": LINE, "start": 4, "end": 6})
    assert answer.json() == {"error": "found the words 4 to 6, expected a span of the 5 words"}
    answer = client.post("/api/span", json={"text": "a\nb", "start": 0, "end": 1})
    assert answer.json() == {"error": "text: found 2 lines, expected one"}
    answer = client.post("/api/compare", json={"text": LINE, "translation": "the home is old ."}).json()
    assert answer["is_wanted"] is True
    assert client.post("/api/compare", json={"text": LINE}).json() == {"error": "translation is missing"}
    assert client.post("/api/compare", json={"translation": LINE}).json() == {"error": "text is missing"}


def test_a_failure_is_logged_and_not_shown(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr("hiero.server.answers.Translator.line", fail)
    answer = client.post("/api/translate", json={"text": "a"})
    assert (answer.status, answer.json()) == (500, {"error": "the server failed; its log says why"})
    assert "secret" in caplog.text


def test_slow_searches(paths: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait is bounded, and so is the number of lines that wait."""
    gate = threading.Event()
    settings: dict[str, Any] = {"timeout": 0.2, "queue": 2}
    with running_service([str(paths["words"])], 1, **settings) as service, running_server(service) as client:
        monkeypatch.setattr("hiero.server.answers.Translator.line", lambda *_: gate.wait(10))
        monkeypatch.setattr("hiero.server.answers.Translator.texts", lambda *_: gate.wait(10))
        answer = client.post("/api/translate", json={"text": "a\nb"})
        assert (answer.status, answer.json()) == (504, {"error": "no translation within 0.2 seconds"})
        assert service.workers.num_waiting == 0  # the second line is not tried
        answer = client.post("/api/translate", json={"text": "a\nb\nc"})
        assert answer.status == 503
        assert answer.headers["retry-after"] == "1"
        answer = client.post("/api/stream", content=b"a\nb\n")
        assert (answer.status, answer.json()) == (504, {"error": "no translation within 0.2 seconds"})
        gate.set()
        text = service.metrics_text()
        assert 'hiero_rejected_total{reason="timeout"} 2' in text
        assert 'hiero_rejected_total{reason="busy"} 1' in text


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = [
    "text",
    "model",
    "kbest",
    "alignment",
    "start",
    "end",
    "limit",
    "translation",
    "q",
    "source",
    "target",
    "format",
    "alternatives",
]


@pytest.mark.once
@settings(max_examples=60)
@given(
    path=st.sampled_from([path for path, method, _ in ROUTES if method == "POST"]),
    asked=st.dictionaries(
        st.sampled_from(NAMES), anything | st.sampled_from(["de", "en", LINE, 1]), max_size=6
    ),
)
def test_no_request_makes_the_server_fail(client: Client, path: str, asked: dict[str, Any]) -> None:
    answer = client.post(path, json.dumps(asked).encode(), kind="application/json")
    assert answer.status in (200, 400, 413, 415)
    if answer.status != 200:
        assert "\n" not in answer.json()["error"]


@pytest.mark.heavy
@pytest.mark.once
@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
def test_requests_of_the_page_of_the_manual(tmp_path: Path) -> None:
    shutil.copy(PROJECT / "grammars" / "demo.dev.de", tmp_path / "input.txt")
    asked = [one for one in console.commands(PROJECT / "docs" / "serve.md") if one.text.startswith("curl ")]
    assert len(asked) == 4
    with served([]) as client:
        for command in asked:
            text = command.text.replace("http://127.0.0.1:5000/", client.place)
            done = subprocess.run(["sh", "-c", text], cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            if command.output:
                assert console.shown(f"{done.stdout}\n", command.output), done.stdout
    expected = decoded((tmp_path / "input.txt").read_bytes(), tmp_path)
    assert (tmp_path / "output.txt").read_bytes() == expected


# ---- around


def test_health_and_metrics(client: Client) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    client.get("/nothing/at/all")
    text = client.get("/metrics").text
    assert 'hiero_requests_total{path="/health",status="200"}' in text
    assert 'path="other",status="404"' in text
    assert "/nothing" not in text
    assert 'hiero_lines_total{model="de-en"}' in text
    assert "process_resident_memory_bytes" in text


def test_the_description_has_all_addresses(client: Client) -> None:
    found = client.get("/openapi.json").json()
    methods = {(path, method.upper()) for path, item in found["paths"].items() for method in item}
    assert methods == {(path, method) for path, method, _ in ROUTES}
    schemas = found["components"]["schemas"]

    def check(item: Any) -> None:
        if isinstance(item, dict):
            if "$ref" in item:
                assert item["$ref"].removeprefix("#/components/schemas/") in schemas
            for value in item.values():
                check(value)
        elif isinstance(item, list):
            for value in item:
                check(value)

    check(found)
    # Requests and answers have the fields that are described.
    asked = dict.fromkeys(("alignment", "features", "derivation", "confidence"), True)
    line = client.post("/api/translate", json={"text": LINE, **asked}).json()["lines"][0]
    one = line["translations"][0]
    assert {*one, "arcs"} == set(schemas["Translation"]["properties"])
    node = schemas["Translation"]["properties"]["derivation"]["items"]
    assert set(one["derivation"][0]) == set(node["properties"])
    for path, name, body in (
        ("/api/span", "Span", {"text": LINE, "start": 0, "end": 2}),
        ("/api/compare", "Comparison", {"text": LINE, "translation": "x"}),
    ):
        assert set(client.post(path, json=body).json()) == set(schemas[name]["properties"])
    models = client.get("/api/models").json()
    assert set(models) == set(schemas["Models"]["properties"])
    assert set(models["models"][0]) == set(schemas["Models"]["properties"]["models"]["items"]["properties"])


def test_the_page_loads_nothing_from_elsewhere(client: Client) -> None:
    answer = client.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    text = answer.text.replace("http://www.w3.org/2000/svg", "")
    for sign in ("http:", "https:", "//cdn", "src=", "@import", "url("):
        assert sign not in text
    assert "innerHTML" not in text  # text of users is never markup


def test_pages_of_other_origins(paths: dict[str, Path], client: Client) -> None:
    asked = {"origin": "https://example.org"}
    assert "access-control-allow-origin" not in client.get("/languages", asked).headers
    with served([str(paths["words"])], allow_origin="https://example.org") as other:
        answer = other.get("/languages", asked)
        assert answer.headers["access-control-allow-origin"] == "https://example.org"


def test_the_log_has_a_line_for_each_request(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "hiero.server.access"):
        client.post("/api/translate", json={"text": "haus"})
        client.get('/a"%0a')
        until = time.monotonic() + 10
        while len(caplog.records) < 2 and time.monotonic() < until:
            time.sleep(0.01)  # a line is written after its answer
    lines = [record.getMessage() for record in caplog.records if record.name == "hiero.server.access"]
    assert '"POST /api/translate" 200 ' in lines[0]
    assert '"GET /a??" 404 ' in lines[1]
