"""The files in the folder of a run of the multi-core flow."""

import json
from pathlib import Path

from tilewright.steps import ALLOCATION, CN_GRAPH, SCHEDULE


def is_multi_run(folder: Path) -> bool:
    """Whether a folder is of a run of the multi-core flow, finished or not."""
    return any((folder / name).is_file() for name in (SCHEDULE, ALLOCATION, CN_GRAPH))


def graph_size(file: Path | str) -> int:
    """How many computation nodes and edges the file of a CN graph says there are: what steps need memory for.

    0 for a file that says nothing; the step that reads it says what is wrong. Raises FileNotFoundError if there is
    none yet.
    """
    with Path(file).open("rb") as stream:
        content = stream.read()
    try:
        payload = json.loads(content)["payload"]
        nodes = sum(int(layer["cn_count"]) for layer in payload["layers"])
        return nodes + sum(int(link["edge_count"]) for link in payload["links"])
    except (ValueError, KeyError, TypeError):
        return 0
