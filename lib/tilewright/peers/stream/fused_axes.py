"""Loops of layers in the order of stream-dse 2.1.1, and the axes that the loops of fused layers share.

Sources: the parsers of operators in `stream/parser/onnx`, and `stream/workload/workload.py` of stream-dse 2.1.1. Loops
of different layers form one shared axis if they index the same dimension of a tensor that passes between the layers. If
the reader moves by a stride, several indices of the producer's loop belong to one index of the reader's loop.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tilewright.workload.access import AxisIndex, IndexMap
from tilewright.workload.graph import Workload, WorkloadNode

_CONVOLUTIONS = ("Conv",)
_PRODUCTS_OF_MATRICES = ("Gemm", "MatmulSoftmax")
_WINDOWED = ("MaxPool", "GlobalAveragePool")
_SUMS = ("ReduceSum", "ReduceMean", "ReduceMax")

Loop = tuple[int, str]
"""Pair (id of a node, name of a loop of its layer)."""
Link = tuple[Loop, Loop, int]
"""Triple (loop of the producer, loop of the reader, number of producer indices for each reader index)."""


def loops_in_order(node: WorkloadNode) -> tuple[str, ...] | None:
    """Names of a layer's loops in the order in which Stream numbers them: D0, D1, ... The name is '' for a loop with
    one iteration that the layer leaves out. None if the order is not known for this operator.
    """
    if node.layer is None or not node.index_maps:
        return None
    kind = node.operator_type
    axes = [_loop_of(axis, node.index_maps[0]) for axis in node.index_maps[0].output.axes]
    reduced = [name for name in node.layer.size_of if name not in axes and node.layer.size_of[name] > 1]
    if kind in _CONVOLUTIONS and len(axes) == 4:
        grouped = ("G",) if node.layer.size_of.get("G", 1) > 1 else ()
        names = ("B", "OX", "OY", "FX", "FY", "C", "K", *grouped)
        return tuple(name if name in node.layer.size_of else "" for name in names)
    if kind in _PRODUCTS_OF_MATRICES and len(axes) == 2:
        return axes[0], _one(reduced), axes[1]
    if kind == "MatMul":
        return (*axes, _one(reduced))
    if kind in _WINDOWED:
        return (*axes, *(name if name in node.layer.size_of else "" for name in ("FY", "FX")))
    if kind in _SUMS:
        return tuple(_loop_of(axis, node.index_maps[0]) for axis in node.index_maps[0].input.axes)
    return None if reduced else tuple(axes)


def _one(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ""


def _loop_of(axis: AxisIndex, index_map: IndexMap) -> str:
    """Name of the loop that indexes an axis. The result is '' if the axis has no loop, or if the axis has several loops
    with more than one index.
    """
    terms = _moving(axis, index_map)
    if len(terms) == 1:
        return terms[0][0]
    return axis.terms[-1][0] if axis.terms and not terms else ""


def _moving(axis: AxisIndex, index_map: IndexMap) -> list[tuple[str, int]]:
    """Pairs (loop, coefficient): the terms of an axis, without loops that have only one index."""
    return [(name, coefficient) for name, coefficient in axis.terms if index_map.size_of[name] > 1]


@dataclass
class FusedAxes:
    """Axes of the loops of a group of fused layers."""

    workload: Workload
    nodes: tuple[WorkloadNode, ...]
    """Layers of the group, in the order of the network."""
    _root: dict[Loop, tuple[Loop, Fraction]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Link the loops of the group."""
        self._producer = {name: node for node in self.workload.nodes for name in node.outputs}
        own, shared = self._links()
        held: set[tuple[str, int]] = set()
        while True:
            self._root = {}
            for link in own:
                self._join(link)
            clash = next((key for key, link in shared if key not in held and not self._joined_apart(link)), None)
            if clash is None:
                return
            held.add(clash)

    def axis_of(self, loop: Loop) -> Loop:
        """Loop that represents the axis to which `loop` belongs."""
        return self._find(loop)[0]

    def members(self, axis: Loop) -> list[Loop]:
        """All loops of the group that belong to this axis."""
        loops = [(node.node_id, name) for node in self.nodes if node.layer for name in node.layer.size_of]
        return [one for one in loops if self.axis_of(one) == axis]

    def indices_of_step(self, loop: Loop) -> Fraction:
        """Number of indices of `loop` for each index of the shortest loop of the same axis (the loop with the fewest
        indices).
        """
        least = min(self._find(one)[1] for one in self.members(self.axis_of(loop)))
        return self._find(loop)[1] / least

    def _find(self, loop: Loop) -> tuple[Loop, Fraction]:
        """Pair (loop that represents the axis of `loop`, number of indices of `loop` for one index of this
        representative).
        """
        ratio = Fraction(1)
        while loop in self._root:
            loop, factor = self._root[loop]
            ratio *= factor
        return loop, ratio

    def _join(self, link: Link) -> None:
        first, second, stride = link
        (one, ratio), (other, factor) = self._find(first), self._find(second)
        if one != other:
            self._root[one] = (other, stride * factor / ratio)

    def _joined_apart(self, link: Link) -> bool:
        """Join two loops through a tensor that several layers read. The loops are not joined if two loops of one layer
        would then be one axis. Returns True if the loops are now joined.
        """
        one, other = self.axis_of(link[0]), self.axis_of(link[1])
        if one != other:
            first = {node_id for node_id, _ in self.members(one)}
            if first & {node_id for node_id, _ in self.members(other)}:
                return False
            self._join(link)
        return True

    def _links(self) -> tuple[list[Link], list[tuple[tuple[str, int], Link]]]:
        """Pair (links through tensors with one reader, links through tensors with several readers). An element of the
        second list is a pair (axis of the tensor, link); the tensors that are made last come first.
        """
        inside = {node.node_id for node in self.nodes}
        own: list[Link] = []
        shared: list[tuple[int, tuple[str, int], Link]] = []
        readers: dict[tuple[str, int], list[tuple[WorkloadNode, IndexMap, AxisIndex]]] = {}
        for node in self.nodes:
            for index_map in node.index_maps:
                for place, axis in enumerate(index_map.input.axes):
                    made = self._made(index_map.input.tensor, place)
                    readers.setdefault(made, []).append((node, index_map, axis))
        for (tensor, place), found in readers.items():
            producer = self._producer.get(tensor)
            is_shared = len({node.node_id for node, *_ in found}) > 1
            if producer is not None and producer.node_id in inside:
                for node, index_map, axis in found:
                    link = _link(producer, tensor, place, (node, index_map, axis), self.workload)
                    if link is not None and is_shared:
                        shared.append((-producer.node_id, (tensor, place), link))
                    elif link is not None:
                        own.append(link)
            else:
                shared += [(1, (tensor, place), link) for link in _links_of_readers(found)]
        shared.sort(key=lambda one: one[0])
        return own, [(key, link) for _, key, link in shared]

    def _made(self, tensor: str, place: int) -> tuple[str, int]:
        """Origin of the axis with index `place` of `tensor`, as a pair (tensor, index of the axis). Operators that only
        move data are followed back to their input.
        """
        node = self._producer.get(tensor)
        while node is not None and node.layer is None:
            index_map = next((one for one in node.index_maps if one.output.tensor == tensor), None)
            if index_map is None or len(node.index_maps) != 1:
                break
            moving = _moving(index_map.output.axes[place], index_map)
            sources = [
                at for at, axis in enumerate(index_map.input.axes) if moving and _moving(axis, index_map) == moving
            ]
            if len(moving) != 1 or len(sources) != 1:
                break
            tensor, place = index_map.input.tensor, sources[0]
            node = self._producer.get(tensor)
        return tensor, place


def _link(
    producer: WorkloadNode,
    tensor: str,
    place: int,
    reading: tuple[WorkloadNode, IndexMap, AxisIndex],
    workload: Workload,
) -> Link | None:
    """Link between the loop that makes an axis of a tensor and the loop of a reader. None if the two loops do not go
    along the same axis.
    """
    node, index_map, axis = reading
    made = next((one for one in producer.index_maps if one.output.tensor == tensor), None)
    if made is None:
        return None
    written = _moving(made.output.axes[place], made)
    if len(written) != 1 or written[0][1] != 1 or made.output.axes[place].offset:
        return None
    read = _moving(axis, index_map)
    source = (producer.node_id, written[0][0])
    if len(read) == 1 and read[0][1] == 1 and not axis.offset:
        return source, (node.node_id, read[0][0]), 1
    outputs = {name for one in index_map.output.axes for name, _ in one.terms}
    moved = [(name, stride) for name, stride in read if name in outputs]
    if len(moved) != 1 or moved[0][1] < 1:
        return None
    name, stride = moved[0]
    extent = workload.tensor_of[tensor].shape[place] if tensor in workload.tensor_of else made.size_of[written[0][0]]
    return (source, (node.node_id, name), stride) if stride * index_map.size_of[name] == extent else None


def _links_of_readers(found: Sequence[tuple[WorkloadNode, IndexMap, AxisIndex]]) -> Iterator[Link]:
    """Links between loops of layers that read the same tensor, if this tensor comes from outside the group. Two loops
    that both index outputs are not linked.
    """
    for (one, first, axis), (other, second, beside) in itertools.combinations(found, 2):
        read, also = _moving(axis, first), _moving(beside, second)
        if one.node_id == other.node_id or len(read) != 1 or len(also) != 1 or read[0][1] != also[0][1]:
            continue
        is_plain = read[0][1] == 1 and axis.offset == beside.offset
        are_outputs = all(
            name in {term for out in index_map.output.axes for term, _ in out.terms}
            for index_map, name in ((first, read[0][0]), (second, also[0][0]))
        )
        if is_plain and not are_outputs:
            yield (one.node_id, read[0][0]), (other.node_id, also[0][0]), 1
