"""Physical invariants of a run, verified on its artifacts; a correct result never violates an invariant.

The field `detail` of a check says what was verified. If layers violate the invariant, the field names these layers,
with the numbers. The functions return failed checks instead of raising errors: the caller decides whether to stop. If
the core is given, word widths, access costs and double-buffered memories are also checked.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tilewright.base.harmless import terminal_lines
from tilewright.base.measures import AREA_MM2, EDP_PJ_CYCLES, ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.profile import profile_by_name
from tilewright.cost.energy_terms import work_of_record
from tilewright.cost.ledger import ACCESSES, ROUNDING, agree, energy_columns, energy_terms, term_phrase, term_words
from tilewright.cost.record import LayerRecord
from tilewright.hardware.array_model import array_model
from tilewright.hardware.core import DIRECTIONS, Core, Memory
from tilewright.mapping.zeros import compressed_share
from tilewright.results.records import (
    Summary,
    layers_in_order,
    loop_products,
    memory_energies_pj,
    memory_levels,
    used_unrolling,
    work_text,
)

CoreCheck = Callable[[LayerRecord, Core], Iterator[str]]


def _compulsory(record: LayerRecord, core: Core) -> Iterator[str]:
    """Violations of two rules on compulsory accesses. In the outermost memory of each input, all elements of the input
    are read at least once. In the outermost memory of the output, all elements of the output are written.
    """
    memories = _memories(core)
    for operand, names in record.memory_levels.items():
        level, memory = len(names) - 1, memories[names[-1]]
        direction = "fl" if operand == "O" else "tl"
        port = memory.port_of.get((record.memory_operand_links[operand], direction))
        needed = needed_bits(record, operand, memory, covered_elements(record, operand))
        if needed == 0:
            continue
        if port is None:
            yield f"{operand} has {needed} bits to move, but {memory.name} has no port for {direction}"
            continue
        width_bits = memory.ports[port].bandwidth_max_bits
        words = record.word_accesses[operand][level][direction]
        # The reference model drops the fraction of the last word, and rounding can drop one full word (switch B41).
        dropped = 0 if profile_by_name(record.model).whole_tiles else 1
        if (words + dropped) * width_bits < needed:
            moved = f"{operand} moves {words} words at {memory.name}, and each word has {width_bits} bits"
            yield f"{moved}, but the layer needs {needed} bits of {operand} in total"


def needed_bits(record: LayerRecord, operand: str, memory: Memory, elements: int) -> int:
    """Lower bound of the bits of an operand that move between its outermost memory `memory` and the next inner level,
    if at least `elements` elements move.
    """
    return math.floor(elements * _least_bits(record, operand) * _least_size(record, operand, memory))


def _least_size(record: LayerRecord, operand: str, memory: Memory) -> float:
    """Lower bound of the size of an operand's data that move from or to its outermost memory, as a share of the
    uncompressed data. With zeros in the data, the bound is below 1 in two cases: the memory is compressed, or the
    memory is also the innermost memory and gating leaves out reads.
    """
    key, link = ("O_final" if operand == "O" else operand), record.memory_operand_links
    size = 1.0
    if memory.run_length is not None and link[operand] in memory.run_length.operands and key in record.zeros:
        size = compressed_share(memory.run_length, record.layer.precision_bits[key], record.zeros[key])
    single = len(record.memory_levels[operand]) == 1
    return min(1.0, size) * (record.active_share if single and operand != "O" else 1.0)


def covered_elements(record: LayerRecord, operand: str) -> int:
    """Lower bound of the number of elements of an operand that move between its outermost memory and the next inner
    level.

    Only the dimensions of the operand itself count. Positions of a sliding window do not count, because they depend on
    strides and padding, which are not in `record`. If the model has integer tile sizes, each dimension counts in full.

    The reference model has fractional lanes (fault B41 in docs/model.md). For this model, at most p * l elements count
    along a dimension: p is the number of passes along the dimension, and l is the number of its lanes, rounded down.
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
    """Dimensions of an operand, in upper case, from an equation such as O[b][k] += W[k][c] * I[b][c]."""
    found = re.search(rf"(?<!\w){re.escape(operand)}((?:\s*\[\w+\])+)", equation)
    return {name.upper() for name in re.findall(r"\w+", found.group(1))} if found else set()


def _least_bits(record: LayerRecord, operand: str) -> int:
    bits = record.layer.precision_bits
    return min(bits[operand], bits.get("O_final", bits[operand])) if operand == "O" else bits[operand]


def _energies(record: LayerRecord, core: Core) -> Iterator[str]:
    """Violations of two rules on energies. The energy of a memory is the number of accessed words times the energy per
    word. The energy of operations equals the energy that the model of the array computes.
    """
    memories = _memories(core)
    for operand, level, name in memory_levels(record):
        memory = memories[name]
        for direction in DIRECTIONS:
            cost = memory.read_energy_pj if direction in ("tl", "th") else memory.write_energy_pj
            words = record.word_accesses[operand][level][direction]
            energy = record.energy_breakdown_pj[operand][level][direction]
            if not agree(energy, words * cost):
                yield f"{operand} at {name} {direction}: {energy} pJ, but {words} words at {cost} pJ per word"
    array = core.operational_array
    model, work = array_model(array), work_of_record(record)
    for term, expected in zip(model.terms, model.energies_pj(array, work), strict=True):
        found = record.energy_terms_pj.get(term, 0.0)
        if not math.isclose(found, expected, rel_tol=ROUNDING):
            yield f"energy of {term_phrase(term)} is {found} pJ, but the operations need {expected} pJ"


def _double_buffers(record: LayerRecord, core: Core) -> Iterator[str]:
    """Violations of the rule on double-buffered memories: such a memory must have room for two copies of each tile that
    is replaced while the layer runs.
    """
    memories = _memories(core)
    filled: dict[str, float] = {}
    for operand, level, name in memory_levels(record):
        share = record.memory_utilization_individual[operand][level]
        copies = 2 if _tile_is_replaced(record, operand, level) else 1
        filled[name] = filled.get(name, 0.0) + copies * share
    for name, share in filled.items():
        if memories[name].force_double_buffering and share > 1 + ROUNDING:
            yield f"{name} would need {share:.6g} times its capacity for double-buffering"


def _tile_is_replaced(record: LayerRecord, operand: str, level: int) -> bool:
    own = own_dimensions(record.layer.equation, operand)
    above = record.temporal_mapping[operand][level + 1 :]
    return any(dimension in own and size > 1 for loops in above for dimension, size in loops)


def _memories(core: Core) -> dict[str, Memory]:
    return {memory.name: memory for memory in core.memories}


CORE_CHECKS: tuple[tuple[str, str, CoreCheck], ...] = (
    (
        "accesses_at_least_compulsory",
        "every operand is moved completely from or to its outermost memory at least once",
        _compulsory,
    ),
    (
        "energy_follows_accesses",
        "energy of memories is words times cost per word, and energy of MACs is MACs times cost per MAC",
        _energies,
    ),
    ("double_buffers_fit", "memories that must double-buffer have room for two tiles", _double_buffers),
)


SHOWN_FAILURES = 5


class Check(NamedTuple):
    """One verified invariant; `detail` is a sentence for the user."""

    name: str
    passed: bool
    detail: str


RecordCheck = Callable[[LayerRecord], Iterator[str]]
"""Function that yields one sentence for each violation of an invariant."""


def check_run(records: Sequence[LayerRecord], summary: Summary | None = None, core: Core | None = None) -> list[Check]:
    """All checks of a run: the checks of every record and, if a summary is given, the check that the sums over layers
    equal its totals.

    If the core is given, accesses and energies are checked against the word widths and access costs of its memories.
    """
    checks = [_over_records(name, what, check, records) for name, what, check in RECORD_CHECKS]
    if core is not None:
        for name, what, core_check in CORE_CHECKS:
            checks.append(_over_records(name, what, _with_core(core_check, core), records))
    if summary is not None:
        checks.append(result("layers_add_up_to_network", "sums over layers", _network_violations(records, summary)))
    return checks


def checks_document(checks: Sequence[Check]) -> dict[str, object]:
    """Content of `checks.json`: {"passed": true if all checks passed, "checks": [{"name", "passed", "detail"},
    ...]}.
    """
    return {"passed": all(check.passed for check in checks), "checks": [check._asdict() for check in checks]}


def failure_message(checks: Sequence[Check]) -> str:
    """Text with one line for each failed check; '' if all checks passed."""
    return terminal_lines(f"check failed: {check.name}: {check.detail}" for check in checks if not check.passed)


def _with_core(check: CoreCheck, core: Core) -> RecordCheck:
    return lambda record: check(record, core)


def _over_records(name: str, what: str, check: RecordCheck, records: Sequence[LayerRecord]) -> Check:
    violations = [f"{record.layer.name}: {text}" for record in records for text in check(record)]
    return result(name, f"{what}, {len(records)} distinct layers", violations)


def result(name: str, verified: str, violations: Sequence[str]) -> Check:
    """Check made from violations; it passes if there are none. `verified` says what was verified."""
    if not violations:
        return Check(name, True, verified)
    shown = "; ".join(violations[:SHOWN_FAILURES])
    more = len(violations) - SHOWN_FAILURES
    return Check(name, False, shown + (f"; and {more} more" if more > 0 else ""))


def _same_or_both_unknown(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return agree(one, other)


def _totals(record: LayerRecord) -> dict[str, float]:
    """Energy, energy terms and latency of a layer, by their names in files. The totals of a network are the sums of
    these numbers over its layers.
    """
    terms = energy_columns(record.energy_terms_pj)
    return {ENERGY_PJ: record.energy_pj, **terms, LATENCY_CYCLES: record.latency_cycles}


def _values(record: LayerRecord) -> Iterator[tuple[str, float]]:
    yield from _totals(record).items()
    yield EDP_PJ_CYCLES, record.edp_pj_cycles
    if record.area_mm2 is not None:
        yield AREA_MM2, record.area_mm2
    for part, cycles in record.latency_breakdown_cycles.items():
        yield f"latency part {part}", cycles
    for use, fraction in record.mac_utilization.items():
        yield f"MAC utilization {use}", fraction
    for operand, level, memory in memory_levels(record):
        yield f"utilization of {memory} by {operand}", record.memory_utilization[operand][level]
        for table, what in ((record.energy_breakdown_pj, "energy"), (record.word_accesses, "accesses")):
            for direction, value in table[operand][level].items():
                yield f"{what} of {operand} at {memory} {direction}", value


def _negative(record: LayerRecord) -> Iterator[str]:
    for what, value in _values(record):
        if not math.isfinite(value) or value < 0:
            yield f"{what} is {value}"


def _mac_count(record: LayerRecord) -> Iterator[str]:
    expected = math.prod(record.layer.loop_sizes.values())
    if record.layer.work != expected:
        yield f"{work_text(record)} reported, but the product of the loop sizes is {expected:,}"
    for use, fraction in record.mac_utilization.items():
        if fraction > 1 + ROUNDING:
            yield f"MAC utilization {use} is {fraction}, above 1"


def _coverage(record: LayerRecord) -> Iterator[str]:
    unrolled = loop_products([loop for factors in record.spatial_mapping.values() for loop in factors.items()])
    temporal = loop_products(record.loop_order)
    for dimension, size in record.layer.loop_sizes.items():
        passes, lanes = temporal.get(dimension, 1), unrolled.get(dimension, 1)
        if passes * lanes < size:
            yield f"{passes} passes over {lanes} lanes do not cover {dimension} of size {size}"
    # Loops of size 1 move no data and take no time; a mapping may leave them out.
    searched = {dimension: size for dimension, size in temporal.items() if size != 1}
    for operand, levels in record.temporal_mapping.items():
        mapped = loop_products([loop for level in levels for loop in level])
        if {dimension: size for dimension, size in mapped.items() if size != 1} != searched:
            yield f"the temporal loops of {operand} are not those of the loop order"


def _capacity(record: LayerRecord) -> Iterator[str]:
    shares: dict[str, float] = {}
    for operand, level, memory in memory_levels(record):
        shares[memory] = shares.get(memory, 0.0) + record.memory_utilization_individual[operand][level]
    uncounted = _uncounted_shares(record)
    for operand, level, memory in memory_levels(record):
        shared = record.memory_utilization[operand][level]
        if shared - uncounted.get(memory, 0.0) > 1 + ROUNDING:
            yield f"{memory} is filled to {shared:.6g} times its capacity"
        if not agree(shared, shares[memory]):
            yield f"the filled share of {memory} is {shared:.6g}, but its operands add up to {shares[memory]:.6g}"


def _uncounted_shares(record: LayerRecord) -> dict[str, float]:
    """Shares by memory name: the share of the memory that is in use, but that the reference model does not count when
    it decides whether tiles fit. A share is above 0 only if one of two faults of the reference model (docs/model.md)
    applies:

    * If the lanes do not divide a dimension, the model counts fractions of elements (B41).
    * If the final outputs are wider than the partial sums, the model counts outputs only with the width of partial sums
      (B44).
    """
    profile = profile_by_name(record.model)
    layer = record.layer
    bits = layer.precision_bits
    lanes = loop_products([loop for factors in record.spatial_mapping.values() for loop in factors.items()])
    divides = all(layer.loop_sizes.get(dimension, 1) % factor == 0 for dimension, factor in lanes.items())
    uncounted: dict[str, float] = {}
    for operand, level, memory in memory_levels(record):
        share = record.memory_utilization_individual[operand][level]
        final = bits.get("O_final", bits[operand]) if operand == "O" else bits[operand]
        left_out = 0.0
        if not profile.whole_tiles and not divides:
            left_out += max(bits[operand], final) / 2 / record.memories[memory].size_bits
        if not profile.room_for_final_outputs and final > bits[operand]:
            left_out += share * (1 - bits[operand] / final)
        uncounted[memory] = uncounted.get(memory, 0.0) + left_out
    return uncounted


def _breakdowns(record: LayerRecord) -> Iterator[str]:
    memory = math.fsum(pj for parts in memory_energies_pj(record).values() for pj in parts.values())
    latency = math.fsum(record.latency_breakdown_cycles.values())
    sums = (
        ("memory energy", record.energy_terms_pj[ACCESSES], memory),
        ("energy", record.energy_pj, math.fsum(record.energy_terms_pj.values())),
        ("latency", record.latency_cycles, latency),
        ("energy-delay product", record.edp_pj_cycles, record.energy_pj * record.latency_cycles),
    )
    for what, total, parts in sums:
        if not agree(total, parts):
            yield f"{what} is {total}, but its parts give {parts}"


def _cycles(record: LayerRecord) -> Iterator[str]:
    parts = record.latency_breakdown_cycles
    passes = math.prod(size for _, size in record.loop_order) * record.cycles_per_operation
    if not agree(parts["ideal"] + parts["spatial_stall"], passes):
        yield f"{parts['ideal']} ideal and {parts['spatial_stall']} spatial-stall cycles for {passes} passes"
    stalls = [port.stall_slack_cycles for port in record.ports]
    if stalls and not agree(parts["temporal_stall"], max(0, *stalls)):
        yield f"temporal stall is {parts['temporal_stall']} cycles, but the worst port stalls {max(0, *stalls)} cycles"


def _corrected(record: LayerRecord) -> Iterator[str]:
    for key, value in record.corrected._asdict().items():
        # None means that the mapping does not fit under the corrected model; the summary names such layers.
        if value is not None and (not math.isfinite(value) or value < 0):
            yield f"corrected {key} is {value}"


RECORD_CHECKS: tuple[tuple[str, str, RecordCheck], ...] = (
    ("no_negative_values", "every cycle, energy, access count and utilization is finite and not negative", _negative),
    (
        "macs_conserved",
        "the number of operations is the product of the loop sizes, and the array can do the operations in the latency",
        _mac_count,
    ),
    ("loops_cover_layer", "passes times lanes cover every dimension, for every operand", _coverage),
    (
        "capacity_respected",
        "no memory is filled beyond its capacity, except by data that the reference model does not count",
        _capacity,
    ),
    ("breakdowns_sum_to_totals", "energy and latency are the sums of their parts", _breakdowns),
    (
        "cycles_follow_loops",
        "ideal and spatial-stall cycles follow from the passes, and the temporal stall follows from the worst port",
        _cycles,
    ),
    (
        "corrected_finite",
        "energy and latency under the corrected model are finite, if the mapping fits",
        _corrected,
    ),
)


def _network_violations(records: Sequence[LayerRecord], summary: Summary) -> list[str]:
    placed = [layer.record for layer in layers_in_order(records, summary)]
    keys = (ENERGY_PJ, *energy_columns(energy_terms(summary)), LATENCY_CYCLES)
    sums: dict[str, list[float]] = {key: [] for key in keys}
    for record in placed:
        for key, value in _totals(record).items():
            sums.setdefault(key, []).append(value)
    rows: list[tuple[str, float | None, float | None]] = [
        (key, summary.get(key), math.fsum(values)) for key, values in sums.items()
    ]
    rows.append(("mac_count", summary["mac_count"], sum(record.layer.mac_count for record in placed)))
    rows.append(("operation_count", summary["operation_count"], sum(record.layer.operation_count for record in placed)))
    rows.append((EDP_PJ_CYCLES, summary[EDP_PJ_CYCLES], summary[ENERGY_PJ] * summary[LATENCY_CYCLES]))
    parts = summary["latency_breakdown_cycles"]
    tables = (parts, *(record.latency_breakdown_cycles for record in placed))
    for part in dict.fromkeys(part for table in tables for part in table):
        cycles = [record.latency_breakdown_cycles.get(part, 0) for record in placed]
        rows.append((term_words(part), parts.get(part, 0), math.fsum(cycles)))
    for key in (ENERGY_PJ, LATENCY_CYCLES):
        values = [getattr(record.corrected, key) for record in placed]
        rows.append((f"corrected {key}", summary["corrected"][key], None if None in values else math.fsum(values)))
    violations = _layer_index_violations(records, summary)
    for what, reported, total in rows:
        if not _same_or_both_unknown(reported, total):
            violations.append(f"{what} is {reported} in the summary, but the sum over its layers is {total}")
    return violations


def _layer_index_violations(records: Sequence[LayerRecord], summary: Summary) -> list[str]:
    layers = layers_in_order(records, summary)
    violations = []
    listed = sum(layer.repeats for layer in layers)
    if summary["layers"] != listed:
        violations.append(f"the summary counts {summary['layers']} layers, but lists {listed}")
    if summary["distinct_layers"] != len(records):
        violations.append(
            f"the summary counts {summary['distinct_layers']} distinct layers, but there are {len(records)}"
        )
    for layer in layers:
        if layer.name not in layer.record.names:
            violations.append(f"layer {layer.name} points to the record of {layer.record.layer.name}")
    unused = sorted(set(range(len(records))) - {layer.record_index for layer in layers})
    return violations + [f"no layer has the record of {records[index].layer.name}" for index in unused]
