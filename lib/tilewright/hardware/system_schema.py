"""Schema of the multi-core accelerator file: a regular graph (2024) or connections (2025).

Both dialects are those of Stream; docs/multi-core.md names the files of Stream and the additions. Keys of Stream 2.1
that change no number are read and checked too (`unmodelled`).
"""

import math
import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, GetJsonSchemaHandler, Tag
from pydantic import WithJsonSchema as JsonSchema
from pydantic_core import CoreSchema

from tilewright.base.errors import nearest_name
from tilewright.base.json_values import JsonObject
from tilewright.base.units import FieldError, parse_bandwidth_bits
from tilewright.base.validation import (
    TABLE_MARK,
    VALUE_MARK,
    Count,
    EnergyPj,
    FrequencyMhz,
    Name,
    PositiveCount,
    TableModel,
    TextForm,
    json_schema,
    table_or_value,
)
from tilewright.hardware.core_paths import MOST_COPIES
from tilewright.hardware.system import POOLING, SIMD
from tilewright.hardware.topologies import topology_names
from tilewright.hardware.yaml_schema import OperatorType

_CORE_IDS = re.compile(r"\s*[0-9]{1,9}(\s*,\s*[0-9]{1,9})*\s*")
_INFINITE = ("inf", ".inf", "infinite", math.inf)
_PORT_NAME = re.compile(r"([0-9]{1,9})\.([^.]+)\.([^.]+)")
_MEMORY_NAME = re.compile(r"([0-9]{1,9})\.([^.]+)")


def parse_topology(value: object) -> object:
    """The name of a topology. Raises FieldError."""
    names = topology_names()
    if value not in names:
        raise FieldError("not one of the known values", ", ".join(names), nearest_name(str(value), names))
    return value


TopologyName = Annotated[str, BeforeValidator(parse_topology), JsonSchema({"enum": [*topology_names()]})]


def parse_core_ids(value: object) -> tuple[int, ...]:
    """Core ids of "0, 1" or of [0, 1]. Raises FieldError."""
    if isinstance(value, str) and _CORE_IDS.fullmatch(value):
        return tuple(int(part) for part in value.split(","))
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return (value,)
    if isinstance(value, list) and value and all(type(item) is int and item >= 0 for item in value):
        return tuple(value)
    raise FieldError("must be core ids", "text such as '0, 1', or a list such as [0, 1]")


def parse_sharing_group(value: object) -> list[int] | list[tuple[int, str]]:
    """Core ids of "0, 1" or [0, 1], or (core id, memory) of each item of ["0.out", "1.in"]. Raises FieldError."""
    items = value.split(",") if isinstance(value, str) else value
    if isinstance(items, list) and items and all(isinstance(item, str) and "." in item for item in items):
        return [parse_memory_name(item.strip()) for item in items]
    try:
        return list(parse_core_ids(value))
    except FieldError:
        allowed = "text such as '0, 1', a list such as [0, 1], or memories such as [0.out, 1.in]"
        raise FieldError("must be core ids, or memories of cores", allowed) from None


def parse_link_bandwidth(value: object) -> int | float:
    """Bits per cycle of a link as `parse_bandwidth_bits`, or math.inf for `inf`. Raises FieldError."""
    if isinstance(value, str | float) and value in _INFINITE:
        return math.inf
    return parse_bandwidth_bits(value)


def parse_rate_place(value: object) -> tuple[int, str, str]:
    """(core id, memory, port) of "16.dram.rw_port_1", (core id, "", "") of a core id. Raises FieldError."""
    if type(value) is int and value >= 0:
        return value, "", ""
    match = _PORT_NAME.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise FieldError("must be a core or a port of a core", "a core id, or '<core id>.<memory>.<port>'")
    return int(match[1]), match[2], match[3]


def parse_memory_name(value: object) -> tuple[int, str]:
    """(core id, memory) of "3.sram". Raises FieldError."""
    match = _MEMORY_NAME.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise FieldError("must be a memory of a core", "'<core id>.<memory>'")
    return int(match[1]), match[2]


def _checked_place(value: object) -> object:
    parse_rate_place(value)
    return value


LinkBandwidth = Annotated[
    int | float,
    BeforeValidator(parse_link_bandwidth),
    JsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "pattern": r"^.*(/(cycle|clk)|inf).*$"},
            ]
        }
    ),
]
CoreId = Count
CoreFile = Name
Coordinates = Annotated[list[Count], Field(min_length=2, max_length=2)]
ContainedCores = Annotated[dict[Name, dict[str, Any]], Field(min_length=1)] | None
CoreCounts = dict[CoreId, Annotated[PositiveCount, Field(le=MOST_COPIES)]]
_IDS_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "pattern": f"^{_CORE_IDS.pattern}$"},
        {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
    ]
}
CoreIds = Annotated[list[int], BeforeValidator(lambda value: list(parse_core_ids(value))), JsonSchema(_IDS_SCHEMA)]


_MEMORIES_SCHEMA: dict[str, Any] = {
    "type": "array",
    "items": {"type": "string", "pattern": f"^{_MEMORY_NAME.pattern}$"},
    "minItems": 2,
}
SharingGroup = Annotated[
    list[int | tuple[int, str]],
    BeforeValidator(parse_sharing_group),
    JsonSchema({"anyOf": [*_IDS_SCHEMA["anyOf"], _MEMORIES_SCHEMA]}),
]
PositiveNumber = Annotated[float, Field(gt=0, allow_inf_nan=False)]
MemoryName = Annotated[tuple[int, str], TextForm(parse_memory_name, _MEMORY_NAME.pattern)]


class StridedEntry(TableModel):
    """Measured rates for parts of rows."""

    read: dict[PositiveCount, PositiveNumber] = Field(default={})
    """Bits per cycle by number of bytes in a row."""
    write: dict[PositiveCount, PositiveNumber] = Field(default={})
    """Bits per cycle by number of bytes in a row."""


class RateEntry(TableModel):
    """Rates of a port, or of a core, in addition to the widths in its file (Stream 2.1). Read; not modelled."""

    ceiling: PositiveNumber
    """Bits per cycle of reads and writes together."""
    contiguous: PositiveNumber
    """Bits per cycle of one direction."""
    strided: StridedEntry | None = None
    """Rates for parts of rows, if measured."""
    burst: PositiveCount | None = None
    """Bytes that an access moves."""


class ReconfigurationEntry(TableModel):
    """Cycles to reconfigure tiles of types aie2 (Stream 2.1). Read; not modelled."""

    cycles_per_column: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Cycles per column of the array."""
    reset_cycles: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Cycles for the whole array."""


RatePlace = Annotated[int | str, BeforeValidator(_checked_place), JsonSchema({"type": "string"})]
FileBandwidth = Annotated[
    Annotated[dict[RatePlace, RateEntry], Tag(TABLE_MARK)] | Annotated[LinkBandwidth, Tag(VALUE_MARK)],
    Discriminator(table_or_value),
]


class ConnectionEntry(TableModel):
    """A link between two cores, or a bus between several."""

    type: Literal["link", "bus"] = "link"
    """`link`: two cores; each direction has the full bandwidth, unless `directed` or `duplex` say otherwise.
    `bus`: one medium that all transfers between its cores share."""
    cores: Annotated[list[CoreId], Field(min_length=2)]
    """Ids of the cores that it joins; the off-chip core may be among them."""
    bandwidth: LinkBandwidth | None = None
    """Bits per cycle (or `8 B/cycle`, or `inf`), or per second (`32 GB/s`) with a `clock_frequency`; default: the
    `bandwidth` of the file."""
    unit_energy_cost: EnergyPj | None = None
    """Energy of a busy cycle, in pJ; default: that of the file."""
    energy_per_bit: EnergyPj | None = None
    """Energy of carrying a bit, in pJ (or `80 fJ`), instead of `unit_energy_cost`."""
    directed: bool = False
    """`true`: only the first of `cores` sends, the others receive."""
    duplex: Literal["full", "half"] | None = None
    """`half`: both directions of a link share its bandwidth. Default: `full`."""


class _ConnectionForms:
    """Marker of connections whose JSON Schema is made on demand, because making it is slow."""

    def __get_pydantic_json_schema__(self, _: CoreSchema, __: GetJsonSchemaHandler) -> JsonObject:
        return {"anyOf": [*_IDS_SCHEMA["anyOf"], ConnectionEntry.model_json_schema()]}


Connection = Annotated[
    Annotated[ConnectionEntry, Tag(TABLE_MARK)] | Annotated[CoreIds, Tag(VALUE_MARK)],
    Discriminator(table_or_value),
    _ConnectionForms(),
]


class ConnectivityFile(TableModel):
    """An accelerator of several cores, with a list of the links between them (Stream, 2025)."""

    name: Name
    """Name of the accelerator."""
    cores: Annotated[dict[CoreId, CoreFile], Field(min_length=1)]
    """Core files by core id. A file is looked for beside this file first."""
    offchip_core: CoreFile | None = None
    """Core file of the off-chip memory; its id is the largest of `cores` plus one."""
    offchip_core_id: CoreId | None = None
    """Id of the off-chip memory among `cores`, instead of `offchip_core`."""
    core_connectivity: list[Connection] = Field(default=[])
    """Links and buses: `0, 1` for a link in each direction, more ids for a bus, or a table with bandwidth and energy.

    If none of them names the off-chip core, its ports link it with all other cores.
    """
    core_memory_sharing: list[SharingGroup] = Field(default=[])
    """Groups of cores, as `0, 1`, whose top memories of equal name are the same memory.

    A group may also list top memories, as `[0.out, 1.in]`, that are one memory; their cores share no others by it.
    """
    bandwidth: FileBandwidth | None = None
    """Bandwidth of links that have none of their own, in bits per cycle (or `8 B/cycle`, or `inf`), or
    per second (`32 GB/s`) with a `clock_frequency`. A table of rates by
    core or port (Stream 2.1) is read and not modelled."""
    unit_energy_cost: EnergyPj | None = None
    """Energy of a busy cycle of links that have none of their own, in pJ; default 0."""
    energy_per_bit: EnergyPj | None = None
    """Energy of carrying a bit, in pJ (or `80 fJ`), instead of `unit_energy_cost`."""
    core_files: ContainedCores = None
    """Core descriptions by name, in place of files: with it `cores` and `offchip_core` are such names."""
    core_counts: CoreCounts = Field(default={})
    """Number of instances of a core in the accelerator, by core id; default 1.

    Copies have the ids after the largest of `cores`, are on the buses of the core, have its links and its role, and
    share the memories that it shares.
    """
    core_roles: dict[CoreId, Literal["compute", "pooling", "simd", "memory"]] = Field(default={})
    """Roles of cores, by core id; default `compute`."""
    core_operator_types: dict[CoreId, Annotated[list[OperatorType], Field(min_length=1)]] = Field(default={})
    """Operators that cores can run, by core id, instead of those in their files."""
    routers: list[CoreId] | None = None
    """Cores through which data of others may pass; default: all compute cores."""
    clock_frequency: FrequencyMhz | None = None
    """Frequency of the clock of all cores, in MHz (or `1.2 GHz`), unless core files give it."""
    core_coordinates: dict[CoreId, Coordinates] = Field(default={})
    """Column and row of cores, as `[column, row]` by core id, for their position in figures."""
    technology_node: Name | None = None
    """The process, as `n3` (Stream 2.1). Not modelled."""
    memory_aliases: list[Annotated[list[MemoryName], Field(min_length=2)]] = Field(default=[])
    """Groups of memories, as `3.sram`, that are one (Stream 2.1). Not modelled."""
    kernel_library: Name | None = None
    """A file of kernels for tiles of types aie2 (Stream 2.1). Not modelled."""
    reconfiguration: ReconfigurationEntry | None = None
    """Cycles to reconfigure these tiles (Stream 2.1). Not modelled."""


class GraphEntry(TableModel):
    """A regular graph of cores."""

    type: TopologyName
    """`2d_mesh`: links between neighbours; `2d_torus`: the ends of rows and columns are linked too; `ring`: each core
    with the next one; `bus`: one medium that all share."""
    nb_rows: PositiveCount | None = None
    """Rows of a mesh or torus. Core i stands in row i mod nb_rows, column i div nb_rows."""
    nb_cols: PositiveCount | None = None
    """Columns of a mesh or torus; nb_rows times nb_cols is the number of cores that have no other role."""
    sizes: dict[Name, PositiveCount] = Field(default={})
    """Further sizes by name, for topologies of plug-ins that need them."""
    bandwidth: LinkBandwidth
    """Bandwidth of each link, in bits per cycle (or `8 B/cycle`), or per second (`32 GB/s`) with `clock_frequency`."""
    unit_energy_cost: EnergyPj = 0.0
    """Energy of a busy cycle of a link, in pJ."""
    pooling_core_id: CoreId | None = None
    """Id of the core for pooling, which is linked with every core of the graph."""
    simd_core_id: CoreId | None = None
    """Id of the core for elementwise operators.

    In a graph of type bus it is on the bus; in other graphs its links have infinite bandwidth and no cost.
    """
    offchip_core_id: CoreId | None = None
    """Id of the off-chip memory, which its ports link with all cores."""


class GraphFile(TableModel):
    """An accelerator of several cores in a regular graph (Stream, 2024)."""

    name: Name
    """Name of the accelerator."""
    cores: Annotated[list[CoreFile], Field(min_length=1)]
    """Core files; the position in the list is the core id. A file is looked for beside this file first."""
    graph: GraphEntry
    """Regular graph that links the cores."""
    core_files: ContainedCores = None
    """Core descriptions by name, in place of files: with it `cores` are such names."""
    core_counts: CoreCounts = Field(default={})
    """Number of instances of a core in the graph, by core id; default 1. Copies have the ids after the last one."""
    core_memory_sharing: list[SharingGroup] = Field(default=[])
    """Groups of cores, as `0, 1`, whose top memories of equal name are the same memory.

    A group may also list top memories, as `[0.out, 1.in]`, that are one memory; their cores share no others by it.
    """
    core_operator_types: dict[CoreId, Annotated[list[OperatorType], Field(min_length=1)]] = Field(default={})
    """Operators that cores can run, by core id, instead of those in their files."""
    routers: list[CoreId] | None = None
    """Cores through which data of others may pass; default: all but pooling, SIMD and off-chip core."""
    clock_frequency: FrequencyMhz | None = None
    """Frequency of the clock of all cores, in MHz (or `1.2 GHz`), unless core files give it."""


SystemFile = ConnectivityFile | GraphFile
ROLE_KEYS = {"pooling_core_id": POOLING, "simd_core_id": SIMD}


def multi_core_schema() -> JsonObject:
    """JSON Schema of the file of an accelerator of several cores."""
    text = "Several cores: their files, the links between them, the off-chip memory."
    return json_schema(SystemFile, "tilewright multi-core accelerator", text)
