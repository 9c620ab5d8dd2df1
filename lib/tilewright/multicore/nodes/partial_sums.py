"""Layers whose reduction is cut between cores: parts that give partial sums, and layers that add the partial sums.

The parts read and multiply the same data as the layer. The outputs of the parts have the precision of partial sums. The
last addition gives the output of the layer, at the precision of the output, and takes the bias. Costs, schedules,
bounds and checks treat the parts and the additions as ordinary layers.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tilewright.base.operator_groups import MAC_TYPES, VECTOR_UNIT, bare_type
from tilewright.mapping.words import ONE_CORE, RING
from tilewright.workload.access import AxisIndex, IndexMap, TensorAccess, identity_map
from tilewright.workload.graph import MODELLED, PASS_THROUGH, Tensor, Workload, WorkloadNode
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer, part_name, sum_name

ADD, CONCAT = "Add", "Concat"
_FIRST, _SECOND = "I", "W"
Range = tuple[int, int]
"""First index of a range, and index after the last one."""
Ranges = Mapping[str, Range]
"""Range of each loop dimension that is cut."""


@dataclass(frozen=True)
class Addition:
    """Addition of two partial results. Partial results are numbered: first the parts, then the additions in order."""

    first: int
    second: int
    home: int
    """Number of a part. The addition runs on the core of this part if all of these conditions are met:

    * The cores of the parts are fixed.
    * The core of this part can run additions.
    * The shape of the additions is a tree or a ring, not `one_core`.
    * The mapping file names no core for the additions.
    """
    share: int = 0
    """Index of the share of the outputs that this addition computes; always 0 if the partial sums are not added in a
    ring.
    """


def additions_of(parts: int, shape: str) -> tuple[Addition, ...]:
    """Additions of the partial sums of `parts` parts. An addition comes after the additions whose results it reads.
    There are three shapes:

    * one_core: The other parts are added to part 0, one after the other.
    * tree: Neighbours are added in pairs, level by level. If a level has an odd number of partial sums, the last one
      goes to the next level unchanged.
    * ring: The outputs are divided into one share for each part. The sum of share s begins with part s + 1, goes
      through the parts cyclically, and ends with part s.
    """
    found: list[Addition] = []
    if shape == RING:
        for share in range(parts):
            partial = (share + 1) % parts
            for step in range(2, parts + 1):
                part = (share + step) % parts
                found.append(Addition(partial, part, part, share))
                partial = parts + len(found) - 1
        return tuple(found)
    level = [(part, part) for part in range(parts)]
    while len(level) > 1:
        pairs = [level[:2]] if shape == ONE_CORE else [level[place : place + 2] for place in range(0, len(level), 2)]
        rest = level[2:] if shape == ONE_CORE else []
        level = []
        for pair in pairs:
            if len(pair) == 2:
                found.append(Addition(pair[0][0], pair[1][0], pair[0][1]))
                pair = [(parts + len(found) - 1, pair[0][1])]
            level += pair
        level += rest
    return tuple(found)


@dataclass(frozen=True)
class SummedLayer:
    """Nodes that replace a layer whose reduction is cut."""

    parts: tuple[WorkloadNode, ...]
    sums: tuple[WorkloadNode, ...]
    """Nodes of the additions, in the order of `additions`."""
    additions: tuple[Addition, ...]
    moves: tuple[WorkloadNode, ...]
    """Node that joins the shares of the output, if the partial sums are added in a ring; () for any other shape of the
    additions.
    """
    tensors: tuple[Tensor, ...]
    """Tensors of partial sums, and shares of the output."""

    @property
    def nodes(self) -> tuple[WorkloadNode, ...]:
        """Nodes that replace the layer. Each node comes after the nodes whose results it reads."""
        return (*self.parts, *self.sums, *self.moves)


def reductions_of(layer: Layer) -> tuple[str, ...]:
    """Reduction dimensions of a layer: loop dimensions whose iterations contribute to the same output element."""
    relations = {relation.data_dimension: [name for name, _ in relation.terms] for relation in layer.relations}
    written = {loop for name in dict(layer.operand_dimensions)[OUTPUT] for loop in relations.get(name, [name])}
    return tuple(name for name, _ in layer.loop_sizes if name not in written)


def why_not_summed(node: WorkloadNode) -> str:
    """Reason why the partial sums of a layer cannot be added between cores; '' if they can be added."""
    layer = node.layer
    assert layer is not None
    kind = bare_type(node.origin_type or node.operator_type)
    multiplies = node.unit != VECTOR_UNIT and (kind in MAC_TYPES or kind == "Conv_downsample")
    if not multiplies or len(layer.input_operands) < 2:
        return f"{node.operator_type} is not a sum of products, so its partial results cannot be added"
    reduced = set(reductions_of(layer))
    outputs = {index_map.output for index_map in node.index_maps}
    if len(outputs) != 1 or len(node.outputs) != 1:
        return "the layer does not have exactly one output, so its partial sums cannot be added"
    if any(name in reduced for name, _ in _terms(next(iter(outputs)))):
        return (
            "a loop of the reduction also selects the output element, so parts of the reduction give different outputs"
        )
    beside = [index_map.input for index_map in node.index_maps if not index_map.operand]
    if any(name in reduced for access in beside for name, _ in _terms(access)):
        return "an additional input, such as a bias, changes along the reduction, so it cannot be added only once"
    if set(dict(layer.operand_dimensions)[OUTPUT]) & {relation.data_dimension for relation in layer.relations}:
        return "each input adds a window of values to the outputs, as in a transposed convolution, so windows overlap"
    return ""


def _terms(access: TensorAccess) -> list[tuple[str, int]]:
    return [term for axis in access.axes for term in axis.terms]


def share_axis(node: WorkloadNode, workload: Workload, shares: int) -> tuple[int, str, int] | None:
    """Axis of the output that is divided into shares if partial sums are added in a ring. The result is a triple (axis,
    loop dimension of this axis, size); None if no axis is suitable. A suitable axis has at least `shares` indices, and
    a single loop runs over all of them in steps of 1. The longest suitable axis is chosen. If several axes are equally
    long, the first of them is chosen.
    """
    assert node.layer is not None
    sizes = node.layer.size_of
    output = node.index_maps[0].output
    shape = workload.tensor_of[output.tensor].shape
    found: list[tuple[int, int, str]] = []
    for place, axis in enumerate(output.axes):
        loops = [(name, factor) for name, factor in axis.terms if sizes.get(name, 1) > 1]
        if len(loops) == 1 and loops[0][1] == 1 and not axis.offset and sizes[loops[0][0]] == shape[place] >= shares:
            found.append((-shape[place], place, loops[0][0]))
    if not found:
        return None
    size, place, name = min(found)
    return place, name, -size


def summed_layer(
    node: WorkloadNode, workload: Workload, ranges: Sequence[Ranges], shape: str, first_id: int
) -> SummedLayer:
    """Nodes that replace a layer whose reduction is cut into parts. `ranges` has one entry for each part: the indices
    of each cut loop dimension that the part computes. `shape` is the shape of the additions (`additions_of`). The node
    that makes the output of the layer keeps the id of the layer. All other nodes get new ids, beginning at `first_id`.
    `why_not_summed` must return '' for the layer.
    """
    return _Summing(node, workload, tuple(ranges), shape, first_id).made()


@dataclass(frozen=True)
class _Summing:
    """Layer that is replaced by two kinds of nodes: nodes that compute the parts of the layer, and nodes that add the
    partial sums of these parts. The fields of the object are the input from which the nodes are made.
    """

    node: WorkloadNode
    workload: Workload
    ranges: tuple[Ranges, ...]
    shape: str
    first_id: int

    @property
    def layer(self) -> Layer:
        assert self.node.layer is not None
        return self.node.layer

    @property
    def output(self) -> TensorAccess:
        """Description of how the layer accesses its output."""
        return self.node.index_maps[0].output

    @property
    def partial_bits(self) -> int:
        return self.layer.bits_of[OUTPUT]

    def made(self) -> SummedLayer:
        count = len(self.ranges)
        additions = additions_of(count, self.shape)
        tensor = self.workload.tensor_of[self.output.tensor]
        parts = tuple(self._part(place) for place in range(count))
        shares = self._shares()
        partial = Tensor("", tensor.shape, self.partial_bits, tensor.element_type, tensor.precision_source)
        tensors = [replace(partial, name=part.outputs[0]) for part in parts]
        made: list[WorkloadNode] = list(parts)
        for number, addition in enumerate(additions):
            is_last = number == len(additions) - 1 or additions[number + 1].share != addition.share
            place, share = (0, None) if shares is None else (shares[0], shares[2][addition.share])
            summed = self._sum(number, len(additions), addition, made, place, share, is_last)
            made.append(summed)
            name = summed.outputs[0]
            if name != tensor.name:
                bits = tensor.bits if is_last else self.partial_bits
                tensors.append(replace(partial, name=name, shape=_with_length(tensor.shape, place, share), bits=bits))
        moves = () if shares is None else (self._joined(made[count:], additions, shares, tensor),)
        return SummedLayer(parts, tuple(made[count:]), additions, moves, tuple(tensors))

    def _shares(self) -> tuple[int, str, tuple[Range, ...]] | None:
        """Division of the output into shares, if the partial sums are added in a ring: triple (axis of the output, loop
        dimension of this axis, range of each share). None for any other shape of the additions.
        """
        count = len(self.ranges)
        if self.shape != RING:
            return None
        found = share_axis(self.node, self.workload, count)
        assert found is not None
        place, name, size = found
        ends = [size * share // count for share in range(count + 1)]
        return place, name, tuple(itertools.pairwise(ends))

    def _part(self, place: int) -> WorkloadNode:
        """Node of one part, which gives partial sums."""
        count, ranges = len(self.ranges), self.ranges[place]
        name = part_name(self.node.name, place, count)
        output = replace(self.output, tensor=part_name(self.output.tensor, place, count))
        kept = [index_map for index_map in self.node.index_maps if index_map.operand]
        maps = tuple(
            replace(
                index_map,
                loops=_with_sizes(index_map.loops, ranges),
                output=output,
                input=_from_start(index_map.input, ranges),
            )
            for index_map in kept
        )
        inputs = _inputs(maps)
        return replace(
            self.node,
            node_id=self.first_id + place,
            name=name,
            layer=_part_layer(self.layer, name, ranges),
            sources=self._sources(inputs),
            is_network_output=False,
            inputs=inputs,
            outputs=(output.tensor,),
            index_maps=maps,
            whole_id=self.node.network_id,
        )

    def _sources(self, inputs: Sequence[str]) -> tuple[tuple[str, int], ...]:
        """Edges into the layer from nodes that produce at least one of the tensors `inputs`, as pairs (operand, id of
        the source node). Edges from nodes that produce no tensors are included, too.
        """
        outputs = {node.node_id: node.outputs for node in self.workload.nodes}
        return tuple(
            (operand, source)
            for operand, source in self.node.sources
            if not outputs.get(source) or set(outputs[source]) & set(inputs)
        )

    def _sum(
        self,
        number: int,
        count: int,
        addition: Addition,
        made: Sequence[WorkloadNode],
        place: int,
        share: Range | None,
        is_last: bool,
    ) -> WorkloadNode:
        """Node that makes one addition of the layer's partial sums. `number` is the index of the addition; the layer
        has `count` additions. `made` has the nodes of all parts and all earlier additions. In a ring, the addition
        makes only the range `share` of the output along axis `place`; otherwise, `share` is None. If `is_last` is true,
        the addition gives final outputs. It then also takes the inputs that are not operands, such as the bias.
        """
        names = dict(self.layer.operand_dimensions)[OUTPUT]
        sizes = {name: self.layer.size_of[name] for name in names}
        cut = self.output.axes[place].terms if share is not None else ()
        ranges = {name: share for name, _ in cut if share is not None and sizes.get(name, 1) > 1}
        loops = _with_sizes(tuple(sizes.items()), ranges)
        is_output = is_last and share is None
        name = sum_name(self.node.name, number, count)
        target = self.output.tensor if is_output else sum_name(self.output.tensor, number, count)
        output = replace(self.output, tensor=target)
        maps = []
        for operand, item in ((_FIRST, addition.first), (_SECOND, addition.second)):
            access = replace(self.output, tensor=made[item].outputs[0])
            is_whole = item < len(self.ranges)  # a part has all outputs; an earlier addition of a ring has its share
            maps.append(IndexMap(loops, output, _from_start(access, ranges) if is_whole else access, operand))
        beside = [index_map for index_map in self.node.index_maps if is_last and not index_map.operand]
        maps += [IndexMap(loops, output, _from_start(one.input, ranges), "", one.is_exact) for one in beside]
        bits = self.layer.bits_of[FINAL_OUTPUT] if is_last else self.partial_bits
        precision = ((_FIRST, self.partial_bits), (_SECOND, self.partial_bits), (FINAL_OUTPUT, bits))
        operands = tuple((operand, names) for operand in (OUTPUT, _FIRST, _SECOND))
        layer = Layer(name, ADD, operands, loops, precision_bits=(*precision, (OUTPUT, max(bits, self.partial_bits))))
        read = [(_FIRST, made[addition.first].node_id), (_SECOND, made[addition.second].node_id)]
        inputs = _inputs(maps)
        return WorkloadNode(
            node_id=self.node.node_id if is_output else self.first_id + len(made),
            name=name,
            operator_type=ADD,
            layer=layer,
            sources=(*read, *self._sources(_inputs(maps[2:]))) if beside else tuple(read),
            is_network_output=self.node.is_network_output and is_output,
            unit=VECTOR_UNIT,
            status=MODELLED if self.node.status else "",
            inputs=inputs,
            outputs=(target,),
            index_maps=tuple(maps),
            whole_id=self.node.network_id,
        )

    def _joined(
        self,
        sums: Sequence[WorkloadNode],
        additions: Sequence[Addition],
        shares: tuple[int, str, tuple[Range, ...]],
        tensor: Tensor,
    ) -> WorkloadNode:
        """Node that joins the shares of the output, if the partial sums are added in a ring. The node has no layer and
        causes no cost.
        """
        place, _, ranges = shares
        last = {addition.share: node for node, addition in zip(sums, additions, strict=True)}
        maps = []
        for share, (start, end) in enumerate(ranges):
            made = identity_map(tensor.name, last[share].outputs[0], _with_length(tensor.shape, place, (start, end)))
            axes = list(made.output.axes)
            axes[place] = AxisIndex(axes[place].terms, start)
            maps.append(replace(made, output=replace(made.output, axes=tuple(axes))))
        return WorkloadNode(
            node_id=self.node.node_id,
            name=self.node.name,
            operator_type=CONCAT,
            layer=None,
            sources=tuple(("", last[share].node_id) for share in range(len(ranges))),
            output_elements=tensor.element_count,
            is_network_output=self.node.is_network_output,
            status=PASS_THROUGH,
            inputs=tuple(last[share].outputs[0] for share in range(len(ranges))),
            outputs=(tensor.name,),
            index_maps=tuple(maps),
            whole_id=self.node.network_id,
        )


def _inputs(maps: Sequence[IndexMap]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(index_map.input.tensor for index_map in maps))


def _with_length(shape: tuple[int, ...], place: int, share: Range | None) -> tuple[int, ...]:
    if share is None:
        return shape
    return (*shape[:place], share[1] - share[0], *shape[place + 1 :])


def _with_sizes(loops: tuple[tuple[str, int], ...], ranges: Ranges) -> tuple[tuple[str, int], ...]:
    return tuple((name, ranges[name][1] - ranges[name][0] if name in ranges else size) for name, size in loops)


def _from_start(access: TensorAccess, ranges: Ranges) -> TensorAccess:
    """Copy of an access in which the cut loops begin at 0. The starts of their ranges are added to the offsets of the
    axes.
    """
    axes = []
    for axis in access.axes:
        start = sum(factor * ranges[name][0] for name, factor in axis.terms if name in ranges)
        axes.append(AxisIndex(axis.terms, axis.offset + start))
    return replace(access, axes=tuple(axes))


def _part_layer(layer: Layer, name: str, ranges: Ranges) -> Layer:
    """Layer that computes one part of `layer`: the cut loops run only over `ranges`. Its final outputs are partial
    sums, with the precision of partial sums.
    """
    padding, sizes = dict(layer.padding), dict(layer.data_dimension_sizes)
    for relation in layer.relations:
        if any(loop in ranges for loop, _ in relation.terms):
            before, after = padding.get(relation.data_dimension, (0, 0))
            low = high = -before
            reach = 1
            for loop, factor in relation.terms:
                start, end = ranges.get(loop, (0, layer.size_of[loop]))
                low, high = low + factor * start, high + factor * (end - 1)
                reach += factor * (layer.size_of[loop] - 1)
            whole = sizes.get(relation.data_dimension, max(1, reach - before - after))
            padding[relation.data_dimension] = (max(0, -low), max(0, high - whole + 1))
            sizes[relation.data_dimension] = max(1, min(high, whole - 1) - max(low, 0) + 1)
    bits = layer.bits_of | {FINAL_OUTPUT: layer.bits_of[OUTPUT]}
    return replace(
        layer,
        name=name,
        loop_sizes=_with_sizes(layer.loop_sizes, ranges),
        precision_bits=tuple((key, bits[key]) for key, _ in layer.precision_bits),
        padding=tuple(padding.items()),
        data_dimension_sizes=tuple(sizes.items()),
    )


__all__ = [
    "Addition",
    "Range",
    "Ranges",
    "SummedLayer",
    "additions_of",
    "reductions_of",
    "share_axis",
    "summed_layer",
    "why_not_summed",
]
