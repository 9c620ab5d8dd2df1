"""Figures of memories and links over time."""

import itertools
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from tilewright.hardware.system import OFFCHIP_PORT
from tilewright.multicore.scheduling.options import ScheduleOptions
from tilewright.multicore.scheduling.simulate import simulate
from tilewright.results.figure_files import save_figure
from tilewright.results.multi.bars import LINK, schedule_table
from tilewright.results.multi.memory_figure import (
    Curve,
    link_curves,
    link_figure,
    mean_in_stretches,
    memory_curves,
    memory_figure,
    most_in_stretches,
)
from tilewright.results.multi.summary import link_uses

from tests.unit.results.multi.schedule_cases import (
    every_category,
    large_pipeline,
    pipeline,
    random_view,
    within_a_core,
)

SEEDS = range(20)


@pytest.mark.parametrize("seed", SEEDS)
def test_curves_of_memories_are_what_they_hold(seed: int) -> None:
    """A memory's curve has the times and bits of the schedule, and its highest value is the peak of the memory.

    Memories that stay empty and the off-chip memory have no curve.
    """
    view = random_view(seed)
    schedule = view.schedule
    curves = {curve.name: curve for curve in memory_curves(view)}
    held = [memory for memory in np.flatnonzero(schedule.peak_bits).tolist() if memory != view.system.off_chip_memory]
    assert list(curves) == [f"memory {memory}" for memory in held]
    for memory in held:
        curve = curves[f"memory {memory}"]
        times, stored = schedule.memory_use(memory)
        assert np.array_equal(curve.times, times)
        assert np.array_equal(curve.values, stored)
        assert curve.values.max() == schedule.peak_bits[memory]
        assert curve.limit == view.system.memory_capacity_bits[memory]
        share = 100 * schedule.peak_bits[memory] / curve.limit
        assert f"({share:.1f} %) at cycle {times[np.argmax(stored)]:,}" in curve.text


@pytest.mark.parametrize("seed", SEEDS)
def test_the_use_of_a_link_is_that_of_the_summary(seed: int) -> None:
    """The use of a link equals the summary, stays within its width, and over time covers the moved bits.

    The last cycle of a transfer may not be full.
    """
    view = random_view(seed)
    rows = link_uses(view.artifact)
    for curve in link_curves(view):
        link = int(curve.name.split()[1])
        width, latency = int(view.system.link_bits_per_cycle[link]), view.schedule.latency_cycles
        assert 0 < curve.values.max() <= 1
        carried = float(np.sum(curve.values[:-1] * np.diff(curve.times))) * width
        assert carried >= view.schedule.link_bits[:, link].sum() * (1 - 1e-12)
        assert f"busy {100 * rows[link].busy:.1f} %" in curve.text
        assert f"carries {100 * rows[link].bits / width / latency:.1f} %" in curve.text


def steps(seed: int, count: int = 3000, last: int = 10_000) -> Curve:
    """A curve of many steps that begins after 0 and ends at 0."""
    random = np.random.default_rng(seed)
    times = np.sort(random.choice(np.arange(5, last), count, replace=False))
    values = random.integers(0, 100, count).astype(np.float64)
    values[-1] = 0
    return Curve("curve", times, values, "", 100.0)


@pytest.mark.parametrize("seed", range(4))
def test_stretches_have_the_maximum_and_the_mean_of_the_curve(seed: int) -> None:
    """Maximum and mean of each stretch equal those of the values in every single cycle."""
    curve, last, stretches = steps(seed), 10_000, 100
    place = np.searchsorted(curve.times, np.arange(last), side="right") - 1
    each_cycle = np.where(place >= 0, curve.values[place], 0.0).reshape(stretches, -1)
    for thin, wanted in ((most_in_stretches, each_cycle.max(axis=1)), (mean_in_stretches, each_cycle.mean(axis=1))):
        times, values = thin(curve, last, stretches)
        assert times.tolist() == list(range(0, last, last // stretches))
        assert values == pytest.approx(wanted)
        few = thin(curve, last, len(curve.times))
        assert np.array_equal(few[0], curve.times)
        assert np.array_equal(few[1], curve.values)


@pytest.mark.parametrize("make", [memory_figure, link_figure])
def test_no_text_leaves_the_figure_or_overlaps(make) -> None:
    """Each memory or link has a panel, no text leaves the figure, and no texts overlap."""
    for view in (every_category(), pipeline(6, 50, 6), within_a_core()):
        figure: Figure = make(view)
        figure.canvas.draw()
        renderer = figure.canvas.get_renderer()
        labels = [label for panel in figure.axes for label in panel.get_yticklabels()]
        texts = [*figure.texts, *labels, *(text for panel in figure.axes for text in panel.texts)]
        boxes = [text.get_window_extent(renderer) for text in texts if text.get_text()]
        for box in boxes:
            assert box.x0 >= 0
            assert box.x1 <= figure.bbox.x1
            assert box.y0 >= 0
            assert box.y1 <= figure.bbox.y1
        assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def test_a_schedule_without_logs_has_no_curves() -> None:
    """A schedule without logs has no curves; the figure says that nothing is kept and nothing moves."""
    view = every_category()
    problem, allocation = view.artifact.problem, view.schedule.allocation
    schedule = simulate(problem, allocation, ScheduleOptions(record=False))
    bare = replace(view, artifact=replace(view.artifact, schedule=schedule))
    for figure, words in ((memory_figure(bare), "nothing is kept"), (link_figure(bare), "nothing moves")):
        assert not figure.axes
        assert any(words in text.get_text() for text in figure.texts)


def test_links_that_carry_nothing_are_counted_and_ports_are_told() -> None:
    """The figure counts links without traffic; the off-chip memory's port is labelled with the number of its core."""
    view = every_category()
    names = replace(view.names, link_names=("port of 3",), link_kinds=(OFFCHIP_PORT,))
    port = replace(view, artifact=replace(view.artifact, names=names))
    assert [curve.name for curve in link_curves(port)] == ["port of 3 (off-chip)"]
    assert [row.name for row in schedule_table(port).rows if row.kind == LINK] == ["port of 3 (off-chip)"]
    view = random_view(0)
    idle = len(view.names.link_names) - len(link_curves(view))
    words = [text.get_text() for text in link_figure(view).figure.texts]
    assert any(f"; {idle} more" in text for text in words) == (idle > 0)


def test_capacity_is_drawn_where_it_can_be_compared() -> None:
    """A dashed line marks the capacity, except for a memory that stays nearly empty."""
    for view, lines in ((every_category(), 2), (within_a_core(), 0)):
        figure = memory_figure(view)
        dashed = [line for panel in figure.axes for line in panel.lines if line.get_linestyle() == "--"]
        assert len(dashed) == lines


def test_files_have_the_same_bytes_every_time_and_stay_small(tmp_path: Path) -> None:
    """The files have the same bytes each time, and stay below 2 MB for 10^5 CNs."""
    for draw in (memory_figure, link_figure):
        first = save_figure(draw(every_category()), tmp_path / "first")
        with matplotlib.rc_context({"lines.linewidth": 9, "svg.hashsalt": None}):
            second = save_figure(draw(every_category()), tmp_path / "second")
        assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
        assert max(path.stat().st_size for path in save_figure(draw(large_pipeline()), tmp_path / "many")) < 2_000_000
