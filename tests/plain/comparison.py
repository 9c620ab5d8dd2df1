"""The package's evaluation of random mappings, compared with the plain model in every common figure."""

import math
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tilewright.base.errors import MappingError
from tilewright.cost.record import record_row
from tilewright.search.evaluate import PreparedProblem, evaluate_prepared, prepare
from tilewright.search.options import SearchOptions

from tests.plain.allocation import Boundaries
from tests.plain.model import Cost, PlainModel
from tests.plain.problems import Problem, random_problem, tightened
from tests.plain.relevancy import Loops
from tests.plain.space import merged_loops
from tests.plain.spatial import DoesNotFitError
from tests.plain.switches import SWITCHES


@dataclass(frozen=True)
class Comparison:
    """A mapping with both evaluations; None if one refuses it."""

    seed: int
    problem: Problem
    order: Loops
    boundaries: Boundaries | None
    cost: Cost | None
    record: dict[str, Any] | None

    @property
    def differences(self) -> list[str]:
        """The differences, as texts."""
        if self.cost is None or self.record is None:
            if (self.cost is None) == (self.record is None):
                return []
            return ["refused by the package alone" if self.record is None else "refused by the plain model alone"]
        return list(_figures(self.problem, self.cost, self.record))


def _same(a: Any, b: Any) -> bool:
    return math.isclose(float(a), float(b), rel_tol=1e-9, abs_tol=1e-9)


def _figures(problem: Problem, cost: Cost, record: dict[str, Any]) -> Iterator[str]:
    pairs = {"energy_pj": (cost.energy_pj, record["energy_pj"])}
    pairs["latency_cycles"] = (cost.latency_cycles, record["latency_cycles"])
    pairs |= {name: (value, record["latency_breakdown_cycles"][name]) for name, value in cost.parts.items()}
    for name, (mine, theirs) in pairs.items():
        if not _same(mine, theirs):
            yield f"{name}: plain {float(mine)}, package {theirs}"
    if cost.words != record["word_accesses"]:
        yield f"words: plain {cost.words}, package {record['word_accesses']}"
    levels = {o: [[list(x) for x in loops] for loops in levels] for o, levels in cost.temporal_mapping.items()}
    if levels != record["temporal_mapping"]:
        yield f"levels: plain {levels}, package {record['temporal_mapping']}"
    memories = problem.core.memories
    for port in record["ports"]:
        k = next(k for k, memory in enumerate(memories) if memory.name == port["memory"])
        p = next(p for p, entry in enumerate(memories[k].ports) if entry.name == port["port"])
        served = cost.transfers.get((k, p), {})
        mine = {name: (x.real, x.period, x.count) for name, x in served.items()}
        theirs = {
            (x["operand"], x["level"], x["direction"]): (x["real_cycles"], x["period_cycles"], x["period_count"])
            for x in port["activities"]
        }
        if mine != theirs:
            yield f"transfers of {port['memory']} {port['port']}: plain {mine}, package {theirs}"
        if cost.port_stalls.get((k, p), 0) != port["stall_slack_cycles"]:
            stall = cost.port_stalls.get((k, p), 0)
            yield f"stall of {port['memory']} {port['port']}: plain {stall}, package {port['stall_slack_cycles']}"
    for o, shares in cost.utilization.items():
        for m, share in enumerate(shares):
            if not _same(share, record["memory_utilization_individual"][o][m]):
                theirs = record["memory_utilization_individual"][o][m]
                yield f"utilisation of {o} {m}: plain {float(share)}, package {theirs}"


def comparisons(seed: int, switches: tuple[str, ...] = SWITCHES, mappings: int = 3) -> Iterator[Comparison]:
    """Comparisons of random mappings of a seed's problem.

    Mappings are allocated greedily, or have random boundaries, often in memories with just the room needed.
    """
    problem = random_problem(seed, switches=switches)
    rng = random.Random(seed + 1)
    plain = problem.plain()
    prepared = _prepared(problem)
    loops = list(merged_loops(plain.temporal_sizes, rng.choice((None, 3, 4))))
    for _ in range(mappings):
        rng.shuffle(loops)
        order = tuple(loops)
        boundaries: Boundaries | None = None
        if rng.random() < 0.6:
            most = rng.choice((len(loops), len(loops), 2))
            boundaries = {
                o: (*sorted(rng.randint(0, min(most, len(loops))) for _ in chain[1:]), len(loops))
                for o, chain in plain.chains.items()
            }
            if rng.random() < 0.7:
                with suppress(DoesNotFitError):
                    problem = tightened(rng, problem, plain, order, boundaries)
                plain, prepared = problem.plain(), _prepared(problem)
        yield compare(seed, problem, plain, prepared, order, boundaries)


def _prepared(problem: Problem) -> PreparedProblem:
    return prepare(problem.layer, problem.core, problem.links, problem.unrolling, SearchOptions(model=problem.model))


def compare(
    seed: int,
    problem: Problem,
    plain: PlainModel,
    prepared: PreparedProblem,
    order: Loops,
    boundaries: Boundaries | None,
) -> Comparison:
    """The comparison of one mapping."""
    cost, record = None, None
    with suppress(DoesNotFitError):
        cost = plain.cost(order, boundaries)
    given = None if boundaries is None else tuple(boundaries[o] for o in plain.operands)
    with suppress(MappingError):
        record = record_row(evaluate_prepared(prepared, order, given))
    return Comparison(seed, problem, order, boundaries, cost, record)
