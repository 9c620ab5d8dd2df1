"""Models of arrays: energy, cycles, clock period and area of operations, by the kind of the array.

A kind is one object with the attributes of `ArrayModel`, entered in `ARRAY_MODELS` under its name; no other code names
it. The compiled cost model receives its numbers.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from tilewright.base.errors import MappingError
from tilewright.base.profile import REFERENCE, ModelProfile
from tilewright.base.registry import Registry, lacking, methods_of, taken
from tilewright.hardware.core import DIGITAL, OperationalArray

MAC = "mac"
"""Energy term of the operations of a digital array."""


class ArrayRefusalError(MappingError):
    """Raised when the array cannot run a spatial mapping, or its model has no energy for it."""


class InputWindow(NamedTuple):
    """A loop whose window overlaps with another loop's: input position = coefficient * loop + other * partner."""

    partner: str
    coefficient: int
    partner_coefficient: int

    def positions(self, lanes: int, partner_lanes: int) -> int:
        """Number of distinct input positions for so many lanes of both loops."""
        found = range(lanes), range(partner_lanes)
        return len({self.coefficient * i + self.partner_coefficient * j for i in found[0] for j in found[1]})


class ArrayWork(NamedTuple):
    """Work that a layer gives an array."""

    operations: int
    """Multiply-accumulates, or the layer's operations of another kind."""
    unrolling: Mapping[str, Mapping[str, int]]
    """Lanes of each loop dimension, per array dimension."""
    lanes: Mapping[str, Mapping[str, float]] = {}
    """Lanes as the model counts them; under B15, the average number of busy lanes."""
    input_loops: Mapping[str, InputWindow | None] = {}
    """Input windows by loop dimension, for dimensions that distinguish inputs; None for a dimension without window.

    In the reference, these are the dimensions over which weights stay the same (B14).
    """
    profile: ModelProfile = REFERENCE


class ArrayModel(Protocol):
    """Cost model of arrays of one kind."""

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of its energy terms, in the order in which they add up."""

    def energies_pj(self, array: OperationalArray, work: ArrayWork) -> tuple[float, ...]:
        """Energy in pJ of all operations of a layer, one number per term."""

    def cycles_per_operation(self, array: OperationalArray) -> int:
        """Cycles that a unit needs for one operation."""

    def area_mm2(self, array: OperationalArray) -> float | None:
        """Area of the whole array; None if the file does not give enough data."""

    def area_breakdown_mm2(self, array: OperationalArray) -> Mapping[str, float]:
        """Area by component; {} if there are no components."""

    def clock_period_ns(self, array: OperationalArray) -> float | None:
        """Shortest cycle that the array can have; None if the file does not give enough data."""

    def clock_breakdown_ns(self, array: OperationalArray) -> Mapping[str, float]:
        """Shortest cycle by component; {} if there are no components."""

    def refusal(self, array: OperationalArray, work: ArrayWork) -> str:
        """Reason why the array cannot run a spatial mapping; '' if it can."""


class Digital(NamedTuple):
    """Units that do one operation per cycle, each at the same energy for all data (zigzag-dse 3.9.1)."""

    terms: tuple[str, ...] = (MAC,)

    def energies_pj(self, array: OperationalArray, work: ArrayWork) -> tuple[float, ...]:
        """Operations times the energy of a unit."""
        return (float(array.unit_energy_pj * work.operations),)

    def cycles_per_operation(self, array: OperationalArray) -> int:
        """Always 1."""
        return 1

    def area_mm2(self, array: OperationalArray) -> float | None:
        """Units times the area of a unit."""
        return array.unit_area_mm2 * array.unit_count if array.unit_area_mm2 > 0 else None

    def area_breakdown_mm2(self, array: OperationalArray) -> Mapping[str, float]:
        """Always {}: units have no components."""
        return {}

    def clock_period_ns(self, array: OperationalArray) -> float | None:
        """Always None: files of digital arrays give no delays."""
        return None

    def clock_breakdown_ns(self, array: OperationalArray) -> Mapping[str, float]:
        """Always {}."""
        return {}

    def refusal(self, array: OperationalArray, work: ArrayWork) -> str:
        """Always '': dimensions and sizes are checked elsewhere."""
        return ""


def _fault(name: str, entry: object) -> str:
    return taken(name, (DIGITAL,)) or lacking(entry, methods_of(ArrayModel))


ARRAY_MODELS: Registry[ArrayModel] = Registry(__name__, _fault)
"""Models of arrays of kinds other than DIGITAL."""
_DIGITAL = Digital()


def array_model(array: OperationalArray) -> ArrayModel:
    """Model of an array. Raises MappingError if there is none for its kind."""
    if array.kind == DIGITAL:
        return _DIGITAL
    if array.kind not in ARRAY_MODELS.names:
        raise MappingError(f"there is no model of {array.kind} arrays")
    return ARRAY_MODELS[array.kind]


def clock_period_ns(array: OperationalArray) -> float | None:
    """Shortest cycle that an array can have according to its model; None if the model gives none.

    Raises MappingError if there is no model of its kind.
    """
    return array_model(array).clock_period_ns(array)


def total(values: Iterable[float]) -> float:
    """Sum added from first to last, as in the reference, because the last bit depends on the order."""
    added = 0.0
    for value in values:
        added += value
    return added
