"""Whether the artifacts of a run were made of what is given now: an artifact of something else gives wrong figures.

The provenance of each has digests of what it was made of. Of the mapping file only that counts which the artifact
depends on: the mapping file that `tilewright allocate` writes fixes cores, and fits the same CN graph and cost tables.
"""

from collections.abc import Mapping as Table
from typing import TYPE_CHECKING, Any

from tilewright.artifacts.codec import encode
from tilewright.artifacts.digests import content_digest
from tilewright.errors import InputError, Problem
from tilewright.stages.system_problem import SystemProblem, input_digests

if TYPE_CHECKING:
    from tilewright.fusion.graph import CnGraph
    from tilewright.fusion.tiling_options import TilingOptions

_TELL = {
    "core": "another core file, or another use of it",
    "off_chip": "another off-chip core",
    "cores": "other cores",
    "hardware": "another accelerator",
    "workload": "another network",
    "mapping": "another mapping file",
    "cn_graph": "another CN graph",
    "classes": "another mapping file",
}
"""Input in the provenance -> what is told where it differs."""


def cost_inputs(described: SystemProblem, core: str, graph: "CnGraph", graph_digest: str) -> dict[str, str]:
    """Digests of what the cost table of a core file depends on: of the accelerator the core, what its places are for,
    and the off-chip core; of the mapping file what it says of each class of CNs on one core."""
    from tilewright.scheduling.cost_classes import cost_classes

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
        "workload": content_digest(encode(described.workload)),
        "classes": content_digest(encode(cost_classes(graph, described.workload, described.mapping).classes)),
    }


def origin_problems(
    provenance: Table[str, Any], expected: Table[str, str], file: str, verb: str, keys: tuple[str, ...] = ()
) -> list[Problem]:
    """A problem if an artifact was made of something else than expected; `keys` are those that count, default all."""
    inputs = provenance.get("inputs", {})
    wrong = [key for key in keys or expected if inputs.get(key) != expected[key]]
    if not wrong:
        return []
    what = ", ".join(dict.fromkeys(_TELL.get(key, f"other costs of {key.removeprefix('cost/')}") for key in wrong))
    return [Problem(f"was made of {what}; run `tilewright {verb}` again", file)]


def graph_origin_problems(
    provenance: Table[str, Any], described: SystemProblem, graph: "CnGraph", file: str
) -> list[Problem]:
    """Whether a CN graph is of the descriptions. With another mapping file or other memories it is if they cut the
    network in the same way."""
    expected = input_digests(described)
    problems = origin_problems(provenance, expected, file, "cns", ("workload",))
    if problems or all(provenance.get("inputs", {}).get(key) == value for key, value in expected.items()):
        return problems
    options = stated_tiling(provenance.get("options", {}))
    if options is not None and _is_cut_so(described, graph, options):
        return []
    return origin_problems(provenance, expected, file, "cns")


def stated_tiling(stated: Table[str, Any]) -> "TilingOptions | None":
    """The options that `TilingOptions.stated` told; None if the network was cut by other means."""
    from dataclasses import fields

    from tilewright.fusion.tiling_options import TilingOptions

    if set(stated) != {field.name for field in fields(TilingOptions)}:
        return None
    values = dict(stated)
    hints = values["hint_loops"] or []
    if hints and all(len(pair) == 2 and pair[0] and isinstance(pair[0][0], int) for pair in hints):
        values["hint_loops"] = {tuple(members): loops for members, loops in hints}
    return TilingOptions(**values)


def _is_cut_so(described: SystemProblem, graph: "CnGraph", options: "TilingOptions") -> bool:
    """Whether descriptions and options give the tiling and the stacks of a CN graph."""
    from tilewright.fusion.tiling_options import network_tiling

    try:
        tiling = network_tiling(described.workload, described.mapping, described.accelerator, options)
    except InputError:
        return False
    node_ids = [layer.node_id for layer in graph.layers]
    stacks = tuple(tuple(node_ids[layer] for layer in stack) for stack in graph.stacks)
    same_layers = all(tiling.of_node.get(layer.node_id) == layer.tiling for layer in graph.layers)
    return same_layers and tuple(tuple(stack) for stack in tiling.stacks) == stacks
