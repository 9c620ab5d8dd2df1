"""Invariants of a run on several cores, verified on its artifacts.

If a search for an allocation claims that its result is optimal, the certificate of this claim is verified, too.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from tilewright.base.artifacts.codec import encode
from tilewright.base.errors import count_of
from tilewright.base.measures import EDP_PJ_CYCLES, ENERGY_PJ, LATENCY_CYCLES
from tilewright.cost.ledger import ROUNDING, agree, on_core_terms
from tilewright.multicore.nodes.graph import ORDERING, CnGraph
from tilewright.multicore.scheduling.assembled import ACTIVATION, AssembledProblem
from tilewright.multicore.scheduling.bounds.lower_bounds import lower_bounds
from tilewright.multicore.scheduling.check.bound_certificate import certificate_faults
from tilewright.multicore.scheduling.check.movement import detour_faults
from tilewright.multicore.scheduling.check.rules import faults_by_rule
from tilewright.multicore.scheduling.core_costs import CoreCostRow
from tilewright.multicore.scheduling.energy_ledger import ON_CORE, terms_of_summary, total_pj
from tilewright.multicore.scheduling.options import CAUSAL, ScheduleSettings
from tilewright.multicore.scheduling.problem import SchedulingProblem
from tilewright.multicore.scheduling.result import ScheduleArtifact
from tilewright.results.checks import Check, result
from tilewright.results.multi.summary import THIS_RUN, core_uses, link_uses, memory_uses


def proof_faults(
    artifact: ScheduleArtifact, summary: Mapping[str, Any], allocation: Mapping[str, Any]
) -> Iterator[str]:
    """Faults of the certificate in `allocation.json`. The certificate proves lower bounds over all allocations, and the
    optimum of a search for allocations. It also lists blocks of allocations that the search excluded.

    Each of the following is a fault:

    * A claimed bound exceeds the bound that the check computes, or differs from the bound in the summary. For the rules
      `core_work` and `link_traffic`, the check computes the bound from the weights in the certificate.
    * A block has a core that is not allowed, or an allocation that is better than the claimed optimum.
    * The schedule is on cores that are not allowed.
    * The claimed lower bound of the objective is above the claimed optimum.
    * The certificate does not have the parts or cores of the schedule.
    """
    certificate, proof = allocation["certificate"], allocation["search"]["proof"]
    choices = certificate["cores"]
    allowed = _allowed(artifact.problem, choices)
    if allowed is None:
        yield f"the {len(choices)} parts of the certificate, or their cores, do not match those of the schedule"
        return
    if not allowed[np.arange(len(allowed)), artifact.schedule.allocation].all():
        yield "the schedule is on cores that the certificate does not allow"
    bounds = certificate["bounds"]
    yield from certificate_faults(artifact.problem, allowed, bounds)
    terms = _if_copied(summary["lower_bound"])["latency_terms"]
    for rule, claim in bounds.items():
        stated = summary["lower_bound"][ENERGY_PJ] if rule == "energy" else terms[rule]
        if claim.get("cycles", claim.get("pj")) != stated:
            yield f"{rule}: the certificate claims {claim}, but the summary has {stated}"
    least = proof["value"] * (1 - ROUNDING)
    for number, block in enumerate(certificate["blocks"]):
        cores = zip(block["cores"], choices, strict=True)
        if any(core is not None and core not in allowed_there for core, allowed_there in cores):
            yield f"block {number} of the certificate has cores that are not allowed"
        if block["best"] is not None and block["best"] < least:
            best = f"better than the claimed best value, {proof['value']}"
            yield f"block {number} of the certificate has an allocation with value {block['best']}, {best}"
    if proof["lower_bound"] > proof["value"]:
        yield f"the lower bound, {proof['lower_bound']}, is above the value of the best allocation, {proof['value']}"


def _allowed(problem: SchedulingProblem, choices: Sequence[Sequence[int]]) -> Any:
    """Array of shape (CNs, cores): True if the CN may run on the core. `choices` has the allowed cores of each part (a
    group of CNs of one layer). None in three cases: `choices` has another number of parts than the problem, a part has
    no core, or a core does not exist in the problem.
    """
    pairs = np.stack((problem.graph.layer, problem.graph.group))
    distinct, part = np.unique(pairs, axis=1, return_inverse=True)
    if distinct.shape[1] != len(choices):
        return None
    table = np.zeros((len(choices), problem.system.core_count), np.bool_)
    for row, cores in zip(table, choices, strict=True):
        if not cores or not all(0 <= core < problem.system.core_count for core in cores):
            return None
        row[list(cores)] = True
    return table[part.reshape(-1)]


_RULES = {
    "nodes": "each node runs once, on a core that can run it, long enough, after its predecessors",
    "cores": "no two nodes overlap on a core; streams last as long as their nodes",
    "data": "data have arrived before they are sent or read, transfers last long enough, results are written off-chip",
    "links": "no link carries more than its width",
    "memories": "the data in a memory are at most its capacity, and at least the data in use",
    "energy": "energy is the sum of its parts, and the parts follow from the logs",
    "logs": "the schedule has its logs",
}


def check_multi_run(
    artifact: ScheduleArtifact,
    summary: Mapping[str, Any],
    graph: CnGraph | None = None,
    costs: Mapping[str, Sequence[CoreCostRow]] | None = None,
    allocation: Mapping[str, Any] | None = None,
    assembled: AssembledProblem | None = None,
) -> list[Check]:
    """Checks of a run on several cores: the rules of schedules, the totals, the bounds, and the use of cores, memories
    and links. Rules and bounds are checked only if the schedule model is causal.

    For each optional artifact that is given, it is also checked that the artifact agrees with the schedule. `assembled`
    is the scheduling problem made from the input files; the problem in `artifact` must be equal to `assembled`.
    """
    checks = _rule_checks(artifact, ScheduleSettings.of(summary["settings"]).has_barriers)
    nodes = count_of(artifact.graph.node_count, "node")
    checks.append(
        result("totals", "the summary has the totals of the schedule", list(_total_faults(artifact, summary)))
    )
    if graph is not None and artifact.schedule_model == CAUSAL and summary["settings"].get("layers_by_off_chip"):
        around = "data that must go through the off-chip memory never move directly"
        checks.append(result("schedule_detours", around, _detour_faults(artifact, summary, graph)))
    if artifact.schedule_model == CAUSAL:
        checks.append(result("bounds", "no total is below its bound", list(_bound_faults(artifact, summary))))
    if costs is not None:
        checks.append(
            result(
                "cores_add_up",
                "numbers of the cores add up to the totals",
                list(_core_faults(artifact, summary, costs)),
            )
        )
        checks.append(
            result(
                "costs",
                f"the costs of {nodes} are those of the cost tables",
                list(_cost_faults(artifact, summary, costs)),
            )
        )
    uses = list(_use_faults(artifact, summary))
    checks.append(result("uses", "cores, memories and links are used between 0 and 100 %", uses))
    if graph is not None:
        same = f"the schedule has the {nodes} and the edges of the CN graph"
        checks.append(result("graph", same, list(_graph_faults(artifact, graph))))
    if allocation is not None:
        checks.append(result("allocation", f"{nodes} are on their cores", list(_place_faults(artifact, allocation))))
    if allocation is not None and "certificate" in allocation:
        proven = "the bounds of the proof follow from their weights, and no block has a better allocation"
        checks.append(result("proof", proven, list(proof_faults(artifact, summary, allocation))))
    if assembled is not None:
        found = list(_problem_faults(artifact, assembled))
        checks.append(result("problem", "the scheduling problem follows from hardware, network and mapping", found))
    return checks


def _rule_checks(artifact: ScheduleArtifact, has_barriers: bool) -> list[Check]:
    if artifact.schedule_model != CAUSAL:
        return []  # no schedule of that model keeps them
    faults = faults_by_rule(artifact.problem, artifact.schedule, has_barriers)
    return [result(f"schedule_{rule}", _RULES[rule], found) for rule, found in faults.items()]


def _detour_faults(artifact: ScheduleArtifact, summary: Mapping[str, Any], graph: CnGraph) -> list[str]:
    ids = set(summary["settings"]["layers_by_off_chip"])
    layers = [number for number, layer in enumerate(graph.layers) if layer.node_id in ids]
    return detour_faults(artifact.problem, artifact.schedule, layers)


def _same(one: Any, other: Any) -> bool:
    if one is None or other is None or isinstance(one, str):
        return bool(one == other)
    return agree(one, other)


def _total_faults(artifact: ScheduleArtifact, summary: Mapping[str, Any]) -> Iterator[str]:
    schedule = artifact.schedule
    pairs = [
        (LATENCY_CYCLES, summary[LATENCY_CYCLES], schedule.latency_cycles),
        (ENERGY_PJ, summary[ENERGY_PJ], schedule.energy_pj),
        ("sum of the parts of the energy", total_pj(terms_of_summary(summary["energy"])), schedule.energy_pj),
        (EDP_PJ_CYCLES, summary[EDP_PJ_CYCLES], schedule.energy_pj * schedule.latency_cycles),
        ("cn_count", summary["cn_count"], artifact.graph.node_count),
        ("edge_count", summary["edge_count"], len(artifact.edges[0])),
    ]
    own = [row for row in summary["baselines"] if row["name"] == THIS_RUN]
    pairs += [(f"{key} of {THIS_RUN}", row[key], summary[key]) for row in own for key in (LATENCY_CYCLES, ENERGY_PJ)]
    for name, given, found in pairs:
        if not _same(given, found):
            yield f"{name} is {given} in the summary, but {found} in the schedule"
    for name, value in _numbers(summary):
        if not math.isfinite(value) or value < 0:
            yield f"{name} is {value}"


def _numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _numbers(item, f"{name}.{key}".lstrip("."))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _numbers(item, f"{name}[{index}]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, value


def _bound_faults(artifact: ScheduleArtifact, summary: Mapping[str, Any]) -> Iterator[str]:
    """Faults of the lower bounds on latency and energy.

    There is a bound over all allocations and a bound for the chosen allocation. The latency and the energy of the
    schedule must not be below their bounds. For energy, the bound for the chosen allocation must not be below the bound
    over all allocations. The two latency bounds are not compared, because each depends on weights that a search chose.
    """
    problem, bound = artifact.problem, summary["lower_bound"]
    chosen = np.arange(problem.system.core_count) == artifact.schedule.allocation[:, None]
    own = lower_bounds(problem, chosen)
    latency, copied = artifact.schedule.latency_cycles, _if_copied(bound)
    copying = " over schedules that copy data into a core before use if the data fit"
    for name, covered, total, over_all, of_own in (
        (LATENCY_CYCLES, "", latency, bound[LATENCY_CYCLES], own.latency_cycles),
        (LATENCY_CYCLES, copying, latency, copied[LATENCY_CYCLES], own.if_copied.latency_cycles),
        (ENERGY_PJ, "", artifact.schedule.energy_pj, bound[ENERGY_PJ], own.energy_pj),
    ):
        for what, low in (("its bound", over_all), ("the bound for its allocation", of_own)):
            if total < low * (1 - ROUNDING):
                yield f"{name} is {total}, below {what}{covered}, {low}"
        # The latency bound depends on weights that are searched, so only the bounds of the energy are comparable.
        if name == ENERGY_PJ and of_own < over_all * (1 - ROUNDING):
            bounds = f"the bound of {name} for the allocation, {of_own}, is below the bound over all allocations"
            yield f"{bounds}, {over_all}"


def _if_copied(bound: Mapping[str, Any]) -> Mapping[str, Any]:
    """Lower bounds on latency for schedules that copy data into a core before use if the data fit. These bounds are the
    field `if_copied` of `bound`. In older summaries, this field is missing. The result is then `bound` itself, because
    older summaries have bounds only for such schedules.
    """
    copied: Mapping[str, Any] = bound.get("if_copied", bound)
    return copied


def _core_faults(
    artifact: ScheduleArtifact, summary: Mapping[str, Any], costs: Mapping[str, Sequence[CoreCostRow]]
) -> Iterator[str]:
    """Faults in the rows of cores in the summary. The rows must agree with the schedule. The energies of all rows must
    add up to the energy on the cores. The terms of the on-core energy in the summary must add up to the same energy.
    """
    yield from _row_faults("core", summary["cores"], encode(core_uses(artifact, costs)))
    total = artifact.schedule.energy_terms_pj[ON_CORE]
    energy = summary["energy"]
    by_part = sum(on_core_terms(energy).values())
    for name, found in (
        ("cores", sum(row[ENERGY_PJ] for row in summary["cores"])),
        ("arrays and memories", by_part),
    ):
        if not _same(found, total):
            yield f"{name} add up to {found} pJ, not {total}"
    count = sum(row["cn_count"] for row in summary["cores"])
    if count != artifact.graph.node_count:
        yield f"cores run {count} of {artifact.graph.node_count} nodes"


def _row_faults(what: str, given: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if len(given) != len(found):
        yield f"the summary has {len(given)} rows of kind {what}, but the schedule has {len(found)}"
    for row, other in zip(given, found, strict=False):
        for key in ("busy_cycles", "cn_count", ENERGY_PJ, "peak_bits", "capacity_bits", "bits", "name"):
            if key in other and not _same(row.get(key), other[key]):
                yield f"{what} {other['name']}: {key} is {row.get(key)} in the summary, {other[key]} in the schedule"


def _cost_faults(
    artifact: ScheduleArtifact, summary: Mapping[str, Any], costs: Mapping[str, Sequence[CoreCostRow]]
) -> Iterator[str]:
    """Faults of the cycles, energy and streams of each CN class on each core that runs the class. The values must equal
    the cost table of the core.
    """
    schedule, table, names = artifact.schedule, artifact.problem.costs, artifact.names
    runtime = summary["settings"]["cn_runtime"]
    used = np.unique(np.stack((artifact.graph.cost_row, schedule.allocation)), axis=1)
    for row, core in used.T.tolist():
        cost = costs[names.core_files[core]][row]
        streams = {names.operand_names.index(stream.operand): stream.bits for stream in cost.streams}
        found = {place: bits for place, bits in enumerate(table.stream_bits[row, core].tolist()) if bits}
        same = (
            cost.can_run
            and max(getattr(cost, f"{runtime}_cycles"), 1) == table.runtime_cycles[row, core]
            and _same(cost.on_core_energy_pj, float(table.on_core_energy_pj[row, core]))
            and {place: bits for place, bits in streams.items() if bits} == found
        )
        if not same:
            yield f"class {row} on core {names.core_names[core]} has other costs than in the cost table of the core"


def _use_faults(artifact: ScheduleArtifact, summary: Mapping[str, Any]) -> Iterator[str]:
    yield from _row_faults("memory", summary["memories"], encode(memory_uses(artifact)))
    yield from _row_faults("link", summary["links"], encode(link_uses(artifact)))
    # In other models, a stream uses a link while its CN runs, whatever it carries; this can exceed the width.
    of_links = ("busy", "utilisation") if artifact.schedule_model == CAUSAL else ("busy",)
    for table, keys in (("cores", ("utilisation", "array_utilisation")), ("links", of_links)):
        for row in summary[table]:
            for key in keys:
                if row[key] is not None and not 0 <= row[key] <= 1 + ROUNDING:
                    yield f"{table} {row['name']}: {key} is {row[key]}"
    for row in summary["memories"]:
        if artifact.schedule_model == CAUSAL and row["peak_bits"] > row["capacity_bits"]:
            yield f"memory {row['name']} has a peak of {row['peak_bits']} bits, its capacity is {row['capacity_bits']}"


def _graph_faults(artifact: ScheduleArtifact, graph: CnGraph) -> Iterator[str]:
    """Faults of the graph of the schedule. Its layers, groups and edges must equal those of the CN graph. An edge with
    data must not carry fewer bits than the same edge of the CN graph.
    """
    if graph.cn_count != artifact.graph.node_count:
        yield f"the schedule has {artifact.graph.node_count} nodes, but the CN graph has {graph.cn_count}"
        return
    if not np.array_equal(graph.cn_layer, artifact.graph.layer) or not np.array_equal(
        graph.group, artifact.graph.group
    ):
        yield "nodes belong to other layers or groups than in the CN graph"
    count = max(graph.cn_count, 1)
    data = graph.edge_operand != ORDERING
    wanted, place = np.unique(graph.edge_source[data] * count + graph.edge_target[data], return_inverse=True)
    most = np.zeros(len(wanted), np.int64)
    # If two operands of a node need the same data of another node, these data flow once.
    np.maximum.at(most, place.reshape(-1), graph.edge_bits[data])
    source, target, bits = _edges_of_activations(artifact)
    found = source * count + target
    for key in np.setxor1d(wanted, found)[:5].tolist():
        where = "schedule" if key in found else "CN graph"
        yield f"an edge from node {key // count} to node {key % count} is only in the {where}"
    both, in_graph, in_schedule = np.intersect1d(wanted, found, return_indices=True)
    for edge in np.flatnonzero(bits[in_schedule] < most[in_graph])[:5].tolist():
        key = int(both[edge])
        yield f"the edge from node {key // count} to node {key % count} carries fewer bits than in the CN graph"


def _edges_of_activations(artifact: ScheduleArtifact) -> tuple[Any, Any, Any]:
    """Edges that carry activations, as three arrays of equal length: source, target, bits. Edges that carry only
    partial sums are left out.
    """
    kinds = np.array([kind == ACTIVATION for kind in artifact.names.tensor_kinds], np.bool_)
    problem = artifact.problem
    piece = problem.fetch_order[0]
    flows = (problem.graph.piece_producer[piece] >= 0) & kinds[artifact.piece_tensor[piece]]
    count = max(problem.graph.node_count, 1)
    keys = np.unique(problem.graph.piece_producer[piece[flows]] * count + problem.need_cn[flows])
    source, target, bits = artifact.edges
    kept = np.isin(source * count + target, keys)
    return source[kept], target[kept], bits[kept]


def _place_faults(artifact: ScheduleArtifact, allocation: Mapping[str, Any]) -> Iterator[str]:
    core_of = {(row["layer"], row["group"]): row["core"] for row in allocation["allocation"]}
    parts = np.stack((artifact.graph.layer, artifact.graph.group, artifact.schedule.allocation))
    for layer, group, core in np.unique(parts, axis=1).T.tolist():
        if core_of.get((layer, group)) != artifact.names.core_ids[core]:
            name = artifact.names.layer_names[layer]
            yield f"{name} [{group}] is on core {artifact.names.core_ids[core]}, not {core_of.get((layer, group))}"


def _problem_faults(artifact: ScheduleArtifact, assembled: AssembledProblem) -> Iterator[str]:
    for part in ("graph", "costs", "system"):
        one, other = getattr(artifact.problem, part), getattr(assembled.problem, part)
        for field in fields(one):
            if not np.array_equal(getattr(one, field.name), getattr(other, field.name)):
                yield f"{part}.{field.name} differs from the input files"
    for field in fields(artifact.names):
        if getattr(artifact.names, field.name) != getattr(assembled.names, field.name):
            yield f"names.{field.name} differs from the input files"
