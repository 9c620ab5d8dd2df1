"""The choice among several dataflows of a core for a CN."""

import pytest
from onnx.helper import make_node
from tilewright.hardware.core import Core, Dataflow
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.mapping.dataflows import constraints_on_core
from tilewright.multicore.scheduling.core_costs import CoreCostRow
from tilewright.pipeline.stages.multi.core_mapping import map_core
from tilewright.search.options import SearchOptions
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer

from tests.unit.multicore.nodes.networks import SAME, conv, read
from tests.unit.pipeline.stages.multi.core_cases import ANY, OPTIONS, core, cut, memory, system

CHANNELS: Dataflow = (("D1", (("K", 4),)),)
GROUPS: Dataflow = (("D1", (("G", 4),)),)
PIXELS: Dataflow = (("D1", (("OX", 4),)),)


def network(groups: int) -> Workload:
    """A convolution of 8 on 8 channels in `groups` groups, on 4 x 4 pixels."""
    return read([conv("x", "w", "a", group=groups, **SAME)], {"x": (1, 8, 4, 4)}, {"w": (8, 8 // groups, 3, 3)})


def layer_of(workload: Workload) -> Layer:
    """The only layer of a network."""
    (node,) = workload.nodes
    assert node.layer is not None
    return node.layer


def small(*dataflows: Dataflow) -> Core:
    """Four lanes over one memory that holds all operands."""
    return core(memory("all", 10**5, ("I1", "I2", "O"), 64), dataflows=dataflows)


def row_of(workload: Workload, one: Core, options: SearchOptions = OPTIONS, mapping: Mapping = ANY) -> CoreCostRow:
    """The cost row of the only class."""
    (row,) = map_core(cut(workload), workload, mapping, system({"one": one}), "one", options)
    return row


@pytest.mark.parametrize(
    ("groups", "dataflows", "expected"),
    [
        (1, (CHANNELS,), (CHANNELS,)),
        (1, (CHANNELS, GROUPS), (CHANNELS,)),
        (8, (CHANNELS, GROUPS), (GROUPS,)),
        (2, (CHANNELS, GROUPS), (CHANNELS, GROUPS)),
        (2, (GROUPS, CHANNELS), (GROUPS, CHANNELS)),
        (8, (CHANNELS,), ((),)),
        (1, (), ((),)),
        (1, ((*CHANNELS, ("D2", (("C", 4),))), (*CHANNELS, ("D3", (("C", 2),)))), (CHANNELS,)),
    ],
)
def test_dataflows_count_as_far_as_layer_and_array_have_them(
    groups: int, dataflows: tuple[Dataflow, ...], expected: tuple[Dataflow, ...]
) -> None:
    """Dataflows without a loop of the layer are no choices; if none is left, all spatial mappings are searched."""
    layer = layer_of(network(groups))
    found = constraints_on_core(MappingConstraints(""), layer, small(*dataflows))
    assert tuple(constraints.spatial_mapping for constraints in found) == expected


def test_the_mapping_file_comes_before_all_dataflows() -> None:
    """A spatial mapping in the file overrules the dataflows, unless it names array dimensions that the core lacks."""
    layer, one = layer_of(network(2)), small(CHANNELS, GROUPS)
    own = MappingConstraints("default", PIXELS)
    assert constraints_on_core(own, layer, one) == (own,)
    other = MappingConstraints("default", (("D2", (("OX", 4),)),))
    assert [found.spatial_mapping for found in constraints_on_core(other, layer, one)] == [CHANNELS, GROUPS]
    row = row_of(network(2), one, mapping=Mapping((own,)))
    assert row.mapping["spatial_mapping"] == {"D1": {"OX": 4}}


@pytest.mark.parametrize("objective", ["latency", "energy", "EDP"])
@pytest.mark.parametrize("groups", [1, 2, 4, 8])
def test_a_layer_gets_the_best_of_the_dataflows(groups: int, objective: str) -> None:
    """A layer costs what it costs on a core with only the best of the dataflows, in either order of the list."""
    options = SearchOptions(model="corrected", objective=objective)
    workload, flows = network(groups), (CHANNELS, GROUPS, PIXELS)
    layer = layer_of(workload)
    alone = [
        row_of(workload, small(flow), options)
        for flow in flows
        if constraints_on_core(MappingConstraints(""), layer, small(flow))[0].spatial_mapping
    ]

    def merit(row: CoreCostRow) -> float:
        energy, latency = row.on_core_energy_pj, row.total2_cycles
        return {"latency": latency, "energy": energy, "EDP": energy * latency}[objective]

    for order in (flows, flows[::-1]):
        assert merit(row_of(workload, small(*order), options)) == min(map(merit, alone))


def test_of_equal_dataflows_the_first_counts() -> None:
    """The first of two dataflows with equal costs is taken. Both spread outputs of a matrix product over equal
    sides.
    """
    workload = read([make_node("MatMul", ["x", "w"], ["y"], name="y")], {"x": (4, 1)}, {"w": (1, 4)})
    layer = layer_of(workload)
    over = [dimension for dimension, size in layer.loop_sizes if size == 4]
    assert len(over) == 2
    flows: list[Dataflow] = [(("D1", ((dimension, 4),)),) for dimension in over]
    for order in (flows, flows[::-1]):
        row = row_of(workload, small(*order))
        assert row.mapping["spatial_mapping"] == {"D1": dict(order[0][0][1])}


def test_a_layer_that_fits_by_no_dataflow_tells_the_reason_of_each() -> None:
    """A register for half a sum fits no dataflow, and the row gives a reason for each dataflow."""
    registers = memory("registers", 8, ("O",), 16, served=())
    one = core(registers, memory("all", 10**5, ("I1", "I2", "O"), 64), dataflows=(CHANNELS, PIXELS))
    row = row_of(network(1), one)
    assert not row.can_run
    assert "K" in row.reason.split(";")[0]
    assert any("OX" in part for part in row.reason.split(";"))
