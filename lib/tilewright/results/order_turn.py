"""Smallest change of one uncertain number that reverses the order of two runs, computed exactly.

A mapping fixes the accesses, the MACs and the cycles. The energy of a run is then linear in each of these numbers: the
energy of a MAC, the energy of an access of each memory, each further term of the energy (such as a term of a plug-in),
and the clock period. The latency of a run is linear in the clock period. Mappings stay unchanged.

Classes for other uncertain numbers, such as bandwidths, override `changes`, `difference`, `share` and `turning_factor`.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tilewright.base.json_values import JsonObject
from tilewright.base.objectives import BUILT_IN
from tilewright.cost.ledger import ACCESSES, ARRAYS, term_words
from tilewright.hardware.array_model import MAC
from tilewright.hardware.attributes import power_terms
from tilewright.results.part_costs import MemoryPart
from tilewright.results.run_ledger import ENERGY, NO_TERM, RunLedger

MEASURES = ("energy", "latency", "EDP")
NAMES = ("A", "B")
LARGEST_FACTOR = 10.0
"""Largest factor, up or down, by which a number without a known range is changed."""
MAC_ENERGY, MEMORY_ENERGY, CLOCK, BANDWIDTH = "energy of a MAC", "energy of memories", "clock", "bandwidth"
TERM_ENERGY = "energy of a term"
"""Kind of uncertain number: all energy of one further term, such as a term of a plug-in or a circuit of an in-memory
array."""
NEGLIGIBLE = 1e-9
"""Relative difference below which two numbers count as equal."""
HELD = (
    "the factors above are for unchanged mappings, and only a changed bandwidth changes cycles; a new search of the"
    " mappings can give other factors (`tilewright compare --search-again`); another batch (`--batches 2,4,8`) or"
    " another size of a memory (`--sizes`) can also reverse the order"
)


class LinearFigure(NamedTuple):
    """Value that is linear in a factor: `fixed + scaled * factor`."""

    fixed: float
    scaled: float = 0.0

    def at(self, factor: float) -> float:
        """Value for a factor."""
        return self.fixed + self.scaled * factor


class ChangedRun(NamedTuple):
    """Energy and latency of a run as linear functions of a factor, or of the inverse of this factor. The factor
    multiplies one number, such as an energy or a clock frequency.
    """

    energy: LinearFigure
    """Energy in pJ."""
    latency: LinearFigure
    """Latency in seconds, or in cycles."""

    def value(self, measure: str, factor: float) -> float:
        """Value of a measure (energy, latency or EDP) at a factor."""
        return BUILT_IN[measure].value(self.energy.at(factor), self.latency.at(factor))

    def polynomial(self, measure: str) -> tuple[float, float, float]:
        """Coefficients of the measure as a polynomial in the factor, the highest power first."""
        (a, b), (c, d) = self.energy, self.latency
        return {"energy": (0.0, b, a), "latency": (0.0, d, c)}.get(measure, (b * d, a * d + b * c, a * c))


@dataclass(frozen=True)
class UncertainNumber:
    """Uncertain number, with the energy and latency of both runs as functions of the factor by which the number is
    multiplied."""

    name: str
    """Name of the number with its runs, such as `energy of dram in A and B`."""
    values: tuple[float, ...]
    """Present values in `unit`; () if the number is a ratio, or stands for several different values."""
    unit: str
    kind: str
    """Kind of the number: MAC_ENERGY, MEMORY_ENERGY, TERM_ENERGY, CLOCK or BANDWIDTH."""
    parts: tuple[tuple[str, ...], tuple[str, ...]]
    """Names of the hardware parts whose costs or speed depend on the number: a tuple for each run. The tuple is () for
    a run that does not depend on the number.
    """
    runs: tuple[ChangedRun, ChangedRun]
    low: float
    """Smallest factor by which the number can be multiplied."""
    high: float
    has_range: bool = False
    """True if `low` and `high` are a range from the library of costs."""
    is_inverse: bool = False
    """True if energy and latency are linear in the inverse of the factor, as for a clock frequency."""
    measures: tuple[str, ...] = MEASURES
    """Measures in which the order can depend on the number."""

    def difference(self, measure: str, factor: float, first: int) -> float:
        """Value of the other run minus the value of the run with the index `first`, after the number is multiplied by
        `factor`.
        """
        at = 1 / factor if self.is_inverse else factor
        return self.runs[1 - first].value(measure, at) - self.runs[first].value(measure, at)

    def changes(self, measure: str) -> bool:
        """True if the measure `measure` of at least one of the two runs depends on the number."""
        return measure in self.measures and any(any(run.polynomial(measure)[:2]) for run in self.runs)

    def share(self, measure: str, factor: float, first: int) -> float:
        """Relative difference of the two runs after the number is multiplied by `factor`: (v2 - v1) / v1. v1 is the
        value of the run with the index `first`, and v2 is the value of the other run.
        """
        at = 1 / factor if self.is_inverse else factor
        return self.difference(measure, factor, first) / self.runs[first].value(measure, at)

    def turning_factor(self, measure: str, first: int) -> float | None:
        """Factor nearest to 1 (as a ratio) at which both runs are equal. Beyond this factor, the order of the runs is
        reversed. None if no positive factor reverses the order.
        """
        ahead, behind = (self.runs[place].polynomial(measure) for place in (first, 1 - first))
        rows = [b - a for a, b in zip(ahead, behind, strict=True)]
        size = max(map(abs, (*ahead, *behind)))
        cleaned = [0.0 if abs(row) <= size * 1e-15 else row for row in rows]
        roots = [float(root.real) for root in np.roots(cleaned) if abs(root.imag) < 1e-12 and root.real > 0]
        factors = sorted((1 / root if self.is_inverse else root for root in roots), key=lambda one: abs(math.log(one)))
        return next((one for one in factors if self.difference(measure, _beyond(one), first) < 0), None)


class Turn(NamedTuple):
    """Change of one number by a factor. The factor makes two runs equal in a measure, reverses their order (for a
    bandwidth), or is the end of a known range.
    """

    number: UncertainNumber
    factor: float


@dataclass(frozen=True)
class OrderTurn:
    """Order of two runs in one measure, and the change that would reverse this order."""

    measure: str
    first: int
    """Index (0 or 1) of the run with the smaller value before the change."""
    difference: float
    """Relative difference between the two runs before the change: (v2 - v1) / v1. v1 is the value of the run `first`,
    and v2 is the value of the other run.
    """
    turn: Turn | None
    """Smallest change of one number that reverses the order. A number can change within its known range, or by up to
    LARGEST_FACTOR if no range is known. None if no such change reverses the order."""
    nearest_end: Turn | None
    """End of a known range at which the value of the other run comes nearest to the value of the run `first`. None if
    no range is known, or if a change within a known range reverses the order.
    """
    left: float = 0.0
    """Relative difference between the two runs at `nearest_end`: (v2 - v1) / v1. v1 is the value of the run `first`,
    and v2 is the value of the other run. The difference is 0 if `nearest_end` is None.
    """
    number_count: int = 0
    """Number of uncertain numbers on which the measure depends."""
    kinds: tuple[str, ...] = ()
    """Kinds of the uncertain numbers on which the measure depends."""
    bandwidth: Turn | None = None
    """Smallest change of the bandwidth of an off-chip memory, by up to LARGEST_FACTOR, that reverses the order. None if
    no such change reverses the order.

    A faster clock shortens all cycles, but a wider memory saves only some of the cycles. To reverse the order, a
    bandwidth must therefore change by at least the factor by which a clock must change.
    """
    has_bandwidths: bool = False
    """True if bandwidths were considered."""
    others: str = ""
    """Numbers that were not considered, and the reason; '' if all were considered."""


def order_turns(
    a: RunLedger, b: RunLedger, bandwidths: Sequence[UncertainNumber] | None = None
) -> tuple[OrderTurn, ...]:
    """Changes that would reverse the order of two runs in energy, latency and EDP. A measure in which the runs are
    equal has no entry.

    `bandwidths` are further uncertain numbers: the bandwidths of off-chip memories. The cost model computes their
    effect. `bandwidths` is None if the bandwidths are not known.
    """
    numbers = tuple(uncertain_numbers(a, b))
    return tuple(filter(None, (_order_turn(measure, numbers, a, b, bandwidths) for measure in MEASURES)))


def uncertain_numbers(a: RunLedger, b: RunLedger) -> Iterator[UncertainNumber]:
    """Uncertain numbers of two runs: energies of a MAC, of memories and of further terms, and clock frequencies.

    Static powers are not uncertain numbers of their own: their energy follows from the clock. An energy is one number
    for both runs if both runs take it from the same source: a law of the library of costs, or a part that is equal in
    both hardware files.

    For some runs, such as runs on several cores, the costs of the single parts are not known. Such a run has only two
    kinds of uncertain numbers: its clock, and memory energies with a known range.
    """
    pair = (a, b)
    yield from _array_numbers(pair)
    yield from _memory_numbers(pair)
    yield from _term_numbers(pair)
    yield from _clock_numbers(pair)


def _order_turn(
    measure: str,
    numbers: Sequence[UncertainNumber],
    a: RunLedger,
    b: RunLedger,
    bandwidths: Sequence[UncertainNumber] | None,
) -> OrderTurn | None:
    now = [run.value(measure, 1.0) for run in _unchanged((a, b))]
    first = int(now[1] < now[0])
    if not now[first] or now[1 - first] <= now[first] * (1 + NEGLIGIBLE):
        return None
    apply = [one for one in numbers if one.changes(measure)]
    inside = _within_ranges(apply, measure, first)
    best = min(inside, key=_size_of_change, default=None)
    has_bandwidths = bandwidths is not None and measure != "energy"
    wider = [one for one in bandwidths or () if has_bandwidths and one.changes(measure)]
    bandwidth = min(_within_ranges(wider, measure, first), key=_size_of_change, default=None)
    ends: list[tuple[float, Turn]] = []
    if not any(turn.number.has_range for turn in inside):
        ranged = [one for one in apply if one.has_range]
        ends = [(one.share(measure, end, first), Turn(one, end)) for one in ranged for end in (one.low, one.high)]
    left, end = min(ends, key=lambda pair: pair[0], default=(0.0, None))
    others = _not_considered(measure, all(ledger.run.costs for ledger in (a, b)), bandwidths is None)
    return OrderTurn(
        measure=measure,
        first=first,
        difference=now[1 - first] / now[first] - 1,
        turn=best,
        nearest_end=end,
        left=left,
        number_count=len(apply),
        kinds=tuple(
            dict.fromkeys(one.name.rsplit(" in ", 1)[0] if one.kind == TERM_ENERGY else one.kind for one in apply)
        ),
        bandwidth=bandwidth,
        has_bandwidths=has_bandwidths,
        others=others,
    )


def _within_ranges(numbers: Iterable[UncertainNumber], measure: str, first: int) -> list[Turn]:
    """Changes that reverse the order, at most one for each number. Each factor is within the limits `low` and `high` of
    its number.
    """
    found = [Turn(one, factor) for one in numbers if (factor := one.turning_factor(measure, first)) is not None]
    return [turn for turn in found if turn.number.low <= turn.factor <= turn.number.high]


def _not_considered(measure: str, has_costs: bool, lacks_bandwidths: bool) -> str:
    """Text on numbers that are not considered although the measure depends on them; '' if there are none."""
    energies = [] if has_costs or measure == "latency" else ["energies without a range"]
    bandwidths = ["bandwidths"] if lacks_bandwidths and measure != "energy" else []
    found = [*energies, *bandwidths]
    return f"{' and '.join(found)} are not considered, because they are not known here" if found else ""


def _size_of_change(turn: Turn) -> tuple[float, bool]:
    """Sort key: size of a change as a ratio. Of two changes of equal size, the increase comes first."""
    return round(abs(math.log(turn.factor)), 9), turn.factor < 1


def _beyond(factor: float) -> float:
    """Factor slightly further from 1 than `factor`."""
    return factor * (1 + NEGLIGIBLE if factor > 1 else 1 - NEGLIGIBLE)


# numbers --------------------------------------------------------------------------------------------------------------


def _by_time(pair: tuple[RunLedger, RunLedger]) -> bool:
    return all(ledger.run.latency_s for ledger in pair)


def _unchanged(pair: tuple[RunLedger, RunLedger]) -> tuple[ChangedRun, ChangedRun]:
    return _scaled(pair, (0.0, 0.0))


def _scaled(pair: tuple[RunLedger, RunLedger], parts_pj: tuple[float, float]) -> tuple[ChangedRun, ChangedRun]:
    """Energy and latency of both runs as functions of a factor. For each run, the factor multiplies the part `parts_pj`
    of the energy, in pJ.
    """
    times = [ledger.run.latency_s if _by_time(pair) else ledger.run.latency_cycles for ledger in pair]
    first, second = (
        ChangedRun(LinearFigure(ledger.run.energy_pj - part, part), LinearFigure(float(time or 0.0)))
        for ledger, part, time in zip(pair, parts_pj, times, strict=True)
    )
    return first, second


def _energies(pair: tuple[RunLedger, RunLedger], terms: Sequence[str], memory: str = "") -> tuple[float, float]:
    """Pair of energies in pJ, one for each run: the sum of the energies of the memory `memory` in the terms `terms`. If
    `memory` is '', only energies that belong to no memory are summed."""
    first, second = (
        sum(
            value
            for place, value in ledger.entries.items()
            if place.quantity == ENERGY and place.term in terms and place.memory == memory
        )
        for ledger in pair
    )
    return first, second


def _array_numbers(pair: tuple[RunLedger, RunLedger]) -> Iterator[UncertainNumber]:
    energies = _energies(pair, (MAC,))
    units = [None if ledger.run.costs is None else ledger.run.costs.unit_energy_pj for ledger in pair]
    is_shared = units[0] is not None and units[0] == units[1] and pair[0].run.bits == pair[1].run.bits
    for places in _places(is_shared):
        value = units[places[0]]
        if value and any(energies[place] for place in places):
            parts = _parts(dict.fromkeys(places, ("array",)))
            yield _energy_number(pair, (MAC_ENERGY, MAC_ENERGY), parts, energies, (value,), "pJ")


def _memory_numbers(pair: tuple[RunLedger, RunLedger]) -> Iterator[UncertainNumber]:
    """Uncertain energies of memories. Memories share one number if their costs come from the same law with the same
    range. Memories without a range share one number if they are the same part (`_is_same_part`).
    """
    costs = [memory for ledger in pair if ledger.run.costs for memory in ledger.run.costs.memories]
    ranges = {(part.law, part.low, part.high) for ledger in pair for part in ledger.run.cost_parts}
    for law, low, high in sorted(ranges):
        parts = [
            [part for part in ledger.run.cost_parts if (part.law, part.low, part.high) == (law, low, high)]
            for ledger in pair
        ]
        energies = (sum(part.energy_pj for part in parts[0]), sum(part.energy_pj for part in parts[1]))
        values, unit = _common_value([memory for memory in costs if memory.law == law])
        memories = dict.fromkeys(part.memory for own in parts for part in own)
        if any(energies):
            name = f"energy of {', '.join(filter(None, memories)) or 'memories'} ({law})"
            own = _parts({place: [part.memory for part in parts[place]] for place in (0, 1) if energies[place]})
            yield _energy_number(pair, (MEMORY_ENERGY, name), own, energies, values, unit, (low, high))
    yield from _plain_numbers(pair, {law for law, _, _ in ranges})


def _plain_numbers(pair: tuple[RunLedger, RunLedger], ranged: set[str]) -> Iterator[UncertainNumber]:
    """Uncertain energies of the memories whose costs have no known range. `ranged` has the laws with a known range;
    memories with costs from these laws are left out.
    """
    groups: list[list[tuple[int, MemoryPart]]] = []
    for place, ledger in enumerate(pair):
        for part in ledger.run.costs.memories if ledger.run.costs else ():
            if part.law in ranged or not any(part.bit_energies_pj):
                continue
            same = next((group for group in groups if _is_same_part(group[0][1], part)), None)
            if same is None:
                groups.append([(place, part)])
            else:
                same.append((place, part))
    for group in groups:
        energies = [0.0, 0.0]
        for place, part in group:
            energies[place] += _energies(pair, (ACCESSES,), part.name)[place]
        values, unit = _common_value([part for _, part in group])
        if any(energies):
            name = f"energy of {', '.join(dict.fromkeys(part.name for _, part in group))}"
            own = {place: [part.name for at, part in group if at == place] for place in (0, 1) if energies[place]}
            both = (energies[0], energies[1])
            yield _energy_number(pair, (MEMORY_ENERGY, name), _parts(own), both, values, unit)


def _term_numbers(pair: tuple[RunLedger, RunLedger]) -> Iterator[UncertainNumber]:
    """Energies of the further terms: terms of plug-ins and of the circuits of in-memory arrays. A term is one number
    for both runs if both runs have energy in this term, and if all attributes in the two hardware files are equal.
    """
    figures = [None if ledger.run.costs is None else ledger.run.costs.figures for ledger in pair]
    known = {MAC, ACCESSES, ARRAYS, NO_TERM, *power_terms()}
    terms = dict.fromkeys(
        place.term
        for ledger in pair
        for place in ledger.entries
        if ledger.run.costs is not None and place.quantity == ENERGY and place.term not in known
    )
    for term in terms:
        energies = _energies(pair, (term,))
        for places in _places(all(energies) and figures[0] == figures[1]):
            if any(energies[place] and figures[place] is not None for place in places):
                own = _parts(dict.fromkeys(places, (term,)))
                yield _energy_number(pair, (TERM_ENERGY, f"energy of {term_words(term)}"), own, energies, (), "")


def _clock_numbers(pair: tuple[RunLedger, RunLedger]) -> Iterator[UncertainNumber]:
    """Uncertain clock frequencies, one for each run.

    If a clock is not known, the uncertain numbers are ratios: the clock of one run divided by the clock of the other
    run. Such a number is used only for the latency: the energy can contain static energy, which depends on the unknown
    clock.
    """
    by_time, static = _by_time(pair), _energies(pair, power_terms())
    for place, ledger in enumerate(pair):
        runs = list(_unchanged(pair))
        still = ledger.run.energy_pj - static[place]
        energy = LinearFigure(still, static[place]) if by_time else LinearFigure(ledger.run.energy_pj)
        runs[place] = ChangedRun(energy, LinearFigure(0.0, runs[place].latency.fixed))
        yield UncertainNumber(
            name=f"clock of {NAMES[place]}{'' if by_time else f' relative to that of {NAMES[1 - place]}'}",
            values=(float(ledger.run.clock_frequency_mhz or 0.0),) if by_time else (),
            unit="MHz" if by_time else "",
            kind=CLOCK,
            parts=_parts({place: (CLOCK,)}),
            runs=(runs[0], runs[1]),
            low=1 / LARGEST_FACTOR,
            high=LARGEST_FACTOR,
            is_inverse=True,
            measures=MEASURES if by_time else ("latency",),
        )


def _energy_number(
    pair: tuple[RunLedger, RunLedger],
    names: tuple[str, str],
    parts: tuple[tuple[str, ...], tuple[str, ...]],
    energies_pj: tuple[float, float],
    values: tuple[float, ...],
    unit: str,
    limits: tuple[float, float] | None = None,
) -> UncertainNumber:
    """Uncertain number whose factor multiplies a part of the energy of one or both runs.

    `names` is a pair: kind of the number, and name of the number without the names of the runs. `parts` has, for each
    run, the hardware parts whose energy depends on the number; () means that there is none. `energies_pj` has, for each
    run, the energy that the factor multiplies; runs with () in `parts` are ignored. `values` are the present values of
    the number in `unit`. `limits` is the known range of the factor; None allows a change by up to LARGEST_FACTOR.
    """
    kind, name = names
    places = [place for place in (0, 1) if parts[place]]
    scaled = (energies_pj[0] if 0 in places else 0.0, energies_pj[1] if 1 in places else 0.0)
    low, high = limits or (1 / LARGEST_FACTOR, LARGEST_FACTOR)
    text = f"{name} in {' and '.join(NAMES[place] for place in places)}"
    return UncertainNumber(text, values, unit, kind, parts, _scaled(pair, scaled), low, high, limits is not None)


def _parts(of_runs: Mapping[int, Sequence[str]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of parts as a pair (parts of run 0, parts of run 1). `of_runs` has the names by index of the run; a run
    without an entry gets ().
    """
    return tuple(of_runs.get(0, ())), tuple(of_runs.get(1, ()))


def _places(is_shared: bool) -> tuple[tuple[int, ...], ...]:
    return ((0, 1),) if is_shared else ((0,), (1,))


def _is_same_part(one: MemoryPart, other: MemoryPart) -> bool:
    """True if two memories are the same part.

    Memories from the library of costs are the same if their laws are equal. Other off-chip memories are the same if
    their energies per bit are equal. Other on-chip memories are the same if all their properties are equal.
    """
    if one.law or other.law:
        return one.law == other.law
    if one.is_on_chip or other.is_on_chip:
        return one == other
    pairs = zip(one.bit_energies_pj, other.bit_energies_pj, strict=True)
    return all(math.isclose(a, b, rel_tol=NEGLIGIBLE) for a, b in pairs)


def _value_of(part: MemoryPart) -> tuple[tuple[float, ...], str]:
    """Pair (values, unit) of the energy of a memory: in pJ per bit for off-chip memories, in pJ per word for on-chip
    memories. The values are the read and the write energy, or one value if both are equal."""
    pair, unit = part.bit_energies_pj, "pJ/b"
    if part.is_on_chip:
        pair, unit = (part.read_energy_pj, part.write_energy_pj), "pJ a word"
    return ((pair[0],) if math.isclose(*pair, rel_tol=NEGLIGIBLE) else pair), unit


def _common_value(parts: Sequence[MemoryPart]) -> tuple[tuple[float, ...], str]:
    """Pair (values, unit) of `_value_of`, if it is the same for all memories; otherwise ((), '')."""
    found = {_value_of(part) for part in parts}
    return found.pop() if len(found) == 1 else ((), "")


# texts ----------------------------------------------------------------------------------------------------------------


def turn_lines(turns: Sequence[OrderTurn], by_time: bool) -> tuple[str, ...]:
    """Sentences on the changes that would reverse the order: one for each measure, then one on the assumptions. () if
    `turns` is empty.
    """
    lines = tuple(turn_line(one, by_time) for one in turns)
    return (*lines, HELD) if lines else ()


def turn_object(one: OrderTurn) -> JsonObject:
    """Change that would reverse the order in a measure, as a JSON object.

    Both runs are equal at the factor of `change`. At the factor of `bandwidth_change`, the order is already reversed,
    because a bandwidth is a whole number of bits.
    """

    def of(turn: Turn | None) -> JsonObject | None:
        if turn is None:
            return None
        number = turn.number
        return {
            "number": number.name,
            "factor": turn.factor,
            "unit": number.unit,
            "from": list(number.values),
            "to": [value * turn.factor for value in number.values],
            "range": [number.low, number.high] if number.has_range else None,
        }

    return {
        "measure": one.measure,
        "first": NAMES[one.first],
        "difference": one.difference,
        "change": of(one.turn),
        "bandwidth_change": of(one.bandwidth),
        "nearest_end": of(one.nearest_end),
        "difference_at_nearest_end": one.left if one.nearest_end else None,
    }


def turn_line(one: OrderTurn, by_time: bool) -> str:
    """Sentence on the order of two runs in one measure: the difference between the runs, and the change that would
    reverse their order. If `by_time` is true, latencies are in seconds, otherwise in cycles.
    """
    first, second = NAMES[one.first], NAMES[1 - one.first]
    unit = "" if one.measure == "energy" else " in seconds" if by_time else " in cycles"
    said = f"{one.measure}{unit}: {second} is {percent(one.difference)} above {first}"
    if one.turn is not None:
        said += f"; {second} would be first with {change_text(one.turn)}{_why_energy(one)}"
    else:
        said += f"; no change of a single number {_limits(one)} reverses the order{_considered(one)}"
    if one.nearest_end is not None:
        number, factor = one.nearest_end
        end = f"{factor:.4g} times the {number.name}{_from_to(number, factor, is_bound=False)}, {second} is still"
        said += (
            f"; within the known ranges, the order stays: at the nearest end, {end} {percent(one.left)} above {first}"
        )
    said += _bandwidth_text(one)
    return said + (f"; {one.others}" if one.others else "")


def _why_energy(one: OrderTurn) -> str:
    """Text that says why a clock changes an energy; '' for other measures and numbers."""
    if one.measure != "energy" or one.turn is None or one.turn.number.kind != CLOCK:
        return ""
    change = "falls as the clock becomes faster" if one.turn.factor > 1 else "grows as the clock becomes slower"
    return f" (static energy, such as leakage, {change})"


def _bandwidth_text(one: OrderTurn) -> str:
    """Text with the change of an off-chip bandwidth that would reverse the order, or with the statement that there is
    none. '' if bandwidths were not considered.
    """
    if not one.has_bandwidths:
        return ""
    if one.bandwidth is None:
        return (
            f"; none of the tried bandwidths of off-chip memories, up to {LARGEST_FACTOR:g} times as high or low,"
            " reverses the order"
        )
    return f"; {NAMES[1 - one.first]} would also be first with {change_text(one.bandwidth)}"


def _limits(one: OrderTurn) -> str:
    return f"by up to {LARGEST_FACTOR:g} times, or within its range," if one.number_count else "considered here"


def _considered(one: OrderTurn) -> str:
    """Kinds of uncertain numbers on which the measure depends, as text in brackets; '' if there are none."""
    return f" (numbers: {', '.join(one.kinds)})" if one.kinds else ""


def change_text(turn: Turn) -> str:
    """Text of a change. The factor is rounded away from 1, so that the order is also reversed at the rounded factor."""
    number, factor = turn
    bound = "at least" if factor > 1 else "at most"
    known = "; no range of this number is known"
    if number.has_range:
        known = f"; range {number.low:g} to {number.high:g} times"
    if not number.has_range and number.is_inverse:
        known = ""
    return f"{bound} {outward(factor, factor):.4g} times the {number.name}{_from_to(number, factor)}{known}"


def _from_to(number: UncertainNumber, factor: float, is_bound: bool = True) -> str:
    """Text with the value of a number before and after multiplication by `factor`; '' if the factor multiplies several
    different values. If `is_bound` is true, the value after the multiplication is rounded away from the value before. A
    bandwidth is always rounded down to whole bits."""
    if not number.values:
        return ""
    if number.kind == BANDWIDTH:
        return f" ({number.values[0]:,.0f} -> {whole_bits(number, factor):,} {number.unit})"
    both = ", read and write" if len(number.values) > 1 else ""
    before = " and ".join(f"{value:.4g}" for value in number.values)
    changed = (outward(value * factor, factor) if is_bound else value * factor for value in number.values)
    return f" ({before} -> {' and '.join(f'{value:.4g}' for value in changed)} {number.unit}{both})"


def whole_bits(number: UncertainNumber, factor: float) -> int:
    """Bandwidth in whole bits per cycle, rounded down, after multiplication by a factor."""
    return max(1, int(number.values[0] * factor * (1 + NEGLIGIBLE)))


def outward(value: float, factor: float, digits: int = 3) -> float:
    """Value rounded to `digits` significant digits: up if `factor` is above 1, otherwise down."""
    if not value:
        return value
    step = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    rounded = (math.ceil if factor > 1 else math.floor)(value / step + (1e-6 if factor > 1 else -1e-6)) * step
    return float(f"{rounded:.{digits + 1}g}")


def percent(share: float) -> str:
    """Text of a positive share in percent."""
    return f"{share:,.1%}" if share >= 0.0005 else "less than 0.1%"
