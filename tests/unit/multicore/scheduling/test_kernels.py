"""Kernels of the scheduler one by one, on small states made by hand."""

from typing import Any

import numpy as np
from tilewright.base.record_pointer import pointer_to
from tilewright.multicore.scheduling.candidate_kernel import add_event, pop_event
from tilewright.multicore.scheduling.residency_kernel import pop_evictable, push_evictable
from tilewright.multicore.scheduling.share_kernel import share_of, share_or_wait
from tilewright.multicore.scheduling.state_record import (
    COPY,
    ENTRY,
    EVENT,
    INPUTS,
    LINK,
    LINK_STATE,
    MEMORY,
    MEMORY_STATE,
    PAIR,
    PIECE,
    PRESENT,
    STATE,
    WAIT,
)


def record(dtype: np.dtype, **arrays: np.ndarray) -> Any:
    """A record of the kernel with the addresses of arrays; the caller keeps the arrays."""
    made = np.zeros(1, dtype).view(np.recarray)[0]
    for name, array in arrays.items():
        made[name] = pointer_to(array)
    return made


def test_events_come_by_time_then_in_the_order_in_which_they_began() -> None:
    """The heap gives the event with the earliest end; of equal ends, the event that was entered first."""
    events = np.zeros(8, EVENT)
    state = record(STATE, events=events)
    for what, cycles in enumerate((5, 3, 5, 3, 4, 5)):
        add_event(state, cycles, what)
    assert [pop_event(state) for _ in range(6)] == [1, 3, 4, 0, 2, 5]
    assert state.events_count == 0


def test_the_copy_with_the_smallest_key_is_evicted_and_void_entries_are_thrown_away() -> None:
    """A copy that is entered again counts with its last key, and the heap never outgrows its array."""
    copies, entries, memories = np.zeros(3, COPY), np.zeros(8, ENTRY), np.zeros(2, MEMORY_STATE)
    copies["state"] = PRESENT
    memories["evict_start"] = 0, 4
    state = record(STATE, copies=copies, entries=entries, memories=memories)
    for copy, key in ((0, 10), (1, 30), (2, 20), (0, 40), (1, 15)):  # one more than there is place for
        push_evictable(state, copy, key)
    assert memories["evict_count"][0] <= 4
    assert [pop_evictable(state, 0) for _ in range(3)] == [1, 2, 0]


def test_a_transfer_gets_what_is_free_on_its_path_if_that_is_enough() -> None:
    """The narrowest port or link limits a transfer; a transfer that gets less than its share of this width waits."""
    memories, links, free = np.zeros(2, MEMORY), np.zeros(3, LINK), np.zeros(3, LINK_STATE)
    memories["read_bits"], memories["write_bits"] = 32, 64
    links["bits_per_cycle"], free["free_bits_per_cycle"] = (16, 128, 8), (12, 128, 8)
    pairs, path = np.zeros(3, PAIR), np.array([0, 1, 2])
    pairs["start"] = 0, 2, 3
    problem = record(INPUTS, memories=memories, links=links, pairs=pairs, path_link=path)
    problem.share_divisor = 2
    state = record(STATE, links=free)
    assert share_of(problem, state, 0, 0, 1, 1000) == 12
    assert share_of(problem, state, 0, 0, 1, 5) == 5
    free["free_bits_per_cycle"][0] = 7
    assert share_of(problem, state, 0, 0, 1, 1000) == 0


def test_a_remembered_link_gives_the_same_widths_as_a_new_search_of_the_path() -> None:
    """A transfer that waits gets its width as soon as `share_of` gives one, also after other copies and paths."""
    draw = np.random.default_rng(5)
    memories, links, free = np.zeros(2, MEMORY), np.zeros(4, LINK), np.zeros(4, LINK_STATE)
    memories["read_bits"], memories["write_bits"] = 40, 24
    links["bits_per_cycle"] = 16, 32, 8, 64
    pairs, path, waits = np.zeros(3, PAIR), np.array([0, 1, 3, 2, 3]), np.full(1, -1, WAIT)
    pairs["start"] = 0, 3, 5
    pieces, copies = np.zeros(2, PIECE), np.zeros(2, COPY)
    pieces["bits"], copies["piece"] = (1000, 6), (0, 1)
    problem = record(INPUTS, memories=memories, links=links, pairs=pairs, path_link=path, pieces=pieces)
    state = record(STATE, links=free, waits=waits, copies=copies)
    waited = 0
    for _ in range(400):
        problem.share_divisor = draw.choice((1, 3, 4))
        waits["copy"] = -1  # the divisor of a problem never changes
        for _ in range(6):
            free["free_bits_per_cycle"] = draw.integers(0, links["bits_per_cycle"] + 1)
            copy, pair = int(draw.integers(2)), int(draw.integers(2))
            share = share_of(problem, state, pair, 0, 1, int(pieces["bits"][copy]))
            assert share_or_wait(problem, state, 0, copy, pair, 0, 1) == share
            waited += share == 0
    assert waited > 100
