"""Options for the properties that an ONNX file does not fix: sizes, branches, precision and bits."""

from typing import Any, NamedTuple

from tilewright.base.errors import InputError, Problem, nearest_name
from tilewright.base.json_values import JsonObject

ASSUMED, FILE = "assumed", "file"
PRECISIONS = (ASSUMED, FILE)
"""Values of the option `precision`, which sets the bits of floating-point tensors. `assumed`: 8 bits per element, as if
the tensors were quantised (as in zigzag-dse). `file`: the bits that the file stores."""
BRANCHES = ("then", "else")
WEIGHTS, ACTIVATIONS, PARTIAL = "weights", "activations", "partial"
BIT_OPERANDS = (WEIGHTS, ACTIVATIONS, PARTIAL)
"""Kinds of tensors whose bits a user can give. WEIGHTS are constants, ACTIVATIONS are all other tensors of the network,
and PARTIAL are partial sums.
"""
MOST_BITS = 1024
OUTPUTS = "outputs"
ZERO_OPERANDS = (WEIGHTS, ACTIVATIONS, OUTPUTS)
"""Kinds of data whose share of zeros a user can give. WEIGHTS are constant inputs of layers, ACTIVATIONS are all other
inputs, and OUTPUTS are final outputs."""


class NetworkOptions(NamedTuple):
    """Sizes, branches and precision with which an ONNX model is read. A field that is a table is a tuple of pairs (key,
    value).
    """

    dims: tuple[tuple[str, int], ...] = ()
    """Sizes of dynamic dimensions, by symbol (`sequence`), by position (`input_ids[1]`) or by pattern (`*.height`). A
    batch dimension without a given size has the size 1.
    """
    input_shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Shapes of network inputs and of tensors inside the network, by tensor name."""
    branches: tuple[tuple[str, str], ...] = ()
    """Branch (`then` or `else`) of each operator `If` whose condition is not constant, by name of the operator. The
    name `*` stands for all these operators."""
    precision: str = ASSUMED
    """Bits of floating-point tensors: `assumed` counts 8 bits per element; `file` counts the stored bits."""

    bits: tuple[tuple[str, int], ...] = ()
    """Pairs (key, bits). The key `weights`, `activations` or `partial` applies to all operators. `Conv.weights` applies
    to one operator type, and `conv1.weights` to one operator.
    """
    zeros: tuple[tuple[str, float], ...] = ()
    """Pairs (key, share of zeros). The key `weights`, `activations` (inputs) or `outputs` applies to all operators.
    `Conv.weights` applies to one operator type, and `conv1.weights` to one operator.
    """

    def check(self) -> None:
        """Raise InputError for an unknown precision, branch or operand, for bits out of range, and for shares of zeros
        out of range."""
        problems = []
        if self.precision not in PRECISIONS:
            nearest = nearest_name(self.precision, PRECISIONS)
            allowed = ", ".join(PRECISIONS)
            problems.append(Problem("unknown precision", "", 0, "precision", repr(self.precision), allowed, nearest))
        for operator, branch in self.branches:
            if branch not in BRANCHES:
                path, allowed = f"branches.{operator}", ", ".join(BRANCHES)
                problems.append(Problem("unknown branch", "", 0, path, repr(branch), allowed))
        problems += _faults_of_bits(self.bits)
        problems += _faults_of_zeros(self.zeros)
        if problems:
            raise InputError(problems)

    def stated(self) -> JsonObject:
        """Options as JSON values, for the record of provenance."""
        return {
            "dims": [list(pair) for pair in self.dims],
            "input_shapes": [[name, list(shape)] for name, shape in self.input_shapes],
            "branches": [list(pair) for pair in self.branches],
            "precision": self.precision,
            **({"bits": [list(pair) for pair in self.bits]} if self.bits else {}),
            **({"zeros": [list(pair) for pair in self.zeros]} if self.zeros else {}),
        }

    @classmethod
    def of_stated(cls, stated: JsonObject) -> "NetworkOptions":
        """Options from JSON values in the form that the method `stated` returns. Unknown keys are ignored. A missing
        key has the default of its option.
        """
        return cls(**{name: _pairs(stated[name]) for name in cls._fields if name in stated})


def _pairs(value: Any) -> Any:
    """Nested lists of JSON as nested tuples. A value that is not a list is returned unchanged."""
    return tuple(map(_pairs, value)) if isinstance(value, list) else value


def _unknown_operand(option: str, key: str, operands: tuple[str, ...]) -> list[Problem]:
    """Problem of the key `key` of an option if the last part of the key is not in `operands`; else []."""
    operand = str(key).rpartition(".")[2]
    if operand in operands:
        return []
    allowed, nearest = ", ".join(operands), nearest_name(operand, operands)
    return [Problem("unknown operand", path=f"{option}.{key}", value=operand, allowed=allowed, nearest=nearest)]


def _faults_of_bits(pairs: tuple[tuple[str, int], ...]) -> list[Problem]:
    """Problems of the option `bits` that do not depend on the network: an unknown operand, or a number of bits out of
    range."""
    problems = []
    for key, bits in pairs:
        problems += _unknown_operand("bits", key, BIT_OPERANDS)
        if type(bits) is not int or not 1 <= bits <= MOST_BITS:
            allowed = f"a whole number from 1 to {MOST_BITS}"
            problems.append(Problem("wrong number of bits", path=f"bits.{key}", value=repr(bits), allowed=allowed))
    return problems


def _faults_of_zeros(pairs: tuple[tuple[str, float], ...]) -> list[Problem]:
    """Problems of the option `zeros` that do not depend on the network: an unknown operand, or a wrong share."""
    problems = []
    for key, share in pairs:
        problems += _unknown_operand("zeros", key, ZERO_OPERANDS)
        is_number = isinstance(share, int | float) and not isinstance(share, bool)
        if not (is_number and 0 <= share <= 1):
            allowed = "a number from 0 to 1"
            problems.append(Problem("wrong share of zeros", path=f"zeros.{key}", value=repr(share), allowed=allowed))
    return problems
