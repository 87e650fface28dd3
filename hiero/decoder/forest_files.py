"""Forest files: one sentence a file, as JSON (``.json``, ``.json.gz``) or as numpy arrays (``.npz``).

Both are self-contained: words and categories are strings, and the rules that the forest uses are included.
Nodes are in topological order with the goal last, edges in the order of their heads; both are referred to by
index, counting from 0. A JSON file, abridged::

    {"format": "hiero forest 1",
     "source": ["das", "haus"],
     "language_models": ["LanguageModel"],
     "rules": [
       {"lhs": "X", "src": ["das", 1], "tgt": ["the", 1], "gaps": ["X"], "links": [[0, 0]]}, ...],
     "nodes": [
       {"label": "X", "span": [1, 2]}, {"label": "X", "span": [0, 2]}, {"label": "Goal", "span": [0, 2]}],
     "edges": [
       {"head": 0, "tails": [], "rule": 1, "score": -0.75, "lm": [-1.5], "features": {"PhraseModel_0": 0.5}},
       {"head": 1, "tails": [0], "rule": 0, "score": -0.25, "lm": [-0.5], "features": {"Glue": 1.0}},
       {"head": 2, "tails": [1], "rule": null, "score": -1.0, "lm": [-2.0]}]}

rules     In ``src`` and ``tgt`` a string is a word and the integer k is the k-th gap, whose category is
          ``gaps[k - 1]``. ``links`` is the word alignment: positions in ``src`` and ``tgt``, gaps counted.
nodes     ``span``: the first source word and the one after the last.
edges     Entry k of ``tails`` fills gap k + 1 of the rule. The rule ``null`` stands for an edge that passes
          its only tail on unchanged. The score of a derivation is the sum of those of its edges; ``null`` is
          minus infinity, an edge that no derivation may use. ``lm`` is what each language model adds (log10);
          ``features``, if present, all feature values of the edge. Numbers have nine significant digits.

An ``.npz`` file has the same as exact arrays: first_edge, tail, edge_score, edge_rule (-1 for ``null``),
edge_lm, node_label, node_start, node_end as in ``hiero.forest.Forest``; rule_lhs, rule_first_src, rule_src,
rule_first_tgt, rule_tgt, rule_first_link, rule_link as in ``hiero.grammar.Rules`` (symbols as in
``hiero.symbols``); edge_first_feature, edge_feature, edge_value if the edges have features; and lists of
strings (words, labels, source, lm_names, feature_names), each as UTF-8 bytes end to end in NAME and their
offsets in first_NAME.
"""

from __future__ import annotations

import io
import itertools
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hiero.core.errors import FormatError, UsageError
from hiero.core.symbols import pack
from hiero.core.text import open_bytes, open_output
from hiero.decoder.forest_json import HINT, read_json, to_json
from hiero.decoder.forest_record import EdgeFeatures, StoredForest, check, featureless_rules
from hiero.decoder.hypergraph import Hypergraph

# Raised by numpy and zipfile for a damaged archive or an array of the wrong type.
DAMAGE = (ValueError, TypeError, EOFError, OSError, AttributeError, zipfile.BadZipFile, zlib.error)
RULE_ARRAYS = ("lhs", "first_src", "src", "first_tgt", "tgt", "first_link", "link")
EDGE_AND_NODE_ARRAYS = ("edge_score", "edge_rule", "edge_lm", "node_label", "node_start", "node_end")
TEXTS = ("words", "labels", "source", "lm_names")


def write_forest(forest: StoredForest, path: str | Path) -> None:
    """Write a complete file or none; the suffix of its name selects the format."""
    form = _form(path)
    with open_output(path) as stream:
        if form == "json":
            stream.write(to_json(forest))
        else:
            # In memory first: writing an archive needs seeking, which a pipe does not allow.
            packed = io.BytesIO()
            arrays: dict[str, Any] = _arrays(forest)
            np.savez_compressed(packed, **arrays)
            stream.write(packed.getvalue())


def read_forest(path: str | Path) -> StoredForest:
    """Read a file of either format and check that it is a forest."""
    forest = read_json(path) if _form(path) == "json" else read_npz(path)
    try:
        check(forest)
    except ValueError as error:
        raise FormatError(path, 0, found=str(error), expected="a forest", hint=HINT) from None
    return forest


def _form(path: str | Path) -> str:
    name = str(path)
    if name.endswith((".json", ".json.gz")):
        return "json"
    if name.endswith(".npz"):
        return "npz"
    raise UsageError(f"{name}: a forest file is named .json, .json.gz or .npz")


def _arrays(forest: StoredForest) -> dict[str, npt.NDArray[Any]]:
    arrays: dict[str, npt.NDArray[Any]] = {"first_edge": forest.graph.first_edge, "tail": forest.graph.tail}
    for name in EDGE_AND_NODE_ARRAYS:
        arrays[name] = getattr(forest, name)
    for name in RULE_ARRAYS:
        arrays[f"rule_{name}"] = getattr(forest.rules, name)
    texts: dict[str, Sequence[str]] = {name: getattr(forest, name) for name in TEXTS}
    features = forest.edge_features
    if features is not None:
        arrays["edge_first_feature"] = features.first
        arrays["edge_feature"], arrays["edge_value"] = features.feature, features.value
        texts["feature_names"] = features.names
    for name, entries in texts.items():
        arrays[name], arrays[f"first_{name}"] = pack([entry.encode() for entry in entries])
    return arrays


def read_npz(path: str | Path) -> StoredForest:
    """Read a file; the caller checks that its parts are consistent."""
    try:
        with open_bytes(path, "a forest") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        features = None
        if "feature_names" in arrays:
            features = EdgeFeatures(
                tuple(_texts(arrays, "feature_names")),
                arrays["edge_first_feature"],
                arrays["edge_feature"],
                arrays["edge_value"],
            )
        rules = featureless_rules(*(arrays[f"rule_{name}"] for name in RULE_ARRAYS))
        columns = [arrays[name] for name in EDGE_AND_NODE_ARRAYS]
        texts = [_texts(arrays, name) for name in TEXTS]
        graph = Hypergraph(arrays["first_edge"], arrays["tail"])
        return StoredForest(graph, *columns, rules, *texts, features)  # type: ignore[call-arg]
    except KeyError as error:
        raise FormatError(path, 0, found=f"no array {error}", expected="a forest", hint=HINT) from None
    except DAMAGE as error:
        raise FormatError(path, 0, found=str(error), expected="a forest as .npz", hint=HINT) from None


def _texts(arrays: dict[str, npt.NDArray[Any]], name: str) -> list[str]:
    pool, first = arrays[name], arrays[f"first_{name}"]
    if pool.dtype != np.uint8 or first.dtype != np.int64 or not len(first):
        raise ValueError(f"{name} as {pool.dtype} with {first.dtype} offsets instead of uint8 with int64")
    text, offsets = pool.tobytes(), first.tolist()
    return [text[start:end].decode() for start, end in itertools.pairwise(offsets)]
