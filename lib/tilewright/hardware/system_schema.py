"""The file of an accelerator of several cores: its cores and a regular graph (2024) or a list of connections (2025).

Both dialects are those of Stream; what is added to them is said in docs/multi-core.md.
"""

import math
import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic import WithJsonSchema as JsonSchema

from tilewright.hardware.system import POOLING, SIMD
from tilewright.hardware.yaml_schema import OperatorType
from tilewright.units import FieldError, parse_bandwidth_bits
from tilewright.validation import Count, EnergyPj, Entry, Name, PositiveCount, json_schema

_CORE_IDS = re.compile(r"\s*[0-9]{1,9}(\s*,\s*[0-9]{1,9})*\s*")
_INFINITE = ("inf", ".inf", "infinite", math.inf)
MESH, BUS_GRAPH = "2d_mesh", "bus"


def parse_core_ids(value: object) -> tuple[int, ...]:
    """Core ids of "0, 1" or of [0, 1]. Raises FieldError."""
    if isinstance(value, str) and _CORE_IDS.fullmatch(value):
        return tuple(int(part) for part in value.split(","))
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return (value,)
    if isinstance(value, list) and value and all(type(item) is int and item >= 0 for item in value):
        return tuple(value)
    raise FieldError("must be core ids", "text such as '0, 1', or a list such as [0, 1]")


def parse_link_bandwidth(value: object) -> int | float:
    """Bits per cycle of a link as `parse_bandwidth_bits`, or math.inf for `inf`. Raises FieldError."""
    if isinstance(value, str | float) and value in _INFINITE:
        return math.inf
    return parse_bandwidth_bits(value)


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
_IDS_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "pattern": f"^{_CORE_IDS.pattern}$"},
        {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
    ]
}
CoreIds = Annotated[list[int], BeforeValidator(lambda value: list(parse_core_ids(value))), JsonSchema(_IDS_SCHEMA)]


class ConnectionEntry(Entry):
    """A link between two cores, or a bus between several."""

    type: Literal["link", "bus"]
    """`link`: two cores; each direction has the full bandwidth, unless `directed` or `duplex` say otherwise.
    `bus`: one medium that all transfers between its cores share."""
    cores: Annotated[list[CoreId], Field(min_length=2)]
    """Ids of the cores that it joins; the off-chip core may be one of them."""
    bandwidth: LinkBandwidth | None = None
    """Bits per cycle (or `8 B/cycle`, or `inf`); default: the `bandwidth` of the file."""
    unit_energy_cost: EnergyPj | None = None
    """Energy of a busy cycle, in pJ; default: that of the file."""
    energy_per_bit: EnergyPj | None = None
    """Energy of carrying a bit, in pJ (or `80 fJ`), instead of `unit_energy_cost`."""
    directed: bool = False
    """Only the first of `cores` sends, the others receive."""
    duplex: Literal["full", "half"] | None = None
    """`half`: both directions of a link share its bandwidth. Default: `full`."""


Connection = Annotated[
    Any,
    JsonSchema({"anyOf": [*_IDS_SCHEMA["anyOf"], ConnectionEntry.model_json_schema()]}),
]


class ConnectivityFile(Entry):
    """An accelerator of several cores, with a list of the links between them (Stream, 2025)."""

    name: Name
    """Name of the accelerator."""
    cores: Annotated[dict[CoreId, CoreFile], Field(min_length=1)]
    """Core files by core id. A file is looked for beside this file first."""
    offchip_core: CoreFile | None = None
    """Core file of the off-chip memory; its id is the largest of `cores` plus one."""
    offchip_core_id: CoreId | None = None
    """Which of `cores` is the off-chip memory, instead of `offchip_core`."""
    core_connectivity: list[Connection] = Field(default=[])
    """Links and buses: `0, 1` for a link in each direction, more ids for a bus, or a table with bandwidth and energy.
    Where none of them names the off-chip core, it is linked with all others by its ports."""
    core_memory_sharing: list[CoreIds] = Field(default=[])
    """Groups of cores, as `0, 1`, whose top memories of equal name are one and the same."""
    bandwidth: LinkBandwidth | None = None
    """Bandwidth of links that have none of their own, in bits per cycle (or `8 B/cycle`, or `inf`)."""
    unit_energy_cost: EnergyPj | None = None
    """Energy of a busy cycle of links that have none of their own, in pJ; default 0."""
    energy_per_bit: EnergyPj | None = None
    """Energy of carrying a bit, in pJ (or `80 fJ`), instead of `unit_energy_cost`."""
    core_roles: dict[CoreId, Literal["compute", "pooling", "simd", "memory"]] = Field(default={})
    """What cores are for, by core id; default `compute`."""
    core_operator_types: dict[CoreId, Annotated[list[OperatorType], Field(min_length=1)]] = Field(default={})
    """What cores can run, by core id, instead of what their files say."""
    routers: list[CoreId] | None = None
    """Cores that data of others may pass through; default: all compute cores."""
    core_coordinates: dict[CoreId, Coordinates] = Field(default={})
    """[column, row] of cores, by core id: where the figure puts them."""


class GraphEntry(Entry):
    """A regular graph of cores."""

    type: Literal["2d_mesh", "bus"]
    """`2d_mesh`: links between neighbours; `bus`: one medium that all share."""
    nb_rows: PositiveCount | None = None
    """Rows of the mesh. Core i stands in row i mod nb_rows, column i div nb_rows."""
    nb_cols: PositiveCount | None = None
    """Columns of the mesh; nb_rows times nb_cols is the number of cores that have no other role."""
    bandwidth: LinkBandwidth
    """Of each link, in bits per cycle (or `8 B/cycle`)."""
    unit_energy_cost: EnergyPj = 0.0
    """Energy of a busy cycle of a link, in pJ."""
    pooling_core_id: CoreId | None = None
    """The core for pooling, linked with every core of the graph."""
    simd_core_id: CoreId | None = None
    """The core for elementwise operators. In a mesh its links have infinite bandwidth and cost nothing."""
    offchip_core_id: CoreId | None = None
    """The off-chip memory, linked with all cores by its ports."""


class GraphFile(Entry):
    """An accelerator of several cores in a regular graph (Stream, 2024)."""

    name: Name
    """Name of the accelerator."""
    cores: Annotated[list[CoreFile], Field(min_length=1)]
    """Core files; the place in the list is the core id. A file is looked for beside this file first."""
    graph: GraphEntry
    """How the cores are linked."""
    core_memory_sharing: list[CoreIds] = Field(default=[])
    """Groups of cores, as `0, 1`, whose top memories of equal name are one and the same."""
    core_operator_types: dict[CoreId, Annotated[list[OperatorType], Field(min_length=1)]] = Field(default={})
    """What cores can run, by core id, instead of what their files say."""
    routers: list[CoreId] | None = None
    """Cores that data of others may pass through; default: all but pooling, SIMD and off-chip core."""


ROLE_KEYS = {"pooling_core_id": POOLING, "simd_core_id": SIMD}


def multi_core_schema() -> dict[str, Any]:
    """The JSON Schema of the file of an accelerator of several cores."""
    text = "Several cores: their files, the links between them, the off-chip memory."
    return json_schema(ConnectivityFile | GraphFile, "tilewright multi-core accelerator", text)
