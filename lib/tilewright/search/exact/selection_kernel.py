"""Selection of the labels (partial loop orders) that a round keeps in a generation (compiled).

docs/proofs/exact-rounds.md, 7, describes rounds.
"""

from tilewright.base.compiled import kernel
from tilewright.search.exact.labels_kernel import load_child, store_child


@kernel
def split_ranked(x, count, place):
    """Reorder the first `count` numbers of `x.ranked` (quickselect): the number at `place` is then the number that
    sorting would put there. No earlier number is larger, and no later number is smaller.
    """
    first = 0
    last = count - 1
    while first < last:
        pivot = x.ranked[(first + last) // 2]
        i = first
        j = last
        while i <= j:
            while x.ranked[i] < pivot:
                i += 1
            while x.ranked[j] > pivot:
                j -= 1
            if i <= j:
                number = x.ranked[i]
                x.ranked[i] = x.ranked[j]
                x.ranked[j] = number
                i += 1
                j -= 1
        if place <= j:
            last = j
        elif place >= i:
            first = i
        else:
            return


@kernel
def move_label(problem, x, g, source, target):
    """Copy label (partial loop order) `source` of generation `g` to `target`, by way of the child, the label that is
    being made.
    """
    load_child(problem, x, g, source)
    x.child_bound = x.label_bound[g, source]
    x.child_energy_bound = x.label_energy_bound[g, source]
    store_child(problem, x, g, target)


@kernel
def keep_best_labels(problem, x, g):
    """Keep the `x.width` labels (partial loop orders) of generation `g` that have the smallest bounds, in their order.
    Of labels with equal bounds, the earlier labels are kept. The smallest bound of any dropped label is kept in
    `x.dropped_bound`.
    """
    count = x.label_count[g]
    if count <= x.width:
        return
    for i in range(count):
        x.ranked[i] = x.label_bound[g, i]
    split_ranked(x, count, x.width - 1)
    largest = x.ranked[x.width - 1]
    for i in range(x.width, count):
        x.dropped_bound = min(x.dropped_bound, x.ranked[i])
    room = x.width  # for labels whose bound equals the largest kept bound
    for i in range(x.width):
        if x.ranked[i] < largest:
            room -= 1
    kept = 0
    for i in range(count):
        bound = x.label_bound[g, i]
        if bound < largest or (bound == largest and room > 0):
            if bound == largest:
                room -= 1
            if i != kept:
                move_label(problem, x, g, i, kept)
            kept += 1
    x.label_count[g] = kept
