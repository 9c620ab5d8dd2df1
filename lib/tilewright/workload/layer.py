"""Layer: a loop nest over named dimensions with affine operand accesses.

A part of a split layer has a name such as `conv1#2of4`, the second of four parts of `conv1`. An entry of a mapping file
that selects a layer by name or glob also selects the parts of the layer. An entry that names a part takes precedence.

The functions `activation_operand` and `weight_operand` follow the rule of zigzag-dse 3.9.1.

Equations have the form `O[b][k] += I[b][c] * W[c][k]`. Sliding windows have the form `ix = 2*ox + 1*fx`.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from tilewright.base.artifacts.codec import DERIVED, LEFT_OUT
from tilewright.base.hashes import hash_once
from tilewright.base.units import FieldError

OUTPUT = "O"
"""Name of the output operand. In tables of precision, the key `OUTPUT` gives the bits of partial sums, and the key
`FINAL_OUTPUT` gives the bits of final outputs.
"""
FINAL_OUTPUT = "O_final"


class DimensionRelation(NamedTuple):
    """Sliding window: `data_dimension = c1 * loop1 + c2 * loop2`, for example IX = 2*OX + 1*FX."""

    data_dimension: str
    terms: tuple[tuple[str, int], tuple[str, int]]
    """Terms of the right-hand side, from left to right: ((loop dimension, coefficient), (loop dimension,
    coefficient))."""


@hash_once
@dataclass(frozen=True)
class Layer:
    """One layer of a network. Names of dimensions are upper case; sizes do not include padding.

    Tables are tuples of pairs. A layer is therefore hashable, and equal layers have the same `repr`.
    """

    name: str
    operator_type: str
    operand_dimensions: tuple[tuple[str, tuple[str, ...]], ...]
    """Pairs (operand, dimensions of the operand) in equation order. The output is first."""
    loop_sizes: tuple[tuple[str, int], ...]
    """Pairs (loop dimension, size) in the layer's order, including dimensions of size 1."""
    relations: tuple[DimensionRelation, ...] = ()
    precision_bits: tuple[tuple[str, int], ...] = ()
    """Pairs (key, bits) with the bits of each input operand, of partial sums (key `O`) and of final outputs (key
    `O_final`)."""
    padding: tuple[tuple[str, tuple[int, int]], ...] = ()
    """Pairs (data dimension, (padding before, padding after)), in elements."""
    data_dimension_sizes: tuple[tuple[str, int], ...] = ()
    """Pairs (data dimension, size) for the data dimensions whose size is given, not computed from the sliding window.
    The padding of such a dimension is ignored.
    """
    constant_operands: tuple[str, ...] = ()
    """Input operands that are known before run time (weights)."""
    zeros: tuple[tuple[str, float], ...] = field(default=(), metadata=LEFT_OUT)
    """Pairs (key, share of zeros from 0 to 1). The keys are the input operands and `O_final` (final outputs). A share
    that the user does not give is missing. Partial sums have no share: they count as never zero."""
    part_of: tuple[str, ...] = field(default=(), compare=False, repr=False, metadata=DERIVED)
    """Operator that this layer is a part of, as (name, type); () for a layer that is a whole operator. If the type has
    a domain, the third entry is the type without the domain.

    For example, the maximum, the exponentials, the sum and the quotients of a softmax are parts of the softmax. The
    field does not change any cost."""

    @cached_property
    def size_of(self) -> dict[str, int]:
        """Size of each loop dimension."""
        return dict(self.loop_sizes)

    @cached_property
    def bits_of(self) -> dict[str, int]:
        """Bits per element, by key: an input operand, `O` (partial sums) or `O_final` (final outputs)."""
        return dict(self.precision_bits)

    @cached_property
    def zeros_of(self) -> dict[str, float]:
        """Share of zeros, by key. The keys are the input operands and `O_final` (final outputs). Keys without a given
        share are missing.
        """
        return dict(self.zeros)

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """Operands in equation order, the output first."""
        return tuple(operand for operand, _ in self.operand_dimensions)

    @property
    def input_operands(self) -> tuple[str, ...]:
        """Names of the input operands, in the order in which the equation of the layer names them."""
        return self.operands[1:]

    @cached_property
    def mac_count(self) -> int:
        """Multiply-accumulates (or operations) of the layer: the product of all loop sizes."""
        return math.prod(size for _, size in self.loop_sizes)

    @property
    def equation(self) -> str:
        """Equation as readable text, for example O[b][k][oy][ox] += W[k][c][fy][fx] * I[b][c][iy][ix]."""
        texts = [
            operand + "".join(f"[{dimension.lower()}]" for dimension in dimensions)
            for operand, dimensions in self.operand_dimensions
        ]
        return f"{texts[0]} += {' * '.join(texts[1:])}"


_PART = re.compile(r"(.+?)(#[1-9][0-9]*of[1-9][0-9]*)+", re.DOTALL)


def part_name(name: str, place: int, count: int) -> str:
    """Name of part `place` of the `count` parts of a layer. `place` counts from 0."""
    return f"{name}#{place + 1}of{count}"


_SUM = "#sum"


def sum_name(name: str, place: int, count: int) -> str:
    """Name of a layer that adds partial sums of the layer `name`. `place` is the index of this addition, from 0.
    `count` is the number of such additions for the layer `name`."""
    return f"{name}{_SUM}{place + 1}of{count}"


def is_sum_name(name: str) -> bool:
    """True if `name` is the name of a layer that adds partial sums."""
    return _SUM in name


def whole_name(name: str) -> str:
    """Name of the layer that a part belongs to. If parts were split again, the result is the name of the original
    layer. A name that is not the name of a part is returned unchanged."""
    match = _PART.fullmatch(name) if "#" in name else None
    return match[1] if match else name


def activation_operand(layer: Layer) -> str:
    """Input operand that other layers produce: the input that is not constant.

    If neither input is constant, the activation is the second input. If both are constant, it is the last input that
    has the layer's first sliding window. If no input has this window, it is the first input.
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
    """Input operand that is not the activation; None if the layer has only one input."""
    activation = activation_operand(layer)
    others = [operand for operand in layer.input_operands if operand != activation]
    return others[0] if others else None


INPUTS = ("W", "I")
"""Names that the inputs of an equation can have."""

LOOP_DIMENSION = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_DIMENSIONS = r"(?:\[[A-Za-z][A-Za-z0-9]*\])+"
EQUATION_PATTERN = rf"\s*{OUTPUT}{_DIMENSIONS}\s*\+?=\s*[WI]{_DIMENSIONS}\s*[*+]\s*[WI](?:{_DIMENSIONS}|\[\])\s*"
_EQUATION = re.compile(
    rf"(?P<output>\w+)(?P<output_dimensions>{_DIMENSIONS})\+?="
    rf"(?P<first>\w+)(?P<first_dimensions>{_DIMENSIONS})[*+]"
    rf"(?P<second>\w+)(?P<second_dimensions>{_DIMENSIONS}|\[\])"
)
_EQUATION_FORM = "O[..][..] += W[..] * I[..] with one dimension in each pair of brackets"

_TERM = r"(?:([0-9]{1,9})\s*\*\s*)?([A-Za-z][A-Za-z0-9]*)"
RELATION_PATTERN = rf"\s*([A-Za-z][A-Za-z0-9]*)\s*=\s*{_TERM}\s*\+\s*{_TERM}\s*"
_RELATION = re.compile(RELATION_PATTERN)

OperandDimensions = tuple[tuple[str, tuple[str, ...]], ...]


def check_loop_dimension(text: str) -> str:
    """`text` in upper case. Raises FieldError if `text` is not the name of a loop dimension: a letter, then letters and
    digits.
    """
    if LOOP_DIMENSION.fullmatch(text) is None:
        raise FieldError("is not the name of a loop dimension", "a letter, then letters and digits, such as K, OX, D0")
    return text.upper()


def parse_equation(text: str) -> OperandDimensions:
    """Pairs (operand, dimensions in upper case) of the output and of both inputs, in the order of the text. Raises
    FieldError if the text is not an equation of the output `O` and the two inputs `I` and `W`.
    """
    match = _EQUATION.fullmatch(re.sub(r"\s+", "", text))
    if match is None:
        raise FieldError("is not an equation of one output and two inputs", _EQUATION_FORM)
    if match["output"] != OUTPUT:
        raise FieldError(f"the output is called '{match['output']}'", OUTPUT)
    for operand in (match["first"], match["second"]):
        if operand not in INPUTS:
            raise FieldError(f"an input is called '{operand}'", " and ".join(INPUTS))
    if match["first"] == match["second"]:
        raise FieldError(f"both inputs are called '{match['first']}'", " and ".join(INPUTS))
    return tuple(
        (match[role], tuple(re.findall(r"\w+", match[f"{role}_dimensions"].upper())))
        for role in ("output", "first", "second")
    )


def parse_relation(text: str) -> DimensionRelation:
    """Sliding window from a text such as `ix = 2*ox + 1*fx`; a missing coefficient is 1. Raises FieldError for another
    form, a coefficient of 0, or a repeated dimension."""
    match = _RELATION.fullmatch(text)
    if match is None:
        raise FieldError("is not a sliding window over two loop dimensions", "ix = 2*ox + 1*fx")
    data, outer_coefficient, outer, inner_coefficient, inner = match.groups()
    terms = ((outer.upper(), int(outer_coefficient or 1)), (inner.upper(), int(inner_coefficient or 1)))
    if any(coefficient == 0 for _, coefficient in terms):
        raise FieldError("a coefficient must be at least 1", "ix = 2*ox + 1*fx")
    if len({data.upper(), terms[0][0], terms[1][0]}) < 3:
        raise FieldError("names the same dimension twice", "ix = 2*ox + 1*fx")
    return DimensionRelation(data.upper(), terms)


def operand_bits_of(precisions: Iterable[Mapping[str, int]]) -> dict[str, list[int]]:
    """Distinct bits per element of each operand over several layers: operand -> ascending numbers. `precisions` has one
    table (operand -> bits) per layer.
    """
    found: dict[str, set[int]] = {}
    for precision in precisions:
        for operand, bits in precision.items():
            found.setdefault(operand, set()).add(bits)
    return {operand: sorted(bits) for operand, bits in found.items()}
