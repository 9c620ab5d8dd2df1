"""Mappings that were found for changed hardware, evaluated on the unchanged hardware, to isolate the gain of a change.

A new search on changed hardware can be better for two reasons. Either the change helps, or the search found a better
mapping that the unchanged hardware also allows. The costs of the same mappings on the unchanged hardware show which
reason holds. Three parts of a mapping are fixed: the unrolling, the loop order, and the memory of each loop of an
operand. The memories must be fixed, because a memory of another size would be assigned other loops.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import NamedTuple

from tilewright.base.errors import InputError, MappingError
from tilewright.base.objectives import OBJECTIVES, ranking
from tilewright.cost.record import LayerRecord, times
from tilewright.designs.design_cost import DesignCost, reason_of
from tilewright.designs.results import OK
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import Mapping
from tilewright.pipeline.stages.run import map_workload
from tilewright.results.recorded_mappings import RecordedMapping, recorded_mappings
from tilewright.results.records import PlacedLayer, layers_in_order
from tilewright.search.options import SearchOptions
from tilewright.search.summary import total_in_order
from tilewright.workload.graph import Workload


class Outcome(NamedTuple):
    """Costs of a network on a core. If a network has no costs, `energy_pj` and `latency_cycles` are None, and `reason`
    says why.
    """

    energy_pj: float | None = None
    latency_cycles: float | None = None
    reason: str = ""

    def value(self, objective: str) -> float | None:
        """Value of the objective. None if there are no costs."""
        if self.energy_pj is None or self.latency_cycles is None:
            return None
        return OBJECTIVES[objective].value(self.energy_pj, self.latency_cycles)

    @classmethod
    def of(cls, records: Sequence[LayerRecord]) -> "Outcome":
        """Total energy and total latency of layers that run one after another."""
        energy = total_in_order(record.energy_pj for record in records)
        return cls(energy, total_in_order(record.latency_cycles for record in records))

    @classmethod
    def of_design(cls, cost: DesignCost) -> "Outcome":
        """Outcome of a design: its costs, or the reason why it has none."""
        return cls(cost.energy_pj, cost.latency_cycles) if cost.status == OK else cls(reason=cost.reason)

    @classmethod
    def refused(cls, error: InputError | MappingError) -> "Outcome":
        """Outcome without costs. The reason is taken from an error."""
        return cls(reason=reason_of(error) if isinstance(error, InputError) else _line(error))

    def is_no_more_than(self, other: "Outcome") -> bool:
        """True if energy and latency are both at most as large as in another outcome."""
        pairs = zip(self[:2], other[:2], strict=True)
        return all(one is not None and most is not None and one <= most for one, most in pairs)


@dataclass(frozen=True)
class Held:
    """Result of a search for changed hardware, evaluated on the unchanged hardware."""

    outcome: Outcome
    """Outcome of the whole network. It has no costs if the mapping of a layer does not fit."""
    of_layer: dict[str, LayerRecord] = field(default_factory=dict)
    """Records of the mappings that fit, by name of the layer. The costs in a record are the sums over all equal layers.
    {} for several cores.
    """


def held_mappings(network: Workload, mapping: Mapping, options: SearchOptions, changed: Core, core: Core) -> Held:
    """Evaluation, on the unchanged core `core`, of the mappings that a search finds for the core `changed`."""
    try:
        mapped = map_workload(network, changed, mapping, options)
        placed = layers_in_order(mapped.records, mapped.summary)
        one_each = {layer.record_index: layer.of_one for layer in placed}
        recorded = recorded_mappings(list(one_each.values()), changed, network)
    except (InputError, MappingError) as error:
        return Held(Outcome(reason=_line(error)))
    on_core: dict[int, LayerRecord] = {}
    reason = ""
    for index, one in zip(one_each, recorded, strict=True):
        try:
            record = with_levels(one, changed).on(core)
        except MappingError as error:
            reason = reason or f"{one.layer.name}: {_line(error)}"
            continue
        if (record.spatial_mapping, record.loop_order) == (one.record.spatial_mapping, one.record.loop_order):
            on_core[index] = record
        else:
            reason = reason or f"{one.layer.name}: the unrolling is too large for the unchanged hardware"
    held = {
        layer.name: times(on_core[layer.record_index], layer.repeats)
        for layer in placed
        if layer.record_index in on_core
    }
    return Held(Outcome(reason=reason) if reason else Outcome.of([held[layer.name] for layer in placed]), held)


def with_levels(one: RecordedMapping, core: Core) -> RecordedMapping:
    """Mapping `one`, which was found for `core`, with the memory of each loop fixed. If the mapping is evaluated on
    another core, the loops stay in these memories.

    If fixing the memories would change the cost on `core`, the mapping is returned unchanged.
    """
    loops = one.record.temporal_mapping
    counts = {operand: [sum(size != 1 for _, size in level) for level in levels] for operand, levels in loops.items()}
    bounds = tuple((operand, tuple(accumulate(own))) for operand, own in counts.items())
    fixed = replace(one, given=replace(one.given, level_boundaries=bounds))
    try:
        again = fixed.on(core)
    except MappingError:
        return one
    record = one.record
    is_same = (again.energy_pj, again.latency_cycles) == (record.energy_pj, record.latency_cycles)
    return fixed if is_same else one


def best_known(placed: Sequence[PlacedLayer], found: Sequence[Held], objective: str) -> Outcome:
    """Costs of the network on the unchanged hardware with the best known mapping of each layer.

    The best known mapping is the mapping of the run, or a mapping that was found for changed hardware.
    """
    best = []
    for layer in placed:
        own = [layer.record, *(one.of_layer[layer.name] for one in found if layer.name in one.of_layer)]
        best.append(min(own, key=lambda record: ranking(objective, record.energy_pj, record.latency_cycles)))
    return Outcome.of(best)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
