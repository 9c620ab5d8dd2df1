"""Mappings of a run on other cores: the faster latency function agrees, and so do the corrected figures."""

from dataclasses import replace

import pytest
import tilewright
from tilewright.hardware.core import Core
from tilewright.hardware.source import parse_accelerator
from tilewright.results.port_limits import port_names, with_wider_ports
from tilewright.results.recorded_mappings import RecordedMapping, recorded_mappings
from tilewright.search.evaluate import corrected_figures, prepare
from tilewright.search.options import SearchOptions
from tilewright.workload.source import parse_workload

from tests.unit.main_stage.conftest import files

MODELS = ("corrected", "zigzag-3.9.1", "zigzag-3.9.1+exact_window_sizes")


def mappings(model: str) -> tuple[Core, tuple[RecordedMapping, ...]]:
    """The core and the mappings of a run of a small network."""
    given = files()
    run = tilewright.map(
        given["workload"], given["accelerator"], given["mapping"], preset="zigzag", lpf_limit=3, model=model
    )
    core = parse_accelerator(given["accelerator"]).cores[0]
    return core, recorded_mappings(run.records, core, parse_workload(given["workload"], model))


@pytest.mark.parametrize("model", MODELS)
def test_the_latency_alone_is_that_of_the_record(model: str) -> None:
    """The faster latency function agrees with a full evaluation on the run's core and with a wider port.

    On a core with too small memories, both raise the same error.
    """
    core, found = mappings(model)
    smaller = replace(core, memories=tuple(replace(memory, size_bits=8) for memory in core.memories))
    wider = [with_wider_ports(core, (port,)) for port in port_names(core)]
    differs = 0
    for mapping in found:
        for changed in (core, *wider):
            assert mapping.latency_cycles_on(changed) == mapping.on(changed).latency_cycles
            differs += mapping.latency_cycles_on(changed) != mapping.record.latency_cycles
        refusals = []
        for evaluated in (mapping.on, mapping.latency_cycles_on):
            with pytest.raises(tilewright.MappingError) as refused:
                evaluated(smaller)
            refusals.append(str(refused.value))
        assert refusals[0] == refusals[1]
    assert differs


@pytest.mark.parametrize("model", MODELS)
def test_corrected_figures_of_a_record(model: str) -> None:
    """Corrected figures are those of the mapping under the corrected model, whichever model the run has."""
    core, found = mappings(model)
    for mapping in found:
        record = mapping.record
        unrolling = tuple((side, tuple(factors.items())) for side, factors in record.spatial_mapping.items())
        links = tuple(record.memory_operand_links.items())
        prepared = prepare(mapping.layer, core, links, unrolling, SearchOptions(model=model))
        assert record.corrected == corrected_figures(prepared, record.loop_order)
        assert (record.corrected == (record.energy_pj, record.latency_cycles)) or model != "corrected"
