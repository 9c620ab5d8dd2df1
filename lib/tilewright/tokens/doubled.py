"""Accelerators in which one part has twice its width or size, to show the effect of more bandwidth or memory."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from tilewright.base.json_values import JsonObject
from tilewright.hardware.core import Memory
from tilewright.hardware.system import OFFCHIP, MultiCoreAccelerator

WIDTH, SIZE = "width", "size"
LINKS = "links"
"""Name of the part that consists of all links between cores, without the links of the off-chip core."""


Change = Callable[[MultiCoreAccelerator], MultiCoreAccelerator]


@dataclass(frozen=True)
class Doubled:
    """Accelerator in which one part, or a set of parts, has twice its width or size."""

    kind: str
    """Changed property: WIDTH or SIZE."""
    name: str
    """Name of the changed part. The off-chip memory has its own name, and the links have the name LINKS. An on-chip
    memory has the name of its core file in front of its own name. The names of a set of parts are joined with "and".
    """
    accelerator: MultiCoreAccelerator
    core_files: frozenset[str]
    """Core files for which the change can alter the costs of computation nodes."""
    change: Change = field(compare=False, default=lambda accelerator: accelerator)
    """Function that makes this change in another accelerator."""

    @property
    def column(self) -> str:
        """Name of the table column with the share of the time that this change saves."""
        return saved_column(self.kind, self.name)


def saved_column(kind: str, name: str) -> str:
    """Name of the table column with the saving of a part: the share of the time that the part `name` saves if its width
    or size (`kind`) is doubled.
    """
    return f"saved_by_twice_the_{kind}_of_{name.replace(' ', '_')}"


def largest_gains(widths: Mapping[str, float], sizes: Mapping[str, float]) -> JsonObject:
    """Table columns on the two parts with the largest gains: the part that saves most time with twice its width, and
    the part that saves most time with twice its size. For each of the two parts, the columns have the name and the
    share of the time that the part saves.

    `widths` and `sizes` have the saved share of the time for each part. The name is '' if no part saves time.
    """
    row: JsonObject = {}
    for gains, name, column in (
        (widths, "widest_gain_port", "gain_of_twice_the_width"),
        (sizes, "largest_gain_memory", "gain_of_twice_the_size"),
    ):
        most = max(gains, key=lambda part: gains[part], default="")
        gain = gains.get(most, 0.0)
        row |= {name: most if gain > 0 else "", column: gain}
    return row


def doubled_parts(accelerator: MultiCoreAccelerator, core_files: Iterable[str]) -> Iterator[Doubled]:
    """Accelerators with one doubled part each, in this order:

    * the off-chip memory and its links with twice the width
    * all other links with twice the width, if at least one of these links has a finite width
    * each memory of the core files: first with twice the width, then with twice the size
    """
    files = tuple(core_files)
    off_chip = accelerator.offchip_core_id
    assert off_chip is not None
    memories = accelerator.core_of[off_chip].memories
    ways = [place for place, link in enumerate(accelerator.links) if off_chip in link.core_ids]

    def part(kind: str, name: str, core_files: Iterable[str], change: Change) -> Doubled:
        return Doubled(kind, name, change(accelerator), frozenset(core_files), change)

    name = max(memories, key=lambda one: one.size_bits).name
    yield part(WIDTH, name, files, lambda one: _with_memories(_with_links(one, ways), OFFCHIP, _wider))
    others = [place for place in range(len(accelerator.links)) if place not in ways]
    if any(accelerator.links[place].bandwidth_bits_per_cycle is not None for place in others):
        yield part(WIDTH, LINKS, (), lambda one: _with_links(one, others))
    for file in files:
        for memory in accelerator.distinct_cores[file].memories:
            for kind, change in ((WIDTH, _wider), (SIZE, larger)):
                only = partial(_with_memories, which=file, change=_only(memory.name, change))
                yield part(kind, f"{file} {memory.name}", (file,), only)


def combined(accelerator: MultiCoreAccelerator, parts: Sequence[Doubled]) -> Doubled:
    """Accelerator in which all `parts` are doubled at once."""

    def change(one: MultiCoreAccelerator) -> MultiCoreAccelerator:
        for part in parts:
            one = part.change(one)
        return one

    files = frozenset().union(*(part.core_files for part in parts))
    name = " and ".join(part.name for part in parts)
    return Doubled(parts[0].kind, name, change(accelerator), files, change)


def _wider(memory: Memory) -> Memory:
    ports = tuple(replace(port, bandwidth_max_bits=2 * port.bandwidth_max_bits) for port in memory.ports)
    return replace(memory, ports=ports)


def larger(memory: Memory) -> Memory:
    """Copy of a memory with twice the size and the same access energies."""
    return replace(memory, size_bits=2 * memory.size_bits)


def _only(name: str, change: Callable[[Memory], Memory]) -> Callable[[Memory], Memory]:
    return lambda memory: change(memory) if memory.name == name else memory


def _with_links(accelerator: MultiCoreAccelerator, places: Iterable[int]) -> MultiCoreAccelerator:
    """Accelerator in which the links with the indexes `places` are twice as wide. Infinite widths stay infinite."""
    links = list(accelerator.links)
    for place in places:
        width = links[place].bandwidth_bits_per_cycle
        links[place] = replace(links[place], bandwidth_bits_per_cycle=None if width is None else 2 * width)
    return replace(accelerator, links=tuple(links))


def _with_memories(
    accelerator: MultiCoreAccelerator, which: str, change: Callable[[Memory], Memory]
) -> MultiCoreAccelerator:
    """Copy of an accelerator in which the function `change` is applied to all memories of the selected cores. `which`
    selects these cores: it is the name of a core file, or OFFCHIP for the off-chip core.
    """
    cores = [
        replace(core, memories=tuple(change(memory) for memory in core.memories))
        if which == (place.role if which == OFFCHIP else place.file_name)
        else core
        for core, place in zip(accelerator.cores, accelerator.places, strict=True)
    ]
    return replace(accelerator, cores=tuple(cores))
