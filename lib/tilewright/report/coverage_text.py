"""What of a network a run costs, in words."""

from collections.abc import Iterator, Mapping
from typing import Any

SHOWN_ROWS = 6
"""Most operator types told on the terminal; the summary has them all."""


def coverage_lines(summary: Mapping[str, Any], shown: int = SHOWN_ROWS) -> Iterator[str]:
    """Lines for the terminal: the shares that are costed where they are not everything, and what is left out.

    `summary` is the content of `summary.json`.
    """
    coverage = summary["coverage"]
    if not coverage["complete"]:
        macs, others = (share_text(coverage[key]) for key in ("mac_share", "operation_share"))
        yield f"costed: {macs} of MACs, {others} of other operations"
    rows = coverage["not_costed"]
    for reason in dict.fromkeys(row["reason"] for row in rows):
        told = [_row_text(row) for row in rows if row["reason"] == reason]
        more = f", and {len(told) - shown} more operator types" if len(told) > shown else ""
        yield f"not costed, {reason}: {', '.join(told[:shown])}{more}"
    if summary["passed_through"]:
        listed = ", ".join(f"{count} {operator}" for operator, count in summary["passed_through"].items())
        yield f"only moves data, at no cost: {listed}"


def share_text(share: float | None) -> str:
    """A share in per cent, never rounded to all or nothing; `unknown` where it is not known."""
    if share is None:
        return "unknown"
    if 0 < share < 1:
        return f"{min(max(share, 0.001), 0.999):.1%}"
    return f"{share:.0%}"


def _row_text(row: Mapping[str, Any]) -> str:
    counts = [
        f"{row[key]:,} {what}" for key, what in (("mac_count", "MACs"), ("operation_count", "operations")) if row[key]
    ]
    return f"{row['nodes']} {row['operator_type']}" + (f" ({', '.join(counts)})" if counts else "")
