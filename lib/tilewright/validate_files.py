"""Validates files of any kind, found out from their content, and writes the JSON Schemas for editors."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilewright.configuration.schema import config_schema
from tilewright.errors import InputError, Problem
from tilewright.file_kinds import HARDWARE, MAPPING, WORKLOAD, kind_of
from tilewright.hardware.system_schema import multi_core_schema
from tilewright.hardware.yaml_reader import check_hardware_file
from tilewright.hardware.yaml_schema import hardware_schema
from tilewright.mapping.yaml_reader import mapping_of
from tilewright.mapping.yaml_schema import mapping_schema
from tilewright.profile import REFERENCE
from tilewright.workload.yaml_reader import workload_of, workload_schema
from tilewright.yamlfile import load_yaml

SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "hardware": hardware_schema,
    "multi_core": multi_core_schema,
    "workload": workload_schema,
    "mapping": mapping_schema,
    "config": config_schema,
}
"""File kind -> function that returns its JSON Schema."""


def validate_file(path: str | Path) -> tuple[str, list[Problem], list[str]]:
    """(kind, problems, notices) of a file; kind is hardware, workload, mapping, onnx, or '' if it cannot be told."""
    if Path(path).suffix.lower() == ".onnx":
        return _validate_onnx(path)
    notices: list[str] = []
    kind = ""
    try:
        document = load_yaml(path, notices)
        kind = kind_of(document.data)
        if kind == HARDWARE:
            check_hardware_file(document, notices)
        elif kind == WORKLOAD:
            workload_of(document, Path(path).stem, notices)
        elif kind == MAPPING:
            mapping_of(document, notices)
        else:
            kind = ""
            allowed = "a table with `memories`, or a list of layers or of mapping entries"
            problem = Problem("is neither hardware nor workload nor mapping", str(path), 1, allowed=allowed)
            return kind, [problem], notices
    except InputError as error:
        return kind, list(error.problems), notices
    return kind, [], notices


def schema_text(kind: str) -> str:
    """The JSON Schema of a file kind, as it stands in its file."""
    return json.dumps(SCHEMAS[kind](), indent=2, ensure_ascii=False) + "\n"


def write_schemas(directory: str | Path) -> None:
    """Write `<kind>.schema.json` for each file kind."""
    Path(directory).mkdir(parents=True, exist_ok=True)
    for kind in SCHEMAS:
        (Path(directory) / f"{kind}.schema.json").write_text(schema_text(kind), encoding="utf-8")


def _validate_onnx(path: str | Path) -> tuple[str, list[Problem], list[str]]:
    # Imported here: onnx takes a noticeable part of a second to import, and YAML files do not need it.
    from tilewright.workload.onnx import read_onnx

    try:
        read_onnx(path, REFERENCE)
    except InputError as error:
        return "onnx", list(error.problems), []
    return "onnx", [], []


if __name__ == "__main__":
    write_schemas(Path("workflow/schemas"))
