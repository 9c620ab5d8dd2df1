"""Whether the ports of a core carry every direction in which data of its layers move.

At each of its memories an input is read out to the level below (tl), and unless it is the top one, refilled from the
level above (fh). An output is written by the level below (fl), and unless it is the top one, written to the level above
(th); partial sums are read back, tl and fh, only where a loop order leaves them unfinished.
"""

from collections.abc import Iterator

from tilewright.errors import Problems
from tilewright.hardware.hierarchy import hierarchy_of
from tilewright.hardware.yaml_schema import HardwareFile, MemoryEntry
from tilewright.operator_groups import ALL, MAC
from tilewright.validation import whole

_OUTPUT = "O"
FORBIDDEN_DIRECTIONS = {"read": ("fh", "fl"), "write": ("th", "tl")}
"""Type of a port -> directions that it cannot carry."""
_WAYS = {False: (("tl", "fh"), ()), True: (("fl", "th"), ("tl", "fh"))}
"""Whether an operand is the output -> the directions of all its layers, and those of partial sums that come back; the
second of each is not needed at the top."""
ALWAYS = ", which every layer needs"
WITH_INPUT = ", which every layer with this input needs"
PARTIAL = ": loop orders that read partial sums back will be refused"


def check_directions(
    problems: Problems, entry: HardwareFile, memories: dict[str, MemoryEntry], is_part: bool = False
) -> None:
    """Record directions that every layer needs and no port carries; note those that only some layers need.

    `is_part` of an accelerator of several cores: what such a core is for, and so which inputs it has, only its own
    `operator_types` say.
    """
    is_said = "operator_types" in entry.model_fields_set or not is_part
    types = (entry.operator_types or ()) if is_said else ()
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


def _levels(memories: dict[str, MemoryEntry]) -> Iterator[tuple[str, MemoryEntry, str, bool]]:
    """(name, memory, operand, whether it is the topmost of the operand) of all memories of each operand."""
    held = tuple(tuple(dict.fromkeys(whole(memory.operands))) for memory in memories.values())
    top_of = {operand: levels[-1] for operand, levels in hierarchy_of(held).levels_of}
    for index, (name, memory) in enumerate(memories.items()):
        for operand in held[index]:
            yield name, memory, operand, top_of[operand] == index


def _carried(memory: MemoryEntry) -> set[tuple[str, str]] | None:
    """The pairs that the ports carry; None where some are written wrongly, which is told and may be what is lacking."""
    found: set[tuple[str, str]] = set()
    for port in memory.ports or (None,):
        if port is None or port.allocation is None:
            return None
        forbidden = FORBIDDEN_DIRECTIONS.get(port.type, ())
        for pair in port.allocation:
            if pair is None or pair[0] not in (memory.operands or ()) or pair[1] in forbidden:
                return None
            found.add(pair)
    return found
