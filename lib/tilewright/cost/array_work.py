"""What a layer with a spatial mapping asks of an array, as models of arrays read it."""

from collections.abc import Mapping

from tilewright.cost.record import ArrayUseRecord, LayerRecord
from tilewright.hardware.array_model import ArrayWork, Window
from tilewright.hardware.core import DIGITAL, Core
from tilewright.hardware.system import IN_CELLS
from tilewright.mapping.constraints import Unrolling
from tilewright.mapping.spatial import spread_lanes
from tilewright.profile import ModelProfile, profile_by_name
from tilewright.workload.layer import Layer, weight_operand
from tilewright.workload.relevancy import operand_relevancy

Links = tuple[tuple[str, str], ...]
"""(layer operand, memory operand)"""


def array_work(layer: Layer, core: Core, unrolling: Unrolling, profile: ModelProfile, links: Links) -> ArrayWork:
    """What a layer with a spatial mapping asks of the array of a core. Raises MappingError as the conversion does."""
    given = {name: dict(factors) for name, factors in unrolling}
    if core.operational_array.kind == DIGITAL:
        return ArrayWork(layer.mac_count, given, given, {}, profile)
    lanes = spread_lanes(unrolling, layer, core) if profile.in_memory_active_parts else given
    return ArrayWork(layer.mac_count, given, lanes, input_loops(layer, profile, links), profile)


def array_use(
    layer: Layer, core: Core, unrolling: Unrolling, profile: ModelProfile, links: Links
) -> ArrayUseRecord | None:
    """The same as a part of a record; None of a digital array."""
    if core.operational_array.kind == DIGITAL:
        return None
    work = array_work(layer, core, unrolling, profile, links)
    return ArrayUseRecord({name: dict(lanes) for name, lanes in work.lanes.items()}, dict(work.input_loops))


def work_of_record(record: LayerRecord) -> ArrayWork:
    """What a layer asks of an array, from its record."""
    own = record.array_use or ArrayUseRecord({}, {})
    profile = profile_by_name(record.model)
    return ArrayWork(record.layer.work, record.spatial_mapping, own.lanes, own.input_loops, profile)


def input_loops(layer: Layer, profile: ModelProfile, links: Links) -> Mapping[str, Window | None]:
    """Loop dimensions of more than one iteration for which columns side by side need inputs of their own, each with the
    window in which it slides, None without one.

    They are those of the input that the mapping does not put into the cells. The reference knows those alone over which
    weights stay the same, of the input that is constant, and of two that are computed always of the first one (B14).
    """
    windows: dict[str, Window] = {}
    for relation in layer.relations:
        (first, one), (second, other) = relation.terms
        windows.setdefault(first, Window(second, one, other))
        windows.setdefault(second, Window(first, other, one))
    return {name: windows.get(name) for name in _input_loop_names(layer, profile, links)}


def _input_loop_names(layer: Layer, profile: ModelProfile, links: Links) -> tuple[str, ...]:
    if not profile.complete_in_memory_model:
        weight = weight_operand(layer)
        return () if weight is None else operand_relevancy(layer, weight, profile).irrelevant
    stored = [operand for operand in layer.input_operands if (operand, IN_CELLS) in links]
    arriving = [operand for operand in layer.input_operands if operand not in stored]
    if len(stored) != 1 or len(arriving) != 1:
        return ()
    same = operand_relevancy(layer, arriving[0], profile).irrelevant
    return tuple(name for name, size in layer.loop_sizes if size > 1 and name not in same)
