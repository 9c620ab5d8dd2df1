"""Items that flow through a pipeline below the parsers: networks to loop orders down, evaluations to results up.

With them goes the tally of a search: for each spatial mapping of a layer what was tried and what came of it.
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
    """What was tried for one spatial mapping, or for a part of its loop orders."""

    candidate: int
    """Position among the candidates of the layer."""
    unrolling: Unrolling
    orders: int = 0
    """Loop orders looked at."""
    feasible: int = 0
    """Orders among these that meet the constraints and fit the core."""
    energy_pj: float | None = None
    """Energy of the mapping that was chosen, if one was."""
    latency_cycles: float | None = None
    reason: str = ""
    """Why there is none to choose."""
    missed_by: float = math.inf
    """What the order that missed by least needed over what there is; of several reasons the closest one."""
    notes: Notes = ()
    """What the search says of itself, as JSON values."""

    @property
    def key(self) -> tuple[int, Unrolling]:
        """Tallies of one key are of the same spatial mapping."""
        return self.candidate, self.unrolling

    def plus(self, other: "CandidateTally") -> "CandidateTally":
        """Both parts together; what was chosen stays that of the first, unless only the second has something."""
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
        """The row of `candidates` in a record."""
        return CandidateRow(
            unrolling_record(self.unrolling),
            self.orders,
            self.feasible,
            self.energy_pj,
            self.latency_cycles,
            self.reason,
        )


class Tally:
    """Adds up tallies by spatial mapping, in the order in which these are first met."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[int, Unrolling], CandidateTally] = {}

    def add(self, entries: Iterable[CandidateTally]) -> None:
        """Count what was tried."""
        for entry in entries:
            known = self._by_key.get(entry.key)
            self._by_key[entry.key] = entry if known is None else known.plus(entry)

    def choose(self, key: tuple[int, Unrolling], energy_pj: float, latency_cycles: float) -> None:
        """Note the figures of the mapping that is the best so far of a spatial mapping."""
        known = self._by_key.get(key) or CandidateTally(*key)
        self._by_key[key] = replace(known, energy_pj=energy_pj, latency_cycles=latency_cycles, reason="")

    def refuse(self, reason: str) -> None:
        """Note why nothing was chosen of spatial mappings that have mappings which fit."""
        for key, known in self._by_key.items():
            if known.feasible and known.energy_pj is None:
                self._by_key[key] = replace(known, reason=reason)

    def __iter__(self) -> Iterator[CandidateTally]:
        return iter(self._by_key.values())


SUMMED_NOTES = ("nodes", "evaluations", "orders_in_space")
"""Notes that count work or choices."""


def merged_notes(entries: Iterable[CandidateTally], chosen: CandidateTally | None) -> JsonObject:
    """What the searches of all spatial mappings of a layer say together, {} if nothing.

    The notes are those of the chosen spatial mapping, but the bound is that of all, and a proof needs all.
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
    """A layer to be mapped on a core."""

    layer: Layer
    core: Core
    constraints: MappingConstraints
    """What the mapping file says for the layer."""
    memory_reach: "MemoryReach | None" = None
    """Up to which memory the data of the layer go; None for all the way."""
    names: tuple[str, ...] = ()
    """All layers of the network that have this problem."""


@dataclass(frozen=True)
class SpatialCandidate(LayerProblem):
    """A layer with one spatial mapping to be tried."""

    unrolling: Unrolling = ()
    index: int = 0
    """Position among the candidates of the layer."""

    @classmethod
    def of(cls, problem: LayerProblem, unrolling: Unrolling, index: int = 0) -> "SpatialCandidate":
        """A candidate for a layer."""
        own = {field.name: getattr(problem, field.name) for field in fields(LayerProblem)}
        return cls(**own, unrolling=unrolling, index=index)


@dataclass(frozen=True, eq=False)
class TemporalProblem(PreparedProblem):
    """A layer with its spatial mapping, ready for loop orders: what temporal mappers search.

    `spatial.temporal_sizes` are the iterations that are left of each loop dimension.
    """

    ordering: tuple[TemporalOrderingEntry, ...] = ()
    """The temporal ordering that the mapping file asks for, innermost first."""
    candidate: int = 0
    """Position of the spatial mapping among the candidates of the layer."""
    given_boundaries: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """The level boundaries that the mapping file gives for a complete ordering; () if it leaves them open."""
    names: tuple[str, ...] = ()
    """All layers of the network that have this problem."""

    @classmethod
    def of(
        cls,
        prepared: PreparedProblem,
        ordering: tuple[TemporalOrderingEntry, ...] = (),
        candidate: int = 0,
        given_boundaries: tuple[tuple[str, tuple[int, ...]], ...] = (),
        names: tuple[str, ...] = (),
    ) -> "TemporalProblem":
        """A prepared problem with what the search of its loop orders has to know."""
        own = {field.name: getattr(prepared, field.name) for field in fields(PreparedProblem)}
        return cls(**own, ordering=ordering, candidate=candidate, given_boundaries=given_boundaries, names=names)


@dataclass(frozen=True, eq=False)
class Evaluations:
    """Costs of mappings of one layer, and the tally of what was tried for them."""

    costs: CostedBatch | None = None
    """Loop orders with their energy and latency; None: none to report, the tally says why."""
    tally: tuple[CandidateTally, ...] = ()
    """Tally of each spatial mapping: what was tried and what came of it."""


@dataclass(frozen=True, repr=False)
class MappedWorkload(OneCoreTables):
    """A network mapped on a core; `layers`, `energy`, `ports` and `schedule` are tables of it."""

    records: tuple[LayerRecord, ...]
    """The mapping of each distinct layer problem, in the order of first use."""
    summary: dict[str, Any]
    """Totals of the network; see docs/artifacts.md."""
