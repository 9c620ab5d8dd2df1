"""Classes of CNs with equal rows of the cost table and equal allowed cores (docs/proofs/bounds.md)."""

from dataclasses import dataclass

import numpy as np

from tilewright.base.errors import MappingError
from tilewright.multicore.scheduling.problem import OUTPUT_OPERAND, Booleans, Floats, Integers, SchedulingProblem


@dataclass(frozen=True, eq=False)
class CnClasses:
    """Classes of CNs. The CNs of a class have the same row of the cost table and the same allowed cores."""

    of_cn: Integers
    """Class of the CN (one entry for each CN)"""
    count: Integers
    """Number of CNs in the class (one entry for each class)"""
    row: Integers
    """Row of the cost table for the CNs of the class (one entry for each class)"""
    allowed: Booleans
    """True if the core is allowed for the CNs of the class (one entry for each class and core)"""
    runtime: Floats
    """Smallest runtime in cycles (one entry for each class and core); infinite where the core is not allowed"""
    stream_bits: Integers
    """Bits that a CN of the class streams (one entry for each class, core and operand)"""
    never_streams: Booleans
    """One entry for each class and operand. Without `may_stream`: True if the operand streams on no allowed core. With
    `may_stream`: True if every allowed core moves each piece of the operand as a whole.
    """
    always_streams: Booleans
    """True if the operand streams on every allowed core (one entry for each class and operand). With `may_stream`, all
    entries are False.
    """
    may_stream: bool
    """True if the model lets data move while a CN runs, even if the data fit the core of the CN"""


def cn_classes(problem: SchedulingProblem, allowed: Booleans | None, may_stream: bool = False) -> CnClasses:
    """Classes of the CNs of a problem. Raises MappingError if a CN has no allowed core.

    `allowed` says for each CN and core whether the core is allowed. If `allowed` is None, every core with a runtime in
    the cost table is allowed.

    Without `may_stream`, bounds from the classes assume that data that fit a core are copied before use. With
    `may_stream`, the bounds also hold for models in which such data can stream. These bounds make only two assumptions:
    a CN takes the runtime of the cost table, and each of its pieces moves at least once before the end of the CN.
    """
    graph, costs = problem.graph, problem.costs
    runs = costs.runtime_cycles >= 1
    runs[:, problem.system.off_chip_core] = False
    mask = runs[graph.cost_row] if allowed is None else runs[graph.cost_row] & allowed
    if not bool(np.all(mask.any(axis=1))):
        raise MappingError(f"no core can run CN {int(np.flatnonzero(~mask.any(axis=1))[0])}")
    if allowed is None:
        distinct, of_cn, count = np.unique(graph.cost_row[:, None], axis=0, return_inverse=True, return_counts=True)
        class_mask = runs[distinct[:, 0]]
    else:
        table = np.concatenate((graph.cost_row[:, None], mask), axis=1)
        distinct, of_cn, count = np.unique(table, axis=0, return_inverse=True, return_counts=True)
        class_mask = distinct[:, 1:].astype(np.bool_)
    row = distinct[:, 0]
    of_cn = of_cn.reshape(-1).astype(np.int64)
    bits, cycles = costs.stream_bits[row], _streaming_runtime(problem)[row]
    streams = bits > 0
    always = ~np.any(~streams & class_mask[:, :, None], axis=1)
    if may_stream:
        cycles = costs.runtime_cycles[row].astype(np.float64)
        streams = (streams & (bits < _own_bits(problem, of_cn)[:, None, :])) | costs.reads_gaps[row][:, None, :]
        bits, always = np.zeros_like(bits), np.zeros_like(always)
    return CnClasses(
        of_cn=of_cn,
        count=count.astype(np.int64),
        row=row.astype(np.int64),
        allowed=class_mask,
        runtime=np.where(class_mask, cycles, np.inf),
        stream_bits=bits,
        never_streams=~np.any(streams & class_mask[:, :, None], axis=1),
        always_streams=always,
        may_stream=may_stream,
    )


def _own_bits(problem: SchedulingProblem, of_cn: Integers) -> Integers:
    """Total size in bits of the pieces that a CN of the class reads by the operand: the largest total over the CNs of
    the class (one entry for each class and operand). For the output operand, the pieces that the CN produces are
    included.
    """
    graph, (piece, operand) = problem.graph, problem.fetch_order
    of_each = np.zeros((graph.node_count, problem.system.core_memory.shape[1]), np.int64)
    np.add.at(of_each, (problem.need_cn, operand), graph.piece_bits[piece])
    made = np.flatnonzero(graph.piece_producer >= 0)
    np.add.at(of_each[:, OUTPUT_OPERAND], graph.piece_producer[made], graph.piece_bits[made])
    most = np.zeros((int(of_cn.max(initial=-1)) + 1, of_each.shape[1]), np.int64)
    np.maximum.at(most, of_cn, of_each)
    return most


def _streaming_runtime(problem: SchedulingProblem) -> Floats:
    """Runtime in cycles if every stream of the CN gets the full width of all links that it uses (one entry for each row
    of the cost table and core).
    """
    costs, system = problem.costs, problem.system
    runtime = costs.runtime_cycles.astype(np.float64)
    for row, core in np.argwhere(np.any(costs.stream_bits > 0, axis=2)).tolist():
        load = np.zeros(len(system.link_bits_per_cycle), np.int64)
        for operand, bits in enumerate(costs.stream_bits[row, core].tolist()):
            ends = (core, system.off_chip_core) if operand == 0 else (system.off_chip_core, core)
            np.add.at(load, system.path(*ends), bits)
        cycles = -(-load // system.link_bits_per_cycle)
        runtime[row, core] = max(runtime[row, core], float(cycles.max(initial=0)))
    return runtime
