"""Schema of the multi-core accelerator file: a regular graph (2024) or a list of connections (2025).

Both forms of the file are those of Stream. docs/multi-core.md lists the files of Stream, and the keys that tilewright
adds. Keys of Stream 2.1 that change no result are also read and checked (`note_unmodelled`).
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
from tilewright.hardware.topologies import topology_names, topology_text
from tilewright.hardware.yaml_schema import OperatorType

_CORE_IDS = re.compile(r"\s*[0-9]{1,9}(\s*,\s*[0-9]{1,9})*\s*")
_INFINITE = ("inf", ".inf", "infinite", math.inf)
_PORT_NAME = re.compile(r"([0-9]{1,9})\.([^.]+)\.([^.]+)")
_MEMORY_NAME = re.compile(r"([0-9]{1,9})\.([^.]+)")


def parse_topology(value: object) -> object:
    """Name of a topology. Raises FieldError if it is unknown."""
    names = topology_names()
    if value not in names:
        raise FieldError("not one of the known values", ", ".join(names), nearest_name(str(value), names))
    return value


TopologyName = Annotated[str, BeforeValidator(parse_topology), JsonSchema({"enum": [*topology_names()]})]


def parse_core_ids(value: object) -> tuple[int, ...]:
    """Core ids from "0, 1" or [0, 1]. Raises FieldError."""
    if isinstance(value, str) and _CORE_IDS.fullmatch(value):
        return tuple(int(part) for part in value.split(","))
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return (value,)
    if isinstance(value, list) and value and all(type(item) is int and item >= 0 for item in value):
        return tuple(value)
    raise FieldError("must be core ids", "text such as '0, 1', or a list such as [0, 1]")


def parse_sharing_group(value: object) -> list[int] | list[tuple[int, str]]:
    """Core ids from "0, 1" or [0, 1], or pairs (core id, memory) from ["0.out", "1.in"]. Raises FieldError for a value
    of another form.
    """
    items = value.split(",") if isinstance(value, str) else value
    if isinstance(items, list) and items and all(isinstance(item, str) and "." in item for item in items):
        return [parse_memory_name(item.strip()) for item in items]
    try:
        return list(parse_core_ids(value))
    except FieldError:
        allowed = "text such as '0, 1', a list such as [0, 1], or memories such as [0.out, 1.in]"
        raise FieldError("must be core ids, or memories of cores", allowed) from None


def parse_link_bandwidth(value: object) -> int | float:
    """Bits per cycle of a link, as `parse_bandwidth_bits` returns them, or math.inf for `inf`. Raises FieldError."""
    if isinstance(value, str | float) and value in _INFINITE:
        return math.inf
    return parse_bandwidth_bits(value)


def parse_rate_place(value: object) -> tuple[int, str, str]:
    """Tuple (core id, memory, port) from "16.dram.rw_port_1", or (core id, "", "") from a core id. Raises
    FieldError.
    """
    if type(value) is int and value >= 0:
        return value, "", ""
    match = _PORT_NAME.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise FieldError("must be a core or a port of a core", "a core id, or '<core id>.<memory>.<port>'")
    return int(match[1]), match[2], match[3]


def parse_memory_name(value: object) -> tuple[int, str]:
    """Pair (core id, name of the memory) from a text such as "3.sram". Raises FieldError for a value of another
    form.
    """
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
    """Measured rates of transfers whose data lie in short rows (strided data)."""

    read: dict[PositiveCount, PositiveNumber] = Field(default={})
    """Rates of reads in bits per cycle, by the number of contiguous bytes."""
    write: dict[PositiveCount, PositiveNumber] = Field(default={})
    """Rates of writes in bits per cycle, by the number of contiguous bytes."""


class RateEntry(TableModel):
    """Rates of a port or of a core, in addition to the widths in the core file (Stream 2.1). The rates are read but not
    modelled."""

    ceiling: PositiveNumber
    """Largest rate of reads and writes together, in bits per cycle."""
    contiguous: PositiveNumber
    """Rate of one direction for contiguous data, in bits per cycle."""
    strided: StridedEntry | None = None
    """Rates for strided data, if measured."""
    burst: PositiveCount | None = None
    """Number of bytes that an access moves."""


class ReconfigurationEntry(TableModel):
    """Cycles to reconfigure cores of the aie2 types (Stream 2.1). The cycles are read but not modelled."""

    cycles_per_column: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Number of cycles that a reconfiguration takes for each column of the array."""
    reset_cycles: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Number of cycles that a reconfiguration takes in addition to those for the columns."""


RatePlace = Annotated[int | str, BeforeValidator(_checked_place), JsonSchema({"type": "string"})]
FileBandwidth = Annotated[
    Annotated[dict[RatePlace, RateEntry], Tag(TABLE_MARK)] | Annotated[LinkBandwidth, Tag(VALUE_MARK)],
    Discriminator(table_or_value),
]


class ConnectionEntry(TableModel):
    """Link between two cores, or bus between several."""

    type: Literal["link", "bus"] = "link"
    """`link`: joins two cores. Each direction has the full bandwidth; `directed: true` and `duplex: half` change this.
    `bus`: one medium that all transfers between the listed cores share."""
    cores: Annotated[list[CoreId], Field(min_length=2)]
    """Ids of the cores that the link or bus joins. The off-chip core can be among them."""
    bandwidth: LinkBandwidth | None = None
    """Bandwidth in bits per cycle (or `8 B/cycle`, or `inf`), or per second (`32 GB/s`) with a `clock_frequency`.
    Default: the top-level key `bandwidth` of this file.
    """
    unit_energy_cost: EnergyPj | None = None
    """Energy of a busy cycle, in pJ. Default: the top-level key `unit_energy_cost` of this file."""
    energy_per_bit: EnergyPj | None = None
    """Energy of moving a bit, in pJ (or `80 fJ`). Give either this key or `unit_energy_cost`."""
    directed: bool = False
    """`true`: only the first of `cores` sends; all others receive."""
    duplex: Literal["full", "half"] | None = None
    """`half`: both directions of a link share its bandwidth. Default: `full`."""
    multicast: bool | None = None
    """`true`: the link or bus carries data once for all cores that receive the data together. Default: the top-level
    key `multicast` of this file."""


class OffchipPortEntry(TableModel):
    """Port of the off-chip memory. The port is linked with some of the cores."""

    cores: Annotated[list[CoreId], Field(min_length=1)]
    """Ids of the cores that are linked with the port. Other cores reach the port through these cores."""
    bandwidth: LinkBandwidth | None = None
    """Bits per cycle (or `8 B/cycle`), or per second (`32 GB/s`) with a `clock_frequency`. Default: the bandwidth in
    the core file of the off-chip memory."""


class _ConnectionForms:
    """Marker of the type of connections. The JSON Schema of this type is made only when it is needed, because making it
    is slow."""

    def __get_pydantic_json_schema__(self, _: CoreSchema, __: GetJsonSchemaHandler) -> JsonObject:
        return {"anyOf": [*_IDS_SCHEMA["anyOf"], ConnectionEntry.model_json_schema()]}


Connection = Annotated[
    Annotated[ConnectionEntry, Tag(TABLE_MARK)] | Annotated[CoreIds, Tag(VALUE_MARK)],
    Discriminator(table_or_value),
    _ConnectionForms(),
]


class ConnectivityFile(TableModel):
    """Accelerator of several cores, with a list of the links between them (Stream, 2025)."""

    name: Name
    """Name of the accelerator."""
    cores: Annotated[dict[CoreId, CoreFile], Field(min_length=1)]
    """Core files by core id. Core files are first looked for in the folder of the accelerator file."""
    offchip_core: CoreFile | None = None
    """Core file of the off-chip memory. The id of the off-chip core follows the largest id of `cores` and of the copies
    that `core_counts` makes.
    """
    offchip_core_id: CoreId | None = None
    """Id of the off-chip memory among `cores`. Give either this key or `offchip_core`."""
    core_connectivity: list[Connection] = Field(default=[])
    """Links and buses between cores. Two core ids, such as `0, 1`, mean a link in each direction. More ids mean a bus.
    An entry that is a table can also give bandwidth and energy.

    If no entry names the off-chip core, the ports of the off-chip memory link the off-chip core with all other cores,
    or with the cores that `offchip_ports` lists.
    """
    offchip_ports: Annotated[list[OffchipPortEntry], Field(min_length=1)] = Field(default=[])
    """Ports of the off-chip memory (memory channels), each with the ids of the cores that are linked with it. Default:
    the ports in the core file of the off-chip memory, each linked with all other cores."""
    core_memory_sharing: list[SharingGroup] = Field(default=[])
    """Groups of cores, such as `0, 1`, whose top memories of equal name are one physical memory.

    A group can also list top memories that are one physical memory, such as `[0.out, 1.in]`. The cores then share only
    the listed memories through this group.
    """
    bandwidth: FileBandwidth | None = None
    """Default bandwidth of links, in bits per cycle (or `8 B/cycle`, or `inf`), or per second (`32 GB/s`) with a
    `clock_frequency`. A table of rates by core or port (Stream 2.1) is read but not modelled."""
    unit_energy_cost: EnergyPj | None = None
    """Default energy that a link uses in each busy cycle, in pJ. If the file gives neither this key nor
    `energy_per_bit`, the default is 0.
    """
    energy_per_bit: EnergyPj | None = None
    """Default energy of moving a bit over a link, in pJ (or `80 fJ`). Give either this key or `unit_energy_cost`."""
    multicast: bool = False
    """`true`: links, buses and ports of the off-chip memory carry data once for all cores that receive the data
    together. Default for all entries of `core_connectivity`."""
    core_files: ContainedCores = None
    """Core descriptions by name. If this key is given, `cores` and `offchip_core` name these descriptions instead of
    files.
    """
    core_counts: CoreCounts = Field(default={})
    """Number of instances of a core in the accelerator, by core id; default 1.

    The ids of copies follow the largest id of `cores`. Each copy is on the same buses as the original core, has the
    same links and the same role, and shares the same memories.
    """
    core_roles: dict[CoreId, Literal["compute", "pooling", "simd", "memory"]] = Field(default={})
    """Roles of cores, by core id; default `compute`."""
    core_operator_types: dict[CoreId, Annotated[list[OperatorType], Field(min_length=1)]] = Field(default={})
    """Operators that cores can run, by core id. This key replaces the `operator_types` of the core files."""
    routers: list[CoreId] | None = None
    """Ids of the cores through which data of other cores can pass. Default: all compute cores, and memory cores that
    share a memory with a compute core.
    """
    forwarding: bool = False
    """`true`: a core that holds weights or network inputs can send them to other cores. The sources of a fetch are the
    off-chip memory and the cores that hold the data. A fetch uses the source with the highest transfer rate when the
    fetch starts.
    """
    equal_paths: Literal["core_ids", "load"] = "core_ids"
    """Choice among paths of equal width with the same number of links. `core_ids`: the path whose list of core ids is
    first in lexicographic order. `load`: the path whose most loaded link has the smallest load. The load of a link is
    the number of chosen paths that contain the link, divided by the width of the link.
    """
    clock_frequency: FrequencyMhz | None = None
    """Frequency of the common clock, in MHz (or `1.2 GHz`). The key is not needed if core files give the frequency."""
    core_coordinates: dict[CoreId, Coordinates] = Field(default={})
    """Column and row of cores, as `[column, row]` by core id, for drawings of the accelerator."""
    technology_node: Name | None = None
    """Process node, such as `n3` (Stream 2.1). Not modelled."""
    memory_aliases: list[Annotated[list[MemoryName], Field(min_length=2)]] = Field(default=[])
    """Groups of memories, such as `3.sram`, that are one physical memory (Stream 2.1). Not modelled."""
    kernel_library: Name | None = None
    """File of kernels for cores of the aie2 types (Stream 2.1). Not modelled."""
    reconfiguration: ReconfigurationEntry | None = None
    """Cycles to reconfigure cores of the aie2 types (Stream 2.1). Not modelled."""


class GraphEntry(TableModel):
    """Regular graph of cores."""

    type: TopologyName = Field(description=topology_text())
    nb_rows: PositiveCount | None = None
    """Number of rows of a mesh or torus. Core i is in row i mod nb_rows and column i div nb_rows."""
    nb_cols: PositiveCount | None = None
    """Number of columns of a mesh or torus. nb_rows times nb_cols must be the number of regular cores. The pooling,
    SIMD and off-chip core are not regular."""
    sizes: dict[Name, PositiveCount] = Field(default={})
    """Further sizes by name, for topologies of plug-ins that need them."""
    bandwidth: LinkBandwidth
    """Bandwidth of each link, in bits per cycle (or `8 B/cycle`), or per second (`32 GB/s`) with `clock_frequency`."""
    unit_energy_cost: EnergyPj = 0.0
    """Energy that a link uses in each busy cycle, in pJ."""
    multicast: bool = False
    """`true`: all links, and the ports of the off-chip memory, carry data once for all cores that receive the data
    together."""
    pooling_core_id: CoreId | None = None
    """Id of the pooling core, which has a link with every core of the graph."""
    simd_core_id: CoreId | None = None
    """Id of the core for elementwise operators.

    In a graph of type bus, this core is on the bus. In other graphs, the links of this core have infinite bandwidth and
    no cost.
    """
    offchip_core_id: CoreId | None = None
    """Id of the off-chip memory. The ports of this memory link it with all other cores."""


class GraphFile(TableModel):
    """Accelerator of several cores in a regular graph (Stream, 2024)."""

    name: Name
    """Name of the accelerator."""
    cores: Annotated[list[CoreFile], Field(min_length=1)]
    """Core files; the position in the list is the core id. Core files are first looked for in the folder of the
    accelerator file."""
    graph: GraphEntry
    """Regular graph that links the cores."""
    offchip_ports: Annotated[list[OffchipPortEntry], Field(min_length=1)] = Field(default=[])
    """Ports of the off-chip memory (memory channels), each with the ids of the cores that are linked with it. Default:
    the ports in the core file of the off-chip memory, each linked with all other cores."""
    core_files: ContainedCores = None
    """Core descriptions by name. If this key is given, `cores` names these descriptions instead of files."""
    core_counts: CoreCounts = Field(default={})
    """Number of instances of a core in the graph, by core id; default 1. Copies get the ids that follow the largest id
    of `cores`.
    """
    core_memory_sharing: list[SharingGroup] = Field(default=[])
    """Groups of cores, such as `0, 1`, whose top memories of equal name are one physical memory.

    A group can also list top memories that are one physical memory, such as `[0.out, 1.in]`. The cores then share only
    the listed memories through this group.
    """
    core_operator_types: dict[CoreId, Annotated[list[OperatorType], Field(min_length=1)]] = Field(default={})
    """Operators that cores can run, by core id. This key replaces the `operator_types` of the core files."""
    routers: list[CoreId] | None = None
    """Ids of the cores through which data of other cores can pass. Default: all compute cores, and memory cores that
    share a memory with a compute core. The pooling, SIMD and off-chip core are not compute cores.
    """
    forwarding: bool = False
    """`true`: a core that holds weights or network inputs can send them to other cores. The sources of a fetch are the
    off-chip memory and the cores that hold the data. A fetch uses the source with the highest transfer rate when the
    fetch starts.
    """
    equal_paths: Literal["core_ids", "load"] = "core_ids"
    """Choice among paths of equal width with the same number of links. `core_ids`: the path whose list of core ids is
    first in lexicographic order. `load`: the path whose most loaded link has the smallest load. The load of a link is
    the number of chosen paths that contain the link, divided by the width of the link.
    """
    clock_frequency: FrequencyMhz | None = None
    """Frequency of the common clock, in MHz (or `1.2 GHz`). The key is not needed if core files give the frequency."""


SystemFile = ConnectivityFile | GraphFile
ROLE_KEYS = {"pooling_core_id": POOLING, "simd_core_id": SIMD}


def multi_core_schema() -> JsonObject:
    """JSON Schema of an accelerator file for several cores."""
    text = "Several cores: their files, the links between them, the off-chip memory."
    return json_schema(SystemFile, "tilewright multi-core accelerator", text)
