"""Record of a mapping: a typed object with all results.

Artifacts, tables and plots are made from this object.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from tilewright.base.artifacts.codec import LEFT_OUT, decode, encode
from tilewright.base.json_values import JsonObject
from tilewright.base.objectives import energy_delay_product
from tilewright.base.operator_groups import work_counts
from tilewright.cost.ledger import energy_columns, energy_terms, without_terms
from tilewright.hardware.array_model import InputWindow

if TYPE_CHECKING:
    from tilewright.mapping.constraints import Unrolling
    from tilewright.workload.layer import Layer

Loop = tuple[str, float]
"""Loop (dimension, size). The size of a spatial loop can be fractional."""
LoopOrder = tuple[tuple[str, int], ...]
"""Temporal loops (dimension, size), innermost loop first."""
LoopLevels = tuple[tuple[Loop, ...], ...]
"""Loops of each level, innermost level first."""
LinkFigures = dict[str, tuple[dict[str, float], ...]]
"""One number per link: operand -> a table {direction: number} for each of its memory levels, innermost level first."""


UNEVEN = "uneven"
"""Default type of temporal mapping: operands of a memory can have different loop boundaries."""


class LayerFacts(NamedTuple):
    """Facts about the layer that readers of a record need."""

    name: str
    """Name of the first layer of the network that has this mapping problem."""
    operator_type: str
    equation: str
    loop_sizes: dict[str, int]
    precision_bits: dict[str, int]
    mac_count: int
    """Number of multiply-accumulates; 0 if the operations of the layer are not multiply-accumulates."""
    operation_count: int
    """Number of operations that are not multiply-accumulates."""

    @classmethod
    def of(cls, layer: "Layer") -> "LayerFacts":
        """Facts about a layer. All its operations count as multiply-accumulates."""
        sizes, bits = dict(layer.loop_sizes), dict(layer.precision_bits)
        counts = work_counts("", layer.mac_count)
        return cls(layer.name, layer.operator_type, layer.equation, sizes, bits, **counts)

    def on_unit(self, unit: str) -> "LayerFacts":
        """Facts about the layer if it runs on a unit. Operations of the vector unit are not multiply-accumulates.
        Operations of any other unit are multiply-accumulates.
        """
        counts = work_counts(unit, self.work)
        return self._replace(mac_count=counts["mac_count"], operation_count=counts["operation_count"])

    @property
    def work(self) -> int:
        """Number of operations of the layer. Either all operations or none are multiply-accumulates."""
        return self.mac_count + self.operation_count


class MemoryFacts(NamedTuple):
    """Facts about a memory that readers of a record need."""

    size_bits: int
    operands: tuple[str, ...]
    """Memory operands that the memory can hold."""


class PortActivity(NamedTuple):
    """Transfers over one link that a port serves. A link is (operand, memory level, direction)."""

    operand: str
    level: int
    direction: str
    real_cycles: int
    """Cycles that one transfer takes on the port."""
    allowed_cycles: int
    """Largest number of cycles that one transfer can take without a stall of the array."""
    period_cycles: int
    """Cycles from the start of one transfer to the start of the next transfer."""
    period_count: int
    """Number of periods in which there is a transfer."""
    stall_slack_cycles: int
    """Cycles of stall (positive) or slack (negative): the sum over the transfers of the link while the array
    computes."""


class PortRecord(NamedTuple):
    """Stall (positive) or slack (negative) of a port in cycles, and the links that the port serves."""

    memory: str
    port: str
    stall_slack_cycles: int
    activities: tuple[PortActivity, ...]


class Figures(NamedTuple):
    """Energy and latency of a mapping. Both are None if the mapping does not fit."""

    energy_pj: float | None = None
    latency_cycles: float | None = None


class CandidateRow(NamedTuple):
    """Spatial mapping that the search tried, with its energy in pJ and its latency in cycles."""

    spatial_mapping: dict[str, dict[str, int]]
    temporal_orders: int
    feasible: int
    energy_pj: float | None
    latency_cycles: float | None
    reason: str


class MemoryReachRecord(NamedTuple):
    """Topmost memories that a layer uses, if data locality or the mapping file limits these memories."""

    topmost: dict[str, str]
    """Topmost memory that each operand uses."""
    occupied_bits: dict[str, int]
    """Number of bits that data of other layers occupy in each memory while the layer runs."""


class ArrayUseRecord(NamedTuple):
    """Use of an in-memory array by a layer, in addition to its spatial mapping."""

    lanes: dict[str, dict[str, float]]
    """Number of lanes that the model counts: array dimension -> {loop dimension: lanes}."""
    input_loops: dict[str, InputWindow | None]
    """Loop dimensions along which lanes need different inputs: dimension -> its sliding window, or None. In the
    reference model, the keys are the dimensions that are irrelevant to the weights."""


@dataclass(frozen=True)
class LayerRecord:
    """Record of a mapped layer, which is one row of `layers.jsonl` (docs/artifacts/records.md).

    Energy in pJ, time in cycles, sizes in bits. Operands have the order of the equation, and the memory levels of an
    operand begin with its innermost memory. Files leave out fields that are equal to their default.
    """

    layer: LayerFacts
    """Facts about the first layer of the network that has this mapping problem."""
    layer_names: tuple[str, ...] = field(default=(), metadata=LEFT_OUT, kw_only=True)
    """Names of all layers of the network that have this mapping problem, in execution order."""
    core: str
    """Name of the core."""
    spatial_mapping: dict[str, dict[str, int]]
    """Number of lanes that the spatial mapping requests: array dimension -> {loop dimension: lanes}."""
    memory_operand_links: dict[str, str]
    """Layer operand -> memory operand that holds it."""
    loop_order: LoopOrder
    """Loop order from the search, innermost loop first. Stationary loops are not yet merged into lower levels."""
    temporal_mapping: dict[str, tuple[LoopOrder, ...]]
    """Loops that each operand keeps at each memory level. Stationary loops are already merged into lower levels."""
    spatial_levels: dict[str, LoopLevels]
    """Spatial loops of each operand and level, with factors that are rounded to integers. The first level is between
    the array and the innermost memory.
    """
    memory_levels: dict[str, tuple[str, ...]]
    """Names of the memories of each operand, innermost memory first."""
    memories: dict[str, MemoryFacts]
    """All memories of the core, in the order of the hardware file."""
    energy_pj: float
    """Energy of the layer in pJ."""
    energy_terms_pj: dict[str, float]
    """Energy in pJ by term. The energy of the layer is the sum of the terms, added in the order of the keys. In files,
    each term is a field `<term>_energy_pj`.
    """
    latency_cycles: float
    """Latency of the layer in cycles."""
    edp_pj_cycles: float
    """Energy in pJ times latency in cycles."""
    latency_breakdown_cycles: dict[str, float]
    """Latency in cycles by term. The latency of the layer is the sum of the terms, added in the order of the keys."""
    energy_breakdown_pj: LinkFigures
    """Energy of memory accesses in pJ, for each link."""
    word_accesses: LinkFigures
    """Number of accesses to words of the full port width on each link, added up over all instances of the memory."""
    memory_utilization: dict[str, tuple[float, ...]]
    """Share of each memory that all operands in it fill together: operand -> one share for each of its memories."""
    memory_utilization_individual: dict[str, tuple[float, ...]]
    """Share of each memory that the operand alone fills: operand -> one share for each of its memories."""
    mac_utilization: dict[str, float]
    """Utilizations of the array: ideal cycles divided by actual cycles. The actual cycles of `spatial` are the cycles
    of the temporal loops. `with_stalls` adds the stalls to these cycles, `with_onloading` then adds on-loading,
    and `with_offloading` then adds all other terms of the latency.
    """
    ports: tuple[PortRecord, ...]
    """Stall or slack of each port, with the links that the port serves."""
    area_mm2: float | None
    """Area of the core in mm2; None if the hardware file does not give the area of every part."""
    area_breakdown_mm2: dict[str, dict[str, float]] = field(default_factory=dict, metadata=LEFT_OUT)
    """Area in mm2 of a core with an in-memory array: `array` by component, `memories` by name."""
    clock_period_ns: float | None = field(default=None, metadata=LEFT_OUT)
    """Shortest clock period of the array in ns; None if the array model does not give it."""
    clock_breakdown_ns: dict[str, float] = field(default_factory=dict, metadata=LEFT_OUT)
    """Parts of the clock period in ns, by component."""
    cycles_per_operation: int = field(default=1, metadata=LEFT_OUT)
    """Cycles that a unit of the array needs for one operation."""
    array_use: ArrayUseRecord | None = field(default=None, metadata=LEFT_OUT)
    """Use of an in-memory array by the layer; None for any other array."""
    zeros: dict[str, float] = field(default_factory=dict, metadata=LEFT_OUT)
    """Share of zeros in each input operand and in the final outputs (key `O_final`), as given by the user."""
    active_share: float = field(default=1.0, metadata=LEFT_OUT)
    """Share of the operations that take energy. The share is below 1 only if the array stops operations with a zero."""
    level_boundaries: dict[str, tuple[int, ...]] | None = field(default=None, metadata=LEFT_OUT)
    """Level boundaries of each operand: the number of loops in each memory level and all levels inside it. None if the
    search did not choose the loops of each memory.
    """
    array_dimensions: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)
    """Names of all dimensions of the array, including dimensions that the spatial mapping does not use."""
    temporal_mapping_type: str = field(default=UNEVEN, metadata=LEFT_OUT)
    """`even` if all operands of a memory must have the same loop boundary, otherwise `uneven`."""
    access_same_data_considered_as_no_access: bool = field(default=True, metadata=LEFT_OUT)
    """True if an input that the array reuses in the next cycle is not read again."""
    objective: str = ""
    """Objective that the search minimised."""
    model: str = ""
    """Model profile of all results except those in `corrected`."""
    corrected: Figures = Figures()  # noqa: RUF009  frozen
    """Energy and latency of the same mapping, computed with the model profile `corrected`."""
    candidates: tuple[CandidateRow, ...] | None = field(default=None, metadata=LEFT_OUT)
    """Spatial mappings that the search tried."""
    evaluations: int | None = field(default=None, metadata=LEFT_OUT)
    """Number of mappings that the search evaluated; None if there was no search."""
    search: dict[str, Any] = field(default_factory=dict, metadata=LEFT_OUT)
    """Name, settings and statistics of the search engine, and its lower bound and proof if there are any
    (docs/artifacts/records.md).
    """
    alternatives: int = field(default=0, metadata=LEFT_OUT)
    """Number of mappings that the stages returned for the layer besides the one in this record. Totals use only the
    mapping in this record.
    """
    core_is_changed: bool = field(default=False, metadata=LEFT_OUT)
    """True if a user's stage replaced the core of the layer."""
    memory_reach: MemoryReachRecord | None = field(default=None, metadata=LEFT_OUT)
    """Topmost memories that the layer uses; None if neither data locality nor the mapping file limits these
    memories."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all layers of the network that have the mapping problem of this record."""
        return self.layer_names or (self.layer.name,)


def times(record: LayerRecord, count: int) -> LayerRecord:
    """Record of `count` equal layers that run one after another: work, energy and cycles are multiplied by `count`.

    Loops, levels, shares and areas do not change.
    """
    if count == 1:
        return record
    layer = record.layer
    energy_pj, latency_cycles = record.energy_pj * count, record.latency_cycles * count
    corrected = (None if figure is None else figure * count for figure in record.corrected)
    return replace(
        record,
        layer=layer._replace(mac_count=layer.mac_count * count, operation_count=layer.operation_count * count),
        energy_pj=energy_pj,
        energy_terms_pj={term: energy * count for term, energy in record.energy_terms_pj.items()},
        latency_cycles=latency_cycles,
        edp_pj_cycles=energy_delay_product(energy_pj, latency_cycles),
        latency_breakdown_cycles={term: cycles * count for term, cycles in record.latency_breakdown_cycles.items()},
        energy_breakdown_pj=_scaled_links(record.energy_breakdown_pj, count),
        word_accesses=_scaled_links(record.word_accesses, count),
        ports=tuple(_scaled_port(port, count) for port in record.ports),
        corrected=Figures(*corrected),
    )


def _scaled_links(figures: LinkFigures, count: int) -> LinkFigures:
    return {
        operand: tuple({direction: value * count for direction, value in level.items()} for level in levels)
        for operand, levels in figures.items()
    }


def _scaled_port(port: PortRecord, count: int) -> PortRecord:
    activities = (
        one._replace(period_count=one.period_count * count, stall_slack_cycles=one.stall_slack_cycles * count)
        for one in port.activities
    )
    return port._replace(stall_slack_cycles=port.stall_slack_cycles * count, activities=tuple(activities))


def record_row(record: LayerRecord) -> JsonObject:
    """Row of `layers.jsonl` for a record. Each energy term is a separate field of the row."""
    row: dict[str, Any] = {}
    for name, value in encode(record).items():
        row |= energy_columns(value) if name == "energy_terms_pj" else {name: value}
    return row


def record_of_row(row: JsonObject) -> LayerRecord:
    """Record that a row of `layers.jsonl` describes. Raises ValueError if the row is not a valid record."""
    return decode(LayerRecord, without_terms(row) | {"energy_terms_pj": energy_terms(row)})


def number(value: float) -> int | float:
    """Number in the form in which files have it. A whole value below 2^53 is written as an integer, which has the
    shorter text. Any other value is written as a float."""
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else float(value)


def unrolling_record(unrolling: "Unrolling") -> dict[str, dict[str, int]]:
    """Unrolling in the form of a record: array dimension -> {loop dimension: factor}."""
    return {name: dict(factors) for name, factors in unrolling}
