"""Arrays of records that compiled code reaches by their address.

Arrays whose lengths differ from problem to problem cannot be fields of a record, and as arguments of compiled functions
a hundred of them take minutes to compile; an address and the type of a record are all that is needed.
"""

from functools import cached_property
from typing import Any

import numpy as np

from tilewright.base import compiled


class RecordPointer:
    """Pointer to records: in kernels, `pointer(address, index)` is the record `index` of the array at `address`, to be
    read and written.

    Nothing checks the index, and the caller keeps the array alive.
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
        typing.refresh()  # makes the new intrinsic known
        return typing.resolve_value_type(record_at)


def pointer_to(array: np.ndarray) -> int:
    """Address of the first entry of an array that lies in memory without gaps."""
    return int(array.ctypes.data)
