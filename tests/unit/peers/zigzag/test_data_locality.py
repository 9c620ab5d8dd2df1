"""Data kept between layers by the rules of zigzag-dse 3.9.1, cut-out nodes included."""

from tilewright.base.profile import CORRECTED, REFERENCE
from tilewright.hardware.core import Core
from tilewright.mapping.locality import find_memory_reach, remove_unused_memories
from tilewright.peers.zigzag.data_locality import layer_graph

from tests.unit.cost.engine_cases import LINKS, gemm, memory
from tests.unit.mapping.locality_cases import buffered_core, chain, entry, levels, mapping, network, play, product


def test_nodes_without_layers_are_cut_out() -> None:
    """Nodes without layers are cut out of the graph of layers, and their connections are joined.

    The network is 0 -> relu -> {1, add} and 1 -> add -> relu -> 2, so layer 2 follows 0 and 1. The connection of 1
    comes first, because the sum lists its inputs in the order 1, relu.
    """
    workload = network(
        (entry("a"),), ("relu", (0,)), (gemm("b"), (1,)), ("add", (2, 1)), ("relu", (3,)), (gemm("c"), (4,))
    )
    graph = layer_graph(workload)
    assert graph.in_topological_order == (0, 2, 5)
    assert graph.predecessors == {0: (), 2: (0,), 5: (2, 0)}
    assert graph.successors == {0: (2, 5), 2: (5,), 5: ()}


def test_order_without_cut_out_nodes_may_be_another_one() -> None:
    """Layers b and c are one generation if there are no cut-out nodes. c runs first, because b waits for a chain of two
    operators.
    """
    workload = network((entry("a"),), ("relu", (0,)), ("relu", (1,)), (gemm("b"), (2,)), (gemm("c"), (0,)))
    assert [node.name for node in workload.layers_in_order] == ["a", "c", "b"]
    assert layer_graph(workload).in_topological_order == (0, 4, 3)
    swapped = network((entry("a"),), (gemm("b"), (0,)), ("relu", (1,)), (gemm("c"), (2,)), (gemm("d"), (1,)))
    assert layer_graph(swapped).in_topological_order == (0, 1, 4, 3)


def test_reference_keeps_a_chain_below_the_top() -> None:
    """Activations of a chain stay in the lower memory if they fit, and else go to the top memory.

    Each layer has D rows: 16·D bits of inputs and 16·D of partial sums, which have 8 bits once final. With D = 10 both
    fit in a buffer of 320 bits, and not in 319. The buffer may not hold weights.
    """
    core = buffered_core((320, ("I1", "O")))
    assert levels(find_memory_reach(chain(10, 10, 10), core, mapping(), REFERENCE)) == [(1, 1, 2)] * 3
    core = buffered_core((319, ("I1", "O")))
    assert levels(find_memory_reach(chain(10, 10, 10), core, mapping(), REFERENCE)) == [(2, 2, 2)] * 3


def test_reference_sends_branches_to_the_top() -> None:
    """a feeds b, and c reads the sum of a and b: the outputs of a and b go to the top memory, and that of c stays."""
    core = buffered_core((10**6, ("I1", "O")))
    workload = network((entry("a"),), (gemm("b"), (0,)), ("add", (0, 1), 1), (gemm("c"), (2,)))
    assert levels(find_memory_reach(workload, core, mapping(), REFERENCE)) == [(2, 2, 2), (2, 2, 2), (2, 1, 2)]


def test_reference_lets_one_small_layer_keep_all_weights() -> None:
    """B32: one layer that fits into a lower memory moves the weights of all layers there.

    A buffer of 400 bits holds all operands. All weights together have 3 · 16 bits. Besides the weights, the two layers
    with 10 rows need 320 bits, and the layer with 100 rows needs 3200 bits.
    """
    core = buffered_core((400, ("I1", "I2", "O")))
    reaches = find_memory_reach(chain(10, 100, 10), core, mapping(), REFERENCE)
    assert levels(reaches) == [(1, 1, 1), (1, 2, 1), (2, 1, 1)]


def test_reference_takes_an_activation_for_weights() -> None:
    """B32: the first input of a product counts as its weight, which sends all weights to a memory that does not hold
    them.

    The input goes through the buffer of activations, which has room for it, and lowers the limit for weights.
    """
    core = buffered_core((10**6, ("I1", "O")))
    workload = network((entry("a"),), (entry("b"),), (product("c"), (0, 1)))
    reaches = find_memory_reach(workload, core, mapping(), REFERENCE)
    assert [reach.weight for reach in reaches] == [1, 1, 2]
    reduced = remove_unused_memories(core, entry("a"), LINKS, reaches[0])
    assert not any("I2" in held.operands for held in reduced.memories)
    assert [reach.weight for reach in find_memory_reach(workload, core, mapping(), CORRECTED)] == [2, 2, 1]


def test_reference_reads_the_second_input_where_the_first_is() -> None:
    """B32: b multiplies the output of a by itself.

    As activation, this output is read from the big buffer, where it was left. As weight, it is read from the small
    buffer, because the big one does not hold this operand.
    """
    core = buffered_core((10**4, ("I1",)), (10**6, ("I2", "O")))
    workload = network((entry("a"),), (product("b"), (0, 0)))
    reaches = find_memory_reach(workload, core, mapping(), REFERENCE)
    assert levels(reaches) == [(2, 2, 1), (2, 2, 2)]
    assert "b reads I from 1, value 0 is not there" in play(workload, core, mapping(), reaches)
    assert play(workload, core, mapping(), find_memory_reach(workload, core, mapping(), CORRECTED)) == []


def test_reference_goes_on_where_zigzag_stops() -> None:
    """Two inputs, two outputs, or data that fit nowhere stop zigzag-dse 3.9.1 with an error; tilewright uses the top
    memory.
    """
    core = buffered_core((10**6, ("I1", "O")))
    workload = network((entry("a"),), (entry("b"),), (gemm("c"), (0,)), (gemm("d"), (1,)))
    assert levels(find_memory_reach(workload, core, mapping(), REFERENCE)) == [
        (1, 1, 2),
        (2, 1, 2),
        (1, 1, 2),
        (1, 1, 2),
    ]
    tiny = Core("tiny", core.operational_array, (memory("top", 8, ("I1", "I2", "O"), ("D1",), top=True),))
    assert levels(find_memory_reach(chain(10, 10), tiny, mapping(), REFERENCE)) == [(0, 0, 0)] * 2
