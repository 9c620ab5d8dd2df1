"""An allocation of one's own: the parts of layers in turn over the cores that can run them."""

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.pipeline.stages import CoreAllocation, MultiCoreProblem


@dataclass(frozen=True)
class RoundRobin(CoreAllocation):
    """Assigns parts of layers to their allowed cores in turn. Each allocation begins the turns with another core."""

    starts: int = 0
    """Number of allocations; each of them begins with another core. 0: one allocation for each core."""

    def allocations(self, problem: MultiCoreProblem) -> Iterator[tuple[int, ...]]:
        """Allocations, one for each core with which the turns begin."""
        choices = problem.space.gene_choices  # for each part that may run on several cores, these cores
        cores = sorted({core for of_part in choices for core in of_part})
        for start in range(self.starts or len(cores) or 1):
            turn, allocation = start, []
            for of_part in choices:
                while cores[turn % len(cores)] not in of_part:
                    turn += 1
                allocation.append(cores[turn % len(cores)])
                turn += 1
            yield tuple(allocation)
