"""What is known of a case: the numbers of the chip and of the reference tool."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.errors import Problems
from tilewright.yamlfile import items, load_yaml, table


@dataclass(frozen=True)
class Expected:
    """What is known of a case; None and {} where nothing is."""

    measured_cycles: float | None = None
    """On the chip."""
    reference_cycles: float | None = None
    """By the reference tool, as is the energy."""
    reference_energy_pj: float | None = None
    reference_nodes: int | None = None
    """Computation nodes, then edges."""
    reference_edges: int | None = None
    layer_cycles: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Layer id -> (temporal cycles, total0, total1, total2) of a computation node, by the reference tool."""


def read_expected(path: Path | None, notices: list[str]) -> Expected:
    """What a file says; it may have more, for people. Numbers that are none count as unknown, and a notice says so.

    Raises InputError if the file cannot be read.
    """
    if path is None:
        return Expected()
    document = load_yaml(path)
    problems, data = Problems(document), table(document.data)
    if not isinstance(document.data, dict):
        problems.at((), "must be a table of keys", document.data)
    nodes, edges = (_positive(problems, data, "graph", key) for key in ("nb_cns", "nb_edges"))
    found = Expected(
        measured_cycles=_positive(problems, data, "measured", "latency"),
        reference_cycles=_positive(problems, data, "reproduced", "latency"),
        reference_energy_pj=_positive(problems, data, "reproduced", "energy"),
        reference_nodes=None if nodes is None else round(nodes),
        reference_edges=None if edges is None else round(edges),
        layer_cycles=dict(_layer_cycles(table(data.get("layers")))),
    )
    problems.finish(notices)
    return found


def _positive(problems: Problems, data: dict[Any, Any], part: str, key: str) -> float | None:
    """A number above 0, also one that YAML reads as text (6.18e6)."""
    value = table(data.get(part)).get(key)
    number = _number(value)
    if value is not None and number is None:
        problems.notice((part, key), f"is no number above 0, and counts as unknown: {value!r}")
    return number


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    if not math.isfinite(number) or number <= 0:
        return None
    return number if isinstance(value, str) else value


def _layer_cycles(layers: dict[Any, Any]) -> list[tuple[int, tuple[int, ...]]]:
    """(layer id, its four numbers of cycles) where they are whole numbers."""
    found = []
    for layer, entry in layers.items():
        cycles = items(table(entry).get("cycles"))
        if str(layer).isdecimal() and len(cycles) == 4 and all(type(number) is int for number in cycles):
            found.append((int(layer), tuple(cycles)))
    return found
