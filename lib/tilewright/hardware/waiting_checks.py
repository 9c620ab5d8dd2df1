"""Checks of the keys for calls of the core, commands of the array and requests to memories (docs/model/waiting.md).

Each key must have an effect, and values must not contradict each other. Invalid fields are None in the checked tree,
and are reported elsewhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tilewright.base.errors import WRITTEN, KeyPath, Problem, Problems, Unused, nearest_name
from tilewright.base.validation import TableModel, each, whole
from tilewright.hardware.attributes import (
    BURST,
    CALL_KEYS,
    CALLS_IN_FLIGHT,
    COMMAND_ITERATIONS,
    COMMAND_KEYS,
    COMMAND_LATENCY,
    COMMANDS_IN_FLIGHT,
    LEAST_COMMAND,
    LINE,
    PAGE,
    PAGE_CYCLES,
    QUEUED_COMMANDS,
    REQUEST_KEYS,
    REQUEST_LATENCY,
    REQUESTS_IN_FLIGHT,
    START_CYCLES,
    STORE_BURST,
    STORE_LATENCY,
    WAITING,
    WORD_CYCLES,
)
from tilewright.hardware.core import Core
from tilewright.hardware.yaml_checks import USUAL_LOOPS, is_usual_loop
from tilewright.hardware.yaml_schema import HardwareFile, MemoryEntry

CACHES, ROWS, RUNS = "caches", "row_dimensions", "command_dimensions"
"""Keys with lists as values: CACHES and ROWS describe requests to a memory, RUNS describes commands of the array.
`WAITING` has the keys with numbers as values.
"""
LEAVE_OUT = "leave the key out"
_NEEDS: dict[str, tuple[str, ...]] = {
    LEAST_COMMAND.key: (COMMAND_ITERATIONS.key,),
    COMMAND_LATENCY.key: (COMMAND_ITERATIONS.key, COMMANDS_IN_FLIGHT.key),
    COMMANDS_IN_FLIGHT.key: (COMMAND_LATENCY.key,),
    QUEUED_COMMANDS.key: (COMMAND_ITERATIONS.key,),
    RUNS: (COMMAND_ITERATIONS.key,),
    REQUEST_LATENCY.key: (REQUESTS_IN_FLIGHT.key, BURST.key),
    REQUESTS_IN_FLIGHT.key: (REQUEST_LATENCY.key,),
    BURST.key: (REQUEST_LATENCY.key,),
    WORD_CYCLES.key: (REQUEST_LATENCY.key,),
    STORE_LATENCY.key: (CACHES,),
    STORE_BURST.key: (STORE_LATENCY.key,),
    LINE.key: (CACHES, ROWS),
    PAGE.key: (PAGE_CYCLES.key, REQUEST_LATENCY.key),
    PAGE_CYCLES.key: (PAGE.key,),
    CACHES: (REQUEST_LATENCY.key,),
    ROWS: (REQUEST_LATENCY.key,),
}
"""Key -> other keys that this key needs in order to have an effect."""


def has_waiting(entry: HardwareFile) -> bool:
    """True if any table of the file has a key of `WAITING` with a value other than 0."""
    tables: list[TableModel | None] = [entry, entry.operational_array, *(entry.memories or {}).values()]
    return any(_given(table, one.key) for table in tables if table is not None for one in WAITING)


def check_waiting(problems: Problems, entry: HardwareFile, *, only_stores: bool = False) -> None:
    """Report each key of calls, commands or requests (docs/model/waiting.md) that has no effect, and values of these
    keys that contradict each other.

    If `only_stores` is true, no layer runs on the core. No key then has an effect, so every key is reported.
    """
    memories = {name: memory for name, memory in (entry.memories or {}).items() if memory is not None}
    if only_stores:
        _refuse_all(problems, entry, memories)
        return
    _check_needs(problems, entry, [one.key for one in CALL_KEYS])
    if entry.operational_array is not None:
        array = problems.within("operational_array")
        _check_needs(array, entry.operational_array, [*(one.key for one in COMMAND_KEYS), RUNS])
        if _given(entry.operational_array, QUEUED_COMMANDS.key) and not _given(entry, CALLS_IN_FLIGHT.key):
            needed = f"`{CALLS_IN_FLIGHT.key}` of the core"
            message = f"has no effect without {needed}, which is missing or 0"
            array.at((QUEUED_COMMANDS.key,), message, WRITTEN, f"give {needed} too, or {LEAVE_OUT}")
        check_loops(array, (RUNS,), entry.operational_array.command_dimensions)
    for name, memory in memories.items():
        place = problems.within("memories", name)
        _check_needs(place, memory, [*(one.key for one in REQUEST_KEYS), CACHES, ROWS])
        check_loops(place, (ROWS,), memory.row_dimensions)
        _check_page(place, memory)
        _check_caches(place, memory)
        if _given(memory, REQUEST_LATENCY.key) and (above := _above(name, memories)):
            why = f"only requests to the outermost memory take time, but {above} is above this memory"
            message = f"has no effect here, because {why}"
            place.at((REQUEST_LATENCY.key,), message, WRITTEN, LEAVE_OUT)
    _check_one_memory(problems, memories)


def _check_one_memory(problems: Problems, memories: Mapping[str, MemoryEntry]) -> None:
    """Report the key `request_latency_cycles` of every outermost memory except the first one that has the key. In the
    model, only the requests to one memory take time."""
    first, *others = [
        name for name in memories if _given(memories[name], REQUEST_LATENCY.key) and not _above(name, memories)
    ] or [""]
    for name in others:
        message = f"has no effect here, because only requests to one memory take time; {first} has the key, too"
        problems.at(("memories", name, REQUEST_LATENCY.key), message, WRITTEN, LEAVE_OUT)


def _refuse_all(problems: Problems, entry: HardwareFile, memories: Mapping[str, MemoryEntry]) -> None:
    """Report every key of calls, commands and requests in the file. No layer runs on a core that only stores data, so
    these keys have no effect."""
    tables: list[tuple[Problems, TableModel]] = [(problems, entry)]
    if entry.operational_array is not None:
        tables.append((problems.within("operational_array"), entry.operational_array))
    tables += [(problems.within("memories", name), memory) for name, memory in memories.items()]
    for place, table in tables:
        for key in (*(one.key for one in WAITING), RUNS, CACHES, ROWS):
            if _given(table, key):
                message = "has no effect here, because no layer runs on a core that only stores data"
                place.at((key,), message, WRITTEN, LEAVE_OUT)


def _given(entry: TableModel, key: str) -> bool:
    """True if a table has the key with a value that is neither 0 nor an empty list."""
    return bool(getattr(entry, key, None))


def _check_needs(problems: Problems, entry: TableModel, keys: list[str]) -> None:
    """Report each key of `keys` that has no effect because another key is missing or 0."""
    for key in keys:
        if not _given(entry, key):
            continue
        for needed in _NEEDS.get(key, ()):
            if not _given(entry, needed) and not problems.has(needed):
                message = f"has no effect without `{needed}`, which is missing or 0"
                problems.at((key,), message, WRITTEN, f"give `{needed}` too, or {LEAVE_OUT}")


def _check_page(problems: Problems, memory: MemoryEntry) -> None:
    """Report a problem if a page of the memory is smaller than one request."""
    page, burst = getattr(memory, PAGE.key, None), getattr(memory, BURST.key, None)
    if page and burst and page < burst:
        message = f"is smaller than a request (`{BURST.key}`, {burst} bits)"
        problems.at((PAGE.key,), message, WRITTEN, f"{burst} bits or more")


def _check_caches(problems: Problems, memory: MemoryEntry) -> None:
    """Report caches that are not larger than the cache before them. Also report caches that are faster than the cache
    before them or slower than the memory."""
    caches = memory.caches or []
    for (_, first), (place, second) in pairwise(each(caches)):
        if first.size and second.size and second.size <= first.size:
            message = f"must be larger than the cache before it ({first.size} bits)"
            problems.at((CACHES, place, "size"), message, second.size, f"more than {first.size} bits")
        low, high = first.request_latency_cycles, second.request_latency_cycles
        if low is not None and high is not None and high < low:
            message = f"must not be below the latency of the cache before it ({low:g} cycles)"
            problems.at((CACHES, place, REQUEST_LATENCY.key), message, high, f"{low:g} or more")
    most = getattr(memory, REQUEST_LATENCY.key, None)
    for place, cache in each(caches):
        latency = cache.request_latency_cycles
        if most and latency is not None and latency > most:
            own = f"is above `{REQUEST_LATENCY.key}` of the memory ({most:g} cycles)"
            message = f"{own}, but no cache can be slower than its memory"
            problems.at((CACHES, place, REQUEST_LATENCY.key), message, latency, f"at most {most:g}")


def check_loops(problems: Problems, path: KeyPath, names: Sequence[str | None] | None) -> None:
    """Report a problem for each repeated loop dimension in the list at `path`. Report a notice for each name that
    is not a usual name of a loop dimension."""
    problems.repeated(path, names or (), "is listed twice")
    for place, name in each(names):
        if not is_usual_loop(name):
            near = nearest_name(name, USUAL_LOOPS)
            meant = f" (did you mean '{near}'?)" if near else ""
            problems.notice((*path, place), f"layers usually have no loop dimension {name}{meant}")


def _above(name: str, memories: Mapping[str, MemoryEntry]) -> str:
    """Name of a memory that is above the memory `name` and holds an operand of that memory; '' if there is none."""
    names = list(memories)
    held = set(whole(memories[name].operands))
    later = names[names.index(name) + 1 :]
    return next((other for other in later if held & set(whole(memories[other].operands))), "")


def keys_without_nodes(core: Core, file: str) -> Iterator[Unused]:
    """Notices on keys that have no effect in a run on several cores. In such a run, each call is a computation node.
    `file` is the name of the core file.
    """
    whys = {
        START_CYCLES: "a schedule has no work of the host before a layer",
        QUEUED_COMMANDS: "a core has room for its next node when a node has ended",
    }
    written = dict((*core.figures, *core.operational_array.figures))
    for key, why in whys.items():
        if key.field in written:
            message = f"has no effect in a run on several cores: {why}"
            yield Unused(Problem(message, file, path=key.key, value=f"{written[key.field]:g}"))
