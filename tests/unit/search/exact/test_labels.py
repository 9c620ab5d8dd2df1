"""Labels of the search in problems where the width of outputs decides which mappings fit."""

import pytest
from tilewright.hardware.core import Core, Memory, OperationalArray, Port
from tilewright.search.evaluate import PreparedProblem, prepare
from tilewright.search.options import SearchOptions
from tilewright.workload.layer import Layer

from tests.plain.labels import AllLabels

LINKS = (("O", "O"), ("W", "I1"), ("I", "I2"))
WIDE_FINAL = (("I", 2), ("O", 1), ("O_final", 8))
WIDE_SUMS = (("I", 2), ("O", 8), ("O_final", 2))


def prepared(memories: tuple[Memory, ...], bits: tuple[tuple[str, int], ...]) -> PreparedProblem:
    """Sums of 5 products for each of 15 outputs, one operation a cycle, under the reference model."""
    operands = (("O", ("B", "K")), ("I", ("B", "D", "K")))
    layer = Layer("reduction", "Relu", operands, (("B", 1), ("D", 5), ("K", 15)), (), bits)
    core = Core("core", OperationalArray((("D1", 1),), 0.0, 1.0, ()), memories)
    return prepare(layer, core, LINKS, (("D1", (("B", 1),)),), SearchOptions(model="zigzag-3.9.1"))


def memory(name: str, size_bits: int, operands: tuple[str, ...], energy_pj: float, above: bool = True) -> Memory:
    """A memory with one port; with `above`, the output goes further up from the memory."""
    links = [(o, d) for o in operands for d in (("tl", "fl", "th", "fh") if o == "O" else ("tl", "fh"))]
    if not above:
        links = [(o, d) for o, d in links if (o, d) not in (("O", "th"), ("O", "fh"))]
    port = Port("rw", "read_write", 8, 8, tuple(links))
    return Memory(name, size_bits, energy_pj, energy_pj, operands, (port,), ("D1",))


@pytest.mark.parametrize("second_bits", [3, 5, 8, 12, 16])
@pytest.mark.parametrize("first_bits", [6, 12, 24])
def test_labels_whose_level_may_begin_early_are_not_called_one_with_others(first_bits: int, second_bits: int) -> None:
    """Labels are right even if a level of narrow sums begins below the loops that accumulate.

    This can happen if these loops are placed last.
    """
    top = Memory("top", 10**9, 20.0, 20.0, ("I1", "I2", "O"), _top_ports(("I1", "I2", "O")), ("D1",))
    memories = (memory("m0", first_bits, ("I2", "O"), 3.0), memory("m1", second_bits, ("O",), 1.0), top)
    _check(prepared(memories, WIDE_FINAL))


@pytest.mark.parametrize("bits", [WIDE_FINAL, WIDE_SUMS])
@pytest.mark.parametrize("shared_bits", [32, 34, 40, 50, 60, 90, 122, 126, 130, 140, 150])
def test_tiles_beside_the_topmost_level_of_outputs_are_told_apart(
    shared_bits: int, bits: tuple[tuple[str, int], ...]
) -> None:
    """Labels are right where outputs end in a memory of inputs, whose room depends on whether it keeps sums or
    results.
    """
    top = Memory("top", 10**9, 20.0, 20.0, ("I1", "I2"), _top_ports(("I1", "I2")), ("D1",))
    memories = (memory("m0", 16, ("O",), 1.0), memory("m1", shared_bits, ("I2", "O"), 3.0, above=False), top)
    _check(prepared(memories, bits))


def _top_ports(operands: tuple[str, ...]) -> tuple[Port, ...]:
    links = [(o, d) for o in operands for d in (("tl", "fl") if o == "O" else ("tl",))]
    return (Port("rw", "read_write", 8, 8, tuple(links)),)


def _check(problem: PreparedProblem) -> None:
    for objective in ("energy", "latency", "EDP"):
        labels = AllLabels(problem, objective, True)
        assert labels.leaves
        assert not [*labels.wrong_merges(), *labels.wrong_bounds()]
