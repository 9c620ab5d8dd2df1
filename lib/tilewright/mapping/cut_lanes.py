"""Lanes that a mapping file asks for and layers do not get.

That a layer is smaller than the lanes is what a mapping for many layers always means, and is not told.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

from tilewright.errors import MappingError, Problems, count_of, some_of
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.mapping.spatial_generation import (
    clean_user_mapping,
    inner_operands,
    limit_to_capacity,
    maximum_unrolling,
    port_ceilings,
    size_limits,
)
from tilewright.profile import ModelProfile
from tilewright.workload.layer import Layer
from tilewright.workload.relevancy import operand_relevancy

Cut = tuple[str, str]
"""(array dimension, what cuts its lanes)."""


def note_cut_lanes(
    problems: Problems, mapping: Mapping, cuts: Iterable[tuple[str, MappingConstraints, Iterable[Cut]]]
) -> None:
    """Note every cause for which lanes are cut once, with the layers that it hits.

    `problems` are of the document of the mapping; `cuts` have the names of layers and their entries.
    """
    place_of = {id(entry): place for place, entry in enumerate(mapping.entries)}
    found: dict[tuple[int, str, str], dict[str, None]] = {}
    for layer, entry, its_cuts in cuts:
        for name, cause in its_cuts:
            found.setdefault((place_of[id(entry)], name, cause), {})[layer] = None
    for (place, name, cause), layers in found.items():
        names = list(layers)
        path = (place, "spatial_mapping", name)
        problems.notice(path, f"{cause} (in {count_of(len(names), 'layer')}: {some_of(names)})")


def cuts_by_array(layer: Layer, core: Core, constraints: MappingConstraints) -> Iterator[Cut]:
    """Array dimensions with fewer units than the lanes that the layer could fill."""
    array = core.operational_array.size_of
    for name, factors in constraints.spatial_mapping:
        if name in array and math.prod(_usable(layer, factors).values()) > array[name]:
            asked = math.prod(factor for _, factor in factors)
            yield name, f"takes {asked} lanes, and the array of {core.name} has {array[name]} here: the others are cut"


def cuts_on_core(layer: Layer, core: Core, constraints: MappingConstraints, profile: ModelProfile) -> Iterator[Cut]:
    """All cuts of a layer on a core: by the array, by other array dimensions that take the same loop, and unless the
    profile keeps what is given, by ports and capacity of inner memories."""
    yield from cuts_by_array(layer, core, constraints)
    if not set(dict(constraints.spatial_mapping)) <= set(core.operational_array.size_of):
        return
    keeps = profile.keep_given_unrolling
    if not keeps:
        yield from _cuts_by_ports(layer, core, constraints, profile)
    try:
        limits = size_limits(layer, core) if keeps else maximum_unrolling(layer, core, constraints, profile)
        draft = clean_user_mapping(constraints.spatial_mapping, layer, core, limits)
        yield from _left_out(layer, core, constraints, draft)
        before = {name: dict(factors) for name, factors in draft.items()}
        after = before if keeps else limit_to_capacity(draft, layer, core, constraints, profile)
    except MappingError:
        return  # that nothing fits is told by the search
    smaller = [name for name in before if after[name] != before[name]]
    memories = _overfull(before, layer, core, constraints, profile)
    for name in smaller:
        yield name, f"lanes are cut to those for which {some_of(memories)} {_has(memories)} room"


def _usable(layer: Layer, factors: Sequence[tuple[str, int]]) -> dict[str, int]:
    return {name: min(factor, layer.size_of[name]) for name, factor in factors if name in layer.size_of}


def _cuts_by_ports(layer: Layer, core: Core, constraints: MappingConstraints, profile: ModelProfile) -> Iterator[Cut]:
    array = core.operational_array.size_of
    asked = {name: _usable(layer, factors) for name, factors in constraints.spatial_mapping}
    for ceiling in port_ceilings(layer, core, constraints, profile):
        for name in ceiling.served:
            for dimension in ceiling.dimensions:
                wanted = min(asked.get(name, {}).get(dimension, 1), array[name])
                if wanted > ceiling.elements > 0:
                    moved = count_of(ceiling.elements, "element")
                    yield (
                        name,
                        f"{dimension} is cut to {ceiling.elements}: a port of {ceiling.memory} moves {moved} of"
                        f" {ceiling.operand} a cycle",
                    )


def _left_out(
    layer: Layer, core: Core, constraints: MappingConstraints, draft: dict[str, dict[str, int]]
) -> Iterator[Cut]:
    """Loops that are dropped since several array dimensions together take more of them than the layer has."""
    array = core.operational_array.size_of
    for name, factors in constraints.spatial_mapping:
        usable = _usable(layer, factors)
        if math.prod(usable.values()) > array[name]:
            continue  # told as more lanes than the array has
        for dimension, factor in usable.items():
            if factor > 1 and dimension not in draft[name]:
                yield name, f"{dimension} is left out: other array dimensions take it too, together more than there is"


def _overfull(
    draft: dict[str, dict[str, int]], layer: Layer, core: Core, constraints: MappingConstraints, profile: ModelProfile
) -> list[str]:
    """Inner memories that cannot hold what the lanes need at once."""
    found = []
    for operand, memory_index, served in inner_operands(layer, core, constraints):
        irrelevant = operand_relevancy(layer, operand, profile).irrelevant
        needed = math.prod(
            factor for name in served for d, factor in draft.get(name, {}).items() if d not in irrelevant
        )
        memory = core.memories[memory_index]
        if needed * layer.bits_of[operand] > memory.size_bits:
            found.append(memory.name)
    return list(dict.fromkeys(found)) or ["an inner memory"]


def _has(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"
