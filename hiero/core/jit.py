"""Decorators that compile kernels, and the time spent compiling.

Kernels are plain functions over numbers and arrays. ``@kernel`` compiles them once per machine and keeps
the machine code in a cache directory named after a digest of every source that has a kernel: numba's own
cache checks one file at a time and would keep a kernel whose callee in another file has changed.

With ``NUMBA_DISABLE_JIT=1`` the same functions run as ordinary Python, for coverage and for debugging.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import importlib
import os
import pickle
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from llvmlite.binding import parse_bitcode
from numba import _dynfunc, config, njit, types
from numba.core import errors, event
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import lookup_environment
from numba.core.options import DefaultOptions
from numba.extending import intrinsic

from hiero.core.progress import show_compiling


def _load_array_functions() -> None:
    """Load numba's functions of arrays without scipy.linalg.

    numba imports it, for a fifth of a second, to find out whether it exists. It does, as a requirement of
    this package, and is imported when a function that uses it is compiled.
    """
    name = "scipy.linalg.cython_blas"
    if name in sys.modules:
        return
    sys.modules[name] = ModuleType(name)
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        del sys.modules[name]


if not config.DISABLE_JIT:
    _load_array_functions()

F = TypeVar("F", bound=Callable[..., Any])


def _digest_of_kernels() -> str:
    digest = hashlib.sha256(f"{config.BOUNDSCHECK}".encode())
    package = Path(__file__).parents[1]
    for source in sorted(package.rglob("*.py")):
        code = source.read_bytes()
        if b"@kernel" in code or b"@leaf" in code or b"NamedTuple" in code:
            digest.update(source.relative_to(package).as_posix().encode() + code)
    return digest.hexdigest()[:16]


def _cache_directory() -> str:
    """A directory for machine code, which is loaded by ``pickle``: one that others cannot write to.

    Empty if there is none; then kernels are compiled in each process.
    """
    if os.environ.get("NUMBA_CACHE_DIR"):
        return os.environ["NUMBA_CACHE_DIR"]
    name = f"kernels-{_digest_of_kernels()}"
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(chosen):  # relative paths are invalid there
        if _made(directory := Path(chosen, "hiero", name)) and _is_closed(directory):
            return str(directory)
    else:
        home = os.path.expanduser("~")  # itself without a home directory
        directory = Path(home, ".cache", "hiero", name)
        if os.path.isabs(home) and _made(directory) and _is_closed(directory, owner=True):
            return str(directory)
    # Everyone can make directories in the temporary one, also of this name.
    own = Path(tempfile.gettempdir(), f"hiero-{os.getuid() if hasattr(os, 'getuid') else ''}")
    directory = own / name
    if (
        _made(own)
        and _is_closed(own, private=True)
        and _made(directory)
        and _is_closed(directory, private=True)
    ):
        return str(directory)
    return ""


def _made(directory: Path) -> bool:
    """Make a directory, for this user alone; those above it that are missing get usual permissions."""
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return False
    return os.access(directory, os.W_OK)


def _is_closed(directory: Path, *, owner: bool = False, private: bool = False) -> bool:
    """Whether a directory, which is no link, cannot be written to by everyone.

    owner    nor is another user's, except root's
    private  nor open to others at all
    """
    if not hasattr(os, "getuid"):
        return True
    status = os.lstat(directory)
    if private:
        is_own = status.st_uid == os.getuid() and not status.st_mode & 0o077
    else:
        is_own = (not owner or status.st_uid in (os.getuid(), 0)) and not status.st_mode & 0o002
    return is_own and stat.S_ISDIR(status.st_mode)


CACHE_DIRECTORY = _cache_directory()


class _CheckedCacheFile(IndexDataCacheFile):  # type: ignore[misc]
    """The files of a kernel in numba's cache, with digests: damage counts as absence."""

    def _load_index(self) -> dict[Any, str]:
        index = self._checked(self._index_path)
        if index is None or index[:2] != (self._version, self._source_stamp):
            return {}
        overloads: dict[Any, str] = index[2]
        return overloads

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._write(self._index_path, (self._version, self._source_stamp, overloads))

    def _load_data(self, name: str) -> Any:
        return self._checked(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _write(self, path: str, content: Any) -> None:
        data = self._dump(content)
        with self._open_for_write(path) as stream:
            stream.write(self._digest(path, data) + data)

    def _checked(self, path: str) -> Any:
        """The content of a file; None if there is none, or it is damaged."""
        try:
            data = Path(path).read_bytes()
        except OSError:
            return None
        digest, data = data[:DIGEST_BYTES], data[DIGEST_BYTES:]
        return pickle.loads(data) if digest == self._digest(path, data) else None

    @staticmethod
    def _digest(path: str, data: bytes) -> bytes:
        # With the name: a file in the place of another is damage as well.
        return hashlib.blake2b(data, digest_size=DIGEST_BYTES, person=_short(path)).digest()


def _short(path: str) -> bytes:
    return hashlib.blake2b(os.path.basename(path).encode(), digest_size=16).digest()


class _CheckedCache(FunctionCache):  # type: ignore[misc]
    """numba's cache of a kernel, for which a full disk is no error."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file.__class__ = _CheckedCacheFile

    def load_overload(self, signature: Any, context: Any) -> Any:
        if not hasattr(context, REFRESHED):  # each time costs a millisecond
            context.refresh()
            setattr(context, REFRESHED, True)
        with self._guard_against_spurious_io_errors(), _library_kind(context.codegen(), _CachedLibrary):
            return self._load_overload(signature, context)

    def save_overload(self, signature: Any, data: Any) -> None:
        with contextlib.suppress(OSError):
            super().save_overload(signature, data)


class _CachedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """A library from the cache: machine code, and LLVM code that is parsed when it is linked into another."""

    _bitcode: bytes
    _shared_module: Any

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        name, _, (machine_code, bitcode) = state
        library = codegen.create_library(name)
        library.enable_object_caching()
        library._set_compiled_object(machine_code)
        library._bitcode = bitcode
        library._finalize_final_module()
        return library

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            self._shared_module = parse_bitcode(self._bitcode)
        return self._shared_module

    def get_pointer_to_function(self, name: str) -> Any:
        return self._codegen._engine.get_function_address(name)


@contextlib.contextmanager
def _library_kind(codegen: Any, kind: type) -> Iterator[None]:
    """Let a generator of code make libraries of a kind; the lock of numba's compiler is held."""
    before, codegen._library_class = codegen._library_class, kind
    try:
        yield
    finally:
        codegen._library_class = before


DIGEST_BYTES = 16
REFRESHED = "_hiero_has_refreshed"  # an attribute of numba's context


def kernel(function: F) -> F:
    """Compile a function over arrays: no GIL, cached on disk, IEEE arithmetic (never fastmath)."""
    return _compiled(function)


def scalar(function: F) -> F:
    """Compile a kernel whose loops have few rounds, as those over words of a rule and tails of an edge have.

    They are not vectorised, as those of leaves are not: it costs a search a fifth.
    """
    return _compiled(function, is_scalar=True)


def leaf(function: F) -> F:
    """Compile a kernel for inner loops: inlined into its callers, without reference counts.

    An ordinary kernel that is called with a NamedTuple increments and decrements a reference count for every
    array in it, one locked instruction each: an n-gram look-up took twice as long. A leaf takes arrays and
    returns numbers; it must not make, slice or return an array, nor pass arrays to a function that is not a
    leaf.
    """
    return _compiled(function, is_scalar=True, **LEAF_OPTIONS)


def routine(function: F) -> F:
    """Compile a leaf that is called, not inlined: one with a large body and few calls.

    Inlined into a kernel with many tables it would run out of registers.
    """
    return _compiled(
        function, **{name: value for name, value in LEAF_OPTIONS.items() if name != "forceinline"}
    )


def _prefetch(_context: Any, array: Any, index: Any) -> Any:
    """``prefetch`` in machine code."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        builder.call(function, [place, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def prefetch(array: Any, index: int) -> None:
    """Load a cache line of an array that is read soon, without waiting: that of entry ``index`` in C order.

    ``index`` may be outside of the array.
    """


if not config.DISABLE_JIT:
    prefetch = intrinsic(_prefetch)


# numba does not document the second option, but all supported versions have it.
LEAF_OPTIONS = {"forceinline": True} | ({"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {})


def _compiled(function: F, *, is_scalar: bool = False, **options: bool) -> F:
    if config.DISABLE_JIT:
        # Hashes wrap around; numpy scalars, unlike machine code, warn when they do.
        @functools.wraps(function)
        def interpreted(*arguments: Any) -> Any:
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                return function(*arguments)

        return interpreted  # type: ignore[return-value]
    # numba reads the directory when the function is decorated: set it for this package only.
    theirs, config.CACHE_DIR = config.CACHE_DIR, CACHE_DIRECTORY
    try:
        settings = {
            "nogil": True,
            "error_model": "numpy",
            # Kernels are not called from C: skip compiling that wrapper.
            "no_cfunc_wrapper": True,
        }
        settings |= options
        compiled = njit(**settings)(function)
        if CACHE_DIRECTORY:
            compiled._cache = _CheckedCache(function)
    finally:
        config.CACHE_DIR = theirs
    _emit_late(compiled, is_scalar)
    return compiled  # type: ignore[no-any-return]


# ---- machine code for what Python calls
#
# numba makes machine code, a wrapper for Python and a file in the cache of every function that it compiles.
# The code of a kernel that another kernel calls is never used: it is linked into its caller, which is
# optimised as a whole. While a kernel is compiled, what it calls therefore ends as LLVM code. If Python calls
# such a function later, it is compiled again, in full. This halves the time to compile a command's kernels.


class _LateLibrary(JITCodeLibrary):  # type: ignore[misc]
    """A library whose machine code is made when it is asked for, not when it is linked into another one."""

    _is_emitted = False

    def _optimize_final_module(self) -> None:
        if _compiling.depth == 1 or _compiling.is_leaf:  # otherwise it is optimised as a part of its caller
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        self._verify_declare_only_symbols()
        self._finalized = True

    def _emit(self) -> None:
        self._ensure_finalized()
        if self._is_emitted:
            return
        self._is_emitted = True
        super()._finalize_final_module()
        # Python objects that functions linked into this one refer to.
        for variable in self._final_module.global_variables:
            environment = lookup_environment(variable.name)
            if environment is not None:
                self._codegen.set_env(variable.name, environment)

    def get_pointer_to_function(self, name: str) -> Any:
        self._emit()
        return super().get_pointer_to_function(name)

    def _get_compiled_object(self) -> Any:
        self._emit()
        return super()._get_compiled_object()


class _Compiling(threading.local):
    depth = 0  # kernels that this thread is compiling, each called by the one before
    is_leaf = False  # whether the last of them is a leaf


_compiling = _Compiling()


def _emit_late(dispatcher: Any, is_scalar: bool) -> None:
    """Let a dispatcher make machine code only where Python calls its function."""
    compiler, cache = dispatcher._compiler, dispatcher._cache
    compile_or_load, compile_now = dispatcher.compile, compiler.compile
    save, add = cache.save_overload, dispatcher.add_overload
    unfinished: set[Any] = set()  # argument types of compiled functions without machine code

    def compile_for(signature: Any) -> Any:
        with global_compiler_lock:
            if not _compiling.depth and isinstance(signature, tuple) and signature in unfinished:
                unfinished.remove(signature)
                del dispatcher.overloads[signature]
            return compile_or_load(signature)

    def compile_late(arguments: Any, returned: Any) -> Any:
        now = _compiling
        caller_is_leaf = now.is_leaf
        now.depth += 1
        now.is_leaf = bool(dispatcher.targetoptions.get("forceinline"))
        vectorises = config.LOOP_VECTORIZE
        if is_scalar:
            config.LOOP_VECTORIZE = 0
        try:
            is_first = now.depth == 1
            with _late_emission(dispatcher.targetctx) if is_first else contextlib.nullcontext():
                return compile_now(arguments, returned)
        finally:
            now.depth, now.is_leaf = now.depth - 1, caller_is_leaf
            config.LOOP_VECTORIZE = vectorises

    def add_overload(result: Any) -> None:
        if _is_without_code(result.library):
            arguments = tuple(result.signature.args)
            unfinished.add(arguments)
            dispatcher.overloads[arguments] = result
        else:
            add(result)

    def save_overload(signature: Any, result: Any) -> None:
        if not _is_without_code(result.library):
            save(signature, result)

    dispatcher.compile, compiler.compile = compile_for, compile_late
    cache.save_overload, dispatcher.add_overload = save_overload, add_overload


def has_machine_code(dispatcher: Any) -> bool:
    """Whether a kernel is compiled so that Python can call it, with arguments of some types."""
    return any(not _is_without_code(result.library) for result in dispatcher.overloads.values())


def _is_without_code(library: Any) -> bool:
    return isinstance(library, _LateLibrary) and not library._is_emitted


@contextlib.contextmanager
def _late_emission(context: Any) -> Iterator[None]:
    """Compile with ``_LateLibrary``; the lock of numba's compiler is held."""
    context.refresh()  # numba's own libraries, which are called by address
    kind = type(context)
    collects = gc.isenabled()
    colours, errors._termcolor_inst = errors.termcolor(), _Plain()  # type: ignore[attr-defined]
    make_wrapper, make_executable = kind.create_cpython_wrapper, kind.get_executable
    make_c_wrapper = kind.create_cfunc_wrapper

    def create_cpython_wrapper(self: Any, *arguments: Any, **options: Any) -> None:
        if _compiling.depth == 1:
            make_wrapper(self, *arguments, **options)

    def create_cfunc_wrapper(self: Any, *arguments: Any, **options: Any) -> None:
        """Nothing: numba's functions of arrays, unlike kernels, would have one."""

    def get_executable(self: Any, library: Any, description: Any, environment: Any) -> Any:
        library._ensure_finalized()
        wrapper = description.llvm_cpython_wrapper_name
        if not _is_without_code(library) or any(
            function.name == wrapper for function in library.get_defined_functions()
        ):
            return make_executable(self, library, description, environment)
        # As numba makes them for functions without a wrapper, which Python cannot call: a key for callers.
        name = description.qualname.rpartition(".")[2]
        return _dynfunc.make_function(description.lookup_module(), name, "", 0, environment, (library,))

    # Of the class: a context is copied for functions with other options.
    kind.create_cpython_wrapper, kind.create_cfunc_wrapper = create_cpython_wrapper, create_cfunc_wrapper
    kind.get_executable = get_executable
    gc.disable()  # a seventh of the time goes into looking for garbage among numba's objects
    try:
        with _library_kind(context.codegen(), _LateLibrary):
            yield
    finally:
        if collects:
            gc.enable()
        errors._termcolor_inst = colours  # type: ignore[attr-defined]
        kind.create_cpython_wrapper, kind.create_cfunc_wrapper = make_wrapper, make_c_wrapper
        kind.get_executable = make_executable


class _Plain:
    """The colours of numba's messages: none.

    It writes thousands of them while it finds out which functions of its own fit the types of arguments, and
    sets up the terminal for each.
    """

    def __getattr__(self, _kind: str) -> Callable[[str], str]:
        return str


class CompileTimer(event.Listener):  # type: ignore[misc]
    """Total seconds spent compiling (not loading from the cache); calls ``on_first`` once, if given.

    Only the outermost compilation counts: a kernel's callees are compiled inside its own time.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.cpu_seconds = 0.0
        self.on_first: Callable[[], None] | None = None
        self._local = threading.local()

    def here(self) -> float:
        """CPU seconds that this thread has spent compiling."""
        return getattr(self._local, "cpu", 0.0)

    def on_start(self, _event: object) -> None:
        depth = getattr(self._local, "depth", 0)
        if depth == 0:
            self._local.started = time.perf_counter()
            self._local.cpu_started = time.thread_time()
        self._local.depth = depth + 1
        if self.on_first is not None:
            callback, self.on_first = self.on_first, None
            callback()

    def on_end(self, _event: object) -> None:
        self._local.depth -= 1
        if self._local.depth == 0:
            self.seconds += time.perf_counter() - self._local.started
            spent = time.thread_time() - self._local.cpu_started
            self._local.cpu = self.here() + spent
            self.cpu_seconds += spent


compile_timer = CompileTimer()
compile_timer.on_first = functools.partial(show_compiling, keeps=bool(CACHE_DIRECTORY))
event.register("numba:compile", compile_timer)
