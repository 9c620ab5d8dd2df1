"""Rows of the cost table, made from the records of mapped computation nodes (CNs): cycles, energy on the core, and
streams.

An operand that does not fit the core stays in the off-chip memory and streams while the CN runs. Stream has a similar
rule in its IntraCoreMappingStage; docs/multi-core-model/node-costs.md lists the differences.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.base.artifacts.codec import encode
from tilewright.base.errors import MappingError
from tilewright.base.profile import CORRECTED
from tilewright.cost.energy_terms import further_energy_terms
from tilewright.cost.ledger import LATENCY_TERMS
from tilewright.cost.record import LayerRecord
from tilewright.cost.waiting import WAITING_TERMS
from tilewright.hardware.array_model import array_model
from tilewright.hardware.core import Core, Memory, Port
from tilewright.hardware.hierarchy import memory_hierarchy
from tilewright.mapping.constraints import as_unrolling
from tilewright.multicore.scheduling.core_costs import CoreCostRow, Stream
from tilewright.multicore.scheduling.cost_classes import CostClass
from tilewright.pipeline.stages.multi.node_waiting import NO_WAITING, NodeWaiting
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer
from tilewright.workload.relevancy import operand_bits, operand_elements

_SHOWN = ("spatial_mapping", "memory_operand_links", "loop_order", "temporal_mapping", "memory_levels")
"""Fields of the record of a mapping that are copied into the row of the mapping. These fields are sufficient to
evaluate the mapping again.
"""


@dataclass(frozen=True)
class MappedCn:
    """Mapping of a class of CNs on a core."""

    layer: Layer
    """Layer that was mapped. Its loops are those of one CN."""
    core: Core
    """Core on which the mapping was searched. The off-chip memory is the top memory of the operands that stream."""
    streams: tuple[str, ...]
    """Memory operands that stream from or to the off-chip memory."""
    record: LayerRecord
    takes_partial_sums: bool = False
    """True if the CN continues the partial sums of another CN."""
    waiting: NodeWaiting = NO_WAITING
    """Calls and commands of the CN. `core` itself does not have the keys of calls and commands."""


def cost_row(cost_class: int, mapped: MappedCn) -> CoreCostRow:
    """Row of the cost table for a class of CNs on one core. The function `described` adds the fields that do not depend
    on the core.
    """
    record = mapped.record
    parts = record.latency_breakdown_cycles
    going_on = _going_on(mapped) if mapped.takes_partial_sums else _GoingOn()
    ideal, computing = _whole(parts["ideal"]), _whole(parts["ideal"] + parts["spatial_stall"])
    total0 = _whole(parts["ideal"] + parts["spatial_stall"] + parts["temporal_stall"])
    further = sum(cycles for term, cycles in parts.items() if term not in LATENCY_TERMS)
    onloading = parts["onloading"] + further + going_on.cycles
    until_outputs = parts["ideal"] + parts["spatial_stall"] + parts["temporal_stall"] + onloading
    commands = mapped.waiting.command_cycles(record)
    total1 = _whole(mapped.waiting.called_cycles(until_outputs + commands))
    total2 = _whole(mapped.waiting.called_cycles(record.latency_cycles + going_on.cycles + commands))
    requests = sum(parts.get(term, 0.0) for term in WAITING_TERMS)
    array, energies = _array_energy(mapped), _memory_energies(mapped, going_on)
    terms = _term_energies(mapped, total2)
    return CoreCostRow(
        cost_class=cost_class,
        ideal_cycles=ideal,
        total0_cycles=total0,
        total1_cycles=total1,
        total2_cycles=total2,
        on_core_energy_pj=math.fsum((array, *(energy for _, energy in (*energies, *terms)))),
        operational_energy_pj=array,
        memory_energy_pj=energies,
        term_energy_pj=terms,
        spatial_utilisation=record.mac_utilization["spatial"],
        spatial_stall_cycles=computing - ideal,
        waiting_cycles=total1 - _whole(until_outputs - requests),
        streams=tuple(_stream(mapped, operand, total1, going_on) for operand in mapped.streams),
        mapping={name: encode(getattr(record, name)) for name in _SHOWN},
    )


def described(row: CoreCostRow, number: int, cost_class: CostClass, shape: Layer) -> CoreCostRow:
    """Copy of a row of the cost table, to which data of its class of CNs are added: number of the class, description,
    layers, and count of CNs.
    """
    loops = ", ".join(f"{dimension} {size}" for dimension, size in shape.loop_sizes if size > 1)
    steps = (
        (cost_class.takes_partial_sums, "takes partial sums"),
        (cost_class.leaves_partial_sums, "leaves partial sums"),
    )
    what = "; ".join((f"{shape.operator_type} {loops}".strip(), *(text for is_so, text in steps if is_so)))
    return replace(row, cost_class=number, what=what, layers=cost_class.layers, cn_count=cost_class.cn_count)


def why_not_going_on(core: Core, layer: Layer, links: Sequence[tuple[str, str]]) -> str:
    """Reason why the core cannot run a CN that continues the partial sums of another CN; '' if it can. Every memory of
    the core that holds outputs needs a port through which the CN can read partial sums.
    """
    operand = dict(links)[OUTPUT]
    levels = memory_hierarchy(core).memories_of(operand)
    lacking = [core.memories[k].name for k in levels if (operand, "tl") not in core.memories[k].port_of]
    return f"memory '{lacking[0]}' has no port through which partial sums of '{OUTPUT}' can be read" if lacking else ""


@dataclass(frozen=True)
class _GoingOn:
    """Additional costs of a CN that continues the partial sums of another CN."""

    cycles: int = 0
    words: tuple[tuple[int, str, float], ...] = ()
    """Additional accesses as triples (index of a memory in `MappedCn.core`, direction of the access as in `DIRECTIONS`,
    number of words).
    """


def _going_on(mapped: MappedCn) -> _GoingOn:
    """Additional costs of a CN that continues the partial sums of another CN.

    In such a CN, even the first accumulation into each output reads a partial sum. The numbers of reads and writes of
    outputs are therefore equal. The partial sums are loaded from the top memory before the computation starts; nothing
    overlaps with this loading.
    """
    layer, core, record = mapped.layer, mapped.core, mapped.record
    links = record.memory_operand_links
    levels = memory_hierarchy(core).memories_of(links[OUTPUT])
    words = []
    for level, (k, moved) in enumerate(zip(levels, record.word_accesses[OUTPUT], strict=True)):
        words.append((k, "tl", _mirrored(layer, moved["fl"], moved["tl"])))
        if level < len(levels) - 1:
            words.append((k, "fh", _mirrored(layer, moved["th"], moved["fh"])))
    top = core.memories[levels[-1]]
    width = top.ports[top.port_of[links[OUTPUT], "tl"]].bandwidth_max_bits
    bits = operand_elements(layer, OUTPUT, CORRECTED) * layer.bits_of[OUTPUT]
    return _GoingOn(-(-bits // width), tuple(words))


def _mirrored(layer: Layer, written: float, read: float) -> float:
    """Number of additional words of partial sums that a CN reads because it continues the partial sums of another CN:
    the reads of the first accumulation into each output.

    `written` and `read` are the numbers of words that the CN would write and read if it began the accumulation itself.
    Every accumulation except the first would then read a word that an earlier accumulation wrote, so the result is
    `written` - `read`. If `read` is 0, `written` counts words of final outputs. The result is then `written` x (bits of
    a partial sum / bits of a final output), rounded up.
    """
    return written - read if read else math.ceil(written * layer.bits_of[OUTPUT] / layer.bits_of[FINAL_OUTPUT])


def _array_energy(mapped: MappedCn) -> float:
    """Energy of the array in pJ: sum over all energy terms of the array."""
    return sum(mapped.record.energy_terms_pj[term] for term in array_model(mapped.core.operational_array).terms)


def _term_energies(mapped: MappedCn, cycles: int) -> tuple[tuple[str, float], ...]:
    """Pairs (name of an energy term of a plug-in, energy of this term in pJ). The energy of the off-chip memory is not
    included.
    """
    own = len(mapped.core.memories) - _added_count(mapped)
    core, unrolling = replace(mapped.core, memories=mapped.core.memories[:own]), mapped.record.spatial_mapping
    terms = further_energy_terms(core)
    costs = {name: term.cost(mapped.layer, core, as_unrolling(unrolling)) for name, term in terms.items()}
    return tuple((name, cost.fixed_pj + cost.pj_a_cycle * cycles) for name, cost in costs.items())


def _memory_energies(mapped: MappedCn, going_on: _GoingOn) -> tuple[tuple[str, float], ...]:
    """Pairs (name of a memory of the core, energy of this memory in pJ). The off-chip memory is left out, because the
    schedule counts its energy.
    """
    own = len(mapped.core.memories) - _added_count(mapped)
    terms: dict[int, list[float]] = {k: [] for k in range(own)}
    links = mapped.record.memory_operand_links
    for operand, levels in mapped.record.energy_breakdown_pj.items():
        for k, moved in zip(memory_hierarchy(mapped.core).memories_of(links[operand]), levels, strict=True):
            terms.get(k, []).extend(moved.values())
    for k, direction, words in going_on.words:
        memory = mapped.core.memories[k]
        terms.get(k, []).append(words * (memory.read_energy_pj if direction == "tl" else memory.write_energy_pj))
    return tuple((mapped.core.memories[k].name, math.fsum(found)) for k, found in terms.items() if found)


def _added_count(mapped: MappedCn) -> int:
    """Number of off-chip memories that were added as top memories of the core."""
    return len({_off_chip_index(mapped.core, operand) for operand in mapped.streams})


def _off_chip_index(core: Core, operand: str) -> int:
    return memory_hierarchy(core).memories_of(operand)[-1]


def _stream(mapped: MappedCn, memory_operand: str, cycles: int, going_on: _GoingOn) -> Stream:
    """Stream of an operand from or to the off-chip memory in a CN of `cycles` cycles. `going_on` has the additional
    words of a CN that continues partial sums.

    The size of the stream is the number of bits in all words that move, but at least the size of the operand.
    """
    operand = next(o for o, linked in mapped.record.memory_operand_links.items() if linked == memory_operand)
    k = _off_chip_index(mapped.core, memory_operand)
    memory = mapped.core.memories[k]
    passing = dict(mapped.record.word_accesses[operand][-1])
    for index, direction, more in going_on.words:
        if index == k:
            passing[direction] += more
    bits = round(sum(words * _width(memory, memory_operand, way) for way, words in passing.items() if words))
    layer = mapped.layer
    least = operand_bits(layer, operand, CORRECTED)
    if operand == OUTPUT:
        least = least // layer.bits_of[OUTPUT] * layer.bits_of[FINAL_OUTPUT]
    bits = max(bits, least)
    widest = _width(memory, memory_operand, "fl" if operand == OUTPUT else "tl")
    return Stream(memory_operand, bits, max(1, min(widest, -(-bits // cycles))))


def _width(memory: Memory, memory_operand: str, direction: str) -> int:
    return memory.ports[memory.port_of[memory_operand, direction]].bandwidth_max_bits


def _whole(cycles: float) -> int:
    return max(1, math.ceil(cycles))


def with_off_chip_memory(core: Core, off_chip: Core | None, operands: tuple[str, ...]) -> Core:
    """Core with the off-chip memory as the top memory of `operands`. Raises MappingError if there is no off-chip core,
    or if it has no memory for one of these operands.
    """
    if not operands:
        return core
    if off_chip is None:
        raise MappingError(
            f"the data of {', '.join(operands)} do not fit, and there is no off-chip memory to stream them from"
        )
    array = tuple(name for name, _ in core.operational_array.dimensions)
    names = {memory.name for memory in core.memories}
    added: dict[int, list[str]] = {}
    for operand in operands:
        levels = memory_hierarchy(off_chip).memories_of(operand)
        if not levels:
            raise MappingError(f"the data of {operand} do not fit, and the off-chip core has no memory for them")
        added.setdefault(levels[-1], []).append(operand)
    return replace(
        core,
        memories=(
            *core.memories,
            *(_above(off_chip.memories[index], tuple(held), array, names) for index, held in added.items()),
        ),
    )


def _above(memory: Memory, operands: tuple[str, ...], array: tuple[str, ...], names: set[str]) -> Memory:
    """Copy of the off-chip memory `memory` as a memory level of a core. The copy holds only `operands` and serves the
    array dimensions `array`. Its name differs from all `names`.
    """
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


def partial_sum_bits(layer: Layer) -> int:
    """Number of bits of all outputs of a layer. Each output has the width of a partial sum or of a final output,
    whichever is wider.
    """
    return operand_elements(layer, OUTPUT, CORRECTED) * max(layer.bits_of[OUTPUT], layer.bits_of[FINAL_OUTPUT])
