"""Whether the ports of a core carry every direction in which data of its layers move, on raw data.

At each of its memories an input is read out to the level below (tl), and unless it is the top one, refilled from the
level above (fh). An output is written by the level below (fl), and unless it is the top one, written to the level above
(th); partial sums are read back, tl and fh, only where a loop order leaves them unfinished.
"""

from collections.abc import Iterator
from typing import Any

from tilewright.errors import Problems
from tilewright.hardware.core import MEMORY_OPERANDS
from tilewright.hardware.hierarchy import hierarchy_of
from tilewright.hardware.yaml_schema import parse_allocation
from tilewright.units import FieldError
from tilewright.validation import items, table, texts
from tilewright.workload.operator_groups import ALL, MAC

_OUTPUT = "O"
FORBIDDEN_DIRECTIONS = {"read": ("fh", "fl"), "write": ("th", "tl")}
"""Type of a port -> directions that it cannot carry."""
_WAYS = {False: (("tl", "fh"), ()), True: (("fl", "th"), ("tl", "fh"))}
"""Whether an operand is the output -> the directions of all its layers, and those of partial sums that come back; the
second of each is not needed at the top."""
ALWAYS = ", which every layer needs"
WITH_INPUT = ", which every layer with this input needs"
PARTIAL = ": loop orders that read partial sums back will be refused"


def check_directions(data: dict[Any, Any], problems: Problems, is_part: bool = False) -> None:
    """Record directions that every layer needs and no port carries; note those that only some layers need.

    `is_part` of an accelerator of several cores: what such a core is for, and so which inputs it has, only its own
    `operator_types` say.
    """
    memories = table(data.get("memories"))
    types = items(data.get("operator_types")) or ([] if is_part else [MAC])
    has_both_inputs = MAC in types or ALL in types
    lacking: dict[tuple[str, str], list[str]] = {}
    for name, memory, operand, is_top in _levels(memories):
        carried = _carried(memory)
        if carried is None:
            continue
        always, sometimes = _WAYS[operand == _OUTPUT]
        told = ALWAYS if operand == _OUTPUT or has_both_inputs else WITH_INPUT
        count = 1 if is_top else 2
        for reason, ways in ((told, always[:count]), (PARTIAL, sometimes[:count])):
            pairs = [f"'{operand}, {way}'" for way in ways if (operand, way) not in carried]
            if pairs:
                lacking.setdefault((name, reason), []).extend(pairs)
    for (name, reason), pairs in lacking.items():
        record = problems.at if reason == ALWAYS else problems.notice
        record(("memories", name, "ports"), f"no port carries {', '.join(pairs)}{reason}")


def _levels(memories: dict[Any, Any]) -> Iterator[tuple[str, dict[Any, Any], str, bool]]:
    """(name, memory, operand, whether it is the topmost of the operand) of all memories of each operand."""
    named = [(name, table(memory)) for name, memory in memories.items()]
    held = tuple(
        tuple(dict.fromkeys(operand for operand in texts(memory.get("operands")) if operand in MEMORY_OPERANDS))
        for _, memory in named
    )
    top_of = {operand: levels[-1] for operand, levels in hierarchy_of(held).levels_of}
    for index, (name, memory) in enumerate(named):
        for operand in held[index]:
            yield name, memory, operand, top_of[operand] == index


def _carried(memory: dict[Any, Any]) -> set[tuple[str, str]] | None:
    """The pairs that the ports carry; None where some are written wrongly, which is told and may be what is lacking."""
    ports = memory.get("ports")
    if not isinstance(ports, list) or not ports:
        return None
    found = set()
    for port in ports:
        allocation = table(port).get("allocation")
        kind = table(port).get("type")
        forbidden = FORBIDDEN_DIRECTIONS.get(kind, ()) if isinstance(kind, str) else ()
        if not isinstance(allocation, list):
            return None
        for text in allocation:
            try:
                pair = parse_allocation(text) if isinstance(text, str) else None
            except FieldError:
                pair = None
            if pair is None or pair[0] not in items(memory.get("operands")) or pair[1] in forbidden:
                return None
            found.add(pair)
    return found
