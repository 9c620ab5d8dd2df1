"""Costs of the designs of families: the traffic of each loop order is computed once for all designs of a family.

docs/proofs/fronts.md describes the method. A family is a set of designs that differ only in figures. A figure is a
number that changes costs, but not the data that a mapping moves. Examples are the energy of an access and the width of
a port. The costs of designs on a network are called prices.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilewright.base.errors import InputError, KeyPath, MappingError, Problem
from tilewright.base.json_values import JsonObject
from tilewright.cost.energy_terms import further_energy_terms
from tilewright.cost.latency_terms import added_latency_terms
from tilewright.cost.problem import MOST_CYCLES, most_cycles
from tilewright.designs.design_cost import DesignCost, reason_of
from tilewright.designs.design_evaluator import accelerator_of
from tilewright.designs.evaluate import NetworkEvaluator
from tilewright.designs.families import Family, Figure, figure_of
from tilewright.designs.results import INFEASIBLE, INVALID, OK
from tilewright.designs.space import Space
from tilewright.hardware.core import DIGITAL, Accelerator, Core, Port
from tilewright.hardware.core_variants import CoreVariants, variants_of
from tilewright.hardware.hierarchy import memory_hierarchy
from tilewright.hardware.static_power import clock_period_ns
from tilewright.hardware.system import core_area
from tilewright.hardware.text_edits import with_values
from tilewright.mapping.constraints import MappingConstraints, Unrolling
from tilewright.mapping.spatial_generation import spatial_candidates
from tilewright.pipeline.stages.base import Control, Rest, Same, Stage
from tilewright.pipeline.stages.items import LayerProblem, TemporalProblem
from tilewright.search.batch import OrderBatch
from tilewright.search.priced_orders import BestOrders, OrderPricer
from tilewright.workload.layer import Layer

Settings = tuple[tuple[KeyPath, Any], ...]


class FigureReader:
    """Reader of the hardware of designs. It reads each distinct value at a path only once."""

    def __init__(self, base: JsonObject) -> None:
        self.base = base
        self._known: dict[tuple[KeyPath, str, float | None], float] = {}
        """Parsed numbers, by (path, value in the file, least number that the path allows)."""

    def whole(self, settings: Settings) -> Accelerator:
        """Accelerator that `base` describes after the changes `settings`. Raises InputError if it is not valid."""
        return accelerator_of(with_values(self.base, settings), is_of_systems=False)

    def core(self, settings: Settings, first: Settings, core: Core) -> Core:
        """Core of the base after the changes `settings`.

        `core` is the core of the base after the changes `first`. If `settings` and `first` differ only in figures, the
        result is made from `core`. Otherwise, the whole hardware is read again. Raises InputError if `settings` do not
        give a valid accelerator.
        """
        if len(settings) != len(first):
            return self.whole(settings).cores[0]
        changed: dict[Figure, float] = {}
        for (path, value), (other, known) in zip(settings, first, strict=True):
            if path != other:
                return self.whole(settings).cores[0]
            if value == known and type(value) is type(known):
                continue
            figure = figure_of(self.base, path)
            number = None if figure is None else self._number(path, value, figure, first, core)
            if figure is None or number is None:
                return self.whole(settings).cores[0]
            changed[figure] = number
        return with_figures(core, changed)

    def _number(self, path: KeyPath, value: Any, figure: Figure, first: Settings, core: Core) -> float | None:
        """Number that the figure has after `value` is set at `path` in the hardware file. None if `value` also changes
        something other than this figure.

        Raises InputError if the value is wrong.
        """
        key = path, repr(value), _least(core, figure)
        if key not in self._known:
            read = self.whole((*first, (path, value))).cores[0]
            number = number_at(read, figure)
            if number is None or with_figures(core, {figure: number}) != read:
                return None
            self._known[key] = number
        return self._known[key]


def number_at(core: Core, figure: Figure) -> float | None:
    """Value of a figure in a core. None if the core has no such memory or port."""
    if figure.memory is None:
        return float(getattr(core.operational_array, figure.field))
    memory = next((memory for memory in core.memories if memory.name == figure.memory), None)
    if memory is None or figure.port is None:
        return None if memory is None else float(getattr(memory, figure.field))
    port = next((port for port in memory.ports if port.name == figure.port), None)
    return None if port is None else getattr(port, figure.field)  # a whole number of bits


def _least(core: Core, figure: Figure) -> float | None:
    """Smallest allowed value of a figure in a core. For the width of a port, it is the smallest access of this port.
    Other figures have no limit, and the result is None.
    """
    return None if figure.port is None else number_at(core, replace(figure, field="bandwidth_min_bits"))


def with_figures(core: Core, figures: dict[Figure, float]) -> Core:
    """Copy of a core with other values of some figures."""
    if not figures:
        return core
    array = {figure.field: number for figure, number in figures.items() if figure.memory is None}
    memories = []
    for memory in core.memories:
        own = {figure: number for figure, number in figures.items() if figure.memory == memory.name}
        if own:
            ports = memory.ports
            wide = {figure.port: number for figure, number in own.items() if figure.port is not None}
            if wide:
                ports = tuple(_widened(port, wide) for port in ports)
            fields: dict[str, Any] = {figure.field: number for figure, number in own.items() if figure.port is None}
            memory = replace(memory, ports=ports, **fields)
        memories.append(memory)
    unit = replace(core.operational_array, **array) if array else core.operational_array  # type: ignore[arg-type]
    return replace(core, operational_array=unit, memories=tuple(memories))


def _widened(port: Port, wide: dict[str, float]) -> Port:
    return replace(port, bandwidth_max_bits=int(wide[port.name])) if port.name in wide else port


MOST_WIDTHS = 16
"""Largest number of combinations of port widths that are costed together."""
MOST_PARTS = 2**20
"""Factor in the number of a part: part p of family n has the number n x MOST_PARTS + p. The factor is larger than the
number of parts of any family.
"""
ORDERS_OF_SPATIAL_MAPPING = 2**44
"""Factor in the number of a loop order: order i of spatial mapping n has the number n x ORDERS_OF_SPATIAL_MAPPING + i.
The factor is larger than the number of loop orders of any spatial mapping.
"""


@dataclass(frozen=True, eq=False)
class FamilyMembers:
    """Designs of a family that are valid accelerators and meet all constraints that are checked before evaluation."""

    indexes: np.ndarray
    """Index of each design in the space, as an int64 array [member]."""
    area_mm2: np.ndarray
    """Area of each design in mm2, as a float64 array [member]; NaN if the area of a part of the design is not known."""
    clock_period_ns: np.ndarray
    """Clock period of each design in ns, as a float64 array [member]; NaN if the clock period is not known."""
    variants: CoreVariants | None
    """Variants of one core, one per member. None if there are no members, or if two memories of a core, or two ports of
    a memory, have the same name.
    """
    accelerator: Accelerator | None
    """Accelerator of the first member; None if there is no member."""
    invalid: Mapping[int, str]
    """Reason why a design is not a valid accelerator, by index of the design."""
    excluded: Mapping[str, int]
    """Number of designs that each constraint excludes before evaluation, by constraint."""


@dataclass(frozen=True, eq=False)
class Prices:
    """Costs of the members of a family on one network, as arrays."""

    status: list[str]
    """Status of each design."""
    reason: list[str]
    """Reason why a design has no costs, one text per design; '' for a design with costs."""
    energy_pj: np.ndarray
    """Energy of each design in pJ, as a float64 array [member]; NaN if there is no result."""
    latency_cycles: np.ndarray

    @classmethod
    def unknown(cls, members: int, status: str = OK, reason: str = "") -> "Prices":
        """Prices in which all costs of the `members` designs are unknown (NaN)."""
        return cls([status] * members, [reason] * members, np.full(members, np.nan), np.full(members, np.nan))

    def refuse(self, places: np.ndarray, cost: DesignCost) -> None:
        """Write the status and the reason in `cost` for the designs at `places`. `cost` says why a design has no energy
        and no latency.
        """
        for place in places.tolist():
            self.status[place], self.reason[place] = cost.status, cost.reason


def members_of(space: Space, family: Family, reader: FigureReader) -> FamilyMembers:
    """Members of a family of the space."""
    indexes: list[int] = []
    cores: list[Core] = []
    invalid: dict[int, str] = {}
    excluded: dict[str, int] = {}
    first: Settings = ()
    accelerator: Accelerator | None = None
    for index in family.members:
        outline = space.outline(index)
        if outline.excluded_by:
            excluded[outline.excluded_by] = excluded.get(outline.excluded_by, 0) + 1
            continue
        if outline.problem:
            invalid[index] = outline.problem
            continue
        try:
            if accelerator is None:
                accelerator = reader.whole(outline.settings)
                first, core = outline.settings, accelerator.cores[0]
            else:
                core = reader.core(outline.settings, first, accelerator.cores[0])
        except InputError:
            invalid[index] = _reason(reader, outline.settings)
            continue
        indexes.append(index)
        cores.append(core)
    areas = [core_area(core, space.options.profile).mm2 for core in cores]
    periods = [clock_period_ns(core) for core in cores]
    return FamilyMembers(
        np.array(indexes, np.int64),
        np.array([np.nan if area is None else area for area in areas], np.float64),
        np.array([np.nan if period is None else period for period in periods], np.float64),
        variants_of(cores) if cores else None,
        accelerator,
        invalid,
        excluded,
    )


def _reason(reader: FigureReader, settings: Settings) -> str:
    """Reason why the base with the changes `settings` is not a valid accelerator, in the same words as in an evaluation
    of this single design.
    """
    try:
        reader.whole(settings)
    except InputError as error:
        return reason_of(error)
    raise AssertionError("a design is a valid accelerator if it is read alone, but not if it is read with its family")


@dataclass(frozen=True)
class _Kind:
    """Key of a pair (layer, core). For pairs with the same key, the search tries the same loop orders for each spatial
    mapping, and the costs of these orders are computed together.

    Layers of several networks have the same key if they differ only in their names.
    """

    layer: Layer
    constraints: MappingConstraints
    frame: Core
    """Structure of the part of a core that the layer uses (`Core.frame`), without names, costs, port widths and memory
    sizes.
    """
    array: tuple[Any, ...]
    names: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    """Pairs (name of a memory, ports), one per memory. The ports are pairs (name, smallest access in bits)."""
    widths: bytes
    """Content of the array `CoreVariants.widths`, as bytes."""


@dataclass(eq=False)
class _Seen:
    """Part of a core that a group of layers with the same key (`_Kind`) uses, with the best loop orders of these
    layers.
    """

    core: Core
    """Part of the core that the layers use. Each port has the largest width that this port has in any variant."""
    variants: CoreVariants
    best: BestOrders


@dataclass(eq=False)
class _Layers:
    """Layers with the same key (`_Kind`). Their mappings are searched together."""

    search: tuple[Stage, ...]
    problem: LayerProblem
    seen: dict[tuple[int, Core], _Seen] = field(default_factory=dict)
    """Results that are already known for the layers, by (number of a part of a family, core). `_Plan` describes the
    parts of a family. The core is the core of the family's first member, without memories that the layers do not use.
    """


class FamilyPricer:
    """Function object that computes the costs of families on the networks of a space."""

    def __init__(self, space: Space, evaluators: Mapping[str, NetworkEvaluator]) -> None:
        self.space, self.evaluators = space, evaluators

    def prices(self, families: Sequence[FamilyMembers]) -> list[dict[str, Prices]]:
        """Prices of every member of each family, by network.

        Families that differ only in memory sizes share work, so they should be passed in one call. Raises InputError if
        a design has further terms of energy or latency, or an in-memory computing array. The costs of these designs can
        depend on numbers that are not figures of a family.
        """
        for members in families:
            assert members.accelerator is not None
            core = members.accelerator.cores[0]
            if terms := (*further_energy_terms(core), *added_latency_terms(core)):
                message = (
                    "complete fronts are not available for designs with further terms of energy or latency"
                    f" ({', '.join(terms)})"
                )
                raise InputError([Problem(f"{message}; use `tilewright explore`", self.space.file)])
            if core.operational_array.kind != DIGITAL:
                message = "complete fronts are not available for in-memory computing arrays; use `tilewright explore`"
                raise InputError([Problem(message, self.space.file)])
        kinds: dict[_Kind, _Layers] = {}
        plans = [self._planned(number, members, kinds) for number, members in enumerate(families)]
        for layers in kinds.values():
            _price(layers, self.space)
        return [self._added_up(members, plan) for members, plan in zip(families, plans, strict=True)]

    def _planned(self, number: int, members: FamilyMembers, kinds: dict[_Kind, _Layers]) -> "_Plan":
        """Parts of a family, as a `_Plan`. `number` is the index of the family in the call of `prices`.

        The layers of the networks are also added to `kinds`, so that they are costed later. A network is left out if
        the first member of the family is not a valid accelerator for it, or lacks a memory for one of its layers.
        """
        assert members.variants is not None
        assert members.accelerator is not None
        networks: dict[str, list[tuple[LayerProblem, int]]] = {}
        for name, evaluator in self.evaluators.items():
            try:
                networks[name] = evaluator.layer_problems(members.accelerator)
            except (InputError, MappingError):
                continue
        rows = self._parts(members.variants, [layer for layers in networks.values() for layer, _ in layers])
        parts = []
        for place, part in enumerate(rows):
            own, chosen = members.variants.of_widths(part)
            key = number * MOST_PARTS + place
            found = {
                name: [(_entered(kinds, self.evaluators[name].search, layer, key, own), n) for layer, n in layers]
                for name, layers in networks.items()
            }
            parts.append((chosen, found))
        return parts

    def _added_up(self, members: FamilyMembers, plan: "_Plan") -> dict[str, Prices]:
        """Prices of a family, by name of the network. A price is the sum over the layers of the network, added one
        after the other as in the summary of a run.
        """
        result: dict[str, Prices] = {}
        for name in self.evaluators:
            prices = Prices.unknown(len(members.indexes))
            for places, networks in plan:
                layers = networks.get(name)
                if layers is None or not all(layer.best.fitting for layer, _ in layers):
                    prices.refuse(places, self._refused(members, name, int(places[0])))
                    continue
                energy, latency = np.zeros(len(places)), np.zeros(len(places))
                for layer, count in layers:
                    energy += count * layer.best.energy_pj
                    latency += count * layer.best.latency_cycles
                prices.energy_pj[places], prices.latency_cycles[places] = energy, latency
            result[name] = prices
        return result

    def _refused(self, members: FamilyMembers, name: str, place: int) -> DesignCost:
        """Status and reason for a member that has no costs on the network `name`. The member belongs to a family of
        designs; `place` is its index in the arrays of `members`.
        """
        assert members.accelerator is not None
        assert members.variants is not None
        bits = members.variants.widths[members.variants.width_of[place]].tolist()
        core = members.variants.with_widths(members.accelerator.cores[0], bits)
        cost = self.evaluators[name].cost(replace(members.accelerator, cores=(core,)))
        assert cost.status in (INVALID, INFEASIBLE), (
            "a design of a family has costs if it is costed alone, but not as a member of its family"
        )
        return cost

    def _parts(self, variants: CoreVariants, layers: Sequence[LayerProblem]) -> list[list[int]]:
        """Groups of row numbers of `variants.widths`. The search tries the same spatial mappings for all rows of a
        group.

        A group has at most MOST_WIDTHS rows.
        """
        distinct = list({(layer.layer, layer.core, layer.constraints): layer for layer in layers}.values())
        inner = sorted({column for core in {layer.core for layer in distinct} for column in _inner(core, variants)})
        by_width: dict[tuple[int, ...], list[int]] = {}
        for row in range(len(variants.widths)):
            by_width.setdefault(tuple(variants.widths[row, inner].tolist()), []).append(row)
        groups: dict[str, list[int]] = {}
        for equal in by_width.values():
            tried = "" if len(by_width) == 1 else self._candidates(variants, equal[0], distinct)
            groups.setdefault(tried, []).extend(equal)
        return [
            part[first : first + MOST_WIDTHS] for part in groups.values() for first in range(0, len(part), MOST_WIDTHS)
        ]

    def _candidates(self, variants: CoreVariants, row: int, layers: Sequence[LayerProblem]) -> str:
        """Text that lists the spatial mappings of each layer that the search tries if the ports have the widths in row
        `row` of `variants.widths`.

        If a layer has no spatial mapping, the text has the reason. Equal texts mean equal spatial mappings.
        """
        bits, options = variants.widths[row].tolist(), self.space.options
        count, mixed = options.spatial_count(bounds=False), options.enable_mix_spatial_mapping
        found: list[Any] = []
        for layer in layers:
            core = variants.with_widths(layer.core, bits)
            try:
                found.append(spatial_candidates(layer.layer, core, layer.constraints, options.profile, count, mixed))
            except MappingError as error:
                found.append(str(error))
        return str(found)


_Plan = list[tuple[np.ndarray, dict[str, list[tuple[_Seen, int]]]]]
"""Parts of a family, as pairs (positions, networks). The search tries the same spatial mappings for all members of a
part.

`positions` is an array with the positions of these members in the arrays of `FamilyMembers`. `networks` maps the name
of a network to a list of pairs (results for a layer, number of equal layers).
"""


def _entered(
    kinds: dict[_Kind, _Layers], search: tuple[Stage, ...], layer: LayerProblem, key: int, variants: CoreVariants
) -> _Seen:
    """Add a layer to `kinds`, so that it is costed later. `key` is the number of a part of a family, and `variants` has
    the variants of this part.

    Returns an object for the part of the core that the layer uses. The best loop orders are written into this object
    later.
    """
    core, array = layer.core, layer.core.operational_array
    names = tuple(
        (memory.name, tuple((port.name, port.bandwidth_min_bits) for port in memory.ports)) for memory in core.memories
    )
    doubled = tuple(memory.force_double_buffering for memory in core.memories)
    arranged = array.dimensions, array.systolic_dimensions, array.kind, array.parameters, doubled
    kind = _Kind(
        replace(layer.layer, name=""), layer.constraints, core.frame, arranged, names, variants.widths.tobytes()
    )
    widest = variants.with_widths(core, variants.widest)
    layers = kinds.setdefault(kind, _Layers(search, replace(layer, core=widest)))
    return layers.seen.setdefault((key, core), _Seen(widest, variants, BestOrders.none_of(len(variants.width_of))))


def _price(layers: _Layers, space: Space) -> None:
    """Find the best loop orders of the layers with one key (`_Kind`). The orders are written into the attribute `best`
    of each object in the values of `layers.seen`. Spatial mappings are tried one after the other.
    """
    makers = tuple(stage for stage in layers.search[:-1] if stage.gives is not Same)
    spatial: dict[tuple[int, ...], list[TemporalProblem]] = {}
    tried: dict[Unrolling, tuple[TemporalProblem, list[tuple[int, _Seen]]]] = {}
    for seen in layers.seen.values():
        inner = tuple(seen.core.memories[k].size_bits for k in memory_hierarchy(seen.core).inner_memories)
        if inner not in spatial:
            spatial[inner] = _spatial_mappings(makers[:-1], replace(layers.problem, core=seen.core))
        for place, item in enumerate(spatial[inner]):
            tried.setdefault(item.spatial.unrolling, (item, []))[1].append((place, seen))
    for item, users in tried.values():
        _check_cycles(item, users[0][1].variants, space)
        pricer = OrderPricer(item, users[0][1].variants, space.options.profile, space.options.objective)
        for batch, first in _batches(makers[-1], item):
            pricer.begin(batch)
            for place, seen in users:
                number = place * ORDERS_OF_SPATIAL_MAPPING + first
                pricer.price(seen.core, seen.variants, len(batch.orders), number, seen.best)


def _check_cycles(item: TemporalProblem, variants: CoreVariants, space: Space) -> None:
    """Raise InputError if ports of a variant are so narrow that the number of cycles could overflow."""
    if most_cycles(item.arrays, item.spatial, int(variants.widths.min())) > MOST_CYCLES:
        message = f"layer '{item.layer.name}' moves too much data for the narrowest ports of the design space"
        raise InputError([Problem(f"{message}: its transfers could take 2^57 cycles", space.file)])


def _spatial_mappings(makers: tuple[Stage, ...], problem: LayerProblem) -> list[TemporalProblem]:
    """Spatial mappings of a layer that are possible, in the order of the search; [] if there are none."""
    try:
        return [item for item in Rest(makers, Control())(problem) if isinstance(item, TemporalProblem)]
    except MappingError:
        return []


def _batches(mapper: Stage, item: TemporalProblem) -> Iterator[tuple[OrderBatch, int]]:
    """Pairs (batch of loop orders of a spatial mapping, number of the first order in the batch).

    There are no pairs if the spatial mapping has no loop orders.
    """
    first = 0
    try:
        for batch in Rest((mapper,), Control())(item):
            if isinstance(batch, OrderBatch):
                yield batch, first
                first += len(batch.orders)
    except MappingError:
        return


def _inner(core: Core, variants: CoreVariants) -> list[int]:
    """Indexes of the columns of `variants.widths` for the ports of the innermost memories. The widths of other ports do
    not limit spatial mappings.
    """
    memories = [core.memories[k] for k in memory_hierarchy(core).inner_memories]
    return [variants.column(memory.name, port.name) for memory in memories for port in memory.ports]
