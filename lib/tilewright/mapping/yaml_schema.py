"""Schema of the mapping file: entries that select layers, in the dialect of zigzag-dse 3.9.1 with further selectors."""

import re
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator
from pydantic import WithJsonSchema as JsonSchema

from tilewright.base.json_values import JsonObject
from tilewright.base.units import LARGEST_WHOLE_NUMBER, FieldError
from tilewright.base.validation import Count, Name, TableModel, TextForm, json_schema
from tilewright.hardware.yaml_schema import ArrayDimension, Unrolling
from tilewright.mapping.constraints import WILDCARD, TemporalOrderingEntry, TilingEntry
from tilewright.mapping.words import ALL_TILES, ReductionShape, TemporalMappingType
from tilewright.workload.layer import LOOP_DIMENSION, check_loop_dimension

_ORDERING_FORM = '[DIMENSION, size], [DIMENSION, "*"] or ["*", "*"]'


def parse_ordering_entry(value: Any) -> TemporalOrderingEntry:
    """Entry of a temporal ordering, parsed from [DIMENSION, size] (a loop), [DIMENSION, "*"] (a loop of any size) or
    ["*", "*"] (a gap). Raises FieldError for any other value.
    """
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[0], str):
        raise FieldError("must be a loop dimension and a size", _ORDERING_FORM)
    dimension, size = value
    if size == WILDCARD:
        return TemporalOrderingEntry(WILDCARD if dimension == WILDCARD else check_loop_dimension(dimension))
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= LARGEST_WHOLE_NUMBER:
        raise FieldError('the size of a loop must be a whole number of at least 1, or "*"', _ORDERING_FORM)
    if dimension == WILDCARD:
        raise FieldError("a gap has no size", '["*", "*"]')
    return TemporalOrderingEntry(check_loop_dimension(dimension), size)


_TILING = re.compile(r"\s*([A-Za-z][A-Za-z0-9]*)\s*,\s*([0-9]{1,15}|all|\*)\s*")


def parse_tiling_entry(text: str) -> TilingEntry:
    """Loop of a tiling, parsed from text such as `OY, 4`, `OY, all` or `K, *`. Raises FieldError for any other text."""
    match = _TILING.fullmatch(text)
    if match is None:
        raise FieldError("must be a loop dimension and a number of tiles", "`OY, 4`, `OY, all`, between cores `K, *`")
    dimension, tiles = match.groups()
    if tiles in (ALL_TILES, WILDCARD):
        return TilingEntry(check_loop_dimension(dimension), tiles)
    if int(tiles) < 1:
        raise FieldError("the number of tiles must be at least 1", "`OY, 4`, `OY, all`")
    return TilingEntry(check_loop_dimension(dimension), int(tiles))


def parse_intra_core_entry(text: str) -> TilingEntry:
    """Loop of a tiling within a core, parsed from text such as `OY, 4` or `OY, all`. Raises FieldError for any other
    text, such as `OY, *`.
    """
    entry = parse_tiling_entry(text)
    if entry.tiles == WILDCARD:
        raise FieldError("`*` is possible only in inter_core_tiling", "`OY, 4`, `OY, all`")
    return entry


OrderingLoop = Annotated[
    TemporalOrderingEntry,
    PlainValidator(parse_ordering_entry),
    JsonSchema(
        {
            "type": "array",
            "prefixItems": [
                {"type": "string", "pattern": rf"^({LOOP_DIMENSION.pattern}|\*)$"},
                {"anyOf": [{"type": "integer", "exclusiveMinimum": 0}, {"const": WILDCARD}]},
            ],
            "minItems": 2,
            "maxItems": 2,
        }
    ),
]
LoopDimension = Annotated[str, TextForm(check_loop_dimension, LOOP_DIMENSION.pattern)]
MemoryOperand = Literal["I1", "I2", "O"]
IntraCoreLoop = Annotated[TilingEntry, TextForm(parse_intra_core_entry, _TILING.pattern.replace(r"|\*", ""))]
InterCoreLoop = Annotated[TilingEntry, TextForm(parse_tiling_entry, _TILING.pattern)]


class LinksEntry(TableModel):
    """Memory operand of each layer operand. Operands are processed in the order in which they are written."""

    O: MemoryOperand  # noqa: E741
    """Memory operand of the layer's output."""
    W: MemoryOperand
    """Memory operand of the layer's weights."""
    I: MemoryOperand  # noqa: E741
    """Memory operand of the layer's input."""


Boundaries = Annotated[list[Annotated[int, Field(ge=0, le=LARGEST_WHOLE_NUMBER)]], Field(min_length=1)]


class BoundariesEntry(TableModel):
    """Level boundaries of each operand. A boundary is the number of innermost loops that a memory level and all levels
    below it keep. The innermost level comes first."""

    O: Boundaries  # noqa: E741
    """Boundaries of the layer's output."""
    W: Boundaries | None = None
    """Boundaries of the layer's weights. A layer with one input has no weights."""
    I: Boundaries  # noqa: E741
    """Boundaries of the layer's input."""


class TopmostEntry(TableModel):
    """Name of the topmost memory that each operand of the layer uses."""

    O: Name  # noqa: E741
    """Topmost memory of the layer's output. The output ends in this memory."""
    W: Name | None = None
    """Topmost memory of the layer's weights. The weights come from this memory. A layer with one input has no
    weights."""
    I: Name  # noqa: E741
    """Topmost memory of the layer's input. The input comes from this memory."""


class ReachEntry(TableModel):
    """Topmost memories that the operands of the layer use. Usually, a run with data locality has chosen them."""

    topmost: TopmostEntry
    """Topmost memory that each operand of the layer uses."""
    occupied_bits: dict[Name, Count] | None = None
    """Number of bits that data of other layers occupy in each memory while the layer runs, by name of the memory."""


class ReductionEntry(TableModel):
    """Addition of the partial sums of parts that run on different cores."""

    shape: ReductionShape = "tree"
    """Order of the additions. `one_core`: one core adds all partial sums, one after the other. `tree`: pairs are added,
    then pairs of their sums, and so on. `ring`: each core adds one share of the outputs."""
    core: Count | None = None
    """Id of the core that adds the partial sums. Default: the cores of `core_allocation` that can add; if none of them
    can add, all cores that can add.

    Without this key, `one_core` uses only the first of these cores. `ring` does not allow this key, because several
    cores add.
    """


class MappingEntry(TableModel):
    """Constraints for the layers that the entry's name selects."""

    name: Name
    """Selector of layers: a layer name, an operator type, a kind of layer, a glob over layer names, or `default`.

    A kind of layer is `@depthwise`, `@vector`, `@pooling`, ... If several entries match a layer, the kind of selector
    that comes first in this list takes precedence. For a part of an operator (such as `Softmax`), its own name and type
    come first, then the name and type of the operator. An entry called `default` is required.
    """
    spatial_mapping: dict[ArrayDimension, list[Unrolling]] | None = None
    """Loops that are unrolled over each array dimension, such as `K, 32`. Array dimensions that are left out are
    searched."""
    spatial_mapping_hint: dict[ArrayDimension, list[LoopDimension]] | None = None
    """Loop dimensions to try on array dimensions that are searched."""
    memory_operand_links: LinksEntry | None = None
    """Memory operand of each layer operand, one to one. Default: O: O, W: I2, I: I1."""
    temporal_ordering: list[OrderingLoop] | None = None
    """Loops from innermost to outermost. `[OX, 112]` is a loop with its size, `[OX, "*"]` is a loop of any size, and
    `["*", "*"]` stands for any loops."""
    level_boundaries: BoundariesEntry | None = None
    """Memory level that keeps each loop of a complete temporal ordering.

    Default: the allocator decides, as in zigzag-dse.
    """
    memory_reach: ReachEntry | None = None
    """One core only: topmost memory that each operand of the layer uses.

    A run with `exploit_data_locality` chooses these memories and writes them into its mapping. Without this key, all
    data use the top memory.
    """
    temporal_mapping_type: TemporalMappingType | None = None
    """Type of level boundaries. `even`: all operands in a memory have the same boundary. `uneven`: each operand has its
    own boundaries.

    By default, the option `temporal_mapping_type` of the search decides.
    """
    access_same_data_considered_as_no_access: bool | None = None
    """`false`: the array reads an input again even if it used the same data in the previous cycle.

    Default: the value of the parameter with this name in the stage SpatialMappingConversion.
    """
    core_allocation: Annotated[list[Count], Field(min_length=1)] | None = None
    """Several cores only: ids of the cores that can run the layer. By default, the layer can run on every core that
    supports it."""
    core_allocation_is_fixed: bool = False
    """Several cores only. `true`: part g of the layer (from `inter_core_tiling`) runs on core g of the list
    `core_allocation`. `false`: each part can run on any of these cores."""
    intra_core_tiling: list[IntraCoreLoop] | None = None
    """Several cores only: loops that cut a layer into tiles, innermost first. The tiles run one after another.

    Example: `OY, 4` for 4 tiles, or `OY, all` for one tile per line. Dimensions that a layer does not have are ignored.
    """
    inter_core_tiling: list[InterCoreLoop] | None = None
    """Several cores only: loops that cut a layer into parts for different cores, such as `K, 2`.

    `K, *` makes one part for each core of `core_allocation`. A loop of a reduction, such as `C, 2`, needs the key
    `reduction`.
    """
    tiles_if_alone: bool = False
    """Several cores only. `true`: `intra_core_tiling` also cuts a layer that is alone in its stack. `false`: only
    `inter_core_tiling` cuts such a layer."""
    reduction: ReductionEntry | None = None
    """Several cores only: addition of the partial sums if `inter_core_tiling` cuts a reduction, such as `C, 4`.

    `{}` takes the defaults. Without the key, a reduction is not cut between cores.
    """
    layer_dimension_names: list[LoopDimension] | None = None
    """Names for the loop dimensions of the layer in the tilings of this entry. Name i is for loop dimension i of the
    layer."""


MappingFile = Annotated[list[MappingEntry], Field(min_length=1)]


def mapping_schema() -> JsonObject:
    """JSON Schema of a mapping file."""
    return json_schema(MappingFile, "tilewright mapping", "Spatial and temporal mapping constraints by layer.")
