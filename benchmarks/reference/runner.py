"""Evaluation of single mappings by the pinned peer (zigzag-dse 3.9.1).

Only the Python of the reference environment can import this module. The classes of the peer do all the work: the memory
allocator places a loop order, the conversion turns a user-level spatial mapping into the internal form, and the cost
model evaluates both. This module calls these classes in the order of the peer's stages, and reads the results.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zigzag.cost_model.cost_model import CostModelEvaluation
from zigzag.datatypes import LayerDim, OADimension
from zigzag.hardware.architecture.accelerator import Accelerator
from zigzag.hardware.architecture.memory_port import DataDirection
from zigzag.mapping.spatial_mapping import MappingSingleOADim, SpatialMapping
from zigzag.mapping.spatial_mapping_internal import SpatialMappingInternal
from zigzag.mapping.temporal_mapping import TemporalMapping, TemporalMappingType
from zigzag.opt.loma.engine import LomaEngine
from zigzag.opt.loma.memory_allocator import MemoryAllocator
from zigzag.parser.workload_factory import LayerNodeFactory
from zigzag.stages.mapping.spatial_mapping_conversion import SpatialMappingConversionStage
from zigzag.stages.mapping.spatial_mapping_generation import SpatialMappingGeneratorStage
from zigzag.stages.parser.accelerator_parser import AcceleratorParserStage
from zigzag.workload.layer_node import LayerNode

logging.disable(logging.CRITICAL)

DIRECTIONS = {
    "tl": DataDirection.RD_OUT_TO_LOW,
    "fl": DataDirection.WR_IN_BY_LOW,
    "th": DataDirection.RD_OUT_TO_HIGH,
    "fh": DataDirection.WR_IN_BY_HIGH,
}
Unrolling = Mapping[str, Mapping[str, float]]


class PointError(Exception):
    """Error for a mapping that the peer refuses. `stage` is spatial, allocation or cost_model; `kind` is the name of
    the peer's exception class.
    """

    def __init__(self, stage: str, cause: BaseException):
        super().__init__(f"{stage}: {type(cause).__name__}: {cause}")
        self.stage = stage
        self.kind = type(cause).__name__


def read_accelerator(path: Path) -> Accelerator:
    """Parse one hardware YAML file with the peer's parser."""
    return AcceleratorParserStage.parse_accelerator(str(path))


def make_layer(layer: Mapping[str, Any]) -> LayerNode:
    """Layer of the peer, made from the input keys of the `layer` object of a conformance record."""
    pr_sizes: dict[str, int] = dict(layer.get("pr_layer_dim_sizes") or {})
    padding: dict[str, list[int]] = dict(layer.get("padding") or {})
    names = list(pr_sizes or padding)
    node_data = {
        "id": 0,
        "name": layer["name"],
        "operator_type": layer["type"],
        "equation": re.sub(r"\s*([=*+])\s*", r"\1", layer["equation"]),
        "dimension_relations": list(layer["dimension_relations"]),
        "loop_dims": list(layer["loop_dims"]),
        "loop_sizes": list(layer["loop_sizes"]),
        "operand_precision": dict(layer["operand_precision"]),
        "operand_source": dict.fromkeys(layer["constant_operands"], 0),
        "pr_loop_dims": names or None,
        "pr_loop_sizes": [pr_sizes[name] for name in names] if pr_sizes else None,
        "padding": [padding.get(name, [0, 0]) for name in names] if padding else None,
    }
    links = dict(layer["memory_operand_links"])
    mapping_data = [{"name": "default", "spatial_mapping": None, "memory_operand_links": links}]
    return LayerNodeFactory(node_data, mapping_data).create()


def describe_layer(layer: LayerNode) -> dict[str, Any]:
    """`layer` object of a record: the keys that `make_layer` reads, and derived facts that a test can check."""
    relevancy = layer.loop_relevancy_info
    return {
        "name": layer.name,
        "type": layer.type,
        "equation": _spaced_equation(layer),
        "loop_dims": [str(dim) for dim in layer.layer_dims],
        "loop_sizes": [layer.layer_dim_sizes[dim] for dim in layer.layer_dims],
        "dimension_relations": [str(relation) for relation in layer.dimension_relations],
        "operand_precision": {str(operand): bits for operand, bits in layer.operand_precision.data.items()},
        "pr_loop": {str(name): [str(dim) for dim in pair] for name, pair in layer.pr_loop.items()},
        "pr_scaling_factors": {
            str(name): [[str(dim), factor] for dim, factor in pair] for name, pair in layer.pr_scaling_factors.items()
        },
        "pr_layer_dim_sizes": {str(dim): size for dim, size in layer.pr_layer_dim_sizes.items()},
        "padding": {str(dim): list(pad) for dim, pad in layer.padding.data.items()},
        "constant_operands": [str(operand) for operand in layer.constant_operands],
        "memory_operand_links": {str(op): str(mem) for op, mem in layer.memory_operand_links.data.items()},
        "relevancy": {
            str(op): {
                "r": [str(dim) for dim in relevancy.r_dims[op]],
                "ir": sorted(str(dim) for dim in relevancy.ir_dims[op]),
                "pr": {str(name): [str(dim) for dim in pair] for name, pair in relevancy.pr_dims[op].items()},
            }
            for op in layer.layer_operands
        },
        "operand_order": [str(op) for op in layer.layer_operands],
        "operand_size_elem": {str(op): size for op, size in layer.operand_size_elem.items()},
        "total_mac_count": layer.total_mac_count,
    }


def _spaced_equation(layer: LayerNode) -> str:
    return re.sub(r"\s*([=*+])\s*", r" \1 ", layer.equation.data).strip()


def spatial_dict(mapping: SpatialMapping) -> dict[str, dict[str, float]]:
    """User-level spatial mapping as plain names and factors, in the peer's order."""
    return {str(oa): {str(dim): factor for dim, factor in single.items()} for oa, single in mapping.items()}


def make_spatial(unrolling: Unrolling) -> SpatialMapping:
    """Spatial mapping object of the peer, made from plain names and factors in the same order."""
    return SpatialMapping(
        {
            OADimension(oa): MappingSingleOADim({LayerDim(d): f for d, f in dims.items()})
            for oa, dims in unrolling.items()
        }
    )


def limit_spatial(accelerator: Accelerator, layer: LayerNode, unrolling: Unrolling) -> dict[str, dict[str, float]]:
    """Spatial mapping that the peer uses for a fully given user mapping. The peer limits the factors by the bandwidth
    and capacity of the inner memories. Raises PointError if the peer refuses the mapping.
    """
    layer.spatial_mapping = make_spatial(unrolling)
    try:
        stage = SpatialMappingGeneratorStage([None], accelerator=accelerator, layer=layer)
        return spatial_dict(next(iter(stage.generate_spatial_mappings())))
    except Exception as cause:
        raise PointError("spatial", cause) from cause


def candidate_spatials(accelerator: Accelerator, layer: LayerNode) -> list[dict[str, dict[str, float]]]:
    """User-level spatial mappings that the peer would try for a layer with its default options."""
    stage = SpatialMappingGeneratorStage([None], accelerator=accelerator, layer=layer)
    return [spatial_dict(mapping) for mapping in stage.generate_spatial_mappings()]


def convert_spatial(
    accelerator: Accelerator, layer: LayerNode, unrolling: Unrolling
) -> tuple[SpatialMappingInternal, SpatialMappingInternal]:
    """Pair (fractional internal mapping, integer internal mapping) of a user mapping that `limit_spatial` has limited.
    The layer gets the user mapping, too. Raises PointError if the peer refuses the mapping.
    """
    mapping = make_spatial(unrolling)
    mapping.initialize_oa_dims(accelerator.operational_array.dimension_sizes)
    layer.spatial_mapping = mapping
    try:
        stage = SpatialMappingConversionStage([None], accelerator=accelerator, layer=layer)
        return stage.convert_user_spatial_mapping(mapping)
    except Exception as cause:
        raise PointError("spatial", cause) from cause


def temporal_loop_sizes(accelerator: Accelerator, layer: LayerNode, spatial: SpatialMappingInternal) -> dict[str, int]:
    """Sizes of the temporal loops, by layer dimension: the sizes left by the spatial mapping, rounded as the peer
    rounds them.
    """
    engine = LomaEngine(
        accelerator=accelerator, layer=layer, spatial_mapping=spatial, mapping_type=TemporalMappingType.UNEVEN
    )
    return {str(dim): int(size) for dim, size in engine.get_temporal_loops().items()}


def evaluate(
    accelerator: Accelerator,
    layer: LayerNode,
    spatial_pair: tuple[SpatialMappingInternal, SpatialMappingInternal],
    loop_order: list[tuple[str, int]],
    temporal_mapping_type: str,
    access_same_data_considered_as_no_access: bool = True,
) -> CostModelEvaluation:
    """Cost model evaluation of a loop order, given innermost first. Raises PointError if the peer cannot allocate or
    cost the loop order.
    """
    spatial, spatial_int = spatial_pair
    order = [(LayerDim(dim), size) for dim, size in loop_order]
    try:
        temporal: TemporalMapping = MemoryAllocator(
            accelerator, layer, spatial, order, TemporalMappingType(temporal_mapping_type)
        ).run()
    except Exception as cause:
        raise PointError("allocation", cause) from cause
    try:
        return CostModelEvaluation(
            accelerator=accelerator,
            layer=layer,
            spatial_mapping=spatial,
            spatial_mapping_int=spatial_int,
            temporal_mapping=temporal,
            access_same_data_considered_as_no_access=access_same_data_considered_as_no_access,
        )
    except Exception as cause:
        raise PointError("cost_model", cause) from cause


def summarize(cme: CostModelEvaluation) -> dict[str, Any]:
    """`result` object of a record, without rounding. Energies are in pJ, latencies in cycles."""
    return {
        "energy_total": cme.energy_total,
        "mac_energy": cme.mac_energy,
        "mem_energy": cme.mem_energy,
        "energy_breakdown": {str(op): list(levels) for op, levels in cme.mem_energy_breakdown.items()},
        "word_accesses": {
            str(op): [{key: level.get(direction) for key, direction in DIRECTIONS.items()} for level in levels]
            for op, levels in cme.memory_word_access.items()
        },
        "latency_total0": cme.latency_total0,
        "latency_total1": cme.latency_total1,
        "latency_total2": cme.latency_total2,
        "ideal_cycle": cme.ideal_cycle,
        "ideal_temporal_cycle": cme.ideal_temporal_cycle,
        "temporal_stall": cme.stall_slack_comb,
        "onloading": cme.data_onloading_cycle,
        "offloading": cme.data_offloading_cycle,
        "systolic_drain": cme.systolic_drain_cycle,
        "temporal_levels": {
            str(op): [[[str(dim), size] for dim, size in level] for level in levels]
            for op, levels in cme.temporal_mapping.mapping_dic_origin.items()
        },
        "mem_utilization_shared": {str(op): list(levels) for op, levels in cme.mem_utili_shared.items()},
    }


def plain_numbers(value: Any) -> Any:
    """Copy of a structure in which all numpy scalars are Python numbers. JSON then has all their digits."""
    if isinstance(value, dict):
        return {key: plain_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_numbers(item) for item in value]
    return value.item() if hasattr(value, "item") else value
