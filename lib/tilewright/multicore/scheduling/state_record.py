"""Records that the compiled scheduler reads and writes, and the numbers that stand for states.

Fields that are named after something in the plural hold the address of an array of records.
"""

import numpy as np

# A copy of a piece in a memory.
ABSENT, RESERVED, ARRIVING, PRESENT, LEAVING = range(5)
# The CN that a core prepares.
EMPTY, CHOSEN, CLAIMED = range(3)
# Why data moves: positions in `energy_terms.CAUSES`.
OFF_CHIP_FETCH, OFF_CHIP_STREAM, EVICTION, SINK_OUTPUT, CORE_TO_CORE = range(5)
# How a simulation ends.
DONE, STUCK, CANNOT_RUN, NO_MEMORY, NO_PATH, DOES_NOT_FIT = range(6)
# Whether a piece is in the off-chip memory.
NOT_OFF_CHIP, OFF_CHIP, BEING_WRITTEN = range(3)
NONE = -1
"""No copy, no CN, no transfer."""


def _record(text: str, kind: type = np.int64) -> np.dtype:
    """A record of fields of one type, or of the type that is given after a colon."""
    names = [field.split(":") for field in text.split()]
    return np.dtype([(name[0], name[1] if len(name) > 1 else kind) for name in names], align=True)


# Inputs. CSR tables have one entry more than there are rows.
CELL = _record("value")
NODE = _record("cost_row rank need_start output_start successor_start")
NEED = _record("piece cn operand")
PIECE = _record("bits producer need_start is_output goes_off_chip")
"""goes_off_chip: other cores get it by way of the off-chip memory."""
MEMORY = _record("capacity_bits read_bits write_bits")
LINK = _record("bits_per_cycle is_broadcast")
PAIR = _record("start exists")
"""Record of a pair of cores: first hop of its path, whether it has one."""
COST = _record("runtime_cycles has_streams")
STREAM = _record("bits bits_per_cycle")

# State.
NODE_STATE = _record("ready_cycles start_cycles end_cycles unstarted")
"""ready_cycles: largest end of its predecessors; unstarted: predecessors that have not started."""
PIECE_STATE = _record("home pending off_chip_uses off_chip first_copy copies_stop", np.int32)
"""home: copy where it is produced, NONE for constants and what streams out; pending: copies other than home that are
needed, not present and take no detour; off_chip_uses: needs for which it is written off-chip when it is produced;
first_copy, copies_stop: its copies, home among them."""
COPY = _record("piece memory core pins uses version mark write_next state:i1 write_cause:i1 takes_detour:i1", np.int32)
"""pins: reasons why it must stay; uses: needs of CNs that have not ended; version: of its valid entry among those that
may be evicted; write_next: what is written off-chip after it from the same memory; takes_detour: for some
CN that needs it."""
MEMORY_STATE = _record(
    "claimed_bits stored_bits peak_bits evictable_bits changes changes_before required_bits write_first write_last"
    " evict_start evict_count"
)
"""claimed: what is there and what is promised, without what leaves; changes counts what may let a claim succeed."""
ENTRY = _record("key copy version")
"""Entry of the heap of copies that may be evicted."""
CORE = _record(
    "slot slot_state tentative new_candidate failed_at issued arrived running busy_until heap_start future_count"
    " ready_count prefetch_start prefetch_next prefetching forward_start forward_next forward_stop forwarding"
)
"""slot: CN that is prepared; failed_at: changes of its memories when its claim failed; issued, arrived: next need to be
fetched and to be waited for; forward_next, forward_stop: results that may be fetched ahead; prefetching, forwarding:
what is fetched ahead now."""
LINK_STATE = _record("free_bits_per_cycle demand load")
"""demand, load: width and bits that the CN about to start asks for."""
FLIGHT = _record("copy source cause rate path shared")
"""A transfer under way: source is the copy that is read, NONE for off-chip; path a pair of cores; shared the pair whose
links carry the data already, or NONE."""
EVENT = _record("cycles order what")
"""what: the core whose CN ends, or the number of cores plus the flight that ends."""

# Logs.
TRANSFER_LOG = _record(
    "piece cause source_memory target_memory source_core target_core start_cycles end_cycles bits_per_cycle"
    " broadcast_of"
)
STREAM_LOG = _record("cn link start_cycles end_cycles bits_per_cycle bits")
CHANGE_LOG = _record("time_cycles memory change_bits")

INPUTS = _record(
    "node_count piece_count core_count operand_count memory_count link_count"
    " off_chip_core off_chip_memory share_divisor by_rank record stack_count prefetches_results"
    " nodes needs pieces memories links pairs costs streams"
    " allocation core_memory prefetches piece_need output_piece successor path_link stack stack_start stack_cn"
)
"""The problem, an allocation and options. allocation [cn], core_memory [core * operands + operand], prefetches
[operand], path_link [hop], stack [cn] and the lists of CSR tables are arrays of CELL. stack_count: of stacks that wait
for each other, 0 where they do not; stack_cn lists the CNs of each. prefetches_results: whether what is made is
fetched ahead, too."""
STATE = _record(
    "copies_count events_count event_number flights_count free_flights requests_count finished now"
    " transfers_count streams_count changes_count status place place_core place_other"
    " transfer_room stream_room change_room stacks_end"
    " nodes pieces copies memories entries cores links flights events transfers streams memory_changes"
    " need_copy future ready prefetch_copy forward_copy request flight_free stream_share link_bits words_read"
    " words_written stack_left"
)
"""Everything that changes. need_copy [need] (NONE where it streams), future and ready (heaps of candidates by core),
request (oldest first), stream_share [core * links + link], link_bits [cause * links + link], words_read and
words_written [cause * memories + memory], stack_left [stack] (CNs that have not started) are arrays of CELL.
stacks_end: when the last CN that has started ends, of stacks that wait for each other."""

GRAPH = _record("node_count finished latency head runtime tail waiting queue mark start successor delay")
"""Record for paths: arrays of CELL by CN and by edge."""
