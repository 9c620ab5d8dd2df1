"""Notices of the parsers about unusual but valid descriptions."""

from typing import Any

import pytest
from tilewright.base.errors import Unused
from tilewright.pipeline.stages.descriptions import Descriptions
from tilewright.pipeline.stages.run import read_problem
from tilewright.search.options import SearchOptions

LAYER = {
    "id": 0,
    "name": "l",
    "operator_type": "Conv",
    "equation": "O[b][k] += I[b][c] * W[c][k]",
    "loop_dims": ["B", "K", "C"],
    "loop_sizes": [2, 8, 8],
    "operand_precision": {"W": 8, "I": 8, "O": 16, "O_final": 8},
    "operand_source": {"W": 0, "I": 0},
}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, []),
        ({"core_allocation": [0, 1]}, ["core_allocation"]),
        ({"intra_core_tiling": ["B, all"], "core_allocation": [0]}, ["core_allocation", "intra_core_tiling"]),
    ],
)
def test_keys_for_several_cores_are_told_to_play_no_part(keys: dict[str, Any], said: list[str]) -> None:
    """A mapping file for several cores is read for one core, with a notice for each key that has no effect."""
    mapping = [{"name": "default", "spatial_mapping": {"D1": ["K, 8"]}, **keys}]
    read = read_problem(Descriptions("config/hardware/zigzag/tpu_like.yaml", [LAYER], mapping), SearchOptions())
    notices = [notice for notice in read.notices if "single core" in notice]
    assert notices == [f"default.{key}: has no effect on a single core" for key in said]
    assert all(isinstance(notice, Unused) for notice in notices)
