"""How kernels are compiled: once per version of the kernel sources, into the project's own cache folder.

Numba checks only the file of a cached function, not the files of the functions it calls; a cache folder named after
the digest of all kernel sources makes a stale combination impossible.
"""

import hashlib
import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_KERNEL_SOURCES = (
    "compiled.py", "profile.py", "hardware/core.py", "cost/*.py", "mapping/temporal_ordering.py", "*/*_kernel.py",
)  # fmt: skip
"""Files with kernels, and those whose constants kernels take in when they are compiled."""


def _kernel_digest() -> str:
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted({path for pattern in _KERNEL_SOURCES for path in _PACKAGE.glob(pattern)}):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _cache_directory() -> Path | None:
    """`.cache/numba` of the checkout; None (numba's default) where the package is installed elsewhere."""
    project = _PACKAGE.parent.parent
    return project / ".cache" / "numba" / _kernel_digest() if (project / "Snakefile").is_file() else None


_directory = _cache_directory()
if _directory is not None:
    _directory.mkdir(parents=True, exist_ok=True)
    os.environ["NUMBA_CACHE_DIR"] = str(_directory)

from numba import njit  # noqa: E402  the cache folder must be set before numba reads it

kernel = njit(cache=True, nogil=True, error_model="numpy")
"""Decorator of every kernel."""
