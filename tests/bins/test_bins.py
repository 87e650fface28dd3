"""Application of bins to dense features, from all kinds of grammar sources."""

from __future__ import annotations

import gzip
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hiero
from hiero.bins.bins import Binned, FeatureBins, bin_table, raw_values
from hiero.bins.file import write_bins
from hiero.bins.kernels import bins_kernel
from hiero.cli.main import main
from hiero.core.arrays import read_only
from hiero.core.errors import HieroError
from hiero.core.symbols import Symbols
from hiero.grammar.rules import RuleTable
from hiero.grammar.sources import RuleList
from tests.naive import bins as naive
from tests.worlds.bins import begins

# Weights here leave out what a test does not need.
pytestmark = pytest.mark.filterwarnings("ignore::hiero.core.errors.HieroWarning")

numbers = st.floats(-8, 8, width=32) | st.sampled_from([0.0, 1.0, -math.inf, math.inf])


@st.composite
def worlds(draw: st.DrawFn) -> Any:
    features = draw(st.integers(1, 3))
    rules = draw(st.integers(0, 6))
    begin = [draw(begins()) for _ in range(features)]
    value = [draw(st.lists(numbers, min_size=rules, max_size=rules)) for _ in range(features)]
    if rules and draw(st.booleans()):
        value[draw(st.integers(0, features - 1))][draw(st.integers(0, rules - 1))] = math.nan
    overlap = [draw(st.integers(0, 2)) for _ in range(features)]
    entry = st.tuples(st.integers(0, 9), st.sampled_from([0.5, 2.0]))
    sparse = [draw(st.lists(entry, max_size=3)) for _ in range(rules)]
    ends = np.cumsum([10, *map(len, begin)]).tolist()
    names = [list(range(a, b)) for a, b in itertools.pairwise(ends)]
    return value, begin, overlap, names, sparse


@given(worlds())
def test_kernel_equals_its_twin(world: Any) -> None:
    value, begin, overlap, names, sparse = world
    bins = [
        FeatureBins(feature=f"F{k}", begin=np.array(b, np.float32), overlap=o)
        for k, (b, o) in enumerate(zip(begin, overlap, strict=True))
    ]
    table = bin_table(bins, [np.array(n, np.int32) for n in names])
    first = np.cumsum([0, *map(len, sparse)], dtype=np.int64)
    name = np.array([n for row in sparse for n, _ in row], np.int32)
    weight = np.array([v for row in sparse for _, v in row], np.float32)
    room = len(name) + len(sparse) * sum(2 * o + 1 for o in overlap)
    out = np.empty(len(sparse) + 1, np.int64), np.empty(room, np.int32), np.empty(room, np.float32)
    values = np.array(value, np.float32).reshape(len(begin), len(sparse))
    wrong = bins_kernel(read_only(values), table, read_only(first), read_only(name), read_only(weight), *out)
    expected = naive.fired(value, begin, overlap, names, sparse)
    if isinstance(expected, tuple):
        k, r = divmod(int(wrong), len(sparse))
        assert math.isnan(value[k][r])
        assert r == min(j for row in value for j, x in enumerate(row) if math.isnan(x))
        return
    assert wrong == -1
    found = [
        list(zip(out[1][a:b].tolist(), out[2][a:b].tolist(), strict=True))
        for a, b in itertools.pairwise(out[0].tolist())
    ]
    assert found == expected


@given(begins(), numbers)
def test_bins_partition_the_line(begin: list[float], value: float) -> None:
    """A value fires one bin: the one between whose lower bound and the next it lies."""
    table = bin_table(
        [FeatureBins(feature="F", begin=np.array(begin, np.float32))], [np.arange(len(begin), dtype=np.int32)]
    )
    out = np.empty(2, np.int64), np.empty(1, np.int32), np.empty(1, np.float32)
    rules = read_only(np.array([[value]], np.float32))
    no_sparse = (np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    assert bins_kernel(rules, table, *map(read_only, no_sparse), *out) == -1
    assert out[0].tolist() == [0, 1]
    (fired,) = out[1].tolist()
    ends = [*begin[1:], math.inf]
    assert begin[fired] <= value
    assert value < ends[fired] or fired == len(begin) - 1


# ---- values


def test_conversion_from_logarithms() -> None:
    counts = np.arange(0, 3000)
    column = np.log10(1.0 + counts).astype(np.float32)
    assert raw_values("count", column).tolist() == counts.tolist()
    probabilities = np.array([1, 0.5, 1 / 3, 1e-5, 1e-30], np.float32)
    back = raw_values("probability", -np.log10(probabilities.astype(np.float64)).astype(np.float32))
    assert back == pytest.approx(probabilities, rel=1e-5)
    assert raw_values("probability", np.array([400.0], np.float32)).tolist() == [0.0]
    assert raw_values("given", column) is column


def test_rounding_of_powers_does_not_matter() -> None:
    """A value at the lower bound of a bin is in this bin, in spite of rounding errors."""
    column = np.float32(math.log10(3))
    begin = raw_values("probability", np.array([column]))[0]
    for noise in (-1e-16, 0.0, 1e-16):
        assert np.float32(10.0 ** -float(column) * (1 + noise)) == begin


# ---- grammars

RULES = [
    "[X] ||| a ||| A ||| P=0.3 C=0.4771213 Own=-2",
    "[X] ||| a ||| B ||| P=1 C=0.30103",
    "[X] ||| b ||| B b ||| P=0 C=1 Own=4",
    "[X] ||| [X,1] b ||| [1] ||| P=2 C=0.30103",
    "[X] ||| a [X,1] ||| [1] ||| P=0.5 C=0.30103",
]


def bins(feature: str, *begin: float, **more: Any) -> FeatureBins:
    return FeatureBins(feature=feature, begin=np.array([-math.inf, *begin], np.float32), **more)


def applied(*chosen: FeatureBins) -> list[dict[str, float]]:
    """The features of each of the rules."""
    symbols = Symbols()
    table = Binned(RuleList(symbols, RULES), chosen, symbols)
    return features(table.rules_for(symbols.words.intern_all([b"a", b"b"]), {}), symbols)


def features(table: RuleTable, symbols: Symbols) -> list[dict[str, float]]:
    rules, rows = table.rules, []
    assert rules.dense.shape == (table.num_rules, len(table.columns))
    for r in range(table.num_rules):
        row = {symbols.names.text(c): v for c, v in zip(table.columns, rules.dense[r].tolist(), strict=True)}
        here = slice(rules.first_sparse[r], rules.first_sparse[r + 1])
        row |= {
            symbols.names.text(n): v
            for n, v in zip(rules.sparse_name[here].tolist(), rules.sparse_value[here].tolist(), strict=True)
        }
        tgt = rules.tgt[rules.first_tgt[r] : rules.first_tgt[r + 1]]
        row["?"] = float((tgt >= 0).sum())
        rows.append(row)
    return rows


def names_of(rows: list[dict[str, float]], prefix: str) -> list[list[str]]:
    return sorted(sorted(name for name in row if name.startswith(prefix)) for row in rows)


def test_a_dense_feature_becomes_one_indicator_per_rule() -> None:
    rows = applied(bins("P", 0.1, 0.5, of="probability"))
    assert names_of(rows, "P") == sorted(
        [["P_bin3_0.5"], ["P_bin2_0.1"], ["P_bin3_0.5"], ["P_bin1_-inf"], ["P_bin2_0.1"]]
    )
    assert all("C" in row for row in rows)


def test_kept_numbers_are_converted_like_those_in_bins() -> None:
    rows = applied(bins("P", 0.1, of="probability", keep=True), bins("C", 1, keep=True))
    assert sorted(row["P_probability"] for row in rows) == pytest.approx([0.01, 0.1, 10**-0.5, 10**-0.3, 1.0])
    assert sorted(row["C"] for row in rows) == pytest.approx([0.30103, 0.30103, 0.30103, 0.4771213, 1.0])
    assert all("P" not in row for row in rows)


def test_a_feature_is_0_for_rules_without_it() -> None:
    rows = applied(bins("Own", 0, 1, overlap=1))
    assert names_of(rows, "Own") == sorted(
        [
            ["Own_bin1x3_-inf", "Own_bin2x3_0"],
            ["Own_bin2x3_0", "Own_bin3x3_1"],
            *[["Own_bin1x3_-inf", "Own_bin2x3_0", "Own_bin3x3_1"]] * 3,
        ]
    )


def test_overlap_larger_than_the_number_of_bins() -> None:
    """It fires all bins and needs no more memory than that."""
    rows = applied(bins("P", 0.1, 0.5, overlap=10**17))
    assert [len(names) for names in names_of(rows, "P_bin")] == [3] * 5


def test_transforms_without_bins() -> None:
    rows = applied(FeatureBins(feature="P"), FeatureBins(feature="C", of="count", keep=True))
    assert all(not any(name.startswith("P") for name in row) for row in rows)
    assert sorted(row["C_count"] for row in rows) == [1, 1, 1, 2, 9]


def test_bins_of_the_number_of_target_words() -> None:
    for row in applied(bins("WordPenalty", 1, 2)):
        wanted = {0: "WordPenalty_bin1_-inf", 1: "WordPenalty_bin2_1", 2: "WordPenalty_bin3_2"}
        assert wanted[int(row["?"])] in row


def test_grammars_without_the_feature_get_no_bins() -> None:
    symbols = Symbols()
    source = Binned(RuleList(symbols, ["[X] ||| a ||| A ||| Q=1"]), [bins("P", 1)], symbols)
    rows = features(source.rules_for(symbols.words.intern_all([b"a"]), {}), symbols)
    assert rows == [{"Q": 1.0, "?": 1.0}]


def test_nan_is_reported_with_its_rule() -> None:
    symbols = Symbols()
    source = RuleList(symbols, RULES)
    dense = source.grammar.rules.dense.copy()
    dense[0, 0] = np.nan
    source.grammar = type(source.grammar)(
        source.grammar.rules._replace(dense=read_only(dense)), source.grammar.trie, source.grammar.columns
    )
    with pytest.raises(HieroError, match=r"^P: found nan in the rule \[X\] \|\|\| .* expected a number$"):
        Binned(source, [bins("P", 1)], symbols).rules_for(symbols.words.intern_all([b"a", b"b"]), {})


# ---- a model with bins

WEIGHTS = {"P_bin2_0.1": -1.0, "P_bin3_0.5": -0.25, "C": 0.5, "Glue": -0.1, "PassThrough": -5.0}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    write_bins(tmp_path / "my.bins", [bins("P", 0.1, 0.5, of="probability")])
    (tmp_path / "grammar").write_text("".join(f"{rule}\n" for rule in RULES))
    (tmp_path / "weights").write_text("".join(f"{name} {value}\n" for name, value in WEIGHTS.items()))
    (tmp_path / "in").write_text("a b b\na\n")
    return tmp_path


def test_score_is_the_dot_product(files: Path) -> None:
    model = hiero.load(rules=RULES, weights=WEIGHTS, bins=files / "my.bins")
    for derivation in model.parse("a b b a").kbest(50):
        dot = sum(WEIGHTS.get(name, 0.0) * value for name, value in derivation.features.items())
        assert derivation.score == pytest.approx(dot)
        assert "P" not in derivation.features
        bins_fired = sum(v for name, v in derivation.features.items() if name.startswith("P_bin"))
        own_rules = derivation.features.get("PassThrough", 0) + derivation.features.get("Glue", 0) + 1
        assert (
            bins_fired == (derivation.rules >= 0).sum() - own_rules
        )  # glue and pass-through rules have none


def test_all_ways_to_load_bins_are_equal(files: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config = files / "model.yaml"
    config.write_text("grammar: [{path: grammar}]\nweights: {path: weights}\nfeatures: {bins: my.bins}\n")
    packed = files / "grammar.gz"
    packed.write_bytes(gzip.compress((files / "grammar").read_bytes()))
    assert main(["grammar", "compile", str(files / "grammar"), str(files / "compiled")]) == 0
    inline = files / "in.sgm"
    inline.write_text("".join(f'<seg grammar="grammar">{x}</seg>\n' for x in ("a b b", "a")))
    more = ["--kbest", "20", "-q"]
    direct = ["--bins", str(files / "my.bins"), "-w", str(files / "weights")]
    commands = [["-c", str(config), "-i", str(files / "in")]]
    commands += [["-g", str(files / g), *direct, "-i", str(files / "in")] for g in ("grammar.gz", "compiled")]
    commands.append([*direct, "-i", str(inline)])
    outputs = []
    for command in commands:
        capfd.readouterr()
        assert main(["decode", *command, *more]) == 0, capfd.readouterr().err
        outputs.append(capfd.readouterr().out)
    assert "P_bin2_0.1=" in outputs[0]
    assert outputs == [outputs[0]] * len(outputs)


def test_config_transforms(files: Path) -> None:
    config: dict[str, Any] = {"features": {"transform": {"P": "probability", "Own": "drop"}}}
    model = hiero.load(config, rules=RULES, weights={"P_probability": 1.0})
    best = model.translate("b")
    assert best is not None
    assert best.features["P_probability"] == 1.0
    assert "Own" not in best.features


def test_bins_of_an_unknown_feature(files: Path) -> None:
    write_bins(files / "my.bins", [bins("Pp", 1)])
    with pytest.raises(HieroError, match=r"features: bins of 'Pp', which no grammar has; did you mean 'P'\?"):
        hiero.load(rules=RULES, weights=WEIGHTS, bins=files / "my.bins")


@pytest.mark.parametrize("name", ["P_bin2_0.25", "P_bin1x3_-inf", "P_bin4_1e-07", "WordPenalty_bin1_-inf"])
def test_weights_of_bins_that_are_not_in_use(files: Path, name: str) -> None:
    feature = name.split("_")[0]
    found = rf"found a weight of {name}, expected"
    with pytest.raises(
        HieroError, match=rf"^weights: {found} bins of {feature} \(features: bins, or --bins\)$"
    ):
        hiero.load(rules=RULES, weights={name: 1.0, "C": 1.0})
    if feature == "P":
        with pytest.raises(
            HieroError, match=rf"^weights: {found} some of the bins in use, such as P_bin3_0.5$"
        ):
            hiero.load(rules=RULES, weights={name: 1.0}, bins=files / "my.bins")
    (files / "weights").write_text(f"{name} 1\n")
    with pytest.raises(HieroError, match=rf"^{files}/weights: {found} bins of"):
        hiero.load(rules=RULES, weights=files / "weights")


@pytest.mark.parametrize(
    "weights",
    [
        {"P_bin2_0.1": 1.0, "P_bin9_0.7": 1.0},  # the second from other bins, kept
        {"P_bin2_0.1": 0.0, "P_bin9_0.7": 0.0},
        {"P_bin2_0.1": 1.0, "Mine_bin1_4": 1.0, "Q_bin_3": 1.0},
    ],
)
def test_valid_weights(files: Path, weights: dict[str, float]) -> None:
    # Nothing to assert: the model loads without an error.
    hiero.load(rules=RULES, weights=weights, bins=files / "my.bins")


def test_a_column_may_be_called_like_a_bin() -> None:
    rule = "[X] ||| a ||| A ||| P=1 P_bin1_4=1"
    best = hiero.load(rules=[rule], weights={"P_bin1_4": 1.0}).translate("a")
    assert best is not None
    assert best.score == 1.0


def test_a_feature_cannot_be_transformed_twice(files: Path) -> None:
    config: dict[str, Any] = {"features": {"transform": {"P": "drop"}, "bins": str(files / "my.bins")}}
    with pytest.raises(
        HieroError, match=r"features: transform: P: already in .*my.bins, and a feature can only be in one"
    ):
        hiero.load(config, rules=RULES, weights=WEIGHTS)
