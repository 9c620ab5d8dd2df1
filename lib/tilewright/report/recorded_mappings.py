"""The mappings of a run, costed again on the core of the run or on one with other figures."""

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.cost.record import LayerRecord
from tilewright.errors import InputError, MappingError, Problem, nearest_name
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import MappingConstraints
from tilewright.mapping.yaml_reader import read_mapping
from tilewright.report.export import mapping_entries
from tilewright.search.evaluate import evaluate_given
from tilewright.search.options import SearchOptions
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer


@dataclass(frozen=True, eq=False)
class RecordedMapping:
    """The mapping of a record: unrolling, loop order and all else that `tilewright export` writes of it."""

    record: LayerRecord
    layer: Layer
    given: MappingConstraints

    def on(self, core: Core) -> LayerRecord:
        """What `tilewright evaluate` says of it on a core. Raises MappingError where it does not fit."""
        return evaluate_given(self.layer, core, self.given, SearchOptions(model=self.record.model))


def recorded_mappings(records: Sequence[LayerRecord], core: Core, network: Workload) -> tuple[RecordedMapping, ...]:
    """The mappings of the records of a run on `core`, in their order.

    Raises InputError where the network does not have a layer, or a mapping does not cost on the core what the record
    says: the descriptions are others than those of the run, or stages of the user's cost it otherwise.
    """
    mapping = read_mapping(mapping_entries(records))
    layers = {node.layer.name: node.layer for node in network.nodes if node.layer is not None}
    problems, found = [], []
    for record in records:
        name = record.layer.name
        layer = layers.get(name)
        if layer is None:
            nearest = nearest_name(name, list(layers))
            problems.append(Problem("the workload has no such layer", path=name, nearest=nearest))
            continue
        one = RecordedMapping(record, layer, mapping.constraints_for(layer))
        if reason := _difference(one, core):
            problems.append(Problem(reason, path=name))
        found.append(one)
    if problems:
        raise InputError(problems)
    return tuple(found)


def _difference(recorded: RecordedMapping, core: Core) -> str:
    """Why a mapping does not cost on the core of the run what its record says; '' where it does."""
    record = recorded.record
    try:
        again = recorded.on(core)
    except MappingError as error:
        return f"the mapping of the run does not fit this hardware: {error}"
    if (again.energy_pj, again.latency_cycles) == (record.energy_pj, record.latency_cycles):
        return ""
    figures = f"{record.energy_pj:.10g} pJ and {record.latency_cycles:.10g} cycles in the run"
    return (
        f"the cost model says another cost of this mapping than the run ({again.energy_pj:.10g} pJ and"
        f" {again.latency_cycles:.10g} cycles, {figures}): stages of its own cost it, or the descriptions are others"
    )
