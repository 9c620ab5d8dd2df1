"""How kernels are compiled: once per version of their sources and per processor, into the project's own cache folder.

A kernel is a plain function in Numba's language. Numba is imported only to compile: importing it and filling its type
registries takes longer than mapping a small network, so the machine code of an entry point is kept as an object file,
and later processes load that with llvmlite alone (docs/adr/0005-native-kernel-cache.md).

The cache is named after the digest of all kernel sources, since Numba itself checks only the file of the function that
was called, not the files of the functions that it calls in turn.
"""

import atexit
import contextlib
import ctypes
import hashlib
import os
import tempfile
import threading
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

_PACKAGE = Path(__file__).resolve().parent
_KERNEL_SOURCES = (
    "compiled.py", "record_pointer.py", "profile.py", "hardware/core.py", "cost/*.py", "mapping/temporal.py",
    "**/*_record.py", "**/*_kernel.py",
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
        """Numba's dispatcher of the function, with Numba's own cache in the project's folder."""
        return _numba().njit(cache=True, **_OPTIONS)(self.py_func)

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
    """`.cache/kernels/<digest of the sources>` of the checkout; None where the package is installed elsewhere."""
    project = _PACKAGE.parent.parent
    if not (project / "Snakefile").is_file():
        return None
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted({path for pattern in _KERNEL_SOURCES for path in _PACKAGE.glob(pattern)}):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    return project / ".cache" / "kernels" / digest.hexdigest()


def _numba() -> Any:
    """Numba, with its cache in the project, and without vector code: it only slows down loops of a few rounds."""
    directory = cache_directory()
    if directory is not None:
        os.environ["NUMBA_CACHE_DIR"] = str(directory / NUMBA_FOLDER)
        _trust_numba_cache(directory / NUMBA_FOLDER)
    os.environ["NUMBA_LOOP_VECTORIZE"] = os.environ["NUMBA_SLP_VECTORIZE"] = "0"
    import numba

    return numba


NUMBA_FOLDER, _DIGESTS = "numba", "digests.txt"
"""Numba's own cache, and in it the digests of its files, which Numba does not check."""


@cache
def _trust_numba_cache(folder: Path) -> None:
    """Delete what no process has noted, or what has changed since; note what this process adds when it ends."""
    for path in damaged_numba_files(folder):
        with contextlib.suppress(OSError):  # another process has deleted it, or the checkout is read-only
            path.unlink()
    atexit.register(_note_numba_cache, folder)


def damaged_numba_files(folder: Path) -> list[Path]:
    """Files of Numba's cache whose content nobody noted, sorted; Numba makes again what is missing."""
    noted = _noted(folder)
    return [path for path in _numba_files(folder) if _noted_line(path, folder) not in noted]


def _numba_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.nb[ci]") if path.is_file())


def _noted(folder: Path) -> frozenset[str]:
    try:
        return frozenset((folder / _DIGESTS).read_text("utf-8", "replace").splitlines())
    except OSError:
        return frozenset()


def _noted_line(path: Path, folder: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError:
        content = b""
    return f"{hashlib.blake2b(content, digest_size=16).hexdigest()} {path.relative_to(folder).as_posix()}"


def _note_numba_cache(folder: Path) -> None:
    """Note the digests of all files that are there now; what two processes note at once is compiled again at worst."""
    lines = [_noted_line(path, folder) for path in _numba_files(folder)]
    if lines and frozenset(lines) != _noted(folder):
        with contextlib.suppress(OSError):
            _write_whole(folder / _DIGESTS, "".join(f"{line}\n" for line in lines).encode())


def _is_damaged_note(folder: Path) -> bool:
    """True if a line of the noted digests is of no file."""
    names = {path.relative_to(folder).as_posix() for path in _numba_files(folder)}
    return any(line[33:] not in names for line in _noted(folder))


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
    """This processor, with code that can be placed anywhere in memory."""
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
    if path is None or not path.is_file():
        return None
    try:
        parts = path.read_bytes().split(b"\n", 2)
    except OSError:
        return None
    if len(parts) != 3 or hashlib.blake2b(parts[1] + parts[2], digest_size=16).hexdigest().encode() != parts[0]:
        return None
    return parts[1].decode(), parts[2]


def damaged_files(caches: Path) -> list[Path]:
    """Machine code and files of Numba below `.cache/kernels` whose content is not what was written, sorted."""
    stored = [path for path in sorted(caches.glob("*/*.o")) if _read(path) is None]
    for folder in sorted(caches.glob(f"*/{NUMBA_FOLDER}")):
        stored += damaged_numba_files(folder)
        stored += [folder / _DIGESTS] if _is_damaged_note(folder) else []
    return stored


def _store(path: Path | None, symbol: str, code: bytes) -> None:
    if path is None:
        return
    digest = hashlib.blake2b(symbol.encode() + code, digest_size=16).hexdigest()
    with contextlib.suppress(OSError):  # a read-only checkout: compile in each process
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(path, digest.encode() + b"\n" + symbol.encode() + b"\n" + code)


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file under another name, then rename it; a crash of the machine may leave it empty, which is noticed."""
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            os.fchmod(handle, 0o644)  # other users of a shared checkout load it too
            stream.write(content)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


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
