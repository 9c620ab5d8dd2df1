"""Keys in the file of the off-chip core that only plug-ins read, and that have no effect in a run on several cores.

The terms of plug-ins get a core with the memories that a computation node (CN) uses. No CN runs on the off-chip core,
so a term never gets the array or the keys of this core. A term gets a memory of the off-chip core only for a CN that
streams data from or to this memory. Static powers count for all cores.
"""

from collections.abc import Collection, Iterator

from tilewright.base.errors import Problem, Unused
from tilewright.hardware.attributes import BUILT_IN, Figures, Owner, attributes
from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import top_memories
from tilewright.hardware.system import OFFCHIP, MultiCoreAccelerator


def keys_without_views(accelerator: MultiCoreAccelerator) -> Iterator[Unused]:
    """Notices on keys of the off-chip core and of its array that only plug-ins read. These keys have no effect."""
    if (found := _off_chip_file(accelerator)) is None:
        return
    file, core = found
    why = "has no effect in the file of the off-chip core: no computation node runs on this core"
    yield from _notices("core", core.figures, file, "", why)
    yield from _notices("array", core.operational_array.figures, file, "operational_array.", why)


def keys_without_streams(accelerator: MultiCoreAccelerator, streamed: Collection[str]) -> Iterator[Unused]:
    """Notices on keys of off-chip memories that only plug-ins read and that have no effect, because no CN streams data
    from or to the memory. `streamed` has the memory operands that CNs stream."""
    if (found := _off_chip_file(accelerator)) is None:
        return
    file, core = found
    used = {memory.name for memory, operands in top_memories(core) if {*operands} & {*streamed}}
    why = "has no effect, because no computation node streams data from or to this memory"
    for memory in core.memories:
        if memory.name not in used:
            yield from _notices("memory", memory.figures, file, f"memories.{memory.name}.", why)


def _off_chip_file(accelerator: MultiCoreAccelerator) -> tuple[str, Core] | None:
    """Name of the off-chip core's file, and the core. None if there is no off-chip core, or if another core has the
    same file."""
    off_chip = [place.file_name for place in accelerator.places if place.role == OFFCHIP]
    others = {place.file_name for place in accelerator.places if place.role != OFFCHIP}
    if accelerator.offchip_core_id is None or others & {*off_chip}:
        return None
    return off_chip[0], accelerator.core_of[accelerator.offchip_core_id]


def _notices(owner: Owner, figures: Figures, file: str, place: str, why: str) -> Iterator[Unused]:
    """Notices on the attributes of plug-ins in `figures`, except static powers. `place` is the path of the owner, with
    a dot at its end."""
    written = dict(figures)
    for one in attributes(owner):
        if one not in BUILT_IN and not one.term and one.field in written:
            yield Unused(Problem(why, file, path=f"{place}{one.key}", value=f"{written[one.field]:g}"))
