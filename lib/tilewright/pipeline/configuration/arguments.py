"""Conversion of parameters to command-line arguments.

The Snakefile imports this module each time Snakemake parses it, so this module imports nothing large.
"""

import json
from collections.abc import Mapping
from typing import Any

from tilewright.base.artifacts.digests import canonical_text
from tilewright.base.parameters import Parameter, parameters_of


def arguments_of(kind: type, values: Mapping[str, Any]) -> list[str]:
    """Command-line arguments for `values`, in the order of the parameters of the class `kind`.

    Values that are not parameters of the class are left out. A switch (a parameter that is true or false) with its
    default value gives no argument.
    """
    words: list[str] = []
    for parameter in parameters_of(kind):
        if parameter.name in values:
            words += _words(parameter, values[parameter.name])
    return words


def flag_of(parameter: Parameter, prefix: str = "") -> str:
    """Name of the option for a parameter, for example --split-w-percentage."""
    return f"--{prefix}{parameter.name.replace('_', '-').lower()}"


def default_text(parameter: Parameter) -> str:
    """Text of the default of a parameter, as it is written in a configuration."""
    default = parameter.default
    return default if isinstance(default, str) and default else canonical_text(default)


def _words(parameter: Parameter, value: Any) -> list[str]:
    if parameter.is_switch:
        return [] if value == parameter.default else [flag_of(parameter, "" if value else "no-")]
    return [flag_of(parameter), value_text(value)]


def value_text(value: Any) -> str:
    """Text of a value on the command line. Lists and tables are JSON texts."""
    return json.dumps(value, separators=(",", ":")) if isinstance(value, list | tuple | dict) else str(value)
