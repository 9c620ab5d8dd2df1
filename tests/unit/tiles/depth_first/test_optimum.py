"""The search for the best schedule equals trying all schedules, and its bounds are below the costs they bound."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.base.errors import InputError
from tilewright.base.objectives import OBJECTIVES
from tilewright.base.profile import profile_by_name
from tilewright.cli.main import main
from tilewright.hardware.core import Core
from tilewright.pipeline.sources import parse_accelerator, parse_mapping, parse_workload, single_core
from tilewright.tiles.depth_first import bounds
from tilewright.tiles.depth_first.bounds import check_boundable, quick_bounds, stack_bounds, stack_floor
from tilewright.tiles.depth_first.certificate import DepthFirstSpace
from tilewright.tiles.depth_first.locations import MODES
from tilewright.tiles.depth_first.optimum import find_optimum
from tilewright.tiles.depth_first.options import TileOptions
from tilewright.tiles.depth_first.schedule import stack_model
from tilewright.tiles.depth_first.stack_cost import StackModel

from tests.plain.depth_first import costs_of_stacks, least_value
from tests.plain.depth_first_attack import attack
from tests.unit.tiles.depth_first.fsrcnn import HARDWARE, MAPPING, PROJECT, WORKLOAD, model
from tests.unit.tiles.depth_first.test_schedules import convolution

SIDES = {
    "meta_prototype_df": {"D1": ["K, 32"], "D2": ["C, 2"], "D3": ["OX, 4"], "D4": ["OY, 4"]},
    "tpu_like": {"D1": ["K, 32"], "D2": ["C, 32"]},
    "eyeriss_like": {"D1": ["FY, 14"], "D2": ["OY, 12"]},
    "edge_tpu_like": {"D1": ["K, 8"], "D2": ["C, 8"], "D3": ["OX, 4"], "D4": ["OY, 4"]},
}


def core_of(name: str, shrink: int = 1) -> Core:
    """A core of the examples; with smaller memories, small networks reach outer memories."""
    core = single_core(parse_accelerator(PROJECT / "config" / "hardware" / "zigzag" / f"{name}.yaml"))
    memories = [
        replace(memory, size_bits=memory.size_bits // shrink) if 4096 < memory.size_bits < 10**9 else memory
        for memory in core.memories
    ]
    return replace(core, memories=tuple(memories))


def mapping_of(name: str) -> list[dict[str, Any]]:
    """A mapping with one loop on each side of the array."""
    core = core_of(name)
    sides = {side: SIDES[name].get(side, []) for side, _ in core.operational_array.dimensions}
    return [{"name": "default", "spatial_mapping": sides}]


@st.composite
def chains(draw: st.DrawFn, most: int = 3, largest: int = 9) -> list[dict[str, Any]]:
    """A few convolutions, made from the last to the first so that sizes fit."""
    size, layers = draw(st.integers(1, largest)), []
    channels = draw(st.sampled_from([1, 3, 8, 40]))
    for place in reversed(range(draw(st.integers(1, most)))):
        kernel, stride = draw(st.sampled_from([1, 2, 3])), draw(st.sampled_from([1, 1, 2]))
        pad = draw(st.integers(0, (kernel - 1) // 2))
        before = draw(st.sampled_from([1, 3, 8, 40]))
        present = (size - 1) * stride + kernel - 2 * pad
        if present < 1 or present > 2 * largest:
            kernel, stride, pad, present = 1, 1, 0, size
        layers.insert(0, convolution(place, channels, before, size, kernel, stride, pad))
        size, channels = present, before
    for place, layer in enumerate(layers):
        layer |= {"id": place, "name": f"conv{place}", "operand_source": {"W": place, "I": max(0, place - 1)}}
    return layers


def model_of(layers: list[dict[str, Any]], name: str, shrink: int, objective: str) -> StackModel:
    """The model of costs of a chain."""
    options = TileOptions(objective=objective, lpf_limit=5)
    return stack_model((parse_workload(layers), core_of(name, shrink), parse_mapping(mapping_of(name))), options)


@pytest.mark.parametrize("name", SIDES)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_no_stack_costs_less_than_its_bounds(name: str, data: st.DataObject) -> None:
    """No stack costs less than its bounds, for any core, network, mode, tile and objective."""
    layers, shrink = data.draw(chains()), data.draw(st.sampled_from([1, 64, 2048]))
    which = data.draw(st.sampled_from(["energy", "latency"]))
    own = model_of(layers, name, shrink, which)
    last = len(own.chain.layers) - 1
    first = data.draw(st.integers(0, last))
    tile = tuple(data.draw(st.integers(1, own.chain.layers[last].window(axis).output_size)) for axis in (0, 1))
    floor = stack_floor(own.chain, first, last)
    sizes = (np.array([tile[0]]), np.array([tile[1]]))
    tiles = np.array([tile])
    for mode in MODES:
        try:
            ledger = own.cost(first, last, (tile[0], tile[1]), mode)
        except tilewright.MappingError:
            continue
        bounds = stack_bounds(own.chain, first, last, mode, tiles)
        quick = quick_bounds(own.chain, first, last, mode, sizes)
        assert max(floor[0], quick.energy_pj.sum(), bounds.energy_pj[0]) <= ledger.energy_pj
        assert max(floor[1], quick.latency_cycles.sum(), bounds.latency_cycles[0]) <= ledger.latency_cycles()


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("name", "shrink"), [("meta_prototype_df", 64), ("tpu_like", 4096)])
def test_small_spaces_by_trying_all(name: str, shrink: int, objective: str) -> None:
    """The proven optimum of a chain of three layers is the least value of all its schedules, by brute force."""
    layers = [convolution(0, 8, 3, 8, 3), convolution(1, 4, 8, 6, 3), convolution(2, 6, 4, 4, 3)]
    layers[1]["operand_source"] = {"W": 1, "I": 0}
    own = model_of(layers, name, shrink, objective)
    found = find_optimum(own, DepthFirstSpace(), TileOptions(objective=objective, lpf_limit=5))
    costs = costs_of_stacks(own)
    powers = OBJECTIVES[objective]
    least = least_value(costs, 3, powers.energy, powers.latency)
    assert found.is_proven
    assert found.value == pytest.approx(least, rel=1e-12)
    assert found.value == pytest.approx(
        powers.value(found.schedule.energy_pj, found.schedule.latency_cycles), rel=1e-12
    )
    for one in found.costed:
        assert costs[*one.layers, one.mode, *one.tile] == (one.energy_pj, one.latency_cycles)


@pytest.mark.parametrize("seed", [3, 28, 200, 2029, 2056, 3589, 3702])
def test_chains_that_were_bounded_wrongly_once(seed: int) -> None:
    """Chains that were once bounded wrongly have no fault.

    They have single memories, windows with gaps, ports for one operand only, or a memory that serves fewer operands
    than the memory below it.
    """
    assert not attack(seed).wrong


def test_a_part_of_the_space_of_fsrcnn() -> None:
    """The search finds the best schedule for few sizes of tiles.

    A search that has no time gives a lower bound and a value, and the best cost lies between them.
    """
    own = model("tilewright")
    space = DepthFirstSpace(tile_x=(4, 60, 5000), tile_y=(72, 80))
    found = find_optimum(own, space, TileOptions(objective="energy"))
    assert found.is_proven
    (stack,) = found.schedule.stacks
    assert (stack.mode, stack.tile_x, stack.tile_y) == ("fully-cached", 4, 80)
    each = [own.cost(0, 7, (x, y), mode).energy_pj for x in (4, 60, 960) for y in (72, 80) for mode in MODES]
    assert found.value == min(each)
    assert found.schedules_in_space > 18**8
    stopped = find_optimum(own, space, TileOptions(objective="energy"), seconds=0)
    assert stopped.lower_bound <= found.value <= stopped.value


def test_what_no_proof_covers_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One error names the kind of array, the terms of energy and latency, and the model that no proof covers."""
    chain = model("tilewright").chain
    analog = replace(chain.core, operational_array=replace(chain.core.operational_array, kind="analog in-memory"))
    monkeypatch.setattr(bounds, "further_energy_terms", lambda core: {"leakage": core, "refresh": core})
    monkeypatch.setattr(bounds, "further_latency_terms", lambda core: {"command": core})
    with pytest.raises(InputError) as refused:
        check_boundable(replace(chain, core=analog), profile_by_name("zigzag-3.9.1"))
    told = [str(problem) for problem in refused.value.problems[:3]]
    assert told[0].startswith("model: an optimum can be proven only under the model `corrected`")
    assert told[1] == "operational_array: an optimum can be proven only for digital arrays, got analog in-memory"
    assert told[2].endswith("without waiting, and without terms of plug-ins, got leakage, refresh, command")


def test_the_verb_writes_the_certificate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verb writes the certificate with its schedule, and refuses what cannot be proven."""
    given = [
        "--hardware",
        str(HARDWARE),
        "--workload",
        str(WORKLOAD),
        "--mapping",
        str(MAPPING),
        "--objective",
        "energy",
    ]
    space = ["--tile-x", "60", "--tile-x", "120", "--tile-y", "72", "-o", str(tmp_path)]
    assert main(["depth-first", *given, *space, "--optimum"]) == 0
    assert "the best schedule found is optimal over all cuts" in capsys.readouterr().out
    written = json.loads((tmp_path / "depth_first.json").read_text())
    assert written["certificate"]["proven"]
    assert math.isclose(written["certificate"]["value"], written["schedules"][0]["energy_pj"], rel_tol=1e-12)
    assert main(["depth-first", *given, "--optimum", "--model", "zigzag-3.9.1", "--cut", "conv1"]) == 2
    told = capsys.readouterr().err
    assert "an optimum can be proven only under the model `corrected`" in told
    assert "searches all cuts" in told
    assert main(["depth-first", *given]) == 2
    assert "--tile-x" in capsys.readouterr().err
