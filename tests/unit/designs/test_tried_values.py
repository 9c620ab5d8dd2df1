"""Values of axes, tried one at a time on the first design of a space."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright.cli.main import main
from tilewright.designs.space_reader import read_space
from tilewright.designs.tried_values import tried_values

from tests.unit.designs.test_slow_memories import keys

PORTS = [f"memories.memory.ports.{name}.bandwidth_max" for name in ("r_port_1", "w_port_1")]


def space_data(kib: list[Any], bits: list[int], **changes: Any) -> dict[str, Any]:
    """Return a space with an axis for the size of the memory and one for the width of its words."""
    axes = {"size": {"path": "memories.memory.size", "values": kib}, "bits": {"values": bits}}
    return keys(axes=axes, laws=dict.fromkeys(PORTS, "bits"), **changes)


@pytest.mark.parametrize(
    ("kib", "bits", "failed", "built"),
    [
        (["64 KiB", "128 KiB"], [128, 256], [], 2),
        (["64 KiB", "128 KiB", "64 MiB"], [128, 1280, 2560], [("size", "64 MiB"), ("bits", 1280), ("bits", 2560)], 4),
        (["64 KiB", "768 KB"], [128], [("size", "768 KB")], 1),
    ],
)
def test_each_value_is_tried_alone(kib: list[Any], bits: list[int], failed: list[Any], built: int) -> None:
    """Each value is tried alone, and each failing value is named: sizes, widths and units that are not allowed."""
    found = tried_values(read_space(space_data(kib, bits)))
    assert [(one.axis, one.value) for one in found.failed] == failed
    assert found.built == built


def test_excluded_values_are_not_tried() -> None:
    """A value that a constraint excludes is not tried."""
    found = tried_values(read_space(space_data(["64 KiB"], [128, 256, 1280], constraints=["bits <= 512"])))
    assert (found.built, found.failed) == (1, ())


def test_validate_warns_of_values_that_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`validate` gives one warning for each axis with failing values, and exit code 0."""
    path = tmp_path / "made.yaml"
    path.write_text(yaml.safe_dump(space_data(["64 KiB", "768 KB"], [128, 1280, 2560])))
    assert main(["validate", str(path)]) == 0
    printed = capsys.readouterr()
    assert "no errors, 2 warnings" in printed.out
    assert "axes.bits: the first design of the space is invalid with 1280, 2560 (reason for 1280:" in printed.err
    assert "of 6 designs, the check built 3 designs that differ from the first in one value" in printed.err
