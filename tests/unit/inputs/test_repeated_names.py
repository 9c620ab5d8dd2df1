"""Repeated names: an error if one would be lost, a number if they can be told apart."""

from pathlib import Path

import pytest
from tilewright.base.errors import InputError
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.pipeline.sources import parse_accelerator, parse_mapping
from tilewright.pipeline.stages.run import map_workload
from tilewright.workload.graph import Workload
from tilewright.workload.yaml_reader import read_workload_yaml


def layer(number: int, k: int, c: int) -> dict:
    """Return a matrix product called x."""
    return {
        "id": number,
        "name": "x",
        "operator_type": "Gemm",
        "equation": "O[d][k] += I[d][c] * W[c][k]",
        "loop_dims": ["D", "C", "K"],
        "loop_sizes": [16, c, k],
        "operand_precision": {"W": 8, "I": 8, "O": 32, "O_final": 8},
        "operand_source": {"W": number, "I": number},
    }


def test_layers_of_one_name_get_numbers_and_their_own_costs() -> None:
    """Two layers called x become x and x__2 with a notice, and the totals include both."""
    notices: list[str] = []
    workload = read_workload_yaml([layer(0, 32, 16), layer(1, 16, 48)], notices)
    assert [node.name for node in workload.nodes] == ["x", "x__2"]
    assert "another layer has this name" in notices[0]
    core = parse_accelerator("config/hardware/cube_3d.yaml").cores[0]
    mapped = map_workload(workload, core, parse_mapping("config/mapping/cube_3d.yaml"))
    assert mapped.summary["mac_count"] == 16 * 32 * 16 + 16 * 16 * 48
    assert mapped.summary["energy_pj"] == sum(record.energy_pj for record in mapped.records)


def test_a_workload_made_in_code_with_one_name_twice_is_refused() -> None:
    """A workload built in code with two layers of one name is refused."""
    nodes = read_workload_yaml([layer(0, 32, 16)]).nodes
    core = parse_accelerator("config/hardware/cube_3d.yaml").cores[0]
    other = read_workload_yaml([layer(1, 16, 48)]).nodes
    with pytest.raises(InputError, match="two layers have this name, got x"):
        map_workload(Workload("w", nodes + other), core, parse_mapping("config/mapping/cube_3d.yaml"))


def test_a_memory_given_twice_is_an_error(tmp_path: Path) -> None:
    """A second memory of the same name is refused."""
    text = Path("config/hardware/cube_3d.yaml").read_text().replace("  input_buffer:", "  weight_buffer:")
    (tmp_path / "twice.yaml").write_text(text)
    with pytest.raises(InputError, match=r"twice.yaml:\d+ memories.weight_buffer: another memory has this name"):
        read_accelerator(tmp_path / "twice.yaml")
