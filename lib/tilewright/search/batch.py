"""A stream of loop orders for one problem: the only way into the compiled kernel, for one order or for millions."""

from collections.abc import Sequence

import numpy as np

from tilewright.compiled import native_function
from tilewright.cost.problem import MAX_LOOPS, PROBLEM_DTYPE, Problem, new_record
from tilewright.cost.workspace import WORKSPACE_DTYPE, Workspace, new_workspace
from tilewright.errors import MappingError
from tilewright.search.loma_kernel import STREAM_DTYPE, search_block

NO_PATTERN = np.zeros(0, np.int64)


def new_stream(
    dimension: Sequence[int],
    size: Sequence[int],
    first_order: Sequence[int],
    objective: int = 0,
    pattern: tuple[np.ndarray, np.ndarray] = (NO_PATTERN, NO_PATTERN),
) -> np.record:
    """A stream over the orders of loops given by symbol, from `first_order` (symbols, innermost first) on.

    `objective` is an index into OBJECTIVES; `pattern` (dimension, size) is what orders must match.
    Raises MappingError for more than MAX_LOOPS loops.
    """
    for length in (len(first_order), len(pattern[0])):
        if length > MAX_LOOPS:
            raise MappingError(f"an order of {length} temporal loops, at most {MAX_LOOPS} are possible")
    stream = new_record(STREAM_DTYPE)
    stream.objective = objective
    stream.length, stream.pattern_length = len(first_order), len(pattern[0])
    stream.symbol_dimension[: len(dimension)], stream.symbol_size[: len(size)] = dimension, size
    stream.order[: len(first_order)] = first_order
    stream.pattern_dimension[: len(pattern[0])], stream.pattern_size[: len(pattern[1])] = pattern
    stream.closest_ratio = np.inf
    return stream


def run_stream(problem: Problem, workspace: Workspace, stream: np.record, count: int) -> None:
    """Evaluate the next `count` orders; `workspace` then holds the breakdown of the last one."""
    native_function(search_block, (PROBLEM_DTYPE, WORKSPACE_DTYPE, STREAM_DTYPE))(problem, workspace, stream, count)


__all__ = ["new_stream", "new_workspace", "run_stream"]
