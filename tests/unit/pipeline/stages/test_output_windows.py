"""Networks whose outputs are addressed by windows: every engine maps them, and no engine claims a proof it lacks."""

import pytest
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.pipeline.stages.run import map_workload
from tilewright.results.checks import check_run, failure_message
from tilewright.results.proof_text import proof_lines
from tilewright.search.options import SearchOptions
from tilewright.workload.graph import Workload, WorkloadNode

from tests.unit.cost.test_replay import scatter, scatter_core


@pytest.mark.parametrize("given", [{"spatial_mapping": (("D1", (("FX", 1),)),)}, {}])
@pytest.mark.parametrize("allocation", ["greedy", "free"])
def test_the_exact_engine_says_why_there_is_no_proof(given: dict, allocation: str) -> None:
    """The layer gets the mapping of loma; summary and terminal name the layer and the reason for the missing proof."""
    layer, core = scatter(), scatter_core()
    network = Workload("net", (WorkloadNode(0, layer.name, layer.operator_type, layer),))
    mapping = Mapping((MappingConstraints("default", **given),))
    exact = SearchOptions(model="corrected", temporal_mapping_search_engine="exact", allocation=allocation)
    found = map_workload(network, core, mapping, exact)
    loma = map_workload(network, core, mapping, SearchOptions(model="corrected"))
    assert found.records[0].latency_cycles == loma.records[0].latency_cycles
    assert "certificate" not in found.summary
    ((reason, layers),) = found.summary["without_proof"].items()
    assert layers == ["scatter"]
    assert "sliding window" in reason
    assert [line for line in proof_lines(found.summary) if "no proof for 1 layer (scatter)" in line]
    assert failure_message(check_run(found.records, found.summary, core)) == ""
