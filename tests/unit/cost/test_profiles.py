"""Every switch of the model on a case small enough to work out by hand, and what always holds under every profile."""

import math
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tilewright.base.errors import MappingError
from tilewright.base.profile import SWITCHES, profile_by_name
from tilewright.cost.record import Figures, LayerRecord, record_row
from tilewright.hardware.core import Core, Memory, OperationalArray, Port
from tilewright.mapping.constraints import MappingConstraints, Unrolling
from tilewright.mapping.spatial_generation import spatial_candidates
from tilewright.search.evaluate import evaluate, evaluate_prepared, prepare
from tilewright.search.options import SearchOptions
from tilewright.workload.layer import Layer

from tests.members import members
from tests.unit.cost.engine_cases import (
    LINKS,
    Order,
    cases,
    convolution,
    gemm,
    memory,
    orders,
    register_core,
    tpu_like,
)
from tests.unit.mapping.vector_layers import relu

REFERENCE = "zigzag-3.9.1"
Example = tuple[Layer, Core, Unrolling, Order]

TPU: Example = (
    convolution(padding=1, K=64, C=48, OX=6, OY=6, FX=3, FY=3),
    tpu_like(),
    (("D1", (("K", 32),)), ("D2", (("C", 32),))),
    (("OX", 6), ("OY", 6), ("FX", 3), ("FY", 3), ("C", 2), ("K", 2)),
)
"""The worked example of test_worked_example.py."""


def result(example: Example, model: str = REFERENCE) -> LayerRecord:
    """The record of an example."""
    layer, core, unrolling, order = example
    return evaluate(layer, core, LINKS, unrolling, order, SearchOptions(model=model))


def changes(example: Example, switch: str) -> tuple[LayerRecord, LayerRecord, set[str]]:
    """Records without and with a switch, and the fields in which they differ; parts of latency by name.

    Under `corrected` nothing differs: it is the profile that does not depend on the run's own.
    """
    before, after = result(example), result(example, f"{REFERENCE}+{switch}")
    assert before.model != after.model
    assert before.corrected == after.corrected
    left_out = {"model": "", "latency_breakdown_cycles": 0}
    flat = [{**record_row(r), **r.latency_breakdown_cycles, **left_out} for r in (before, after)]
    return before, after, {name for name in flat[0] if flat[0][name] != flat[1][name]}


ENERGY = {"energy_pj", "memory_energy_pj", "edp_pj_cycles", "energy_breakdown_pj", "word_accesses"}
LATENCY = {"latency_cycles", "edp_pj_cycles", "mac_utilization"}


def test_skip_first_accumulation_read() -> None:
    """B4: outputs are accumulated V = 3 * 3 * 2 = 18 times; one read-back in 18 is saved. rf_2B: 995328 / 18 = 55296
    reads and as many writes from above, at 0.021 pJ; SRAM: 324 / 18 = 18 words at 416.16 pJ; 9813.312 pJ in all.
    Latency does not change here: the SRAM's read port still has a window of every cycle, 1295 + 1223 - 1296 = 1222
    cycles of stall instead of 1294, which leaves 72 cycles less of spare time for loading over the DRAM port."""
    before, after, changed = changes(TPU, "skip_first_accumulation_read")
    assert before.energy_pj - after.energy_pj == pytest.approx(9813.312)
    assert after.energy_pj == 3219069.12
    assert after.word_accesses["O"][0] == {"tl": 940032, "fl": 995328, "th": 995328, "fh": 940032}
    assert after.word_accesses["O"][1] == {"tl": 306, "fl": 324, "th": 9, "fh": 0}
    assert [r.latency_breakdown_cycles["temporal_stall"] for r in (before, after)] == [1294, 1222]
    assert [r.latency_breakdown_cycles["onloading"] for r in (before, after)] == [866, 938]
    assert changed == ENERGY | {"mac_utilization", "ports", "temporal_stall", "onloading"}


def test_spatial_reduction_alone_reads_nothing_back() -> None:
    """B4, V = 1: C 4 only across the array, between a register at each MAC and the memory above. Nothing is accumulated
    in time, yet the reference reads each of 4 registers in each of 4 cycles: 16 words of 1 pJ; repaired, none."""
    bits = (("W", 8), ("I", 8), ("O", 64), ("O_final", 64))
    core = Core(
        "registers",
        OperationalArray((("D1", 4),), 1.0),
        (memory("sums", 64, ("O",), ()), memory("top", 10**9, ("I1", "I2", "O"), ("D1",), top=True)),
    )
    example: Example = (gemm(C=4, D=4, bits=bits), core, (("D1", (("C", 4),)),), (("D", 4),))
    before, after, _ = changes(example, "skip_first_accumulation_read")
    assert before.word_accesses["O"][0] == {"tl": 16, "fl": 16, "th": 16, "fh": 0}
    assert after.word_accesses["O"][0] == {"tl": 0, "fl": 16, "th": 16, "fh": 0}
    assert before.energy_pj - after.energy_pj == 16.0


def test_round_up_spatial_factors() -> None:
    """B5: K 49 over 16 lanes: 4 passes of 12 lanes, 48 weights of 8 bits, 6 cycles on the 64-bit port of the top
    memory; rounded up 13 lanes, 52 weights, 416 bits, 7 cycles. With the one input, over the same ports, on-loading is
    6 + 1 or 7 + 1. Energy does not change."""
    example: Example = (
        gemm(K=49), register_core(array=(("D1", 16),)), (("D1", (("K", 16),)),), (("K", 4),)
    )  # fmt: skip
    before, after, changed = changes(example, "round_up_spatial_factors")
    assert [r.spatial_levels["W"][0] for r in (before, after)] == [(("K", 12),), (("K", 13),)]
    assert [real_cycles(r, "top", "W", "tl") for r in (before, after)] == [6, 7]
    assert [r.latency_breakdown_cycles["onloading"] for r in (before, after)] == [7, 8]
    assert changed == LATENCY | {"spatial_levels", "ports", "onloading", "offloading"}


def real_cycles(record: LayerRecord, memory: str, operand: str, direction: str) -> int:
    """Cycles of one transfer."""
    return next(
        activity.real_cycles
        for port in record.ports
        for activity in port.activities
        if (port.memory, activity.operand, activity.direction) == (memory, operand, direction)
    )


def test_exact_temporal_sizes() -> None:
    """B6: K 34 over 5 lanes: 34 / (34 / 7) is a little more than 7 as a double, 8 passes; exactly 7."""
    core = register_core(array=(("D1", 5),))
    unrolling: Unrolling = (("D1", (("K", 5),)),)
    before = result((gemm(K=34), core, unrolling, (("K", 8),)))
    after = result((gemm(K=34), core, unrolling, (("K", 7),)), f"{REFERENCE}+exact_temporal_sizes")
    assert [r.mac_utilization["spatial"] for r in (before, after)] == [7 / 8, 1.0]
    assert before.latency_breakdown_cycles["spatial_stall"] == 1
    assert after.latency_breakdown_cycles["spatial_stall"] == 0
    with pytest.raises(MappingError, match="K 8 instead of 7"):
        result((gemm(K=34), core, unrolling, (("K", 8),)), f"{REFERENCE}+exact_temporal_sizes")


def test_exact_window_sizes() -> None:
    """B12: one output and 3 weights at dilation 2 touch 3 inputs, the reference says 1 * 3 - (3 - 1) * (1 - 2) = 5.
    K 4 outside keeps them in the buffer. Inputs of 64 bits: 2 words fewer are read from the top at 10 pJ and written to
    the buffer at 1 pJ, 22 pJ in all."""
    bits = (("W", 8), ("I", 64), ("O", 16), ("O_final", 8))
    layer = convolution(dilations=(2, 1), bits=bits, FX=3, K=4)
    example: Example = (layer, register_core(), (("D1", ()),), (("FX", 3), ("K", 4)))
    before, after, changed = changes(example, "exact_window_sizes")
    assert [r.word_accesses["I"][1]["tl"] for r in (before, after)] == [5, 3]
    assert [r.word_accesses["I"][0]["fh"] for r in (before, after)] == [5, 3]
    assert before.word_accesses["I"][0]["tl"] == after.word_accesses["I"][0]["tl"] == 12
    assert before.energy_pj - after.energy_pj == 22
    for operand in ("O", "W"):
        assert before.word_accesses[operand] == after.word_accesses[operand]
    assert "temporal_mapping" not in changed


def test_serial_half_shared_loading() -> None:
    """B16: W and I both come over the DRAM port, 866 and 216 cycles: one after the other 1082."""
    before, after, changed = changes(TPU, "serial_half_shared_loading")
    assert [r.latency_breakdown_cycles["onloading"] for r in (before, after)] == [866, 1082]
    assert after.latency_cycles == 4023
    assert changed == LATENCY | {"onloading"}


def test_a_single_input_is_loaded_in_full() -> None:
    """B16: 64 x 28 x 28 elements of 8 bits over a DRAM port of 64 bits are 6272 cycles, which the reference leaves out
    where the layer has no second input."""
    example: Example = (
        *(relu(K=64, OY=28, OX=28), tpu_like()),
        *((("D1", (("K", 32),)), ("D2", (("OY", 28),))), (("OX", 28), ("K", 2))),
    )
    before, after, changed = changes(example, "serial_half_shared_loading")
    assert [r.latency_breakdown_cycles["onloading"] for r in (before, after)] == [0, 6272]
    assert changed == LATENCY | {"onloading"}


def test_consistent_window_union() -> None:
    """B17: D 4 inside K 4. On the buffer's read port I moves every cycle (windows 15), W every 4 cycles and may take 4
    (windows 12, slack 3 * 3 = 9). Union 16: 27 - 9 - 16 = 2. Without the first window of W the union is 3 + 12 = 15:
    27 - 9 - 15 = 3."""
    example: Example = (gemm(D=4, K=4), register_core(), (("D1", ()),), (("D", 4), ("K", 4)))
    before, after, changed = changes(example, "consistent_window_union")
    assert [r.latency_breakdown_cycles["temporal_stall"] for r in (before, after)] == [2, 3]
    assert changed == LATENCY | {"temporal_stall", "ports"}


def test_per_level_loading_floor() -> None:
    """B19: all 768 MACs need their 36 weights first: 768 * 288 / 64 = 3456 cycles on the DRAM port, not 5, so nothing
    of W moves into the spare time. That is left for O: 288 cycles down to the 32 sums of one tile, 32 * 16 / 64 = 8;
    off-loading 1 + 8 = 9. 2590 + 3456 + 9 + 62 = 6117."""
    _, after, changed = changes(TPU, "per_level_loading_floor")
    assert after.latency_breakdown_cycles["onloading"] == 3456
    assert after.latency_breakdown_cycles["offloading"] == 9
    assert after.latency_cycles == 6117
    assert changed == LATENCY | {"onloading", "offloading"}


def single_lane(*memories: Memory) -> Core:
    """One multiplier with the given memories below a wide top memory."""
    top = memory("top", 10**9, ("I1", "I2", "O"), ("D1",), top=True)
    return Core("single", OperationalArray((("D1", 1),), 1.0), (*memories, top))


def lanes_for_weights(size_bits: int) -> Example:
    """K 5 over 4 lanes, weights through a memory with ports of 8 bits: two passes of 2.5 lanes on average."""
    core = Core(
        "lanes",
        OperationalArray((("D1", 4),), 1.0),
        (
            memory("weights", size_bits, ("I2",), ("D1",), read=8, write=8),
            memory("top", 10**9, ("I1", "I2", "O"), ("D1",), read=8, write=8, top=True),
        ),
    )
    return gemm(K=5), core, (("D1", (("K", 4),)),), (("K", 2),)


def test_whole_tiles() -> None:
    """B41: the reference reads 2 of the 2.5 weights in each of two passes, 4 of 5; and writes 4 of 5 outputs. Repaired,
    5 words of each; at most 3 at a time, which takes 3 cycles on the port instead of 2."""
    before, after, changed = changes(lanes_for_weights(64), "whole_tiles")
    assert [r.word_accesses["W"][0]["tl"] for r in (before, after)] == [4, 5]
    assert [r.word_accesses["O"][0]["fl"] for r in (before, after)] == [4, 5]
    assert [real_cycles(r, "weights", "W", "tl") for r in (before, after)] == [2, 3]
    assert [real_cycles(r, "top", "W", "tl") for r in (before, after)] == [4, 5]
    assert "temporal_mapping" not in changed


def test_whole_tiles_need_room() -> None:
    """B41: a memory of 20 bits does not hold the 3 weights of 8 bits that one of the passes needs, only 2.5 of them."""
    assert result(lanes_for_weights(20)).energy_pj > 0
    for model in (f"{REFERENCE}+whole_tiles", "corrected"):
        with pytest.raises(MappingError, match=r"'weights' is too small .* needs 24 bits, has 20"):
            result(lanes_for_weights(20), model)


def test_every_transfer_takes_port_time() -> None:
    """B42: C 2 inside D 50, all data in one memory of one read port. Inputs, weights and partial sums come 100 times
    each: 300 cycles. The reference counts 99 transfers each and nothing for the first ones: 297 - 100 = 197 cycles of
    stall in 297. Repaired, 99 + 99 + 100 transfers while the array computes, 198 cycles of stall, one cycle each to
    load the first input and the first weight, and one to bring out the last output."""
    core = Core(
        "one_memory",
        OperationalArray((("D1", 1),), 1.0),
        (memory("top", 10**9, ("I1", "I2", "O"), ("D1",), read=16, write=16, top=True),),
    )
    example: Example = (gemm(C=2, D=50), core, (("D1", ()),), (("C", 2), ("D", 50)))
    before, after, changed = changes(example, "every_transfer_takes_port_time")
    assert [r.latency_breakdown_cycles["temporal_stall"] for r in (before, after)] == [197, 198]
    assert [r.latency_breakdown_cycles["onloading"] for r in (before, after)] == [0, 2]
    assert [r.latency_breakdown_cycles["offloading"] for r in (before, after)] == [0, 1]
    assert [r.latency_cycles for r in (before, after)] == [297, 301]
    assert changed == LATENCY | {"temporal_stall", "onloading", "offloading", "ports"}


def test_best_double_buffers() -> None:
    """B43: order C 2, K 4, D 8, K 2. The buffer keeps 8 weights (up to K 4 and D 8) and 2 inputs (up to K 4) in 18
    elements of 8 bits: of the 8 that are free either operand can have a second tile, not both. The weights are first
    in the equation, and have theirs in the reference, without need: 16 cycles on the 4-bit port once in a window of 8
    would cost 8. The inputs then take 4 cycles in a window of 2, 15 times: 30."""
    outputs, inputs, weights = gemm().operand_dimensions
    layer = replace(gemm(C=2, D=8, K=8), operand_dimensions=(outputs, weights, inputs))
    ports = (
        Port("inputs", "read", 8, 64, (("I1", "tl"),)),
        Port("weights", "read", 8, 64, (("I2", "tl"),)),
        Port("fill", "write", 4, 4, (("I1", "fh"), ("I2", "fh"))),
    )
    buffer = Memory("buffer", 144, 1.0, 1.0, ("I1", "I2"), ports, ("D1",))
    core = single_lane(memory("sums", 10**6, ("O",), ("D1",)), buffer)
    stalls = []
    for model in (REFERENCE, f"{REFERENCE}+best_double_buffers"):
        prepared = prepare(layer, core, LINKS, (("D1", ()),), SearchOptions(model=model))
        order = (("C", 2), ("K", 4), ("D", 8), ("K", 2))
        record = evaluate_prepared(prepared, order, ((4, 4), (3, 4), (2, 4)))
        stalls.append(record.latency_breakdown_cycles["temporal_stall"])
    assert stalls == [30, 8]


def test_room_for_final_outputs() -> None:
    """B44: 8 outputs of 8 bits while they are accumulated, of 16 bits when they are final, in a memory of 64 bits. C 2
    above D 8: all of them are kept, says the reference, and end in it. Repaired, 4 would fit: they come and go."""
    bits = (("W", 8), ("I", 8), ("O", 8), ("O_final", 16))
    example: Example = (
        *(gemm(C=2, D=8, bits=bits), single_lane(memory("sums", 64, ("O",), ("D1",)))),
        *((("D1", ()),), (("D", 8), ("C", 2))),
    )
    before, after, _ = changes(example, "room_for_final_outputs")
    assert before.temporal_mapping["O"] == ((("D", 8), ("C", 2)), ())
    assert after.temporal_mapping["O"] == ((), (("D", 8), ("C", 2)))
    assert before.memory_utilization["O"][0] == 2.0
    assert after.memory_utilization["O"][0] <= 1.0


@pytest.mark.parametrize(("model", "lanes"), [(REFERENCE, 4), (f"{REFERENCE}+keep_given_unrolling", 8)])
def test_keep_given_unrolling(model: str, lanes: int) -> None:
    """B45: K 8 is asked for; the port of the weights feeds 4 lanes of 8 bits in a cycle, the memory holds 6."""
    core = Core(
        "narrow",
        OperationalArray((("D1", 8),), 1.0),
        (memory("weights", 48, ("I2",), ("D1",), read=32), memory("top", 10**9, ("I1", "I2", "O"), ("D1",), top=True)),
    )
    given = MappingConstraints("default", spatial_mapping=(("D1", (("K", 8),)),))
    assert spatial_candidates(gemm(K=8), core, given, profile_by_name(model)) == [(("D1", (("K", lanes),)),)]


def test_ties_by_equation() -> None:
    """B46: 72 bits hold all 8 inputs of C 2, D 4 beside one weight, or all 8 weights of C 2, K 4 beside one input, and
    as many bits move. The reference keeps whole what the memory names first; repaired, what the equation does: I."""
    kept = []
    for model in (REFERENCE, f"{REFERENCE}+ties_by_equation"):
        for operands in (("I1", "I2"), ("I2", "I1")):
            core = single_lane(memory("buffer", 72, operands, ("D1",)))
            record = result((gemm(C=2, D=4, K=4), core, (("D1", ()),), (("C", 2), ("D", 4), ("K", 4))), model)
            kept.append("".join(o for o in "IW" if record.temporal_mapping[o][1] == ()))
    assert kept == ["I", "W", "I", "I"]


@pytest.mark.parametrize("switch", ["onnx_height_is_y", "trace_onnx_constants", "model_every_operator"])
def test_switches_of_the_onnx_reader(switch: str) -> None:
    """B10, B13 and B40 act when a network is read; the cost of a given layer does not change."""
    assert changes(TPU, switch)[2] == set()


def test_every_switch_has_a_test() -> None:
    """The switches covered here are all there are."""
    here = {name.removeprefix("test_") for name in globals()}
    elsewhere = {
        "onnx_height_is_y",
        "trace_onnx_constants",
        "model_every_operator",
        "independent_spatial_candidates",
        "live_tensor_capacity",
        "effective_top_memory_option",
        "complete_in_memory_model",
        "in_memory_active_parts",
        "wide_until_added",
    }
    assert set(SWITCHES) <= here | elsewhere


def test_corrected_of_worked_example() -> None:
    """All switches together, and the figures that stand beside every reference result, are those of `corrected`."""
    record = result(TPU, "corrected")
    assert (record.energy_pj, record.latency_cycles) == (3219863.68, 6265)
    assert result(TPU).corrected == Figures(3219863.68, 6265)
    every = result(TPU, REFERENCE + "".join(f"+{switch}" for switch in SWITCHES))
    assert replace(every, model="") == replace(record, model="")


# always ---------------------------------------------------------------------------------------------------------------


def draw_record(data: st.DataObject, model: str) -> tuple[Layer, LayerRecord] | None:
    """A layer and the record of a random mapping of it, None where it does not fit."""
    case = data.draw(cases())
    options = SearchOptions(model=model, temporal_mapping_type="even" if case.even else "uneven")
    try:
        prepared = prepare(case.layer, case.core, case.links, case.unrolling, options)
    except MappingError:
        return None
    order = data.draw(orders(dict(prepared.spatial.temporal_sizes)))
    try:
        record = evaluate(case.layer, case.core, case.links, case.unrolling, order, options)
    except MappingError:
        return None
    return case.layer, record


@pytest.mark.parametrize("model", [REFERENCE, "corrected"])
@settings(max_examples=members(200, 80), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_breakdowns_sum_and_nothing_is_negative(model: str, data: st.DataObject) -> None:
    """Energy by link and MACs sum to the total, parts of latency too; no figure is negative; no MAC works more than all
    the time."""
    drawn = draw_record(data, model)
    if drawn is None:
        return
    _, record = drawn
    event("fits")
    links = [row for levels in record.energy_breakdown_pj.values() for row in levels]
    total = record.energy_terms_pj["mac"] + sum(value for row in links for value in row.values())
    assert record.energy_pj == pytest.approx(total, rel=1e-12)
    assert record.energy_pj == record.energy_terms_pj["memory"] + record.energy_terms_pj["mac"]
    parts = record.latency_breakdown_cycles
    assert record.latency_cycles == pytest.approx(sum(parts.values()), rel=1e-12)
    words = [value for levels in record.word_accesses.values() for row in levels for value in row.values()]
    for value in [*parts.values(), *words, *(v for row in links for v in row.values())]:
        assert value >= 0
        assert math.isfinite(value)
    assert 0 < record.mac_utilization["with_offloading"] <= record.mac_utilization["with_onloading"]
    assert record.mac_utilization["with_onloading"] <= record.mac_utilization["with_stalls"]
    assert record.mac_utilization["with_stalls"] <= record.mac_utilization["spatial"] <= 1


@settings(max_examples=members(200, 80), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_memories_are_never_overfull(data: st.DataObject) -> None:
    """With factors that divide, what all operands keep in a memory is at most its size (one element more or less
    where fractional tiles are rounded)."""
    drawn = draw_record(data, REFERENCE)
    if drawn is None:
        return
    layer, record = drawn
    if any(f % 1 for levels in record.spatial_levels.values() for x in levels for _, f in x):
        return
    lanes: dict[str, int] = {}
    for factors in record.spatial_mapping.values():
        for dimension, factor in factors.items():
            lanes[dimension] = lanes.get(dimension, 1) * factor
    if any(layer.size_of[d] % f for d, f in lanes.items()):
        return
    event("checked")
    for shares in record.memory_utilization.values():
        assert all(0 <= share <= 1 for share in shares)


@settings(max_examples=members(200, 80), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_corrected_never_reads_back_what_was_never_written(data: st.DataObject) -> None:
    """Under `corrected` no partial sum comes back at a level where no accumulation in time is left (V = 1)."""
    drawn = draw_record(data, "corrected")
    if drawn is None:
        return
    layer, record = drawn
    outputs = dict(layer.operand_dimensions)["O"]
    levels = record.temporal_mapping["O"]
    for m, words in enumerate(record.word_accesses["O"]):
        for direction, first in (("tl", m), ("fh", m + 1)):
            accumulates = any(d not in outputs for level in levels[first:] for d, _ in level)
            if not accumulates:
                assert words[direction] == 0
