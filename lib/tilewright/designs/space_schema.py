"""Schema of the space file: its tables and fields."""

import math
import re
from typing import Annotated, Any

from pydantic import Discriminator, Field, PlainValidator, Tag, create_model
from pydantic import WithJsonSchema as JsonSchema

from tilewright.base.json_values import JsonObject
from tilewright.base.measures import AREA_MM2, ENERGY_PJ, LATENCY_CYCLES, MeasureName
from tilewright.base.parameters import parameters_of
from tilewright.base.steps import NAME_PATTERN
from tilewright.base.units import FieldError
from tilewright.base.validation import (
    LIST_MARK,
    TABLE_MARK,
    VALUE_MARK,
    Name,
    PositiveCount,
    TableModel,
    TextForm,
    json_schema,
    table_or_list,
    table_or_value,
)
from tilewright.designs.laws import LARGEST_WHOLE, Value
from tilewright.designs.space import DEFAULTS, KINDS, FusedSystemOptions, SystemOptions
from tilewright.pipeline.configuration.schema import parameter_schema
from tilewright.search.options import SearchOptions

_VALUE_SCHEMA = JsonSchema({"type": ["number", "string", "boolean"]})


def check_value(value: Any) -> Value:
    """Check that an axis or a law can have the value `value`, and return it. Raises FieldError if not."""
    if not isinstance(value, int | float | str) or value == "":
        raise FieldError("must be a number, text, true or false")
    return value if isinstance(value, str) else _usual_number(value)


def _usual_number(value: int | float) -> int | float:
    """Check that tables can hold the number `value`, and return it. Raises FieldError if it is not finite, or is an
    integer that is too large.
    """
    if isinstance(value, int) and abs(value) > LARGEST_WHOLE:
        raise FieldError("is an integer that is too large", f"{-LARGEST_WHOLE} to {LARGEST_WHOLE}")
    if not math.isfinite(value):
        raise FieldError("must be a finite number")
    return value


def check_number(value: Any) -> int | float:
    """Check that `value` is a number that tables can hold, and return it. Raises FieldError if not; true and false do
    not count as numbers.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FieldError("must be a number")
    return _usual_number(value)


def parse_paths(value: Any) -> tuple[str, ...]:
    """Dotted paths, given as one path or as a list. Raises FieldError for any other value."""
    paths = value if isinstance(value, list) else [value]
    if not paths or not all(isinstance(path, str) and path for path in paths):
        raise FieldError("must be a dotted path in the accelerator, or a list of dotted paths", "memories.sram.size")
    return tuple(paths)


def check_name(text: str) -> str:
    """Check that `text` can be part of a folder name, and return it. Raises FieldError if not."""
    if re.fullmatch(NAME_PATTERN, text) is None:
        raise FieldError("not a name", "letters, digits, _ . + -")
    return text


AnyValue = Annotated[Any, PlainValidator(check_value), _VALUE_SCHEMA]
Number = Annotated[Any, PlainValidator(check_number), JsonSchema({"type": "number"})]
FolderName = Annotated[str, TextForm(check_name, NAME_PATTERN)]
_TEXTS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
Paths = Annotated[Any, PlainValidator(parse_paths), JsonSchema({"anyOf": [{"type": "string"}, _TEXTS]})]
Accelerator = Annotated[
    Annotated[Name, Tag(VALUE_MARK)] | Annotated[dict[str, Any], Field(min_length=1), Tag(TABLE_MARK)],
    Discriminator(table_or_value),
]
Networks = Annotated[
    Annotated[dict[FolderName, Name], Field(min_length=1), Tag(TABLE_MARK)]
    | Annotated[list[Name], Field(min_length=1), Tag(LIST_MARK)],
    Discriminator(table_or_list),
]
_FROM = Field(default=None, description="First value of a range. `factor` or `step` gives the next values.")
_Range: Any = create_model("_Range", __base__=TableModel, **{"from": (Number | None, _FROM)})  # type: ignore[call-overload]

_Shares = Annotated[
    Annotated[Number, Tag(VALUE_MARK)] | Annotated[dict[Name, Number], Field(min_length=1), Tag(TABLE_MARK)],
    Discriminator(table_or_value),
]


class AxisEntry(_Range):  # type: ignore[misc]
    """Axis: a quantity that varies between designs. Its values are a list, a range, or named choices that each set
    several values."""

    to: Number | None = None
    """Upper limit of a range. It is itself a value only if a step of the range ends exactly at this limit."""
    factor: Number | None = None
    """Factor between a value of the range and the next value."""
    step: Number | None = None
    """Difference between a value of the range and the next value."""
    values: Annotated[list[AnyValue], Field(min_length=1)] | None = None
    """Values of the axis, in order."""
    choices: Annotated[dict[Name, dict[Name, Any]], Field(min_length=1)] | None = None
    """Choices by name. Each choice maps dotted paths in the accelerator to new values. A value can be a table."""
    path: Paths | None = None
    """Dotted path in the accelerator, or a list of such paths. The value of the axis is set at each path. Without a
    path, only laws and constraints use the axis, by its name.
    """


class SpaceFile(TableModel):
    """Design space: a base accelerator, axes that vary its values, laws that derive further values, and constraints on
    designs.
    """

    name: FolderName | None = None
    """Name of the space; the default is the name of the file."""
    accelerator: Accelerator
    """Base accelerator: the path of a hardware file, relative to the folder of this file, or the content of a hardware
    file."""
    core_files: dict[Name, Accelerator] = Field(default={})
    """Cores by name, in addition to the cores of a base with several cores: paths of core files, or the content of core
    files. Axes and laws can set entries of `cores` to these names, and can change values of these cores below
    `core_files`."""
    mapping: Name | None = None
    """Path of a mapping file. Without a mapping file, operands have their default links and spatial mappings are
    generated."""
    networks: Networks
    """Networks that every design runs: a table from name to path, or a list of paths. In a list, each network is named
    after its file."""
    bits: dict[Name, PositiveCount] = Field(default={})
    """Bits of operands of the networks, which must be ONNX files. The table has bits by operand: weights, activations,
    partial. A key such as Conv.weights is for one operator type or operator.
    """
    zeros: dict[Name, _Shares] = Field(default={})
    """Shares of zeros of the networks, which must be ONNX files. The table has shares from 0 to 1 by kind of data:
    weights, activations, outputs. A key such as Conv.activations is for one operator type or operator. A table below
    the name of a network holds for this network, in addition to the shares for all networks.
    """
    axes: dict[Name, AxisEntry] = Field(default={})
    """Axes by name. All combinations of their values are designs; the last axis varies fastest."""
    laws: dict[Name, AnyValue] = Field(default={})
    """Expressions for dotted paths in the accelerator or for new names. An expression can use the names that are
    defined before it."""
    constraints: list[Name] = Field(default=[])
    """Expressions that must be true for a design. Expressions with results (`energy_pj`, `access_cycles`, ...)
    are checked after the evaluation, for each network; all other expressions are checked before it."""
    objectives: Annotated[list[MeasureName], Field(min_length=1)] = Field(default=[ENERGY_PJ, LATENCY_CYCLES, AREA_MM2])
    """Objectives of the Pareto front."""
    options: dict[Name, Any] = Field(default={})
    """Options of the search, as in a configuration. Some defaults differ from the defaults of a configuration: for one
    core `model: corrected`, `exploit_data_locality: true` and `bounds: true`; for searched fusion `nb_schedules: 500`.
    """
    designs: Name | None = None
    """Path of a design sheet, which replaces the values of the axes. The sheet is a TSV file (CSV if its name ends in
    .csv) with one row per design. Its columns are axes or dotted paths; a column `design` has the names of the
    designs."""
    shard_designs: PositiveCount | None = None
    """Number of designs that one job evaluates. The default is 500, or one block of `search_block` designs if fusion is
    searched.
    """


def _only(name: str) -> str:
    """Sentence on the kinds of designs that have the option `name`; '' if all kinds have it."""
    owners = tuple(kind for kind in KINDS if name in {one.name for one in parameters_of(kind)})
    return {
        (SearchOptions,): " Only with one core.",
        (SystemOptions,): " Only with several cores, if fusion is not searched.",
        (FusedSystemOptions,): " Only with several cores, if fusion is searched.",
        (SystemOptions, FusedSystemOptions): " Only with several cores.",
    }.get(owners, "")


def space_schema() -> JsonObject:
    """JSON Schema of the space file."""
    schema = json_schema(SpaceFile, "tilewright design space", "Accelerators to explore, on one or more networks.")
    options: dict[str, Any] = {}
    for kind in KINDS:
        for one in parameters_of(kind):
            options.setdefault(one.name, parameter_schema(one) | {"description": one.sentence + _only(one.name)})
        for name, value in DEFAULTS[kind].items():
            options[name]["default"] = value
    schema["properties"]["options"] |= {"properties": options, "additionalProperties": False}
    return schema
