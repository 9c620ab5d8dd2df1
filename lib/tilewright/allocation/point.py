"""Evaluated allocations, their Pareto front, and the rule by which one of them is chosen."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tilewright.allocation.space import Genome


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


def _by_latency(point: Evaluation) -> _Rank:
    latency, energy = point.objectives
    return (0.0, latency, energy, point.genome)


def _by_energy(point: Evaluation) -> _Rank:
    latency, energy = point.objectives
    return (energy, latency, energy, point.genome)


def _by_edp(point: Evaluation) -> _Rank:
    latency, energy = point.objectives
    return (float(f"{latency * energy:.12g}"), latency, energy, point.genome)


_RANKS: dict[str, Callable[[Evaluation], _Rank]] = {"latency": _by_latency, "energy": _by_energy, "EDP": _by_edp}


def ranked(points: Iterable[Evaluation], objective: str) -> list[Evaluation]:
    """Points by `objective`, best first, ties as in `choose`."""
    return sorted(points, key=_RANKS[objective])


def choose(points: Iterable[Evaluation], objective: str) -> Evaluation:
    """The best point by `objective` (latency, energy or EDP).

    Ties: least latency, then least energy, then the smallest genome (core numbers, first part first), so that the
    choice does not depend on the order in which allocations were evaluated.
    """
    return min(points, key=_RANKS[objective])


def pareto_front(points: Iterable[Evaluation]) -> tuple[Evaluation, ...]:
    """Points that no other beats in latency or energy without losing in the other, by rising latency.

    Of points with equal latency and energy the one with the smallest genome stands for all.
    """
    front: list[Evaluation] = []
    for point in sorted(points, key=_by_latency):
        if not front or point.objectives[1] < front[-1].objectives[1]:
            front.append(point)
    return tuple(front)
