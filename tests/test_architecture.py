"""Import layers and kernel conventions.

The table below defines the layers. A module imports modules of lower layers, of its own layer if both are at
the top of the package, and of its own folder; so ``kernels`` and ``formats`` do not import each other.
"""

from __future__ import annotations

import ast
import copy
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import hiero

PACKAGE = Path(hiero.__file__).parent
PROJECT = Path(__file__).parents[1]
NAIVE = Path(__file__).parent / "naive"

# Modules at the top of the package, and folders, by layer.
LAYERS = (
    {"_jit", "bundled", "errors", "inorder", "records", "symbols", "watch"},
    {"bins", "features", "grammar", "grammarformat", "hypergraph", "lm", "names", "rulebatch", "weights"},
    {"formats", "kernels"},
    {
        "binned",
        "bitext",
        "candidates",
        "categories",
        "decode",
        "derivation",
        "featureset",
        "forest",
        "language",
        "metrics",
        "rulecache",
    }
    | {"corpusmetrics", "evaluation", "prep", "recase", "significance"}
    | {
        "ownrules",
        "rulesource",
        "scores",
        "scoring",
        "search",
        "searchconfig",
        "spansize",
        "spelling",
        "statistics",
        "translations",
        "usage",
        "weightvector",
    },
    {"reorder", "report", "tune"},  # pictures know data, not runs, so that stages can draw them
    {"config", "job", "manifest", "modelstages", "pipeline", "sections", "stages", "teststages"}
    | {"binning", "binstage", "gridstage", "reorderstage", "rundir", "tunedir", "tunestage", "tuning"},
    {"__init__", "__main__", "cli"},
)
LAYER = {name: layer for layer, names in enumerate(LAYERS) for name in names}

# Modules that kernels may import besides hiero: without input, output or state.
FOR_KERNELS = {"__future__", "collections.abc", "math", "numpy", "numpy.typing", "typing"}

MAX_EXPORTS = 12

Module = tuple[str, ...]  # path below hiero/, without the suffix
Twin = tuple[str, str]  # module and name in tests/naive


def sources() -> dict[Module, ast.Module]:
    files = {path.relative_to(PACKAGE).with_suffix("").parts: path for path in PACKAGE.rglob("*.py")}
    return {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in sorted(files.items())}


SOURCES = sources()


def imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every module imported anywhere in a tree, and the line.

    For ``from a import b``, both ``a`` and ``a.b``, since b may be a module.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute here"
            assert node.module is not None
            yield node.module, node.lineno
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def own_modules(tree: ast.AST) -> Iterator[tuple[Module, int]]:
    """Modules of this package that a tree imports."""
    for name, line in imported(tree):
        parts = tuple(name.split(".")[1:])
        if name.split(".")[0] == "hiero" and (parts in SOURCES or (*parts, "__init__") in SOURCES):
            # ``from hiero import forest`` imports the package as well, but means the module.
            if parts:
                yield parts, line


def without_types(tree: ast.Module) -> ast.Module:
    """The tree without ``if TYPE_CHECKING``: types may be imported from higher layers."""

    class Strip(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
            self.generic_visit(node)
            if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                return node.orelse
            return node

    return Strip().visit(copy.deepcopy(tree))  # type: ignore[no-any-return]


def may_import(importer: Module, target: Module) -> bool:
    mine, theirs = LAYER[importer[0]], LAYER[target[0]]
    if mine != theirs:
        return mine > theirs
    return importer[0] == target[0] or len(importer) == len(target) == 1


def kernels() -> Iterator[tuple[Module, ast.FunctionDef]]:
    """Every function decorated with ``@kernel`` or ``@leaf``."""
    for module, tree in SOURCES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                worn = {decorator.id for decorator in node.decorator_list if isinstance(decorator, ast.Name)}
                if worn & {"kernel", "leaf"}:
                    yield module, node


def place(module: Module, line: int) -> str:
    return f"hiero/{'/'.join(module)}.py:{line}"


def test_every_module_has_a_layer() -> None:
    assert [module for module in SOURCES if module[0] not in LAYER] == []


def test_every_module_is_in_one_layer() -> None:
    assert len(LAYER) == sum(map(len, LAYERS))


def test_imports_go_to_lower_layers() -> None:
    wrong = [
        f"{place(module, line)}: layer {LAYER[module[0]]} imports {'.'.join(target)} of {LAYER[target[0]]}"
        for module, tree in SOURCES.items()
        for target, line in own_modules(without_types(tree))
        if not may_import(module, target)
    ]
    assert wrong == []


def test_may_import() -> None:
    assert may_import(("kernels", "cube"), ("lm",))
    assert may_import(("kernels", "cube"), ("kernels", "heap"))
    assert may_import(("features",), ("grammar",))
    assert not may_import(("lm",), ("kernels", "lm"))
    assert not may_import(("kernels", "parse"), ("formats", "scan"))
    assert not may_import(("formats", "cdec"), ("kernels", "trie"))
    assert not may_import(("forest",), ("bitext", "index"))
    assert not may_import(("decode",), ("cli", "main"))
    tree = ast.parse("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import hiero.forest\n")
    assert list(own_modules(tree)) != []
    assert list(own_modules(without_types(tree))) == []


def test_imports_of_kernel_modules() -> None:
    wrong = [
        f"{place(module, node.lineno)}: {name}"
        for module, tree in SOURCES.items()
        if module[0] == "kernels"
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
        if name is not None and name.split(".")[0] != "hiero" and name not in FOR_KERNELS
    ]
    assert wrong == []


def test_numba_is_imported_in_one_module_only() -> None:
    wrong = [
        place(module, line)
        for module, tree in SOURCES.items()
        if module != ("_jit",)
        for name, line in imported(tree)
        if name.split(".")[0] in ("numba", "llvmlite")
    ]
    assert wrong == []


def test_fastmath_is_not_used() -> None:
    """It makes ``x == -inf`` false. Comments may mention it."""
    wrong = [
        place(module, getattr(node, "lineno", 0))
        for module, tree in SOURCES.items()
        for node in ast.walk(tree)
        if "fastmath" in (getattr(node, field, None) for field in ("arg", "id", "attr", "value"))
    ]
    assert wrong == []


def test_kernels_called_from_python_have_docstrings() -> None:
    wrong = [
        f"{place(module, function.lineno)}: {function.name}"
        for module, function in kernels()
        if function.name.endswith("_kernel") and not ast.get_docstring(function)
    ]
    assert wrong == []


def test_functions_named_kernel_are_decorated() -> None:
    worn = {(module, function.name) for module, function in kernels()}
    wrong = [
        f"{place(module, node.lineno)}: {node.name}"
        for module, tree in SOURCES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and node.name.endswith("_kernel")
        and (module, node.name) not in worn
    ]
    assert wrong == []


def named_twins(function: ast.FunctionDef) -> list[Twin]:
    return re.findall(r"tests/naive/(\w+)\.py::(\w+)", ast.get_docstring(function) or "")


def test_every_kernel_names_its_twin() -> None:
    """Or says ``Twin: none`` and why."""
    wrong = [
        f"{place(module, function.lineno)}: {function.name}"
        for module, function in kernels()
        if function.name.endswith("_kernel")
        and not named_twins(function)
        and not re.search(r"Twin: none; \w", ast.get_docstring(function) or "")
    ]
    assert wrong == []


def used_twins(module: ast.Module, tree: ast.AST, file: str = "") -> set[Twin]:
    """Names of tests/naive that a part of a module refers to; ``file``: the module, if in tests/naive."""
    folders: dict[str, str] = {}
    names: dict[str, Twin] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.module == "tests.naive":
            folders |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests.naive."):
            source = str(node.module).rpartition(".")[2]
            names |= {alias.asname or alias.name: (source, alias.name) for alias in node.names}
    used = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in folders:
            used.add((folders[node.value.id], node.attr))
        elif isinstance(node, ast.Name):
            used.add(names.get(node.id, (file, node.id)))
    return used


def test_every_twin_that_is_named_exists_and_is_tested() -> None:
    """A test calls it, or calls a function of tests/naive that calls it."""
    calls: dict[Twin, set[Twin]] = {}
    for path in NAIVE.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                calls[path.stem, node.name] = used_twins(tree, node, path.stem)
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in NAIVE.parent.glob("*.py")]
    new = set().union(*(used_twins(tree, tree) for tree in trees))
    tested = set()
    while new:
        tested |= new
        new = set().union(*(calls.get(twin, set()) for twin in new)) - tested
    wrong = [
        f"{place(module, function.lineno)}: {'/'.join(twin)}"
        for module, function in kernels()
        for twin in named_twins(function)
        if twin not in calls or twin not in tested
    ]
    assert wrong == []


def test_classes_and_kernels_have_names_of_their_own() -> None:
    """Classes of kernels/ among all classes, and all functions with a decorator of ours."""
    places: dict[str, list[str]] = {}
    for module, tree in SOURCES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(place(module, node.lineno))
    names = [function.name for _, function in kernels()]
    assert sorted({name for name in names if names.count(name) > 1}) == []
    shared = {name: where for name, where in places.items() if len(where) > 1}
    assert {name: where for name, where in shared.items() if "kernels/" in " ".join(where)} == {}


def test_packages_are_listed_in_pyproject() -> None:
    listed = re.search(r"^packages = \[(.*?)\]", (PROJECT / "pyproject.toml").read_text(), re.M | re.S)
    assert listed is not None
    folders = {
        ".".join(("hiero", *path.relative_to(PACKAGE).parts[:-1])) for path in PACKAGE.rglob("__init__.py")
    }
    assert sorted(re.findall(r'"([\w.]+)"', listed[1])) == sorted(folders | {"hiero.grammars"})


PROBE = """
import hiero
names = getattr(hiero, "__all__", [n for n in vars(hiero) if not n.startswith("_")])
for name in names:
    getattr(hiero, name)
from hiero._jit import compile_timer
print(len(names), compile_timer.seconds)
"""


def test_importing_the_package_compiles_nothing(tmp_path: Path) -> None:
    """With an empty cache, so that any use of machine code would compile it."""
    # The subprocess must import the package under test, installed or not.
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(PACKAGE.parent)}
    probe = subprocess.run(
        [sys.executable, "-c", PROBE],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    num_names, seconds = probe.stdout.split()
    assert int(num_names) <= MAX_EXPORTS
    assert float(seconds) == 0
    assert list(tmp_path.rglob("*.nbi")) == []
