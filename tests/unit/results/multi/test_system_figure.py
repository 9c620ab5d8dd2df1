"""The figure of an accelerator of several cores."""

from pathlib import Path
from typing import Any

import pytest
from tilewright.cli.main import main
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.pipeline.sources import parse_accelerator
from tilewright.results.multi.system_figure import system_figure, system_layout, write_system_figure

from tests.unit.hardware.system_cases import MULTI, PUBLISHED_CHIPS, SHARED, connected, mesh, read
from tests.unit.results.test_nest_figure import assert_texts_are_readable, texts

FILES = [*sorted(MULTI.glob("*.yaml")), *sorted((SHARED / "stream-reference" / "hw").glob("hw2[ps]*.yaml"))]
FILES += PUBLISHED_CHIPS


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_texts_are_readable(path: Path) -> None:
    """No text leaves the figure or touches another text."""
    accelerator = parse_accelerator(path)
    assert isinstance(accelerator, MultiCoreAccelerator)
    assert_texts_are_readable(system_figure(accelerator))


def test_what_the_figure_says() -> None:
    """The figure shows buses, ports, the bandwidth and energy of links, and the role, array and memories of cores."""
    accelerator = parse_accelerator(MULTI / "quad_core.yaml")
    assert isinstance(accelerator, MultiCoreAccelerator)
    shown = texts(system_figure(accelerator))
    for part in ("0: k16_c16", "4: pooling", "simd", "array D1 16 × D2 16", "dram 1 GiB: I1 I2 O", "runs vector"):
        assert part in shown
    assert "bus 0,1,2,3,4,5: 64 b/cycle, 0.32 pJ/b" in shown
    assert "port of 6: 64 b/cycle, 0.32 pJ/b" in shown


def test_links_of_neighbours_are_arrows_and_all_others_bars(tmp_path: Path) -> None:
    """Each pair of neighbours in a mesh has an arrow; links of the pooling core to cores farther away are a bar."""
    layout = system_layout(read(tmp_path, mesh(2, 2, {"pooling_core_id": 4, "offchip_core_id": 5})))
    assert sorted(arrow.core_ids for arrow in layout.arrows) == [(0, 1), (0, 2), (1, 3), (2, 3), (2, 4)]
    assert [(bar.core_ids, bar.is_shared) for bar in layout.bars] == [((4, 0, 1, 3), False), ((0, 1, 2, 3, 4, 5), True)]


def test_a_chain_is_a_row_of_arrows_that_point_one_way(tmp_path: Path) -> None:
    """Columns are chosen so that links join neighbours, so a chain is a row of arrows in one direction."""
    entries: list[Any] = [{"type": "link", "cores": [core, core + 1], "directed": True} for core in range(4)]
    layout = system_layout(read(tmp_path, connected(5, [*entries, "0, 1, 2, 3, 4, 5"])))
    assert (layout.columns, layout.rows) == (5, 1)
    assert [(arrow.core_ids, arrow.both_ways) for arrow in layout.arrows] == [((c, c + 1), False) for c in range(4)]


def test_every_link_is_drawn_once(tmp_path: Path) -> None:
    """Every pair with links of its own is an arrow or a branch of one bar."""
    for path in sorted(MULTI.glob("*.yaml")):
        accelerator = parse_accelerator(path)
        assert isinstance(accelerator, MultiCoreAccelerator)
        layout = system_layout(accelerator)
        drawn = [tuple(sorted(arrow.core_ids)) for arrow in layout.arrows]
        for bar in layout.bars:
            hub, *others = bar.core_ids
            drawn += [] if bar.is_shared else [tuple(sorted((hub, other))) for other in others]
        assert sorted(drawn) == sorted({link.core_ids for link in accelerator.links if len(link.core_ids) == 2})


def test_draw_writes_the_system_and_each_core_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`draw` writes SVG and PNG, with the same bytes each time."""
    assert main(["draw", str(MULTI / "quad_core.yaml"), "-o", str(tmp_path / "quad.svg")]) == 0
    names = [Path(line).name for line in capsys.readouterr().out.split()]
    stems = ["quad", "quad-k16_c16", "quad-pooling", "quad-simd"]
    assert names == [f"{stem}.{kind}" for stem in stems for kind in ("svg", "png")]
    accelerator = parse_accelerator(MULTI / "quad_core.yaml")
    assert isinstance(accelerator, MultiCoreAccelerator)
    svg, png = write_system_figure(accelerator, tmp_path / "again")
    assert svg.read_bytes() == (tmp_path / "quad.svg").read_bytes()
    assert png.read_bytes() == (tmp_path / "quad.png").read_bytes()
