"""Checks that data can get from every core to every other, over links or by way of the off-chip memory."""

from tilewright.errors import KeyPath, Problems
from tilewright.hardware.interconnect import all_pairs
from tilewright.hardware.paths import PathTable, path_table
from tilewright.hardware.system import MultiCoreAccelerator

_MOST_LISTED = 8
Pair = tuple[int, int]


def check_paths(problems: Problems, accelerator: MultiCoreAccelerator, place: KeyPath) -> None:
    """Record pairs of cores between which nothing can move.

    Noted are pairs whose data must be written to the off-chip memory and read again, and links that no path takes.
    """
    table = path_table(accelerator)
    missing = [pair for pair in all_pairs(accelerator.core_ids) if not table.has_path(*pair)]
    lost = [pair for pair in missing if not _through_memory(table, accelerator.offchip_core_id, pair)]
    if lost:
        allowed = "links in both directions, over cores that are routers"
        problems.at(place, f"no data can get from core {_listed(lost)}", allowed=allowed)
    by_way = [pair for pair in missing if pair not in lost]
    if by_way:
        problems.notice(place, f"only over the off-chip memory can data get from core {_listed(by_way)}")
    used = {index for _, path in table.items() for index in path.links}
    unused = [link.name for index, link in enumerate(accelerator.links) if index not in used]
    if unused and not lost:
        more = f" and {len(unused) - _MOST_LISTED} more" if len(unused) > _MOST_LISTED else ""
        problems.notice(place, f"no path takes {', '.join(unused[:_MOST_LISTED])}{more}: others are faster")


def _through_memory(table: PathTable, offchip: int | None, pair: Pair) -> bool:
    if offchip is None or offchip in pair:
        return False
    return table.has_path(pair[0], offchip) and table.has_path(offchip, pair[1])


def _listed(pairs: list[Pair]) -> str:
    """Pairs in words, those of one receiver together: "1 to 0; 2 to 0, 1"."""
    of_sender: dict[int, list[int]] = {}
    for sender, receiver in pairs:
        of_sender.setdefault(sender, []).append(receiver)
    parts = [f"{sender} to {', '.join(map(str, receivers))}" for sender, receivers in of_sender.items()]
    more = f"; and from {len(parts) - _MOST_LISTED} more" if len(parts) > _MOST_LISTED else ""
    return "; ".join(parts[:_MOST_LISTED]) + more
