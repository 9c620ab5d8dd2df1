"""Options for what an ONNX file leaves open: sizes, branches and precision."""

from typing import NamedTuple

from tilewright.base.errors import InputError, Problem, nearest_name
from tilewright.base.json_values import JsonObject

ASSUMED, FILE = "assumed", "file"
PRECISIONS = (ASSUMED, FILE)
"""`assumed`: floating-point tensors count as quantised to 8 bits, as in zigzag-dse; `file`: as stored in the file."""
BRANCHES = ("then", "else")


class NetworkOptions(NamedTuple):
    """Sizes, branches and precision with which an ONNX model is read. Tables are tuples of pairs."""

    dims: tuple[tuple[str, int], ...] = ()
    """Sizes of dynamic dimensions, by symbol (`sequence`) or by position (`input_ids[1]`); a missing batch size is
    1.
    """
    input_shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Shapes of network inputs, by name."""
    branches: tuple[tuple[str, str], ...] = ()
    """Branch (`then` or `else`) of each operator `If` (or `*` for all) whose condition is not constant."""
    precision: str = ASSUMED
    """Bits of floating-point tensors: `assumed` counts 8 bits; `file` counts the stored bits."""

    def check(self) -> None:
        """Raise InputError for an unknown precision or branch."""
        problems = []
        if self.precision not in PRECISIONS:
            nearest = nearest_name(self.precision, PRECISIONS)
            allowed = ", ".join(PRECISIONS)
            problems.append(Problem("unknown precision", "", 0, "precision", repr(self.precision), allowed, nearest))
        for operator, branch in self.branches:
            if branch not in BRANCHES:
                path, allowed = f"branches.{operator}", ", ".join(BRANCHES)
                problems.append(Problem("unknown branch", "", 0, path, repr(branch), allowed))
        if problems:
            raise InputError(problems)

    def stated(self) -> JsonObject:
        """Options that were given, as plain data for the provenance."""
        return {
            "dims": [list(pair) for pair in self.dims],
            "input_shapes": [[name, list(shape)] for name, shape in self.input_shapes],
            "branches": [list(pair) for pair in self.branches],
            "precision": self.precision,
        }
