"""Layer stacks: a stack is a set of layers that are fused (Stream, 2025)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

from tilewright.base.errors import InputError, Problem
from tilewright.multicore.nodes.weights import network_input_operands, weight_bits
from tilewright.workload.graph import Workload, WorkloadNode

StackMode = Literal["lbl", "fused"]


LAYER_BY_LAYER, FUSED = STACK_MODES = get_args(StackMode)


Stacks = tuple[tuple[int, ...], ...]


def layer_stacks(
    workload: "Workload",
    mode: str = FUSED,
    stacks: Sequence[Sequence[int]] | None = None,
    stack_cutoffs: Sequence[int] = (),
    weight_capacity_bits: int | None = None,
) -> Stacks:
    """Stacks of a network as node ids of layers. The stacks are in the order of their first layers in the network.

    In mode `lbl`, every layer is a stack. In mode `fused`, there are three cases:

    1. If `stacks` is given, it lists the stacks.
    2. If `stack_cutoffs` (node ids) is given, each stack has the consecutive layers up to and including a cutoff.
    3. Otherwise, all layers form one stack.

    In cases 2 and 3, a stack ends early if the weights of its layers would exceed `weight_capacity_bits`, the capacity
    of all cores together (None: no limit). All later layers are then separate stacks. Layers after the last cutoff are
    separate stacks, too. Ids of nodes without a layer are left out. Raises InputError if the mode or the stacks are
    wrong.
    """
    if mode not in STACK_MODES:
        raise InputError([Problem("not a mode", path="mode", value=mode, allowed=", ".join(STACK_MODES))])
    layers = {node.node_id: node for node in workload.nodes if node.layer is not None}
    ids = list(layers)
    if mode == LAYER_BY_LAYER:
        return _alone(layers.values())
    if stacks is not None:
        return _given(workload, stacks, layers)
    last = max((node.network_id for node in layers.values()), default=0)
    found: list[tuple[int, ...]] = []
    start = 0
    for cutoff in stack_cutoffs or (last,):
        members: list[int] = []
        used = 0
        for node_id in ids[start:]:
            if layers[node_id].network_id > cutoff:
                break
            used += _weight_bits(layers[node_id], workload)
            if weight_capacity_bits is not None and used > weight_capacity_bits:
                break
            members.append(node_id)
        if members:
            found.append(tuple(members))
        start += len(members)
        if start < len(ids) and layers[ids[start]].network_id <= cutoff:
            break
    return (*found, *_alone(layers[node_id] for node_id in ids[start:]))


def _alone(nodes: "Iterable[WorkloadNode]") -> Stacks:
    """Stacks of a network in which no layers are fused: one stack for each layer of the network file. If parts and
    additions replaced a layer, they form one stack together.
    """
    members: dict[int, list[int]] = {}
    for node in nodes:
        members.setdefault(node.network_id, []).append(node.node_id)
    return tuple(map(tuple, members.values()))


def _weight_bits(node: "WorkloadNode", workload: "Workload") -> int:
    assert node.layer is not None
    return weight_bits(node.layer, network_input_operands(node, workload))


def _given(workload: "Workload", stacks: Sequence[Sequence[int]], layers: "Mapping[int, WorkloadNode]") -> Stacks:
    """Stacks that the user lists, and a separate stack for every other layer. A layer can be replaced by parts and
    additions. A part or an addition belongs to the stack that lists its own id. If no stack lists this id, it belongs
    to the stack that lists the id of the layer. Raises InputError if a listed id belongs to no node, or if an id is
    listed twice.
    """
    known = {node.node_id for node in workload.nodes}
    problems, seen = [], set()
    for place, stack in enumerate(stacks):
        for node_id in stack:
            path = f"layer_stacks[{place}]"
            if node_id not in known:
                problems.append(Problem("no layer has this id", path=path, value=str(node_id)))
            if node_id in seen:
                problems.append(Problem("this layer is in another stack too", path=path, value=str(node_id)))
            seen.add(node_id)
    if problems:
        raise InputError(problems)
    stack_of = {node_id: place for place, stack in enumerate(stacks) for node_id in stack}
    kept: list[list[int]] = [[node_id for node_id in stack if node_id in layers] for stack in stacks]
    alone = []
    for node in layers.values():
        if node.node_id not in seen:
            listed = stack_of.get(node.network_id)
            (alone.append(node) if listed is None else kept[listed].append(node.node_id))
    # Layers that are in no given stack keep their position in the order of the network.
    found = [tuple(stack) for stack in (*kept, *_alone(alone)) if stack]
    return tuple(sorted(found, key=lambda stack: min(layers[node_id].network_id for node_id in stack)))
