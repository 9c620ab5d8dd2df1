"""Messages about several wrong inputs at once, and about impossible given mappings."""

import pytest
from tilewright.base.errors import MappingError
from tilewright.cli.main import main
from tilewright.mapping.constraints import MappingConstraints
from tilewright.pipeline.sources import parse_accelerator, parse_workload
from tilewright.search.evaluate import evaluate

LINKS = MappingConstraints("any").memory_operand_links


def run_map(hardware: str, workload: str, mapping: str) -> int:
    """Return the exit code of `tilewright map`."""
    return main(["map", "--hardware", hardware, "--workload", workload, "--mapping", mapping, "--no-store"])


def test_problems_of_all_three_files_come_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Three missing files are three lines with exit code 2."""
    assert run_map("no/hardware.yaml", "no/workload.onnx", "no/mapping.yaml") == 2
    said = capsys.readouterr().err
    assert [f"no such {what} file" in said for what in ("hardware", "workload", "mapping")] == [True] * 3


def test_a_mapping_for_another_array_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A mapping with an array dimension that the core lacks is refused with file, line and the core's dimensions."""
    code = run_map(
        "config/hardware/zigzag/tpu_like.yaml", "config/workload/resnet18.onnx", "config/mapping/cube_3d.yaml"
    )
    assert code == 2
    said = capsys.readouterr().err
    assert "config/mapping/cube_3d.yaml:" in said
    assert "got 'D3' (allowed: D1, D2)" in said


@pytest.mark.parametrize(
    ("spatial", "order", "told"),
    [
        ((("D9", (("K", 2),)),), (), "has no array dimension D9 (it has D1, D2)"),
        ((("D1", (("Q", 2),)),), (), "has no loop dimension Q"),
        ((("D1", (("K", 0),)),), (), "integers from 1"),
        (
            (("D1", (("K", 32), ("C", 2))),),
            (),
            "the spatial factors over array dimension D1 have the product 64, but D1 has the size 32",
        ),
        ((("D1", (("K", 2),)), ("D1", (("C", 2),))), (), "given twice"),
        ((), (("Q", 2),), "no loop dimension Q"),
        ((), (("K", 0),), "integers from 1"),
        ((), (("K", 2),), "wrong numbers of iterations"),
    ],
)
def test_an_impossible_given_mapping_is_refused(spatial: tuple, order: tuple, told: str) -> None:
    """A given mapping that is impossible is refused with a message; it is never changed."""
    layer = parse_workload("config/workload/resnet18.onnx").layers_in_order[1].layer
    core = parse_accelerator("config/hardware/zigzag/tpu_like.yaml").cores[0]
    with pytest.raises(MappingError) as raised:
        evaluate(layer, core, LINKS, spatial, order)
    assert told in str(raised.value)


def test_links_must_be_complete_and_one_to_one() -> None:
    """Links are refused if an operand has no memory operand, or if two operands share a memory operand."""
    layer = parse_workload("config/workload/resnet18.onnx").layers_in_order[1].layer
    core = parse_accelerator("config/hardware/zigzag/tpu_like.yaml").cores[0]
    for links, told in (((("O", "O"), ("W", "I2")), "no entry for operand I"),
                        ((("O", "O"), ("W", "I2"), ("I", "I2")), "two operands")):  # fmt: skip
        with pytest.raises(MappingError, match=told):
            evaluate(layer, core, links, (), ())
