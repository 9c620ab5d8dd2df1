"""A layer: a loop nest over named dimensions with affine operand accesses.

A part of a layer that was split has a name such as `conv1#2of4`, the second of four parts of `conv1`. What a mapping
file says for a layer, by its name or by a glob, holds for its parts too, unless it names the part.

Which input of a layer is the activation and which the weight is as in zigzag-dse 3.9.1 (roles of operands).
"""

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

OUTPUT = "O"
"""Name of the output operand; the partial-sum precision has the same key, the final one is `FINAL_OUTPUT`."""
FINAL_OUTPUT = "O_final"


class DimensionRelation(NamedTuple):
    """A sliding window: `data_dimension = c1 * loop1 + c2 * loop2`, for example IX = 2*OX + 1*FX."""

    data_dimension: str
    terms: tuple[tuple[str, int], tuple[str, int]]
    """((loop dimension, coefficient), (loop dimension, coefficient)), as written, left to right."""


@dataclass(frozen=True)
class Layer:
    """One layer of a network. All names of dimensions are upper case; sizes are true sizes, never padded.

    Tables are tuples of pairs, so that a layer is hashable and its text is canonical.
    """

    name: str
    operator_type: str
    operand_dimensions: tuple[tuple[str, tuple[str, ...]], ...]
    """(operand, its dimensions) in equation order, the output first."""
    loop_sizes: tuple[tuple[str, int], ...]
    """(loop dimension, size) in the layer's order; dimensions of size 1 stay."""
    relations: tuple[DimensionRelation, ...] = ()
    precision_bits: tuple[tuple[str, int], ...] = ()
    """Bits of each input operand, of partial sums (`O`) and of final outputs (`O_final`)."""
    padding: tuple[tuple[str, tuple[int, int]], ...] = ()
    """(data dimension, (before, after))."""
    data_dimension_sizes: tuple[tuple[str, int], ...] = ()
    """Explicit sizes of the data dimensions of relations; where given, padding is not used."""
    constant_operands: tuple[str, ...] = ()
    """Input operands known before run time (weights)."""

    @cached_property
    def size_of(self) -> dict[str, int]:
        """Loop dimension -> size."""
        return dict(self.loop_sizes)

    @cached_property
    def bits_of(self) -> dict[str, int]:
        """Operand (or `O_final`) -> bits per element."""
        return dict(self.precision_bits)

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """Operands in equation order, the output first."""
        return tuple(operand for operand, _ in self.operand_dimensions)

    @property
    def input_operands(self) -> tuple[str, ...]:
        """The operands that are read, in equation order."""
        return self.operands[1:]

    @cached_property
    def mac_count(self) -> int:
        """Multiply-accumulates (or operations) of the layer: the product of all loop sizes."""
        return math.prod(size for _, size in self.loop_sizes)

    @property
    def equation(self) -> str:
        """The equation as text, for people: O[b][k][oy][ox] += W[k][c][fy][fx] * I[b][c][iy][ix]."""
        texts = [
            operand + "".join(f"[{dimension.lower()}]" for dimension in dimensions)
            for operand, dimensions in self.operand_dimensions
        ]
        return f"{texts[0]} += {' * '.join(texts[1:])}"


_PART = re.compile(r"(.+?)(#[1-9][0-9]*of[1-9][0-9]*)+", re.DOTALL)


def part_name(name: str, place: int, count: int) -> str:
    """The name of part `place` (from 0) of `count`."""
    return f"{name}#{place + 1}of{count}"


def whole_name(name: str) -> str:
    """The name of the layer that a part, or a part of a part, is of; the name itself if it is not that of a part."""
    match = _PART.fullmatch(name) if "#" in name else None
    return match[1] if match else name


def activation_operand(layer: Layer) -> str:
    """The input that other layers produce: the one that is not constant.

    Of two inputs that are both computed, the second; of two constants, the last one with the first sliding window,
    else the first.
    """
    inputs = layer.input_operands
    constants = layer.constant_operands
    if len(constants) == 1 and len(inputs) > 1:
        return next(operand for operand in reversed(inputs) if operand not in constants)
    if not constants:
        return inputs[1] if len(inputs) > 1 else inputs[0]
    window = layer.relations[0].data_dimension if layer.relations else None
    dimensions = dict(layer.operand_dimensions)
    with_window = [operand for operand in inputs if window in dimensions[operand]]
    return with_window[-1] if with_window else inputs[0]


def weight_operand(layer: Layer) -> str | None:
    """The other input; None if there is only one."""
    activation = activation_operand(layer)
    others = [operand for operand in layer.input_operands if operand != activation]
    return others[0] if others else None
