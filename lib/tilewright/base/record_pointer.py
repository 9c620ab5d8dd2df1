"""Arrays of records that compiled code finds by a memory address.

An array with a different length in each problem cannot be a field of a record. With a hundred of these arrays as
arguments, compiling a function would take minutes. Compiled code therefore gets only the address of each array, and
knows the type of its records.
"""

from functools import cached_property
from typing import Any

import numpy as np

from tilewright.base import compiled


class RecordPointer:
    """Pointer to records of one type. In kernels, `pointer(address, index)` is the record number `index` of the array
    at `address`; kernels can read and write this record.

    The index is not checked. The caller must keep a reference to the array while kernels use the address.
    """

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype

    @cached_property
    def _numba_type_(self) -> Any:
        compiled._numba()
        from numba.core import types
        from numba.core.registry import cpu_target
        from numba.extending import intrinsic
        from numba.np.numpy_support import from_dtype

        record, size = from_dtype(self.dtype), self.dtype.itemsize

        @intrinsic  # type: ignore[untyped-decorator]
        def record_at(typing_context, address, index):
            def generate(context, builder, signature, arguments):
                index = context.cast(builder, arguments[1], signature.args[1], types.int64)
                place = builder.add(arguments[0], builder.mul(index, context.get_constant(types.int64, size)))
                return builder.inttoptr(place, context.get_value_type(record))

            return record(types.int64, index), generate

        typing = cpu_target.typing_context
        typing.refresh()  # registers the new intrinsic with Numba
        return typing.resolve_value_type(record_at)


def pointer_to(array: np.ndarray) -> int:
    """Memory address of the first entry of a contiguous array."""
    return int(array.ctypes.data)
