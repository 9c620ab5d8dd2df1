"""Compilation of kernels, with a cache folder that keeps the code for each version of the sources and each processor.

A kernel is a plain function in the part of Python that Numba compiles. Numba is imported only for compilation, because
importing Numba and filling its type registries takes longer than mapping a small network. The machine code of an entry
point is therefore stored in an object file. Later processes load this file with llvmlite alone
(docs/adr/0005-native-kernel-cache.md).

The name of the cache folder contains the digest of all kernel sources. Numba itself checks only the file of the
function that was called, not the files of the functions that this function calls.
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
"""Patterns of the files that contain kernels, or constants that are compiled into kernels."""
_OPTIONS = {"nogil": True, "error_model": "numpy"}
_lock = threading.Lock()


class Kernel:
    """Function that Numba compiles at its first call, or together with another kernel that calls the function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.py_func = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher of the function. Numba stores compiled code in our cache folder; without such a folder, it
        stores no code. By default, Numba would store compiled code beside the sources, and would not notice a change of
        a kernel in another file.
        """
        return _numba().njit(cache=cache_directory() is not None, **_OPTIONS)(self.py_func)

    @property
    def _numba_type_(self) -> Any:
        """Numba type of the dispatcher, which lets the code of one kernel call another kernel."""
        return self.dispatcher._numba_type_

    def __call__(self, *arguments: Any) -> Any:
        """Run the compiled function on these arguments."""
        return self.dispatcher(*arguments)


def kernel(function: Callable[..., Any]) -> Kernel:
    """Decorator that makes a function a kernel: a function that Numba compiles when it is first called."""
    return Kernel(function)


@cache
def cache_directory() -> Path | None:
    """Folder of the compiled kernels, named after the digest of their sources; None if it cannot be created anywhere.

    The folder is in `.cache/kernels` of the checkout, or in `.cache/tilewright` of the environment in which the package
    is installed. If there is no checkout and no writable environment, each process compiles the kernels that it needs.
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
    """Numba module, set up to use our cache folder and no SIMD instructions. SIMD would slow down the loops of kernels,
    because they have few iterations."""
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
    """Compiled function of kernel `entry`. If the cache lacks the function, the function is compiled and stored in the
    cache.

    The function takes one record for each type in `records`, followed by an integer. An address can take the place of a
    record. The function returns no result, and releases the interpreter lock while it runs.
    """
    with _lock:
        path = _object_path(entry)
        stored = _read(path)
        if stored is None:
            stored = _compile(entry, records)
            _store(path, *stored)
        return _load(stored[0], stored[1], len(records))


def _object_path(entry: Kernel) -> Path | None:
    """Path of the object file of a kernel for this processor and this version of llvmlite; None if there is no cache
    folder."""
    directory = cache_directory()
    if directory is None:
        return None
    import llvmlite
    import llvmlite.binding as llvm

    machine = f"{llvmlite.__version__} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    return directory / f"{entry.__name__}-{hashlib.blake2b(machine.encode(), digest_size=8).hexdigest()}.o"


def _compile(entry: Kernel, records: tuple[np.dtype, ...]) -> tuple[str, bytes]:
    """Compile an entry point. Returns the symbol of the entry point and its object code."""
    numba = _numba()
    types = tuple(numba.from_dtype(record) for record in records)
    dispatcher = numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False, **_OPTIONS)(entry.py_func)
    dispatcher.compile((*types, numba.int64))
    compiled = dispatcher.overloads[(*types, numba.int64)]
    symbol = compiled.fndesc.mangled_name
    return symbol, _optimise(compiled.library.get_llvm_str(), symbol)


def _optimise(intermediate_code: str, symbol: str) -> bytes:
    """Object code of a module in which `symbol` is the only entry point.

    Numba makes every function of a module callable from outside. Here all functions except the entry point become
    internal, so that LLVM can inline them into the entry point.
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
    """LLVM target machine that generates code for the processor of this computer. The code makes no assumption on the
    addresses at which it is loaded.
    """
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
    """Pair (symbol of the entry point, object code), read from a file; None if the file is missing or damaged."""
    content = None if path is None else after_digest_line(path)
    if content is None:
        return None
    symbol, _, code = content.partition(b"\n")
    return symbol.decode(), code


def _store(path: Path | None, symbol: str, code: bytes) -> None:
    if path is None:
        return
    with contextlib.suppress(OSError):  # in a read-only checkout, each process compiles the kernels again
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, with_digest_line(symbol.encode() + b"\n" + code))


_engines: list[Any] = []  # references that keep loaded code in memory until the process ends


def _load(symbol: str, code: bytes, record_count: int) -> NativeFunction:
    """Link object code into the process and return the Python function that calls the code.

    The code follows Numba's calling convention: it returns a status code, and its first two arguments are the addresses
    of the result and of an exception. Kernels never raise an exception.
    """
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
        places = [record if type(record) is int else address_of(record) for record in arguments[:-1]]
        status = function(ctypes.addressof(result), ctypes.addressof(exception), *places, arguments[-1])
        if status not in (0, -2):  # 0: ended with a result; -2: ended with None
            raise RuntimeError(f"kernel {symbol} ended with status {status}")

    return call


def address_of(record: np.record) -> int:
    """Memory address of the data of a record. A native function takes the address in place of the record, which saves
    time in frequent calls. The caller must keep a reference to the record."""
    owner = record.base
    if isinstance(owner, np.ndarray) and owner.size == 1:
        return int(owner.ctypes.data)  # `__array_interface__` takes 0.1 ms, because it describes each field
    return int(record.__array_interface__["data"][0])
