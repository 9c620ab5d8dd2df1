"""What leaves units of the array idle, as text for the terminal."""

import math
from dataclasses import dataclass, field

from tilewright.report.array_use import ArrayUses, LayerArrayUse
from tilewright.report.text_tables import NOTHING, SMALLEST_SHOWN, render, share_text, text_table

MOST_ROWS = 8
LEAST_SHARE = 0.01
"""Of the latency: smaller stalls are no table worth."""
SIZES = "the sizes of the layers"
UNKNOWN = "not known without --mapping"


@dataclass
class _Row:
    """Layers that leave the array idle alike."""

    sides: list[str]
    cause: str
    cycles: float = 0.0
    layers: set[str] = field(default_factory=set)
    weights: list[tuple[float, tuple[float, ...]]] = field(default_factory=list)
    """(computing cycles, share of each side) of each layer."""

    def cells(self) -> list[str]:
        """What runs along each side, and how full that makes it on average."""
        total = math.fsum(weight for weight, _ in self.weights)
        shares = [math.fsum(weight * shares[k] for weight, shares in self.weights) for k in range(len(self.sides))]
        return [f"{loops}: {share_text(share, total)}" for loops, share in zip(self.sides, shares, strict=True)]


def array_text(uses: ArrayUses, latency_cycles: float) -> str:
    """How full the sides of the array are, and why not fuller; '' where that costs next to nothing."""
    stall = math.fsum(one.stall_cycles for one in uses.layers)
    if stall < LEAST_SHARE * latency_cycles:
        return ""
    rows = sorted(_rows(uses).values(), key=lambda row: -row.cycles)
    names = [f"{name} of {units}" for name, units in uses.units.items()]
    table = text_table("What the spatial stall comes from", (*names, "because of"), ("layers", "cycles", "share"))
    shown = [row for row in rows[:MOST_ROWS] if row.cycles >= SMALLEST_SHOWN * latency_cycles] or rows[:1]
    for row in shown:
        table.add_row(
            *row.cells(), row.cause, str(len(row.layers)), f"{row.cycles:,.0f}", share_text(row.cycles, latency_cycles)
        )
    rest = math.fsum(row.cycles for row in rows[len(shown) :])
    if rest:
        told = f"{rest:,.0f}", share_text(rest, latency_cycles)
        table.add_row(*[""] * len(names), f"others: {len(rows) - len(shown)}", "", *told)
    return render(table) + "".join(f"  {line}\n" for line in _lines(uses, latency_cycles))


def _lines(uses: ArrayUses, latency_cycles: float) -> list[str]:
    full = ", ".join(f"{name} {share_text(share, 1.0)}" for name, share in uses.shares.items())
    lines = [f"while the array computes, its sides are full to: {full}"]
    lines += [
        f"the mapping file never asks for more than {lanes} of the {uses.units[side]} units of {side}:"
        " the others never work"
        for side, lanes in uses.never_full.items()
    ]
    by_file = uses.by_mapping_file_cycles
    if by_file >= LEAST_SHARE * latency_cycles:
        share = share_text(by_file, latency_cycles)
        lines.append(
            f"generated spatial mappings would not have {by_file:,.0f} of these cycles ({share}), the mapping file"
        )
        lines.append("fixes others: `tilewright advise` says what leaving them out, or other ones, would bring")
    return lines


def _rows(uses: ArrayUses) -> dict[tuple[str, ...], _Row]:
    found: dict[tuple[str, ...], _Row] = {}
    for one in uses.layers:
        sides = [" ".join(f"{name} {lanes}" for name, lanes in side.loops) or NOTHING for side in one.sides]
        for cause, cycles in _causes(uses, one):
            if cycles > 0:
                row = found.setdefault((cause, *sides), _Row(sides, cause))
                row.cycles += cycles
                row.layers.add(one.layer)
                row.weights.append((one.computing_cycles, tuple(side.share for side in one.sides)))
    return found


def _causes(uses: ArrayUses, one: LayerArrayUse) -> list[tuple[str, float]]:
    if one.by_mapping_file_cycles is None or one.by_sizes_cycles is None:
        return [(UNKNOWN, one.stall_cycles)]
    fixed = [side.array_dimension for side in one.sides if side.is_fixed and side.share < 1]
    places = [uses.places.get((one.entry, name), "") for name in fixed]
    where = next((place for place in places if place), f"entry {one.entry} of the mapping file")
    return [(f"{where} ({', '.join(fixed)})", one.by_mapping_file_cycles), (SIZES, one.by_sizes_cycles)]
