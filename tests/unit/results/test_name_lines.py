"""Names of rows on several lines: no character is lost, and lines end between words."""

from matplotlib.figure import Figure
from tilewright.results.name_lines import LINE_INCHES, break_names, names_inches


def test_names_are_broken_between_words() -> None:
    """Short names stay on one line; the height follows the name with most lines."""
    axes = Figure().add_subplot()
    names = ["MAC", "temporal stall, input_sram_of_branch_2 rw_port_1"]
    axes.set_ylim(-0.5, 1.5)
    axes.set_yticks(range(2), labels=names)
    assert names_inches(axes) == 2 * LINE_INCHES
    break_names(axes, 2)
    told = [label.get_text() for label in axes.get_yticklabels()]
    assert told[0] == "MAC"
    assert told[1].split("\n") == ["temporal stall, input_", "sram_of_branch_2 rw_", "port_1"]
    assert [text.replace("\n", "") for text in told] == names
    assert names_inches(axes) == 2 * 3 * LINE_INCHES
    break_names(axes, 1)
    assert [label.get_text() for label in axes.get_yticklabels()] == names
