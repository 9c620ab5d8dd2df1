"""The record of a mapping: every figure of it as one typed value, which artifacts, tables and figures are made of."""

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
"""(dimension, size); sizes of spatial loops may have a fraction."""
LoopOrder = tuple[tuple[str, int], ...]
"""(loop dimension, size) from the innermost loop outwards."""
LoopLevels = tuple[tuple[Loop, ...], ...]
"""The loops of each level, innermost first."""
LinkFigures = dict[str, tuple[dict[str, float], ...]]
"""Operand -> memory level -> {direction: figure}."""


UNEVEN = "uneven"
"""The usual type of temporal mapping."""


class LayerFacts(NamedTuple):
    """What a reader of a record needs to know of the layer."""

    name: str
    """Name of the first layer with this problem."""
    operator_type: str
    equation: str
    loop_sizes: dict[str, int]
    precision_bits: dict[str, int]
    mac_count: int
    """Multiply-accumulates; 0 for a layer of other operations."""
    operation_count: int
    """Operations of an operator that does others than multiply-accumulates."""

    @classmethod
    def of(cls, layer: "Layer") -> "LayerFacts":
        """The facts of a layer, its operations counted as multiply-accumulates."""
        sizes, bits = dict(layer.loop_sizes), dict(layer.precision_bits)
        counts = work_counts("", layer.mac_count)
        return cls(layer.name, layer.operator_type, layer.equation, sizes, bits, **counts)

    def on_unit(self, unit: str) -> "LayerFacts":
        """Facts with operations counted as what they are on the unit that the layer needs in its network."""
        counts = work_counts(unit, self.work)
        return self._replace(mac_count=counts["mac_count"], operation_count=counts["operation_count"])

    @property
    def work(self) -> int:
        """Operations: multiply-accumulates or others, a layer has one kind."""
        return self.mac_count + self.operation_count


class MemoryFacts(NamedTuple):
    """What a reader of a record needs to know of a memory."""

    size_bits: int
    operands: tuple[str, ...]
    """Memory operands that it can hold."""


class PortActivity(NamedTuple):
    """A link that a port serves."""

    operand: str
    level: int
    direction: str
    real_cycles: int
    """Cycles that one transfer takes."""
    allowed_cycles: int
    """Cycles it may take without stopping the array."""
    period_cycles: int
    period_count: int
    stall_slack_cycles: int


class PortRecord(NamedTuple):
    """A port of a memory: its stall (positive) or slack, and what it serves."""

    memory: str
    port: str
    stall_slack_cycles: int
    activities: tuple[PortActivity, ...]


class Figures(NamedTuple):
    """Energy and latency of a mapping; None where it does not fit."""

    energy_pj: float | None = None
    latency_cycles: float | None = None


class CandidateRow(NamedTuple):
    """A spatial mapping that was tried, and what came of it."""

    spatial_mapping: dict[str, dict[str, int]]
    temporal_orders: int
    feasible: int
    energy_pj: float | None
    latency_cycles: float | None
    reason: str


class MemoryReachRecord(NamedTuple):
    """How far the data of a layer go, where data locality or the mapping file says so."""

    topmost: dict[str, str]
    """Operand -> last memory that it uses."""
    occupied_bits: dict[str, int]
    """Memory -> bits that data of other layers take meanwhile."""


class ArrayUseRecord(NamedTuple):
    """How a layer uses an in-memory array, besides its spatial mapping."""

    lanes: dict[str, dict[str, float]]
    """Array dimension -> {loop dimension: lanes} as the model counts them."""
    input_loops: dict[str, InputWindow | None]
    """Loop dimension that tells inputs apart (in the reference one over which weights stay the same) -> the window in
    which it slides."""


@dataclass(frozen=True)
class LayerRecord:
    """The record of a mapped layer: a row of `layers.jsonl` (docs/artifacts.md).

    Energy in pJ, time in cycles, sizes in bits. Levels of an operand go from its innermost memory outwards, operands in
    the order of the equation. Fields with a default stand in files only where they say something.
    """

    layer: LayerFacts
    """Facts of the first layer with this problem."""
    layer_names: tuple[str, ...] = field(default=(), metadata=LEFT_OUT, kw_only=True)
    """All layers of the network with this problem, in execution order."""
    core: str
    """Name of the core."""
    spatial_mapping: dict[str, dict[str, int]]
    """Array dimension -> {loop dimension: lanes}, as asked for."""
    memory_operand_links: dict[str, str]
    """Operand of the layer -> memory operand."""
    loop_order: LoopOrder
    """Loop order as searched."""
    temporal_mapping: dict[str, tuple[LoopOrder, ...]]
    """Operand -> level -> loops that it keeps, after merging stationary loops down."""
    spatial_levels: dict[str, LoopLevels]
    """Operand -> level, from below its first memory upwards -> spatial loops, as latency counts them."""
    memory_levels: dict[str, tuple[str, ...]]
    """Operand -> names of its memories."""
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
    """The ordered terms that sum to the latency."""
    energy_breakdown_pj: LinkFigures
    """Energy of accesses."""
    word_accesses: LinkFigures
    """Accesses of one full-width word, over all instances."""
    memory_utilization: dict[str, tuple[float, ...]]
    """Operand -> level -> filled share of the memory, all operands that share it together."""
    memory_utilization_individual: dict[str, tuple[float, ...]]
    """Utilisation by the operand alone."""
    mac_utilization: dict[str, float]
    """Ideal cycles over cycles, with more and more of what takes time."""
    ports: tuple[PortRecord, ...]
    """Stall and slack of each port, and what it serves."""
    area_mm2: float | None
    """Area of the core; None where a part has none in the hardware file."""
    area_breakdown_mm2: dict[str, dict[str, float]] = field(default_factory=dict, metadata=LEFT_OUT)
    """Area of a core with an in-memory array: `array` by component, `memories` by name."""
    clock_period_ns: float | None = field(default=None, metadata=LEFT_OUT)
    """The shortest cycle of the array, where its model says."""
    clock_breakdown_ns: dict[str, float] = field(default_factory=dict, metadata=LEFT_OUT)
    """Clock period by component."""
    cycles_per_operation: int = field(default=1, metadata=LEFT_OUT)
    """Cycles for which a unit of the array is busy with an operation."""
    array_use: ArrayUseRecord | None = field(default=None, metadata=LEFT_OUT)
    """Use of an in-memory array."""
    level_boundaries: dict[str, tuple[int, ...]] | None = field(default=None, metadata=LEFT_OUT)
    """Operand -> number of loops up to and including each of its levels, where the search chose them."""
    array_dimensions: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)
    """Sides of the array, also of those that the spatial mapping leaves out."""
    temporal_mapping_type: str = field(default=UNEVEN, metadata=LEFT_OUT)
    """uneven or even."""
    access_same_data_considered_as_no_access: bool = field(default=True, metadata=LEFT_OUT)
    """False where an input that the array uses again in the next cycle is read again."""
    objective: str = ""
    """What was minimised."""
    model: str = ""
    """Model profile of all figures but `corrected`."""
    corrected: Figures = Figures()  # noqa: RUF009  frozen
    """Figures of the same mapping under the profile `corrected`."""
    candidates: tuple[CandidateRow, ...] | None = field(default=None, metadata=LEFT_OUT)
    """The spatial mappings that were tried."""
    evaluations: int | None = field(default=None, metadata=LEFT_OUT)
    """Mappings that were evaluated; None where none was searched."""
    search: dict[str, Any] = field(default_factory=dict, metadata=LEFT_OUT)
    """What the search engine says of itself."""
    alternatives: int = field(default=0, metadata=LEFT_OUT)
    """Further mappings that the stages gave back for the layer, of which this one counts."""
    core_is_changed: bool = field(default=False, metadata=LEFT_OUT)
    """True where a stage of the user's made another core of it."""
    memory_reach: MemoryReachRecord | None = field(default=None, metadata=LEFT_OUT)
    """How far the data go, where data locality or the mapping file says so."""

    @property
    def names(self) -> tuple[str, ...]:
        """All layers of the network that have the problem of this record."""
        return self.layer_names or (self.layer.name,)


def times(record: LayerRecord, count: int) -> LayerRecord:
    """The record with the work, energy and cycles of `count` equal layers that run one after another.

    What is of a single layer stays: loops, levels, shares, areas.
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
    """A record as a row of a file; the terms of its energy stand beside the sum."""
    row: dict[str, Any] = {}
    for name, value in encode(record).items():
        row |= energy_columns(value) if name == "energy_terms_pj" else {name: value}
    return row


def record_of_row(row: JsonObject) -> LayerRecord:
    """The record of a row. Raises ValueError where the row is none."""
    return decode(LayerRecord, without_terms(row) | {"energy_terms_pj": energy_terms(row)})


def number(value: float) -> int | float:
    """A float as an integer where it is one: the same number in fewer characters."""
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else float(value)


def unrolling_record(unrolling: "Unrolling") -> dict[str, dict[str, int]]:
    """Array dimension -> loop dimension -> factor."""
    return {name: dict(factors) for name, factors in unrolling}
