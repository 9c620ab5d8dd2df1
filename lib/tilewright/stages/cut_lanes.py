"""What is said of lanes that the mapping file asks for and layers do not get, for runs on one core."""

from tilewright.errors import Problems
from tilewright.mapping.cut_lanes import cuts_on_core, note_cut_lanes
from tilewright.mapping.yaml_checks import document_behind
from tilewright.profile import profile_by_name
from tilewright.stages.base import is_own
from tilewright.stages.descriptions import NetworkProblem
from tilewright.stages.layers import model_of
from tilewright.stages.pipeline import Pipeline
from tilewright.stages.spatial import CustomSpatialMappingGenerator, SpatialMappingConversion, SpatialMappingGenerator


def cut_lanes_notices(problem: NetworkProblem, pipeline: Pipeline, file: str) -> list[str]:
    """A notice for each cause; [] where the stages of the pipeline make other lanes than those of the mapping file.

    `file` is what the mapping was read from, for lines.
    """
    stages = pipeline.search().stages
    known = any(isinstance(stage, SpatialMappingGenerator | SpatialMappingConversion) for stage in stages)
    others = any(isinstance(stage, CustomSpatialMappingGenerator) or not is_own(type(stage)) for stage in stages)
    model = model_of(stages)
    if not known or others or not model:
        return []
    core, profile = problem.core, profile_by_name(model)
    problems = Problems(document_behind(problem.mapping, file))
    cuts = []
    for node in problem.workload.layers_in_order:
        if node.layer is not None:
            entry = problem.mapping.constraints_for(node.layer)
            cuts.append((node.layer.name, entry, cuts_on_core(node.layer, core, entry, profile)))
    note_cut_lanes(problems, problem.mapping, cuts)
    return problems.notices
