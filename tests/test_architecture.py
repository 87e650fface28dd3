"""Import layers and kernel conventions."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import TypeGuard

import pytest

import hiero

pytestmark = pytest.mark.once

PACKAGE = Path(hiero.__file__).parent
PROJECT = Path(__file__).parents[1]
NAIVE = Path(__file__).parent / "naive"

# Packages by layer: a package imports lower layers and itself; packages of one layer never see each other.
LAYERS = (
    {"core"},
    {"grammar", "lm", "evaluation", "bitext"},
    {"features", "alignment", "extraction"},
    {"bins", "reordering"},
    {"decoder"},
    {"learning"},
    {"tuning"},
    {"adaptation"},
    {"config"},
    {"jobs"},
    {"pipeline", "server"},
    {"reporting"},
    {"cli"},
)
LAYER = {name: layer for layer, names in enumerate(LAYERS) for name in names}
TOP = {"__init__", "__main__"}  # modules beside the packages

# Compiled code, and what it may import beside hiero.core and other kernels.
KERNELS = ("*_kernels", "kernels")
DATA = {("decoder", "hypergraph")}
FOR_KERNELS = {"__future__", "collections.abc", "math", "numpy", "numpy.typing", "typing"}

MAX_MODULES = 263
MAX_LINES = 700
MAX_EXPORTS = 26

Module = tuple[str, ...]  # path below hiero/, without the suffix
Twin = tuple[str, str]  # module and name in tests/naive


def sources() -> dict[Module, ast.Module]:
    files = {path.relative_to(PACKAGE).with_suffix("").parts: path for path in PACKAGE.rglob("*.py")}
    return {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in sorted(files.items())}


SOURCES = sources()


def is_kernel_module(module: Module) -> bool:
    return any(fnmatch(module[-1], pattern) for pattern in KERNELS)


def nodes(tree: ast.AST, *, types: bool = True, nested: bool = True) -> Iterator[ast.AST]:
    """The nodes of a tree; without ``types`` not those under ``if TYPE_CHECKING``, which never run; without
    ``nested`` only what runs on import."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        if not types and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            stack.extend(node.orelse)
        elif nested or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            stack.extend(ast.iter_child_nodes(node))


def imported(found: Iterator[ast.AST]) -> Iterator[tuple[str, int]]:
    """Every module that nodes import, and the line.

    For ``from a import b``, where b may be a module or not, both ``a`` and ``a.b``.
    """
    for node in found:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute here"
            assert node.module is not None
            yield node.module, node.lineno
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def own_modules(found: Iterator[ast.AST]) -> Iterator[tuple[Module, int]]:
    """Modules of this package that nodes import."""
    for name, line in imported(found):
        parts = tuple(name.split(".")[1:])
        if name.split(".")[0] == "hiero" and parts in SOURCES:
            yield parts, line


def may_import(importer: Module, target: Module) -> bool:
    if len(importer) == 1:
        return True
    if len(target) == 1:
        return False
    mine, theirs = LAYER[importer[0]], LAYER[target[0]]
    return importer[0] == target[0] or mine > theirs


def kernels() -> Iterator[tuple[Module, ast.FunctionDef]]:
    """Every function that is decorated to be compiled."""
    for module, tree in SOURCES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                names = {decorator.id for decorator in node.decorator_list if isinstance(decorator, ast.Name)}
                if names & {"kernel", "scalar", "leaf", "routine"}:
                    yield module, node


def place(module: Module, line: int) -> str:
    return f"hiero/{'/'.join(module)}.py:{line}"


# ---- the tree


def test_every_package_has_a_layer_and_every_layer_a_package() -> None:
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == set(LAYER)
    assert len(LAYER) == sum(map(len, LAYERS))


def test_modules_stand_in_packages_that_are_not_nested() -> None:
    assert [module for module in SOURCES if len(module) > 2] == []
    assert {module[0] for module in SOURCES if len(module) == 1} <= TOP


def test_modules_are_few_and_not_too_long() -> None:
    assert sum(module[-1] != "__init__" for module in SOURCES) <= MAX_MODULES
    lines = {
        module: len(PACKAGE.joinpath(*module).with_suffix(".py").read_text().splitlines())
        for module in SOURCES
    }
    assert {module: length for module, length in lines.items() if length > MAX_LINES} == {}


def test_tests_mirror_packages() -> None:
    """Beside those of the whole: architecture, extension points and examples."""
    folders = {path.parent.name for path in (PROJECT / "tests").glob("*/test_*.py")}
    assert folders <= {*LAYER, "benchmarks", "docs"}


# ---- imports


def test_nothing_imports_upwards() -> None:
    wrong = [
        f"{place(module, line)}: {'.'.join(target)}"
        for module, tree in SOURCES.items()
        for target, line in own_modules(nodes(tree, types=False))
        if not may_import(module, target)
    ]
    assert wrong == []


def test_the_rule_itself() -> None:
    assert may_import(("decoder", "model"), ("lm", "model"))
    assert may_import(("decoder", "cube_kernels"), ("decoder", "search_table_kernels"))
    assert may_import(("__init__",), ("config", "load"))
    assert not may_import(("lm", "model"), ("grammar", "rules"))
    assert not may_import(("grammar", "rules"), ("decoder", "model"))
    assert not may_import(("decoder", "forest"), ("learning", "learner"))
    tree = ast.parse("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import hiero.decoder.forest\n")
    assert list(own_modules(nodes(tree))) != []
    assert list(own_modules(nodes(tree, types=False))) == []
    tree = ast.parse("def late():\n    import hiero.decoder.forest\n")
    assert list(own_modules(nodes(tree))) != []
    assert list(own_modules(nodes(tree, nested=False))) == []


def test_modules_import_each_other_without_cycles() -> None:
    """Also through imports inside of functions."""
    imports = {
        module: {target for target, _ in own_modules(nodes(tree, types=False))}
        for module, tree in SOURCES.items()
        if module != ("__init__",)
    }
    left = dict(imports)
    while True:
        leaves = {module for module, targets in left.items() if not targets & left.keys()}
        if not leaves:
            break
        left = {module: targets for module, targets in left.items() if module not in leaves}
    assert left == {}


def reached(start: Module) -> dict[Module, Module | None]:
    """Modules that an import of one loads, each with one that imports it."""
    found: dict[Module, Module | None] = {start: None}
    stack = [start]
    while stack:
        module = stack.pop()
        for target, _ in own_modules(nodes(SOURCES[module], types=False, nested=False)):
            if target not in found:
                found[target] = module
                stack.append(target)
    return found


def test_commands_and_configurations_load_no_kernels_before_they_run() -> None:
    """So that ``hiero --help`` and mistakes in arguments cost neither a compiler nor numpy."""
    starts = [
        module for module in SOURCES if module[0] in ("cli", "__init__", "__main__") or module[-1] == "config"
    ]
    wrong = {}
    for start in starts:
        found = reached(start)
        if ("core", "jit") in found:
            path: list[str] = []
            module: Module | None = ("core", "jit")
            while module is not None:
                path.append(".".join(module))
                module = found[module]
            wrong[".".join(start)] = " <- ".join(path)
        for module in found:
            names = {
                name.split(".")[0] for name, _ in imported(nodes(SOURCES[module], nested=False, types=False))
            }
            if names & {"numba", "numpy", "scipy"}:
                wrong[".".join(start)] = ".".join(module)
    assert wrong == {}


def test_names_mean_one_thing() -> None:
    """A class, public or not, and a kernel have a name of their own."""
    places: dict[str, list[str]] = {}
    for module, tree in SOURCES.items():
        for node in tree.body:
            is_kernel = isinstance(node, ast.FunctionDef) and node.name.endswith("_kernel")
            if isinstance(node, ast.ClassDef) or is_kernel:
                places.setdefault(node.name, []).append(place(module, node.lineno))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


# ---- files

# Files that are written where they stand. All others appear by being renamed, or in a new directory that is:
# a mapped file that is truncated kills the processes that read it.
IN_PLACE = {
    "adaptation/state.py": 2,  # pairs, which are appended; and cut off after a kill
    "core/directories.py": 2,  # meta.json of a new directory; a note in the cache, renamed
    "core/text.py": 1,  # devices and pipes
    "core/usage.py": 1,  # a file of the system
    "jobs/pack.py": 1,  # an entry of an archive
    "extraction/growth.py": 1,  # temporary files without names
    "extraction/store.py": 4,  # rules of sentences, which are appended, and not mapped
    "jobs/resumable_output.py": 1,  # OUT.part, which is not read before it is renamed
    "jobs/translate.py": 1,  # devices and pipes
    "pipeline/run.py": 1,  # a log, to which lines are added
    "tuning/shard.py": 1,  # numbers of a progress bar
    "cli/init.py": 1,  # only where there is no file
}
TEMPORARY = ("cli", "warm_up")  # writes in a temporary directory only


def writes_in_place(call: ast.Call) -> bool:
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name not in ("open", "memmap"):
        return name in ("write_bytes", "write_text", "truncate", "tofile")
    # ``x`` fails if there is a file.
    texts = [one.value for one in (*call.args, *(key.value for key in call.keywords)) if is_text(one)]
    return any(set(text) & set("wa+") and set(text) <= set("rwabt+") for text in texts)


def is_text(node: ast.expr) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_files_are_replaced_and_not_overwritten() -> None:
    found = Counter(
        f"{'/'.join(module)}.py"
        for module, tree in SOURCES.items()
        for node in ast.walk(tree)
        if module != TEMPORARY and isinstance(node, ast.Call) and writes_in_place(node)
    )
    assert found == IN_PLACE


# ---- kernels


def test_compiled_code_is_in_kernel_modules() -> None:
    wrong = [
        f"{place(module, function.lineno)}: {function.name}"
        for module, function in kernels()
        if not is_kernel_module(module)
    ]
    assert wrong == []


def test_kernel_modules_import_numbers_and_kernels_only() -> None:
    wrong = [
        f"{place(module, line)}: {name}"
        for module, tree in SOURCES.items()
        if is_kernel_module(module)
        for name, line in imported(nodes(tree))
        if not name.startswith("hiero")
        and name not in FOR_KERNELS
        and name.rpartition(".")[0] not in FOR_KERNELS
    ]
    wrong += [
        f"{place(module, line)}: {'.'.join(target)}"
        for module, tree in SOURCES.items()
        if is_kernel_module(module)
        for target, line in own_modules(nodes(tree))
        if not is_kernel_module(target) and target[0] != "core" and target not in DATA
    ]
    assert wrong == []


def test_numba_is_imported_in_one_module_only() -> None:
    wrong = [
        place(module, line)
        for module, tree in SOURCES.items()
        if module != ("core", "jit")
        for name, line in imported(ast.walk(tree))
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
    trees = [
        ast.parse(path.read_text(encoding="utf-8"))
        for path in NAIVE.parent.rglob("*.py")
        if path.parent != NAIVE
    ]
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


# ---- the package


def test_packages_are_listed_in_pyproject() -> None:
    listed = re.search(r"^packages = \[(.*?)\]", (PROJECT / "pyproject.toml").read_text(), re.M | re.S)
    assert listed is not None
    folders = {
        ".".join(("hiero", *path.relative_to(PACKAGE).parts[:-1])) for path in PACKAGE.rglob("__init__.py")
    }
    assert sorted(re.findall(r'"([\w.]+)"', listed[1])) == sorted(
        folders | {"hiero.configs", "hiero.grammars"}
    )


PROBE = """
import hiero
names = getattr(hiero, "__all__", [n for n in vars(hiero) if not n.startswith("_")])
for name in names:
    getattr(hiero, name)
from hiero.core.jit import compile_timer
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
