"""Directions that no port carries: an error if every layer needs them, otherwise a notice."""

from pathlib import Path

import pytest
from tilewright.base.errors import InputError
from tilewright.base.yamlfile import parse_yaml
from tilewright.cli.main import main
from tilewright.hardware.system_reader import read_core_file
from tilewright.hardware.yaml_reader import accelerator_of

TPU = Path("config/hardware/zigzag/tpu_like.yaml").read_text()
DRAM = '"I1, fh", "I1, tl", "I2, fh", "I2, tl", "O, fh", "O, tl", "O, fl", "O, th"'


def read(text: str) -> list[str]:
    """Return the notices of a hardware file. Raises InputError."""
    notices: list[str] = []
    accelerator_of(parse_yaml(text, "core.yaml"), notices)
    return notices


def told(text: str) -> list[str]:
    """Return the problems of a hardware file."""
    with pytest.raises(InputError) as caught:
        read(text)
    return str(caught.value).splitlines()


def without(*pairs: str) -> str:
    """Return the core with an off-chip port that lacks some pairs."""
    kept = [pair for pair in DRAM.split(", ") if pair not in pairs]
    allocation = [f"{a}, {b}" for a, b in zip(kept[::2], kept[1::2], strict=True)]
    listed = ", ".join(pair for pair in allocation if pair.strip('"') not in pairs)
    return TPU.replace(DRAM, listed)


@pytest.mark.parametrize("pair", ["I1, tl", "I2, tl", "O, fl"])
def test_what_every_layer_needs_at_the_top(pair: str) -> None:
    """A top memory from which inputs cannot be read, or to which outputs cannot be written, is refused."""
    assert told(without(pair)) == [
        f"core.yaml:61 memories.dram.ports: no port carries '{pair}', which every layer needs"
    ]


@pytest.mark.parametrize("pair", ["I1, fh", "I2, fh", "O, fh", "O, th"])
def test_what_nothing_moves_at_the_top(pair: str) -> None:
    """Directions to a memory above the top are not needed and give no notice."""
    assert read(without(pair)) == []


def test_one_problem_for_each_memory() -> None:
    """Each memory has one problem with all its missing directions."""
    text = without("I1, tl", "O, fl").replace('"I1, fh", "O, fh", "O, fl"]', '"O, fh", "O, fl"]')
    assert told(text) == [
        "core.yaml:49 memories.sram_2MB.ports: no port carries 'I1, fh', which every layer needs",
        "core.yaml:61 memories.dram.ports: no port carries 'I1, tl', 'O, fl', which every layer needs",
    ]


def test_what_only_partial_sums_need_is_noted() -> None:
    """A missing direction that only partial sums need gets a notice."""
    assert read(without("O, tl")) == [
        "core.yaml:61 memories.dram.ports: no port carries 'O, tl': loop orders that read partial sums back will be"
        " refused"
    ]


def test_a_wrong_allocation_is_told_once() -> None:
    """A wrong pair in an allocation is reported once, without the direction that it may have meant."""
    (said,) = told(TPU.replace('"O, fl", "O, th"]', '"O, lf", "O, th"]'))
    assert "unknown direction 'lf'" in said
    (said,) = told(TPU.replace('"O, fh", "O, fl"]', '"O, fh", "O, tl"]'))
    assert "a write port cannot carry this direction" in said


def test_cores_without_multipliers_may_have_one_input(tmp_path: Path) -> None:
    """A core without multipliers may lack a direction of an input, with a notice, but no direction of an output."""
    pooling = "operator_types: [pooling]\n"
    assert any(
        "'I2, tl', which every layer with this input needs" in line for line in read(without("I2, tl") + pooling)
    )
    assert "'O, fl', which every layer needs" in told(without("O, fl") + pooling)[0]
    path = tmp_path / "core.yaml"
    path.write_text(without("I2, tl"))
    notices: list[str] = []
    read_core_file(path, False, notices)
    assert any("every layer with this input needs" in notice for notice in notices), "another file can name its use"
    path.write_text(without("O, fl"))
    read_core_file(path, True, [])


@pytest.mark.parametrize("verb", [["validate"], ["parse", "hardware"]])
def test_verbs_tell_it_before_anything_is_computed(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`validate`, `parse hardware` and `map` all report a missing direction and stop."""
    path = tmp_path / "core.yaml"
    path.write_text(without("O, fl"))
    assert main([*verb, str(path)]) == 2
    said = capsys.readouterr()
    assert said.err == f"error: {path}:61 memories.dram.ports: no port carries 'O, fl', which every layer needs\n"
    assert "no problems" not in said.out
    described = ["--workload", "config/workload/resnet18.onnx", "--mapping", "config/mapping/zigzag/tpu_like.yaml"]
    assert main(["map", "--hardware", str(path), *described, "--no-store"]) == 2
    assert capsys.readouterr().err == said.err
