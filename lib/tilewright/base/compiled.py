"""Compiles kernels, once per version of their sources and per processor, into a cache folder of our own.

A kernel is a plain function in Numba's language. Numba is imported only to compile: importing it and filling its type
registries takes longer than mapping a small network, so the machine code of an entry point is kept as an object file,
and later processes load that with llvmlite alone (docs/adr/0005-native-kernel-cache.md).

The cache is named after the digest of all kernel sources, since Numba itself checks only the file of the function that
was called, not the files of the functions that it calls in turn.
"""

import contextlib
import ctypes
import hashlib
import os
import sys
import threading
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.base.noted_files import (
    NUMBA_FILES,
    NUMBA_FOLDER,
    after_digest_line,
    trust_as_noted,
    with_digest_line,
    write_whole,
)

_PACKAGE = Path(__file__).resolve().parents[1]
_KERNEL_SOURCES = (
    "base/compiled.py", "base/record_pointer.py", "base/profile.py", "hardware/core.py", "cost/*.py",
    "mapping/temporal.py", "**/*_record.py", "**/*_kernel.py",
)  # fmt: skip
"""Files with kernels, and those whose constants kernels take in when they are compiled."""
_OPTIONS = {"nogil": True, "error_model": "numpy"}
_lock = threading.Lock()


class Kernel:
    """A function that Numba compiles when it is first called, or when a kernel that calls it is compiled."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.py_func = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher of the function, with Numba's own cache in our folder; without a folder, with none.

        Elsewhere Numba would write beside the sources, and not notice that a kernel in another file has changed.
        """
        return _numba().njit(cache=cache_directory() is not None, **_OPTIONS)(self.py_func)

    @property
    def _numba_type_(self) -> Any:
        """Lets a kernel call another as if it were the dispatcher."""
        return self.dispatcher._numba_type_

    def __call__(self, *arguments: Any) -> Any:
        """Run the compiled function."""
        return self.dispatcher(*arguments)


def kernel(function: Callable[..., Any]) -> Kernel:
    """Decorator of every kernel."""
    return Kernel(function)


@cache
def cache_directory() -> Path | None:
    """Folder of the compiled kernels, named after the digest of their sources.

    It lies in `.cache/kernels` of the checkout, or in `.cache/tilewright` of the environment in which the package is
    installed. None where neither may be written: each process then compiles what it needs.
    """
    project, environment = _PACKAGE.parent.parent, Path(sys.prefix)
    if (project / "Snakefile").is_file():
        place = project / ".cache" / "kernels"
    elif _PACKAGE.is_relative_to(environment) and os.access(environment, os.W_OK):
        place = environment / ".cache" / "tilewright"
    else:
        return None
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted({path for pattern in _KERNEL_SOURCES for path in _PACKAGE.glob(pattern)}):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    return place / digest.hexdigest()


def _numba() -> Any:
    """Numba, with its cache in our folder, and without vector code: it only slows down loops of a few rounds."""
    directory = cache_directory()
    if directory is not None:
        os.environ["NUMBA_CACHE_DIR"] = str(directory / NUMBA_FOLDER)
        trust_as_noted(directory / NUMBA_FOLDER, NUMBA_FILES)
    os.environ["NUMBA_LOOP_VECTORIZE"] = os.environ["NUMBA_SLP_VECTORIZE"] = "0"
    import numba

    return numba


NativeFunction = Callable[..., None]


@cache
def native_function(entry: Kernel, records: tuple[np.dtype, ...]) -> NativeFunction:
    """The compiled `entry`, whose arguments are one record of each type and a count, and which returns nothing.

    Loaded from the cache if it is there, else compiled and stored. It releases the interpreter lock while it runs.
    """
    with _lock:
        path = _object_path(entry)
        stored = _read(path)
        if stored is None:
            stored = _compile(entry, records)
            _store(path, *stored)
        return _load(stored[0], stored[1], len(records))


def _object_path(entry: Kernel) -> Path | None:
    """Object files differ by processor and by LLVM."""
    directory = cache_directory()
    if directory is None:
        return None
    import llvmlite
    import llvmlite.binding as llvm

    machine = f"{llvmlite.__version__} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    return directory / f"{entry.__name__}-{hashlib.blake2b(machine.encode(), digest_size=8).hexdigest()}.o"


def _compile(entry: Kernel, records: tuple[np.dtype, ...]) -> tuple[str, bytes]:
    """(symbol, object code) of the entry point."""
    numba = _numba()
    types = tuple(numba.from_dtype(record) for record in records)
    dispatcher = numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False, **_OPTIONS)(entry.py_func)
    dispatcher.compile((*types, numba.int64))
    compiled = dispatcher.overloads[(*types, numba.int64)]
    symbol = compiled.fndesc.mangled_name
    return symbol, _optimise(compiled.library.get_llvm_str(), symbol)


def _optimise(intermediate_code: str, symbol: str) -> bytes:
    """Object code of a module with one entry point.

    Numba keeps every function callable from outside; made internal, they are all inlined into the entry point.
    """
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(intermediate_code)
    for function in module.functions:
        if not function.is_declaration and function.name != symbol:
            function.linkage = "internal"
    machine = _target_machine()
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_interleaving = False
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))


def _target_machine() -> Any:
    """Processor of this machine, with code that can be placed anywhere in memory."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="static",
        codemodel="jitdefault",
        jit=True,
    )


def _read(path: Path | None) -> tuple[str, bytes] | None:
    """The stored symbol and object code; a damaged file counts as absent."""
    content = None if path is None else after_digest_line(path)
    if content is None:
        return None
    symbol, _, code = content.partition(b"\n")
    return symbol.decode(), code


def _store(path: Path | None, symbol: str, code: bytes) -> None:
    if path is None:
        return
    with contextlib.suppress(OSError):  # a read-only checkout: compile in each process
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, with_digest_line(symbol.encode() + b"\n" + code))


_engines: list[Any] = []  # keeps loaded code alive as long as the process


def _load(symbol: str, code: bytes, record_count: int) -> NativeFunction:
    """Link object code into the process; the function follows Numba's calling convention: status code returned,
    first arguments the places of the result and of an exception (none is ever raised)."""
    import llvmlite.binding as llvm

    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    pointer = ctypes.c_void_p
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, pointer, pointer, *([pointer] * record_count), ctypes.c_int64)
    function = prototype(engine.get_function_address(symbol))

    def call(*arguments: Any) -> None:
        result, exception = ctypes.c_void_p(), ctypes.c_void_p()
        places = [_address(record) for record in arguments[:-1]]
        status = function(ctypes.addressof(result), ctypes.addressof(exception), *places, arguments[-1])
        if status not in (0, -2):  # done, or done with None
            raise RuntimeError(f"kernel {symbol} ended with status {status}")

    return call


def _address(record: np.record) -> int:
    """Where the data of a record lies."""
    owner = record.base
    if isinstance(owner, np.ndarray) and owner.size == 1:
        return int(owner.ctypes.data)  # the array interface describes each field: a tenth of a millisecond
    return int(record.__array_interface__["data"][0])
