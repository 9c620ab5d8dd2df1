"""Costs of a CN of each class on one core, or why it cannot run there: the rows of `cost/{core}.jsonl`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.base.artifacts.codec import LEFT_OUT, decode, encode
from tilewright.base.artifacts.envelope import read_artifact, rows_digest, write_rows
from tilewright.base.artifacts.seals import REMEDY
from tilewright.base.errors import ArtifactError, Problem
from tilewright.base.json_values import JsonObject

SCHEMA = "tilewright/core-costs"


@dataclass(frozen=True)
class Stream:
    """An operand that does not fit the core: it stays in the off-chip memory while the CN runs."""

    operand: str
    """Memory operand: O, I1 or I2."""
    bits: int
    """Read from the off-chip memory (for O written to it and read back from it) during one CN."""
    bits_per_cycle: int
    """Width that it needs so that the CN is not slowed down."""


@dataclass(frozen=True)
class CoreCostRow:
    """What one CN of a class costs on a core, or why the core cannot run it.

    Cycles are whole and at least 1; where the core cannot run the class, all numbers are 0.
    """

    cost_class: int
    """Place in `CostClasses.classes`."""
    reason: str = ""
    """Why the core cannot run it; '' if it can."""
    ideal_cycles: int = 0
    """All units busy all the time."""
    total0_cycles: int = 0
    """Cycles with idle units and stalls."""
    total1_cycles: int = 0
    """Cycles with the first tiles brought to the array as well."""
    total2_cycles: int = 0
    """Cycles with the last outputs taken from the array as well."""
    on_core_energy_pj: float = 0.0
    """The sum of the terms that follow: array and memories of the core, without the off-chip memory."""
    operational_energy_pj: float = 0.0
    """The array alone."""
    memory_energy_pj: tuple[tuple[str, float], ...] = ()
    """(memory of the core, pJ), from the array outwards."""
    term_energy_pj: tuple[tuple[str, float], ...] = field(default=(), metadata=LEFT_OUT)
    """(further term of the energy, pJ)."""
    spatial_utilisation: float = 0.0
    """Share of the array that works while it computes."""
    streams: tuple[Stream, ...] = ()
    """Operands that do not fit."""
    spatial_stall_cycles: int | None = field(default=None, metadata=LEFT_OUT)
    """Cycles of total0 those in which only units are idle, as the CN does not fill the array; None: not known."""
    ended_by_time: bool = field(default=False, metadata=LEFT_OUT)
    """Whether a time budget ended a search for a mapping of the CN: the next time another one may be chosen."""
    mapping: Any = None
    """The chosen mapping for people, as plain data: its loops per operand and memory; None if there is none."""
    what: str = ""
    """The loops of a CN for people: Conv K 64, OX 56, C 64, FX 3, FY 3."""
    layers: tuple[int, ...] = ()
    """Numbers of the layers in the CN graph that have such CNs."""
    cn_count: int = 0
    """Number of CNs of the class."""

    @property
    def can_run(self) -> bool:
        """Whether the core can run the class."""
        return not self.reason

    @property
    def utilisation(self) -> float:
        """Share of the array's work in total1; 0 where it cannot run."""
        return self.ideal_cycles / self.total1_cycles if self.total1_cycles else 0.0


CoreCosts = Mapping[str, Sequence[CoreCostRow]]
"""Cost table of each core file."""


def write_core_costs(path: Path | str, rows: Sequence[CoreCostRow], provenance: JsonObject) -> str:
    """Write the table of one core, one row for each class, atomically; returns the digest of the rows."""
    return write_rows(path, SCHEMA, [encode(row) for row in rows], provenance)


def core_costs_digest(rows: Sequence[CoreCostRow]) -> str:
    """The digest that the artifact of a table has, written or not."""
    return rows_digest(encode(row) for row in rows)


def read_core_costs(path: Path | str) -> tuple[CoreCostRow, ...]:
    """The table of one core. Raises ArtifactError if it is missing or damaged, or its rows are not in order."""
    try:
        rows = tuple(decode(CoreCostRow, row) for row in read_artifact(path, SCHEMA).payload)
    except ValueError as error:
        raise ArtifactError([Problem(f"artifact does not fit this version: {error}; {REMEDY}", str(path))]) from error
    if [row.cost_class for row in rows] != list(range(len(rows))):
        raise ArtifactError([Problem(f"must have one row for each cost class, in order; {REMEDY}", str(path))])
    return rows
