"""The Python interface: the verbs of the command line as functions."""

from pathlib import Path

import pytest
import tilewright
from tilewright.pipeline.stages import Pipeline
from tilewright.pipeline.stages.temporal import Loma
from tilewright.pipeline.stages.watchers import SimpleSave
from tilewright.workload.network_options import NetworkOptions

HARDWARE, MAPPING = "config/hardware/cube_3d.yaml", "config/mapping/cube_3d.yaml"
WORKLOAD = [
    {
        "id": 0,
        "name": "product",
        "operator_type": "Gemm",
        "equation": "O[d][k] += I[d][c] * W[c][k]",
        "loop_dims": ["D", "C", "K"],
        "loop_sizes": [32, 48, 64],
        "operand_precision": {"W": 8, "I": 8, "O": 32, "O_final": 8},
        "operand_source": {"W": 0, "I": 0},
    }
]


def test_validate_returns_all_problems(tmp_path: Path) -> None:
    """`validate` returns no problem for a correct file and two problems with lines for two mistakes."""
    assert tilewright.validate(HARDWARE) == ()
    text = Path(HARDWARE).read_text().replace("unit_energy:", "unit_energi:").replace("sizes:", "sizess:")
    (tmp_path / "wrong.yaml").write_text(text)
    problems = tilewright.validate(tmp_path / "wrong.yaml")
    assert [problem.nearest for problem in problems] == ["sizes", "unit_energy"]
    assert all(problem.line > 0 for problem in problems)


def test_map_evaluate_export_agree(tmp_path: Path) -> None:
    """The mapping of `map_workload` costs the same in `evaluate`, and again after an export and a second search."""
    mapped = tilewright.map_workload(WORKLOAD, HARDWARE, MAPPING, exploit_data_locality=False)
    (record,) = mapped.records
    layer = tilewright.parse_workload(WORKLOAD).layers_in_order[0].layer
    core = tilewright.parse_accelerator(HARDWARE).cores[0]
    again = tilewright.evaluate(layer, core, record.spatial_mapping, record.loop_order)
    assert (again.energy_pj, again.latency_cycles) == (record.energy_pj, record.latency_cycles)
    exported = tmp_path / "found.yaml"
    exported.write_text(tilewright.export_mapping(mapped.records, HARDWARE))
    third = tilewright.map_workload(WORKLOAD, HARDWARE, exported, exploit_data_locality=False)
    assert third.records[0].energy_pj == record.energy_pj
    assert third.summary["evaluations"] == 1
    assert "product" in tilewright.export_loop_nests(mapped.records)


def test_a_pipeline_from_python(tmp_path: Path) -> None:
    """A pipeline takes stages as names, classes or objects, and writes into the given folder."""
    plain = tilewright.map_workload(WORKLOAD, HARDWARE, MAPPING, preset="zigzag")
    pipeline = [{"replace": "Loma", "stage": Loma(lpf_limit=6)}, {"insert": SimpleSave, "before": "Sum"}]
    staged = tilewright.map_workload(WORKLOAD, HARDWARE, MAPPING, pipeline=pipeline, exports=tmp_path)
    assert staged == plain
    assert (tmp_path / "overall_simple.json").is_file()
    built = Pipeline.build(pipeline, onnx=False)
    assert tilewright.map_workload(WORKLOAD, HARDWARE, MAPPING, pipeline=built, exports=tmp_path) == plain
    with pytest.raises(tilewright.InputError, match="did you mean 'Loma'"):
        tilewright.map_workload(WORKLOAD, HARDWARE, MAPPING, pipeline=[{"drop": "Lima"}])


def test_options_by_name() -> None:
    """Options by name equal a `SearchOptions`, and wrong options are reported."""
    options = tilewright.SearchOptions(objective="latency", lpf_limit=3)
    by_name = tilewright.map_workload(WORKLOAD, HARDWARE, MAPPING, options, objective="energy")
    energy = tilewright.SearchOptions(objective="energy", lpf_limit=3)
    assert by_name == tilewright.map_workload(WORKLOAD, HARDWARE, MAPPING, energy)
    with pytest.raises(tilewright.InputError, match=r"lpf_limt: .*did you mean 'lpf_limit'"):
        tilewright.map_workload(WORKLOAD, HARDWARE, MAPPING, lpf_limt=3)
    network, nowhere = "config/workload/bert_tiny.onnx", NetworkOptions(dims=(("nowhere", 1),))
    with pytest.raises(tilewright.InputError, match="nowhere"):
        tilewright.map_workload(network, HARDWARE, MAPPING, network_options=nowhere)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A misspelt function is an AttributeError with its name."""
    with pytest.raises(AttributeError, match="no attribute 'evalute'"):
        _ = tilewright.evalute
