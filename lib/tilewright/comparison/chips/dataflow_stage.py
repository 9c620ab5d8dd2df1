"""The spatial mapping of the 2023 model: the dataflow, as far as array and layer have room for it."""

from collections.abc import Iterator
from dataclasses import dataclass, fields

from tilewright.mapping.spatial_generation import clean_user_mapping
from tilewright.search.options import SearchOptions
from tilewright.stages.base import Rest, Stage
from tilewright.stages.items import Evaluations, LayerProblem, SpatialCandidate
from tilewright.stages.run import below_workload, default_pipeline
from tilewright.stages.spatial import SpatialMappingGenerator


@dataclass(frozen=True)
class UnlimitedDataflow(SpatialMappingGenerator):
    """Hands on the spatial mapping that is given, limited by the sizes of array and layer alone.

    Capacity and bandwidth of the innermost memories do not limit it, and sides of the array that it leaves open are not
    used. Where none is given, it does what `SpatialMappingGenerator` does.
    """

    stands_for = ""

    def run(self, item: LayerProblem, rest: Rest) -> Iterator[Evaluations]:
        """The results of the dataflow."""
        given, sides = item.constraints.spatial_mapping, item.core.operational_array.dimensions
        if not given:
            yield from super().run(item, rest)
            return
        limits = {name: {loop: min(size, room) for loop, size in item.layer.loop_sizes} for name, room in sides}
        draft = clean_user_mapping(given, item.layer, item.core, limits)
        yield from rest(SpatialCandidate.of(item, tuple((name, tuple(loops.items())) for name, loops in draft.items())))


def stages_2023(options: SearchOptions) -> tuple[Stage, ...]:
    """The stages that map a computation node in the 2023 model: the default ones but for the spatial mapping."""
    return tuple(
        UnlimitedDataflow(**{field.name: getattr(stage, field.name) for field in fields(stage)})
        if isinstance(stage, SpatialMappingGenerator)
        else stage
        for stage in below_workload(default_pipeline(options).stages)
    )
