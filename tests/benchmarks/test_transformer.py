"""benchmarks/transformer.py: byte pairs, curves; with PyTorch, the network, search and resuming."""

from __future__ import annotations

import gzip
import itertools
import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import bpe, transformer
from benchmarks.papers.lineplot import svg
from hiero.core.charts import Line, outer_decades
from hiero.core.text import read_lines

GRAMMARS = Path(__file__).parents[2] / "grammars"
WORDS = st.text(st.sampled_from("abcdeß語"), min_size=1, max_size=7)


def test_merges_are_the_most_frequent_pairs() -> None:
    # ab: 5 times, then abc: 3; the end of a word belongs to its last character.
    merges = bpe.learn_merges(["abc abc", "abc ab ab x"], 10)
    assert merges == [("a", "b"), ("ab", "c\0"), ("a", "b\0")]
    assert bpe.learn_merges(["abc abc", "abc ab ab x"], 1) == merges[:1]
    encoder = bpe.Encoder(merges)
    assert encoder.encode("abc ab abd") == ["abc", "ab", "ab@@", "d"]


@given(st.lists(WORDS, max_size=20), st.integers(0, 20), st.lists(WORDS, min_size=1, max_size=5))
def test_decoding_restores_words(train: list[str], number: int, words: list[str]) -> None:
    encoder = bpe.Encoder(bpe.learn_merges([" ".join(train)], number))
    assert bpe.decode(encoder.encode(" ".join(words))) == " ".join(words)
    units = encoder.encode(" ".join(train))
    assert len(units) <= sum(map(len, train))


def test_units_that_are_only_parts_of_others_are_divided() -> None:
    merges = bpe.learn_merges(["abc abc abc"], 10)
    assert merges == [("a", "b"), ("ab", "c\0")]
    assert bpe.Encoder(merges).encode("abd abc") == ["ab@@", "d", "abc"]
    encoder = bpe.Encoder(merges)
    encoder.seen = {"abc", "a@@", "d"}
    assert encoder.encode("abd abc") == ["a@@", "b@@", "d", "abc"]


def slow_merges(words: list[str], number: int) -> list[bpe.Pair]:
    """All pairs are counted anew before each merge."""
    split = [bpe.split(word) for word in words]
    merges: list[bpe.Pair] = []
    while len(merges) < number:
        pairs = [pair for units in split for pair in itertools.pairwise(units)]
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs.count(pair), pair))
        if pairs.count(best) < 2:
            break
        merges.append(best)
        split = [bpe.merged(units, best) for units in split]
    return merges


@given(st.lists(WORDS, max_size=12), st.integers(0, 12))
def test_merges_equal_those_of_counting_anew(words: list[str], number: int) -> None:
    assert bpe.learn_merges([" ".join(words)], number) == slow_merges(words, number)


def test_a_point_is_the_best_on_dev_so_far() -> None:
    rows = [
        {"minutes": 1.0, "dev": 10.0, "bleu": 11.0},
        {"minutes": 2.0, "dev": 9.0, "bleu": 12.0},
        {"minutes": 3.0, "dev": 12.0, "bleu": 13.0},
    ]
    assert transformer.chosen(rows) == [(1.0, 11.0), (2.0, 11.0), (3.0, 13.0)]
    # Tuning chooses nothing: the last iteration counts.
    assert transformer.chosen([{"minutes": 1.0, "bleu": 5.0}, {"minutes": 2.0, "bleu": 4.0}])[-1] == (
        2.0,
        4.0,
    )


def test_marks_of_a_logarithmic_axis() -> None:
    assert outer_decades(0.6, 118) == pytest.approx([0.5, 1, 2, 5, 10, 20, 50, 100, 200])
    assert outer_decades(1, 10) == pytest.approx([1, 2, 5, 10])
    assert outer_decades(3, 3) == pytest.approx([2, 5])


def test_the_picture(tmp_path: Path) -> None:
    curve = tmp_path / "curve.jsonl"
    rows = [{"minutes": 2.0**k, "bleu": 3.0 * k} for k in range(4)]
    rows.insert(0, {"minutes": 0.001, "bleu": 9.0, "by_hand": True})
    curve.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "curves.svg"
    assert transformer.main(["plot", str(out), f"hiero={curve}", f"a < b={curve}"]) == 0
    root = ET.fromstring(out.read_text())
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"hiero", "a < b", "1", "10", "minutes of CPU", "BLEU"} <= set(texts)
    assert len(list(root.iter("{http://www.w3.org/2000/svg}circle"))) == 2 * (4 + 2)
    assert svg([Line("one", ((1.0, 2.0),))], "x", "y")
    with pytest.raises(SystemExit, match=r"found 'nothing', expected NAME=FILE"):
        transformer.main(["plot", str(out), "nothing"])


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="torch is not installed"):
        transformer.main(["train", str(tmp_path / "out"), "--data", str(tmp_path)])
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("flags", [[], ["--split-compounds"]], ids=["", "compounds"])
def test_the_curve_of_hiero(tmp_path: Path, flags: list[str]) -> None:
    """Weights set by hand cost the base only, and each iteration costs more."""
    data = tmp_path / "data"
    data.mkdir()
    for name, number in (("train", 150), ("dev", 8), ("devtest", 8)):
        for side, language in (("src", "de"), ("trg", "en")):
            path = GRAMMARS / f"demo.{name}.{language}{'.gz' if name == 'train' else ''}"
            text = b"".join(line + b"\n" for line in itertools.islice(read_lines(path), number))
            (data / f"{name}.{side}.gz").write_bytes(gzip.compress(text))
    arguments = ["hiero", str(tmp_path / "out"), "--data", str(data), "--epochs", "2", "-q", *flags]
    assert transformer.main(arguments) == 0
    rows = [json.loads(line) for line in (tmp_path / "out" / "curve.jsonl").read_text().splitlines()]
    assert [row["what"] for row in rows] == [
        "weights set by hand",
        "kbmira, iteration 1",
        "kbmira, iteration 2",
    ]
    assert [row.get("by_hand") for row in rows] == [True, None, None]  # is not in the picture
    minutes = [row["minutes"] for row in rows]
    assert 0 < minutes[0] < minutes[1] < minutes[2]
    base = json.loads((tmp_path / "out" / "base.run" / "manifest.json").read_text())["stages"]
    assert {name.partition(":")[0] for name in base} >= {"align", "lm", "index"}
    assert any(name.startswith("split") for name in base) == bool(flags)
    assert minutes[0] == pytest.approx(sum(map(transformer.seconds, base.values())) / 60)
    assert all(0 < row["bleu"] <= 100 for row in rows)


# ---- with PyTorch

SETTINGS = transformer.Settings(
    layers=2, width=16, inner=16, heads=2, merges=5, tokens=64, snapshot=2, warmup=10, beam=2
)
SETS = {
    name: (["a b c", "b c", "c a a b", "b", "a c c"], ["c b a", "c b", "b a a c", "b", "c c a"])
    for name in ("train", "dev", "devtest")
}


def test_steps_of_search_have_the_scores_of_the_whole() -> None:
    torch = pytest.importorskip("torch", reason="the network needs it")
    from benchmarks import transformer_model as model

    torch.manual_seed(1)
    network = model.Transformer(model.Shape(units=11, layers=2, width=16, inner=8, heads=2)).eval()
    source = model.padded([[5, 6, 7, model.END], [8, model.END]])
    target = model.padded([[model.BEGIN, 5, 9, 4], [model.BEGIN, 10, 6, 8]])
    with torch.no_grad():
        whole = network(source, target)
        memory, mask = network.encode(source)
        past = [None] * 2
        for at in range(4):
            scores, past = network.step(target[:, at], at, memory, mask, past)
            assert torch.allclose(scores, whole[:, at], atol=1e-5)
        # What pads a source changes nothing.
        alone = network(source[1:, :2], target[1:])
    assert torch.allclose(alone[0], whole[1], atol=1e-5)


def test_a_wide_beam_finds_the_best_translation() -> None:
    """Better than every output of at most two units, none of which leaves the beam."""
    torch = pytest.importorskip("torch", reason="the network needs it")
    from benchmarks import transformer_model as model

    torch.manual_seed(3)
    network = model.Transformer(model.Shape(units=6, layers=1, width=8, inner=8, heads=1)).eval()
    source = [4, model.END]

    def score(output: list[int]) -> float:
        with torch.no_grad():
            logs = network(torch.tensor([source]), torch.tensor([[model.BEGIN, *output]])).clone()
        logs[:, :, [model.PAD, model.BEGIN]] = -torch.inf
        logs = logs.log_softmax(-1)[0]
        total = sum(float(logs[at, unit]) for at, unit in enumerate([*output, model.END]))
        return total / ((5 + len(output) + 1) / 6)

    found = model.beam_search(network, [source], 40, 1.0)[0]
    outputs: list[list[int]] = [[]]
    for _ in range(2):
        outputs += [[*output, unit] for output in outputs for unit in (model.UNKNOWN, 4, 5)]
    assert score(found) >= max(map(score, outputs)) - 1e-5
    # Alone and in a batch with others.
    assert model.beam_search(network, [[5, 5, 4, model.END], source], 40, 1.0)[1] == found


def test_batches_hold_every_pair_once() -> None:
    pytest.importorskip("torch", reason="the network needs it")
    from benchmarks import transformer_model as model

    pairs = [([5] * (k % 7 + 1), [6] * (k % 5 + 2)) for k in range(40)]
    found = model.batches(pairs, 24, seed=1)
    assert sorted(k for batch in found for k in batch) == list(range(40))
    assert all(len(batch) * max(max(map(len, pairs[k])) for k in batch) <= 24 for batch in found)
    assert found == model.batches(pairs, 24, seed=1) != model.batches(pairs, 24, seed=2)


@pytest.mark.once
def test_training_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="the network needs it")
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    whole = transformer.Training(tmp_path / "whole", SETS, SETTINGS)
    batch = range(len(whole.pairs))
    for _ in range(12):
        whole.update(batch)
    part = transformer.Training(tmp_path / "killed", SETS, SETTINGS)
    for _ in range(7):
        part.update(batch)
    part.save()
    part.update(batch)  # lost
    part = transformer.Training(tmp_path / "killed", SETS, SETTINGS)
    assert part.updates == 7
    for _ in range(5):
        part.update(batch)
    own, other = whole.network.state_dict(), part.network.state_dict()
    assert all(torch.equal(own[name], other[name]) for name in own)
    assert whole.loss == part.loss
    assert len(part.snapshots) == transformer.SNAPSHOTS
    assert part.evaluate(1.0).startswith("0.")
    assert (tmp_path / "killed" / "devtest.output").exists()
    part.save()
    with pytest.raises(SystemExit, match="found other settings"):
        transformer.Training(tmp_path / "killed", SETS, replace(SETTINGS, rate=0.5))


@pytest.mark.slow
def test_sentences_are_learnt_by_heart() -> None:
    pytest.importorskip("torch", reason="the network needs it")
    assert transformer.main(["check"]) == 0


def test_sets_that_do_not_match(tmp_path: Path) -> None:
    (tmp_path / "dev.src.gz").write_bytes(gzip.compress(b"a\nb\n"))
    with pytest.raises(SystemExit, match=r"dev\.trg\.gz: found no such file"):
        transformer.read_set(tmp_path, "dev")
    (tmp_path / "dev.trg.gz").write_bytes(gzip.compress(b"a\n"))
    with pytest.raises(SystemExit, match=r"found 1 lines, expected 2"):
        transformer.read_set(tmp_path, "dev")
