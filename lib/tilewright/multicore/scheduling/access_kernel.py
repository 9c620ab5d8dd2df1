"""Compiled access to the records of the scheduler by number, for example `at.copy(s, copy)`.

`q` is the problem (`INPUTS`), and `s` is the state (`STATE`).

Only this module computes addresses and positions in tables. If a function returns a reference to a record, the caller
can write the fields of this record. A CELL is a record of one number. Other kernels use fixed names for references: `c`
is a copy, `room` a memory, `where` a piece, and `state` a core or a link. The references lead to records of the state.
"""

from tilewright.base.compiled import kernel
from tilewright.base.record_pointer import RecordPointer
from tilewright.multicore.scheduling.state_record import (
    CELL,
    CHANGE_LOG,
    COPY,
    CORE,
    COST,
    ENTRY,
    EVENT,
    FLAG,
    FLIGHT,
    LINK,
    LINK_STATE,
    MEMORY,
    MEMORY_STATE,
    NEED,
    NODE,
    NODE_STATE,
    PAIR,
    PIECE,
    PIECE_STATE,
    STREAM,
    STREAM_LOG,
    TRANSFER_LOG,
    WAIT,
)

cell = RecordPointer(CELL)
"""Entry of an array of CELL (records of one number), found by the address of the array and the position of the entry.
The functions below give access to all other arrays.
"""
_flag = RecordPointer(FLAG)
_node = RecordPointer(NODE)
_need = RecordPointer(NEED)
_piece = RecordPointer(PIECE)
_memory = RecordPointer(MEMORY)
_link = RecordPointer(LINK)
_pair = RecordPointer(PAIR)
_cost = RecordPointer(COST)
_stream = RecordPointer(STREAM)
_node_state = RecordPointer(NODE_STATE)
_piece_state = RecordPointer(PIECE_STATE)
_copy = RecordPointer(COPY)
_memory_state = RecordPointer(MEMORY_STATE)
_entry = RecordPointer(ENTRY)
_core = RecordPointer(CORE)
_link_state = RecordPointer(LINK_STATE)
_flight = RecordPointer(FLIGHT)
_event = RecordPointer(EVENT)
_wait = RecordPointer(WAIT)
_transfer_row = RecordPointer(TRANSFER_LOG)
_stream_row = RecordPointer(STREAM_LOG)
_change_row = RecordPointer(CHANGE_LOG)


@kernel
def node(q, cn):
    """Record of a CN in the problem."""
    return _node(q.nodes, cn)


@kernel
def needs_of(q, cn):
    """Range of numbers that `need` takes: one number for each need of a CN. A need says that the CN reads a piece of
    data.
    """
    return range(_node(q.nodes, cn).need_start, _node(q.nodes, cn + 1).need_start)


@kernel
def outputs_of(q, cn):
    """Range of numbers that `output_piece` takes: one number for each piece that a CN produces."""
    return range(_node(q.nodes, cn).output_start, _node(q.nodes, cn + 1).output_start)


@kernel
def output_piece(q, number):
    """Piece that a CN produces; `number` is in the range that `outputs_of` returns."""
    return cell(q.output_piece, number).value


@kernel
def successors_of(q, cn):
    """Range of numbers that `successor` takes: one number for each successor of a CN."""
    return range(_node(q.nodes, cn).successor_start, _node(q.nodes, cn + 1).successor_start)


@kernel
def successor(q, number):
    """Successor of a CN; `number` is in the range that `successors_of` returns."""
    return cell(q.successor, number).value


@kernel
def core_of(q, cn):
    """Number of the core on which a CN runs."""
    return cell(q.allocation, cn).value


@kernel
def stack_of(q, cn):
    """Number of the CN's stack, for schedules in which each stack waits for the previous stack."""
    return cell(q.stack, cn).value


@kernel
def places_of_stack(q, stack):
    """Range of positions that `stack_cn` takes: one position for each CN of a stack."""
    return range(cell(q.stack_start, stack).value, cell(q.stack_start, stack + 1).value)


@kernel
def stack_cn(q, place):
    """CN of a stack; `place` is in the range that `places_of_stack` returns."""
    return cell(q.stack_cn, place).value


@kernel
def need(q, number):
    """Record of a need. A need is the use of one piece by one CN for one operand."""
    return _need(q.needs, number)


@kernel
def piece(q, number):
    """Record of a piece in the problem."""
    return _piece(q.pieces, number)


@kernel
def needs_for(q, number):
    """Range of numbers that `piece_need` takes: one number for each CN's need of a piece."""
    return range(_piece(q.pieces, number).need_start, _piece(q.pieces, number + 1).need_start)


@kernel
def piece_need(q, number):
    """Number of a need of a piece; `number` is in the range that `needs_for` returns."""
    return cell(q.piece_need, number).value


@kernel
def memory(q, number):
    """Record of a memory in the problem."""
    return _memory(q.memories, number)


@kernel
def memory_of(q, core_number, operand):
    """Number of the memory that holds an operand on a core; -1 if there is none."""
    return cell(q.core_memory, core_number * q.operand_count + operand).value


@kernel
def users_of(q, number):
    """Range of positions that `user` takes: one position for each core that uses a memory."""
    return range(cell(q.user_start, number).value, cell(q.user_start, number + 1).value)


@kernel
def user(q, place):
    """Number of a core that uses a memory. `place` is one of the positions that `users_of` returns for this memory."""
    return cell(q.user, place).value


@kernel
def link(q, number):
    """Record of a link in the problem."""
    return _link(q.links, number)


@kernel
def pair_of(q, source, target):
    """Number of a pair of cores: a source core and a target core."""
    return source * q.core_count + target


@kernel
def source_core(q, pair):
    """Source core of a pair."""
    return pair // q.core_count


@kernel
def target_core(q, pair):
    """Target core of a pair."""
    return pair % q.core_count


@kernel
def has_path(q, source, target):
    """True if the source core can send data to the target core, or if both are the same core."""
    return source == target or _pair(q.pairs, pair_of(q, source, target)).exists != 0


@kernel
def hops_of(q, pair):
    """Range of positions that `link_of` takes: one position for each link on the path of a pair of cores."""
    return range(_pair(q.pairs, pair).start, _pair(q.pairs, pair + 1).start)


@kernel
def link_of(q, hop):
    """Link on the path of a pair of cores; `hop` is in the range that `hops_of` returns."""
    return cell(q.path_link, hop).value


@kernel
def cost(q, cn, core_number):
    """Entry of the cost table for a CN on a core."""
    return _cost(q.costs, _node(q.nodes, cn).cost_row * q.core_count + core_number)


@kernel
def stream(q, cn, core_number, operand):
    """Stream of one operand while a CN runs on a core. It has 0 bits if the operand does not stream."""
    entry_number = _node(q.nodes, cn).cost_row * q.core_count + core_number
    return _stream(q.streams, entry_number * q.operand_count + operand)


@kernel
def is_prefetched(q, operand):
    """True if constants of an operand are prefetched."""
    return cell(q.prefetches, operand).value != 0


@kernel
def node_state(s, cn):
    """State of a CN."""
    return _node_state(s.nodes, cn)


@kernel
def piece_state(s, number):
    """State of a piece."""
    return _piece_state(s.pieces, number)


@kernel
def copy(s, number):
    """State of a copy. A copy is a piece in a memory."""
    return _copy(s.copies, number)


@kernel
def need_copy(s, number):
    """Number of the copy (a piece in a memory) from which the CN of a need reads the piece; NONE if the CN streams the
    piece from the off-chip memory instead.
    """
    return cell(s.need_copy, number).value


@kernel
def memory_state(s, number):
    """State of a memory."""
    return _memory_state(s.memories, number)


@kernel
def entry(s, number):
    """Entry `number` of the array in which all heaps of evictable copies are stored."""
    return _entry(s.entries, number)


@kernel
def core(s, number):
    """State of a core."""
    return _core(s.cores, number)


@kernel
def link_state(s, number):
    """State of a link."""
    return _link_state(s.links, number)


@kernel
def flight(s, number):
    """Record of a flight: a transfer that has not ended."""
    return _flight(s.flights, number)


@kernel
def event(s, place):
    """Event at position `place` in the heap of events."""
    return _event(s.events, place)


@kernel
def request(s, place):
    """CELL (record of one number) at a position in the queue of requests. The number identifies the core or the memory
    that waits. For a core, it is the number of the core. For a memory, it is the number of the memory plus the number
    of cores.
    """
    return cell(s.request, place)


@kernel
def wait(s, number):
    """WAIT record at position `number` of `waits`: the bandwidth that must be free on a link before a certain transfer
    can start. The record belongs to a core, to a memory, or to the prefetch of a core.
    """
    return _wait(s.waits, number)


@kernel
def raise_flag(flags, number):
    """Set an entry of an array of FLAG to 1."""
    _flag(flags, number).value = 1


@kernel
def lower_flag(flags, number):
    """Set an entry of an array of FLAG to 0."""
    _flag(flags, number).value = 0


@kernel
def next_flag(flags, start, count):
    """Number of the first entry that is not 0 among the entries from `start` to `count` - 1; `count` if there is none.
    The length of the array must be a multiple of 8, because eight entries are read at once.
    """
    number = start
    while number < count:
        if number % 8 == 0 and cell(flags, number // 8).value == 0:
            number += 8
        elif _flag(flags, number).value != 0:
            return number
        else:
            number += 1
    return count


@kernel
def stream_link(q, s, core_number, number):
    """CELL with a link that the streams of the CN on a core use; `number` counts these links from 0."""
    return cell(s.stream_link, core_number * q.stream_width + number)


@kernel
def stream_share(q, s, core_number, number):
    """CELL with the bandwidth in bits per cycle that the CN on a core uses on one link. `stream_link` with the same
    arguments gives this link.
    """
    return cell(s.stream_share, core_number * q.stream_width + number)


@kernel
def link_bits(q, s, cause, link_number):
    """CELL (record of one number) with the number of bits that moved over a link, for one cause of movement."""
    return cell(s.link_bits, cause * q.link_count + link_number)


@kernel
def words_read(q, s, cause, memory_number):
    """CELL (record of one number) with the number of words that were read from a memory, for one cause of movement."""
    return cell(s.words_read, cause * q.memory_count + memory_number)


@kernel
def words_written(q, s, cause, memory_number):
    """CELL (record of one number) with the number of words that were written to a memory, for one cause of movement."""
    return cell(s.words_written, cause * q.memory_count + memory_number)


@kernel
def transfer_row(s, row):
    """Row of the log of transfers."""
    return _transfer_row(s.transfers, row)


@kernel
def stream_row(s, row):
    """Row of the log of streams."""
    return _stream_row(s.streams, row)


@kernel
def change_row(s, row):
    """Row of the log `memory_changes`, which has each change in the content of a memory."""
    return _change_row(s.memory_changes, row)


@kernel
def bits_of(q, s, copy_number):
    """Size in bits of the piece of a copy."""
    return _piece(q.pieces, _copy(s.copies, copy_number).piece).bits


@kernel
def home_of_output(q, s, number):
    """Number of the home of an output piece: the copy in the memory where the CN produces the piece. NONE if the piece
    streams out instead. `number` is in the range that `outputs_of` returns.
    """
    return _piece_state(s.pieces, output_piece(q, number)).home


@kernel
def fits(q, s, memory_number, bits):
    """True if a memory has at least `bits` bits of physically free space."""
    return (
        _memory_state(s.memories, memory_number).stored_bits + bits <= _memory(q.memories, memory_number).capacity_bits
    )


@kernel
def words(bits, width):
    """Number of words of `width` bits that hold `bits` bits. It is also the number of cycles to move the bits, if
    `width` is a rate in bits per cycle.
    """
    return (bits + width - 1) // width
