"""Write translations: plain lines, k-best lists in cdec's and Moses' formats, and JSON.

Numbers have nine significant digits. Fields of a k-best line are separated by ``|||``; a word ``|||`` is
written with its bars as ``&#124;``, which is not converted back on reading.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hiero.decoder.derivation import Derivation, Tree

BAR = "&#124;"
FORMATS = ("text", "cdec", "moses", "json")
FeaturesOf = Callable[[Derivation], Mapping[str, float]]


class TranslationWriter:
    """Format the lines of one sentence, and count escaped words."""

    def __init__(self, style: str) -> None:
        self.style = style
        self.num_escaped = 0

    def lines(
        self, name: str, source: Sequence[str], translations: Sequence[Derivation], features_of: FeaturesOf
    ) -> str:
        """All lines for a sentence; plain text and JSON have exactly one, even without a translation."""
        if self.style == "text":
            return (translations[0].text if translations else "") + "\n"
        if self.style == "json":
            return _json_line(name, source, translations, features_of)
        return "".join(self._line(name, one, features_of(one)) for one in translations)

    def _line(self, name: str, translation: Derivation, features: Mapping[str, float]) -> str:
        equals = "=" if self.style == "cdec" else "= "
        listed = " ".join(f"{key}{equals}{value:.9g}" for key, value in sorted(features.items()))
        fields = [self.escaped(name), self.escaped(translation.text), listed, f"{translation.score:.9g}"]
        if self.style == "moses":
            fields.append(" ".join(f"{src}-{tgt}" for src, tgt in translation.alignment))
        return " ||| ".join(fields) + "\n"

    def escaped(self, text: str) -> str:
        if "|||" not in text:
            return text
        words = text.split(" ")
        self.num_escaped += words.count("|||")
        return " ".join(3 * BAR if word == "|||" else word for word in words)


def _json_line(
    name: str, source: Sequence[str], translations: Sequence[Derivation], features_of: FeaturesOf
) -> str:
    record = {
        "id": name,
        "source": list(source),
        "translations": [translation_record(one, features_of(one)) for one in translations],
    }
    return json_text(record)


def json_text(record: Mapping[str, Any]) -> str:
    """A line of JSON."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"


def translation_record(translation: Derivation, features: Mapping[str, float]) -> dict[str, Any]:
    """A translation as in lines of JSON."""
    return {
        "text": translation.text,
        "score": rounded(translation.score),
        "features": {key: rounded(value) for key, value in sorted(features.items())},
        "alignment": [list(link) for link in translation.alignment],
        **({} if translation.forest.lattice is None else {"arcs": translation.arcs}),
        "derivation": tree_nodes(translation.tree()),
    }


def tree_nodes(root: Tree, more: Callable[[Tree], Mapping[str, Any]] | None = None) -> list[dict[str, Any]]:
    """A tree as a list of its nodes in pre-order: children are words, or positions of nodes in the list.

    Not nested, because with glue the depth grows with the sentence, and many JSON readers limit depth.

    more  makes further entries of a node
    """
    nodes: list[dict[str, Any]] = []
    todo: list[tuple[Tree, list[Any] | None, int]] = [(root, None, 0)]
    while todo:
        tree, siblings, place = todo.pop()
        if siblings is not None:
            siblings[place] = len(nodes)
        children: list[Any] = list(tree.children)
        nodes.append(
            {
                "label": tree.label,
                "source": [tree.span.src_start, tree.span.src_end],
                "target": [tree.span.tgt_start, tree.span.tgt_end],
                "score": rounded(tree.score),
                "children": children,
                **({} if more is None else more(tree)),
            }
        )
        below = [(child, children, at) for at, child in enumerate(tree.children) if isinstance(child, Tree)]
        todo.extend(reversed(below))
    return nodes


def rounded(value: float) -> float:
    """A number with as many digits as are written."""
    return float(f"{value:.9g}")
