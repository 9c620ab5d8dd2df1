"""What flows through a pipeline below the parsers: down go networks, layers, spatial mappings and batches of loop
orders, up come evaluations, then records of layers, then the mapped network."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from tilewright.cost.record import LayerRecord
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import MappingConstraints, TemporalOrderingEntry, Unrolling
from tilewright.search.batch import CostedBatch, OrderBatch
from tilewright.search.evaluate import PreparedProblem
from tilewright.stages.descriptions import Descriptions, NetworkProblem
from tilewright.stages.tally import CandidateTally
from tilewright.workload.layer import Layer

if TYPE_CHECKING:
    from tilewright.mapping.data_locality import MemoryReach

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

    @classmethod
    def of(
        cls,
        prepared: PreparedProblem,
        ordering: tuple[TemporalOrderingEntry, ...] = (),
        candidate: int = 0,
        given_boundaries: tuple[tuple[str, tuple[int, ...]], ...] = (),
    ) -> "TemporalProblem":
        """A prepared problem with what the search of its loop orders has to know."""
        own = {field.name: getattr(prepared, field.name) for field in fields(PreparedProblem)}
        return cls(**own, ordering=ordering, candidate=candidate, given_boundaries=given_boundaries)


@dataclass(frozen=True, eq=False)
class Evaluations:
    """Costs of mappings of one layer, and the tally of what was tried for them."""

    costs: CostedBatch | None = None
    """Loop orders with their energy and latency; None: none to report, the tally says why."""
    tally: tuple[CandidateTally, ...] = ()
    """For each spatial mapping what was tried and what came of it."""


@dataclass(frozen=True)
class MappedWorkload:
    """A network mapped on a core."""

    records: tuple[LayerRecord, ...]
    """The mapping of each distinct layer problem, in the order of first use."""
    summary: dict[str, Any]
    """Totals of the network; see docs/artifacts.md."""
