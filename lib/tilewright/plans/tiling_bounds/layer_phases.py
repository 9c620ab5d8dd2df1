"""Lower bound of the latency from the order of layers: cores limit some phases of a plan, links limit others.

A pivot is a layer whose first tile divides the schedule when it starts. Every tile of the pivot depends on parts of
earlier layers. These parts must be complete before the start. Layers that need the pivot do all their work later. A
chain of pivots divides the schedule into phases.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.multicore.scheduling.problem import Booleans, Floats, Integers
from tilewright.plans.tiling_bounds.core_work import ArrayLanes
from tilewright.plans.tiling_bounds.covering_program import CoveringProgram
from tilewright.plans.tiling_bounds.layer_moves import LayerMoves
from tilewright.plans.tiling_bounds.needed_shares import Sides, box_of_input, needed_boxes, reach_of_box
from tilewright.workload.graph import Workload, WorkloadNode

MOST_PIVOTS = 8
"""Largest number of pivots, which are the layers whose starts divide the schedule into phases. More pivots make the
linear program larger, but the bound hardly rises.
"""


@dataclass(frozen=True, eq=False)
class LayerLoads:
    """Work of layers on groups of equal cores, and the data that every plan moves."""

    workload: Workload
    nodes: tuple[WorkloadNode, ...]
    cycles: Floats
    """Least cycles of the complete layer on one core of the group (one entry for each layer and group of cores);
    infinite where the group cannot run the layer
    """
    cores: Integers
    """Number of cores in the group (one entry for each group of cores)"""
    lanes: tuple[ArrayLanes | None, ...]
    """Lanes of all tiles of the layer (one entry for each layer); None if tiles can have different lanes"""
    moves: LayerMoves
    reduced: tuple[frozenset[str], ...]
    """Reduction loops along which the layer can be cut into parts or tiles (one set for each layer)."""

    def boxes(self, pivot: int) -> dict[str, Sides]:
        """Size of a block of elements along each axis, by tensor. Every tile of the layer `pivot` depends on at least a
        block of this size. A tensor is left out if a tile can be independent of the tensor.
        """
        if pivot not in self._boxes:
            self._boxes[pivot] = needed_boxes(self.workload, self.nodes[pivot].node_id, self.reduced[pivot])
        return self._boxes[pivot]

    @cached_property
    def _boxes(self) -> dict[int, dict[str, Sides]]:
        """Cached results of `boxes`, by position of the layer."""
        return {}

    def box_of(self, boxes: dict[str, Sides], layer: int) -> Sides | None:
        """Box of the output of a layer, from `boxes`; None if the layer has several outputs, or if `boxes` has no box
        for the output.
        """
        outputs = self.nodes[layer].outputs
        return boxes.get(outputs[0]) if len(outputs) == 1 else None

    def work_share(self, layer: int, box: Sides) -> float:
        """Least share of a layer's cycles that a block of its output needs. `box` has the size of the block along each
        axis.
        """
        node = self.nodes[layer]
        shape = self.workload.tensor_of[node.outputs[0]].shape
        share = math.prod(box) / max(1, math.prod(shape))
        lanes = self.lanes[layer]
        if lanes is None or not node.index_maps:
            return share
        found = []
        for index_map in node.index_maps:
            reach = reach_of_box(index_map, box, shape)
            if reach is None:
                return 0.0
            ratio = 1.0
            for name, size in index_map.loops:
                ratio *= math.ceil(reach[name] / lanes.of(name)) / math.ceil(size / lanes.of(name))
            found.append(ratio)
        return min(share, *found)


@dataclass(frozen=True, eq=False)
class _Event:
    """Start of the first tile of a pivot layer, with the work and the moves that must be complete before it."""

    work: Floats
    """Share of each layer's work that must be complete before the event, as an array of shape (layers,)."""
    arrived: Floats
    """Share of each moved piece of data that must arrive before the first tile of the pivot starts. The array has one
    entry for each reason to move a piece (see `PossibleMoves`).
    """
    later: Booleans
    """True for each layer that does all its work after the event, as an array of shape (layers,)."""


def phases_cycles(loads: LayerLoads) -> float:
    """Lower bound of the latency in cycles. The starts of some layers (pivots) divide a schedule into phases, and each
    phase must be long enough for its work and its traffic.
    """
    chain = _chain(loads)
    return _program(loads, [_event(loads, pivot) for pivot in chain]).lower_bound()


def resources_cycles(loads: LayerLoads) -> float:
    """Lower bound of the latency in cycles, from the work of cores and the traffic of links in the whole schedule."""
    return _program(loads, []).lower_bound()


def core_work_cycles(loads: LayerLoads) -> float:
    """Lower bound of the latency in cycles, from the work of cores alone."""
    program = CoveringProgram()
    _add_work(program, loads, [], [program.length()])
    return program.lower_bound()


def _chain(loads: LayerLoads) -> list[int]:
    """Positions of the pivots in the order of the network, ascending. A pivot is a layer whose start ends a phase of
    the schedule. Each pivot depends on the pivot before it. The pivots are chosen so that the phases have roughly equal
    shares of the work and the data.
    """
    count = len(loads.nodes)
    if not count:
        return []
    least = np.where(np.isfinite(loads.cycles), loads.cycles / loads.cores, np.inf).min(axis=1, initial=np.inf)
    weight = np.where(np.isfinite(least), least, 0.0)
    moves, kept = loads.moves.moves, loads.moves.kept
    bits = np.zeros(count)
    reader = np.maximum(moves.reader, 0)
    np.add.at(bits, reader[kept], moves.piece_bits[moves.piece[kept]])
    weight = weight / max(weight.sum(), 1.0) + bits / max(bits.sum(), 1.0)
    before = np.cumsum(weight) - weight
    chain: list[int] = []
    for number in range(MOST_PIVOTS, 0, -1):
        goal = before[-1] * number / MOST_PIVOTS
        order = np.argsort(np.abs(before - goal), kind="stable").tolist()
        for place in order[: max(3, count // MOST_PIVOTS)]:
            if chain and (place >= chain[0] or loads.box_of(loads.boxes(chain[0]), place) is None):
                continue
            if place > 0 and len(loads.nodes[place].outputs) == 1 and loads.boxes(place):
                chain.insert(0, place)
                break
    return chain


def _event(loads: LayerLoads, pivot: int) -> _Event:
    count = len(loads.nodes)
    boxes = loads.boxes(pivot)
    work, later = np.zeros(count), np.zeros(count, np.bool_)
    later[pivot] = True
    for layer in range(count):
        box = loads.box_of(boxes, layer)
        if box is not None and layer != pivot:
            work[layer] = loads.work_share(layer, box)
        later[layer] |= layer > pivot and loads.box_of(loads.boxes(layer), pivot) is not None
    moves = loads.moves.moves
    arrived = np.zeros(len(moves.piece))
    for number, (reader, is_kept) in enumerate(zip(moves.reader.tolist(), loads.moves.kept.tolist(), strict=True)):
        if is_kept and reader >= 0 and not later[reader]:
            arrived[number] = _arrived(loads, boxes, reader, loads.moves.tensors[number])
    return _Event(work, arrived, later)


def _arrived(loads: LayerLoads, boxes: dict[str, Sides], reader: int, tensor: str) -> float:
    """Least share of a tensor that must have reached the layer at position `reader` before the first tile of a pivot
    starts. `boxes` is the result of `LayerLoads.boxes` for this pivot.
    """
    node, workload = loads.nodes[reader], loads.workload
    box = loads.box_of(boxes, reader)
    if box is None:
        return 0.0
    source = workload.tensor_of[tensor].shape
    least = 0.0
    for index_map in node.index_maps:
        if index_map.input.tensor == tensor and index_map.is_exact:
            found = box_of_input(index_map, box, workload.tensor_of[node.outputs[0]].shape, source)
            least = max(least, 0.0 if found is None else math.prod(found) / max(1, math.prod(source)))
    return least


def _program(loads: LayerLoads, events: Sequence[_Event]) -> CoveringProgram:
    program = CoveringProgram()
    lengths = [program.length() for _ in range(len(events) + 1)]
    _add_work(program, loads, events, lengths)
    _add_moves(program, loads, events, lengths)
    return program


def _add_work(program: CoveringProgram, loads: LayerLoads, events: Sequence[_Event], lengths: Sequence[int]) -> None:
    busy = [[program.row(0.0) for _ in loads.cores] for _ in lengths]
    for rows, length in zip(busy, lengths, strict=True):
        for row, count in zip(rows, loads.cores.tolist(), strict=True):
            program.add(row, length, float(count))
    for layer, cycles in enumerate(loads.cycles.tolist()):
        first = max((number + 1 for number, event in enumerate(events) if event.later[layer]), default=0)
        parts: list[tuple[int, int]] = []
        for phase in range(first, len(lengths)):
            for group, value in enumerate(cycles):
                if math.isfinite(value):
                    part = program.share()
                    program.add(busy[phase][group], part, -value)
                    parts.append((phase, part))
        _cover(program, parts, [event.work[layer] for event in events])


def _cover(program: CoveringProgram, parts: Sequence[tuple[int, int]], shares: Sequence[float]) -> None:
    """Add constraints for an amount of work or data. The amount is divided into parts; each part is a variable, and
    belongs to a phase. All parts together are at least 1, the whole amount. The parts before an event are together at
    least the share that this event requires.

    `parts` has pairs (phase, variable). `shares` has the required share for each event.
    """
    for number, share in enumerate([*shares, 1.0]):
        if share > 0.0:
            row = program.row(share)
            for phase, part in parts:
                if phase <= number:
                    program.add(row, part, 1.0)


@dataclass(frozen=True)
class _Bulk:
    """Group of bits that the bound treats alike: they can take the same paths over links, and have equal values of all
    fields.
    """

    kind: int
    first: int
    """First phase in which the bits can move."""
    held: tuple[int, ...]
    """Indices of the events at which the layer that reads these bits has done no work yet. Bits that have moved before
    one of these events are still needed, and occupy on-chip memory. The value is () for bits that a layer produces.
    """
    shares: tuple[float, ...]
    """Share of the bits of the group that must have moved before each event (one entry for each event)."""


def _add_moves(program: CoveringProgram, loads: LayerLoads, events: Sequence[_Event], lengths: Sequence[int]) -> None:
    moves = loads.moves.moves
    links = len(loads.moves.problem.system.link_bits_per_cycle)
    used = np.zeros(links, np.bool_)
    for table in moves.ways:
        used |= table.any(axis=(0, 1)) if len(table) else False
    rows = [{link: program.row(0.0) for link in np.flatnonzero(used).tolist()} for _ in lengths]
    for of_phase, length in zip(rows, lengths, strict=True):
        for row in of_phase.values():
            program.add(row, length, 1.0)
    held: list[list[tuple[int, float, int]]] = [[] for _ in events]
    for bulk, bits in _bulks(loads, events).items():
        last: list[tuple[int, int]] = []
        for way in _distinct_ways(moves.ways[bulk.kind]):
            legs = [leg for leg in range(len(way)) if way[leg].any()] or [0]
            parts = [[(phase, program.share()) for phase in range(bulk.first, len(lengths))] for _ in legs]
            for leg, of_leg in zip(legs, parts, strict=True):
                for phase, part in of_leg:
                    for link in np.flatnonzero(way[leg]).tolist():
                        program.add(rows[phase][link], part, -float(way[leg, link]) * bits)
            if len(parts) > 1:
                equal = program.row(0.0)
                for (_, one), (_, other) in zip(*parts, strict=True):
                    program.add(equal, one, 1.0)
                    program.add(equal, other, -1.0)
            last += parts[-1]
        _cover(program, last, bulk.shares)
        for event in bulk.held:
            held[event] += [(part, float(bits), bulk.kind) for phase, part in last if phase <= event]
    for parts_held in held:
        if parts_held:
            kinds = {kind for _, _, kind in parts_held}
            capacity = float(max(1, loads.moves.room_bits(kinds)))
            row = program.row(-1.0)
            for part, size, _ in parts_held:
                program.add(row, part, -size / capacity)


def _bulks(loads: LayerLoads, events: Sequence[_Event]) -> dict[_Bulk, int]:
    """Number of bits that every plan moves, by group of bits with equal properties."""
    moves, kept = loads.moves.moves, loads.moves.kept
    found: dict[_Bulk, int] = {}
    for number in moves.once(kept).tolist():
        kind, producer, reader = int(moves.kind[number]), int(moves.producer[number]), int(moves.reader[number])
        if not len(moves.ways[kind]):
            continue
        first = max(
            (place + 1 for place, event in enumerate(events) if producer >= 0 and event.later[producer]), default=0
        )
        is_held = producer < 0 and reader >= 0
        held = tuple(place for place, event in enumerate(events) if is_held and event.later[reader])
        shares = tuple(round(float(event.arrived[number]), 12) for event in events)
        bulk = _Bulk(kind, first, held, shares)
        found[bulk] = found.get(bulk, 0) + int(moves.piece_bits[moves.piece[number]])
    return found


def _distinct_ways(ways: Floats) -> list[Floats]:
    """Paths of data that no other path can replace. A path is an array of shape (legs, links) with the cycles that one
    bit takes on each link; a path through the off-chip memory has two legs. A path is left out if another path can
    always replace it (`_replaces`). Of several equal paths, one path is kept.
    """
    found: list[Floats] = []
    for way in sorted(ways, key=lambda way: (float(way.sum()), way.tobytes())):
        if not any(_replaces(other, way) for other in found):
            found.append(way)
    return found


def _replaces(one: Floats, other: Floats) -> bool:
    """True if the path `one` can always replace the path `other`. For any phases of the legs of `other`, `one` must
    take at most as many cycles as `other` on every link and in every phase.

    If `one` has a single leg, this leg can take place in the phase of either leg of `other`, or half in each. Both
    paths are arrays of shape (legs, links), as in `_distinct_ways`.
    """
    if one[1:].any():
        return bool(np.all(one <= other))
    places = (*other, other.sum(axis=0) / len(other))
    return any(bool(np.all(one[0] <= place)) for place in places)
