"""Preflight: numbers of tiles against the layers they are for.

A number larger than the dimension means as many tiles as it is long, which a mapping for many layers may well say. A
number larger than in all layers it is for is a slip.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Table

from tilewright.errors import KeyPath, Problem, Problems
from tilewright.fusion.hint_loops import BY_LAYER, HintLoop, HintLoopOptions, hints_for
from tilewright.fusion.mapped_tiling import dimension_names
from tilewright.fusion.tiling_options import TilingOptions
from tilewright.hardware.dataflow_checks import is_usual_loop
from tilewright.mapping.constraints import ALL_TILES, Mapping, MappingConstraints, TilingEntry
from tilewright.stages.preflight_cores import layers_of_entries
from tilewright.workload.graph import Workload, WorkloadNode


def check_tiles(problems: Problems, workload: Workload, mapping: Mapping) -> None:
    """Record tilings larger than every layer of their entry, and those for dimensions that none of them has.

    The latter are noted where the entry is for kinds of layers, in a file that may serve other networks too; an entry
    with the name of a layer means that layer.
    """
    layers = layers_of_entries(workload, mapping)
    for index, (entry, nodes) in enumerate(zip(mapping.entries, layers, strict=True)):
        for key in ("intra_core_tiling", "inter_core_tiling"):
            for position, loop in enumerate(getattr(entry, key)):
                sizes = _sizes(entry, nodes, loop.dimension)
                path = (index, key, position)
                # What no usual layer has is told as a problem.
                if nodes and not sizes and is_usual_loop(loop.dimension):
                    _tell_missing_dimension(problems, path, entry, nodes, loop)
                elif sizes and isinstance(loop.tiles, int) and loop.tiles > max(sizes):
                    message = _too_many(loop.dimension, sizes)
                    value, allowed = f"{loop.dimension}, {loop.tiles}", f"1 to {max(sizes)}, or {ALL_TILES}"
                    problems.at(path, message, value, allowed)


def _tell_missing_dimension(
    problems: Problems,
    path: KeyPath,
    entry: MappingConstraints,
    nodes: Sequence[WorkloadNode],
    loop: TilingEntry,
) -> None:
    message = f"no layer that this entry is for has {loop.dimension}"
    layers = [node.layer for node in nodes if node.layer is not None]
    if any(layer.name == entry.name for layer in layers):
        known = dict.fromkeys(name for layer in layers for name in dimension_names(layer, entry))
        problems.at(path, message, f"{loop.dimension}, {loop.tiles}", ", ".join(known))
    else:
        problems.notice(path, message)


def check_hint_loops(problems: Problems, workload: Workload, options: TilingOptions) -> None:
    """Record hint loops that are larger than every layer they are for."""
    hints = options.hints()
    nodes = [node for node in workload.nodes if node.layer is not None]
    for path, loops, members in _loops_by_layers(hints, nodes):
        for position, (name, size) in enumerate(loops):
            sizes = [size_of[name.upper()] for size_of in _sizes_of(members) if name.upper() in size_of]
            if sizes and size != ALL_TILES and int(size) > max(sizes):
                message, allowed = _too_many(name, sizes), f"1 to {max(sizes)}, or {ALL_TILES}"
                where = f"{path}[{position}]"
                problems.found.append(Problem(message, path=where, value=f"{name}, {size}", allowed=allowed))


def _loops_by_layers(
    hints: HintLoopOptions, nodes: Sequence[WorkloadNode]
) -> Iterator[tuple[str, Sequence[HintLoop], Sequence[WorkloadNode]]]:
    """(path, loops, the nodes of the layers that get them)."""
    loops = hints.hint_loops
    if hints.cn_define_mode != BY_LAYER:
        yield "hint_loops", hints_for(nodes[0], hints) if nodes else (), nodes
    elif isinstance(loops, Table):
        for ids, found in loops.items():
            yield f"hint_loops[{ids}]", found, [node for node in nodes if node.node_id in ids]
    else:
        for place, listed in enumerate(loops):
            members = [node for node in nodes if sum(cut <= node.node_id for cut in hints.layer_cutoffs) == place]
            yield f"hint_loops[{place}]", listed, members  # type: ignore[misc]


def _sizes_of(nodes: Sequence[WorkloadNode]) -> list[dict[str, int]]:
    return [node.layer.size_of for node in nodes if node.layer is not None]


def _sizes(entry: MappingConstraints, nodes: Sequence[WorkloadNode], dimension: str) -> list[int]:
    """Sizes of a dimension, as the entry calls it, of the layers that have it."""
    sizes = []
    for node in nodes:
        assert node.layer is not None
        name = dimension_names(node.layer, entry).get(dimension)
        if name is not None:
            sizes.append(node.layer.size_of[name])
    return sizes


def _too_many(dimension: str, sizes: Sequence[int]) -> str:
    if len(sizes) == 1:
        return f"more tiles than the layer has {dimension}"
    return f"more tiles than any of the {len(sizes)} layers has {dimension}"
