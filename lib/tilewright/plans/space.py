"""Space of plans: possible tiles of each layer, possible ends of stacks, and the choices that the run fixes."""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.hardware.core import Core
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.mapping.constraints import MappingConstraints, TilingEntry
from tilewright.mapping.dataflows import constraints_on_core
from tilewright.mapping.runnable import core_choice
from tilewright.mapping.words import ALL_TILES
from tilewright.multicore.nodes.tiling import loops_over_cores
from tilewright.multicore.nodes.weights import network_input_operands, weight_bits, weight_capacity_bits
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.plans.blocks import Blocks, Machine, machine, part_bits, part_counts, uniform_blocks
from tilewright.plans.plan import LayerTiles, Loops, Plan, layers_of
from tilewright.workload.graph import WorkloadNode
from tilewright.workload.layer import OUTPUT, Layer

ROWS = ("OY", "D")
"""Names of row dimensions, in order of preference. A layer is cut into rows along the first of these dimensions that
the layer has. If it has none of them, it is cut along its first dimension that is not a channel, a column or the batch.
"""
COLUMNS = ("OX",)
CHANNELS = ("K", "G", "H")
"""Names of channel dimensions. Parts along a channel dimension read different weights."""
BATCH = "B"
HEADS = ("G", "H")
"""Names of channel dimensions along which parts of a layer read different inputs, in addition to different weights."""
MANY_CORES = 8
"""Least number of cores for cuts into blocks in networks of several layers. At least one layer must be able to run on
this number of cores. With fewer cores, blocks save less time than it takes to compute the costs of more parts.
"""
SELECTIONS = ("latency", "memory")
ALL_ROWS = 1 << 30
"""Number of tiles that means "one tile for each row". It is larger than the number of rows of any layer."""
TILE_COUNTS = (1, 2, 4, 7, 8, 14, 16, 28, 32, 56, ALL_ROWS)
"""Numbers of tiles along rows that are tried."""
MOST_PARTS = 32
"""Factor that limits the number of parts of a layer along channels. The limit is MOST_PARTS x the number of cores that
are allowed for the layer.
"""
LEAST_PASSING, FEWEST_PASSING = 8, 3
"""Numbers for weights that pass through a core in pieces. LEAST_PASSING: least number of channels of a piece, if the
memory of a core allows it; with fewer channels, an array mostly waits for its inputs. FEWEST_PASSING: number of pieces
for which a core needs room, so that one piece is used while two pieces arrive.
"""
SPREAD = 4
"""Factor that limits the number of parts for rules that spread work. The limit is SPREAD times the larger of two
numbers: the number of allowed cores, and the smallest tried number of parts with which the weights of one part fit a
core. More parts can fill arrays better.
"""


@dataclass(frozen=True)
class PartRule:
    """Rule that decides into how many parts a layer is split between cores."""

    share: float
    """Largest share of a core's weight memory for the weights of one part; infinite if weights may stream."""
    spreads: bool
    """True if the rule spreads work. If True, a layer gets the number of parts with the fewest idle array units and
    idle cores. If False, it gets the smallest number of parts with which the weights of one part fit.
    """
    along_rows: bool = False
    """True if a layer is cut along rows, with one part for each core. Each core then needs all weights. If False, the
    layer is cut along channels.
    """
    fills_cores: bool = False
    """True if a layer is cut along channels into the number of parts that fills the cores (`LayerSpace.filling`). The
    number is larger if the weights of a part would not fit.
    """
    in_image: bool = False
    """True if a layer whose weights fit a core is cut into equal parts of its image (`LayerSpace.image_parts`), as many
    as fill the cores. All other layers are cut by the rule of `fills_cores`, which must be True, too.
    """


@dataclass(frozen=True)
class Fixed:
    """Choices that the run fixes. A choice that is None is left to the search."""

    stacks: tuple[tuple[int, ...], ...] | None = None
    selection: str | None = None
    prefetch: tuple[str, ...] | None = None
    prefetch_results: bool | None = None
    by_off_chip: tuple[int, ...] | None = None
    """Ids of layers with detours: layers whose results reach other memories only through the off-chip memory."""


@dataclass(frozen=True)
class LayerSpace:
    """Possible parts and tiles of one layer."""

    node: WorkloadNode
    rows: str
    """Dimension along which the layer is cut into rows; '' if there is no such dimension."""
    columns: str
    channels: tuple[str, ...]
    """Dimensions of channels along which the layer can be cut, in the order of preference."""
    cores: int
    """Number of cores that are allowed for the layer."""
    weight_bits: int
    weight_room_bits: int
    """Smallest capacity for weights among the allowed cores, in bits; 0 if the capacity is not known."""
    units: tuple[int, ...] = ()
    """Number of output channels that the array processes in parallel, one number for each allowed core."""
    between: Loops | None = None
    """Loops that cut the layer into parts, if the mapping file fixes them; None if the search chooses the parts."""
    within: Loops | None = None
    """Loops that cut each part into tiles, if the mapping file fixes them; None if the search chooses the tiles."""
    third: str = ""
    """Third dimension of the output along which blocks are cut, in addition to rows and channels: heads or the batch;
    '' if there is no such dimension.
    """
    machine: Machine | None = None
    """Properties of the system for estimates of blocks. None: no core can run the layer."""
    filling: int = 1
    """Number of parts with which a rule with `fills_cores` fills the cores. For a layer with weights, it is the number
    of cores that are allowed for the layer. For a layer without weights, it is the number that most layers with weights
    have. If this number exceeds the number of cores that are allowed for the layer, the layer has one part for each of
    these cores. The parts of the layer can then run where the parts of its input run, so that no data move between
    cores.
    """

    @property
    def layer(self) -> Layer:
        """Layer that is divided into parts and tiles."""
        assert self.node.layer is not None
        return self.node.layer

    def size(self, dimension: str) -> int:
        """Size of a dimension of the layer; 1 if the layer does not have the dimension."""
        return self.layer.size_of.get(dimension, 1)

    @cached_property
    def part_counts(self) -> tuple[int, ...]:
        """Numbers of parts along channels to try, in rising order. There are three kinds of numbers:

        * one and two;
        * the number of cores times powers of two;
        * numbers with which all parts, except the last part, fill an array.
        """
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
        """True if every part, except the last part, uses all units of an array. The layer is cut into `parts` parts
        along channels.
        """
        return any(self._part_size(parts) % unit == 0 for unit in self.units if unit > 1)

    def _part_size(self, parts: int) -> int:
        """Number of channels of a part if the channels are cut into `parts` parts. The last part can have fewer
        channels.
        """
        return math.ceil(self.size(self.channels[0]) / parts)

    @cached_property
    def tile_counts(self) -> tuple[int, ...]:
        """Numbers of tiles along rows to try, in rising order."""
        if self.within is not None or not self.rows:
            return (1,)
        size = self.size(self.rows)
        return tuple(sorted({min(count, size) for count in TILE_COUNTS}))

    @cached_property
    def block_dimensions(self) -> tuple[str, ...]:
        """Dimensions along which blocks are cut: rows, channels, and heads or the batch."""
        return tuple(name for name in (self.rows, *self.channels[:1], self.third) if name)

    @cached_property
    def blocks(self) -> tuple[Blocks, ...]:
        """Ways to cut the layer into blocks, with estimates of cycles and traffic; empty if the mapping file fixes the
        parts, or if fewer than two cores can run the layer.
        """
        if self.between is not None or self.machine is None or self.cores < 2:
            return ()
        return uniform_blocks(self.layer, self.block_dimensions, self.machine)

    def in_ranked_blocks(self, rank: int, tiles: int, objective: str) -> LayerTiles:
        """Tiles of the layer in blocks. The layer is cut into the blocks whose estimate has rank `rank` (0 is the
        best). Each block is cut into tiles of rows. If there are no blocks, the layer is one part.
        """
        if not self.blocks:
            return self.tiles(1, tiles)
        return self.in_blocks(self.best_blocks(rank, objective).counts, tiles)

    def best_blocks(self, rank: int, objective: str) -> Blocks:
        """Cut into blocks with the `rank`-th best estimate for the objective (0 is the best). If there are too few cuts
        for this rank, the cut with the worst estimate is returned. The layer must have blocks.
        """
        if objective not in self._ranked:
            self._ranked[objective] = sorted(self.blocks, key=lambda cut: cut.rank(objective))
        return self._ranked[objective][min(rank, len(self.blocks) - 1)]

    @cached_property
    def _ranked(self) -> dict[str, list[Blocks]]:
        """Objective -> cuts into blocks, sorted by their estimates for this objective, the best first. An objective is
        added when it is first used.
        """
        return {}

    def in_blocks(self, counts: Sequence[int], tiles: int, outwards: bool = False) -> LayerTiles:
        """Tiles of the layer: the layer is cut into blocks, and each block into tiles of rows. `counts` has the number
        of parts along each dimension in `block_dimensions`. The innermost loop over blocks is the loop over rows; with
        `outwards`, it is the loop over the last dimension.
        """
        pairs = [(name, count) for name, count in zip(self.block_dimensions, counts, strict=True) if count > 1]
        loops = tuple(TilingEntry(name, count) for name, count in (pairs[::-1] if outwards else pairs))
        return LayerTiles(loops if self.between is None else self.between, self.rows_within(tiles))

    def passing(self, depth: int, pieces: int = 0) -> LayerTiles:
        """Tiles of the layer in one part of the rows (or of the batch) for each core. Each part is cut into pieces
        along channels, which pass through the core one after another. A bus or a link with multicast brings each piece
        of the weights to all cores at once.

        `pieces` is the number of pieces. 0 stands for the smallest sufficient number. A number is sufficient if a core
        has room for the inputs and outputs of one piece and for `depth` pieces of the weights. If pieces would then
        have fewer than LEAST_PASSING channels, or if no number is sufficient, a core needs room for at most
        FEWEST_PASSING pieces of the weights. If no number is sufficient even then, the layer is cut along channels only
        (`filling`).
        """
        across = self.rows or self.third
        if self.between is not None or not across or not self.channels:
            return self.tiles(self.filling, 1)
        rows = min(self.filling, self.size(across))
        if not pieces:
            part = {across: math.ceil(self.size(across) / rows)}
            pieces = self._pieces(depth, part)
            if not pieces or LEAST_PASSING * pieces > self.size(self.channels[0]):
                pieces = self._pieces(min(depth, FEWEST_PASSING), part)
        if not pieces:
            return self.tiles(self.filling, 1)
        loops = ((across, rows), (self.channels[0], pieces))
        return LayerTiles(tuple(TilingEntry(name, count) for name, count in loops if count > 1), self.rows_within(1))

    def _pieces(self, depth: int, part: dict[str, int]) -> int:
        """Smallest number of pieces along channels for which `depth` pieces of the weights fit a core, together with
        the inputs and outputs of one piece (`passing`); 0 if there is no such number. `part` has the size of a part
        along the rows.
        """
        channel = self.channels[0]
        size, rooms = self.size(channel), () if self.machine is None else self.machine.rooms
        for pieces in part_counts(size, size):
            bits = part_bits(self.layer, {**part, channel: math.ceil(size / pieces)})
            taken = {name: of * (depth if name in self.layer.constant_operands else 1) for name, of in bits.items()}
            if all(sum(taken[name] for name in held) <= room for room, held in rooms):
                return pieces
        return 0

    def tiles(self, parts: int, tiles: int, along_rows: bool = False) -> LayerTiles:
        """Tiles of the layer: `parts` parts, which can run on different cores, and in each part `tiles` tiles of rows.

        The parts are cut along channels, or along rows if `along_rows` is true or the layer has no channels to cut. If
        there are too few rows, columns are cut instead of rows. Loops that the mapping file fixes take precedence.
        """
        dimension = self.image_dimension(parts, tiles) if along_rows or not self.channels else self.channels[0]
        return LayerTiles(self.parts_along(dimension, parts), self.rows_within(tiles))

    def image_dimension(self, parts: int, tiles: int) -> str:
        """Dimension along which the image is cut into parts: rows, or columns if there are too few rows for all parts
        and tiles.
        """
        return self.columns if self.columns and parts * tiles > self.size(self.rows) else self.rows

    def parts_along(self, dimension: str, parts: int) -> Loops:
        """Loops that cut the layer along a dimension into `parts` parts, which can run on different cores; () for one
        part. If the mapping file fixes such loops, these are returned instead.
        """
        if self.between is not None:
            return self.between
        parts = min(parts, self.size(dimension)) if dimension else 1
        return (TilingEntry(dimension, parts),) if parts > 1 else ()

    def rows_within(self, tiles: int) -> Loops:
        """Loops over tiles of rows. Loops that the mapping file fixes take precedence. A single tile gets a loop, too:
        a layer without a loop over tiles would be cut into two tiles by default.
        """
        if self.within is not None:
            return self.within
        dimension = self.rows or next(iter(self.layer.size_of))
        size = self.size(dimension)
        if not self.rows or tiles <= 1:
            return (TilingEntry(dimension, 1),)
        return (TilingEntry(dimension, ALL_TILES if tiles >= size else tiles),)

    @property
    def image_parts(self) -> Loops:
        """Loops that cut the layer into `filling` equal parts, innermost loop first. The rows are cut first, then the
        columns, then the channels, each into as many equal parts as possible; the loop over rows is the outermost. If
        this gives fewer than `filling` parts, the layer is instead cut along a single dimension: a dimension of the
        image or, without an image, the channels. The parts can then be unequal.
        """
        left, loops = self.filling, []
        for name in (self.rows, self.columns, *self.channels[:1]):
            count = math.gcd(left, self.size(name)) if name else 1
            if count > 1:
                loops.append(TilingEntry(name, count))
                left //= count
        if left == 1:
            return tuple(reversed(loops))
        return self.parts_along(self.image_dimension(self.filling, 1) or next(iter(self.channels), ""), self.filling)

    def cut_by(self, rule: PartRule, tiles: int) -> LayerTiles:
        """Tiles of the layer: `rule` decides the parts, and each part is cut into `tiles` tiles of rows."""
        if rule.along_rows and self.rows:
            return self.tiles(self.cores, tiles, along_rows=True)
        if rule.in_image and self.weight_bits <= (self.weight_room_bits or math.inf):
            between = self.image_parts if self.between is None else self.between
            return LayerTiles(between, self.rows_within(tiles))
        return self.tiles(self.parts_for(rule), tiles)

    def parts_for(self, rule: PartRule) -> int:
        """Number of parts that a rule gives.

        A number is large enough if the weights of a part fit into the share of a weight memory that the rule allows. If
        the rule fills the cores, the result is the smallest number that is large enough, and at least `filling`. All
        other rules take a number from `part_counts`. If no number in `part_counts` is large enough, they take the
        largest number.

        If a rule does not spread work, the result is the smallest number that is large enough. If a rule spreads work,
        the result can be larger, up to a limit. The result is then the number with which the parts occupy the fewest
        array units. Idle units and idle cores count as occupied (`_taken_units`).
        """
        fewest = self.filling if rule.fills_cores else 1
        if self.weight_bits and self.weight_room_bits:
            fewest = max(fewest, math.ceil(self.weight_bits / (self.weight_room_bits * rule.share)))
        if rule.fills_cores:
            return fewest
        counts = [count for count in self.part_counts if count >= fewest] or [self.part_counts[-1]]
        if not rule.spreads or len(counts) == 1:
            return counts[0]
        few = [count for count in counts if count <= SPREAD * max(counts[0], self.cores)]
        return min(few, key=lambda count: (self._taken_units(count), count))

    def _taken_units(self, parts: int) -> int:
        """Measure by which numbers of parts are compared: array units that the parts occupy, including idle units and
        idle cores. Smaller is better.
        """
        part = self._part_size(parts)
        cores = max(self.cores, 1)
        most = math.ceil(parts / cores) * cores
        return (parts + most) * sum(math.ceil(part / unit) * unit for unit in self.units or (1,))


@dataclass(frozen=True)
class PlanSpace:
    """Space of plans for one network on one accelerator: possible tiles of all layers, ends of stacks, and schedule
    options.
    """

    layers: tuple[LayerSpace, ...]
    fixed: Fixed
    prefetchable: tuple[str, ...]
    """Layer operands that are constants and can be prefetched."""
    ends: tuple[int, ...]
    """Positions of layers after which a stack can end, in rising order, without the last layer. Only few tensors pass
    these positions.
    """
    is_on_several_cores: bool
    """True if the system has several cores, so that data can move between cores."""

    @property
    def has_many_cores(self) -> bool:
        """True if some layer can run on at least MANY_CORES cores. The search then tries two things more often: cutting
        layers into blocks, and using fewer cores than are allowed.
        """
        return any(one.cores >= MANY_CORES for one in self.layers)

    @property
    def node_ids(self) -> tuple[int, ...]:
        """Ids of the layers, in the order of the network."""
        return tuple(layer.node.node_id for layer in self.layers)

    def stacks(self, ends: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Layer ids of each stack. A stack ends at each position in `ends` and at the last layer. If the run fixes the
        stacks, the fixed stacks are returned.
        """
        if self.fixed.stacks is not None:
            return self.fixed.stacks
        ids = self.node_ids
        bounds = [-1, *sorted(set(ends) - {len(ids) - 1}), len(ids) - 1]
        return tuple(ids[start + 1 : end + 1] for start, end in itertools.pairwise(bounds))

    def ends_of(self, plan: Plan) -> tuple[int, ...]:
        """Positions of the last layers of a plan's stacks."""
        place = {node_id: place for place, node_id in enumerate(self.node_ids)}
        return tuple(sorted(max(place[node_id] for node_id in stack) for stack in plan.stacks if stack))

    def plan(
        self, tiles: Sequence[LayerTiles], ends: Sequence[int], selection: str = "", prefetches: bool = True
    ) -> Plan:
        """Plan with these tiles of each layer and with stacks that end at the positions `ends`. `selection` is the rule
        of candidate selection; '' stands for the default rule. If `prefetches` is false, the plan fetches nothing
        ahead. Choices that the run fixes take precedence.
        """
        chosen = self.fixed.selection or selection or SELECTIONS[0]
        prefetch = self.fixed.prefetch
        if prefetch is None:
            prefetch = self.prefetchable if prefetches else ()
        results = self.fixed.prefetch_results
        if results is None:
            results = prefetches and self.is_on_several_cores
        return Plan(tuple(tiles), self.stacks(ends), chosen, prefetch, results, self.fixed.by_off_chip or ())

    def layer_by_layer(self, rule: PartRule | None) -> Plan:
        """Plan in which every layer is a separate stack. If a rule is given, it cuts the layers into parts."""
        tiles = [one.tiles(1, 1) if rule is None else one.cut_by(rule, 1) for one in self.layers]
        return self.plan(tiles, range(len(self.layers)))

    def through_off_chip(self, plan: Plan) -> Plan:
        """Copy of a plan in which results between stacks go through the off-chip memory: the last layer of each stack,
        except the last stack, sends its results through this memory. The copy equals the plan if the run fixes such
        detours, or if the system has only one core.
        """
        if self.fixed.by_off_chip is not None or not self.is_on_several_cores:
            return plan
        ids = self.node_ids
        return replace(plan, by_off_chip=tuple(ids[end] for end in self.ends_of(plan)[:-1]))

    def in_blocks(self, rank: int, objective: str) -> Plan:
        """Plan in which every layer is a separate stack. Each layer is cut into blocks, by the cut whose estimate has
        the rank `rank` (0 is the best).
        """
        return self.plan([one.in_ranked_blocks(rank, 1, objective) for one in self.layers], range(len(self.layers)))

    def uniform(self, tiles: int, rule: PartRule, selection: str = "") -> Plan:
        """Plan with all layers in one stack. The rule cuts each layer into parts, and each part is cut into `tiles`
        tiles of rows. `selection` is the rule of candidate selection; '' selects the default rule.
        """
        return self.plan([one.cut_by(rule, tiles) for one in self.layers], (), selection)


def plan_space(problem: SystemProblem, fixed: Fixed) -> PlanSpace:
    """Space of plans for a network on an accelerator. Choices in `fixed` and choices in the mapping file do not
    vary.
    """
    nodes = layers_of(problem.workload)
    layers = _filled(tuple(_layer_space(problem, node) for node in nodes))
    constants = dict.fromkeys(
        name for one in layers for name in one.layer.constant_operands if name in one.layer.input_operands
    )
    several = len(problem.accelerator.onchip_core_ids) > 1
    return PlanSpace(layers, fixed, tuple(sorted(constants)), _ends(problem, nodes), several)


def _filled(layers: Sequence[LayerSpace]) -> tuple[LayerSpace, ...]:
    """Layers with the numbers of parts that fill the cores (`filling`)."""
    counts = Counter(one.cores for one in layers if one.weight_bits)
    usual = max(counts, key=lambda count: (counts[count], -count), default=None)
    return tuple(
        replace(one, filling=one.cores if one.weight_bits or usual is None else min(usual, one.cores)) for one in layers
    )


def parts_left_out(problem: SystemProblem) -> list[str]:
    """Messages on loops over cores that the search leaves out, one for each layer and loop. A loop is left out for a
    layer under two conditions: the loop would split a reduction of the layer, and the mapping entry of the loop does
    not name the layer.
    """
    layers = [node.layer for node in layers_of(problem.workload) if node.layer is not None]
    return [one for layer in layers for one in loops_over_cores(layer, problem.mapping.constraints_for(layer))[1]]


def _layer_space(problem: SystemProblem, node: WorkloadNode) -> LayerSpace:
    layer = node.layer
    assert layer is not None
    entry = problem.mapping.constraints_for(layer)
    output = [name for name in dict(layer.operand_dimensions)[OUTPUT] if layer.size_of.get(name, 1) > 1]
    allowed = core_choice(node, entry, problem.accelerator).core_ids
    runs_on = [problem.accelerator.core_of[one] for one in allowed]
    cores = len(runs_on)
    bits = weight_bits(layer, network_input_operands(node, problem.workload))

    def channel_order(name: str) -> tuple[bool, int]:
        # Heads share no data. Without weights, parts along heads therefore move the least data.
        return bits > 0 or name not in HEADS or layer.size_of[name] < cores, -layer.size_of[name]

    channels = sorted((name for name in output if name in CHANNELS), key=channel_order)
    others = [name for name in output if name not in (*CHANNELS, *COLUMNS, BATCH)]
    rows = next((name for name in ROWS if name in output), others[0] if others else "")
    columns = next((name for name in COLUMNS if name in output), "")
    room = weight_capacity_bits(node, entry, problem.accelerator, 1.0) or 0
    third = next((name for name in (*channels[1:], *(name for name in output if name == BATCH)) if name != rows), "")
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
        third,
        _machine(problem.accelerator, layer, entry, allowed),
    )


def _machine(
    accelerator: MultiCoreAccelerator, layer: Layer, entry: MappingConstraints, allowed: Sequence[int]
) -> Machine | None:
    """Properties of the system for a layer that may run only on the cores `allowed`; None if `allowed` is empty. If
    these cores have different core files, the most frequent core file determines the properties of a core.
    """
    if not allowed:
        return None
    files = Counter(accelerator.place_of[core_id].file_name for core_id in allowed)
    core = accelerator.distinct_cores[files.most_common(1)[0][0]]
    unrolling: dict[str, int] = {}
    for tried in constraints_on_core(entry, layer, core)[:1]:
        for _, loops in tried.spatial_mapping:
            for name, factor in loops:
                unrolling[name] = unrolling.get(name, 1) * factor
    link = {name: operand for name, operand in entry.memory_operand_links if name in layer.operands}
    return machine(accelerator, core, len(allowed), unrolling, link)


def _unit(layer: Layer, entry: MappingConstraints, core: Core, dimension: str) -> int:
    """Number of indices of a dimension that a core processes in parallel. The number comes from the first spatial
    mapping that unrolls the dimension. If no spatial mapping unrolls the dimension, the number is 1.

    There is an exception if no spatial mapping unrolls any dimension of the layer, and the core can also run dataflows
    that its file does not list. The number is then the size of the largest array dimension.
    """
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
    """Pair (loops over parts, loops over tiles) that a mapping entry fixes. Loops that the entry does not fix are None.
    An entry that fixes several cores for the layer also fixes the loops over parts.
    """
    is_fixed = entry.core_allocation_is_fixed and len(entry.core_allocation) > 1
    between = loops_over_cores(layer, entry)[0] if entry.inter_core_tiling or is_fixed else None
    return between, entry.intra_core_tiling or None


def _ends(problem: SystemProblem, nodes: Sequence[WorkloadNode]) -> tuple[int, ...]:
    """Positions of layers after which at most one tensor passes from earlier to later layers. If there are no such
    positions, the result has the positions at which the fewest tensors pass.
    """
    crossing = crossing_tensors(problem, nodes)
    inner = crossing[:-1]
    if not inner:
        return ()
    least = min(inner)
    return tuple(place for place, count in enumerate(inner) if count <= max(1, least))


def crossing_tensors(problem: SystemProblem, nodes: Sequence[WorkloadNode]) -> list[int]:
    """Number of tensors that cross each position of the network. There is one entry for each layer, for the position
    directly after the layer. A tensor crosses a position if a layer before the position makes it, and a layer after the
    position reads it.
    """
    place_of = {node.node_id: place for place, node in enumerate(nodes)}
    behind = _readers(problem, place_of)
    counts = [0] * len(nodes)
    for place in range(len(nodes)):
        for between in range(place, behind.get(place, place)):
            counts[between] += 1
    return counts


def _readers(problem: SystemProblem, place_of: Mapping[int, int]) -> dict[int, int]:
    """Position of the last layer that reads a result, by position of the layer that makes the result. The result can
    reach the reader through operators that only move data. A layer without a reader is left out.
    """
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
