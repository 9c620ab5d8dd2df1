"""Tables and figures of the costs of computation nodes on each core."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure
from tilewright.multicore.scheduling.core_costs import CoreCostRow, Stream
from tilewright.results.figure_files import save_figure
from tilewright.results.multi.cn_tables import cost_table, cost_table_text
from tilewright.results.multi.cost_table_figure import MOST_CLASSES, cost_table_figure


def row(number: int, cycles: int, energy: float, count: int = 10, streams: tuple[Stream, ...] = ()) -> CoreCostRow:
    """A row for a class that the core can run."""
    return CoreCostRow(
        number,
        ideal_cycles=cycles // 2,
        total0_cycles=cycles,
        total1_cycles=cycles,
        total2_cycles=cycles + 1,
        on_core_energy_pj=energy,
        spatial_utilisation=1.0,
        streams=streams,
        mapping={"spatial_mapping": {"D1": {"K": 4}}},
        what=f"Conv K {number + 1}, OX 5",
        layers=(number,),
        cn_count=count,
    )


def cannot(number: int) -> CoreCostRow:
    """A row for a class that the core cannot run."""
    return CoreCostRow(
        number, "runs pooling, not Conv", what=f"Conv K {number + 1}, OX 5", layers=(number,), cn_count=10
    )


TABLES = {
    "array": (row(0, 100, 2e3), row(1, 40, 1e3, streams=(Stream("I2", 4096, 64),)), cannot(2)),
    "vector": (cannot(0), row(1, 400, 500.0), row(2, 7, 0.5)),
}


def bars(figure: Figure, panel: int) -> list[float]:
    """Heights of the bars of a panel, from left to right."""
    patches = sorted(figure.axes[panel].patches, key=lambda patch: patch.get_x())  # type: ignore[attr-defined]
    return [float(patch.get_height()) for patch in patches]  # type: ignore[attr-defined]


def test_the_table_has_a_row_for_each_class_and_core() -> None:
    """Each class and core has a row with the numbers of one CN and of all CNs; empty if the core cannot run the
    class.
    """
    table = cost_table(TABLES, ["a", "b", "c"])
    assert list(zip(table["cost_class"], table["core"], strict=True)) == [
        (number, core) for number in range(3) for core in ("array", "vector")
    ]
    second = table[(table["core"] == "array") & (table["cost_class"] == 1)].iloc[0]
    assert second["layers"] == "b"
    assert second["all_cycles"] == 400
    assert second["all_on_core_energy_pj"] == 1e4
    assert second["streams"] == "I2 4,096 b at 64 b/cycle"
    assert second["spatial_mapping"] == "D1: K 4"
    last = table[(table["core"] == "array") & (table["cost_class"] == 2)].iloc[0]
    assert not last["can_run"]
    assert last.isna()["cycles"]
    assert last["reason"] == "runs pooling, not Conv"


def test_the_text_says_why_a_core_cannot_run_a_class() -> None:
    """The text gives the reason on one line, and shortens it if it is long."""
    text = cost_table_text(cost_table(TABLES))
    assert "runs pooling, not Conv" in text
    assert "I2 4,096 b" in text
    long = cost_table_text(cost_table({"one": (CoreCostRow(0, "because " * 40, what="Conv"),)}))
    assert "…" in long
    assert max(map(len, long.splitlines())) <= 120


def test_bars_are_of_all_nodes_of_a_class_and_gaps_have_a_cross() -> None:
    """Bars have the cycles (above) and the energy (below) of all CNs of a class; a cross marks a core that cannot run
    it.
    """
    figure = cost_table_figure(TABLES)
    assert bars(figure, 0) == [1000, 400, 4000, 70]
    assert bars(figure, 1) == pytest.approx([2e-2, 1e-2, 5e-3, 5e-6])
    assert [len(panel.lines) for panel in figure.axes] == [2, 2]
    assert {panel.get_yscale() for panel in figure.axes} == {"log"}
    hatched = [patch.get_hatch() for patch in figure.axes[0].patches]
    assert sum(bool(hatch) for hatch in hatched) == 1
    labels = [text.get_text() for text in figure.axes[1].get_xticklabels()]
    assert labels == ["0 Conv K1 OX5", "1 Conv K2 OX5", "2 Conv K3 OX5"]


def test_free_classes_stand_on_the_floor() -> None:
    """A class with an energy of 0 has a bar on the floor, because a logarithmic axis has no 0."""
    assert len(bars(cost_table_figure({"one": (row(0, 5, 0.0), row(1, 5, 10.0))}), 1)) == 2


@pytest.mark.parametrize("tables", [{}, {"one": ()}, {"one": (cannot(0),)}], ids=["no core", "no class", "no number"])
def test_empty_tables_have_a_figure(tables: dict[str, tuple[CoreCostRow, ...]], tmp_path: Path) -> None:
    """Empty tables give figure files, too."""
    assert all(path.is_file() for path in save_figure(cost_table_figure(tables), tmp_path / "empty"))


def test_many_classes_go_on_in_further_rows_and_the_smallest_are_left_out() -> None:
    """Classes go on in further rows. Beyond a number, only those with most cycles are drawn, and the title says so."""
    rows = tuple(row(number, 10 + number, 1.0) for number in range(MOST_CLASSES + 50))
    figure = cost_table_figure({"one": rows, "two": rows})
    drawn = sum(len(panel.patches) for panel in figure.axes)
    assert drawn == 2 * 2 * MOST_CLASSES
    assert len(figure.axes) > 2
    assert any(f"{MOST_CLASSES} of {MOST_CLASSES + 50}" in text.get_text() for text in figure.texts)
    labels = [text.get_text() for panel in figure.axes for text in panel.get_xticklabels()]
    assert labels[0].startswith("50 ")


def test_equal_tables_are_equal_bytes(tmp_path: Path) -> None:
    """Equal tables give equal bytes as SVG and PNG."""
    first = save_figure(cost_table_figure(TABLES, "net on system"), tmp_path / "a" / "cost_table")
    second = save_figure(cost_table_figure(TABLES, "net on system"), tmp_path / "b" / "cost_table")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
