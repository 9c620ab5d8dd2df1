"""Links that data passes whatever way it takes: what is certain of moves between cores and memories."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.scheduling.problem import OUTPUT_OPERAND, CoreSystem

Links = frozenset[int]
_NONE: Links = frozenset()


@dataclass(frozen=True, eq=False)
class Ways:
    """The ways of a system; `Links` are those of a path, each once."""

    system: CoreSystem

    @cached_property
    def fetchers(self) -> tuple[tuple[int, ...], ...]:
        """[memory] cores that have it: any of them may bring a piece there (rule 10 of docs/scheduling.md)."""
        memories = range(len(self.system.memory_capacity_bits))
        return tuple(tuple(np.flatnonzero((self.system.core_memory == m).any(axis=1)).tolist()) for m in memories)

    def path(self, source: int, target: int) -> Links | None:
        """Links from a core to another one; none within a core, None where there is no path."""
        if source == target:
            return _NONE
        if not self.system.path_exists[source * self.system.core_count + target]:
            return None
        return frozenset(self.system.path(source, target).tolist())

    def written(self, core: int) -> Links:
        """Links that a piece passes which is written off-chip from a core."""
        return self.path(core, self.system.off_chip_core) or _NONE

    def home(self, core: int) -> int:
        """Memory in which a core has what it makes."""
        return int(self.system.core_memory[core, OUTPUT_OPERAND])

    def into(self, source: int, memory: int) -> list[Links]:
        """The paths from a core over which a piece can come into a memory."""
        found = (self.path(source, core) for core in self.fetchers[memory])
        return [path for path in found if path is not None]

    def fetched(self, memory: int) -> list[Links]:
        """The paths over which a piece can come into a memory from the off-chip memory."""
        return self.into(self.system.off_chip_core, memory)

    def has_bus(self, core: int) -> bool:
        """Whether one transfer from a core can serve several memories (rule 13): some path has a bus."""
        count = self.system.core_count
        paths = (self.path(core, target) or _NONE for target in range(count))
        return any(bool(self.system.link_is_broadcast[link]) for path in paths for link in path)

    def link_pj(self, links: Links) -> float:
        """Energy of a bit over links."""
        return float(sum(self.system.link_energy_pj_per_bit[link] for link in sorted(links)))


def common(paths: list[Links]) -> Links:
    """Links that all paths have; none where there is no path."""
    return frozenset.intersection(*paths) if paths else _NONE
