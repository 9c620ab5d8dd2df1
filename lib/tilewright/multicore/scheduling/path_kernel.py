"""Compiled functions for the paths of a group of transfers, in which some links carry the data only once."""

from tilewright.base.compiled import kernel
from tilewright.multicore.scheduling import access_kernel as at


@kernel
def has_multicast(q, pair):
    """True if the path of a pair of cores has a link with multicast."""
    found = False
    for hop in at.hops_of(q, pair):
        found = found or at.link(q, at.link_of(q, hop)).is_multicast != 0
    return found


@kernel
def is_on_first_path(s, link):
    """True if the link is on the path of the first transfer of the latest group of transfers."""
    return at.link_state(s, link).first_group == s.groups_count


@kernel
def is_carried(q, s, link):
    """True if the link has multicast and already carries the data of the latest group of transfers."""
    return at.link(q, link).is_multicast != 0 and at.link_state(s, link).group == s.groups_count


@kernel
def take_path(q, s, flight, bits):
    """Reserve the bandwidth of a starting transfer on the links of its path, and count `bits` as moved over these
    links. Links that already carry the data for the group of the transfer are left out.
    """
    is_first = flight.shared < 0
    for hop in at.hops_of(q, flight.path):
        link = at.link_of(q, hop)
        state = at.link_state(s, link)
        is_common = not is_first and is_on_first_path(s, link)
        if not is_common and not is_carried(q, s, link):
            state.free_bits_per_cycle -= flight.rate
            at.link_bits(q, s, flight.cause, link).value += bits
        state.group = flight.group
        if is_first:
            state.first_group = flight.group


@kernel
def free_path(q, s, flight):
    """Release the bandwidth of an ending transfer on the links of its path.

    The transfers of a broadcast are a group. They end directly after each other, in the order in which they started. If
    the transfers of the group share the bandwidth of a link, only one of them releases the bandwidth:

    * On a link with multicast, it is the first transfer of the group that uses the link.
    * On any other link of the first transfer's path, it is the first transfer.

    On all other links, each transfer releases the bandwidth that it has reserved.
    """
    is_first = flight.shared < 0
    for hop in at.hops_of(q, flight.path):
        link = at.link_of(q, hop)
        state = at.link_state(s, link)
        is_freed = at.link(q, link).is_multicast != 0 and state.released == flight.group
        if is_first:
            state.first_released = flight.group
        elif state.first_released == flight.group:
            is_freed = True
        if not is_freed:
            state.free_bits_per_cycle += flight.rate
        state.released = flight.group


@kernel
def can_listen(q, s, own, pair, rate):
    """True if a core can listen to the first transfer of the latest group of transfers. This transfer moves `rate` bits
    per cycle over the path of `pair`. `own` is the pair of the source core and the listening core.

    There are two conditions. First, the paths of `own` and `pair` share a bus or a link with multicast, or the source
    can send into the first links of both paths at once. Second, `rate` bits per cycle are free on each link that does
    not carry the data yet.
    """
    is_reached = forks_at_source(q, own, pair)
    for hop in at.hops_of(q, own):
        link = at.link_of(q, hop)
        if is_on_first_path(s, link):
            is_reached = is_reached or at.link(q, link).is_broadcast != 0
        elif not is_carried(q, s, link) and at.link_state(s, link).free_bits_per_cycle < rate:
            return False
    return is_reached


@kernel
def forks_at_source(q, own, pair):
    """True if the first links of two paths from one core both have multicast. The core then sends into both links at
    once. `own` and `pair` are the pairs of cores (source, target) of the two paths.
    """
    first = at.hops_of(q, own)
    other = at.hops_of(q, pair)
    if first.start == first.stop or other.start == other.stop:
        return False
    one = at.link(q, at.link_of(q, first.start)).is_multicast
    return one != 0 and at.link(q, at.link_of(q, other.start)).is_multicast != 0
