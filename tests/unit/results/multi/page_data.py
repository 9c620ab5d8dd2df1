"""Reads the data of an interactive schedule from its file, as the page's script does."""

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from tilewright.results.multi.page import Column

DATA_START, DATA_END = '<script type="application/json" id="schedule">', "</script>"


def unpacked_column(column: Mapping[str, Any]) -> Column:
    """The values of `packed_column`."""
    kind = np.dtype("<" + str(column["type"]))
    planes = np.frombuffer(zlib.decompress(base64.b64decode(column["data"])), np.uint8)
    values = np.ascontiguousarray(planes.reshape(kind.itemsize, -1).T).view(kind).reshape(-1)
    return np.cumsum(values, dtype=kind) if column["delta"] else values


def page_data(text: str) -> dict[str, Any]:
    """The data of an HTML file with unpacked columns: the inverse of `schedule_page`."""
    start = text.index(DATA_START) + len(DATA_START)
    data: dict[str, Any] = json.loads(text[start : text.index(DATA_END, start)])
    data["columns"] = {name: unpacked_column(column) for name, column in data["columns"].items()}
    return data
