"""Links between cores: what carries data from one core to another, how fast, at what energy.

A link is one resource: everything it carries shares its bandwidth, whatever the pair of cores. A wire in one direction
carries one pair; a bus, or the single port of a DRAM, carries many.
"""

from dataclasses import dataclass

POINT_TO_POINT, BUS, OFFCHIP_PORT = "link", "bus", "port"
"""Kinds of links. A port is a link of the off-chip core that several cores share."""


@dataclass(frozen=True)
class Link:
    """One link, shared by all pairs of cores that it carries."""

    name: str
    kind: str
    edges: tuple[tuple[int, int], ...]
    """(sending core, receiving core) pairs that it carries, by core id."""
    bandwidth_bits_per_cycle: int | None
    """None: infinite, a transfer takes no time."""
    energy_pj_per_bit: float
    unit_energy_pj_per_cycle: float | None = None
    """`unit_energy_cost` as written: energy of a busy cycle, which the energy per bit comes from; None if the file
    gives the energy per bit itself."""

    @property
    def core_ids(self) -> tuple[int, ...]:
        """The cores that it joins, in rising order."""
        return tuple(sorted({core_id for edge in self.edges for core_id in edge}))

    @property
    def is_half_duplex(self) -> bool:
        """Whether both directions of some pair share it."""
        return any((receiver, sender) in self.edges for sender, receiver in self.edges)

    def transfer_cycles(self, bits: int) -> int:
        """Cycles that `bits` take at full width, rounded up."""
        return 0 if self.bandwidth_bits_per_cycle is None else -(-bits // self.bandwidth_bits_per_cycle)


def energy_per_bit_pj(unit_energy_pj_per_cycle: float, bandwidth_bits_per_cycle: int | None) -> float:
    """Energy of a bit on a link whose busy cycle costs `unit_energy_pj_per_cycle`: a cycle carries a full width.

    The reference tool multiplies by the cycles of a transfer, so that half-filled last cycles and waiting for a slower
    link cost energy too; per bit they do not. A link of infinite bandwidth is never busy: 0.
    """
    return 0.0 if bandwidth_bits_per_cycle is None else unit_energy_pj_per_cycle / bandwidth_bits_per_cycle


def all_pairs(core_ids: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Every ordered pair of different cores."""
    return tuple((sender, receiver) for sender in core_ids for receiver in core_ids if sender != receiver)
