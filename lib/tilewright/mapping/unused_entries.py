"""Parts of a mapping file without effect on a network and its cores: entries, loop dimensions, array dimensions, and
keys that another key overrules.

Entries for an operator type or for a kind of layers are meant for any network. Such entries are not reported if this
network has no such layer.
"""

from collections.abc import Iterable, Sequence

from tilewright.base.errors import Problems, nearest_name
from tilewright.base.operator_groups import KNOWN_TYPES, bare_type
from tilewright.hardware.core import Core
from tilewright.hardware.yaml_checks import is_usual_loop
from tilewright.mapping.constraints import BETWEEN_CORES, DEFAULT, LAYER_KINDS, Mapping, MappingConstraints
from tilewright.mapping.control_rules import unrolling_fault
from tilewright.mapping.file_checks import named_loops
from tilewright.mapping.runnable import can_run
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer, is_sum_name


def note_unused(
    problems: Problems, mapping: Mapping, workload: Workload, on_one_core: bool = False, core: Core | None = None
) -> None:
    """Add a notice for each part of a mapping that has no effect. `problems` belongs to the document of the mapping.

    If `on_one_core` is true, `note_unused_on` has already added the notices for the fields that need several cores. If
    `core` is given, loops of an entry are compared only with the loops of the layers that this core runs.
    """
    nodes = [node for node in workload.nodes if core is None or can_run(core, node)]
    layers = [node.layer for node in nodes if node.layer is not None]
    note_unused_entries(problems, mapping, workload)
    for index, entry in enumerate(mapping.entries):
        own = [layer for layer in layers if mapping.constraints_for(layer) is entry]
        part = problems.within(index)
        if entry.part_of_entry and is_sum_name(entry.name):
            continue  # its choices are those of an entry for other layers
        if own:
            _note_loops(part, entry, own)
        elif is_for_any_network(entry.name):
            _note_odd_loops(part, entry, workload, layers)
        _note_overruled(part, entry, on_one_core)


def note_unusual_loops(problems: Problems, mapping: Mapping) -> None:
    """Add a notice for each loop dimension that only a layer of a workload file with an equation of its own can have.
    This check needs no network; `note_unused` compares the loops with those of a network.
    """
    for index, entry in enumerate(mapping.entries):
        for path, dimension in named_loops(entry):
            if not is_usual_loop(dimension):
                message = f"no ONNX network has a loop dimension {dimension}; a layer of a workload file can have one"
                problems.notice((index, *path), message)


def note_overruled(problems: Problems, mapping: Mapping) -> None:
    """Add a notice for each key that has no effect, because another key of the same entry overrules it. The notices do
    not depend on the network and the cores.
    """
    for index, entry in enumerate(mapping.entries):
        _note_overruled(problems.within(index), entry, on_one_core=True)


def note_unused_on(problems: Problems, mapping: Mapping, workload: Workload | None, cores: Sequence[Core]) -> None:
    """Add notices for the parts of a mapping that have no effect on `cores`. If there are several cores, the function
    assumes that each of them can run every layer.

    If there is at most one core, each field that needs several cores gets a notice. If the network is given, there are
    two further kinds of notices: parts without effect on any layer of the network, and hints for array dimensions that
    no core has.
    """
    if len(cores) <= 1:
        _note_between_cores(problems, mapping)
    if workload is None:
        return
    note_unused(problems, mapping, workload, len(cores) <= 1, cores[0] if len(cores) == 1 else None)
    sides = [name for core in cores for name, _ in core.operational_array.dimensions]
    for index, entry in enumerate(mapping.entries) if cores else ():
        note_unused_sides(problems, index, entry, sides)
        for core in cores if len(cores) == 1 else ():
            note_hints_that_cannot_be(problems, index, entry, core)


def _note_between_cores(problems: Problems, mapping: Mapping) -> None:
    """Add a notice for each field that has an effect only on several cores. The mapping belongs to a run on a single
    core.
    """
    plain = MappingConstraints("")
    for index, entry in enumerate(mapping.entries):
        for key in BETWEEN_CORES:
            if getattr(entry, key) != getattr(plain, key):
                problems.unused((index, key), "has no effect on a single core")


def note_unused_sides(problems: Problems, index: int, entry: MappingConstraints, sides: Iterable[str]) -> None:
    """Add a notice for each hint whose array dimension is not in `sides`. `sides` has the array dimensions of the cores
    that can run the layers of the entry.
    """
    known = list(sides)
    for side, _ in entry.spatial_mapping_hint:
        if side not in known:
            place = (index, "spatial_mapping_hint", side)
            near = nearest_name(side, known)
            problems.unused(
                place, "has no effect: no core that can run these layers has this array dimension", nearest=near
            )


def note_hints_that_cannot_be(problems: Problems, index: int, entry: MappingConstraints, core: Core) -> None:
    """Add a notice for each hinted loop dimension that the array of the only core cannot unroll."""
    for side, names in entry.spatial_mapping_hint:
        if broken := unrolling_fault(core, side, [(name, 2) for name in names]):
            problems.unused((index, "spatial_mapping_hint", side), f"has no effect: {broken}")


def note_unused_entries(problems: Problems, mapping: Mapping, workload: Workload) -> None:
    """Add a notice for each entry that selects no layer, and for each entry that other entries overrule for all its
    layers.

    An entry that can be meant for another network (`is_for_any_network`) gets no notice. `problems` belongs to the
    document of the mapping.
    """
    selected: set[int] = set()
    used: set[int] = set()
    for node in workload.nodes:
        if node.layer is not None:
            entries = [id(entry) for entry in mapping.entries_for(node.layer)]
            selected.update(entries)
            used.update(entries[:1])
    # A node without a layer in this model profile can have one in another.
    names = {node.name for node in workload.nodes}
    for index, entry in enumerate(mapping.entries):
        is_cut = entry.name in mapping.cut_entries
        if id(entry) in used or is_cut or entry.part_of_entry or is_for_any_network(entry.name):
            continue
        if id(entry) in selected:
            problems.unused(
                (index, "name"), "has no effect: other entries have priority for all layers that this entry selects"
            )
        elif entry.name not in names:
            near = "" if any(sign in entry.name for sign in "*?[") else _nearest(entry.name, workload)
            problems.unused((index, "name"), f"selects no layer of {workload.name}", nearest=near)


def is_for_any_network(name: str) -> bool:
    """True if the entry is the default, or if its name is an operator type or a kind of layers. Such an entry can be
    meant for another network."""
    return name == DEFAULT or (name.startswith("@") and name[1:] in LAYER_KINDS) or bare_type(name) in KNOWN_TYPES


def _nearest(name: str, workload: Workload) -> str:
    """Known name that is closest in spelling to `name`; '' if no name is close. `name` is a selector of the mapping
    file that selects no layer. The known names are `default`, the names and operator types of the layers, and the names
    and types of operators that consist of several layers.
    """
    layers = [node.layer for node in workload.nodes if node.layer is not None]
    whole = (name for layer in layers for name in layer.part_of)
    own = [*(layer.name for layer in layers), *(layer.operator_type for layer in layers)]
    return nearest_name(name, list(dict.fromkeys([*own, *whole, DEFAULT])))


def _note_loops(problems: Problems, entry: MappingConstraints, layers: list[Layer]) -> None:
    """Add a notice for each loop dimension that an entry names, but that no layer of the entry has. `layers` are the
    layers of the entry. A dimension with an unusual name gets no notice, because other checks report it as a problem.
    """
    known = dict.fromkeys(dimension for layer in layers for dimension in layer.size_of)
    for path, dimension in named_loops(entry):
        if dimension not in known and is_usual_loop(dimension):  # all other dimensions are reported as problems
            near = nearest_name(dimension, list(known))
            problems.unused(path, f"no layer that this entry selects has the loop dimension {dimension}", nearest=near)


def _note_odd_loops(problems: Problems, entry: MappingConstraints, workload: Workload, layers: list[Layer]) -> None:
    """Add a notice for each unusual loop dimension in `entry` that no layer of the network has. `entry` selects no
    layer of this network, but can be meant for another network. `layers` has all layers of this network."""
    known = list(dict.fromkeys(dimension for layer in layers for dimension in layer.size_of))
    for path, dimension in named_loops(entry):
        if dimension not in known and not is_usual_loop(dimension):
            near = nearest_name(dimension, known)
            problems.unused(path, f"no layer of {workload.name} has this loop dimension", dimension, near)


def _note_overruled(problems: Problems, entry: MappingConstraints, on_one_core: bool) -> None:
    """Add a notice for each hint for an array dimension that the same entry fixes. If `on_one_core` is false, also add
    a notice for each of the keys `layer_dimension_names` and `tiles_if_alone` that no tiling of the entry uses.
    """
    fixed = dict(entry.spatial_mapping)
    for side, _ in entry.spatial_mapping_hint:
        if side in fixed:
            problems.unused(("spatial_mapping_hint", side), "has no effect: spatial_mapping fixes this array dimension")
    if entry.tiles_if_alone and not (entry.intra_core_tiling or on_one_core):
        problems.unused(("tiles_if_alone",), "has no effect: the entry has no intra_core_tiling")
    tiles = entry.intra_core_tiling or entry.inter_core_tiling
    if entry.layer_dimension_names and not (tiles or on_one_core):
        problems.unused(("layer_dimension_names",), "has no effect: the entry has no tiling that could use the names")
