"""Evaluated allocations, their Pareto front, and the rule by which one of them is chosen."""

from collections.abc import Iterable
from dataclasses import dataclass

from tilewright.allocation.space import Genome
from tilewright.objectives import OBJECTIVES


@dataclass(frozen=True)
class Evaluation:
    """An allocation and what its schedule costs."""

    genome: Genome
    latency_cycles: int
    energy_pj: float

    @property
    def edp(self) -> float:
        """Energy-delay product in pJ · cycles."""
        return self.energy_pj * self.latency_cycles

    @property
    def objectives(self) -> tuple[int, float]:
        """(latency, energy) as they are compared.

        Energy is taken to 12 significant digits: sums of the same parts in another order are no different energy.
        """
        return self.latency_cycles, float(f"{self.energy_pj:.12g}")


_Rank = tuple[float, int, float, Genome]


def _rank(point: Evaluation, objective: str) -> _Rank:
    latency, energy = point.objectives
    value = OBJECTIVES[objective].value(energy, latency)
    return (float(f"{value:.12g}"), latency, energy, point.genome)


def ranked(points: Iterable[Evaluation], objective: str) -> list[Evaluation]:
    """Points by `objective`, best first, ties as in `choose`."""
    return sorted(points, key=lambda point: _rank(point, objective))


def choose(points: Iterable[Evaluation], objective: str) -> Evaluation:
    """The best point by `objective`.

    Ties: least latency, then least energy, then the smallest genome (core numbers, first part first), so that the
    choice does not depend on the order in which allocations were evaluated.
    """
    return min(points, key=lambda point: _rank(point, objective))


def pareto_front(points: Iterable[Evaluation]) -> tuple[Evaluation, ...]:
    """Points that no other beats in latency or energy without losing in the other, by rising latency.

    Of points with equal latency and energy the one with the smallest genome stands for all.
    """
    front: list[Evaluation] = []
    for point in ranked(points, "latency"):
        if not front or point.objectives[1] < front[-1].objectives[1]:
            front.append(point)
    return tuple(front)
