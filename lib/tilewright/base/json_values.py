"""JSON values: types of what a JSON or YAML file holds, so that a type checker refuses what such a file cannot hold."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
"""Anything that a JSON file can hold."""
JsonObject: TypeAlias = dict[str, JsonValue]
"""An object of a JSON file, or a mapping of a YAML file: the value of each key."""
