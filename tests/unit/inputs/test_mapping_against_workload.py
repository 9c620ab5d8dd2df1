"""Loop dimensions of a mapping file that no layer has."""

import pytest
from tilewright.base.errors import InputError
from tilewright.pipeline.stages import Descriptions
from tilewright.pipeline.stages.run import read_problem

HARDWARE, WORKLOAD = "config/hardware/zigzag/tpu_like.yaml", "config/workload/resnet18.onnx"


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("spatial_mapping", {"D1": ["KK, 32"]}, "did you mean 'K'"),
        ("spatial_mapping_hint", {"D1": ["Q"]}, "got 'Q'"),
        ("temporal_ordering", [["OXX", 14]], "did you mean 'OX'"),
    ],
)
def test_a_misspelt_dimension_is_an_error(key: str, value: object, told: str) -> None:
    """A dimension that is in neither the network nor a usual layer is refused with the nearest one."""
    entry = {"name": "default", "memory_operand_links": {"O": "O", "W": "I2", "I": "I1"}, key: value}
    with pytest.raises(InputError) as raised:
        read_problem(Descriptions(HARDWARE, WORKLOAD, [entry]))
    assert "no layer of resnet18 has this loop dimension" in str(raised.value)
    assert told in str(raised.value)


def test_a_usual_dimension_of_other_networks_is_none() -> None:
    """A usual dimension that the network lacks is accepted."""
    entry = {"name": "default", "spatial_mapping": {"D1": ["H, 4"]}, "temporal_ordering": [["D0", 2], ["*", "*"]]}
    assert read_problem(Descriptions(HARDWARE, WORKLOAD, [entry])).mapping.entries[0].name == "default"
