"""The figure of a memory hierarchy, and the message on unknown areas."""

from dataclasses import replace
from pathlib import Path

import pytest
from tilewright.base.units import size_text
from tilewright.cli.main import main
from tilewright.hardware.core import Core, Memory, OperationalArray, Port
from tilewright.hardware.system import core_area, parts_without_area
from tilewright.pipeline.sources import parse_accelerator
from tilewright.results.hierarchy_figure import generations, hierarchy_figure, lane_order, write_hierarchy_figure

from tests.unit.results.test_nest_figure import assert_texts_are_readable, texts

HARDWARE = Path(__file__).parents[3] / "config" / "hardware"
FILES = sorted(HARDWARE.rglob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_texts_of_our_own_hardware_are_readable(path: Path) -> None:
    """No text leaves the figure or touches another text, for the hardware files of the project."""
    assert_texts_are_readable(hierarchy_figure(parse_accelerator(path).cores[0]))


def test_memories_stand_in_their_generations(core: Core) -> None:
    """A memory stands above all memories below it, and lanes of operands that share a memory are neighbours."""
    assert [[core.memories[i].name for i in generation] for generation in generations(core)] == [
        ["rf_128B", "rf_2B"],
        ["sram_2MB"],
        ["dram"],
    ]
    lanes = lane_order(core)
    assert abs(lanes.index("I1") - lanes.index("O")) == 1


def test_what_the_figure_says(core: Core) -> None:
    """The figure has sizes, instances, operands, ports with bandwidths, and dimensions of the array."""
    shown = texts(hierarchy_figure(core))
    assert "operational array  D1 32 × D2 32" in shown
    assert "2 MiB, one instance" in shown
    assert "128 B, 1024 instances, one per unit" in shown
    assert "r (read write) 2048 b/cycle: I1 tl, O tl/th" in shown
    assert shown.count("O") == 3


def test_arrows_go_both_ways_where_sums_do(core: Core) -> None:
    """Inputs go down and outputs go up, and also down where the port reads partial sums back."""
    arrows = [patch for patch in hierarchy_figure(core).findobj() if type(patch).__name__ == "FancyArrowPatch"]
    # Weights: two down; inputs: two down; outputs: three up and three down.
    assert len(arrows) == 10


def test_memories_that_would_overlap_get_rows_of_their_own() -> None:
    """Three memories that each hold two of three operands get rows of their own, as not all lanes can be neighbours."""
    port = (Port("p", "read_write", 8, 8, ()),)
    pairs = (("I1", "I2"), ("I2", "O"), ("I1", "O"))
    memories = tuple(Memory(f"m{i}", 64, 1.0, 1.0, pair, port, ()) for i, pair in enumerate(pairs))
    core = Core("triangle", OperationalArray((("D1", 2),), 1.0), memories)
    assert_texts_are_readable(hierarchy_figure(core))


def test_files_have_the_same_bytes_every_time(core: Core, tmp_path: Path) -> None:
    """Dates and random ids do not reach the files."""
    first, second = (write_hierarchy_figure(core, tmp_path / name) for name in ("a", "b"))
    assert [one.read_bytes() for one in first] == [other.read_bytes() for other in second]


def test_verb_draws_files_and_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`draw` writes an .svg with a .png beside it; a missing or unwritable file is an error of the user."""
    source = str(HARDWARE / "zigzag" / "tpu_like.yaml")
    assert main(["draw", source, "-o", str(tmp_path / "core.svg")]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["core.png", "core.svg"]
    assert main(["draw", str(tmp_path / "none.yaml"), "-o", str(tmp_path / "x.svg")]) == 2
    assert main(["draw", source, "-o", str(tmp_path / "core.svg" / "x.svg")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_areas_that_are_not_given(core: Core) -> None:
    """Units and on-chip memories without an area are named; a memory outermost for all its operands is off-chip."""
    assert parts_without_area(core) == ("units", "rf_128B", "rf_2B", "sram_2MB")
    array = replace(core.operational_array, unit_area_mm2=0.1)
    memories = (*(replace(memory, area_mm2=1.0) for memory in core.memories[:-1]), core.memories[-1])
    assert core_area(replace(core, operational_array=array, memories=memories)).note == ""
    assert core_area(replace(core, operational_array=array)).note.startswith("area not given for rf_128B")
    only = Core("flat", array, (core.memories[-1],))
    assert parts_without_area(only) == ("dram",)


def test_sizes_in_words() -> None:
    """Sizes are whole bytes in the largest binary unit; sizes that are no whole bytes are bits."""
    assert [size_text(bits) for bits in (1, 8, 12, 1024, 2**20, 10**10)] == [
        *("1 b", "1 B", "12 b", "128 B", "128 KiB", "1.16 GiB")
    ]
