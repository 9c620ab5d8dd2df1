"""Executed notebooks as pages in Markdown. A page contains its pictures; no cell is executed."""

import base64
import json
from pathlib import Path
from typing import Any


def notebook_page(path: Path) -> str:
    """Page of a notebook in Markdown. Raises ValueError for a cell that failed or was not executed."""
    parts = []
    for number, cell in enumerate(json.loads(path.read_text("utf-8"))["cells"], 1):
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
        elif cell["cell_type"] == "code" and text.strip():
            if cell.get("execution_count") is None:
                raise ValueError(f"{path.name}: cell {number} was not executed")
            parts.append(_fenced("python", text))
            parts += [_output(output, f"{path.name}: cell {number}") for output in cell["outputs"]]
    return "\n\n".join(parts) + "\n"


def _fenced(language: str, text: str) -> str:
    return f"````{language}\n{text.rstrip()}\n````"


def _output(output: dict[str, Any], place: str) -> str:
    if output["output_type"] == "error":
        raise ValueError(f"{place} failed: {output['ename']}: {output['evalue']}")
    if output["output_type"] == "stream":
        return _fenced("text", "".join(output["text"]))
    data = {kind: "".join(value) if isinstance(value, list) else value for kind, value in output["data"].items()}
    if "text/html" in data:
        return _raw(data["text/html"])
    if "image/svg+xml" in data:
        return _picture("svg+xml", base64.b64encode(data["image/svg+xml"].encode()).decode())
    if "image/png" in data:
        return _picture("png", data["image/png"].replace("\n", ""))
    return _fenced("text", data.get("text/plain", ""))


def _picture(kind: str, encoded: str) -> str:
    return _raw(f'<img alt="what the cell draws" src="data:image/{kind};base64,{encoded}">')


def _raw(html: str) -> str:
    return f'````{{raw}} html\n<div class="output">\n{html}\n</div>\n````'
