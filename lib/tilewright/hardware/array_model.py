"""Models of arrays: energy, cycles, clock period and area of operations, by the kind of the array.

A kind is one object with the attributes of `ArrayModel`, entered in `ARRAY_MODELS` under its name; nothing else names
it. The compiled cost model gets the numbers.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from tilewright.base.errors import MappingError
from tilewright.base.profile import REFERENCE, ModelProfile
from tilewright.base.registry import Registry, lacking, methods_of, taken
from tilewright.hardware.core import DIGITAL, OperationalArray

MAC = "mac"
"""The energy term of the operations of a digital array."""


class ArrayRefusalError(MappingError):
    """The array cannot run a spatial mapping, or its model has no energy for it."""


class InputWindow(NamedTuple):
    """A loop that slides over the same inputs as another one: input position = coefficient * loop + other * partner."""

    partner: str
    coefficient: int
    partner_coefficient: int

    def positions(self, lanes: int, partner_lanes: int) -> int:
        """Distinct input positions of so many lanes of both."""
        found = range(lanes), range(partner_lanes)
        return len({self.coefficient * i + self.partner_coefficient * j for i in found[0] for j in found[1]})


class ArrayWork(NamedTuple):
    """What a layer asks of an array."""

    operations: int
    """Multiply-accumulates, or operations of the kind that the layer has."""
    unrolling: Mapping[str, Mapping[str, int]]
    """Array dimension -> {loop dimension: lanes}."""
    lanes: Mapping[str, Mapping[str, float]] = {}
    """Lanes as the model counts them: under B15 lanes that are busy on average."""
    input_loops: Mapping[str, InputWindow | None] = {}
    """Loop dimensions that tell inputs apart, each with the window that it slides in, None without one; in the
    reference those over which weights stay the same (B14)."""
    profile: ModelProfile = REFERENCE


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

    def area_breakdown_mm2(self, array: OperationalArray) -> Mapping[str, float]:
        """Area by component; {} where there is none."""

    def clock_period_ns(self, array: OperationalArray) -> float | None:
        """The shortest cycle that the array can have; None where the file says too little."""

    def clock_breakdown_ns(self, array: OperationalArray) -> Mapping[str, float]:
        """Shortest cycle by component; {} where there is none."""

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

    def area_breakdown_mm2(self, array: OperationalArray) -> Mapping[str, float]:
        """Units have no parts."""
        return {}

    def clock_period_ns(self, array: OperationalArray) -> float | None:
        """Files of digital arrays say nothing of delays."""
        return None

    def clock_breakdown_ns(self, array: OperationalArray) -> Mapping[str, float]:
        """Nothing, neither."""
        return {}

    def refusal(self, array: OperationalArray, work: ArrayWork) -> str:
        """Nothing but sides and sizes limits it, which is checked elsewhere."""
        return ""


def _fault(name: str, entry: object) -> str:
    return taken(name, (DIGITAL,)) or lacking(entry, methods_of(ArrayModel))


ARRAY_MODELS: Registry[ArrayModel] = Registry(__name__, _fault)
"""Kinds of arrays besides DIGITAL."""
_DIGITAL = Digital()


def array_model(array: OperationalArray) -> ArrayModel:
    """The model of an array. Raises MappingError where there is none for its kind."""
    if array.kind == DIGITAL:
        return _DIGITAL
    if array.kind not in ARRAY_MODELS.names:
        raise MappingError(f"there is no model of {array.kind} arrays")
    return ARRAY_MODELS[array.kind]


def clock_period_ns(array: OperationalArray) -> float | None:
    """The shortest cycle that an array can have, as its model says; None where it says nothing.

    Raises MappingError where there is no model of its kind.
    """
    return array_model(array).clock_period_ns(array)


def total(values: Iterable[float]) -> float:
    """The sum, added up one after the other, as in the reference: the last bit depends on it."""
    added = 0.0
    for value in values:
        added += value
    return added
