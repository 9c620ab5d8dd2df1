"""Constraints of a mapping file on a layer: spatial mapping, hints, operand links, temporal ordering."""

import fnmatch
import re
from collections.abc import Callable, Iterator
from collections.abc import Mapping as Table
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from tilewright.base.operator_groups import ALL, GROUPS, group_has, is_listed
from tilewright.mapping.words import TemporalMappingType
from tilewright.workload.layer import Layer, whole_name

if TYPE_CHECKING:
    # Loads numpy, which mapping files do not need.
    from tilewright.workload.graph import Workload

WILDCARD = "*"
DEFAULT = "default"
"""Name of the entry for layers that no other entry selects."""
DEPTHWISE = "depthwise"
LAYER_KINDS = (DEPTHWISE, *(group for group in GROUPS if group != ALL))
"""What a selector may name behind an `@`."""
Unrolling = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
"""User-level spatial mapping: (array dimension, ((loop dimension, factor), ...)), in mapping order."""


def as_unrolling(spatial_mapping: Table[str, Table[str, int]] | Unrolling) -> Unrolling:
    """A spatial mapping as nested tuples, from nested tables or from itself."""
    if not isinstance(spatial_mapping, Table):
        return spatial_mapping
    return tuple((array_dimension, tuple(factors.items())) for array_dimension, factors in spatial_mapping.items())


@dataclass(frozen=True)
class TemporalOrderingEntry:
    """One loop of a temporal ordering; dimension '*' is a gap of any loops, size None is any size."""

    dimension: str
    size: int | None = None


@dataclass(frozen=True)
class TilingEntry:
    """A loop that cuts a layer into computation nodes, and the number of its tiles.

    The number is an integer, `all` (as many as the dimension is long), or `*` (between cores: one for each core).
    """

    dimension: str
    tiles: int | str


@dataclass(frozen=True)
class GivenReach:
    """Up to which memory of the core the data of a layer go, by the names of its memories (data locality)."""

    topmost: tuple[tuple[str, str], ...]
    """(layer operand, name of the last memory that it uses): its data come from there, or end there."""
    occupied_bits: tuple[tuple[str, int], ...] = ()
    """(name of a memory, bits of it that data of other layers take while the layer runs)."""


BETWEEN_CORES = (
    "core_allocation",
    "core_allocation_is_fixed",
    "intra_core_tiling",
    "inter_core_tiling",
    "layer_dimension_names",
)
"""Fields of an entry that say how several cores share the network; they play no part on a single core."""


@dataclass(frozen=True)
class MappingConstraints:
    """The constraints of one entry of a mapping file."""

    name: str
    """Selector: layer name, operator type, `@` and a kind of layer, a glob over layer names, or `default`."""
    spatial_mapping: Unrolling = ()
    spatial_mapping_hint: tuple[tuple[str, tuple[str, ...]], ...] = ()
    memory_operand_links: tuple[tuple[str, str], ...] = (("O", "O"), ("W", "I2"), ("I", "I1"))
    """(layer operand, memory operand); the order is the processing order of conversion and allocation."""
    temporal_ordering: tuple[TemporalOrderingEntry, ...] = ()
    """Innermost first."""
    level_boundaries: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """(layer operand, loops of a complete temporal ordering up to and including each of its memory levels); () leaves
    the choice to the allocator."""
    core_allocation: tuple[int, ...] = ()
    """Ids of the cores that may run the layer; () for any that can."""
    core_allocation_is_fixed: bool = False
    """Whether group g of the layer runs on core g of the list, instead of on any of them."""
    intra_core_tiling: tuple[TilingEntry, ...] = ()
    """Tiles that run one after the other, innermost loop first."""
    inter_core_tiling: tuple[TilingEntry, ...] = ()
    """Tiles that run on several cores, innermost loop first."""
    layer_dimension_names: tuple[str, ...] = ()
    """Names that this entry uses for the loop dimensions of its layers, in their order; () for the names they have."""
    memory_reach: GivenReach | None = None
    """Up to which memory the data of the layer go; None for all the way, or what the search for data locality finds."""
    temporal_mapping_type: TemporalMappingType | None = None
    """uneven or even, whatever the search is asked for; None leaves it to that."""
    access_same_data_considered_as_no_access: bool | None = None
    """Whether an input that the array uses again in the next cycle is not read again; None leaves it to the search."""


@dataclass(frozen=True)
class Mapping:
    """All entries of a mapping file, in file order."""

    entries: tuple[MappingConstraints, ...]

    def constraints_for(self, layer: Layer) -> MappingConstraints:
        """The entry for a layer: exact name, then operator type, then attribute, then name glob, then default.

        The name of a layer that was split comes next after the exact name of its part: what is said for it holds for
        its parts. So do name and type of an operator that is costed in parts, as Softmax, after the part's own name and
        type. Of several entries that select a layer alike, the first counts.

        Raises KeyError if there is no default entry (a validated mapping always has one).
        """
        for entry in self.entries_for(layer):
            return entry
        raise KeyError(DEFAULT)

    def entries_for(self, layer: Layer) -> Iterator[MappingConstraints]:
        """All entries that select a layer, that which counts first; one may come twice."""
        whole = whole_name(layer.name)
        for name in (layer.name, whole, layer.operator_type, *layer.part_of):
            if name in self._entry_of:
                yield self._entry_of[name]
        for entry in self._entries_of_kinds:
            if is_of_kind(layer, entry.name[1:]):
                yield entry
        for entry in self._entries_of_kinds if layer.part_of else ():
            if any(is_listed(name, (entry.name[1:],)) for name in layer.part_of[1:]):
                yield entry
        names = dict.fromkeys((layer.name, whole, *layer.part_of[:1]))
        for entry, matches in self._globs:
            if any(map(matches, names)):
                yield entry
        if DEFAULT in self._entry_of:
            yield self._entry_of[DEFAULT]

    def constraints_of(self, workload: "Workload") -> dict[int, MappingConstraints]:
        """Node id -> the entry for its layer, of all layers of a network."""
        return {node.node_id: self.constraints_for(node.layer) for node in workload.nodes if node.layer is not None}

    @cached_property
    def _entry_of(self) -> Table[str, MappingConstraints]:
        """Selector -> the first entry that has it."""
        return {entry.name: entry for entry in reversed(self.entries)}

    @cached_property
    def _entries_of_kinds(self) -> tuple[MappingConstraints, ...]:
        return tuple([entry for entry in self.entries if entry.name.startswith("@")])

    @cached_property
    def _globs(self) -> tuple[tuple[MappingConstraints, Callable[[str], object]], ...]:
        globs = [entry for entry in self.entries if any(sign in entry.name for sign in "*?[")]
        return tuple([(entry, _matcher(entry.name)) for entry in globs])


@lru_cache(maxsize=1024)
def _matcher(glob: str) -> Callable[[str], object]:
    return re.compile(fnmatch.translate(glob)).match


def is_of_kind(layer: Layer, kind: str) -> bool:
    """Whether a layer is of one of `LAYER_KINDS`; of a group of operators by its operator type alone."""
    return is_depthwise(layer) if kind == DEPTHWISE else group_has(kind, layer.operator_type)


def is_depthwise(layer: Layer) -> bool:
    """True for a grouped convolution with one input and one output channel a group."""
    sizes = layer.size_of
    return sizes.get("G", 1) > 1 and sizes.get("K", 1) == 1 and sizes.get("C", 1) == 1
