"""Which ports limit, in words, from what `bottlenecks.json` says."""

from collections.abc import Mapping
from typing import Any

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


def gain_cycles(verdict: Verdict | None) -> float:
    """Cycles that what limits would save if it were twice as wide."""
    best = (verdict or {}).get("port") or (verdict or {}).get("together")
    return float(best["gain_cycles"]) if best else 0.0
