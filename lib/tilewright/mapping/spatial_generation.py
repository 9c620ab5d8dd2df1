"""Candidates for the spatial mapping of a layer (zigzag-dse 3.9.1): the corrected spatial mapping of the user, or
generated spatial mappings."""

import copy
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tilewright.base.errors import MappingError, Problems, count_of, some_of
from tilewright.base.profile import ModelProfile
from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import memory_hierarchy
from tilewright.hardware.set_order import array_dimensions_in_set_order, layer_dimensions_in_set_order
from tilewright.mapping.constraints import Mapping, MappingConstraints, Unrolling
from tilewright.mapping.control_rules import can_unroll, unrolling_fault
from tilewright.mapping.spatial_kernel import best_combinations
from tilewright.workload.layer import OUTPUT, Layer
from tilewright.workload.relevancy import operand_relevancy

MaximumUnrolling = dict[str, dict[str, int]]
"""Largest factor of each loop dimension on each array dimension: array dimension -> loop dimension -> factor."""
_Draft = dict[str, dict[str, int]]


def spatial_candidates(
    layer: Layer,
    core: Core,
    constraints: MappingConstraints,
    profile: ModelProfile,
    count: int = 3,
    mixed: bool = False,
) -> list[Unrolling]:
    """Spatial mappings to try. If the user's mapping fixes every array dimension, the result is only this mapping.
    Otherwise the result is the `count` best mappings.

    With `count` 0 all valid mappings are returned. Raises MappingError if no mapping is valid.
    """
    return list(_candidates(layer, _what_matters(core), constraints, profile, count, mixed))


def _what_matters(core: Core) -> Core:
    """Core with only the properties that affect spatial mappings. Among the memories, only the innermost memories
    affect spatial mappings.
    """
    inner = memory_hierarchy(core).inner_memories
    memories = tuple(
        replace(memory, read_energy_pj=0.0, write_energy_pj=0.0, area_mm2=0.0, cost_source=None)
        if k in inner
        else memory.frame
        for k, memory in enumerate(core.memories)
    )
    return replace(core, operational_array=core.frame.operational_array, memories=memories)


@lru_cache(maxsize=512)
def _candidates(
    layer: Layer, core: Core, constraints: MappingConstraints, profile: ModelProfile, count: int, mixed: bool
) -> tuple[Unrolling, ...]:
    limits = maximum_unrolling(layer, core, constraints, profile)
    given_limits = size_limits(layer, core) if profile.keep_given_unrolling else limits
    draft = given_draft(layer, core, constraints, given_limits, profile)
    open_dimensions = [name for name, _ in core.operational_array.dimensions if name not in draft]
    if open_dimensions:
        check_given(draft, given_limits)
        drafts = _generate(draft, open_dimensions, layer, core, constraints, limits, count, mixed)
        if profile.independent_spatial_candidates:
            drafts = [copy.deepcopy(draft) for draft in drafts]
    else:
        check_given(draft, given_limits)
        drafts = [draft]
    fixed = frozenset(draft) if profile.keep_given_unrolling else frozenset()
    limited = [limit_to_capacity(d, layer, core, constraints, profile, fixed) for d in drafts]
    return tuple(tuple((name, tuple(factors.items())) for name, factors in d.items()) for d in limited)


def maximum_unrolling(
    layer: Layer, core: Core, constraints: MappingConstraints, profile: ModelProfile
) -> MaximumUnrolling:
    """Largest factor of each loop dimension on each array dimension. The sizes of the layer and of the array, and the
    port widths of inner memories, limit the factor.
    """
    limits = size_limits(layer, core)
    for ceiling in port_ceilings(layer, core, constraints, profile):
        for name in ceiling.served:
            for dimension in ceiling.dimensions:
                limits[name][dimension] = min(limits[name][dimension], ceiling.elements)
    return limits


@dataclass(frozen=True)
class PortCeiling:
    """Upper bound of unrolling factors that follows from the port width of an inner memory. The bound holds for each
    factor by which one of the loop dimensions `dimensions` is unrolled over one of the array dimensions `served`. The
    memory serves these array dimensions.
    """

    operand: str
    memory: str
    served: tuple[str, ...]
    dimensions: tuple[str, ...]
    """Loop dimensions along which lanes need different elements of the operand."""
    elements: int
    """Number of elements that the port moves in a cycle."""


def port_ceilings(
    layer: Layer, core: Core, constraints: MappingConstraints, profile: ModelProfile
) -> Iterator[PortCeiling]:
    """Upper bounds of unrolling factors, one for each inner memory and operand. A bound follows from the width of the
    port with which the memory serves the operand."""
    for operand, memory_index, served in inner_operands(layer, core, constraints):
        bits = layer.bits_of[operand]
        memory = core.memories[memory_index]
        memory_operand = dict(constraints.memory_operand_links)[operand]
        port = memory.port_of.get((memory_operand, "fl" if operand == OUTPUT else "tl"))
        if bits == 0 or port is None:
            continue
        irrelevant = operand_relevancy(layer, operand, profile).irrelevant
        dimensions = tuple(name for name in layer.size_of if name not in irrelevant)
        yield PortCeiling(operand, memory.name, served, dimensions, memory.ports[port].bandwidth_max_bits // bits)


def size_limits(layer: Layer, core: Core) -> MaximumUnrolling:
    """Largest factor of each loop dimension on each array dimension, limited only by the size of the loop dimension,
    the size of the array dimension, and the loops that the array can unroll.
    """
    return {
        name: {d: min(size, array_size) if can_unroll(core, name, d) else 1 for d, size in layer.loop_sizes}
        for name, array_size in core.operational_array.dimensions
    }


def inner_operands(
    layer: Layer, core: Core, constraints: MappingConstraints
) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Triples (layer operand, memory index, array dimensions that the memory serves) of all inner memories."""
    layer_operand = {m: o for o, m in constraints.memory_operand_links if o in layer.operands}
    for index in memory_hierarchy(core).inner_memories:
        memory = core.memories[index]
        for memory_operand in memory.operands:
            if memory_operand in layer_operand:
                yield layer_operand[memory_operand], index, memory.served_dimensions


def given_draft(
    layer: Layer, core: Core, constraints: MappingConstraints, limits: MaximumUnrolling, profile: ModelProfile
) -> _Draft:
    """User's mapping in the form that the model profile accepts.

    With the switch `keep_given_unrolling`, `cut_user_mapping` reduces only the factors that do not fit the layer or the
    array. Without the switch, `clean_user_mapping` reduces all factors to `limits`, and removes factors until the
    others fit (fault B45, docs/model.md).

    Raises the errors of these functions. Also raises MappingError if the array cannot unroll a loop of the user along
    its array dimension (`unrolled_dimensions` of the hardware file).
    """
    for name, factors in constraints.spatial_mapping:
        if broken := unrolling_fault(core, name, _usable(layer, factors).items()):
            raise MappingError(broken)
    if profile.keep_given_unrolling:
        return cut_user_mapping(constraints.spatial_mapping, layer, core)
    return clean_user_mapping(constraints.spatial_mapping, layer, core, limits)


def cut_user_mapping(given: Unrolling, layer: Layer, core: Core) -> _Draft:
    """User's mapping without unknown loop dimensions, reduced to the sizes of the layer and of each array dimension.

    Factors are reduced in the order in which they are written. A factor can use only the iterations of its loop
    dimension, and the units of its array dimension, that earlier factors have left free. Raises MappingError for
    unknown array dimensions.
    """
    array_size = core.operational_array.size_of
    sizes = layer.size_of
    covered = dict.fromkeys(sizes, 1)
    draft: _Draft = {}
    for name, factors in given:
        if name not in array_size:
            raise _unknown_array_dimension(name, core)
        draft[name], free = {}, array_size[name]
        for dimension, factor in factors:
            if dimension in sizes:
                used = min(factor, free, -(-sizes[dimension] // covered[dimension]))
                draft[name][dimension] = draft[name].get(dimension, 1) * used
                covered[dimension] *= used
                free //= used
    return draft


def _unknown_array_dimension(name: str, core: Core) -> MappingError:
    has = ", ".join(core.operational_array.size_of) or "none"
    return MappingError(f"core '{core.name}' has no array dimension {name} (it has {has})")


def clean_user_mapping(given: Unrolling, layer: Layer, core: Core, limits: MaximumUnrolling) -> _Draft:
    """User's mapping without unknown loop dimensions. Factors are reduced to `limits`, and then removed until two
    conditions hold. On each array dimension, the product of the factors is at most the size of the array dimension. For
    each loop dimension, the product of the factors is at most the size of the loop.

    Factors are removed in the order in which the reference tool iterates over its sets of dimensions. Raises
    MappingError for unknown array dimensions. Also raises MappingError for loop dimensions that cannot be unrolled
    because a port of an inner memory is narrower than one element.
    """
    array_size = core.operational_array.size_of
    draft: _Draft = {}
    for name, factors in given:
        if name not in array_size:
            raise _unknown_array_dimension(name, core)
        known = {d: min(f, limits[name][d]) for d, f in factors if d in limits[name]}
        forbidden = [d for d, f in known.items() if f == 0]
        if forbidden:
            raise MappingError(
                f"unrolling {', '.join(forbidden)} over {name} is impossible: a port of an inner memory is narrower"
                f" than one element"
            )
        while math.prod(known.values()) > array_size[name]:
            del known[layer_dimensions_in_set_order(known)[0]]
        draft[name] = known
    for dimension, size in layer.loop_sizes:
        while math.prod(factors.get(dimension, 1) for factors in draft.values()) > size:
            # For each removal, the reference makes a new set from the set of all given array dimensions.
            holders = [name for name in array_dimensions_in_set_order(draft) if dimension in draft[name]]
            del draft[array_dimensions_in_set_order(holders)[0]][dimension]
    return draft


def check_given(draft: _Draft, limits: MaximumUnrolling) -> None:
    """Raise MappingError if a factor of the user exceeds the largest possible factor."""
    for name, factors in draft.items():
        for dimension, factor in factors.items():
            if factor > limits[name][dimension]:
                most = f"the largest factor that the layer, the array and the ports allow is {limits[name][dimension]}"
                raise MappingError(f"spatial factor {factor} of {dimension} over {name} is too large: {most}")


def divisors(number: int) -> list[int]:
    """Divisors of a number in ascending order; [] for 0."""
    whole = int(number)
    small = [d for d in range(1, math.isqrt(whole) + 1) if whole % d == 0]
    return [*small, *(whole // d for d in reversed(small) if d * d != whole)]


def hinted_dimensions(name: str, layer: Layer, constraints: MappingConstraints) -> list[str]:
    """Loop dimensions to try on an array dimension: the dimensions of the user's hint or, if the layer has none of
    them, all dimensions of the layer. The dimensions are in the order in which the reference tool (zigzag-dse) iterates
    over a set of these dimensions.
    """
    hint = dict(constraints.spatial_mapping_hint).get(name, ())
    if not any(dimension in layer.size_of for dimension in hint):
        hint = tuple(layer.size_of)
    return [d for d in layer_dimensions_in_set_order(hint) if d in layer.size_of]


def _options(
    name: str, array_size: int, layer: Layer, constraints: MappingConstraints, limits: MaximumUnrolling, mixed: bool
) -> list[dict[str, int]]:
    """Candidate unrollings of one array dimension for which the user gives no spatial mapping, in the order of the
    reference tool.
    """
    hinted = hinted_dimensions(name, layer, constraints)
    table = limits[name]
    options = [{d: factor} for d in hinted for factor in reversed(divisors(table[d]))]
    if mixed:
        for length in range(2, len(hinted) + 1):
            for group in itertools.combinations(hinted, length):
                choices = itertools.product(*(divisors(table[d])[1:] for d in group))
                options += [
                    dict(zip(group, factors, strict=True)) for factors in choices if math.prod(factors) <= array_size
                ]
    return options


def _generate(
    draft: _Draft,
    open_dimensions: list[str],
    layer: Layer,
    core: Core,
    constraints: MappingConstraints,
    limits: MaximumUnrolling,
    count: int,
    mixed: bool,
) -> list[_Draft]:
    dimensions = list(layer.size_of)
    sizes = np.array([layer.size_of[d] for d in dimensions], np.int64)
    fixed = np.ones(len(dimensions), np.int64)
    for factors in draft.values():
        for dimension, factor in factors.items():
            place = dimensions.index(dimension)
            fixed[place] = min(fixed[place] * factor, sizes[place])
    array_size = core.operational_array.size_of
    options = [_options(name, array_size[name], layer, constraints, limits, mixed) for name in open_dimensions]
    rows = [[option.get(d, 1) for d in dimensions] for choices in options for option in choices]
    table = np.array(rows, np.int64).reshape(-1, len(dimensions))
    start = np.concatenate(([0], np.cumsum([len(choices) for choices in options]))).astype(np.int64)
    if count == 0:
        count = best_combinations(table, start, sizes, fixed, 0)[2]
    scores, index, _ = best_combinations(table, start, sizes, fixed, count)
    # Candidates share the unrollings of generated array dimensions, as in the reference: if the capacity limit reduces
    # a factor, it is reduced for all candidates that share it (B38 in docs/model.md).
    chosen = [
        {name: dict(factors) for name, factors in draft.items()}
        | {name: options[a][row[a] - start[a]] for a, name in enumerate(open_dimensions)}
        for row, score in zip(index, scores, strict=True)
        if score > -math.inf
    ]
    if not chosen:
        raise MappingError(
            f"no spatial mapping of layer '{layer.name}' over {', '.join(open_dimensions)} is valid: "
            "the given spatial factors leave no room for further factors, or a port is narrower than one element"
        )
    return chosen


def limit_to_capacity(
    draft: _Draft,
    layer: Layer,
    core: Core,
    constraints: MappingConstraints,
    profile: ModelProfile,
    fixed: frozenset[str] = frozenset(),
) -> _Draft:
    """Reduce factors so that each inner memory holds the elements that its array dimensions need at once.

    The largest factor is reduced by one, repeatedly, until the product of the factors fits. As in the reference tool,
    all factors of equal value change together, and no factor falls below 1. Factors of array dimensions in `fixed` do
    not change.
    """
    for operand, memory_index, served in inner_operands(layer, core, constraints):
        bits = layer.bits_of[operand]
        if bits == 0:
            continue
        limit = core.memories[memory_index].size_bits / bits
        irrelevant = operand_relevancy(layer, operand, profile).irrelevant
        names = [name for name in array_dimensions_in_set_order(served) if name in draft]
        dimensions = layer_dimensions_in_set_order(d for name in names for d in draft[name] if d not in irrelevant)
        places = [(name, d) for d in dimensions for name in names if d in draft[name] and name not in fixed]
        old = [draft[name][d] for name, d in places]
        limit /= math.prod(f for name in names if name in fixed for d, f in draft[name].items() if d not in irrelevant)
        if not old or math.prod(old) <= limit:
            continue
        new = list(old)
        while math.prod(new) > limit and max(new) > 1:
            new[new.index(max(new))] -= 1
        replacement = dict(zip(old, new, strict=True))
        for name, dimension in places:
            draft[name][dimension] = replacement[draft[name][dimension]]
    return draft


Cut = tuple[str, str]
"""Pair (array dimension, reason why the mapping has fewer lanes on this dimension than the file asks for)."""


def note_cut_lanes(
    problems: Problems, mapping: Mapping, cuts: Iterable[tuple[str, MappingConstraints, Iterable[Cut]]]
) -> None:
    """Add one notice for each reason why layers use fewer lanes than the mapping file asks for. The notice names all
    layers with this reason.

    `problems` belongs to the document of the mapping. An item of `cuts` is a triple (name of a layer, mapping entry of
    the layer, cuts of the layer).
    """
    place_of = {id(entry): place for place, entry in enumerate(mapping.entries)}
    found: dict[tuple[int, str, str], dict[str, None]] = {}
    for layer, entry, its_cuts in cuts:
        for name, cause in its_cuts:
            found.setdefault((place_of[id(entry)], name, cause), {})[layer] = None
    for (place, name, cause), layers in found.items():
        names = list(layers)
        path = (place, "spatial_mapping", name)
        problems.notice(path, f"{cause} (in {count_of(len(names), 'layer')}: {some_of(names)})")


def cuts_by_array(layer: Layer, core: Core, constraints: MappingConstraints) -> Iterator[Cut]:
    """Cuts (`Cut`) of excess lanes. There is one cut for each array dimension on which the mapping asks for more lanes
    than the array has.
    """
    array = core.operational_array.size_of
    for name, factors in constraints.spatial_mapping:
        if name in array and math.prod(_usable(layer, factors).values()) > array[name]:
            yield name, _excess(math.prod(factor for _, factor in factors), core, array[name])


def note_excess_lanes(problems: Problems, mapping: Mapping, core: Core) -> None:
    """Add a notice for each array dimension on which an entry asks for more lanes than the array of the core has.
    `problems` belongs to the document of the mapping. The network is not needed.
    """
    array = core.operational_array.size_of
    for index, entry in enumerate(mapping.entries):
        for name, factors in entry.spatial_mapping:
            asked = math.prod(factor for _, factor in factors)
            if asked > array.get(name, asked):
                problems.notice((index, "spatial_mapping", name), _excess(asked, core, array[name]))


def _excess(asked: int, core: Core, size: int) -> str:
    return (
        f"asks for {asked} lanes, but the array of {core.name} has only {size} on this side: the excess lanes are left"
        " out"
    )


def cuts_on_core(layer: Layer, core: Core, constraints: MappingConstraints, profile: ModelProfile) -> Iterator[Cut]:
    """Cuts (`Cut`) of the lanes of a layer on a core, for every reason.

    The size of the array limits the lanes of each array dimension. The size of a loop limits the total lanes of all
    array dimensions with this loop. If the profile does not keep the factors of the user, ports and the capacity of
    inner memories limit the lanes, too.
    """
    yield from cuts_by_array(layer, core, constraints)
    if not set(dict(constraints.spatial_mapping)) <= set(core.operational_array.size_of):
        return
    keeps = profile.keep_given_unrolling
    if not keeps:
        yield from _cuts_by_ports(layer, core, constraints, profile)
    try:
        limits = size_limits(layer, core) if keeps else maximum_unrolling(layer, core, constraints, profile)
        draft = given_draft(layer, core, constraints, limits, profile)
        yield from cuts_to_layer(layer, core, constraints) if keeps else _left_out(layer, core, constraints, draft)
        before = {name: dict(factors) for name, factors in draft.items()}
        after = before if keeps else limit_to_capacity(draft, layer, core, constraints, profile)
    except MappingError:
        return  # the search reports that nothing fits
    smaller = [name for name in before if after[name] != before[name]]
    memories = _overfull(before, layer, core, constraints, profile)
    for name in smaller:
        yield (
            name,
            f"lanes are left out until {some_of(memories)} {_has(memories)} room for the data of the remaining lanes",
        )


def _usable(layer: Layer, factors: Sequence[tuple[str, int]]) -> dict[str, int]:
    return {name: min(factor, layer.size_of[name]) for name, factor in factors if name in layer.size_of}


def _cuts_by_ports(layer: Layer, core: Core, constraints: MappingConstraints, profile: ModelProfile) -> Iterator[Cut]:
    array = core.operational_array.size_of
    asked = {name: _usable(layer, factors) for name, factors in constraints.spatial_mapping}
    for ceiling in port_ceilings(layer, core, constraints, profile):
        for name in ceiling.served:
            for dimension in ceiling.dimensions:
                wanted = min(asked.get(name, {}).get(dimension, 1), array[name])
                if wanted > ceiling.elements > 0:
                    moved = count_of(ceiling.elements, "element")
                    yield (
                        name,
                        f"{dimension} is reduced to {count_of(ceiling.elements, 'lane')}: a port of"
                        f" {ceiling.memory} moves only"
                        f" {moved} of {ceiling.operand} per cycle",
                    )


def cuts_to_layer(layer: Layer, core: Core, constraints: MappingConstraints) -> Iterator[Cut]:
    """Cuts (`Cut`) of loops for which several array dimensions together ask for more lanes than the loop has
    iterations. There is one cut for each such loop, which names the last of these array dimensions.
    """
    array = core.operational_array.size_of
    takes: dict[str, dict[str, int]] = {}
    for name, factors in constraints.spatial_mapping:
        for dimension, factor in _usable(layer, factors).items():
            takes.setdefault(dimension, {})[name] = min(factor, array[name])
    for dimension, sides in takes.items():
        size, asked = layer.size_of[dimension], math.prod(sides.values())
        if len(sides) > 1 and asked > size:
            yield (
                list(sides)[-1],
                f"{' and '.join(sides)} together ask for {asked} lanes of {dimension}, but the layer has only {size}:"
                " the excess lanes are left out",
            )


def _left_out(
    layer: Layer, core: Core, constraints: MappingConstraints, draft: dict[str, dict[str, int]]
) -> Iterator[Cut]:
    """One cut (`Cut`) for each loop that an array dimension leaves out, because all array dimensions together ask for
    more lanes of this loop than it has iterations.

    An array dimension is skipped if the file asks for more lanes on it than the array has; `cuts_by_array` reports it.
    """
    array = core.operational_array.size_of
    for name, factors in constraints.spatial_mapping:
        usable = _usable(layer, factors)
        if math.prod(usable.values()) > array[name]:
            continue  # reported as more lanes than the array has
        for dimension, factor in usable.items():
            if factor > 1 and dimension not in draft[name]:
                yield (
                    name,
                    f"{dimension} is left out: together, the array dimensions ask for more lanes of {dimension} than"
                    f" it has iterations",
                )


def _overfull(
    draft: dict[str, dict[str, int]], layer: Layer, core: Core, constraints: MappingConstraints, profile: ModelProfile
) -> list[str]:
    """Names of the inner memories that cannot hold the elements that all lanes need at once."""
    found = []
    for operand, memory_index, served in inner_operands(layer, core, constraints):
        irrelevant = operand_relevancy(layer, operand, profile).irrelevant
        needed = math.prod(
            factor for name in served for d, factor in draft.get(name, {}).items() if d not in irrelevant
        )
        memory = core.memories[memory_index]
        if needed * layer.bits_of[operand] > memory.size_bits:
            found.append(memory.name)
    return list(dict.fromkeys(found)) or ["an inner memory"]


def _has(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"
