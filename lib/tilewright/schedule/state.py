"""What the compiled scheduler reads and writes: named tuples of arrays, and the numbers that stand for states."""

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

# A copy of a piece in a memory.
ABSENT, RESERVED, ARRIVING, PRESENT, LEAVING = range(5)
# The CN that a core prepares.
EMPTY, CHOSEN, CLAIMED = range(3)
# Why data moves.
OFF_CHIP_FETCH, OFF_CHIP_STREAM, EVICTION, SINK_OUTPUT, CORE_TO_CORE = range(5)
CAUSES = ("off_chip_fetch", "off_chip_stream", "eviction", "sink_output", "core_to_core")
# How a simulation ends.
DONE, STUCK, CANNOT_RUN, NO_MEMORY, NO_PATH, DOES_NOT_FIT = range(6)
# Whether a piece is in the off-chip memory.
NOT_OFF_CHIP, OFF_CHIP, BEING_WRITTEN = range(3)
NONE = -1
"""No copy, no CN, no transfer."""
# Columns of the logs.
TRANSFER_COLUMNS = (
    "piece", "cause", "source_memory", "target_memory", "source_core", "target_core", "start_cycles", "end_cycles",
    "bits_per_cycle", "broadcast_of",
)  # fmt: skip
STREAM_COLUMNS = ("cn", "link", "start_cycles", "end_cycles", "bits_per_cycle", "bits")
MEMORY_COLUMNS = ("time_cycles", "memory", "change_bits")


class Inputs(NamedTuple):
    """The problem, an allocation and options; see `NodeGraph`, `CostTable`, `CoreSystem` for what is not said here."""

    cost_row: Array
    rank: Array
    """[cn] order of selection among CNs that are ready"""
    need_start: Array
    need_piece: Array
    need_operand: Array
    need_cn: Array
    piece_need_start: Array
    piece_need: Array
    output_start: Array
    output_piece: Array
    successor_start: Array
    successor: Array
    piece_bits: Array
    piece_producer: Array
    piece_is_output: Array
    runtime_cycles: Array
    stream_bits: Array
    stream_bits_per_cycle: Array
    core_memory: Array
    capacity_bits: Array
    read_bits: Array
    write_bits: Array
    link_bits_per_cycle: Array
    link_is_broadcast: Array
    path_exists: Array
    path_start: Array
    path_link: Array
    allocation: Array
    """[cn] core"""
    prefetches: Array
    """[operand] bool: constants of the operand are fetched ahead"""
    settings: Array
    """off-chip core, off-chip memory, share divisor, select by rank (bool), record (bool)"""


OFF_CHIP_CORE, OFF_CHIP_MEMORY, SHARE_DIVISOR, BY_RANK, RECORD = range(5)


class State(NamedTuple):
    """Everything that changes while time goes on."""

    # Per CN.
    unstarted: Array  # predecessors that have not started
    ready_cycles: Array  # largest end of its predecessors
    start_cycles: Array
    end_cycles: Array
    # Per need, piece and copy.
    need_copy: Array  # copy that the need is served by; NONE where it streams
    home: Array  # [piece] copy where it is produced; NONE for constants and what streams out
    off_chip: Array  # [piece]
    pending: Array  # [piece] copies other than home that are needed and not present
    stream_uses: Array  # [piece] needs that stream it
    copy_piece: Array
    copy_memory: Array
    copy_core: Array
    copy_state: Array
    copy_pins: Array  # reasons why it must stay
    copy_uses: Array  # needs of CNs that have not ended
    copy_version: Array  # of its entry among the candidates for eviction
    copy_mark: Array
    write_next: Array  # next copy to be written off-chip from the same memory
    write_cause: Array
    # Per memory.
    claimed_bits: Array  # what is there and what is promised, without what leaves
    stored_bits: Array
    peak_bits: Array
    evictable_bits: Array
    changes: Array  # counts what may let a claim succeed
    required_bits: Array
    write_first: Array
    write_last: Array
    evict_start: Array
    evict_count: Array
    evict_key: Array
    evict_copy: Array
    evict_version: Array
    # Per core.
    slot: Array  # CN that is prepared
    slot_state: Array
    tentative: Array
    new_candidate: Array
    failed_at: Array  # changes of its memories when the claim failed
    issued: Array  # next need to be fetched
    arrived: Array  # next need to be waited for
    running: Array
    busy_until: Array
    core_start: Array  # [core + 1] into the heaps of candidates
    future_count: Array
    future: Array
    ready_count: Array
    ready: Array
    prefetch_start: Array
    prefetch_next: Array
    prefetch_copy: Array
    prefetching: Array
    # Links.
    free_bits_per_cycle: Array
    demand: Array  # [link] of the CN that wants to start
    load: Array  # [link] bits of that CN
    stream_share: Array  # [core, link]
    # Transfers under way and events.
    flight_copy: Array
    flight_source: Array  # copy that is read, NONE: off-chip
    flight_cause: Array
    flight_rate: Array
    flight_path: Array  # pair of cores
    flight_shared: Array  # pair of cores whose links carry it already, NONE: all links are its own
    flight_free: Array
    event_cycles: Array
    event_order: Array
    event_what: Array  # core whose CN ends, or cores + flight
    # Requests, oldest first.
    request: Array
    # Results.
    link_bits: Array  # [cause, link]
    words_read: Array  # [cause, memory]
    words_written: Array  # [cause, memory]
    transfers: Array
    streams: Array
    memory_changes: Array
    scalars: Array


(COPIES, EVENTS, EVENT_NUMBER, FLIGHTS, FREE_FLIGHTS, REQUESTS, FINISHED, NOW, TRANSFERS, STREAMS, CHANGES, STATUS, PLACE,
 PLACE_CORE, PLACE_OTHER) = range(15)  # fmt: skip
