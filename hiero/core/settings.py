"""Read and write settings in YAML."""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from hiero.core.errors import FormatError, show
from hiero.core.text import decode_utf8, open_output, read_lines

BOOL = "tag:yaml.org,2002:bool"
MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """Loads plain values only, and refuses repeated keys, of which YAML would drop the first.

    ``on``, ``off``, ``yes``, ``no`` are strings, as in YAML 1.2: ``on`` is one of our keys.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key_node.tag != MERGE:
                if key in seen:
                    problem = f"the key {show(str(key))} a second time"
                    raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
                seen.add(key)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, shape) for tag, shape in resolvers if tag != BOOL]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(BOOL, re.compile("(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))


def read_settings(path: str | Path) -> Any:
    """The content of a YAML file, None if it is empty."""
    data = b"\n".join(read_lines(path, "settings in YAML"))
    text = decode_utf8(path, data)
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        found = (error.problem or error.context or "a mistake").removeprefix("but ").removeprefix("found ")
        raise FormatError(path, line, found=found, expected="YAML") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        found = f"the character U+{error.character:04X}"
        raise FormatError(path, line, found=found, expected="YAML") from None
    except RecursionError:
        raise FormatError(path, 0, found="lists nested too deeply", expected="YAML") from None
    except ValueError as error:  # a date such as 2020-99-99
        raise FormatError(path, 0, found=f"an impossible value ({error})", expected="YAML") from None


def write_settings(path: Path, content: Any, heading: str) -> None:
    """Write settings in their order, after a line of comment."""
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110)
    with open_output(path) as stream:
        stream.write(f"# {heading}\n{text}".encode())
