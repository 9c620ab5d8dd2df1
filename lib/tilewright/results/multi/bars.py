"""Bars of a schedule in rows, for figures, the interactive page and the trace.

Bars and rows have readable names.

A row is a core, or a link that carries data. Several transfers can use a link at the same time, so bars of a link can
overlap. A row is therefore divided into *lanes* in which bars do not overlap; each bar is in the first free lane.
"""

import heapq
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.hardware.system import OFFCHIP_PORT
from tilewright.multicore.nodes.graph import CnGraph
from tilewright.multicore.scheduling.assembled import WEIGHT, SystemNames
from tilewright.multicore.scheduling.problem import CoreSystem, Integers
from tilewright.multicore.scheduling.result import ScheduleArtifact
from tilewright.multicore.scheduling.schedule import Schedule, own_hops
from tilewright.multicore.scheduling.state_record import CORE_TO_CORE, EVICTION, OFF_CHIP_STREAM, SINK_OUTPUT

CATEGORIES = (
    "weights from off-chip",
    "activations from off-chip",
    "activations between cores",
    "evictions",
    "outputs",
    "streams",
)
"""Causes of data movement, as figures name them."""
WEIGHTS, OFF_CHIP_ACTIVATIONS, BETWEEN_CORES, EVICTIONS, OUTPUTS, STREAMS = range(len(CATEGORIES))


@dataclass(frozen=True, eq=False)
class TileRanges:
    """Index ranges of each CN in the loop dimensions in which its layer is cut."""

    dimensions: tuple[tuple[str, ...], ...]
    """Dimensions in which the layer is cut (one entry for each layer)."""
    starts: tuple[Integers, ...]
    """First index of each CN in the cut dimensions of its layer. The array with index k is for the k-th cut dimension
    and has one entry for each CN. The entry is 0 if the layer of the CN has fewer cut dimensions.
    """
    ends: tuple[Integers, ...]
    """Index after the last index of each CN in the cut dimensions of its layer. The array with index k is for the k-th
    cut dimension and has one entry for each CN. The entry is 0 if the layer of the CN has fewer cut dimensions.
    """


@dataclass(frozen=True, eq=False)
class ScheduleView:
    """Schedule with the accelerator, and with the tiles of its CNs."""

    artifact: ScheduleArtifact
    tiles: TileRanges | None = None
    """Index ranges of the tiles of the CNs; None if the CN graph is not given."""

    @property
    def schedule(self) -> Schedule:
        """Times of all CNs and transfers."""
        return self.artifact.schedule

    @property
    def system(self) -> CoreSystem:
        """Cores, memories, links and paths."""
        return self.artifact.system

    @property
    def names(self) -> SystemNames:
        """Names of layers, cores, memories and links, each at its index."""
        return self.artifact.names

    @property
    def node_layer(self) -> Integers:
        """Index of the layer to which the CN belongs (one entry for each CN), in ascending order."""
        return self.artifact.graph.layer

    @property
    def node_count(self) -> int:
        """Number of CNs."""
        return self.artifact.graph.node_count

    @cached_property
    def first_node(self) -> Integers:
        """Index of the first CN of each layer, as an array of shape (layers + 1,). The last entry is the number of all
        CNs.
        """
        return np.searchsorted(self.node_layer, np.arange(len(self.names.layer_names) + 1))

    def link_label(self, link: int) -> str:
        """Text for a link: its name. The name of a port of the off-chip memory is only a core number, so "(off-chip)"
        is added.
        """
        name = self.names.link_names[link]
        return f"{name} (off-chip)" if self.names.link_kinds[link] == OFFCHIP_PORT else name

    def node_name(self, node: int) -> str:
        """Text for a CN: the number of its layer, then its number within the layer."""
        layer = int(self.node_layer[node])
        return f"{layer}.{node - int(self.first_node[layer])}"

    @cached_property
    def edges(self) -> tuple[Integers, Integers, Integers]:
        """Data flow between CNs, as three arrays of equal length: source CN, target CN, bits. Each entry is for a pair
        of CNs. The entries are sorted by target, then by source.
        """
        source, target, bits = self.artifact.edges
        order = np.lexsort((source, target))
        return source[order], target[order], bits[order]

    @cached_property
    def transfer_category(self) -> Integers:
        """Index in CATEGORIES of the cause of each transfer, as an array of shape (transfers,)."""
        moves = self.schedule.transfers
        kind = np.array([WEIGHTS if kind == WEIGHT else OFF_CHIP_ACTIVATIONS for kind in self.names.tensor_kinds])
        fetched = kind[self.artifact.piece_tensor[moves["piece"]]] if len(moves) else np.zeros(0, np.int64)
        other = {OFF_CHIP_STREAM: STREAMS, EVICTION: EVICTIONS, SINK_OUTPUT: OUTPUTS, CORE_TO_CORE: BETWEEN_CORES}
        for cause, category in other.items():
            fetched = np.where(moves["cause"] == cause, category, fetched)
        return fetched.astype(np.int64)


def tile_ranges(graph: CnGraph) -> TileRanges:
    """Index ranges of all CNs of a graph, in the dimensions in which their layers are cut."""
    cut = tuple(layer.grid.tiled_dimensions for layer in graph.layers)
    places = max(map(len, cut), default=0)
    starts = tuple(np.zeros(graph.cn_count, np.int64) for _ in range(places))
    ends = tuple(np.zeros(graph.cn_count, np.int64) for _ in range(places))
    for layer, dimensions in zip(graph.layers, cut, strict=True):
        own = slice(layer.first_cn, layer.first_cn + layer.cn_count)
        for place, dimension in enumerate(dimensions):
            starts[place][own], ends[place][own] = layer.grid.ranges(dimension)
    return TileRanges(cut, starts, ends)


CORE, LINK, NO_LINK = "core", "link", "no link"
NODE_BAR, TRANSFER_BAR, STREAM_BAR = range(3)
"""Kinds of bars: the bar shows a CN, a transfer or a stream."""


@dataclass(frozen=True)
class Row:
    """Row of bars, for a core or a link."""

    name: str
    kind: str
    """Kind of the row: CORE, LINK, or NO_LINK. The row NO_LINK has the transfers between memories that no link
    connects.
    """
    index: int
    """Index of the core or of the link; -1 for NO_LINK."""
    lanes: int
    """Number of lanes (parallel lines in which bars do not overlap), at least 1."""
    busy_cycles: int
    """Cycles in which the row has at least one bar."""


@dataclass(frozen=True, eq=False)
class ScheduleTable:
    """Bars of a schedule, sorted by row, lane and start. Bars of one lane do not overlap."""

    rows: tuple[Row, ...]
    row: Integers
    """Row of the bar (one entry for each bar)."""
    lane: Integers
    """Lane of the bar in its row (one entry for each bar)."""
    start_cycles: Integers
    """Start, in cycles (one entry for each bar)."""
    end_cycles: Integers
    """End, in cycles (one entry for each bar)."""
    kind: Integers
    """Kind of the bar (one entry for each bar): NODE_BAR, TRANSFER_BAR or STREAM_BAR."""
    item: Integers
    """Index of the CN, of the transfer, or of the row in `Schedule.streams` that the bar shows (one entry for each
    bar).
    """
    layer: Integers
    """Layer of the CN or of the data (one entry for each bar); -1 if the data have no layer."""
    category: Integers
    """Index in `CATEGORIES` of the cause of the data movement, as an array of shape (bars,); -1 for bars of CNs."""
    latency_cycles: int

    @property
    def bar_count(self) -> int:
        """Number of bars."""
        return len(self.row)

    def rows_of(self, *kinds: str) -> "ScheduleTable":
        """Table with only the rows of some kinds."""
        kept = [number for number, row in enumerate(self.rows) if row.kind in kinds]
        place = np.full(len(self.rows) + 1, -1, np.int64)
        place[kept] = np.arange(len(kept))
        bars = np.flatnonzero(place[self.row] >= 0)
        columns = {
            name: getattr(self, name)[bars]
            for name in ("lane", "start_cycles", "end_cycles", "kind", "item", "layer", "category")
        }
        rows = tuple(self.rows[number] for number in kept)
        return ScheduleTable(rows=rows, row=place[self.row[bars]], **columns, latency_cycles=self.latency_cycles)


def schedule_table(view: ScheduleView) -> ScheduleTable:
    """Bars of a schedule: one bar for each CN, one for each transfer on each link that it uses, one for each transfer
    over a path without links, and one for each row of `Schedule.streams`.

    A broadcast consists of a main transfer and of transfers that only receive. A receiving transfer has bars only on
    links that the main transfer does not use.

    The rows are the cores except the off-chip core, then the links in use, then one row for all transfers over paths
    without links.
    """
    bars = _all_bars(view)
    key, start, end = bars["key"], bars["start_cycles"], bars["end_cycles"]
    moved = np.unique(key[bars["kind"] != NODE_BAR]).tolist()
    keys = [*(core for core in range(view.system.core_count) if core != view.system.off_chip_core), *moved]
    order = np.lexsort((bars["item"], start, key))
    lane, row = np.zeros(len(key), np.int64), np.zeros(len(key), np.int64)
    rows = []
    for number, row_key in enumerate(keys):
        first, last = np.searchsorted(key[order], (row_key, row_key + 1))
        own = order[first:last]
        row[own], lane[own] = number, lanes_of(start[own], end[own])
        rows.append(_row(view, row_key, int(lane[own].max(initial=0)) + 1, busy_cycles(start[own], end[own])))
    order = np.lexsort((start, lane, row))
    columns = {name: column[order] for name, column in bars.items() if name != "key"}
    latency = view.schedule.latency_cycles
    return ScheduleTable(tuple(rows), row=row[order], lane=lane[order], **columns, latency_cycles=latency)


def _all_bars(view: ScheduleView) -> dict[str, Integers]:
    """Arrays with one entry for each bar, by name of the column, for all columns except row and lane.

    The column `key` identifies the row of the bar: the index of a core, or (number of cores + index of a link). For
    transfers without a link, it is (number of cores + number of links).
    """
    schedule, system = view.schedule, view.system
    moves, streams, cores = schedule.transfers, schedule.streams, system.core_count
    transfer, link = own_hops(schedule, system)
    alone = _without_link(view)
    hops = np.concatenate((transfer, alone))
    no_link = np.full(len(alone), len(system.link_bits_per_cycle))
    nodes, stream_count = view.node_count, len(streams)
    parts: dict[str, tuple[Integers, Integers, Integers]] = {
        "key": (schedule.allocation, cores + np.concatenate((link, no_link)), cores + streams["link"]),
        "start_cycles": (schedule.start_cycles, moves["start_cycles"][hops], streams["start_cycles"]),
        "end_cycles": (schedule.end_cycles, moves["end_cycles"][hops], streams["end_cycles"]),
        "kind": (np.full(nodes, NODE_BAR), np.full(len(hops), TRANSFER_BAR), np.full(stream_count, STREAM_BAR)),
        "item": (np.arange(nodes), hops, np.arange(stream_count)),
        "layer": (view.node_layer, view.artifact.piece_layer[moves["piece"][hops]], view.node_layer[streams["cn"]]),
        "category": (np.full(nodes, -1), view.transfer_category[hops], np.full(stream_count, STREAMS)),
    }
    return {name: np.concatenate(part).astype(np.int64) for name, part in parts.items()}


def lanes_of(starts: Integers, ends: Integers) -> Integers:
    """Index of the lane of each bar: the first lane that is free at the start of the bar. The bars must be sorted by
    start.
    """
    lanes = np.zeros(len(starts), np.int64)
    if len(starts) < 2 or bool(np.all(starts[1:] >= np.maximum.accumulate(ends)[:-1])):
        return lanes
    running: list[tuple[int, int]] = []
    free: list[int] = []
    opened = 0
    for place, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        while running and running[0][0] <= start:
            heapq.heappush(free, heapq.heappop(running)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane, opened = opened, opened + 1
        lanes[place] = lane
        heapq.heappush(running, (end, lane))
    return lanes


def busy_cycles(starts: Integers, ends: Integers) -> int:
    """Number of cycles in which at least one bar is active. The bars must be sorted by start."""
    if not len(starts):
        return 0
    longest = np.maximum.accumulate(ends)
    gaps = np.maximum(starts[1:] - longest[:-1], 0)
    return int(longest[-1] - starts[0] - gaps.sum())


def listeners(view: ScheduleView) -> dict[int, list[int]]:
    """Indices of the receiving transfers of each broadcast, by index of the main transfer. The main transfer moves the
    data; the others only receive them.
    """
    moves, cores = view.schedule.transfers, view.system.core_count
    listening = np.flatnonzero(moves["broadcast_of"] >= 0)
    if not len(listening):
        return {}
    pair = moves["source_core"] * cores + moves["target_core"]
    keys = zip(moves["start_cycles"].tolist(), moves["piece"].tolist(), pair.tolist(), strict=True)
    main = {key: transfer for transfer, key in enumerate(keys) if moves["broadcast_of"][transfer] < 0}
    found: dict[int, list[int]] = {}
    for transfer in listening.tolist():
        start, piece, of = (int(moves[name][transfer]) for name in ("start_cycles", "piece", "broadcast_of"))
        found.setdefault(main[start, piece, of], []).append(transfer)
    return found


def _without_link(view: ScheduleView) -> Integers:
    """Indices of the transfers whose path has no links."""
    moves, system = view.schedule.transfers, view.system
    pair = moves["source_core"] * system.core_count + moves["target_core"]
    return np.flatnonzero(system.path_start[pair + 1] == system.path_start[pair])


def _row(view: ScheduleView, key: int, lanes: int, busy: int) -> Row:
    cores = view.system.core_count
    if key < cores:
        return Row(view.names.core_names[key], CORE, key, lanes, busy)
    link = key - cores
    if link < len(view.system.link_bits_per_cycle):
        return Row(view.link_label(link), LINK, link, lanes, busy)
    return Row("no link", NO_LINK, -1, lanes, busy)
