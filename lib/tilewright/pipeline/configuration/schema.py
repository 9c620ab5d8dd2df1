"""JSON Schema of a configuration, for editors, generated from the classes that declare the keys."""

import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from typing import Any, Literal

from tilewright.base.json_values import JsonObject
from tilewright.base.objectives import DECISIONS
from tilewright.base.parameters import Limits, Parameter
from tilewright.pipeline.configuration.keys import FLOWS, KEYS, SETTINGS, flows_of

_TYPES = {int: "integer", float: "number", bool: "boolean", str: "string", type(None): "null"}
_OPEN = {"type": "object"}


def config_schema() -> dict[str, Any]:
    """JSON Schema of config.yaml."""
    keys = {key: parameter_schema(parameter, key in SETTINGS) for key, parameter in KEYS.items()}
    pipeline = {
        "type": ["array", "null"],
        "description": "Stages, or edits of the default pipeline; see docs/stages.md.",
    }
    files = {
        kind: {"type": "string", "description": f"The {kind} file: a path, a name below config/{kind}/, or a glob."}
        for kind in ("workload", "hardware", "mapping")
    }
    flow: dict[str, Any] = {
        "enum": list(FLOWS),
        "default": FLOWS[0],
        "description": "single: the network runs on one core; multi: several cores share the network.",
    }
    run: dict[str, dict[str, Any]] = {"flow": flow, **files, **keys, "pipeline": pipeline}
    required = ["workload", "hardware"]
    swept = {key: value if _is_list(key) else _or_list(value) for key, value in run.items()}
    runs, sweeps = (
        {
            "type": ["object", "null"],
            "description": words,
            "additionalProperties": {**_OPEN, "additionalProperties": False, "required": required, "properties": each},
        }
        for words, each in (
            ("Table of runs, by name.", run),
            ("Table of sweeps, by name. A sweep has a run for each combination of values of its lists.", swept),
        )
    )
    network = {key: {"type": ["object", "null"], "description": words} for key, words in _NETWORK.items()}
    spaces = {
        key: {
            "type": ["array", "null"],
            "items": {"type": "string"},
            "description": f"{words}: paths, or names in config/space/.",
        }
        for key, words in _SPACES.items()
    }
    results: dict[str, Any] = {
        "decide": {
            "enum": [*DECISIONS, None],
            "description": "Measure by which `make run` chooses one design of each explored space.",
        },
        "results_dir": {"type": "string", "description": "Folder of the results, relative to the project folder."},
        "runs_per_job": {
            "type": "integer",
            "minimum": 1,
            "description": "Number of single-core runs in one job.",
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_OPEN,
        "additionalProperties": False,
        "properties": {"runs": runs, "sweeps": sweeps, **spaces, **results, **network, **keys, "pipeline": pipeline},
        "title": "Configuration",
        "description": "Runs that `make run` makes. Keys of runs at the top level of the file are defaults"
        " for all runs.",
    }


_SPACES = {
    "spaces": "Design spaces to explore",
    "fronts": "Design spaces whose complete Pareto fronts are searched",
}
"""Description of each key for design spaces."""
_NETWORK = {
    "dims": "Sizes of dynamic dimensions of an ONNX file: a table from dimensions to sizes, for each workload.",
    "input_shapes": "Shapes of the inputs of an ONNX file: a table from inputs to lists of sizes, for each workload.",
    "branches": "Branches of If operators of an ONNX file: a table from operators (* for all) to then or else, for each"
    " workload.",
    "bits": "Bits of operands of an ONNX file, for each workload: a table from operands (weights, activations, partial;"
    " also for one operator type or operator, such as Conv.weights) to bits.",
    "zeros": "Shares of zeros of an ONNX file, from 0 to 1, for each workload: a table from operands (weights,"
    " activations, outputs; also for one operator type or operator, such as Conv.weights) to shares.",
    "precision": "Bits of floating-point tensors, for each workload: assumed (8 bits) or file (bits of the file).",
}
"""Description of each key for ONNX files."""


def parameter_schema(parameter: Parameter, may_be_null: bool = False) -> JsonObject:
    """JSON Schema of a parameter. With `may_be_null`, the value null is allowed too, and stands for the default."""
    forms = [form for form in parameter.forms if form is not type(None)]
    found = [_form(form, parameter) for form in forms]
    if may_be_null or type(None) in parameter.forms:
        found.append({"type": "null"})
    schema = found[0] if len(found) == 1 else {"anyOf": found}
    flows = flows_of(parameter.name)
    only = f" Only with flow: {flows[0]}." if len(flows) == 1 else ""
    told: dict[str, Any] = {"description": parameter.sentence + only}
    if parameter.default is not MISSING:
        told["default"] = list(parameter.default) if isinstance(parameter.default, tuple) else parameter.default
    return schema | told


def _form(form: Any, parameter: Parameter) -> JsonObject:
    if parameter.choices and form is str:
        return {"enum": list(parameter.choices)}
    if form in _TYPES:
        return {"type": _TYPES[form], **(_limits(parameter.limits) if form in (int, float) else {})}
    origin = typing.get_origin(form) or form
    if origin is Literal:
        return {"enum": list(typing.get_args(form))}
    return (
        {"type": "array"}
        if origin in (list, tuple, Sequence)
        else {"type": "object"}
        if origin in (dict, Mapping)
        else {}
    )


def _limits(limits: tuple[Limits, ...]) -> dict[str, float]:
    found: dict[str, float] = {}
    for limit in limits:
        named = {"minimum": limit.least, "exclusiveMinimum": limit.above, "maximum": limit.most}
        found |= {name: value for name, value in named.items() if value is not None}
    return found


def _is_list(key: str) -> bool:
    return key == "pipeline" or (key in KEYS and KEYS[key].takes_list)


def _or_list(schema: Mapping[str, Any]) -> JsonObject:
    told = {name: schema[name] for name in ("description", "default") if name in schema}
    one = {name: value for name, value in schema.items() if name not in told}
    return {"anyOf": [one, {"type": "array", "items": one}]} | told
