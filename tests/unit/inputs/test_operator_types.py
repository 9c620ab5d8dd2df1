"""`operator_types` of a hardware file, and mapping entries for kinds of layers."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright.base.artifacts.codec import encode
from tilewright.base.errors import InputError, MappingError
from tilewright.hardware.core import Core
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.mapping.yaml_reader import read_mapping
from tilewright.pipeline.stages.run import map_layer
from tilewright.results.recorded_mappings import mapping_yaml
from tilewright.search.options import SearchOptions

from tests.unit.cost.engine_cases import convolution, gemm, small_core
from tests.unit.mapping.vector_layers import binary, max_pool, relu

ROOT = Path(__file__).resolve().parents[3]
TPU_LIKE = yaml.safe_load((ROOT / "config" / "hardware" / "zigzag" / "tpu_like.yaml").read_text())


def core_with(operator_types: Any) -> Core:
    """Return the core of a hardware file with this key."""
    return read_accelerator({**TPU_LIKE, "operator_types": operator_types}).cores[0]


def test_a_core_multiplies_unless_it_says_more() -> None:
    """A core without the key runs only multiply-accumulate layers."""
    assert read_accelerator(TPU_LIKE).cores[0].operator_types == ("mac",)
    assert core_with(["mac", "MaxPool", "softmax"]).operator_types == ("mac", "MaxPool", "softmax")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["Maxpool"], r"operator_types\[0\]: .*did you mean 'MaxPool'"),
        (["mac", "poling"], r"operator_types\[1\]: .*did you mean 'pooling'"),
        (["relu"], "did you mean 'Relu'"),
        (["@vector"], "neither an operator type nor a group"),
        ([], "too few items"),
        (["mac", "mac"], "listed twice"),
        ("all", "must be a list"),
        ([3], "must be text"),
    ],
)
def test_wrong_operator_types_are_told(given: Any, told: str) -> None:
    """An unknown operator type is refused with the nearest name, regardless of capitals."""
    with pytest.raises(InputError, match=told):
        core_with(given)


def entries(*names: str) -> list[dict[str, Any]]:
    """Return a mapping file with an entry for each name."""
    return [{"name": name} for name in ("default", *names)]


@pytest.mark.parametrize(
    ("selectors", "chosen"),
    [
        (("@vector", "@mac"), ("@mac", "@mac", "@vector", "@vector")),
        (("@pooling", "@vector"), ("default", "default", "@vector", "@pooling")),
        (("@vector", "@pooling"), ("default", "default", "@vector", "@vector")),
        (("@depthwise", "MaxPool", "@vector"), ("default", "default", "@vector", "MaxPool")),
        (("relu", "@elementwise"), ("default", "default", "relu", "default")),
    ],
)
def test_entries_for_kinds_of_layers(selectors: tuple[str, ...], chosen: tuple[str, ...]) -> None:
    """Entries for names and operator types overrule entries for kinds of layers; of several kinds, the first counts."""
    mapping = read_mapping(entries(*selectors))
    layers = (convolution("conv", K=2), gemm("gemm", C=2), relu(K=2), max_pool(K=2, FX=2))
    assert tuple(mapping.constraints_for(layer).name for layer in layers) == chosen


def test_unknown_kinds_are_told() -> None:
    """An unknown kind of layer is refused with the nearest name."""
    with pytest.raises(InputError, match=r"no such kind of layer.*did you mean '@pooling'"):
        read_mapping(entries("@poling"))


def test_level_boundaries_of_a_layer_with_one_input() -> None:
    """A layer with one input needs no level boundaries of weights, and reads back with equal figures.
    A layer with weights needs them: the message names the missing operand.
    """
    core, layer = small_core(), relu(K=8, OY=6)
    given = {
        "spatial_mapping": {"D1": ["K, 4"], "D2": []},
        "temporal_ordering": [["K", 2], ["OY", 6]],
        "level_boundaries": {"O": [0, 1, 2], "I": [1, 2]},
    }
    mapping = read_mapping([{"name": "default", **given}])
    found = map_layer(layer, core, mapping.constraints_for(layer), SearchOptions())
    assert encode(found.level_boundaries) == given["level_boundaries"]
    exported = read_mapping(yaml.safe_load(mapping_yaml([found], tuple(core.operational_array.size_of))))
    again = map_layer(layer, core, exported.constraints_for(layer), SearchOptions())
    for key in ("energy_pj", "latency_cycles", "level_boundaries", "loop_order"):
        assert getattr(again, key) == getattr(found, key)
    with pytest.raises(MappingError, match="no entry for operand W"):
        map_layer(binary(K=8, OY=6), core, mapping.constraints_for(layer), SearchOptions())
