"""What an array costs: energy, cycles and area of operations, by the kind of the array.

A kind is one object with the attributes of `ArrayModel`, entered in `ARRAY_MODELS` under its name; nothing else names
it. The compiled cost model gets the numbers.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from tilewright.errors import MappingError
from tilewright.hardware.core import DIGITAL, OperationalArray
from tilewright.registry import Registry

MAC = "mac"
"""The energy term of the operations of a digital array."""


class ArrayWork(NamedTuple):
    """What a layer asks of an array."""

    operations: int
    """Multiply-accumulates, or operations of the kind that the layer has."""
    unrolling: Mapping[str, Mapping[str, int]]
    """Array dimension -> {loop dimension: lanes}."""


class ArrayModel(Protocol):
    """How arrays of one kind cost."""

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the terms of its energy, in the order in which they add up."""

    def energies_pj(self, array: OperationalArray, work: ArrayWork) -> tuple[float, ...]:
        """The energy of all operations of a layer, a number for each term."""

    def cycles_per_operation(self, array: OperationalArray) -> int:
        """Cycles for which a unit is busy with an operation."""

    def area_mm2(self, array: OperationalArray) -> float | None:
        """Area of the whole array; None where the file says too little."""

    def refusal(self, array: OperationalArray, work: ArrayWork) -> str:
        """Why the array cannot run a spatial mapping; '' if it can."""


class Digital(NamedTuple):
    """Units that do an operation a cycle, each at the same energy, whatever it computes (zigzag-dse 3.9.1)."""

    terms: tuple[str, ...] = (MAC,)

    def energies_pj(self, array: OperationalArray, work: ArrayWork) -> tuple[float, ...]:
        """Operations times the energy of a unit."""
        return (float(array.unit_energy_pj * work.operations),)

    def cycles_per_operation(self, array: OperationalArray) -> int:
        """One."""
        return 1

    def area_mm2(self, array: OperationalArray) -> float | None:
        """Units times the area of a unit."""
        return array.unit_area_mm2 * array.unit_count if array.unit_area_mm2 > 0 else None

    def refusal(self, array: OperationalArray, work: ArrayWork) -> str:
        """Nothing but sides and sizes limits it, which is checked elsewhere."""
        return ""


ARRAY_MODELS: Registry[ArrayModel] = Registry(__name__)
"""Kinds of arrays besides DIGITAL."""
_DIGITAL = Digital()


def is_known(kind: str) -> bool:
    """Whether there is a model of arrays of a kind."""
    return kind == DIGITAL or kind in ARRAY_MODELS.names


def array_model(array: OperationalArray) -> ArrayModel:
    """The model of an array. Raises MappingError where there is none for its kind."""
    if array.kind == DIGITAL:
        return _DIGITAL
    if array.kind not in ARRAY_MODELS.names:
        raise MappingError(f"there is no model of {array.kind} arrays")
    return ARRAY_MODELS[array.kind]
