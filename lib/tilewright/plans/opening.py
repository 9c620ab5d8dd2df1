"""Opening of a search for plans: its first steps, which draw no random numbers and are therefore the same for every
seed.

The opening evaluates six kinds of plans:

* layer-by-layer plans;
* plans in which weights pass through all cores;
* plans of blocks;
* layer-by-layer plans whose results go through the off-chip memory;
* plans in which one rule cuts all layers;
* plans that are composed of segments.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.plans.advancing import advancing_tasks
from tilewright.plans.block_steps import BlockSteps
from tilewright.plans.cores import PlanFigures
from tilewright.plans.evaluate import Task
from tilewright.plans.passing import passing_tasks
from tilewright.plans.plan import LayerTiles, Plan
from tilewright.plans.segments import PART_RULES, SEGMENT_TILES, Segment, candidates, compose
from tilewright.plans.space import SELECTIONS, PartRule, PlanSpace
from tilewright.plans.trials import Trials
from tilewright.plans.work import Likeness, PlanWork, SegmentTask, segment_task

SEGMENT_SHARE, SEGMENT_COUNT_SHARE = 0.3, 0.4
"""Largest shares of the budget that the search spends on segments of the network. SEGMENT_SHARE: share of the seconds
and schedules that are left; SEGMENT_COUNT_SHARE: share of the number of plans that is left.
"""
UNIFORM_SHARE = 0.25
"""Largest share of the remaining seconds and schedules for plans in which one rule (`PartRule`) cuts all layers. Two of
these plans are exempt: the first with the fewest tiles, and the first with the most tiles. The share does not limit the
number of plans.
"""
LAYER_BY_LAYER_SHARE = 0.1
"""Largest share of the remaining seconds and schedules for layer-by-layer plans whose layers are cut into parts. Plans
with whole layers are exempt. Networks of one layer are exempt, too.
"""
SEGMENT_RULES = 3
"""Largest number of part rules that are tried for segments. The search takes these rules from the best plans in which
one part rule cuts all layers.
"""
SHORT_RULES, SHORT_SHARE = 2, 0.5
"""Values of SEGMENT_RULES and SEGMENT_SHARE for a search that has plans of similar systems. Short segments are tried
first. With few rules, enough schedules are left for long segments.
"""
COMPOSED = 3
"""Largest number of compositions of segments that are made for each rule of candidate selection. Each composition is
evaluated as a plan of the whole network.
"""
COMPOSED_TRIES = 40
"""Number of allocations that are tried for each composition. Later plans start from the best of these allocations."""
LAYER_BY_LAYER_RULES = (PartRule(1.0, True), *PART_RULES)
FIRST_ALONE = 2
"""Number of layer-by-layer cuts that are tried before blocks for a network of one layer: the whole layer, and the first
of LAYER_BY_LAYER_RULES.
"""
START, LAYER_BY_LAYER, UNIFORM = "start", "layer by layer", "uniform"
NEIGHBOUR = "neighbour"
"""Origin of plans found by searches on similar systems."""
COMPOSITION, PASSING, ADVANCING, OFF_CHIP = "composition", "passing weights", "advancing together", "through off-chip"
"""Origins of plans (steps of the search that propose them).

COMPOSITION: the plan is composed of segments. PASSING: weights pass through all cores in pieces. ADVANCING: weights
pass through all cores in pieces, and the layers of a stack advance together. OFF_CHIP: the plan is layer by layer, and
all results go through the off-chip memory. START, LAYER_BY_LAYER and UNIFORM: the remaining plans of the opening.
"""


@dataclass(frozen=True)
class Neighbours:
    """Plans found by searches on similar systems."""

    tasks: tuple[Task, ...]
    enough: float = math.inf
    """Limit of the objective. If the objective of the best plan so far is at most this limit, the opening tries no
    other plans.

    """


@dataclass(frozen=True)
class Opening:
    """First steps of a search."""

    trials: Trials
    work: PlanWork
    space: PlanSpace
    ends: tuple[int, ...]
    """Position of the last layer of each section of the network. Segments are made of complete sections."""

    def run(self, given: Task | None, neighbours: Neighbours | None = None) -> None:
        """Evaluate the start plan `given`, and the plans of all steps of the opening. If `neighbours` has a suitable
        plan (`_has_plan_in`), the layer-by-layer plans and most uniform plans are left out. If the best plan is then
        already good enough (`Neighbours.enough`), all steps are left out.
        """
        if given is not None:
            (self.trials.start,) = self.trials.look_at([given], START)
        has_neighbours = neighbours is not None and self._has_plan_in(neighbours.tasks)
        if has_neighbours and neighbours is not None and self._best_value <= neighbours.enough:
            return
        alone = [] if has_neighbours else self._layer_by_layer()
        is_one = self._is_cut_into_blocks_first
        first = 1 + (FIRST_ALONE if is_one else 1) * len(self._selections)
        self.trials.look_at(alone[:first], LAYER_BY_LAYER)
        if not is_one:
            self.trials.look_at(alone[first:], LAYER_BY_LAYER, self.trials.after(LAYER_BY_LAYER_SHARE))
            first = len(alone)
        self._advancing()
        self.trials.look_at(list(passing_tasks(self.work.problem, self.space)), PASSING)
        BlockSteps(self.trials, self.space).run()
        self.trials.look_at(alone[first:], LAYER_BY_LAYER)
        self._through_off_chip(alone)
        is_free = self.space.fixed.stacks is None
        # With fixed stacks, the steps above propose nothing, even for a network of one layer.
        rules = self._uniform(has_neighbours) if len(self.space.layers) > 1 or not is_free else []
        if is_free:
            kept, share = (SHORT_RULES, SHORT_SHARE) if has_neighbours else (SEGMENT_RULES, SEGMENT_SHARE)
            self.trials.look_at(self._compositions(rules[:kept], share), COMPOSITION)

    def _has_plan_in(self, neighbours: Sequence[Task]) -> bool:
        """Evaluate the plans of similar systems. Returns True if two conditions are met. First, at least one of these
        plans has a schedule. Second, at least one layer-by-layer plan has a schedule so far, or the run fixes the
        stacks.
        """
        found = self.trials.look_at(neighbours, NEIGHBOUR)
        has_plan = any(outcome.figures is not None for outcome in found)
        return has_plan and (self.trials.lbl is not None or self.space.fixed.stacks is not None)

    @property
    def _best_value(self) -> float:
        """Objective of the best plan so far; infinite if there is none."""
        return math.inf if self.trials.best is None else self.trials.rank(self.trials.best)[0]

    @property
    def _is_cut_into_blocks_first(self) -> bool:
        """True if the network has one layer, and cuts into blocks are tried for it. Most layer-by-layer plans are then
        tried later, because blocks include nearly all parts that the part rules can give.
        """
        return len(self.space.layers) == 1 and bool(self.space.layers[0].blocks)

    @property
    def _all(self) -> tuple[int, ...]:
        """Positions of all layers of the network."""
        return tuple(range(len(self.space.layers)))

    def _layer_by_layer(self) -> list[Task]:
        """Tasks that evaluate plans in which every layer is a stack. The first task also runs the allocation search of
        an ordinary run (`Task.by_engine`). The list is empty if the run fixes the stacks.
        """
        if self.space.fixed.stacks is not None:
            return []
        plain = self.space.layer_by_layer(None)
        fixed = self.space.fixed
        first = replace(
            plain,
            selection=fixed.selection or SELECTIONS[0],
            prefetch=() if fixed.prefetch is None else fixed.prefetch,
            prefetch_results=bool(fixed.prefetch_results),
        )
        plans = dict.fromkeys([plain, *(self.space.layer_by_layer(rule) for rule in LAYER_BY_LAYER_RULES)])
        plans = dict.fromkeys(variant for plan in plans for variant in self._schedules(plan))
        return [Task(first, thorough=True, by_engine=True), *(Task(plan, thorough=True) for plan in plans)]

    def _advancing(self) -> None:
        """Try plans in which layers advance together. If the first of these plans is not the best plan so far, the
        remaining plans are left out to save time.
        """
        tasks = list(advancing_tasks(self.work.problem, self.space))
        first = self.trials.look_at(tasks[:1], ADVANCING)
        if any(outcome is self.trials.best for outcome in first):
            self.trials.look_at(tasks[1:], ADVANCING)

    def _through_off_chip(self, tasks: Sequence[Task]) -> None:
        """Try layer-by-layer plans in which all results go through the off-chip memory. `tasks` evaluate the
        layer-by-layer plans without this detour.

        Some tools, such as Stream, run groups of layers one after another, each group on all cores. They always move
        results between groups through the off-chip memory. This is faster where links between cores are slower than
        links to the off-chip memory. Some plans are tried first: the best layer-by-layer plan with its cores, and the
        plans of the part rules that fill the cores. If none of these first plans is better than all layer-by-layer
        plans so far, the remaining plans are left out to save time.
        """
        if self.trials.lbl is None or self.space.fixed.by_off_chip is not None:
            return
        best, rules = self.trials.lbl, [rule for rule in LAYER_BY_LAYER_RULES if rule.fills_cores]
        filling = dict.fromkeys(self.space.through_off_chip(self.space.layer_by_layer(rule)) for rule in rules)
        if not all(plan.by_off_chip for plan in filling):
            return
        first = [Task(self.space.through_off_chip(best.plan), best.cores, as_given=True), *map(Task, filling)]
        found = self.trials.look_at(first, OFF_CHIP)
        if any(outcome is self.trials.lbl for outcome in found):
            plans = dict.fromkeys(self.space.through_off_chip(task.plan) for task in tasks)
            self.trials.look_at([Task(plan, thorough=True) for plan in plans], OFF_CHIP)

    def _schedules(self, plan: Plan) -> list[Plan]:
        """Copies of a plan, one for each rule of candidate selection. If the run fixes this rule, the result is
        [`plan`].
        """
        if self.space.fixed.selection is not None:
            return [plan]
        return [replace(plan, selection=selection) for selection in SELECTIONS]

    def _uniform(self, is_short: bool) -> list[PartRule]:
        """Try plans that cut all layers by the same part rule. With `is_short`, each rule is tried only with the
        smallest and the largest number of tiles. Returns the part rules of the plans, the rule of the best plan first.
        """
        rule_of: dict[Plan, PartRule] = {}
        for rows in SEGMENT_TILES:
            for rule in PART_RULES:
                for variant in self._schedules(self.space.uniform(rows, rule)):
                    rule_of.setdefault(variant, rule)
        plans, is_past = list(rule_of), self.trials.after(UNIFORM_SHARE)
        few, many = (
            [next(iter(self._schedules(self.space.uniform(rows, rule)))) for rule in PART_RULES]
            for rows in (SEGMENT_TILES[0], SEGMENT_TILES[-1])
        )
        # Plans with many tiles come early, because they take less time: 0.2 to 1.5 CPU s for mobilenetv2 on a system of
        # unlike cores, beside 1.2 to 2.9 CPU s for plans with few tiles.
        first = list(dict.fromkeys((few[0], *many, *few[1:])))
        outcomes = self.trials.look_at([Task(plan) for plan in first[:2]], UNIFORM)
        rest = first[2:] if is_short else [*first[2:], *(plan for plan in plans if plan not in first)]
        if not is_past():
            outcomes += self.trials.look_at([Task(plan) for plan in rest], UNIFORM, is_past)
        found = sorted((one for one in outcomes if one.figures is not None), key=self.trials.rank)
        return list(dict.fromkeys(rule_of[one.plan] for one in found))

    def _compositions(self, best_rules: Sequence[PartRule], share: float) -> list[Task]:
        """Tasks that evaluate plans of the complete network. Each plan joins a sequence of segments whose costs have a
        small sum. `share` is the largest share of the remaining seconds and schedules for the segments.
        """
        costs = self._segment_costs([rule for rule in PART_RULES if rule in best_rules], share)
        tasks = []
        for selection in self._selections:
            for segments in compose(costs[selection], len(self.space.layers), self.trials.objective, COMPOSED):
                tiles: list[LayerTiles] = []
                ends: list[int] = []
                for segment in segments:
                    tiles += segment.tiles
                    ends += [segment.last] if segment.is_fused else range(segment.first, segment.last + 1)
                spread = self._all if self.space.has_many_cores else ()
                plan = self.space.plan(tiles, ends, selection)
                tasks.append(Task(plan, tries=COMPOSED_TRIES, thorough=True, spread=spread))
        return tasks

    @property
    def _selections(self) -> tuple[str, ...]:
        return SELECTIONS if self.space.fixed.selection is None else (self.space.fixed.selection,)

    def _segment_costs(self, rules: Sequence[PartRule], share: float) -> dict[str, dict[Segment, PlanFigures]]:
        """Costs of the segments: rule of candidate selection -> segment -> latency and energy. Each segment is
        scheduled as a separate network, and equal segments are scheduled only once. Segments without a schedule, and
        segments that the budget does not allow, are left out.
        """
        costs: dict[str, dict[Segment, PlanFigures]] = {selection: {} for selection in self._selections}
        known: dict[object, list[Segment]] = {}
        wanted: list[SegmentTask] = []
        alike = Likeness(self.work.problem)
        for segment in candidates(self.space, self.ends, rules, self.trials.objective):
            if len(self.ends) == 1:
                continue  # the segment is the whole network, which was evaluated before
            key = alike.of(segment)
            if key not in known:
                wanted.append(segment_task(segment, self._selections, self.space))
            known.setdefault(key, []).append(segment)
        groups = list(known.values())
        wanted = wanted[: max(0, int(SEGMENT_COUNT_SHARE * self.trials.budget.plans_left))]
        outcomes = self.trials.segment_costs(wanted, self.trials.after(share))
        for members, found in zip(groups, outcomes, strict=False):
            for selection, figures in found.figures.items():
                costs[selection].update(dict.fromkeys(members, figures))
        return costs
