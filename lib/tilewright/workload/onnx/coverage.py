"""Coverage of a network: the amount of work of every operator type, and whether this work has costs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tilewright.base.json_values import JsonObject
from tilewright.workload.graph import APPROXIMATED, MODELLED, PASS_THROUGH, UNSUPPORTED

_STATUS_ORDER = (MODELLED, APPROXIMATED, UNSUPPORTED, PASS_THROUGH)


@dataclass(frozen=True)
class OperatorCoverage:
    """Operators of one type and one status.

    * `modelled`: the operators are layers with costs.
    * `approximated`: the operators are layers with costs, but work or dependences are estimates.
    * `pass-through`: the operators only pass data on, at no cost.
    * `unsupported`: the operators do work that has no costs.
    """

    operator_type: str
    status: str
    node_count: int
    mac_count: int | None
    """Number of multiply-accumulates of the operators; None if the number is unknown for any of the operators."""
    operation_count: int | None = 0
    """Number of operations that are no multiply-accumulates (comparisons, additions, exponentials, ...); None if the
    number is unknown for any of the operators."""
    moved_bits: int | None = 0
    """Bits of all tensors that the operators read and write; None if the number is unknown for any of the operators."""


@dataclass(frozen=True)
class Coverage:
    """Coverage of a network: its operators, and notices.

    Operators are in the order modelled, approximated, unsupported, pass-through. Operators of the same status are in
    alphabetical order of their types.
    """

    operators: tuple[OperatorCoverage, ...]
    notices: tuple[str, ...] = ()

    @property
    def modelled_mac_count(self) -> int:
        """Number of multiply-accumulates of the layers with costs."""
        return sum(row.mac_count or 0 for row in self.operators if _is_costed(row))

    @property
    def total_mac_count(self) -> int:
        """Number of multiply-accumulates of all operators for which this number is known."""
        return sum(row.mac_count or 0 for row in self.operators)

    @property
    def modelled_mac_share(self) -> float | None:
        """Share (0 to 1) of the network's multiply-accumulates that are in layers with costs. The share is 1 for a
        network without multiply-accumulates. The share is None if the multiply-accumulates of some operator are
        unknown.
        """
        return _share(self.modelled_mac_count, [row.mac_count for row in self.operators])

    @property
    def modelled_operation_share(self) -> float | None:
        """Share (0 to 1) of the network's operations that have costs. Multiply-accumulates do not count as operations
        here. The share is 1 for a network without operations. The share is None if the operations of some operator are
        unknown.
        """
        costed = sum(row.operation_count or 0 for row in self.operators if _is_costed(row))
        return _share(costed, [row.operation_count for row in self.operators])

    @property
    def modelled_bits_share(self) -> float | None:
        """Share (0 to 1) of the network's moved bits that come from modelled operators. The moved bits of an operator
        are the bits that it reads and writes. An operator is modelled if its status is not `unsupported`. The share is
        None if the moved bits of some operator are unknown.
        """
        costed = sum(row.moved_bits or 0 for row in self.operators if row.status != UNSUPPORTED)
        return _share(costed, [row.moved_bits for row in self.operators])

    @property
    def is_complete(self) -> bool:
        """True if every operator that does work has costs."""
        return not self.unsupported

    @property
    def unsupported(self) -> tuple[OperatorCoverage, ...]:
        """Operators whose work has no costs."""
        return tuple(row for row in self.operators if row.status == UNSUPPORTED)

    def to_dict(self) -> JsonObject:
        """JSON object for coverage.json."""
        return {
            "mac_count": self.total_mac_count,
            "modelled_mac_count": self.modelled_mac_count,
            "modelled_mac_share": self.modelled_mac_share,
            "modelled_operation_share": self.modelled_operation_share,
            "modelled_bits_share": self.modelled_bits_share,
            "complete": self.is_complete,
            "operators": [
                {
                    "operator_type": row.operator_type,
                    "status": row.status,
                    "nodes": row.node_count,
                    "mac_count": row.mac_count,
                    "operation_count": row.operation_count,
                    "moved_bits": row.moved_bits,
                }
                for row in self.operators
            ],
            "notices": list(self.notices),
        }


def _is_costed(row: OperatorCoverage) -> bool:
    return row.status in (MODELLED, APPROXIMATED)


def _share(part: int, counts: Sequence[int | None]) -> float | None:
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return None
    total = sum(known)
    return part / total if total else 1.0


def build_coverage(entries: Iterable[OperatorCoverage], notices: Iterable[str]) -> Coverage:
    """Coverage from one entry per operator. Entries of the same type and status are added up."""
    rows: dict[tuple[str, str], OperatorCoverage] = {}
    for entry in entries:
        key = (entry.operator_type, entry.status)
        old = rows.get(key)
        rows[key] = entry if old is None else _sum(old, entry)
    ordered = sorted(rows.values(), key=lambda row: (_STATUS_ORDER.index(row.status), row.operator_type))
    return Coverage(tuple(ordered), tuple(notices))


def _sum(first: OperatorCoverage, second: OperatorCoverage) -> OperatorCoverage:
    return replace(
        first,
        node_count=first.node_count + second.node_count,
        mac_count=_known_sum(first.mac_count, second.mac_count),
        operation_count=_known_sum(first.operation_count, second.operation_count),
        moved_bits=_known_sum(first.moved_bits, second.moved_bits),
    )


def _known_sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second
