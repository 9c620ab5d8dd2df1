"""What the proofs of the exact search are about, in words and as columns of tables (docs/exact.md)."""

from collections.abc import Iterator, Mapping
from typing import Any

_ORDERS = {
    "greedy": "every loop order that it allows, allocated to memories as in the reference",
    "free": "every loop order that it allows, with every choice of the loops that each memory keeps",
}
"""Allocation -> what is searched for each spatial mapping."""


def covered_text(covers: str, allocation: str | None) -> str:
    """What a proof covers: the spatial mappings, then what was searched for each; '' where nothing says the first."""
    orders = _ORDERS.get(allocation or "")
    return f"{covers}, and for each {orders}" if covers and orders else covers


def layer_proof(search: Mapping[str, Any]) -> dict[str, Any]:
    """Columns on the proof of a layer, from the `search` of its record; {} where the search proves nothing."""
    if "proven" not in search:
        return {}
    covered = covered_text(search.get("covers", ""), search.get("allocation"))
    return {"proven": search["proven"], "gap": search["gap"], "proof_covers": covered}


def run_proof(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Columns on the proofs of a run, from its `summary.json`; {} where the search proves nothing."""
    if "certificate" not in summary:
        return {}
    proof = summary["certificate"]
    return {
        "proven_problems": proof["proven"],
        "largest_gap": proof["largest_gap"],
        "proof_covers": "; ".join(covered_texts(proof)),
    }


def covered_texts(certificate: Mapping[str, Any]) -> list[str]:
    """What the proofs of a run cover, each text once: of most runs it is one."""
    allocations = certificate.get("allocations") or [None]
    return [covered_text(covers, one) for covers in certificate.get("covers", ()) for one in allocations]


def proof_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Lines for the terminal on a run: how many optima are proven, and over what."""
    if "certificate" not in summary:
        return
    proof = summary["certificate"]
    yield (
        f"optimum proven for {proof['proven']} of {proof['of']} distinct layers, largest gap {proof['largest_gap']:.2%}"
    )
    for what in covered_texts(proof):
        yield f"a proof covers {what}"
