"""Constraints of a mapping file on a layer: spatial mapping, hints for the spatial mapping, memory operands, temporal
ordering."""

import fnmatch
import re
from collections.abc import Callable, Iterator
from collections.abc import Mapping as Table
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from tilewright.base.artifacts.codec import LEFT_OUT
from tilewright.base.operator_groups import ALL, GROUPS, group_has, is_listed
from tilewright.mapping.network_plans import NetworkPlan
from tilewright.mapping.words import ReductionShape, TemporalMappingType
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
    """Loop or gap of a temporal ordering. The dimension '*' stands for a gap, which any sequence of loops can fill. The
    size None stands for any size."""

    dimension: str
    size: int | None = None


@dataclass(frozen=True)
class TilingEntry:
    """Loop that cuts a layer into tiles (computation nodes), and the number of these tiles.

    The number is an integer, `all` (one tile per iteration of the dimension) or `*` (one tile per core; only for tiles
    on several cores).
    """

    dimension: str
    tiles: int | str


@dataclass(frozen=True)
class GivenReach:
    """Topmost memory of each operand of a layer, and the bits in each memory that data of other layers occupy. A
    mapping file gives these values, or the search for data locality finds them."""

    topmost: tuple[tuple[str, str], ...]
    """Pairs (layer operand, name of the topmost memory that the operand uses). Inputs start in this memory, and outputs
    end in this memory."""
    occupied_bits: tuple[tuple[str, int], ...] = ()
    """Pairs (memory name, bits that data of other layers occupy in this memory while the layer runs)."""


@dataclass(frozen=True)
class PartAdditions:
    """Addition of the partial sums of a layer whose reduction is cut between cores."""

    shape: ReductionShape = "tree"
    """Order in which the partial sums are added."""
    core: int | None = None
    """Id of the core that adds the partial sums. None stands for the cores of `core_allocation` that can add. If none
    of these cores can add, None stands for all cores that can add. The shape `one_core` then uses only the first core.
    """


BETWEEN_CORES = (
    "core_allocation",
    "core_allocation_is_fixed",
    "intra_core_tiling",
    "inter_core_tiling",
    "tiles_if_alone",
    "layer_dimension_names",
    "reduction",
    "part_of_entry",
)
"""Fields of an entry that distribute the network over several cores. On a single core, the fields have no effect."""


@dataclass(frozen=True)
class MappingConstraints:
    """Constraints of one entry of a mapping file."""

    name: str
    """Selector of layers: the name of a layer, an operator type, `@` followed by a kind of layer, a glob over the names
    of layers, or `default`.
    """
    spatial_mapping: Unrolling = ()
    spatial_mapping_hint: tuple[tuple[str, tuple[str, ...]], ...] = ()
    memory_operand_links: tuple[tuple[str, str], ...] = (("O", "O"), ("W", "I2"), ("I", "I1"))
    """Pairs (layer operand, memory operand). Operands are processed in this order when a spatial mapping is converted,
    and when loops are allocated to memories.
    """
    temporal_ordering: tuple[TemporalOrderingEntry, ...] = ()
    """Loops of the temporal ordering, from the innermost to the outermost."""
    level_boundaries: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Pairs (layer operand, (n1, n2, ...)). The innermost memory level of the operand keeps the n1 innermost loops of a
    complete temporal ordering, the two innermost levels together keep the n2 innermost loops, and so on.

    If the field is (), the allocator chooses the boundaries.
    """
    core_allocation: tuple[int, ...] = ()
    """Ids of the cores that can run the layer. If the tuple is empty, the layer can run on every core that supports its
    operator and has memories for its operands.
    """
    core_allocation_is_fixed: bool = False
    """True if each group of the layer has a fixed core: group g runs on the core at index g of `core_allocation`, or on
    the only core in `core_allocation`. False if each group can run on any core of `core_allocation`. Groups are the
    parts of the layer that `inter_core_tiling` distributes over cores.
    """
    intra_core_tiling: tuple[TilingEntry, ...] = ()
    """Loops that cut the layer into tiles (CNs) that run one after another, innermost loop first."""
    inter_core_tiling: tuple[TilingEntry, ...] = ()
    """Loops that cut the layer into groups of tiles (CNs) for different cores, innermost loop first."""
    layer_dimension_names: tuple[str, ...] = ()
    """Additional names for the loop dimensions of a layer, for the tilings of this entry. Name i is for loop dimension
    i of the layer. () for no additional names."""
    tiles_if_alone: bool = field(default=False, metadata=LEFT_OUT)
    """Whether `intra_core_tiling` also cuts a layer that is alone in its stack."""
    reduction: PartAdditions | None = field(default=None, metadata=LEFT_OUT)
    """Addition of the partial sums, if `inter_core_tiling` cuts a reduction between cores. If the field is None, a
    reduction must not be cut between cores."""
    part_of_entry: str = field(default="", metadata=LEFT_OUT)
    """Name of the file's entry from which `cut_reductions` made this entry; '' for an entry that is in the file. If an
    entry of the file cuts a reduction between cores, `cut_reductions` makes one entry for each part of the layer, and
    one for each addition of partial sums.
    """
    memory_reach: GivenReach | None = None
    """Topmost memory that each operand of the layer uses.

    None means that the search for data locality decides or, without such a search, that all data start and end in the
    top memory.
    """
    temporal_mapping_type: TemporalMappingType | None = None
    """Type of level boundaries, `uneven` or `even`, which overrides the option of the search. None means that the
    option of the search applies."""
    access_same_data_considered_as_no_access: bool | None = None
    """True if the array does not read an input again when it used the same data in the previous cycle; False if it
    does. None means that the option of the search applies.
    """


@dataclass(frozen=True)
class Mapping:
    """All entries of a mapping file, in file order."""

    entries: tuple[MappingConstraints, ...]
    cut_entries: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)
    """Names of the entries that cut a reduction of a layer between cores; () until `cut_reductions` has replaced such
    layers by their parts.
    """
    plan: NetworkPlan | None = field(default=None, metadata=LEFT_OUT)
    """Network plan of the file; None for a file with entries. A mapping with a plan has only the entry `default`, until
    `applied_plan` has made the entries and stacks of a network.
    """
    stacks: tuple[tuple[int, ...], ...] = field(default=(), metadata=LEFT_OUT)
    """Ids of the layers of each stack, if the file fuses layers; () if the file does not say which layers are fused."""
    places: tuple[int, ...] = field(default=(), metadata=LEFT_OUT)
    """Position that each entry of this mapping has in the file's network plan; -1 for an entry that is not in the plan.
    () for a file without a network plan.
    """

    def constraints_for(self, layer: Layer) -> MappingConstraints:
        """Entry for a layer. The order of precedence is: exact name, operator type, kind of layer, name glob, default.

        A part of a split layer is selected by its own name first, then by the name of the split layer. A part of an
        operator (such as Softmax) is selected by its own name and type first, then by the name and type of the
        operator. Among entries of equal precedence, the first entry counts.

        Raises KeyError if there is no default entry (a validated mapping always has a default entry).
        """
        for entry in self.entries_for(layer):
            return entry
        raise KeyError(DEFAULT)

    def entries_for(self, layer: Layer) -> Iterator[MappingConstraints]:
        """Entries that select a layer, with the highest precedence first. The same entry can appear twice."""
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
    """True if a layer is of the kind `kind`, one of `LAYER_KINDS`. The kind `depthwise` depends on the sizes of the
    layer. Any other kind is a group of operator types, and depends on the operator type of the layer."""
    return is_depthwise(layer) if kind == DEPTHWISE else group_has(kind, layer.operator_type)


def is_depthwise(layer: Layer) -> bool:
    """True for a grouped convolution with one input and one output channel in each group."""
    sizes = layer.size_of
    return sizes.get("G", 1) > 1 and sizes.get("K", 1) == 1 and sizes.get("C", 1) == 1
