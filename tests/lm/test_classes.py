"""Models of classes: files of classes, scores against KenLM's of the mapped text, estimation."""

from __future__ import annotations

import gzip
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hiero.core.errors import ConfigError, FormatError
from hiero.core.symbols import Vocabulary, table_entry
from hiero.lm.classes import read_classes
from hiero.lm.config import FALLBACK, EstimateConfig
from hiero.lm.estimate import estimate_language_model
from hiero.lm.load import ModelFiles, load_language_models
from hiero.lm.model import score_text
from tests.lm.test_arpa import contents
from tests.lm.test_estimate import TEXTS, read_model, write_text
from tests.lm.test_scores import by_line
from tests.naive.lm import read_arpa as naive_read_arpa
from tests.worlds.lm import WORDS, arpa_texts, kenlm_model

DATA = Path(__file__).parents[1] / "data"
TINY = DATA / "tiny.arpa"


def write_classes(path: Path, classes: dict[str, str], separator: str = "\t") -> Path:
    path.write_text("".join(f"{word}{separator}{name}\n" for word, name in classes.items()), encoding="utf-8")
    return path


# ---- files


def test_a_file_of_classes(tmp_path: Path) -> None:
    path = tmp_path / "classes.gz"
    path.write_bytes(gzip.compress("<s> <s>\nbig\tC1\r\n  tall   C1\nstraße\t7".encode()))
    classes = read_classes(path)
    entries = [table_entry(classes.words, word) for word in range(len(classes.class_of))]
    assert entries == [b"<unk>", b"<s>", b"</s>", b"big", b"tall", "straße".encode()]
    assert classes.names == (b"<unk>", b"<s>", b"</s>", b"C1", b"7")
    assert classes.class_of.tolist() == [0, 1, 2, 3, 3, 4]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"big 1\ntall\n", ":2: found 1 fields, expected a word and its class on each line"),
        (b"big 1\n\n", ":2: found 0 fields"),
        (b"1010 big 7\n", ":1: found 3 fields"),
        (b"big 1\nbig 1\n", ":2: found the word 'big' again, expected every word once"),
        (b"<unk> 1\n", ":1: found '<unk>'"),
        (b"big </s>\n", ":1: found '</s>'"),
        (b"", ": found no words"),
        (b"<s> <s>\n", ": found no words"),
        (b"\xff\xfe 1\n", ":1: found"),
        (b"a\0b 1\n", ":1: found"),
        (gzip.compress(b"big 1\n" * 99)[:-9], ":100: found the end of the file in the middle"),
        (b"big nine\n", ": found no class of the model, expected its classes"),
    ],
)
def test_mistakes_in_files_of_classes(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "classes"
    path.write_bytes(content)
    with pytest.raises(FormatError) as caught:
        load_language_models([ModelFiles("C", TINY, path)])
    assert f"{path}{message}" in str(caught.value)
    assert "\n" not in str(caught.value)


# ---- scores

MAPPED = [f"w{n}" for n in range(8)]
MAPS = st.dictionaries(st.sampled_from([*MAPPED, *WORDS[:2]]), st.sampled_from([*WORDS, "none"]), min_size=1)


@given(arpa_texts(min_order=2, closed=True), MAPS, st.data())
def test_scores_are_those_of_the_classes(text: str, classes: dict[str, str], data: st.DataObject) -> None:
    words = st.sampled_from([*MAPPED, *WORDS[:3], "<unk>", "unseen"])
    assume(any((name,) in naive_read_arpa(text).listed for name in classes.values()))
    sentences = data.draw(st.lists(st.lists(words, max_size=8), max_size=4))
    with TemporaryDirectory() as folder:
        arpa = Path(folder) / "model.arpa"
        arpa.write_bytes(text.encode())
        oracle = kenlm_model(arpa)
        place = write_classes(Path(folder) / "classes", classes)
        models = load_language_models([ModelFiles("C", arpa, place)])
    plain = "".join(" ".join(sentence) + "\n" for sentence in sentences).encode()
    mapped = [" ".join(classes.get(word, "<unk>") for word in sentence) for sentence in sentences]
    if oracle is not None:
        scored = by_line(score_text(models, 0, plain))
        assert scored == [[(prob, n) for prob, n, _ in oracle.full_scores(line)] for line in mapped]
    vocabulary = Vocabulary(word.encode() for word in [*MAPPED, "<s>", "</s>", "<unk>"])
    ids = models.word_ids(vocabulary)[0, : len(vocabulary)].tolist()
    named = [classes.get(word) for word in MAPPED]
    for one, name in zip(ids, named, strict=False):
        same = {other for other, theirs in zip(ids, named, strict=False) if theirs == name}
        assert same == {one}
    assert ids[-3:] == [models.arrays.bos[0], models.arrays.eos[0], 0]


def test_a_model_of_classes_beside_one_of_words(tmp_path: Path) -> None:
    place = write_classes(tmp_path / "classes", {"x": "the", "y": "the", "z": "cat"}, " ")
    models = load_language_models([("W", TINY), ModelFiles("C", TINY, place)])
    vocabulary = Vocabulary([b"the", b"x", b"y", b"z", b"none"])
    words, classes = models.word_ids(vocabulary)[:, :5].tolist()
    assert classes == [0, words[0], words[0], classes[3], 0]
    assert classes[3] != words[0]
    assert words[1:] == [0] * 4
    scored = score_text(models, 1, b"x z\ny z\n")
    assert by_line(scored)[0] == by_line(scored)[1]
    assert by_line(scored)[0] == by_line(score_text(models, 0, b"the cat\n"))[0]


# ---- estimation


@given(TEXTS, st.integers(1, 4), st.data())
def test_estimation_is_that_of_the_mapped_text(
    sentences: list[list[str]], order: int, data: st.DataObject
) -> None:
    words = sorted({word for line in sentences for word in line})
    classes = data.draw(
        st.dictionaries(st.sampled_from([*words, "more"]), st.sampled_from("CDE"), min_size=1)
    )
    mapped = [[classes.get(word, "@") for word in line] for line in sentences]
    config = EstimateConfig(order=order, discount_fallback=FALLBACK, memory=1 << 24)
    with TemporaryDirectory() as folder:
        place = Path(folder)
        write_classes(place / "classes", classes)
        (place / "names").write_text(" ".join(dict.fromkeys(classes.values())))
        found = estimate_language_model(
            write_text(place / "text", sentences),
            place / "found.arpa",
            EstimateConfig(**{**vars(config), "classes": place / "classes"}),
            compiled=False,
        )
        estimate_language_model(
            write_text(place / "mapped", mapped),
            place / "expected.arpa",
            EstimateConfig(**{**vars(config), "vocabulary": place / "names"}),
            compiled=False,
        )
        assert read_model(place / "found.arpa") == read_model(place / "expected.arpa")
    assert found.num_unknown == sum(line.count("@") for line in mapped)


def test_a_compiled_model_of_classes(tmp_path: Path) -> None:
    classes = write_classes(tmp_path / "classes", {"x": "C", "y": "D"})
    text = write_text(tmp_path / "text", [["x", "y", "new", "x"], ["y", "y"]])
    config = EstimateConfig(order=3, discount_fallback=FALLBACK, classes=classes)
    for name, compiled in (("lm", True), ("lm.arpa", False)):
        estimate_language_model(text, tmp_path / name, config, compiled=compiled)
    one, two = (
        load_language_models([ModelFiles("C", tmp_path / name, classes)]) for name in ("lm", "lm.arpa")
    )
    assert contents(one.arrays, one.tables[0]) == contents(two.arrays, two.tables[0])


def test_a_vocabulary_and_classes_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="vocabulary: cannot be combined with classes"):
        EstimateConfig(vocabulary=Path("words"), classes=Path("classes"))
