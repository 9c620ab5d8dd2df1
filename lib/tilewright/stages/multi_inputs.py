"""What the verbs of the multi-core flow read: descriptions, the CN graph of a run, the cost tables of its cores.

Everything that is missing or wrong is told at once.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.artifacts.envelope import read_artifact
from tilewright.errors import InputError, Problem
from tilewright.sources import AcceleratorSource, MappingSource, WorkloadSource
from tilewright.stages import system_problem
from tilewright.stages.descriptions import Descriptions
from tilewright.stages.multi_items import CostedCnProblem
from tilewright.stages.origins import cost_inputs, graph_origin_problems, origin_problems
from tilewright.stages.system_problem import SystemProblem, read_system_problem
from tilewright.workload.graph import Workload
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.fusion.graph import CnGraph

GRAPH_JSON, GRAPH_NPZ, COST_FOLDER = system_problem.GRAPH_JSON, system_problem.GRAPH_NPZ, "cost"
"""Names in the folder of a run."""


def read_descriptions(
    hardware: AcceleratorSource,
    workload: WorkloadSource,
    mapping: MappingSource,
    network_options: NetworkOptions | None = None,
) -> SystemProblem:
    """Files, artifacts or objects, read. Raises InputError with everything that is wrong with any of them."""
    return read_system_problem(Descriptions(hardware, workload, mapping, network_options or NetworkOptions()))


def read_inputs(
    hardware: AcceleratorSource,
    workload: WorkloadSource,
    mapping: MappingSource,
    cns: Path | str,
    costs: Path | str,
    network_options: NetworkOptions | None = None,
) -> CostedCnProblem:
    """Descriptions, the CN graph in the folder `cns`, and a cost table for each core file in the folder `costs`.

    Raises InputError with everything that is wrong, missing or damaged, or that does not fit together.
    """
    from tilewright.fusion.artifact import read_cn_graph
    from tilewright.schedule.core_costs import read_core_costs

    problems: list[Problem] = []
    described = graph = None
    graph_file = Path(cns) / GRAPH_JSON
    try:
        described = read_descriptions(hardware, workload, mapping, network_options)
    except InputError as error:
        problems += error.problems
    try:
        graph = read_cn_graph(graph_file, Path(cns) / GRAPH_NPZ)
    except InputError as error:
        problems += error.problems
    tables = {}
    files = (
        {}
        if described is None
        else {name: Path(costs) / f"{name}.jsonl" for name in described.accelerator.distinct_cores}
    )
    for name, file in files.items():
        try:
            tables[name] = read_core_costs(file)
        except InputError as error:
            problems += error.problems
    if described is not None and graph is not None:
        made_by = read_artifact(graph_file)
        wrong = graph_problems(graph, described.workload, str(graph_file))
        problems += wrong or graph_origin_problems(made_by.provenance, described, graph, str(graph_file))
        for name in () if wrong else tables:
            expected = cost_inputs(described, name, graph, made_by.digest)
            problems += origin_problems(read_artifact(files[name]).provenance, expected, str(files[name]), "cost")
    if problems:
        raise InputError(problems)
    assert described is not None
    assert graph is not None
    return CostedCnProblem(described, graph, tables)


def graph_problems(graph: "CnGraph", workload: Workload, file: str = "") -> list[Problem]:
    """Whether a CN graph is of a workload: the same layers with the same loops."""
    known = [(node.node_id, node.name, node.layer.loop_sizes) for node in workload.nodes if node.layer is not None]
    found = [(layer.node_id, layer.name, layer.loop_sizes) for layer in graph.layers]
    if known == found:
        return []
    name = next((layer[1] for layer, other in zip(found, known, strict=False) if layer != other), "")
    message = f"the CN graph is of another network than {workload.name}"
    return [Problem(message, file, path=name, value=f"{len(found)} layers", allowed=f"the {len(known)} layers of it")]
