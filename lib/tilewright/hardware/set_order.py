"""Order in which the reference (zigzag-dse 3.9.1) iterates over sets of dimensions.

The reference keeps dimensions in Python sets. The order of a set decides ties, and the effect of some faults. The
reference computes the hash of a dimension by SHA-512 from the pickled name and class, so every process has the same
order. This module computes the same hashes, and iterates over a Python set of these integers.
"""

import hashlib
import pickle
import struct
from collections.abc import Iterable
from functools import lru_cache

_HASH_MODULUS = (1 << 61) - 1  # CPython reduces hashes of integers modulo this Mersenne prime on 64-bit builds.


def _pickled_class(class_name: str) -> bytes:
    """Pickle (protocol 4) of a reference to the class `class_name` of zigzag-dse. The result does not need an installed
    zigzag-dse."""
    module = b"zigzag.datatypes"
    body = b"".join(b"\x8c" + bytes([len(text)]) + text + b"\x94" for text in (module, class_name.encode()))
    body += b"\x93\x94."
    return b"\x80\x04\x95" + struct.pack("<Q", len(body)) + body


def _digest(data: bytes) -> int:
    return int(hashlib.sha512(data).hexdigest(), 16)


@lru_cache(maxsize=4096)
def dimension_hash(name: str, class_name: str) -> int:
    """Hash that the reference (zigzag-dse) computes for a dimension object called `name`. `class_name` is the class of
    the object: LayerDim or OADimension."""
    value = _digest(pickle.dumps(name, protocol=4)) ^ _digest(_pickled_class(class_name))
    return value % _HASH_MODULUS


def in_set_order(names: Iterable[str], class_name: str) -> list[str]:
    """Distinct `names`, in the order in which the reference (zigzag-dse) iterates over a Python set of the dimensions
    with these names. `class_name` is the class of the dimensions: LayerDim or OADimension.
    """
    by_hash = {dimension_hash(name, class_name): name for name in names}
    table: set[int] = set()
    for value in by_hash:
        table.add(value)
    return [by_hash[value] for value in table]


def layer_dimensions_in_set_order(names: Iterable[str]) -> list[str]:
    """Distinct `names` of loop dimensions, in the order in which the reference (zigzag-dse) iterates over a Python set
    of these dimensions.
    """
    return in_set_order(names, "LayerDim")


def array_dimensions_in_set_order(names: Iterable[str]) -> list[str]:
    """Distinct `names` of array dimensions, in the order in which the reference (zigzag-dse) iterates over a Python set
    of these dimensions.
    """
    return in_set_order(names, "OADimension")
