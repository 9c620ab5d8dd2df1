"""What is said of lanes that the mapping file asks for and computation nodes do not get, for runs on several cores."""

from tilewright.errors import Problems
from tilewright.fusion.graph import CnGraph
from tilewright.mapping.cut_lanes import cuts_by_array, note_cut_lanes
from tilewright.mapping.runnable import core_choice
from tilewright.mapping.yaml_checks import document_behind
from tilewright.scheduling.core_costs import cost_classes
from tilewright.stages.multi.problem import SystemProblem
from tilewright.workload.graph import WorkloadNode


def cut_lanes_notices_of_cns(problem: SystemProblem, graph: CnGraph, core_file_name: str) -> list[str]:
    """A notice for each cause for which computation nodes get fewer lanes on a core than the mapping file says."""
    core = problem.accelerator.distinct_cores[core_file_name]
    problems = Problems(document_behind(problem.mapping, problem.mapping_file))
    node_of = {node.node_id: node for node in problem.workload.nodes}
    cuts = []
    for cost_class in cost_classes(graph, problem.workload, problem.mapping).classes:
        for number in cost_class.layers:
            node = node_of[graph.layers[number].node_id]
            if node.layer is None or not _may_run(node, problem, core_file_name):
                continue
            entry = problem.mapping.constraints_for(node.layer)
            if {name for name, _ in entry.spatial_mapping} <= set(core.operational_array.size_of):
                cuts.append((node.name, entry, cuts_by_array(graph.shapes[cost_class.shape], core, entry)))
    note_cut_lanes(problems, problem.mapping, cuts)
    return problems.notices


def _may_run(node: WorkloadNode, problem: SystemProblem, core_file_name: str) -> bool:
    assert node.layer is not None
    ids = core_choice(node, problem.mapping.constraints_for(node.layer), problem.accelerator).core_ids
    return any(problem.accelerator.place_of[core_id].file_name == core_file_name for core_id in ids)
