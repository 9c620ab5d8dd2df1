"""Spaces over the systolic array, for tests."""

import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright.base.errors import InputError, Problem
from tilewright.designs.space import Space
from tilewright.designs.space_reader import read_space

ROOT = Path(__file__).resolve().parents[3]
BASE = ROOT / "config" / "hardware" / "systolic" / "systolic.yaml"
NETWORK = ROOT / "config" / "workload" / "mobilenetv2.onnx"
ROWS = "operational_array.sizes.0"
COLUMNS = "operational_array.sizes.1"
SIZE = "memories.sram.size"


def space_of(**keys: Any) -> Space:
    """Read a space that is given as a dict."""
    return read_space({"accelerator": str(BASE), "networks": [str(NETWORK)]} | keys)


def file_of(folder: Path, text: str, **others: Any) -> Path:
    """Write the file of a space; `space_of` gives the keys that its text lacks."""
    keys = {"accelerator": str(BASE), "networks": [str(NETWORK)]} | others
    missing = {key: value for key, value in keys.items() if f"{key}:" not in text}
    path = folder / "it.yaml"
    path.write_text(textwrap.dedent(text).strip("\n") + "\n" + (yaml.safe_dump(missing) if missing else ""))
    return path


def problems_of(path: Path) -> tuple[Problem, ...]:
    """Return the problems of a file."""
    with pytest.raises(InputError) as raised:
        read_space(path)
    return raised.value.problems


def told(folder: Path, text: str, **others: Any) -> list[str]:
    """Return the problems of a text as lines, without the name of the file."""
    path = file_of(folder, text, **others)
    return [str(problem).removeprefix(f"{path}:") for problem in problems_of(path)]
