"""Invariants of accesses and energies that need the core: word widths, access costs, double-buffered memories."""

import math
import re
from collections.abc import Callable, Iterator

from tilewright.cost.ledger import term_phrase
from tilewright.cost.record import LayerRecord
from tilewright.hardware.array_model import ArrayWork, array_model
from tilewright.hardware.core import DIRECTIONS, Core, Memory
from tilewright.profile import profile_by_name
from tilewright.report.records import loop_products, memory_levels, used_unrolling

RELATIVE_TOLERANCE = 1e-9
CoreCheck = Callable[[LayerRecord, Core], Iterator[str]]


def _compulsory(record: LayerRecord, core: Core) -> Iterator[str]:
    """Each input leaves its outermost memory, and the output reaches it, at least once, whole."""
    memories = _memories(core)
    for operand, names in record.memory_levels.items():
        level, memory = len(names) - 1, memories[names[-1]]
        direction = "fl" if operand == "O" else "tl"
        port = memory.port_of.get((record.memory_operand_links[operand], direction))
        needed_bits = covered_elements(record, operand) * _least_bits(record, operand)
        if needed_bits == 0:
            continue
        if port is None:
            yield f"{operand} has {needed_bits} bits to move and {memory.name} no port for {direction}"
            continue
        width_bits = memory.ports[port].bandwidth_max_bits
        words = record.word_accesses[operand][level][direction]
        # The reference drops the fraction of a last word, and rounding may drop a whole one (B41).
        dropped = 0 if profile_by_name(record.model).whole_tiles else 1
        if (words + dropped) * width_bits < needed_bits:
            yield f"{words} words of {width_bits} bits of {operand} at {memory.name}, {needed_bits} bits needed"


def covered_elements(record: LayerRecord, operand: str) -> int:
    """A lower bound, in elements, of what of an operand has to cross its outermost memory.

    Only the dimensions that the operand names itself count: the positions of a sliding window depend on strides and
    padding, which a record does not hold. With whole tiles a dimension counts in full; in the reference as far as
    passes times whole lanes cover it, since it rounds the fractions of lanes that work at the same time (B41).
    """
    whole_tiles = profile_by_name(record.model).whole_tiles
    passes = loop_products(record.loop_order)
    lanes: dict[str, int] = {}
    for _, dimension, _, used in used_unrolling(record):
        lanes[dimension] = lanes.get(dimension, 1) * max(1, math.floor(used))
    covered = 1
    for dimension, size in record.layer.loop_sizes.items():
        if dimension not in own_dimensions(record.layer.equation, operand):
            continue
        if whole_tiles:
            covered *= size
        else:
            times = passes.get(dimension, 1)
            covered *= int(min(size, times * min(lanes.get(dimension, 1), max(1, size // times))))
    return covered


def own_dimensions(equation: str, operand: str) -> set[str]:
    """Dimensions of an operand in an equation such as O[b][k] += W[k][c] * I[b][c], upper case."""
    found = re.search(rf"(?<!\w){re.escape(operand)}((?:\s*\[\w+\])+)", equation)
    return {name.upper() for name in re.findall(r"\w+", found.group(1))} if found else set()


def _least_bits(record: LayerRecord, operand: str) -> int:
    bits = record.layer.precision_bits
    return min(bits[operand], bits.get("O_final", bits[operand])) if operand == "O" else bits[operand]


def _energies(record: LayerRecord, core: Core) -> Iterator[str]:
    """Energy is words times the cost of a word, and that of operations what the model of the array gives."""
    memories = _memories(core)
    for operand, level, name in memory_levels(record):
        memory = memories[name]
        for direction in DIRECTIONS:
            cost = memory.read_energy_pj if direction in ("tl", "th") else memory.write_energy_pj
            words = record.word_accesses[operand][level][direction]
            energy = record.energy_breakdown_pj[operand][level][direction]
            if not math.isclose(energy, words * cost, rel_tol=RELATIVE_TOLERANCE, abs_tol=RELATIVE_TOLERANCE):
                yield f"{energy} pJ for {words} words at {cost} pJ, {operand} at {name} {direction}"
    array = core.operational_array
    model, work = array_model(array), ArrayWork(record.layer.work, record.spatial_mapping)
    for term, expected in zip(model.terms, model.energies_pj(array, work), strict=True):
        found = record.energy_terms_pj.get(term, 0.0)
        if not math.isclose(found, expected, rel_tol=RELATIVE_TOLERANCE):
            yield f"energy of {term_phrase(term)} is {found} pJ, the operations give {expected}"


def _double_buffers(record: LayerRecord, core: Core) -> Iterator[str]:
    """A memory that must double-buffer has room for two of each tile that is replaced while the layer runs."""
    memories = _memories(core)
    filled: dict[str, float] = {}
    for operand, level, name in memory_levels(record):
        share = record.memory_utilization_individual[operand][level]
        copies = 2 if _tile_is_replaced(record, operand, level) else 1
        filled[name] = filled.get(name, 0.0) + copies * share
    for name, share in filled.items():
        if memories[name].force_double_buffering and share > 1 + RELATIVE_TOLERANCE:
            yield f"{name} would need {share:.6g} of its capacity to double-buffer"


def _tile_is_replaced(record: LayerRecord, operand: str, level: int) -> bool:
    own = own_dimensions(record.layer.equation, operand)
    above = record.temporal_mapping[operand][level + 1 :]
    return any(dimension in own and size > 1 for loops in above for dimension, size in loops)


def _memories(core: Core) -> dict[str, Memory]:
    return {memory.name: memory for memory in core.memories}


CORE_CHECKS: tuple[tuple[str, str, CoreCheck], ...] = (
    ("accesses_at_least_compulsory", "every operand crosses its outermost memory at least once", _compulsory),
    ("energy_follows_accesses", "energy is words times cost a word, MACs times cost a MAC", _energies),
    ("double_buffers_fit", "memories that must double-buffer hold two tiles", _double_buffers),
)
