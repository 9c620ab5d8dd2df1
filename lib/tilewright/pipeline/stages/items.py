"""Items that stages after the parsers hand down (from networks to loop orders), and results that stages return.

The tally of a search has an entry for each spatial mapping of a layer. The entry has the number of loop orders that
were tried, and the energy and latency of the best one. If there is no best loop order, the entry has the reason.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from tilewright.base.json_values import JsonObject
from tilewright.base.proof import gap_to
from tilewright.cost.record import CandidateRow, LayerRecord, unrolling_record
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import MappingConstraints, TemporalOrderingEntry, Unrolling
from tilewright.pipeline.stages.descriptions import Descriptions, NetworkProblem
from tilewright.results.result_tables import OneCoreTables
from tilewright.search.batch import CostedBatch, OrderBatch
from tilewright.search.evaluate import PreparedProblem
from tilewright.workload.layer import Layer

if TYPE_CHECKING:
    from tilewright.mapping.locality import MemoryReach


Notes = tuple[tuple[str, object], ...]


@dataclass(frozen=True)
class CandidateTally:
    """Number of loop orders that were tried for one spatial mapping, with the energy and latency of the chosen loop
    order. A tally can also cover only some of the loop orders.
    """

    candidate: int
    """Index of the spatial mapping among the candidates of the layer."""
    unrolling: Unrolling
    """Spatial mapping: the unrolled loops and their lanes, for each array dimension."""
    orders: int = 0
    """Number of loop orders that were tried."""
    feasible: int = 0
    """Number of tried loop orders that meet the constraints and fit the core."""
    energy_pj: float | None = None
    """Energy of the chosen mapping, in pJ; None if no mapping was chosen."""
    latency_cycles: float | None = None
    """Latency of the chosen mapping, in cycles; None if no mapping was chosen."""
    reason: str = ""
    """Reason why no mapping was chosen."""
    missed_by: float = math.inf
    """Smallest ratio (needed capacity / available capacity) among the loop orders that do not fit. A sum of two tallies
    takes `reason` from the tally with the smaller `missed_by`.
    """
    notes: Notes = ()
    """Facts on the search, such as the lower bound, as JSON values."""

    @property
    def key(self) -> tuple[int, Unrolling]:
        """Key of the spatial mapping. Tallies with equal keys belong to the same spatial mapping."""
        return self.candidate, self.unrolling

    def plus(self, other: "CandidateTally") -> "CandidateTally":
        """Sum of this tally and `other`. The sum has the chosen mapping of this tally. If this tally has no chosen
        mapping, the sum has that of `other`.
        """
        feasible = self.feasible + other.feasible
        closest = other if not self.reason or (other.reason and other.missed_by < self.missed_by) else self
        chosen = other if self.energy_pj is None else self
        return replace(
            self,
            orders=self.orders + other.orders,
            feasible=feasible,
            energy_pj=chosen.energy_pj,
            latency_cycles=chosen.latency_cycles,
            reason="" if feasible else closest.reason,
            missed_by=min(self.missed_by, other.missed_by),
            notes=other.notes or self.notes,
        )

    def row(self) -> CandidateRow:
        """Row for this tally in the field `candidates` of a record."""
        return CandidateRow(
            unrolling_record(self.unrolling),
            self.orders,
            self.feasible,
            self.energy_pj,
            self.latency_cycles,
            self.reason,
        )


class Tally:
    """Sums of tallies: one sum for each spatial mapping, in the order in which the spatial mappings first occur."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[int, Unrolling], CandidateTally] = {}

    def add(self, entries: Iterable[CandidateTally]) -> None:
        """Add tallies to the sums."""
        for entry in entries:
            known = self._by_key.get(entry.key)
            self._by_key[entry.key] = entry if known is None else known.plus(entry)

    def choose(self, key: tuple[int, Unrolling], energy_pj: float, latency_cycles: float) -> None:
        """Set the energy (pJ) and the latency (cycles) of the best mapping so far for the spatial mapping with this
        key.
        """
        known = self._by_key.get(key) or CandidateTally(*key)
        self._by_key[key] = replace(known, energy_pj=energy_pj, latency_cycles=latency_cycles, reason="")

    def refuse(self, reason: str) -> None:
        """Set the field `reason` of each spatial mapping that has a feasible loop order, but for which no loop order
        was chosen.
        """
        for key, known in self._by_key.items():
            if known.feasible and known.energy_pj is None:
                self._by_key[key] = replace(known, reason=reason)

    def __iter__(self) -> Iterator[CandidateTally]:
        return iter(self._by_key.values())


SUMMED_NOTES = ("nodes", "evaluations", "orders_in_space")
"""Names of the notes that are counts. If notes of several searches are combined, these counts are summed."""


def merged_notes(entries: Iterable[CandidateTally], chosen: CandidateTally | None) -> JsonObject:
    """Combined notes of the searches of all spatial mappings of a layer; {} if there are no notes.

    The combined notes are those of the chosen spatial mapping, with these exceptions. `lower_bound` is the smallest
    bound of all spatial mappings, and `gap` follows from it. `proven` is true only if it is true for all spatial
    mappings. `ended_by_time` is true if it is true for at least one spatial mapping. Counts are summed.
    """
    all_notes = [dict(entry.notes) for entry in entries if entry.notes]
    if not all_notes:
        return {}
    merged: dict[str, Any] = dict(chosen.notes) if chosen is not None and chosen.notes else dict(all_notes[0])
    if "proven" in merged:
        merged["proven"] = all(notes.get("proven", True) for notes in all_notes)
    bounds: list[Any] = [notes["lower_bound"] for notes in all_notes if "lower_bound" in notes]
    if bounds and "value" in merged:
        merged["lower_bound"] = min(bounds)
        merged["gap"] = gap_to(min(bounds), merged["value"])
    if any(notes.get("ended_by_time") for notes in all_notes):
        merged["ended_by_time"] = True
    for name in SUMMED_NOTES:
        if name in merged:
            counts = [notes.get(name, 0) for notes in all_notes]
            merged[name] = None if None in counts else sum(int(str(count)) for count in counts)
    return merged


__all__ = [
    "Descriptions",
    "Evaluations",
    "LayerProblem",
    "LayerRecord",
    "MappedWorkload",
    "NetworkProblem",
    "OrderBatch",
    "SpatialCandidate",
    "TemporalProblem",
]


@dataclass(frozen=True)
class LayerProblem:
    """Layer to be mapped on a core."""

    layer: Layer
    """Layer to be mapped."""
    core: Core
    """Core on which the layer is mapped."""
    constraints: MappingConstraints
    """Constraints of the mapping file for the layer."""
    memory_reach: "MemoryReach | None" = None
    """Outermost memory of each operand of the layer; None if all data reach the top memory."""
    names: tuple[str, ...] = ()
    """Names of all layers of the network that have this mapping problem."""


@dataclass(frozen=True)
class SpatialCandidate(LayerProblem):
    """Layer with one spatial mapping that is to be tried."""

    unrolling: Unrolling = ()
    """Spatial mapping: the unrolled loops and their lanes, for each array dimension."""
    index: int = 0
    """Index of the spatial mapping among the candidates of the layer."""

    @classmethod
    def of(cls, problem: LayerProblem, unrolling: Unrolling, index: int = 0) -> "SpatialCandidate":
        """Candidate made from a layer problem and a spatial mapping."""
        own = {field.name: getattr(problem, field.name) for field in fields(LayerProblem)}
        return cls(**own, unrolling=unrolling, index=index)


@dataclass(frozen=True, eq=False)
class TemporalProblem(PreparedProblem):
    """Layer with a spatial mapping, for which temporal mappers search loop orders.

    `spatial.temporal_sizes` has, for each loop dimension, the number of iterations that remain for temporal loops.
    Dimensions with only one remaining iteration are left out.
    """

    ordering: tuple[TemporalOrderingEntry, ...] = ()
    """Temporal ordering in the mapping file, innermost loop first."""
    candidate: int = 0
    """Index of the spatial mapping among the candidates of the layer."""
    given_boundaries: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Level boundaries that the mapping file gives for a complete ordering, as pairs (operand, numbers); () if the file
    gives none. `numbers` has a number for each memory level of the operand, innermost level first. The number counts
    the entries of `ordering` in this level and in all levels further inside.
    """
    names: tuple[str, ...] = ()
    """Names of all layers of the network that have this mapping problem."""

    @classmethod
    def of(
        cls,
        prepared: PreparedProblem,
        ordering: tuple[TemporalOrderingEntry, ...] = (),
        candidate: int = 0,
        given_boundaries: tuple[tuple[str, tuple[int, ...]], ...] = (),
        names: tuple[str, ...] = (),
    ) -> "TemporalProblem":
        """Temporal problem made from a prepared problem and the constraints on the search for loop orders."""
        own = {field.name: getattr(prepared, field.name) for field in fields(PreparedProblem)}
        return cls(**own, ordering=ordering, candidate=candidate, given_boundaries=given_boundaries, names=names)


@dataclass(frozen=True, eq=False)
class Evaluations:
    """Costs of mappings of one layer, and the tally of the search."""

    costs: CostedBatch | None = None
    """Loop orders with energy and latency; None if there are no loop orders. In this case, the tally gives the reason.
    """
    tally: tuple[CandidateTally, ...] = ()
    """Tallies, one for each spatial mapping."""


@dataclass(frozen=True, repr=False)
class MappedWorkload(OneCoreTables):
    """Network mapped on a core, with the tables `layers`, `energy`, `ports` and `schedule`."""

    records: tuple[LayerRecord, ...]
    """Records with the mapping of each distinct layer problem, in the order in which the problems first occur."""
    summary: dict[str, Any]
    """Totals of the network; see docs/artifacts/records.md."""
