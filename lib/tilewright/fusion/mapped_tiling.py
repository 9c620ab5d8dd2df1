"""Tiling by the mapping file: `intra_core_tiling`, `inter_core_tiling` and layer stacks, the dialect of 2025."""

from collections.abc import Hashable, Mapping, Sequence

from tilewright.errors import InputError, Problem
from tilewright.fusion.tiling import LayerTiling, Tiling, counted_loops, layer_tiling
from tilewright.mapping.constraints import WILDCARD, MappingConstraints, TilingEntry
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import OUTPUT, Layer

_DEFAULT_TILES = 2
_IMAGE_ROWS, _MATRIX_ROWS, _CHANNELS = "OY", "D", "K"
_IMAGE_RANK = 4


def mapped_tiling(
    workload: Workload, entry_of: Mapping[int, MappingConstraints], stacks: Sequence[Sequence[int]]
) -> Tiling:
    """The tiling of every layer of a network by its mapping entry (by node id). Raises InputError with all problems.

    Tiles for several cores are the inner loops: CNs 0, 1, ... are the parts of the first tile, one a group. A layer
    that is alone in its stack is not cut into tiles that run one after the other.
    """
    fused = {node_id for stack in stacks if len(stack) > 1 for node_id in stack}
    tilings: list[LayerTiling] = []
    notices: list[str] = []
    problems: list[Problem] = []
    known: dict[Hashable, LayerTiling] = {}
    """Tilings without remarks; networks repeat their layers."""
    for node in workload.nodes:
        if node.layer is None:
            continue
        entry = entry_of[node.node_id]
        key = id(entry), node.layer.loop_sizes, node.layer.operand_dimensions, node.node_id in fused
        alike = known.get(key)
        if alike is None:
            tiling, remarks = _layer_tiling(node, entry, node.node_id in fused, problems)
            notices += remarks
            if not remarks:
                known[key] = tiling
        else:
            tiling = LayerTiling(node.node_id, alike.loops, alike.group_loops)
        tilings.append(tiling)
        problems += _core_problems(node, entry, tiling)
    if problems:
        raise InputError(dict.fromkeys(problems))
    return Tiling(tuple(tilings), tuple(tuple(stack) for stack in stacks), tuple(dict.fromkeys(notices)))


def _layer_tiling(
    node: WorkloadNode, entry: MappingConstraints, is_fused: bool, problems: list[Problem]
) -> tuple[LayerTiling, list[str]]:
    """The tiling of a layer by its entry, and remarks."""
    assert node.layer is not None
    names = dimension_names(node.layer, entry)
    between, remarks = _tiles(node.layer, names, entry, entry.inter_core_tiling, problems)
    within, more = _tiles(node.layer, names, entry, entry.intra_core_tiling, problems)
    if not within:
        within = _default_tiles(node.layer)
    counts = [*between, *(within if is_fused else [])]
    loops, others = counted_loops(node.layer, counts)
    in_group = [place < len(between) for place in range(len(counts))]
    return layer_tiling(node.node_id, loops, in_group), [*remarks, *more, *others]


def dimension_names(layer: Layer, entry: MappingConstraints) -> dict[str, str]:
    """What a mapping file may call the dimensions of a layer -> dimension.

    `layer_dimension_names` where given. Elementwise layers of four axes answer to H and D (axes 1 and 2) besides: the
    names B, H, D, K that the reference gives to any tensor. Their last axis is not K: that is the channels here.
    """
    names = {name: name for name, _ in layer.loop_sizes}
    output = layer.operand_dimensions[0][1]
    if len(output) == _IMAGE_RANK and _is_elementwise(layer, output):
        names = {"H": output[1], "D": output[2]} | names
    if entry.layer_dimension_names:
        names |= dict(zip(entry.layer_dimension_names, layer.size_of, strict=False))
    return names


def _is_elementwise(layer: Layer, output: tuple[str, ...]) -> bool:
    """Whether the axes of the output are the loops, and no operand has others."""
    axes = set(output)
    return axes == set(layer.size_of) and all(axes.issuperset(operand) for _, operand in layer.operand_dimensions)


def _tiles(
    layer: Layer,
    names: dict[str, str],
    entry: MappingConstraints,
    written: Sequence[TilingEntry],
    problems: list[Problem],
) -> tuple[list[tuple[str, int | str]], list[str]]:
    """(dimension, number of tiles) of the entries for dimensions that the layer has, and remarks.

    `names` are those of `dimension_names`.
    """
    found: list[tuple[str, int | str]] = []
    remarks = []
    for loop in written:
        if loop.dimension not in names:
            continue
        dimension = names[loop.dimension]
        if loop.tiles == WILDCARD:
            if not entry.core_allocation:
                message = "`*` is one tile for each core of core_allocation, which is not given"
                problems.append(Problem(message, path=entry.name, value=f"{loop.dimension}, *"))
            tiles: int | str = max(1, len(entry.core_allocation))
            remarks.append(f"{layer.name}: {dimension}, * is {tiles} tiles, one for each core")
        else:
            tiles = loop.tiles
        found.append((dimension, tiles))
    return found, remarks


def _default_tiles(layer: Layer) -> list[tuple[str, int | str]]:
    """Two tiles of image rows, else of matrix rows, else of channels, else of the first dimension but B and G."""
    others = [dimension for dimension in layer.size_of if dimension not in ("B", "G")]
    for dimension in (_IMAGE_ROWS, _MATRIX_ROWS, _CHANNELS, *others):
        if layer.size_of.get(dimension, 1) > 1 and dimension in dict(layer.operand_dimensions)[OUTPUT]:
            return [(dimension, _DEFAULT_TILES)]
    return []


def fixed_cores_mismatch(node: WorkloadNode, entry: MappingConstraints, group_count: int) -> str:
    """How the fixed cores of a layer are not one for each group, nor one for all; '' where nothing is wrong."""
    listed = len(entry.core_allocation)
    if not entry.core_allocation_is_fixed or listed in (1, group_count):
        return ""
    return f"fixes {listed} cores for the {group_count} groups of {node.name}"


def _core_problems(node: WorkloadNode, entry: MappingConstraints, tiling: LayerTiling) -> list[Problem]:
    message = fixed_cores_mismatch(node, entry, tiling.group_count)
    return [Problem(message, path=entry.name, value=str(list(entry.core_allocation)))] if message else []
