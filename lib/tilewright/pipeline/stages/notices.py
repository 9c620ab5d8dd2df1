"""Notices on the input files of a run on one core: unusual values, unused lanes of spatial mappings, and idle array
units.
"""

from collections.abc import Sequence
from pathlib import Path

from tilewright.base.errors import InputError, Problems
from tilewright.base.file_kinds import HARDWARE, MAPPING, WORKLOAD, kind_of
from tilewright.base.profile import profile_by_name
from tilewright.base.unused import unused_option
from tilewright.base.yamlfile import load_yaml
from tilewright.hardware.source import parse_accelerator
from tilewright.mapping.file_checks import document_behind
from tilewright.mapping.notices import note_idle_units
from tilewright.mapping.source import parse_mapping
from tilewright.mapping.spatial_generation import cuts_on_core, note_cut_lanes
from tilewright.pipeline.stages.base import is_own
from tilewright.pipeline.stages.descriptions import NetworkProblem, WrittenFiles
from tilewright.pipeline.stages.layers import model_of
from tilewright.pipeline.stages.pipeline import Pipeline
from tilewright.pipeline.stages.spatial import CustomSpatialMappingGenerator, SpatialMappingGenerator
from tilewright.pipeline.stages.spatial_conversion import SpatialMappingConversion
from tilewright.workload.source import read_layers


def lanes_notices(problem: NetworkProblem, pipeline: Pipeline, file: str) -> list[str]:
    """Notices on unused lanes: one for each reason why layers get fewer lanes than the mapping file gives, and one for
    each array dimension that no spatial mapping of the mapping file fills.

    The result is [] if it is not certain that the stages of the pipeline use the spatial mappings of the mapping file.
    `file` is the path of the mapping file, for line numbers.
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
    note_idle_units(problems, problem.mapping, core, problem.workload)
    return problems.notices


def written_files(files: Sequence[Path]) -> tuple[WrittenFiles, list[str]]:
    """Pair (paths of the hardware file and of the mapping file, notices on unusual content of all files). The path of
    the hardware file is '' if no hardware file can be read; likewise for the mapping file.

    A file with errors is skipped without a message. The step that makes an artifact from the file reports these errors.
    """
    found: dict[str, str] = {}
    notices: list[str] = []
    for file in files:
        own: list[str] = []
        if not file.is_file():
            notices.append(unused_option("written", "has no effect: there is no such file", str(file)))
        try:
            kind = kind_of(load_yaml(file).data)
            _read(file, kind, own)
        except InputError:
            continue
        found[kind] = str(file)
        notices += own
    return WrittenFiles(found.get(HARDWARE, ""), found.get(MAPPING, "")), notices


def _read(file: Path, kind: str, notices: list[str]) -> None:
    if kind == HARDWARE:
        parse_accelerator(file, notices)
    elif kind == MAPPING:
        parse_mapping(file, notices, plans=True)
    elif kind == WORKLOAD:
        read_layers(file, notices)
