"""Tiling by `cn_define_mode` and `hint_loops`, the dialect of Stream until 2024."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from tilewright.errors import InputError, Problem, nearest_name
from tilewright.fusion.outer_loops import LayerTiling, OuterLoop, Tiling, counted_loops, layer_tiling
from tilewright.fusion.weights import network_input_operands, weight_operand, weight_tiles
from tilewright.mapping.constraints import ALL_TILES
from tilewright.workload.layer import OUTPUT, Layer

if TYPE_CHECKING:
    # Loads numpy; the configuration is checked with these options, which need none.
    from tilewright.workload.graph import Workload, WorkloadNode

HintLoop = tuple[str, int | str]
"""(loop dimension, size or "all")."""
HintLoops = Sequence[HintLoop] | Sequence[Sequence[HintLoop]] | Mapping[tuple[int, ...], Sequence[HintLoop]]
DefineMode = Literal[1, 2, 3, 4]
OUTER, INNER, BY_LAYER, SPLIT_WEIGHTS = MODES = get_args(DefineMode)
"""Values of `cn_define_mode`: hint loops are outside of a CN; inside; outside, by groups of layers; outside, and
weights that are too large are split."""


@dataclass(frozen=True)
class HintLoopOptions:
    """How `cn_define_mode` cuts a network."""

    cn_define_mode: int = OUTER
    hint_loops: HintLoops = ()
    """[("OY", "all")] cuts each layer into lines; innermost first. With mode 3 a list of such lists, or a table from
    layers (node ids) to a list."""
    layer_cutoffs: tuple[int, ...] = ()
    """Mode 3: layers below the first cutoff (node id) get the first list, and so on."""
    weight_capacity_bits: Mapping[int, int] | None = None
    """Mode 4: node id -> bits that the weights of a CN may take; for the layers whose core is open."""


def hint_loop_tiling(workload: "Workload", options: HintLoopOptions) -> Tiling:
    """The tiling of every layer of a network; all layers are one stack. Raises InputError with all problems.

    Of the two kinds of groups, a group holds the CNs that use the same weights.
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
    """The tiling of a layer, of which the operands `inputs` read inputs of the network; and remarks."""
    layer = node.layer
    assert layer is not None
    hints = [(name.upper(), size) for name, size in hints_for(node, options) if name.upper() in layer.size_of]
    loops: tuple[OuterLoop | None, ...]
    if options.cn_define_mode == INNER:
        inner = dict(hints)
        sizes = [(name, _inner_size(inner.get(name, 1), span)) for name, span in layer.loop_sizes]
        loops = tuple(_loop_of_tiles(name, layer.size_of[name], size) for name, size in sizes)
        larger = [(name, size) for name, size in hints if size != ALL_TILES and int(size) > layer.size_of[name]]
        notices = [f"{layer.name}: {name} has {layer.size_of[name]}, not {size}" for name, size in larger]
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
    """Dimensions whose tiles have weights of their own and outputs of their own."""
    dimensions = dict(layer.operand_dimensions)
    operand = weight_operand(layer, inputs)
    return set() if operand is None else set(dimensions[operand]) & set(dimensions[OUTPUT])


def hints_for(node: "WorkloadNode", options: HintLoopOptions) -> Sequence[HintLoop]:
    """The hint loops that a layer gets, also for dimensions that it does not have."""
    hints = options.hint_loops
    if options.cn_define_mode != BY_LAYER:
        return hints  # type: ignore[return-value]
    if isinstance(hints, Mapping):
        return next((found for members, found in hints.items() if node.node_id in members), ())
    place = sum(cutoff <= node.node_id for cutoff in options.layer_cutoffs)
    return hints[place]  # type: ignore[return-value]


def _inner_size(size: int | str, span: int) -> int:
    return span if size == ALL_TILES else min(int(size), span)


def hint_loop_problems(options: HintLoopOptions, nodes: "list[WorkloadNode] | None" = None) -> list[Problem]:
    """What is wrong with options: with their form, and where the layers are given, with the names in them."""
    if options.cn_define_mode not in MODES:
        allowed = ", ".join(str(mode) for mode in MODES)
        return [
            Problem(
                "not a way to define CNs", path="cn_define_mode", value=str(options.cn_define_mode), allowed=allowed
            )
        ]
    if options.cn_define_mode != BY_LAYER:
        if isinstance(options.hint_loops, Mapping):
            return [Problem("is one list of loops unless cn_define_mode is 3", path="hint_loops")]
        return _loop_problems(options.hint_loops, "hint_loops", nodes)
    if isinstance(options.hint_loops, Mapping):
        return _table_problems(options.hint_loops, nodes)
    lists, cutoffs = options.hint_loops, options.layer_cutoffs
    problems = []
    if len(lists) != len(cutoffs) + 1:
        message = "must have one cutoff less than hint_loops has lists"
        problems.append(Problem(message, path="layer_cutoffs", value=str(len(cutoffs)), allowed=str(len(lists) - 1)))
    if list(cutoffs) != sorted(cutoffs):
        problems.append(Problem("must not fall", path="layer_cutoffs", value=str(list(cutoffs))))
    for place, loops in enumerate(lists):
        problems += _loop_problems(loops, f"hint_loops[{place}]", nodes)
    return problems


def _table_problems(
    table: Mapping[tuple[int, ...], Sequence[HintLoop]], nodes: "list[WorkloadNode] | None"
) -> list[Problem]:
    problems, seen = [], set()
    known = None if nodes is None else {node.node_id for node in nodes}
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
