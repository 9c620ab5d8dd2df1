"""Points of the lattice at which a boundary has equal numbers are one class (compiled; docs/exact.md, 5)."""

from tilewright.compiled import kernel
from tilewright.search.exact_labels_kernel import mix
from tilewright.search.exact_record import CLASS_SLOTS
from tilewright.search.salsa_kernel import ENERGY_OBJECTIVE


@kernel
def tile_matters(x, b):
    """Whether the tile as the allocator counts it can matter once boundary `b` is closed."""
    return x.shares[b] or x.objective == ENERGY_OBJECTIVE


@kernel
def periods_of(x, b, q, point):
    """The number of periods of a link as far as it can matter."""
    count = x.link_count[b, q, point]
    return min(count, 2) if x.simple[b] else count


@kernel
def hash_numbers(x, b, row, point):
    """A hash of some of what `same_numbers` compares: of all whole numbers."""
    number = mix(1469598103934665603, int(x.elements[row, point]) if tile_matters(x, b) else 0)
    if x.objective == ENERGY_OBJECTIVE:
        return number
    number = mix(number, x.tile_bits[b, point])
    if not x.simple[b]:
        number = mix(number, x.cycles[point])
        number = mix(number, x.held_elements[b, point])
    for q in range(4):
        number = mix(number, x.link_bits[b, q, point])
        number = mix(number, periods_of(x, b, q, point))
    return number


@kernel
def same_numbers(x, b, row, point, other):
    """True if boundary `b` has the same numbers at both points."""
    if tile_matters(x, b) and x.elements[row, point] != x.elements[row, other]:
        return False
    if x.objective == ENERGY_OBJECTIVE:
        return True
    if x.tile_bits[b, point] != x.tile_bits[b, other]:
        return False
    if not x.simple[b]:
        if x.cycles[point] != x.cycles[other]:
            return False
        if x.held_elements[b, point] != x.held_elements[b, other]:
            return False
        if x.held_precision[b, point] != x.held_precision[b, other]:
            return False
        for q in range(4):
            if x.link_bandwidth[b, q, point] != x.link_bandwidth[b, q, other]:
                return False
    for q in range(4):
        if x.link_bits[b, q, point] != x.link_bits[b, q, other]:
            return False
        if periods_of(x, b, q, point) != periods_of(x, b, q, other):
            return False
    return True


@kernel
def number_classes(x):
    """Number the distinct sets of numbers of each boundary; points with the same number are interchangeable."""
    slots = 2
    while slots < 2 * x.lattice_size and slots < CLASS_SLOTS:
        slots *= 2
    for b in range(x.boundary_count):
        row = x.first_level[x.boundary_operand[b]] + x.boundary_level[b]
        for slot in range(slots):
            x.class_slot[slot] = -1
        classes = 0
        for point in range(x.lattice_size):
            slot = hash_numbers(x, b, row, point) & (slots - 1)
            while x.class_slot[slot] >= 0 and not same_numbers(x, b, row, point, x.class_slot[slot]):
                slot = (slot + 1) & (slots - 1)
            if x.class_slot[slot] >= 0:
                x.class_of[b, point] = x.class_of[b, x.class_slot[slot]]
            else:
                x.class_slot[slot] = point
                x.class_of[b, point] = classes
                classes += 1
    x.classes_known = True
