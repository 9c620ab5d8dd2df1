"""A schedule as rows of bars."""

import itertools
from collections import Counter

import numpy as np
import pytest
from tilewright.multicore.scheduling.schedule import link_use, own_hops
from tilewright.results.multi.bars import (
    CATEGORIES,
    CORE,
    LINK,
    NO_LINK,
    NODE_BAR,
    STREAM_BAR,
    TRANSFER_BAR,
    ScheduleView,
    busy_cycles,
    lanes_of,
    listeners,
    schedule_table,
)

from tests.unit.multicore.scheduling.tiny_systems import WEIGHT, Link, Memory, Node, Piece, make_problem, make_system
from tests.unit.results.multi.schedule_cases import (
    broadcast,
    every_category,
    pipeline,
    random_view,
    view_of,
    within_a_core,
)

SEEDS = (2, 5, 6, 12, 13, 18, 20, 22, 23, 25, 31, 35)
"""Seeds of random schedules with one to twelve CNs, with and without streams, broadcasts and rows of several lanes."""


def bars(view: ScheduleView, kind: int) -> list[tuple[str, int, int, int, int]]:
    """(row, item, start, end, layer) of the bars of a kind, sorted."""
    table = schedule_table(view)
    columns = (table.row, table.item, table.start_cycles, table.end_cycles, table.layer)
    rows = zip(*(column[table.kind == kind].tolist() for column in columns), strict=True)
    return sorted((table.rows[row].name, *rest) for row, *rest in rows)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_node_is_a_bar_on_its_core(seed: int) -> None:
    """Core, start, end and layer of each CN's bar are those of the schedule."""
    view = random_view(seed)
    schedule = view.schedule
    assert bars(view, NODE_BAR) == sorted(
        (
            f"{schedule.allocation[cn]}: core",
            cn,
            schedule.start_cycles[cn],
            schedule.end_cycles[cn],
            view.node_layer[cn],
        )
        for cn in range(view.node_count)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_every_transfer_is_a_bar_on_each_link_that_it_loads(seed: int) -> None:
    """A transfer or a stream has a bar with its times on each of its links; other transfers are bars of `no link`."""
    view = random_view(seed)
    moves, streams = view.schedule.transfers, view.schedule.streams
    hops = [(f"link {link}", transfer) for transfer, link in zip(*own_hops(view.schedule, view.system), strict=True)]
    linked = {transfer for _, transfer in hops}
    pairs = zip(moves["source_core"].tolist(), moves["target_core"].tolist(), strict=True)
    hops += [("no link", transfer) for transfer, pair in enumerate(pairs) if not len(view.system.path(*pair))]
    assert [bar[:4] for bar in bars(view, TRANSFER_BAR)] == sorted(
        (name, transfer, moves["start_cycles"][transfer], moves["end_cycles"][transfer]) for name, transfer in hops
    )
    listening = {transfer for main in listeners(view).values() for transfer in main}
    assert {transfer for _, transfer in hops} | linked | listening == set(range(len(moves)))
    assert [bar[:4] for bar in bars(view, STREAM_BAR)] == sorted(
        (f"link {link}", number, start, end)
        for number, (_, link, start, end, *_) in enumerate(streams.tolist())
    )  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_bars_of_a_lane_do_not_overlap_and_lanes_are_as_few_as_can_be(seed: int) -> None:
    """Bars of a lane do not overlap; the lanes of a row are as many as its largest number of simultaneous bars."""
    table = schedule_table(random_view(seed))
    for number, row in enumerate(table.rows):
        own = np.flatnonzero(table.row == number)
        spans = list(zip(table.start_cycles[own].tolist(), table.end_cycles[own].tolist(), strict=True))
        for lane in range(row.lanes):
            lane_spans = [span for span, of in zip(spans, table.lane[own].tolist(), strict=True) if of == lane]
            assert all(before[1] <= after[0] for before, after in itertools.pairwise(lane_spans))
        most = max((sum(a <= start < b for a, b in spans) for start, _ in spans), default=1)
        assert row.lanes == most


@pytest.mark.parametrize("seed", SEEDS)
def test_busy_cycles_are_those_in_which_something_lasts(seed: int) -> None:
    """Busy cycles of a core are the sum of its CNs. Busy cycles of a link are the time in which it is used."""
    view = random_view(seed)
    table = schedule_table(view)
    used = link_use(view.schedule, view.system)
    runtime = view.schedule.end_cycles - view.schedule.start_cycles
    for row in table.rows:
        if row.kind == CORE:
            assert row.busy_cycles == runtime[view.schedule.allocation == row.index].sum()
        elif row.kind == LINK:
            times, bits = used[row.index]
            assert row.busy_cycles == np.diff(times)[bits[:-1] > 0].sum()


def test_the_random_schedules_have_everything() -> None:
    """Each kind of bar and row is in several of the random schedules and missing in others."""
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        view = random_view(seed)
        table = schedule_table(view)
        seen["streams"] += bool((table.kind == STREAM_BAR).any())
        seen["no link"] += any(row.kind == NO_LINK for row in table.rows)
        seen["listeners"] += bool(listeners(view))
        seen["lanes"] += any(row.lanes > 1 for row in table.rows)
    assert len(seen) == 4
    assert all(2 <= count <= len(SEEDS) - 2 for count in seen.values()), seen


def test_rows_are_cores_then_links_in_use() -> None:
    """The rows are cores, also idle ones, then links in use. The off-chip core has no row."""
    view = within_a_core()
    assert [(row.name, row.kind) for row in schedule_table(view).rows] == [("0: core", CORE), ("no link", NO_LINK)]
    names = [row.name for row in schedule_table(pipeline(2, 3)).rows]
    assert names == ["0: core", "1: core", "2: core", "3: core", "link 0"]


def test_categories_tell_why_data_moves() -> None:
    """Categories give the reason of each move: weights, other data from off-chip, data between cores, evictions,
    outputs, streams.
    """
    view = every_category()
    table = schedule_table(view)
    moved = table.kind == TRANSFER_BAR
    pieces = view.schedule.transfers["piece"][table.item[moved]]
    found = sorted({(CATEGORIES[c], int(p)) for c, p in zip(table.category[moved].tolist(), pieces, strict=True)})
    assert found == [
        ("activations between cores", 2),
        ("activations from off-chip", 1),
        ("activations from off-chip", 3),
        ("evictions", 3),
        ("outputs", 4),
        ("outputs", 7),
        ("weights from off-chip", 0),
        ("weights from off-chip", 5),
    ]
    assert {CATEGORIES[c] for c in table.category[table.kind == STREAM_BAR]} == {"streams"}
    assert set(table.category[table.kind == NODE_BAR]) == {-1}


def test_colour_of_data_is_that_of_the_layer_that_makes_it_or_first_reads_it() -> None:
    """A transfer's bar has the layer of its piece, and a stream's bar has the layer of its CN."""
    view = every_category()
    moves = view.schedule.transfers
    layer = {int(moves["piece"][item]): of for _, item, _, _, of in bars(view, TRANSFER_BAR)}
    assert layer == {0: 0, 1: 0, 2: 0, 3: 0, 4: 1, 5: 2, 7: 3}
    assert {of for *_, of in bars(view, STREAM_BAR)} == {2}


def test_a_multicast_is_one_bar_on_each_link_of_its_tree() -> None:
    """A multicast from the off-chip core over core 0 to cores 1 and 2 is one bar on each of three links, with two
    listeners.
    """
    links = [Link(10, 0.5, False, True)] * 3
    paths = {(3, 0): [0], (3, 1): [0, 1], (3, 2): [0, 2]} | {(core, 3): [0] for core in range(3)}
    system = make_system([0, 1, 2, 3], [Memory()] * 3 + [Memory(10**9)], links, paths)
    nodes = [Node(5, [(0, WEIGHT)], group=core) for core in range(3)]
    view = view_of(make_problem(system, [Piece(40)], nodes), [0, 1, 2])
    assert [bar[:4] for bar in bars(view, TRANSFER_BAR)] == [
        ("link 0", 0, 0, 4), ("link 1", 1, 0, 4), ("link 2", 2, 0, 4)
    ]  # fmt: skip
    assert listeners(view) == {0: [1, 2]}


def test_a_broadcast_is_one_bar_and_its_listener_is_told() -> None:
    """A broadcast of a weight over the bus is one bar, and the second core is its listener."""
    view = broadcast()
    assert len(view.schedule.transfers) == 2
    assert len(bars(view, TRANSFER_BAR)) == 1
    ((main, others),) = listeners(view).items()
    assert [main, *others] == [0, 1]


def test_rows_of_some_kinds_alone() -> None:
    """A table of some kinds of rows keeps their bars and counts the rows again."""
    table = schedule_table(every_category())
    cores, links = table.rows_of(CORE), table.rows_of(LINK)
    assert [row.kind for row in cores.rows] == [CORE, CORE]
    assert cores.bar_count == 4
    assert set(cores.kind) == {NODE_BAR}
    assert cores.bar_count + links.bar_count == table.bar_count
    assert set(links.row) == {0}


def test_lanes_and_busy_cycles_by_hand() -> None:
    """Bars 0-4, 1-3, 3-5, 4-6, 9-10: the second lane holds 1-3 and 3-5, and seven cycles are busy."""
    starts, ends = np.array([0, 1, 3, 4, 9]), np.array([4, 3, 5, 6, 10])
    assert lanes_of(starts, ends).tolist() == [0, 1, 1, 0, 0]
    assert busy_cycles(starts, ends) == 7
    assert busy_cycles(starts[:0], ends[:0]) == 0
