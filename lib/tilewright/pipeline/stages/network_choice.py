"""Second search for the mappings of layers: it minimises the EDP of the network instead of the EDP of each layer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from tilewright.base.artifacts.codec import decode, encode
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.objectives import EDP, OBJECTIVES, energy_delay_product
from tilewright.base.proof import ROUNDING, Bounded
from tilewright.cost.record import LayerRecord
from tilewright.pipeline.stages.base import Stage, is_own
from tilewright.pipeline.stages.layers import what_is_minimised
from tilewright.pipeline.stages.temporal import Best, BestForNetwork
from tilewright.search.network_choice import (
    EFFORT_SHARE,
    GAPS_OF_A_LAYER,
    Found,
    NetworkChoice,
    NetworkLayer,
    NetworkWeight,
    Search,
)
from tilewright.search.run_bound import FrontEnd, FrontEnds, Line
from tilewright.search.summary import layer_bounds

Result = TypeVar("Result")
FOR_NETWORK = "for_network"
"""Key of the note on a mapping that was chosen for the EDP of the network. The note has the weighted sum of energy and
latency for which the mapping was chosen, and the lower bound of this sum.
"""


def chooses_for_network(stages: Sequence[Stage]) -> Best | None:
    """Stage Best in the search of layers, if layers are searched again for the EDP of the network; otherwise None.

    Layers are searched again if the objective is the EDP, if Best also searches the ends of the front of each layer,
    and if all stages are tilewright's own. With the option `front`, they are not searched again, because the front of
    the network shows all trade-offs.
    """
    mapper = next((stage for stage in stages if type(stage) is Best), None)
    if mapper is None or not all(is_own(type(stage)) for stage in stages):
        return None
    objectives = {what_is_minimised(tuple(stages)), mapper.objective}
    is_edp = all(OBJECTIVES.get(objective) == EDP for objective in objectives)
    return mapper if is_edp and mapper.ends and not mapper.front and mapper.effort != 0 else None


def stages_of(stages: Sequence[Stage], mapper: Best, weight: NetworkWeight) -> tuple[Stage, ...]:
    """Stages that search a layer for the least weighted sum. They replace the stages that search the layer for
    its EDP.
    """
    effort = None if mapper.effort is None else max(1, mapper.effort // EFFORT_SHARE)
    own = BestForNetwork.of(mapper, weight.pj_a_cycle, weight.largest_gap, effort)
    return tuple(own if stage is mapper else stage for stage in stages)


SearchAgain = Callable[[Sequence[int], NetworkWeight], Sequence[LayerRecord | None]]
"""Function that takes indices of layers. For each of these layers, it searches the mapping with the least weighted sum,
and returns its record; None for a layer without a mapping.
"""


def records_for_network(
    records: Sequence[LayerRecord], counts: Sequence[int], mapper: Best, again: SearchAgain
) -> list[LayerRecord]:
    """Records of the distinct layers of a network, with the mappings that are chosen for the EDP of the network.

    `counts` has, for each layer, how often it runs. If `layers_for_network` returns None, the result is `records`.
    """

    def search(places: Sequence[int], weight: NetworkWeight) -> list[Found[LayerRecord] | None]:
        return [
            None
            if one is None
            else found_for_network(one, one.energy_pj, float(one.latency_cycles), one.search, weight)
            for one in again(places, weight)
        ]

    first = [Found(record.energy_pj, float(record.latency_cycles), record) for record in records]
    layers = layers_for_network(first, [record.search for record in records], counts, mapper, search)
    return list(records) if layers is None else [_record(layer) for layer in layers]


def layers_for_network(
    first: Sequence[Found[Result]],
    searches: Sequence[Mapping[str, Any]],
    counts: Sequence[int],
    mapper: Best,
    search: Search[Result],
) -> list[NetworkLayer[Result]] | None:
    """Distinct layers of a network with the mappings that are chosen for the EDP of the network.

    `first` has the first mapping of each layer, `searches` has the notes of the searches that found these mappings, and
    `counts` says how often each layer runs. `search` searches layers again. None if a layer has no bounds of energy,
    latency and EDP. Also None if a time budget ended a search, because the result would then depend on the speed of the
    machine.
    """
    if not all(one.get("ends") and not one.get("ended_by_time") for one in searches):
        return None
    layers = [
        NetworkLayer(layer_bounds(notes, count), [found])
        for found, notes, count in zip(first, searches, counts, strict=True)
    ]
    NetworkChoice(layers, GAPS_OF_A_LAYER * mapper.largest_gap).run(search)
    return layers


def found_for_network(
    result: Result, energy_pj: float, latency_cycles: float, search: Mapping[str, Any], weight: NetworkWeight
) -> Found[Result]:
    """Mapping that a search for the least weighted sum of energy and latency found, with the proven line: the lower
    bound of this sum in `search`, the notes of the search. The line is None if the notes have no lower bound.
    """
    level = search.get("lower_bound")
    line = None if level is None else Line(weight.pj_a_cycle, level * (1 - ROUNDING))
    return Found(energy_pj, latency_cycles, result, line)


def _record(layer: NetworkLayer[LayerRecord]) -> LayerRecord:
    """Record of the chosen mapping of a layer. Its notes have the bound of the layer's own EDP, and the proven lines:
    lower bounds of weighted sums of energy and latency. If the chosen mapping does not have the least EDP, the notes
    also have the weighted sum for which it was chosen.
    """
    first, chosen = layer.found[0].result, layer.chosen
    if len(layer.found) == 1:
        return first
    others = [one.result for one in layer.found[1:]]
    search: dict[str, Any] = {**first.search, "lines": [encode(line) for line in sorted(layer.bounds.lines)]}
    search["nodes"] = search["nodes"] + sum(one.search["nodes"] for one in others)
    search["ends"] = encode(_ends(decode(FrontEnds, first.search["ends"]), layer))
    kept = first
    if layer.place:
        kept = chosen.result
        value = energy_delay_product(chosen.energy_pj, chosen.latency_cycles)
        search |= Bounded(value, min(value, search["lower_bound"])).stated()
        assert chosen.line is not None, "a search with a proof found the mapping"
        weight, total = chosen.line.pj_a_cycle, chosen.sum_pj(chosen.line.pj_a_cycle)
        own = {ENERGY_PJ: first.energy_pj, LATENCY_CYCLES: first.latency_cycles}
        proof = Bounded(total, min(total, chosen.line.level_pj)).stated()
        search[FOR_NETWORK] = {"pj_a_cycle": weight, **proof, "least_of_layer": own}
    known = {str(row.spatial_mapping) for row in kept.candidates or ()}
    further = [row for row in first.candidates or () if str(row.spatial_mapping) not in known]
    return replace(
        kept,
        search=search,
        candidates=(*(kept.candidates or ()), *further),
        evaluations=first.evaluations and first.evaluations + sum(one.evaluations or 0 for one in others),
    )


def _ends(ends: FrontEnds, layer: NetworkLayer[LayerRecord]) -> FrontEnds:
    """Ends of the front of a layer, with the chosen mapping. If the second search of the layer found a mapping that is
    better than an end in `ends`, this mapping becomes the end.
    """
    for one in layer.found[1:]:
        if one.energy_pj < ends.energy.energy_pj:
            ends = replace(ends, energy=FrontEnd(one.energy_pj, one.latency_cycles, ends.energy.lower_bound))
        if one.latency_cycles < ends.latency.latency_cycles:
            ends = replace(ends, latency=FrontEnd(one.energy_pj, one.latency_cycles, ends.latency.lower_bound))
    return replace(ends, chosen=FrontEnd(layer.chosen.energy_pj, layer.chosen.latency_cycles))
