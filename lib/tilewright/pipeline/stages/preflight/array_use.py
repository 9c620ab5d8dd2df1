"""Preflight check of spatial mappings in the mapping file, for cores whose array can run only the dataflows that the
core file lists.
"""

from tilewright.base.errors import Problems, some_of
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import MappingConstraints
from tilewright.mapping.dataflows import has_no_dataflow, refusal
from tilewright.mapping.runnable import core_choice
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.pipeline.stages.preflight.cores import layers_of_entries
from tilewright.workload.graph import WorkloadNode


def check_exclusive_dataflows(problems: Problems, problem: SystemProblem) -> None:
    """Report an error for each spatial mapping of the mapping file that no allowed core of its layers supports. Also
    add three kinds of notices: on spatial mappings that only some cores support, on hints without effect, and on layers
    that use only one unit of an array.
    """
    idle: dict[str, list[str]] = {}
    for index, nodes in enumerate(layers_of_entries(problem.workload, problem.mapping)):
        entry = problem.mapping.entries[index]
        cores = {node.node_id: _cores_of(node, entry, problem) for node in nodes}
        _check_given(problems, index, entry, nodes, cores)
        _note_hints(problems, index, entry, cores)
        for node in nodes:
            for name, core in cores[node.node_id].items():
                if node.layer is not None and has_no_dataflow(node.layer, core):
                    idle.setdefault(name, []).append(f"{node.operator_type} {node.name}")
    for name, layers in idle.items():
        units = problem.accelerator.distinct_cores[name].operational_array.unit_count
        said = f"on only one of its {units:,} units, because none of its exclusive dataflows has a loop of these layers"
        problems.notices.append(f"core {name} runs {some_of(layers)} {said}")


def _cores_of(node: WorkloadNode, entry: MappingConstraints, problem: SystemProblem) -> dict[str, Core]:
    """Cores that are allowed to run a layer, each under the name of its core file."""
    file_of = {place.core_id: place.file_name for place in problem.accelerator.places}
    names = dict.fromkeys(file_of[core_id] for core_id in core_choice(node, entry, problem.accelerator).core_ids)
    return {name: problem.accelerator.distinct_cores[name] for name in names}


def _check_given(
    problems: Problems,
    index: int,
    entry: MappingConstraints,
    nodes: list[WorkloadNode],
    cores: dict[int, dict[str, Core]],
) -> None:
    """Report an error for layers whose spatial mapping no core supports. If only some cores support the spatial
    mapping, add a notice that the layers can run only on these cores.
    """
    if not entry.spatial_mapping:
        return
    stranded: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    for node in nodes:
        assert node.layer is not None
        of_layer = cores[node.node_id]
        reasons = dict.fromkeys(told for core in of_layer.values() if (told := refusal(entry, node.layer, core)))
        refusing = sum(bool(refusal(entry, node.layer, core)) for core in of_layer.values())
        found = stranded if refusing == len(of_layer) else others
        for reason in reasons:
            found.setdefault(reason, []).append(node.name)
    for reason, names in stranded.items():
        problems.at((index, "spatial_mapping"), f"no core can run {some_of(names)} with this spatial mapping: {reason}")
    for reason, names in others.items():
        problems.notice((index, "spatial_mapping"), f"{some_of(names)} can run only on other cores: {reason}")


def _note_hints(problems: Problems, index: int, entry: MappingConstraints, cores: dict[int, dict[str, Core]]) -> None:
    """Add a notice if the spatial mapping hints of mapping entry `index` have no effect. This is the case if all cores
    that can run the layers of the entry have exclusive dataflows. Such cores run only the listed dataflows, so no
    spatial mapping is searched.
    """
    its_cores = [core for of_layer in cores.values() for core in of_layer.values()]
    if entry.spatial_mapping_hint and its_cores and all(core.exclusive_dataflows for core in its_cores):
        message = "has no effect: all cores of these layers have exclusive dataflows, so no spatial mapping is searched"
        problems.notice((index, "spatial_mapping_hint"), message)
