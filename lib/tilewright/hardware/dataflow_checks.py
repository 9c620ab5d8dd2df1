"""Checks of the dataflows of a core against its array, on raw data."""

import math
from typing import Any

from tilewright.hardware.yaml_schema import parse_unrolling
from tilewright.units import LARGEST_WHOLE_NUMBER
from tilewright.validation import Findings, items, parsed, table, texts
from tilewright.yamlfile import KeyPath


def check_dataflows(findings: Findings, written: Any, array: dict[Any, Any]) -> None:
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
                findings.unknown_name((*place, name), "no such array dimension", name, known)
            else:
                _check_size(findings, (*place, name), loops, size_of.get(name))
    findings.repeated(path, [_meaning(entry) or None for _, entry in alternatives], "this dataflow is given before")


def _check_size(findings: Findings, path: KeyPath, loops: Any, size: Any) -> None:
    factors: dict[str, int] = {}
    for index, text in enumerate(texts(loops)):
        pair = None if text is None else parsed(parse_unrolling, text)
        if pair is not None and pair[0] in factors:
            findings.notice((*path, index), f"{pair[0]} is given twice here, the last one counts")
        if pair is not None:
            factors[pair[0]] = pair[1]
    lanes = math.prod(factors.values())
    if type(size) is int and 0 < size <= LARGEST_WHOLE_NUMBER and lanes > size:
        # As in mapping files, which are read as they are.
        findings.notice(path, f"takes {lanes} lanes, and the array has {size} here: the others are cut")


def _meaning(entry: dict[Any, Any]) -> dict[Any, dict[str, int]]:
    """A dataflow without the order and the spelling of its loops."""
    pairs = {name: [parsed(parse_unrolling, text) for text in texts(loops) if text] for name, loops in entry.items()}
    return {name: dict(pair for pair in found if pair is not None) for name, found in pairs.items()}
