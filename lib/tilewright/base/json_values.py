"""JSON values: types of the content of JSON and YAML files, so that a type checker refuses values of other types."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
"""Anything that a JSON file can hold."""
JsonObject: TypeAlias = dict[str, JsonValue]
"""An object of a JSON file, or a mapping of a YAML file: the value of each key."""
