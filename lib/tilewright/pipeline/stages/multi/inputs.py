"""Inputs of the multi-core flow, with a check that each artifact was made from the given input files.

All missing and wrong inputs are reported at once.

An artifact that was made from other input files would give wrong results. Therefore the provenance of an artifact has
digests of its inputs.

Another mapping file is accepted if the differences do not affect the artifact. For example, `tilewright allocate`
writes a mapping file that fixes the cores. CN graph and cost tables do not depend on these cores, so they also match
this file.
"""

from collections.abc import Mapping as Table
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.digests import content_digest
from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.errors import InputError, Problem, Problems, Unused
from tilewright.base.steps import CN_COLUMNS, CN_GRAPH, cost_table
from tilewright.base.unused import UNUSED, noted_rows, unused_in
from tilewright.pipeline.sources import FilePath
from tilewright.pipeline.stages.descriptions import Descriptions
from tilewright.pipeline.stages.multi.items import (
    REDUCTIONS,
    CnProblem,
    CostedCnProblem,
    SystemProblem,
    input_digests,
    read_system_problem,
)
from tilewright.pipeline.stages.preflight.needs import offchip_problems, prefetch_problems
from tilewright.workload.graph import Workload
from tilewright.workload.network_identity import identity_of_network

if TYPE_CHECKING:
    from tilewright.multicore.nodes.graph import CnGraph
    from tilewright.multicore.nodes.tiling_options import TilingOptions


_TELL = {
    "core": "another core file, or for other core roles",
    "off_chip": "another off-chip core",
    "cores": "other cores",
    "hardware": "another accelerator",
    "workload": "another network",
    "mapping": "another mapping file",
    REDUCTIONS: "another mapping file",
    "cn_graph": "another CN graph",
    "classes": "another mapping file",
}
"""Phrases that follow `was made from` in messages about an artifact. The key is the kind of input in which the artifact
differs from the run.
"""


def cost_inputs(described: SystemProblem, core: str, graph: "CnGraph", graph_digest: str) -> dict[str, str]:
    """Digests of everything from which the cost table of one core file is computed.

    The inputs are the core file, the roles of the cores with this file, the off-chip core, the CN graph, the network,
    and the constraints of the mapping file for each class of CNs.
    """
    from tilewright.multicore.scheduling.cost_classes import cost_classes

    accelerator = described.accelerator
    places = [
        [place.core_id, place.role, place.operator_types]
        for place in accelerator.places
        if place.file_name == core and place.core_id != accelerator.offchip_core_id
    ]
    off_chip = accelerator.offchip_core_id
    return {
        "core": content_digest([encode(accelerator.distinct_cores[core]), encode(places)]),
        "off_chip": content_digest(None if off_chip is None else encode(accelerator.core_of[off_chip])),
        "cn_graph": graph_digest,
        "workload": identity_of_network(described.workload_as_read),
        "classes": content_digest(encode(cost_classes(graph, described.workload, described.mapping).classes)),
    }


def origin_problems(
    provenance: Table[str, Any], expected: Table[str, str], file: str, verb: str, keys: tuple[str, ...] = ()
) -> list[Problem]:
    """List with one problem if the inputs of an artifact differ from the expected inputs; otherwise []. `keys` names
    the inputs to be compared (default: all inputs).
    """
    inputs = provenance.get("inputs", {})
    wrong = [key for key in keys or expected if inputs.get(key) != expected.get(key)]
    if not wrong:
        return []
    what = ", ".join(dict.fromkeys(_TELL.get(key, f"other costs of {key.removeprefix('cost/')}") for key in wrong))
    return [Problem(f"was made from {what}; run `tilewright {verb}` again", file)]


def graph_origin_problems(
    provenance: Table[str, Any], described: SystemProblem, graph: "CnGraph", file: str
) -> list[Problem]:
    """List with one problem if a CN graph was made from other input files; otherwise []. Other cores or another mapping
    file are accepted if they give the tiles and stacks that the CN graph has.
    """
    expected = input_digests(described)
    problems = origin_problems(provenance, expected, file, "cns", ("workload", REDUCTIONS))
    if problems or all(provenance.get("inputs", {}).get(key) == value for key, value in expected.items()):
        return problems
    options = stated_tiling(provenance.get("options", {}))
    if options is not None and _is_cut_so(described, graph, options):
        return []
    return origin_problems(provenance, expected, file, "cns")


def stated_tiling(stated: Table[str, Any]) -> "TilingOptions | None":
    """Tiling options made from a table `stated` that `TilingOptions.stated` returned; None if the keys of `stated` are
    not exactly the names of the tiling options.
    """
    from dataclasses import fields

    from tilewright.multicore.nodes.tiling_options import TilingOptions

    if set(stated) != {field.name for field in fields(TilingOptions)}:
        return None
    values = dict(stated)
    hints = values["hint_loops"] or []
    if hints and all(len(pair) == 2 and pair[0] and isinstance(pair[0][0], int) for pair in hints):
        values["hint_loops"] = {tuple(members): loops for members, loops in hints}
    return TilingOptions(**values)


def _is_cut_so(described: SystemProblem, graph: "CnGraph", options: "TilingOptions") -> bool:
    """True if the input files and the options give the tiling and the stacks that the CN graph has."""
    from tilewright.multicore.nodes.tiling_options import network_tiling

    try:
        tiling = network_tiling(described.workload, described.mapping, described.accelerator, options)
    except InputError:
        return False
    node_ids = [layer.node_id for layer in graph.layers]
    stacks = tuple(tuple(node_ids[layer] for layer in stack) for stack in graph.stacks)
    same_layers = all(tiling.of_node.get(layer.node_id) == layer.tiling for layer in graph.layers)
    return same_layers and tuple(tuple(stack) for stack in tiling.stacks) == stacks


def read_cns(
    told: Problems, given: Descriptions | None, cns: "FilePath | CnProblem"
) -> "tuple[SystemProblem | None, CnGraph | None]":
    """Pair (network with cores and mapping, CN graph). Both are read from files, or taken from `cns` if this is an
    object in memory. A part with errors is None, and its errors are added to `told`.
    """
    from tilewright.multicore.nodes.graph import read_cn_graph

    if isinstance(cns, CnProblem):
        return cns.descriptions, cns.graph
    assert given is not None
    described = told.attempt(read_system_problem, given)
    return described, told.attempt(read_cn_graph, Path(cns) / CN_GRAPH, Path(cns) / CN_COLUMNS)


def graph_digest(cns: "FilePath | CnProblem | None", graph: "CnGraph") -> str:
    """Digest of the CN graph in the folder `cns`, or of the object `graph` if `cns` is not a folder. An object has the
    same digest as the artifact to which it is written.
    """
    from tilewright.multicore.nodes.graph import cn_graph_digest

    if isinstance(cns, str | PathLike):
        return read_artifact(Path(cns) / CN_GRAPH).digest
    return cn_graph_digest(graph)


def unused_of_graph(cns: "FilePath | CnProblem | None") -> list[Unused]:
    """Notices on inputs that have no effect on the tiling; [] if `cns` is None. The notices are taken from the CN graph
    in the folder `cns`, or from the object `cns`.
    """
    if isinstance(cns, str | PathLike):
        return noted_rows(read_artifact(Path(cns) / CN_GRAPH).provenance.get(UNUSED, ()))
    return [] if cns is None else unused_in(cns.notices)


def read_inputs(
    given: Descriptions | None,
    cns: "FilePath | CnProblem | None",
    costs: FilePath | CostedCnProblem,
    operands_to_prefetch: Sequence[str] = (),
) -> CostedCnProblem:
    """Input files, CN graph in the folder `cns`, and cost tables of all core files in the folder `costs`. CN graph and
    costs can also be objects in memory.

    Raises InputError with all errors at once: wrong, missing or damaged inputs, artifacts that were not made from the
    input files, and operands to prefetch that no layer reads.
    """
    told = Problems()
    if isinstance(costs, CostedCnProblem):
        told.found += prefetch_problems(costs.descriptions.workload, operands_to_prefetch)
        told.finish()
        return costs
    from tilewright.multicore.scheduling.core_costs import read_core_costs

    assert cns is not None
    described, graph = read_cns(told, given, cns)
    names = [] if described is None else list(described.accelerator.distinct_cores)
    files = {name: cost_table(Path(costs), name) for name in names}
    read = {name: told.attempt(read_core_costs, file) for name, file in files.items()}
    tables = {name: table for name, table in read.items() if table is not None}
    if described is not None:
        told.found += offchip_problems(described)
        told.found += prefetch_problems(described.workload, operands_to_prefetch)
    if described is not None and graph is not None:
        wrong = cns_problems(cns, described, graph)
        told.found += wrong
        digest = "" if wrong else graph_digest(cns, graph)
        for name in () if wrong else tables:
            expected = cost_inputs(described, name, graph, digest)
            told.found += origin_problems(read_artifact(files[name]).provenance, expected, str(files[name]), "cost")
    models = {files[name]: _model_of(files[name]) for name in tables}
    told.found += _unlike_models(models)
    told.finish()
    assert described is not None
    assert graph is not None
    return CostedCnProblem(described, graph, tables, ", ".join(dict.fromkeys(models.values())))


def cns_problems(cns: "FilePath | CnProblem", described: SystemProblem, graph: "CnGraph") -> list[Problem]:
    """List with one problem if a CN graph does not belong to the input files; otherwise []. A CN graph belongs to the
    input files if it has the layers of the network, and if `graph_origin_problems` finds no problem. The second
    condition applies only if `cns` is a folder.
    """
    if isinstance(cns, CnProblem):
        return graph_problems(graph, described.workload)
    file = str(Path(cns) / CN_GRAPH)
    if wrong := graph_problems(graph, described.workload, file):
        return wrong
    return graph_origin_problems(read_artifact(file).provenance, described, graph, file)


def _model_of(table: Path) -> str:
    """Name of the cost model with which a cost table was computed."""
    return str(read_artifact(table).provenance.get("options", {}).get("model", ""))


def _unlike_models(models: Table[Path, str]) -> list[Problem]:
    """Problems, one for each cost table with another cost model than the first table."""
    first = next(iter(models.values()), "")
    message = "was computed with another cost model than the other tables; run `tilewright cost` again"
    return [Problem(message, str(file), value=model, allowed=first) for file, model in models.items() if model != first]


def graph_problems(graph: "CnGraph", workload: Workload, file: str = "") -> list[Problem]:
    """List with one problem if a CN graph belongs to another workload; otherwise []. The CN graph and `workload` must
    have the same layers with the same loops.
    """
    known = [(node.node_id, node.name, node.layer.loop_sizes) for node in workload.nodes if node.layer is not None]
    found = [(layer.node_id, layer.name, layer.loop_sizes) for layer in graph.layers]
    if known == found:
        return []
    name = next((layer[1] for layer, other in zip(found, known, strict=False) if layer != other), "")
    message = f"the CN graph belongs to another network than {workload.name}"
    return [
        Problem(
            message, file, path=name, value=f"{len(found)} layers", allowed=f"the {len(known)} layers of this network"
        )
    ]
