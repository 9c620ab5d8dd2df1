"""JSON values: types of the content of JSON and YAML files, so that a type checker refuses values of other types."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
"""Any value that a JSON file can hold."""
JsonObject: TypeAlias = dict[str, JsonValue]
"""Object of a JSON file, or table of a YAML file."""
