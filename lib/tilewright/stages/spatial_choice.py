"""Which spatial mappings a CN may get on a core: that of the mapping file, the core's own dataflows, or a search."""

from dataclasses import replace

from tilewright.hardware.core import Core, Dataflow
from tilewright.mapping.constraints import MappingConstraints
from tilewright.workload.layer import Layer


def constraints_on_core(constraints: MappingConstraints, layer: Layer, core: Core) -> tuple[MappingConstraints, ...]:
    """What the mapping file says, as far as it is for this core, with each spatial mapping that is to be tried.

    The spatial mapping of the file counts if the core has all the array dimensions that it names: systems of unlike
    cores share one file. Else each dataflow of the core counts, for the array dimensions to which it gives a loop that
    the layer has; a dataflow without any is left out. What is left open is searched, as are array dimensions in the
    single flow that the file leaves open: everything, where no dataflow is for the layer.
    """
    array = core.operational_array.size_of
    if constraints.spatial_mapping and all(name in array for name, _ in constraints.spatial_mapping):
        return (constraints,)
    usable = dict.fromkeys(part for dataflow in core.dataflows if (part := _part_for(layer, core, dataflow)))
    return tuple(replace(constraints, spatial_mapping=dataflow) for dataflow in usable or ((),))


def _part_for(layer: Layer, core: Core, dataflow: Dataflow) -> Dataflow:
    """The array dimensions of a dataflow that get a loop which the layer has."""
    return tuple(
        (name, factors)
        for name, factors in dataflow
        if name in core.operational_array.size_of
        and any(layer.size_of.get(dimension, 1) > 1 for dimension, _ in factors)
    )
