"""Inputs of scripts: the small networks and cores of the recorded reference runs."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).resolve().parents[2] / "conformance" / "data"
PROJECT = Path(__file__).resolve().parents[3]
FLOWS = sorted(path.stem for path in DATA.glob("flow-*.json"))


def flow(name: str) -> dict[str, Any]:
    """Return a recorded run of zigzag-dse 3.9.1."""
    recorded: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text())
    return recorded


def files(hardware: str = "row_stationary_12x14", mapping: str = "user_2d") -> dict[str, str]:
    """Return the keywords that name the files of a small network."""
    return {
        "accelerator": str(DATA / "hardware" / f"{hardware}.yaml"),
        "workload": str(DATA / "workload" / "small_network.yaml"),
        "mapping": str(DATA / "mapping" / f"{mapping}.yaml"),
    }


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path) -> Iterator[None]:
    """Change to a temporary folder, because scripts write into the working folder."""
    before = Path.cwd()
    os.chdir(tmp_path)
    yield
    os.chdir(before)
