"""Initial weights of tuning."""

from __future__ import annotations

import numpy as np

from hiero.core.symbols import Symbols
from hiero.decoder.model import Model
from hiero.features.index import FeatureIndex
from hiero.features.weights import Weights
from hiero.features.weights_part import read_weights
from hiero.tuning.vectors import write_vectors

# As in the program of Green et al. 2013: 0.2 for every dense feature, 0.5 for the language model. There all
# features are log-probabilities; here some are negated, and a word is -1/ln 10, so that signs differ.
UNIFORM = {
    "EgivenFCoherent": -0.2,
    "SampleCountF": -0.2,
    "CountEF": 0.2,
    "MaxLexFgivenE": -0.2,
    "MaxLexEgivenF": -0.2,
    "IsSingletonF": -0.2,
    "IsSingletonFE": -0.2,
    "WordPenalty": -1.0,
    "PassThrough": -0.2,
    "Glue": -0.2,
}
LANGUAGE_MODEL = 0.5


def write_start(path: str, start: str, model: Model) -> None:
    """Write the initial weights: ``zero``, ``uniform``, or those of a file."""
    if start == "zero":
        weights = Weights(Symbols())
    elif start == "uniform":
        # Without features that are replaced by bins, or by transformed values.
        replaced = {one.feature for one in model.features.bins if one.replaces}
        dense = {name: weight for name, weight in UNIFORM.items() if name not in replaced}
        weights = Weights(Symbols(), dense | dict.fromkeys(model.language_models.names, LANGUAGE_MODEL))
    else:
        weights = read_weights(start, Symbols())
    value, index = weights.vector(), weights.index
    if weights.has_shared_names:
        value, index = _spelled(weights)
    chosen = np.flatnonzero(value)
    write_vectors(path, weights.symbols, index, chosen, weight=value[chosen])


def _spelled(weights: Weights) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], FeatureIndex]:
    """Weights under names that may match several features, each assigned to the feature of that name."""
    index = FeatureIndex()
    keys, values = [], []
    for name, value in weights.items():
        key = weights.names.parse(name.removeprefix("%~"))
        if key is not None:
            keys.append(key)
            values.append(value)
    ids = index.intern_all(keys)
    vector = np.zeros(len(index))
    vector[ids] = values
    return vector, index
