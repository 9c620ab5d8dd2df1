"""The design with the values of the hardware file: its index, and its comparison with the best design."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tilewright.designs.answer import answer_of
from tilewright.designs.base_design import base_design, base_sentence, with_base_design
from tilewright.designs.explore import explored
from tilewright.designs.space_reader import read_space
from tilewright.designs.tables import answer_text

from tests.unit.designs.conftest import costs, exploration

TINY = Path(__file__).resolve().parents[2] / "workflow" / "tiny"
SIZE = "memories.memory.size"


def source_of(**changes: Any) -> dict[str, Any]:
    """Return a space over the file `wide.yaml`, which has 8 lanes and a memory of 1 MiB."""
    return {
        "accelerator": str(TINY / "hardware" / "wide.yaml"),
        "networks": [str(TINY / "workload" / "two_layers.yaml")],
        "axes": {"lanes": {"path": "operational_array.sizes.0", "values": [2, 8, 16]}},
        "options": {"objective": "EDP", "lpf_limit": 3, "bounds": False},
    } | changes


@pytest.mark.parametrize("sheet", [False, True])
def test_the_design_has_the_hardware_of_the_file(sheet: bool, tmp_path: Path) -> None:
    """The base design has the hardware of the file, as a plain comparison of all designs finds; units do not matter."""
    base = read_space(source_of()).base
    lanes, sizes = [2, 4, 8], ["2 MiB", "1 MiB"]
    axes: dict[str, Any] = {"lanes": {"path": "operational_array.sizes.0"}, "size": {"path": SIZE}}
    if sheet:
        rows = "\n".join(f"{lane}\t{size}" for lane, size in product(lanes, sizes))
        (tmp_path / "sheet.tsv").write_text(f"lanes\tsize\n{rows}\n")
        space = read_space(source_of(axes=axes, designs=str(tmp_path / "sheet.tsv")))
    else:
        axes["lanes"]["values"], axes["size"]["values"] = lanes, sizes
        space = read_space(source_of(axes=axes))
    (expected,) = (index for index in range(len(space)) if space.design(index).hardware == base)
    assert base_design(space) == expected
    with_unit = {"size": {"path": SIZE, "values": ["1 KiB", "1024 KiB"]}}
    assert base_design(read_space(source_of(axes=with_unit))) == 1


def test_laws_must_have_the_values_of_the_file() -> None:
    """A space has a base design only if some design has the file's value at each place that a law sets."""
    bits = 8 * 2**20
    for values, expected in (([bits // 4, bits // 2, bits], 1), ([bits, 2 * bits], None)):
        space = read_space(source_of(axes={"half": {"values": values}}, laws={SIZE: "half * 2"}))
        assert base_design(space) == expected


def test_the_base_is_compared_with_the_best_design() -> None:
    """The summary compares the base design with the best one, with a note on generated spatial mappings."""
    source = source_of()
    space = read_space(source)
    answer = with_base_design(space, answer_of(explored(source, space, 1, lambda count: None)))
    rows = answer.overall.compared.set_index("index")
    index = base_design(space)
    (sentence,) = answer.base_notes
    values = rows["edp_pj_cycles"]
    name, least = rows.loc[index, "design"], rows.loc[values.idxmin(), "design"]
    assert index == 1
    assert values[index] > values.min()
    assert sentence.startswith(f"{name} has the values of the hardware file without changes: its EDP is ")
    assert f"{values[index] / values.min() - 1:.1%} more than that of {least}." in sentence
    assert "The space has no mapping file" in sentence
    assert sentence in answer_text(answer)
    mapped = read_space(source_of(mapping=str(TINY / "mapping" / "free.yaml")))
    assert "no mapping file" not in base_sentence(mapped, answer.overall, "edp_pj_cycles")
    other = source_of(axes={"lanes": {"path": "operational_array.sizes.0", "values": [3]}})
    assert base_sentence(read_space(other), answer.overall, "edp_pj_cycles") == ""


def test_a_best_value_of_zero() -> None:
    """The base design is said to be above a best design with an energy of 0."""
    answer = answer_of(exploration([costs(0.0, 10.0, 1.0), costs(5.0, 10.0, 1.0), costs(9.0, 10.0, 1.0)]))
    said = base_sentence(read_space(source_of()), answer.overall, "energy_pj")
    assert "design-1 has the values of the hardware file without changes" in said
    assert "µJ, more than that of design-0, which is 0." in said
