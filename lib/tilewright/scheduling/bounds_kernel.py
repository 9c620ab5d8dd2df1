"""Longest paths through the graph of CNs (compiled)."""

from tilewright.compiled import kernel
from tilewright.scheduling.state_record import cell_at


@kernel
def longest_paths(g, _count):
    """Earliest start of each CN, and the earliest end of all; `g.finished` counts the CNs that are on no circle."""
    last = 0
    for cn in range(g.node_count):
        if cell_at(g.waiting, cn).value == 0:
            cell_at(g.queue, last).value = cn
            last += 1
    first = 0
    g.latency = 0
    while first < last:
        cn = cell_at(g.queue, first).value
        first += 1
        end = cell_at(g.head, cn).value + cell_at(g.runtime, cn).value
        g.latency = max(g.latency, end + cell_at(g.tail, cn).value)
        for edge in range(cell_at(g.start, cn).value, cell_at(g.start, cn + 1).value):
            successor = cell_at(g.successor, edge).value
            head = cell_at(g.head, successor)
            head.value = max(head.value, end + cell_at(g.delay, edge).value)
            cell_at(g.waiting, successor).value -= 1
            if cell_at(g.waiting, successor).value == 0:
                cell_at(g.queue, last).value = successor
                last += 1
    g.finished = first
