"""Texts and table columns on lower bounds and proofs of searches (docs/proofs/exact-search.md)."""

from collections.abc import Iterator, Mapping
from typing import Any

from tilewright.base.artifacts.codec import decode
from tilewright.base.errors import count_of, some_of
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.objectives import OBJECTIVES
from tilewright.base.proof import SpatialMappings, covered_text, gap_to
from tilewright.search.run_bound import FrontEnds

LEAST_SAVED = 0.0005
"""Threshold for `price_line`, as a share of the energy or latency. A decrease above the threshold is stated as a
number. Otherwise, the line says that the value is within this share of the least value found.
"""

SMALLEST_RISE = 0.0001
"""Smallest share that is stated as a number, for gaps and for the increase of the objective in `near_line`. A smaller
share is stated as less than 0.01%.
"""

QUICK_BOUNDS = ("loma", "salsa")
"""Search engines that compute their bounds in a short additional search after the search for a mapping."""


GIVEN, GREEDY = SpatialMappings(), "greedy"
"""GIVEN: the spatial mappings that a search covers if the mapping file fixes them. GREEDY: name of the memory
allocation that follows the rule of zigzag-dse.
"""


def layer_proof(search: Mapping[str, Any]) -> JsonObject:
    """Table columns on the proof for a layer, from the field `search` of its record; {} if the search gives no
    proofs.
    """
    if "proven" not in search:
        return {}
    covered = covered_text(search.get("covers", ""), search.get("allocation"))
    return {"proven": search["proven"], "gap": search["gap"], "proof_covers": covered}


def run_proof(summary: Mapping[str, Any]) -> JsonObject:
    """Table columns on the proofs of a run, from its `summary.json`; {} if the search gives no proofs."""
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
    """Lines for the terminal on the proofs of a run: reasons why layers have no proof, number of proven optima,
    mappings that the proofs cover, mappings that were not searched, and gap of the network. Further lines can follow,
    such as those of `near_line` and `price_line`.
    """
    for reason, layers in summary.get("without_proof", {}).items():
        yield f"no proof for {count_of(len(layers), 'layer')} ({some_of(layers)}): {reason}"
    if "certificate" not in summary:
        return
    proof = summary["certificate"]
    covers = covered_texts(proof)
    scope = covers[0] if covers else "all loop orders of the spatial mappings that were tried"
    scope = f"different mappings for different layers ({len(covers)} kinds, listed below)" if len(covers) > 1 else scope
    goal = f"{summary['objective']} of each layer"
    if chosen := proof.get("chosen_for_network"):
        chosen_for = f"{count_of(chosen, 'layer')} with a mapping that is chosen for the EDP of the network"
        goal += f" (but energy + weight x latency for {chosen_for})"
    optima = f"the optimum is proven for {proof['proven']} of {proof['of']} distinct layers"
    yield f"{goal}: {_others_give(proof['largest_gap'])}; {optima}; the proofs cover {scope}"
    for what in covers if len(covers) > 1 else ():
        yield f"a proof covers {what}"
    yield from _uncovered_lines(proof)
    if run := proof.get("run"):
        least = _others_give(0.0 if run["proven"] else run["gap"])
        yield f"{summary['objective']} of the network: {least}, among the mappings that the proofs of its layers cover"
    quick = [engine for engine in proof.get("engines", ()) if engine in QUICK_BOUNDS]
    if quick and proof["proven"] < proof["of"]:
        yield (
            f"these bounds of the engine {' and '.join(quick)} are computed with little effort, so the true gap can be"
            " smaller; the search engine `best` raises the bounds, and looks for better mappings"
        )
    if least := proof.get("least_value"):
        yield near_line(summary, least)
    if (ends := proof.get("ends")) and "points" not in summary.get("front", {}):
        yield price_line(decode(FrontEnds, ends))


def _uncovered_lines(proof: Mapping[str, Any]) -> Iterator[str]:
    """Line that names the mappings that the search left out, and commands that try such mappings. The left-out mappings
    can be better than the best mapping found. No line if the proofs cover all mappings.
    """
    left_out, covers = [], proof.get("covers", ())
    if any(one.startswith(GIVEN.text) for one in covers):
        left_out.append("other spatial mappings (`tilewright advise` on the folder of the run tries some of them)")
    if any(one.startswith("the first ") for one in covers):
        left_out.append("further generated spatial mappings (`--nb-spatial-mappings-generated 0` tries all)")
    if GREEDY in proof.get("allocations", ()):
        engine = "--temporal-mapping-search-engine best " * bool({*proof.get("engines", ())} & {*QUICK_BOUNDS})
        how = f"`{engine}--allocation free` searches them"
        left_out.append(f"mappings that place loops in memories by another rule than ZigZag's ({how})")
    if left_out:
        yield f"not searched, and possibly better: {'; '.join(left_out)}"


def _others_give(gap: float) -> str:
    """Words on the largest gap of the proofs: other mappings can be better by at most this share."""
    if not gap:
        return "no other mappings give less"
    return f"other mappings give {f'at most {gap:.2%}' if gap >= SMALLEST_RISE else 'less than 0.01%'} less"


def near_line(summary: Mapping[str, Any], least: Mapping[str, float]) -> str:
    """Line on mappings that were chosen near the optimum: the increase of the objective (energy or latency) of the
    network, and the decrease of the other measure.

    Both changes are relative to `least`: energy and latency of the network if each layer has its mapping with the least
    objective.
    """
    if OBJECTIVES[summary["objective"]].energy:
        own, other, goal, more_of, less_of = ENERGY_PJ, LATENCY_CYCLES, "energy", "more energy", "fewer cycles"
    else:
        own, other, goal, more_of, less_of = LATENCY_CYCLES, ENERGY_PJ, "latency", "more cycles", "less energy"
    rise, fall = summary[own] / least[own] - 1, 1 - summary[other] / least[other]
    if not fall:
        return f"no mapping with {less_of} was found near the least {goal} of any layer"
    by = "no" if not rise else "less than 0.01%" if rise < SMALLEST_RISE else f"{rise:.2%}"
    return (
        f"mappings near the least {goal} found for each layer were chosen: the network has {by} {more_of} and"
        f" {fall:.2%} {less_of} than with the least {goal} (`--near-optimum 0` chooses the least {goal})"
    )


def price_line(ends: FrontEnds) -> str:
    """Line on the trade-off between latency and energy on the Pareto front. It says by how much the latency can
    decrease, and by how much the energy then increases; then the same with latency and energy exchanged. A decrease of
    at most LEAST_SAVED is not given as a number.

    If the lower bound allows a larger decrease than the front has, the line also has this larger decrease.
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
            limit = "" if is_least else f" (proven limit of the fall: {most})"
            told.append(f"{goal} can fall by {fall:.2%} for {max(0.0, rise - 1):.2%} more {other}{limit}")
        else:
            limit = "" if is_least else f" (proven limit of a fall: {most})"
            told.append(f"{goal} is within {LEAST_SAVED:.2%} of the least {goal} found{limit}")
    return "; ".join(told)
