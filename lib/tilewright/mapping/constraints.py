"""Constraints of a mapping file on a layer: spatial mapping, hints for it, memory operands of the layer operands,
and temporal ordering."""

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
"""Kinds of layers that a selector can name after an `@`."""
Unrolling = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
"""Spatial mapping in the order in which the user wrote it: (array dimension, ((loop dimension, factor), ...))."""


def as_unrolling(spatial_mapping: Table[str, Table[str, int]] | Unrolling) -> Unrolling:
    """Spatial mapping as nested tuples, made from nested dicts or nested tuples."""
    if not isinstance(spatial_mapping, Table):
        return spatial_mapping
    return tuple((array_dimension, tuple(factors.items())) for array_dimension, factors in spatial_mapping.items())


@dataclass(frozen=True)
class TemporalOrderingEntry:
    """Loop of a temporal ordering. The dimension '*' stands for a gap, which any sequence of loops can fill. The
    size None stands for any size."""

    dimension: str
    size: int | None = None


@dataclass(frozen=True)
class TilingEntry:
    """Loop that cuts a layer into tiles, which are computation nodes, with the number of tiles.

    The number is an integer, `all` (one tile per iteration of the dimension), or `*` (only between cores: one tile per
    core).
    """

    dimension: str
    tiles: int | str


@dataclass(frozen=True)
class GivenReach:
    """Name of the topmost memory of the core that each operand of a layer uses, as the search for data locality
    decided."""

    topmost: tuple[tuple[str, str], ...]
    """Pairs (layer operand, name of the topmost memory that the operand uses). Inputs start in this memory, and outputs
    end in this memory."""
    occupied_bits: tuple[tuple[str, int], ...] = ()
    """Pairs (memory name, bits that data of other layers occupy in this memory while the layer runs)."""


BETWEEN_CORES = (
    "core_allocation",
    "core_allocation_is_fixed",
    "intra_core_tiling",
    "inter_core_tiling",
    "layer_dimension_names",
)
"""Fields of an entry that decide how the network is distributed over several cores. They have no effect on a single
core."""


@dataclass(frozen=True)
class MappingConstraints:
    """Constraints of one entry of a mapping file."""

    name: str
    """Selector: layer name, operator type, `@` and a kind of layer, a glob over layer names, or `default`."""
    spatial_mapping: Unrolling = ()
    spatial_mapping_hint: tuple[tuple[str, tuple[str, ...]], ...] = ()
    memory_operand_links: tuple[tuple[str, str], ...] = (("O", "O"), ("W", "I2"), ("I", "I1"))
    """Pairs (layer operand, memory operand). Conversion and allocation process operands in this order."""
    temporal_ordering: tuple[TemporalOrderingEntry, ...] = ()
    """Loops of the temporal ordering, from the innermost to the outermost."""
    level_boundaries: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Pairs (layer operand, (n1, n2, ...)). The first memory level has the first n1 loops of a complete temporal
    ordering, the first two levels together have the first n2 loops, and so on.

    If the field is (), the allocator chooses the boundaries.
    """
    core_allocation: tuple[int, ...] = ()
    """Ids of the cores that can run the layer. If the tuple is empty, each core can run the layer that supports its
    operator and has memories for its operands."""
    core_allocation_is_fixed: bool = False
    """True if part g of the layer runs on core g of `core_allocation`. False if each part can run on any core of
    `core_allocation`."""
    intra_core_tiling: tuple[TilingEntry, ...] = ()
    """Tiles that run one after another, innermost loop first."""
    inter_core_tiling: tuple[TilingEntry, ...] = ()
    """Tiles that run on several cores, innermost loop first."""
    layer_dimension_names: tuple[str, ...] = ()
    """Names that this entry uses for the loop dimensions of its layers, in the order of these dimensions. If the field
    is (), the entry uses the names of the layer."""
    memory_reach: GivenReach | None = None
    """Topmost memory that each operand of the layer uses.

    If the field is None, the search for data locality decides. If there is no such search, all data start and end in
    the top memory.
    """
    temporal_mapping_type: TemporalMappingType | None = None
    """Type of level boundaries, `uneven` or `even`, which overrides the option of the search. None means that the
    option of the search applies."""
    access_same_data_considered_as_no_access: bool | None = None
    """False if an input that the array uses again in the next cycle is read again. None means that the option of the
    search applies."""


@dataclass(frozen=True)
class Mapping:
    """All entries of a mapping file, in file order."""

    entries: tuple[MappingConstraints, ...]

    def constraints_for(self, layer: Layer) -> MappingConstraints:
        """Entry for a layer. The order of precedence is: exact name, operator type, kind of layer, name glob, default.

        A part of a split layer is selected by its own name first, then by the name of the split layer. A part of an
        operator that is costed in parts (such as Softmax) is selected by its own name and type first, then by the name
        and type of the operator. If several entries select the layer with the same precedence, the first of them
        counts.

        Raises KeyError if there is no default entry (a validated mapping always has a default entry).
        """
        for entry in self.entries_for(layer):
            return entry
        raise KeyError(DEFAULT)

    def entries_for(self, layer: Layer) -> Iterator[MappingConstraints]:
        """All entries that select a layer, in order of precedence. The same entry can appear twice."""
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
        """Node id of a layer -> entry of the mapping file that applies to the layer."""
        return {node.node_id: self.constraints_for(node.layer) for node in workload.nodes if node.layer is not None}

    @cached_property
    def _entry_of(self) -> Table[str, MappingConstraints]:
        """Selector -> first entry with this selector."""
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
    """True if a layer is of one of `LAYER_KINDS`. For a group of operators, the operator type decides."""
    return is_depthwise(layer) if kind == DEPTHWISE else group_has(kind, layer.operator_type)


def is_depthwise(layer: Layer) -> bool:
    """True for a grouped convolution with one input and one output channel in each group."""
    sizes = layer.size_of
    return sizes.get("G", 1) > 1 and sizes.get("K", 1) == 1 and sizes.get("C", 1) == 1
