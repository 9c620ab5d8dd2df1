"""Spatial mappings of a layer on one of several cores: from the mapping file, or from the dataflows of the core.

If the file of a core sets `exclusive_dataflows`, the core runs only the dataflows in its file, and no array dimension
is searched. A mapping file can then only select one of the dataflows, with all or some of its lanes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tilewright.hardware.core import Core, Dataflow
from tilewright.mapping.constraints import MappingConstraints, Unrolling
from tilewright.workload.layer import Layer

Loops = tuple[tuple[str, int], ...]


def constraints_on_core(constraints: MappingConstraints, layer: Layer, core: Core) -> tuple[MappingConstraints, ...]:
    """Constraints for a layer on a core: one copy of `constraints` for each spatial mapping to try.

    If the mapping file gives a spatial mapping, and the core has all array dimensions of this mapping, the mapping is
    used. In all other cases, the dataflows of the core are used. One mapping file can therefore serve different cores.
    A dataflow fixes only the array dimensions on which it has a loop of the layer; the other array dimensions are
    searched. A dataflow without any loop of the layer is left out. If no dataflow is left, all array dimensions are
    searched.

    If the dataflows are exclusive, no array dimension is searched. Array dimensions without a loop of the layer are
    idle. If no dataflow has a loop of the layer, all array dimensions are idle. The result is () if no dataflow allows
    the spatial mapping of the mapping file (see `refusal`).
    """
    given = _given(constraints, core)
    if core.exclusive_dataflows:
        found = dict.fromkeys(_closed(given, layer, core))
        used = [unrolling for unrolling in found if _uses_lanes(unrolling, layer)]
        return tuple(replace(constraints, spatial_mapping=unrolling) for unrolling in used or found)
    if given:
        return (constraints,)
    usable = dict.fromkeys(part for dataflow in core.dataflows if (part := _part_for(layer, core, dataflow)))
    return tuple(replace(constraints, spatial_mapping=dataflow) for dataflow in usable or ((),))


def refusal(constraints: MappingConstraints, layer: Layer, core: Core) -> str:
    """Reason why a core with exclusive dataflows cannot run the spatial mapping of the mapping file; '' if it can."""
    if constraints_on_core(constraints, layer, core):
        return ""
    asked = _text(tuple((name, _lanes(layer, loops)) for name, loops in constraints.spatial_mapping))
    does = "; or ".join(_text(dataflow) for dataflow in core.dataflows)
    said = f"the mapping file asks for the spatial mapping {asked}, but core {core.name} can use only"
    return f"{said} its exclusive dataflows: {does}"


def has_no_dataflow(layer: Layer, core: Core) -> bool:
    """True if the core has exclusive dataflows, and none of them has a loop of the layer. The layer then runs on one
    unit of the array."""
    return core.exclusive_dataflows and not any(_uses_lanes(dataflow, layer) for dataflow in core.dataflows)


def _given(constraints: MappingConstraints, core: Core) -> Unrolling:
    """Spatial mapping that the mapping file gives; () if the core lacks one of its array dimensions."""
    given = constraints.spatial_mapping
    return given if all(name in core.operational_array.size_of for name, _ in given) else ()


def _closed(given: Unrolling, layer: Layer, core: Core) -> Iterator[Unrolling]:
    """Spatial mappings that fix all array dimensions, one for each dataflow that allows `given`. On the array
    dimensions of `given`, the loops of `given` replace those of the dataflow."""
    own = dict(given)
    for dataflow in core.dataflows:
        flow = dict(dataflow)
        if all(_is_within(_lanes(layer, loops), dict(flow.get(name, ()))) for name, loops in given):
            sides = (
                (name, own[name] if name in own else flow.get(name, ()))
                for name, _ in core.operational_array.dimensions
            )
            yield tuple(
                (name, tuple(loop for loop in loops if layer.size_of.get(loop[0], 1) > 1)) for name, loops in sides
            )


def _is_within(lanes: Loops, allowed: Mapping[str, int]) -> bool:
    """True if `allowed` has all loops of `lanes`, each with at least as many lanes. `allowed` has the loops of a
    dataflow on one array dimension.
    """
    return all(factor <= allowed.get(dimension, 1) for dimension, factor in lanes)


def _lanes(layer: Layer, loops: Loops) -> Loops:
    """Loops in `loops` that have more than one lane for this layer. `loops` has the loops on one array dimension. Each
    factor is reduced to the size of its loop dimension in the layer.
    """
    cut = ((dimension, min(factor, layer.size_of.get(dimension, 1))) for dimension, factor in dict(loops).items())
    return tuple((dimension, factor) for dimension, factor in cut if factor > 1)


def _uses_lanes(unrolling: Unrolling, layer: Layer) -> bool:
    return any(_lanes(layer, loops) for _, loops in unrolling)


def _part_for(layer: Layer, core: Core, dataflow: Dataflow) -> Dataflow:
    """Part of a dataflow that applies to a layer: the array dimensions on which the dataflow unrolls a loop of the
    layer, with all loops of the dataflow on these array dimensions.
    """
    return tuple(
        (name, factors)
        for name, factors in dataflow
        if name in core.operational_array.size_of
        and any(layer.size_of.get(dimension, 1) > 1 for dimension, _ in factors)
    )


def _text(unrolling: Unrolling) -> str:
    """Text of an unrolling for messages, such as `D1 K 16, D2 C 16`."""
    sides = ((name, " x ".join(f"{dimension} {factor}" for dimension, factor in loops)) for name, loops in unrolling)
    return ", ".join(f"{name} {loops}" for name, loops in sides if loops) or "nothing"
