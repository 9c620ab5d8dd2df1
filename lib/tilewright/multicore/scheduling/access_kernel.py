"""Compiled access to records of the scheduler by their numbers, as `at.copy(s, copy)`.

`q` is the problem (`INPUTS`), `s` the state (`STATE`). Only here are addresses and places in tables reckoned. What
returns a record, or a CELL, returns the place itself: its fields can be written. In the other kernels `c` is a copy,
`room` the state of a memory, `where` that of a piece, `state` that of a core or a link.
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
)

cell = RecordPointer(CELL)
"""Entry of an array of numbers by the address of the array; the other arrays have functions with both below."""
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
_transfer_row = RecordPointer(TRANSFER_LOG)
_stream_row = RecordPointer(STREAM_LOG)
_change_row = RecordPointer(CHANGE_LOG)


@kernel
def node(q, cn):
    """What is known of a CN."""
    return _node(q.nodes, cn)


@kernel
def needs_of(q, cn):
    """Numbers of the needs of a CN."""
    return range(_node(q.nodes, cn).need_start, _node(q.nodes, cn + 1).need_start)


@kernel
def outputs_of(q, cn):
    """Numbers by which `output_piece` tells the pieces that a CN makes."""
    return range(_node(q.nodes, cn).output_start, _node(q.nodes, cn + 1).output_start)


@kernel
def output_piece(q, number):
    """A piece that a CN makes."""
    return cell(q.output_piece, number).value


@kernel
def successors_of(q, cn):
    """Numbers by which `successor` tells the CNs after one."""
    return range(_node(q.nodes, cn).successor_start, _node(q.nodes, cn + 1).successor_start)


@kernel
def successor(q, number):
    """A CN after another."""
    return cell(q.successor, number).value


@kernel
def core_of(q, cn):
    """Core that a CN runs on."""
    return cell(q.allocation, cn).value


@kernel
def stack_of(q, cn):
    """Number of the stack of a CN among those that wait for each other."""
    return cell(q.stack, cn).value


@kernel
def places_of_stack(q, stack):
    """Places by which `stack_cn` tells the CNs of a stack."""
    return range(cell(q.stack_start, stack).value, cell(q.stack_start, stack + 1).value)


@kernel
def stack_cn(q, place):
    """A CN of a stack."""
    return cell(q.stack_cn, place).value


@kernel
def need(q, number):
    """A piece that a CN needs."""
    return _need(q.needs, number)


@kernel
def piece(q, number):
    """What is known of a piece."""
    return _piece(q.pieces, number)


@kernel
def needs_for(q, number):
    """Numbers by which `piece_need` tells the needs for a piece."""
    return range(_piece(q.pieces, number).need_start, _piece(q.pieces, number + 1).need_start)


@kernel
def piece_need(q, number):
    """A need for a piece."""
    return cell(q.piece_need, number).value


@kernel
def memory(q, number):
    """What is known of a memory."""
    return _memory(q.memories, number)


@kernel
def memory_of(q, core_number, operand):
    """Memory that holds an operand on a core, or -1."""
    return cell(q.core_memory, core_number * q.operand_count + operand).value


@kernel
def link(q, number):
    """What is known of a link."""
    return _link(q.links, number)


@kernel
def pair_of(q, source, target):
    """Number of a pair of cores."""
    return source * q.core_count + target


@kernel
def source_core(q, pair):
    """The first core of a pair."""
    return pair // q.core_count


@kernel
def target_core(q, pair):
    """The second core of a pair."""
    return pair % q.core_count


@kernel
def has_path(q, source, target):
    """Whether one core can send to another, or is it."""
    return source == target or _pair(q.pairs, pair_of(q, source, target)).exists != 0


@kernel
def hops_of(q, pair):
    """Numbers by which `link_of` tells the links from one core of a pair to the other."""
    return range(_pair(q.pairs, pair).start, _pair(q.pairs, pair + 1).start)


@kernel
def link_of(q, hop):
    """A link on the path of a pair of cores."""
    return cell(q.path_link, hop).value


@kernel
def cost(q, cn, core_number):
    """Entry of the cost table for a CN."""
    return _cost(q.costs, _node(q.nodes, cn).cost_row * q.core_count + core_number)


@kernel
def stream(q, cn, core_number, operand):
    """How an operand of a CN streams; no bits where it fits."""
    entry_number = _node(q.nodes, cn).cost_row * q.core_count + core_number
    return _stream(q.streams, entry_number * q.operand_count + operand)


@kernel
def is_prefetched(q, operand):
    """Whether constants of an operand are fetched ahead."""
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
    """A copy of a piece in a memory."""
    return _copy(s.copies, number)


@kernel
def need_copy(s, number):
    """The copy that serves a need, NONE where it streams."""
    return cell(s.need_copy, number).value


@kernel
def memory_state(s, number):
    """State of a memory."""
    return _memory_state(s.memories, number)


@kernel
def entry(s, number):
    """Entry of the heaps of copies that may be evicted."""
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
    """A transfer under way."""
    return _flight(s.flights, number)


@kernel
def event(s, place):
    """Entry of the heap of events."""
    return _event(s.events, place)


@kernel
def request(s, place):
    """CELL with a core, or the number of cores plus a memory, that waits to be served."""
    return cell(s.request, place)


@kernel
def stream_share(q, s, core_number, link_number):
    """CELL with the width of a link that the CN on a core streams over."""
    return cell(s.stream_share, core_number * q.link_count + link_number)


@kernel
def link_bits(q, s, cause, link_number):
    """CELL with the bits moved over a link for a cause."""
    return cell(s.link_bits, cause * q.link_count + link_number)


@kernel
def words_read(q, s, cause, memory_number):
    """CELL with the words read from a memory for a cause."""
    return cell(s.words_read, cause * q.memory_count + memory_number)


@kernel
def words_written(q, s, cause, memory_number):
    """CELL with the words written to a memory for a cause."""
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
    """Row of the log of memories."""
    return _change_row(s.memory_changes, row)


@kernel
def bits_of(q, s, copy_number):
    """Bits of the piece of a copy."""
    return _piece(q.pieces, _copy(s.copies, copy_number).piece).bits


@kernel
def home_of_output(q, s, number):
    """The copy where the CN that makes a piece leaves it, NONE where it streams out; `number` as of `output_piece`."""
    return _piece_state(s.pieces, output_piece(q, number)).home


@kernel
def fits(q, s, memory_number, bits):
    """Whether a memory has that many bits physically free."""
    return (
        _memory_state(s.memories, memory_number).stored_bits + bits <= _memory(q.memories, memory_number).capacity_bits
    )


@kernel
def words(bits, width):
    """Words of a width that hold the bits; also cycles at a rate."""
    return (bits + width - 1) // width
