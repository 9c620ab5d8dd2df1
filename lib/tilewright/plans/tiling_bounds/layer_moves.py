"""Data that move in every plan of a network: constants, inputs, results, and tensors between cores.

To find these data, the module makes a graph with one computation node for each layer. The pieces of data in this graph
do not depend on how a plan cuts the layers. A piece counts only if every plan moves at least as many bits as the piece
has.
"""

from dataclasses import dataclass, replace

import numpy as np

from tilewright.mapping.constraints import Mapping
from tilewright.mapping.runnable import core_choice
from tilewright.multicore.nodes.generation import build_cn_graph
from tilewright.multicore.nodes.graph import CnGraph
from tilewright.multicore.nodes.pieces import DataPieces
from tilewright.multicore.nodes.tiling_options import TilingOptions, network_tiling
from tilewright.multicore.scheduling.assembly import scheduling_problem
from tilewright.multicore.scheduling.bounds.classes import CnClasses, cn_classes
from tilewright.multicore.scheduling.bounds.forwarding import bounded_problem
from tilewright.multicore.scheduling.bounds.work import PossibleMoves, possible_moves
from tilewright.multicore.scheduling.core_costs import CoreCostRow
from tilewright.multicore.scheduling.cost_classes import cost_classes
from tilewright.multicore.scheduling.problem import Booleans, SchedulingProblem
from tilewright.multicore.scheduling.system_assembly import MEMORY_OPERANDS
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.plans.plan import LayerTiles, Plan, layers_of, planned_mapping
from tilewright.workload.access import reads_gaps
from tilewright.workload.graph import WorkloadNode
from tilewright.workload.layer import FINAL_OUTPUT


@dataclass(frozen=True, eq=False)
class LayerMoves:
    """Scheduling problem in which each layer is one computation node, and the movements of data that every plan
    contains.
    """

    problem: SchedulingProblem
    allowed: Booleans
    """Array of shape (layers, cores): True if the core can run tiles of the layer."""
    classes: CnClasses
    moves: PossibleMoves
    kept: Booleans
    """Flags, one for each entry of `moves`. An entry is a reason to move a piece of data; the flag is true if every
    plan moves the bits of the piece for this reason.
    """
    tensors: tuple[str, ...]
    """Names of tensors, one for each entry of `moves`: the tensor to which the moved piece of data belongs."""

    def room_bits(self, kinds: set[int]) -> int:
        """Total capacity, in bits, of the on-chip memories in which data can wait until a layer reads them. Only data
        with a kind of move in `kinds` (numbers as in `PossibleMoves.kind`) are considered. If cores forward constants,
        all on-chip memories count.
        """
        system, moves = self.problem.system, self.moves
        if system.forwards_constants:
            return int(np.delete(system.memory_capacity_bits, system.off_chip_memory).sum())
        chosen = np.isin(moves.kind, sorted(kinds)) & (moves.reader >= 0)
        memories: set[int] = set()
        for reader, operand in {*zip(moves.reader[chosen].tolist(), moves.operand[chosen].tolist(), strict=True)}:
            memories.update(system.core_memory[np.flatnonzero(self.allowed[reader]), operand].tolist())
        return int(system.memory_capacity_bits[sorted(memories - {-1, system.off_chip_memory})].sum())


def layer_moves(problem: SystemProblem) -> LayerMoves:
    """Data movements that every plan of a network on a system contains. If cores forward constants, a constant counts
    only on the links that all paths from the off-chip core have in common. Raises MappingError if no core can run a
    layer.
    """
    nodes = layers_of(problem.workload)
    mapping = _any_cores(problem.mapping)
    plan = Plan(tuple(LayerTiles() for _ in nodes), tuple((node.node_id,) for node in nodes), "latency", ())
    whole = planned_mapping(mapping, nodes, plan)
    options = TilingOptions(layer_stacks=plan.stacks)
    graph = build_cn_graph(problem.workload, network_tiling(problem.workload, whole, problem.accelerator, options))
    assert graph.cn_count == len(nodes)
    count = len(cost_classes(graph, problem.workload, whole).classes)
    rows = [CoreCostRow(number, "", 1, 1, 1, 1) for number in range(count)]
    costs = dict.fromkeys(problem.accelerator.distinct_cores, rows)
    assembled = scheduling_problem(problem.workload, graph, problem.accelerator, whole, costs)
    scheduling = assembled.problem
    allowed = _allowed(problem, nodes, scheduling)
    classes = cn_classes(scheduling, allowed)
    classes = replace(classes, never_streams=np.ones_like(classes.never_streams))
    moves = possible_moves(bounded_problem(scheduling), classes)
    kept = _counted(problem, nodes, graph, moves)
    kept &= _is_direct(nodes, assembled.pieces, moves)
    tensors = tuple(assembled.pieces.tensors[number] for number in assembled.pieces.tensor[moves.piece].tolist())
    return LayerMoves(scheduling, allowed, classes, moves, kept, tensors)


def _any_cores(mapping: Mapping) -> Mapping:
    """Copy of a mapping in which the cores of the parts of layers are not fixed (`core_allocation_is_fixed` is false).
    A layer that is not cut into parts can then run on any of its cores.
    """
    return Mapping(tuple(replace(entry, core_allocation_is_fixed=False) for entry in mapping.entries))


def _allowed(problem: SystemProblem, nodes: tuple[WorkloadNode, ...], scheduling: SchedulingProblem) -> Booleans:
    """Array of shape (layers, cores): True if the input files allow the core to run the layer."""
    ids = problem.accelerator.core_ids
    allowed = np.zeros((len(nodes), scheduling.system.core_count), np.bool_)
    for place, node in enumerate(nodes):
        assert node.layer is not None
        for core_id in core_choice(node, problem.mapping.constraints_for(node.layer), problem.accelerator).core_ids:
            allowed[place, ids.index(core_id)] = True
    return allowed


def _is_direct(nodes: tuple[WorkloadNode, ...], pieces: DataPieces, moves: PossibleMoves) -> Booleans:
    """Array with one entry for each reason to move a piece of data. An entry is false for data from outside the network
    that reach their reader only through operators that move data. After these operators, it is not always known which
    elements a part of the reader needs. All other entries are true.
    """
    tensor = pieces.tensor[moves.piece]
    inputs = [set(node.inputs) for node in nodes]
    pairs = zip(moves.reader.tolist(), tensor.tolist(), moves.fetched.tolist(), strict=True)
    return np.array([not is_outside or pieces.tensors[name] in inputs[cn] for cn, name, is_outside in pairs], np.bool_)


def _counted(problem: SystemProblem, nodes: tuple[WorkloadNode, ...], graph: CnGraph, moves: PossibleMoves) -> Booleans:
    """Array with one entry for each reason to move a piece of data: true if every bit of the piece moves, by a copy or
    a stream, however the layers are cut. An entry is false in three cases:

    * A layer may leave out some elements of the piece (gaps).
    * A layer reads or writes the piece with fewer bits per element than the tensor has.
    * It is not known exactly which elements of the piece are needed.
    """
    partly = {(link.consumer, link.producer) for link in graph.links if not link.is_exact}
    loose = np.zeros((len(nodes) + 1, len(MEMORY_OPERANDS)), np.bool_)
    short = np.zeros(len(nodes), np.bool_)
    for place, node in enumerate(nodes):
        layer = node.layer
        assert layer is not None
        links = dict(problem.mapping.constraints_for(layer).memory_operand_links)
        final = layer.bits_of.get(FINAL_OUTPUT, 0)
        short[place] = any(final < problem.workload.tensor_of[name].bits for name in node.outputs)
        for index_map in node.index_maps:
            operand = links.get(index_map.operand, MEMORY_OPERANDS[-1])
            number = MEMORY_OPERANDS.index(operand) if operand in MEMORY_OPERANDS else len(MEMORY_OPERANDS) - 1
            narrow = index_map.operand in layer.bits_of and (
                layer.bits_of[index_map.operand] < problem.workload.tensor_of[index_map.input.tensor].bits
            )
            loose[place, number] |= narrow or reads_gaps(index_map, layer.size_of)
    kept = ~loose[moves.reader, moves.operand] | (moves.reader < 0)
    made = moves.producer >= 0
    kept &= ~(made & short[np.maximum(moves.producer, 0)])
    pairs = zip(moves.reader.tolist(), moves.producer.tolist(), strict=True)
    return kept & np.array([pair not in partly for pair in pairs], np.bool_)
