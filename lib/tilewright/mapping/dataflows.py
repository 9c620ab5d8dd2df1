"""Spatial mappings of a layer on one core of several: those that the mapping file gives, or the dataflows of the core.

A core file says with `exclusive_dataflows` that its array does nothing else. Then no side of the array is left open,
and a mapping file can only choose among the dataflows, or use fewer lanes of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tilewright.hardware.core import Core, Dataflow
from tilewright.mapping.constraints import MappingConstraints, Unrolling
from tilewright.workload.layer import Layer

Loops = tuple[tuple[str, int], ...]


def constraints_on_core(constraints: MappingConstraints, layer: Layer, core: Core) -> tuple[MappingConstraints, ...]:
    """What the mapping file says, as far as it is for this core, with each spatial mapping that is to be tried.

    The spatial mapping of the file counts if the core has all the array dimensions that it names: systems of unlike
    cores share one file. Else each dataflow of the core counts, for the array dimensions to which it gives a loop that
    the layer has; a dataflow without any is left out. What is left open is searched, as are array dimensions in the
    single flow that the file leaves open: everything, where no dataflow is for the layer.

    With exclusive dataflows nothing is left open: sides without a loop are idle, and where no dataflow is for the layer
    all are. () if the file gives what no dataflow does (`refusal`).
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
    """Why a core with exclusive dataflows does not do what the mapping file gives; '' where it does."""
    if constraints_on_core(constraints, layer, core):
        return ""
    asked = _text(tuple((name, _lanes(layer, loops)) for name, loops in constraints.spatial_mapping))
    does = "; or ".join(_text(dataflow) for dataflow in core.dataflows)
    said = f"the spatial mapping of the mapping file, {asked}, is none of the exclusive dataflows"
    return f"{said} of core {core.name}: {does}"


def has_no_dataflow(layer: Layer, core: Core) -> bool:
    """Whether a core with exclusive dataflows runs a layer on one unit, since none of them has a loop of it."""
    return core.exclusive_dataflows and not any(_uses_lanes(dataflow, layer) for dataflow in core.dataflows)


def _given(constraints: MappingConstraints, core: Core) -> Unrolling:
    """The spatial mapping of the mapping file if it is one for this core."""
    given = constraints.spatial_mapping
    return given if all(name in core.operational_array.size_of for name, _ in given) else ()


def _closed(given: Unrolling, layer: Layer, core: Core) -> Iterator[Unrolling]:
    """All sides of the array for each dataflow that allows what is given: as given, else as the dataflow has them."""
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
    """Whether a dataflow unrolls the same loops over a side of the array, and as many lanes of each or more."""
    return all(factor <= allowed.get(dimension, 1) for dimension, factor in lanes)


def _lanes(layer: Layer, loops: Loops) -> Loops:
    """Loops of a side of the array as far as a layer has them; without those of one lane."""
    cut = ((dimension, min(factor, layer.size_of.get(dimension, 1))) for dimension, factor in dict(loops).items())
    return tuple((dimension, factor) for dimension, factor in cut if factor > 1)


def _uses_lanes(unrolling: Unrolling, layer: Layer) -> bool:
    return any(_lanes(layer, loops) for _, loops in unrolling)


def _part_for(layer: Layer, core: Core, dataflow: Dataflow) -> Dataflow:
    """The array dimensions of a dataflow that get a loop which the layer has."""
    return tuple(
        (name, factors)
        for name, factors in dataflow
        if name in core.operational_array.size_of
        and any(layer.size_of.get(dimension, 1) > 1 for dimension, _ in factors)
    )


def _text(unrolling: Unrolling) -> str:
    """An unrolling for people: D1 K 16, D2 C 16."""
    sides = ((name, " x ".join(f"{dimension} {factor}" for dimension, factor in loops)) for name, loops in unrolling)
    return ", ".join(f"{name} {loops}" for name, loops in sides if loops) or "nothing"
