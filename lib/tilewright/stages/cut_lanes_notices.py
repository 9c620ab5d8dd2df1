"""What is said of lanes that the mapping file asks for and layers do not get, for runs on one core."""

from collections.abc import Iterator

from tilewright.artifacts.files import file_of
from tilewright.mapping.cut_lanes import Cut, cuts_on_core, note_cut_lanes
from tilewright.mapping.source import MappingSource
from tilewright.mapping.yaml_checks import document_behind
from tilewright.profile import profile_by_name
from tilewright.stages.base import is_own
from tilewright.stages.descriptions import NetworkProblem
from tilewright.stages.pipeline import Pipeline
from tilewright.stages.results import model_of
from tilewright.stages.spatial import SpatialMappingConversion, SpatialMappingGenerator
from tilewright.stages.spatial_custom import CustomSpatialMappingGenerator
from tilewright.validation import Findings
from tilewright.workload.layer import Layer


def cut_lanes_notices(problem: NetworkProblem, pipeline: Pipeline, source: MappingSource) -> list[str]:
    """A notice for each cause; [] where the stages of the pipeline make other lanes than those of the mapping file.

    `source` is what the mapping was read from, for lines.
    """
    stages = pipeline.search().stages
    known = any(isinstance(stage, SpatialMappingGenerator | SpatialMappingConversion) for stage in stages)
    others = any(isinstance(stage, CustomSpatialMappingGenerator) or not is_own(type(stage)) for stage in stages)
    model = model_of(stages)
    if not known or others or not model:
        return []
    mapping, core, profile = problem.mapping, problem.core, profile_by_name(model)

    def cuts_of(layer: Layer) -> Iterator[Cut]:
        return cuts_on_core(layer, core, mapping.constraints_for(layer), profile)

    findings = Findings(document_behind(mapping, file_of(source)))
    layers = [node.layer for node in problem.workload.layers_in_order if node.layer is not None]
    note_cut_lanes(findings, mapping, layers, cuts_of)
    return findings.notices
