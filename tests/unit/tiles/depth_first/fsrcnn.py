"""FSRCNN on the core of DeFiNES, and the figures of DeFiNES for it."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tilewright.pipeline.sources import parse_accelerator, parse_mapping, parse_workload, single_core
from tilewright.tiles.depth_first.options import TileOptions
from tilewright.tiles.depth_first.schedule import stack_model
from tilewright.tiles.depth_first.stack_cost import StackModel

PROJECT = Path(__file__).resolve().parents[4]
DATA = Path(__file__).parent / "data"
HARDWARE = PROJECT / "config" / "hardware" / "zigzag" / "meta_prototype_df.yaml"
WORKLOAD = PROJECT / "config" / "workload" / "fsrcnn.yaml"
MAPPING = PROJECT / "config" / "mapping" / "zigzag" / "meta_prototype_df.yaml"


def rows(name: str) -> Iterator[dict[str, Any]]:
    """The rows of a file of figures."""
    return map(json.loads, (DATA / name).read_text().splitlines())


@cache
def model(reading: str = "defines", profile: str = "corrected", objective: str = "energy") -> StackModel:
    """The model of costs for stacks of FSRCNN; its search results are kept for other tests."""
    core = single_core(parse_accelerator(HARDWARE))
    options = TileOptions(reading=reading, model=profile, objective=objective)
    return stack_model((parse_workload(WORKLOAD), core, parse_mapping(MAPPING)), options)
