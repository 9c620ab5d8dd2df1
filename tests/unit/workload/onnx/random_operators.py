"""Random operators of all families: each adds nodes that read a tensor to a growing graph."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.unit.workload.onnx.graph_builder import MOST_ELEMENTS, GraphBuilder, Shape

Extend = Callable[[GraphBuilder, str], None]
"""Function that adds nodes that read a tensor; raises InapplicableError if the tensor's shape does not allow it."""


class InapplicableError(Exception):
    """The operator does not take a tensor of this shape."""


def _need(condition: bool) -> None:
    if not condition:
        raise InapplicableError


def _windows(graph: GraphBuilder, sizes: Shape, kernel: Shape) -> tuple[dict[str, Any], Shape]:
    strides = [graph.number(1, 2) for _ in sizes]
    dilations = [graph.number(1, 2) if size > 2 else 1 for size in sizes]
    # Padding stays below the kernel, as the operators demand it.
    pads = [graph.number(0, min(1, kernel[place % len(sizes)] - 1)) for place in range(2 * len(sizes))]
    counts = []
    for axis, size in enumerate(sizes):
        room = size + pads[axis] + pads[axis + len(sizes)] - dilations[axis] * (kernel[axis] - 1) - 1
        _need(room >= 0)
        counts.append(room // strides[axis] + 1)
    return {"strides": strides, "dilations": dilations, "pads": pads, "kernel_shape": list(kernel)}, tuple(counts)


def convolution(graph: GraphBuilder, source: str) -> None:
    """Conv, 1-D and 2-D, with groups."""
    shape = graph.tensors[source]
    _need(len(shape) in (3, 4))
    kernel = tuple(graph.number(1, min(3, size)) for size in shape[2:])
    attributes, counts = _windows(graph, shape[2:], kernel)
    groups = graph.choice(*(number for number in range(1, shape[1] + 1) if shape[1] % number == 0))
    channels = groups * graph.number(1, 2)
    inputs = [source, graph.weight(channels, shape[1] // groups, *kernel)]
    inputs += [graph.weight(channels)] if graph.number(0, 1) else []
    graph.add("Conv", inputs, (shape[0], channels, *counts), group=groups, **attributes)


def transposed_convolution(graph: GraphBuilder, source: str) -> None:
    """ConvTranspose, 1-D and 2-D, with groups, padding and output padding."""
    shape = graph.tensors[source]
    _need(len(shape) in (3, 4))
    axes = len(shape) - 2
    kernel = [graph.number(1, 3) for _ in range(axes)]
    strides = [graph.number(1, 3) for _ in range(axes)]
    pads = [graph.number(0, min(1, kernel[place % axes] - 1)) for place in range(2 * axes)]
    more = [graph.number(0, stride - 1) for stride in strides]
    sizes = [
        strides[n] * (size - 1) + more[n] + kernel[n] - pads[n] - pads[n + axes] for n, size in enumerate(shape[2:])
    ]
    _need(min(sizes) >= 1)
    groups = graph.choice(*(number for number in range(1, shape[1] + 1) if shape[1] % number == 0))
    own = graph.number(1, 2)
    inputs = [source, graph.weight(shape[1], own, *kernel)]
    settings = {"kernel_shape": kernel, "strides": strides, "pads": pads, "output_padding": more, "group": groups}
    graph.add("ConvTranspose", inputs, (shape[0], own * groups, *sizes), **settings)


def matrix_product(graph: GraphBuilder, source: str) -> None:
    """MatMul of a tensor and a constant, on either side, or of the tensor and its transpose."""
    shape = graph.tensors[source]
    _need(len(shape) >= 2)
    form = graph.number(0, 2)
    size = graph.number(1, 3)
    if form == 0:
        graph.add("MatMul", [source, graph.weight(shape[-1], size)], (*shape[:-1], size))
    elif form == 1:
        graph.add("MatMul", [graph.weight(size, shape[-2]), source], (*shape[:-2], size, shape[-1]))
    else:
        graph.hides_dependencies |= bool(graph.nodes)  # what a convolution left 0 may be a factor
        order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
        turned = graph.add("Transpose", [source], (*shape[:-2], shape[-1], shape[-2]), perm=order)
        graph.add("MatMul", [source, turned], (*shape[:-1], shape[-2]))


def general_product(graph: GraphBuilder, source: str) -> None:
    """Gemm with either operand transposed, and a bias that is broadcast."""
    shape = graph.tensors[source]
    _need(len(shape) == 2)
    first, second = graph.number(0, 1), graph.number(0, 1)
    rows, common = (shape[1], shape[0]) if first else shape
    size = graph.number(1, 3)
    weight = graph.weight(*((size, common) if second else (common, size)))
    bias = graph.choice([], [graph.weight(size)], [graph.weight(rows, 1)])
    graph.add("Gemm", [source, weight, *bias], (rows, size), transA=first, transB=second, alpha=0.5)


def pooling(graph: GraphBuilder, source: str) -> None:
    """AveragePool and MaxPool, 1-D and 2-D."""
    shape = graph.tensors[source]
    _need(len(shape) in (3, 4))
    kernel = tuple(graph.number(1, min(3, size)) for size in shape[2:])
    attributes, counts = _windows(graph, shape[2:], kernel)
    if graph.number(0, 1):
        graph.add("MaxPool", [source], (*shape[:2], *counts), **attributes)
    else:
        graph.add("AveragePool", [source], (*shape[:2], *counts), count_include_pad=1, **attributes)


def global_pooling(graph: GraphBuilder, source: str) -> None:
    """GlobalAveragePool and GlobalMaxPool."""
    shape = graph.tensors[source]
    _need(len(shape) in (3, 4))
    # The reference evaluator of GlobalMaxPool fails for other ranks.
    operator = graph.choice("GlobalAveragePool", *(["GlobalMaxPool"] if len(shape) == 4 else []))
    graph.add(operator, [source], (*shape[:2], *(1 for _ in shape[2:])))


def elementwise(graph: GraphBuilder, source: str) -> None:
    """Operators of one operand."""
    operators = ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "Softplus", "Erf", "HardSwish", "Identity", "Gelu")
    graph.add(graph.choice(*operators), [source], graph.tensors[source])


def broadcast_pair(graph: GraphBuilder, source: str) -> None:
    """Add, Mul and Max with a constant or another tensor, broadcast."""
    shape = graph.tensors[source]
    fitting = [name for name, other in graph.tensors.items() if _broadcast(shape, other) is not None]
    other = graph.choice("", *fitting)
    if not other:
        sizes = [graph.choice(1, size) for size in shape[graph.number(0, len(shape)) :]]
        other = graph.weight(*sizes)
    else:
        sizes = list(graph.tensors[other])
    result = _broadcast(shape, tuple(sizes))
    _need(result is not None and np.prod(result) <= MOST_ELEMENTS)
    operands = [source, other] if graph.number(0, 1) else [other, source]
    operator = graph.choice("Add", "Mul", "Max")
    graph.hides_dependencies |= operator == "Mul" and other in graph.tensors and bool(graph.nodes)
    graph.add(operator, operands, result or ())


def _broadcast(first: Shape, second: Shape) -> Shape | None:
    try:
        return np.broadcast_shapes(first, second)
    except ValueError:
        return None


def softmax(graph: GraphBuilder, source: str) -> None:
    """Softmax and LogSoftmax along any axis of at least two elements."""
    shape = graph.tensors[source]
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    _need(bool(axes))
    graph.hides_dependencies = True
    graph.add(graph.choice("Softmax", "LogSoftmax"), [source], shape, axis=graph.choice(*axes))


def normalization(graph: GraphBuilder, source: str) -> None:
    """LayerNormalization, InstanceNormalization, BatchNormalization."""
    shape = graph.tensors[source]
    _need(len(shape) >= 3 and np.prod(shape[2:]) > 2)
    operator = graph.choice("LayerNormalization", "InstanceNormalization", "BatchNormalization")
    graph.hides_dependencies |= operator != "BatchNormalization"
    if operator == "LayerNormalization":
        graph.add(operator, [source, graph.weight(*shape[2:]), graph.weight(*shape[2:])], shape, axis=2)
    elif operator == "InstanceNormalization":
        graph.add(operator, [source, graph.weight(shape[1]), graph.weight(shape[1])], shape)
    else:
        positive = graph.constant(np.full(shape[1], 0.7, np.float32))
        factors = [graph.weight(shape[1]) for _ in range(3)]
        graph.add(operator, [source, *factors, positive], shape)


def reduction(graph: GraphBuilder, source: str) -> None:
    """Reductions along some axes, kept or not."""
    shape = graph.tensors[source]
    _need(bool(shape))
    axes = sorted({graph.number(0, len(shape) - 1) for _ in range(2)})
    keeps = graph.number(0, 1)
    result = [1 if axis in axes else size for axis, size in enumerate(shape) if keeps or axis not in axes]
    operator = graph.choice("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceSumSquare")
    graph.add(operator, [source, graph.constant(axes)], tuple(result), keepdims=keeps)


def resize(graph: GraphBuilder, source: str) -> None:
    """Resize: nearest and linear, by sizes."""
    shape = graph.tensors[source]
    _need(len(shape) == 4)
    sizes = [*shape[:2], *(graph.number(1, 2 * size) for size in shape[2:])]
    mode = graph.choice("nearest", "linear")
    place = graph.choice("asymmetric", "half_pixel", "align_corners")
    settings = {"mode": mode, "coordinate_transformation_mode": place}
    graph.add("Resize", [source, "", "", graph.constant(sizes)], tuple(sizes), **settings)


def reshape(graph: GraphBuilder, source: str) -> None:
    """Reshape to factors in any order."""
    shape = graph.tensors[source]
    rest = int(np.prod(shape))
    sizes = []
    while rest > 1 and len(sizes) < 3:
        sizes.append(graph.choice(*(number for number in range(2, rest + 1) if rest % number == 0)))
        rest //= sizes[-1]
    sizes += [rest] if rest > 1 or not sizes else []
    graph.add("Reshape", [source, graph.constant(sizes)], tuple(sizes))


def transpose(graph: GraphBuilder, source: str) -> None:
    """Transpose in any order."""
    shape = graph.tensors[source]
    _need(bool(shape))
    order = graph.draw(st.permutations(range(len(shape))))
    graph.add("Transpose", [source], tuple(shape[axis] for axis in order), perm=order)


def concatenation(graph: GraphBuilder, source: str) -> None:
    """Concat with another tensor, itself, or a constant."""
    shape = graph.tensors[source]
    _need(bool(shape))
    axis = graph.number(0, len(shape) - 1)
    fitting = [
        name
        for name, other in graph.tensors.items()
        if len(other) == len(shape) and other[:axis] + other[axis + 1 :] == shape[:axis] + shape[axis + 1 :]
    ]
    other = graph.choice(*fitting, "")
    size = graph.tensors[other][axis] if other else 2
    other = other or graph.weight(*shape[:axis], 2, *shape[axis + 1 :])
    result = (*shape[:axis], shape[axis] + size, *shape[axis + 1 :])
    graph.add("Concat", [source, other] if graph.number(0, 1) else [other, source], result, axis=axis)


def slicing(graph: GraphBuilder, source: str) -> None:
    """Slice along one axis with any step."""
    shape = graph.tensors[source]
    _need(bool(shape))
    axis = graph.number(0, len(shape) - 1)
    size = shape[axis]
    start, end = graph.number(-size - 1, size), graph.number(-size - 1, size + 1)
    step = graph.choice(1, 2, -1, -2)
    count = len(range(*slice(start, end, step).indices(size)))
    _need(count > 0)
    values = [graph.constant([value]) for value in (start, end, axis, step)]
    graph.add("Slice", [source, *values], (*shape[:axis], count, *shape[axis + 1 :]))


def splitting(graph: GraphBuilder, source: str) -> None:
    """Split into two parts of any size."""
    shape = graph.tensors[source]
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    _need(bool(axes))
    axis = graph.choice(*axes)
    first = graph.number(1, shape[axis] - 1)
    sizes = [first, shape[axis] - first]
    parts = [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]
    graph.add("Split", [source, graph.constant(sizes)], *parts, axis=axis)


def gathering(graph: GraphBuilder, source: str) -> None:
    """Gather along an axis with constant indices of any rank."""
    shape = graph.tensors[source]
    _need(bool(shape))
    axis = graph.number(0, len(shape) - 1)
    picked = tuple(graph.number(1, 3) for _ in range(graph.number(0, 2)))
    result = (*shape[:axis], *picked, *shape[axis + 1 :])
    _need(np.prod(result) <= MOST_ELEMENTS)
    generator = np.random.default_rng(graph.number(0, 99))
    indices = graph.constant(generator.integers(-shape[axis], shape[axis], picked))
    graph.add("Gather", [source, indices], result, axis=axis)


def padding(graph: GraphBuilder, source: str) -> None:
    """Pad in any mode."""
    shape = graph.tensors[source]
    _need(bool(shape))
    pads = [graph.number(0, min(2, shape[place % len(shape)] - 1)) for place in range(2 * len(shape))]
    result = tuple(size + pads[axis] + pads[axis + len(shape)] for axis, size in enumerate(shape))
    _need(np.prod(result) <= MOST_ELEMENTS)
    graph.add("Pad", [source, graph.constant(pads)], result, mode=graph.choice("constant", "edge", "reflect", "wrap"))


def repetition(graph: GraphBuilder, source: str) -> None:
    """Expand and Tile."""
    shape = graph.tensors[source]
    repeats = [graph.number(1, 2) for _ in shape]
    if graph.number(0, 1):
        result = tuple(size * times for size, times in zip(shape, repeats, strict=True))
        _need(bool(shape) and np.prod(result) <= MOST_ELEMENTS)
        graph.add("Tile", [source, graph.constant(repeats)], result)
        return
    wider = (2, *(times if size == 1 else size for size, times in zip(shape, repeats, strict=True)))
    _need(np.prod(wider) <= MOST_ELEMENTS)
    graph.add("Expand", [source, graph.constant(wider)], wider)


def computed_gathering(graph: GraphBuilder, source: str) -> None:
    """Gather at indices that come from outside at run time."""
    shape = graph.tensors[source]
    _need(bool(shape))
    axis = graph.number(0, len(shape) - 1)
    name = f"i{len(graph.ranges)}"
    picked = (graph.number(1, 2),)
    graph.inputs[name], graph.ranges[name] = picked, (0, shape[axis] - 1)
    graph.add("Gather", [source, name], (*shape[:axis], *picked, *shape[axis + 1 :]), axis=axis)


def contraction(graph: GraphBuilder, source: str) -> None:
    """Einsum: two operands with a batch, a sum and an outer index; one operand with a sum."""
    shape = graph.tensors[source]
    _need(len(shape) == 3)
    if graph.number(0, 1):
        graph.add("Einsum", [source], (shape[2], shape[0]), equation="bij->jb")
        return
    weight = graph.weight(shape[2], shape[0], 2)
    graph.add("Einsum", [source, weight], (shape[0], 2, shape[1]), equation="bij,jbk->bki")


def scattering(graph: GraphBuilder, source: str) -> None:
    """ScatterND of constant or computed updates at constant rows."""
    shape = graph.tensors[source]
    _need(bool(shape))
    rows = [[graph.number(0, shape[0] - 1)] for _ in range(graph.number(1, 2))]
    wanted = (len(rows), *shape[1:])
    fitting = [name for name, other in graph.tensors.items() if other == wanted]
    updates = graph.choice(*fitting, "") or graph.weight(*wanted)
    kind = graph.choice("none", "add")
    graph.add("ScatterND", [source, graph.constant(rows), updates], shape, reduction=kind)


def depth_and_space(graph: GraphBuilder, source: str) -> None:
    """DepthToSpace of both modes, SpaceToDepth."""
    shape = graph.tensors[source]
    _need(len(shape) == 4)
    if shape[1] % 4 == 0:
        result = (shape[0], shape[1] // 4, shape[2] * 2, shape[3] * 2)
        graph.add("DepthToSpace", [source], result, blocksize=2, mode=graph.choice("DCR", "CRD"))
        return
    _need(shape[2] % 2 == 0 and shape[3] % 2 == 0)
    graph.add("SpaceToDepth", [source], (shape[0], shape[1] * 4, shape[2] // 2, shape[3] // 2), blocksize=2)


FAMILIES: dict[str, Extend] = {
    function.__name__: function
    for function in (
        convolution,
        transposed_convolution,
        matrix_product,
        general_product,
        pooling,
        global_pooling,
        elementwise,
        broadcast_pair,
        softmax,
        normalization,
        reduction,
        resize,
        reshape,
        transpose,
        concatenation,
        slicing,
        splitting,
        gathering,
        computed_gathering,
        contraction,
        padding,
        repetition,
        scattering,
        depth_and_space,
    )
}
