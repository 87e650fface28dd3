"""``hiero oracle`` and its search, against enumeration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.cli.main import main
from hiero.core.errors import HieroError
from hiero.decoder.consensus import split_forest
from hiero.evaluation.bleu import MAX_ORDER, References, sentence_bleu
from hiero.jobs.oracle import OracleSearch
from tests.cli.test_decode import TEXT, run, small, written
from tests.naive import forest as naive
from tests.worlds.strategies import enumerated, worlds

__all__ = ["small"]  # a fixture
LIN = sentence_bleu("lin")


def score(text: str, references: list[str]) -> float:
    ids: dict[str, int] = {}
    rows = [[ids.setdefault(w, len(ids)) for w in line.split()] for line in [text, *references]]
    return float(LIN(References([rows[1:]]).statistics(0, rows[:1]))[0])


@given(worlds(dead=False), st.lists(st.lists(st.sampled_from("abc"), min_size=1), min_size=1, max_size=2))
def test_oracles_of_forests(world, words):
    """Exact with a list of all translations; never worse than any list; at most the best of all."""
    references = list(map(" ".join, words))
    search = OracleSearch([words], LIN)
    strings = {
        " ".join("abcdefgh"[w] for w in naive.words(world.tgt, world.edge_rule, one))
        for one in enumerated(world)
    }
    scores = {text: score(text, references) for text in strings}
    best = max(scores.values())
    listed = [one.text for one in world.forest.kbest(1000)]
    sizes = [1, 2, len(listed)]
    oracles = search.of_list(0, listed, sizes)
    for size, one in zip(sizes, oracles, strict=True):
        assert one.bleu == pytest.approx(max(scores[text] for text in listed[:size]))
        assert scores[one.text] == pytest.approx(one.bleu)
    assert search.of_forest(0, world.forest, listed, 1e6).bleu == pytest.approx(best)
    # With the first alone, linear BLEU has to find the others: it does here, where it lists them all.
    found = search.of_forest(0, world.forest, listed[:1], 1e6)
    assert oracles[0].bleu - 1e-12 <= found.bleu <= best + 1e-12
    if len(strings) <= 100:
        assert found.bleu == pytest.approx(best)


@given(
    worlds(dead=False),
    st.lists(st.lists(st.sampled_from("abc"), min_size=1), min_size=1, max_size=2),
    st.integers(1, 40),
)
def test_oracles_of_forests_that_are_too_large(world, words, most):
    """A smaller beam leaves few enough edges; the oracle is no worse than that of the list."""
    search = OracleSearch([words], LIN)
    listed = [one.text for one in world.forest.kbest(3)]
    (of_list,) = search.of_list(0, listed, [3])
    full = search.of_forest(0, world.forest, listed, 1e6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hiero.jobs.oracle.MOST_EDGES", most)
        try:
            found = search.of_forest(0, world.forest, listed, 1e6)
        except HieroError:
            assert split_forest(world.forest.prune(0.0), MAX_ORDER).forest.num_edges > most
            return
    edges = split_forest(world.forest.prune(1e6), MAX_ORDER).forest.num_edges
    assert found.narrowed == (edges > most)
    assert found.bleu >= of_list.bleu - 1e-12
    assert not full.narrowed
    if not found.narrowed:
        assert found.bleu == full.bleu


def oracle(*arguments: str) -> int:
    return main(["oracle", "-q", *arguments])


def test_lists_forests_and_a_model_agree(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, lists, forests = (
        written(tmp_path / "text", TEXT),
        str(tmp_path / "lists"),
        str(tmp_path / "forests"),
    )
    assert run(*small, "-i", text, "-o", lists, "--kbest", "9", "--forest", forests) == 0
    references = ["the woman buys a book today .", "the home", "a home . the book", "buys the house book"] * 3
    reference = written(tmp_path / "ref", "".join(f"{line}\n" for line in references))
    (tmp_path / "c.yaml").write_text(
        f"grammar: [{{path: {small[1]}}}]\nlm: [{{path: {small[5]}}}]\nweights: {{path: {small[3]}}}\n"
    )
    found = {}
    best = tmp_path / "best"
    for name, options in {
        "lists": ["-i", lists],
        "forests": ["--forests", forests, "--write", str(best)],
        "text": ["--text", text, "-c", str(tmp_path / "c.yaml"), "--pop-limits", "200,1", "-j", "2"],
    }.items():
        assert oracle(*options, "-r", reference, "--sizes", "1,3,9", "--format", "json") == 0
        found[name] = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in found["text"]] == ["pop limit 200", "pop limit 1"]
    columns = found["forests"][0]["bleu"]
    assert list(columns) == ["1", "3", "9", "forest"]
    assert found["text"][0]["bleu"] == pytest.approx(columns)
    assert found["lists"][0]["bleu"] == pytest.approx({size: columns[size] for size in ("1", "3", "9")})
    means = list(found["forests"][0]["sentence_bleu"].values())
    assert means == sorted(means)
    assert means[0] < means[-1]
    written_best = [
        score(line, [ref]) for line, ref in zip(best.read_text().splitlines(), references, strict=True)
    ]
    assert sum(written_best) / len(references) == pytest.approx(means[-1])
    assert oracle("-i", lists, "-r", reference, "--sizes", "1,9") == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0].split() == ["BLEU", "of", "the", "oracle", "1", "9"]
    assert float(table[1].split()[1]) == pytest.approx(columns["1"], abs=0.01)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hiero.jobs.oracle.MOST_EDGES", 20)
        assert main(["oracle", "--forests", forests, "-r", reference]) == 0
    assert "of 12 forests were too large, and searched with a smaller --beam" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "requires one of -i LISTS, --forests DIR and --text FILE"),
        (["-i", "in", "--pop-limits", "3"], "argument --pop-limits: requires --text FILE"),
        (["-i", "in", "--sizes", "0,3"], "argument --sizes: found 0, expected at least 1"),
        (["-i", "in", "--metric", "linn"], "unknown sentence BLEU 'linn'"),
        (["-i", "long"], "long: found 4 sentences, expected 1, as many as ref has lines"),
        (["--text", "long"], "long: found 2 sentences, expected 1, as many as ref has lines"),
        (["--forests", "."], "found no file such as 0.json.gz"),
    ],
)
def test_mistakes(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("in", "0 ||| a ||| ||| 0\n"),
        ("long", "0 ||| a ||| ||| 0\n3 ||| a ||| ||| 0\n"),
        ("ref", "a\n"),
    ):
        Path(name).write_text(text)
    assert oracle(*arguments, "-r", "ref", "-o", "out") in (1, 2)
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not Path("out").exists()
