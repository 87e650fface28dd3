"""Tokenisers: characters, SentencePiece, and those of other packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from hiero.bitext.config import PrepConfig
from hiero.bitext.prepare import Cleaner, unsegmented_note
from hiero.bitext.tokenizers import MARK, make_tokenizer, tokenizer_name
from hiero.cli.main import main
from hiero.core.errors import ConfigError, HieroError

pytest.importorskip("sacremoses", reason="Moses' tokeniser needs it")


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("zh", "我用Python 3写代码。", "我 用 Python 3 写 代 码 。"),
        ("zh-TW", "你好，世界！", "你 好 ， 世 界 ！"),
        ("ja", "これは本です。Yes, it is.", "こ れ は 本 で す 。 Yes , it is ."),
        ("de", "Das ist ein Buch.", "Das ist ein Buch ."),
    ],
)
def test_by_language(language: str, text: str, words: str) -> None:
    assert Cleaner(language, PrepConfig())(text) == (words, False)
    back = make_tokenizer(language, PrepConfig()).join(words.split())
    assert back.replace(" ", "") == text.replace(" ", "")
    if language == "zh-TW":
        assert back == text


def test_names() -> None:
    assert tokenizer_name("JA_jp", PrepConfig()) == "characters"
    assert tokenizer_name("en", PrepConfig()) == "moses"
    assert tokenizer_name("zh", PrepConfig(tokenizer="moses")) == "moses"
    assert "Chinese words are not segmented" in unsegmented_note("zh", PrepConfig(tokenizer="moses"))
    assert unsegmented_note("zh", PrepConfig()) == ""
    assert "Thai" in unsegmented_note("th", PrepConfig())
    with pytest.raises(
        ConfigError, match="tokenizer: found 'words', expected one of auto, moses, characters"
    ):
        PrepConfig(tokenizer="words")


def test_sentencepiece(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package = pytest.importorskip("sentencepiece", reason="the model is trained by it")
    text = tmp_path / "text"
    text.write_text("das alte haus steht am see .\nein neues haus steht am wald .\n" * 20, encoding="utf-8")
    package.SentencePieceTrainer.train(
        input=str(text),
        model_prefix=str(tmp_path / "joint"),
        vocab_size=30,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    model = tmp_path / "joint.model"
    options = ("--tokenizer", "sentencepiece", "--sentencepiece-model", str(model))
    assert main(["prep", "-q", "-i", str(text), "-o", str(tmp_path / "pieces"), *options]) == 0
    pieces = (tmp_path / "pieces").read_text(encoding="utf-8").splitlines()
    assert all(line.startswith(MARK) for line in pieces)
    assert all(len(line.split()) > 6 for line in pieces)
    back = ("prep", "-q", "--detokenize", "--no-recase", "-i", str(tmp_path / "pieces"), *options)
    assert main([*back, "-o", str(tmp_path / "back")]) == 0
    assert (tmp_path / "back").read_bytes() == text.read_bytes()

    # Without a model, and with a file that is none.
    wrong = ["prep", "-q", "-i", str(text), "-o", str(tmp_path / "none"), "--tokenizer", "sentencepiece"]
    assert main(wrong) == 1
    assert capsys.readouterr().err == "sentencepiece_model is missing (a file made by SentencePiece)\n"
    assert main([*wrong, "--sentencepiece-model", str(text)]) == 1
    err = capsys.readouterr().err
    assert f"{text}: not a model of SentencePiece" in err
    assert not (tmp_path / "none").exists()


class Spelled:
    """A tokeniser of another package: letters."""

    def __init__(self, language: str, config: PrepConfig) -> None:
        self.language = language

    def split(self, text: str) -> str:
        return " ".join(text.replace(" ", "_"))

    def join(self, words: list[str]) -> str:
        return "".join(words).replace("_", " ")


def test_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"spelled": f"{__name__}:Spelled", "lost": "nowhere:Lost"}
    monkeypatch.setattr("hiero.bitext.config.plugins", lambda group: found)
    monkeypatch.setattr("hiero.core.plugins.plugins", lambda group: found)
    config = PrepConfig(tokenizer="spelled")
    assert Cleaner("de", config)("ab c") == ("a b _ c", False)
    assert make_tokenizer("de", config).join(["a", "b", "_", "c"]) == "ab c"
    with pytest.raises(HieroError, match=r"plug-in 'lost' of hiero.tokenizers: cannot import nowhere:Lost"):
        make_tokenizer("de", PrepConfig(tokenizer="lost"))
