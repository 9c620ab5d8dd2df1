"""Totals of a network: sums over the records of its layers, which run one after another, as in zigzag-dse 3.9.1."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilewright.base.artifacts.codec import decode, encode
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import AREA_MM2, EDP_PJ_CYCLES, ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.objectives import OBJECTIVES, Powers, energy_delay_product
from tilewright.base.profile import profile_by_name
from tilewright.base.proof import Bounded
from tilewright.cost.energy_terms import energy_term_names
from tilewright.cost.ledger import energy_columns
from tilewright.cost.rates import rates, summary_figures
from tilewright.cost.record import LayerRecord, number, times
from tilewright.hardware.core import Core
from tilewright.hardware.static_power import clock_period_ns, static_power_fields, static_power_mw
from tilewright.mapping.runnable import coverage_fields, coverage_of, unmodelled_work
from tilewright.search.cost_ranges import cost_ranges
from tilewright.search.front import front_of, network_front
from tilewright.search.run_bound import NO_ENDS, FrontEnd, FrontEnds, LayerBounds, Line, run_bound
from tilewright.workload.graph import Workload
from tilewright.workload.layer import operand_bits_of

NOTABLE_DIFFERENCE = 0.05
"""Threshold for the relative difference between the results of a layer and its results under the profile `corrected`.
The summary names each layer whose difference exceeds this threshold.
"""


def summarize(
    workload: Workload,
    core: Core,
    objective: str,
    model: str,
    records: tuple[LayerRecord, ...],
    coverage: JsonObject | None = None,
    data_locality: JsonObject | None = None,
) -> JsonObject:
    """Summary of a mapped network. Sums are added in execution order, over one record per layer (`one_a_layer`).

    `coverage` is the work for which there is a cost (`mapping.runnable`); the default is the work of all layers of the
    workload. `data_locality` describes in which memories data stay between layers.
    """
    indexes_of: dict[str, list[int]] = {}
    for i, record in enumerate(records):
        for name in record.layer_names:
            indexes_of.setdefault(name, []).append(i)
    counted = [(node.layer.name, node.repeats) for node in workload.layers_in_order if node.layer is not None]
    placed = [(name, i, count) for name, count in counted for i in indexes_of.get(name, ())]
    in_order = [times(records[i], count) for _, i, count in placed]
    energy, latency = total_in_order(r.energy_pj for r in in_order), total_in_order(r.latency_cycles for r in in_order)
    mac_count = sum(record.layer.mac_count for record in in_order)
    parts = in_order[0].latency_breakdown_cycles if in_order else {}
    figures = summary_figures(core, profile_by_name(model))
    ranges = cost_ranges(core, in_order, energy, figures[AREA_MM2], profile_by_name(model))
    return (
        _certificate(records, [(records[i], count) for _, i, count in placed], objective, energy, latency)
        | _front([(records[i], count) for _, i, count in placed], energy, latency)
        | _without_proof(records)
        | (data_locality or {})
        | ({"cost_ranges": ranges} if ranges else {})
        | _alternatives(records)
        | {
            "workload": workload.name,
            "hardware": core.name,
            "objective": objective,
            "model": model,
            "layers": sum(count for _, count in counted),
            "distinct_layers": len({record.layer_names for record in records}),
            ENERGY_PJ: energy,
            LATENCY_CYCLES: latency,
            EDP_PJ_CYCLES: energy_delay_product(energy, latency),
            **energy_columns(
                {
                    term: total_in_order(record.energy_terms_pj[term] for record in in_order)
                    for term in energy_term_names(core)
                }
            ),
            "operand_bits": operand_bits_of(record.layer.precision_bits for record in in_order),
            "mac_count": mac_count,
            "operation_count": sum(record.layer.operation_count for record in in_order),
            **figures,
            **rates(clock_period_ns(core), latency, energy, mac_count, static_power_mw(core), figures[AREA_MM2]),
            **(static_power_fields([core]) if clock_period_ns(core) else {}),
            "latency_breakdown_cycles": {
                part: number(sum(record.latency_breakdown_cycles[part] for record in in_order)) for part in parts
            },
            "evaluations": sum(record.evaluations or 0 for record in records),
            "corrected": {
                ENERGY_PJ: _total_if_known(record.corrected.energy_pj for record in in_order),
                LATENCY_CYCLES: _total_if_known(record.corrected.latency_cycles for record in in_order),
            },
            "layers_differing_over_5_percent": list(
                dict.fromkeys(n for n, i, _ in placed if differs_notably(records[i]))
            ),
            **coverage_fields(workload, coverage or coverage_of(workload, unmodelled_work(workload))),
            "layer_index": [[name, i] if count == 1 else [name, i, count] for name, i, count in placed],
        }
    )


def one_a_layer(records: Iterable[LayerRecord]) -> tuple[LayerRecord, ...]:
    """First record of each layer. Further records of a layer are left out, because a network runs each layer only once.
    The field `alternatives` of a record is the number of further records of the same layer."""
    kept: dict[int, LayerRecord] = {}
    place_of: dict[str, int] = {}
    for record in records:
        names = tuple(name for name in record.names if name not in place_of)
        for place in {place_of[name] for name in record.names if name in place_of}:
            kept[place] = replace(kept[place], alternatives=kept[place].alternatives + 1)
        if names:
            place_of.update(dict.fromkeys(names, len(kept)))
            layer = record.layer if record.layer.name in names else record.layer._replace(name=names[0])
            same = names == record.names
            kept[len(kept)] = record if same else replace(record, layer=layer, layer_names=names)
    return tuple(kept.values())


def _alternatives(records: tuple[LayerRecord, ...]) -> JsonObject:
    """Number of further mappings that stages returned, and number of layers with further mappings; {} if both are 0."""
    counts = [record.alternatives for record in records if record.alternatives]
    return {"alternatives": {"mappings": sum(counts), "distinct_layers": len(counts)}} if counts else {}


def _certificate(
    records: tuple[LayerRecord, ...],
    placed: Sequence[tuple[LayerRecord, int]],
    objective: str,
    energy_pj: float,
    latency_cycles: float,
) -> JsonObject:
    """Certificate of a network: number of layer records whose mapping is proven to be optimal, largest gap, and lower
    bound of the network.

    The gap of a layer refers to one measure. The measure is the objective of the layer, or a weighted sum of energy and
    latency if the mapping was chosen for the EDP of the network. The certificate also states which space the proofs
    cover. The bound of the network is left out if the search of some layer gives no certificate.

    `placed` has pairs (record of a layer, number of repeats) in execution order. `energy_pj` and `latency_cycles` are
    totals of the network. Returns {} if no search gives a certificate.
    """
    searches = [record.search for record in records if "proven" in record.search]
    if not searches:
        return {}
    measures = [search.get("for_network", search) for search in searches]
    proven = sum(bool(measure["proven"]) for measure in measures)
    said = {
        key: list(dict.fromkeys(str(search[name]) for search in searches if name in search))
        for key, name in (("covers", "covers"), ("allocations", "allocation"), ("engines", "engine"))
    }
    largest_gap = max(measure["gap"] for measure in measures)
    certificate: JsonObject = {"proven": proven, "of": len(records), "largest_gap": largest_gap, **said}
    if chosen := sum("for_network" in search for search in searches):
        certificate["chosen_for_network"] = chosen
    if len(searches) == len(records) and objective in OBJECTIVES:
        powers = OBJECTIVES[objective]
        bound = bound_of_run(placed, powers, powers.value(energy_pj, latency_cycles))
        certificate |= {"run": bound.stated(), **_ends_of_run(placed)}
    return {"certificate": certificate | _least_value_of_run(placed)}


def bound_of_run(placed: Sequence[tuple[LayerRecord, int]], powers: Powers, value: float) -> Bounded:
    """Value of the objective of a network with its lower bound. `placed` has pairs (layer with a lower bound, number of
    repeats)."""
    layers = [layer_bounds(record.search, count) for record, count in placed]
    return Bounded(value, min(value, run_bound(layers, powers)))


def layer_bounds(search: Mapping[str, Any], count: int) -> LayerBounds:
    """Lower bounds of a layer that runs `count` times, from the notes `search` of its record."""
    lines = tuple(decode(Line, line) for line in search.get("lines", ()))
    return LayerBounds(*_bounds_of_both(search), search["lower_bound"], count, lines)


def _ends_of_run(placed: Sequence[tuple[LayerRecord, int]]) -> JsonObject:
    """Ends of the Pareto front of the network: the mappings of least energy, and the mappings of least latency. The
    values at each end are sums over all layers, and each layer counts as often as it runs. The result is {} if the ends
    of the front are unknown for some layer.
    """
    if not placed or not all(record.search.get("ends") for record, _ in placed):
        return {}
    total = NO_ENDS
    for record, count in placed:
        total = total.plus(decode(FrontEnds, record.search["ends"]), count)
    return {"ends": encode(total)}


def _least_value_of_run(placed: Sequence[tuple[LayerRecord, int]]) -> JsonObject:
    """Sums of the energy and the latency of the mappings with the least objective value; {} if no layer names such a
    mapping.

    With the option `near_optimum`, the search of a layer can choose another mapping of nearly the same value, and then
    also records the mapping with the least value. A layer that records no such mapping counts with its chosen mapping.
    """
    total, is_near = FrontEnd(0.0, 0.0), False
    for record, count in placed:
        own = FrontEnd(record.energy_pj, float(record.latency_cycles))
        stated = record.search.get("least_value")
        is_near |= stated is not None
        total = total.plus(own if stated is None else decode(FrontEnd, stated), count)
    return {"least_value": {ENERGY_PJ: total.energy_pj, LATENCY_CYCLES: total.latency_cycles}} if is_near else {}


def _bounds_of_both(search: Mapping[str, Any]) -> tuple[float, float]:
    """Pair of lower bounds of a layer (energy in pJ, latency in cycles); (0, 0) if the bounds are unknown.

    The search of a layer states both bounds directly (`lower_bounds`), or together with the mappings of least energy
    and of least latency (`ends`).
    """
    if bounds := search.get("lower_bounds"):
        return bounds[ENERGY_PJ], bounds[LATENCY_CYCLES]
    if stated := search.get("ends"):
        ends = decode(FrontEnds, stated)
        return ends.energy.lower_bound, ends.latency.lower_bound
    return 0.0, 0.0


def _front(placed: Sequence[tuple[LayerRecord, int]], energy_pj: float, latency_cycles: float) -> JsonObject:
    """Pareto front of the network as a JSON object with the key `front`; {} if no layer has a front. The front has its
    knee and its largest distance (miss) from the complete front. The front also has the index of the point with the
    energy and latency of this run.

    If only some layers have a front, the object names the layers without a front instead.
    """
    stated = [record.search.get("front") for record, _ in placed]
    if not any(stated):
        return {}
    if not all(stated):
        return {
            "front": {
                "layers_without_front": [record.layer.name for record, _ in placed if not record.search.get("front")]
            }
        }
    layers = [(front_of(record.search["front"]), count) for record, count in placed]
    front = network_front(layers)
    return {
        "front": {
            **encode(front),
            "knee": front.knee,
            "largest_miss": front.stated_miss,
            "point_of_run": front.point_at(energy_pj, latency_cycles),
        }
    }


def _without_proof(records: tuple[LayerRecord, ...]) -> JsonObject:
    """Object that names, for each reason, the layers for which an exact search gave no proof; {} if there are no such
    layers.
    """
    reasons: dict[str, list[str]] = {}
    for record in records:
        if "no_proof" in record.search:
            reasons.setdefault(str(record.search["no_proof"]), []).extend(record.names)
    return {"without_proof": reasons} if reasons else {}


def total_in_order(values: Iterable[float]) -> float:
    """Sum of the values, added from first to last, because another order can change the last bit."""
    total = 0.0
    for value in values:
        total += value
    return total


def _total_if_known(values: Iterable[float | None]) -> float | None:
    known = list(values)
    return None if None in known else float(sum(value for value in known if value is not None))


def differs_notably(record: LayerRecord) -> bool:
    """True if the record and the profile `corrected` differ notably: energies or latencies differ by more than
    NOTABLE_DIFFERENCE (5 %), or the mapping does not fit under `corrected`.
    """
    pairs = (
        (record.corrected.energy_pj, record.energy_pj),
        (record.corrected.latency_cycles, record.latency_cycles),
    )
    return any(corrected is None or abs(corrected - own) > NOTABLE_DIFFERENCE * own for corrected, own in pairs)
