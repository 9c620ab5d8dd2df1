"""Costs of a memory from the library: figures of CACTI, interpolation between them, and scaling between process nodes.

If the library has no figures for a node, figures of another node are scaled by the law of Stillmaker and Baas
(Integration 58, 2017). This law is fitted to simulations of inverters with predictive technology models from 180 to 7
nm. For a node between two nodes of the law, the logarithms of the factors are interpolated. The law describes logic.
Below 22 nm, the energies of measured SRAM fall much less than the law says (docs/costs.md). Results that use the law
therefore state that it is a law for logic.
"""

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from tilewright.hardware.silicon.library import (
    CACTI,
    CHECKED,
    FEWEST_WORDS,
    FILLED,
    HP,
    LSTP,
    NODES,
    PLAIN,
    REGISTER,
    ZIGZAG_CALL,
    SramFigures,
    SramGroup,
    SramPlace,
    dram_types,
    entries,
    rows,
    sram_table,
)

LAW = "Stillmaker and Baas 2017"


class NodeFigures(NamedTuple):
    """Energy, delay and area of a circuit at a process node, in arbitrary units. Only ratios between two nodes have a
    meaning."""

    energy: float
    delay: float
    area: float


@cache
def _nodes() -> dict[float, NodeFigures]:
    """Process node in nm -> energy, delay and area at nominal supply voltage, in rising order of nodes."""
    found = {}
    for row in rows(NODES):
        volts = float(row["supply_v"])
        delay = sum(float(row[f"delay_v{power}"]) * volts**power for power in range(4))
        energy = sum(float(row[f"energy_v{power}"]) * volts**power for power in range(3))
        found[float(row["node_nm"])] = NodeFigures(energy, delay, float(row["area"]))
    return dict(sorted(found.items()))


def known_nodes() -> tuple[float, float]:
    """Smallest and largest process node of the scaling law, in nm."""
    return min(_nodes()), max(_nodes())


def node_factors(from_nm: float, to_nm: float) -> NodeFigures:
    """Factors by which energy, delay and area change from one process node to another. Both nodes must be within
    `known_nodes`.
    """
    return NodeFigures(*(new / old for old, new in zip(_figures(from_nm), _figures(to_nm), strict=True)))


def _figures(node_nm: float) -> NodeFigures:
    nodes = _nodes()
    if node_nm in nodes:
        return nodes[node_nm]
    known = list(nodes)
    place = bisect_left(known, node_nm)
    low, high = known[place - 1], known[place]
    share = math.log(node_nm / low) / math.log(high / low)
    return NodeFigures(*(a * (b / a) ** share for a, b in zip(nodes[low], nodes[high], strict=True)))


CELLS = {"hp": HP, "lstp": LSTP}
"""Cell type in hardware files -> name of this cell type in CACTI."""
SOURCE = "CACTI 7 (Balasubramonian et al., ACM TACO 14(2), 2017)"
FURTHEST = 2
"""Largest factor of extrapolation: a size or width can exceed the largest value in the table by this factor, or can be
smaller than the smallest value by this factor."""


class NoCostError(ValueError):
    """Error of a memory for which the library cannot give a cost. For example, its size or its process node is too far
    from the sizes or nodes in the library."""

    def __init__(self, message: str, allowed: str = "") -> None:
        super().__init__(message)
        self.message, self.allowed = message, allowed


@dataclass(frozen=True)
class SramCost:
    """Costs of an SRAM. The texts `steps` say how the costs are computed."""

    read_energy_pj: float
    """Energy in pJ of reading a word."""
    write_energy_pj: float
    area_mm2: float
    leakage_mw: float | None
    """Leakage in mW; None if no figure is known at this process node."""
    access_time_ns: float
    steps: tuple[str, ...]
    is_in_table: bool
    """True if the CACTI table has exactly this memory."""


_LEAST_SMALLER = 0.02
"""Threshold for the remark on wider words, as a share of the area: the remark is given if wider words save at least
this share.
"""
_BEYOND = "is beyond the table"
"""Words that mark a step as an extrapolation."""
_MEAN = "weighted mean of the logarithms"
_FILLED = "interpolated between its memories"
_BETWEEN = "lies between"
_INTERPOLATED = (_MEAN, _FILLED, _BETWEEN)
"""Words that mark a step as an interpolation, unless another step is an extrapolation."""


def sram_cost(size_bits: int, width_bits: int, node_nm: float, cells: str) -> SramCost:
    """Cost of an SRAM with one bank and one read-write port. `cells` is a key of CELLS. Raises NoCostError."""
    nodes = sorted(group.node_nm for group in sram_table(CACTI) if group[::2] == (PLAIN, CELLS[cells]))
    smallest, largest = known_nodes()
    if not smallest <= node_nm <= largest:
        raise NoCostError(f"no scaling law covers {node_nm:g} nm", f"{smallest:g} to {largest:g} nm")
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
    """Cost that zigzag-dse 3.9.1 gets from CACTI for an SRAM with `auto_cost_extraction`. Raises NoCostError."""
    return _at_group(SramGroup(ZIGZAG_CALL, 22, HP), size_bits // 8, width_bits)


def _at_group(group: SramGroup, size_bytes: float, width_bits: int) -> SramCost:
    words = size_bytes * 8 / width_bits
    if words < FEWEST_WORDS:
        message = f"{words:.4g} words of {width_bits} bits are too few: CACTI needs at least {FEWEST_WORDS}"
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
        origin = "in the table" if place in own else _FILLED
        figures = known[place]
        told = (
            f"read {figures.read_energy_pj:g} pJ, write {figures.write_energy_pj:g} pJ, area {figures.area_mm2:g} mm2"
        )
        steps.append(f"{name}, {_place_name(*place)}: {told}, {origin}, weight {weight:.4g}")
    if len(corners) > 1:
        steps.append(_MEAN)
    mean = _mean([(known[place], weight) for place, weight in corners])
    return _cost(mean, tuple(steps), False)


def _around(what: str, value: float, known: Sequence[int], unit: str, steps: list[str]) -> list[tuple[int, float]]:
    """Pairs (value in the table, weight) for interpolating `value`. If the table has `value`, the result is one pair.
    Otherwise, the result has two pairs, for the neighbours of `value` in the table.

    A value outside the table is extrapolated from the two nearest values in the table, and `steps` gets a text on the
    extrapolation. Raises NoCostError if the value is too far outside.
    """
    if value in known:
        return [(int(value), 1.0)]
    least, most = known[0] / FURTHEST, known[-1] * FURTHEST
    if not least <= value <= most:
        message = (
            f"a {what} of {value:,.10g} {unit} is too far outside the table, which has {known[0]:,} to {known[-1]:,}"
        )
        allowed = f"{least:,.10g} to {most:,.10g} {unit}: costs are extrapolated to {FURTHEST} times the table"
        raise NoCostError(message, allowed)
    if not known[0] < value < known[-1]:
        steps.append(f"a {what} of {value:,.10g} {unit} {_BEYOND}, so figures are extrapolated")
    place = min(max(bisect_left(known, value), 1), len(known) - 1)
    low, high = known[place - 1], known[place]
    share = math.log(value / low) / math.log(high / low)
    return [(low, 1 - share), (high, share)]


def _mean(found: Sequence[tuple[SramFigures, float]]) -> SramFigures:
    """Weighted geometric mean of each figure over `found`, a list of pairs (figures of a memory, weight). The figures
    of a single memory are returned unchanged.
    """
    if len(found) == 1:
        return found[0][0]
    columns = zip(*(figures for figures, _ in found), strict=True)
    weights = [weight for _, weight in found]
    means = (math.exp(sum(w * math.log(value) for w, value in zip(weights, column, strict=True))) for column in columns)
    return SramFigures(*map(_as_in_cacti, means))


def _as_in_cacti(value: float) -> float:
    """Value rounded to the number of digits that CACTI prints. Further digits would differ between machines."""
    return float(f"{value:.6g}")


def _cost(figures: SramFigures, steps: tuple[str, ...], is_in_table: bool) -> SramCost:
    read, write, leakage, area, access, _ = figures
    return SramCost(read, write, area, leakage, access, steps, is_in_table)


def _between_nodes(found: Sequence[SramCost], nodes: Sequence[int], node_nm: float) -> SramCost:
    low, high = nodes
    share = math.log(node_nm / low) / math.log(high / low)

    def mean(figure: Callable[[SramCost], float]) -> float:
        a, b = map(figure, found)
        return _as_in_cacti(a * (b / a) ** share)

    steps = [f"{node_nm:g} nm {_BETWEEN} {low} and {high} nm: mean of logarithms, weights {1 - share:.4g}, {share:.4g}"]
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
    step = f"from {from_nm} to {to_nm:g} nm by the law of {LAW}, which is for logic: {told}; leakage is not scaled"
    return SramCost(
        _as_in_cacti(found.read_energy_pj * factors.energy),
        _as_in_cacti(found.write_energy_pj * factors.energy),
        _as_in_cacti(found.area_mm2 * factors.area),
        None,
        _as_in_cacti(found.access_time_ns * factors.delay),
        (*found.steps, step),
        False,
    )


def _group_name(group: SramGroup) -> str:
    if group.setup == ZIGZAG_CALL:
        return "CACTI with the settings of zigzag-dse, 22 nm, itrs-hp"
    return f"CACTI {group.node_nm} nm, {group.cell_type}"


def _place_name(size_bytes: float, width_bits: int) -> str:
    return f"{size_bytes:,.10g} bytes in words of {width_bits} bits"


SRAM, REGISTER_FILE, DRAM = "sram", "register_file", "dram"
LAWS = (SRAM, REGISTER_FILE, DRAM)
"""Types of memories in the library, which are the allowed values of `from` in hardware files."""
CACTI_RANGE = (0.7, 1.3)
"""Smallest and largest ratio of a measured figure of a memory to the figure that CACTI gives. CACTI differs from
measurements by 10 to 30 %.
"""
_ZIGZAG_RF_FACTOR = 128
"""Factor by which zigzag-dse 3.9.1 enlarges a register file. zigzag-dse takes the cost of an SRAM of the enlarged size
as the cost of the register file, and does not divide the cost by the factor."""


@dataclass(frozen=True)
class MemoryShape:
    """Parameters that determine the cost of a memory."""

    size_bits: int
    read_bits: int
    """Width in bits of the widest port that reads; 0 if no port reads."""
    write_bits: int
    port_count: int = 1

    @property
    def widest_bits(self) -> int:
        """Width of the widest port, in bits."""
        return max(self.read_bits, self.write_bits)


@dataclass(frozen=True)
class CostSource:
    """Source of the costs of a memory. Artifacts record the source together with the costs."""

    law: str
    """Type of memory for which the library gave the costs, as text such as `sram 22 nm hp`."""
    source: str
    """Publication that the figures come from."""
    steps: tuple[str, ...]
    """Steps by which the library computes the costs, as text."""
    leakage_mw: float | None = None
    """Static power of one instance; None if unknown."""
    access_time_ns: float | None = None
    """Access time in ns; None if unknown."""
    relative_range: tuple[float, float] = (1.0, 1.0)
    """Range of the true energies and area, as smallest and largest factor on these figures. For SRAM, the factors are
    CACTI_RANGE. For DRAM, the factors are the smallest and the largest published energy, divided by the energy used.
    Without a known range, the factors are (1.0, 1.0).
    """

    @property
    def extrapolations(self) -> tuple[str, ...]:
        """Steps that extrapolate beyond the table of CACTI, such as `a word of 1,024 bits is beyond the table, ...`."""
        return tuple(step for step in self.steps if _BEYOND in step)


_NODE_OF_LAW = re.compile(r"(?:^| )([0-9.]+(?:e[+-]?[0-9]+)?) nm(?: |$)")


def node_nm_of(law: str) -> float | None:
    """Process node in nm of a law of the library, such as 22 for `sram 22 nm hp`; None if the law has none."""
    found = _NODE_OF_LAW.search(law)
    return None if found is None else float(found[1])


@dataclass(frozen=True)
class MemoryCost:
    """Costs of one instance of a memory."""

    read_energy_pj: float
    """Energy in pJ of reading a word. The word has the width of the widest port that reads."""
    write_energy_pj: float
    area_mm2: float
    """Area in mm2; 0 for a memory off the chip."""
    source: CostSource
    remarks: tuple[str, ...] = ()
    """Remarks for the user about figures that are interpolated, extrapolated, scaled, or incomplete."""


def sram_memory(shape: MemoryShape, node_nm: float, cells: str) -> MemoryCost:
    """Cost of an SRAM. Raises NoCostError."""
    found = {width: sram_cost(shape.size_bits, width, node_nm, cells) for width in _widths(shape)}
    law = f"{SRAM} {node_nm:g} nm {cells}"
    remarks = (*_remarks(found), *_smaller_when_wider(shape, found, node_nm, cells))
    if shape.port_count > 1:
        remarks += (
            f"the figures are for one port that reads and writes, but this memory has {shape.port_count} ports;"
            " in CACTI, one more port makes a memory 1.8 times as large (median of 39 pairs of memories)",
        )
    return _of_sram(shape, found, law, remarks)


def _smaller_when_wider(shape: MemoryShape, found: dict[int, SramCost], node_nm: float, cells: str) -> tuple[str, ...]:
    """Tuple with one remark: the same SRAM has a smaller area with words of twice the width. The tuple is empty if the
    wider words save less than the share _LEAST_SMALLER of the area, or if the table has no words of this width.
    """
    width, area = 2 * shape.widest_bits, found[shape.widest_bits].area_mm2
    try:
        wider = sram_cost(shape.size_bits, width, node_nm, cells)
    except NoCostError:
        return ()
    if wider.area_mm2 > area * (1 - _LEAST_SMALLER) or any(_BEYOND in step for step in wider.steps):
        return ()
    return (
        f"with words of {width:,} bits, this memory is smaller: {wider.area_mm2:.4g} instead of {area:.4g} mm2; CACTI"
        " divides the memory into other subarrays for each width of its words",
    )


def zigzag_memory(size_bits: int, word_bits: int, memory_type: str) -> MemoryCost:
    """Cost that zigzag-dse 3.9.1 finds with `auto_cost_extraction`. Raises NoCostError.

    `word_bits` is the width of the first read port. Without a read port, `word_bits` is the width of the first
    read-write port.
    """
    if memory_type == DRAM:
        raise NoCostError("the table of CACTI has no DRAM", "r_cost, w_cost and area; or `cost: {from: dram}`")
    is_register_file = memory_type == "rf"
    size = size_bits * _ZIGZAG_RF_FACTOR if is_register_file else size_bits
    shape = MemoryShape(size, word_bits, word_bits)
    found = {word_bits: zigzag_cost(size, word_bits)}
    remarks = _remarks(found)
    if size % 8:
        remarks += (f"{size} bits are not a whole number of bytes; they count as {size // 8} bytes, as in zigzag-dse",)
    if is_register_file:
        remarks += (f"as in zigzag-dse, a register file counts as an SRAM of {_ZIGZAG_RF_FACTOR} times its size",)
    return _of_sram(shape, found, "auto_cost_extraction of zigzag-dse 3.9.1", remarks)


def register_file_memory(shape: MemoryShape, node_nm: float) -> MemoryCost:
    """Cost of a register file as the cost of its flip-flops. Multiplexers and wires are left out. Raises NoCostError if
    no scaling law covers the node.
    """
    entry = entries()[REGISTER]
    assert entry.node_nm is not None
    assert entry.energy_pj is not None
    assert entry.area_um2 is not None
    assert entry.leakage_mw is not None
    smallest, largest = known_nodes()
    if not smallest <= node_nm <= largest:
        raise NoCostError(f"no scaling law covers {node_nm:g} nm", f"{smallest:g} to {largest:g} nm")
    factors = node_factors(entry.node_nm, node_nm)
    energy, area = entry.energy_pj * factors.energy, entry.area_um2 * factors.area
    steps = [f"{entry.name}: {entry.energy_pj:g} pJ a bit, {entry.area_um2:g} um2 a bit"]
    is_scaled = node_nm != entry.node_nm
    if is_scaled:
        told = f"energy × {factors.energy:.4g}, area × {factors.area:.4g}; leakage is not known"
        steps.append(f"from {entry.node_nm:g} to {node_nm:g} nm by the law of {LAW}: {told}")
    steps.append(f"read of {shape.read_bits} bits, write of {shape.write_bits} bits, area of {shape.size_bits} bits")
    leakage = None if is_scaled else _as_in_cacti(shape.size_bits * entry.leakage_mw)
    source = CostSource(f"{REGISTER_FILE} {node_nm:g} nm", entry.sources[0].publication, tuple(steps), leakage)
    remarks = ("register file: the figures do not include multiplexers and wires",)
    return MemoryCost(
        _as_in_cacti(shape.read_bits * energy),
        _as_in_cacti(shape.write_bits * energy),
        _as_in_cacti(shape.size_bits * area * 1e-6),
        source,
        remarks + (tuple(steps[1:2]) if is_scaled else ()),
    )


def dram_memory(shape: MemoryShape, dram_type: str) -> MemoryCost:
    """Cost of DRAM, computed per bit and with the energy of the interface. `dram_type` is one of `dram_types`."""
    entry = entries()[dram_type]
    assert entry.energy_pj is not None
    low, high = entry.energy_range_pj or (entry.energy_pj, entry.energy_pj)
    steps = (
        f"{entry.what}: {entry.energy_pj:g} pJ a bit, {low:g} to {high:g} by source; {entry.conditions}",
        f"read of {shape.read_bits} bits, write of {shape.write_bits} bits; no area on the chip",
    )
    remarks = (
        ()
        if entry.checked in ("seen", "title")
        else (f"{entry.what}: {entry.energy_pj:g} pJ a bit; {CHECKED[entry.checked]} ({entry.conditions})",)
    )
    publications = "; ".join(source.publication for source in entry.sources)
    energy = entry.energy_pj
    source = CostSource(f"{DRAM} {dram_type}", publications, steps, relative_range=(low / energy, high / energy))
    read, write = (_as_in_cacti(bits * energy) for bits in (shape.read_bits, shape.write_bits))
    return MemoryCost(read, write, 0.0, source, remarks)


def _widths(shape: MemoryShape) -> tuple[int, ...]:
    return tuple(dict.fromkeys(bits for bits in (shape.read_bits, shape.write_bits) if bits))


def _of_sram(shape: MemoryShape, found: dict[int, SramCost], law: str, remarks: tuple[str, ...]) -> MemoryCost:
    widest = found[shape.widest_bits]
    steps = tuple(dict.fromkeys(step for one in found.values() for step in one.steps))
    source = CostSource(law, SOURCE, steps, widest.leakage_mw, widest.access_time_ns, CACTI_RANGE)
    read = found[shape.read_bits].read_energy_pj if shape.read_bits else 0.0
    write = found[shape.write_bits].write_energy_pj if shape.write_bits else 0.0
    return MemoryCost(read, write, widest.area_mm2, source, remarks)


def _remarks(found: dict[int, SramCost]) -> tuple[str, ...]:
    """Remarks about figures that are not taken directly from the table."""
    told = []
    for cost in found.values():
        told += [step for step in cost.steps if _BEYOND in step or LAW in step]
        is_interpolated = any(words in step for step in cost.steps for words in _INTERPOLATED)
        if is_interpolated and not any(_BEYOND in step for step in cost.steps):
            told.append("figures are interpolated between memories of CACTI (docs/costs.md)")
    return tuple(dict.fromkeys(told))


__all__ = [
    "CELLS",
    "LAWS",
    "CostSource",
    "MemoryCost",
    "MemoryShape",
    "NoCostError",
    "dram_memory",
    "dram_types",
    "register_file_memory",
    "sram_memory",
    "zigzag_memory",
]
