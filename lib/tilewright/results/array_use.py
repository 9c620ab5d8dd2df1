"""Use of each side of the array in each layer, and the causes of idle units.

The spatial stall of a layer (cycles lost to idle units) has two parts. The first part is caused by a mapping file that
fixes the spatial mapping. Without this file, the search would find a spatial mapping that avoids these cycles. The
second part remains even with the best spatial mapping: loops are too short, loop sizes are not multiples of the sizes
of the sides, or data do not fit into inner memories (docs/bottlenecks/explain.md#explain-a-run).

The module also writes these causes as text for the terminal.
"""

import math
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Table
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tilewright.base.errors import MappingError
from tilewright.base.harmless import ended_lines, terminal
from tilewright.base.json_values import JsonObject
from tilewright.base.profile import ModelProfile, profile_by_name
from tilewright.cost.record import LayerRecord
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import GivenReach, Mapping, MappingConstraints
from tilewright.mapping.memory_reach import core_for
from tilewright.mapping.spatial import convert_spatial_mapping
from tilewright.mapping.spatial_generation import spatial_candidates
from tilewright.mapping.spatial_space import SpatialChoice, SpatialSpace
from tilewright.results.records import PlacedLayer
from tilewright.results.terminal_tables import render, text_table
from tilewright.results.text_tables import NOTHING, SMALLEST_SHOWN, WORKING_SHARES, share_text
from tilewright.search.options import SearchOptions
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer


class SideUse(NamedTuple):
    """Use of one side of the array while a layer computes."""

    array_dimension: str
    units: int
    loops: tuple[tuple[str, int], ...]
    """Pairs (loop dimension, lanes), as in the spatial mapping."""
    lanes: float
    """Number of working units along the side, on average over the passes."""
    fixed_lanes: int | None
    """Number of lanes that the mapping file fixes along this side; None if the file fixes no loops along the side."""

    @property
    def is_fixed(self) -> bool:
        """True if the mapping file fixes the loops along this side."""
        return self.fixed_lanes is not None

    @property
    def share(self) -> float:
        """Share of working units along the side, from 0 to 1."""
        return self.lanes / self.units


class LayerArrayUse(NamedTuple):
    """Use of the array while one layer computes, or while several equal layers compute one after another."""

    layer: str
    entry: str
    """Name of the layer's entry in the mapping file; '' if the mapping is not known."""
    sides: tuple[SideUse, ...]
    """Sides in the order of the hardware file."""
    computing_cycles: float
    """Cycles in which the array computes: ideal cycles plus spatial stall."""
    stall_cycles: float
    """Cycles of the spatial stall, which is caused by idle units."""
    by_mapping_file_cycles: float | None
    """Part of the spatial stall that the best generated spatial mapping would avoid, in cycles; None if the mapping
    file of the run is not known.
    """

    @property
    def by_sizes_cycles(self) -> float | None:
        """Part of the spatial stall that even the best generated spatial mapping would have, in cycles; None if the
        mapping file of the run is not known.
        """
        return None if self.by_mapping_file_cycles is None else self.stall_cycles - self.by_mapping_file_cycles


@dataclass(frozen=True)
class ArrayUses:
    """Use of the array in all layers of a run."""

    layers: tuple[LayerArrayUse, ...]
    """Layers in execution order."""
    places: Table[tuple[str, str], str] = field(default_factory=dict)
    """Text with the file and the line at which an entry of the mapping file fixes the loops along an array dimension.
    The keys are pairs (name of the entry, array dimension). Only texts for users need these lines.
    """

    @property
    def units(self) -> dict[str, int]:
        """Number of units by array dimension."""
        return {side.array_dimension: side.units for one in self.layers[:1] for side in one.sides}

    @property
    def shares(self) -> dict[str, float]:
        """Share of working units by array dimension, on average over the cycles in which the array computes."""
        total = math.fsum(one.computing_cycles for one in self.layers)
        sums = dict.fromkeys(self.units, 0.0)
        for one in self.layers:
            for side in one.sides:
                sums[side.array_dimension] += side.share * one.computing_cycles
        return {name: value / total if total else 1.0 for name, value in sums.items()}

    @property
    def never_full(self) -> dict[str, int]:
        """Largest number of lanes that the mapping file fixes in any layer, by array dimension.

        An array dimension is listed only if the mapping file fixes its lanes in every layer, and always fixes fewer
        lanes than the dimension has units.
        """
        found = {}
        for name, units in self.units.items():
            sides = [side for one in self.layers for side in one.sides if side.array_dimension == name]
            lanes = [side.fixed_lanes for side in sides if side.fixed_lanes is not None]
            if len(lanes) == len(sides) and max(lanes) < units:
                found[name] = max(lanes)
        return found

    @property
    def by_mapping_file_cycles(self) -> float:
        """Cycles of spatial stalls caused by the mapping file."""
        return math.fsum(one.by_mapping_file_cycles or 0.0 for one in self.layers)

    def of_layer(self, layer: str) -> "ArrayUses":
        """Copy of this object with only the layers called `layer`."""
        return replace(self, layers=tuple(one for one in self.layers if one.layer == layer))

    def as_object(self) -> dict[str, Any]:
        """Use of the array in all layers, as a JSON object. File paths are left out, because artifacts contain no
        paths."""
        sides = [
            {"array_dimension": name, "units": units, "share": self.shares[name]} for name, units in self.units.items()
        ]
        return {"sides": sides, "layers": [_layer_object(one) for one in self.layers]}


def _layer_object(one: LayerArrayUse) -> JsonObject:
    sides = {side.array_dimension: _side_object(side) for side in one.sides}
    parts = {"by_mapping_file_cycles": one.by_mapping_file_cycles, "by_sizes_cycles": one.by_sizes_cycles}
    return {
        "layer": one.layer,
        "mapping_entry": one.entry,
        "sides": sides,
        "spatial_stall_cycles": one.stall_cycles,
        **parts,
    }


def _side_object(side: SideUse) -> JsonObject:
    return {"loops": dict(side.loops), "lanes": side.lanes, "share": side.share, "fixed": side.is_fixed}


def array_uses(
    placed: Sequence[PlacedLayer], core: Core, network: Workload, mapping: Mapping | None, options: SearchOptions
) -> ArrayUses:
    """Use of the array of `core` in each layer of a run.

    `mapping` is the mapping of the run, or None if it is not known. `options` are the search options of the run, which
    decide which spatial mappings are generated. All layers of the run must be in `network`.
    """
    layers = {node.layer.name: node.layer for node in network.nodes if node.layer is not None}
    found: dict[int, LayerArrayUse] = {}
    result = []
    for one in placed:
        if one.record_index not in found:
            record = one.of_one
            found[one.record_index] = _layer_use(record, core, layers[record.layer.name], mapping, options)
        result.append(_times(found[one.record_index], one.name, one.repeats))
    return ArrayUses(tuple(result))


def _layer_use(
    record: LayerRecord, core: Core, layer: Layer, mapping: Mapping | None, options: SearchOptions
) -> LayerArrayUse:
    parts = record.latency_breakdown_cycles
    stall = parts.get("spatial_stall", 0.0)
    computing = parts.get("ideal", 0.0) + stall
    entry = None if mapping is None else mapping.constraints_for(layer)
    given = () if entry is None else entry.spatial_mapping
    fixed = {name: math.prod(lanes for _, lanes in factors) for name, factors in given}
    by_file = None
    if entry is not None:
        generated = _generated_cycles(record, core, layer, entry, options) if fixed else math.inf
        by_file = min(stall, max(0.0, computing - generated))
    return LayerArrayUse(
        record.layer.name,
        "" if entry is None else entry.name,
        _sides(record, core, layer, fixed),
        computing,
        stall,
        by_file,
    )


def _sides(record: LayerRecord, core: Core, layer: Layer, fixed: Table[str, int]) -> tuple[SideUse, ...]:
    lanes = _lanes(record, layer)
    sides = []
    for name, units in core.operational_array.dimensions:
        loops = tuple((dimension, int(factor)) for dimension, factor in record.spatial_mapping.get(name, {}).items())
        sides.append(SideUse(name, units, loops, lanes.get(name, 1.0), fixed.get(name)))
    return tuple(sides)


def _lanes(record: LayerRecord, layer: Layer) -> dict[str, float]:
    """Mean number of working units along each array dimension, over the passes. The number of operations of the layer
    is the product of these means over all array dimensions, times the number of passes.

    If the number of lanes does not divide the size of a loop, units are idle in the last pass over the loop. If such a
    loop is unrolled along several array dimensions, the idle units are assigned to the dimension with most lanes of the
    loop. If several dimensions have equally many lanes, the first of them is chosen.
    """
    found: dict[str, float] = dict.fromkeys(record.spatial_mapping, 1.0)
    for dimension, size in layer.loop_sizes:
        along = {name: own[dimension] for name, own in record.spatial_mapping.items() if dimension in own}
        passes = math.prod(count for name, count in record.loop_order if name == dimension)
        fullest = max(along, key=lambda name: along[name], default="")
        for name, lanes in along.items():
            found[name] *= lanes * (size / (passes * math.prod(along.values())) if name == fullest else 1)
    return found


def _generated_cycles(
    record: LayerRecord, core: Core, layer: Layer, entry: MappingConstraints, options: SearchOptions
) -> float:
    """Cycles in which the array computes the layer with the best spatial mapping that the search would generate;
    infinite if no spatial mapping fits. A spatial mapping that the mapping file fixes is ignored.
    """
    profile, free = profile_by_name(record.model), replace(entry, spatial_mapping=())
    own = core_for(layer, core, replace(entry, memory_reach=_reach(record) or entry.memory_reach))
    best = math.inf
    try:
        for one in _tried(layer, own, free, profile, options):
            if one.rest_passes >= best:
                break
            if one.passes >= best:
                continue
            with suppress(MappingError):
                spatial = convert_spatial_mapping(one.unrolling, layer, own, entry.memory_operand_links, profile)
                best = min(best, math.prod(size for _, size in spatial.temporal_sizes))
    except MappingError:
        return math.inf
    return best * record.cycles_per_operation


def _tried(
    layer: Layer, core: Core, entry: MappingConstraints, profile: ModelProfile, options: SearchOptions
) -> Iterator[SpatialChoice]:
    """Spatial mappings that a search tries. Raises MappingError if no spatial mapping is possible.

    The result has all spatial mappings, those with most lanes first, if three conditions hold: the search engine
    computes bounds, the number of mappings is not limited, and the mapping file gives no level boundaries. Otherwise,
    the result has only the proposals of the generator, each with 0 as the lower bound on its passes.
    """
    has_bounds, mixed = options.of_bounds is not None, options.enable_mix_spatial_mapping
    count = options.spatial_count(has_bounds)
    if has_bounds and not count and not entry.level_boundaries:
        yield from SpatialSpace(layer, core, entry, profile, mixed)
        return
    for unrolling in spatial_candidates(layer, core, entry, profile, count, mixed):
        yield SpatialChoice(unrolling, 0, 0.0)


def _reach(record: LayerRecord) -> GivenReach | None:
    """Outermost memory that each operand of the layer used in the run, and the bits that data of other layers occupied
    in each memory; None if they are not known.
    """
    reach = record.memory_reach
    return None if reach is None else GivenReach(tuple(reach.topmost.items()), tuple(reach.occupied_bits.items()))


def _times(use: LayerArrayUse, layer: str, count: int) -> LayerArrayUse:
    by_file = None if use.by_mapping_file_cycles is None else use.by_mapping_file_cycles * count
    computing, stall = use.computing_cycles * count, use.stall_cycles * count
    return use._replace(layer=layer, computing_cycles=computing, stall_cycles=stall, by_mapping_file_cycles=by_file)


MOST_ROWS = 8
LEAST_SHARE = 0.01
"""Smallest spatial stall, as a share of the latency, for which a table of stalls is printed."""
SIZES = "the sizes of the layers"
UNKNOWN = "not known without --mapping"


@dataclass
class _Row:
    """Row of a table: all layers with the same cause of idle units and the same loops along each side of the array."""

    sides: list[str]
    cause: str
    cycles: float = 0.0
    layers: set[str] = field(default_factory=set)
    weights: list[tuple[float, tuple[float, ...]]] = field(default_factory=list)
    """Pairs (computing cycles of the layer, share of working units on each side of the array), one pair for each layer.
    """

    def cells(self) -> list[str]:
        """Texts, one for each side of the array: the loops along the side, and the mean share of working units along
        the side.
        """
        total = math.fsum(weight for weight, _ in self.weights)
        shares = [math.fsum(weight * shares[k] for weight, shares in self.weights) for k in range(len(self.sides))]
        return [f"{loops}: {share_text(share, total)}" for loops, share in zip(self.sides, shares, strict=True)]


def array_text(uses: ArrayUses, latency_cycles: float) -> str:
    """Text on the causes of idle units, and on the share of working units along each side of the array. The text is ''
    if the spatial stalls are below LEAST_SHARE of `latency_cycles`.
    """
    stall = math.fsum(one.stall_cycles for one in uses.layers)
    if stall < LEAST_SHARE * latency_cycles:
        return ""
    rows = sorted(_rows(uses).values(), key=lambda row: -row.cycles)
    names = [terminal(f"{name} of {units}") for name, units in uses.units.items()]
    table = text_table("Causes of the spatial stall", (*names, "because of"), ("layers", "cycles", "share"))
    shown = [row for row in rows[:MOST_ROWS] if row.cycles >= SMALLEST_SHOWN * latency_cycles] or rows[:1]
    for row in shown:
        table.add_row(
            *row.cells(), row.cause, str(len(row.layers)), f"{row.cycles:,.0f}", share_text(row.cycles, latency_cycles)
        )
    rest = math.fsum(row.cycles for row in rows[len(shown) :])
    if rest:
        told = f"{rest:,.0f}", share_text(rest, latency_cycles)
        table.add_row(*[""] * len(names), f"others: {len(rows) - len(shown)}", "", *told)
    return render(table) + ended_lines(_lines(uses, latency_cycles), "  ")


def _lines(uses: ArrayUses, latency_cycles: float) -> list[str]:
    full = ", ".join(f"{name} {share_text(share, 1.0)}" for name, share in uses.shares.items())
    lines = [f"{WORKING_SHARES}: {full}"]
    lines += [
        f"the loops of the mapping file use at most {lanes} of the {uses.units[side]} units along {side}:"
        " the other units never work"
        for side, lanes in uses.never_full.items()
    ]
    by_file = uses.by_mapping_file_cycles
    if by_file >= LEAST_SHARE * latency_cycles:
        share = share_text(by_file, latency_cycles)
        lines.append(
            f"the best generated spatial mappings would avoid {by_file:,.0f} of the stall cycles"
            f" ({share} of the latency);"
        )
        lines.append(
            "the mapping file fixes other spatial mappings: `tilewright advise` computes the effect of changing them"
        )
    return lines


def _rows(uses: ArrayUses) -> dict[tuple[str, ...], _Row]:
    found: dict[tuple[str, ...], _Row] = {}
    for one in uses.layers:
        sides = [" ".join(f"{name} {lanes}" for name, lanes in side.loops) or NOTHING for side in one.sides]
        for cause, cycles in _causes(uses, one):
            if cycles > 0:
                row = found.setdefault((cause, *sides), _Row(sides, cause))
                row.cycles += cycles
                row.layers.add(one.layer)
                row.weights.append((one.computing_cycles, tuple(side.share for side in one.sides)))
    return found


def _causes(uses: ArrayUses, one: LayerArrayUse) -> list[tuple[str, float]]:
    if one.by_mapping_file_cycles is None or one.by_sizes_cycles is None:
        return [(UNKNOWN, one.stall_cycles)]
    fixed = [side.array_dimension for side in one.sides if side.is_fixed and side.share < 1]
    places = [uses.places.get((one.entry, name), "") for name in fixed]
    where = next((place for place in places if place), f"entry {one.entry} of the mapping file")
    return [(f"{where} ({', '.join(fixed)})", one.by_mapping_file_cycles), (SIZES, one.by_sizes_cycles)]
