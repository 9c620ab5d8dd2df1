"""What can be checked of the proof that an allocation is the best: its bounds, by their weights, and its blocks."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.cost.ledger import ROUNDING
from tilewright.scheduling.check.bound_certificate import certificate_faults
from tilewright.scheduling.problem import SchedulingProblem
from tilewright.scheduling.result import ScheduleArtifact


def proof_faults(
    artifact: ScheduleArtifact, summary: Mapping[str, Any], allocation: Mapping[str, Any]
) -> Iterator[str]:
    """What is wrong with the certificate of `allocation.json`: bounds that do not follow from their weights or are not
    those of the summary, blocks of other cores, or with a better allocation than the one that is called the best."""
    certificate, proof = allocation["certificate"], allocation["search"]["proof"]
    choices = certificate["cores"]
    allowed = _allowed(artifact.problem, choices)
    if allowed is None:
        yield f"the certificate is of {len(choices)} parts, the schedule has others, or is on other cores"
        return
    if not allowed[np.arange(len(allowed)), artifact.schedule.allocation].all():
        yield "the schedule is on cores that the certificate does not allow"
    bounds = certificate["bounds"]
    yield from certificate_faults(artifact.problem, allowed, bounds)
    terms = summary["lower_bound"]["latency_terms"]
    for rule, claim in bounds.items():
        stated = summary["lower_bound"]["energy_pj"] if rule == "energy" else terms[rule]
        if claim.get("cycles", claim.get("pj")) != stated:
            yield f"{rule}: the certificate claims {claim}, the summary {stated}"
    least = proof["value"] * (1 - ROUNDING)
    for number, block in enumerate(certificate["blocks"]):
        cores = zip(block["cores"], choices, strict=True)
        if any(core is not None and core not in allowed_there for core, allowed_there in cores):
            yield f"block {number} has cores that are not allowed"
        if block["best"] is not None and block["best"] < least:
            yield f"block {number} has an allocation of {block['best']}, less than the best, {proof['value']}"
    if proof["lower_bound"] > proof["value"]:
        yield f"the lower bound, {proof['lower_bound']}, is above the best, {proof['value']}"


def _allowed(problem: SchedulingProblem, choices: Sequence[Sequence[int]]) -> Any:
    """[cn, core] from the cores of each part; None where the parts are others."""
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
