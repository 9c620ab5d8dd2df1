"""What of a network is costed and what is not: every operator type with its share of the multiply-accumulates."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

MODELLED = "modelled"
PASS_THROUGH = "pass-through"
UNSUPPORTED = "unsupported"
_STATUS_ORDER = (MODELLED, UNSUPPORTED, PASS_THROUGH)
_LONGEST_NOTE = 400
"""Characters of a notice in the table; lists of layers end there. The coverage itself keeps all of it."""


@dataclass(frozen=True)
class OperatorCoverage:
    """All nodes of one operator type that share one status.

    `modelled`: they are layers with a cost; `pass-through`: they only pass data on, at no cost, and multiply nothing;
    `unsupported`: they do work that is not costed.
    """

    operator_type: str
    status: str
    node_count: int
    mac_count: int | None
    """Multiply-accumulates of these nodes; None if they cannot be told for one of them."""


@dataclass(frozen=True)
class Coverage:
    """Operators in the order modelled, unsupported, pass-through, and by name; notices for the reader."""

    operators: tuple[OperatorCoverage, ...]
    notices: tuple[str, ...] = ()

    @property
    def modelled_mac_count(self) -> int:
        """Multiply-accumulates of the layers that are costed."""
        return sum(row.mac_count or 0 for row in self.operators if row.status == MODELLED)

    @property
    def total_mac_count(self) -> int:
        """Multiply-accumulates of all operators where they are known."""
        return sum(row.mac_count or 0 for row in self.operators)

    @property
    def modelled_mac_share(self) -> float:
        """Share (0 to 1) of the known multiply-accumulates that is costed; 1 for a network without any."""
        total = self.total_mac_count
        return self.modelled_mac_count / total if total else 1.0

    @property
    def is_complete(self) -> bool:
        """Whether no operator does work that is not costed."""
        return all(row.status != UNSUPPORTED for row in self.operators)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for coverage.json."""
        return {
            "mac_count": self.total_mac_count,
            "modelled_mac_count": self.modelled_mac_count,
            "modelled_mac_share": self.modelled_mac_share,
            "complete": self.is_complete,
            "operators": [
                {
                    "operator_type": row.operator_type,
                    "status": row.status,
                    "nodes": row.node_count,
                    "mac_count": row.mac_count,
                }
                for row in self.operators
            ],
            "notices": list(self.notices),
        }


def build_coverage(entries: Iterable[tuple[str, str, int | None]], notices: Iterable[str]) -> Coverage:
    """Coverage from one (operator type, status, multiply-accumulates or None) per node."""
    rows: dict[tuple[str, str], OperatorCoverage] = {}
    for operator_type, status, macs in entries:
        old = rows.get((operator_type, status), OperatorCoverage(operator_type, status, 0, 0))
        total = None if macs is None or old.mac_count is None else old.mac_count + macs
        rows[operator_type, status] = OperatorCoverage(operator_type, status, old.node_count + 1, total)
    ordered = sorted(rows.values(), key=lambda row: (_STATUS_ORDER.index(row.status), row.operator_type))
    return Coverage(tuple(ordered), tuple(notices))


def coverage_table_text(coverage: Coverage) -> str:
    """A table for people: operator, status, nodes, multiply-accumulates and their share; then the notices."""
    total = coverage.total_mac_count
    lines = [f"{'operator':<24} {'status':<12} {'nodes':>6} {'MACs':>16} {'share':>7}"]
    for row in coverage.operators:
        macs = "unknown" if row.mac_count is None else f"{row.mac_count:,}"
        share = f"{row.mac_count / total:.1%}" if row.mac_count and total else "-"
        lines.append(f"{row.operator_type:<24} {row.status:<12} {row.node_count:>6} {macs:>16} {share:>7}")
    nodes = sum(row.node_count for row in coverage.operators)
    lines.append(
        f"{'costed':<24} {'':<12} {nodes:>6} {coverage.modelled_mac_count:>16,} {coverage.modelled_mac_share:>7.1%}"
    )
    return "\n".join([*lines, *(f"note: {_shortened(notice)}" for notice in coverage.notices)])


def _shortened(notice: str) -> str:
    return notice if len(notice) <= _LONGEST_NOTE else notice[:_LONGEST_NOTE].rsplit(",", 1)[0] + ", ..."
