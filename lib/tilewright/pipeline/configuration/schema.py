"""JSON Schema of a configuration, for editors: made from the classes whose parameters are its keys."""

import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from typing import Any, Literal

from tilewright.base.json_values import JsonObject
from tilewright.base.parameters import Limits, Parameter
from tilewright.pipeline.configuration.keys import FLOWS, KEYS, SETTINGS, flows_of

_TYPES = {int: "integer", float: "number", bool: "boolean", str: "string", type(None): "null"}
_OPEN = {"type": "object"}


def config_schema() -> dict[str, Any]:
    """JSON Schema of config.yaml."""
    keys = {key: parameter_schema(parameter, key in SETTINGS) for key, parameter in KEYS.items()}
    pipeline = {"type": ["array", "null"], "description": "Stages, or edits of the default ones: docs/stages.md."}
    files = {
        kind: {"type": "string", "description": f"The {kind} file: a path, a name in config/{kind}/, or a glob."}
        for kind in ("workload", "hardware", "mapping")
    }
    flow: dict[str, Any] = {
        "enum": list(FLOWS),
        "default": FLOWS[0],
        "description": "One core, or several that share the network.",
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
            ("Name -> run.", run),
            ("Name -> runs: every combination of the lists in it.", swept),
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
        "results_dir": {"type": "string", "description": "Folder of the results, relative to the project."},
        "runs_per_job": {"type": "integer", "minimum": 1, "description": "Runs on one core that share a job."},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_OPEN,
        "additionalProperties": False,
        "properties": {"runs": runs, "sweeps": sweeps, **spaces, **results, **network, **keys, "pipeline": pipeline},
        "title": "Configuration",
        "description": "What `make run` computes. Keys of runs at the top are defaults of all runs.",
    }


_SPACES = {
    "spaces": "Design spaces to explore",
    "fronts": "Design spaces of which the complete Pareto fronts are sought",
}
"""Descriptions of the keys for design spaces."""
_NETWORK = {
    "dims": "Workload -> dimension of its ONNX file -> size.",
    "input_shapes": "Workload -> input of its ONNX file -> list of sizes.",
    "branches": "Workload -> If operator of its ONNX file, or * -> then or else.",
    "bits": "Workload -> weights, activations or partial, also of an operator type or operator (Conv.weights) -> bits.",
    "precision": "Workload -> assumed (8 bits for floating-point tensors) or file (as stored).",
}
"""Descriptions of the keys for ONNX files."""


def parameter_schema(parameter: Parameter, may_be_null: bool = False) -> JsonObject:
    """JSON Schema of a parameter; a null may give it its default."""
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
