"""Language models estimated without the references they score."""

from __future__ import annotations

import dataclasses
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.bitext.groups import PairGroups
from hiero.core.errors import ConfigError, FormatError
from hiero.core.progress import SilentProgress
from hiero.decoder.model import Model
from hiero.jobs.tune import tune
from hiero.lm.config import FALLBACK, EstimateConfig
from hiero.lm.estimate import estimate_language_model
from hiero.lm.load import load_language_models
from hiero.lm.model import score_text
from hiero.tuning.jackknife import Folds, Recipe, assign_folds, jackknifed
from tests.worlds.experiments import Experiment
from tests.worlds.tune import Tuning

RECIPE = EstimateConfig(order=3, discount_fallback=FALLBACK, skip_symbols=True)
GIVEN = (("LM", "given", None),)


def texts(number: int) -> list[str]:
    """Texts in which each line has a word of its own."""
    draw = random.Random(3)
    return [" ".join([*draw.choices("abcdefgh", k=6), f"own{line}"]) for line in range(number)]


def file(path: Path, lines: list[str]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def alone(number: int) -> Any:
    return np.array([number])


def probabilities(path: Path, text: str) -> list[float]:
    found = score_text(load_language_models([("LM", path)]), 0, text.encode() + b"\n")
    return [float(p) for p in found.prob]


def unknown(path: Path, text: str) -> int:
    found = score_text(load_language_models([("LM", path)]), 0, text.encode() + b"\n")
    return sum(word == 0 for word in found.word.tolist())


def estimated(lines: list[str], folder: Path, name: str, config: EstimateConfig = RECIPE) -> Path:
    """A model of these lines only."""
    source = file(folder / f"{name}.txt", lines)
    estimate_language_model(source, folder / name, dataclasses.replace(config, temp=folder), compiled=True)
    return folder / name


class Told(SilentProgress):
    """Keeps the number of folds, and steps."""

    def __init__(self) -> None:
        self.steps: list[int | None] = []

    def begin(self, total: int | None, what: str = "") -> None:
        self.steps.append(total)

    def advance(self, steps: int, note: str = "") -> None:
        self.steps.append(steps)


def test_a_fold_is_scored_by_the_others(tmp_path: Path) -> None:
    lines, told = texts(60), Told()
    references = file(tmp_path / "refs", lines)
    given = estimated(lines, tmp_path, "given")
    # Line 59 is not learnt from, and in all models.
    fold = {line: line % 2 for line in range(59)}
    specs = (("LM", str(given), None), ("Other", "elsewhere", "classes"))
    found = jackknifed(specs, Recipe(None, RECIPE), [references], fold, alone, tmp_path / "folds", told)
    assert told.steps == [2, 1, 1]
    assert len(found.models) == 2
    assert found.part([3, 4]) == Folds(found.models, {3: 1, 4: 0})
    for number, ((name, path, classes), other) in enumerate(found.models):
        assert (name, classes, other) == ("LM", None, specs[1])
        mine = {line for line, own in fold.items() if own == number}
        kept = [line for number, line in enumerate(lines) if number not in mine]
        expected = estimated(kept, tmp_path, f"without{number}")
        for number, line in enumerate(lines):
            assert unknown(Path(path), line) == (number in mine)
            assert unknown(given, line) == 0
            assert probabilities(Path(path), line) == probabilities(expected, line)
    assert not list((tmp_path / "folds").glob("*.txt"))


def test_the_recipe_is_that_of_the_model(tmp_path: Path) -> None:
    """Further text, where references and their copies are left out, order, pruning and vocabulary."""
    lines = texts(20) * 2
    more = [*texts(30)[20:] * 3, *lines, " ".join(reversed(lines[0].split())), f" {lines[1]}  "]
    vocabulary = file(tmp_path / "vocabulary", [*"abcdef", "own0", "own19", "own21"])
    config = dataclasses.replace(RECIPE, order=4, prune=(0, 1), vocabulary=Path(vocabulary))
    recipe = Recipe(file(tmp_path / "text", more), config)
    fold = {line: line // 10 % 2 for line in range(40)}
    references = file(tmp_path / "refs", lines)
    found = jackknifed(GIVEN, recipe, [references], fold, alone, tmp_path / "folds", SilentProgress())
    for number, ((_, path, _),) in enumerate(found.models):
        unseen = {lines[line] for line, own in fold.items() if own == number}
        kept = [line for line in more if line.strip() not in unseen]
        assert len(kept) == len(more) - 20 - (number == 0)
        expected = estimated(kept, tmp_path, f"without{number}", config)
        for line in more:
            assert probabilities(Path(path), line) == probabilities(expected, line)


def test_groups_and_all_references_are_left_out(tmp_path: Path) -> None:
    lines = texts(12)
    sides = [lines[:6], lines[6:]]
    references = [file(tmp_path / f"refs{k}", side) for k, side in enumerate(sides)]
    # Sentences 0 and 3, and 5, which is not learnt from, are left out together.
    labels = PairGroups(np.array([0, 1, 2, 0, 3, 0], np.int32))
    fold = {0: 0, 1: 1, 3: 0}
    recipe = Recipe(file(tmp_path / "text", lines), RECIPE)
    found = jackknifed(GIVEN, recipe, references, fold, labels.of, tmp_path / "folds", SilentProgress())
    missed = [[unknown(Path(path), line) for line in lines] for ((_, path, _),) in found.models]
    assert missed == [[1, 0, 0, 1, 0, 1] * 2, [0, 1, 0, 0, 0, 0] * 2]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(2, 12), st.randoms())
def test_folds_are_parts_of_almost_equal_size(labels: list[int], count: int, draw: random.Random) -> None:
    groups = PairGroups(np.array(labels, np.int32))
    numbers = sorted(draw.sample(range(len(labels)), draw.randint(1, len(labels))))
    fold = assign_folds(numbers, groups.of, count)
    assert sorted(fold) == numbers
    assert all(fold[a] == fold[b] for a in numbers for b in numbers if labels[a] == labels[b])
    sizes = Counter(fold.values())
    assert sorted(sizes) == list(range(len(sizes)))
    assert len(sizes) <= count
    # A part is as large as it should be, but for the group at its end.
    largest = max(Counter(labels[number] for number in numbers).values())
    assert max(sizes.values()) < len(numbers) / count + largest
    firsts = [min(number for number in numbers if fold[number] == part) for part in range(len(sizes))]
    assert firsts == sorted(firsts)


def test_folds_of_sentences_without_groups() -> None:
    assert list(assign_folds(range(10), alone, 3).values()) == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert list(assign_folds([4, 6, 9], alone, 10).values()) == [0, 1, 2]


@pytest.mark.parametrize(
    ("specs", "fold", "message"),
    [
        ((), {0: 0, 1: 1}, "lm: jackknife needs a language model to replace"),
        (GIVEN, {0: 0, 1: 0}, "lm: jackknife needs sentences of several groups, and several folds"),
    ],
)
def test_errors(tmp_path: Path, specs: Any, fold: dict[int, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        jackknifed(specs, Recipe(None, RECIPE), ["none"], fold, alone, tmp_path, SilentProgress())


def test_text_that_has_nothing_else(tmp_path: Path) -> None:
    references, text = file(tmp_path / "refs", ["a b", "c"]), file(tmp_path / "text", ["a b", "a  b"])
    recipe = Recipe(text, RECIPE)
    with pytest.raises(FormatError, match="text: found none, expected lines that are left for lm: jackknife"):
        jackknifed(GIVEN, recipe, [references], {0: 0, 1: 1}, alone, tmp_path / "folds", SilentProgress())


# ---- tuning with them


@pytest.fixture
def world(tmp_path: Path) -> Tuning:
    """Tuning with a language model of the references."""
    world = Tuning(tmp_path / "exp")
    estimated(world.lines("dev.ref"), world.folder, "lm", dataclasses.replace(RECIPE, order=2))
    world.set(lm=[{"path": "lm"}], tune={"lm": "jackknife", "folds": 3, "epochs": 1})
    return world


def models_used(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[int]]:
    """The language models that decode each sentence, filled in later."""
    used: dict[str, set[int]] = {}
    plain = Model.parse

    def noting(self: Model, sentence: Any, *more: Any) -> Any:
        used.setdefault(" ".join(sentence.words), set()).add(id(self.language_models.tables[0].first))
        return plain(self, sentence, *more)

    monkeypatch.setattr(Model, "parse", noting)
    return used


@pytest.mark.parametrize(
    "settings",
    [
        {"algorithm": "adagrad", "batch": 4},
        {"algorithm": "adagrad", "batch": 4, "stale": True},
        {"algorithm": "itermixsgd", "shards": 2, "shuffle_shards": "epoch"},
        {"algorithm": "mert", "forest": True, "directions": 2},
    ],
)
def test_each_sentence_has_the_model_of_its_fold(
    world: Tuning, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    """Whatever the shards; and the held-out set has the given model."""
    used = models_used(monkeypatch)
    world.set(tune=settings)
    tune(world.path, world.folder / "out", workers=2)
    lines = world.lines("dev.src")
    held_out = {model for line in world.lines("devtest.src") if line not in lines for model in used[line]}
    assert len(held_out) == 1
    of_fold = [used[line] - held_out for line in lines]
    assert all(len(models) == 1 for models in of_fold)
    assert len(set.union(*of_fold)) == 3
    # Consecutive sentences, except for repeated ones.
    first = dict.fromkeys(model for models in of_fold for model in models)
    places = [list(first).index(model) for models in of_fold for model in models]
    if len(set(lines)) == len(lines):
        assert places == sorted(places)
    folds = sorted(path.name for path in (world.folder / "out" / "jackknife").iterdir())
    assert folds == ["fold.00", "fold.01", "fold.02"]


def test_results_do_not_depend_on_threads_and_shards_are_no_folds(world: Tuning) -> None:
    world.set(tune={"algorithm": "itermixsgd", "shards": 3})
    given = tune(world.path, world.folder / "given", lm="given")
    found = tune(world.path, world.folder / "jackknife")
    assert found.weights.read_bytes() != given.weights.read_bytes()
    again = tune(world.path, world.folder / "threads", workers=2)
    assert again.weights.read_bytes() == found.weights.read_bytes()
    one = tune(world.path, world.folder / "one", shards=1)
    models = [sorted((world.folder / name / "jackknife").rglob("*.npy")) for name in ("one", "jackknife")]
    assert [path.read_bytes() for path in models[0]] == [path.read_bytes() for path in models[1]]
    assert one.weights.read_bytes() != found.weights.read_bytes()


def change(**keys: Any) -> Callable[[Tuning], None]:
    return lambda world: world.set(lm=[{"path": "lm", **keys}])


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (change(prune=[0, 1]), "jackknife: prune: found [0, 1], expected [], as in the run there"),
        (change(text="dev.ref"), "lm: entry 1: text"),
        (change(vocabulary="dev.ref"), "lm: entry 1: vocabulary"),
        (change(text="none"), "none: found no such file, expected that of lm: entry 1: text"),
        (change(prune=[3, 1]), "lm: entry 1: prune: found 3 1, expected thresholds"),
        (lambda world: world.set(lm=None), "tune: lm: jackknife needs a language model to replace"),
    ],
)
def test_a_run_is_not_resumed_with_another_recipe(
    world: Tuning, capfd: pytest.CaptureFixture[str], edit: Callable[[Tuning], None], message: str
) -> None:
    tune(world.path, world.out)
    edit(world)
    assert message in world.error(capfd, "--resume")


def test_the_recipe_of_hiero_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is that of the section, with groups that are left out of rules as well."""
    recipes: list[Recipe] = []

    def noting(specs: Any, recipe: Recipe, *more: Any) -> Any:
        recipes.append(recipe)
        return jackknifed(specs, recipe, *more)

    monkeypatch.setattr("hiero.tuning.loop.jackknifed", noting)
    experiment = Experiment(tmp_path / "exp")
    experiment.add_line()
    groups = experiment.folder / "groups"
    groups.write_text("x\ny\nx\nz\n\n\ny\n")
    section = {
        "estimate": "train",
        "order": 2,
        "prune": [0, 1],
        "vocabulary": "train.en",
        "skip_symbols": False,
    }
    experiment.set(
        lm=[section | {"discount_fallback": [0.4]}],
        grammar=[{"index": "train", "extract": {"leave_out": "groups"}}],
        weights=None,
        tune={
            **{"algorithm": "sgd", "on": "train", "epochs": 1, "kbest": 5, "held_out": "test"},
            **{"leave_one_out": True, "lm": "jackknife", "folds": 4},
        },
        eval=None,
    )
    assert experiment.run("-q") == 0
    (recipe,) = recipes
    assert recipe.text == str(experiment.folder / "train.en")
    assert (recipe.config.order, recipe.config.prune, recipe.config.discount_fallback) == (2, (0, 1), (0.4,))
    assert recipe.config.vocabulary == experiment.folder / "train.en"
    entry = json.loads((experiment.out / "manifest.json").read_text())["stages"]["tune"]
    assert entry["inputs"]["lm: entry 1: text"]["path"] == str(experiment.folder / "train.en")
    assert entry["settings"]["jackknife"]["prune"] == [0, 1]
