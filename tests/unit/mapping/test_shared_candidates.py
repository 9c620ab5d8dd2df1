"""Generated spatial candidates that share an unrolling, under the reference and the corrected profile (B38)."""

import pytest
from tilewright.base.profile import profile_by_name
from tilewright.hardware.core import Core, Memory, OperationalArray, Port
from tilewright.mapping.constraints import MappingConstraints
from tilewright.mapping.spatial_generation import spatial_candidates
from tilewright.workload.layer import Layer

LAYER = Layer(
    "product",
    "Gemm",
    (("O", ("D", "K")), ("I", ("D", "C")), ("W", ("C", "K"))),
    (("C", 4), ("D", 8), ("K", 4)),
    precision_bits=(("O", 16), ("O_final", 8), ("I", 8), ("W", 8)),
)
CONSTRAINTS = MappingConstraints("default", spatial_mapping_hint=(("D1", ("K", "C")), ("D2", ("D",))))


def memory(name: str, size_bits: int, operands: tuple[str, ...]) -> Memory:
    """Return a memory with one wide port for all operands that serves the whole array."""
    directions = ("tl", "fl", "th", "fh")
    allocation = tuple((operand, direction) for operand in operands for direction in directions)
    port = Port("rw_port_1", "read_write", 64, 1024, allocation)
    return Memory(name, size_bits, 1.0, 1.0, operands, (port,), ("D1", "D2"))


@pytest.mark.parametrize(
    ("model", "first"),
    [("zigzag-3.9.1", 2), ("zigzag-3.9.1+independent_spatial_candidates", 8), ("corrected", 8)],
)
def test_capacity_of_one_candidate_and_the_others(model: str, first: int) -> None:
    """The reference reduces D in the first candidate, which fits, when it limits the second candidate (B38).
    The register holds 8 inputs: K 4 x D 8 needs 8, D 8 x C 4 needs 32. The corrected model reduces only the second.
    """
    array = OperationalArray((("D1", 4), ("D2", 8)), 0.1)
    core = Core("core", array, (memory("register", 64, ("I1",)), memory("top", 2**20, ("I1", "I2", "O"))))
    candidates = spatial_candidates(LAYER, core, CONSTRAINTS, profile_by_name(model))
    assert candidates[0] == (("D1", (("K", 4),)), ("D2", (("D", first),)))
    assert candidates[1] == (("D1", (("C", 3),)), ("D2", (("D", 2),)))
