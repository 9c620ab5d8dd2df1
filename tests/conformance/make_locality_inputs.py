"""Keep the inputs of the data-locality set in `data/locality-inputs.json`, so that its test needs no other file.

Run with the project's Python after `make_locality_reference.py`:

    python tests/conformance/make_locality_inputs.py FOLDER ...

Each folder has `hardware`, `mapping` and `workload`, like the example inputs of zigzag-dse (MIT licence, in
`zigzag/inputs` of its installation). The first folder that has a file is used. Hardware and mapping keep the content of
their files without comments. Networks are kept as this project reads them under the reference profile.
"""

import json
import sys
from pathlib import Path
from typing import Any

from tilewright.base.artifacts.codec import encode
from tilewright.base.profile import REFERENCE
from tilewright.base.yamlfile import load_yaml
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.onnx import read_onnx
from tilewright.workload.yaml_reader import read_workload_yaml

DATA = Path(__file__).with_name("data")


def main(folders: list[Path]) -> None:
    """Write the inputs of all runs in the data folder."""
    runs = [json.loads(path.read_text()) for path in sorted(DATA.glob("locality-*-*.json"))]
    parts: dict[str, dict[str, Any]] = {"hardware": {}, "mapping": {}, "workload": {}}
    for run in runs:
        for kind in ("hardware", "mapping"):
            parts[kind][run[kind]] = load_yaml(_find(f"{kind}/{run[kind]}.yaml", folders)).data
        parts["workload"][run["workload"]] = nodes_of(read(_find(f"workload/{run['workload']}", folders)))
    texts = [
        f'"{kind}": {{\n' + ",\n".join(_entry(name, value) for name, value in sorted(entries.items())) + "\n}"
        for kind, entries in parts.items()
    ]
    (DATA / "locality-inputs.json").write_text("{" + ",\n".join(texts) + "}\n")


def read(path: Path) -> Workload:
    """A network from its file."""
    return read_onnx(path, REFERENCE).workload if path.suffix == ".onnx" else read_workload_yaml(path)


_ABOUT_THE_FILE = ("origin", "origin_type", "status")
"""Fields of nodes that data locality does not use."""


def nodes_of(workload: Workload) -> list[dict[str, Any]]:
    """The nodes as plain data, without fields that are not given."""
    return [_without_blanks(node) for node in workload.nodes]


def _without_blanks(node: WorkloadNode) -> dict[str, Any]:
    layer = {name: value for name, value in encode(node.layer).items() if value} if node.layer else None
    plain = {"node_id": node.node_id, **encode(node), "layer": layer}
    kept = {name: value for name, value in plain.items() if name not in _ABOUT_THE_FILE}
    return {name: value for name, value in kept.items() if value or name == "node_id"}


def _find(path: str, folders: list[Path]) -> Path:
    return next(folder / path for folder in folders if (folder / path).is_file())


def _entry(name: str, value: Any) -> str:
    rows = value if isinstance(value, list) else [value]
    text = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    return f'"{name}":' + (f"[\n{text}\n]" if isinstance(value, list) else text)


if __name__ == "__main__":
    main([Path(folder) for folder in sys.argv[1:]])
