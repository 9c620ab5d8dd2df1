"""Schema of the file of a design space: its tables and fields."""

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
from tilewright.designs.space import DEFAULTS, KINDS
from tilewright.pipeline.configuration.schema import parameter_schema

_VALUE_SCHEMA = JsonSchema({"type": ["number", "string", "boolean"]})


def check_value(value: Any) -> Value:
    """Value that an axis or a law can have. Raises FieldError."""
    if not isinstance(value, int | float | str) or value == "":
        raise FieldError("must be a number, text, true or false")
    return value if isinstance(value, str) else _usual_number(value)


def _usual_number(value: int | float) -> int | float:
    """Number that tables can hold. Raises FieldError."""
    if isinstance(value, int) and abs(value) > LARGEST_WHOLE:
        raise FieldError("a whole number that is too large", f"{-LARGEST_WHOLE} to {LARGEST_WHOLE}")
    if not math.isfinite(value):
        raise FieldError("must be a finite number")
    return value


def check_number(value: Any) -> int | float:
    """Number that is not true or false. Raises FieldError."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FieldError("must be a number")
    return _usual_number(value)


def parse_paths(value: Any) -> tuple[str, ...]:
    """Dotted paths, given as one path or as several. Raises FieldError."""
    paths = value if isinstance(value, list) else [value]
    if not paths or not all(isinstance(path, str) and path for path in paths):
        raise FieldError("must be a dotted path in the accelerator, or a list of them", "memories.sram.size")
    return tuple(paths)


def check_name(text: str) -> str:
    """Text that can be part of the name of a folder. Raises FieldError."""
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
_FROM = Field(default=None, description="First value of a range, which goes on by `factor` or by `step`.")
_Range: Any = create_model("_Range", __base__=TableModel, **{"from": (Number | None, _FROM)})  # type: ignore[call-overload]


class AxisEntry(_Range):  # type: ignore[misc]
    """What is varied: the values of one thing, as a list, a range or a choice of tables."""

    to: Number | None = None
    """Last value of a range; it is left out where no step ends there."""
    factor: Number | None = None
    """Each value of the range is so many times the one before it."""
    step: Number | None = None
    """Each value of the range is so much more than the one before it."""
    values: Annotated[list[AnyValue], Field(min_length=1)] | None = None
    """The values, in order."""
    choices: Annotated[dict[Name, dict[Name, Any]], Field(min_length=1)] | None = None
    """Choice to what it sets: dotted paths in the accelerator to their values, which may be whole tables."""
    path: Paths | None = None
    """The dotted path in the accelerator that has the value, or several. Without it laws use the name of the axis."""


class SpaceFile(TableModel):
    """A base accelerator, what is varied in it, what follows from that, and what designs must meet."""

    name: FolderName | None = None
    """Name of the space; without it that of the file."""
    accelerator: Accelerator
    """The base: the path of a hardware file, from the folder of this file, or its content."""
    core_files: dict[Name, Accelerator] = Field(default={})
    """Further cores of an accelerator of several cores by name, beside those of the base: paths of core files, or their
    content. Axes and laws give `cores` these names, and change what they say below `core_files`."""
    mapping: Name | None = None
    """The path of a mapping file; without it operands have their default links and spatial mappings are generated."""
    networks: Networks
    """What every design runs: name to path, or paths, whose networks are called by the names of the files."""
    axes: dict[Name, AxisEntry] = Field(default={})
    """What is varied. All combinations are designs; the last axis varies fastest."""
    laws: dict[Name, AnyValue] = Field(default={})
    """Expressions, in order: for dotted paths in the accelerator, or for new names, which those after them can use."""
    constraints: list[Name] = Field(default=[])
    """Expressions that must be true: those with results (`energy_pj`, ...) after a design was evaluated, for each
    network; all others before."""
    objectives: Annotated[list[MeasureName], Field(min_length=1)] = Field(default=[ENERGY_PJ, LATENCY_CYCLES, AREA_MM2])
    """What the Pareto front is over."""
    options: dict[Name, Any] = Field(default={})
    """Options of the search, as in a configuration. Here `model` is corrected and `exploit_data_locality` true unless
    they are given."""
    designs: Name | None = None
    """The path of a design sheet (TSV, or CSV by its suffix), instead of values of axes: one design a row, columns are
    axes or dotted paths; a column `design` has names."""
    shard_designs: PositiveCount | None = None
    """How many designs are evaluated in one job; without it as many as take some minutes."""


def space_schema() -> JsonObject:
    """JSON Schema of the file of a design space."""
    schema = json_schema(SpaceFile, "tilewright design space", "Accelerators to explore, for some networks.")
    options: dict[str, Any] = {}
    for is_system, kind in KINDS.items():
        others = {one.name for one in parameters_of(KINDS[not is_system])}
        only = " Only with several cores." if is_system else " Only with one core."
        for one in parameters_of(kind):
            sentence = one.sentence if one.name in others else one.sentence + only
            options.setdefault(one.name, parameter_schema(one) | {"description": sentence})
        for name, value in DEFAULTS[is_system].items():
            options[name]["default"] = value
    schema["properties"]["options"] |= {"properties": options, "additionalProperties": False}
    return schema
