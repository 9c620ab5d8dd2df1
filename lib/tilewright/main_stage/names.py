"""Names of operands and dimensions in the classes of zigzag-dse; here they are texts, equal to plain ones."""

from enum import StrEnum
from typing import Any


class Name(str):
    """Name; its `str` and its `name` are the same text."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """Text of the name."""
        return str(self)


class LayerOperand(Name):
    """Operand of a layer: `I`, `W`, `O`."""

    __slots__ = ()


class MemoryOperand(Name):
    """Operand as memories name it: `I1`, `I2`, `O`."""

    __slots__ = ()


class LayerDim(Name):
    """Loop dimension: `K`, `C`, `OX`."""

    __slots__ = ()


class OADimension(Name):
    """Dimension of the operational array: `D1`."""

    __slots__ = ()


class TemporalMappingType(StrEnum):
    """Whether each operand has its own boundaries between memory levels."""

    EVEN = "even"
    UNEVEN = "uneven"


class Fixed(dict[str, Any]):
    """Read-only table of a view. Raises TypeError on a change, which would have no effect."""

    def _refuse(self, *_: object, **__: object) -> Any:
        raise TypeError("this table cannot be changed here: nothing reads what is changed")

    __setitem__ = __delitem__ = update = pop = popitem = clear = setdefault = __ior__ = _refuse

    def __deepcopy__(self, memo: object) -> "Fixed":
        return self

    def __reduce__(self) -> Any:
        return type(self), (dict(self),)


class Shown:
    """Base of the views: it defines which attributes may be set, and refuses all others."""

    _may_be_set: tuple[str, ...] = ()

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("_") or name in self._may_be_set or not hasattr(self, "_is_made"):
            object.__setattr__(self, name, value)
            return
        allowed = ", ".join(self._may_be_set) or "nothing of it"
        raise AttributeError(f"{name} of {type(self).__name__} cannot be changed here; what can: {allowed}")

    def _made(self) -> None:
        """End the initialisation: from now on only permitted attributes can be set."""
        object.__setattr__(self, "_is_made", True)
