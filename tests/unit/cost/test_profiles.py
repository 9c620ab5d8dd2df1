"""Every switch of the model on a case worked out by hand, and laws that hold under every profile."""

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
    """Return the record of an example."""
    layer, core, unrolling, order = example
    return evaluate(layer, core, LINKS, unrolling, order, SearchOptions(model=model))


def changes(example: Example, switch: str) -> tuple[LayerRecord, LayerRecord, set[str]]:
    """Return the records without and with a switch, and the fields in which they differ.

    The corrected figures of both records are equal, because they do not depend on the profile of the run.
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
    """The first read-back of each output is saved: one of V = 3 * 3 * 2 = 18 (B4).
    rf_2B saves 995328 / 18 = 55296 reads, and as many writes from above, at 0.021 pJ; SRAM saves 324 / 18 = 18 words at
    416.16 pJ; in all 9813.312 pJ. The stall falls from 1294 to 1222 cycles. Loading has 72 cycles less of spare time on
    the DRAM port, so latency stays.
    """
    before, after, changed = changes(TPU, "skip_first_accumulation_read")
    assert before.energy_pj - after.energy_pj == pytest.approx(9813.312)
    assert after.energy_pj == 3219069.12
    assert after.word_accesses["O"][0] == {"tl": 940032, "fl": 995328, "th": 995328, "fh": 940032}
    assert after.word_accesses["O"][1] == {"tl": 306, "fl": 324, "th": 9, "fh": 0}
    assert [r.latency_breakdown_cycles["temporal_stall"] for r in (before, after)] == [1294, 1222]
    assert [r.latency_breakdown_cycles["onloading"] for r in (before, after)] == [866, 938]
    assert changed == ENERGY | {"mac_utilization", "ports", "temporal_stall", "onloading"}


def test_spatial_reduction_alone_reads_nothing_back() -> None:
    """A sum across the array alone (V = 1) reads nothing back (B4).
    The reference reads each of 4 registers in each of 4 cycles: 16 words of 1 pJ.
    """
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
    """K 49 over 16 lanes has 4 passes of 12 lanes, or of 13 if rounded up (B5).
    Then 52 weights of 8 bits take 7 cycles on the 64-bit port instead of 6, and on-loading takes 8 cycles instead of 7.
    """
    example: Example = (
        gemm(K=49), register_core(array=(("D1", 16),)), (("D1", (("K", 16),)),), (("K", 4),)
    )  # fmt: skip
    before, after, changed = changes(example, "round_up_spatial_factors")
    assert [r.spatial_levels["W"][0] for r in (before, after)] == [(("K", 12),), (("K", 13),)]
    assert [real_cycles(r, "top", "W", "tl") for r in (before, after)] == [6, 7]
    assert [r.latency_breakdown_cycles["onloading"] for r in (before, after)] == [7, 8]
    assert changed == LATENCY | {"spatial_levels", "ports", "onloading", "offloading"}


def real_cycles(record: LayerRecord, memory: str, operand: str, direction: str) -> int:
    """Return the cycles of one transfer."""
    return next(
        activity.real_cycles
        for port in record.ports
        for activity in port.activities
        if (port.memory, activity.operand, activity.direction) == (memory, operand, direction)
    )


def test_exact_temporal_sizes() -> None:
    """K 34 over 5 lanes has 7 passes; the reference has 8, because 34 / (34 / 7) is above 7 as a double (B6)."""
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
    """One output and 3 weights at dilation 2 touch 3 inputs; the reference counts 5 (B12).
    The repair saves two words of 64 bits: each is read from the top at 10 pJ and written to the buffer at 1 pJ.
    """
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
    """W and I take 866 and 216 cycles over the same DRAM port, one after the other 1082 (B16)."""
    before, after, changed = changes(TPU, "serial_half_shared_loading")
    assert [r.latency_breakdown_cycles["onloading"] for r in (before, after)] == [866, 1082]
    assert after.latency_cycles == 4023
    assert changed == LATENCY | {"onloading"}


def test_a_single_input_is_loaded_in_full() -> None:
    """A single input of 64 x 28 x 28 elements takes 6272 cycles over a DRAM port of 64 bits (B16).
    The reference leaves them out if the layer has no second input.
    """
    example: Example = (
        *(relu(K=64, OY=28, OX=28), tpu_like()),
        *((("D1", (("K", 32),)), ("D2", (("OY", 28),))), (("OX", 28), ("K", 2))),
    )
    before, after, changed = changes(example, "serial_half_shared_loading")
    assert [r.latency_breakdown_cycles["onloading"] for r in (before, after)] == [0, 6272]
    assert changed == LATENCY | {"onloading"}


def test_consistent_window_union() -> None:
    """A window union that leaves out the first window of W raises the stall from 2 to 3 cycles (B17).

    D 4 is inside K 4. The windows of I take 15 cycles. The windows of W take 12, with a slack of 9. The reference has a
    union of 16 cycles and a stall of 27 - 9 - 16 = 2. The corrected union is 3 + 12 = 15, and the stall is 27 - 9 - 15
    = 3.
    """
    example: Example = (gemm(D=4, K=4), register_core(), (("D1", ()),), (("D", 4), ("K", 4)))
    before, after, changed = changes(example, "consistent_window_union")
    assert [r.latency_breakdown_cycles["temporal_stall"] for r in (before, after)] == [2, 3]
    assert changed == LATENCY | {"temporal_stall", "ports"}


def test_per_level_loading_floor() -> None:
    """All 768 MACs wait for their 36 weights: 768 * 288 / 64 = 3456 cycles on the DRAM port, not 5 (B19).
    The spare time is left for O: 288 cycles down to 32 * 16 / 64 = 8, so off-loading takes 1 + 8 = 9.
    Latency is 2590 + 3456 + 9 + 62 = 6117.
    """
    _, after, changed = changes(TPU, "per_level_loading_floor")
    assert after.latency_breakdown_cycles["onloading"] == 3456
    assert after.latency_breakdown_cycles["offloading"] == 9
    assert after.latency_cycles == 6117
    assert changed == LATENCY | {"onloading", "offloading"}


def single_lane(*memories: Memory) -> Core:
    """Return one multiplier with the given memories below a wide top memory."""
    top = memory("top", 10**9, ("I1", "I2", "O"), ("D1",), top=True)
    return Core("single", OperationalArray((("D1", 1),), 1.0), (*memories, top))


def lanes_for_weights(size_bits: int) -> Example:
    """Return a loop of K 5 on 4 lanes, which takes two passes of 2.5 lanes on average; the ports have 8 bits."""
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
    """Whole tiles read all 5 weights and write all 5 outputs in two passes of 2.5 lanes (B41).
    The reference reads and writes 4 of the 5. A pass of 3 takes 3 cycles on the port instead of 2.
    """
    before, after, changed = changes(lanes_for_weights(64), "whole_tiles")
    assert [r.word_accesses["W"][0]["tl"] for r in (before, after)] == [4, 5]
    assert [r.word_accesses["O"][0]["fl"] for r in (before, after)] == [4, 5]
    assert [real_cycles(r, "weights", "W", "tl") for r in (before, after)] == [2, 3]
    assert [real_cycles(r, "top", "W", "tl") for r in (before, after)] == [4, 5]
    assert "temporal_mapping" not in changed


def test_whole_tiles_need_room() -> None:
    """A memory of 20 bits holds 2.5 weights of 8 bits, but not the 3 weights that one of the passes needs (B41)."""
    assert result(lanes_for_weights(20)).energy_pj > 0
    for model in (f"{REFERENCE}+whole_tiles", "corrected"):
        with pytest.raises(MappingError, match=r"'weights' is too small .* needs 24 bits, has 20"):
            result(lanes_for_weights(20), model)


def test_every_transfer_takes_port_time() -> None:
    """First transfers take port time too: C 2 inside D 50, all data in one memory with one read port (B42).
    Inputs, weights and partial sums come 100 times each. The reference counts 99 transfers each: a stall of 297 - 100 =
    197 cycles, latency 297. The repaired model counts 99 + 99 + 100 while the array computes, a stall of 198. Loading
    the first input and weight and writing the last output take a cycle each: latency 301.
    """
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
    """Second tiles go to the operand that stalls less: order C 2, K 4, D 8, K 2 (B43).
    The buffer keeps 8 weights and 2 inputs in 18 elements of 8 bits, and either operand can have a second tile. The
    reference doubles the weights, the first in the equation, so the inputs stall 30 cycles. The repaired model doubles
    the inputs, and the stall is 8 cycles.
    """
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
    """Final outputs of 16 bits need more room than partial sums of 8 bits (B44).

    C 2 is outside D 8, and the memory has 64 bits. The reference keeps all 8 outputs in the memory, which takes twice
    its size. The repaired model moves the outputs in and out.
    """
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
    """K 8 is asked for, and the port of the weights feeds 4 lanes; the repaired model keeps the 8 lanes (B45)."""
    core = Core(
        "narrow",
        OperationalArray((("D1", 8),), 1.0),
        (memory("weights", 48, ("I2",), ("D1",), read=32), memory("top", 10**9, ("I1", "I2", "O"), ("D1",), top=True)),
    )
    given = MappingConstraints("default", spatial_mapping=(("D1", (("K", 8),)),))
    assert spatial_candidates(gemm(K=8), core, given, profile_by_name(model)) == [(("D1", (("K", lanes),)),)]


def test_ties_by_equation() -> None:
    """Ties between operands follow the equation, not the order of operands in the memory (B46).
    72 bits hold either all 8 inputs beside one weight, or all 8 weights beside one input; both move equally many bits.
    """
    kept = []
    for model in (REFERENCE, f"{REFERENCE}+ties_by_equation"):
        for operands in (("I1", "I2"), ("I2", "I1")):
            core = single_lane(memory("buffer", 72, operands, ("D1",)))
            record = result((gemm(C=2, D=4, K=4), core, (("D1", ()),), (("C", 2), ("D", 4), ("K", 4))), model)
            kept.append("".join(o for o in "IW" if record.temporal_mapping[o][1] == ()))
    assert kept == ["I", "W", "I", "I"]


@pytest.mark.parametrize("switch", ["onnx_height_is_y", "trace_onnx_constants", "model_every_operator"])
def test_switches_of_the_onnx_reader(switch: str) -> None:
    """Switches of the ONNX reader (B10, B13, B40) leave the cost of a given layer as it is."""
    assert changes(TPU, switch)[2] == set()


def test_every_switch_has_a_test() -> None:
    """Every switch has a test here or belongs to the list of switches with tests elsewhere."""
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
    """All switches together give the figures of `corrected`, which also stand beside each reference result."""
    record = result(TPU, "corrected")
    assert (record.energy_pj, record.latency_cycles) == (3219863.68, 6265)
    assert result(TPU).corrected == Figures(3219863.68, 6265)
    every = result(TPU, REFERENCE + "".join(f"+{switch}" for switch in SWITCHES))
    assert replace(every, model="") == replace(record, model="")


# always ---------------------------------------------------------------------------------------------------------------


def draw_record(data: st.DataObject, model: str) -> tuple[Layer, LayerRecord] | None:
    """Return a layer and the record of a random mapping, or None if the mapping does not fit."""
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
    """Parts of energy and of latency add up to the totals; no figure is negative, and no utilization is above 1."""
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
    """Operands take at most the size of a memory if all factors divide."""
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
    """`corrected` reads no partial sum back at a level without accumulation in time (V = 1)."""
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
