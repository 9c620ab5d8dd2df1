"""What depth-first schedules cost, by cause: energy by memory and by what moves, latency by part."""

from dataclasses import dataclass, field
from typing import TypeVar

LATENCY_PARTS = ("ideal", "spatial_stall", "temporal_stall", "onloading", "offloading", "drain", "copies")
"""Cycles of the array at its best, that idle units cost, of waiting for transfers; before and after each layer of each
tile; and of copies between layers."""
COPY = "copy"
"""What causes an access: an operand of a layer, or a copy between memories."""
Key = TypeVar("Key")
Cause = tuple[str, str]
"""(name of a memory, operand or COPY)."""


@dataclass
class Ledger:
    """Sums over tiles."""

    energy_pj: float = 0.0
    terms_pj: dict[str, float] = field(default_factory=dict)
    """What is no access of a memory, such as the multiply-accumulates."""
    memory_pj: dict[Cause, float] = field(default_factory=dict)
    read_words: dict[Cause, float] = field(default_factory=dict)
    written_words: dict[Cause, float] = field(default_factory=dict)
    cycles: dict[str, float] = field(default_factory=lambda: dict.fromkeys(LATENCY_PARTS, 0.0))
    mac_count: int = 0
    tile_count: int = 0

    def add(self, other: "Ledger", times: int = 1) -> None:
        """Add another one so many times."""
        self.energy_pj += other.energy_pj * times
        self.mac_count += other.mac_count * times
        self.tile_count += other.tile_count * times
        _add(self.terms_pj, other.terms_pj, times)
        _add(self.memory_pj, other.memory_pj, times)
        _add(self.read_words, other.read_words, times)
        _add(self.written_words, other.written_words, times)
        _add(self.cycles, other.cycles, times)

    def accesses(self, cause: str) -> list[dict[str, object]]:
        """Energy and words of each memory and cause, by name, as JSON values; `cause` is the key for the latter."""
        return [
            {
                "memory": memory,
                cause: why,
                "energy_pj": self.memory_pj[memory, why],
                "read_words": self.read_words.get((memory, why), 0.0),
                "written_words": self.written_words.get((memory, why), 0.0),
            }
            for memory, why in sorted(self.memory_pj)
        ]

    def latency_cycles(self, with_offloading: bool = True) -> float:
        """The sum of the parts; that of DeFiNES is without off-loading."""
        left_out = 0.0 if with_offloading else self.cycles["offloading"]
        return sum(self.cycles.values()) - left_out


def _add(mine: dict[Key, float], theirs: dict[Key, float], times: int) -> None:
    for key, value in theirs.items():
        mine[key] = mine.get(key, 0.0) + value * times
