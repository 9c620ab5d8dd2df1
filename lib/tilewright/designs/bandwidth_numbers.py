"""Bandwidths of off-chip memories as uncertain numbers: the recorded mappings are evaluated at each bandwidth.

The energy per bit stays the same. A word that is twice as wide therefore takes twice the energy. Bandwidths are whole
numbers of bits per cycle.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tilewright.base.objectives import BUILT_IN
from tilewright.designs.core_trials import ExplainedRun
from tilewright.designs.held_mappings import Outcome
from tilewright.hardware.core import Accelerator, Core, Memory, Port
from tilewright.hardware.system import on_chip_memories
from tilewright.results.order_turn import (
    BANDWIDTH,
    LARGEST_FACTOR,
    NAMES,
    NEGLIGIBLE,
    ChangedRun,
    LinearFigure,
    UncertainNumber,
)

GRID_STEP = 1.3
"""Ratio of neighbouring bandwidths in the series of bandwidths that are tried.

The EDPs of the two runs are compared at all bandwidths of the series. The latencies are compared at all bandwidths of
the series only if both runs use the memory.

The series is needed because the difference between the runs can rise and fall several times as the bandwidth grows.
There are two reasons. If both runs use the memory, both runs get faster. And an access that fills only a part of a word
takes the energy of the whole word, which depends on the width of the word. The search misses a case: the order can
reverse and then reverse back between two neighbouring bandwidths.
"""
Runs = tuple[ExplainedRun, ExplainedRun]


@dataclass(frozen=True)
class BandwidthNumber(UncertainNumber):
    """Bandwidth of an off-chip memory, in a comparison of two runs. The memory is used by one run or by both."""

    width_bits: int = field(kw_only=True)
    """Width of the widest port of the memory, in bits per cycle. If the two runs have different memories, this is the
    larger of the two widths.
    """
    outcomes: "Callable[[float], tuple[Outcome, Outcome]]" = field(kw_only=True)
    """Function from a factor on the bandwidth to the costs of both runs with their recorded mappings."""
    seconds_a_cycle: tuple[float, float] = field(kw_only=True)
    """Clock period of each run, in seconds. Both are 1 if a clock is not known."""

    def changes(self, measure: str) -> bool:
        """True if a bandwidth in the range changes `measure` for at least one of the two runs. The lowest and the
        highest bandwidth of the range are compared with the present one. False for all measures that are not in
        `measures`.
        """
        values = [self._values(measure, factor) for factor in (self.low, 1.0, self.high)]
        return measure in self.measures and any(one != values[1] for one in values)

    def difference(self, measure: str, factor: float, first: int) -> float:
        """Value of the second run minus the value of the first run in `measure`, if the bandwidth is multiplied by
        `factor`. `first` is the index (0 or 1) of the run that counts as the first run.
        """
        values = self._values(measure, factor)
        return values[1 - first] - values[first]

    def share(self, measure: str, factor: float, first: int) -> float:
        """Relative difference between the two runs if the bandwidth is multiplied by `factor`: (v2 - v1) / v1, where v1
        and v2 are the values of the first and the second run. `first` is the index (0 or 1) of the run that counts as
        the first run.
        """
        return self.difference(measure, factor, first) / self._values(measure, factor)[first]

    def turning_factor(self, measure: str, first: int) -> float | None:
        """Factor on the bandwidth that reverses the order of the two runs. If a larger and a smaller bandwidth reverse
        the order, the factor nearer to 1 on a logarithmic scale is returned. None if no bandwidth in the range reverses
        the order.

        The bandwidth times this factor is a whole number of bits per cycle. `first` is the index (0 or 1) of the run
        that is better now.
        """
        found = [bits / self.width_bits for bits in self._turning_bits(measure, first)]
        return min(found, key=lambda factor: abs(math.log(factor)), default=None)

    def _turning_bits(self, measure: str, first: int) -> Iterator[int]:
        """Bandwidths in bits per cycle that reverse the order of the two runs: the nearest larger one and the nearest
        smaller one, if they exist.

        Several larger and several smaller bandwidths are tried (see GRID_STEP). For the latency of a memory that only
        one run uses, only the largest and the smallest bandwidth of the range are tried. This is enough, because the
        latency of this run never rises as the bandwidth grows. Bisection then finds the nearest bandwidth that reverses
        the order.
        """

        def is_turned(bits: int) -> bool:
            return self.difference(measure, bits / self.width_bits, first) < 0

        is_fine = measure != "latency" or all(self.parts)
        for grid in _grids(self.width_bits, is_fine):
            before = self.width_bits
            for bits in grid:
                if is_turned(bits):
                    yield _first_turned(before, bits, is_turned)
                    break
                before = bits

    def _values(self, measure: str, factor: float) -> tuple[float, float]:
        a, b = (
            _value(measure, outcome, period)
            for outcome, period in zip(self.outcomes(factor), self.seconds_a_cycle, strict=True)
        )
        return a, b


def bandwidth_numbers(runs: Runs) -> tuple[BandwidthNumber, ...]:
    """Bandwidths of the off-chip memories of two runs. If each run has one off-chip memory and both memories are the
    same part (`_is_same`), they share one number.

    Raises InputError if the cost model does not reproduce the recorded costs of a run.
    """
    memories = [[memory for memory in off_chip_memories(run.core) if _width_bits(memory)] for run in runs]
    clocks = [run.core.clock_frequency_mhz for run in runs]
    found: list[BandwidthNumber] = []
    if all(len(own) == 1 for own in memories) and _is_same(memories[0][0], memories[1][0], clocks):
        found.append(_number(runs, (memories[0][0], memories[1][0])))
    else:
        found += [_number(runs, (memory, None)) for memory in memories[0]]
        found += [_number(runs, (None, memory)) for memory in memories[1]]
    for number in found[:1]:
        number.outcomes(1.0)
    return tuple(found)


def off_chip_memories(core: Core) -> list[Memory]:
    """Off-chip memories of a core."""
    on_chip = on_chip_memories(core)
    return [memory for index, memory in enumerate(core.memories) if index not in on_chip]


def with_bandwidth(core: Core, names: Sequence[str], factor: float) -> Core:
    """Core in which the ports of the memories `names` are `factor` times as wide, rounded down to whole bits.

    The energy per bit stays the same.
    """
    memories = (_widened(memory, factor) if memory.name in names else memory for memory in core.memories)
    return core if factor == 1 else replace(core, memories=tuple(memories))


def _widened(memory: Memory, factor: float) -> Memory:
    ports = tuple(_widened_port(port, factor) for port in memory.ports)
    before, after = (_words_bits(own) for own in (memory.ports, ports))
    energies = memory.read_energy_pj * after[0] / before[0], memory.write_energy_pj * after[1] / before[1]
    return replace(memory, ports=ports, read_energy_pj=energies[0], write_energy_pj=energies[1])


def _widened_port(port: Port, factor: float) -> Port:
    width = max(1, int(port.bandwidth_max_bits * factor * (1 + NEGLIGIBLE)))
    is_whole_word = port.bandwidth_min_bits == port.bandwidth_max_bits
    least = width if is_whole_word else min(port.bandwidth_min_bits, width)
    return replace(port, bandwidth_max_bits=width, bandwidth_min_bits=least)


def _words_bits(ports: Sequence[Port]) -> tuple[int, int]:
    """Pair (bits of a word that is read, bits of a word that is written). The first number is the width of the widest
    port that reads, or 1 if no port reads. The second number is the width of the widest port that writes, or 1 if no
    port writes.
    """
    read, write = (
        max((port.bandwidth_max_bits for port in ports if way in port.port_type), default=1)
        for way in ("read", "write")
    )
    return read, write


def _width_bits(memory: Memory) -> int:
    return max((port.bandwidth_max_bits for port in memory.ports), default=0)


def _is_same(one: Memory, other: Memory, clocks_mhz: Sequence[float]) -> bool:
    """True if two memories are the same part: they have equal bandwidths and equal energies per bit. If the clocks are
    known, the bandwidths per second are compared.
    """
    rates = clocks_mhz if all(clocks_mhz) else (1.0, 1.0)
    pairs = [(_width_bits(one) * rates[0], _width_bits(other) * rates[1])]
    bits = _words_bits(one.ports), _words_bits(other.ports)
    pairs.append((one.read_energy_pj / bits[0][0], other.read_energy_pj / bits[1][0]))
    pairs.append((one.write_energy_pj / bits[0][1], other.write_energy_pj / bits[1][1]))
    return all(math.isclose(a, b, rel_tol=NEGLIGIBLE) for a, b in pairs)


def _number(runs: Runs, memories: tuple[Memory | None, Memory | None]) -> BandwidthNumber:
    first, second = (() if memory is None else (memory.name,) for memory in memories)
    widths = {port.bandwidth_max_bits for memory in memories if memory is not None for port in memory.ports}
    places = [place for place in (0, 1) if memories[place] is not None]
    names = ", ".join(dict.fromkeys((*first, *second)))
    clocks = [run.core.clock_frequency_mhz for run in runs]
    periods = tuple(1e-6 / clock for clock in clocks) if all(clocks) else (1.0, 1.0)
    still = ChangedRun(LinearFigure(0.0), LinearFigure(0.0))
    return BandwidthNumber(
        name=f"bandwidth of {names} in {' and '.join(NAMES[place] for place in places)}",
        values=(float(max(widths)),) if len(widths) == 1 else (),
        unit="b/cycle",
        kind=BANDWIDTH,
        parts=(first, second),
        runs=(still, still),
        low=math.ceil(max(widths) / LARGEST_FACTOR) / max(widths),
        high=LARGEST_FACTOR,
        measures=("latency", "EDP"),
        width_bits=max(widths),
        outcomes=_Outcomes(runs, (first, second)),
        seconds_a_cycle=(periods[0], periods[1]),
    )


@dataclass(eq=False)
class _Outcomes:
    """Function from a factor on a bandwidth to the costs of two runs with their recorded mappings. Each changed core is
    evaluated only once.
    """

    runs: Runs
    parts: tuple[tuple[str, ...], tuple[str, ...]]
    found: dict[tuple[int, Core], Outcome] = field(default_factory=dict)

    def __call__(self, factor: float) -> tuple[Outcome, Outcome]:
        """Costs of both runs, if the bandwidth is multiplied by `factor`."""
        return self._of(0, factor), self._of(1, factor)

    def _of(self, place: int, factor: float) -> Outcome:
        run, parts = self.runs[place], self.parts[place]
        core = with_bandwidth(run.core, parts, factor) if parts else run.core
        if (place, core) not in self.found:
            self.found[place, core] = run.same(Accelerator(core.name, (core,)))
        return self.found[place, core]


def _value(measure: str, outcome: Outcome, seconds_a_cycle: float) -> float:
    energy, cycles = outcome.energy_pj, outcome.latency_cycles
    assert energy is not None
    assert cycles is not None
    return BUILT_IN[measure].value(energy, cycles * seconds_a_cycle)


def _grids(width_bits: int, is_fine: bool) -> tuple[list[int], list[int]]:
    """Pair of lists: bandwidths in bits per cycle to try above `width_bits`, and bandwidths to try below it. The
    nearest bandwidth is first.

    If `is_fine` is false, each list has only the end of the range. An end that is equal to `width_bits` is left out.
    """
    limits = math.floor(width_bits * LARGEST_FACTOR), math.ceil(width_bits / LARGEST_FACTOR)
    count = math.floor(math.log(LARGEST_FACTOR) / math.log(GRID_STEP)) if is_fine else 0
    above = [math.floor(width_bits * GRID_STEP**step) for step in range(1, count + 1)]
    below = [math.ceil(width_bits / GRID_STEP**step) for step in range(1, count + 1)]
    both = [[*own, limit] for own, limit in ((above, limits[0]), (below, limits[1]))]
    first, second = ([bits for bits in dict.fromkeys(own) if bits != width_bits] for own in both)
    return first, second


def _first_turned(before: int, bits: int, is_turned: Callable[[int], bool]) -> int:
    """Bandwidth nearest to `before` that reverses the order of the runs. It is found by bisection, which assumes a
    single reversal of the order between `before` and `bits`.

    The order must be reversed at `bits`, and not at `before`.
    """
    while abs(bits - before) > 1:
        middle = (before + bits) // 2
        before, bits = (before, middle) if is_turned(middle) else (middle, bits)
    return bits
