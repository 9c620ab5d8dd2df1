"""Claims of the exact search on its labels, checked for every label of a small problem.

The search drops a label if its bound says that no completion wins. It keeps one of two labels that agree in all that
can still matter (docs/proofs/exact-search.md, 3 to 5).

Here all labels are kept, and the cost model costs every completion of each. Two claims are compared with these costs.
Labels called equal fit the same completions, with equal latency and equal added energy. No completion costs less than
the bound of its label. A wrong claim is found everywhere, not only where it changes the optimum.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from tilewright.base.compiled import native_function
from tilewright.base.objectives import OBJECTIVES
from tilewright.cost.allocation_kernel import OUTPUT_INDEX
from tilewright.cost.problem import IRRELEVANT, PROBLEM_DTYPE
from tilewright.cost.workspace import WORKSPACE_DTYPE, new_workspace
from tilewright.mapping.temporal import loop_multiset
from tilewright.search.batch import OrderBatch, boundary_shape, cost_orders
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.exact.bounds_kernel import bound_by_parent, bound_child
from tilewright.search.exact.expansion_kernel import begin, close_filled, close_some, finish_child, place_loop
from tilewright.search.exact.labels_kernel import hash_child, load_child, same_as_child, set_keys, store_child
from tilewright.search.exact.lattice_record import EXACT_DTYPE
from tilewright.search.exact.tables import new_search
from tilewright.search.loma_kernel import BATCH_ORDERS

CLOSE = 1e-9
NOT_FITTING = (math.inf, math.inf)
Order = tuple[tuple[str, int], ...]
Step = tuple[tuple[int, ...], int]
"""(levels of each operand closed before a loop, the loop)"""


@dataclass(frozen=True)
class WrongClaim:
    """A wrong claim of the search on a label."""

    what: str
    claimed: float
    found: float
    where: str


@dataclass(frozen=True)
class Leaf:
    """A complete order, with the levels that are closed on the way."""

    order: tuple[int, ...]
    boundaries: tuple[tuple[int, ...], ...] | None
    steps: tuple[Step, ...]
    labels: tuple[int, ...]
    """The label of each prefix of the order, from one loop on."""


class AllLabels:
    """All labels of a problem, without merging or dropping, and all their completions with costs."""

    def __init__(self, prepared: PreparedProblem, objective: str, free: bool) -> None:
        self.problem, self.objective, self.free = prepared.arrays, objective, free
        self.multiset = loop_multiset(prepared.spatial.temporal_sizes, None, ())
        self.workspace = new_workspace()
        search = new_search(prepared, self.multiset, self.workspace, objective, free)
        assert search is not None
        self.x = search
        self._expect(math.inf, math.inf)
        native_function(begin, (PROBLEM_DTYPE, WORKSPACE_DTYPE, EXACT_DTYPE))(self.problem, self.workspace, self.x, 0)
        self.energy, self.placed, self.class_of = [0.0], [0], [0]
        self._alike: dict[int, list[int]] = defaultdict(list)
        self._deepest = boundary_shape(prepared)[1]
        found = bool(self.x.label_count[0]) and self.multiset.length > 0
        self.leaves = list(self._extended(0, (), ())) if found else []
        self.costs = self._costs(prepared)

    def wrong_merges(self) -> Iterator[WrongClaim]:
        """Labels that are called equal although a completion fits only some of them or adds different costs to them."""
        found: dict[tuple[int, tuple[Step, ...]], dict[int, int]] = defaultdict(dict)
        for i, leaf in enumerate(self.leaves):
            for label in leaf.labels:
                found[self.class_of[label], leaf.steps[self.placed[label] :]][label] = i
        size = np.bincount(self.class_of)
        for (number, _), leaves in found.items():
            added = {label: self._added(label, i) for label, i in leaves.items()}
            first = next(iter(added.values()))
            others = [*added.values(), *([NOT_FITTING] if len(leaves) < size[number] else [])]
            for other in others:
                if not _same(first, other):
                    where = "; ".join(self._text(i) for i in list(leaves.values())[:2])
                    place = min(self.placed[label] for label in leaves)
                    yield WrongClaim("labels called one differ", first[1], other[1], f"{place} loops placed: {where}")
                    break

    def _bound(self, labels: tuple[int, ...]) -> float:
        """Bound of the last of these labels; each label extends the previous label and inherits its latency bound."""
        latency = 0.0
        for label in labels:
            load_child(self.problem, self.x, 0, label)
            self.x.child_latency_bound = latency
            bound_by_parent(self.problem, self.x, self.placed[label])
            bound_child(self.problem, self.workspace, self.x)
            latency = float(self.x.child_latency_bound)
        return float(self.x.child_bound)

    def wrong_bounds(self) -> Iterator[WrongClaim]:
        """Yield labels with a bound above the cost of their best completion; the value to beat is not below it."""
        powers = OBJECTIVES[self.objective]
        least: dict[int, tuple[float, int]] = {}
        for i, (leaf, (latency, energy)) in enumerate(zip(self.leaves, self.costs, strict=True)):
            value = powers.value(energy, latency) if energy < math.inf else math.inf
            for label in leaf.labels:
                if value < least.get(label, (math.inf, 0))[0]:
                    least[label] = value, i
        for label, (value, i) in least.items():
            latency, energy = self.costs[i]
            leaf_labels = self.leaves[i].labels
            for worse in (math.inf, 1 + 1e-6):
                self._expect(value * worse if value else worse, energy)
                bound = self._bound(leaf_labels[: leaf_labels.index(label) + 1])
                if bound > value * (1 + CLOSE):
                    yield WrongClaim("a completion costs less than the bound of its label", bound, value, self._text(i))
                    break

    def least_by_order(self) -> dict[Order, float]:
        """Order -> least value, for each order that fits."""
        result: dict[Order, float] = {}
        for leaf, (latency, energy) in zip(self.leaves, self.costs, strict=True):
            if energy < math.inf:
                order = tuple(self.multiset.loops[j][0] for j in leaf.order)
                value = OBJECTIVES[self.objective].value(energy, latency)
                result[order] = min(value, result.get(order, math.inf))
        return result

    def _expect(self, value: float, energy: float) -> None:
        """Set the value and energy of the best known mapping, which a label must beat."""
        self.x.best, self.x.best_energy, self.x.best_latency = value, energy, math.inf

    def _added(self, label: int, i: int) -> tuple[float, float]:
        """(latency, energy minus the energy of the label) of a leaf; the latency is 0 if the objective ignores it."""
        latency, energy = self.costs[i]
        if math.isinf(energy):
            return NOT_FITTING
        return latency if self.x.latency_counts else 0.0, energy - self.energy[label]

    def _extended(self, label: int, steps: tuple[Step, ...], labels: tuple[int, ...]) -> Iterator[Leaf]:
        """Complete mappings that extend the steps of a label, each with its labels."""
        point = int(self.x.label_lattice[0, label])
        for j in range(int(self.x.symbol_count)):
            if self._count(point, j) == int(self.x.multiplicity[j]):
                continue
            for closed in self._closings(label, j):
                load_child(self.problem, self.x, 0, label)
                if self.free:
                    fits = close_some(self.problem, self.x, *(*closed, 0)[:3])
                else:
                    fits = close_filled(self.problem, self.x, j)
                if fits:
                    yield from self._placed(j, (*steps, (closed, j)), labels)

    def _closings(self, label: int, j: int) -> list[tuple[int, ...]]:
        """Numbers of levels of each operand that may be closed before a loop."""
        if not self.free:
            return [()]
        choices: list[tuple[int, ...]] = [()]
        for o in range(int(self.problem.operand_count)):
            most = int(self.problem.level_count[o]) - 1 - int(self.x.label_level[0, label, o])
            if self.problem.kind[o, self.x.loop_dimension[j]] == IRRELEVANT:
                most = 0
            choices = [(*choice, count) for choice in choices for count in range(most + 1)]
        return choices

    def _placed(self, j: int, steps: tuple[Step, ...], labels: tuple[int, ...]) -> Iterator[Leaf]:
        """Complete mappings that extend the given steps by loop j, with their labels."""
        self.x.generation = len(steps) - 1
        place_loop(self.problem, self.x, j)
        if len(steps) == self.multiset.length:
            if finish_child(self.problem, self.x):
                yield Leaf(tuple(loop for _, loop in steps), self._boundaries(steps), steps, labels)
            return
        label = len(self.energy)
        set_keys(self.problem, self.x)
        store_child(self.problem, self.x, 0, label)
        self.energy.append(float(self.x.child_energy))
        self.placed.append(len(steps))
        self.class_of.append(self._class(label))
        yield from self._extended(label, steps, (*labels, label))

    def _class(self, label: int) -> int:
        """The first label that the search calls equal to the child, or the child itself."""
        alike = self._alike[int(hash_child(self.problem, self.x))]
        for other in alike:
            if same_as_child(self.problem, self.x, 0, other):
                return self.class_of[other]
        alike.append(label)
        return label

    def _boundaries(self, steps: tuple[Step, ...]) -> tuple[tuple[int, ...], ...] | None:
        """The boundaries of the complete child in the form that the search reports."""
        if not self.free:
            return None
        result = []
        for o in range(int(self.problem.operand_count)):
            first, count = int(self.x.first_boundary[o]), int(self.problem.level_count[o])
            bounds = [self._loops_below(int(self.x.child_boundary[first + m])) for m in range(count - 1)]
            if o == OUTPUT_INDEX and self.x.wide_final:
                bounds = [self._begun_early(bound, steps) for bound in bounds]
            result.append((*bounds, len(steps), *[0] * (self._deepest - count)))
        return tuple(result)

    def _count(self, point: int, j: int) -> int:
        return point // int(self.x.stride[j]) % (int(self.x.multiplicity[j]) + 1)

    def _loops_below(self, point: int) -> int:
        return sum(self._count(point, j) for j in range(int(self.x.symbol_count)))

    def _begun_early(self, bound: int, steps: tuple[Step, ...]) -> int:
        while bound and self.problem.kind[OUTPUT_INDEX, self.x.loop_dimension[steps[bound - 1][1]]] == IRRELEVANT:
            bound -= 1
        return bound

    def _costs(self, prepared: PreparedProblem) -> list[tuple[float, float]]:
        """(latency, energy) of each leaf."""
        loops = tuple(loop for loop, _ in self.multiset.loops)
        result: list[tuple[float, float]] = []
        for first in range(0, len(self.leaves), BATCH_ORDERS):
            part = self.leaves[first : first + BATCH_ORDERS]
            orders = np.array([leaf.order for leaf in part], np.int64)
            boundaries = np.array([leaf.boundaries for leaf in part], np.int64) if self.free else None
            costed = cost_orders(OrderBatch(prepared, loops, orders, boundaries))
            result += zip(costed.latency_cycles.tolist(), costed.energy_pj.tolist(), strict=True)
        return result

    def _text(self, i: int) -> str:
        leaf = self.leaves[i]
        return f"{[self.multiset.loops[j][0] for j in leaf.order]} {leaf.boundaries}"


def _same(first: tuple[float, float], second: tuple[float, float]) -> bool:
    if math.inf in first or math.inf in second:
        return math.inf in first and math.inf in second
    return first[0] == second[0] and math.isclose(first[1], second[1], rel_tol=CLOSE, abs_tol=CLOSE)
