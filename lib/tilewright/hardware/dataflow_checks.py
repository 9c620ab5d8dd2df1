"""Checks of the dataflows of a core against its array."""

import math
import re

from tilewright.errors import Problems, nearest_name
from tilewright.hardware.yaml_schema import ArrayEntry, DataflowEntry
from tilewright.validation import each, names_of, whole

USUAL_LOOPS = ("B", "K", "G", "C", "D", "H", *(tensor + axis for tensor in "OIF" for axis in "XYZ"))
"""Names that the layers of ONNX networks and the example networks of ZigZag use, besides D0 to D9."""
_USUAL_LOOP = re.compile(f"{'|'.join(USUAL_LOOPS)}|D[0-9]")


def is_usual_loop(name: str) -> bool:
    """Whether layers usually call a loop dimension so. Layers of YAML files may have any other names as well."""
    return _USUAL_LOOP.fullmatch(name) is not None


def check_dataflows(problems: Problems, written: DataflowEntry | list[DataflowEntry] | None, array: ArrayEntry) -> None:
    """Record array dimensions that the core does not have and what is given twice; tell loops beyond their sizes."""
    known = names_of(array.dimensions)
    size_of = dict(zip(array.dimensions or (), array.sizes or (), strict=False))
    alternatives = [written] if isinstance(written, dict) else written or []
    for index, dataflow in each(alternatives):
        place = problems if isinstance(written, dict) else problems.within(index)
        for name, loops in dataflow.items() if known else ():
            if name not in known:
                place.unknown_name((name,), "no such array dimension", name, known)
            else:
                _check_size(place.within(name), loops, size_of.get(name))
    problems.repeated((), [_meaning(entry) or None for entry in alternatives], "this dataflow is given before")


def _check_size(problems: Problems, loops: list[tuple[str, int]], size: int | None) -> None:
    factors: dict[str, int] = {}
    for index, (name, factor) in each(loops):
        if not is_usual_loop(name):
            near = nearest_name(name, USUAL_LOOPS)
            meant = f" (did you mean '{near}'?)" if near else ""
            problems.notice((index,), f"layers usually have no loop dimension {name}{meant}")
        if name in factors:
            problems.notice((index,), f"{name} is given twice here, the last one counts")
        factors[name] = factor
    lanes = math.prod(factors.values())
    if size is not None and lanes > size:
        # As in mapping files, which are read as they are.
        problems.notice((), f"takes {lanes} lanes, and the array has {size} here: the others are cut")


def _meaning(entry: DataflowEntry | None) -> dict[str, dict[str, int]]:
    """A dataflow without the order and the spelling of its loops."""
    return {name: dict(whole(loops)) for name, loops in (entry or {}).items()}
