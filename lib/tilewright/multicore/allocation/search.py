"""Search over allocations: a genetic algorithm (NSGA-II), or exhaustive evaluation of small spaces.

Latency and energy are minimised together. The Pareto front covers all evaluations. The objective chooses one point of
the front. No allocation is evaluated twice. If a child is equal to an evaluated allocation, another child is drawn.
After some attempts, the mutation becomes stronger.

Non-dominated sorting, crowding distances and selection of survivors come from DEAP (K. Deb, A. Pratap, S. Agarwal, T.
Meyarivan, "A fast and elitist multiobjective genetic algorithm: NSGA-II", IEEE Trans. Evolutionary Computation 6(2),
2002). Tournament, crossover and mutation are implemented here, because the functions of DEAP use the global random
number generator of the process. Two searches at the same time would then disturb each other.

At most half of the first population are warm starts: allocations that are often good.
"""

import itertools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from deap import base, tools

from tilewright.multicore.allocation.evaluate import EVERYTHING, GENERATIONS, INTERRUPTED, Evaluator, Judge
from tilewright.multicore.allocation.neighbourhood import Neighbourhood
from tilewright.multicore.allocation.options import AllocationOptions
from tilewright.multicore.allocation.result import (
    AllocationResult,
    Evaluation,
    GenerationRow,
    SearchProgress,
    choose,
    pareto_front,
    ranked,
)
from tilewright.multicore.allocation.space import AllocationSpace, Genome
from tilewright.multicore.scheduling.options import ScheduleOptions
from tilewright.multicore.scheduling.problem import Integers, SchedulingProblem
from tilewright.multicore.scheduling.simulate import Scheduler


def warm_starts(space: AllocationSpace) -> tuple[Genome, ...]:
    """Distinct warm starts, the most promising first. A warm start chooses cores for the parts of the network in one of
    these ways:

    * Each part runs on its fastest core.
    * Each part runs on the core with the least energy.
    * Each part runs on the core on which it would end first.
    * Parts with the same set of fastest cores are assigned to these cores round-robin.
    * Layers, instead of parts, are assigned round-robin: all parts of one layer that have the same set of fastest cores
      get the same core.
    * One start for each core: every part that the core can run gets this core, and every other part gets its fastest
      core.
    """
    cores = sorted({core for choice in space.choices for core in choice})
    starts = [
        [_fastest(space, part) for part in range(len(space.parts))],
        [_least_energy(space, part) for part in range(len(space.parts))],
        _balanced(space),
        _in_turn(space, lambda part: part),
        _in_turn(space, lambda part: space.parts[part][0]),
        *(on_one_core(space, core) for core in cores),
    ]
    return tuple(dict.fromkeys(space.genome(start) for start in starts))


def _fastest(space: AllocationSpace, part: int) -> int:
    return min(space.choices[part], key=lambda core: (space.runtime_cycles[part, core], core))


def _least_energy(space: AllocationSpace, part: int) -> int:
    return min(space.choices[part], key=lambda core: (space.on_core_energy_pj[part, core], core))


def on_one_core(space: AllocationSpace, core: int) -> list[int]:
    """Core of each part: `core` if it is allowed for the part, else the fastest core of the part."""
    return [core if core in choices else _fastest(space, part) for part, choices in enumerate(space.choices)]


def _balanced(space: AllocationSpace) -> list[int]:
    """List with the core of each part of the network. Parts get their cores one by one, layer by layer. Each part gets
    the core on which it would end first if cores ran their parts one after another without waiting.
    """
    load = dict.fromkeys(range(space.runtime_cycles.shape[1]), 0)
    cores = []
    for part, choices in enumerate(space.choices):
        core = min(choices, key=lambda core: (load[core] + int(space.runtime_cycles[part, core]), core))
        load[core] += int(space.runtime_cycles[part, core])
        cores.append(core)
    return cores


def _in_turn(space: AllocationSpace, unit: Callable[[int], int]) -> list[int]:
    """List with the core of each part of the network. `unit` maps a part to its unit, such as its layer.

    Parts with the same set of fastest cores are assigned to these cores round-robin, unit by unit: the parts of the
    first unit get the first core, the parts of the next unit get the next core, and so on.
    """
    return list(_turns(space, unit))


def _turns(space: AllocationSpace, unit: Callable[[int], int]) -> Iterator[int]:
    turn_of: dict[tuple[tuple[int, ...], int], int] = {}
    taken: dict[tuple[int, ...], int] = {}
    for part, choices in enumerate(space.choices):
        least = min(space.runtime_cycles[part, core] for core in choices)
        equal = tuple(core for core in choices if space.runtime_cycles[part, core] == least)
        key = (equal, unit(part))
        if key not in turn_of:
            turn_of[key] = taken.get(equal, 0)
            taken[equal] = turn_of[key] + 1
        yield equal[turn_of[key] % len(equal)]


CROSSOVER_PROBABILITY = 0.9
"""Probability that a child has two parents instead of one."""


class _Fitness(base.Fitness):  # type: ignore[misc] # DEAP has no types
    """Fitness of an individual: latency and energy, both minimised."""

    weights = (-1.0, -1.0)


class Individual:
    """Evaluated genome in the format of DEAP."""

    def __init__(self, point: Evaluation) -> None:
        self.point = point
        self.fitness = _Fitness(point.objectives)


def survivors(population: Sequence[Individual], count: int) -> list[Individual]:
    """Best `count` individuals by non-domination rank, then by crowding distance."""
    if not population:
        return []  # DEAP's sorting fails for an empty population
    chosen: list[Individual] = tools.selNSGA2(list(population), count, nd="log")
    return chosen


def tournament(population: Sequence[Individual], draw: random.Random) -> Individual:
    """Better of two random individuals. An individual that dominates the other is better. If neither dominates, the
    individual with the larger crowding distance is better.
    """
    first, second = draw.choice(population), draw.choice(population)
    if first.fitness.dominates(second.fitness):
        return first
    if second.fitness.dominates(first.fitness):
        return second
    return second if second.fitness.crowding_dist > first.fitness.crowding_dist else first


def uniform_crossover(first: Genome, second: Genome, draw: random.Random) -> Genome:
    """Child of two parents. Each gene comes from either parent with equal probability."""
    return tuple(ours if draw.random() < 0.5 else other for ours, other in zip(first, second, strict=True))


def mutate(genome: Genome, choices: Sequence[Sequence[int]], rate: float, draw: random.Random) -> Genome:
    """Copy of a genome in which each gene changes to another allowed core with probability `rate` / (number of
    genes).
    """
    probability = rate / len(genome)
    return tuple(
        draw.choice([other for other in choices[gene] if other != core]) if draw.random() < probability else core
        for gene, core in enumerate(genome)
    )


def random_genome(choices: Sequence[Sequence[int]], draw: random.Random) -> Genome:
    """Genome with each gene drawn uniformly from the allowed cores of its part."""
    return tuple(draw.choice(cores) for cores in choices)


Progress = Callable[[SearchProgress], None]
LOCAL_SHARE = 0.75
"""Share of a generation's children that are neighbours of the allocation with the best objective value. Crossover and
mutation make the other children.

NSGA-II spreads its population over the whole Pareto front. With the neighbours, the search also reaches a local optimum
of the objective.
"""
TRIES_A_STRENGTH = 4
"""Number of failed attempts after which mutation becomes stronger. After each series of this many failed attempts to
make a new child, mutation changes one more gene on average. An attempt fails if the child was evaluated before, or if
the generation already has it.
"""
TRIES = 200
"""Largest number of attempts to make one new child. An attempt fails if the child was evaluated before, or if the
generation already has it. If all attempts fail, the generation has one child fewer.
"""


def schedule_judge(problem: SchedulingProblem, options: ScheduleOptions | None = None) -> Judge:
    """Function that evaluates allocations of `problem` with the compiled scheduler."""
    scheduler = Scheduler(problem, replace(options or ScheduleOptions(), record=False))

    def judge(allocation: Integers) -> tuple[int, float]:
        schedule = scheduler(allocation)
        return schedule.latency_cycles, schedule.energy_pj

    return judge


def search_allocation(
    space: AllocationSpace,
    judge: Judge,
    options: AllocationOptions | None = None,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> AllocationResult:
    """Best allocation of `space` that the search finds. `judge` evaluates an allocation (see `schedule_judge`).

    All allocations are evaluated if their number is at most the number of planned evaluations, or if the option
    `exhaustive_nodes` allows this. `progress` is called after every evaluation, in the calling thread. The result does
    not depend on the number of threads. If the time budget or Ctrl-C ends the search early, the result is the best
    allocation so far. Raises MappingError if no evaluated allocation has a schedule, and KeyboardInterrupt for Ctrl-C
    before the first schedule.
    """
    options = options or AllocationOptions()
    with Evaluator(space, judge, options.job_count, options.ga_time_budget_s, clock) as evaluator:
        search = GeneticSearch(space, options, evaluator, progress)
        try:
            search.run()
        except KeyboardInterrupt:
            evaluator.stopped_by = INTERRUPTED
        evaluator.require_points()
        return search.result()


class GeneticSearch:
    """State of one genetic or exhaustive search for an allocation."""

    def __init__(
        self, space: AllocationSpace, options: AllocationOptions, evaluator: Evaluator, progress: Progress | None
    ) -> None:
        self.space = space
        self.options = options
        self.evaluator = evaluator
        self.draw = random.Random(options.seed)
        self.rows: list[GenerationRow] = []
        self._recorded = 0  # number of evaluated points that the rows cover
        self.best: Evaluation | None = None
        self.neighbourhood = Neighbourhood(space.gene_choices)
        self._noted_points = self._noted_infeasible = 0
        self.evaluates_all = options.evaluates_all(space.size, len(space.part_of_cn))
        self.planned = space.size if self.evaluates_all else options.planned_evaluations
        self.progress = progress
        evaluator.on_result = self._report

    def run(self) -> None:
        """Evaluate allocations until all planned evaluations are made or the evaluator stops."""
        if self.evaluates_all:
            self._evaluate_all()
        else:
            self._evolve()

    def result(self) -> AllocationResult:
        """Result of the search; at least one allocation must have a schedule."""
        points = list(self.evaluator.points.values())
        complete = EVERYTHING if self.evaluator.count == self.space.size else GENERATIONS
        return AllocationResult(
            space=self.space,
            objective=self.options.objective,
            options=self.options.stated(),
            chosen=choose(points, self.options.objective),
            front=pareto_front(points),
            generations=tuple(self.rows),
            evaluations=self.evaluator.count,
            infeasible=dict(self.evaluator.infeasible),
            stopped_by=self.evaluator.stopped_by or complete,
        )

    def _evaluate_all(self) -> None:
        """Evaluate every allocation, the warm starts first, in batches as large as a generation."""
        every = itertools.chain(warm_starts(self.space), itertools.product(*self.space.gene_choices))
        for batch in _batches(_distinct(every), self.options.nb_ga_individuals):
            if self.evaluator.stopped_by:
                return
            self._record(self._evaluated(batch), len(self.rows))

    def _evolve(self) -> None:
        """Run the genetic algorithm."""
        count = self.options.nb_ga_individuals
        population = survivors(self._evaluated(self._first_population()), count)
        self._record(population, 0)
        for generation in range(1, self.options.nb_ga_generations + 1):
            if self.evaluator.stopped_by:
                return
            children = self._children(population)
            population = survivors([*population, *self._evaluated(children)], count)
            self._record(population, generation)

    def _evaluated(self, genomes: Sequence[Genome]) -> list[Individual]:
        """Individuals made from the genomes that have a schedule. Genomes without a schedule are left out."""
        self.evaluator.evaluate(genomes)
        points = self.evaluator.points
        return [Individual(points[genome]) for genome in genomes if genome in points]

    def _first_population(self) -> list[Genome]:
        """Genomes of the first population: warm starts (at most half of the population) and random genomes."""
        count = self.options.nb_ga_individuals
        genomes = dict.fromkeys(warm_starts(self.space)[: (count + 1) // 2])
        while len(genomes) < count:  # this loop ends, because the space has more allocations than the population
            genomes[random_genome(self.space.gene_choices, self.draw)] = None
        return list(genomes)

    def _children(self, population: Sequence[Individual]) -> list[Genome]:
        """New distinct genomes, at most `nb_ga_individuals`."""
        children = dict.fromkeys(self._neighbours_of_best(int(self.options.nb_ga_individuals * LOCAL_SHARE)))
        for _ in range(self.options.nb_ga_individuals - len(children)):
            for attempt in range(TRIES):
                child = self._child(population, 1 + attempt // TRIES_A_STRENGTH)
                if child not in children and not self.evaluator.is_known(child):
                    children[child] = None
                    break
        return list(children)

    def _neighbours_of_best(self, count: int) -> list[Genome]:
        """New genomes, at most `count`, that differ in one gene from the evaluated genome with the best objective
        value. If this genome has too few new neighbours, neighbours of the next best genomes follow.
        """
        found: dict[Genome, None] = {}
        nearby, evaluator = self.neighbourhood, self.evaluator
        nearby.note(itertools.islice(evaluator.points, self._noted_points, None))
        nearby.note(itertools.islice(evaluator.infeasible, self._noted_infeasible, None))
        self._noted_points, self._noted_infeasible = len(evaluator.points), len(evaluator.infeasible)
        for point in ranked(evaluator.points.values(), self.options.objective):
            steps = nearby.new_steps(point.genome, lambda genome: genome in found or evaluator.is_known(genome))
            self.draw.shuffle(steps)
            new = [nearby.neighbour(point.genome, step) for step in steps[: count - len(found)]]
            nearby.note(new)
            found.update(dict.fromkeys(new))
            if len(found) == count:
                break
        return list(found)

    def _child(self, population: Sequence[Individual], mutated_genes: int) -> Genome:
        """Child of one or two parents. On average, mutation changes `mutated_genes` genes."""
        choices = self.space.gene_choices
        if not population:
            return random_genome(choices, self.draw)
        genome = tournament(population, self.draw).point.genome
        if self.draw.random() < CROSSOVER_PROBABILITY:
            genome = uniform_crossover(genome, tournament(population, self.draw).point.genome, self.draw)
        return mutate(genome, choices, min(mutated_genes, len(choices)), self.draw)

    def _record(self, population: Sequence[Individual], generation: int) -> None:
        """Add a row to the table of generations. The row is left out if no allocation has a schedule yet."""
        points = self.evaluator.points
        kept = [individual.point for individual in population] or list(points.values())
        if not points:
            return
        new = list(itertools.islice(points.values(), self._recorded, None))
        self._recorded = len(points)
        # All points in each row would be a quadratic number: an exhaustive search has a row for each batch.
        last = self.rows[-1:]
        before = last[0].evaluations_so_far if last else 0
        self.rows.append(
            GenerationRow(
                generation=generation,
                evaluations=self.evaluator.count - before,
                evaluations_so_far=self.evaluator.count,
                best_latency_cycles=min(
                    [*(row.best_latency_cycles for row in last), *(point.latency_cycles for point in new)]
                ),
                best_energy_pj=min([*(row.best_energy_pj for row in last), *(point.energy_pj for point in new)]),
                best_edp=min([*(row.best_edp for row in last), *(point.edp for point in new)]),
                mean_latency_cycles=sum(point.latency_cycles for point in kept) / len(kept),
                mean_energy_pj=sum(point.energy_pj for point in kept) / len(kept),
            )
        )

    def _report(self) -> None:
        """Report the progress of the search."""
        if self.progress is None:
            return
        newest = next(reversed(self.evaluator.points.values()), None)
        if newest is not None:
            self.best = newest if self.best is None else choose((self.best, newest), self.options.objective)
        evaluator = self.evaluator
        self.progress(SearchProgress(evaluator.count, self.planned, self.best, evaluator.elapsed_s))


def _distinct(genomes: Iterator[Genome]) -> Iterator[Genome]:
    seen: set[Genome] = set()
    for genome in genomes:
        if genome not in seen:
            seen.add(genome)
            yield genome


def _batches(genomes: Iterator[Genome], size: int) -> Iterator[list[Genome]]:
    while batch := list(itertools.islice(genomes, size)):
        yield batch
