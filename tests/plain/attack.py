"""Attacks on certificates: the package's exact search compared with plain brute force, problem by problem."""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

from tilewright.base.errors import TilewrightError
from tilewright.search.evaluate import PreparedProblem, prepare
from tilewright.search.exact.search import ExactParameters, ExactResult, search_exact
from tilewright.search.exact.tables import truncates_by_order
from tilewright.search.options import SearchOptions

from tests.plain.labels import AllLabels, WrongClaim
from tests.plain.model import PlainModel
from tests.plain.problems import KINDS, Problem, random_problem
from tests.plain.relevancy import Loops
from tests.plain.space import OBJECTIVES, Best, free_best, free_count, greedy_best, greedy_count
from tests.plain.spatial import DoesNotFitError
from tests.plain.switches import SWITCHES

ALLOCATIONS = ("greedy", "free")
LARGEST_SPACES = (100, 400, 400, 1000, 2500)
"""Limits of the number of mappings of a space that brute force tries; each problem draws one of the limits."""
CLOSE = 1e-9
Draw = Callable[[int, tuple[int, int], tuple[str, ...], str], Problem]
"""Function that makes a random problem from a seed, a number of loops, switches and a kind of layer."""


@dataclass(frozen=True)
class Difference:
    """An error that an attack found."""

    seed: int
    model: str
    kind: str
    allocation: str
    objective: str
    what: str
    package: float | None
    plain: float | None
    mapping: str = ""


@dataclass
class Outcome:
    """Counts and differences of attacks."""

    counts: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)

    def add(self, other: "Outcome") -> None:
        """Add the counts and differences of another outcome."""
        self.counts.update(other.counts)
        self.differences += other.differences

    def rows(self) -> list[dict[str, Any]]:
        """The differences as plain data."""
        return [asdict(difference) for difference in self.differences]


def small_problem(
    seed: int, switches: tuple[str, ...] = SWITCHES, draw: Draw = random_problem
) -> tuple[Problem, tuple[str, ...]]:
    """A problem, and its allocations whose spaces are small enough for brute force."""
    rng = random.Random(seed)
    largest, kind, wanted = rng.choice(LARGEST_SPACES), rng.choice(KINDS), rng.choice(("greedy", "free", "free"))
    while True:
        problem = draw(rng.getrandbits(48), (1, 6), switches, kind)
        plain = problem.plain()
        counts = {"greedy": greedy_count(plain), "free": free_count(plain)}
        possible = tuple(allocation for allocation in ALLOCATIONS if counts[allocation] <= largest)
        # Spaces of a few mappings are found often and prove little.
        if wanted in possible and counts[wanted] >= 6:
            return problem, possible


def attack(
    seed: int, switches: tuple[str, ...] = SWITCHES, model: str | None = None, draw: Draw = random_problem
) -> Outcome:
    """Search the problem of a seed in every way, and compare with brute force."""
    outcome = Outcome()
    problem, allocations = small_problem(seed, switches, draw)
    model = model or problem.model
    outcome.counts["problems"] += 1
    outcome.counts[f"kind: {problem.kind}"] += 1
    outcome.counts[f"model: {_family(model)}"] += 1
    try:
        plain = problem.plain(model)
    except DoesNotFitError:
        plain = None
    try:
        prepared = prepare(problem.layer, problem.core, problem.links, problem.unrolling, SearchOptions(model=model))
    except TilewrightError as error:
        outcome.counts[f"refused: {reason(error)}"] += 1
        if plain is not None:
            outcome.differences.append(Difference(seed, model, problem.kind, "", "", f"refused: {error}", None, None))
        return outcome
    if plain is None:
        outcome.differences.append(Difference(seed, model, problem.kind, "", "", "not refused", None, None))
        return outcome
    for allocation in allocations:
        best = greedy_best(plain) if allocation == "greedy" else free_best(plain)
        outcome.counts["mappings costed by brute force"] += best.mappings
        for objective in OBJECTIVES:
            where = (seed, model, problem.kind, allocation, objective)
            outcome.counts[f"searches: {allocation} {objective}"] += 1
            _attack_search(outcome, where, prepared, plain, best)
            _attack_labels(outcome, where, prepared, best)
    return outcome


def _attack_labels(
    outcome: Outcome, where: tuple[int, str, str, str, str], prepared: PreparedProblem, best: Best
) -> None:
    """Compare the search's claims on every label with the costs of its completions."""
    *_, allocation, objective = where
    try:
        labels = AllLabels(prepared, objective, allocation == "free")
    except TilewrightError:
        return  # refused, as the search itself
    if truncates_by_order(prepared.arrays, labels.x):
        outcome.counts["searches that claim no bound"] += 1
        return
    outcome.counts["labels"] += len(labels.energy)
    wrong = [*islice(labels.wrong_merges(), 1), *islice(labels.wrong_bounds(), 1)]
    if allocation == "free":
        wrong += islice(_wrong_orders(labels.least_by_order(), best.by_order[objective]), 1)
    outcome.counts["labels DIFFERENT"] += len(wrong)
    outcome.differences += [Difference(*where, claim.what, claim.claimed, claim.found, claim.where) for claim in wrong]


def _wrong_orders(package: dict[Loops, float], plain: dict[Loops, float]) -> Iterator[WrongClaim]:
    """Orders that the labels cannot reach with the cost of their best boundaries."""
    for order in sorted({*package, *plain}):
        ours, least = package.get(order, math.inf), plain.get(order, math.inf)
        if ours != least and not abs(ours - least) <= CLOSE * least:
            yield WrongClaim("the best boundaries of an order", ours, least, str(order))


def _attack_search(
    outcome: Outcome, where: tuple[int, str, str, str, str], prepared: PreparedProblem, plain: PlainModel, best: Best
) -> None:
    *_, allocation, objective = where
    try:
        result = search_exact(prepared, (), ExactParameters(objective, allocation, 60.0))
    except TilewrightError as error:
        outcome.counts[f"refused: {reason(error)}"] += 1
        return
    compare_verdict(outcome, where, result, plain, best)


def compare_verdict(
    outcome: Outcome,
    where: tuple[int, str, str, str, str],
    result: ExactResult | None,
    plain: PlainModel,
    best: Best,
    place: str = "",
) -> None:
    """Compare the result and claims of a search with the `best` of brute force.

    `plain` is the model of the spatial mapping that the search found; `place` is the number of this mapping.
    """
    *_, objective = where
    least = best.value(objective)
    if result is None:
        outcome.counts["no mapping fits" if least == math.inf else "DIFFERENT"] += 1
        if least < math.inf:
            outcome.differences.append(Difference(*where, "nothing found", None, least, _text(best, objective)))
        return
    outcome.counts["proven" if result.is_proven else "not proven"] += 1
    found: list[tuple[str, float | None]] = []
    if least == math.inf:
        found.append(("nothing fits", None))
    elif not result.value >= least * (1 - CLOSE):
        found.append(("better than the optimum", least))
    elif result.is_proven and not result.value <= least * (1 + CLOSE):
        found.append(("proven, and a better one exists", least))
    elif not result.lower_bound <= least * (1 + CLOSE):
        found.append(("a better one than the bound exists", least))
    value = plain_value(plain, result, objective)
    if value is None or abs(value - result.value) > CLOSE * abs(result.value):
        found.append(("the mapping costs something else", value))
    outcome.counts["equal" if not found else "DIFFERENT"] += 1
    for what, expected in found:
        text = f"{place}{result.order} {result.boundaries}; best: {_text(best, objective)}"
        outcome.differences.append(Difference(*where, what, result.value, expected, text))


def plain_value(plain: PlainModel, result: ExactResult, objective: str) -> float | None:
    """The plain model's value of the mapping found; None if it does not fit."""
    boundaries = None
    if result.boundaries is not None:
        given = zip(plain.operands, result.boundaries, strict=True)
        boundaries = {o: tuple(int(bound) for bound in bounds) for o, bounds in given}
    try:
        cost = plain.cost(result.order, boundaries)
    except DoesNotFitError:
        return None
    latency = float(cost.latency_cycles)
    return {"latency": latency, "energy": cost.energy_pj, "EDP": cost.energy_pj * latency}[objective]


def _text(best: Best, objective: str) -> str:
    found = best.found.get(objective)
    return "" if found is None else f"{found.order} {found.boundaries}"


def _family(model: str) -> str:
    return model if model in ("corrected", "zigzag-3.9.1") else "random switches"


def reason(error: Exception) -> str:
    """The message of a refusal without its numbers."""
    return "".join("#" if sign.isdigit() else sign for sign in str(error))[:90]
