"""Records that the compiled scheduler reads and writes, and the integer codes of states, causes and outcomes.

A field with a plural name, such as `nodes`, holds the address of an array of records. A CELL is a record of one number.
docs/multi-core-model/scheduling.md defines the terms of the scheduler, such as copy, need, piece and detour.
"""

import numpy as np

# States of a copy of a piece in a memory.
ABSENT, RESERVED, ARRIVING, PRESENT, LEAVING = range(5)
# States of the slot of a core. The slot holds the CN that the core prepares.
EMPTY, CHOSEN, CLAIMED = range(3)
# States of a request: it is to be tried; it waits until it is woken; it waits until it is woken or a link has enough
# free width.
AWAKE, UNTIL_WOKEN, UNTIL_WIDTH = range(3)
# Causes of data movement: positions in `energy_terms.CAUSES`.
OFF_CHIP_FETCH, OFF_CHIP_STREAM, EVICTION, SINK_OUTPUT, CORE_TO_CORE = range(5)
# Outcomes of a simulation.
DONE, STUCK, CANNOT_RUN, NO_MEMORY, NO_PATH, DOES_NOT_FIT = range(6)
# States of a piece with respect to the off-chip memory.
NOT_OFF_CHIP, OFF_CHIP, BEING_WRITTEN = range(3)
NONE = -1
"""Value of a field that refers to no copy, no CN or no transfer."""


def _record(text: str, kind: type = np.int64) -> np.dtype:
    """Type of a record with the fields in `text`. A field has the type `kind`, or the type after its colon, as in
    `state:i1`.
    """
    names = [field.split(":") for field in text.split()]
    return np.dtype([(name[0], name[1] if len(name) > 1 else kind) for name in names], align=True)


# Inputs. A CSR table has one more start entry than rows: row r ends where row r + 1 starts.
CELL = _record("value")
FLAG = _record("value", np.int8)
NODE = _record("cost_row rank need_start output_start successor_start")
NEED = _record("piece cn operand")
PIECE = _record("bits producer need_start is_output goes_off_chip")
"""Record of a piece. goes_off_chip: not 0 if all cores except the producing core can get the piece only through the
off-chip memory.
"""
MEMORY = _record("capacity_bits read_bits write_bits")
LINK = _record("bits_per_cycle is_broadcast is_multicast")
"""Record of a link.

* is_broadcast: not 0 for a bus and for a link with multicast.
* is_multicast: not 0 if the link carries a piece once for all cores that receive the piece together.
"""
PAIR = _record("start exists")
"""Record of a pair of cores. start: position in `path_link` of the first link of the pair's path. exists: not 0 if
there is a path.
"""
COST = _record("runtime_cycles has_streams")
STREAM = _record("bits bits_per_cycle")

# State.
NODE_STATE = _record("ready_cycles start_cycles end_cycles unstarted")
"""State of a CN. ready_cycles: latest end, in cycles, of the predecessors that have started. unstarted: number of
predecessors that have not started.
"""
PIECE_STATE = _record("home pending off_chip_uses off_chip first_copy copies_stop", np.int32)
"""State of a piece.

* home: copy in the memory where the piece is produced; NONE for a constant and for a piece that streams out.
* pending: number of copies that are needed but not present. The home and copies that take a detour do not count.
* off_chip_uses: number of needs that get the piece from the off-chip memory, as a stream or by a detour. If there are
  any, a result is written off-chip when it is produced.
* off_chip: NOT_OFF_CHIP, OFF_CHIP or BEING_WRITTEN.
* first_copy, copies_stop: range of the numbers of all copies of the piece, including the home.
"""
COPY = _record("piece memory core pins uses version mark write_next state:i1 write_cause:i1 takes_detour:i1", np.int32)
"""State of a copy.

* pins: number of reasons why the copy must stay in its memory.
* uses: number of reads from the copy by CNs that have not ended.
* version: number of the newest entry of the copy in the heap of evictable copies. Entries with older numbers are
  invalid.
* mark: last CN for which the copy was counted in a loop over needs, so that the copy counts only once for each CN; NONE
  if the copy was never counted.
* write_next: next copy that the same memory writes off-chip.
* takes_detour: True if the copy takes a detour for at least one CN that needs it.
"""
MEMORY_STATE = _record(
    "claimed_bits stored_bits peak_bits evictable_bits changes changes_before required_bits write_first write_last"
    " evict_start evict_count piece piece_copy"
)
"""State of a memory.

* claimed_bits: bits of the data that are in the memory or for which space is promised. Data that are leaving do not
  count.
* stored_bits: bits that the memory physically holds.
* changes: counter of the events after which a failed claim can succeed.
* piece, piece_copy: last piece for which `make_copies` created a copy in this memory, and the number of this copy.
"""
ENTRY = _record("key copy version")
"""Entry of the heap of evictable copies."""
CORE = _record(
    "slot slot_state tentative new_candidate failed_at issued arrived running busy_until heap_start future_count"
    " ready_count prefetch_start prefetch_next prefetching forward_start forward_next forward_stop forwarding"
    " stream_count"
)
"""State of a core.

* slot: CN that the core prepares.
* failed_at: sum of `changes` over the memories of the core at the time when the claim for the CN in the slot failed.
* issued: next need of this CN for which a fetch must start.
* arrived: next need of this CN whose piece must arrive.
* forward_next, forward_stop: first index and end index of the results that the core can still prefetch.
* prefetching: copy of the constant that the core is prefetching.
* forwarding: copy of the result that the core is prefetching.
* stream_count: number of links that the streams of the running CN use.
"""
LINK_STATE = _record("free_bits_per_cycle demand load group first_group released first_released")
"""State of a link. Two fields are about the streams of the CN that starts next:

* demand: bits per cycle that these streams request on the link; after the start, the bits per cycle that they get.
* load: bits that these streams move over the link.

The other fields are numbers of groups. The transfers of a broadcast are a group (`FLIGHT`):

* group: latest group with a transfer over the link.
* first_group: latest group with its first transfer over the link.
* released: latest group with an ended transfer over the link.
* first_released: latest group whose first transfer used the link and has ended.
"""
WAIT = _record("copy pair link needed_bits_per_cycle asleep")
"""Record of an action that waits for a link: `needed_bits_per_cycle` must be free on `link` before the transfer of
`copy` over the path of `pair` can start. If the streams of a CN wait for the link, `copy` is NONE. The field `asleep`
is the state of a request (AWAKE, UNTIL_WOKEN or UNTIL_WIDTH).

`waits` has three parts: one record for each requester (cores, then memories), one record for the constant that each
core prefetches, and one record for the result that each core prefetches.
"""
FLIGHT = _record("copy source cause rate path shared group")
"""Record of a flight: a transfer that has not ended.

* source: copy that is read, or NONE for the off-chip memory.
* rate: bits per cycle.
* path: pair of cores between which the data move.
* shared: pair of cores whose links already carry the same data for another transfer (a broadcast), or NONE.
* group: number that a transfer and all transfers of its broadcast have in common.
"""
EVENT = _record("cycles order what")
"""Record of an event: the end of a CN or of a flight.

* order: number of events that were added before this event. Of two events at the same time, the event with the smaller
  number comes first.
* what: number of the core whose CN ends, or core_count plus the number of the flight that ends.
"""

# Logs.
TRANSFER_LOG = _record(
    "piece cause source_memory target_memory source_core target_core start_cycles end_cycles bits_per_cycle"
    " broadcast_of"
)
STREAM_LOG = _record("cn link start_cycles end_cycles bits_per_cycle bits")
CHANGE_LOG = _record("time_cycles memory change_bits")

INPUTS = _record(
    "node_count piece_count core_count operand_count memory_count link_count"
    " off_chip_core off_chip_memory share_divisor by_rank record stack_count prefetches_results forwards_constants"
    " stream_width"
    " nodes needs pieces memories links pairs costs streams"
    " allocation core_memory user_start user prefetches prefetch_order piece_need output_piece successor path_link"
    " stack stack_start stack_cn"
)
"""Record of the problem, an allocation and the options. These fields are arrays of CELL:

* allocation: core of each CN.
* core_memory: memory that holds an operand on a core, at position core * operand_count + operand; -1 if there is none.
* prefetches: for each operand, not 0 if its constants are prefetched.
* prefetch_order: CNs in the order in which their constants are prefetched.
* user: for each memory, the cores that use it.
* path_link: for each pair of cores, the links of its path.
* piece_need: needs of each piece.
* output_piece: pieces that each CN produces.
* successor: successors of each CN.
* stack: stack of each CN.
* stack_cn: CNs of each stack.

These fields are numbers:

* stack_count: number of stacks if each stack waits for the previous stack, else 0.
* prefetches_results: not 0 if cores prefetch the results of CNs, in addition to constants.
* forwards_constants: not 0 if a core can send its constants to other cores.
* stream_width: largest number of links that the streams of a CN use.
"""
STATE = _record(
    "copies_count events_count event_number flights_count free_flights groups_count requests_count finished now"
    " transfers_count streams_count changes_count status place place_core place_other"
    " transfer_room stream_room change_room stacks_end"
    " nodes pieces copies memories entries cores links flights events transfers streams memory_changes"
    " need_copy future ready prefetch_copy forward_copy request flight_free stream_link stream_share link_bits"
    " words_read words_written stack_left waits to_prepare to_claim to_forward to_prefetch changed_memory"
)
"""State of the simulation. These fields are arrays of CELL:

* need_copy: copy from which the CN of each need reads; NONE if the need streams.
* future, ready: for each core, two heaps of candidates. `choose` moves a candidate from `future` to `ready`.
* request: requests that wait, oldest first.
* stream_link: for each core, list of the links that the streams of its CN use. Link n of the list is at position core *
  stream_width + n.
* stream_share: bandwidth on each of these links, at the same position.
* link_bits: bits for each cause and link, at position cause * link_count + link.
* words_read, words_written: words for each cause and memory, at position cause * memory_count + memory.
* stack_left: for each stack, number of CNs that have not started.

These fields are numbers:

* groups_count: number of groups of transfers that have started (`FLIGHT`).
* stacks_end: latest end in cycles of all started CNs, if each stack waits for the previous stack.

These fields are arrays of FLAG:

* to_prepare, to_claim, to_forward, to_prefetch: for each core, not 0 if the scheduler must try the action that the
  field names.
* changed_memory: for each memory, not 0 if its content changed at the current time.
"""

GRAPH = _record("node_count finished latency head runtime tail waiting queue mark start successor delay")
"""Record of the CN graph for longest paths, with arrays of CELL. `successor` and `delay` have one entry for each edge.
`start` has, for each CN, the position of its first edge, and at the end the number of edges. All other arrays have one
entry for each CN.
"""
