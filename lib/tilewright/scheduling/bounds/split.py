"""Lower bounds on latency from what one CN waits for, and what waits for it (docs/bounds.md)."""

from dataclasses import dataclass, replace

import numpy as np

from tilewright.scheduling.bounds.limits import CnClasses, SystemLimits
from tilewright.scheduling.bounds.paths import LongestPaths
from tilewright.scheduling.bounds.work import ROUNDS, PossibleMoves, TrafficLoad, core_work, traffic_loads
from tilewright.scheduling.problem import Booleans, Integers, SchedulingProblem

_MOST_TRIED, _LEAST_TRIED = 16, 2
"""CNs that are looked at first, one of a layer; fewer where the graph is large."""
_MOST_NEEDS = 10**7
"""Needs of a graph times CNs that are looked at first."""
_FEW_ROUNDS = 40
"""Steps of the search for weights for all CNs that are looked at; the best of these gets more."""


def split_latency_cycles(
    problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits, paths: LongestPaths, moves: PossibleMoves
) -> int:
    """The best bound by one CN, of some: what is over before it starts, and what begins after it ends.

    Every CN gives a bound. The last CN of a layer waits for almost all of the layers before: some of these are looked
    at, evenly over the network, then those around the best of them.
    """
    if not len(paths.head):
        return 0
    split = SplitBounds(problem, classes, limits, paths, moves)
    candidates = _candidates(problem.graph.layer, paths.head)
    count = int(np.clip(_MOST_NEEDS // max(1, len(problem.need_cn)), _LEAST_TRIED, _MOST_TRIED))
    found: dict[int, int] = {}
    low, high = 0, len(candidates) - 1
    for _ in range(2):
        tried = np.linspace(low, high, count).round().astype(np.int64).tolist()
        found |= {
            place: split.latency_cycles(int(candidates[place]), _FEW_ROUNDS) for place in tried if place not in found
        }
        best = max(found, key=lambda place: (found[place], -place))
        low, high = max([p for p in found if p < best], default=best), min([p for p in found if p > best], default=best)
    return max(found[best], split.latency_cycles(int(candidates[best]), ROUNDS))


@dataclass(frozen=True, eq=False)
class SplitBounds:
    """A problem, and what bounds by one of its CNs follow from."""

    problem: SchedulingProblem
    classes: CnClasses
    limits: SystemLimits
    paths: LongestPaths
    moves: PossibleMoves

    def latency_cycles(self, cn: int, rounds: int) -> int:
        """The bound by one CN."""
        before, after = self.paths.around(cn)
        head = max(int(self.paths.head[cn]), self.cycles_before(cn, before, rounds))
        tail = max(int(self.paths.tail[cn]), self.cycles_after(cn, after, rounds))
        return head + int(self.paths.runtime[cn]) + tail

    def cycles_before(self, cn: int, before: Booleans, rounds: int) -> int:
        """Cycles before a CN starts: all that it waits for has run, and what they and it read is in place."""
        reads = _are_among(self.moves.reader, before, cn)
        fetched = self.moves.bits(reads & (self.moves.producer < 0))
        first = int(self.paths.release[before].min()) if before.any() else 0
        work = self._work(before, self._traffic(fetched, 0), first, rounds)
        return max(work, self.moves.compulsory(reads).latency_cycles(rounds))

    def cycles_after(self, cn: int, after: Booleans, rounds: int) -> int:
        """Cycles after a CN ends: all that waits for it runs, what they and it make moves, and of the constants that
        they need at most as many are on chip already as there is room for."""
        makes = _are_among(self.moves.producer, after, cn)
        reads = _are_among(self.moves.reader, after) & (self.moves.producer < 0)
        fetched = max(0, self.moves.bits(reads) - self._room_bits(reads))
        written = self.moves.bits(makes & (self.moves.reader < 0))
        last = int(self.paths.writing[after].min()) if after.any() else 0
        work = self._work(after, self._traffic(fetched, written), last, rounds)
        return max(work, self.moves.compulsory(makes).latency_cycles(rounds))

    def _room_bits(self, reads: Booleans) -> int:
        """Bits of all memories on chip from which CNs may read constants for some reasons."""
        system, operands = self.problem.system, self.classes.never_streams.shape[1]
        pairs = np.unique(self.classes.of_cn[self.moves.reader[reads]] * operands + self.moves.operand[reads])
        memories = {
            int(memory)
            for pair in pairs.tolist()
            for memory in system.core_memory[self.classes.allowed[pair // operands], pair % operands]
        }
        return sum(int(system.memory_capacity_bits[memory]) for memory in memories - {-1, system.off_chip_memory})

    def _traffic(self, fetched_bits: int, written_bits: int) -> list[TrafficLoad]:
        return traffic_loads(self.problem, self.classes, self.limits, fetched_bits, written_bits)

    def _work(self, cns: Booleans, traffic: list[TrafficLoad], ends: int, rounds: int) -> int:
        count = np.bincount(self.classes.of_cn[cns], minlength=len(self.classes.count))
        return core_work(replace(self.classes, count=count), traffic, ends, rounds)


def _are_among(cns: Integers, chosen: Booleans, more: int = -1) -> Booleans:
    """[entry] whether it is a CN, and a chosen one or the one more."""
    among: Booleans = (cns >= 0) & (chosen[np.maximum(cns, 0)] | (cns == more))
    return among


def _candidates(layer: Integers, head: Integers) -> Integers:
    """CNs to look at, by their earliest start: of each layer the one that can start last (the first of several).

    All of them where they are few.
    """
    order = np.lexsort((np.arange(len(layer)), -head, layer))
    if len(order) > _MOST_TRIED:
        order = order[np.append(True, layer[order][1:] != layer[order][:-1])]
    return order[np.argsort(head[order], kind="stable")]
