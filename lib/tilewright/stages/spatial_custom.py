"""The generator of spatial mappings that Stream uses for its computation nodes."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from tilewright.errors import MappingError
from tilewright.mapping.constraints import Unrolling
from tilewright.mapping.spatial_generation import MaximumUnrolling, clean_user_mapping, maximum_unrolling
from tilewright.profile import ModelChoice
from tilewright.stages.base import Rest, Stage
from tilewright.stages.items import Evaluations, LayerProblem, SpatialCandidate

_Loop = tuple[str, int]


@dataclass(frozen=True)
class CustomSpatialMappingGenerator(ModelChoice, Stage):
    """Hands on the spatial mapping that the mapping file or the core gives, or else what the rule of Stream makes: on
    each side of the array one loop, by the largest of its divisors for which array and bandwidth have room.

    A mapping that is given is taken as it is: sides of the array that it does not name are not used. Without one, every
    combination of loops over the sides is handed on in which no loop occurs twice. The capacity of the innermost
    memories limits neither: what does not fit there is a row of the tally. Its place is in a pipeline of a single core
    or in the `pipeline` of IntraCoreMapping.

    Example: {replace: SpatialMappingGenerator, stage: CustomSpatialMappingGenerator}
    """

    takes = LayerProblem
    gives = SpatialCandidate
    stands_for = "nothing; CustomSpatialMappingGeneratorStage in Stream"

    def run(self, item: LayerProblem, rest: Rest) -> Iterator[Evaluations]:
        """The results of one candidate after the other. Raises MappingError if no side of the array can be used."""
        found = [_given(item)] if item.constraints.spatial_mapping else list(self._generated(item))
        if not found:
            raise MappingError(f"layer '{item.layer.name}' has no loops for all sides of the array that it could use")
        for index, unrolling in enumerate(found):
            yield from rest(SpatialCandidate.of(item, unrolling, index))

    def _generated(self, item: LayerProblem) -> Iterator[Unrolling]:
        """Every choice of a loop for each side of the array, sides in their order, loops in that of the layer."""
        limits = maximum_unrolling(item.layer, item.core, item.constraints, self.profile)
        sides = [name for name, _ in item.core.operational_array.dimensions]
        for loops in product(*(_options(item, name, limits) for name in sides)):
            used = [loop[0] for loop in loops if loop is not None]
            if len(set(used)) == len(used):
                yield tuple((name, () if loop is None else (loop,)) for name, loop in zip(sides, loops, strict=True))


def _options(item: LayerProblem, side: str, limits: MaximumUnrolling) -> list[_Loop | None]:
    """The loops that a side of the array may take, each with its factor; None alone where there is none."""
    options: list[_Loop | None] = []
    for dimension, size in item.layer.loop_sizes:
        factor = next((f for f in range(min(limits[side][dimension], size), 1, -1) if size % f == 0), 1)
        if factor > 1:
            options.append((dimension, factor))
    return options or [None]


def _given(item: LayerProblem) -> Unrolling:
    """The given spatial mapping, cut to the sizes of array and layer. Raises MappingError for unknown sides."""
    sides = item.core.operational_array.dimensions
    limits = {name: {loop: min(size, room) for loop, size in item.layer.loop_sizes} for name, room in sides}
    draft = clean_user_mapping(item.constraints.spatial_mapping, item.layer, item.core, limits)
    return tuple((name, tuple(draft.get(name, {}).items())) for name, _ in sides)
