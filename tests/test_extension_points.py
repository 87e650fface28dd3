"""Extensions that need a row of a table, beside their own code."""

from __future__ import annotations

from pathlib import Path

import pytest

from hiero.cli.main import main
from hiero.config.config import config_of
from hiero.config.load import model_settings
from hiero.core.symbols import Symbols
from hiero.grammar.cdec import parse_cdec
from hiero.grammar.config import FORMATS, Format, GrammarFormat
from hiero.grammar.reader import RuleReader
from hiero.grammar.sources import read_grammar
from tests.worlds.grammars import rules_of

# ---- formats of grammars


class TabReader(RuleReader):
    """Reads ``source<TAB>target<TAB>value``."""

    def __init__(self, path, symbols, owner):
        super().__init__(path, symbols)
        self.owner = owner

    @staticmethod
    def recognises(line):
        return line.count(b"\t") == 2

    def read(self, chunks=None, progress=None):
        lines = b"".join(chunk.data for chunk in chunks).decode().splitlines()
        rules = [
            "[X] ||| {} ||| {} ||| {owner}={}".format(*line.split("\t"), owner=self.owner) for line in lines
        ]
        return parse_cdec(rules, self.symbols)


def test_a_format_of_grammars(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys) -> None:
    """It is recognised, read with its settings, and known to configurations and commands."""
    monkeypatch.setitem(FORMATS, "tabs", Format(f"{__name__}:{TabReader.__name__}", ("owner",)))
    path = tmp_path / "rules"
    path.write_text("a\tb\t2\na\tc\t3\n")
    symbols = Symbols()
    expected = [(b"X", (b"a",), (b"b",), {b"me": 2.0}, []), (b"X", (b"a",), (b"c",), {b"me": 3.0}, [])]
    assert rules_of(read_grammar(path, symbols, GrammarFormat(owner="me")), symbols) == expected
    assert (
        rules_of(read_grammar(path, symbols, GrammarFormat(format="tabs", owner="me")), symbols) == expected
    )
    assert main(["grammar", "convert", str(path), "--format", "tabs", "--owner", "me"]) == 0
    assert capsys.readouterr().out == "[X] ||| a ||| b ||| me=2\n[X] ||| a ||| c ||| me=3\n"
    config = config_of({"grammar": [{"path": str(path), "format": "tabs"}]})
    assert model_settings(config)["grammar"] == [
        {"format": "tabs", "owner": "pt", "sign": -1, "scale": "cdec"}
    ]
