"""Stacks as barriers: no CN of a stack starts before all CNs of the earlier stacks have ended.

Edges from every CN of a stack to every CN of the next stack would have the same effect. However, there would be too
many edges. Instead, the scheduler counts, for each stack, the CNs that have not started. When this count is 0, the end
of the stack is known, and the scheduler lets the CNs of the next stack start from this end.
"""

from dataclasses import dataclass

import numpy as np

from tilewright.base.errors import InputError, Problem
from tilewright.multicore.scheduling.problem import Integers, SchedulingProblem


@dataclass(frozen=True, eq=False)
class StackBarriers:
    """Stacks of a problem. Each stack waits for the end of the previous stacks."""

    of_cn: Integers
    """Number of the CN's stack (one entry for each CN). The numbers begin at 0 and have no gaps"""

    @property
    def sizes(self) -> Integers:
        """Number of CNs (one entry for each stack)"""
        return np.bincount(self.of_cn)

    def lists(self) -> dict[str, Integers]:
        """Arrays that the compiled scheduler takes, by field name in `INPUTS`."""
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
            [Problem(message, path="stack_order", value="barrier", allowed="priority; or barrier with changed stacks")]
        )
    return StackBarriers(np.unique(graph.stack, return_inverse=True)[1].astype(np.int64))
