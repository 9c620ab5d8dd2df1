"""Known points of a front, against which a sweep tests labels, partial loop orders (compiled).

The points form a staircase: energies fall and latencies grow. A point matches a label within a tolerance if the energy
and the latency of the point exceed the lower bounds of the label by at most this fraction
(docs/proofs/network-front.md#sweeps).
"""

from tilewright.base.compiled import kernel


@kernel
def first_within(x, energy):
    """Index of the first known point whose energy is at most `energy` pJ. It has the least latency of these points. The
    result is the number of points if there is no such point."""
    low = 0
    high = x.known_count
    while low < high:
        middle = (low + high) // 2
        if x.known_energy[middle] <= energy:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def longest_unknown(x, energy, longest):
    """Largest latency in cycles, at most `longest`, of completions that no known point dominates. The completions need
    at least `energy` pJ.

    The result is `longest` in a search for a single objective.
    """
    if not x.sweeps:
        return longest
    point = first_within(x, energy)
    return min(longest, x.known_latency[point]) if point < x.known_count else longest


@kernel
def is_matched(x, energy, latency):
    """True if a known point matches lower bounds of energy (pJ) and latency (cycles) within the tolerance of the sweep.
    The largest excess of the best matching points is kept in `x.known_share`: 1 plus the miss.

    The result is always False in a search for a single objective.
    """
    if not x.sweeps:
        return False
    e = max(energy, x.known_floor_energy)
    t = max(latency, x.known_floor_latency)
    point = first_within(x, e * x.known_tolerance)
    if point == x.known_count or x.known_latency[point] > t * x.known_tolerance:
        return False
    if e <= 0 or t <= 0:  # nothing is divided by 0; the miss is at most the tolerance
        x.known_share = max(x.known_share, x.known_tolerance)
        return True
    # From point to point, the energy falls and the latency grows: the larger excess first falls, and then grows.
    share = max(x.known_energy[point] / e, x.known_latency[point] / t)
    while share > 1 and point + 1 < x.known_count:
        point += 1
        later = max(x.known_energy[point] / e, x.known_latency[point] / t)
        if later >= share:
            break
        share = later
    x.known_share = max(x.known_share, share)
    return True
