"""Writer of mapping entries, as data or as the text of a mapping file.

Reading the text gives the same entries.
"""

from collections.abc import Sequence
from typing import Any

import yaml

from tilewright.base.harmless import ended_lines
from tilewright.base.yamlfile import HarmlessDumper
from tilewright.mapping.constraints import WILDCARD, MappingConstraints

_PLAIN = MappingConstraints("")


def as_entry(constraints: MappingConstraints) -> dict[str, Any]:
    """Entry as plain data. Fields that have their default value are left out."""
    entry: dict[str, Any] = {"name": constraints.name}
    if constraints.spatial_mapping:
        entry["spatial_mapping"] = {
            array_dimension: [f"{dimension}, {factor}" for dimension, factor in factors]
            for array_dimension, factors in constraints.spatial_mapping
        }
    if constraints.spatial_mapping_hint:
        entry["spatial_mapping_hint"] = {
            name: list(dimensions) for name, dimensions in constraints.spatial_mapping_hint
        }
    if constraints.memory_operand_links != _PLAIN.memory_operand_links:
        entry["memory_operand_links"] = dict(constraints.memory_operand_links)
    if constraints.temporal_ordering:
        entry["temporal_ordering"] = [
            [loop.dimension, WILDCARD if loop.size is None else loop.size] for loop in constraints.temporal_ordering
        ]
    if constraints.level_boundaries:
        entry["level_boundaries"] = {operand: list(bounds) for operand, bounds in constraints.level_boundaries}
    if constraints.memory_reach is not None:
        reach = constraints.memory_reach
        occupied = {"occupied_bits": dict(reach.occupied_bits)} if reach.occupied_bits else {}
        entry["memory_reach"] = {"topmost": dict(reach.topmost), **occupied}
    for key in ("temporal_mapping_type", "access_same_data_considered_as_no_access"):
        if getattr(constraints, key) is not None:
            entry[key] = getattr(constraints, key)
    if constraints.core_allocation:
        entry["core_allocation"] = list(constraints.core_allocation)
    if constraints.core_allocation_is_fixed:
        entry["core_allocation_is_fixed"] = True
    for key in ("intra_core_tiling", "inter_core_tiling"):
        if getattr(constraints, key):
            entry[key] = [f"{loop.dimension}, {loop.tiles}" for loop in getattr(constraints, key)]
    if constraints.tiles_if_alone:
        entry["tiles_if_alone"] = True
    if constraints.reduction is not None:
        sums = constraints.reduction
        entry["reduction"] = {"shape": sums.shape} | ({} if sums.core is None else {"core": sums.core})
    if constraints.layer_dimension_names:
        entry["layer_dimension_names"] = list(constraints.layer_dimension_names)
    return entry


def mapping_text(entries: Sequence[dict[str, Any]], head: str = "") -> str:
    """Text of a mapping file; `head` is a comment of one line."""
    texts = [
        yaml.dump([entry], Dumper=_Dumper, sort_keys=False, width=1000, default_flow_style=None) for entry in entries
    ]
    return ended_lines([head] if head else [], "# ") + "\n".join(texts)


class _Dumper(HarmlessDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True
