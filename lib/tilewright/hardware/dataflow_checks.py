"""Checks of the dataflows of a core against its array, on raw data."""

import math
import re
from typing import Any

from tilewright.errors import KeyPath, Problems, nearest_name
from tilewright.hardware.yaml_schema import parse_unrolling
from tilewright.units import LARGEST_WHOLE_NUMBER
from tilewright.validation import items, parsed, table, texts

USUAL_LOOPS = ("B", "K", "G", "C", "D", "H", *(tensor + axis for tensor in "OIF" for axis in "XYZ"))
"""Names that the layers of ONNX networks and the example networks of ZigZag use, besides D0 to D9."""
_USUAL_LOOP = re.compile(f"{'|'.join(USUAL_LOOPS)}|D[0-9]")


def is_usual_loop(name: str) -> bool:
    """Whether layers usually call a loop dimension so. Layers of YAML files may have any other names as well."""
    return _USUAL_LOOP.fullmatch(name) is not None


def check_dataflows(problems: Problems, written: Any, array: dict[Any, Any]) -> None:
    """Record array dimensions that the core does not have and what is given twice; tell loops beyond their sizes.

    `written` is a table or a list of tables.
    """
    dimensions, sizes = array.get("dimensions"), array.get("sizes")
    if not isinstance(dimensions, list):
        return
    known = [name for name in texts(dimensions) if name is not None]
    size_of = dict(zip(texts(dimensions), items(sizes), strict=False))
    path: KeyPath = ("dataflows",)
    alternatives = [((*path, index), table(entry)) for index, entry in enumerate(items(written))]
    for place, unrollings in alternatives or [(path, table(written))]:
        for name, loops in unrollings.items():
            if isinstance(name, str) and name not in known:
                problems.unknown_name((*place, name), "no such array dimension", name, known)
            else:
                _check_size(problems, (*place, name), loops, size_of.get(name))
    problems.repeated(path, [_meaning(entry) or None for _, entry in alternatives], "this dataflow is given before")


def _check_size(problems: Problems, path: KeyPath, loops: Any, size: Any) -> None:
    factors: dict[str, int] = {}
    for index, text in enumerate(texts(loops)):
        pair = None if text is None else parsed(parse_unrolling, text)
        if pair is not None and not is_usual_loop(pair[0]):
            near = nearest_name(pair[0], USUAL_LOOPS)
            meant = f" (did you mean '{near}'?)" if near else ""
            problems.notice((*path, index), f"layers usually have no loop dimension {pair[0]}{meant}")
        if pair is not None and pair[0] in factors:
            problems.notice((*path, index), f"{pair[0]} is given twice here, the last one counts")
        if pair is not None:
            factors[pair[0]] = pair[1]
    lanes = math.prod(factors.values())
    if type(size) is int and 0 < size <= LARGEST_WHOLE_NUMBER and lanes > size:
        # As in mapping files, which are read as they are.
        problems.notice(path, f"takes {lanes} lanes, and the array has {size} here: the others are cut")


def _meaning(entry: dict[Any, Any]) -> dict[Any, dict[str, int]]:
    """A dataflow without the order and the spelling of its loops."""
    pairs = {name: [parsed(parse_unrolling, text) for text in texts(loops) if text] for name, loops in entry.items()}
    return {name: dict(pair for pair in found if pair is not None) for name, found in pairs.items()}
