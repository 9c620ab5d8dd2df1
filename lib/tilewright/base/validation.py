"""Validation shared by the readers: a file is read once into a typed tree, without its invalid values; all checks use
this tree.

Each kind of file has a pydantic model and a list of checks across several fields. The model gives the fields, their
descriptions and the JSON Schema. A value that does not fit the model is reported and replaced by None in the tree, so
that the checks can run on all other values.
"""

import functools
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, Union

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidationError,
)
from pydantic import WithJsonSchema as JsonSchema
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from tilewright.base.errors import KeyPath, Problems, nearest_name, some_of
from tilewright.base.json_values import JsonObject
from tilewright.base.parameters import field_docs
from tilewright.base.units import (
    BITS_OF_ENERGY,
    LARGEST_AREA_MM2,
    LARGEST_ENERGY_PJ,
    LARGEST_FREQUENCY_MHZ,
    LARGEST_POWER_MW,
    LARGEST_SIZE_BITS,
    LARGEST_WHOLE_NUMBER,
    NUMBER_PATTERN,
    FieldError,
    WrittenArea,
    parse_bandwidth_bits,
    parse_energy_pj,
    parse_frequency_mhz,
    parse_power_mw,
    parse_size_bits,
    parse_written_area,
)
from tilewright.base.unknown_keys import TOP, unknown_key

Item = TypeVar("Item")
Tables = Mapping[str, Collection[str]]
"""Text that names a table by its place in a file -> keys of the table."""
TABLE_MARK, LIST_MARK, VALUE_MARK = "[table]", "[list]", "[value]"
"""Tags for the form of a value. Some fields take a table or a list of tables (TABLE_MARK, LIST_MARK). Others take a
table or a single value (TABLE_MARK, VALUE_MARK)."""
_MARKS = ("[key]", TABLE_MARK, LIST_MARK, VALUE_MARK)
"""Names that pydantic inserts into the location of an error although they are no keys of the file."""
_MESSAGES = {
    "missing": "required key is missing",
    "string_type": "must be text",
    "string_too_short": "must not be empty",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "finite_number": "must be a finite number",
    "list_type": "must be a list",
    "dict_type": "must be a table of keys",
    "model_type": "must be a table of keys",
    "model_attributes_type": "must be a table of keys",
    "literal_error": "not one of the known values",
    "invalid_key": "a key must be text",
    "too_short": "too few items",
    "too_long": "too many items",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must not be less than {ge}",
    "less_than_equal": "must not be greater than {le}",
}


_ITEM = "[...]"
"""Text that stands for an item of a list in the path of a table."""
_NO_TABLE = ("dict_type", "model_type", "model_attributes_type")
"""Kinds of errors for a value that is not a table, although it must be one."""


class TableModel(BaseModel):
    """Table in a user's file. Unknown keys are refused, and types are not converted silently."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """JSON Schema with the field descriptions. The descriptions are read from the source only here, not at every
        validation of a file. A field can have a computed description instead (`Field(description=...)`)."""
        found = handler(schema)
        properties = handler.resolve_ref_schema(found)["properties"]
        for name, text in field_docs(cls).items():
            if text or "description" not in properties[name]:
                properties[name]["description"] = text
        return found


def _number_schema(units: str, largest: int, exclusive: bool = False) -> JsonSchema:
    number = {"type": "number", "exclusiveMinimum" if exclusive else "minimum": 0, "maximum": largest}
    return JsonSchema({"anyOf": [number, {"type": "string", "pattern": rf"^\s*{NUMBER_PATTERN}\s*({units})?\s*$"}]})


_SIZE = "([kMGT]|[KMGT]i)?(b|bit|bits|B|byte|bytes)"
Name = Annotated[str, Field(min_length=1)]
SizeBits = Annotated[int, BeforeValidator(parse_size_bits), _number_schema(_SIZE, LARGEST_SIZE_BITS, True)]
BandwidthBits = Annotated[
    int, BeforeValidator(parse_bandwidth_bits), _number_schema(f"{_SIZE}/(cycle|clk|s|sec)", LARGEST_WHOLE_NUMBER, True)
]
EnergyPj = Annotated[float, BeforeValidator(parse_energy_pj), _number_schema("[afpnuµm]?J", LARGEST_ENERGY_PJ)]
WordEnergyPj = Annotated[
    float,
    BeforeValidator(parse_energy_pj),
    _number_schema(f"[afpnuµm]?J(/({'|'.join(BITS_OF_ENERGY)}))?", LARGEST_ENERGY_PJ),
]
AreaAsWritten = Annotated[WrittenArea, BeforeValidator(parse_written_area), _number_schema("[uµm]m2", LARGEST_AREA_MM2)]
PowerMw = Annotated[float, BeforeValidator(parse_power_mw), _number_schema("[pnuµm]?W", LARGEST_POWER_MW)]
FrequencyMhz = Annotated[
    float, BeforeValidator(parse_frequency_mhz), _number_schema("[kMG]?Hz", LARGEST_FREQUENCY_MHZ, True)
]
PositiveCount = Annotated[int, Field(gt=0, le=LARGEST_WHOLE_NUMBER)]
Count = Annotated[int, Field(ge=0, le=LARGEST_WHOLE_NUMBER)]


@dataclass(frozen=True)
class TextForm:
    """Marker of a type that is parsed from a text: `Annotated[tuple[str, int], TextForm(...)]`. `parse` converts the
    text, and raises FieldError if the text is wrong.
    """

    parse: Callable[[str], object]
    pattern: str
    """Pattern of the text in the JSON Schema."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.parse, core_schema.str_schema(strict=True))

    def __get_pydantic_json_schema__(self, _: CoreSchema, __: GetJsonSchemaHandler) -> JsonObject:
        return {"type": "string", "pattern": f"^{self.pattern}$"}


def validate(model: Any, data: Any, problems: Problems, further: Tables | None = None) -> Any:
    """Object of the type `model` (any type that pydantic knows), made from data. Each invalid value is reported in
    `problems`, and is None in the result. `further` has the keys of tables that the model leaves open, for messages on
    keys that belong to these tables.
    """
    try:
        return _adapter(model).validate_python(data)
    except ValidationError as error:
        details = error.errors(include_url=False)
        misspelt = {_meant(detail, model) for detail in details if detail["type"] == "extra_forbidden"}
        for detail in details:
            # A misspelt key is reported with the key that was meant. The meant key is then not reported as missing.
            if detail["type"] != "missing" or _path_of(detail) not in misspelt:
                _record(detail, model, problems, further or {})
        return _with_holes(model, data)


def _with_holes(kind: Any, data: Any) -> Any:
    """Data converted to the type `kind`; None replaces each part that does not fit the type."""
    try:
        return _adapter(kind).validate_python(data, strict=True)
    except ValidationError:
        return _parts(kind, data)


def _parts(kind: Any, data: Any) -> Any:
    """Value of the type `kind` from invalid data. Parts of the data that fit the type are converted, and None replaces
    the other parts. The result is None if no part fits."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return _parts(arguments[0], data)
    if origin in (Union, types.UnionType):
        return next((part for one in arguments if (part := _parts(one, data)) is not None), None)
    if _is_model(kind) and isinstance(data, dict):
        fields = kind.model_fields
        missing = {name: None for name, field in fields.items() if name not in data and field.is_required()}
        given = {name: _with_holes(_type_of(field), data[name]) for name, field in fields.items() if name in data}
        return kind.model_construct(set(given), **missing, **given)
    if origin is list and isinstance(data, list):
        return [_with_holes(arguments[0], item) for item in data]
    if origin is dict and isinstance(data, dict):
        # An invalid name stays as a key, so that the value under it is checked too.
        keys = {key: key if _is_name(key, arguments[0]) else _with_holes(arguments[0], key) for key in data}
        return {found: _with_holes(arguments[1], data[key]) for key, found in keys.items() if found is not None}
    return None


def _is_name(key: Any, kind: Any) -> bool:
    return isinstance(key, str) and _bare(kind) is str


def _type_of(field: FieldInfo) -> Any:
    return Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _path_of(detail: Any) -> KeyPath:
    return tuple(step for step in detail["loc"] if step not in _MARKS)


def _meant(detail: Any, model: Any) -> KeyPath:
    *table_path, key = _path_of(detail)
    return (*table_path, nearest_name(str(key), _keys_of(_type_at(model, tuple(table_path)))))


@functools.cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


def json_schema(model: Any, title: str, description: str) -> dict[str, Any]:
    """JSON Schema of a file kind, for editors."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return head | _adapter(model).json_schema() | {"title": title, "description": description}


def _record(detail: Any, model: Any, problems: Problems, further: Tables) -> None:
    path = _path_of(detail)
    context = detail.get("ctx", {})
    kind = detail["type"]
    if kind == "extra_forbidden":
        known = _keys_of(_type_at(model, path[:-1]))
        elsewhere = {place: keys for place, keys in {**tables_of(model), **further}.items() if keys != known}
        found = unknown_key(str(path[-1]), known, elsewhere)
        problems.at(path, found.message, None, found.allowed, found.nearest)
    elif kind == "missing":
        problems.at(path, _MESSAGES[kind])
    elif isinstance(context.get("error"), FieldError):
        error = context["error"]
        told = error.message + (_misplaced(path, model, further) if detail["loc"][-1] == "[key]" else "")
        problems.at(path, told, _given(detail), error.allowed, error.nearest)
    elif kind == "literal_error":
        known = list(typing.get_args(_type_at(model, path)))
        nearest = nearest_name(str(detail["input"]), known)
        problems.at(path, _MESSAGES[kind], _given(detail), ", ".join(known), nearest)
    else:
        message = _MESSAGES.get(kind, detail["msg"]).format(**context)
        allowed = _length_allowed(context) if kind in ("too_short", "too_long") else ""
        if kind in _NO_TABLE:
            message += _misplaced(path, model, further)
        problems.at(path, message, _given(detail), allowed)


def _misplaced(path: KeyPath, model: Any, further: Tables) -> str:
    """End of the message on a wrong value at `path`, where a named table, such as a memory, is expected. The text names
    the other tables in which the last key of `path` is a field. The result is '' if there are no such tables, or if the
    last key is not at the place of a table's name.
    """
    if not path or _is_model(_type_at(model, path[:-1])):
        return ""
    places = [place for place, keys in {**tables_of(model), **further}.items() if path[-1] in keys]
    return f"; the key '{path[-1]}' belongs to {some_of(places)}" if places else ""


@functools.cache
def tables_of(model: Any) -> dict[str, list[str]]:
    """Tables that a kind of file can have: text for the place of the table -> keys of the table. An example of such a
    text is `memories.NAME.ports[...]`.
    """
    found: dict[str, list[str]] = {}
    for path, kind in _walked(model, "", ()):
        found.setdefault(_place_text(path), _keys_of(kind))
    return found


def _place_text(path: str) -> str:
    """Words for the place of a table. `path` begins with _ITEM if the file is a list."""
    if not path.startswith(_ITEM):
        return f"`{path}`" if path else TOP
    within = path.removeprefix(_ITEM).lstrip(".")
    return f"`{within}` of an entry of the list" if within else "an entry of the list"


def _walked(annotation: Any, path: str, above: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    """Pairs (path, pydantic model) of all tables in a type. `above` has the models that contain the type."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if _is_model(annotation):
        if annotation not in above:
            yield path, annotation
            for name, field in annotation.model_fields.items():
                yield from _walked(field.annotation, f"{path}.{name}".lstrip("."), (*above, annotation))
    elif origin is Annotated:
        yield from _walked(arguments[0], path, above)
    elif origin in (Union, types.UnionType):
        for one in arguments:
            yield from _walked(one, path, above)
    elif origin is list:
        yield from _walked(arguments[0], path + _ITEM, above)
    elif origin is dict:
        yield from _walked(arguments[1], f"{path}.NAME".lstrip("."), above)


def _given(detail: Any) -> object:
    return "nothing" if detail["input"] is None else detail["input"]


def _length_allowed(context: dict[str, Any]) -> str:
    if "min_length" in context:
        return f"at least {context['min_length']} items"
    return f"at most {context['max_length']} items"


def _type_at(annotation: Any, location: KeyPath) -> Any:
    """Type that a pydantic model requires for the value at a location, without Optional and Annotated. None if the
    model has no such location."""
    annotation = _bare(annotation)
    if not location:
        return annotation
    step, rest = location[0], location[1:]
    if _is_model(annotation):
        field = annotation.model_fields.get(str(step))
        return _type_at(field.annotation, rest) if field is not None else None
    arguments = typing.get_args(annotation)
    return _type_at(arguments[-1], rest) if arguments else None


def _bare(annotation: Any) -> Any:
    while True:
        origin = typing.get_origin(annotation)
        if origin is Annotated:
            annotation = typing.get_args(annotation)[0]
        elif origin in (Union, types.UnionType):
            annotation = next(part for part in typing.get_args(annotation) if part is not type(None))
        else:
            return annotation


def _keys_of(annotation: Any) -> list[str]:
    if _is_model(annotation):
        return list(annotation.model_fields)
    return []


def table_or_list(value: Any) -> str:
    """Tag of a value for pydantic, where a field takes a table or a list: LIST_MARK for a list, TABLE_MARK for any
    other value.
    """
    return LIST_MARK if isinstance(value, list) else TABLE_MARK


def table_or_value(value: Any) -> str:
    """Tag of a value for pydantic, if a field takes a table or a single value: TABLE_MARK for a table, VALUE_MARK for
    any other value.
    """
    return TABLE_MARK if isinstance(value, dict) else VALUE_MARK


def each(values: Sequence[Item | None] | None) -> Iterator[tuple[int, Item]]:
    """Pairs (index, item) of the list items that are not None."""
    return ((place, item) for place, item in enumerate(values or ()) if item is not None)


def whole(values: Iterable[Item | None] | None) -> list[Item]:
    """Values of a list that are not None; [] if the list is None."""
    return [item for item in values or () if item is not None]


def names_of(values: Sequence[Item | None] | None) -> list[Item]:
    """Names that a list defines, for checks of other parts of the file that use these names.

    An item None stands for an invalid name, and the rest of the file may use this name. If the list is None or has such
    an item, the result is []: callers then check no names, so that no use of the invalid name is reported.
    """
    return [] if values is None or None in values else whole(values)
