"""What the verbs of the multi-core flow read: descriptions, the CN graph of a run, the cost tables of its cores.

Everything that is missing or wrong is told at once.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.artifacts.envelope import read_artifact
from tilewright.errors import Problem, Problems
from tilewright.sources import AcceleratorSource, MappingSource, WorkloadSource
from tilewright.stages.descriptions import Descriptions
from tilewright.stages.multi_items import CostedCnProblem
from tilewright.stages.origins import cost_inputs, graph_origin_problems, origin_problems
from tilewright.stages.preflight_needs import offchip_problems, prefetch_problems
from tilewright.stages.system_problem import SystemProblem, read_system_problem
from tilewright.steps import CN_COLUMNS, CN_GRAPH, cost_table
from tilewright.workload.graph import Workload
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.fusion.graph import CnGraph


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
    operands_to_prefetch: Sequence[str] = (),
) -> CostedCnProblem:
    """Descriptions, the CN graph in the folder `cns`, and a cost table for each core file in the folder `costs`.

    Raises InputError with everything that is wrong, missing or damaged, or that does not fit together, also with
    operands to prefetch that no layer reads.
    """
    from tilewright.fusion.artifact import read_cn_graph
    from tilewright.scheduling.core_costs import read_core_costs

    told = Problems()
    graph_file = Path(cns) / CN_GRAPH
    described = told.attempt(read_descriptions, hardware, workload, mapping, network_options)
    graph = told.attempt(read_cn_graph, graph_file, Path(cns) / CN_COLUMNS)
    names = [] if described is None else list(described.accelerator.distinct_cores)
    files = {name: cost_table(costs, name) for name in names}
    read = {name: told.attempt(read_core_costs, file) for name, file in files.items()}
    tables = {name: table for name, table in read.items() if table is not None}
    if described is not None:
        told.found += offchip_problems(described)
        told.found += prefetch_problems(described.workload, operands_to_prefetch)
    if described is not None and graph is not None:
        made_by = read_artifact(graph_file)
        wrong = graph_problems(graph, described.workload, str(graph_file))
        told.found += wrong or graph_origin_problems(made_by.provenance, described, graph, str(graph_file))
        for name in () if wrong else tables:
            expected = cost_inputs(described, name, graph, made_by.digest)
            told.found += origin_problems(read_artifact(files[name]).provenance, expected, str(files[name]), "cost")
    told.found += _unlike_models([files[name] for name in tables])
    told.finish()
    assert described is not None
    assert graph is not None
    return CostedCnProblem(described, graph, tables)


def _unlike_models(tables: Sequence[Path]) -> list[Problem]:
    """A problem for each cost table that is of another cost model than the first one."""
    models = {file: str(read_artifact(file).provenance.get("options", {}).get("model", "")) for file in tables}
    first = models[tables[0]] if tables else ""
    message = "is of another cost model than the other tables; run `tilewright cost` again"
    return [Problem(message, str(file), value=model, allowed=first) for file, model in models.items() if model != first]


def graph_problems(graph: "CnGraph", workload: Workload, file: str = "") -> list[Problem]:
    """Whether a CN graph is of a workload: the same layers with the same loops."""
    known = [(node.node_id, node.name, node.layer.loop_sizes) for node in workload.nodes if node.layer is not None]
    found = [(layer.node_id, layer.name, layer.loop_sizes) for layer in graph.layers]
    if known == found:
        return []
    name = next((layer[1] for layer, other in zip(found, known, strict=False) if layer != other), "")
    message = f"the CN graph is of another network than {workload.name}"
    return [Problem(message, file, path=name, value=f"{len(found)} layers", allowed=f"the {len(known)} layers of it")]
