"""Forest files: round trips, and one-line errors for invalid files."""

import gzip
import json

import numpy as np
import pytest
from hypothesis import given

from hiero.core.errors import FormatError, UsageError
from hiero.decoder.forest import Forest, TextMap
from hiero.decoder.forest_features import EdgeFeatures
from tests.decoder.test_forest import empty, goal
from tests.worlds.strategies import worlds

SUFFIXES = [".json", ".json.gz", ".npz"]


def same(one: Forest, other: Forest, exact: bool) -> None:
    def equal(a, b):
        assert a.dtype == b.dtype
        if exact:
            assert a.tolist() == b.tolist()
        else:
            np.testing.assert_allclose(a, b, rtol=1e-8)

    for name in ("edge_score", "edge_lm"):
        equal(getattr(one, name), getattr(other, name))
    for name in ("node_start", "node_end"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
    for a, b in zip(one.graph, other.graph, strict=True):
        assert a.tolist() == b.tolist()
    assert (one.source, one.lm_names) == (other.source, other.lm_names)
    assert [one.labels.text(i) for i in one.node_label] == [other.labels.text(i) for i in other.node_label]


def told(forest: Forest, unique: bool) -> list:
    found = forest.kbest(50, unique)
    return [(d.text, d.edges.tolist(), d.alignment, str(d.tree()), d.lm_scores.tolist()) for d in found]


@given(world=worlds())
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_round_trip(tmp_path_factory, suffix, world):
    path = tmp_path_factory.mktemp("forest") / f"7{suffix}"
    forest = world.forest
    forest.save(path)
    again = Forest.load(path)
    same(forest, again, exact=suffix == ".npz")
    assert told(again, unique=True) == told(forest, unique=True)
    assert told(again, unique=False) == told(forest, unique=False)
    again.save(path)
    same(Forest.load(path), again, exact=True)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("words", [["|||", "[X,1]"], ["\u2028", "a\0b"], ["1", '"'], ["", "ß\ufeff"]])
def test_odd_words(tmp_path, suffix, words):
    path = tmp_path / f"0{suffix}"
    forest = goal(words=TextMap(enumerate(words)), source=tuple(words))
    forest.save(path)
    again = Forest.load(path)
    assert again.source == tuple(words)
    assert again.viterbi().text == " ".join(words)
    assert told(again, unique=True) == told(forest, unique=True)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_features_round_trip(tmp_path, suffix):
    rows = [{"a": 1.0}, {"b": 2.0, "a": 0.5}, {}, {"c": 9.0}, {"b": 1 / 3}]
    forest = goal(edge_features=EdgeFeatures.from_rows(rows))
    forest.save(tmp_path / f"0{suffix}")
    features = Forest.load(tmp_path / f"0{suffix}").viterbi().features
    assert features == pytest.approx({"a": 1.5, "b": 2.0 + 1 / 3}, rel=1e-8)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_empty_forest(tmp_path, suffix):
    path = tmp_path / f"0{suffix}"
    empty().save(path)
    assert (Forest.load(path).num_nodes, Forest.load(path).num_edges) == (1, 0)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_equal_forests_give_equal_files(tmp_path, suffix):
    for name in "ab":
        goal().save(tmp_path / (name + suffix))
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


def test_content_of_json():
    forest = goal(edge_score=np.array([-1 / 3, -0.5, 0.0, -1.0, -np.inf]), lm_names=("LM",))
    assert json.loads(forest.to_json()) == {
        "format": "hiero forest 1",
        "source": ["s"] * 9,
        "language_models": ["LM"],
        "rules": [
            {"lhs": "X", "src": ["a"], "tgt": ["a"], "gaps": [], "links": [[0, 0]]},
            {"lhs": "X", "src": ["b"], "tgt": ["b"], "gaps": [], "links": [[0, 0]]},
            {"lhs": "X", "src": [1, 2], "tgt": [1, 2], "gaps": ["X", "X"], "links": [[0, 0]]},
            {"lhs": "X", "src": [1, 2], "tgt": [2, 1], "gaps": ["X", "X"], "links": []},
        ],
        "nodes": [
            {"label": "X", "span": [0, 1]},
            {"label": "X", "span": [1, 2]},
            {"label": "X", "span": [0, 2]},
            {"label": "X", "span": [0, 2]},
        ],
        "edges": [
            {"head": 0, "tails": [], "rule": 0, "score": -0.333333333, "lm": [0.0]},
            {"head": 1, "tails": [], "rule": 1, "score": -0.5, "lm": [1.0]},
            {"head": 2, "tails": [0, 1], "rule": 2, "score": 0.0, "lm": [2.0]},
            {"head": 2, "tails": [0, 1], "rule": 3, "score": -1.0, "lm": [3.0]},
            {"head": 3, "tails": [2], "rule": None, "score": None, "lm": [4.0]},
        ],
    }


def changed(change) -> str:
    document = json.loads(goal().to_json())
    change(document)
    return json.dumps(document)


def setter(*path, value):
    def change(document):
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (setter("format", value="joshua"), "found format 'joshua', expected 'hiero forest 1'"),
        (setter("edges", 2, "tails", value=[0, 3]), "edge 2 of node 2 has a tail that does not come before"),
        (setter("edges", 2, "tails", value=[0]), "edge 2 of node 2 with 1 tails for 2 gaps"),
        (setter("edges", 2, "tails", value=[0, 1, 1]), "edge 2 with 3 tails"),
        (setter("edges", 4, "rule", value=9), "rule 9 of 4"),
        (setter("edges", 4, "head", value=0), "heads of edges that do not ascend"),
        (setter("edges", 4, "head", value=4), "heads of edges that do not ascend"),
        (
            setter("edges", 0, "score", value="x"),
            "found `str` at `$.edges[0].score`, expected `float | null` (was",
        ),
        (setter("edges", 0, "lm", value=[]), "edge 0 with 0 tails and 0 language model scores"),
        (setter("rules", 2, "tgt", value=[1, 1]), "rule 2 with gaps other than 1, or 1 and 2"),
        (setter("rules", 2, "tgt", value=[1, 3]), "gap 3 of a rule with 2 gaps"),
        (setter("rules", 0, "links", value=[[0, 1]]), "rule 0 with a link 0-1 outside its sides"),
        (setter("rules", 0, "links", value=[[0, 70000]]), "70000"),
        (setter("nodes", 1, "span", value=[2, 1]), "a node that ends before it starts"),
        (setter("nodes", value=3), "found `int` at `$.nodes`, expected `array`"),
    ],
)
def test_invalid_json(tmp_path, change, message):
    path = tmp_path / "0.json"
    path.write_text(changed(change))
    with pytest.raises(FormatError) as error:
        Forest.load(path)
    assert str(error.value).startswith(f"{path}: found ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_invalid_scores(tmp_path):
    forest = goal(edge_score=np.array([np.inf, 0.0, 0.0, 0.0, np.nan]))
    forest.save(tmp_path / "0.npz")
    with pytest.raises(FormatError, match="a score that is not a number or infinite"):
        Forest.load(tmp_path / "0.npz")


MOST_UNPACKED = 1 << 20  # less than in use, which takes long to write


def rewritten(path, **arrays):
    goal().save(path)
    with np.load(path) as file:
        np.savez_compressed(path, **{**file, **arrays})


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"edge_score": np.zeros(3)}, "edge_score as float64 (3,) instead of float64 (5,)"),
        ({"tail": np.zeros((5, 2))}, "tail with 2 dimensions of float64, expected 2 of int32"),
        ({"edge_rule": np.zeros(5, np.int64)}, "edge_rule with 1 dimensions of int64, expected 1 of int32"),
        ({"rule_first_tgt": np.zeros(5, np.int64)}, "offsets of rule_tgt that do not ascend from 0 to 6"),
        ({"rule_first_tgt": np.zeros(2, np.int64)}, "offsets of rule_tgt as int64 (2,)"),
        ({"rule_tgt": np.full(6, 7, np.int32)}, "word 7 of 2"),
        ({"rule_tgt": np.full(6, -30, np.int32)}, "label 7 of 1"),
        ({"node_label": np.full(4, 2, np.int32)}, "label 2 of 1"),
        ({"words": np.zeros(2)}, "words with 1 dimensions of float64, expected 1 of uint8"),
        ({"words": np.array(["a", "b"], object)}, "damage (an array of another kind)"),
        ({"first_edge": np.array(3, np.int64)}, "first_edge with 0 dimensions of int64, expected 1"),
        ({"tail": np.zeros((5, 3), np.int32)}, "tail must be int32 with two columns"),
        ({"edge_rule": np.array(0, np.int32)}, "edge_rule with 0 dimensions of int32, expected 1"),
        (
            {"first_words": np.array([0, 2, 0, 2], np.int64)},
            "offsets of words that do not ascend from 0 to 2",
        ),
        ({"more": np.zeros(MOST_UNPACKED // 8)}, "bytes of arrays"),
    ],
)
def test_invalid_npz(tmp_path, monkeypatch, arrays, message):
    monkeypatch.setattr("hiero.core.directories.MOST_UNPACKED", MOST_UNPACKED)
    path = tmp_path / "0.npz"
    rewritten(path, **arrays)
    with pytest.raises(FormatError) as error:
        Forest.load(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_damaged_files(tmp_path, suffix):
    path = tmp_path / f"0{suffix}"
    goal().save(path)
    whole = path.read_bytes()
    for content in (b"", whole[: len(whole) // 2], b"\xff" + whole[1:], b"{}", gzip.compress(b"\xff\xfe")):
        path.write_bytes(content)
        with pytest.raises(FormatError) as error:
            Forest.load(path)
        assert str(error.value).startswith(str(path))
        assert "\n" not in str(error.value)
    with pytest.raises(FormatError, match="no such file"):
        Forest.load(tmp_path / f"1{suffix}")


def test_nested_json(tmp_path):
    for text in (b"[" * 100_000, b'{"format": ' * 100_000, b'{"x": ' * 100_000):
        (tmp_path / "0.json").write_bytes(text)
        with pytest.raises(FormatError) as caught:
            Forest.load(tmp_path / "0.json")
        assert "\n" not in str(caught.value)


def test_too_much_json(tmp_path, monkeypatch):
    goal().save(tmp_path / "0.json")
    monkeypatch.setattr("hiero.decoder.forest_files.MOST_JSON", 100)
    with pytest.raises(FormatError, match=r"MB of JSON, expected a forest \(write large forests as .npz\)"):
        Forest.load(tmp_path / "0.json")


def test_entries_that_lie_about_their_length(tmp_path):
    path = tmp_path / "0.npz"
    goal().save(path)
    data = path.read_bytes()
    directory = data.rfind(b"PK\1\2")
    path.write_bytes(data[: directory + 20] + b"\xff\xff\xff\x7f" + data[directory + 24 :])
    with pytest.raises(FormatError, match="entries longer than the file"):
        Forest.load(path)


def test_a_missing_array(tmp_path):
    np.savez(tmp_path / "0.npz", tail=np.zeros(3))
    with pytest.raises(FormatError, match="found no array 'first_edge'"):
        Forest.load(tmp_path / "0.npz")


def test_unknown_suffix(tmp_path):
    with pytest.raises(UsageError, match=r"named \.json, \.json\.gz or \.npz"):
        goal().save(tmp_path / "forest.txt")
