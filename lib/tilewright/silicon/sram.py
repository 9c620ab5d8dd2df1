"""What an SRAM costs: memories of CACTI as they are, others by the law between them, step by step."""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.silicon.scaling import LAW, known_nodes, node_factors
from tilewright.silicon.tables import (
    CACTI,
    FEWEST_WORDS,
    FILLED,
    HP,
    LSTP,
    PLAIN,
    ZIGZAG_CALL,
    SramFigures,
    SramGroup,
    SramPlace,
    sram_table,
)

CELLS = {"hp": HP, "lstp": LSTP}
"""As files name types of cells."""
SOURCE = "CACTI 7 (Balasubramonian et al., ACM TACO 14(2), 2017)"
FURTHEST = 2
"""By which factor a size or a width may be beyond the table."""


class NoCostError(ValueError):
    """Nothing in the library is near enough."""

    def __init__(self, message: str, allowed: str = "") -> None:
        super().__init__(message)
        self.message, self.allowed = message, allowed


@dataclass(frozen=True)
class SramCost:
    """The figures of an SRAM, and how they came about."""

    read_energy_pj: float
    """Of a word."""
    write_energy_pj: float
    area_mm2: float
    leakage_mw: float | None
    """None where no figure is known at this node."""
    access_time_ns: float
    steps: tuple[str, ...]
    is_in_table: bool
    """Whether CACTI has it just so."""


def sram_cost(size_bits: int, width_bits: int, node_nm: float, cells: str) -> SramCost:
    """An SRAM of one bank and one port that reads and writes; `cells` is one of CELLS. Raises NoCostError."""
    nodes = sorted(group.node_nm for group in sram_table(CACTI) if group[::2] == (PLAIN, CELLS[cells]))
    smallest, largest = known_nodes()
    if not smallest <= node_nm <= largest:
        raise NoCostError(f"no law reaches {node_nm:g} nm", f"{smallest:g} to {largest:g} nm")
    size_bytes = size_bits / 8
    near = [min(nodes, key=lambda node: abs(math.log(node / node_nm)))]
    if nodes[0] < node_nm < nodes[-1] and node_nm not in nodes:
        place = bisect_left(nodes, node_nm)
        near = nodes[place - 1 : place + 1]
    found = [_at_group(SramGroup(PLAIN, node, CELLS[cells]), size_bytes, width_bits) for node in near]
    if len(near) == 2:
        return _between_nodes(found, near, node_nm)
    return found[0] if near[0] == node_nm else _scaled(found[0], near[0], node_nm)


def zigzag_cost(size_bits: int, width_bits: int) -> SramCost:
    """What zigzag-dse 3.9.1 gets from CACTI with `auto_cost_extraction` for an SRAM. Raises NoCostError."""
    return _at_group(SramGroup(ZIGZAG_CALL, 22, HP), size_bits // 8, width_bits)


def _at_group(group: SramGroup, size_bytes: float, width_bits: int) -> SramCost:
    words = size_bytes * 8 / width_bits
    if words < FEWEST_WORDS:
        message = f"{words:.4g} words of {width_bits} bits: CACTI finds no memory of fewer than {FEWEST_WORDS}"
        raise NoCostError(message, "narrower words, or `from: register_file`")
    own, filled = sram_table(CACTI)[group], sram_table(FILLED)[group]
    name = _group_name(group)
    if size_bytes in {place.size_bytes for place in own} and SramPlace(int(size_bytes), width_bits) in own:
        figures = own[SramPlace(int(size_bytes), width_bits)]
        return _cost(figures, (f"{name}, {_place_name(size_bytes, width_bits)}: in the table",), True)
    known = {**filled, **own}
    steps: list[str] = []
    sizes = _around("size", size_bytes, sorted({place.size_bytes for place in known}), "bytes", steps)
    widths = _around("word", width_bits, sorted({place.width_bits for place in known}), "bits", steps)
    corners = [(SramPlace(size, width), a * b) for size, a in sizes for width, b in widths]
    for place, weight in corners:
        origin = "in the table" if place in own else "by the law between its memories"
        figures = known[place]
        told = (
            f"read {figures.read_energy_pj:g} pJ, write {figures.write_energy_pj:g} pJ, area {figures.area_mm2:g} mm2"
        )
        steps.append(f"{name}, {_place_name(*place)}: {told}, {origin}, weight {weight:.4g}")
    if len(corners) > 1:
        steps.append("weighted mean of the logarithms")
    mean = _mean([(known[place], weight) for place, weight in corners])
    return _cost(mean, tuple(steps), False)


def _around(what: str, value: float, known: Sequence[int], unit: str, steps: list[str]) -> list[tuple[int, float]]:
    """(neighbour, weight): the value itself, or two around it; beyond the table the two at its end, which is told."""
    if value in known:
        return [(int(value), 1.0)]
    least, most = known[0] / FURTHEST, known[-1] * FURTHEST
    if not least <= value <= most:
        message = f"a {what} of {value:,.10g} {unit} is too far from the table, which has {known[0]:,} to {known[-1]:,}"
        raise NoCostError(message, f"{least:,.10g} to {most:,.10g} {unit}")
    if not known[0] < value < known[-1]:
        steps.append(f"a {what} of {value:,.10g} {unit} is beyond the table: extrapolated")
    place = min(max(bisect_left(known, value), 1), len(known) - 1)
    low, high = known[place - 1], known[place]
    share = math.log(value / low) / math.log(high / low)
    return [(low, 1 - share), (high, share)]


def _mean(found: Sequence[tuple[SramFigures, float]]) -> SramFigures:
    """A weighted mean of logarithms; of one with the whole weight itself."""
    if len(found) == 1:
        return found[0][0]
    columns = zip(*(figures for figures, _ in found), strict=True)
    weights = [weight for _, weight in found]
    means = (math.exp(sum(w * math.log(value) for w, value in zip(weights, column, strict=True))) for column in columns)
    return SramFigures(*map(_rounded, means))


def _rounded(value: float) -> float:
    """To the digits that CACTI has; more would depend on the machine."""
    return float(f"{value:.6g}")


def _cost(figures: SramFigures, steps: tuple[str, ...], is_in_table: bool) -> SramCost:
    read, write, leakage, area, access, _ = figures
    return SramCost(read, write, area, leakage, access, steps, is_in_table)


def _between_nodes(found: Sequence[SramCost], nodes: Sequence[int], node_nm: float) -> SramCost:
    low, high = nodes
    share = math.log(node_nm / low) / math.log(high / low)

    def mean(figure: Callable[[SramCost], float]) -> float:
        a, b = map(figure, found)
        return _rounded(a * (b / a) ** share)

    steps = [
        f"{node_nm:g} nm lies between {low} and {high} nm: mean of logarithms, weights {1 - share:.4g}, {share:.4g}"
    ]
    return SramCost(
        mean(lambda one: one.read_energy_pj),
        mean(lambda one: one.write_energy_pj),
        mean(lambda one: one.area_mm2),
        mean(lambda one: one.leakage_mw or 0.0),
        mean(lambda one: one.access_time_ns),
        (*found[0].steps, *found[1].steps, *steps),
        False,
    )


def _scaled(found: SramCost, from_nm: int, to_nm: float) -> SramCost:
    factors = node_factors(from_nm, to_nm)
    told = f"energy × {factors.energy:.4g}, time × {factors.delay:.4g}, area × {factors.area:.4g}"
    step = f"from {from_nm} to {to_nm:g} nm by the law of {LAW}, which is of logic: {told}; leakage is not scaled"
    return SramCost(
        _rounded(found.read_energy_pj * factors.energy),
        _rounded(found.write_energy_pj * factors.energy),
        _rounded(found.area_mm2 * factors.area),
        None,
        _rounded(found.access_time_ns * factors.delay),
        (*found.steps, step),
        False,
    )


def _group_name(group: SramGroup) -> str:
    if group.setup == ZIGZAG_CALL:
        return "CACTI as zigzag-dse calls it, 22 nm, itrs-hp"
    return f"CACTI {group.node_nm} nm, {group.cell_type}"


def _place_name(size_bytes: float, width_bits: int) -> str:
    return f"{size_bytes:,.10g} bytes in words of {width_bits} bits"
