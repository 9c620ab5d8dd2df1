"""Stacks as barriers: nothing of a stack starts before all of the stacks before it has ended.

It is as if every CN of a stack were a predecessor of every CN of the next one. The scheduler counts instead, since that
would be as many edges as the product of their sizes.
"""

from dataclasses import dataclass

import numpy as np

from tilewright.base.errors import InputError, Problem
from tilewright.multicore.scheduling.problem import Integers, SchedulingProblem


@dataclass(frozen=True, eq=False)
class StackBarriers:
    """The stacks of a problem, each of which waits for those before it."""

    of_cn: Integers
    """[cn] number of its stack, from 0 without gaps"""

    @property
    def sizes(self) -> Integers:
        """[stack] CNs"""
        return np.bincount(self.of_cn)

    def lists(self) -> dict[str, Integers]:
        """What the kernel reads of it, by field of `INPUTS`."""
        start = np.concatenate(([0], np.cumsum(self.sizes)))
        return {"stack": self.of_cn, "stack_start": start, "stack_cn": np.argsort(self.of_cn, kind="stable")}


def stack_barriers(problem: SchedulingProblem) -> StackBarriers:
    """The stacks of a problem. Raises InputError where a stack needs something of a later one."""
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
