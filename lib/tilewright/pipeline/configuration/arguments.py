"""Parameters as command line arguments.

The Snakefile imports this module whenever it is parsed, so it imports nothing large.
"""

import json
from collections.abc import Mapping
from typing import Any

from tilewright.base.artifacts.digests import canonical_text
from tilewright.base.parameters import Parameter, parameters_of


def arguments_of(kind: type, values: Mapping[str, Any]) -> list[str]:
    """Command-line arguments for those `values` that `kind` declares as parameters, in the order of the class.

    A switch with its default value gives no argument.
    """
    words: list[str] = []
    for parameter in parameters_of(kind):
        if parameter.name in values:
            words += _words(parameter, values[parameter.name])
    return words


def flag_of(parameter: Parameter, prefix: str = "") -> str:
    """Name of an option: --split-w-percentage."""
    return f"--{prefix}{parameter.name.replace('_', '-').lower()}"


def default_text(parameter: Parameter) -> str:
    """Default as written in a configuration."""
    default = parameter.default
    return default if isinstance(default, str) and default else canonical_text(default)


def _words(parameter: Parameter, value: Any) -> list[str]:
    if parameter.is_switch:
        return [] if value == parameter.default else [flag_of(parameter, "" if value else "no-")]
    return [flag_of(parameter), value_text(value)]


def value_text(value: Any) -> str:
    """Value as the text of an option: lists and tables are JSON."""
    return json.dumps(value, separators=(",", ":")) if isinstance(value, list | tuple | dict) else str(value)
