"""Distinct layers of our two convolutional networks on two accelerators, in the forms for tilewright and for
accelforge.

Layers that differ only in the name count once. The spatial mapping comes from the mapping file, and is reduced to the
loops of the layer. The measurement therefore covers only the search over loop orders and memory levels.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shipped import shipped
from tilewright import parse_workload
from tilewright.hardware.core import Core
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.mapping.constraints import MappingConstraints
from tilewright.mapping.spatial_generation import spatial_candidates
from tilewright.mapping.temporal import loop_multiset
from tilewright.mapping.yaml_reader import read_mapping
from tilewright.search.evaluate import PreparedProblem, prepare
from tilewright.search.options import SearchOptions
from tilewright.workload.layer import Layer

CONFIG = Path(__file__).resolve().parents[1] / "config"
WORKLOADS = ("resnet18", "mobilenetv2")
ACCELERATORS = ("tpu_like", "eyeriss_like")
PEER_TENSORS = {"I1": "input", "I2": "weight", "O": "output"}
"""Names of tensors in accelforge's architectures, by memory operand."""
REPRESENTATIVE_LAYERS = (
    "resnet18/layer1.0.conv1",
    "resnet18/layer3.0.conv1",
    "resnet18/layer4.0.downsample",
    "resnet18/fc",
    "mobilenetv2/stage3.1.expand",
    "mobilenetv2/stage4.1.depthwise",
)
"""Names of layers: a 3 x 3 convolution, a 3 x 3 convolution with stride, 1 x 1 convolutions with and without stride, a
matrix product, and a depthwise convolution.
"""


@dataclass(frozen=True)
class LayerCase:
    """Distinct layer on one accelerator."""

    workload: str
    accelerator: str
    layer: Layer
    repeats: int
    """Number of equal layers in the network, including this layer."""
    core: Core
    constraints: MappingConstraints

    @property
    def name(self) -> str:
        """Name of the network and of the first of the equal layers."""
        return f"{self.workload}/{self.layer.name}"

    def prepare(self, options: SearchOptions) -> PreparedProblem:
        """Mapping problem of the layer, with the only spatial mapping that the mapping file allows."""
        (unrolling,) = spatial_candidates(self.layer, self.core, self.constraints, options.profile)
        return prepare(self.layer, self.core, self.constraints.memory_operand_links, unrolling, options)


def layer_cases(accelerator: str, workloads: tuple[str, ...] = WORKLOADS) -> list[LayerCase]:
    """Distinct layers of the workloads on one accelerator of `config/`, in execution order."""
    core = read_accelerator(shipped("hardware", accelerator)).cores[0]
    mapping = read_mapping(shipped("mapping", accelerator))
    cases = []
    for workload in workloads:
        alike: dict[Layer, list[Layer]] = {}
        for node in parse_workload(CONFIG / "workload" / f"{workload}.onnx").layers_in_order:
            assert node.layer is not None
            alike.setdefault(dataclasses.replace(node.layer, name=""), []).append(node.layer)
        cases += [
            LayerCase(workload, accelerator, found[0], len(found), core, mapping.constraints_for(found[0]))
            for found in alike.values()
        ]
    return cases


def loop_count(prepared: PreparedProblem) -> int:
    """Number of temporal loops if all sizes are split into prime factors."""
    return sum(repeats for _, repeats in loop_multiset(prepared.spatial.temporal_sizes, None, ()).loops)


def peer_layer(case: LayerCase) -> dict[str, Any]:
    """Layer in the form that `accelforge/runner.py` reads.

    Each size is the temporal factor times the spatial factor of our search. This product is larger than the size of the
    layer if the spatial factor does not divide this size.
    """
    prepared = case.prepare(SearchOptions())
    temporal = dict(prepared.spatial.temporal_sizes)
    spatial = [
        (array, loop, factor) for array, factors in prepared.spatial.unrolling for loop, factor in factors if factor > 1
    ]
    sizes = {loop: temporal.get(loop, 1) for loop, _ in case.layer.loop_sizes}
    for _, loop, factor in spatial:
        sizes[loop] *= factor
    links = dict(prepared.links)
    return {
        "sizes": sizes,
        "spatial": spatial,
        "operands": {
            PEER_TENSORS[links[operand]]: list(dimensions) for operand, dimensions in case.layer.operand_dimensions
        },
        "relations": {relation.data_dimension: list(relation.terms) for relation in case.layer.relations},
    }
