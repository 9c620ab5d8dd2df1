"""The text of a layer: equations, `O[b][k] += I[b][c] * W[c][k]`, and sliding windows, `ix = 2*ox + 1*fx`."""

import re

from tilewright.units import FieldError
from tilewright.workload.layer import OUTPUT, DimensionRelation

INPUTS = ("W", "I")
"""Names that the inputs of an equation may have."""

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
    """`text` in upper case if it can name a loop dimension. Raises FieldError."""
    if LOOP_DIMENSION.fullmatch(text) is None:
        raise FieldError("is not the name of a loop dimension", "a letter, then letters and digits, as K, OX, D0")
    return text.upper()


def parse_equation(text: str) -> OperandDimensions:
    """(operand, dimensions in upper case) of the output and both inputs, as written. Raises FieldError."""
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
    """The sliding window of `ix = 2*ox + 1*fx`; a coefficient left out is 1. Raises FieldError."""
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
