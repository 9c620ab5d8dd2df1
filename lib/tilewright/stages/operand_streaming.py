"""Operands of a CN that do not fit the core: which of them stay in the off-chip memory and stream during the CN.

Stream's IntraCoreMappingStage, the rule for operands that are too large; docs/cost-table.md says where this differs.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tilewright.errors import MappingError
from tilewright.hardware.core import Core, Memory, Port
from tilewright.hardware.hierarchy import memory_hierarchy
from tilewright.hardware.top_memories import top_memories

_HOLDERS_OF_OTHERS = ("I2", "I1", "O")
"""What a CN reads by no operand lies where the core keeps the first of these."""


@dataclass(frozen=True)
class Needs:
    """What one CN keeps in the top memories of a core while it runs."""

    bits: Mapping[str, int]
    """Memory operand -> bits."""
    other_bits: int = 0
    """Read by no operand of the layer, as a bias; this never streams."""


def stream_choices(core: Core, needs: Needs, also_what_fits: bool = False) -> tuple[tuple[str, ...], ...]:
    """The sets of memory operands that may stream, those that stream least first; `((),)` where everything fits.

    With `also_what_fits` operands may stream too where all of a memory fit: where mappings need more room than what
    they keep has in the end, as for partial sums that are wider than outputs.

    In a top memory that is too small for its operands together, the smallest ones stay, as many as fit or fewer: which
    buffer the others need there, only a mapping says. () where not even that which never streams fits.
    """
    choices: list[list[tuple[str, ...]]] = []
    for memory, held in top_memories(core):
        operands = sorted((operand for operand in held if operand in needs.bits), key=lambda o: (needs.bits[o], o))
        room = memory.size_bits - (needs.other_bits if _holds_others(core, held) else 0)
        if room < 0:
            return ()
        if sum(needs.bits[operand] for operand in operands) <= room and not also_what_fits:
            continue
        sizes = itertools.accumulate(needs.bits[operand] for operand in operands)
        kept = sum(size <= room for size in sizes)
        choices.append([tuple(operands[count:]) for count in range(kept, -1, -1)])
    found = [tuple(sorted(itertools.chain(*combination))) for combination in itertools.product(*choices)]
    return tuple(sorted(found, key=lambda streams: (len(streams), found.index(streams))))


def _holds_others(core: Core, held: tuple[str, ...]) -> bool:
    hierarchy = memory_hierarchy(core)
    holder = next((operand for operand in _HOLDERS_OF_OTHERS if hierarchy.memories_of(operand)), None)
    return holder in held


def with_off_chip_memory(core: Core, off_chip: Core | None, operands: tuple[str, ...]) -> Core:
    """The core with the off-chip memory on top of its hierarchy for some memory operands, serving the whole array.

    Raises MappingError if there is no off-chip memory for one of them.
    """
    if not operands:
        return core
    if off_chip is None:
        raise MappingError(f"{', '.join(operands)} do not fit, and there is no off-chip memory to stream them from")
    array = tuple(name for name, _ in core.operational_array.dimensions)
    names = {memory.name for memory in core.memories}
    added: dict[int, list[str]] = {}
    for operand in operands:
        levels = memory_hierarchy(off_chip).memories_of(operand)
        if not levels:
            raise MappingError(f"{operand} does not fit, and the off-chip core has no memory for it")
        added.setdefault(levels[-1], []).append(operand)
    return replace(
        core,
        memories=(
            *core.memories,
            *(_above(off_chip.memories[index], tuple(held), array, names) for index, held in added.items()),
        ),
    )


def _above(memory: Memory, operands: tuple[str, ...], array: tuple[str, ...], names: set[str]) -> Memory:
    """The off-chip memory as a level of the core: for some operands alone, under a name that no memory of it has."""
    ports = tuple(
        Port(
            port.name,
            port.port_type,
            port.bandwidth_min_bits,
            port.bandwidth_max_bits,
            tuple(pair for pair in port.allocation if pair[0] in operands),
        )
        for port in memory.ports
    )
    name = next(n for n in (memory.name, *(f"off-chip {i}" for i in range(len(names) + 1))) if n not in names)
    return replace(memory, name=name, operands=operands, ports=ports, served_dimensions=array)
