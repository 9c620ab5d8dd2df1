"""An allocation of one's own: the parts of layers in turn over the cores that can run them."""

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.pipeline.stages import CoreAllocation, MultiCoreProblem


@dataclass(frozen=True)
class RoundRobin(CoreAllocation):
    """Gives the parts of layers in turn to the cores that may run them, from every core that there is to begin with."""

    starts: int = 0
    """Cores to begin with that are tried; 0: all."""

    def allocations(self, problem: MultiCoreProblem) -> Iterator[tuple[int, ...]]:
        """One allocation for each core to begin with."""
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
