"""Which ports limit, in words, from what `bottlenecks.json` says."""

from collections.abc import Mapping
from typing import Any

from tilewright.report.text_tables import share_text

Verdict = Mapping[str, Any]
"""What `bottlenecks.json` says of a layer or of the network."""


def port_name(port: Mapping[str, str]) -> str:
    """A port for people, as other reports name it."""
    return f"{port['memory']} {port['port']}"


def limit_text(verdict: Verdict | None) -> str:
    """What limits, in a few words; '' where that is not known."""
    if verdict is None:
        return ""
    if verdict["port"]:
        more = len(verdict["ties"])
        named = port_name(verdict["port"]["ports"][0])
        return named + (f" (or {more} other{'s' * (more > 1)})" if more else "")
    if not verdict["together"]:
        return "no port"
    ports = verdict["together"]["ports"]
    return f"together: {' and '.join(map(port_name, ports))}" if len(ports) == 2 else "several ports together"


def cause_text(verdict: Verdict | None) -> str:
    """What limits by the cause that takes most cycles, in a few words; '' where that is not known."""
    return "" if verdict is None else str(verdict.get("limited_by") or limit_text(verdict))


def array_text(use: Mapping[str, Any] | None) -> str:
    """How full the array is, and what the mapping file has to do with it; '' where that is not known."""
    if not use:
        return ""
    sides = ", ".join(f"{side['array_dimension']} {share_text(side['share'], 1.0)}" for side in use["sides"])
    by_file = sum(layer["by_mapping_file_cycles"] or 0 for layer in use["layers"])
    fixed = f" {by_file:,.0f} cycles of the spatial stall are there since the mapping file fixes spatial mappings."
    return f"While the array computes, its sides are full to: {sides}.{fixed if by_file else ''}"


def gain_cycles(verdict: Verdict | None) -> float:
    """Cycles that what limits would save if it were twice as wide."""
    best = (verdict or {}).get("port") or (verdict or {}).get("together")
    return float(best["gain_cycles"]) if best else 0.0
