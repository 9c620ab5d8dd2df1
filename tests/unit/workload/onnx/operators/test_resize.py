"""Resizing and sampling: taps, operations and dependencies."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from onnx.reference.ops.op_resize import Resize
from tilewright.workload.onnx.index_maps import NOWHERE
from tilewright.workload.onnx.operators.resize import ResizedAxis, ResizeRules, axis_taps

from tests.unit.workload.onnx.dependency_checks import lower_model
from tests.unit.workload.onnx.operators.vector_cases import Case, check_case, check_layers, layers_of

EMPTY = np.zeros(0, np.float32)
COORDINATES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]


def _resize(shape: tuple[int, ...], scales: list[float], operations: list[int], **attributes: Any) -> Case:
    order = ["x0", "", "c0"]
    opset, is_exact = attributes.pop("opset", 19), attributes.pop("is_exact", True)
    constants = [np.array(scales, np.float32)]
    return Case("Resize", [shape], operations, constants, attributes, opset=opset, order=order, is_exact=is_exact)


def _to_sizes(shape: tuple[int, ...], sizes: list[int], operations: list[int], **attributes: Any) -> Case:
    return Case("Resize", [shape], operations, [sizes], attributes, opset=19, order=["x0", "", "", "c0"])


CASES: dict[str, Case] = {
    "twice": _resize((1, 2, 2, 3), [1, 1, 2, 2], [2 * 4 * 6], mode="nearest"),
    "twice, floor": _resize(
        (1, 2, 2, 2), [1, 1, 2, 2], [32], coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    ),
    "three times along one axis": _resize((1, 1, 2, 3), [1, 1, 1, 3], [18], mode="nearest"),
    "half": _resize((1, 1, 4, 6), [1, 1, 0.5, 0.5], [6], mode="nearest"),
    "one and a half times": _resize((1, 1, 4, 4), [1, 1, 1.5, 1.5], [36], mode="nearest"),
    "unchanged": _resize((1, 1, 2, 3), [1, 1, 1, 1], [], mode="linear"),
    "linear, twice": _resize((1, 1, 3, 3), [1, 1, 2, 2], [36 * 4], mode="linear"),
    "linear, half": _resize((1, 1, 4, 6), [1, 1, 0.5, 0.5], [6 * 4], mode="linear"),
    "linear, corners": _to_sizes(
        (1, 1, 3, 3), [1, 1, 5, 4], [20 * 4], mode="linear", coordinate_transformation_mode="align_corners"
    ),
    "linear, one axis": _resize((1, 2, 4), [1, 1, 2.5], [20 * 2], mode="linear"),
    "linear, three axes": _resize((1, 1, 2, 2, 2), [1, 1, 2, 1, 2], [32 * 4], mode="linear"),
    "linear, antialiased": _resize((1, 1, 6, 2), [1, 1, 0.5, 1], [6 * 4], mode="linear", antialias=1),
    "cubic, twice": _resize((1, 1, 5, 1), [1, 1, 2, 1], [10 * 4], mode="cubic"),
    "cubic, without what is outside": _resize((1, 1, 5, 1), [1, 1, 0.8, 1], [16], mode="cubic", exclude_outside=1),
    "sizes": _to_sizes((1, 1, 2, 2), [1, 1, 5, 3], [15], mode="nearest"),
    "sizes of some axes": _to_sizes((1, 1, 2, 2), [4, 4], [16], mode="nearest", axes=[2, 3]),
    "aspect ratio": _to_sizes(
        (1, 1, 2, 4), [6, 8], [32], mode="nearest", axes=[2, 3], keep_aspect_ratio_policy="not_larger"
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_resizing_does_one_operation_for_every_tap(name: str) -> None:
    """Operations, layers, and dependencies by experiment are right."""
    check_case(CASES[name])


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_taps_are_those_that_the_reference_evaluator_reads(mode: str, coordinates: str) -> None:
    """Each rule reads the positions that the reference evaluator reads, found by resizing every unit vector."""
    rules = [
        (ResizeRules(mode, coordinates, excludes_outside=outside, is_antialiased=smooth), outside, smooth)
        for outside, smooth in product([False, True] if mode == "cubic" else [False], [False, True])
    ]
    sizes = [(4, 8), (5, 3), (4, 7), (3, 1), (1, 4), (6, 4)]
    for (rule, outside, smooth), (before, after) in product(rules, sizes):
        if smooth and mode == "nearest":
            continue
        taps = axis_taps(rule, ResizedAxis(before, after, after / before))
        read = np.zeros((after, before), dtype=bool)
        for place, row in enumerate(taps):
            read[place, row[row != NOWHERE]] = True
        expected = _reference(mode, coordinates, before, after, outside, smooth)
        assert (read == (np.abs(expected) > 1e-6)).all(), (rule, before, after, taps)


def _reference(mode: str, coordinates: str, before: int, after: int, outside: bool, smooth: bool) -> np.ndarray:
    columns = []
    for place in range(before):
        unit = np.zeros(before)
        unit[place] = 1.0
        (column,) = Resize._run(
            None,
            unit,
            None,
            None,
            np.array([after]),
            antialias=int(smooth),
            axes=None,
            coordinate_transformation_mode=coordinates,
            cubic_coeff_a=-0.75,
            exclude_outside=int(outside),
            extrapolation_value=0.0,
            keep_aspect_ratio_policy="stretch",
            mode=mode,
            nearest_mode="round_prefer_floor",
        )
        columns.append(column)
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("nearest_mode", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_rounding_rules_of_nearest(nearest_mode: str) -> None:
    """Each rounding rule of nearest is right, exactly between two pixels and elsewhere."""
    case = _resize((1, 1, 1, 6), [1, 1, 1, 0.5], [3], mode="nearest", nearest_mode=nearest_mode)
    check_case(case)


@pytest.mark.parametrize(
    ("case", "equation", "loops"),
    [
        (
            _resize((1, 2, 3, 4), [1, 1, 2, 2], [], mode="nearest"),
            "O[b][k][oy][roy][ox][rox] += I[b][k][oy][ox]",
            {"B": 1, "K": 2, "OY": 3, "ROY": 2, "OX": 4, "ROX": 2},
        ),
        (
            _resize((1, 2, 8, 8), [1, 1, 0.5, 0.5], [], mode="linear"),
            "O[b][k][oy][ox] += I[b][k][oy][fy][ox][fx]",
            {"B": 1, "K": 2, "OY": 4, "OX": 4, "FY": 2, "FX": 2},
        ),
        (
            _resize((1, 2, 8, 8), [1, 1, 2, 2], [], mode="linear"),
            "O[b][k][oy][ox] += I[b][k][oy][ox]",
            {"B": 1, "K": 2, "OY": 16, "OX": 16, "FY": 2, "FX": 2},
        ),
    ],
)
def test_whole_factors_are_loops(case: Case, equation: str, loops: dict[str, int]) -> None:
    """Repetition splits the loops of the output; taps that neighbours share are no loops of the input."""
    (layer,) = layers_of(case)
    assert layer.equation == equation
    assert dict(layer.loop_sizes) == loops


def test_an_odd_factor_between_large_sizes_stays_exact() -> None:
    """Resizing 480 to 853 rows stays exact: each row has pieces, and axes are resized one after the other."""
    case = _to_sizes((1, 1, 480, 2), [1, 1, 853, 2], [853 * 2 * 2], mode="linear")
    lowered = lower_model(case.model())
    check_layers(case, lowered.nodes)
    assert all(index_map.is_exact for index_map in lowered.index_maps)


def test_too_many_pieces_become_a_superset_that_says_so() -> None:
    """Resizing 2000 to 3001 columns needs too many pieces, so its maps are a superset, marked approximated."""
    case = _to_sizes((1, 1, 1, 2000), [1, 1, 1, 3001], [], mode="linear")
    lowered = lower_model(case.model())
    assert set(lowered.statuses.values()) == {"approximated"}
    assert not all(index_map.is_exact for index_map in lowered.index_maps)


@pytest.mark.parametrize(
    ("operator", "opset", "mode"),
    [("Upsample", 7, "nearest"), ("Upsample", 9, "nearest"), ("Upsample", 9, "linear"), ("Resize", 10, "nearest")],
)
def test_older_forms_are_read(operator: str, opset: int, mode: str) -> None:
    """Scales as attribute and as input are read; positions are those of the mode `asymmetric`."""
    scales = np.array([1, 1, 2, 2], np.float32)
    attributes = {"mode": mode} | ({"scales": [1.0, 1.0, 2.0, 2.0]} if opset == 7 else {})
    case = Case(operator, [(1, 1, 2, 3)], [], [] if opset == 7 else [scales], attributes, opset=opset)
    lowered = lower_model(case.model())
    assert set(lowered.statuses.values()) == {"modelled"}
    assert [node.layer.mac_count for node in lowered.nodes if node.layer] == [24 * (4 if mode == "linear" else 1)]
    last_map = lowered.index_maps[-1]
    assert last_map.is_exact


def test_cropping_reads_the_region_only() -> None:
    """Cropping rows 0.25 to 0.75 of 9 reads only these rows, and all columns."""
    region = np.array([0, 0, 0.25, 0, 1, 1, 0.75, 1], np.float32)
    case = Case(
        "Resize",
        [(1, 1, 9, 2)],
        [3 * 2],
        [region, [1, 1, 3, 2]],
        {"mode": "nearest", "coordinate_transformation_mode": "tf_crop_and_resize"},
        opset=19,
        order=["x0", "c0", "", "c1"],
    )
    check_case(case)


def test_scales_of_the_run_time_are_a_superset_that_says_so() -> None:
    """Every row may be read if the region is computed, and the operator is marked approximated."""
    case = Case(
        "Resize",
        [(1, 1, 4, 2), (8,)],
        [6],
        [[1, 1, 3, 2]],
        {"mode": "nearest", "coordinate_transformation_mode": "tf_crop_and_resize"},
        opset=19,
        order=["x0", "x1", "", "c0"],
        is_exact=False,
    )
    lowered = lower_model(case.model())
    check_layers(case, lowered.nodes)
    assert set(lowered.statuses.values()) == {"approximated"}


@pytest.mark.parametrize(("mode", "taps"), [("linear", 4), ("nearest", 1), ("cubic", 16)])
def test_sampling_by_a_grid_is_an_estimate(mode: str, taps: int) -> None:
    """A sample may come from anywhere in its channel, and depends on its own place in the grid."""
    case = Case(
        "GridSample",
        [(1, 2, 3, 3), (1, 2, 2, 2)],
        [8 * taps],
        [],
        {"mode": mode},
        is_exact=False,
        ranges={"x1": (-1.0, 1.0)},
    )
    check_case(case)
    assert set(lower_model(case.model()).statuses.values()) == {"approximated"}


def test_a_grid_depends_on_its_row_of_the_matrix() -> None:
    """AffineGrid computes two coordinates for each of 2 x 3 places, each coordinate from three coefficients."""
    check_case(Case("AffineGrid", [(2, 2, 3)], [2 * 6 * 6], [[2, 1, 2, 3]], is_exact=False))
