"""Compiled functions for paths through the graph of computation nodes (CNs)."""

from tilewright.base.compiled import kernel
from tilewright.multicore.scheduling.access_kernel import cell


@kernel
def longest_paths(g, _count):
    """Compute lower bounds, in cycles, of three times: the time from the start of the schedule to the start of each CN
    (`head`), the time from the end of each CN to the end of the schedule (`tail`), and the latency.

    `g.queue` receives the CNs in topological order, and `g.finished` receives their number. If the graph has a cycle,
    CNs on the cycle and after the cycle are left out. `g.finished` is then smaller than the number of CNs.
    """
    last = 0
    for cn in range(g.node_count):
        if cell(g.waiting, cn).value == 0:
            cell(g.queue, last).value = cn
            last += 1
    first = 0
    g.latency = 0
    while first < last:
        cn = cell(g.queue, first).value
        first += 1
        end = cell(g.head, cn).value + cell(g.runtime, cn).value
        g.latency = max(g.latency, end + cell(g.tail, cn).value)
        for edge in range(cell(g.start, cn).value, cell(g.start, cn + 1).value):
            successor = cell(g.successor, edge).value
            head = cell(g.head, successor)
            head.value = max(head.value, end + cell(g.delay, edge).value)
            cell(g.waiting, successor).value -= 1
            if cell(g.waiting, successor).value == 0:
                cell(g.queue, last).value = successor
                last += 1
    g.finished = first
    for place in range(first):
        cn = cell(g.queue, first - 1 - place).value
        tail = cell(g.tail, cn)
        for edge in range(cell(g.start, cn).value, cell(g.start, cn + 1).value):
            successor = cell(g.successor, edge).value
            behind = cell(g.runtime, successor).value + cell(g.tail, successor).value
            tail.value = max(tail.value, cell(g.delay, edge).value + behind)


@kernel
def cns_around(g, chosen):
    """Set `g.mark` of every CN: 1 if a path leads from the CN to `chosen`, 2 if a path leads from `chosen` to the CN,
    otherwise 0. `longest_paths` must run first, because this function uses its order of CNs.
    """
    for cn in range(g.node_count):
        cell(g.mark, cn).value = 0
    cell(g.mark, chosen).value = 2
    for place in range(g.node_count):
        cn = cell(g.queue, place).value
        if cell(g.mark, cn).value == 2:
            for edge in range(cell(g.start, cn).value, cell(g.start, cn + 1).value):
                cell(g.mark, cell(g.successor, edge).value).value = 2
    cell(g.mark, chosen).value = 1
    for place in range(g.node_count):
        cn = cell(g.queue, g.node_count - 1 - place).value
        for edge in range(cell(g.start, cn).value, cell(g.start, cn + 1).value):
            if cell(g.mark, cell(g.successor, edge).value).value == 1:
                cell(g.mark, cn).value = 1
                break
    cell(g.mark, chosen).value = 0
