"""Random steps from one plan to another.

A step changes the tiles of layers, their parts for different cores, the stacks, the schedule options, or the cores.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from tilewright.mapping.constraints import TilingEntry
from tilewright.mapping.words import ALL_TILES
from tilewright.plans.evaluate import PlanOutcome, Task
from tilewright.plans.plan import LayerTiles, Loops, Plan
from tilewright.plans.segments import PART_RULES
from tilewright.plans.space import SELECTIONS, LayerSpace, PlanSpace

FEW_TRIES, MANY_TRIES = 10, 80
"""Numbers of neighbouring allocations to try. FEW_TRIES: for a new plan; MANY_TRIES: for a step that only improves the
cores.
"""
PLAN_COST = 20
"""Time to cut the network by a plan and to compute the costs of the nodes, as a multiple of the time for one
schedule.
"""
FIRST_GAIN, MEMORY, LEAST_SHARE = 0.01, 0.97, 0.15
"""Constants for the random choice between kinds of steps. FIRST_GAIN: relative gain that is assumed for a kind before
its first step. MEMORY: factor for the weight of earlier steps of a kind, applied at each new step of this kind.
LEAST_SHARE: smallest probability of a kind, relative to the most probable kind.
"""
LONGEST_RUN = 5
"""Largest number of sections that one step changes. A section has consecutive layers."""
MOST_WITHIN = 8
"""Largest number of tiles of a part along columns or channels."""
DETOURS = "detours"
"""Kind of steps that change which layers send their results through the off-chip memory (detours)."""
RELOADS = "reloads"
"""Kind of steps that change the tiles, parts or stack of a layer whose data are moved more than once."""
MERGED = "merged"
"""Kind of steps that merge parts of a layer if one core runs several parts of this layer."""
BLOCKS = "blocks"
"""Kind of steps that cut a layer into blocks along several dimensions."""
BEST_BLOCKS = 16
"""Number of cuts from which a step draws when it cuts a layer into blocks: the cuts with the best estimates."""
Change = Callable[["PlanMoves", PlanOutcome], Plan | None]


def written_tiles(one: LayerSpace, tiles: LayerTiles) -> int:
    """Number of tiles along the rows of a layer, read from the loops of `tiles`. If the number of a loop is `all`, each
    row is a tile. 1 if no loop cuts the rows.
    """
    for loop in tiles.within:
        if loop.dimension == one.rows:
            return one.size(one.rows) if loop.tiles == ALL_TILES else int(loop.tiles)
    return 1


def written_parts(tiles: LayerTiles) -> int:
    """Number of parts into which the loops `tiles.between` cut a layer: the product of their numbers. A loop that has
    `all` or `*` in place of a number counts as one part.
    """
    count = 1
    for loop in tiles.between:
        count *= loop.tiles if isinstance(loop.tiles, int) else 1
    return count


class PlanMoves:
    """Random steps from one plan to another. Kinds of steps that improved plans before are drawn more often."""

    def __init__(self, space: PlanSpace, ends: Sequence[int], draw: random.Random, objective: str = "latency") -> None:
        self.space, self.draw, self.objective = space, draw, objective
        self.blocks = tuple(zip((0, *(end + 1 for end in ends[:-1])), ends, strict=True))
        self.kinds: dict[str, Change] = {
            "tiles": PlanMoves._other_tiles,
            "parts": PlanMoves._other_parts,
            "within": PlanMoves._other_within,
            "schedule": PlanMoves._other_schedule,
        }
        if space.fixed.stacks is None and len(space.layers) > 1:
            self.kinds |= {"cut": PlanMoves._other_cut}
        self._cuttable = [place for place, one in enumerate(space.layers) if len(one.blocks) > 1]
        if self._cuttable and (space.has_many_cores or len(space.layers) == 1):
            self.kinds |= {BLOCKS: PlanMoves._other_blocks}
        alone = ("cores", DETOURS) if space.fixed.by_off_chip is None and space.is_on_several_cores else ("cores",)
        self.kinds |= {RELOADS: PlanMoves._fewer_reloads, MERGED: PlanMoves._merged_parts}
        self.gain = dict.fromkeys((*self.kinds, *alone), FIRST_GAIN)
        self.cost = dict.fromkeys(self.gain, 1.0)
        # Only layers that can run on several cores get parts; layers with much work are drawn more often.
        divisible = [place for place, one in enumerate(space.layers) if one.between is None and one.cores > 1]
        self._divisible = divisible or [place for place, one in enumerate(space.layers) if one.between is None]
        self._work = [math.sqrt(math.prod(size for _, size in self._loops(place))) for place in self._divisible]
        self._alike: dict[object, list[int]] = {}
        for place, one in enumerate(space.layers):
            self._alike.setdefault((one.layer.operator_type, one.layer.loop_sizes, one.channels), []).append(place)

    def _loops(self, place: int) -> tuple[tuple[str, int], ...]:
        return self.space.layers[place].layer.loop_sizes

    def next_task(self, parent: PlanOutcome, seed: int) -> tuple[str, Task]:
        """Pair (kind of a random step, task that evaluates the plan after the step). `parent`, the plan before the
        step, must have a schedule.
        """
        kinds = list(self.gain)
        rates = [self.gain[kind] / self.cost[kind] for kind in kinds]
        least = LEAST_SHARE * max(rates)
        kind = self.draw.choices(kinds, [max(rate, least) for rate in rates])[0]
        if kind == DETOURS:
            return kind, Task(parent.plan, parent.cores, MANY_TRIES, seed=seed, detours=True)
        if kind != "cores":
            changed = self.kinds[kind](self, parent)
            if changed is not None and changed != parent.plan:
                pairs = enumerate(zip(changed.tiles, parent.plan.tiles, strict=True))
                spread = tuple(place for place, (new, old) in pairs if new.between != old.between)
                return kind, Task(changed, parent.cores, FEW_TRIES, seed=seed, spread=spread if kind == BLOCKS else ())
        return "cores", Task(parent.plan, parent.cores, MANY_TRIES, seed=seed)

    def learn(self, kind: str, gain: float, schedules: int) -> None:
        """Add the results of a step of this kind to its statistics: the relative gain in the objective, and the effort,
        computed from the number of schedules that the step took. The weight of older steps falls.
        """
        self.gain[kind] = MEMORY * self.gain[kind] + max(gain, 0.0)
        self.cost[kind] = MEMORY * self.cost[kind] + (schedules + PLAN_COST) / (FEW_TRIES + PLAN_COST)

    def _run(self) -> range:
        """Positions of the consecutive layers that a step changes: one layer, or all layers of a few sections of the
        network."""
        if self.draw.random() < 0.4:
            place = self.draw.randrange(len(self.space.layers))
            return range(place, place + 1)
        first = self.draw.randrange(len(self.blocks))
        count = min(self.draw.randint(1, LONGEST_RUN), len(self.blocks) - first)
        return range(self.blocks[first][0], self.blocks[first + count - 1][1] + 1)

    def _other_tiles(self, parent: PlanOutcome) -> Plan | None:
        """Plan with other numbers of tiles along rows, for consecutive layers. There are three possible changes: each
        of these layers gets its next larger number, each gets its next smaller number, or all get the same number. A
        layer for which the same number is too large gets its largest number of tiles.
        """
        plan = parent.plan
        target = self.draw.choice((None, None, 1, 2, 4, 7, 8, 14, 16, 28, 1 << 30))
        step = self.draw.choice((-1, 1))
        changed = {}
        for place in self._run():
            one, tiles = self.space.layers[place], plan.tiles[place]
            now = written_tiles(one, tiles)
            wanted = target if target is not None else _next_of(one.tile_counts, now, step)
            changed[place] = LayerTiles(tiles.between, one.rows_within(min(wanted, max(one.tile_counts))))
        return plan.with_tiles(changed)

    def _other_parts(self, parent: PlanOutcome) -> Plan | None:
        """Plan in which one layer is cut into another number of parts for different cores, along channels, rows or
        columns. The result is None if no layer can get parts.

        Random draws choose between three kinds of steps. The first changes only this layer. The second also changes all
        equal layers in the same way. The third cuts several consecutive layers by one of the PART_RULES; its result is
        never None.
        """
        plan = parent.plan
        if self.draw.random() < 0.3:
            return self._parts_by_rule(plan)
        if not self._divisible:
            return None
        place = self.draw.choices(self._divisible, self._work)[0]
        one = self.space.layers[place]
        in_image = self.draw.random() < 0.25
        now = written_parts(plan.tiles[place])
        if self.draw.random() < 0.6:
            wanted = _next_of(one.part_counts, now, self.draw.choice((-1, 1)))
        elif self.draw.random() < 0.5:
            wanted = self.draw.choice(one.part_counts)
        else:
            wanted = self.draw.randint(1, max(2, min(4 * one.cores, max(one.part_counts))))
        alike = [place]
        if self.draw.random() < 0.4:
            alike = self._alike[one.layer.operator_type, one.layer.loop_sizes, one.channels]
        return plan.with_tiles(
            {
                other: LayerTiles(self._parts(plan, other, wanted, in_image), plan.tiles[other].within)
                for other in alike
                if self.space.layers[other].between is None
            }
        )

    def _parts(self, plan: Plan, place: int, parts: int, in_image: bool) -> Loops:
        """Loops over the parts of a layer: along rows or columns of the image if `in_image`, else along channels."""
        one = self.space.layers[place]
        if not (in_image and one.rows):
            return one.tiles(parts, 1).between
        return one.parts_along(one.image_dimension(parts, written_tiles(one, plan.tiles[place])), parts)

    def _other_blocks(self, parent: PlanOutcome) -> Plan | None:
        """Plan in which one layer, or all equal layers, are cut into other blocks. None if the new cut has too many
        blocks.

        The new cut is either one of the cuts with the best estimates, or the present cut with one change. The change
        gives one dimension the next larger or the next smaller number of parts.
        """
        place = self.draw.choice(self._cuttable)
        one, now = self.space.layers[place], parent.plan.tiles[place]
        if self.draw.random() < 0.5:
            counts = one.best_blocks(self.draw.randrange(BEST_BLOCKS), self.objective).counts
        else:
            written = {loop.dimension: loop.tiles for loop in now.between if isinstance(loop.tiles, int)}
            present = tuple(written.get(name, 1) for name in one.block_dimensions)
            axis, step = self.draw.randrange(len(present)), self.draw.choice((-1, 1))
            tried = sorted({cut.counts[axis] for cut in one.blocks})
            counts = (*present[:axis], _next_of(tried, present[axis], step), *present[axis + 1 :])
        if counts not in {cut.counts for cut in one.blocks}:  # too many blocks
            return None
        alike = [place]
        if self.draw.random() < 0.4:
            alike = self._alike[one.layer.operator_type, one.layer.loop_sizes, one.channels]
        outwards = self.draw.random() < 0.5
        return parent.plan.with_tiles(
            {
                other: LayerTiles(
                    self.space.layers[other].in_blocks(counts, 1, outwards).between, parent.plan.tiles[other].within
                )
                for other in alike
                if self.space.layers[other].block_dimensions == one.block_dimensions
            }
        )

    def _fewer_reloads(self, parent: PlanOutcome) -> Plan | None:
        """Plan with other tiles, parts or stacks for a layer whose data are moved more than once.

        The layer gets one of four changes: parts along rows or columns, another number of parts along channels, fewer
        tiles, or a separate stack. In some steps, drawn at random, all equal layers change in the same way.
        """
        draw, plan = self.draw, parent.plan
        if not any(parent.moved_again):
            return None
        place = draw.choices(range(len(parent.moved_again)), parent.moved_again)[0]
        one, now = self.space.layers[place], plan.tiles[place]
        kind = draw.random()
        if kind < 0.2 and self.space.fixed.stacks is None:
            alone = {place - 1, place} - {-1, len(self.space.layers) - 1}
            return replace(plan, stacks=self.space.stacks(sorted(alone.union(self.space.ends_of(plan)))))
        if kind < 0.5 or one.between is not None or one.cores < 2:
            fewer = draw.choice((1, _next_of(one.tile_counts, written_tiles(one, now), -1)))
            tiles = LayerTiles(now.between, one.rows_within(fewer))
        else:
            in_image = kind < 0.75
            parts = draw.randint(2, one.cores) if in_image else draw.choice(one.part_counts)
            tiles = LayerTiles(self._parts(plan, place, parts, in_image), now.within)
        alike = [place]
        if draw.random() < 0.4:
            alike = [
                other
                for other in self._alike[one.layer.operator_type, one.layer.loop_sizes, one.channels]
                if plan.tiles[other] == now
            ]
        return plan.with_tiles(dict.fromkeys(alike, tiles))

    def _merged_parts(self, parent: PlanOutcome) -> Plan | None:
        """Plan with fewer parts. There are two possible changes. In the first, each layer whose parts all run on one
        core gets a single part. In the second, one layer gets fewer parts; the layer has more parts than cores that run
        them.
        """
        if not parent.cores:
            return None
        used = {
            place: len(set(parent.cores[place]))
            for place in self._divisible
            if len(parent.cores[place]) > len(set(parent.cores[place]))
        }
        if not used:
            return None
        on_one = [place for place, cores in used.items() if cores == 1]
        if on_one and self.draw.random() < 0.5:
            counts = dict.fromkeys(on_one, 1)
        else:
            place = self.draw.choice(list(used))
            now = len(parent.cores[place])
            fewer = [one for one in self.space.layers[place].part_counts if used[place] <= one < now]
            counts = {place: self.draw.choice(fewer)} if fewer else {}
        return parent.plan.with_tiles(
            {
                place: LayerTiles(self._parts(parent.plan, place, count, False), parent.plan.tiles[place].within)
                for place, count in counts.items()
            }
        )

    def _parts_by_rule(self, plan: Plan) -> Plan:
        rule, changed = self.draw.choice(PART_RULES), {}
        for place in self._run():
            one = self.space.layers[place]
            if one.between is None:
                changed[place] = LayerTiles(one.cut_by(rule, 1).between, plan.tiles[place].within)
        return plan.with_tiles(changed)

    def _other_within(self, parent: PlanOutcome) -> Plan | None:
        """Plan in which one layer gets tiles along columns or channels, or loses such tiles."""
        plan = parent.plan
        place = self.draw.randrange(len(self.space.layers))
        one, tiles = self.space.layers[place], plan.tiles[place]
        if one.within is not None:
            return None
        others = [name for name in (one.columns, *one.channels[:1]) if name]
        if not others:
            return None
        dimension = self.draw.choice(others)
        rows = tuple(loop for loop in tiles.within if loop.dimension == one.rows) or tiles.within[:1]
        most = min(MOST_WITHIN, one.size(dimension) // max(1, self._parts_along(tiles, dimension)))
        if len(tiles.within) > len(rows) or most < 2:
            return plan.with_tiles({place: LayerTiles(tiles.between, rows)})
        loop = TilingEntry(dimension, self.draw.choice([count for count in (2, 4, 8) if count <= most]))
        loops = (loop, *rows) if self.draw.random() < 0.5 else (*rows, loop)
        return plan.with_tiles({place: LayerTiles(tiles.between, loops)})

    @staticmethod
    def _parts_along(tiles: LayerTiles, dimension: str) -> int:
        counts = [loop.tiles for loop in tiles.between if loop.dimension == dimension]
        return counts[0] if counts and isinstance(counts[0], int) else 1

    def _other_schedule(self, parent: PlanOutcome) -> Plan | None:
        """Plan with one changed schedule option: the rule of candidate selection, the prefetching of constants, or the
        prefetching of results.
        """
        plan = parent.plan
        fixed, options = self.space.fixed, []
        if fixed.selection is None:
            options.append(replace(plan, selection=next(one for one in SELECTIONS if one != plan.selection)))
        if fixed.prefetch is None and self.space.prefetchable:
            options.append(replace(plan, prefetch=() if plan.prefetch else self.space.prefetchable))
        if fixed.prefetch_results is None and self.space.is_on_several_cores:
            options.append(replace(plan, prefetch_results=not plan.prefetch_results))
        return self.draw.choice(options) if options else None

    def _other_cut(self, parent: PlanOutcome) -> Plan | None:
        """Plan with other stacks, by one of four changes:

        * Each of several consecutive layers becomes a separate stack.
        * The cuts before, between and after several consecutive layers are removed.
        * One cut is removed.
        * One cut is added.
        """
        plan = parent.plan
        ends = set(self.space.ends_of(plan)) - {len(self.space.layers) - 1}
        kind = self.draw.random()
        if kind < 0.3:
            members = self._run()
            return replace(plan, stacks=self.space.stacks([*ends, members[0] - 1, *members][members[0] == 0 :]))
        if kind < 0.55 and ends:
            members = self._run()
            inner = set(range(members[0] - 1, members[-1] + 1))
            return replace(plan, stacks=self.space.stacks(sorted(ends - inner)))
        if kind < 0.75 and ends:
            ends.discard(self.draw.choice(sorted(ends)))
            return replace(plan, stacks=self.space.stacks(sorted(ends)))
        places = self.space.ends if self.space.ends and self.draw.random() < 0.7 else range(len(self.space.layers) - 1)
        ends.add(self.draw.choice(list(places)))
        return replace(plan, stacks=self.space.stacks(sorted(ends)))


def _next_of(counts: Sequence[int], now: int, step: int) -> int:
    """Next value in `counts`, which is in rising order. If `step` > 0, the result is the smallest value above `now`, or
    the last value if no value is above `now`. Otherwise, it is the largest value below `now`, or the first value if no
    value is below `now`.
    """
    if step > 0:
        return next((count for count in counts if count > now), counts[-1])
    return next((count for count in reversed(counts) if count < now), counts[0])
