"""The axes of a layer's operands, and how they are the axes of a tensor that another layer makes.

Axes are matched by position. Groups and channels, [g][k] or [g][c], are one axis with the groups outside.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.workload.access import AxisIndex, Shape, fixed, loop
from tilewright.workload.layer import OUTPUT, DimensionRelation, Layer

_GROUP, _CHANNELS = "G", ("K", "C")


@dataclass(frozen=True)
class Window:
    """How a sliding window moves along an axis."""

    step: int
    """Indices from one position to the next: fewer than so many of the last ones may stay unread."""
    length: int
    """Indices from the first to the last of one position."""


@dataclass(frozen=True)
class OperandAxis:
    """One axis of an operand as its own layer describes it."""

    index: AxisIndex
    size: int
    """Without padding."""
    reach: int
    """Indices that the loops go through, without the padding that is given."""
    window: Window | None = None


@dataclass(frozen=True)
class AxisMatch:
    """How an axis of an operand reads an axis of a tensor."""

    index: AxisIndex
    extra_loop: tuple[tuple[str, int], ...] = ()
    """(name, size) of a loop that is none of the layer's, where what may be needed is assumed to be needed."""
    assumption: str = ""
    """What is assumed, in words; '' where all is known."""
    is_whole: bool = False
    """Whether the axes do not go together: nothing is known of what is needed."""


def operand_axes(layer: Layer, operand: str) -> tuple[OperandAxis, ...]:
    """The axes of an operand, in the order of the equation."""
    dimensions = dict(layer.operand_dimensions)[operand]
    channel = next((name for name in dimensions if name in _CHANNELS), None)
    if _GROUP not in dimensions or channel is None:
        return tuple(_axis(layer, name) for name in dimensions)
    channels = layer.size_of[channel]
    size = layer.size_of[_GROUP] * channels
    merged = OperandAxis(AxisIndex(((_GROUP, channels), (channel, 1))), size, size)
    place = min(dimensions.index(_GROUP), dimensions.index(channel))
    return tuple(
        merged if number == place else _axis(layer, name)
        for number, name in enumerate(dimensions)
        if number == place or name not in (_GROUP, channel)
    )


def _axis(layer: Layer, dimension: str) -> OperandAxis:
    relation = next((known for known in layer.relations if known.data_dimension == dimension), None)
    if relation is None:
        size = layer.size_of[dimension]
        return OperandAxis(loop(dimension), size, size)
    before, after = dict(layer.padding).get(dimension, (0, 0))
    positions = 1 + sum(coefficient * (layer.size_of[name] - 1) for name, coefficient in relation.terms)
    reach = max(1, positions - before - after)
    size = dict(layer.data_dimension_sizes).get(dimension, reach)
    return OperandAxis(AxisIndex(relation.terms, -before), size, reach, _window(layer, relation))


def _window(layer: Layer, relation: DimensionRelation) -> Window:
    """The loop of the output moves the window, the other one goes through it."""
    made = dict(layer.operand_dimensions)[OUTPUT]
    first, second = relation.terms
    (_, step), (inner, coefficient) = (first, second) if first[0] in made or second[0] not in made else (second, first)
    return Window(step, 1 + coefficient * (layer.size_of[inner] - 1))


def sizes_of(axes: Sequence[OperandAxis]) -> Shape:
    """The shape of an operand as its own layer describes it."""
    return tuple(axis.size for axis in axes)


def goes_together(axes: Sequence[OperandAxis], shape: Shape) -> bool:
    """Whether every axis of an operand can be that of a tensor, padding and repetition included."""
    if len(axes) != len(shape):
        return False
    return not any(match_axis(axis, size, "").is_whole for axis, size in zip(axes, shape, strict=True))


def is_reshape(axes: Sequence[OperandAxis], shape: Shape) -> bool:
    """Whether an operand has the elements of a tensor, but in a shape that does not go together with it."""
    return not goes_together(axes, shape) and math.prod(sizes_of(axes)) == math.prod(shape)


def match_axis(axis: OperandAxis, size: int, loop_name: str) -> AxisMatch:
    """How an axis of an operand reads one of `size` indices; `loop_name` is the name for an extra loop.

    Where padding is not given, the window may stand anywhere that leaves less than a window of padding at each end.
    """
    lacking = axis.reach - size
    if axis.window is None:
        if not lacking:
            return AxisMatch(axis.index)
        if size == 1:
            return AxisMatch(fixed())
    elif -axis.window.step < lacking <= 0:
        return AxisMatch(axis.index)
    elif 0 < lacking <= 2 * (axis.window.length - 1):
        most = min(lacking + axis.window.step - 1, axis.window.length - 1)
        index = AxisIndex((*axis.index.terms, (loop_name, -1)), axis.index.offset)
        text = f"{lacking} of padding are not given, so windows may begin up to {most} earlier"
        return AxisMatch(index, ((loop_name, most + 1),), text)
    return AxisMatch(loop(loop_name), ((loop_name, size),), "all of it may be needed", True)
