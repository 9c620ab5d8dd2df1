"""Names beside points: for random points, no name covers a point, a line, a text or another name."""

import itertools

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox
from tilewright.results.point_names import place_names


def plot(width: float = 3.4) -> Axes:
    """A logarithmic plot with a roof and a text above it."""
    figure = Figure(figsize=(width, 2.4))
    FigureCanvasAgg(figure)
    panel = figure.add_axes((0.2, 0.2, 0.75, 0.75))
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlim(0.1, 1000)
    panel.set_ylim(1, 1000)
    panel.plot([0.1, 10, 1000], [4, 400, 400])
    panel.text(1000, 440, "peak: 400", fontsize=6, ha="right")
    return panel


def disc(panel: Axes, place: tuple[float, float], area: float) -> tuple[np.ndarray, float]:
    """(centre, radius) of a marker, in pixels."""
    return panel.transData.transform(place), np.sqrt(area) / 2 * panel.figure.dpi / 72


def distance(box: Bbox, centre: np.ndarray) -> float:
    """Distance between a box and a place, in pixels."""
    x, y = (np.clip(centre[axis], box.min[axis], box.max[axis]) - centre[axis] for axis in (0, 1))
    return float(np.hypot(x, y))


@pytest.mark.parametrize("seed", range(12))
def test_names_cover_nothing(seed: int) -> None:
    """Each name is inside the panel and beside its point, and the first point always has room in an empty plot."""
    rng = np.random.default_rng(seed)
    count, panel = int(rng.integers(1, 25)), plot((3.4, 7.0)[seed % 2])
    places = [(float(10 ** rng.uniform(0, 2.5)), float(10 ** rng.uniform(0.2, 2.4))) for _ in range(count)]
    areas = sorted(rng.uniform(8, 78, count).tolist(), reverse=True)
    names = [f"layer{number}.conv{number}" for number in range(count)]
    found = place_names(panel, places, areas, names, 12, "black")
    drawn = panel.figure.canvas.get_renderer()  # type: ignore[attr-defined]
    texts = [text for text in panel.texts if isinstance(text, Annotation)]
    assert found == [text.get_text() for text in texts]
    assert len(found) == len(set(found)) <= 12
    assert found
    boxes = [text.get_window_extent(drawn) for text in panel.texts]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    inside = panel.get_window_extent(drawn)
    discs = [disc(panel, *pair) for pair in zip(places, areas, strict=True)]
    (roof,) = panel.lines
    corners = roof.get_transform().transform(roof.get_xydata())
    for text in texts:
        box = text.get_window_extent(drawn)
        assert inside.x0 <= box.x0
        assert box.x1 <= inside.x1
        assert all(distance(box, centre) >= radius for centre, radius in discs)
        for start, end in itertools.pairwise(corners):
            assert not any(box.contains(*(start + (end - start) * share)) for share in np.linspace(0, 1, 60))
        centre, radius = discs[names.index(text.get_text())]
        assert distance(box, centre) <= radius + 3 * panel.figure.dpi / 72


def test_of_equal_points_one_is_named() -> None:
    """One of several equal points is named, because a reader could not see whose name is whose."""
    panel = plot()
    assert place_names(panel, [(50.0, 50.0)] * 3, [20.0] * 3, ["a", "b", "c"], 12, "black") == ["a"]
    assert place_names(plot(), [], [], [], 12, "black") == []
    assert place_names(plot(), [(1.0, 2.0), (100.0, 2.0)], [9.0] * 2, ["a", "b"], 1, "black") == ["a"]
