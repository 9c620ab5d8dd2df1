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
"""Kinds of layers that a selector may name after an `@`."""
Unrolling = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
"""User-level spatial mapping: (array dimension, ((loop dimension, factor), ...)), in mapping order."""


def as_unrolling(spatial_mapping: Table[str, Table[str, int]] | Unrolling) -> Unrolling:
    """Spatial mapping as nested tuples, from nested tables or from nested tuples."""
    if not isinstance(spatial_mapping, Table):
        return spatial_mapping
    return tuple((array_dimension, tuple(factors.items())) for array_dimension, factors in spatial_mapping.items())


@dataclass(frozen=True)
class TemporalOrderingEntry:
    """One loop of a temporal ordering; dimension '*' is a gap that any loops may fill, size None allows any size."""

    dimension: str
    size: int | None = None


@dataclass(frozen=True)
class TilingEntry:
    """A loop that cuts a layer into computation nodes, and the number of its tiles.

    The number is an integer, `all` (one tile per iteration of the dimension), or `*` (between cores: one tile per
    core).
    """

    dimension: str
    tiles: int | str


@dataclass(frozen=True)
class GivenReach:
    """Topmost memory of the core that each operand of a layer uses, by name (data locality)."""

    topmost: tuple[tuple[str, str], ...]
    """Pairs (layer operand, name of the topmost memory that it uses): inputs come from there, outputs end there."""
    occupied_bits: tuple[tuple[str, int], ...] = ()
    """Pairs (memory name, bits that data of other layers occupy in this memory while the layer runs)."""


BETWEEN_CORES = (
    "core_allocation",
    "core_allocation_is_fixed",
    "intra_core_tiling",
    "inter_core_tiling",
    "layer_dimension_names",
)
"""Fields of an entry that say how several cores share the network; on a single core they have no effect."""


@dataclass(frozen=True)
class MappingConstraints:
    """The constraints of one entry of a mapping file."""

    name: str
    """Selector: layer name, operator type, `@` and a kind of layer, a glob over layer names, or `default`."""
    spatial_mapping: Unrolling = ()
    spatial_mapping_hint: tuple[tuple[str, tuple[str, ...]], ...] = ()
    memory_operand_links: tuple[tuple[str, str], ...] = (("O", "O"), ("W", "I2"), ("I", "I1"))
    """Pairs (layer operand, memory operand); conversion and allocation process operands in this order."""
    temporal_ordering: tuple[TemporalOrderingEntry, ...] = ()
    """Loops from the innermost outwards."""
    level_boundaries: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Pairs (layer operand, number of loops up to and including each memory level, in a complete temporal ordering).

    () leaves the choice to the allocator.
    """
    core_allocation: tuple[int, ...] = ()
    """Ids of the cores that may run the layer; () allows every core that can."""
    core_allocation_is_fixed: bool = False
    """True if group g of the layer runs on core g of the list, False if it may run on any of them."""
    intra_core_tiling: tuple[TilingEntry, ...] = ()
    """Tiles that run one after another, innermost loop first."""
    inter_core_tiling: tuple[TilingEntry, ...] = ()
    """Tiles that run on several cores, innermost loop first."""
    layer_dimension_names: tuple[str, ...] = ()
    """Names that this entry uses for the loop dimensions of its layers, in their order; () keeps the original names."""
    memory_reach: GivenReach | None = None
    """Topmost memory that each operand of the layer uses.

    None: the search for data locality decides; without it the data go up to the top memory.
    """
    temporal_mapping_type: TemporalMappingType | None = None
    """`uneven` or `even`, overriding the option of the search; None keeps the option."""
    access_same_data_considered_as_no_access: bool | None = None
    """False if an input that the array reuses in the next cycle is read again; None keeps the option of the search."""


@dataclass(frozen=True)
class Mapping:
    """All entries of a mapping file, in file order."""

    entries: tuple[MappingConstraints, ...]

    def constraints_for(self, layer: Layer) -> MappingConstraints:
        """Entry for a layer: exact name, then operator type, then kind of layer, then name glob, then default.

        For a part of a split layer, the name of the split layer comes next after the part's own name. For a part of an
        operator that is costed in parts (as Softmax), name and type of the operator come next after the part's own name
        and type. If several entries select the layer in the same way, the first one counts.

        Raises KeyError if there is no default entry (a validated mapping always has one).
        """
        for entry in self.entries_for(layer):
            return entry
        raise KeyError(DEFAULT)

    def entries_for(self, layer: Layer) -> Iterator[MappingConstraints]:
        """All entries that select a layer, in order of precedence; an entry may come twice."""
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
        """Entry for each layer of a network, by node id."""
        return {node.node_id: self.constraints_for(node.layer) for node in workload.nodes if node.layer is not None}

    @cached_property
    def _entry_of(self) -> Table[str, MappingConstraints]:
        """First entry with each selector, by selector."""
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
    """True if a layer is of one of `LAYER_KINDS`; groups of operators are matched by operator type."""
    return is_depthwise(layer) if kind == DEPTHWISE else group_has(kind, layer.operator_type)


def is_depthwise(layer: Layer) -> bool:
    """True for a grouped convolution with one input and one output channel in each group."""
    sizes = layer.size_of
    return sizes.get("G", 1) > 1 and sizes.get("K", 1) == 1 and sizes.get("C", 1) == 1
