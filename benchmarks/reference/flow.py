"""Searches of the pinned peer (zigzag-dse 3.9.1) on the committed inputs, layer by layer.

The stages are those of the peer's API, in the same order. Stages that only save or draw results are left out, because
they write files and refuse layers without a temporal loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner import describe_layer, spatial_dict, summarize
from zigzag.mapping.temporal_mapping import TemporalMappingType
from zigzag.stages.evaluation.cost_model_evaluation import CostModelStage
from zigzag.stages.main import MainStage
from zigzag.stages.mapping.spatial_mapping_generation import SpatialMappingGeneratorStage
from zigzag.stages.mapping.temporal_mapping_generator_stage import TemporalMappingGeneratorStage
from zigzag.stages.parser.accelerator_parser import AcceleratorParserStage
from zigzag.stages.parser.workload_parser import WorkloadParserStage
from zigzag.stages.results.reduce_stages import MinimalEDPStage, MinimalEnergyStage, MinimalLatencyStage
from zigzag.stages.workload_iterator import WorkloadStage

OBJECTIVES = {"energy": MinimalEnergyStage, "latency": MinimalLatencyStage, "EDP": MinimalEDPStage}


@dataclass(frozen=True)
class Flow:
    """Settings of one search of the peer over `workload/small_network.yaml`."""

    hardware: str
    mapping: str
    objective: str
    mixed: bool = False
    temporal_mapping_type: str = "uneven"
    lpf_limit: int = 5
    nb_spatial_mappings: int = 3

    @property
    def name(self) -> str:
        """File name stem of the result."""
        suffixes = "".join(f"-{word}" for word, on in (("mixed", self.mixed), ("even", self.is_even)) if on)
        return f"flow-{self.hardware}-{self.mapping}-{self.objective}{suffixes}"

    @property
    def is_even(self) -> bool:
        """True for even temporal mappings."""
        return self.temporal_mapping_type == "even"


FLOWS = (
    Flow("weight_stationary_16x16", "user_2d", "latency"),
    Flow("row_stationary_12x14", "user_2d", "energy"),
    Flow("vector_24", "generated", "EDP"),
    Flow("weight_stationary_16x16", "generated", "EDP"),
    Flow("cube_8x4x3", "hints", "latency"),
    Flow("quad_4x4x2x2", "hints", "energy"),
    Flow("row_stationary_12x14", "generated", "latency", mixed=True, lpf_limit=4),
    Flow("cube_8x4x3", "generated", "energy", temporal_mapping_type="even"),
)


def make_flows(data: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a pair (file name stem, record) for each search in FLOWS."""
    for flow in FLOWS:
        yield flow.name, run_flow(flow, data)


def run_flow(flow: Flow, data: Path) -> dict[str, Any]:
    """Record of one search: options, best mapping of each layer, and sums over the layers in execution order."""
    reduce_stage = OBJECTIVES[flow.objective]
    stages = [
        WorkloadParserStage,
        AcceleratorParserStage,
        WorkloadStage,
        reduce_stage,
        SpatialMappingGeneratorStage,
        reduce_stage,
        TemporalMappingGeneratorStage,
        CostModelStage,
    ]
    main = MainStage(
        list_of_callables=stages,
        accelerator=str(data / "hardware" / f"{flow.hardware}.yaml"),
        workload=str(data / "workload" / "small_network.yaml"),
        mapping=str(data / "mapping" / f"{flow.mapping}.yaml"),
        loma_lpf_limit=flow.lpf_limit,
        loma_show_progress_bar=False,
        nb_mappings_generated=flow.nb_spatial_mappings,
        enable_mix_spatial_mapping_generation=flow.mixed,
        access_same_data_considered_as_no_access=True,
        temporal_mapping_type=TemporalMappingType(flow.temporal_mapping_type),
    )
    winners = [(layer, cme) for cme, (layer, _) in main.run()]
    return {
        "zigzag_version": "3.9.1",
        "hardware": flow.hardware,
        "workload": "small_network",
        "mapping": flow.mapping,
        "objective": flow.objective,
        "lpf_limit": flow.lpf_limit,
        "nb_spatial_mappings": flow.nb_spatial_mappings,
        "mixed_spatial_mapping": flow.mixed,
        "temporal_mapping_type": flow.temporal_mapping_type,
        "inter_layer_locality": False,
        "layers": [
            {
                "layer": describe_layer(layer),
                "spatial_mapping": spatial_dict(cme.layer.spatial_mapping),
                "result": summarize(cme),
            }
            for layer, cme in winners
        ],
        "network_energy": sum(cme.energy_total for _, cme in winners),
        "network_latency": sum(cme.latency_total2 for _, cme in winners),
    }
