"""Data kept between layers: reduced cores, and correct decisions under `corrected`."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from tilewright.base.errors import MappingError
from tilewright.base.profile import CORRECTED, REFERENCE, ModelProfile, profile_by_name
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import Mapping
from tilewright.mapping.locality import MemoryReach, find_memory_reach, remove_unused_memories
from tilewright.pipeline.stages.run import map_layer
from tilewright.search.options import SearchOptions
from tilewright.workload.graph import Workload
from tilewright.workload.layer import activation_operand, weight_operand
from tilewright.workload.onnx import read_onnx

from tests.members import members
from tests.unit.cost.engine_cases import LINKS, convolution, gemm, memory, one_input, tpu_like
from tests.unit.mapping.locality_cases import (
    SWAPPED,
    buffered_core,
    chain,
    cores,
    entry,
    levels,
    mapping,
    network,
    networks,
    play,
    product,
)

many = settings(max_examples=members(400, 80), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


# networks -------------------------------------------------------------------------------------------------------------


def test_onnx_operators_tell_sizes_and_outputs() -> None:
    """ONNX nodes without a layer have the size of their output, and each node says whether it is a network output."""
    shape = [1, 2, 4, 4]
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 2, 1, 1])
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "conv", kernel_shape=[1, 1]),
        helper.make_node("Concat", ["a", "a"], ["b"], "join", axis=1),
        helper.make_node("Relu", ["b"], ["c"], "relu"),
    ]
    values = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, size)
        for name, size in (("x", shape), ("a", shape), ("b", [1, 4, 4, 4]), ("c", None))
    }
    graph = helper.make_graph(
        nodes, "g", [values["x"]], [values["a"], values["c"]], [weights], value_info=[values["b"]]
    )
    found = read_onnx(helper.make_model(graph), REFERENCE).workload.nodes
    assert [node.output_elements for node in found] == [None, 64, None]
    assert [node.is_network_output for node in found] == [True, False, True]


# roles ----------------------------------------------------------------------------------------------------------------


def test_roles_of_inputs() -> None:
    """The constant input is the weight, and a single input is the activation.

    If both inputs are computed, the first input in the equation is the weight. If both are constant, the input without
    a sliding window is the weight.
    """
    assert (activation_operand(gemm()), weight_operand(gemm())) == ("I", "W")
    turned = replace(gemm(), constant_operands=("I",))
    assert (activation_operand(turned), weight_operand(turned)) == ("W", "I")
    assert (activation_operand(product("p")), weight_operand(product("p"))) == ("W", "I")
    assert (activation_operand(entry("e")), weight_operand(entry("e"))) == ("I", "W")
    first = replace(convolution(), constant_operands=("W", "I"))
    assert (activation_operand(first), weight_operand(first)) == ("I", "W")
    assert (activation_operand(one_input()), weight_operand(one_input())) == ("I", None)


# the reduced core -----------------------------------------------------------------------------------------------------


def test_a_reduced_core_keeps_what_is_used() -> None:
    """A reduced core loses the memories and services that a layer does not use.
    The SRAM shrinks by the bits that other data occupy; the DRAM loses I1.
    """
    core = tpu_like()
    reduced = remove_unused_memories(core, gemm(), LINKS, MemoryReach("gemm", 2, 3, 3, ((2, 1000),)))
    assert [memory.name for memory in reduced.memories] == ["rf_128B", "rf_2B", "sram_2MB", "dram"]
    assert [memory.operands for memory in reduced.memories] == [("I2",), ("O",), ("I1", "O"), ("I2", "O")]
    assert [memory.size_bits for memory in reduced.memories] == [1024, 16, 16777216 - 1000, 10**10]
    assert {operand for operand, _ in reduced.memories[3].ports[0].allocation} == {"I2", "O"}
    assert reduced.name == core.name


def test_memories_and_ports_without_use_vanish() -> None:
    """Memories and ports without use vanish: without data in the DRAM the reduced core has no DRAM.
    An SRAM that holds nothing but outputs keeps both its ports.
    """
    core = tpu_like()
    reduced = remove_unused_memories(core, gemm(), LINKS, MemoryReach("gemm", 2, 2, 0))
    assert [memory.name for memory in reduced.memories] == ["rf_128B", "rf_2B", "sram_2MB"]
    two_ports = buffered_core((100, ("I1", "O")))
    (sums, buffer) = remove_unused_memories(two_ports, one_input(), LINKS, MemoryReach("relu", 0, 1, None)).memories
    assert (sums.operands, buffer.operands) == (("O",), ("O",))
    reads_only = replace(two_ports.memories[1].ports[0], allocation=(("I1", "tl"),))
    with_idle_port = replace(two_ports.memories[1], ports=(reads_only, *two_ports.memories[1].ports))
    core = replace(two_ports, memories=(two_ports.memories[0], with_idle_port, two_ports.memories[2]))
    assert len(remove_unused_memories(core, one_input(), LINKS, MemoryReach("relu", 0, 1, None)).memories[1].ports) == 2


def test_nothing_is_decided_for_no_layers() -> None:
    """A network without layers has no decisions."""
    core = buffered_core((100, ("I1", "O")))
    for profile in (REFERENCE, CORRECTED):
        assert find_memory_reach(network(("relu", ())), core, mapping(), profile) == ()


@pytest.mark.parametrize("profile", [REFERENCE, CORRECTED])
def test_an_operand_without_memory_is_told(profile: ModelProfile) -> None:
    """A core without a memory for weights is refused with the operand and the layer."""
    core = Core("one", buffered_core().operational_array, (memory("top", 100, ("I1", "O"), ("D1",), top=True),))
    with pytest.raises(MappingError, match=r"no memory for operand W \(memory operand I2\) of layer 'l0'"):
        find_memory_reach(chain(10), core, mapping(), profile)


# sound decisions ------------------------------------------------------------------------------------------------------


def residual(rows: int) -> Workload:
    """Return a network in which a feeds b, and the sum of a and b feeds c."""
    nodes = [(entry("a", D=rows),), (gemm("b", D=rows), (0,)), ("add", (0, 1), rows), (gemm("c", D=rows), (2,))]
    return network(*nodes)


def test_live_data_share_a_memory() -> None:
    """Live tensors share a memory if they fit together with a tile of weights.
    Two tensors of 80 bits and a tile of 8 bits fit 168 bits, but not 167.
    """
    reaches = find_memory_reach(residual(10), buffered_core((168, ("I1", "I2", "O"))), mapping(), CORRECTED)
    assert levels(reaches) == [(1, 1, 2), (1, 1, 2), (1, 1, 2)]
    assert [reach.reserved_bits for reach in reaches] == [()] * 3
    reaches = find_memory_reach(residual(10), buffered_core((167, ("I1", "I2", "O"))), mapping(), CORRECTED)
    assert all(reach.output == 2 or reach.activation == 2 for reach in reaches)


def test_a_tensor_that_only_waits_is_reserved() -> None:
    """A tensor that waits for a later join keeps its bits reserved while other layers run.

    The layers are a -> b -> c -> (sum of a and c) -> d. While c runs, the 80 bits that a made stay beside c's input and
    output.
    """
    workload = network(
        (entry("a", D=10),),
        (gemm("b", D=10), (0,)),
        (gemm("c", D=10), (1,)),
        ("add", (0, 2), 10),
        (gemm("d", D=10), (3,)),
    )
    reaches = find_memory_reach(workload, buffered_core((240, ("I1", "O"))), mapping(), CORRECTED)
    assert levels(reaches) == [(1, 1, 2)] * 4
    assert [reach.reserved_bits for reach in reaches] == [(), (), ((1, 80),), ()]
    reaches = find_memory_reach(workload, buffered_core((239, ("I1", "O"))), mapping(), CORRECTED)
    assert levels(reaches) == [(1, 2, 2), (2, 1, 2), (1, 2, 2), (2, 1, 2)]


def test_a_join_of_unknown_size_keeps_its_inputs() -> None:
    """A join of unknown size is made where its reader runs, so both its inputs wait until then."""
    workload = network((entry("a", D=10),), (gemm("b", D=10), (0,)), ("add", (0, 1)), (gemm("c", D=10), (2,)))
    reaches = find_memory_reach(workload, buffered_core((240, ("I1", "O"))), mapping(), CORRECTED)
    assert levels(reaches) == [(1, 1, 2)] * 3
    assert [reach.reserved_bits for reach in reaches] == [(), (), ((1, 80),)]


def test_weights_of_each_layer_are_decided_alone() -> None:
    """Weights stay in a memory only if they fit with the other weights; each layer is decided alone.

    The weights of three layers have 64, 320 and 64 bits. All of them stay in 448 bits, and in 447 only those of the
    first layer.
    """
    layers = [entry("a", K=8), gemm("b", C=8, K=5), gemm("c", K=8)]
    workload = network((layers[0],), (layers[1], (0,)), (layers[2], (1,)))
    reaches = find_memory_reach(workload, buffered_core((448, ("I2",))), mapping(), CORRECTED)
    assert [reach.weight for reach in reaches] == [1, 1, 1]
    assert [reach.reserved_bits for reach in reaches] == [((1, 384),), ((1, 128),), ((1, 384),)]
    reaches = find_memory_reach(workload, buffered_core((447, ("I2",))), mapping(), CORRECTED)
    assert [reach.weight for reach in reaches] == [1, 2, 2]


def test_partial_sums_need_more_room_than_outputs() -> None:
    """Partial sums of 16 bits need room while the layer runs, outputs of 8 bits while they wait."""
    workload = network((entry("a", D=10, C=2),), (gemm("b", D=10), (0,)))
    for bits, expected in ((320, 1), (319, 2)):
        reaches = find_memory_reach(workload, buffered_core((bits, ("I1", "O"))), mapping(), CORRECTED)
        assert reaches[0].activation == 1
        assert reaches[0].output == expected


def test_even_mappings_need_whole_operands() -> None:
    """A tile of weights is enough for an uneven mapping; an even mapping needs room for all weights."""
    workload = network((entry("a", C=10, K=10),))
    core = buffered_core((400, ("I1", "I2", "O")))
    links = mapping()
    assert find_memory_reach(workload, core, links, CORRECTED)[0].activation == 1
    assert find_memory_reach(workload, core, links, CORRECTED, even_mapping=True)[0].activation == 2


@pytest.mark.parametrize("model", ["zigzag-3.9.1+effective_top_memory_option", "corrected"])
def test_first_and_last_data_from_the_top(model: str) -> None:
    """The option takes the network input from the top memory and writes the network output to it (B39).
    In the plain reference the option has no effect.
    """
    core = buffered_core((10**6, ("I1", "O")))
    workload = chain(10, 10, 10)
    assert levels(find_memory_reach(workload, core, mapping(), REFERENCE, True)) == [(1, 1, 2)] * 3
    without = find_memory_reach(workload, core, mapping(), profile_by_name(model))
    assert levels(without) == [(1, 1, 2)] * 3
    found = find_memory_reach(workload, core, mapping(), profile_by_name(model), True)
    assert levels(found) == [(2, 1, 2), (1, 1, 2), (1, 2, 2)]


def test_live_data_in_the_reference_do_not_fit() -> None:
    """The reference checks each layer alone and puts two live chains into 320 bits, which hold one of them (B32)."""
    workload = network(
        (entry("a", D=10, C=2),),
        (gemm("b", D=10, C=2), (0,)),
        (gemm("c", D=10, C=2), (0,)),
        (gemm("d", D=10, C=2), (1,)),
        (gemm("e", D=10, C=2), (2,)),
        (product("f", D=10, C=2), (3, 4)),
    )
    core = buffered_core((320, ("I1", "O")))
    complaints = play(workload, core, mapping(), find_memory_reach(workload, core, mapping(), REFERENCE))
    assert "step 2: buffer0 holds 80 bits beside 320" in complaints
    assert play(workload, core, mapping(), find_memory_reach(workload, core, mapping(), CORRECTED)) == []


@many
@given(workload=networks(), core=cores(), links=st.sampled_from([LINKS, SWAPPED]), data=st.data())
def test_all_that_is_live_fits(
    workload: Workload, core: Core, links: tuple[tuple[str, str], ...], data: st.DataObject
) -> None:
    """A simulation under `corrected` reads each value where it was left, and no memory holds more than its size."""
    always, even = data.draw(st.booleans()), data.draw(st.booleans())
    reaches = find_memory_reach(workload, core, mapping(links), CORRECTED, always, even_mapping=even)
    assert [reach.layer for reach in reaches] == [node.name for node in workload.layers_in_order]
    assert play(workload, core, mapping(links), reaches) == []
    top = len(core.memories) - 1
    event("something is kept" if any(reach.output < top for reach in reaches) else "nothing is kept")
    event("something waits" if any(reach.reserved_bits for reach in reaches) else "nothing waits")


def test_the_play_finds_faults_of_the_reference() -> None:
    """The simulation finds the faults of the reference: live data, operands that do not fit, several instances."""
    found: Counter[str] = Counter()

    @settings(many, max_examples=members(400, 80))
    @given(networks(), cores())
    def collect(workload: Workload, core: Core) -> None:
        complaints = play(workload, core, mapping(), find_memory_reach(workload, core, mapping(), REFERENCE))
        found.update(
            text for text in ("beside", "cannot hold", "more than once") if any(text in line for line in complaints)
        )

    collect()
    assert min(found[text] for text in ("beside", "cannot hold", "more than once")) >= 5, found


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(workload=networks(), core=cores())
def test_a_layer_that_fits_the_core_fits_its_reduced_core(workload: Workload, core: Core) -> None:
    """A layer with a mapping on the whole core has one on its reduced core."""
    options = SearchOptions(model="corrected", lpf_limit=3, nb_spatial_mappings_generated=1)
    links = mapping()
    for node, reach in zip(workload.layers_in_order, find_memory_reach(workload, core, links, CORRECTED), strict=True):
        assert node.layer is not None
        constraints = links.constraints_for(node.layer)
        try:
            map_layer(node.layer, core, constraints, options)
        except MappingError:
            event("does not fit the core")
            continue
        event("fits")
        reduced = remove_unused_memories(core, node.layer, LINKS, reach)
        record = map_layer(node.layer, reduced, constraints, options)
        assert record.core == core.name


def test_reserved_room_is_left_free() -> None:
    """The mappings of a residual network leave room for waiting data: shares of the reduced memory are at most 1."""
    workload, core, links = residual(10), buffered_core((240, ("I1", "I2", "O"))), mapping()
    _check_shares(workload, core, links)


def _check_shares(workload: Workload, core: Core, links: Mapping) -> None:
    for node, reach in zip(workload.layers_in_order, find_memory_reach(workload, core, links, CORRECTED), strict=True):
        assert node.layer is not None
        reduced = remove_unused_memories(core, node.layer, LINKS, reach)
        record = map_layer(node.layer, reduced, links.constraints_for(node.layer), SearchOptions(model="corrected"))
        assert all(share <= 1 for shares in record.memory_utilization.values() for share in shares)
