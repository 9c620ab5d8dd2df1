"""Stacks as barriers: no CN of a stack starts before all CNs of the earlier stacks have ended.

The effect is the same as edges from every CN of a stack to every CN of the next stack. There would be too many such
edges. Therefore the scheduler counts the CNs of a stack that have not ended.
"""

from dataclasses import dataclass

import numpy as np

from tilewright.base.errors import InputError, Problem
from tilewright.multicore.scheduling.problem import Integers, SchedulingProblem


@dataclass(frozen=True, eq=False)
class StackBarriers:
    """Stacks of a problem. Each stack waits for the end of the previous stacks."""

    of_cn: Integers
    """[cn] Number of the stack of the CN, from 0 without gaps"""

    @property
    def sizes(self) -> Integers:
        """[stack] Number of CNs"""
        return np.bincount(self.of_cn)

    def lists(self) -> dict[str, Integers]:
        """Arrays for the compiled scheduler, by field name in `INPUTS`."""
        start = np.concatenate(([0], np.cumsum(self.sizes)))
        return {"stack": self.of_cn, "stack_start": start, "stack_cn": np.argsort(self.of_cn, kind="stable")}


def stack_barriers(problem: SchedulingProblem) -> StackBarriers:
    """Stacks of a problem as barriers. Raises InputError if a CN depends on a CN in a later stack."""
    graph = problem.graph
    first, successor = problem.edges
    source = np.repeat(np.arange(graph.node_count), np.diff(first))
    wrong = np.flatnonzero(graph.stack[source] > graph.stack[successor])
    if len(wrong):
        needed, needing = graph.layer[source[wrong[0]]], graph.layer[successor[wrong[0]]]
        message = f"layer {needing} needs layer {needed}, which is in a later stack"
        raise InputError(
            [Problem(message, path="stack_order", value="barrier", allowed="priority, or barrier with other stacks")]
        )
    return StackBarriers(np.unique(graph.stack, return_inverse=True)[1].astype(np.int64))
