"""Stage SpatialMappingConversion, which converts a spatial mapping into loops at each memory level."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tilewright.base.errors import MappingError
from tilewright.mapping.constraints import Unrolling
from tilewright.mapping.spatial_generation import (
    spatial_candidates,
)
from tilewright.pipeline.stages.base import Rest, Stage
from tilewright.pipeline.stages.items import (
    CandidateTally,
    Evaluations,
    LayerProblem,
    SpatialCandidate,
    TemporalProblem,
)
from tilewright.search.evaluate import prepare
from tilewright.search.options import BoundaryParameters

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class SpatialMappingConversion(BoundaryParameters, Stage):
    """Converts a spatial mapping into the loops at each memory level of each operand, and prepares the cost model.

    If no generator comes before this stage, the spatial mapping of the mapping file is converted. Sides of the array
    that this mapping does not set are not used. If a spatial mapping is impossible or has no loop order, the tally gets
    a row with the reason, and the search continues.

    Example: {set: SpatialMappingConversion, parameters: {temporal_mapping_type: even}}
    """

    access_same_data_considered_as_no_access: bool = True
    """True if an input that the array uses again in the next cycle needs no second read."""

    takes = LayerProblem
    gives = TemporalProblem
    stands_for = "SpatialMappingConversionStage"

    def run(self, item: LayerProblem, rest: Rest) -> Iterator[Evaluations]:
        """Yield the results for one spatial mapping, or the reason why it has no results."""
        candidate = item if isinstance(item, SpatialCandidate) else SpatialCandidate.of(item, self._given(item))
        try:
            yield from rest(self.prepared(candidate))
        except MappingError as error:
            yield Evaluations(None, (CandidateTally(candidate.index, candidate.unrolling, reason=str(error)),))

    def prepared(self, item: SpatialCandidate) -> TemporalProblem:
        """Temporal problem (the search problem for loop orders) of the spatial mapping. Raises MappingError if the
        spatial mapping is impossible.
        """
        given = item.constraints
        even = given.temporal_mapping_type or self.temporal_mapping_type
        same_data = given.access_same_data_considered_as_no_access
        prepared = prepare(
            item.layer,
            item.core,
            given.memory_operand_links,
            item.unrolling,
            self.part(BoundaryParameters, temporal_mapping_type=even),
            same_data_is_no_access=self.access_same_data_considered_as_no_access if same_data is None else same_data,
        )
        return TemporalProblem.of(prepared, given.temporal_ordering, item.index, given.level_boundaries, item.names)

    def _given(self, item: LayerProblem) -> Unrolling:
        """Spatial mapping of the mapping file, limited to the sizes of array and layer."""
        given = item.constraints.spatial_mapping
        sides = dict(given)
        closed = (*given, *((name, ()) for name, _ in item.core.operational_array.dimensions if name not in sides))
        constraints = replace(item.constraints, spatial_mapping=closed)
        return spatial_candidates(item.layer, item.core, constraints, self.profile)[0]
