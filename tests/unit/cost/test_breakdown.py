"""Impossible results are refused: negative numbers, and totals that are not the sum of their parts."""

import numpy as np
import pytest
from tilewright.cost.breakdown import InvariantError, verify
from tilewright.cost.problem import Problem, new_record
from tilewright.cost.workspace import ENERGY, LATENCY, Workspace, new_workspace
from tilewright.mapping.constraints import MappingConstraints
from tilewright.pipeline.sources import parse_accelerator, parse_workload
from tilewright.pipeline.stages.run import map_layer
from tilewright.search.blocks import cost_rows, write_block
from tilewright.search.evaluate import prepare
from tilewright.search.loma_kernel import BLOCK_DTYPE
from tilewright.search.options import SearchOptions
from tilewright.workload.layer import DimensionRelation, Layer

LINKS = MappingConstraints("any").memory_operand_links


@pytest.fixture
def evaluated() -> tuple[Problem, Workspace]:
    """Return a problem and the workspace of one of its orders."""
    layer = parse_workload("config/workload/resnet18.onnx").layers_in_order[1].layer
    core = parse_accelerator("config/hardware/zigzag/tpu_like.yaml").cores[0]
    assert layer is not None
    problem = prepare(layer, core, LINKS, (("D1", (("K", 32),)), ("D2", (("C", 32),))), SearchOptions()).arrays
    workspace = new_workspace()
    block = write_block(new_record(BLOCK_DTYPE), [1, 3, 4, 5, 6, 7], [2, 56, 56, 2, 3, 3], np.arange(6).reshape(1, 6))
    cost_rows(problem, workspace, block, 1)
    return problem, workspace


def test_a_true_result_passes(evaluated: tuple[Problem, Workspace]) -> None:
    """A correct result of the kernel passes."""
    verify(*evaluated)


@pytest.mark.parametrize("place", ["words", "energy", "load", "transfer_cycles"])
def test_a_negative_number_is_refused(evaluated: tuple[Problem, Workspace], place: str) -> None:
    """A negative access, energy or cycle is an error that says what is wrong."""
    evaluated[1][place][0, 0, 0] = -1
    with pytest.raises(InvariantError, match="contradicts itself: wrong"):
        verify(*evaluated)


@pytest.mark.parametrize(("total", "told"), [(ENERGY, "sum of energy"), (LATENCY, "sum of latency")])
def test_a_total_that_is_not_the_sum_is_refused(evaluated: tuple[Problem, Workspace], total: int, told: str) -> None:
    """A total off by a millionth of its parts is an error."""
    evaluated[1].totals[total] *= 1 + 1e-6
    with pytest.raises(InvariantError, match=told):
        verify(*evaluated)


def test_more_padding_than_positions_leaves_one() -> None:
    """Two rows of padding around a window of two positions leave one input position, never none or fewer."""
    layer = Layer(
        "hollow",
        "Conv",
        (("O", ("K", "OY")), ("W", ("K", "FY")), ("I", ("IY",))),
        (("K", 2), ("OY", 2), ("FY", 1)),
        (DimensionRelation("IY", (("OY", 1), ("FY", 1))),),
        (("O", 16), ("O_final", 8), ("W", 8), ("I", 8)),
        (("IY", (2, 1)),),
    )
    core = parse_accelerator("config/hardware/cube_3d.yaml").cores[0]
    for model in ("zigzag-3.9.1", "corrected"):
        record = map_layer(layer, core, MappingConstraints("default"), SearchOptions(model=model))
        assert record.word_accesses["I"][-1]["tl"] >= 0
