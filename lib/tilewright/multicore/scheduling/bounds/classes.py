"""Classes of CNs with the same row of the cost table and the same allowed cores (docs/proofs.md#bounds)."""

from dataclasses import dataclass

import numpy as np

from tilewright.base.errors import MappingError
from tilewright.multicore.scheduling.problem import Booleans, Floats, Integers, SchedulingProblem


@dataclass(frozen=True, eq=False)
class CnClasses:
    """Classes of CNs. CNs of a class have the same row of the cost table and the same allowed cores."""

    of_cn: Integers
    """[cn] Class of the CN"""
    count: Integers
    """[class] Number of CNs"""
    row: Integers
    """[class] Row of the cost table for the CNs of the class"""
    allowed: Booleans
    """[class, core] True where the core is allowed for the CNs of the class"""
    runtime: Floats
    """[class, core] Runtime in cycles if all streams get the full width of their links; infinite where the core is not
    allowed"""
    never_streams: Booleans
    """[class, operand] True where the operand does not stream on any allowed core"""
    always_streams: Booleans
    """[class, operand] True where the operand streams on every allowed core"""


def cn_classes(problem: SchedulingProblem, allowed: Booleans | None) -> CnClasses:
    """The classes of the CNs of a problem.

    `allowed` [cn, core] says which cores are allowed; None: all cores that the cost table allows. Raises MappingError
    if a CN has no allowed core.
    """
    graph, costs = problem.graph, problem.costs
    runs = costs.runtime_cycles >= 1
    runs[:, problem.system.off_chip_core] = False
    mask = runs[graph.cost_row] if allowed is None else runs[graph.cost_row] & allowed
    if not bool(np.all(mask.any(axis=1))):
        raise MappingError(f"CN {int(np.flatnonzero(~mask.any(axis=1))[0])} has no core that can run it")
    if allowed is None:
        distinct, of_cn, count = np.unique(graph.cost_row[:, None], axis=0, return_inverse=True, return_counts=True)
        class_mask = runs[distinct[:, 0]]
    else:
        table = np.concatenate((graph.cost_row[:, None], mask), axis=1)
        distinct, of_cn, count = np.unique(table, axis=0, return_inverse=True, return_counts=True)
        class_mask = distinct[:, 1:].astype(np.bool_)
    row = distinct[:, 0]
    streams = costs.stream_bits[row] > 0
    return CnClasses(
        of_cn=of_cn.reshape(-1).astype(np.int64),
        count=count.astype(np.int64),
        row=row.astype(np.int64),
        allowed=class_mask,
        runtime=np.where(class_mask, _streaming_runtime(problem)[row], np.inf),
        never_streams=~np.any(streams & class_mask[:, :, None], axis=1),
        always_streams=~np.any(~streams & class_mask[:, :, None], axis=1),
    )


def _streaming_runtime(problem: SchedulingProblem) -> Floats:
    """[row, core] Runtime in cycles if all streams get the full width of their links."""
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
