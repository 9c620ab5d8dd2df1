"""Rows of `cost/{core}.jsonl`, one for each cost class: the cost of a CN of the class on one core, or the reason why
the core cannot run the class.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.base.artifacts.codec import LEFT_OUT, decode, encode
from tilewright.base.artifacts.envelope import read_artifact, rows_digest, unreadable, write_rows
from tilewright.base.artifacts.seals import REMEDY
from tilewright.base.errors import ArtifactError, Problem
from tilewright.base.json_values import JsonObject

SCHEMA = "tilewright/core-costs"


@dataclass(frozen=True)
class Stream:
    """Stream of an operand that does not fit the core. The operand stays in the off-chip memory, and its data move
    while the CN runs.
    """

    operand: str
    """Memory operand: O, I1 or I2."""
    bits: int
    """Bits that one CN reads from the off-chip memory, in whole words; at least the size of the operand. For operand O,
    the number is a sum: bits that the CN writes to the off-chip memory, and bits of partial sums that it reads from the
    off-chip memory.
    """
    bits_per_cycle: int
    """Smallest bandwidth in bits per cycle at which the stream does not slow down the CN."""


@dataclass(frozen=True)
class CoreCostRow:
    """Cost of one CN of a class on a core, or the reason why the core cannot run the class.

    Cycles are whole numbers of at least 1; only `spatial_stall_cycles` and `waiting_cycles` can be 0. If the core
    cannot run the class, cycles and energies have their default values.
    """

    cost_class: int
    """Position of the cost class in `CostClasses.classes`."""
    reason: str = ""
    """Reason why the core cannot run the class; '' if the core can run the class."""
    ideal_cycles: int = 0
    """Cycles of the CN if every unit of the array works in every cycle."""
    total0_cycles: int = 0
    """Cycles of the CN, including stalls and the effect of idle units."""
    total1_cycles: int = 0
    """Cycles of the CN until its last outputs start to leave the array: the sum of `total0_cycles`, the cycles to bring
    the first tiles and continued partial sums to the array, and the cycles of further latency terms.
    """
    total2_cycles: int = 0
    """Sum of `total1_cycles` and the cycles to take the last outputs from the array."""
    on_core_energy_pj: float = 0.0
    """Energy in pJ of the core, without the off-chip memory: the sum of `operational_energy_pj`, `memory_energy_pj` and
    `term_energy_pj`.
    """
    operational_energy_pj: float = 0.0
    """Energy in pJ of the operational array (the units that compute), without the memories."""
    memory_energy_pj: tuple[tuple[str, float], ...] = ()
    """Pairs (name of a memory, energy in pJ) for the memories of the core, from the array outwards."""
    term_energy_pj: tuple[tuple[str, float], ...] = field(default=(), metadata=LEFT_OUT)
    """Further energy terms of the core, in addition to array and memories: pairs (name of the term, energy in pJ)."""
    spatial_utilisation: float = 0.0
    """Share of the array's units that work while the array computes, from 0 to 1."""
    streams: tuple[Stream, ...] = ()
    """Streams of the operands that do not fit the core."""
    spatial_stall_cycles: int | None = field(default=None, metadata=LEFT_OUT)
    """Part of `total0_cycles` that is lost because the CN does not fill the array; None if not known."""
    waiting_cycles: int = field(default=0, metadata=LEFT_OUT)
    """Part of `total1_cycles` in which the core waits for calls, commands or requests."""
    ended_by_time: bool = field(default=False, metadata=LEFT_OUT)
    """True if a time budget ended the mapping search for the CN, so that another run can choose another mapping."""
    mapping: Any = None
    """Chosen mapping as plain data for output: loops by operand and memory; None if there is no mapping."""
    what: str = ""
    """Loops of a CN as text for output, such as: Conv K 64, OX 56, C 64, FX 3, FY 3."""
    layers: tuple[int, ...] = ()
    """Numbers of the layers that have CNs of this cost class, as in the CN graph."""
    cn_count: int = 0
    """Number of CNs of the cost class."""

    @property
    def can_run(self) -> bool:
        """True if the core can run the cost class."""
        return not self.reason

    @property
    def utilisation(self) -> float:
        """Ideal cycles divided by `total1_cycles`; 0 if the core cannot run the cost class."""
        return self.ideal_cycles / self.total1_cycles if self.total1_cycles else 0.0


CoreCosts = Mapping[str, Sequence[CoreCostRow]]
"""Cost tables, keyed by core file."""


def write_core_costs(path: Path | str, rows: Sequence[CoreCostRow], provenance: JsonObject) -> str:
    """Write the table of one core atomically, with one row for each class. Returns the digest of the rows."""
    return write_rows(path, SCHEMA, [encode(row) for row in rows], provenance)


def core_costs_digest(rows: Sequence[CoreCostRow]) -> str:
    """Digest of the rows of a cost table. It is the digest of the artifact that `write_core_costs` writes for these
    rows.
    """
    return rows_digest(encode(row) for row in rows)


def read_core_costs(path: Path | str) -> tuple[CoreCostRow, ...]:
    """Cost table of one core. Raises ArtifactError if the file is missing or damaged, or if its rows are not in the
    order of the cost classes.
    """
    artifact = read_artifact(path, SCHEMA)
    try:
        rows = tuple(decode(CoreCostRow, row) for row in artifact.payload)
    except ValueError as error:
        raise unreadable(path, artifact, error) from error
    if [row.cost_class for row in rows] != list(range(len(rows))):
        raise ArtifactError([Problem(f"must have one row for each cost class, in order; {REMEDY}", str(path))])
    return rows
