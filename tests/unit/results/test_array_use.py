"""Utilisation of the array, and the cause of idle units: the mapping file or the sizes of the layer."""

import math
from dataclasses import replace
from typing import Any

import pytest
from tilewright.hardware.core import Core, OperationalArray
from tilewright.mapping.constraints import DEFAULT, Mapping, MappingConstraints, Unrolling
from tilewright.results.array_use import ArrayUses, array_text, array_uses
from tilewright.results.page.columns import array_text as page_text
from tilewright.results.records import layers_in_order
from tilewright.search.evaluate import evaluate
from tilewright.search.options import SearchOptions
from tilewright.workload.layer import Layer

from tests.unit.results.test_bottlenecks import BITS, LINKS, OPERANDS, core_of, network


def uses_of(array: int, loops: dict[str, int], spatial: Unrolling, **options: Any) -> ArrayUses:
    """Uses of a matrix product with these loops on one side of the array; the entry of the mapping file fixes
    `spatial`.
    """
    given: Core = core_of(inputs=64, weights=64)
    core = replace(given, operational_array=OperationalArray((("D1", array),), 0.5))
    layer = Layer("gemm", "Gemm", OPERANDS, tuple(loops.items()), (), BITS)
    used = {name: lanes for _, factors in spatial for name, lanes in factors}
    left = tuple((name, math.ceil(size / used.get(name, 1))) for name, size in loops.items())
    record = evaluate(layer, core, LINKS, spatial, left)
    placed = layers_in_order([replace(record, layer_names=("gemm", "again"))])
    mapping = Mapping((MappingConstraints(DEFAULT, spatial_mapping=spatial),))
    return array_uses(placed, core, network(layer), mapping, SearchOptions(**options))


def test_the_mapping_file_fixes_too_few_lanes() -> None:
    """A loop of 8 could fill the array of 8, but the file fixes 2 lanes of another loop, so the file is the cause."""
    uses = uses_of(8, {"D": 4, "K": 8, "C": 2}, (("D1", (("C", 2),)),))
    assert uses.shares == {"D1": 0.25}
    for one in uses.layers:
        assert (one.entry, one.computing_cycles, one.stall_cycles) == (DEFAULT, 32, 24)
        assert (one.by_mapping_file_cycles, one.by_sizes_cycles) == (24, 0)
    assert [one.layer for one in uses.layers] == ["gemm", "again"]
    text = array_text(replace(uses, places={(DEFAULT, "D1"): "a.yaml:7"}), 64)
    assert "C 2: 25.0%   a.yaml:7 (D1)" in text
    assert "the best generated spatial mappings would avoid 48 of the stall cycles (75.0% of the latency)" in text
    assert array_text(uses, 1e6) == "", "next to nothing"
    on_page = page_text(uses.as_object())
    assert on_page.startswith(
        "Share of working units along each side of the array, while the array computes: D1 25.0%. 48 cycles"
    )
    assert page_text(None) == ""


@pytest.mark.parametrize("is_known", [True, False])
def test_layers_with_equal_causes_share_a_row(is_known: bool) -> None:
    """Layers with the same sides and cause share a row, which counts the layers and adds up their cycles."""
    uses = uses_of(8, {"D": 4, "K": 8, "C": 2}, (("D1", (("C", 2),)),))
    (one, _) = uses.layers
    other = one._replace(layer="other", sides=(one.sides[0]._replace(lanes=1.0),), computing_cycles=64)
    layers = [*uses.layers, other]
    if not is_known:
        layers = [layer._replace(by_mapping_file_cycles=None, entry="") for layer in layers]
    text = array_text(replace(uses, layers=tuple(layers)), 128)
    rows = [line for line in text.splitlines() if line.strip().startswith("C 2:")]
    assert len(rows) == 1, text
    assert rows[0].split()[-3:] == ["3", "72", "56.2%"], "three layers with 24 cycles each"
    assert "C 2: 18.8%" in rows[0], "mean of 25 % and 12.5 %, which take equally many cycles"


def test_no_loop_fills_the_array() -> None:
    """No loop of 3, 3 or 5 fills 8 units: 3 of 8 stay idle in the best generated mapping, too."""
    loops = {"D": 3, "K": 3, "C": 5}
    uses = uses_of(8, loops, (("D1", (("C", 5),)),))
    (one, _) = uses.layers
    assert (one.computing_cycles, one.by_mapping_file_cycles, one.by_sizes_cycles) == (9, 0, one.stall_cycles)
    worse = uses_of(8, loops, (("D1", (("K", 3),)),)).layers[0]
    assert worse.computing_cycles == 15
    assert worse.by_mapping_file_cycles == 15 - 9
    assert worse.by_sizes_cycles == worse.stall_cycles - 6
    assert "the sizes of the layers" in array_text(uses, 18)


def test_without_a_mapping_the_cause_is_not_known() -> None:
    """The share is known, but not the cause, if there is no mapping file."""
    uses = uses_of(8, {"D": 4, "K": 8, "C": 2}, (("D1", (("C", 2),)),))
    unknown = replace(uses, layers=tuple(one._replace(by_mapping_file_cycles=None, entry="") for one in uses.layers))
    assert unknown.layers[0].by_sizes_cycles is None
    assert "not known without --mapping" in array_text(unknown, 64)
    assert unknown.as_object()["layers"][0]["sides"]["D1"]["share"] == 0.25


@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 5, 7, 8])
def test_lanes_that_do_not_divide_are_counted_as_the_model_spreads_them(lanes: int) -> None:
    """The share of the array, times its units and the cycles, equals the operations."""
    (one, _) = uses_of(8, {"D": 4, "K": 8, "C": 3}, (("D1", (("K", lanes),)),)).layers
    assert one.sides[0].share * 8 * one.computing_cycles == pytest.approx(4 * 8 * 3)


def test_a_loop_along_several_sides_is_counted_once() -> None:
    """56 columns on 4 x 4 units take 4 passes, with 14 of 16 units working on average."""
    core = replace(core_of(inputs=64, weights=64), operational_array=OperationalArray((("D1", 4), ("D2", 4)), 0.5))
    layer = Layer("gemm", "Gemm", OPERANDS, (("D", 2), ("K", 56), ("C", 3)), (), BITS)
    spatial: Unrolling = (("D1", (("K", 4),)), ("D2", (("K", 4),)))
    record = evaluate(layer, core, LINKS, spatial, (("D", 2), ("K", 4), ("C", 3)), SearchOptions(model="corrected"))
    placed = layers_in_order([record])
    (one,) = array_uses(placed, core, network(layer), None, SearchOptions()).layers
    assert [side.lanes for side in one.sides] == [3.5, 4]
    assert math.prod(side.lanes for side in one.sides) * one.computing_cycles == 2 * 56 * 3


@pytest.mark.parametrize(("engine", "cycles"), [("loma", 0), ("best", 24), ("exact", 24)])
def test_engines_with_bounds_try_lanes_that_the_generator_leaves_out(engine: str, cycles: int) -> None:
    """A port of 8 bits feeds one lane of K or C a cycle: `loma` generates no more lanes, the other engines try
    all 8.
    """
    core = replace(core_of(inputs=8, weights=8), operational_array=OperationalArray((("D1", 8),), 0.5))
    layer = Layer("gemm", "Gemm", OPERANDS, (("D", 4), ("K", 8), ("C", 2)), (), BITS)
    spatial: Unrolling = (("D1", (("C", 2),)),)
    record = evaluate(layer, core, LINKS, spatial, (("D", 4), ("K", 8)), SearchOptions(model="corrected"))
    mapping = Mapping((MappingConstraints(DEFAULT, spatial_mapping=spatial),))
    options = SearchOptions(model="corrected", temporal_mapping_search_engine=engine)
    (one,) = array_uses(layers_in_order([record]), core, network(layer), mapping, options).layers
    assert (one.stall_cycles, one.by_mapping_file_cycles) == (24, cycles)
