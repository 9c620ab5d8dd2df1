"""Models of arrays: energy, cycles, clock period and area of operations, for each kind of array.

Each kind of array has one object with the attributes of `ArrayModel`. The objects of all kinds except DIGITAL are
entered in `ARRAY_MODELS` under the name of the kind. The compiled cost model receives the numbers that the object
computes.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from tilewright.base.errors import MappingError
from tilewright.base.profile import REFERENCE, ModelProfile
from tilewright.base.registry import Registry, lacking, methods_of, taken
from tilewright.hardware.core import DIGITAL, OperationalArray

MAC = "mac"
"""Name of the only energy term of digital arrays: the energy of multiply-accumulates."""


class ArrayRefusalError(MappingError):
    """Error: an array cannot run a spatial mapping, or the model of the array has no energy for the mapping."""


class InputWindow(NamedTuple):
    """Sliding window that two loops form together: input position = coefficient * loop + partner_coefficient * partner
    loop."""

    partner: str
    coefficient: int
    partner_coefficient: int

    def positions(self, lanes: int, partner_lanes: int) -> int:
        """Number of distinct input positions that the lanes need. `lanes` and `partner_lanes` are the numbers of lanes
        of the two loops.
        """
        found = range(lanes), range(partner_lanes)
        return len({self.coefficient * i + self.partner_coefficient * j for i in found[0] for j in found[1]})


class ArrayWork(NamedTuple):
    """Work of a layer on an array."""

    operations: int
    """Number of multiply-accumulates. If the layer has none, the number of its other operations."""
    unrolling: Mapping[str, Mapping[str, int]]
    """Unrolling factors: array dimension -> loop dimension -> number of lanes."""
    lanes: Mapping[str, Mapping[str, float]] = {}
    """Lanes that the model counts: array dimension -> loop dimension -> number of lanes. If the model profile repairs
    fault B15 (docs/model.md), each number is the average number of busy lanes.
    """
    input_loops: Mapping[str, InputWindow | None] = {}
    """Loop dimension over which inputs differ -> its input window; None for a dimension without a window.

    In the profile of the reference, the keys are the dimensions over which weights stay the same (fault B14,
    docs/model.md).
    """
    profile: ModelProfile = REFERENCE
    active_share: float = 1.0
    """Share of the operations that take energy. The share is below 1 only if zeros stop operations
    (`mapping.zeros`)."""


class ArrayModel(Protocol):
    """Cost model of arrays of one kind."""

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the energy terms, in the order in which they are added."""

    def energies_pj(self, array: OperationalArray, work: ArrayWork) -> tuple[float, ...]:
        """Energy in pJ of all operations of a layer, one number per term."""

    def cycles_per_operation(self, array: OperationalArray) -> int:
        """Cycles that a unit needs for one operation."""

    def area_mm2(self, array: OperationalArray) -> float | None:
        """Area of the whole array in mm2; None if the file does not give enough data."""

    def area_breakdown_mm2(self, array: OperationalArray) -> Mapping[str, float]:
        """Area in mm2 by component of the array; {} if there are no components."""

    def clock_period_ns(self, array: OperationalArray) -> float | None:
        """Shortest clock cycle of the array, in ns; None if the file does not give enough data."""

    def clock_breakdown_ns(self, array: OperationalArray) -> Mapping[str, float]:
        """Contribution of each component to the shortest clock cycle, in ns; {} if there are no components."""

    def refusal(self, array: OperationalArray, work: ArrayWork) -> str:
        """Reason why the array cannot run a spatial mapping; '' if the array can run it."""


class Digital(NamedTuple):
    """Array of units that do one operation per cycle. As in zigzag-dse 3.9.1, the energy of an operation does not
    depend on the data. Only operations that a zero stops take no energy."""

    terms: tuple[str, ...] = (MAC,)

    def energies_pj(self, array: OperationalArray, work: ArrayWork) -> tuple[float, ...]:
        """Tuple with one energy in pJ: the number of operations that take energy, times the energy of one operation."""
        return (float(array.unit_energy_pj * work.operations) * work.active_share,)

    def cycles_per_operation(self, array: OperationalArray) -> int:
        """Always 1."""
        return 1

    def area_mm2(self, array: OperationalArray) -> float | None:
        """Number of units times the area of a unit; None if the file gives no area."""
        return array.unit_area_mm2 * array.unit_count if array.unit_area_mm2 > 0 else None

    def area_breakdown_mm2(self, array: OperationalArray) -> Mapping[str, float]:
        """Always {}: units have no components."""
        return {}

    def clock_period_ns(self, array: OperationalArray) -> float | None:
        """Always None: files of digital arrays give no delays."""
        return None

    def clock_breakdown_ns(self, array: OperationalArray) -> Mapping[str, float]:
        """Always {}: files of digital arrays give no delays."""
        return {}

    def refusal(self, array: OperationalArray, work: ArrayWork) -> str:
        """Always '': dimensions and sizes are checked elsewhere."""
        return ""


def _fault(name: str, entry: object) -> str:
    return taken(name, (DIGITAL,)) or lacking(entry, methods_of(ArrayModel))


ARRAY_MODELS: Registry[ArrayModel] = Registry(__name__, _fault)
"""Registry of array models, by kind of array. The kind DIGITAL is not in it."""
_DIGITAL = Digital()


def array_model(array: OperationalArray) -> ArrayModel:
    """Model of an array. Raises MappingError if there is no model for arrays of this kind."""
    if array.kind == DIGITAL:
        return _DIGITAL
    if array.kind not in ARRAY_MODELS.names:
        raise MappingError(f"there is no model of {array.kind} arrays")
    return ARRAY_MODELS[array.kind]


def clock_period_ns(array: OperationalArray) -> float | None:
    """Shortest clock cycle of an array in ns, according to the model of the array; None if the model gives no clock
    cycle.

    Raises MappingError if there is no model for arrays of this kind.
    """
    return array_model(array).clock_period_ns(array)


def total(values: Iterable[float]) -> float:
    """Sum of the values, added from first to last. The reference adds in this order, and another order can change the
    last bit.
    """
    added = 0.0
    for value in values:
        added += value
    return added
