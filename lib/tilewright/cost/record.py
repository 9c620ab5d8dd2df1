"""Record of a mapping: all its figures as one typed value, from which artifacts, tables and figures are made."""

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
"""Loop (dimension, size); sizes of spatial loops may be fractional."""
LoopOrder = tuple[tuple[str, int], ...]
"""Loops (dimension, size) from the innermost outwards."""
LoopLevels = tuple[tuple[Loop, ...], ...]
"""Loops of each level, innermost first."""
LinkFigures = dict[str, tuple[dict[str, float], ...]]
"""Figures of links: operand -> memory level -> {direction: figure}."""


UNEVEN = "uneven"
"""Default type of temporal mapping."""


class LayerFacts(NamedTuple):
    """Facts about the layer that readers of a record need."""

    name: str
    """Name of the first layer with this problem."""
    operator_type: str
    equation: str
    loop_sizes: dict[str, int]
    precision_bits: dict[str, int]
    mac_count: int
    """Multiply-accumulates; 0 for a layer of other operations."""
    operation_count: int
    """Operations other than multiply-accumulates."""

    @classmethod
    def of(cls, layer: "Layer") -> "LayerFacts":
        """Facts of a layer, with its operations counted as multiply-accumulates."""
        sizes, bits = dict(layer.loop_sizes), dict(layer.precision_bits)
        counts = work_counts("", layer.mac_count)
        return cls(layer.name, layer.operator_type, layer.equation, sizes, bits, **counts)

    def on_unit(self, unit: str) -> "LayerFacts":
        """Facts with operations counted by the kind that the layer's unit (array, pooling, vector) performs."""
        counts = work_counts(unit, self.work)
        return self._replace(mac_count=counts["mac_count"], operation_count=counts["operation_count"])

    @property
    def work(self) -> int:
        """Operations: multiply-accumulates or others; a layer has only one kind."""
        return self.mac_count + self.operation_count


class MemoryFacts(NamedTuple):
    """Facts about a memory that readers of a record need."""

    size_bits: int
    operands: tuple[str, ...]
    """Memory operands that the memory can hold."""


class PortActivity(NamedTuple):
    """A link that a port serves."""

    operand: str
    level: int
    direction: str
    real_cycles: int
    """Cycles that one transfer takes."""
    allowed_cycles: int
    """Cycles that one transfer may take without stalling the array."""
    period_cycles: int
    period_count: int
    stall_slack_cycles: int


class PortRecord(NamedTuple):
    """Stall (positive) or slack of a port in cycles, and the links that it serves."""

    memory: str
    port: str
    stall_slack_cycles: int
    activities: tuple[PortActivity, ...]


class Figures(NamedTuple):
    """Energy and latency of a mapping; None if the mapping does not fit."""

    energy_pj: float | None = None
    latency_cycles: float | None = None


class CandidateRow(NamedTuple):
    """A spatial mapping that was tried, and its result."""

    spatial_mapping: dict[str, dict[str, int]]
    temporal_orders: int
    feasible: int
    energy_pj: float | None
    latency_cycles: float | None
    reason: str


class MemoryReachRecord(NamedTuple):
    """Highest memories that a layer uses, where data locality or the mapping file limits them."""

    topmost: dict[str, str]
    """Topmost memory that each operand uses."""
    occupied_bits: dict[str, int]
    """Bits of each memory that data of other layers occupy while the layer runs."""


class ArrayUseRecord(NamedTuple):
    """Use of an in-memory array by a layer, in addition to its spatial mapping."""

    lanes: dict[str, dict[str, float]]
    """Lanes as the model counts them: array dimension -> {loop dimension: lanes}."""
    input_loops: dict[str, InputWindow | None]
    """Input windows by loop dimension: the sliding window of each dimension that distinguishes inputs, or None.

    In the reference, the dimensions are those over which weights stay the same.
    """


@dataclass(frozen=True)
class LayerRecord:
    """The record of a mapped layer: a row of `layers.jsonl` (docs/artifacts.md).

    Energy in pJ, time in cycles, sizes in bits. Levels of an operand go from its innermost memory outwards, operands in
    the order of the equation. Fields that equal their default are left out of files.
    """

    layer: LayerFacts
    """Facts of the first layer with this problem."""
    layer_names: tuple[str, ...] = field(default=(), metadata=LEFT_OUT, kw_only=True)
    """All layers of the network with this problem, in execution order."""
    core: str
    """Name of the core."""
    spatial_mapping: dict[str, dict[str, int]]
    """Lanes as requested: array dimension -> {loop dimension: lanes}."""
    memory_operand_links: dict[str, str]
    """Memory operand of each operand of the layer."""
    loop_order: LoopOrder
    """Loop order that the search chose, before stationary loops are merged."""
    temporal_mapping: dict[str, tuple[LoopOrder, ...]]
    """Loops that each operand keeps at each level, after merging stationary loops down."""
    spatial_levels: dict[str, LoopLevels]
    """Spatial loops per operand and level, the first level below its first memory, as the latency model counts them."""
    memory_levels: dict[str, tuple[str, ...]]
    """Names of the memories of each operand."""
    memories: dict[str, MemoryFacts]
    """All memories of the core, in the order of the hardware file."""
    energy_pj: float
    """Energy of the layer."""
    energy_terms_pj: dict[str, float]
    """The ordered terms that sum to the energy; in files each is a field `<term>_energy_pj`."""
    latency_cycles: float
    """Latency of the layer."""
    edp_pj_cycles: float
    """Energy times latency."""
    latency_breakdown_cycles: dict[str, float]
    """Ordered terms that sum to the latency."""
    energy_breakdown_pj: LinkFigures
    """Energy of memory accesses, per link."""
    word_accesses: LinkFigures
    """Accesses of one full-width word, over all instances."""
    memory_utilization: dict[str, tuple[float, ...]]
    """Filled share of the memory per operand and level, all operands that share the memory together."""
    memory_utilization_individual: dict[str, tuple[float, ...]]
    """Filled share of the memory per operand and level, by this operand alone."""
    mac_utilization: dict[str, float]
    """Ideal cycles over actual cycles; each entry includes one more cause of extra cycles."""
    ports: tuple[PortRecord, ...]
    """Stall and slack of each port, and the links that it serves."""
    area_mm2: float | None
    """Area of the core; None if the hardware file gives no area for a part."""
    area_breakdown_mm2: dict[str, dict[str, float]] = field(default_factory=dict, metadata=LEFT_OUT)
    """Area of a core with an in-memory array: `array` by component, `memories` by name."""
    clock_period_ns: float | None = field(default=None, metadata=LEFT_OUT)
    """Shortest cycle of the array, if its model gives one."""
    clock_breakdown_ns: dict[str, float] = field(default_factory=dict, metadata=LEFT_OUT)
    """Clock period by component."""
    cycles_per_operation: int = field(default=1, metadata=LEFT_OUT)
    """Cycles that a unit of the array needs for one operation."""
    array_use: ArrayUseRecord | None = field(default=None, metadata=LEFT_OUT)
    """Use of an in-memory array."""
    level_boundaries: dict[str, tuple[int, ...]] | None = field(default=None, metadata=LEFT_OUT)
    """Number of loops up to and including each level, per operand; only if the search chose the boundaries."""
    array_dimensions: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)
    """Dimensions of the array, including those that the spatial mapping leaves out."""
    temporal_mapping_type: str = field(default=UNEVEN, metadata=LEFT_OUT)
    """`uneven` or `even`."""
    access_same_data_considered_as_no_access: bool = field(default=True, metadata=LEFT_OUT)
    """False if an input that the array reuses in the next cycle is read again."""
    objective: str = ""
    """Objective that was minimised."""
    model: str = ""
    """Model profile of all figures except `corrected`."""
    corrected: Figures = Figures()  # noqa: RUF009  frozen
    """Figures of the same mapping under the profile `corrected`."""
    candidates: tuple[CandidateRow, ...] | None = field(default=None, metadata=LEFT_OUT)
    """The spatial mappings that were tried."""
    evaluations: int | None = field(default=None, metadata=LEFT_OUT)
    """Mappings that were evaluated; None if none was searched."""
    search: dict[str, Any] = field(default_factory=dict, metadata=LEFT_OUT)
    """Statistics and certificates of the search engine."""
    alternatives: int = field(default=0, metadata=LEFT_OUT)
    """Number of further mappings that the stages returned for the layer; this record is the one used in totals."""
    core_is_changed: bool = field(default=False, metadata=LEFT_OUT)
    """True if a user's stage replaced the core of the layer."""
    memory_reach: MemoryReachRecord | None = field(default=None, metadata=LEFT_OUT)
    """Highest memories in use, where data locality or the mapping file limits them."""

    @property
    def names(self) -> tuple[str, ...]:
        """All layers of the network whose problem is that of this record."""
        return self.layer_names or (self.layer.name,)


def times(record: LayerRecord, count: int) -> LayerRecord:
    """The record with the work, energy and cycles of `count` equal layers that run one after another.

    Loops, levels, shares and areas stay those of a single layer.
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
    """Row of a file for a record: the energy terms are fields next to their sum."""
    row: dict[str, Any] = {}
    for name, value in encode(record).items():
        row |= energy_columns(value) if name == "energy_terms_pj" else {name: value}
    return row


def record_of_row(row: JsonObject) -> LayerRecord:
    """Record of a row. Raises ValueError if the row is not a valid record."""
    return decode(LayerRecord, without_terms(row) | {"energy_terms_pj": energy_terms(row)})


def number(value: float) -> int | float:
    """A float as an integer if it is whole: the same number in fewer characters."""
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else float(value)


def unrolling_record(unrolling: "Unrolling") -> dict[str, dict[str, int]]:
    """Factor of each loop dimension, per array dimension."""
    return {name: dict(factors) for name, factors in unrolling}
