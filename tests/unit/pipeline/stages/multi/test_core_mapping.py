"""Cost tables of cores: costs of CNs, operands that stream, and cores that cannot run a class."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from onnx.helper import make_node
from tilewright.base.artifacts.codec import encode
from tilewright.base.errors import InputError
from tilewright.hardware.core import Core
from tilewright.hardware.system import POOLING, MultiCoreAccelerator
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.mapping.dataflows import constraints_on_core
from tilewright.multicore.scheduling.core_costs import CoreCostRow, Stream, write_core_costs
from tilewright.multicore.scheduling.cost_classes import cost_classes
from tilewright.pipeline.sources import parse_accelerator
from tilewright.pipeline.stages.multi.core_mapping import map_core
from tilewright.pipeline.stages.run import map_layer
from tilewright.search.store import Store
from tilewright.workload.graph import Workload

from tests.unit.multicore.nodes.networks import SAME, conv, read, two_convolutions
from tests.unit.pipeline.stages.multi.core_cases import ANY, OPTIONS, core, cut, memory, system

ROOT = Path(__file__).resolve().parents[5]
HETEROGENEOUS = ROOT / "config" / "hardware" / "multi" / "heterogeneous.yaml"
EVERYTHING = ("I1", "I2", "O")


def rows_of(workload: Workload, one: Core, *loops: tuple[str, int | str], **others: object) -> tuple[CoreCostRow, ...]:
    """The table of one core for a network."""
    accelerator = system({"one": one})
    return map_core(cut(workload, *loops), workload, ANY, accelerator, "one", OPTIONS, **others)  # type: ignore[arg-type]


def matrix_product() -> Workload:
    """A matrix product of 1 x 8 and 8 x 4: 32 multiplications, 256 bits of weights."""
    return read([make_node("MatMul", ["x", "w"], ["y"], name="y")], {"x": (1, 8)}, {"w": (8, 4)})


def separate(weight_bits: int, activation_bits: int = 512) -> Core:
    """Four multipliers, each with a register for a sum; a memory for weights and one for other data, 32 bits a
    cycle.
    """
    registers = memory("registers", 16, ("O",), 16, served=())
    return core(registers, memory("weights", weight_bits, ("I2",)), memory("rest", activation_bits, ("I1", "O")))


@pytest.mark.parametrize("loops", [(), (("OY", "all"),)], ids=["layers", "lines"])
def test_a_cn_that_fits_costs_what_the_single_flow_says_of_its_layer(loops: tuple[tuple[str, str], ...]) -> None:
    """A CN that fits costs as much as its layer in the single-core flow, on each core of an accelerator of unlike
    cores.
    """
    workload = two_convolutions()
    graph = cut(workload, *loops)
    accelerator = parse_accelerator(HETEROGENEOUS)
    assert isinstance(accelerator, MultiCoreAccelerator)
    classes = cost_classes(graph, workload, ANY).classes
    for name in ("k16_c16", "ox28_fx3_fy3"):
        own = accelerator.distinct_cores[name]
        for row in map_core(graph, workload, ANY, accelerator, name, OPTIONS):
            shape = graph.shapes[classes[row.cost_class].shape]
            record = map_layer(shape, own, constraints_on_core(MappingConstraints(""), shape, own)[0], OPTIONS)
            parts = record.latency_breakdown_cycles
            assert row.streams == ()
            assert row.on_core_energy_pj == pytest.approx(record.energy_pj, rel=1e-12)
            assert row.operational_energy_pj == record.energy_terms_pj["mac"]
            assert row.total2_cycles == math.ceil(record.latency_cycles)
            assert row.total2_cycles - row.total1_cycles == parts["offloading"] + parts["drain"]
            assert row.total1_cycles - row.total0_cycles == parts["onloading"]
            assert row.ideal_cycles == parts["ideal"]
            assert row.mapping["loop_order"] == encode(record.loop_order)


def test_an_operand_that_is_too_large_streams() -> None:
    """Weights of 256 bits for a memory of 128 stream from an off-chip memory of 8 bits a cycle, worked out by hand.

    Four outputs are made at a time, in 8 cycles. The memory uses only the 32 bits of one cycle, as more would take
    longer to fill. Each of eight pieces of the weights comes in 4 cycles; the first is on-loading. Each of the other
    seven waits until the one before is used up, after one cycle: 7 × 3 cycles of stall. That makes 29 cycles, 34 with
    on-loading (one cycle takes the first weights to the array), and 36 with the last outputs. In two halves of 128 bits
    it would be 20, 37 and 39 cycles. 256 bits in 34 cycles are 8 a cycle, rounded up.

    Energy on the core: 32 multiplications of 0.5 pJ; reads 1 pJ a word, writes 2 pJ. Weights: 8 words written and 8
    read. Registers: 32 words written, 28 read to be added to, 4 read out. Other data: 8 inputs read, 1 word of outputs
    written.
    """
    (row,) = rows_of(matrix_product(), separate(128))
    assert row.streams == (Stream("I2", 256, 8),)
    assert (row.ideal_cycles, row.total0_cycles, row.total1_cycles, row.total2_cycles) == (8, 29, 34, 36)
    assert dict(row.memory_energy_pj) == {
        "weights": 8 * 2 + 8 * 1,
        "registers": 32 * 2 + 28 * 1 + 4 * 1,
        "rest": 8 * 1 + 1 * 2,
    }
    assert row.operational_energy_pj == 16
    assert row.on_core_energy_pj == 16 + 24 + 96 + 10
    assert row.mapping["memory_levels"]["W"] == ["weights", "dram"]
    assert row.mapping["memory_levels"]["I"] == ["rest"]


def test_the_same_cn_does_not_stream_where_it_fits() -> None:
    """A CN does not stream where 256 bits of weights fit: there is no stall, and only the first weights are loaded."""
    (row,) = rows_of(matrix_product(), separate(256))
    assert row.streams == ()
    assert (row.ideal_cycles, row.total0_cycles, row.total1_cycles) == (8, 8, 9)


@pytest.mark.parametrize(
    ("size_bits", "streams"),
    [
        (352, ()),  # 64 of inputs, 32 of outputs (8 bits each when they are done), 256 of weights
        (344, ("I2",)),
        (128, ("I2",)),
    ],
)
def test_the_smallest_operands_stay_in_a_memory_that_is_too_small_for_all(
    size_bits: int, streams: tuple[str, ...]
) -> None:
    """The smallest operands stay in one memory that is too small for all three. Sums are in registers."""
    registers = memory("registers", 16, ("O",), 16, served=())
    (row,) = rows_of(matrix_product(), core(registers, memory("all", size_bits, EVERYTHING)))
    assert tuple(stream.operand for stream in row.streams) == streams


def test_more_streams_where_what_stays_leaves_no_buffer() -> None:
    """The operands that stay take 96 of 104 bits. Four weights do not fit into the other 8, so inputs stream, too."""
    registers = memory("registers", 16, ("O",), 16, served=())
    (row,) = rows_of(matrix_product(), core(registers, memory("all", 104, EVERYTHING)))
    assert {"I1", "I2"} <= {stream.operand for stream in row.streams}
    bits = {stream.operand: stream.bits for stream in row.streams}
    assert bits["I2"] >= 256
    assert bits["I1"] >= 64


@pytest.mark.parametrize(("size_bits", "fits"), [(384, True), (383, False), (352, False)])
def test_operands_stream_where_they_fit_but_sums_while_they_are_added_up_do_not(size_bits: int, fits: bool) -> None:
    """Operands stream if the partial sums do not fit beside them, even if the final outputs would.

    One memory holds all operands: 64 bits of inputs, 256 of weights, and 64 of partial sums, in total 384. With the 32
    bits of the final outputs in place of the sums, 352 bits would be enough.
    """
    (row,) = rows_of(matrix_product(), core(memory("all", size_bits, EVERYTHING)))
    assert row.can_run
    assert (row.streams == ()) == fits


def test_a_core_that_can_hold_nothing_of_an_operand_has_a_reason() -> None:
    """Registers of 8 bits hold no sum of 16, so the row has a reason instead of a mapping, and no error is raised."""
    (row,) = rows_of(matrix_product(), core(memory("registers", 8, ("O",), 16, ()), memory("all", 4096, EVERYTHING)))
    assert not row.can_run
    assert "'registers' is too small" in row.reason
    assert "\n" not in row.reason
    assert (row.total1_cycles, row.on_core_energy_pj, row.streams) == (0, 0.0, ())


def test_without_an_off_chip_memory_nothing_streams() -> None:
    """Nothing can stream without an off-chip memory; the row of a CN that does not fit gives this reason."""
    whole = system({"one": separate(128)})
    alone = MultiCoreAccelerator("alone", whole.cores[:1], whole.places[:1], ())
    workload = matrix_product()
    (row,) = map_core(cut(workload), workload, ANY, alone, "one", OPTIONS)
    assert "no off-chip memory" in row.reason


def test_streams_never_need_more_than_the_port() -> None:
    """A stream needs at most the width of the off-chip memory, whatever this width is, and its cycles cover its
    bits.
    """
    for width in (1, 8, 64, 1024):
        workload = matrix_product()
        accelerator = system({"one": separate(128)}, width)
        (row,) = map_core(cut(workload), workload, ANY, accelerator, "one", OPTIONS)
        (stream,) = row.streams
        assert stream.bits_per_cycle <= width
        assert stream.bits_per_cycle * row.total1_cycles >= 256


def test_steps_of_a_reduction_hand_on_partial_sums() -> None:
    """Steps of a reduction hand on partial sums.

    A 3x3 convolution has 2 input channels in two steps, and 8 x 6 outputs: 768 bits of partial sums, 24 words of 32
    bits. The first step writes them instead of 384 bits of outputs. The second step first reads them back, in 24
    additional cycles, writes them into the registers, and reads each once more there.
    """
    workload = read([conv("x", "w", "a", **SAME)], {"x": (1, 2, 1, 6)}, {"w": (8, 2, 3, 3)})
    small = core(memory("registers", 16, ("O",), 16, ()), memory("all", 10**6, EVERYTHING))
    first, last = rows_of(workload, small, ("C", 2))
    assert first.total2_cycles - first.total1_cycles >= last.total2_cycles - last.total1_cycles
    assert last.total1_cycles == first.total1_cycles + 24
    energy = [dict(row.memory_energy_pj) for row in (first, last)]
    # 12 words less are written, 24 more are read.
    assert energy[1]["all"] == energy[0]["all"] - 12 * 2 + 24 * 1
    # 48 more are read in the registers, and 48 of 16 bits are written there, counted as twice the words of the 48 of 8
    # bits that leave: never too few.
    assert energy[1]["registers"] == energy[0]["registers"] + 48 * 1 + 2 * 48 * 2
    assert first.what.endswith("leaves partial sums")
    assert last.what.endswith("takes partial sums")


def test_names_do_not_matter() -> None:
    """Names of layers, tensors, cores and mapping entries do not change the rows."""
    workload = two_convolutions()
    renamed = read(
        [conv("u", "q0", "second/layer", **SAME), conv("second/layer", "q1", "out", **SAME)],
        {"u": (1, 4, 6, 6)},
        {"q0": (8, 4, 3, 3), "q1": (4, 8, 3, 3)},
    )
    small = core(memory("all", 10**5, EVERYTHING))
    named = Mapping((MappingConstraints("out"), MappingConstraints("default")))
    accelerator = system({"other": replace(small, name="another")})
    expected = rows_of(workload, small, ("OY", "all"))
    assert map_core(cut(renamed, ("OY", "all")), renamed, named, accelerator, "other", OPTIONS) == expected


def test_threads_and_store_change_no_byte(tmp_path: Path) -> None:
    """One thread, two threads, a store that is filled and a store that is read give the same bytes."""
    workload = two_convolutions()
    small = core(memory("weights", 512, ("I2",)), memory("rest", 10**5, ("I1", "O")))
    searched: list[object] = []
    store = Store(tmp_path / "store")
    written = []
    for place, others in enumerate(
        (
            {},
            {"threads": 2},
            {"store": store, "on_found": searched.append},
            {"store": store, "on_found": searched.append},
        )
    ):
        path = tmp_path / f"{place}.jsonl"
        write_core_costs(path, rows_of(workload, small, ("OY", "all"), **others), {})
        written.append((path.read_bytes(), len(searched)))
    assert len({content for content, _ in written}) == 1
    assert written[2][1] == written[3][1] > 0, "the second run takes everything from the store"


def test_an_interrupted_search_goes_on_from_the_store(tmp_path: Path) -> None:
    """A mapping that is already in the store is not searched again after Ctrl-C."""
    workload = two_convolutions()
    small = core(memory("all", 10**5, EVERYTHING))
    store = Store(tmp_path / "store")

    def interrupt(task: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rows_of(workload, small, ("OY", "all"), store=store, on_found=interrupt)
    assert len(store.entries()) == 1
    searched: list[object] = []
    rows = rows_of(workload, small, ("OY", "all"), store=store, on_found=searched.append)
    assert len(searched) == len(rows) - 1
    assert rows == rows_of(workload, small, ("OY", "all"))


def test_cores_of_other_operators_and_other_layers_are_rows_with_reasons() -> None:
    """The row of a CN has the reason if a core's operator types or the mapping file keep the CN off the core."""
    nodes = [conv("x", "w", "a", **SAME), make_node("Relu", ["a"], ["b"], name="b")]
    workload = read(nodes, constants={"w": (4, 4, 3, 3)})
    graph = cut(workload)
    small = core(memory("all", 10**5, EVERYTHING))
    pooling = system({"one": small}, role=POOLING, operator_types=("pooling",))
    assert [row.reason for row in map_core(graph, workload, ANY, pooling, "one", OPTIONS)] == [
        "runs pooling, not Conv",
        "runs pooling, not Relu",
    ]
    both = system({"one": small, "two": small})
    given = Mapping((MappingConstraints("Conv", core_allocation=(1,)), MappingConstraints("default")))
    first = map_core(graph, workload, given, both, "one", OPTIONS)
    assert [row.can_run for row in first] == [False, True]
    assert "other cores" in first[0].reason
    assert [row.can_run for row in map_core(graph, workload, given, both, "two", OPTIONS)] == [True, True]


def test_a_mapping_for_another_array_leaves_the_core_its_dataflow() -> None:
    """One mapping file serves cores of one and of four array dimensions, and layers with and without weights."""
    nodes = [
        conv("x", "w", "a", **SAME),
        make_node("MaxPool", ["a"], ["b"], name="b", kernel_shape=[2, 2], strides=[2, 2]),
        make_node("Add", ["b", "b"], ["c"], name="c"),
    ]
    workload = read(nodes, constants={"w": (8, 4, 3, 3)})
    wide = tuple((f"D{number}", (("K", 2),)) for number in range(1, 5))
    small = core(memory("all", 10**5, EVERYTHING, 64))
    accelerator = system({"one": small})
    rows = map_core(
        cut(workload), workload, Mapping((MappingConstraints("default", wide),)), accelerator, "one", OPTIONS
    )
    assert [row.mapping["spatial_mapping"] for row in rows] == [{"D1": {"K": 4}}] * 3
    own = MappingConstraints("default", (("D1", (("OX", 2),)),))
    rows = map_core(cut(workload), workload, Mapping((own,)), accelerator, "one", OPTIONS)
    assert [row.mapping["spatial_mapping"] for row in rows] == [{"D1": {"OX": 2}}] * 3


def test_a_dataflow_gives_way_where_the_layer_has_none_of_its_loops() -> None:
    """The dataflow spreads output channels over the lanes; a layer without channels gets a searched spatial mapping."""
    nodes = [make_node("Relu", ["x"], ["a"], name="a")]
    workload = read(nodes, {"x": (1, 1, 4, 4)})
    wide = core(memory("all", 10**5, EVERYTHING, 64))
    (row,) = rows_of(workload, wide)
    assert row.spatial_utilisation == 1.0
    assert "K" not in row.mapping["spatial_mapping"]["D1"]


@pytest.mark.parametrize("budget_s", [1e-9, 60.0])
def test_rows_say_where_a_time_budget_ended_their_search(budget_s: float) -> None:
    """The field `ended_by_time` is set only in rows whose search a time budget ended."""
    workload = two_convolutions()
    options = replace(OPTIONS, temporal_mapping_search_engine="exact", time_budget_s=budget_s)
    accelerator = system({"one": separate(1 << 16, 1 << 16)})
    rows = map_core(cut(workload), workload, ANY, accelerator, "one", options)
    assert {row.ended_by_time for row in rows} == {budget_s < 1}
    assert all(("ended_by_time" in encode(row)) == (budget_s < 1) for row in rows)


def test_some_rows_are_as_in_the_whole_table() -> None:
    """Rows searched for some classes equal those of the whole table, and no other class is searched."""
    workload = two_convolutions()
    every: list[object] = []
    whole = rows_of(workload, separate(4096), ("OY", "all"), on_found=every.append)
    assert len(whole) > 2
    for row in whole:
        searched: list[object] = []
        only = [row.cost_class]
        assert rows_of(workload, separate(4096), ("OY", "all"), only=only, on_found=searched.append) == (row,)
        assert 0 < len(searched) < len(every)


def test_an_unknown_core_is_told_with_the_nearest(tmp_path: Path) -> None:
    """An unknown core is reported with the nearest name of a core file."""
    workload = matrix_product()
    with pytest.raises(InputError, match="did you mean 'one'"):
        map_core(cut(workload), workload, ANY, system({"one": separate(128)}), "onee", OPTIONS)


def test_operands_without_a_link_are_a_reason() -> None:
    """A row names `memory_operand_links` as its reason if the links of the mapping file lack an operand."""
    workload = matrix_product()
    links = MappingConstraints("default", memory_operand_links=(("O", "O"), ("W", "I2")))
    accelerator = system({"one": separate(128)})
    (row,) = map_core(cut(workload), workload, Mapping((links,)), accelerator, "one", OPTIONS)
    assert "memory_operand_links" in row.reason
