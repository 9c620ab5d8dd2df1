"""Which memories cores share, as `core_memory_sharing` of an accelerator file says: groups of cores, which share all
top memories of equal name, and groups of single memories.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tilewright.errors import KeyPath, Problems
from tilewright.hardware.core import Core, Memory
from tilewright.hardware.core_paths import CoreIds
from tilewright.hardware.hierarchy import memory_differences, shared_memory_names, top_memories
from tilewright.hardware.system import MemoryPlace, all_pairs, memory_text
from tilewright.hardware.system_checks import core_list, known_core
from tilewright.hardware.system_schema import SystemFile
from tilewright.validation import each

KEY = "core_memory_sharing"


@dataclass(frozen=True)
class MemorySharing:
    """What cores share; the fields are those of `MultiCoreAccelerator`."""

    sharing_groups: tuple[tuple[int, ...], ...] = ()
    shared_memories: tuple[tuple[MemoryPlace, ...], ...] = ()

    @property
    def pairs(self) -> set[tuple[int, int]]:
        """Pairs of cores of one group: between them nothing moves over links."""
        return {pair for group in self.sharing_groups for pair in all_pairs(group)}


def read_sharing(problems: Problems, entry: SystemFile, ids: CoreIds, cores: Mapping[int, Core]) -> MemorySharing:
    """The groups of a file; what is wrong with them, or with the memories of `cores` (those known), is recorded."""
    groups: list[tuple[int, ...]] = []
    memories: list[tuple[MemoryPlace, ...]] = []
    owner: dict[MemoryPlace, str] = {}
    # A group with a hole in it is told already.
    whole = [(index, listed) for index, listed in each(entry.core_memory_sharing) if None not in listed]
    for index, listed in whole:
        path: KeyPath = (KEY, index)
        core_ids = [item for item in listed if isinstance(item, int)]
        group = _group_of_cores(problems, path, core_ids, ids, groups) if core_ids else None
        if group is not None:
            groups.append(group)
            if all(core_id in cores for core_id in group):
                names = _check_group(problems, path, {core_id: cores[core_id] for core_id in group})
                owner |= {(core_id, name): f"{KEY}[{index}]" for core_id in group for name in names}
    for index, listed in whole:
        places = [item for item in listed if not isinstance(item, int)]
        if places:
            places = _group_of_memories(problems, (KEY, index), places, ids, cores, owner)
            owner |= dict.fromkeys(places, f"{KEY}[{index}]")
            memories.append(tuple(sorted(places)))
    return MemorySharing(tuple(groups), tuple(memories))


def _group_of_cores(
    problems: Problems, path: KeyPath, listed: list[int], ids: CoreIds, groups: list[tuple[int, ...]]
) -> tuple[int, ...] | None:
    """A group of cores with their copies; None, with problems, if not all are known and different."""
    found = core_list(problems, path, listed, ids)
    if found is None:
        return None
    if ids.offchip in found:
        problems.at(path, "the off-chip core shares its memory with none", ids.offchip)
        return None
    earlier = {core_id for other in groups for core_id in other}
    for core_id in sorted(earlier.intersection(found)):
        message = "the core is in another group too"
        problems.at(path, message, core_id, "one group for each core; memories such as [0.out, 1.in] in any number")
    return tuple(sorted(ids.with_copies(found)))


def _check_group(problems: Problems, path: KeyPath, group: dict[int, Core]) -> list[str]:
    """The names that cores share; recorded is why they cannot: no top memory of one name, or contradictions."""
    ids, cores = list(group), list(group.values())
    shared = shared_memory_names(cores)
    if not shared:
        names = "; ".join(f"core {key}: {', '.join(_top_names(core))}" for key, core in group.items())
        problems.at(path, f"these cores have no top memory of one name to share ({names})")
        return shared
    first = {memory.name: memory for memory, _ in top_memories(cores[0])}
    for core_id, core in list(group.items())[1:]:
        for memory, _ in top_memories(core):
            differences = memory_differences(first[memory.name], memory) if memory.name in shared else []
            if differences:
                message = (
                    f"{memory.name} of core {core_id} is not that of core {ids[0]}: {', '.join(differences)} differ"
                )
                problems.at(path, message)
    for core_id, core in group.items():
        private = [
            f"{memory.name} ({', '.join(operands)})"
            for memory, operands in top_memories(core)
            if memory.name not in shared
        ]
        if private:
            problems.notice(path, f"core {core_id} keeps {', '.join(private)} to itself; {', '.join(shared)} is shared")
    return shared


def _group_of_memories(
    problems: Problems,
    path: KeyPath,
    listed: list[MemoryPlace],
    ids: CoreIds,
    cores: Mapping[int, Core],
    owner: Mapping[MemoryPlace, str],
) -> list[MemoryPlace]:
    """Memories, with those of copies, that are one; recorded is what is wrong with them."""
    seen: set[int] = set()
    first: tuple[MemoryPlace, Memory] | None = None
    for place in listed:
        core_id, name = place
        if not known_core(problems, path, core_id, ids):
            continue
        if core_id == ids.offchip:
            problems.at(path, "the off-chip core shares its memory with none", memory_text(place))
        elif core_id in seen:
            allowed = "one memory of each core; what is one memory of a core is one in its file"
            problems.at(path, "another memory of the core is listed too", memory_text(place), allowed)
        elif place in owner:
            problems.at(path, f"the memory is shared by {owner[place]} already", memory_text(place))
        elif core_id in cores:
            top = {memory.name: memory for memory, _ in top_memories(cores[core_id])}
            if name not in top:
                problems.unknown_name(path, f"core {core_id} has no such memory at its top", name, list(top))
            elif first is None:
                first = place, top[name]
            elif differences := memory_differences(first[1], top[name]):
                message = f"{memory_text(place)} is not {memory_text(first[0])}: {', '.join(differences)} differ"
                problems.at(path, message)
        seen.add(core_id)
    if len(listed) < 2:
        problems.at(path, "too few memories", memory_text(listed[0]), "at least 2")
    return [(one, name) for core_id, name in listed for one in ids.with_copies([core_id])]


def _top_names(core: Core) -> Iterable[str]:
    return (memory.name for memory, _ in top_memories(core))
