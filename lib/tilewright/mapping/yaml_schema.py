"""The mapping file: entries, each for the layers it selects, in the dialect of zigzag-dse 3.9.1 plus selectors."""

import re
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator
from pydantic import WithJsonSchema as JsonSchema

from tilewright.base.json_values import JsonObject
from tilewright.base.units import LARGEST_WHOLE_NUMBER, FieldError
from tilewright.base.validation import Count, Name, TableModel, TextForm, json_schema
from tilewright.hardware.yaml_schema import ArrayDimension, Unrolling
from tilewright.mapping.constraints import WILDCARD, TemporalOrderingEntry, TilingEntry
from tilewright.mapping.words import ALL_TILES, TemporalMappingType
from tilewright.workload.layer import LOOP_DIMENSION, check_loop_dimension

_ORDERING_FORM = '[DIMENSION, size], [DIMENSION, "*"] or ["*", "*"]'


def parse_ordering_entry(value: Any) -> TemporalOrderingEntry:
    """One loop of a temporal ordering from [DIMENSION, size], [DIMENSION, "*"], ["*", "*"]. Raises FieldError."""
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
    """A loop of a tiling from `OY, 4`, `OY, all` or `K, *`. Raises FieldError."""
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
    """A loop of a tiling within a core, where `*` means nothing. Raises FieldError."""
    entry = parse_tiling_entry(text)
    if entry.tiles == WILDCARD:
        raise FieldError("only tiles between cores can be left open", "`OY, 4`, `OY, all`")
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
    """The memory operand that each layer operand uses. The order of writing is the order of processing."""

    O: MemoryOperand  # noqa: E741
    """Memory operand of the layer's output."""
    W: MemoryOperand
    """Memory operand of the layer's weights."""
    I: MemoryOperand  # noqa: E741
    """Memory operand of the layer's input."""


Boundaries = Annotated[list[Annotated[int, Field(ge=0, le=LARGEST_WHOLE_NUMBER)]], Field(min_length=1)]


class BoundariesEntry(TableModel):
    """Loops of the temporal ordering of each operand up to and including each memory level, from inside."""

    O: Boundaries  # noqa: E741
    """Boundaries of the layer's output."""
    W: Boundaries | None = None
    """Boundaries of the layer's weights; a layer with one input has none."""
    I: Boundaries  # noqa: E741
    """Boundaries of the layer's input."""


class TopmostEntry(TableModel):
    """The last memory of the core that each operand of the layer uses, by its name."""

    O: Name  # noqa: E741
    """Where the layer's output ends."""
    W: Name | None = None
    """Where the layer's weights come from; a layer with one input has none."""
    I: Name  # noqa: E741
    """Where the layer's input comes from."""


class ReachEntry(TableModel):
    """Up to which memory the data of a layer go: what data locality decided."""

    topmost: TopmostEntry
    """The last memory that each operand of the layer uses."""
    occupied_bits: dict[Name, Count] | None = None
    """Bits that data of other layers take while the layer runs, by name of the memory."""


class MappingEntry(TableModel):
    """Constraints for the layers that the entry's name selects."""

    name: Name
    """Which layers: a layer name, an operator type, `@` and a kind of layer (`@depthwise`, `@vector`, `@pooling`,
    ...), a glob over layer names, or `default`. For each layer the first of these kinds that matches counts. An
    operator that is costed in parts, as `Softmax`, has its name and type for all of them, behind those of the part. An
    entry called `default` is required."""
    spatial_mapping: dict[ArrayDimension, list[Unrolling]] | None = None
    """Loops unrolled over each array dimension, as `K, 32`; array dimensions left out are searched."""
    spatial_mapping_hint: dict[ArrayDimension, list[LoopDimension]] | None = None
    """Loop dimensions to try on array dimensions that are searched."""
    memory_operand_links: LinksEntry | None = None
    """Layer operand to memory operand, one to one; by default O: O, W: I2, I: I1."""
    temporal_ordering: list[OrderingLoop] | None = None
    """Loops from innermost to outermost, as [OX, 112], [OX, "*"] for any size, ["*", "*"] for any loops between."""
    level_boundaries: BoundariesEntry | None = None
    """Which memory level keeps which loops of a complete temporal ordering; without it the allocator decides, as in
    zigzag-dse."""
    memory_reach: ReachEntry | None = None
    """One core: up to which memory the data of the layer go, as `exploit_data_locality` decided in the run that the
    mapping is from; without it all the way up."""
    temporal_mapping_type: TemporalMappingType | None = None
    """Whether operands that share a memory share level boundaries; without it the option of the search counts."""
    access_same_data_considered_as_no_access: bool | None = None
    """False if an input that the array uses again in the next cycle is read again; without it the parameter of
    SpatialMappingConversion counts."""
    core_allocation: Annotated[list[Count], Field(min_length=1)] | None = None
    """Several cores: ids of those that may run the layer; without it any that can."""
    core_allocation_is_fixed: bool = False
    """Several cores: true if group g of the layer (a part of `inter_core_tiling`) runs on core g of the list."""
    intra_core_tiling: list[IntraCoreLoop] | None = None
    """Several cores: loops that cut a layer into tiles which run one after the other, innermost first, as `OY, 4` for
    4 tiles or `OY, all` for one of each line. Dimensions that a layer does not have are passed over."""
    inter_core_tiling: list[InterCoreLoop] | None = None
    """Several cores: loops that cut a layer into parts for different cores, as `K, 2`; `K, *` is one for each core of
    `core_allocation`."""
    layer_dimension_names: list[LoopDimension] | None = None
    """Names that the tilings of this entry use for the loop dimensions of the layer, in the order of the layer."""


MappingFile = Annotated[list[MappingEntry], Field(min_length=1)]


def mapping_schema() -> JsonObject:
    """The JSON Schema of a mapping file."""
    return json_schema(MappingFile, "tilewright mapping", "Spatial and temporal mapping constraints by layer.")
