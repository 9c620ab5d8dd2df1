"""Text and table of the Pareto front of a network, from the `front` of its `summary.json`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import count_of, some_of
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.units import energy_text
from tilewright.cost.record import LayerRecord
from tilewright.results.proof_text import price_line
from tilewright.search.front import front_of
from tilewright.search.run_bound import FrontEnd

if TYPE_CHECKING:
    import pandas

    from tilewright.results.reported_mapping import ReportedMapping


def front_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Lines for the terminal on the Pareto front of a network; no lines if the run has no front.

    The lines state the trade-off between energy and latency, the knee, the largest possible distance of the front from
    the complete front, and the point of the run.
    """
    stated = summary.get("front")
    if stated is None:
        return
    if lacking := stated.get("layers_without_front"):
        layers = count_of(len(lacking), "layer")
        yield f"no Pareto front of the network: it has {layers} without a front ({some_of(lacking)})"
        return
    front = front_of(stated)
    run = FrontEnd(summary[ENERGY_PJ], summary[LATENCY_CYCLES])
    yield f"on the Pareto front that was found, {price_line(replace(front.ends, chosen=run))}"
    knee, place = front.ends.chosen, stated["point_of_run"]
    yield (
        f"Pareto front of the network: {count_of(len(front.points), 'point')}, the knee at"
        f" {energy_text(knee.energy_pj)} and {knee.latency_cycles:,.0f} cycles"
        + (f"; the run is point {place + 1}, counted from the least latency" if place is not None else "")
    )
    miss = front.stated_miss
    if miss is None:
        yield "the bounds of the layers give no limit on the distance of the complete front from these points"
        return
    if front.is_complete:
        yield (
            "this front is complete: for each mapping that the searches cover, a point of the front is at least as good"
            " in both measures"
        )
        return
    yield (
        "for any mappings that the bounds of the layers cover, some point of this front has"
        f" at most {miss:.2%} more energy and at most {miss:.2%} more cycles than these mappings"
    )


def front_rows(summary: Mapping[str, Any]) -> list[JsonObject]:
    """Points of the front as rows of a table, from the least latency to the least energy; [] without a front."""
    stated = summary.get("front", {})
    return [
        {
            ENERGY_PJ: one[ENERGY_PJ],
            LATENCY_CYCLES: one[LATENCY_CYCLES],
            "is_knee": place == stated["knee"],
            "is_run": place == stated["point_of_run"],
        }
        for place, one in enumerate(stated.get("points", ()))
    ]


def front_table(summary: Mapping[str, Any]) -> "pandas.DataFrame | None":
    """Points of the front as a table, from the least latency to the least energy; None if the run has no front."""
    rows = front_rows(summary)
    if not rows:
        return None
    import pandas

    return pandas.DataFrame(rows)


def point_roles(summary: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """Roles of each point of the front of a run, such as (`knee`, `this run`); () if the run has no front."""
    stated = summary.get("front", {})
    if "points" not in stated:
        return ()
    last = len(stated["points"]) - 1
    places = {"least latency": 0, "least energy": last, "knee": stated["knee"], "this run": stated["point_of_run"]}
    return tuple(tuple(role for role, at in places.items() if at == place) for place in range(last + 1))


def reported_points(run: "ReportedMapping") -> "pandas.DataFrame | None":
    """Table of the front for the report of a run, with the role of each point; None if the run has no front."""
    table = front_table(run.summary)
    if table is None:
        return None
    shown = table[[ENERGY_PJ, LATENCY_CYCLES]].assign(role=[", ".join(roles) for roles in point_roles(run.summary)])
    shown.insert(0, "point", range(1, len(shown) + 1))
    return shown


def front_document(summary: Mapping[str, Any], records: Sequence[LayerRecord]) -> JsonObject:
    """Front of a network as a JSON value: the front of the whole network, and the front of each layer with the mapping
    of each point.

    A point of the network's front combines one point of each layer's front. Its field `of_layers` has the indices of
    these points, in the order of `layers`.
    """
    layers = [
        {"layer": name, "count": count[0] if count else 1, **records[index].search["front"]}
        for name, index, *count in summary["layer_index"]
    ]
    named = {name: summary[name] for name in ("workload", "hardware", "model", "objective")}
    return {**named, "network": summary["front"], "layers": layers}


def front_columns(summary: Mapping[str, Any]) -> JsonObject:
    """Columns, in a table of runs, that describe the Pareto front of a run. They have the number of points, an upper
    limit of the distance from the complete front, and the energy and latency of three points: the knee and both ends.
    {} if the run has no front.
    """
    stated = summary.get("front", {})
    if "points" not in stated:
        return {}
    front = front_of(stated)
    knee, last, first = front.ends.chosen, front.ends.energy, front.ends.latency
    return {
        "front_points": len(front.points),
        "front_largest_miss": front.stated_miss,
        "front_knee_energy_pj": knee.energy_pj,
        "front_knee_latency_cycles": knee.latency_cycles,
        "front_least_energy_pj": last.energy_pj,
        "front_least_energy_latency_cycles": last.latency_cycles,
        "front_least_latency_cycles": first.latency_cycles,
        "front_least_latency_energy_pj": first.energy_pj,
    }
