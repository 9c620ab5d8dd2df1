"""Mapping of a network, joined from the mapping files that stream-dse 2.1.1 writes: one file for each of its groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def joined(folder: Path, groups: int) -> dict[str, list[dict[str, Any]]]:
    """Mapping with the layers and groups of all files `group_N/mapping.yaml`. stream-dse gives the groups of all files
    the same name; here, each group has the name of its folder.
    """
    whole: dict[str, list[dict[str, Any]]] = {"layers": [], "fused_groups": []}
    for place in range(groups):
        part = yaml.safe_load((folder / f"group_{place}" / "mapping.yaml").read_text())
        whole["layers"] += part["layers"]
        whole["fused_groups"] += [{**group, "name": f"group_{place}"} for group in part["fused_groups"]]
    return whole
