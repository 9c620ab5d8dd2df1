"""Writes JSON Schemas, with which editors check input files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilewright.designs.space_schema import space_schema
from tilewright.hardware.system_schema import multi_core_schema
from tilewright.hardware.yaml_schema import hardware_schema
from tilewright.mapping.yaml_schema import mapping_schema
from tilewright.peers.stream.mapping_schema import stream_mapping_schema
from tilewright.pipeline.configuration.schema import config_schema
from tilewright.workload.yaml_reader import workload_schema

SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "hardware": hardware_schema,
    "multi_core": multi_core_schema,
    "workload": workload_schema,
    "mapping": mapping_schema,
    "stream_mapping": stream_mapping_schema,
    "config": config_schema,
    "space": space_schema,
}
"""Functions that return the JSON Schema of a file kind, by file kind."""


def schema_text(kind: str) -> str:
    """Text of the file with the JSON Schema of a file kind."""
    return json.dumps(SCHEMAS[kind](), indent=2, ensure_ascii=False) + "\n"


def write_schemas(directory: str | Path) -> None:
    """Write the file `<kind>.schema.json` of each file kind into a folder."""
    Path(directory).mkdir(parents=True, exist_ok=True)
    for kind in SCHEMAS:
        (Path(directory) / f"{kind}.schema.json").write_text(schema_text(kind), encoding="utf-8")


if __name__ == "__main__":
    write_schemas(Path("workflow/schemas"))
