"""The example networks of config/workload equal the results of their script."""

import importlib.util
from pathlib import Path
from types import ModuleType

import onnx
import pytest
from tilewright.base.operator_groups import VECTOR_UNIT
from tilewright.base.profile import CORRECTED, REFERENCE
from tilewright.workload.onnx import read_onnx

FOLDER = Path(__file__).parents[4] / "config" / "workload"
MACS = {"resnet18": 1_814_073_344, "mobilenetv2": 300_774_272, "bert_tiny": 58_736_640}


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_models", FOLDER / "make_models.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", list(MACS))
def test_files_are_what_the_script_makes(name: str) -> None:
    """The script makes the committed bytes."""
    assert _script().model_bytes(name) == (FOLDER / f"{name}.onnx").read_bytes()


@pytest.mark.parametrize("name", list(MACS))
def test_multiply_accumulates(name: str) -> None:
    """The networks have their published work, all costed; a notice names only the rows of an embedding."""
    for profile in (REFERENCE, CORRECTED):
        parsed = read_onnx(FOLDER / f"{name}.onnx", profile)
        assert parsed.workload.name == name
        layers = [node.layer for node in parsed.workload.layers_in_order if node.layer and node.unit != VECTOR_UNIT]
        assert sum(layer.mac_count for layer in layers) == MACS[name]
        assert parsed.coverage.modelled_mac_count == parsed.coverage.total_mac_count == MACS[name]
        assert parsed.coverage.is_complete
        assert all("embeddings.word" in notice for notice in parsed.coverage.notices)
        assert parsed.coverage.notices == () or (name, profile) == ("bert_tiny", CORRECTED)


@pytest.mark.parametrize("name", list(MACS))
def test_stored_shapes_are_right(name: str) -> None:
    """The stored shapes equal those that onnx strictly infers from the graph alone."""
    model = onnx.load_from_string((FOLDER / f"{name}.onnx").read_bytes())
    stored = {value.name: value for value in (*model.graph.value_info, *model.graph.output)}
    del model.graph.value_info[:]
    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True).graph
    assert {value.name: value for value in (*inferred.value_info, *inferred.output)} == stored


def test_no_weights_inside() -> None:
    """The files hold shapes of weights and a few small constants, and nothing else."""
    for name in MACS:
        model = onnx.load_from_string((FOLDER / f"{name}.onnx").read_bytes())
        assert sum(len(tensor.raw_data) for tensor in model.graph.initializer) < 256
