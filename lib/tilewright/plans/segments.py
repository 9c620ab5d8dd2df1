"""Segments: consecutive layers as a separate network, with inputs and outputs in the off-chip memory.

The scheduler of a run computes the costs of a fused segment, once for all equal segments. A dynamic program then
composes the network from segments (`compose`).

The sum of the segments' costs neglects two effects: segments can overlap in time, and data can stay on chip between
them. Therefore compositions are only starting points for the search for plans of the complete network.
"""

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tilewright.mapping.constraints import MappingConstraints
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.plans.cores import PlanFigures
from tilewright.plans.plan import LayerTiles
from tilewright.plans.space import ALL_ROWS, PartRule, PlanSpace
from tilewright.workload.access import IndexMap
from tilewright.workload.graph import Workload, WorkloadNode

SEGMENT_TILES = (2, 4, 8, 16, 32, ALL_ROWS)
"""Numbers of tiles along rows that are tried for a segment of several layers."""
PART_RULES = (
    PartRule(math.inf, False, fills_cores=True),
    PartRule(0.5, True),
    PartRule(0.25, True),
    PartRule(0.125, True),
    PartRule(0.5, False),
    PartRule(0.5, True, along_rows=True),
    PartRule(math.inf, False, fills_cores=True, in_image=True),
)
"""Part rules that are tried. Many parts balance the work of the cores. Few parts move less data, because each part
needs the complete input. With one part for each core, the work is balanced and few data move, but weights that do not
fit a core are streamed. The last rule gives all cores equal parts of the image, as the mapping generator of Stream does
if weights fit (`stream/mapping/generic_generator.py` of stream-dse 2.1.1).
"""
MOST_BLOCKS = 24
"""Largest number of sections into which the network is divided. A section has consecutive layers, and a segment
consists of consecutive sections.
"""
LONGEST = 6
"""Largest number of sections in a segment."""
MOST_LABELS = 24
"""Largest number of partial compositions (labels of the dynamic program) that are kept at each position of the network.
The segments of these compositions cover all layers before the position.
"""


@dataclass(frozen=True)
class Segment:
    """Layers from position `first` to position `last`, with their tiles and stacks."""

    first: int
    last: int
    tiles: tuple[LayerTiles, ...]
    is_fused: bool
    """True if all layers of the segment form one stack. Otherwise, each layer is a separate stack."""
    in_blocks: bool = False
    """True if the layers are cut into blocks. Such segments are also tried on fewer cores."""


def blocks(space: PlanSpace) -> tuple[int, ...]:
    """Position of the last layer of each section of the network, for at most MOST_BLOCKS sections. A new section begins
    only at a layer that has weights, and only where few tensors pass from earlier to later layers.
    """
    last = len(space.layers) - 1
    ends = [end for end in space.ends if space.layers[end + 1].weight_bits]
    while len(ends) >= MOST_BLOCKS:
        ends = ends[::2]
    return (*ends, last)


def candidates(
    space: PlanSpace, ends: Sequence[int], rules: Sequence[PartRule] = PART_RULES, objective: str = "latency"
) -> list[Segment]:
    """Segments to try, the shortest first. `ends` has the position of the last layer of each section of the network.
    Each of the `rules` cuts the layers of a segment into parts. If there are many cores, there are also segments whose
    layers are cut into the blocks with the best estimates for the objective.
    """
    starts = [0, *(end + 1 for end in ends[:-1])]
    found: dict[Segment, None] = {}
    for length in range(1, min(LONGEST, len(ends)) + 1):
        for block in range(len(ends) - length + 1):
            first, last = starts[block], ends[block + length - 1]
            members = space.layers[first : last + 1]
            all_rows = (*((1,) if length == 1 else ()), *(SEGMENT_TILES if len(members) > 1 else ()))
            in_blocks = space.has_many_cores and any(one.blocks for one in members)
            for rule, rows in itertools.product((*rules, *((None,) if in_blocks else ())), all_rows):
                tiles = tuple(
                    one.in_ranked_blocks(0, rows, objective) if rule is None else one.cut_by(rule, rows)
                    for one in members
                )
                found[Segment(first, last, tiles, rows > 1, rule is None)] = None
    return list(found)


def part_of_network(problem: SystemProblem, nodes: Sequence[WorkloadNode], first: int, last: int) -> SystemProblem:
    """Network of the layers from position `first` to `last`. Operators that only move data are included if they lie
    between these layers or directly before them.
    """
    everything = problem.workload.nodes
    index_of = {node.node_id: index for index, node in enumerate(everything)}
    begin = 0 if first == 0 else index_of[nodes[first - 1].node_id] + 1
    end = len(everything) if last == len(nodes) - 1 else index_of[nodes[last].node_id] + 1
    inside = everything[begin:end]
    ids = {node.node_id for node in inside}
    workload = problem.workload
    made = {name for node in inside for name in node.outputs}
    read = dict.fromkeys(name for node in inside for name in node.inputs)
    outside = [*everything[:begin], *everything[end:]]
    wanted = {name for node in outside for name in node.inputs} | set(workload.outputs)
    tensors = tuple(tensor for tensor in workload.tensors if tensor.name in read or tensor.name in made)
    constants = {tensor.name for tensor in tensors if tensor.is_constant}
    kept = tuple(replace(node, sources=tuple(source for source in node.sources if source[1] in ids)) for node in inside)
    part = Workload(
        workload.name,
        kept,
        tensors,
        tuple(name for name in read if name not in made and name not in constants),
        tuple(name for node in inside for name in node.outputs if name in wanted and name not in constants),
    )
    return replace(problem, workload=part)


def likeness(problem: SystemProblem) -> Hashable:
    """Hashable key of a network: all its properties on which the costs depend. Networks that differ only in the names
    of networks, layers or tensors have the same key.
    """
    number: dict[str, int] = {}

    def of(name: str) -> int:
        return number.setdefault(name, len(number))

    nodes = []
    for node in problem.workload.nodes:
        layer = None if node.layer is None else replace(node.layer, name="")
        entry = None if node.layer is None else _nameless(problem.mapping.constraints_for(node.layer))
        maps = tuple(_numbered(one, of) for one in node.index_maps)
        kind = (node.operator_type, node.origin_type, node.unit, node.status, layer, entry)
        nodes.append((kind, tuple(map(of, node.inputs)), tuple(map(of, node.outputs)), maps))
    tensors = tuple(sorted((of(one.name), one.shape, one.bits, one.is_constant) for one in problem.workload.tensors))
    ends = tuple(map(of, problem.workload.inputs)), tuple(map(of, problem.workload.outputs))
    return tuple(nodes), tensors, ends


def _nameless(entry: MappingConstraints) -> MappingConstraints:
    return replace(entry, name="")


def _numbered(index_map: IndexMap, of: object) -> Hashable:
    """Hashable content of an index map, with numbers in place of the names of tensors. `of` is a function that returns
    the number of a name.
    """
    output, source = index_map.output, index_map.input
    numbers = of(output.tensor), of(source.tensor)  # type: ignore[operator]
    return index_map.loops, numbers, output.axes, source.axes, index_map.operand, index_map.is_exact


@dataclass(frozen=True)
class _Label:
    """Label of the dynamic program: a partial composition. Its segments cover all layers before a position of the
    network.
    """

    figures: PlanFigures
    segments: tuple[Segment, ...]


def compose(costs: Mapping[Segment, PlanFigures], layers: int, objective: str, count: int) -> list[tuple[Segment, ...]]:
    """Best compositions of the complete network from segments, at most `count`, the best first.

    Latency and energy of a composition are the sums over its segments. At each position of the network, the dynamic
    program keeps up to MOST_LABELS partial compositions that no other composition dominates in latency and energy. EDP
    alone cannot be the criterion, because the EDP of a composition is not the sum of the EDPs of its segments.
    """
    from_place: dict[int, list[tuple[Segment, PlanFigures]]] = {}
    for segment, figures in costs.items():
        from_place.setdefault(segment.first, []).append((segment, figures))
    labels: dict[int, list[_Label]] = {0: [_Label(PlanFigures(0, 0.0), ())]}
    for place in range(layers):
        here = _undominated(labels.get(place, ()), objective)
        for label in here:
            for segment, figures in from_place.get(place, ()):
                total = PlanFigures(
                    label.figures.latency_cycles + figures.latency_cycles, label.figures.energy_pj + figures.energy_pj
                )
                labels.setdefault(segment.last + 1, []).append(_Label(total, (*label.segments, segment)))
    found = sorted(labels.get(layers, ()), key=lambda label: label.figures.rank(objective))
    return [label.segments for label in found[:count]]


def _undominated(labels: Iterable[_Label], objective: str) -> list[_Label]:
    """Labels that no other label dominates in latency and energy. If there are more than MOST_LABELS such labels, the
    best MOST_LABELS of them by the objective are returned.
    """
    ordered = sorted(labels, key=lambda label: (label.figures.latency_cycles, label.figures.energy_pj))
    kept: list[_Label] = []
    for label in ordered:
        if not kept or label.figures.energy_pj < kept[-1].figures.energy_pj:
            kept.append(label)
    return sorted(kept, key=lambda label: label.figures.rank(objective))[:MOST_LABELS]
