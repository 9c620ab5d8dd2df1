"""Files of a paper's other width stay while they show the same numbers; else they are removed with a notice."""

from pathlib import Path

import pandas
import pytest
from tilewright.results.figure_files import save_figure
from tilewright.results.noted_figure import NotedFigure
from tilewright.results.other_widths import MOST_NAMED, noting_removed, removed_notice
from tilewright.results.paper_tables import write_table
from tilewright.results.sheet import FIGURE_ENDS, PaperWidth, drawn_for

WIDTHS: tuple[PaperWidth | None, ...] = ("column", "page", None)


def save(folder: Path, width: PaperWidth | None, value: float = 2.0, assumed: str = "all of it") -> list[str]:
    """Save a figure and a table for a width. Returns the names of the files that are removed."""
    figure = NotedFigure(figsize=(3, 2))
    figure.add_subplot().plot([0.0, 1.0], [1.0, value])
    table = pandas.DataFrame({"name": ["a", "b"], "energy_pj": [1.0, value]})
    figure.note("A line", [assumed], lambda: table)
    with drawn_for(width), noting_removed() as removed:
        save_figure(figure, folder / "line")
        write_table(table, folder / "values.csv", notes=[assumed])
    return sorted(path.name for path in removed)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_same_numbers_stay_at_both_widths(width: PaperWidth | None, tmp_path: Path) -> None:
    """Files of both widths stay if the numbers are equal, whichever is written last."""
    assert save(tmp_path, "column") == save(tmp_path, "page") == []
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {f"{name}-{wide}.{end}" for name, end in (("line", "pdf"), ("values", "tex")) for wide in WIDTHS[:2]} <= {
        *before
    }
    assert save(tmp_path, width) == []
    assert before.items() <= {path.name: path.read_bytes() for path in tmp_path.iterdir()}.items()


@pytest.mark.parametrize("change", [{"value": 3.0}, {"assumed": "half of it"}])
@pytest.mark.parametrize("width", WIDTHS)
def test_other_numbers_and_assumptions_remove_what_is_not_written_again(
    width: PaperWidth | None, change: dict[str, float | str], tmp_path: Path
) -> None:
    """Changed numbers or assumptions remove only the files of other widths; this width is written again."""
    save(tmp_path, "column")
    save(tmp_path, "page")
    others = [wide for wide in WIDTHS if wide not in (width, None)]
    ends = [f"line-{wide}{end}" for wide in others for end in FIGURE_ENDS]
    ends += [f"values-{wide}.tex" for wide in others] + ([] if width else ["values.md"])
    assert save(tmp_path, width, **change) == sorted(ends)  # type: ignore[arg-type]
    assert not any((tmp_path / name).exists() for name in ends)


def test_the_notice_counts_all_and_names_some(tmp_path: Path) -> None:
    """The notice counts all removed files and names some; without files there is no notice."""
    assert removed_notice([]) == ""
    assert removed_notice([Path("a")]) == "removed 1 file of an earlier command with other numbers: a"
    many = removed_notice([Path(str(number)) for number in range(MOST_NAMED + 2)])
    assert many.startswith(f"removed {MOST_NAMED + 2} files ")
    assert many.endswith(" and 2 more")
