"""Hash of a frozen dataclass, computed only once for each object.

This saves time for objects that are keys of many dicts.
"""

from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=type)
_PLACE = "_hash"


def hash_once(kind: Kind) -> Kind:
    """Decorator of a frozen dataclass: each object computes its hash once, from its fields, and remembers it.

    Pickles and copies of an object do not contain the remembered hash, because Python hashes texts differently in each
    process.
    """
    decorated: Any = kind
    of_fields = decorated.__hash__

    def hash_of(self: Any) -> int:
        state: dict[str, Any] = self.__dict__
        found: int | None = state.get(_PLACE)
        if found is None:
            found = state[_PLACE] = int(of_fields(self))
        return found

    def state_of(self: Any) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != _PLACE}

    decorated.__hash__ = hash_of
    decorated.__getstate__ = state_of
    return kind
