"""Entries of a mapping file that select no layer of the network: slips of the pen, mostly."""

from tilewright.errors import Problems, nearest_name
from tilewright.mapping.constraints import DEFAULT, LAYER_KINDS, Mapping
from tilewright.operator_groups import KNOWN_TYPES, bare_type
from tilewright.workload.graph import Workload


def note_unused_entries(problems: Problems, mapping: Mapping, workload: Workload) -> None:
    """Note entries that are for no layer, unless they are for operators that other networks may have, and those that
    others come before in every layer. `problems` are of the document of the mapping."""
    selected: set[int] = set()
    used: set[int] = set()
    for node in workload.nodes:
        if node.layer is not None:
            entries = [id(entry) for entry in mapping.entries_for(node.layer)]
            selected.update(entries)
            used.update(entries[:1])
    # A node without a layer in this model profile has one in others.
    names = {node.name for node in workload.nodes}
    for index, entry in enumerate(mapping.entries):
        if id(entry) in used or is_for_any_network(entry.name):
            continue
        if id(entry) in selected:
            problems.notice((index, "name"), "plays no part: other entries come first for all layers that it selects")
        elif entry.name not in names:
            near = "" if any(sign in entry.name for sign in "*?[") else _nearest(entry.name, workload)
            meant = f" (did you mean '{near}'?)" if near else ""
            problems.notice((index, "name"), f"selects no layer of {workload.name}{meant}")


def is_for_any_network(name: str) -> bool:
    """Whether an entry is the default, or for a kind of layers or an operator, which other networks may have."""
    return name == DEFAULT or (name.startswith("@") and name[1:] in LAYER_KINDS) or bare_type(name) in KNOWN_TYPES


def _nearest(name: str, workload: Workload) -> str:
    """The layer or operator type that was meant."""
    layers = [node.layer for node in workload.nodes if node.layer is not None]
    known = dict.fromkeys([*(layer.name for layer in layers), *(layer.operator_type for layer in layers), DEFAULT])
    return nearest_name(name, list(known))
