"""Paths through the graph of CNs (compiled)."""

from tilewright.compiled import kernel
from tilewright.scheduling.state_record import cell_at


@kernel
def longest_paths(g, _count):
    """Earliest start of each CN, the earliest end of all, and the cycles that follow each CN.

    `g.finished` counts the CNs that are on no circle, `g.queue` has them in topological order.
    """
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
    for place in range(first):
        cn = cell_at(g.queue, first - 1 - place).value
        tail = cell_at(g.tail, cn)
        for edge in range(cell_at(g.start, cn).value, cell_at(g.start, cn + 1).value):
            successor = cell_at(g.successor, edge).value
            behind = cell_at(g.runtime, successor).value + cell_at(g.tail, successor).value
            tail.value = max(tail.value, cell_at(g.delay, edge).value + behind)


@kernel
def cns_around(g, chosen):
    """Mark with 1 the CNs from which a path leads to one, with 2 those to which a path leads from it.

    After `longest_paths`.
    """
    for cn in range(g.node_count):
        cell_at(g.mark, cn).value = 0
    cell_at(g.mark, chosen).value = 2
    for place in range(g.node_count):
        cn = cell_at(g.queue, place).value
        if cell_at(g.mark, cn).value == 2:
            for edge in range(cell_at(g.start, cn).value, cell_at(g.start, cn + 1).value):
                cell_at(g.mark, cell_at(g.successor, edge).value).value = 2
    cell_at(g.mark, chosen).value = 1
    for place in range(g.node_count):
        cn = cell_at(g.queue, g.node_count - 1 - place).value
        for edge in range(cell_at(g.start, cn).value, cell_at(g.start, cn + 1).value):
            if cell_at(g.mark, cell_at(g.successor, edge).value).value == 1:
                cell_at(g.mark, cn).value = 1
                break
    cell_at(g.mark, chosen).value = 0
