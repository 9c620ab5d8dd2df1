"""Sentences on the error bars that the summary of a run contains.

Every verb that prints a run imports this module, which therefore imports neither the table of errors nor pandas.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tilewright.base.errors import count_of
from tilewright.base.profile import CORRECTED
from tilewright.results.text_tables import share_text

ERROR_BARS = "error_bars"
"""Key of the error bars in a summary."""
PAGE = "docs/accuracy/error-bars.md"


def bar_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Lines on the error bars in the summary of a run; no lines if the summary has no error bars."""
    found = summary.get(ERROR_BARS)
    if found is None:
        return
    yield f"error bars of {found['share']:.0%}, class {found['class']}: a machine takes {bar_text(found, summary)}"
    yield from source_lines(found)


def no_bar_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Line on the option that makes error bars. There is a line only if the summary of a run has no error bars but
    could have them.
    """
    if ERROR_BARS not in summary and summary.get("model") == CORRECTED.name and "clock_breakdown_ns" not in summary:
        yield f"latency: no error bars; `--error-bars CLASS` makes them from measurements of machines ({PAGE})"


def bar_text(found: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """Text on the ends of a bar. `found` has the error bars, and `summary` the clock, if one is known."""
    low, predicted, high = (found[f"{name}_cycles"] for name in ("low", "predicted", "high"))
    told = f"{cycles_text(low)} to {cycles_text(high)} cycles"
    if mhz := summary.get("clock_frequency_mhz"):
        told += f" ({low / mhz * 1e-6:.3g} to {high / mhz * 1e-6:.3g} s)"
    return f"{told}, {low / predicted:.2f} to {high / predicted:.2f} times the prediction"


def cycles_text(cycles: float) -> str:
    """Number of cycles with three significant digits."""
    return f"{float(f'{cycles:.3g}'):,.0f}" if cycles >= 100 else f"{cycles:.3g}"


def source_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Lines that name the errors behind an error bar. The last line is about the energy."""
    parts = "; ".join(_limit_text(one) for one in found["limits"])
    yield f"errors by what limits a layer ({PAGE}): {parts}"
    if not found["has_waiting_keys"]:
        yield (
            "no layer waits for calls, commands or requests, so the errors are those of predictions from hardware files"
            " without keys for such waiting (docs/model/waiting.md)"
        )
    yield found["energy"]


def _limit_text(one: Mapping[str, Any]) -> str:
    share = share_text(one["latency_share"], 1.0)
    return f"{one['limit']}: {count_of(one['layers'], 'layer')} with {share} of the latency, {one['errors']}"
