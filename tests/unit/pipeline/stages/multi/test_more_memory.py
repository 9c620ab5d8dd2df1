"""More memory on a core never makes a computation node slower, nor a lower bound of a system larger."""

import random
from dataclasses import replace

import pytest
from tilewright.hardware.core import Core, OperationalArray
from tilewright.hardware.system import Link, MultiCoreAccelerator
from tilewright.multicore.scheduling.assembly import scheduling_problem
from tilewright.multicore.scheduling.bounds.lower_bounds import LowerBounds, lower_bounds
from tilewright.multicore.scheduling.core_costs import CoreCostRow
from tilewright.pipeline.stages.multi.core_mapping import map_core
from tilewright.pipeline.stages.multi.kept_operands import Needs, stream_buffers
from tilewright.search.options import SearchOptions
from tilewright.workload.graph import Workload

from tests.members import members
from tests.unit.multicore.nodes.networks import conv, read
from tests.unit.multicore.scheduling.accelerators import BUS, OFFCHIP_PORT, all_pairs
from tests.unit.pipeline.stages.multi.core_cases import ANY, core, cut, memory, system

OUTER = ("all", "weights", "activations")
"""Kinds of outermost memories of the random cores."""


def random_network(draw: random.Random) -> Workload:
    """A convolution, with or without groups."""
    groups, channels, outputs = draw.choice((1, 1, 1, 2, 4)), draw.choice((4, 8, 16)), draw.choice((4, 8, 16, 24))
    kernel, lines, columns = draw.choice((1, 3, 5)), draw.choice((4, 7, 8, 12, 16)), draw.choice((4, 8, 15, 16))
    node = conv("x", "w", "a", group=groups, kernel_shape=[kernel, kernel], pads=[kernel // 2] * 4)
    return read([node], {"x": (1, channels, lines, columns)}, {"w": (outputs, channels // groups, kernel, kernel)})


def random_core(draw: random.Random) -> Core:
    """A core with two array dimensions, random registers, and outermost memories.

    There is one outermost memory, or one for weights and one for other data.
    """
    sides, width = ("D1", "D2"), draw.choice((8, 16, 32, 64, 128))
    array = OperationalArray((("D1", draw.choice((4, 8))), ("D2", draw.choice((2, 4, 8)))), 0.25)
    registers = draw.choice(
        (
            [memory("one", 8, ("I2",), 8, ()), memory("sum", 16, ("O",), 16, ("D2",))],
            [memory("sums", draw.choice((16, 32, 64)), ("O",), 16, ())],
            [],
        )
    )
    size = draw.choice((2048, 3000, 4096, 8192, 16384))
    outer = [memory("all", size, ("I1", "I2", "O"), width, sides)]
    if draw.random() < 0.5:
        rest = memory("activations", draw.choice((size, 2 * size)), ("I1", "O"), width, sides)
        outer = [memory("weights", size, ("I2",), width, sides), rest]
    flow = (("D1", (("K", 8),)), ("D2", (("C", 8),)))
    dataflows = draw.choice(((flow,), ()))
    return replace(core(*registers, *outer), operational_array=array, dataflows=dataflows)


def scaled(one: Core, factors: dict[str, int]) -> Core:
    """The core with its memories multiplied in size."""
    memories = (replace(own, size_bits=own.size_bits * factors.get(own.name, 1)) for own in one.memories)
    return replace(one, memories=tuple(memories))


@pytest.mark.parametrize("seed", range(6))
def test_a_cn_is_no_slower_with_more_memory(seed: int) -> None:
    """A CN on random cores is no slower if all outermost memories, or one of them, have 2, 4 and 8 times the size."""
    draw = random.Random(seed)
    workload, one, width = random_network(draw), random_core(draw), draw.choice((8, 16, 64))
    graph, options = cut(workload, ("OY", draw.choice((1, 2, 3)))), SearchOptions(model="corrected", lpf_limit=4)
    alone = draw.choice([own.name for own in one.memories if own.name in OUTER])
    for names in (OUTER, (alone,)):
        before: tuple[CoreCostRow, ...] = ()
        for factor in (1, 2, 8):
            larger = scaled(one, dict.fromkeys(names, factor))
            rows = map_core(graph, workload, ANY, system({"one": larger}, width), "one", options)
            for less, more in zip(before, rows, strict=bool(before)):
                if less.can_run:
                    assert more.can_run, more.reason
                    assert more.total1_cycles <= less.total1_cycles
            before = rows


def random_row(draw: random.Random) -> Workload:
    """One to three convolutions in a row; some skip lines and columns."""
    kernel, channels = draw.choice((1, 3)), draw.choice((4, 8))
    stride = draw.choice((1, 1, 2))
    shape, nodes, weights, source = (1, channels, draw.choice((4, 7, 8)), draw.choice((4, 8, 15))), [], {}, "x"
    for number in range(draw.choice((1, 2, 2, 3))):
        made, outputs = f"a{number}", draw.choice((4, 8, 16))
        strides = [stride if number == 0 else 1] * 2
        nodes.append(
            conv(source, f"w{number}", made, kernel_shape=[kernel] * 2, pads=[kernel // 2] * 4, strides=strides)
        )
        weights[f"w{number}"] = (outputs, channels, kernel, kernel)
        source, channels = made, outputs
    return read(nodes, {"x": shape}, weights)


def linked(cores: dict[str, Core], width: int) -> MultiCoreAccelerator:
    """The cores with a port to the off-chip memory, and with a bus if there are several."""
    found, count = system(cores, width), len(cores)
    ids = tuple(range(count))
    to_memory = tuple((one, count) for one in ids) + tuple((count, one) for one in ids)
    links = [Link("port", OFFCHIP_PORT, to_memory, width, 0.5)]
    if count > 1:
        links.append(Link("bus", BUS, all_pairs(ids), 64, 0.25))
    return replace(found, links=tuple(links))


@pytest.mark.parametrize("seed", range(members(12, 6)))
def test_a_bound_is_no_larger_with_more_memory(seed: int) -> None:
    """The lower bound of latency does not rise with more memory.

    The test uses random rows of convolutions on one to three random cores.
    """
    draw = random.Random(seed)
    workload, options = random_row(draw), SearchOptions(model="corrected", lpf_limit=4, objective="latency")
    cores = {f"c{number}": random_core(draw) for number in range(draw.choice((1, 1, 2, 3)))}
    width, graph = draw.choice((8, 16, 64)), cut(workload, ("OY", draw.choice((1, 2, 3))))

    def bounds(factor: int) -> LowerBounds:
        larger = linked({name: scaled(one, dict.fromkeys(OUTER, factor)) for name, one in cores.items()}, width)
        rows = {name: map_core(graph, workload, ANY, larger, name, options) for name in cores}
        return lower_bounds(scheduling_problem(workload, graph, larger, ANY, rows, "total1").problem)

    found = [bounds(factor).latency_cycles for factor in (1, 2, 8)]
    assert found == sorted(found, reverse=True)


def test_all_fits_but_partial_sums_do_not() -> None:
    """Operands stream if, without streams, only slow loop orders fit.

    32,768 bits of memory are enough for weights (12,800 bits), inputs (4,096) and outputs (8,192), but not for partial
    sums (16,384).
    """
    node = conv("x", "w", "a", kernel_shape=[5, 5], pads=[2, 2, 2, 2])
    workload = read([node], {"x": (1, 4, 12, 16)}, {"w": (16, 4, 5, 5)})
    sides = ("D1", "D2")
    registers = memory("one", 8, ("I2",), 8, ()), memory("sum", 16, ("O",), 16, ("D2",))
    cycles = []
    for bits in (8192, 32768, 65536):
        everything = memory("all", bits, ("I1", "I2", "O"), 64, sides)
        one = replace(core(*registers, everything), operational_array=OperationalArray((("D1", 8), ("D2", 8)), 0.25))
        one = replace(one, dataflows=((("D1", (("K", 8),)), ("D2", (("C", 8),))),))
        rows = map_core(
            cut(workload, ("OY", 3)), workload, ANY, system({"one": one}, 64), "one", SearchOptions(model="corrected")
        )
        cycles.append(max(row.total1_cycles for row in rows))
    assert cycles == sorted(cycles, reverse=True)
    assert cycles[1] < 10_000, "without streams 16,001"


def test_buffers_of_a_memory_are_among_those_of_twice_its_size() -> None:
    """The buffer sizes of two memories are among those of memories of twice the size, for each choice of streams."""
    pair = memory("weights", 3000, ("I2",)), memory("rest", 4096, ("I1", "O"))
    needs = Needs({"I2": 9000, "I1": 2000, "O": 8000}, {"I2": 9000, "I1": 2000, "O": 16000})

    def sizes(streams: tuple[str, ...], factor: int) -> set[tuple[int, ...]]:
        """The sizes of the memories through which operands stream."""
        through = [place for place, own in enumerate(pair) if set(own.operands) & set(streams)]
        larger = scaled(core(*pair), {pair[place].name: factor for place in through})
        found = stream_buffers(larger, needs, streams)
        return {tuple(one.memories[place].size_bits for place in through) for one in found}

    for streams in (("I2",), ("O",), ("I2", "O"), ("I1", "I2", "O")):
        assert sizes(streams, 1) < sizes(streams, 2) < sizes(streams, 4)
