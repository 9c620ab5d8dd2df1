"""Files of figures: their style, texts without characters that XML does not allow, and reproducible bytes."""

import io
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import Formatter

from tilewright.base.artifacts.files import write_atomically
from tilewright.base.harmless import latex, svg
from tilewright.results.noted_figure import NotedFigure
from tilewright.results.number_axes import number_all
from tilewright.results.other_widths import remove_other_figures
from tilewright.results.paper_figure import fit_to_sheet
from tilewright.results.sheet import figure_suffixes, sheet_inches
from tilewright.results.text_tables import write_csv


class _HarmlessLabels(Formatter):
    """Formatter that takes the labels of another formatter and removes all characters that XML does not allow."""

    def __init__(self, labels: Formatter) -> None:
        self._labels = labels

    def format_ticks(self, values: Any) -> list[str]:
        """Labels of all tick positions."""
        return [svg(label) for label in self._labels.format_ticks(values)]

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Label of one tick position."""
        return svg(self._labels(x, pos))


def make_harmless(figure: Figure) -> None:
    """Remove from all texts of a figure, including the labels of its axes, the characters that XML does not allow."""
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        shown = svg(text.get_text())
        if shown != text.get_text():
            text.set_text(shown)
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        labels = axis.get_major_formatter()
        places = [float(place) for place in axis.get_majorticklocs()]
        if any(svg(label) != label for label in labels.format_ticks(places)):
            axis.set_major_formatter(_HarmlessLabels(labels))


def make_printable(figure: Figure) -> None:
    """Remove from the texts of a figure the characters that XML does not allow. If a numeric axis has fewer than two
    distinct labels, its labels are replaced by at least two.
    """
    make_harmless(figure)
    number_all(figure)


STYLE: dict[str, Any] = {
    "svg.hashsalt": "tilewright",
    "svg.fonttype": "path",
    "font.family": ["DejaVu Sans"],
    "font.size": 8.0,
    # Dollar signs in names of layers and memories must not start formulas.
    "text.parse_math": False,
    "hatch.linewidth": 0.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
}


PNG_DOTS_PER_INCH = 110


def figure_style() -> AbstractContextManager[None]:
    """Settings of matplotlib that replace the settings of the user."""
    # The backend is chosen by the canvas; touching it here would reset a user's session.
    settings: Any = {key: value for key, value in matplotlib.rcParamsDefault.items() if "backend" not in key}
    return matplotlib.rc_context(settings | STYLE)


_SVG_METADATA: dict[str, Any] = {"Date": None, "Creator": "tilewright"}
_PDF_METADATA: dict[str, Any] = {"CreationDate": None, "Creator": "tilewright", "Producer": None}
PAPER_STYLE: Any = {"svg.fonttype": "none", "pdf.fonttype": 42}
"""Settings for text in a figure for a paper: real text in SVG, and fonts of type 42 (TrueType) in PDF, which publishers
ask for.
"""
PAPER_DOTS_PER_INCH = 300
"""Resolution, in dots per inch, of images inside a PDF or SVG for a paper. A plot of thousands of points is such an
image.
"""


def save_figure(figure: Figure, path_stem: Path, png_dots_per_inch: int = PNG_DOTS_PER_INCH) -> tuple[Path, ...]:
    """Write `path_stem`.svg and .png without dates and version numbers. For a paper, write the files of
    `_save_for_paper` instead. Returns the paths of the written files.

    Existing files of the figure for other paper widths are deleted if they are out of date (`other_widths`).
    """
    path_stem.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(figure, NotedFigure):
        remove_other_figures(figure, path_stem)
    if (inches := sheet_inches()) is not None and isinstance(figure, NotedFigure):
        return _save_for_paper(figure, path_stem, inches)
    svg, png = (path_stem.with_name(path_stem.name + suffix) for suffix in (".svg", ".png"))
    make_printable(figure)
    with figure_style():
        drawn = io.BytesIO()
        figure.savefig(drawn, format="svg", metadata=_SVG_METADATA)
        write_atomically(svg, drawn.getvalue())
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", dpi=png_dots_per_inch, metadata={"Software": None})
        write_atomically(png, drawn.getvalue())
    return svg, png


def _save_for_paper(figure: NotedFigure, path_stem: Path, inches: float) -> tuple[Path, ...]:
    """Write the PDF, the SVG, the caption (as text and as LaTeX) and the numbers of a figure. Returns the paths."""
    paths = pdf, svg_path, caption, latex_caption, numbers = [
        path_stem.with_name(path_stem.name + suffix) for suffix in figure_suffixes()
    ]
    with figure_style(), matplotlib.rc_context(PAPER_STYLE):
        make_printable(figure)
        text = svg(fit_to_sheet(figure, inches))
        write_atomically(caption, text)
        write_atomically(latex_caption, _latex_caption(text))
        number_all(figure)
        for path, metadata in ((pdf, _PDF_METADATA), (svg_path, _SVG_METADATA)):
            drawn = io.BytesIO()
            figure.savefig(drawn, format=path.suffix[1:], dpi=PAPER_DOTS_PER_INCH, metadata=metadata)
            write_atomically(path, drawn.getvalue())
    if figure.numbers is None:
        return tuple(path for path in paths if path != numbers)
    write_csv(figure.numbers(), numbers)
    return tuple(paths)


def _latex_caption(text: str) -> str:
    """Caption as a LaTeX command, with its first line as the entry of a list of figures. Lines after the first empty
    line of `text` become comments.
    """
    caption, _, further = text.partition("\n\n")
    comments = [f"% {latex(line)}\n" for line in further.splitlines()]
    title, *lines = [latex(line) for line in caption.splitlines()]
    return "".join([*comments, rf"\caption[{title.removesuffix('.')}]{{%", "\n", "\n".join([title, *lines]), "%\n}\n"])
