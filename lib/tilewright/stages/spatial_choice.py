"""Which spatial mapping a CN gets on a core: that of the mapping file, the core's own dataflow, or a search."""

from dataclasses import replace

from tilewright.hardware.core import Core
from tilewright.mapping.constraints import MappingConstraints
from tilewright.workload.layer import Layer


def constraints_on_core(constraints: MappingConstraints, layer: Layer, core: Core) -> MappingConstraints:
    """What the mapping file says, as far as it is for this core.

    The spatial mapping of the file counts if the core has all the array dimensions that it names: systems of unlike
    cores share one file. Else the dataflow of the core counts, for each array dimension to which it gives a loop that
    the layer has. What is left open is searched, as are array dimensions in the single flow that the file leaves open.
    """
    array = core.operational_array.size_of
    if constraints.spatial_mapping and all(name in array for name, _ in constraints.spatial_mapping):
        return constraints
    dataflow = tuple(
        (name, factors)
        for name, factors in core.dataflows
        if name in array and any(layer.size_of.get(dimension, 1) > 1 for dimension, _ in factors)
    )
    return replace(constraints, spatial_mapping=dataflow)
