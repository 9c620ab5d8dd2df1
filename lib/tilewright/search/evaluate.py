"""Evaluation of a given mapping, and explanation of why a mapping does not fit."""

import math
from collections import Counter
from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.base.errors import BrokenRuleError, MappingError, count_of
from tilewright.base.profile import CORRECTED
from tilewright.cost.breakdown import breakdown, verify
from tilewright.cost.problem import Problem, build_problem
from tilewright.cost.record import UNEVEN, Figures, LayerRecord, LoopOrder, MemoryReachRecord
from tilewright.cost.workspace import (
    ENERGY,
    FITS,
    LATENCY,
    NO_PORT,
    NOT_EVEN,
    NOT_NESTED,
    ORDER_RULE,
    TILE_RULE,
    TOO_SMALL,
    TOO_SMALL_TOGETHER,
    Workspace,
    new_workspace,
)
from tilewright.hardware.core import DIRECTIONS, Core
from tilewright.mapping.constraints import MappingConstraints, Unrolling
from tilewright.mapping.control_rules import unrolling_fault
from tilewright.mapping.memory_reach import core_for, reach_of_core
from tilewright.mapping.spatial import ConvertedSpatialMapping, convert_spatial_mapping
from tilewright.mapping.temporal import applicable_ordering, counted_boundaries
from tilewright.mapping.zeros import check_widths
from tilewright.search.blocks import cost_rows, thread_block, write_block
from tilewright.search.options import BoundaryParameters, SearchOptions
from tilewright.workload.layer import OUTPUT, Layer

Links = tuple[tuple[str, str], ...]
Boundaries = Sequence[Sequence[int]]
"""Level boundaries of a loop order: for each operand in the order of the layer, one number per memory level. The number
counts the loops in this level and in all levels below it.
"""


@dataclass(frozen=True)
class PreparedProblem:
    """Layer on a core with a spatial mapping, in the form that the compiled kernel reads."""

    layer: Layer
    """Layer to be mapped."""
    core: Core
    """Core on which the layer is mapped."""
    links: Links
    """Pairs of a layer operand and the memory operand to which it is linked."""
    spatial: ConvertedSpatialMapping
    """Spatial mapping, with the spatial loops at each memory level of each operand."""
    arrays: Problem
    """Record (PROBLEM_DTYPE) that describes the mapping problem to the kernel."""
    dimensions: tuple[str, ...]
    """Names of the loop dimensions. The records of the kernel refer to a dimension by its index in this tuple."""


def prepare(
    layer: Layer,
    core: Core,
    links: Links,
    unrolling: Unrolling,
    options: BoundaryParameters,
    *,
    same_data_is_no_access: bool = True,
) -> PreparedProblem:
    """Layer on a core with the spatial mapping `unrolling`, converted into the arrays that the kernel reads.

    If `same_data_is_no_access` is true, an input that the array uses again in the next cycle is not read again. This is
    the default of zigzag-dse. Raises MappingError if the spatial mapping is impossible, or if compressed data do not
    fit through a port.
    """
    spatial = convert_spatial_mapping(unrolling, layer, core, links, options.profile)
    check_widths(layer, core, dict(links))
    arrays = build_problem(
        layer,
        core,
        links,
        spatial,
        options.profile,
        even=options.temporal_mapping_type == "even",
        same_data_is_no_access=same_data_is_no_access,
    )
    return PreparedProblem(layer, core, links, spatial, arrays, tuple(layer.size_of))


def evaluate(
    layer: Layer,
    core: Core,
    links: Links,
    unrolling: Unrolling,
    loop_order: LoopOrder,
    options: SearchOptions = SearchOptions(),  # noqa: B008  frozen
    boundaries: Table[str, Sequence[int]] | None = None,
    *,
    same_data_is_no_access: bool = True,
) -> LayerRecord:
    """Record of a layer with the full breakdown of energy and latency, for a given spatial mapping and loop order
    (innermost loop first).

    `boundaries` has one number for each operand and memory level: the number of loops in this level and in all levels
    below it. Without `boundaries`, loops are allocated to memories greedily, as in zigzag-dse. Raises MappingError if
    the mapping does not fit the core. Raises MappingError also if the order does not cover exactly the iterations that
    remain after the spatial mapping.
    """
    mapping = _checked(layer, core, links, unrolling, loop_order, options, boundaries, same_data_is_no_access)
    return full_record(*mapping, options.objective, options.model)


def _checked(
    layer: Layer,
    core: Core,
    links: Links,
    unrolling: Unrolling,
    loop_order: LoopOrder,
    options: SearchOptions,
    boundaries: Table[str, Sequence[int]] | None,
    same_data_is_no_access: bool,
) -> tuple[PreparedProblem, LoopOrder, Boundaries | None]:
    """Mapping in the form that the kernel reads, as a triple (problem, loop order, level boundaries). Raises
    MappingError for the wrong inputs that `evaluate` refuses. Whether the mapping fits the core is not checked.
    """
    _check_unrolling(unrolling, layer, core)
    _check_links(links, layer)
    prepared = prepare(layer, core, links, unrolling, options, same_data_is_no_access=same_data_is_no_access)
    check_order(prepared, loop_order)
    return prepared, loop_order, None if boundaries is None else boundaries_of(layer, boundaries)


def evaluate_given(
    layer: Layer,
    core: Core,
    given: MappingConstraints,
    options: SearchOptions = SearchOptions(),  # noqa: B008  frozen
) -> LayerRecord:
    """Record with all terms of energy and latency, for the mapping in `given`, a complete entry of a mapping file. The
    command `tilewright map` gives the same result for this entry.

    The spatial mapping is taken unchanged. Array dimensions without an unrolling stay idle. Raises MappingError if the
    temporal ordering does not give every loop with its size, or if the entry is impossible.
    """
    mapping = _given(layer, core, given, options)
    record = full_record(*mapping, options.objective, options.model)
    if given.memory_reach is None:
        return record
    return with_reach(record, core, mapping[0].core, layer, given.memory_operand_links)


def latency_given(layer: Layer, core: Core, given: MappingConstraints, options: SearchOptions) -> float:
    """Latency in cycles of the mapping that a complete entry of a mapping file describes.

    The record of `evaluate_given` has the same latency, but takes longer to compute. Raises MappingError in the same
    cases as `evaluate_given`.
    """
    return float(workspace_of(*_given(layer, core, given, options)).totals[LATENCY])


def _given(
    layer: Layer, core: Core, given: MappingConstraints, options: SearchOptions
) -> tuple[PreparedProblem, LoopOrder, Boundaries | None]:
    """Mapping that a complete entry of a mapping file describes, as a triple (problem, loop order, level boundaries).
    The core of the problem has only the memories that the entry lets the layer use.

    The boundaries are None if the entry has none. Raises MappingError for the wrong entries that `evaluate_given`
    refuses. Whether the mapping fits the core is not checked.
    """
    even = given.temporal_mapping_type or options.temporal_mapping_type
    same_data = given.access_same_data_considered_as_no_access
    order = applicable_ordering(given.temporal_ordering, layer)
    loops = tuple((entry.dimension, entry.size) for entry in order if entry.size is not None)
    if len(loops) < len(order):
        raise MappingError("temporal_ordering does not fix every loop")
    return _checked(
        layer,
        core_for(layer, core, given),
        given.memory_operand_links,
        given.spatial_mapping,
        tuple(loop for loop in loops if loop[1] != 1),
        replace(options, temporal_mapping_type=even),
        dict(counted_boundaries(given.level_boundaries, given.temporal_ordering, layer)) or None,
        same_data is not False,
    )


def full_record(
    prepared: PreparedProblem, loop_order: LoopOrder, boundaries: Boundaries | None, objective: str, model: str
) -> LayerRecord:
    """Breakdown of a mapping, with the objective, the model profile, and the energy and latency under the profile
    `corrected`.

    Raises MappingError if the mapping does not fit.
    """
    record = evaluate_prepared(prepared, loop_order, boundaries)
    is_corrected = bool(prepared.arrays.switches.all())
    return replace(
        record,
        temporal_mapping_type="even" if prepared.arrays.even else UNEVEN,
        access_same_data_considered_as_no_access=bool(prepared.arrays.same_data_is_no_access),
        objective=objective,
        model=model,
        corrected=Figures(record.energy_pj, record.latency_cycles)
        if is_corrected
        else corrected_figures(prepared, loop_order, boundaries),
    )


def with_reach(record: LayerRecord, core: Core, own: Core, layer: Layer, links: Links) -> LayerRecord:
    """Record of a layer that also says how the core `own`, on which the layer was mapped, differs from the whole core
    `core`.

    The field `memory_reach` has two kinds of differences: the topmost memory that each operand can use, and the bits
    that data of other layers occupy in each memory. If the cores differ in anything else, `core_is_changed` is true,
    and `memory_reach` is not set.
    """
    reach = reach_of_core(core, own, layer, links)
    if reach is None:
        return replace(record, core_is_changed=True)
    return replace(record, memory_reach=MemoryReachRecord(dict(reach.topmost), dict(reach.occupied_bits)))


def boundaries_of(layer: Layer, given: Table[str, Sequence[int]]) -> Boundaries:
    """Level boundaries of the operands, in the order of `layer.operands`. Raises MappingError if `given` has no
    boundaries for an operand.
    """
    missing = [operand for operand in layer.operands if operand not in given]
    if missing:
        raise MappingError(f"level_boundaries are given, but have no entry for operand {', '.join(missing)}")
    return tuple(tuple(given[operand]) for operand in layer.operands)


def _check_unrolling(unrolling: Unrolling, layer: Layer, core: Core) -> None:
    """Raise MappingError if a given spatial mapping has unknown names or factors that exceed the array."""
    sizes = core.operational_array.size_of
    for name, factors in unrolling:
        if name not in sizes:
            raise MappingError(f"core '{core.name}' has no array dimension {name} (it has {', '.join(sizes)})")
        unknown = [dimension for dimension, _ in factors if dimension not in layer.size_of]
        if unknown:
            raise MappingError(f"layer '{layer.name}' has no loop dimension {', '.join(unknown)} to unroll over {name}")
        if any(type(factor) is not int or factor < 1 for _, factor in factors):
            raise MappingError(f"spatial factors over {name} must be integers from 1")
        if broken := unrolling_fault(core, name, factors):
            raise BrokenRuleError(broken)
        product = math.prod(factor for _, factor in factors)
        if product > sizes[name]:
            raise MappingError(
                f"the spatial factors over array dimension {name} have the product {product}, but {name} has the size"
                f" {sizes[name]}"
            )
    repeated = [name for name, count in Counter(name for name, _ in unrolling).items() if count > 1]
    if repeated:
        raise MappingError(f"array dimension {', '.join(repeated)} is given twice")


def _check_links(links: Links, layer: Layer) -> None:
    """Raise MappingError if an operand of the layer has no memory operand, or if two operands have the same memory
    operand.
    """
    link = dict(links)
    missing = [operand for operand in layer.operands if operand not in link]
    if missing:
        raise MappingError(f"memory_operand_links has no entry for operand {', '.join(missing)}")
    if len({link[operand] for operand in layer.operands}) < len(layer.operands):
        raise MappingError("memory_operand_links links two operands to the same memory operand")


def check_order(prepared: PreparedProblem, loop_order: LoopOrder) -> None:
    """Raise MappingError if the order has an unknown dimension, or if it does not cover exactly the remaining
    iterations.

    The remaining iterations are the iterations that the spatial mapping does not unroll.
    """
    unknown = sorted({d for d, _ in loop_order if d not in prepared.dimensions})
    if unknown:
        raise MappingError(f"layer '{prepared.layer.name}' has no loop dimension {', '.join(unknown)}")
    if any(type(size) is not int or size < 1 for _, size in loop_order):
        raise MappingError("loop sizes must be integers from 1")
    needed = dict(prepared.spatial.temporal_sizes)
    covered = dict.fromkeys(needed, 1)
    for dimension, size in loop_order:
        covered[dimension] = covered.get(dimension, 1) * size
    wrong = [f"{d} {covered[d]} instead of {needed.get(d, 1)}" for d in covered if covered[d] != needed.get(d, 1)]
    if wrong:
        raise MappingError(
            f"the temporal order has wrong numbers of iterations after the spatial mapping: {', '.join(wrong)}"
        )


def evaluate_prepared(
    prepared: PreparedProblem, loop_order: LoopOrder, boundaries: Boundaries | None = None
) -> LayerRecord:
    """Breakdown of the cost of one order with the level boundaries `boundaries`. Without boundaries, loops are
    allocated to memories greedily.

    Raises MappingError if the order does not fit.
    """
    ws = workspace_of(prepared, loop_order, boundaries)
    layer = prepared.layer
    record = breakdown(layer, prepared.core, prepared.links, prepared.spatial, loop_order, prepared.arrays, ws)
    if boundaries is None:
        return record
    return replace(record, level_boundaries=dict(zip(layer.operands, map(tuple, boundaries), strict=True)))


def workspace_of(prepared: PreparedProblem, loop_order: LoopOrder, boundaries: Boundaries | None) -> Workspace:
    """Workspace of one order after the cost model ran, with the invariants of the workspace checked.

    Raises MappingError if the order does not fit.
    """
    bounds = None if boundaries is None else boundary_array(prepared, boundaries)
    ws, outcome = _run(prepared.arrays, prepared.dimensions, loop_order, bounds)
    if outcome != FITS:
        error = BrokenRuleError if outcome in (TILE_RULE, ORDER_RULE) else MappingError
        raise error(failure_text(prepared, outcome, ws.failure, ws.failure_bits))
    verify(prepared.arrays, ws)
    return ws


def allocated_boundaries(prepared: PreparedProblem, loop_order: LoopOrder) -> Boundaries | None:
    """Level boundaries of an order after greedy allocation; None if the order does not fit."""
    ws, outcome = _run(prepared.arrays, prepared.dimensions, loop_order, None)
    if outcome != FITS:
        return None
    counts = prepared.arrays.level_count.tolist()
    return tuple(tuple(ws.bound[o, : counts[o]].tolist()) for o in range(len(prepared.layer.operands)))


def corrected_figures(
    prepared: PreparedProblem, loop_order: LoopOrder, boundaries: Boundaries | None = None
) -> Figures:
    """Energy and latency of the same mapping under the profile `corrected`.

    Energy and latency are both None if the mapping does not fit under this profile.
    """
    layer, core, links = prepared.layer, prepared.core, prepared.links
    try:
        spatial = convert_spatial_mapping(prepared.spatial.unrolling, layer, core, links, CORRECTED)
        arrays = build_problem(
            layer,
            core,
            links,
            spatial,
            CORRECTED,
            even=bool(prepared.arrays.even),
            same_data_is_no_access=bool(prepared.arrays.same_data_is_no_access),
        )
    except MappingError:
        return Figures()
    bounds = None if boundaries is None else boundary_array(prepared, boundaries)
    ws, outcome = _run(arrays, prepared.dimensions, loop_order, bounds)
    if outcome != FITS:
        return Figures()
    return Figures(float(ws.totals[ENERGY]), float(ws.totals[LATENCY]))


def boundary_array(prepared: PreparedProblem, boundaries: Boundaries) -> np.ndarray:
    """Boundaries of one order as an array [operand, level], padded with 0.

    Raises MappingError if some operand does not have exactly one integer for each of its memory levels.
    """
    operands = prepared.layer.operands
    counts = prepared.arrays.level_count[: len(operands)].tolist()
    if len(boundaries) != len(operands):
        raise MappingError(
            f"level boundaries are needed for operands {', '.join(operands)}, but"
            f" {count_of(len(boundaries), 'list')} given"
        )
    result = np.zeros((len(operands), max(counts)), np.int64)
    for o, (operand, given, count) in enumerate(zip(operands, boundaries, counts, strict=True)):
        if len(given) != count or not all(isinstance(bound, int | np.integer) for bound in given):
            raise MappingError(
                f"operand {operand} has {count_of(count, 'memory level')}, but its level boundaries are {list(given)}"
            )
        result[o, :count] = given
    return result


def _run(
    arrays: Problem, dimensions: tuple[str, ...], loop_order: LoopOrder, bounds: np.ndarray | None
) -> tuple[Workspace, int]:
    """Pair (workspace with the breakdown of one order, outcome code of the kernel). The kernel runs on a block with one
    order. If `bounds` is None, the kernel allocates loops to memories greedily.
    """
    ws = new_workspace()
    block = write_block(
        thread_block(),
        [dimensions.index(d) for d, _ in loop_order],
        [size for _, size in loop_order],
        np.arange(len(loop_order)).reshape(1, -1),
        None if bounds is None else bounds[np.newaxis],
    )
    cost_rows(arrays, ws, block, 1)
    return ws, int(block.outcome[0])


def _partial_sum_hint(layer: Layer, operand: str, needed_bits: float, has_bits: float) -> str:
    """Hint for a memory that is too small for one partial sum, so that no spatial mapping helps. The hint is '' for
    inputs, and if the tile has several partial sums.
    """
    if operand != OUTPUT or needed_bits != layer.bits_of[operand]:
        return ""
    return (
        f"; this is one partial sum: give the memory and its ports {needed_bits:.15g} bits, or the partial sums at most"
        f" {has_bits:.15g} bits (for an ONNX network: --bits partial={has_bits:.15g})"
    )


def failure_text(prepared: PreparedProblem, outcome: int, place: np.ndarray, bits: np.ndarray) -> str:
    """Message that says why an order does not fit: for example, that a memory has fewer bits than its tiles need.

    `place` has the indexes of the memory, the operand and the level. `bits` has two numbers: the required and the
    available bits. For two kinds of outcomes, the first number has another meaning. If `outcome` is NO_PORT, the first
    number is the direction of the link. If `outcome` is TILE_RULE or ORDER_RULE, the first number is the index of the
    loop dimension.
    """
    k, o = int(place[0]), int(place[1])
    memory = prepared.core.memories[k].name
    operand = prepared.layer.operands[o]
    needed, limit = float(bits[0]), float(bits[1])
    if outcome == NO_PORT:
        return (
            f"operand {operand} needs a port of memory '{memory}' for the direction '{DIRECTIONS[int(needed)]}',"
            " but there is"
            " no such port"
        )
    if outcome == TOO_SMALL:
        return (
            f"memory '{memory}' is too small for the spatial tile of operand {operand}: "
            f"needs {needed:.15g} bits, has {limit:.15g} bits"
            f"{_partial_sum_hint(prepared.layer, operand, needed, limit)}"
        )
    if outcome == TOO_SMALL_TOGETHER:
        return (
            f"memory '{memory}' is too small for the tiles of all its operands together: "
            f"needs {needed:.15g} bits, has {limit:.15g} bits"
        )
    if outcome == NOT_NESTED:
        return (
            f"the level boundary of operand {operand} at memory '{memory}' must be at least the boundary of the "
            "next inner level and at most the number of loops; at the topmost memory, it must be the number of loops"
        )
    if outcome == TILE_RULE:
        can = ", ".join(prepared.core.memories[k].tile_dimensions or ()) or "none"
        return (
            f"memory '{memory}' cannot have a loop over {prepared.dimensions[int(needed)]} of operand {operand}: its"
            f" tile_dimensions in the hardware file are {can}"
        )
    if outcome == ORDER_RULE:
        order = ", ".join(prepared.core.memories[k].loop_order)
        return (
            f"a loop over {prepared.dimensions[int(needed)]} has the wrong place: memory '{memory}' must have its loops"
            f" in the order of its loop_order in the hardware file, inner to outer: {order}"
        )
    if outcome == NOT_EVEN:
        return (
            f"the mapping is not even: some loops are in memory '{memory}' for one operand, "
            f"but above this memory for another operand"
        )
    return (
        f"memory '{memory}' is the topmost of operand {operand} and cannot hold the whole operand: "
        f"needs at least {needed:.15g} bits, has {limit:.15g} bits"
    )
