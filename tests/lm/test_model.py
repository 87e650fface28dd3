"""Compiled language models, and several models in one."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.mutants import reseal
from hiero.core import directories
from hiero.core.errors import FormatError, HieroError
from hiero.core.records import MAX_ORDER
from hiero.core.symbols import Vocabulary
from hiero.lm.arpa import read_arpa
from hiero.lm.load import compile_language_model, load_language_model, load_language_models
from hiero.lm.model import score_text
from tests.lm.test_arpa import contents

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    compile_language_model(DATA / "tiny.arpa", tmp_path / "tiny.lm")
    return tmp_path / "tiny.lm"


def test_compiled_is_the_same_model_mapped(compiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directories, "SMALL_BYTES", 0)  # so that this small model is mapped
    (model, words), (arpa, same_words) = load_language_model(compiled), read_arpa(DATA / "tiny.arpa").ngrams()
    assert contents(model, words) == contents(arpa, same_words)
    mapped = cast("list[npt.NDArray[Any]]", [*model[:-1], *words])
    for array, other in zip(mapped, cast("list[npt.NDArray[Any]]", [*arpa[:-1], *same_words]), strict=True):
        assert array.dtype == other.dtype
        assert array.shape == other.shape
        assert not array.flags.writeable
        assert array.flags.c_contiguous
    assert np.shares_memory(model.key, model.value)
    alone = load_language_models([("LM", compiled)]).arrays.key
    while isinstance(alone.base, np.ndarray):
        alone = alone.base
    assert isinstance(alone, np.memmap)  # not copied


def test_compiling_records_the_source_and_leaves_no_temporary_files(compiled: Path) -> None:
    meta = json.loads((compiled / "meta.json").read_text())
    assert meta["source"]["name"] == "tiny.arpa"
    assert len(meta["source"]["sha256"]) == 64
    assert [path.name for path in compiled.parent.iterdir()] == ["tiny.lm"]
    compile_language_model(DATA / "tiny.probing", compiled)  # again: it is replaced
    assert json.loads((compiled / "meta.json").read_text())["source"]["name"] == "tiny.probing"
    assert [path.name for path in compiled.parent.iterdir()] == ["tiny.lm"]


def test_only_models_are_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").write_text("x")
    with pytest.raises(HieroError, match="no hiero language model"):
        compile_language_model(DATA / "tiny.arpa", tmp_path / "out")
    assert (tmp_path / "out" / "precious").read_text() == "x"


def test_a_broken_model_leaves_no_output(tmp_path: Path) -> None:
    (tmp_path / "bad.arpa").write_text("\\data\\\nngram 1=2\n\n\\1-grams:\n")
    with pytest.raises(FormatError):
        compile_language_model(tmp_path / "bad.arpa", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.arpa"]


def test_errors_for_damaged_files_are_one_line(compiled: Path, tmp_path: Path) -> None:
    def error_of(path: Path) -> str:
        with pytest.raises(FormatError) as caught:
            load_language_model(path)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    meta = (compiled / "meta.json").read_bytes()
    (tmp_path / "empty").mkdir()
    assert "found no such file, expected a hiero language model" in error_of(tmp_path / "empty")
    assert error_of(tmp_path / "none") == (
        f"{tmp_path / 'none'}: found no such file, expected a language model: ARPA, KenLM binary, or "
        "compiled directory"
    )
    for name, change in [("version", 0), ("format", "hiero grammar"), ("order", 7), ("ngrams", "many")]:
        reseal(compiled, **{name: change})
        error_of(compiled)
        (compiled / "meta.json").write_bytes(meta)
    (compiled / "meta.json").write_text("{")
    assert "found damage" in error_of(compiled)
    (compiled / "meta.json").write_bytes(meta)
    for name in ("slots", "unigram", "word_pool", "word_first", "word_slot"):
        path, kept = compiled / f"{name}.npy", compiled.parent / "kept.npy"
        shutil.copy(path, kept)
        path.write_bytes(kept.read_bytes()[:-1])
        assert f"{name}.npy: found damage" in error_of(compiled)
        np.save(path, np.load(kept).astype(np.complex64))
        assert "an array of another kind" in error_of(compiled)
        np.save(path, np.load(kept)[:-1])
        assert "other content" in error_of(compiled)
        reseal(compiled)
        assert "do not fit together" in error_of(compiled)
        (compiled / "meta.json").write_bytes(meta)
        path.unlink()
        assert f"{name}.npy: found no such file" in error_of(compiled)
        shutil.copy(kept, path)
    load_language_model(compiled)


def test_no_models_at_all() -> None:
    models = load_language_models([])
    assert models.names == ()
    assert models.arrays.first_slot.tolist() == models.arrays.first_word.tolist() == [0]
    assert models.word_ids(Vocabulary([b"a"])).shape[0] == 0


def test_models_side_by_side(compiled: Path) -> None:
    models = load_language_models([("A", DATA / "tiny.arpa"), ("B", compiled), ("C", DATA / "tiny.probing")])
    one = read_arpa(DATA / "tiny.arpa").ngrams()[0]
    slots, words = len(one.key) // 2, len(one.unigram)
    lm = models.arrays
    assert models.names == ("A", "B", "C")
    assert lm.first_slot.tolist() == [0, slots, 2 * slots, 3 * slots]
    assert lm.first_word.tolist() == [0, words, 2 * words, 3 * words]
    assert lm.order.tolist() == [3, 3, 3]
    assert np.shares_memory(lm.key, lm.value)
    assert not any(array.flags.writeable for array in lm if isinstance(array, np.ndarray))


def test_word_ids_follow_the_vocabulary() -> None:
    models = load_language_models([("A", DATA / "tiny.arpa"), ("B", DATA / "tiny.probing")])
    words = Vocabulary([b"the", b"nothing", b"<s>", b"</s>", b"<unk>", b"<UNK>", b"|||"])
    ids = models.word_ids(words)
    assert ids[:, :7].tolist() == [[3, 0, 1, 2, 0, 0, 8]] * 2
    assert ids.dtype == np.int32
    assert ids.flags.c_contiguous
    assert not ids.flags.writeable
    assert np.shares_memory(ids, models.word_ids(words))  # nothing new
    words.intern_all(b"w%d" % i for i in range(5000))
    words.intern(b"cat")
    assert models.word_ids(words)[:, 5007].tolist() == [4, 4]
    assert models.word_ids(Vocabulary([b"cat"]))[:, 0].tolist() == [4, 4]


def test_threads_may_share_word_ids() -> None:
    models, words = load_language_models([("A", DATA / "tiny.arpa")]), Vocabulary()
    known = {b"the": 3, b"cat": 4, b"sat": 5}
    wrong = []

    def work(thread: int) -> None:
        for i in range(200):
            w = words.intern(b"%d %d" % (thread, i))
            k = [words.intern(word) for word in known]
            ids = models.word_ids(words)
            if ids[0, w] != 0 or ids[0, k].tolist() != list(known.values()):
                wrong.append((thread, i))

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_model_that_lies_about_its_order(compiled: Path) -> None:
    lm = load_language_models([("A", compiled)])
    text = "the cat sat on the straße\n".encode()
    assert max(score_text(lm, 0, text).length) == 3
    for order in (1, 2, MAX_ORDER, 0, MAX_ORDER + 1, -1, 2.0, True):
        reseal(compiled, order=order)
        if order in (2, MAX_ORDER) and type(order) is int:
            scored = score_text(load_language_models([("A", compiled)]), 0, text)
            assert max(scored.length) == min(order, 3)
        else:
            with pytest.raises(FormatError, match="do not fit together"):
                load_language_models([("A", compiled)])


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_values_that_are_not_finite(compiled: Path, value: float) -> None:
    for name, place in (("unigram", 1), ("slots", -1)):
        path = compiled / f"{name}.npy"
        kept = path.read_bytes()
        array = np.load(path)
        array.view(np.float32).reshape(-1)[place] = value
        np.save(path, array)
        reseal(compiled)
        with pytest.raises(FormatError, match="do not fit together"):
            load_language_models([("A", compiled)])
        path.write_bytes(kept)


@pytest.mark.parametrize("slot", [0, 2**31 - 1, -2])
def test_a_full_table_or_a_wrong_slot(compiled: Path, slot: int) -> None:
    np.save(compiled / "word_slot.npy", np.full(np.load(compiled / "word_slot.npy").shape, slot, np.int32))
    reseal(compiled)
    with pytest.raises(FormatError, match="do not fit together"):
        load_language_models([("A", compiled)])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match=r"pipe: found a pipe or a device, .* \(a model is read in several"):
        load_language_models([("A", tmp_path / "pipe")])
