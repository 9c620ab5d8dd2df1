"""The plain model on small examples of each correction, worked out by hand."""

import itertools
import random

import pytest
from tilewright.hardware.core import Core, Memory, OperationalArray, Port
from tilewright.mapping.constraints import Unrolling
from tilewright.workload.layer import Layer

from tests.plain.model import Cost, PlainModel
from tests.plain.relevancy import counted_positions, positions
from tests.plain.space import free_best, greedy_multisets, merged_loops
from tests.plain.spatial import DoesNotFitError
from tests.plain.switches import IN_MEMORY_SWITCHES, SWITCHES, switches_of
from tests.plain.time_line import marked_without_first_windows, one_period, union_by_definition
from tests.unit.cost.engine_cases import LINKS, gemm, memory, register_core

BITS = (("W", 8), ("I", 8), ("O", 16), ("O_final", 8))
READS, WRITES = ("tl", "th"), ("fl", "fh")


def port(name: str, bits: int, *links: tuple[str, str]) -> Port:
    """Return a port of one width."""
    kind = "read" if links[0][1] in READS else "write"
    return Port(name, kind, bits, bits, links)


def one_memory(operands: tuple[str, ...]) -> Core:
    """Return a core with only a DRAM of 16 bits a cycle; one port reads inputs and partial sums."""
    ports = (
        port("r", 16, ("I1", "tl"), ("O", "tl")),
        port("rw", 16, ("I2", "tl")),
        port("w", 16, ("O", "fl")),
    )
    dram = Memory("dram", 10**6, 10.0, 10.0, operands, ports, ("D1",))
    return Core("one", OperationalArray((("D1", 1),), 1.0), (dram,))


def cost(layer: Layer, core: Core, unrolling: Unrolling, order: tuple, model: str = "corrected") -> Cost:
    """Return the cost of a mapping."""
    return PlainModel(layer, core, LINKS, unrolling, model=model).cost(order)


# switches and windows -------------------------------------------------------------------------------------------------


def test_names_of_profiles() -> None:
    """Names of profiles give the same switches as in the package."""
    assert switches_of("zigzag-3.9.1") == frozenset()
    assert switches_of("corrected") == {*SWITCHES, *IN_MEMORY_SWITCHES}
    assert switches_of("zigzag-3.9.1+whole_tiles-whole_tiles+skip_first_accumulation_read") == {
        "skip_first_accumulation_read"
    }
    assert {*SWITCHES, *IN_MEMORY_SWITCHES} - switches_of("corrected-whole_tiles") == {"whole_tiles"}


def test_positions_of_windows() -> None:
    """The clipped formula counts the distinct positions of all small windows."""
    for c2, a, c3, b in itertools.product(range(1, 5), range(1, 7), range(1, 5), range(1, 6)):
        assert positions(c2, a, c3, b, clipped=True) == counted_positions(c2, a, c3, b)
    assert positions(1, 1, 2, 3, clipped=False) == 5


def test_union_by_definition_is_what_is_marked() -> None:
    """The formula of the window union equals a count of the cycles outside the first windows, for nested periods.
    The formula is E_K + (T / P_K - 1) F_K; scaled periods give a scaled union.
    """
    rng = random.Random(1)
    for _ in range(400):
        periods = list(itertools.accumulate([rng.randint(1, 3)] + [rng.randint(1, 4)] * 5, lambda a, b: a * b))
        windows = [(rng.randint(1, p), p) for p in rng.choices(periods, k=rng.randint(2, 5))]
        total = periods[-1] * rng.randint(1, 2)
        if total % max(p for _, p in windows) == 0:
            assert union_by_definition(windows, total) == marked_without_first_windows(windows, total)
            longer = [(a * 5000, p * 5000) for a, p in windows]
            longest = max(p for _, p in windows)
            assert one_period(longer, longest * 5000) == 5000 * one_period(windows, longest)


# loops ----------------------------------------------------------------------------------------------------------------


def test_merging_loops() -> None:
    """Merging joins the two smallest factors of the dimension with most factors until the limit holds."""
    assert merged_loops({"K": 12, "C": 2}, None) == (("K", 2), ("K", 2), ("K", 3), ("C", 2))
    assert merged_loops({"K": 12, "C": 2}, 3) == (("K", 3), ("K", 4), ("C", 2))
    assert merged_loops({"K": 12, "C": 2}, 1) == (("K", 12), ("C", 2))
    assert len(greedy_multisets({"K": 12, "C": 2})) == 3


# repairs --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operands", list(itertools.permutations(("I1", "I2", "O"))))
def test_union_with_read_backs(operands: tuple[str, ...]) -> None:
    """C 2 inside D 50 moves 100 inputs and 50 partial sums over one port, one cycle each.

    While the array computes, 99 inputs and 50 sums must move in the 99 cycles after the first: a stall of 50 cycles.
    With one cycle before and one after, latency is 100 + 50 + 2 = 152, in any order of operands.
    """
    result = cost(gemm(C=2, D=50, bits=BITS), one_memory(operands), (("D1", (("K", 1),)),), (("C", 2), ("D", 50)))
    assert result.parts["temporal_stall"] == 50
    assert (result.parts["onloading"], result.parts["offloading"]) == (1, 1)
    assert result.latency_cycles == 152
    busy = [sum(x.real * x.count for x in served.values()) for served in result.transfers.values()]
    assert sorted(busy) == [100, 100, 150]


def preloading_core() -> Core:
    """Return registers for an input and a sum, a buffer of inputs, and a DRAM whose read port also returns sums."""
    return Core(
        "one",
        OperationalArray((("D1", 1),), 1.0),
        (
            memory("regI", 8, ("I1",), ("D1",), read=8, write=8),
            Memory(
                "regO",
                16,
                1.0,
                1.0,
                ("O",),
                tuple(port(f"p{i}", 16, ("O", d)) for i, d in enumerate(("tl", "fl", "th", "fh"))),
                ("D1",),
            ),
            memory("buf", 65536, ("I1",), ("D1",), read=8, write=64),
            Memory(
                "dram",
                10**7,
                10.0,
                10.0,
                ("I1", "I2", "O"),
                (
                    port("r", 16, ("I1", "tl"), ("O", "tl")),
                    port("rw", 16, ("I2", "tl")),
                    port("w", 16, ("O", "fl")),
                ),
                ("D1",),
            ),
        ),
    )


def test_preloading_leaves_the_port_to_read_backs() -> None:
    """K 2, C 16, D 64 takes at least 2432 cycles: 512 words of inputs and 1920 read-backs over one DRAM port."""
    order = (("K", 2), ("C", 16), ("D", 64))
    result = cost(gemm(C=16, D=64, K=2, bits=BITS), preloading_core(), (("D1", (("K", 1),)),), order)
    served = result.transfers[3, 0]
    assert sorted(x.real * x.count for x in served.values()) == [512, 1920]
    assert result.latency_cycles >= 2432
    without = "corrected-every_transfer_takes_port_time"
    assert (
        cost(gemm(C=16, D=64, K=2, bits=BITS), preloading_core(), (("D1", ()),), order, without).latency_cycles < 2432
    )


def test_whole_tiles_hold_whole_lanes() -> None:
    """K 15 over 8 lanes holds whole tiles of 8 weights, which do not fit 64 bits beside an input of 4 bits.
    Without the switch, tiles of 7.5 weights (60 bits) fit.
    """
    core = Core(
        "tiny",
        OperationalArray((("D1", 8),), 1.0),
        (
            memory("buf", 64, ("I1", "I2"), ("D1",)),
            memory("dram", 10**6, ("O", "I1", "I2"), ("D1",), top=True),
        ),
    )
    layer = gemm(C=4, D=8, K=15, bits=(("W", 8), ("I", 4), ("O", 16), ("O_final", 8)))
    order = (("K", 2), ("C", 4), ("D", 8))
    boundaries = {"O": (3,), "I": (0, 3), "W": (0, 3)}
    arguments = (layer, core, LINKS, (("D1", (("K", 8),)),))
    assert PlainModel(*arguments, model="corrected-whole_tiles").cost(order, boundaries).energy_pj > 0
    with pytest.raises(DoesNotFitError):
        PlainModel(*arguments, model="corrected").cost(order, boundaries)


def test_traffic_is_exact_on_average() -> None:
    """A layer of 5 weights in 2 passes over 4 lanes reads 5 words of one weight, or 3 words of two weights.
    The latency analysis moves 3 weights a pass.
    """
    for narrow, wide, words in ((8, 8, 5), (16, 16, 3), (8, 16, 3)):
        core = Core(
            "five",
            OperationalArray((("D1", 4),), 1.0),
            (memory("top", 10**6, ("I1", "I2", "O"), ("D1",), read=wide, write=wide, granularity=narrow, top=True),),
        )
        result = cost(gemm(K=5, bits=BITS), core, (("D1", (("K", 4),)),), (("K", 2),))
        assert result.words["W"][0]["tl"] == words
        assert result.traffic_elements["W"][0]["tl"] == 5
        assert result.transfers[0, 0]["W", 0, "tl"].real == -(-3 * 8 // wide)


def test_room_for_wide_final_outputs() -> None:
    """A sum of 8 bits that becomes an output of 16 bits needs 16 bits in its register from the start."""
    layer = gemm(C=2, D=2, K=3, bits=(("W", 8), ("I", 8), ("O", 8), ("O_final", 16)))
    core = register_core(buffer_bits=24 + 8 + 8)
    order = (("C", 2), ("D", 2), ("K", 3))
    boundaries = {"O": (1, 3), "I": (0, 3), "W": (0, 3)}
    for size, fits in ((16 + 16, True), (16 + 8, False)):
        core = register_core(buffer_bits=size)
        model = PlainModel(layer, core, LINKS, (("D1", ()),), model="corrected")
        if fits:
            assert model.cost(order, boundaries).utilization["O"][0] * size == 16
        else:
            with pytest.raises(DoesNotFitError):
                model.cost(order, boundaries)
    reference = PlainModel(layer, register_core(buffer_bits=24), LINKS, (("D1", ()),))
    assert reference.cost(order, boundaries).energy_pj > 0


def test_best_double_buffers() -> None:
    """A buffer with room for two of three second tiles holds the two that leave the least stall.
    The order of operands in the layer does not change the latency.
    """
    bits = (("W", 8), ("I", 8), ("O", 8), ("O_final", 8))
    order = (("C", 2), ("K", 2), ("D", 2))
    boundaries = {"O": (0, 3), "I": (0, 3), "W": (0, 3)}
    layer = gemm(C=2, D=2, K=2, bits=bits)
    o, i, w = layer.operand_dimensions
    found = set()
    for inputs in ((i, w), (w, i)):
        other = Layer("gemm", "Gemm", (o, *inputs), layer.loop_sizes, (), bits)
        model = PlainModel(other, register_core(buffer_bits=40), LINKS, (("D1", ()),), model="corrected")
        found.add(model.cost(order, boundaries).latency_cycles)
    assert len(found) == 1


def test_an_optimum_with_wide_final_outputs() -> None:
    """A search over free boundaries finds the optimum that closes outputs below the accumulating loop.
    Final outputs are wider than partial sums here.
    """
    layer = gemm(C=2, D=2, K=3, bits=(("W", 8), ("I", 8), ("O", 8), ("O_final", 16)))

    def ports(read: tuple, write: tuple) -> tuple[Port, ...]:
        return Port("r", "read", 50, 100, read), Port("w", "write", 1, 128, write)

    shared = tuple((o, d) for o in ("O", "I2", "I1") for d in (("fl", "tl", "th", "fh") if o == "O" else ("fh", "tl")))
    top = (("I2", "tl"), ("O", "fl"), ("O", "tl"), ("I1", "tl"))
    core = Core(
        "rnd",
        OperationalArray((("D1", 3), ("D2", 2)), 0.04),
        (
            Memory(
                "m0",
                2048,
                0.5,
                130.0,
                ("I1", "O"),
                ports((("I1", "tl"), ("O", "tl"), ("O", "th")), (("I1", "fh"), ("O", "fl"), ("O", "fh"))),
                ("D2",),
            ),
            Memory("m1", 128, 0.5, 0.5, ("O", "I2", "I1"), (Port("p", "read_write", 64, 64, shared),), ("D1", "D2")),
            Memory("m2", 10**9, 0.5, 1.7, ("I2", "O", "I1"), (Port("p", "read_write", 16, 16, top),), ("D1", "D2")),
        ),
    )
    model = PlainModel(layer, core, LINKS, (("D1", (("C", 1),)), ("D2", (("C", 1),))))
    order = (("D", 2), ("K", 3), ("C", 2))
    better = model.cost(order, {"O": (2, 2, 3), "I": (3, 3, 3), "W": (3, 3)})
    assert better.energy_pj == pytest.approx(26.18)
    assert free_best(model).value("energy") <= better.energy_pj
