"""The file that says where energy and cycles of a run go: of which run it is, and what is in it."""

import json
from pathlib import Path
from typing import Any

from tilewright.artifacts.envelope import Artifact
from tilewright.steps import LAYERS


def made_of(artifact: Artifact) -> dict[str, str]:
    """What the bottlenecks of a run are made of, as digests: its descriptions, and its records, read as an artifact."""
    return {**artifact.provenance.get("inputs", {}), LAYERS.partition(".")[0]: artifact.digest}


def read_bottlenecks(path: Path) -> dict[str, Any] | None:
    """What `tilewright explain` wrote as JSON; None where there is no such file, or another one."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
