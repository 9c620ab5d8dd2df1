"""Plausible numbers of hardware files: ranges of clocks and energies, and reports on numbers outside of these ranges.

A number outside of its range is valid, because real hardware can be unusual. More often, such a number is written in a
wrong unit. The report therefore names the number, the range, and the source of the range.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import NamedTuple

from tilewright.base.errors import KeyPath, Problems
from tilewright.base.operator_groups import ALL, MAC
from tilewright.hardware.silicon.library import DRAM, REGISTER, LibraryEntry, entries
from tilewright.hardware.silicon.memory_cost import known_nodes, node_factors
from tilewright.hardware.silicon.multiplier import multiplier_energy_pj

FAR = 100.0
"""Largest factor by which an energy can be below the least energy in the library of costs without a caution. The
library has published parts from 180 nm to 7 nm. Operands of one bit, newer nodes and low supplies together need about a
hundredth of the energy of the least entry. A wrong prefix of an energy is a factor of 1000 or more.
"""
LARGEST_REAL_ENERGY_PJ = 1000.0
"""Largest energy of an operation or of a bit, in pJ, that causes no caution. All entries of the library of costs need
less than an eighth of this limit (docs/costs.md).
"""
LEAST_CLOCK_MHZ, LARGEST_CLOCK_MHZ = 1.0, 10_000.0
"""Smallest and largest frequency of a clock, in MHz, that causes no caution. Published accelerators have clocks from
tens of MHz (low supplies) to about 2 GHz; the fastest processors have 6 GHz. Few circuits are outside of the range:
some that operate below the threshold voltage, at some hundred kHz, and superconducting ones.
"""
_OPERATIONS = ("multiply-accumulate", "arithmetic")
_MEMORIES = ("register", "sram", DRAM)
_CONNECTIONS = ("link", "wire")
_PER_BIT = {"bit": 1, "access of 64 bits": 64, "bit and mm": 1}
"""Unit of work of a library entry that moves data -> number of bits that one unit of work moves. The energy of a wire
is given per bit and millimetre. It counts as the energy per bit of the shortest wire, which is one millimetre long."""


class EnergyRange(NamedTuple):
    """Least and largest energy in pJ that the library of costs has for a kind of part, each with its entry."""

    least_pj: float
    least_name: str
    largest_pj: float
    largest_name: str

    @property
    def text(self) -> str:
        """Range with its entries, for messages."""
        return (
            f"the library of costs has {self.least_pj:.3g} pJ ({self.least_name}) to {self.largest_pj:.3g} pJ"
            f" ({self.largest_name})"
        )


def report_clock(problems: Problems, path: KeyPath, clock_mhz: float | None) -> None:
    """Report a caution if a clock is slower or faster than the clocks of almost all circuits. `path` is the place of
    the clock in the file."""
    if not clock_mhz or LEAST_CLOCK_MHZ <= clock_mhz <= LARGEST_CLOCK_MHZ:
        return
    written = problems.places.written((*problems.path, *path)) if problems.places else None
    plain = "; a plain number is in MHz" if isinstance(written, (int, float)) else ""
    problems.caution(
        path,
        f"a clock of {clock_mhz:,.6g} MHz is outside of the range of accelerators and processors,"
        f" {LEAST_CLOCK_MHZ:g} MHz to {LARGEST_CLOCK_MHZ / 1000:g} GHz{plain}",
    )


def report_operation(
    problems: Problems, path: KeyPath, energy_pj: float, types: Collection[str] | None, nodes_nm: Iterable[float]
) -> None:
    """Report the energy of an operation if it is outside of the range of the library of costs.

    `types` has the operators that the array can run; None if they are unknown. `nodes_nm` has the process nodes of the
    memories with costs from the library. If there are some, the energy is also compared with a multiply-accumulate at
    the largest of these nodes.
    """
    least, most = known_nodes()
    nodes = [node_nm for node_nm in nodes_nm if least <= node_nm <= most]
    multiplies = types is not None and bool({MAC, ALL} & set(types))
    known_pj = multiplier_energy_pj(max(nodes)) if nodes and energy_pj <= LARGEST_REAL_ENERGY_PJ else 0.0
    ratio = energy_pj / known_pj if known_pj else 1.0
    # A multiply-accumulate of 32-bit floating-point numbers needs less than 30 times the energy (docs/costs.md).
    if ratio > FAR or (multiplies and 0 < ratio < 1 / FAR):
        times = f"{ratio:,.0f} times" if ratio > 1 else f"{ratio:.2g} of"
        problems.caution(
            path,
            f"{energy_pj:,.4g} pJ are {times} the energy of an 8-bit multiply-accumulate at {max(nodes):g} nm in the"
            f" library of costs ({known_pj:.4g} pJ)",
        )
    else:
        _report(problems, path, energy_pj, "operation", operation_range(multiplies))


def report_bit_of_memory(problems: Problems, path: KeyPath, energy_pj: float, memory_type: str) -> None:
    """Report the energy of reading or writing a bit if it is outside of the range of the library of costs.
    `memory_type` is the technology of the memory in the hardware file."""
    _report(problems, path, energy_pj, "bit", memory_range(memory_type == DRAM))


def report_bit_of_link(problems: Problems, path: KeyPath, link: str, energy_pj: float) -> None:
    """Report the energy of moving a bit over a link if it is outside of the range of the library of costs. `link` is
    the name of the link in messages."""
    _report(problems, path, energy_pj, "bit", link_range(), f"{link}: ")


@cache
def operation_range(multiplies: bool) -> EnergyRange:
    """Range of the energies of operations. If `multiplies` is true, the range has only multiply-accumulates."""
    return _range(_OPERATIONS[:1] if multiplies else _OPERATIONS, {"operation": 1})


@cache
def memory_range(is_dram: bool) -> EnergyRange:
    """Range of the energies that memories need to read or write one bit. If `is_dram` is false, the memory can still be
    a DRAM, because hardware files can leave out the technology of a memory. The range then begins at registers of the
    smallest node, and ends at DRAMs."""
    if is_dram:
        return _range((DRAM,), _PER_BIT)
    register, smallest_nm = entries()[REGISTER], known_nodes()[0]
    assert register.energy_pj is not None
    assert register.node_nm is not None
    least_pj = register.energy_pj * node_factors(register.node_nm, smallest_nm).energy
    found = _range(_MEMORIES, _PER_BIT)
    return found._replace(least_pj=least_pj, least_name=f"{REGISTER}, scaled to {smallest_nm:g} nm")


@cache
def link_range() -> EnergyRange:
    """Range of the energies that links, and wires on a chip, need for one bit."""
    return _range(_CONNECTIONS, _PER_BIT)


def _range(kinds: Collection[str], bits_of: Mapping[str, int]) -> EnergyRange:
    """Range of the energies of library entries. An entry counts if its kind is in `kinds` and its unit of work is in
    `bits_of`. Its energy is divided by the number of bits in `bits_of`.
    """
    of_kinds = [one for one in entries().values() if one.kind in kinds and one.energy_per in bits_of]
    ends = [(_ends_pj(one), bits_of[one.energy_per], one.name) for one in of_kinds if one.energy_pj is not None]
    least_pj, least_name = min((low / bits, name) for (low, _), bits, name in ends)
    largest_pj, largest_name = max((high / bits, name) for (_, high), bits, name in ends)
    return EnergyRange(least_pj, least_name, largest_pj, largest_name)


def _ends_pj(entry: LibraryEntry) -> tuple[float, float]:
    assert entry.energy_pj is not None
    return entry.energy_range_pj or (entry.energy_pj, entry.energy_pj)


def _report(problems: Problems, path: KeyPath, energy_pj: float, unit: str, known: EnergyRange, name: str = "") -> None:
    """Report an energy above the range `known`, or below the range by a factor of more than FAR. An energy of 0 is not
    reported. `name` begins the message. The report is a caution if the energy is below the range or above
    LARGEST_REAL_ENERGY_PJ; otherwise, it is a notice.
    """
    if not energy_pj or known.least_pj / FAR <= energy_pj <= known.largest_pj:
        return
    is_below = energy_pj < known.least_pj
    ratio = known.least_pj / energy_pj if is_below else energy_pj / known.largest_pj
    told = (
        f"{name}{energy_pj:,.4g} pJ for each {unit} are {ratio:,.3g} times {'below' if is_below else 'above'} what is"
        f" known: {known.text}"
    )
    (problems.caution if is_below or energy_pj > LARGEST_REAL_ENERGY_PJ else problems.notice)(path, told)
