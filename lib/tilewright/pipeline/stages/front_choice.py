"""Choice of one point of a network's Pareto front.

The mappings of this point then become the mappings of the run.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilewright.base.errors import InputError, Problem, UnmetLimitError
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.units import budget_pj, energy_text, share_of_percent
from tilewright.cost.record import LayerRecord
from tilewright.hardware.core import Core
from tilewright.hardware.static_power import clock_period_ns
from tilewright.mapping.constraints import MappingConstraints, TemporalOrderingEntry
from tilewright.pipeline.stages.base import Control
from tilewright.pipeline.stages.descriptions import NetworkProblem
from tilewright.pipeline.stages.items import MappedWorkload
from tilewright.pipeline.stages.pipeline import Pipeline
from tilewright.pipeline.stages.run import default_pipeline, map_some_layers, summed_again
from tilewright.search.front import BoundedFront, FrontPoint, PointMapping, front_of
from tilewright.search.options import MapOptions, SearchOptions
from tilewright.workload.layer import Layer

NS_A_MS = 1e6
LEAST_SHOWN = 1e-4
"""Smallest excess over a deadline or budget, as a share, that messages print as a number. A smaller excess is printed
as `less than 0.01% more`.
"""


def check_clock(options: MapOptions, core: Core) -> None:
    """Raise InputError for a deadline in ms if the core has no clock."""
    if options.deadline_ms is not None and not clock_period_ns(core):
        message = f"a deadline in ms needs a clock, and core '{core.name}' has no clock_frequency in its hardware file"
        raise InputError([Problem(message, path="deadline_ms", value=f"{options.deadline_ms:g}")])


def chosen_point(front: BoundedFront, options: MapOptions, core: Core) -> int:
    """Index of the front's point that the options choose. Raises UnmetLimitError if no point meets the deadline or the
    energy budget; the message names the nearest point.
    """
    points = front.points
    if options.latency_slack is not None:
        limit = points[0].latency_cycles * (1 + share_of_percent(options.latency_slack))
        return max(place for place, one in enumerate(points) if one.latency_cycles <= limit)
    if options.energy_slack is not None:
        limit = points[-1].energy_pj * (1 + share_of_percent(options.energy_slack))
        return min(place for place, one in enumerate(points) if one.energy_pj <= limit)
    if options.energy_budget is not None:
        limit = budget_pj(options.energy_budget)
        met = [place for place, one in enumerate(points) if one.energy_pj <= limit]
        if not met:
            raise UnmetLimitError(_energy_text(points[-1], limit, front))
        return min(met)
    assert options.deadline_ms is not None
    period_ns = clock_period_ns(core) or math.nan
    met = [place for place, one in enumerate(points) if one.latency_cycles * period_ns <= options.deadline_ms * NS_A_MS]
    if not met:
        raise UnmetLimitError(_deadline_text(points[0], options.deadline_ms, period_ns, front))
    return max(met)


def _energy_text(nearest: FrontPoint, limit: float, front: BoundedFront) -> str:
    bound = front.lines[0].level_pj
    return (
        f"no point of the front stays within the energy budget of {energy_text(limit)}: the nearest point needs"
        f" {energy_text(nearest.energy_pj)} ({_more(nearest.energy_pj / limit)}) and"
        f" {nearest.latency_cycles:,.0f} cycles; {_proof(bound, limit)}"
    )


def _deadline_text(nearest: FrontPoint, deadline_ms: float, period_ns: float, front: BoundedFront) -> str:
    needed_ms = nearest.latency_cycles * period_ns / NS_A_MS
    bound_ms = front.least_latency_cycles * period_ns / NS_A_MS
    return (
        f"no point of the front meets the deadline of {deadline_ms:g} ms: the nearest point needs {needed_ms:.6g} ms"
        f" ({_more(needed_ms / deadline_ms)}, {nearest.latency_cycles:,.0f} cycles) and"
        f" {energy_text(nearest.energy_pj)}; {_proof(bound_ms, deadline_ms)}"
    )


def _more(ratio: float) -> str:
    if ratio - 1 < LEAST_SHOWN:
        return f"less than {LEAST_SHOWN:.2%} more"
    return f"{ratio - 1:.2%} more" if ratio < 10 else f"{ratio:,.0f} times as much"


def _proof(bound: float, limit: float) -> str:
    if bound > limit:
        return "the lower bound proves that no mapping that the search covers meets this limit"
    return "a mapping that meets this limit may exist, because the lower bound is below the limit"


def choose(
    problem: NetworkProblem, mapped: MappedWorkload, options: MapOptions, stages: Pipeline, control: Control
) -> MappedWorkload:
    """Mapped network with the mappings of the point that `options` choose from its Pareto front. `mapped` must be the
    result of a search for this front. The mappings of the point are evaluated again by the default stages.

    Raises InputError if a layer has no front, and UnmetLimitError if no point meets the limit.
    """
    stated: JsonObject = mapped.summary.get("front", {})
    if "points" not in stated:
        lacking = [record.layer.name for record in mapped.records if "front" not in record.search]
        message = "no point can be chosen, because these layers have no Pareto front"
        raise InputError([Problem(message, value=", ".join(dict.fromkeys(lacking)))])
    front = front_of(stated)
    point = front.points[chosen_point(front, options, problem.core)]
    records = records_at(problem, mapped.summary, point, mapped.records, options, control)
    again = summed_again(problem, stages, records)
    for name, value in ((ENERGY_PJ, point.energy_pj), (LATENCY_CYCLES, point.latency_cycles)):
        assert math.isclose(again.summary[name], value, rel_tol=1e-9), (name, again.summary[name], value)
    return again


def records_at(
    problem: NetworkProblem,
    summary: Mapping[str, Any],
    point: FrontPoint,
    records: Sequence[LayerRecord],
    options: SearchOptions,
    control: Control,
) -> list[LayerRecord]:
    """Records of the given layers with the mappings of one point of the network's Pareto front. The costs of these
    mappings are computed again.

    `records` are earlier records of some or all layers of the network. Each of them must have the Pareto front of its
    layer.
    """
    of_name = {name: record for record in records for name in record.names}
    layer_of = {node.layer.name: node.layer for node in problem.workload.layers_in_order if node.layer is not None}
    entries: dict[str, MappingConstraints] = {}
    fronts: dict[str, object] = {}
    for (name, *_), place in zip(summary["layer_index"], point.of_layers, strict=True):
        if name not in of_name:
            continue
        fronts[name] = note = of_name[name].search["front"]
        mapping = front_of(note).points[place].mapping
        assert mapping is not None
        layer = layer_of[name]
        entries[name] = _constraints(problem.mapping.constraints_for(layer), layer, mapping, problem.core)
    given = replace(problem, mapping=replace(problem.mapping, entries=(*entries.values(), *problem.mapping.entries)))
    plain = options.part(SearchOptions, temporal_mapping_search_engine="loma", lpf_limit=None, front=False)
    quiet = replace(control, on_record=None, show_progress=False)
    return [
        replace(record, search={"front": fronts[record.names[0]]}, objective=options.objective)
        for record in map_some_layers(given, default_pipeline(plain), entries, quiet)
    ]


def _constraints(given: MappingConstraints, layer: Layer, mapping: PointMapping, core: Core) -> MappingConstraints:
    """Constraints that fix the mapping of a layer completely. Loops with one iteration are left out, because they
    change nothing.
    """
    loops = [loop for loop in mapping.loop_order if loop[1] != 1]
    boundaries: tuple[tuple[str, tuple[int, ...]], ...] = ()
    if mapping.level_boundaries is not None and loops:
        counted = [0, *_running_counts(mapping.loop_order)]
        boundaries = tuple(
            (operand, tuple(counted[bound] for bound in bounds))
            for operand, bounds in zip(layer.operands, mapping.level_boundaries, strict=True)
        )
    used = dict(mapping.spatial_mapping)
    unused = tuple((name, ()) for name, _ in core.operational_array.dimensions if name not in used)
    return replace(
        given,
        name=layer.name,
        spatial_mapping=(*mapping.spatial_mapping, *unused),
        spatial_mapping_hint=(),
        temporal_ordering=tuple(TemporalOrderingEntry(*loop) for loop in loops),
        level_boundaries=boundaries,
    )


def _running_counts(loops: tuple[tuple[str, int], ...]) -> list[int]:
    """List with one number for each loop: how many loops, from the first loop to this loop, have more than one
    iteration. `loops` has pairs (dimension, number of iterations).
    """
    counts, total = [], 0
    for _, size in loops:
        total += size != 1
        counts.append(total)
    return counts
