"""Short ways to what the compiled scheduler looks up often."""

from tilewright.compiled import kernel
from tilewright.scheduling.state_record import (
    cell_at,
    copy_at,
    cost_at,
    memory_state_at,
    pair_at,
    piece_at,
    stream_at,
)


@kernel
def bits_of(q, s, copy):
    """Bits of the piece of a copy."""
    return piece_at(q.pieces, copy_at(s.copies, copy).piece).bits


@kernel
def memory_of(q, core, operand):
    """Memory that holds an operand on a core, or -1."""
    return cell_at(q.core_memory, core * q.operand_count + operand).value


@kernel
def cost_of(q, row, core):
    """Entry of the cost table."""
    return cost_at(q.costs, row * q.core_count + core)


@kernel
def stream_of(q, row, core, operand):
    """How an operand streams; no bits where it fits."""
    return stream_at(q.streams, (row * q.core_count + core) * q.operand_count + operand)


@kernel
def has_path(q, source, target):
    """Whether one core can send to another, or is it."""
    return source == target or pair_at(q.pairs, source * q.core_count + target).exists != 0


@kernel
def copy_memory(s, copy):
    """State of the memory of a copy."""
    return memory_state_at(s.memories, copy_at(s.copies, copy).memory)


@kernel
def words(bits, width):
    """Words of a width that hold the bits; also cycles at a rate."""
    return (bits + width - 1) // width
