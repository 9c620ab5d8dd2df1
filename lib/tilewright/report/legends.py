"""What the columns of the tables for the terminal mean, in lines to print below them."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

WORK = (
    ("MACs", "multiply-accumulates; ops: all other operations, such as comparisons, additions and exponentials"),
    ("array use", "cycles that the operations need at least on the whole array, over the latency"),
)
SINGLE = (("corrected energy, latency", "change, for the same mappings, under the model without its known faults"),)
MULTI = (
    ("gap to bound", "no allocation to cores can save more than this share of the latency"),
    ("of this run", "latency of what the run is compared with, over that of the run"),
)
COSTED = "shares of the MACs and of the other operations of the network that the figures contain; the rest is free"
UNKNOWN = "; ?: not known, the model has no layers for these operations"
STALLS = ("stalls and loading", "shares of the latency of the layer")
WIDTH = 110


def runs_legend(single: Sequence[Mapping[str, Any]], multi: Sequence[Mapping[str, Any]]) -> str:
    """The legend of the tables of runs of one core and of several, given as rows of the table of runs; '' for none."""
    entries = [*(WORK + SINGLE if single else ()), *(MULTI if multi else ())]
    shares = [row[f"costed_{kind}_share"] for row in (*single, *multi) for kind in ("mac", "operation")]
    costed = ("costed", COSTED + (UNKNOWN if None in shares else ""))
    return _lines([*entries, costed]) if shares else ""


def layers_legend() -> str:
    """The legend of the table of the layers of a run."""
    return _lines([*WORK, STALLS])


def _lines(entries: Sequence[tuple[str, str]]) -> str:
    return "".join(f"{line}\n" for entry in entries for line in _wrapped(*entry))


def _wrapped(name: str, meaning: str) -> Iterator[str]:
    yield from textwrap.wrap(f"{name}: {meaning}", WIDTH, initial_indent="  ", subsequent_indent="    ")
