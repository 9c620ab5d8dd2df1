"""Texts and table columns on lower bounds and proofs of searches (docs/proofs.md#exact-search)."""

from collections.abc import Iterator, Mapping
from typing import Any

from tilewright.base.artifacts.codec import decode
from tilewright.base.errors import count_of, some_of
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.objectives import OBJECTIVES
from tilewright.base.proof import covered_text, gap_to
from tilewright.search.run_bound import FrontEnds

LEAST_SAVED = 0.0005
"""Smallest decrease of energy or latency that the text mentions, as a share of its value."""

SMALLEST_RISE = 0.0001
"""Smallest rise of the objective that the text states as a number, as a share."""

QUICK_BOUNDS = ("loma", "salsa")
"""Engines that compute bounds by a short additional search after their own search."""


def layer_proof(search: Mapping[str, Any]) -> JsonObject:
    """Table columns on the proof of a layer, from `search` of its record; {} if the search gives no proofs."""
    if "proven" not in search:
        return {}
    covered = covered_text(search.get("covers", ""), search.get("allocation"))
    return {"proven": search["proven"], "gap": search["gap"], "proof_covers": covered}


def run_proof(summary: Mapping[str, Any]) -> JsonObject:
    """Table columns on the proofs of a run, from `summary.json`; {} if the search gives no proofs."""
    if "certificate" not in summary:
        return {}
    proof = summary["certificate"]
    of_run = proof.get("run")
    return {
        "proven_problems": proof["proven"],
        "largest_gap": proof["largest_gap"],
        **({"objective_lower_bound": of_run["lower_bound"], "objective_gap": of_run["gap"]} if of_run else {}),
        "proof_covers": "; ".join(covered_texts(proof)),
    }


def covered_texts(certificate: Mapping[str, Any]) -> list[str]:
    """Distinct texts on the mappings that the proofs of a run cover. In most runs, all layers have the same text."""
    allocations = certificate.get("allocations") or [None]
    return [covered_text(covers, one) for covers in certificate.get("covers", ()) for one in allocations]


def proof_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Lines for the terminal on the proofs of a run.

    The lines state the number of proven optima, the mappings that the proofs cover, the gap of the network, and the
    reasons why other layers have no proof.
    """
    for reason, layers in summary.get("without_proof", {}).items():
        yield f"no proof for {count_of(len(layers), 'layer')} ({some_of(layers)}): {reason}"
    if "certificate" not in summary:
        return
    proof = summary["certificate"]
    counts = f"{proof['proven']} of {proof['of']} distinct layers"
    covers = covered_texts(proof)
    scope = "over orders of the spatial mappings that were tried" if not covers else f"over {covers[0]}"
    scope = "each over the mappings that its proof covers" if len(covers) > 1 else scope
    yield f"optimum proven for {counts}, largest gap {proof['largest_gap']:.2%}, {scope}"
    for what in covers if len(covers) > 1 else ():
        yield f"a proof covers {what}"
    if run := proof.get("run"):
        least = "no mappings have less" if run["proven"] else f"it could be smaller by {run['gap']:.2%} at most"
        yield f"{summary['objective']} of the network: {least}, over the mappings that the bounds of its layers cover"
    quick = [engine for engine in proof.get("engines", ()) if engine in QUICK_BOUNDS]
    if quick and proof["proven"] < proof["of"]:
        yield (
            f"these bounds of a search by {' and '.join(quick)} come from one narrow round, so the true distance can be"
            " smaller; search engine best narrows the gap, and looks for better mappings"
        )
    if least := proof.get("least_value"):
        yield near_line(summary, least)
    if (ends := proof.get("ends")) and "points" not in summary.get("front", {}):
        yield price_line(decode(FrontEnds, ends))


def near_line(summary: Mapping[str, Any], least: Mapping[str, float]) -> str:
    """Line on the other measure: what the network gave up of its objective, and what it saved.

    `least` has the sums of energy and latency over the mappings with the least objective that were found.
    """
    if OBJECTIVES[summary["objective"]].energy:
        own, other, goal, more_of, less_of = ENERGY_PJ, LATENCY_CYCLES, "energy", "more energy", "fewer cycles"
    else:
        own, other, goal, more_of, less_of = LATENCY_CYCLES, ENERGY_PJ, "latency", "more cycles", "less energy"
    rise, fall = summary[own] / least[own] - 1, 1 - summary[other] / least[other]
    if not fall:
        return f"no mapping with {less_of} was met near the least {goal} of a layer"
    by = "no" if not rise else "less than 0.01%" if rise < SMALLEST_RISE else f"{rise:.2%}"
    return (
        f"near the least {goal} found for each layer: {by} {more_of} for {fall:.2%} {less_of} (`--near-optimum 0` takes"
        f" the least {goal})"
    )


def price_line(ends: FrontEnds) -> str:
    """Line on the trade-off between latency and energy.

    For each of the two, the line states how far it can decrease on the Pareto front, and by how much the other then
    increases. If an end of the front is not proven optimal, the line says "at least" and gives the largest decrease
    that the lower bound allows.
    """
    told = []
    energy_pj, latency_cycles = ends.chosen.energy_pj, ends.chosen.latency_cycles
    for goal, other, end, own, rise in (
        ("latency", "energy", ends.latency.latency_cycles, latency_cycles, ends.latency.energy_pj / energy_pj),
        ("energy", "cycles", ends.energy.energy_pj, energy_pj, ends.energy.latency_cycles / latency_cycles),
    ):
        bound = ends.latency.lower_bound if goal == "latency" else ends.energy.lower_bound
        fall, most = 1 - end / own, f"{gap_to(bound, own):.2%}"
        is_least = most == f"{fall:.2%}"
        if fall > LEAST_SAVED:
            by = f"{fall:.2%}" if is_least else f"at least {fall:.2%} (by {most} at most)"
            told.append(f"{goal} can fall by {by} for {max(0.0, rise - 1):.2%} more {other}")
        else:
            limit = "" if is_least else f" (it can fall by {most} at most)"
            told.append(f"{goal} is within {LEAST_SAVED:.2%} of the least found{limit}")
    return "; ".join(told)
