"""Mapping problem: a layer, a core and a spatial mapping, as a record of arrays that compiled kernels read.

This module defines the layout of the record and fills the record.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np

from tilewright.base.errors import MappingError
from tilewright.base.profile import SWITCHES, ModelProfile, switch_values
from tilewright.cost.control import control_arrays, control_fields
from tilewright.cost.energy_terms import energy_terms_of
from tilewright.cost.latency_terms import MOST_TERMS, further_cycles
from tilewright.cost.ledger import ACCESSES
from tilewright.cost.problem_figures import CoreFigures, FigurePlaces
from tilewright.cost.spatial_analysis import spatial_analysis
from tilewright.cost.waiting import waiting_arrays, waiting_fields
from tilewright.hardware.array_model import array_model
from tilewright.hardware.core import DIRECTIONS, Core, Port
from tilewright.hardware.hierarchy import memory_hierarchy
from tilewright.hardware.memory_columns import MEMORY_COLUMNS, memory_columns
from tilewright.mapping.spatial import ConvertedSpatialMapping
from tilewright.mapping.zeros import NOISE, gates, link_sizes
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer
from tilewright.workload.relevancy import (
    OperandRelevancy,
    data_dimension_size,
    group_positions,
    joins_windows,
    operand_bits,
    operand_elements,
    operand_relevancy,
    window_groups,
)

NEUTRAL, RELEVANT, IRRELEVANT, PARTIAL = range(4)
"""Relations of a loop dimension to an operand. PARTIAL means that the dimension belongs to a sliding window of the
operand."""


# Limits of the size of a problem. With fixed array sizes, the compiler turns every index into a constant offset.
MAX_OPERANDS = 3
MAX_DIMENSIONS = 16
MAX_RELATIONS = 4
MAX_LEVELS = 10
MAX_MEMORIES = 24
MAX_PORTS = 64
MAX_SERVICES = MAX_OPERANDS * MAX_LEVELS * 4
MAX_SPATIAL_LOOPS = 32
MAX_LOOPS = 96
MAX_TERMS = 16

MOST_CYCLES = 2**57
"""Largest number of cycles that one link can take. Up to this limit, sums over all links of a port stay below 2^63."""

_O, _D, _R, _M, _A, _K = MAX_OPERANDS, MAX_DIMENSIONS, MAX_RELATIONS, MAX_LEVELS, MAX_LEVELS + 2, MAX_MEMORIES

PROBLEM_DTYPE = np.dtype(
    [
        ("operand_count", np.int64),
        ("dimension_count", np.int64),
        ("relation_count", np.int64),
        ("held_memory_count", np.int64),
        ("port_count", np.int64),
        ("kind", np.int64, (_O, _D)),  # [o, d] NEUTRAL, RELEVANT, IRRELEVANT or PARTIAL
        ("relevant_dimensions", np.int64, (_O, _D + 1)),  # [o, i] relevant d in equation order, then -1
        ("relation_used", np.int8, (_O, _R)),  # [o, r] True if the relation is a sliding window of the operand
        ("has_output_windows", np.int8),  # True if outputs are addressed by a sliding window
        ("relation_dimension", np.int64, (_R, 2)),  # [r, i] d of the two loops of a window; -1 if not in the layer
        ("relation_period", np.int64, (_R, 2)),  # [r, i] coefficients divided by their greatest common divisor
        ("relation_size", np.int64, (_R,)),  # [r] size of the data dimension in the layer
        ("windows_share_loops", np.int8, (_O,)),  # [o] windows share a loop, or a loop is also a data dimension
        ("group_positions", np.int64, (_O, _R)),  # [o, group] positions of a group of windows in the layer, or 0
        ("dimension_group", np.int64, (_O, _D)),  # [o, d] group of windows to which the loop belongs, or -1
        ("group_step", np.int64, (_O, _D)),  # [o, d] distance of two iterations that touch the same positions
        ("precision_bits", np.int64, (_O,)),  # [o] bits per element; for the output, bits of a partial sum
        ("final_precision_bits", np.int64),
        ("sum_bits", np.int64, (_M, 4)),  # [m, x] bits of a partial sum over links FL and TH (`mapping.zeros`)
        ("gate", np.float64, (_O,)),  # [o] share of cycles in which zeros stop all lanes of the innermost memory
        ("output_elements", np.int64),
        ("level_count", np.int64, (_O,)),
        ("level_memory", np.int64, (_O, _M)),  # [o, m] k
        *((name, kind, (_K,)) for name, (kind, _) in MEMORY_COLUMNS.items()),
        ("holds_everything", np.int8, (_K,)),  # [k] topmost memory of all its operands, and much larger than their data
        ("memory_order", np.int64, (_K,)),  # k in topological order, for memories that hold an operand of the layer
        ("memory_operands", np.int64, (_K, _O)),  # [k, j] o in the order of the memory, or sorted (B46); then -1
        ("memory_levels", np.int64, (_K, _O)),  # [k, j] level m that the memory is for operand j of the memory
        # [o, m, x] width of the port, in bits of data that are not compressed; 0 if there is no port
        ("bandwidth_max_bits", np.int64, (_O, _M, 4)),
        ("bandwidth_min_bits", np.int64, (_O, _M, 4)),  # [o, m, x] smallest part of a word that the port moves
        ("port_of", np.int64, (_O, _M, 4)),  # [o, m, x] p, or -1 if there is no port
        ("port_start", np.int64, (MAX_PORTS + 1,)),  # [p] first service of the port
        ("service_operand", np.int64, (MAX_SERVICES,)),
        ("service_level", np.int64, (MAX_SERVICES,)),
        ("service_direction", np.int64, (MAX_SERVICES,)),
        ("port_shared_by_inputs", np.int8, (MAX_PORTS,)),  # [p] True if the port serves both input operands
        ("spatial_start", np.int64, (_O, _A + 1)),  # [o, a] first spatial loop of the architecture level
        ("spatial_dimension", np.int64, (_O, MAX_SPATIAL_LOOPS)),  # [o, spatial loop] d
        ("spatial_factor", np.float64, (2, _O, MAX_SPATIAL_LOOPS)),
        ("spatial_differs", np.int8),  # True if a factor differs between the two variants
        ("spatial_fractional", np.int8),  # True if a factor of the fractional variant is not an integer
        ("ragged_count", np.int64),
        ("ragged_dimension", np.int64, (_D,)),  # [i] dimensions d with a fractional spatial factor
        ("partial_above", np.int8, (_O, _A)),  # [o, a] a spatial loop at level a or above reuses the operand
        ("units", np.float64, (_O, _A)),  # [o, a] active instances, from fractional spatial factors
        ("boost", np.int64, (2, _O, _A)),  # [v, o, a] lower instances with different data that one upper instance feeds
        ("cycles_per_operation", np.int64),
        ("term_count", np.int64),
        ("access_term", np.int64),  # index of the term of memory accesses
        ("term_fixed_pj", np.float64, (MAX_TERMS,)),  # [t] energy that does not depend on the loop order, in pJ
        ("term_pj_a_cycle", np.float64, (MAX_TERMS,)),  # [t] energy for each cycle of the latency, in pJ
        ("fixed_energy_pj", np.float64),  # sum of `term_fixed_pj`
        ("energy_pj_a_cycle", np.float64),  # sum of `term_pj_a_cycle`
        ("ideal_cycles", np.int64),
        ("fixed_cycles", np.int64),  # cycles that do not depend on the loop order: drain, and plug-in latency terms
        ("further_count", np.int64),
        ("further_cycles", np.int64, (MOST_TERMS,)),  # cycles of each plug-in latency term
        *waiting_fields(_O, _D),
        ("same_data_is_no_access", np.int8),  # True if an input is not read again for reuse in the next cycle
        *control_fields(_O, _M, _D),
        ("even", np.int8),  # True if all operands of a memory must have the same loop boundary
        ("switches", np.int8, (len(SWITCHES),)),  # switches of the model profile, in the order of SWITCHES
    ],
    align=True,
)
"""Layout of the record of one problem.

The letters in the comments name the axes of the arrays:

* o: operand, in equation order; 0 is the output
* m: memory level of the operand; 0 is the innermost level
* a: architecture level; 0 is the array, and m + 1 is memory level m
* d: loop dimension
* r: relation of a sliding window
* k: memory of the core
* p: port
* s: service of a port, which is one operand, level and direction that the port serves
* t: energy term
* x: direction, in the order of `hardware.core.DIRECTIONS` (tl to low, fl from low, th to high, fh from high)
* v: variant of the spatial factors; 0 is fractional, 1 is integer
"""

Problem = np.record
"""Record with the layout `PROBLEM_DTYPE`."""

EMPTY_IS_MINUS_ONE = (
    "relevant_dimensions",
    "relation_dimension",
    "dimension_group",
    "memory_operands",
    "memory_levels",
    "port_of",
)


def new_record(dtype: np.dtype) -> np.record:
    """New record in which all fields are 0. Kernels read and write the record in place."""
    record: np.record = np.zeros(1, dtype).view(np.recarray)[0]
    return record


FieldValues = dict[str, "float | np.ndarray[Any, np.dtype[Any]]"]
"""Values for a record of a problem: field name -> number or array."""


def fill(record: np.record, values: FieldValues) -> None:
    """Write values to fields of a record. If an array is smaller than its field, it fills the first entries along each
    axis.

    Raises MappingError if an array is larger than its field.
    """
    for name, value in values.items():
        field = record[name]
        if isinstance(value, np.ndarray):
            if any(size > room for size, room in zip(value.shape, field.shape, strict=True)):
                raise MappingError(
                    f"the problem is too large: {name} has the shape {value.shape}; at most {field.shape} is possible"
                )
            field[tuple(slice(size) for size in value.shape)] = value
        else:
            record[name] = value


def build_problem(
    layer: Layer,
    core: Core,
    links: tuple[tuple[str, str], ...],
    spatial: ConvertedSpatialMapping,
    profile: ModelProfile,
    even: bool = False,
    same_data_is_no_access: bool = True,
) -> Problem:
    """Mapping problem of a layer on a core with a given spatial mapping. If `even` is true, all operands of a memory
    must have the same loop boundary. If `same_data_is_no_access` is true, an input that the array reuses in the next
    cycle is not read again.

    Raises MappingError in four cases: an operand of the layer has no memory, the array cannot run the spatial mapping,
    the problem is too large, or the operands give different numbers of active units.
    """
    link = dict(links)
    missing = [
        f"{operand} ({link[operand]})"
        for operand in layer.operands
        if not memory_hierarchy(core).memories_of(link[operand])
    ]
    if missing:
        raise MappingError(f"core '{core.name}' has no memory for operand {', '.join(missing)}")
    array = core.operational_array
    cycles_per_operation = array_model(array).cycles_per_operation(array)
    frame, places = problem_frame(layer, core.frame, links, spatial, profile)
    problem = _copy(frame)
    problem.even, problem.same_data_is_no_access = even, same_data_is_no_access
    problem.cycles_per_operation = cycles_per_operation
    problem.ideal_cycles = math.ceil(layer.mac_count / array.unit_count) * cycles_per_operation
    places.write(problem, CoreFigures.of(memory_columns(core.memories), serving_ports(core)))
    fill(problem, term_arrays(layer, core, spatial, profile, links))
    _check_cycles(problem, spatial)
    return problem


@lru_cache(maxsize=512)
def problem_frame(
    layer: Layer,
    core: Core,
    links: tuple[tuple[str, str], ...],
    spatial: ConvertedSpatialMapping,
    profile: ModelProfile,
) -> tuple[Problem, FigurePlaces]:
    """Pair (problem without its figures, positions of the figures in the problem). The figures are the sizes and
    energies of memories and the widths of ports (`problem_figures`).

    Callers must not change the problem, because later calls for other designs return the same object.
    """
    operands = layer.operands
    dimensions = {dimension: i for i, (dimension, _) in enumerate(layer.loop_sizes)}
    relevancy = {operand: operand_relevancy(layer, operand, profile) for operand in operands}
    unmapped, kept, depth, sizes = _unmapped_frame(layer, core, links, profile)
    lanes = spatial_analysis(layer, spatial, relevancy, profile, depth)
    problem = _copy(unmapped)
    fill(problem, _spatial_arrays(spatial, operands, dimensions, relevancy, depth, profile))
    fill(problem, {"units": lanes.units, "boost": lanes.boost, "fixed_cycles": _drain_cycles(core, spatial)})
    fill(problem, {"gate": gates(layer, core, dict(links), dict(spatial.fractional), profile)})
    return problem, FigurePlaces.of(kept, problem.port_of, sizes)


@lru_cache(maxsize=64)
def _unmapped_frame(
    layer: Layer, core: Core, links: tuple[tuple[str, str], ...], profile: ModelProfile
) -> tuple[Problem, list[int | None], int, np.ndarray | None]:
    """Tuple of data that do not depend on the spatial mapping: (problem, topmost bits, depth, sizes). Only the fields
    with such data are filled in the problem. The topmost bits are those of `_topmost_bits`, the depth is the largest
    number of memory levels of an operand, and the sizes are those of compressed data (`link_sizes`). Callers must not
    change the arrays, because later calls return the same objects.
    """
    link = dict(links)
    operands = layer.operands
    dimensions = {dimension: i for i, (dimension, _) in enumerate(layer.loop_sizes)}
    relevancy = {operand: operand_relevancy(layer, operand, profile) for operand in operands}
    chains = _chains(layer, core, link)
    depth = max(len(chain) for chain in chains.values())
    problem = new_record(PROBLEM_DTYPE)
    for name in EMPTY_IS_MINUS_ONE:
        problem[name][...] = -1
    fill(problem, _relevancy_arrays(layer, relevancy, dimensions, profile))
    fill(problem, _memory_arrays(core, operands, link, chains, depth, profile))
    fill(problem, _port_arrays(core, operands, link, chains, depth))
    steps = np.isin(problem.kind[: len(operands), : len(dimensions)], (RELEVANT, PARTIAL))
    fill(problem, control_arrays(layer, core, chains, steps, MAX_LEVELS))
    fill(
        problem,
        {
            "operand_count": len(operands),
            "precision_bits": np.array([_working_bits(layer, operand, profile) for operand in operands], np.int64),
            "final_precision_bits": layer.bits_of[FINAL_OUTPUT],
            "output_elements": operand_elements(layer, operands[0], profile),
            "switches": np.array([on for _, on in switch_values(profile)], np.int8),
        },
    )
    sizes = link_sizes(layer, core, link, chains, problem.port_of.shape)
    sums = np.full(problem.sum_bits.shape, problem.precision_bits[0])
    if sizes is not None:
        sums = np.ceil(sums / sizes[0] * (1 - NOISE)).astype(np.int64)
    fill(problem, {"sum_bits": sums})
    return problem, _topmost_bits(layer, core, link, profile), depth, sizes


def _chains(layer: Layer, core: Core, link: dict[str, str]) -> dict[str, tuple[int, ...]]:
    """Memories of each operand of the layer, as indices into `core.memories`, innermost memory first."""
    hierarchy = memory_hierarchy(core)
    return {operand: hierarchy.memories_of(link[operand]) for operand in layer.operands}


def _copy(record: np.record) -> np.record:
    """Copy of a record that shares no memory with the record."""
    copied: np.record = np.array([record], record.dtype).view(np.recarray)[0]
    return copied


def term_arrays(
    layer: Layer,
    core: Core,
    spatial: ConvertedSpatialMapping,
    profile: ModelProfile,
    links: tuple[tuple[str, str], ...],
) -> FieldValues:
    """Values of the problem fields for the energy terms, for the fixed cycles of the latency, and for the waiting terms
    of the latency.

    Raises MappingError if the array cannot run the spatial mapping.
    """
    terms = energy_terms_of(layer, core, spatial.unrolling, profile, links)
    fixed = np.array([cost.fixed_pj for cost in terms.values()], np.float64)
    a_cycle = np.array([cost.pj_a_cycle for cost in terms.values()], np.float64)
    further = further_cycles(layer, core, spatial.unrolling)
    return {
        "fixed_cycles": _drain_cycles(core, spatial) + sum(further),
        "further_count": len(further),
        "further_cycles": np.array(further, np.int64),
        "term_count": len(terms),
        "access_term": list(terms).index(ACCESSES),
        "term_fixed_pj": fixed,
        "term_pj_a_cycle": a_cycle,
        "fixed_energy_pj": float(sum(fixed.tolist())),
        "energy_pj_a_cycle": float(sum(a_cycle.tolist())),
        **waiting_arrays(layer, core),
    }


def _working_bits(layer: Layer, operand: str, profile: ModelProfile) -> int:
    """Bits per element of an operand while the layer runs. For outputs, this is the width of a partial sum.

    With the switch `room_for_final_outputs` (fault B44, docs/model.md), the result is at least the width of a final
    output.
    """
    bits = layer.bits_of[operand]
    return max(bits, layer.bits_of[FINAL_OUTPUT]) if operand == OUTPUT and profile.room_for_final_outputs else bits


def _check_cycles(problem: Problem, spatial: ConvertedSpatialMapping) -> None:
    """Raise MappingError if cycle counts could overflow 64-bit integers."""
    used = problem.bandwidth_max_bits[problem.bandwidth_max_bits > 0]
    cycles = most_cycles(problem, spatial, int(used.min()) if used.size else 1)
    if cycles > MOST_CYCLES:
        raise MappingError(
            f"the layer is too large: moving its data could take {cycles:.3g} cycles; tilewright counts only up to 2^57"
        )


def most_cycles(problem: Problem, spatial: ConvertedSpatialMapping, bits_a_cycle: int) -> int:
    """Upper bound on the cycles that a link needs in the whole layer, if the link moves `bits_a_cycle` bits per cycle.

    A link starts at most one transfer per cycle in which the array computes. In total, it moves at most the bits that
    all lanes use in these cycles.
    """
    passes = math.prod(size for _, size in spatial.temporal_sizes) * int(problem.cycles_per_operation)
    lanes = math.prod(math.ceil(factor) for level in dict(spatial.fractional).popitem()[1] for _, factor in level)
    bits = passes * lanes * max(int(problem.precision_bits.max()), int(problem.final_precision_bits))
    return passes + bits // bits_a_cycle


def _relevancy_arrays(
    layer: Layer, relevancy: dict[str, OperandRelevancy], dimensions: dict[str, int], profile: ModelProfile
) -> FieldValues:
    operands, relations = layer.operands, layer.relations
    kind = np.full((len(operands), len(dimensions)), NEUTRAL, np.int64)
    relevant = np.full((len(operands), len(dimensions) + 1), -1, np.int64)
    used = np.zeros((len(operands), max(1, len(relations))), np.bool_)
    share = np.zeros(len(operands), np.bool_)
    positions = np.zeros(used.shape, np.int64)
    dimension_group = np.full((len(operands), len(dimensions)), -1, np.int64)
    step = np.zeros((len(operands), len(dimensions)), np.int64)
    for o, operand in enumerate(operands):
        entry = relevancy[operand]
        groups = window_groups(layer, operand, entry.relations)
        share[o] = joins_windows(profile) and any(group.is_joint for group in groups)
        for group in groups:
            first = min(relations.index(relation) for relation in group.relations)
            positions[o, first] = group_positions(layer, operand, group, profile)
            for dimension, size in group.step:
                if dimension in dimensions:
                    dimension_group[o, dimensions[dimension]], step[o, dimensions[dimension]] = first, size
        known = [dimensions[d] for d in entry.relevant if d in dimensions]
        relevant[o, : len(known)] = known
        for r, relation in enumerate(relations):
            used[o, r] = relation in entry.relations
            if used[o, r]:
                kind[o, [dimensions[d] for d, _ in relation.terms if d in dimensions]] = PARTIAL
        kind[o, known] = RELEVANT
        kind[o, [dimensions[d] for d in entry.irrelevant]] = IRRELEVANT
    return {
        "dimension_count": len(dimensions),
        "relation_count": len(relations),
        "kind": kind,
        "relevant_dimensions": relevant,
        "relation_used": used,
        "has_output_windows": bool(relevancy[operands[0]].relations),
        "windows_share_loops": share,
        "group_positions": positions,
        "dimension_group": dimension_group,
        "group_step": step,
        "relation_dimension": np.array(
            [[dimensions.get(d, -1) for d, _ in r.terms] for r in relations] or [[-1, -1]], np.int64
        ),
        "relation_period": np.array(
            [[c // math.gcd(*(c for _, c in r.terms)) for _, c in r.terms] for r in relations] or [[1, 1]], np.int64
        ),
        "relation_size": np.array([data_dimension_size(layer, r, profile) for r in relations] or [1], np.int64),
    }


def _memory_arrays(
    core: Core,
    operands: tuple[str, ...],
    link: dict[str, str],
    chains: dict[str, tuple[int, ...]],
    depth: int,
    profile: ModelProfile,
) -> FieldValues:
    level_memory = np.full((len(operands), depth), -1, np.int64)
    for o, operand in enumerate(operands):
        level_memory[o, : len(chains[operand])] = chains[operand]
    layer_operand = {link[operand]: o for o, operand in enumerate(operands)}
    memory_operands = np.full((len(core.memories), len(operands)), -1, np.int64)
    memory_levels = np.full((len(core.memories), len(operands)), -1, np.int64)
    for k, memory in enumerate(core.memories):
        held = [layer_operand[name] for name in memory.operands if name in layer_operand]
        if profile.ties_by_equation:
            held.sort()
        memory_operands[k, : len(held)] = held
        memory_levels[k, : len(held)] = [chains[operands[o]].index(k) for o in held]
    order = [k for k in memory_hierarchy(core).topological_order if memory_operands[k, 0] >= 0]
    return {
        "held_memory_count": len(order),
        "level_count": np.array([len(chains[operand]) for operand in operands], np.int64),
        "level_memory": level_memory,
        "memory_order": np.array(order, np.int64),
        "memory_operands": memory_operands,
        "memory_levels": memory_levels,
    }


def _topmost_bits(layer: Layer, core: Core, link: dict[str, str], profile: ModelProfile) -> list[int | None]:
    """Total size in bits of the operands in each memory of the core, if the memory is the topmost memory of all its
    operands. Otherwise, the entry of the memory is None.
    """
    chains = _chains(layer, core, link)
    found: list[int | None] = []
    for k, memory in enumerate(core.memories):
        held = [operand for operand in layer.operands if link[operand] in memory.operands]
        topmost = all(chains[operand][-1] == k for operand in held)
        found.append(sum(operand_bits(layer, operand, profile) for operand in held) if topmost else None)
    return found


def port_services(core: Core) -> tuple[tuple[int, int, tuple[tuple[str, str], ...]], ...]:
    """Ports that serve at least one operand, each as (index of the memory, index of the port in the memory, services of
    the port). A service is a pair (memory operand, direction).

    Services are sorted by operand, then by direction. Operands are in the order of the memory, and directions in the
    order in which the hardware file first names them. This order breaks ties in the loading model.
    """
    return _services(core.frame)


def serving_ports(core: Core) -> list[Port]:
    """Ports that serve at least one operand, in the order of `port_services`."""
    return [core.memories[k].ports[p] for k, p, _ in port_services(core)]


@lru_cache(maxsize=512)
def _services(core: Core) -> tuple[tuple[int, int, tuple[tuple[str, str], ...]], ...]:
    result = []
    for k, memory in enumerate(core.memories):
        for p in range(len(memory.ports)):
            served = tuple(
                (operand, direction)
                for operand in memory.operands
                for (owner, direction), port in memory.port_of.items()
                if owner == operand and port == p
            )
            if served:
                result.append((k, p, served))
    return tuple(result)


def _port_arrays(
    core: Core, operands: tuple[str, ...], link: dict[str, str], chains: dict[str, tuple[int, ...]], depth: int
) -> FieldValues:
    port_of = np.full((len(operands), depth, len(DIRECTIONS)), -1, np.int64)
    layer_operand = {link[operand]: o for o, operand in enumerate(operands)}
    starts, services, shared = [0], [], []
    for index, (k, _, served) in enumerate(port_services(core)):
        for memory_operand, direction in served:
            if memory_operand not in layer_operand:
                continue
            o = layer_operand[memory_operand]
            place = (o, chains[operands[o]].index(k), DIRECTIONS.index(direction))
            services.append(place)
            port_of[place] = index
        starts.append(len(services))
        shared.append({"I1", "I2"} <= {memory_operand for memory_operand, _ in served})
    columns = np.array(services, np.int64).reshape(-1, 3)
    return {
        "port_count": len(shared),
        "port_of": port_of,
        "port_start": np.array(starts, np.int64),
        "service_operand": columns[:, 0].copy(),
        "service_level": columns[:, 1].copy(),
        "service_direction": columns[:, 2].copy(),
        "port_shared_by_inputs": np.array(shared, np.bool_),
    }


def _spatial_arrays(
    spatial: ConvertedSpatialMapping,
    operands: tuple[str, ...],
    dimensions: dict[str, int],
    relevancy: dict[str, OperandRelevancy],
    depth: int,
    profile: ModelProfile,
) -> FieldValues:
    fractional, integer = dict(spatial.fractional), dict(spatial.integer)
    longest = max(1, *(sum(len(level) for level in fractional[operand]) for operand in operands))
    start = np.zeros((len(operands), depth + 2), np.int64)
    dimension = np.full((len(operands), longest), -1, np.int64)
    factor = np.ones((2, len(operands), longest), np.float64)
    partial_above = np.zeros((len(operands), depth + 2), np.bool_)
    ragged = np.zeros(len(dimensions), np.bool_)
    for o, operand in enumerate(operands):
        for name, fraction in (loop for level in fractional[operand] for loop in level):
            ragged[dimensions[name]] |= abs(fraction - round(fraction)) > 1e-9
        loops = [
            (dimensions[d], fraction, whole)
            for level, other in zip(fractional[operand], integer[operand], strict=True)
            for (d, fraction), (_, whole) in zip(level, other, strict=True)
        ]
        for i, (d, fraction, whole) in enumerate(loops):
            dimension[o, i], factor[0, o, i], factor[1, o, i] = d, fraction, whole
        lengths = [len(level) for level in fractional[operand]]
        start[o, 1 : len(lengths) + 1] = np.cumsum(lengths)
        start[o, len(lengths) + 1 :] = len(loops)
        reused = set(relevancy[operand].irrelevant)
        if profile.room_for_final_outputs:
            reused |= {d for relation in relevancy[operand].relations for d, _ in relation.terms}
        for a in range(len(lengths)):
            least = 1 if profile.room_for_final_outputs else 0  # an unrolling by 1 reuses nothing (B44)
            above = [loop for level in fractional[operand][a:] for loop in level]
            partial_above[o, a] = any(d in reused and factor > least for d, factor in above)
    return {
        "spatial_start": start,
        "spatial_dimension": dimension,
        "spatial_factor": factor,
        # The switch `whole_tiles` uses only fractional factors, and rounds up sizes that must be whole.
        "spatial_differs": bool((factor[0] != factor[1]).any()) and not profile.whole_tiles,
        "spatial_fractional": bool((factor[0] != np.floor(factor[0])).any()),
        "ragged_count": int(ragged.sum()),
        "ragged_dimension": np.flatnonzero(ragged),
        "partial_above": partial_above,
    }


def _drain_cycles(core: Core, spatial: ConvertedSpatialMapping) -> int:
    """Cycles to drain a systolic array: the sum of (number of lanes in use - 1) over the systolic dimensions."""
    systolic = core.operational_array.systolic_dimensions
    return sum(
        max(math.ceil(math.prod(factor for _, factor in factors)) - 1, 0)
        for name, factors in spatial.unrolling
        if name in systolic
    )
