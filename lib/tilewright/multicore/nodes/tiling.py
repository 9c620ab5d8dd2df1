"""Outer loops that cut layers into computation nodes, from `cn_define_mode` with hint loops or from mapping files.

Hint loops are the notation of Stream until 2024. Since 2025, Stream uses mapping files instead, with lists of the
layers to be fused (layer stacks). This module reads both notations, because both give the same kind of tilings and need
the same checks of loops.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from tilewright.base.errors import InputError, Problem, count_of, nearest_name
from tilewright.mapping.constraints import WILDCARD, MappingConstraints, TilingEntry
from tilewright.mapping.words import ALL_TILES
from tilewright.multicore.nodes.weights import network_input_operands, weight_operand, weight_tiles
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import OUTPUT, Layer


@dataclass(frozen=True)
class OuterLoop:
    """Loop around computation nodes. The loop cuts its range into `count` tiles. The range is a whole dimension. If
    another loop over this dimension is further out, the range is one tile of the outer loop.

    Tile v begins `v * tile_size` after the start of the range. The last tile is smaller if `tile_size` does not divide
    the range; the range is not padded.
    """

    dimension: str
    count: int
    tile_size: int


@dataclass(frozen=True)
class LayerTiling:
    """Outer loops of one layer."""

    node_id: int
    loops: tuple[OuterLoop, ...] = ()
    """Loops, innermost first. CNs are numbered so that the first loop changes fastest. If several loops cut one
    dimension, the innermost of them has the smallest tiles.
    """
    group_loops: tuple[int, ...] = ()
    """Loops that separate groups, as positions in `loops`. All CNs of a group run on one core."""

    @property
    def group_count(self) -> int:
        """Number of groups into which the loops divide the layer."""
        count = 1
        for place in self.group_loops:
            count *= self.loops[place].count
        return count


@dataclass(frozen=True)
class Tiling:
    """Outer loops and stacks of a network."""

    layers: tuple[LayerTiling, ...]
    """Tiling of each layer of the network, in the order of its nodes."""
    stacks: tuple[tuple[int, ...], ...]
    """Node ids of the layers of each stack, in the order of the stacks. The layers of a stack are fused."""
    notices: tuple[str, ...] = ()
    """Messages on valid input that was not applied exactly as it was written, such as fewer tiles than requested."""

    @cached_property
    def of_node(self) -> Mapping[int, LayerTiling]:
        """Tiling of each layer, by node id."""
        return {layer.node_id: layer for layer in self.layers}


def counted_loops(
    layer: Layer, counts: Sequence[tuple[str, int | str]]
) -> tuple[tuple[OuterLoop | None, ...], list[str]]:
    """Pair (outer loops, messages on loops that differ from the request).

    `counts` has pairs (dimension, number of tiles), innermost loop first. The number "all" means tiles of size 1. The
    tile size is the size of the dimension divided by the number of tiles, rounded up; the last tile can be smaller.
    Therefore there can be fewer tiles than requested: a dimension of 6 in 4 tiles gives 3 tiles of 2. A loop with only
    one tile is None in the result. If several loops cut one dimension, each inner loop cuts the tiles of the next outer
    loop.
    """
    spans = dict(layer.loop_sizes)
    loops: list[OuterLoop | None] = []
    notices = []
    for dimension, written in reversed(counts):
        span = spans[dimension]
        wanted = span if written == ALL_TILES else int(written)
        tile_size = -(-span // min(wanted, span))
        count = -(-span // tile_size)
        if wanted > span:
            notices.append(f"{layer.name}: {dimension} of size {span} is too small for {wanted} tiles")
        elif count < wanted:
            notices.append(
                f"{layer.name}: {dimension} of size {span} gives {count} tiles of size {tile_size}, not {wanted} tiles"
            )
        spans[dimension] = tile_size
        loops.append(OuterLoop(dimension, count, tile_size) if count > 1 else None)
    return tuple(reversed(loops)), notices[::-1]


def layer_tiling(node_id: int, loops: Sequence[OuterLoop | None], in_group: Sequence[bool]) -> LayerTiling:
    """Tiling of a layer by the entries of `loops` that are not None. `in_group` has one value for each entry of
    `loops`: True if the iterations of the loop belong to different groups of CNs.
    """
    kept: list[OuterLoop] = []
    places = []
    for loop, tells_groups in zip(loops, in_group, strict=True):
        if loop is not None:
            if tells_groups:
                places.append(len(kept))
            kept.append(loop)
    return LayerTiling(node_id, tuple(kept), tuple(places))


HintLoop = tuple[str, int | str]
"""Pair (loop dimension, number of iterations or "all")."""
HintLoops = Sequence[HintLoop] | Sequence[Sequence[HintLoop]] | Mapping[tuple[int, ...], Sequence[HintLoop]]
DefineMode = Literal[1, 2, 3, 4]
OUTER, INNER, BY_LAYER, SPLIT_WEIGHTS = MODES = get_args(DefineMode)
"""Values of `cn_define_mode`. OUTER: the hint loops are the outer loops, around the CNs. INNER: the hint loops are
inside the CNs. BY_LAYER: like OUTER, but with different loops for each set of layers. SPLIT_WEIGHTS: like OUTER, and
weights that are too large are split.
"""


@dataclass(frozen=True)
class HintLoopOptions:
    """Value of `cn_define_mode`, and the options that it uses."""

    cn_define_mode: int = OUTER
    hint_loops: HintLoops = ()
    """List of loops, innermost first. For example, [("OY", "all")] cuts each layer into lines. In mode 3, the value is
    a list of lists of loops, or a table: node ids of layers -> list of loops.
    """
    layer_cutoffs: tuple[int, ...] = ()
    """Node ids of layers in rising order, for mode 3 with a list of lists. Layers before the first id get the first
    list of loops. Layers from the first id on, but before the second id, get the second list, and so on.
    """
    weight_capacity_bits: Mapping[int, int] | None = None
    """Mode 4: bits that are available for the weights of a CN, by node id. Layers without an entry are not split."""


def hint_loop_tiling(workload: "Workload", options: HintLoopOptions) -> Tiling:
    """Tiling of every layer of a network. All layers form one stack, and CNs that use the same weights form a group.
    Raises InputError with all problems.
    """
    nodes = [node for node in workload.nodes if node.layer is not None]
    problems = hint_loop_problems(options, nodes)
    if problems:
        raise InputError(problems)
    tilings, notices = [], []
    for node in nodes:
        try:
            tiling, remarks = _layer_tiling(node, options, network_input_operands(node, workload))
        except InputError as error:
            problems += error.problems
            continue
        tilings.append(tiling)
        notices += remarks
    if problems:
        raise InputError(problems)
    return Tiling(tuple(tilings), (tuple(node.node_id for node in nodes),) if nodes else (), tuple(notices))


def _layer_tiling(
    node: "WorkloadNode", options: HintLoopOptions, inputs: frozenset[str]
) -> tuple[LayerTiling, list[str]]:
    """Pair (tiling of a layer by the loops of `options`, messages on loops that differ from the request). `inputs` has
    the operands of the layer that read inputs of the network.
    """
    layer = node.layer
    assert layer is not None
    hints = [(name.upper(), size) for name, size in hints_for(node, options) if name.upper() in layer.size_of]
    loops: tuple[OuterLoop | None, ...]
    if options.cn_define_mode == INNER:
        inner = dict(hints)
        sizes = [(name, _inner_size(inner.get(name, 1), span)) for name, span in layer.loop_sizes]
        loops = tuple(_loop_of_tiles(name, layer.size_of[name], size) for name, size in sizes)
        larger = [(name, size) for name, size in hints if size != ALL_TILES and int(size) > layer.size_of[name]]
        notices = [
            f"{layer.name}: {name} of size {layer.size_of[name]} is smaller than the size {size} in hint_loops"
            for name, size in larger
        ]
    else:
        capacities = (options.weight_capacity_bits or {}) if options.cn_define_mode == SPLIT_WEIGHTS else {}
        split = weight_tiles(layer, capacities[node.node_id], inputs) if node.node_id in capacities else None
        loops, notices = counted_loops(layer, [*hints, *([split] if split else [])])
    held = _dimensions_of_weights(layer, inputs)
    return layer_tiling(node.node_id, loops, [loop is not None and loop.dimension in held for loop in loops]), notices


def _loop_of_tiles(name: str, span: int, size: int) -> OuterLoop | None:
    count = -(-span // size)
    return OuterLoop(name, count, size) if count > 1 else None


def _dimensions_of_weights(layer: Layer, inputs: frozenset[str]) -> set[str]:
    """Dimensions that both the weights and the outputs of a layer have; empty if the layer has no weights. `inputs` has
    the operands that read inputs of the network.
    """
    dimensions = dict(layer.operand_dimensions)
    operand = weight_operand(layer, inputs)
    return set() if operand is None else set(dimensions[operand]) & set(dimensions[OUTPUT])


def hints_for(node: "WorkloadNode", options: HintLoopOptions) -> Sequence[HintLoop]:
    """Hint loops that the options give a layer, including loops over dimensions that the layer does not have."""
    hints = options.hint_loops
    if options.cn_define_mode != BY_LAYER:
        return hints  # type: ignore[return-value]
    if isinstance(hints, Mapping):
        return next((found for members, found in hints.items() if node.network_id in members), ())
    place = sum(cutoff <= node.network_id for cutoff in options.layer_cutoffs)
    return hints[place]  # type: ignore[return-value]


def _inner_size(size: int | str, span: int) -> int:
    return span if size == ALL_TILES else min(int(size), span)


def hint_loop_problems(options: HintLoopOptions, nodes: "list[WorkloadNode] | None" = None) -> list[Problem]:
    """Problems with the values of the options. If `nodes` is given, layers and dimensions that do not exist are
    problems, too.
    """
    if options.cn_define_mode not in MODES:
        allowed = ", ".join(str(mode) for mode in MODES)
        return [
            Problem(
                "no mode for cutting layers into CNs has this number",
                path="cn_define_mode",
                value=str(options.cn_define_mode),
                allowed=allowed,
            )
        ]
    if options.cn_define_mode != BY_LAYER:
        if isinstance(options.hint_loops, Mapping):
            return [Problem("must be one list of loops, because the option cn_define_mode is not 3", path="hint_loops")]
        return _loop_problems(options.hint_loops, "hint_loops", nodes)
    if isinstance(options.hint_loops, Mapping):
        return _table_problems(options.hint_loops, nodes)
    lists, cutoffs = options.hint_loops, options.layer_cutoffs
    problems = []
    if len(lists) != len(cutoffs) + 1:
        message = "the number of cutoffs must be one less than the number of lists of hint_loops"
        problems.append(Problem(message, path="layer_cutoffs", value=str(len(cutoffs)), allowed=str(len(lists) - 1)))
    if list(cutoffs) != sorted(cutoffs):
        problems.append(Problem("must be in rising order", path="layer_cutoffs", value=str(list(cutoffs))))
    for place, loops in enumerate(lists):
        problems += _loop_problems(loops, f"hint_loops[{place}]", nodes)
    return problems


def _table_problems(
    table: Mapping[tuple[int, ...], Sequence[HintLoop]], nodes: "list[WorkloadNode] | None"
) -> list[Problem]:
    problems, seen = [], set()
    known = None if nodes is None else {node.network_id for node in nodes}
    for members, loops in table.items():
        path = f"hint_loops[{members}]"
        problems += _loop_problems(loops, path, nodes)
        for member in members:
            if known is not None and member not in known:
                problems.append(Problem("no layer has this id", path=path, value=str(member)))
            if member in seen:
                problems.append(Problem("this layer is in another list too", path=path, value=str(member)))
            seen.add(member)
    return problems


def _loop_problems(loops: object, path: str, nodes: "list[WorkloadNode] | None") -> list[Problem]:
    known = sorted({dimension for node in nodes or () if node.layer for dimension in node.layer.size_of})
    problems = []
    for place, entry in enumerate(loops if isinstance(loops, Sequence) and not isinstance(loops, str) else [loops]):
        where = f"{path}[{place}]"
        if (
            not isinstance(entry, Sequence)
            or isinstance(entry, str)
            or len(entry) != 2
            or not isinstance(entry[0], str)
        ):
            problems.append(Problem("must be a loop dimension and a size", path=where, value=str(entry)))
            continue
        name, size = entry
        if nodes is not None and name.upper() not in known:
            nearest = nearest_name(name.upper(), known)
            message = "no layer of the network has this loop dimension"
            problems.append(Problem(message, path=where, value=name, allowed=", ".join(known), nearest=nearest))
        if size != ALL_TILES and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
            message = "the size of a loop must be a whole number of at least 1, or all"
            problems.append(Problem(message, path=where, value=str(size)))
    return problems


_DEFAULT_TILES = 2
_IMAGE_ROWS, _MATRIX_ROWS, _CHANNELS = "OY", "D", "K"
_IMAGE_RANK = 4


def mapped_tiling(
    workload: Workload, entry_of: Mapping[int, MappingConstraints], stacks: Sequence[Sequence[int]]
) -> Tiling:
    """Tiling of every layer of a network, as the mapping file requests it. Raises InputError with all problems.

    `entry_of` has the mapping entry of each layer, by node id. Loops over cores are the innermost loops. Therefore the
    CNs of one tile have consecutive numbers, one CN for each group (all CNs of a group run on one core).

    A layer that is alone in its stack is cut only over cores. If its entry has `tiles_if_alone`, the layer is also cut
    into tiles that run one after the other. The parts and additions that replaced a layer count together as one layer.
    """
    whole = {node.node_id: node.network_id for node in workload.nodes}
    fused = {one for stack in stacks if len({whole[member] for member in stack}) > 1 for one in stack}
    tilings: list[LayerTiling] = []
    notices: list[str] = []
    problems: list[Problem] = []
    known: dict[Hashable, LayerTiling] = {}
    """Cache of the tilings that gave no messages. It saves time, because networks repeat their layers."""
    for node in workload.nodes:
        if node.layer is None:
            continue
        entry = entry_of[node.node_id]
        has_tiles = node.node_id in fused or (entry.tiles_if_alone and bool(entry.intra_core_tiling))
        key = id(entry), node.layer.loop_sizes, node.layer.operand_dimensions, has_tiles
        alike = known.get(key)
        if alike is None:
            tiling, remarks = _mapped_layer_tiling(node, entry, has_tiles, problems)
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


def _mapped_layer_tiling(
    node: WorkloadNode, entry: MappingConstraints, has_tiles: bool, problems: list[Problem]
) -> tuple[LayerTiling, list[str]]:
    """Pair (tiling of a layer as its mapping entry requests, messages on loops that are left out or that differ from
    the request).

    With `has_tiles`, the layer is cut over cores and into tiles that run one after the other. Without `has_tiles`, the
    layer is cut only over cores. If the entry asks for one tile for each of its cores but lists no cores, a problem is
    added to `problems`.
    """
    assert node.layer is not None
    names = dimension_names(node.layer, entry)
    split, left_out = loops_over_cores(node.layer, entry)
    between, remarks = _tiles(node.layer, names, entry, split, problems)
    remarks += left_out
    within, more = _tiles(node.layer, names, entry, entry.intra_core_tiling, problems)
    if not within:
        within = _default_tiles(node.layer)
    counts = [*between, *(within if has_tiles else [])]
    loops, others = counted_loops(node.layer, counts)
    in_group = [place < len(between) for place in range(len(counts))]
    return layer_tiling(node.node_id, loops, in_group), [*remarks, *more, *others]


def loops_over_cores(layer: Layer, entry: MappingConstraints) -> tuple[tuple[TilingEntry, ...], list[str]]:
    """Pair (loops over cores for a layer, messages on loops that are left out). The loops come from the mapping entry
    of the layer.

    An entry that does not have the name of the layer can be meant for other layers. Loops of such an entry are left out
    if they would split a reduction of this layer. For example, a layer that takes the maximum over K is not cut along
    K.
    """
    if entry.name == layer.name:
        return entry.inter_core_tiling, []
    names = dimension_names(layer, entry)
    relations = {relation.data_dimension: [name for name, _ in relation.terms] for relation in layer.relations}
    written = {loop for name in dict(layer.operand_dimensions)[OUTPUT] for loop in relations.get(name, [name])}
    kept = tuple(loop for loop in entry.inter_core_tiling if names.get(loop.dimension, "") in ("", *written))
    remarks = [
        f"{layer.name}: {loop.dimension}, {loop.tiles} of entry {entry.name} is left out, because it would"
        " split a reduction over cores"
        for loop in entry.inter_core_tiling
        if loop not in kept
    ]
    return kept, remarks


def dimension_names(layer: Layer, entry: MappingConstraints) -> dict[str, str]:
    """Dimensions of a layer, by the names that the mapping file can use for them.

    If the entry has `layer_dimension_names`, these names are also accepted. Elementwise layers with a four-dimensional
    output also accept H and D for axes 1 and 2, because Stream names the axes of these tensors B, H, D, K. These layers
    do not accept K for the last axis, because K means the channels in tilewright.
    """
    names = {name: name for name, _ in layer.loop_sizes}
    output = layer.operand_dimensions[0][1]
    if len(output) == _IMAGE_RANK and _is_elementwise(layer, output):
        names = {"H": output[1], "D": output[2]} | names
    if entry.layer_dimension_names:
        names |= dict(zip(entry.layer_dimension_names, layer.size_of, strict=False))
    return names


def _is_elementwise(layer: Layer, output: tuple[str, ...]) -> bool:
    """True if the layer is elementwise: each loop is an axis of the output, and no operand has another loop."""
    axes = set(output)
    return axes == set(layer.size_of) and all(axes.issuperset(operand) for _, operand in layer.operand_dimensions)


def _tiles(
    layer: Layer,
    names: dict[str, str],
    entry: MappingConstraints,
    written: Sequence[TilingEntry],
    problems: list[Problem],
) -> tuple[list[tuple[str, int | str]], list[str]]:
    """Pair (loops, messages). A loop is a pair (dimension of the layer, number of tiles). There is one loop for each
    entry of `written` that names a dimension of the layer. `names` is the result of `dimension_names`.

    The number `*` stands for one tile for each core that the mapping entry lists, and a message says how many tiles
    this makes. If the mapping entry lists no cores, each `*` adds a problem to `problems`.
    """
    found: list[tuple[str, int | str]] = []
    remarks = []
    for loop in written:
        if loop.dimension not in names:
            continue
        dimension = names[loop.dimension]
        if loop.tiles == WILDCARD:
            if not entry.core_allocation:
                message = "`*` means one tile for each core of core_allocation, but core_allocation is not given"
                problems.append(Problem(message, path=entry.name, value=f"{loop.dimension}, *"))
            tiles = max(1, len(entry.core_allocation))
            remarks.append(f"{layer.name}: `{dimension}, *` means {count_of(tiles, 'tile')}, one for each core")
            found.append((dimension, tiles))
        else:
            found.append((dimension, loop.tiles))
    return found, remarks


def _default_tiles(layer: Layer) -> list[tuple[str, int | str]]:
    """List with one loop, which makes two tiles; [] if no dimension is suitable. A suitable dimension has more than one
    index and belongs to the output. The first suitable dimension in this order is taken: image rows, matrix rows,
    channels, other dimensions. B and G are never taken.
    """
    others = [dimension for dimension in layer.size_of if dimension not in ("B", "G")]
    for dimension in (_IMAGE_ROWS, _MATRIX_ROWS, _CHANNELS, *others):
        if layer.size_of.get(dimension, 1) > 1 and dimension in dict(layer.operand_dimensions)[OUTPUT]:
            return [(dimension, _DEFAULT_TILES)]
    return []


def fixed_cores_mismatch(node: WorkloadNode, entry: MappingConstraints, group_count: int) -> str:
    """Message if an entry fixes a wrong number of cores for a layer; '' if the entry fixes no cores, one core, or one
    core for each group.
    """
    listed = len(entry.core_allocation)
    if not entry.core_allocation_is_fixed or listed in (1, group_count):
        return ""
    return f"fixes {listed} cores, but {node.name} has {count_of(group_count, 'group')}"


def _core_problems(node: WorkloadNode, entry: MappingConstraints, tiling: LayerTiling) -> list[Problem]:
    message = fixed_cores_mismatch(node, entry, tiling.group_count)
    return [Problem(message, path=entry.name, value=str(list(entry.core_allocation)))] if message else []
