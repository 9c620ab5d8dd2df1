"""What a memory of a hardware file costs by the library, with the steps of the computation."""

from dataclasses import dataclass

from tilewright.silicon.library import REGISTER, dram_types, entries
from tilewright.silicon.scaling import LAW, known_nodes, node_factors
from tilewright.silicon.sram import CELLS, SOURCE, NoCostError, SramCost, sram_cost, zigzag_cost

SRAM, REGISTER_FILE, DRAM = "sram", "register_file", "dram"
LAWS = (SRAM, REGISTER_FILE, DRAM)
"""What a memory may be made of."""
CACTI_RANGE = (0.7, 1.3)
"""CACTI is 10 to 30 % off memories that were measured."""
_ZIGZAG_RF_FACTOR = 128
"""zigzag-dse 3.9.1 asks for register files as SRAMs so many times as large, and does not scale the cost back."""


@dataclass(frozen=True)
class MemoryShape:
    """What of a memory decides its cost."""

    size_bits: int
    read_bits: int
    """Width of the widest port that reads, 0 if none does."""
    write_bits: int
    port_count: int = 1

    @property
    def widest_bits(self) -> int:
        """Width of the widest port."""
        return max(self.read_bits, self.write_bits)


@dataclass(frozen=True)
class CostSource:
    """Where the costs of a memory come from; recorded beside them."""

    law: str
    """What was asked, as `sram 22 nm hp`."""
    source: str
    """The publication."""
    steps: tuple[str, ...]
    """How the figures came about."""
    leakage_mw: float | None = None
    """Of one instance; None where nothing is known of it."""
    access_time_ns: float | None = None
    """None where nothing is known of it."""
    relative_range: tuple[float, float] = (1.0, 1.0)
    """Between what its energies and its area lie, over its figures: where sources disagree, and for CACTI_RANGE."""


@dataclass(frozen=True)
class MemoryCost:
    """Costs of one instance of a memory."""

    read_energy_pj: float
    """Of a word of the widest port that reads."""
    write_energy_pj: float
    area_mm2: float
    """0 of what is off the chip."""
    source: CostSource
    remarks: tuple[str, ...] = ()
    """What whoever asks should know: what is interpolated, extrapolated, scaled, or left out."""


def sram_memory(shape: MemoryShape, node_nm: float, cells: str) -> MemoryCost:
    """An SRAM. Raises NoCostError."""
    found = {width: sram_cost(shape.size_bits, width, node_nm, cells) for width in _widths(shape)}
    law = f"{SRAM} {node_nm:g} nm {cells}"
    remarks = _remarks(found)
    if shape.port_count > 1:
        remarks += (
            f"the figures are those of one port that reads and writes, this memory has {shape.port_count};"
            " a port more made CACTI's memories 1.8 times as large (median of 39 pairs)",
        )
    return _of_sram(shape, found, law, remarks)


def zigzag_memory(size_bits: int, word_bits: int, memory_type: str) -> MemoryCost:
    """What zigzag-dse 3.9.1 finds with `auto_cost_extraction`: `word_bits` is the width of the first port that reads,
    else of the first one that does both; other ports do not count. Raises NoCostError."""
    if memory_type == DRAM:
        raise NoCostError("the table has no main memory of CACTI", "r_cost, w_cost and area; or `cost: {from: dram}`")
    is_register_file = memory_type == "rf"
    size = size_bits * _ZIGZAG_RF_FACTOR if is_register_file else size_bits
    shape = MemoryShape(size, word_bits, word_bits)
    found = {word_bits: zigzag_cost(size, word_bits)}
    remarks = _remarks(found)
    if size % 8:
        remarks += (f"{size} bits are no whole number of bytes: {size // 8} bytes, as in zigzag-dse",)
    if is_register_file:
        remarks += (f"a register file is an SRAM of {_ZIGZAG_RF_FACTOR} times its size for zigzag-dse",)
    return _of_sram(shape, found, "auto_cost_extraction of zigzag-dse 3.9.1", remarks)


def register_file_memory(shape: MemoryShape, node_nm: float) -> MemoryCost:
    """Flip-flops, without the multiplexers and wires of a file. Raises NoCostError."""
    entry = entries()[REGISTER]
    assert entry.node_nm is not None
    assert entry.energy_pj is not None
    assert entry.area_um2 is not None
    assert entry.leakage_mw is not None
    smallest, largest = known_nodes()
    if not smallest <= node_nm <= largest:
        raise NoCostError(f"no law reaches {node_nm:g} nm", f"{smallest:g} to {largest:g} nm")
    factors = node_factors(entry.node_nm, node_nm)
    energy, area = entry.energy_pj * factors.energy, entry.area_um2 * factors.area
    steps = [f"{entry.name}: {entry.energy_pj:g} pJ a bit, {entry.area_um2:g} um2 a bit"]
    is_scaled = node_nm != entry.node_nm
    if is_scaled:
        told = f"energy × {factors.energy:.4g}, area × {factors.area:.4g}; leakage is not scaled"
        steps.append(f"from {entry.node_nm:g} to {node_nm:g} nm by the law of {LAW}: {told}")
    steps.append(f"{shape.read_bits} bits read, {shape.write_bits} bits written, {shape.size_bits} bits of area")
    leakage = None if is_scaled else _rounded(shape.size_bits * entry.leakage_mw)
    source = CostSource(f"{REGISTER_FILE} {node_nm:g} nm", entry.sources[0].publication, tuple(steps), leakage)
    remarks = ("register file: multiplexers and wires are not in its figures",)
    return MemoryCost(
        _rounded(shape.read_bits * energy),
        _rounded(shape.write_bits * energy),
        _rounded(shape.size_bits * area * 1e-6),
        source,
        remarks + (tuple(steps[1:2]) if is_scaled else ()),
    )


def dram_memory(shape: MemoryShape, dram_type: str) -> MemoryCost:
    """DRAM with its interface, by the bit; `dram_type` is one of `dram_types`."""
    entry = entries()[dram_type]
    assert entry.energy_pj is not None
    low, high = entry.energy_range_pj or (entry.energy_pj, entry.energy_pj)
    steps = (
        f"{entry.what}: {entry.energy_pj:g} pJ a bit, {low:g} to {high:g} by source; {entry.conditions}",
        f"{shape.read_bits} bits read, {shape.write_bits} bits written; no area on the chip",
    )
    remarks = (
        ()
        if entry.checked in ("seen", "title")
        else (f"{entry.what}: {entry.energy_pj:g} pJ a bit is a figure that is {entry.checked} ({entry.conditions})",)
    )
    publications = "; ".join(source.publication for source in entry.sources)
    energy = entry.energy_pj
    source = CostSource(f"{DRAM} {dram_type}", publications, steps, relative_range=(low / energy, high / energy))
    return MemoryCost(_rounded(shape.read_bits * energy), _rounded(shape.write_bits * energy), 0.0, source, remarks)


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
    """What is not in the table just so."""
    told = []
    for cost in found.values():
        if cost.is_in_table:
            continue
        told += [step for step in cost.steps if "beyond the table" in step or LAW in step]
        told.append("interpolated between memories of CACTI (docs/costs.md)")
    return tuple(dict.fromkeys(told))


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


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
