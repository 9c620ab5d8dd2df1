"""Best mapping of a layer by the rule of DeFiNES: of all orders of a few loops, the one with the least energy."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tilewright.base.compiled import native_function
from tilewright.cost.problem import PROBLEM_DTYPE, new_record
from tilewright.cost.workspace import WORKSPACE_DTYPE, new_workspace
from tilewright.peers.defines.accesses_kernel import FOUND_DTYPE, find_least_energy
from tilewright.search.batch import OrderBatch
from tilewright.search.blocks import thread_block, write_block
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.loma_kernel import BLOCK_DTYPE

RECORDS = (PROBLEM_DTYPE, WORKSPACE_DTYPE, BLOCK_DTYPE, FOUND_DTYPE)
"""Types of the records that the compiled search uses."""
MODEL = "zigzag-3.9.1+round_up_spatial_factors"
"""Model profile by which the search computes tiles, the cycles between their transfers, and access counts."""


@dataclass(frozen=True, eq=False)
class DefinesCost:
    """Cost of the best mapping of a layer."""

    problem: PreparedProblem
    energy_pj: float
    words: np.ndarray
    """Number of words, each of the full memory width, that are accessed: array of shape (operands, memory levels, 4).
    The last axis has the directions in the order of `hardware.core.DIRECTIONS`. A partly used word counts as a fraction
    of a word.
    """
    total_cycles: float
    stall_cycles: float
    onloading_cycles: float
    offloading_cycles: float


def least_energy(batches: Iterable[OrderBatch]) -> DefinesCost | None:
    """Cost of the loop order with the least energy; None if no loop order fits."""
    best: DefinesCost | None = None
    run = native_function(find_least_energy, RECORDS)
    for batch in batches:
        problem = batch.problem
        found = new_record(FOUND_DTYPE)
        found.row = -1
        dimensions = [problem.dimensions.index(d) for d, _ in batch.loops]
        block = write_block(thread_block(), dimensions, [size for _, size in batch.loops], batch.orders)
        run(problem.arrays, new_workspace(), block, found, len(batch.orders))
        if found.row >= 0 and (best is None or found.energy_pj < best.energy_pj):
            best = DefinesCost(
                problem,
                float(found.energy_pj),
                found.words.copy(),
                float(found.total_cycles),
                float(found.stall_cycles),
                float(found.onloading_cycles),
                float(found.offloading_cycles),
            )
    return best
