"""Names of operands and dimensions, with the classes of zigzag-dse, and base classes of the objects that the user's
stages read.

Each name is a `str` that equals its text: `LayerDim("K") == "K"` is true.
"""

from enum import StrEnum
from typing import Any


class Name(str):
    """Name of an operand or a dimension. `str(name)` and `name.name` give the same text."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """Text of the name."""
        return str(self)


class LayerOperand(Name):
    """Operand of a layer, such as `I`, `W` or `O`."""

    __slots__ = ()


class MemoryOperand(Name):
    """Operand under the name that memories use, such as `I1`, `I2` or `O`."""

    __slots__ = ()


class LayerDim(Name):
    """Loop dimension, such as `K`, `C` or `OX`."""

    __slots__ = ()


class OADimension(Name):
    """Dimension of the operational array, such as `D1`."""

    __slots__ = ()


class TemporalMappingType(StrEnum):
    """Type of temporal mappings: uneven if operands can have different boundaries between memory levels, else even."""

    EVEN = "even"
    UNEVEN = "uneven"


class Fixed(dict[str, Any]):
    """Read-only table. An attempt to change the table raises TypeError, because the change would have no effect on the
    run.
    """

    def _refuse(self, *_: object, **__: object) -> Any:
        raise TypeError("this table cannot be changed, because a change would have no effect on the run")

    __setitem__ = __delitem__ = update = pop = popitem = clear = setdefault = __ior__ = _refuse

    def __deepcopy__(self, memo: object) -> "Fixed":
        return self

    def __reduce__(self) -> Any:
        return type(self), (dict(self),)


class Shown:
    """Base class of views. A view is an object, such as a layer or a memory, through which a user's stage reads a run.

    Each subclass lists the attributes that a user's stage can set. Setting another attribute raises AttributeError.
    """

    _may_be_set: tuple[str, ...] = ()

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("_") or name in self._may_be_set or not hasattr(self, "_is_made"):
            object.__setattr__(self, name, value)
            return
        allowed = ", ".join(self._may_be_set) or "none"
        raise AttributeError(
            f"{name} of {type(self).__name__} cannot be changed; attributes that can be changed: {allowed}"
        )

    def _made(self) -> None:
        """End the initialisation. From now on, only permitted attributes can be set."""
        object.__setattr__(self, "_is_made", True)
