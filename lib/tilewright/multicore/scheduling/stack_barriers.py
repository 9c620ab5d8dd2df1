"""Stacks as barriers: no CN of a stack starts before all CNs of the earlier stacks have ended.

The effect is the same as if every CN of a stack were a predecessor of every CN of the next stack. Because these would
be too many edges, the scheduler counts the CNs of a stack that have not ended.
"""

from dataclasses import dataclass

import numpy as np

from tilewright.base.errors import InputError, Problem
from tilewright.multicore.scheduling.problem import Integers, SchedulingProblem


@dataclass(frozen=True, eq=False)
class StackBarriers:
    """Stacks of a problem; each stack waits for the end of the stacks before it."""

    of_cn: Integers
    """[cn] Number of the stack of the CN, from 0 without gaps"""

    @property
    def sizes(self) -> Integers:
        """[stack] Number of CNs"""
        return np.bincount(self.of_cn)

    def lists(self) -> dict[str, Integers]:
        """Arrays for the compiled scheduler, by name of the field in `INPUTS`."""
        start = np.concatenate(([0], np.cumsum(self.sizes)))
        return {"stack": self.of_cn, "stack_start": start, "stack_cn": np.argsort(self.of_cn, kind="stable")}


def stack_barriers(problem: SchedulingProblem) -> StackBarriers:
    """The stacks of a problem. Raises InputError if a CN needs data of a CN in a later stack, or waits for the end of
    such a CN.
    """
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
