"""Blocks of loop orders, and the functions that run the compiled cost kernel on one order or many.

All other code uses the kernel through this module.
"""

import threading
from collections.abc import Sequence

import numpy as np

from tilewright.base.compiled import native_function
from tilewright.base.errors import MappingError
from tilewright.cost.problem import MAX_LEVELS, MAX_LOOPS, MAX_OPERANDS, PROBLEM_DTYPE, Problem, new_record
from tilewright.cost.workspace import WORKSPACE_DTYPE, Workspace
from tilewright.search.loma_kernel import BLOCK_DTYPE, BOUNDARIES, cost_block

RECORDS = (PROBLEM_DTYPE, WORKSPACE_DTYPE, BLOCK_DTYPE)
"""Types of the records that the compiled function `cost_block` takes as arguments."""
_of_thread = threading.local()


def check_length(length: int) -> None:
    """Raise MappingError if there are more loops than the kernel has room for."""
    if length > MAX_LOOPS:
        raise MappingError(f"an order has {length} temporal loops; at most {MAX_LOOPS} are possible")


def thread_block() -> np.record:
    """Block of this thread, with arbitrary content.

    The block is reused, because making a new block takes longer than computing the cost of fifty orders. The content of
    the block is valid until the next call of a function that uses this block. Callers must not keep the block.
    """
    if not hasattr(_of_thread, "block"):
        _of_thread.block = new_record(BLOCK_DTYPE)
    block: np.record = _of_thread.block
    return block


def write_block(
    block: np.record,
    dimension: Sequence[int],
    size: Sequence[int],
    orders: np.ndarray,
    boundaries: np.ndarray | None = None,
) -> np.record:
    """Write `orders` into `block`. `orders` [order, position] has indexes of loops. Loop i has the dimension
    `dimension[i]` and the size `size[i]`.

    `boundaries` [order, operand, level] has the number of loops in each memory level and in all levels below it.
    Without boundaries, the kernel allocates loops to memories.
    """
    rows, length = orders.shape
    check_length(length)
    if len(size) > MAX_LOOPS:
        raise MappingError(f"a batch of orders has {len(size)} different loops; at most {MAX_LOOPS} are possible")
    block.length = length
    block.loop_dimension[: len(dimension)], block.loop_size[: len(size)] = dimension, size
    block.orders[: rows * length] = orders.ravel()
    block.bounded = boundaries is not None
    if boundaries is not None:
        places = block.boundaries[: rows * BOUNDARIES].reshape(rows, MAX_OPERANDS, MAX_LEVELS)
        places[:, : boundaries.shape[1], : boundaries.shape[2]] = np.clip(boundaries, -1, MAX_LOOPS + 1)
    block.fitting = 0
    block.closest_ratio = np.inf
    return block


def cost_rows(problem: Problem, workspace: Workspace, block: np.record, count: int) -> None:
    """Compute the costs of the first `count` orders of `block`. `workspace` then holds the breakdown of the last of
    these orders."""
    native_function(cost_block, RECORDS)(problem, workspace, block, count)
