"""What makes the next generation: selection by NSGA-II, tournaments, crossover and mutation.

Non-dominated sorting, crowding distances and the survival of the best are DEAP's (K. Deb, A. Pratap, S. Agarwal,
T. Meyarivan, "A fast and elitist multiobjective genetic algorithm: NSGA-II", IEEE Trans. Evolutionary Computation 6(2),
2002). Tournament, crossover and mutation are a few lines here, since DEAP's draw from the random numbers of the whole
process: two searches at once would disturb each other.
"""

import random
from collections.abc import Iterator, Sequence

from deap import base, tools

from tilewright.allocation.point import Evaluation
from tilewright.allocation.space import Genome

CROSSOVER_PROBABILITY = 0.9
"""Of a child having two parents."""


class _Fitness(base.Fitness):  # type: ignore[misc] # DEAP has no types
    """Latency and energy, both minimised."""

    weights = (-1.0, -1.0)


class Individual:
    """An evaluated genome as DEAP takes it."""

    def __init__(self, point: Evaluation) -> None:
        self.point = point
        self.fitness = _Fitness(point.objectives)


def survivors(population: Sequence[Individual], count: int) -> list[Individual]:
    """The `count` best by rank of non-domination, then by crowding distance."""
    if not population:
        return []  # the library's sorting takes none
    chosen: list[Individual] = tools.selNSGA2(list(population), count, nd="log")
    return chosen


def tournament(population: Sequence[Individual], draw: random.Random) -> Individual:
    """The better of two drawn at random: the one that dominates, else the one in the less crowded place."""
    first, second = draw.choice(population), draw.choice(population)
    if first.fitness.dominates(second.fitness):
        return first
    if second.fitness.dominates(first.fitness):
        return second
    return second if second.fitness.crowding_dist > first.fitness.crowding_dist else first


def uniform_crossover(first: Genome, second: Genome, draw: random.Random) -> Genome:
    """Each gene from either parent with equal probability; a gene's core stays one that its part may run on."""
    return tuple(ours if draw.random() < 0.5 else other for ours, other in zip(first, second, strict=True))


def mutate(genome: Genome, choices: Sequence[Sequence[int]], rate: float, draw: random.Random) -> Genome:
    """Each gene becomes another core that its part may run on with probability `rate / genes`."""
    probability = rate / len(genome)
    return tuple(
        draw.choice([other for other in choices[gene] if other != core]) if draw.random() < probability else core
        for gene, core in enumerate(genome)
    )


def neighbours(genome: Genome, choices: Sequence[Sequence[int]]) -> Iterator[Genome]:
    """Every genome that differs in one gene."""
    for gene, cores in enumerate(choices):
        for core in cores:
            if core != genome[gene]:
                yield (*genome[:gene], core, *genome[gene + 1 :])


def random_genome(choices: Sequence[Sequence[int]], draw: random.Random) -> Genome:
    """Each gene by equal probability over the cores that its part may run on."""
    return tuple(draw.choice(cores) for cores in choices)
