"""Lanes that a mapping file asks for and layers do not get: one notice for each cause, with its layers."""

import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tilewright.base.profile import profile_by_name
from tilewright.base.yamlfile import parse_yaml
from tilewright.hardware.core import Core
from tilewright.hardware.yaml_reader import accelerator_of
from tilewright.mapping.spatial import convert_spatial_mapping, spread_lanes
from tilewright.mapping.spatial_generation import cuts_on_core, divisors, spatial_candidates
from tilewright.mapping.yaml_reader import read_mapping
from tilewright.workload.layer import Layer
from tilewright.workload.yaml_reader import workload_of

LINKS = (("O", "O"), ("W", "I2"), ("I", "I1"))
TPU = Path("config/hardware/zigzag/tpu_like.yaml").read_text()


def layer(**sizes: int) -> Layer:
    """Return a matrix product over K, C and OX."""
    text = (
        "- {id: 0, name: net, operator_type: Conv, equation: 'O[k][ox] += W[k][c] * I[c][ox]', loop_dims: [K, C, OX],"
        f" loop_sizes: [{sizes['K']}, {sizes['C']}, {sizes['OX']}],"
        " operand_precision: {W: 8, I: 8, O: 16, O_final: 8}}"
    )
    (node,) = workload_of(parse_yaml(text), "net").nodes
    assert node.layer is not None
    return node.layer


def core(text: str) -> Core:
    """Read the core of a hardware file."""
    return accelerator_of(parse_yaml(text)).cores[0]


def cuts(
    text: str, unrolling: dict[str, list[str]], model: str = "zigzag-3.9.1", **sizes: int
) -> list[tuple[str, str]]:
    """Return the notices about a layer."""
    (entry,) = read_mapping([{"name": "default", "spatial_mapping": unrolling}]).entries
    return list(cuts_on_core(layer(**sizes), core(text), entry, profile_by_name(model)))


LARGE: dict[str, int] = {"K": 128, "C": 64, "OX": 10}


def test_the_array_is_smaller() -> None:
    """A notice says that the array has fewer lanes than the product of the loops; a smaller layer gets none."""
    why = "asks for 64 lanes, but the array of tpu_like has only 32 on this side: the excess lanes are left out"
    told = ("D1", why)
    assert cuts(TPU, {"D1": ["K, 64"], "D2": ["C, 32"]}, **LARGE) == [told]
    assert cuts(TPU, {"D1": ["K, 8", "OX, 8"], "D2": ["C, 32"]}, **LARGE) == [told]
    assert cuts(TPU, {"D1": ["K, 64"]}, K=32, C=64, OX=10) == []
    assert cuts(TPU, {"D1": ["K, 32"], "D2": ["C, 32"]}, **LARGE) == []


def test_a_port_is_narrower() -> None:
    """A notice says that a port moves fewer elements per cycle than the lanes take; `corrected` keeps the lanes."""
    narrow = TPU.replace("served_dimensions: []", "served_dimensions: [D1]", 1)
    narrow = narrow.replace("bandwidth_min: 8, bandwidth_max: 8", "bandwidth_min: 8, bandwidth_max: 64")
    told = ("D1", "K is reduced to 8 lanes: a port of rf_128B moves only 8 elements of W per cycle")
    assert cuts(narrow, {"D1": ["K, 32"], "D2": ["C, 32"]}, **LARGE) == [told]
    assert cuts(narrow, {"D1": ["K, 32"], "D2": ["C, 32"]}, "corrected", **LARGE) == []


def test_a_memory_is_smaller() -> None:
    """A notice says that a memory has no room for the data of all its lanes."""
    small = TPU.replace("served_dimensions: []", "served_dimensions: [D1]", 1).replace("size: 1024", "size: 128")
    small = small.replace("bandwidth_min: 8, bandwidth_max: 8", "bandwidth_min: 8, bandwidth_max: 1024")
    told = ("D1", "lanes are left out until rf_128B has room for the data of the remaining lanes")
    assert cuts(small, {"D1": ["K, 32"], "D2": ["C, 32"]}, **LARGE) == [told]


def test_a_loop_is_left_out() -> None:
    """A notice says that a loop is left out if two array dimensions ask for more of it than the layer has."""
    found = cuts(TPU, {"D1": ["K, 32"], "D2": ["K, 32"]}, **LARGE)
    assert [text.partition(":")[0] for _, text in found] == ["K is left out"]


@pytest.mark.parametrize("model", ["zigzag-3.9.1", "corrected"])
@pytest.mark.parametrize(
    "unrolling", [{"D1": ["K, 64"]}, {"D1": ["K, 32"]}, {"D1": ["K, 8", "OX, 8"]}, {"D1": ["K, 4"]}]
)
@pytest.mark.parametrize("text", [TPU, TPU.replace("sizes: [32, 32]", "sizes: [16, 16]")])
def test_told_if_and_only_if_lanes_are_missing(text: str, unrolling: dict[str, Any], model: str) -> None:
    """A notice appears if and only if the search gets fewer lanes than the file gives."""
    both = {**unrolling, "D2": ["C, 16"]}
    (entry,) = read_mapping([{"name": "default", "spatial_mapping": both}]).entries
    (given,) = spatial_candidates(layer(**LARGE), core(text), entry, profile_by_name(model))
    assert bool(cuts(text, both, model, **LARGE)) == (given != entry.spatial_mapping)


def test_several_sides_that_share_a_loop_are_cut_to_it() -> None:
    """Two array sides ask for 14 x 2 lanes of a loop of size 27: `corrected` leaves out the excess lane and says so."""
    wide = TPU.replace("sizes: [32, 32]", "sizes: [14, 12]")
    both = {"D1": ["OX, 14"], "D2": ["C, 5", "OX, 2"]}
    (entry,) = read_mapping([{"name": "default", "spatial_mapping": both}]).entries
    (given,) = spatial_candidates(layer(K=4, C=5, OX=27), core(wide), entry, profile_by_name("corrected"))
    assert given == (("D1", (("OX", 14),)), ("D2", (("C", 5), ("OX", 2))))
    told = ("D2", "D1 and D2 together ask for 28 lanes of OX, but the layer has only 27: the excess lanes are left out")
    assert cuts(wide, both, "corrected", K=4, C=5, OX=27) == [told]
    spatial = convert_spatial_mapping(given, layer(K=4, C=5, OX=27), core(wide), LINKS, profile_by_name("corrected"))
    assert dict(spatial.temporal_sizes) == {"K": 4}
    assert cuts(wide, both, K=4, C=5, OX=27) != [told]


@pytest.mark.parametrize("seed", range(300))
def test_lanes_and_passes_cover_the_layer_and_no_more(seed: int) -> None:
    """Lanes times passes equal each loop under `corrected`, for any given unrolling.
    Each loop has as few passes as its lanes allow.
    """
    rng = random.Random(seed)
    sides = [("D1", rng.randint(1, 14)), ("D2", rng.randint(1, 14)), ("D3", rng.randint(1, 6))][: rng.choice((2, 3))]
    text = TPU.replace("dimensions: [D1, D2]", f"dimensions: [{', '.join(name for name, _ in sides)}]")
    own = core(text.replace("sizes: [32, 32]", f"sizes: {[units for _, units in sides]}"))
    sizes = {"K": rng.randint(1, 40), "C": rng.randint(1, 40), "OX": rng.randint(1, 40)}
    asked = {
        name: [f"{loop}, {rng.randint(1, 16)}" for loop in rng.sample(["K", "C", "OX"], rng.choice((1, 1, 2, 3)))]
        for name, _ in sides
    }
    (entry,) = read_mapping([{"name": "default", "spatial_mapping": asked}]).entries
    profile = profile_by_name("corrected")
    (given,) = spatial_candidates(layer(**sizes), own, entry, profile)
    assert all(math.prod(f for _, f in factors) <= dict(sides)[name] for name, factors in given)
    lanes = dict.fromkeys(sizes, Fraction(1))
    used = dict.fromkeys(sizes, 1)
    for factors in spread_lanes(given, layer(**sizes), own, True).values():
        for loop, factor in factors.items():
            assert factor >= 1
            lanes[loop] *= Fraction(factor).limit_denominator(10**6)
    for _, factors in given:
        for loop, factor in factors:
            used[loop] *= factor
    passes = dict(convert_spatial_mapping(given, layer(**sizes), own, LINKS, profile).temporal_sizes)
    for loop, size in sizes.items():
        assert lanes[loop] * passes.get(loop, 1) == size
        assert passes.get(loop, 1) == math.ceil(Fraction(size, used[loop]))


def test_divisors_are_complete_and_in_order() -> None:
    """Each number up to 300 has all its divisors, and a large number needs no long loop."""
    for number in range(301):
        assert divisors(number) == [one for one in range(1, number + 1) if number % one == 0]
    assert divisors(2**40) == [2**power for power in range(41)]
