"""Bars of a schedule as an image, for schedules of more bars than a drawing of shapes bears.

Each pixel has the mean colour of what lasts in its stretch of time, white where nothing does: the image that a drawing
of all bars would give, in time that grows with bars and pixels.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.colors import to_rgb

from tilewright.report.colours import LAYER_COLOURS, NO_LAYER_COLOUR
from tilewright.report.schedule_table import NODE_BAR, ScheduleTable
from tilewright.report.schedule_view import CATEGORIES

Floats = npt.NDArray[np.float64]
Image = npt.NDArray[np.uint8]
DARKER = 0.5
"""Share of black in the lines of a hatch."""
LIGHTER = 0.22
"""Share of white in every second CN of a core, so that neighbours of one layer can be told apart."""
PALETTE = np.array([to_rgb(colour) for colour in (*LAYER_COLOURS, NO_LAYER_COLOUR)])


def hatch_masks(height: int, width: int) -> npt.NDArray[np.bool_]:
    """[category, height, width] pixels that the hatch of a category darkens, as the hatches of shapes do."""
    y, x = np.mgrid[0:height, 0:width]
    masks = (
        y % 9 < 2,
        np.zeros((height, width), np.bool_),
        ((x + y) % 14 < 2) | ((x - y) % 14 < 2),
        (x + y) % 10 < 2,
        (x % 9 < 2) | (y % 9 < 2),
        x % 9 < 2,
    )
    assert len(masks) == len(CATEGORIES)
    return np.array(masks)


def strips(
    table: ScheduleTable, window: tuple[float, float], width: int, row_heights: Sequence[int], gap: int
) -> Image:
    """The rows of a table below each other, `width` pixels for the cycles of the window, white gaps between rows.

    Returns [height, width, 3]; heights include the gap.
    """
    lanes = np.array([row.lanes for row in table.rows], np.int64)
    first_lane = np.cumsum(lanes) - lanes
    colour, share, hatched = _coverage(table, window, width, first_lane[table.row] + table.lane, int(lanes.sum()))
    image = np.full((sum(row_heights), width, 3), 255, np.uint8)
    top = 0
    for number, height in enumerate(row_heights):
        inner = height - gap
        masks = hatch_masks(inner, width)
        # Lane of each line of pixels.
        line = first_lane[number] + np.arange(inner) * int(lanes[number]) // inner
        dark = np.einsum("chw,hcw->hw", masks, hatched[line], optimize=True) * DARKER
        pixels = colour[line] * (1 - dark[..., None]) + (1 - share[line])[..., None]
        image[top + gap // 2 : top + gap // 2 + inner] = np.round(np.clip(pixels, 0, 1) * 255)
        top += height
    return image


def _coverage(
    table: ScheduleTable, window: tuple[float, float], width: int, lane: npt.NDArray[np.int64], lanes: int
) -> tuple[Floats, Floats, Floats]:
    """([lane, pixel, 3] colours times shares, [lane, pixel] share that is taken, [lane, category, pixel] the share of
    each category in what is taken)."""
    scale = width / (window[1] - window[0])
    left = np.clip((table.start_cycles - window[0]) * scale, 0.0, float(width))
    right = np.clip((table.end_cycles - window[0]) * scale, 0.0, float(width))
    seen = np.flatnonzero(right > left)
    left, right = left[seen], right[seen]
    first = np.minimum(left.astype(np.int64), width - 1)
    count = np.maximum(np.ceil(right).astype(np.int64), first + 1) - first
    bar = np.repeat(np.arange(len(seen)), count)
    pixel = first[bar] + np.arange(len(bar)) - np.repeat(np.cumsum(count) - count, count)
    part = np.minimum(right[bar], pixel + 1) - np.maximum(left[bar], pixel)
    place = lane[seen][bar] * width + pixel
    cells = lanes * width
    layer, category = table.layer[seen], table.category[seen]
    paint = PALETTE[np.where(layer >= 0, layer % len(LAYER_COLOURS), len(LAYER_COLOURS))]
    every_second = (table.kind[seen] == NODE_BAR) & (seen % 2 == 1)
    paint = np.where(every_second[:, None], paint + (1 - paint) * LIGHTER, paint)
    colour: Floats = np.stack([np.bincount(place, part * paint[bar, c], cells) for c in range(3)], axis=-1)
    share = np.bincount(place, part, cells).astype(np.float64)
    hatched = np.zeros((lanes, len(CATEGORIES), width))
    for number in range(len(CATEGORIES)):
        of_category = (category == number)[bar]
        filled = np.bincount(place[of_category], part[of_category], cells)
        hatched[:, number] = (filled / np.where(share > 0, share, 1)).reshape(lanes, width)
    return colour.reshape(lanes, width, 3), share.reshape(lanes, width), hatched
