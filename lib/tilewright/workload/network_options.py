"""Options of an ONNX model that its file leaves open."""

from typing import NamedTuple

from tilewright.base.errors import InputError, Problem, nearest_name
from tilewright.base.json_values import JsonObject

ASSUMED, FILE = "assumed", "file"
PRECISIONS = (ASSUMED, FILE)
"""`assumed`: floating-point tensors count as quantised to 8 bits, as in zigzag-dse; `file`: as stored in the file."""
BRANCHES = ("then", "else")


class NetworkOptions(NamedTuple):
    """Sizes, branches and precision for the reading of an ONNX model. Tables are tuples of pairs."""

    dims: tuple[tuple[str, int], ...] = ()
    """Sizes of dynamic dimensions by symbol (`sequence`) or by place (`input_ids[1]`); a batch not given is 1."""
    input_shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Whole shapes of network inputs."""
    branches: tuple[tuple[str, str], ...] = ()
    """Operator `If` (or `*` for all) -> `then` or `else`, where its condition is not constant."""
    precision: str = ASSUMED
    """`assumed`: floats count as 8 bits; `file`: as stored."""

    def check(self) -> None:
        """Raises InputError for names of precisions and branches that there are not."""
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
        """What is said, as plain data for provenance."""
        return {
            "dims": [list(pair) for pair in self.dims],
            "input_shapes": [[name, list(shape)] for name, shape in self.input_shapes],
            "branches": [list(pair) for pair in self.branches],
            "precision": self.precision,
        }
