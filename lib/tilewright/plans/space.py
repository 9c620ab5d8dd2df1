"""Space of plans: tiles of each layer, ends of stacks, and what the mapping file and the run fix."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.hardware.core import Core
from tilewright.mapping.constraints import MappingConstraints, TilingEntry
from tilewright.mapping.dataflows import constraints_on_core
from tilewright.mapping.runnable import core_choice
from tilewright.mapping.words import ALL_TILES
from tilewright.multicore.nodes.tiling import loops_over_cores
from tilewright.multicore.nodes.weights import network_input_operands, weight_bits, weight_capacity_bits
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.plans.plan import LayerTiles, Loops, Plan, layers_of
from tilewright.workload.graph import WorkloadNode
from tilewright.workload.layer import OUTPUT, Layer

ROWS = ("OY", "D")
"""Dimensions along which layers are cut into rows, the first that a layer has; else the first that is no channel."""
COLUMNS = ("OX",)
CHANNELS = ("K", "G", "H")
"""Dimensions of channels: parts along them read other weights."""
HEADS = ("G", "H")
"""Dimensions of which each part reads inputs of its own."""
SELECTIONS = ("latency", "memory")
ALL_ROWS = 1 << 30
"""More tiles than any layer has rows: single rows."""
TILE_COUNTS = (1, 2, 4, 7, 8, 14, 16, 28, 32, 56, ALL_ROWS)
"""Numbers of tiles that are tried along rows."""
MOST_PARTS = 32
"""Parts between cores, for each core that may run the layer."""
SPREAD = 4
"""How many times the fewest parts work is spread over, where these fill arrays better."""


@dataclass(frozen=True)
class PartRule:
    """Rule for the number of parts of layers between cores."""

    share: float
    """Share of the room for weights of a core, what the weights of a part take at most."""
    spreads: bool
    """Whether a layer with weights has a part for each core at least; else it has as few as fit."""
    along_rows: bool = False
    """Whether such a layer has parts of rows, one for each core, each with all weights; else parts of channels."""


@dataclass(frozen=True)
class Fixed:
    """What the run says, None where it is searched."""

    stacks: tuple[tuple[int, ...], ...] | None = None
    selection: str | None = None
    prefetch: tuple[str, ...] | None = None
    prefetch_results: bool | None = None
    by_off_chip: tuple[int, ...] | None = None
    """Ids of layers."""


@dataclass(frozen=True)
class LayerSpace:
    """What can be chosen for one layer."""

    node: WorkloadNode
    rows: str
    """Dimension along which it is cut into rows; '' if it has none."""
    columns: str
    channels: tuple[str, ...]
    """Dimensions of channels, the largest first."""
    cores: int
    """How many cores may run it."""
    weight_bits: int
    weight_room_bits: int
    """What the smallest of its cores has for weights; 0 where that is not known."""
    units: tuple[int, ...] = ()
    """Number of output channels that the array of each core takes at a time."""
    between: Loops | None = None
    """Parts that the mapping file fixes."""
    within: Loops | None = None
    """Tiles that the mapping file fixes."""

    @property
    def layer(self) -> Layer:
        """The layer itself."""
        assert self.node.layer is not None
        return self.node.layer

    def size(self, dimension: str) -> int:
        """Size of a dimension; 1 where the layer does not have it."""
        return self.layer.size_of.get(dimension, 1)

    @cached_property
    def part_counts(self) -> tuple[int, ...]:
        """Numbers of parts along channels that make sense, ascending: one, two, as many as cores, twice as many and so
        on, and those whose parts fill an array."""
        if self.between is not None or not self.channels:
            return (1,)
        size = self.size(self.channels[0])
        most = min(size, MOST_PARTS * max(self.cores, 1))
        counts = {1, min(2, most)}
        step = max(self.cores, 2)
        while step <= most:
            counts.add(step)
            step *= 2
        counts.update(count for count in range(2, most + 1) if self._fills_an_array(count))
        return tuple(sorted({math.ceil(size / self._part_size(count)) for count in counts}))

    def _fills_an_array(self, parts: int) -> bool:
        """Whether so many parts along channels leave no units idle, but for the last part."""
        return any(self._part_size(parts) % unit == 0 for unit in self.units if unit > 1)

    def _part_size(self, parts: int) -> int:
        """Channels of each part but the last."""
        return math.ceil(self.size(self.channels[0]) / parts)

    @cached_property
    def tile_counts(self) -> tuple[int, ...]:
        """Numbers of tiles along rows that make sense, ascending."""
        if self.within is not None or not self.rows:
            return (1,)
        size = self.size(self.rows)
        return tuple(sorted({min(count, size) for count in TILE_COUNTS}))

    def tiles(self, parts: int, tiles: int, along_rows: bool = False) -> LayerTiles:
        """The layer in so many parts between cores, along channels or rows, each in so many tiles of rows."""
        dimension = self.image_dimension(parts, tiles) if along_rows or not self.channels else self.channels[0]
        return LayerTiles(self.parts_along(dimension, parts), self.rows_within(tiles))

    def image_dimension(self, parts: int, tiles: int) -> str:
        """Rows, or columns where tiles have too few rows for so many parts: these are cut out of each tile."""
        return self.columns if self.columns and parts * tiles > self.size(self.rows) else self.rows

    def parts_along(self, dimension: str, parts: int) -> Loops:
        """Loops of so many parts between cores, or as the mapping file says."""
        if self.between is not None:
            return self.between
        parts = min(parts, self.size(dimension)) if dimension else 1
        return (TilingEntry(dimension, parts),) if parts > 1 else ()

    def rows_within(self, tiles: int) -> Loops:
        """Loops of so many tiles of rows, or as the mapping file says. One tile is written too, else two."""
        if self.within is not None:
            return self.within
        dimension = self.rows or next(iter(self.layer.size_of))
        size = self.size(dimension)
        if not self.rows or tiles <= 1:
            return (TilingEntry(dimension, 1),)
        return (TilingEntry(dimension, ALL_TILES if tiles >= size else tiles),)

    def cut_by(self, rule: PartRule, tiles: int) -> LayerTiles:
        """The layer in parts by a rule, each in so many tiles of rows."""
        if rule.along_rows and self.rows:
            return self.tiles(self.cores, tiles, along_rows=True)
        return self.tiles(self.parts_for(rule), tiles)

    def parts_for(self, rule: PartRule) -> int:
        """How many parts a rule asks for: the fewest whose weights fit, or, where work is spread, those that leave
        fewest units of arrays and fewest cores idle."""
        fewest = 1
        if self.weight_bits and self.weight_room_bits:
            fewest = math.ceil(self.weight_bits / (self.weight_room_bits * rule.share))
        counts = [count for count in self.part_counts if count >= fewest] or [self.part_counts[-1]]
        if not rule.spreads or len(counts) == 1:
            return counts[0]
        few = [count for count in counts if count <= SPREAD * max(counts[0], self.cores)]
        return min(few, key=lambda count: (self._taken_units(count), count))

    def _taken_units(self, parts: int) -> int:
        """Channels that so many parts take on the arrays, idle units included: as many parts as they are, and as if
        each core had as many as the one that has most."""
        part = self._part_size(parts)
        cores = max(self.cores, 1)
        most = math.ceil(parts / cores) * cores
        return (parts + most) * sum(math.ceil(part / unit) * unit for unit in self.units or (1,))


@dataclass(frozen=True)
class PlanSpace:
    """All that can be chosen."""

    layers: tuple[LayerSpace, ...]
    fixed: Fixed
    prefetchable: tuple[str, ...]
    """Layer operands that are constants: what can be fetched ahead."""
    ends: tuple[int, ...]
    """Places of layers at which a stack may end because little crosses there, ascending; without the last layer."""
    is_on_several_cores: bool
    """Whether data may move between cores."""

    @property
    def node_ids(self) -> tuple[int, ...]:
        """Ids of the layers, in order."""
        return tuple(layer.node.node_id for layer in self.layers)

    def stacks(self, ends: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """The stacks that end at some places, or those that the run fixes."""
        if self.fixed.stacks is not None:
            return self.fixed.stacks
        ids = self.node_ids
        bounds = [-1, *sorted(set(ends) - {len(ids) - 1}), len(ids) - 1]
        return tuple(ids[start + 1 : end + 1] for start, end in itertools.pairwise(bounds))

    def ends_of(self, plan: Plan) -> tuple[int, ...]:
        """Places of the last layers of stacks."""
        place = {node_id: place for place, node_id in enumerate(self.node_ids)}
        return tuple(sorted(max(place[node_id] for node_id in stack) for stack in plan.stacks if stack))

    def plan(
        self, tiles: Sequence[LayerTiles], ends: Sequence[int], selection: str = "", prefetches: bool = True
    ) -> Plan:
        """A plan, with what the run fixes as it says."""
        chosen = self.fixed.selection or selection or SELECTIONS[0]
        prefetch = self.fixed.prefetch
        if prefetch is None:
            prefetch = self.prefetchable if prefetches else ()
        results = self.fixed.prefetch_results
        if results is None:
            results = prefetches and self.is_on_several_cores
        return Plan(tuple(tiles), self.stacks(ends), chosen, prefetch, results, self.fixed.by_off_chip or ())

    def layer_by_layer(self, rule: PartRule | None) -> Plan:
        """Every layer alone: whole, or in parts by a rule."""
        tiles = [one.tiles(1, 1) if rule is None else one.cut_by(rule, 1) for one in self.layers]
        return self.plan(tiles, range(len(self.layers)))

    def uniform(self, tiles: int, rule: PartRule, selection: str = "") -> Plan:
        """All layers in one stack, in so many tiles of rows each."""
        return self.plan([one.cut_by(rule, tiles) for one in self.layers], (), selection)


def plan_space(problem: SystemProblem, fixed: Fixed) -> PlanSpace:
    """The space of a network on a system under a mapping file."""
    nodes = layers_of(problem.workload)
    layers = tuple(_layer_space(problem, node) for node in nodes)
    constants = dict.fromkeys(
        name for one in layers for name in one.layer.constant_operands if name in one.layer.input_operands
    )
    several = len(problem.accelerator.onchip_core_ids) > 1
    return PlanSpace(layers, fixed, tuple(sorted(constants)), _ends(problem, nodes), several)


def parts_left_out(problem: SystemProblem) -> list[str]:
    """Parts over cores that entries for many layers ask for, and that some of these layers cannot be cut into."""
    layers = [node.layer for node in layers_of(problem.workload) if node.layer is not None]
    return [one for layer in layers for one in loops_over_cores(layer, problem.mapping.constraints_for(layer))[1]]


def _layer_space(problem: SystemProblem, node: WorkloadNode) -> LayerSpace:
    layer = node.layer
    assert layer is not None
    entry = problem.mapping.constraints_for(layer)
    output = [name for name in dict(layer.operand_dimensions)[OUTPUT] if layer.size_of.get(name, 1) > 1]
    runs_on = [problem.accelerator.core_of[one] for one in core_choice(node, entry, problem.accelerator).core_ids]
    cores = len(runs_on)
    bits = weight_bits(layer, network_input_operands(node, problem.workload))

    def channel_order(name: str) -> tuple[bool, int]:
        # Heads share nothing, so that without weights parts of heads move least.
        return bits > 0 or name not in HEADS or layer.size_of[name] < cores, -layer.size_of[name]

    channels = sorted((name for name in output if name in CHANNELS), key=channel_order)
    others = [name for name in output if name not in (*CHANNELS, *COLUMNS, "B")]
    rows = next((name for name in ROWS if name in output), others[0] if others else "")
    columns = next((name for name in COLUMNS if name in output), "")
    room = weight_capacity_bits(node, entry, problem.accelerator, 1.0) or 0
    return LayerSpace(
        node,
        rows,
        columns,
        tuple(channels),
        cores,
        bits,
        room,
        tuple(_unit(layer, entry, core, name) for name in channels[:1] for core in runs_on),
        *_fixed_loops(layer, entry),
    )


def _unit(layer: Layer, entry: MappingConstraints, core: Core, dimension: str) -> int:
    """How many of a dimension a core takes at a time: as the first spatial mapping that it is to try says, or, where
    none unrolls what the layer has, as many as a side of the array has."""
    tried = [one.spatial_mapping for one in constraints_on_core(entry, layer, core)]
    for unrolling in tried:
        factors = [factor for _, loops in unrolling for name, factor in loops if name == dimension]
        if factors:
            return math.prod(factors)
    if core.exclusive_dataflows:
        return 1
    if any(layer.size_of.get(name, 1) > 1 for unrolling in tried for _, loops in unrolling for name, _ in loops):
        return 1
    return max((size for _, size in core.operational_array.dimensions), default=1)


def _fixed_loops(layer: Layer, entry: MappingConstraints) -> tuple[Loops | None, Loops | None]:
    """The parts and the tiles that an entry fixes. Cores that are fixed one for each part fix the parts."""
    is_fixed = entry.core_allocation_is_fixed and len(entry.core_allocation) > 1
    between = loops_over_cores(layer, entry)[0] if entry.inter_core_tiling or is_fixed else None
    return between, entry.intra_core_tiling or None


def _ends(problem: SystemProblem, nodes: Sequence[WorkloadNode]) -> tuple[int, ...]:
    """Places after which as few tensors as possible are still to be read: one, or where that never is, the fewest."""
    crossing = crossing_tensors(problem, nodes)
    inner = crossing[:-1]
    if not inner:
        return ()
    least = min(inner)
    return tuple(place for place, count in enumerate(inner) if count <= max(1, least))


def crossing_tensors(problem: SystemProblem, nodes: Sequence[WorkloadNode]) -> list[int]:
    """[place] how many results of layers up to there are read by layers behind it."""
    place_of = {node.node_id: place for place, node in enumerate(nodes)}
    behind = _readers(problem, place_of)
    counts = [0] * len(nodes)
    for place in range(len(nodes)):
        for between in range(place, behind.get(place, place)):
            counts[between] += 1
    return counts


def _readers(problem: SystemProblem, place_of: Mapping[int, int]) -> dict[int, int]:
    """Place of a layer -> the last place of a layer that reads its result, also by way of what only moves data."""
    made_by: dict[int, set[int]] = {}
    last: dict[int, int] = {}
    for node in problem.workload.nodes:
        sources = {place for _, source in node.sources for place in made_by.get(source, ())}
        if node.layer is None:
            made_by[node.node_id] = sources
            continue
        place = place_of[node.node_id]
        made_by[node.node_id] = {place}
        for source in sources:
            last[source] = max(last.get(source, source), place)
    return last
