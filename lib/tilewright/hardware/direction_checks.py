"""Whether the ports of a core carry every direction in which data of its layers move, on raw data.

At each of its memories an input is read out to the level below (tl), and unless it is the top one, refilled from the
level above (fh). An output is written by the level below (fl), and unless it is the top one, written to the level above
(th); partial sums are read back, tl and fh, only where a loop order leaves them unfinished.
"""

from collections.abc import Iterator
from typing import Any

from tilewright.hardware.core import MEMORY_OPERANDS
from tilewright.hardware.hierarchy import hierarchy_of
from tilewright.hardware.yaml_schema import parse_allocation
from tilewright.units import FieldError
from tilewright.validation import Findings, items, table, texts
from tilewright.workload.operator_groups import ALL, MAC

_OUTPUT = "O"


def check_directions(findings: Findings, is_part: bool = False) -> None:
    """Record directions that every layer needs and no port carries; note those that only some layers need.

    `is_part` of an accelerator of several cores: what such a core is for, and so which inputs it has, only its own
    `operator_types` say.
    """
    data = table(findings.document.data)
    memories = table(data.get("memories"))
    types = items(data.get("operator_types")) or ([] if is_part else [MAC])
    has_both_inputs = MAC in types or ALL in types
    for name, memory, operand, is_top in _levels(memories):
        carried = _carried(memory)
        if carried is None:
            continue
        always = ("fl", "th") if operand == _OUTPUT else ("tl", "fh")
        sometimes = ("tl", "fh") if operand == _OUTPUT else ()
        lacking = [_pair(operand, way) for way in always[: 1 if is_top else 2] if (operand, way) not in carried]
        partial = [_pair(operand, way) for way in sometimes[: 1 if is_top else 2] if (operand, way) not in carried]
        path = ("memories", name, "ports")
        if lacking and (operand == _OUTPUT or has_both_inputs):
            findings.problem(path, f"no port carries {', '.join(lacking)}, which every layer needs")
        elif lacking:
            findings.notice(path, f"no port carries {', '.join(lacking)}, which every layer with this input needs")
        if partial:
            message = f"no port carries {', '.join(partial)}: loop orders that read partial sums back will be refused"
            findings.notice(path, message)


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
        if not isinstance(allocation, list):
            return None
        for text in allocation:
            try:
                pair = parse_allocation(text) if isinstance(text, str) else None
            except FieldError:
                pair = None
            if pair is None or pair[0] not in items(memory.get("operands")):
                return None
            found.add(pair)
    return found


def _pair(operand: str, direction: str) -> str:
    return f"'{operand}, {direction}'"
