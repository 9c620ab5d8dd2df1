"""Tables and fields of the hardware file of one core.

The file has the form of zigzag-dse 3.9.1, but values can have units.
"""

import re
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Discriminator, Field, Tag, WithJsonSchema, create_model

from tilewright.base.errors import InputError, Problem, nearest_name
from tilewright.base.json_values import JsonObject
from tilewright.base.operator_groups import GROUPS, KNOWN_TYPES, MAC
from tilewright.base.units import FieldError
from tilewright.base.validation import (
    LIST_MARK,
    TABLE_MARK,
    AreaAsWritten,
    BandwidthBits,
    Count,
    EnergyPj,
    FrequencyMhz,
    Name,
    PositiveCount,
    PowerMw,
    SizeBits,
    TableModel,
    TextForm,
    WordEnergyPj,
    json_schema,
    table_or_list,
)
from tilewright.hardware.attributes import OWNER_WORDS, Attribute, Owner, Quantity, attributes
from tilewright.hardware.core import DIRECTIONS, MEMORY_OPERANDS

_ALLOCATION = re.compile(r"\s*(\w+)\s*,\s*(\w+)\s*")
_UNROLLING = re.compile(r"\s*([A-Za-z][A-Za-z0-9]*)\s*,\s*([0-9]{1,15})\s*")
_ARRAY_DIMENSION = re.compile(r"D[0-9]{1,2}")


def parse_allocation(text: str) -> tuple[str, str]:
    """Pair (memory operand, direction) from "I1, tl". Raises FieldError."""
    match = _ALLOCATION.fullmatch(text)
    allowed = f"'<operand>, <direction>' with {'/'.join(MEMORY_OPERANDS)} and {'/'.join(DIRECTIONS)}, such as 'I1, tl'"
    if match is None:
        raise FieldError("must be an operand and a direction", allowed)
    operand, direction = match.groups()
    if operand not in MEMORY_OPERANDS:
        raise FieldError(f"unknown memory operand '{operand}'", ", ".join(MEMORY_OPERANDS))
    if direction not in DIRECTIONS:
        raise FieldError(f"unknown direction '{direction}'", ", ".join(DIRECTIONS))
    return operand, direction


def parse_unrolling(text: str) -> tuple[str, int]:
    """Pair (loop dimension in upper case, factor) from "K, 32". Raises FieldError."""
    match = _UNROLLING.fullmatch(text)
    if match is None:
        raise FieldError("must be a loop dimension and a factor", "'<DIMENSION>, <factor>', such as 'K, 32'")
    if int(match[2]) == 0:
        raise FieldError("a spatial factor must be at least 1")
    return match[1].upper(), int(match[2])


def check_array_dimension(text: str) -> str:
    """`text` itself if it can be the name of an array dimension. Otherwise raises FieldError."""
    if _ARRAY_DIMENSION.fullmatch(text) is None:
        raise FieldError("is not the name of an array dimension", "D1, D2, D3, ...")
    return text


def check_operator_type(text: str) -> str:
    """`text` itself if it is an ONNX operator type or the name of a group of operators. Otherwise raises FieldError."""
    if text in GROUPS or text in KNOWN_TYPES:
        return text
    allowed = f"an ONNX operator type, such as MaxPool, or one of {', '.join(GROUPS)}; plug-in operators: vector or all"
    raise FieldError("is neither an operator type nor a group of operator types", allowed, _nearest_type(text))


def _nearest_type(text: str) -> str:
    """Operator type or operator group whose name is most similar to `text`; '' if none is similar. Case is ignored."""
    names = {name.lower(): name for name in (*KNOWN_TYPES, *GROUPS)}
    return names.get(nearest_name(text.lower(), list(names)), "")


OperatorType = Annotated[str, TextForm(check_operator_type, ""), WithJsonSchema({"enum": [*GROUPS, *KNOWN_TYPES]})]
ArrayDimension = Annotated[str, TextForm(check_array_dimension, _ARRAY_DIMENSION.pattern)]
Allocation = Annotated[
    tuple[str, str], TextForm(parse_allocation, rf"\s*({'|'.join(MEMORY_OPERANDS)})\s*,\s*({'|'.join(DIRECTIONS)})\s*")
]
Unrolling = Annotated[tuple[str, int], TextForm(parse_unrolling, _UNROLLING.pattern)]
Resolution = Annotated[float, Field(ge=0, le=64, allow_inf_nan=False)]
CoreType = Literal[
    "compute", "memory", "shim", "offchip", "zigzag.compute", "zigzag.memory", "zigzag.shim", "zigzag.offchip"
]
DramType = Literal[
    "ddr3", "ddr4", "ddr5", "lpddr4", "lpddr4x", "lpddr5", "lpddr5x", "gddr5", "gddr6", "hbm2", "hbm2e", "hbm3"
]
ElementType = Literal["int4", "int8", "uint8", "int16", "int24", "bf16", "fp16", "int32", "fp32"]
Model = TypeVar("Model", bound=TableModel)
DataflowEntry = dict[ArrayDimension, list[Unrolling]]
_Dataflows = Annotated[
    Annotated[DataflowEntry, Tag(TABLE_MARK)]
    | Annotated[list[Annotated[DataflowEntry, Field(min_length=1)]], Field(min_length=1), Tag(LIST_MARK)],
    Discriminator(table_or_list),
]


class PortEntry(TableModel):
    """Port of a memory."""

    name: Name
    """Name of the port, for example `r_port_1`."""
    type: Literal["read", "write", "read_write"]
    """Kind of access of the port. A read port cannot carry fh or fl; a write port cannot carry tl or th."""
    bandwidth_min: BandwidthBits
    """Smallest amount of data that an access can move, in bits per cycle (or `8 B/cycle`). For the energy, the size of
    a transfer is rounded up to a multiple of this amount.

    A bandwidth per second (`25.6 GB/s`) needs `clock_frequency`.
    """
    bandwidth_max: BandwidthBits
    """Word width, in bits per cycle (or `8 B/cycle`). A bandwidth per second (`25.6 GB/s`) needs `clock_frequency`."""
    allocation: list[Allocation]
    """Pairs (operand, direction) that the port carries, such as `I1, tl`. The directions are tl (read out to the lower
    level), fl (written by the lower level), th (read out to the higher level) and fh (written by the higher level). If
    two ports list the same pair, the later port carries this pair.
    """


_FROM = Field(description="Kind of the memory: `sram` (CACTI), `register_file` (flip-flops) or `dram` (off the chip).")
_Law: Any = create_model(  # type: ignore[call-overload]
    "_Law", __base__=TableModel, **{"from": (Literal["sram", "register_file", "dram"], _FROM)}
)


class CostEntry(_Law):  # type: ignore[misc]
    """Costs of a memory from the library of costs (docs/costs.md). The costs depend on the size of the memory and the
    widths of its ports."""

    node_nm: Annotated[float, Field(gt=0, le=1000)] | None = None
    """Process node of `sram` and `register_file`, in nm. CACTI has 22, 32, 45 and 65 nm; a scaling law covers 7 to 180
    nm."""
    cells: Literal["hp", "lstp"] | None = None
    """Cells of `sram`: high performance (`hp`, the default) or low standby power (`lstp`).

    Cells for low standby power are slower and have a thousandth of the leakage.
    """
    type: DramType | None = None
    """Type of DRAM, if `from` is `dram`."""
    energy_factor: Annotated[float, Field(gt=0, le=1000)] | None = None
    """Factor for the energies of the library, such as 1.2 for 20 % more. Default: 1. Area and leakage do not change."""


class CacheEntry(TableModel):
    """Cache between the core and a memory. The cache shortens the latency of requests to the memory
    (docs/model/waiting.md).
    """

    size: SizeBits
    """Capacity, in bits (or `512 KiB`)."""
    request_latency_cycles: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Cycles from a request to the arrival of its data, if the cache has the data."""


class RunLengthEntry(TableModel):
    """Run-length compression of the data in a memory (docs/model/zeros.md). The code of the data is a list of pairs
    (number of zeros, next element that is not zero). In Eyeriss, a word of 64 bits has three pairs, each with a number
    of 5 bits and an element of 16 bits."""

    operands: Annotated[list[Literal["I1", "I2", "O"]], Field(min_length=1)]
    """Memory operands whose data are compressed. For O, only final outputs are compressed. The workload gives the
    shares of zeros."""
    run_bits: Annotated[int, Field(ge=1, le=16)]
    """Number of bits that store the number of zeros before an element."""
    pairs: Annotated[int, Field(ge=1, le=1024)]
    """Number of pairs (number of zeros, element) in a word."""
    word: SizeBits
    """Size of a word of `pairs` pairs, in bits (or `8 B`)."""


class ZeroGatingEntry(TableModel):
    """Gating of operations with a zero (docs/model/zeros.md): such an operation takes its cycle, but no energy."""

    operands: Annotated[list[Literal["I1", "I2"]], Field(min_length=1)]
    """Memory operands whose zeros stop an operation. The workload gives the shares of zeros."""
    reads_of: Annotated[list[Literal["I1", "I2"]], Field(min_length=1)] | None = None
    """Memory operands whose reads from the innermost memory can be left out. A read is left out if zeros of the other
    operand stop all operations that need the read."""


class MemoryEntry(TableModel):
    """Memory of a core. The file lists memories from innermost to outermost."""

    size: SizeBits
    """Capacity of one instance, in bits (or `2 KiB`)."""
    r_cost: WordEnergyPj | None = None
    """Energy of reading one word of `bandwidth_max` bits, in pJ (or `1 nJ`), or per bit (`8 pJ/b`).

    Required unless `cost` is given.
    """
    w_cost: WordEnergyPj | None = None
    """Energy of writing one word of `bandwidth_max` bits, in pJ (or `1 nJ`), or per bit (`8 pJ/b`).

    Required unless `cost` is given.
    """
    area: AreaAsWritten | None = None
    """Area of one instance, such as `0.25 mm2` or `1200 um2`. `area_unit` gives the unit of a plain number."""
    latency: Count = 1
    """Access latency in cycles. The key is read but not modelled."""
    mem_type: Literal["sram", "dram", "rf"] = "sram"
    """Technology of the memory. The key is used only with `auto_cost_extraction`."""
    auto_cost_extraction: bool = False
    """`true`: in place of r_cost, w_cost and area, the memory has the costs that ZigZag would get from CACTI
    (docs/costs.md)."""
    cost: CostEntry | None = None
    """Costs from the library of costs in place of r_cost, w_cost and area, such as `{from: sram, node_nm: 22}`."""
    operands: Annotated[list[Literal["I1", "I2", "O"]], Field(min_length=1)]
    """Memory operands that the memory holds."""
    ports: Annotated[list[PortEntry], Field(min_length=1)]
    """Ports of each instance of the memory."""
    served_dimensions: list[ArrayDimension]
    """Array dimensions along which one instance serves all units: the instance multicasts data to the units or collects
    data from the units. [] means one instance per unit."""
    force_double_buffering: bool = False
    """`true`: only half of the size is usable, so that the next tile can be loaded while the current one is used."""
    caches: Annotated[list[CacheEntry], Field(min_length=1, max_length=4)] | None = None
    """Caches between the core and the memory, from the smallest to the largest. Needs `request_latency_cycles`."""
    row_dimensions: Annotated[list[Name], Field(min_length=1)] | None = None
    """Loop dimensions along which elements have consecutive addresses in the memory. Each operand uses only the
    first of the listed dimensions that indexes the operand. Needs `burst`."""
    tile_dimensions: list[Name] | None = None
    """Loop dimensions along which a tile in the memory can be larger than the tiles in the memories below
    (docs/model/control.md). Default: all. The key does not limit loops that only reuse data.
    """
    loop_order: Annotated[list[Name], Field(min_length=2)] | None = None
    """Order of loop dimensions, inner to outer (docs/model/control.md). The order applies from the innermost loop that
    steps through data of this memory up to the outermost loop. Dimensions that are not listed can have any place.
    Default: any order.
    """
    run_length: RunLengthEntry | None = None
    """Compression of the data in the memory. Default: none. The ports move compressed data, but in the memory the data
    take as much room as without compression."""


class ArrayEntry(TableModel):
    """Array of multipliers (or other operational units)."""

    dimensions: Annotated[list[ArrayDimension], Field(min_length=1)]
    """Names of the array dimensions: D1, D2, ..."""
    sizes: list[PositiveCount]
    """Number of units along each dimension."""
    unit_energy: EnergyPj | None = None
    """Energy of one operation, in pJ (or `40 fJ`).

    The key is required, except for in-memory arrays, which have a model of their circuits.
    """
    unit_area: AreaAsWritten | None = None
    """Area of one unit, such as `318 um2`. `area_unit` gives the unit of a plain number."""
    systolic_dimensions: list[ArrayDimension] = Field(default=[])
    """Array dimensions along which data move from unit to unit. These dimensions add cycles to drain the array."""
    command_dimensions: Annotated[list[Name], Field(min_length=1)] | None = None
    """Loop dimensions that one command of the array covers. Default: the innermost loop. Needs `command_iterations`."""
    unrolled_dimensions: dict[ArrayDimension, list[Name]] | None = None
    """Loop dimensions that the array can unroll along each array dimension (docs/model/control.md). Default: all."""
    zero_gating: ZeroGatingEntry | None = None
    """Gating of operations with a zero. Default: none, so every operation takes `unit_energy`."""
    input_precision: Annotated[list[Count], Field(min_length=2, max_length=2)] | None = None
    """Number of bits of activations and of weights in an in-memory array, both powers of two. Other arrays do not use
    this key."""
    is_imc: bool = False
    """`true`: the array computes in memory. The dimension whose name sorts first runs along the word lines, the second
    along the bit lines, and further dimensions are banks. The memory `cells` holds weights at each crossing of lines
    (docs/model/in-memory-arrays.md).
    """
    imc_type: Literal["analog", "digital"] | None = None
    """Kind of in-memory array: `analog` arrays add products on bit lines, `digital` arrays in adder trees."""
    adc_resolution: Resolution | None = 0
    """Resolution in bits of the converters of an analog in-memory array."""
    bit_serial_precision: Count | None = None
    """Number of bits of an activation that an in-memory array takes per cycle; a power of two."""


class BanksEntry(TableModel):
    """Banks of a core's memory (Stream 2.1). The banks are read but not modelled: no access waits for a bank, as in
    Stream."""

    count: PositiveCount
    """Number of banks."""
    width: PositiveCount
    """Number of bytes in a word of a bank."""
    stripe: PositiveCount = 1
    """Number of consecutive words that lie in one bank before the next bank begins."""


class OperandPrecisionEntry(TableModel):
    """Element types of a core's units (Stream 2.1). The types are read but not modelled: precisions come from the
    workload."""

    input: ElementType | None = None
    """Element type of the inputs of a multiplication."""
    accumulator: ElementType | None = None
    """Element type of partial sums. Stream uses it for the partial sums of convolutions and matrix products."""


class HardwareFile(TableModel):
    """Core: an operational array and memories."""

    name: Name
    """Name of the core."""
    type: CoreType | None = None
    """Role of the core (Stream 2.1): `compute`, or one of `memory`, `shim`, `offchip` for a core that only stores data.

    A core that only stores data can have an array without units.
    """
    memories: Annotated[dict[Name, MemoryEntry], Field(min_length=1)]
    """Memories by name, from innermost to outermost."""
    operational_array: ArrayEntry
    """Array of operational units."""
    area_unit: Literal["mm2", "none"] | None = None
    """Unit of areas that the file gives as plain numbers.

    `none`: the unit is unknown, as in ZigZag's examples, so areas are not compared. The default is mm2 in three cases:
    some area of the file has a unit, no area is above 0, or the array is an in-memory array. Otherwise, the default is
    none.
    """
    clock_frequency: FrequencyMhz | None = None
    """Frequency of the clock, in MHz (or `1.2 GHz`). The frequency turns cycles into seconds and static power into
    energy."""
    dataflows: _Dataflows | None = None
    """Spatial mappings for layers that have none in the mapping file: loops by array dimension, such as `K, 16`.

    From a list of such tables, each layer gets the best table. The key has an effect only in runs on several cores.
    """
    exclusive_dataflows: bool | None = None
    """`true`: the array runs only its `dataflows`. If a layer has no loop of the dataflow for an array dimension, only
    one unit along this dimension works. A layer that has no loop of any dataflow runs on one unit of the array.

    `false`, the default: if a layer has no loop of the dataflow for an array dimension, a search chooses the loops of
    this dimension.
    """
    operator_types: Annotated[list[OperatorType], Field(min_length=1)] = Field(default=[MAC])
    """Operators that the core can run: ONNX operator types (`MaxPool`) and groups of them.

    The groups are `mac`, `vector`, `pooling`, `elementwise`, `normalization`, `reduction`, `softmax` and `all`.

    On one core, other operators have no cost, and results list them. On several cores, a core without this key runs the
    layers that the mapping file or its role assigns to it.
    """
    operand_precision: OperandPrecisionEntry | None = None
    """Element types of the core's units (Stream 2.1). Not modelled."""
    banks: BanksEntry | None = None
    """Banks of the core's memory (Stream 2.1). Not modelled."""


_QUANTITIES: dict[Quantity, Any] = {
    "power_mw": PowerMw,
    "energy_pj": EnergyPj,
    "size_bits": SizeBits,
    "count": Count,
    "number": Annotated[float, Field(ge=0, allow_inf_nan=False)],
}


def hardware_file() -> type[HardwareFile]:
    """Pydantic class for hardware files, with a key for each attribute (`hardware.attributes`)."""
    return _hardware_file(attributes())


@cache
def _hardware_file(known: tuple[Attribute, ...]) -> type[HardwareFile]:
    memory: Any = _with_attributes(MemoryEntry, "memory", known)
    tables: dict[str, Any] = {
        "memories": (Annotated[dict[Name, memory], Field(min_length=1)], ...),
        "operational_array": (_with_attributes(ArrayEntry, "array", known), ...),
    }
    return _with_attributes(HardwareFile, "core", known, **tables)


def _with_attributes(table: type[Model], owner: Owner, known: tuple[Attribute, ...], **fields: Any) -> type[Model]:
    """Subclass of `table` with further keys. `known` has attributes of all owners; each attribute of `owner` gives a
    key. `fields` are further fields of the subclass.

    Raises InputError if `table` already has the key of an attribute.
    """
    if both := [one.key for one in known if one.of == owner and one.key in table.model_fields]:
        raise InputError(
            [
                Problem(
                    "has a key that hardware files already use for something else",
                    f"attribute of {OWNER_WORDS[owner]}",
                    value=key,
                )
                for key in both
            ]
        )
    own = {
        one.key: (_QUANTITIES[one.quantity] | None, Field(default=None, description=one.sentence))
        for one in known
        if one.of == owner
    }
    made: Any = create_model(
        table.__name__,
        __base__=table,
        __module__=__name__,
        __doc__=table.__doc__,
        **fields,
        **own,  # type: ignore[call-overload]
    )
    return made  # type: ignore[no-any-return]


def hardware_schema() -> JsonObject:
    """JSON Schema of a hardware file."""
    return json_schema(hardware_file(), "tilewright hardware", "One core: operational array and memory hierarchy.")
