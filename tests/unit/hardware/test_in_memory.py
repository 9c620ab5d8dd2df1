"""In-memory arrays: each formula against circuits that are counted one by one, and general laws."""

import itertools
import math
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.base.errors import MappingError
from tilewright.base.profile import CORRECTED, REFERENCE
from tilewright.cost.energy_terms import input_loops
from tilewright.cost.record import record_row
from tilewright.hardware.array_model import ArrayWork, InputWindow, array_model, clock_period_ns
from tilewright.hardware.core import OperationalArray
from tilewright.hardware.in_memory import used_rows
from tilewright.hardware.in_memory_circuits import InMemoryArray
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.search.evaluate import evaluate
from tilewright.search.options import SearchOptions
from tilewright.workload.layer import DimensionRelation, Layer

from tests.plain.in_memory import PlainArray
from tests.unit.cost.engine_cases import LINKS, gemm

ANALOG_FILE = Path(__file__).parents[2] / "conformance/data/in_memory/hardware/analog_24x40.yaml"
POWERS = [1, 2, 4, 8, 16]


@st.composite
def arrays(draw: st.DrawFn) -> PlainArray:
    """Generate any in-memory array."""
    analog = draw(st.booleans())
    serial = draw(st.sampled_from(POWERS))
    return PlainArray(
        analog=analog,
        columns=draw(st.integers(1, 200)),
        rows=draw(st.integers(1, 200)) if analog else 2 ** draw(st.integers(0, 8)),
        banks=draw(st.integers(1, 5)),
        activation_bits=serial * draw(st.sampled_from([1, 2, 4])),
        weight_bits=draw(st.sampled_from(POWERS)),
        serial_bits=serial,
        resolution=draw(st.integers(0, 12)) if analog else 0,
    )


def array_of(plain: PlainArray, cell_bits: int = 0) -> OperationalArray:
    """Return the array in the form of the package; its dimensions are not in the order of their names."""
    numbers = {
        "activation_bits": plain.activation_bits,
        "weight_bits": plain.weight_bits,
        "bit_serial_precision": plain.serial_bits,
        "adc_resolution": plain.resolution,
        "cell_bits": cell_bits or plain.weight_bits,
    }
    kind = "analog in-memory" if plain.analog else "digital in-memory"
    sides = (("D3", plain.banks), ("D2", plain.rows), ("D1", plain.columns))
    return OperationalArray(sides, 0.0, kind=kind, parameters=tuple(numbers.items()))


def work(operations: int, columns: dict[str, int], rows: dict[str, int], **others: object) -> ArrayWork:
    """Return array work with the given lanes on columns and rows."""
    lanes = {"D1": columns, "D2": rows}
    return ArrayWork(operations, lanes, lanes)._replace(**others)


def assert_close(found: dict[str, float], expected: dict[str, float]) -> None:
    """Assert that two tables have the same parts in the same order, with values that are equal up to rounding."""
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert math.isclose(found[name], value, rel_tol=1e-12, abs_tol=1e-18), name


@given(plain=arrays())
@settings(max_examples=120, deadline=None)
def test_areas_and_delays_are_those_of_circuits(plain: PlainArray) -> None:
    """Areas and delays equal those of the counted circuits, in each part and in total."""
    array = array_of(plain)
    model = array_model(array)
    assert_close(dict(model.area_breakdown_mm2(array)), plain.areas_mm2())
    assert_close(dict(model.clock_breakdown_ns(array)), plain.delays_ns())
    assert math.isclose(model.area_mm2(array) or 0.0, sum(plain.areas_mm2().values()), rel_tol=1e-12)
    assert math.isclose(clock_period_ns(array) or 0.0, sum(plain.delays_ns().values()), rel_tol=1e-12)
    assert model.cycles_per_operation(array) == plain.activation_bits // plain.serial_bits


@given(plain=arrays(), data=st.data())
@settings(max_examples=150, deadline=None)
def test_energies_are_those_of_circuits(plain: PlainArray, data: st.DataObject) -> None:
    """Each energy term equals that of the counted circuits, for any mapping onto the array."""
    columns, rows = data.draw(st.integers(1, plain.columns)), data.draw(st.integers(1, plain.rows))
    operations = data.draw(st.integers(1, 10**6))
    array = array_of(plain)
    model = array_model(array)
    found = dict(zip(model.terms, model.energies_pj(array, work(operations, {"K": columns}, {"C": rows})), strict=True))
    assert_close(found, plain.energies_pj(operations, columns, rows, rows))


@given(plain=arrays(), factor=st.integers(2, 5), rows=st.integers(1, 200))
@settings(max_examples=60, deadline=None)
def test_energy_grows_with_work_alone(plain: PlainArray, factor: int, rows: int) -> None:
    """Energy is in proportion to operations, and an operation costs no more where more rows are busy."""
    rows = min(rows, plain.rows)
    array = array_of(plain)
    model = array_model(array)
    once = sum(model.energies_pj(array, work(1000, {"K": 1}, {"C": rows})))
    assert sum(model.energies_pj(array, work(1000 * factor, {"K": 1}, {"C": rows}))) == pytest.approx(factor * once)
    full = sum(model.energies_pj(array, work(1000, {"K": 1}, {"C": plain.rows})))
    assert full <= sum(model.energies_pj(array, work(1000, {"K": 1}, {"C": 1}))) * (1 + 1e-9)


SLIDING = {"OX": InputWindow("FX", 1, 1), "OY": InputWindow("FY", 1, 1)}
SIDE = PlainArray(True, 32, 32, 1, 8, 8, 2, 6)


@pytest.mark.parametrize(
    ("columns", "rows", "driven"),
    [
        ({"K": 8}, {"C": 2, "FX": 3}, 6),
        # What zigzag-dse 3.9.1 returned: 6 rows more belong to FX, and stand at FX's place in the order of a set.
        ({"OX": 7}, {"FX": 3, "FY": 5}, 45),
        ({"OX": 7}, {"FY": 5, "FX": 3}, 33),
        ({"OX": 7}, {"C": 2, "FX": 3}, 24),
        ({"OX": 7}, {"FX": 3, "C": 2}, 18),
        ({"OX": 7}, {"C": 2, "FY": 5}, 10),
        ({"OY": 7}, {"FY": 5, "C": 2}, 40),
        ({"OX": 7, "OY": 4}, {"FY": 5, "FX": 3}, 66),
        ({"OX": 7}, {"FX": 3, "K": 8}, 42),
        ({"OX": 7}, {"OY": 2, "C": 4, "FX": 3, "FY": 5}, 300),
        ({"OX": 7}, {"C": 1, "FY": 1}, 1),
    ],
)
def test_rows_of_diagonals_in_the_reference(columns: dict[str, int], rows: dict[str, int], driven: int) -> None:
    """Adjacent outputs of one window (a diagonal) take further rows, as many as in the reference."""
    array = array_of(SIDE)
    plain = math.prod(rows.values())
    asked = work(1000, columns, rows, input_loops=SLIDING)
    model = array_model(array)
    assert model.refusal(array, asked) == ""
    found = dict(zip(model.terms, model.energies_pj(array, asked), strict=True))
    expected = SIDE.energies_pj(1000, math.prod(columns.values()), plain, driven)
    assert_close({name: found[name] for name in expected}, expected)


@pytest.mark.parametrize(
    ("columns", "rows", "reuse", "told"),
    [
        ({"OX": 7}, {"FX": 3}, SLIDING, "one loop unrolled over D2"),
        ({"OX": 1}, {"C": 4}, SLIDING, "one loop unrolled over D2"),
        ({"OX": 7}, {"FX": 3, "C": 2}, SLIDING | {"B": None}, "equal weights over B"),
    ],
)
def test_the_reference_has_no_energy_for_some_diagonals(
    columns: dict[str, int], rows: dict[str, int], reuse: dict[str, InputWindow | None], told: str
) -> None:
    """The reference refuses some diagonals (B14), and the corrected model accepts them."""
    array = array_of(SIDE)
    asked = work(1000, columns, rows, input_loops=reuse)
    model = array_model(array)
    assert told in model.refusal(array, asked)
    assert "complete_in_memory_model" in model.refusal(array, asked)
    assert model.refusal(array, asked._replace(profile=CORRECTED)) == ""


@pytest.mark.parametrize(
    ("columns", "rows", "window", "driven"),
    [
        ({"OX": 7}, {"FX": 3}, (1, 1), 9),
        ({"OX": 7}, {"FX": 3, "FY": 3}, (1, 1), 27),
        ({"OX": 7}, {"FY": 3, "FX": 3}, (1, 1), 27),
        ({"OX": 4}, {"FX": 3, "C": 2}, (2, 1), 18),
        ({"OX": 4}, {"FX": 3}, (1, 2), 8),
        ({"OX": 4}, {"C": 5}, (1, 1), 20),
        ({"B": 3}, {"C": 5}, (1, 1), 15),
        ({"B": 1, "K": 4}, {"C": 5}, (1, 1), 5),
    ],
)
def test_rows_are_the_distinct_inputs(
    columns: dict[str, int], rows: dict[str, int], window: tuple[int, int], driven: int
) -> None:
    """The corrected model drives a row for each distinct input of the columns, and refuses an array with fewer rows."""
    reuse = {"OX": InputWindow("FX", *window), "B": None}
    asked = work(1000, columns, rows, input_loops=reuse, profile=CORRECTED)
    model = array_model(array_of(SIDE))
    found = dict(zip(model.terms, model.energies_pj(array_of(SIDE), asked), strict=True))
    lanes = math.prod(columns.values()), math.prod(rows.values())
    assert found["mults"] == pytest.approx(SIDE.energies_pj(1000, *lanes, driven)["mults"])
    few = array_of(replace(SIDE, rows=driven - 1))
    assert f"need {driven} rows of inputs, but D2 has {driven - 1}" in model.refusal(few, asked)


def inputs_of_lanes(columns: dict[str, int], rows: dict[str, int], stride: int, dilation: int) -> int:
    """Count the distinct inputs of all lanes, one lane after the other; products of one column are added up."""
    found = set()
    for beside in itertools.product(*map(range, columns.values())):
        for along in itertools.product(*map(range, rows.values())):
            at = dict.fromkeys(("B", "G", "C", "OX", "OY", "FX", "FY"), 0)
            for names, sides, place in ((list(rows), rows, along), (list(columns), columns, beside)):
                for name, index in zip(names, place, strict=True):
                    at[name] = at.get(name, 0) * sides[name] + index
            position = stride * at["OX"] + dilation * at["FX"], at["OY"] + at["FY"]
            found.add((at["B"], at["G"], at["C"], *position))
    return len(found)


@given(data=st.data(), stride=st.integers(1, 3), dilation=st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_rows_of_any_columns_are_inputs_counted_one_by_one(data: st.DataObject, stride: int, dilation: int) -> None:
    """The number of used rows equals the inputs counted one by one, for any columns and windows."""
    lanes = st.integers(1, 4)
    columns = data.draw(st.dictionaries(st.sampled_from(["K", "B", "G", "C", "OX", "OY", "FX"]), lanes, max_size=3))
    rows = data.draw(st.dictionaries(st.sampled_from(["C", "FX", "FY"]), lanes, max_size=3))
    layer = Layer(
        name="windows",
        operator_type="Conv",
        loop_sizes=tuple((name, 64) for name in ("B", "G", "K", "C", "OY", "OX", "FY", "FX")),
        operand_dimensions=(
            ("O", ("B", "G", "K", "OY", "OX")),
            ("W", ("G", "K", "C", "FY", "FX")),
            ("I", ("B", "G", "C", "IY", "IX")),
        ),
        relations=(
            DimensionRelation("IX", (("OX", stride), ("FX", dilation))),
            DimensionRelation("IY", (("OY", 1), ("FY", 1))),
        ),
        precision_bits=(("W", 8), ("I", 8), ("O", 16), ("O_final", 8)),
    )
    asked = work(1000, columns, rows, input_loops=input_loops(layer, CORRECTED, LINKS), profile=CORRECTED)
    side = replace(SIDE, columns=200, rows=20000)
    assert used_rows(InMemoryArray.of(array_of(side), True), asked) == inputs_of_lanes(columns, rows, stride, dilation)


def test_rows_that_are_busy_on_average_are_not_rounded_up_for_their_rounding() -> None:
    """Seven times the average of 116 / 7 rows is 116 rows, although the floating-point product is above 116."""
    asked = work(1000, {"K": 4}, {"C": 116 / 7, "FX": 7}, profile=CORRECTED)
    assert 116 / 7 * 7 > 116
    assert used_rows(InMemoryArray.of(array_of(SIDE), True), asked) == 116


def test_only_rows_with_inputs_switch_where_repaired() -> None:
    """The reference counts all multipliers of a digital array as switching, the corrected model only rows in use."""
    side = PlainArray(False, 32, 32, 1, 8, 8, 1, 0)
    array, model = array_of(side), array_model(array_of(side))
    asked = work(1000, {"K": 4}, {"C": 8})
    own, repaired = (
        dict(zip(model.terms, model.energies_pj(array, asked._replace(profile=profile)), strict=True))
        for profile in (REFERENCE, CORRECTED)
    )
    assert repaired["mults"] == pytest.approx(own["mults"] / 4)
    assert {name: value for name, value in repaired.items() if name != "mults"} == {
        name: value for name, value in own.items() if name != "mults"
    }


def test_several_weights_a_cell_have_no_energy_in_the_reference(tmp_path: Path) -> None:
    """The reference refuses cells larger than a weight (B14); the corrected model counts the energy of their local
    lines."""
    array = array_of(SIDE, cell_bits=16)
    model = array_model(array)
    assert "cells of 16 bits for weights of 8 bits" in model.refusal(array, work(10, {"K": 2}, {"C": 2}))
    assert model.refusal(array, work(10, {"K": 2}, {"C": 2}, profile=CORRECTED)) == ""
    assert InMemoryArray.of(array, True).cell_bits == 16
    for depth, energy_pj in ((1, 0.5), (4, 0.5 + 8 * 0.81 * 0.35e-3 * (1 + 4))):
        described = yaml.safe_load(ANALOG_FILE.read_text())
        described["memories"]["cells"] |= {"size": 8 * depth, "r_cost": 0.5}
        file = tmp_path / f"cells{depth}.yaml"
        file.write_text(yaml.safe_dump(described, sort_keys=False))
        cells = read_accelerator(file).cores[0].memories[0]
        assert (cells.name, cells.read_energy_pj) == ("cells", pytest.approx(energy_pj))


def test_weights_are_what_the_mapping_puts_into_the_cells() -> None:
    """A layer of two computed inputs costs the same whichever input the mapping puts into the cells."""
    core = read_accelerator(ANALOG_FILE).cores[0]
    bits = (("W", 4), ("I", 4), ("O", 16), ("O_final", 8))
    layer = gemm(bits=bits, C=32, D=4, K=48)
    swapped = replace(layer, operand_dimensions=(("O", ("D", "K")), ("W", ("D", "C")), ("I", ("C", "K"))))
    lanes = ("D1", (("K", 24),)), ("D2", (("C", 32),))
    other_way = (("O", "O"), ("W", "I1"), ("I", "I2"))
    found = [
        record_row(evaluate(one, core, links, lanes, [("K", 2), ("D", 4)], SearchOptions(model="corrected")))
        for one, links in [
            (layer, LINKS),
            (replace(layer, constant_operands=()), LINKS),
            (replace(swapped, constant_operands=()), other_way),
        ]
    ]
    assert found[0]["energy_pj"] == found[1]["energy_pj"] == found[2]["energy_pj"]
    assert found[0]["latency_cycles"] == found[2]["latency_cycles"]
    with pytest.raises(MappingError, match=r"zigzag-3.9.1\+complete_in_memory_model or corrected$"):
        evaluate(replace(layer, constant_operands=()), core, LINKS, lanes, [("K", 2), ("D", 4)], SearchOptions())
