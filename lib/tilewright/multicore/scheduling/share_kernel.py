"""Compiled functions for the widths that transfers get on the links of their paths."""

from tilewright.base.compiled import kernel
from tilewright.multicore.scheduling import access_kernel as at
from tilewright.multicore.scheduling.state_record import AWAKE, UNTIL_WIDTH


@kernel
def full_rate(q, pair, source_memory, target_memory, bits):
    """Bandwidth in bits per cycle that a transfer between a pair of cores gets if no other transfer uses its path."""
    full = min(bits, at.memory(q, source_memory).read_bits, at.memory(q, target_memory).write_bits)
    for hop in at.hops_of(q, pair):
        full = min(full, at.link(q, at.link_of(q, hop)).bits_per_cycle)
    return full


@kernel
def share_of(q, s, pair, source_memory, target_memory, bits):
    """Bandwidth in bits per cycle that a transfer between a pair of cores would get now; 0 if the transfer must
    wait.
    """
    full = full_rate(q, pair, source_memory, target_memory, bits)
    share = full
    for hop in at.hops_of(q, pair):
        share = min(share, at.link_state(s, at.link_of(q, hop)).free_bits_per_cycle)
    return share if share * q.share_divisor >= full else 0


@kernel
def share_or_wait(q, s, action, copy, pair, source_memory, target_memory):
    """Bandwidth in bits per cycle that a transfer of a copy would get now (`share_of`); 0 if the transfer must wait for
    a link.

    `action` is the position of a record in `waits`. If a link has too little free bandwidth, this record remembers the
    link. Until the link has enough, other links of the path are not checked again.
    """
    wait = at.wait(s, action)
    wait.asleep = UNTIL_WIDTH
    is_known = wait.copy == copy and wait.pair == pair
    if is_known and at.link_state(s, wait.link).free_bits_per_cycle < wait.needed_bits_per_cycle:
        return 0
    bits = at.bits_of(q, s, copy)
    full = full_rate(q, pair, source_memory, target_memory, bits)
    needed = at.words(full, q.share_divisor)
    share = full
    for hop in at.hops_of(q, pair):
        link = at.link_of(q, hop)
        free = at.link_state(s, link).free_bits_per_cycle
        if free < needed:
            wait.copy = copy
            wait.pair = pair
            wait.link = link
            wait.needed_bits_per_cycle = needed
            return 0
        share = min(share, free)
    wait.asleep = AWAKE
    return share


@kernel
def is_asleep(s, who):
    """True if the last request of a requester failed, and nothing has changed since then that can let the request
    succeed.
    """
    wait = at.wait(s, who)
    if wait.asleep == UNTIL_WIDTH:
        return at.link_state(s, wait.link).free_bits_per_cycle < wait.needed_bits_per_cycle
    return wait.asleep != AWAKE
