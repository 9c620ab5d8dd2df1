"""Spatial mappings: limits, correction of a user's mapping, generation, capacity and conversion."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.base.errors import MappingError
from tilewright.base.profile import REFERENCE, ModelProfile
from tilewright.hardware.core import Core, Memory, OperationalArray
from tilewright.hardware.set_order import array_dimensions_in_set_order, layer_dimensions_in_set_order
from tilewright.mapping.constraints import MappingConstraints, Unrolling
from tilewright.mapping.spatial import ConvertedSpatialMapping, convert_spatial_mapping
from tilewright.mapping.spatial_generation import (
    MaximumUnrolling,
    clean_user_mapping,
    limit_to_capacity,
    maximum_unrolling,
    spatial_candidates,
)
from tilewright.pipeline.stages.run import map_layer
from tilewright.workload.layer import Layer

from tests.unit.cost.engine_cases import LINKS, constraints, convolution, depthwise, gemm, memory, small_core

OPEN = constraints()


def core_with(array: tuple[tuple[str, int], ...], *inner: Memory) -> Core:
    """Return a core with inner memories below one large memory with wide ports."""
    served = tuple(name for name, _ in array)
    top = memory("top", 10**12, ("I1", "I2", "O"), served, read=65536, write=65536, top=True)
    return Core("core", OperationalArray(array, 1.0), (*inner, top))


# order of sets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("B K G OX OY C FX FY", "FY FX B G OX C K OY"),
        ("B K C OY OX FY FX", "FY FX B OX C K OY"),
        ("C D K", "K D C"),
        ("C FX FY", "FX C FY"),
        ("OX OY", "OY OX"),
    ],
)
def test_layer_dimension_sets(names: str, expected: str) -> None:
    """Loop dimensions come in the order in which sets of zigzag-dse 3.9.1 iterate."""
    assert layer_dimensions_in_set_order(names.split()) == expected.split()


@pytest.mark.parametrize(
    ("names", "expected"),
    [("D1 D2 D3 D4", "D1 D2 D4 D3"), ("D1 D2 D3", "D1 D2 D3"), ("D2 D3", "D3 D2"), ("D3 D4", "D3 D4")],
)
def test_array_dimension_sets(names: str, expected: str) -> None:
    """Array dimensions come in the order in which sets of zigzag-dse 3.9.1 iterate."""
    assert array_dimensions_in_set_order(names.split()) == expected.split()


# limits ---------------------------------------------------------------------------------------------------------------


def test_maximum_is_smaller_of_layer_and_array() -> None:
    """The smaller of layer size and array size limits an unrolling if there are no narrow inner memories."""
    layer = gemm(C=3, D=40, K=7)
    limits = maximum_unrolling(layer, core_with((("D1", 8), ("D2", 4))), OPEN, REFERENCE)
    assert limits == {"D1": {"C": 3, "D": 8, "K": 7}, "D2": {"C": 3, "D": 4, "K": 4}}


def test_bandwidth_of_inner_memory_limits_relevant_dimensions() -> None:
    """A weight memory of 20 bits a cycle limits K and C to 2 weights of 8 bits over the dimension that it serves."""
    core = core_with((("D1", 8), ("D2", 8)), memory("weights", 1000, ("I2",), ("D1",), read=20))
    limits = maximum_unrolling(gemm(C=8, D=8, K=8), core, OPEN, REFERENCE)
    assert limits == {"D1": {"C": 2, "D": 8, "K": 2}, "D2": {"C": 8, "D": 8, "K": 8}}


def test_output_memory_counts_partial_sums_written() -> None:
    """The write port of an output memory limits the lanes to the partial sums that it moves: 40 bits // 16 bits = 2."""
    core = core_with((("D1", 8),), memory("sums", 1000, ("O",), ("D1",), read=8, write=40))
    limits = maximum_unrolling(gemm(C=8, D=8, K=8), core, OPEN, REFERENCE)
    assert limits == {"D1": {"C": 8, "D": 2, "K": 2}}


def test_memory_above_another_does_not_limit() -> None:
    """A memory limits lanes only if it is the innermost one for all its operands."""
    inner = memory("sums", 1000, ("O",), (), write=64)
    buffer = memory("buffer", 1000, ("I1", "O"), ("D1",), read=8)
    limits = maximum_unrolling(gemm(C=8, D=8, K=8), core_with((("D1", 8),), inner, buffer), OPEN, REFERENCE)
    assert limits == {"D1": {"C": 8, "D": 8, "K": 8}}


def test_zero_precision_does_not_limit() -> None:
    """Weights of 0 bits (pooling) need no bandwidth."""
    core = core_with((("D1", 8),), memory("weights", 8, ("I2",), ("D1",), read=8))
    bits = (("W", 0), ("I", 8), ("O", 16), ("O_final", 8))
    limits = maximum_unrolling(depthwise(bits=bits, G=8, OX=8), core, OPEN, REFERENCE)
    assert limits["D1"]["G"] == 8


# cleaning -------------------------------------------------------------------------------------------------------------


def cleaned(given: Unrolling, layer: Layer, core: Core) -> dict[str, dict[str, int]]:
    """Return the corrected mapping."""
    return clean_user_mapping(given, layer, core, maximum_unrolling(layer, core, OPEN, REFERENCE))


CORE = core_with((("D1", 32), ("D2", 8)))
LAYER = gemm(C=8, D=5, K=16)


def test_unknown_loop_dimension_is_dropped() -> None:
    """A loop dimension that the layer lacks is dropped; its array dimension counts as given."""
    assert cleaned((("D1", (("OX", 4),)), ("D2", (("C", 4),))), LAYER, CORE) == {"D1": {}, "D2": {"C": 4}}


def test_factors_are_capped() -> None:
    """Factors are limited to the sizes of layer and array."""
    assert cleaned((("D1", (("D", 32),)), ("D2", (("K", 32),))), LAYER, CORE) == {"D1": {"D": 5}, "D2": {"K": 8}}


def test_product_over_array_dimension() -> None:
    """C 8 x K 16 exceed 32 lanes, so K, the first in set order, is dropped."""
    assert cleaned((("D1", (("C", 8), ("K", 16))),), LAYER, CORE) == {"D1": {"C": 8}}


def test_product_over_loop_dimension() -> None:
    """C unrolled by 8 over D1 and by 8 over D2 exceeds the layer's C of 8, so C is dropped from D1."""
    assert cleaned((("D1", (("C", 8),)), ("D2", (("C", 8),))), LAYER, CORE) == {"D1": {}, "D2": {"C": 8}}


def test_unknown_array_dimension() -> None:
    """The error about an unknown array dimension names the dimensions of the core."""
    with pytest.raises(MappingError, match=r"no array dimension D7 \(it has D1, D2\)"):
        cleaned((("D7", (("C", 8),)),), LAYER, CORE)


def test_forbidden_by_bandwidth() -> None:
    """A port narrower than one element makes the given unrolling impossible, and the error says so."""
    core = core_with((("D1", 8),), memory("weights", 1000, ("I2",), ("D1",), read=4))
    with pytest.raises(MappingError, match="unrolling K over D1 is impossible"):
        cleaned((("D1", (("K", 4),)),), LAYER, core)


# generation -----------------------------------------------------------------------------------------------------------


def divisors(number: int) -> list[int]:
    """Return the divisors of a number in ascending order."""
    return [d for d in range(1, number + 1) if number % d == 0]


def brute_force_candidates(
    layer: Layer, core: Core, given: dict[str, dict[str, int]], hint: dict[str, list[str]], count: int, mixed: bool
) -> list[dict[str, dict[str, int]]]:
    """Return the best of all combinations, in a stable order by falling score."""
    array = dict(core.operational_array.dimensions)
    limits = maximum_unrolling(layer, core, OPEN, REFERENCE)
    open_dimensions = [name for name in array if name not in given]
    choices = []
    for name in open_dimensions:
        wanted = hint.get(name, [])
        if not any(d in layer.size_of for d in wanted):
            wanted = list(layer.size_of)
        wanted = [d for d in layer_dimensions_in_set_order(wanted) if d in layer.size_of]
        options = [{d: f} for d in wanted for f in reversed(divisors(limits[name][d]))]
        for length in range(2, len(wanted) + 1) if mixed else ():
            for group in itertools.combinations(wanted, length):
                for factors in itertools.product(*(divisors(limits[name][d])[1:] for d in group)):
                    if math.prod(factors) <= array[name]:
                        options.append(dict(zip(group, factors, strict=True)))
        choices.append(options)
    scored = []
    for combination in itertools.product(*choices):
        candidate = given | dict(zip(open_dimensions, combination, strict=True))
        totals: dict[str, int] = {}
        for factors in candidate.values():
            for d, f in factors.items():
                totals[d] = totals.get(d, 1) * f
        if any(totals[d] > layer.size_of[d] for d in totals):
            continue
        units = math.prod(totals.values())
        scored.append((units + (units / max(totals.values()) - 1), candidate))
    scored.sort(key=lambda entry: -entry[0])
    return [candidate for _, candidate in (scored[:count] if count else scored)]


@st.composite
def generator_cases(draw: st.DrawFn) -> tuple[Layer, Core, dict[str, dict[str, int]], dict[str, list[str]], int, bool]:
    """Generate random layers, arrays, given parts and hints."""
    sizes = st.sampled_from([1, 2, 3, 4, 6, 8, 9, 12])
    kind = draw(st.sampled_from(["gemm", "convolution"]))
    if kind == "gemm":
        layer = gemm(**{d: draw(sizes) for d in ("C", "D", "K")})
    else:
        layer = convolution(**{d: draw(sizes) for d in ("K", "C", "OX", "FX")})
    names = ("D1", "D2", "D3")[: draw(st.integers(1, 3 if kind == "gemm" else 2))]
    array = tuple((name, draw(st.sampled_from([1, 2, 3, 4, 6, 8]))) for name in names)
    inner = (memory("weights", 10**6, ("I2",), names[:1], read=draw(st.sampled_from([16, 32, 64]))),)
    core = core_with(array, *(inner if draw(st.booleans()) else ()))
    given: dict[str, dict[str, int]] = {}
    if len(names) > 1 and draw(st.booleans()):
        name = draw(st.sampled_from(names))
        dimension = draw(st.sampled_from(list(layer.size_of)))
        limits = maximum_unrolling(layer, core, OPEN, REFERENCE)
        given = {name: {dimension: draw(st.integers(1, max(1, limits[name][dimension])))}}
    hint = {
        name: draw(st.lists(st.sampled_from(["K", "C", "OX", "D"]), max_size=3, unique=True))
        for name in names
        if draw(st.booleans())
    }
    return layer, core, given, hint, draw(st.sampled_from([0, 1, 3, 5])), draw(st.booleans())


@settings(max_examples=150, deadline=None, derandomize=True)
@given(generator_cases())
def test_generator_equals_brute_force(case: tuple) -> None:
    """The generator returns the best candidates in the order of a stable sort of all combinations by score."""
    layer, core, given, hint, count, mixed = case
    entry = MappingConstraints(
        "default",
        tuple((name, tuple(factors.items())) for name, factors in given.items()),
        tuple((name, tuple(dimensions)) for name, dimensions in hint.items()),
    )
    expected = brute_force_candidates(layer, core, given, hint, count, mixed)
    found = spatial_candidates(layer, core, entry, REFERENCE, count, mixed)
    assert found == [tuple((name, tuple(factors.items())) for name, factors in c.items()) for c in expected]


def test_generator_by_hand() -> None:
    """K 4 with C 2 scores 8 + 8 / 4 - 1 = 9 on an array of 4 x 2 and comes first.
    K 2 with C 2 (4 + 4 / 2 - 1 = 5) comes before K 4 alone (4 + 4 / 4 - 1 = 4).
    """
    core = core_with((("D1", 4), ("D2", 2)))
    found = spatial_candidates(gemm(C=2, D=1, K=4), core, OPEN, REFERENCE, 0)
    assert found[0] == (("D1", (("K", 4),)), ("D2", (("C", 2),)))
    assert set(found[1:3]) == {
        (("D1", (("K", 2),)), ("D2", (("C", 2),))),
        (("D1", (("C", 2),)), ("D2", (("K", 2),))),
    }


# capacity -------------------------------------------------------------------------------------------------------------


def limited(size_bits: int, draft: dict[str, dict[str, int]], profile: ModelProfile = REFERENCE) -> MaximumUnrolling:
    """Return the draft reduced to the capacity of a weight memory that serves D1 and D2."""
    array = (("D1", 32), ("D2", 32))
    core = core_with(array, memory("weights", size_bits, ("I2",), ("D1", "D2"), read=4096))
    return limit_to_capacity(draft, gemm(C=64, D=64, K=64), core, OPEN, profile)


def test_capacity_reduces_largest_factor() -> None:
    """K 12 is reduced to the 8 weights that 64 bits hold; D does not change the weights and stays."""
    assert limited(64, {"D1": {"K": 12}, "D2": {"D": 30}}) == {"D1": {"K": 8}, "D2": {"D": 30}}


def test_equal_factors_change_together() -> None:
    """K 4 and C 4 with room for 8 weights become 3 and 3; 2 and 3 would fit, but equal factors change together."""
    assert limited(64, {"D1": {"K": 4}, "D2": {"C": 4}}) == {"D1": {"K": 3}, "D2": {"C": 3}}


def test_capacity_limit_never_below_one() -> None:
    """A memory smaller than one element leaves factors of 1; the error comes later."""
    assert limited(4, {"D1": {"K": 5}, "D2": {"C": 3}}) == {"D1": {"K": 1}, "D2": {"C": 1}}


def test_memory_below_one_element_without_unrolling() -> None:
    """A memory smaller than one element does not change unrollings of other loops; the search reports the memory."""
    assert limited(4, {"D1": {}, "D2": {"D": 3}}) == {"D1": {}, "D2": {"D": 3}}
    bits = (("W", 8), ("I", 8), ("O", 24), ("O_final", 24))
    with pytest.raises(MappingError, match="memory 'sums' is too small"):
        map_layer(gemm(bits=bits, C=4, D=4, K=4), small_core(), OPEN)


# conversion -----------------------------------------------------------------------------------------------------------


def converted(unrolling: Unrolling, layer: Layer, **switches: bool) -> ConvertedSpatialMapping:
    """Convert an unrolling for an array of 64 x 64 x 64."""
    core = core_with((("D1", 64), ("D2", 64), ("D3", 64)))
    return convert_spatial_mapping(unrolling, layer, core, LINKS, ModelProfile("test", **switches))


def factors_of(levels: tuple, operand: str = "O") -> dict[str, float]:
    """Return all spatial loops of an operand."""
    return {d: f for level in dict(levels)[operand] for d, f in level}


def test_non_dividing_unrolling() -> None:
    """A loop of 49 over 16 lanes has 4 passes of 12.25 lanes: 12 in the reference (B5), 13 when rounded up."""
    result = converted((("D1", (("K", 16),)),), gemm(K=49))
    assert factors_of(result.fractional) == {"K": 12.25}
    assert factors_of(result.integer) == {"K": 12}
    assert result.temporal_sizes == (("K", 4),)
    repaired = converted((("D1", (("K", 16),)),), gemm(K=49), round_up_spatial_factors=True)
    assert factors_of(repaired.integer) == {"K": 13}
    assert factors_of(repaired.fractional) == {"K": 12.25}


@pytest.mark.parametrize(
    ("size", "lanes", "reference", "exact"), [(34, 5, 8, 7), (75, 12, 8, 7), (49, 16, 4, 4), (512, 5, 104, 103)]
)
def test_temporal_sizes(size: int, lanes: int, reference: int, exact: int) -> None:
    """The reference can have one pass too many, ceil(size / (size / passes)); exact sizes avoid this (B6)."""
    unrolling = (("D1", (("K", lanes),)),)
    assert converted(unrolling, gemm(K=size)).temporal_sizes == (("K", reference),)
    assert converted(unrolling, gemm(K=size), exact_temporal_sizes=True).temporal_sizes == (("K", exact),)


def test_dimension_on_two_array_dimensions() -> None:
    """A loop of 5 on 2 x 2 lanes (B29) gets factors 5 / 3 and 2, and 2 passes: ceil(5 / (10 / 3))."""
    result = converted((("D1", (("K", 2),)), ("D2", (("K", 2),))), gemm(K=5))
    assert factors_of(result.fractional)["K"] == 5 / 3 * 2
    assert factors_of(result.integer)["K"] == 2
    assert result.temporal_sizes == (("K", 2),)


def test_largest_of_a_dimension_is_adjusted() -> None:
    """A loop of 12 on 3 x 5 lanes is one pass; the largest factor, 5, becomes 12 / 1 / 3 = 4."""
    result = converted((("D1", (("K", 3),)), ("D2", (("K", 5),))), gemm(K=12))
    assert factors_of(result.fractional) == {"K": 12}
    assert result.temporal_sizes == ()


def test_factor_above_layer_size() -> None:
    """An unrolling beyond the layer is refused."""
    with pytest.raises(MappingError, match="spatial factor 9 of K exceeds the layer's size 8"):
        converted((("D1", (("K", 9),)),), gemm(K=8))


def test_factors_of_one_dimension_that_leave_no_lane() -> None:
    """Factors of K on several array dimensions that round the largest one down to 0 lanes are refused.

    The reference divides by 0 here. If factors are rounded up, one lane remains.
    """
    factors = (("D1", (("K", 4),)), ("D2", (("K", 4),)), ("D3", (("K", 7),)))
    with pytest.raises(MappingError, match="the spatial factors of K on several array dimensions exceed the layer's"):
        converted(factors, gemm(K=7))
    assert factors_of(converted(factors, gemm(K=7), round_up_spatial_factors=True).integer)["K"] == 16


def test_levels_of_array_dimensions() -> None:
    """Each array dimension is at the innermost memory of an operand that serves it, or else above the top."""
    array = (("D1", 4), ("D2", 4), ("D3", 4))
    operands = ("I1", "I2", "O")
    core = Core(
        "core",
        OperationalArray(array, 1.0),
        (
            memory("weights", 64, ("I2",), ("D2",)),
            memory("buffer", 640, operands, ("D1", "D2")),
            memory("top", 10**9, operands, ("D1", "D2"), top=True),
        ),
    )
    unrolling = (("D1", (("K", 4),)), ("D2", (("C", 2), ("K", 2))), ("D3", (("D", 4),)))
    levels = convert_spatial_mapping(unrolling, gemm(C=4, D=4, K=8), core, LINKS, REFERENCE).integer
    assert dict(levels)["W"] == ((("C", 2.0), ("K", 2.0)), (("K", 4.0),), (), (("D", 4.0),))
    assert dict(levels)["O"] == ((("K", 8.0), ("C", 2.0)), (), (("D", 4.0),))
