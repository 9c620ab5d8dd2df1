"""The best plan of an attention equals trying all plans; floors are lower bounds; unfused costs equal `map`."""

import math
import random
import re
from dataclasses import replace
from typing import Any

import pytest
import tilewright
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tilewright.base.errors import InputError, MappingError
from tilewright.base.objectives import OBJECTIVES
from tilewright.tiles.attention.optimum import find_optimum, floor
from tilewright.tiles.attention.program import TileLayerProblem
from tilewright.tiles.attention.space import AttentionSpace, Sizes, Tile

from tests.plain.attention import least_value
from tests.unit.tiles.attention.small_attention import (
    MAPPING,
    attention_of,
    core_of,
    costs_of,
    described,
    hardware,
    shapes,
    with_shape,
)

OBJECTIVE_NAMES = list(OBJECTIVES)


@pytest.mark.parametrize(
    ("document", "sram_bits", "sizes", "objective"),
    [
        (described("decode", 1, 7), 2048, {"heads": [1, 2], "keys": [3, 8]}, "latency"),
        (described("prefill", 4), 1024, {"heads": [2], "queries": [1, 3], "keys": [2]}, "EDP"),
        (described("prefill", 4, 2, window=3), 4096, {"heads": [1], "queries": [2], "keys": [4]}, "energy"),
    ],
    ids=["decode", "prefill", "window"],
)
def test_the_optimum_is_that_of_trying_all(
    document: dict[str, Any], sram_bits: int, sizes: dict[str, list[int]], objective: str
) -> None:
    """The optimum is the best of all plans, walked tile by tile.

    Plans that the search leaves out as equal are tried, too.
    """
    costs = costs_of(attention_of(document), core_of(sram_bits), objective)
    shape = costs.attention.shape
    plain = {axis: sizes.get(axis, [getattr(shape, axis)]) for axis in Tile._fields}
    given_sizes = {axis: tuple(own) for axis, own in plain.items()}
    found = find_optimum(costs, Sizes(**given_sizes))  # type: ignore[arg-type]
    assert found.is_proven
    assert math.isclose(found.value, least_value(costs, plain), rel_tol=1e-9)
    assert math.isclose(
        found.value,
        OBJECTIVES[objective].value(found.ledger.energy_pj, found.ledger.latency_cycles()),
        rel_tol=1e-9,
    )


@settings(max_examples=10, deadline=None)
@example(tokens=4, context=0, heads=4, window=None, sram_bits=1024, operands=("I1", "I2", "O"), objective="latency")
@given(
    tokens=st.integers(1, 9),
    context=st.integers(0, 20),
    heads=st.sampled_from([1, 2, 4]),
    window=st.sampled_from([None, 2, 7]),
    sram_bits=st.sampled_from([1024, 4096, 65536]),
    operands=st.sampled_from([("I1", "I2", "O"), ("I1", "O")]),
    objective=st.sampled_from(OBJECTIVE_NAMES),
)
def test_never_worse_than_unfused(  # type: ignore[no-untyped-def]
    tokens, context, heads, window, sram_bits, operands, objective
) -> None:
    """The value is at most that of the unfused attention, and the lower bound at most the value, for any core and mask.

    If the unfused layers do not fit in any way (few bits, merged loops), there is nothing to compare with.
    """
    document = described("prefill", tokens, context, heads=heads, window=window)
    costs = costs_of(attention_of(document), core_of(sram_bits, operands), objective)
    sizes = Sizes(units=(costs.attention.shape.units,), heads=(heads,), queries=(4,), keys=(8,))
    try:
        costs.unfused()
    except MappingError as error:
        with pytest.raises(MappingError, match=re.escape(str(error))):
            find_optimum(costs, sizes)
        return
    found = find_optimum(costs, sizes)
    powers = OBJECTIVES[objective]
    unfused = powers.value(found.unfused.energy_pj, found.unfused.latency_cycles())
    assert found.value <= unfused
    assert found.lower_bound <= found.value
    assert found.is_proven
    assert (found.plan is None) == (found.value == unfused)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), shape=shapes(), operands=st.sampled_from([("I1", "I2", "O"), ("I1", "O")]))
def test_floors_are_below_what_they_bound(data: st.DataObject, shape, operands) -> None:  # type: ignore[no-untyped-def]
    """Lower bounds of a layer are no more than its energy and latency, for layers of tiles of random plans."""
    objective = data.draw(st.sampled_from(OBJECTIVE_NAMES))
    mapping = data.draw(st.sampled_from([MAPPING, [*MAPPING[:1], {"name": "@vector"}]]))
    costs = costs_of(
        with_shape(attention_of(described("decode", 1, 3)), shape), core_of(4096, operands), objective, mapping
    )
    plans = AttentionSpace(shape, costs.memories).plans()
    plan = data.draw(st.sampled_from(random.Random(0).sample(found := list(plans), min(len(found), 50))))
    parts = [part.problem for part in costs.program(plan).parts if isinstance(part.problem, TileLayerProblem)]
    problem = data.draw(st.sampled_from(parts))
    ledger = costs.of_layer(problem)
    energy, cycles = floor(costs, problem)
    assert energy > 0
    assert cycles > 0
    if ledger is not None:
        assert energy <= ledger.energy_pj
        assert cycles <= ledger.latency_cycles()


def test_unfused_is_what_map_says() -> None:
    """The unfused attention layers of all blocks of a network cost what `map` says."""
    document = described("prefill", 6, 3, heads=4, key_heads=2)
    one = attention_of(document)
    costs = costs_of(one, core_of())
    mapped = tilewright.map(
        hardware=hardware(),
        workload=document,
        mapping=MAPPING,
        preset="zigzag",
        model="corrected",
        objective="energy",
        lpf_limit=4,
    )
    repeats = {node.name: node.repeats for node in one.unfused.nodes}
    own = [(record, repeats[name]) for record in mapped.records for name in record.names if name in repeats]
    assert len(own) == len(repeats) > 8
    unfused = costs.unfused()
    assert one.repeats == 2
    assert math.isclose(unfused.energy_pj, sum(record.energy_pj * times for record, times in own), rel_tol=1e-9)
    assert math.isclose(
        unfused.latency_cycles(), sum(record.latency_cycles * times for record, times in own), rel_tol=1e-9
    )


def test_what_cannot_be_costed_is_refused() -> None:
    """A core that runs no softmax is refused."""
    core = core_of()
    costs = costs_of(attention_of(described("decode", 1, 3)), replace(core, operator_types=("mac",)))
    with pytest.raises(InputError, match="cannot run all layers of an attention"):
        find_optimum(costs, Sizes())
