"""Names beside points of a plot, placed where they cover neither points, nor lines, nor other names."""

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from tilewright.base.harmless import visible

NAME_POINTS, GAP_POINTS = 6.0, 2.0
"""Size of the text of a name, and gap between a point of the plot and its name, in points of type."""
SAME_POINTS = 3.0
"""Distance in 1/72 inch. Two closer markers of a plot look like one, so only the first of them gets a name."""
SIDES = ((1, 0), (-1, 0), (1, -1), (1, 1), (-1, -1), (-1, 1), (0, -1), (0, 1))
"""Sides of a point on which its name can be, as pairs (right, up). The preferred side comes first."""
LINE_STEPS = 200
"""Number of places that are tested on each line of the plot: a name must cover none of them."""


def place_names(
    panel: Axes,
    places: Sequence[tuple[float, float]],
    sizes: Sequence[float],
    names: Sequence[str],
    most: int,
    colour: str,
) -> list[str]:
    """Write names beside points, at most `most`, and return them. `places` are the points in data coordinates, and
    `sizes` are the areas of their markers, in points squared. Points that come first get their names first.

    A name that would cover a marker, a line or a text, or that would leave the panel, is left out.
    """
    figure = panel.figure
    canvas = figure.canvas
    assert isinstance(canvas, FigureCanvasAgg)
    drawn = canvas.get_renderer()  # type: ignore[no-untyped-call]
    scale = figure.dpi / 72
    centres = panel.transData.transform(np.array(places).reshape(-1, 2)) / scale
    radii = np.sqrt(np.array(sizes)) / 2
    inside = panel.get_window_extent(drawn)
    taken = [text.get_window_extent(drawn) for text in panel.texts]
    lines = np.concatenate([np.empty((0, 2)), *_line_places(panel)])
    found: list[str] = []
    for number, (centre, radius, name) in enumerate(zip(centres, radii, map(visible, names), strict=True)):
        if len(found) == most:
            break
        if any(np.hypot(*(centre - other)) < SAME_POINTS for other in centres[:number]):
            continue
        text = panel.annotate(
            name, places[number], (0, 0), textcoords="offset points", fontsize=NAME_POINTS, color=colour
        )
        for side in SIDES:
            _put(text, side, radius)
            box = text.get_window_extent(drawn)
            is_free = not any(box.overlaps(other) for other in taken) and not _covers_disc(box, centres, radii, scale)
            is_inside = inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 and box.y1 <= inside.y1
            if is_free and is_inside and not _covers_place(box, lines):
                taken.append(box)
                found.append(name)
                break
        else:
            text.remove()
    return found


def _put(text: Text, side: tuple[int, int], radius: float) -> None:
    """Move a name to a side of its point. `radius` is the radius of the point's marker in 1/72 inch."""
    right, up = side
    reach = (radius + GAP_POINTS) * (1.0 if 0 in side else 0.75)
    text.set(
        position=(right * reach, up * reach),
        ha={1: "left", 0: "center", -1: "right"}[right],
        va={1: "bottom", 0: "center", -1: "top"}[up],
    )


def _line_places(panel: Axes) -> Iterator[np.ndarray]:
    """Places on each line of a panel, in pixels."""
    for line in panel.lines:
        corners = line.get_transform().transform(line.get_xydata())
        steps = np.linspace(0, len(corners) - 1, LINE_STEPS)
        yield np.column_stack([np.interp(steps, np.arange(len(corners)), corners[:, axis]) for axis in (0, 1)])


def _covers_disc(box: Bbox, centres: np.ndarray, radii: np.ndarray, scale: float) -> bool:
    """True if a box covers a part of a disc. The box is in pixels, centres and radii are in points, and a point has
    `scale` pixels.
    """
    pixels = centres * scale
    x = np.clip(pixels[:, 0], box.x0, box.x1) - pixels[:, 0]
    y = np.clip(pixels[:, 1], box.y0, box.y1) - pixels[:, 1]
    return bool((np.hypot(x, y) < radii * scale).any())


def _covers_place(box: Bbox, places: np.ndarray) -> bool:
    """True if a box covers one of the places; all are in pixels."""
    x, y = places[:, 0], places[:, 1]
    return bool(((box.x0 <= x) & (x <= box.x1) & (box.y0 <= y) & (y <= box.y1)).any())
